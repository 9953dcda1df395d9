"""Chunks equal the examples of the N5 specification, and numcodecs decodes them."""

from __future__ import annotations

import gzip
import lzma
from typing import Any

import numpy as np
import pytest

from n5zarr.errors import N5BlockError
from n5zarr.format.attributes import DatasetAttributes, parse_attributes
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple
from n5zarr.zarr_view.chunks import (
    chunk_slice,
    decode_chunk,
    encode_chunk,
    make_block,
    make_chunk,
    stored_chunk,
)
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Element
from tests.refusals import refused
from tests.unit.codecs.streams import numcodecs

# N5 spec, "File-system specification", item 9: uint16, 1 x 2 x 3, values 1 to 6
HEADER = bytes.fromhex("0000 0003 00000001 00000002 00000003")
ELEMENTS = bytes.fromhex("0001 0002 0003 0004 0005 0006")
PAYLOADS = {
    "raw": ELEMENTS,
    "gzip": bytes.fromhex(
        "1f8b0800 00000000 00006360 64606260 66606160 65600300 aaea6dbf 0c000000"
    ),
    "bzip2": bytes.fromhex(
        "425a6839 31415926 5359023e 0dd20000 0040007f 00200031 0c010d31 a8739433 7c5dc914 e1424008"
        "f83748"
    ),
    "xz": bytes.fromhex(
        "fd377a58 5a000004 e6d6b446 02002101 16000000 742fe5a3 01000b00 01000200 03000400 05000600"
        "0d0309ca 34ec15a7 0001240c a618d8d8 1fb6f37d 01000000 0004595a"
    ),
}


def view(compression: str = "gzip", **options: Any) -> DatasetView:
    document: dict[str, JSON] = {
        "dimensions": [3, 5, 7], "blockSize": [1, 2, 3], "dataType": "uint16",
        "compression": {"type": compression},
    }  # fmt: skip
    parsed = parse_attributes(document | options.pop("members", {}))
    assert isinstance(parsed, DatasetAttributes)
    defaults: dict[str, Any] = {"dataset": parsed, "codecs": "zarr", "axis_order": "C"}
    return DatasetView(**defaults | options)


def header(*sizes: int, count: int | None = None) -> bytes:
    numbers = [0 if count is None else 1, len(sizes)]
    words = [*sizes, *([] if count is None else [count])]
    return b"".join(n.to_bytes(2, "big") for n in numbers) + b"".join(
        n.to_bytes(4, "big") for n in words
    )


LARGER = header(1, 2, 4) + ELEMENTS + bytes.fromhex("0007 0008")
CHUNKS: dict[str, tuple[bytes, dict[str, Any], slice | None]] = {
    **{name: (HEADER + payload, {"compression": name}, slice(16, 16 + len(payload)))
       for name, payload in PAYLOADS.items()},
    "varlength": (header(1, 2, 3, count=6) + ELEMENTS, {}, slice(20, 32)),
    "bytes-behind": (HEADER + ELEMENTS + b"more", {}, slice(16, 28)),
    "whole-blocks": (b"anything", {"codecs": "n5"}, slice(None)),
    # no chunks yet
    "truncated": (header(1, 2, 2) + ELEMENTS[:8], {}, None),
    "larger": (LARGER, {}, None),
    "payload-cut": (HEADER + ELEMENTS[:-1], {}, None),
    "strings": (HEADER + ELEMENTS, {"members": {"dataType": "string"}}, None),
}  # fmt: skip


@pytest.mark.parametrize(("block", "options", "part"), CHUNKS.values(), ids=CHUNKS)
def test_the_part_of_a_block_that_is_its_chunk(
    block: bytes, options: dict[str, Any], part: slice | None
) -> None:
    assert chunk_slice(memoryview(block), view(**{"compression": "raw"} | options)) == part


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        pytest.param(b"\0\0", "header", id="cut"),
        pytest.param(header(1, 2) + ELEMENTS, "header", id="rank"),
        pytest.param(header(1, 0, 3) + ELEMENTS, "header", id="empty"),
        pytest.param(b"\0\2" + header(6)[4:] + ELEMENTS, "header", id="object-mode"),
        pytest.param(header(1, 2, 3, count=5) + ELEMENTS, "varlength", id="count"),
        pytest.param(header(2**15, 2**15, 2) + ELEMENTS, "header", id="two-gigabytes"),
    ],
)
def test_a_block_of_another_dataset_is_an_error(block: bytes, kind: str) -> None:
    with refused(N5BlockError, kind):
        chunk_slice(memoryview(block), view("raw"))


@pytest.mark.parametrize("compression", list(PAYLOADS))
def test_the_examples_of_the_specification_are_decoded(compression: str) -> None:
    stored = stored_chunk(memoryview(HEADER + PAYLOADS[compression]), view(compression))
    assert stored.tolist() == [[[1], [2]], [[3], [4]], [[5], [6]]]


def test_axes_in_n5_order_are_transposed() -> None:
    block = memoryview(HEADER + ELEMENTS)
    assert decode_chunk(block, view("raw", axis_order="F")).tolist() == [[[1, 3, 5], [2, 4, 6]]]


# N5 spec, "File-system specification", item 8: a block of 1 x 2 x 2 at the end of the third axis
PADDED = [1, 2, 3, 4, 9, 9]


@pytest.mark.parametrize(
    ("compression", "payload", "decode"),
    [
        pytest.param("raw", ELEMENTS[:8], bytes, id="raw"),
        pytest.param("gzip", gzip.compress(ELEMENTS[:8]), gzip.decompress, id="gzip"),
        pytest.param("zstd", numcodecs.Zstd(1).encode(ELEMENTS[:8]), numcodecs.Zstd().decode,
                     id="zstd"),
        pytest.param("blosc", numcodecs.Blosc().encode(ELEMENTS[:8]), numcodecs.Blosc().decode,
                     id="blosc"),
        pytest.param("bzip2", numcodecs.BZ2().encode(ELEMENTS[:8]), numcodecs.BZ2().decode,
                     id="bz2"),
        pytest.param("xz", lzma.compress(ELEMENTS[:8]), numcodecs.LZMA().decode, id="xz"),
        pytest.param("lz4", numcodecs.LZ4().encode(ELEMENTS[:8]), numcodecs.LZ4().decode, id="lz4"),
    ],
)  # fmt: skip
def test_a_truncated_block_becomes_a_padded_chunk(
    compression: str, payload: bytes, decode: Any
) -> None:
    filled = Element(dtype=np.dtype("u2"), fill_value=9)
    block = memoryview(header(1, 2, 2) + payload)
    chunk = bytes(make_chunk(block, view(compression, element=filled)))
    assert np.frombuffer(decode(chunk), ">u2").tolist() == PADDED


def test_a_larger_block_is_truncated() -> None:
    assert bytes(make_chunk(memoryview(LARGER), view("raw"))) == ELEMENTS


def test_a_little_endian_chunk_of_v2() -> None:
    from_v2 = view("raw", zarr_format=2, given={"dtype": "<u2"})
    assert bytes(make_chunk(memoryview(HEADER + ELEMENTS), from_v2)) == bytes.fromhex(
        "0100 0200 0300 0400 0500 0600"
    )


def test_strings_become_what_numcodecs_makes_of_them() -> None:
    members = {"dimensions": [3], "blockSize": [3], "dataType": "string"}
    block = header(2, count=5) + b"a\0bb\0"
    chunk = make_chunk(memoryview(block), view("raw", members=members))
    expected = numcodecs.VLenUTF8().encode(np.array(["a", "bb", ""], object))
    assert bytes(chunk) == bytes(expected)


def test_a_full_chunk_gets_a_header() -> None:
    chunk = memoryview(PAYLOADS["gzip"])
    assert make_block(chunk, view(), N5Tuple((0, 0, 0))) == HEADER + PAYLOADS["gzip"]


# dimensions 3 x 5 x 7 in blocks of 1 x 2 x 3: the last ones have 1 along y and z
@pytest.mark.parametrize(
    ("position", "expected"),
    [
        pytest.param((2, 1, 1), HEADER + ELEMENTS, id="inside"),
        pytest.param((0, 2, 0), header(1, 1, 3) + bytes.fromhex("0001 0003 0005"), id="end-of-y"),
        pytest.param((0, 0, 2), header(1, 2, 1) + bytes.fromhex("0001 0002"), id="end-of-z"),
        pytest.param((2, 2, 2), header(1, 1, 1) + bytes.fromhex("0001"), id="corner"),
    ],
)
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_a_chunk_is_truncated_where_the_dataset_ends(
    position: tuple[int, ...], expected: bytes, axis_order: str
) -> None:
    own = view("raw", axis_order=axis_order)
    assert bytes(make_block(memoryview(ELEMENTS), own, N5Tuple(position))) == expected
    array = np.arange(1, 7, dtype="u2").reshape(3, 2, 1)
    presented = array if axis_order == "C" else array.transpose()
    assert bytes(encode_chunk(presented, own, N5Tuple(position))) == expected


def test_a_chunk_of_another_length_is_an_error() -> None:
    with pytest.raises(N5BlockError, match="expected 12 bytes, got 11"):
        make_block(memoryview(ELEMENTS[:-1]), view("raw"), N5Tuple((0, 0, 2)))
