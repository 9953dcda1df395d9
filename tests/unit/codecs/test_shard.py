"""Shards of Java N5 4 are told from blocks with few bytes read."""

from __future__ import annotations

import struct
from typing import Any

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from n5zarr import encode_block
from n5zarr.codecs.shard import (
    LAST,
    check_not_sharded,
    find_shard,
    in_memory,
    is_likely,
    stored_shard,
)
from n5zarr.format.compression import Gzip, Raw, parse_compression
from n5zarr.format.data_type import DataType
from tests.shards import join

COMPRESSIONS: list[Any] = [
    {"type": "raw"},
    {"type": "gzip"},
    {"type": "gzip", "useZlib": True},
    {"type": "bzip2"},
    {"type": "xz"},
    {"type": "lz4"},
    {"type": "zstd"},
    {"type": "blosc"},
    {"type": "blosc", "clevel": 0},  # the elements as they are, behind a header
]
FORMS: list[dict[str, Any]] = [
    {"location": location, "checksum": checksum, "order": order, "header": header}
    for location in ("end", "start")
    for checksum in (True, False)
    for order in "><"
    for header in (None, (3, 1, 2))
]
CHUNK = bytes.fromhex("00000003 00000001 00000002 00000001 0007 0009")
each_form = pytest.mark.parametrize("form", FORMS, ids=str)


@st.composite
def ordinary_blocks(draw: st.DrawFn) -> tuple[bytes, DataType, Any]:
    """Draw a block, with data that may look like offsets, and perhaps with bytes behind it."""
    name = draw(st.sampled_from(["uint8", "uint16", "int32", "uint64"]))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    kind = np.dtype(name)
    values = draw(
        st.lists(
            st.one_of(st.just(0), st.integers(0, 200), st.integers(0, np.iinfo(kind).max),
                      st.just(np.iinfo(kind).max)),
            min_size=1, max_size=9,
        )
    )  # fmt: skip
    array = np.resize(np.array(values, kind), shape)
    compression = draw(st.sampled_from(COMPRESSIONS))
    behind = draw(
        st.one_of(st.just(b""), st.just(b""), st.binary(max_size=40), st.just(bytes(24)),
                  st.integers(1, 40).map(lambda n: b"\xff" * n))
    )  # fmt: skip
    return encode_block(array, compression=compression) + behind, DataType(name), compression


@given(ordinary_blocks())
def test_a_block_is_no_shard(given: tuple[bytes, DataType, Any]) -> None:
    block, data_type, compression = given
    assert stored_shard(*in_memory(block), data_type, parse_compression(compression)) is None


@given(st.binary(max_size=200), st.sampled_from(["uint8", "uint64"]))
def test_other_files_are_no_shards(data: bytes, name: str) -> None:
    assert stored_shard(*in_memory(data), DataType(name), Gzip()) is None


def test_a_raw_block_of_numbers_that_look_like_an_index_is_none() -> None:
    array = np.array([1, 2, 3, 4, 0, 40], "uint64")
    block = encode_block(array, compression={"type": "raw"})
    assert is_likely(block[-LAST:], len(block))
    assert stored_shard(*in_memory(block), DataType.UINT64, Raw()) is None
    behind = block + array.astype(">u8")[-2:].tobytes()  # not where the header says that they end
    assert stored_shard(*in_memory(behind), DataType.UINT64, Raw()) is None


@each_form
@pytest.mark.parametrize("n_missing", [0, 1, 5])
@pytest.mark.parametrize("end", ["first", "last"])
def test_each_form_is_found(form: dict[str, Any], n_missing: int, end: str) -> None:
    chunks: list[bytes | None] = [CHUNK + bytes([k]) * k for k in range(6)]
    gone = range(n_missing) if end == "first" else range(6 - n_missing, 6)
    chunks = [None if k in gone else chunk for k, chunk in enumerate(chunks)]
    data = join(chunks, **form)
    found = find_shard(*in_memory(data))
    assert found is not None
    blocks = [None if at is None else data[at[0] : sum(at)] for at in found.ranges]
    assert blocks == chunks


@each_form
def test_an_index_of_missing_blocks_only(form: dict[str, Any]) -> None:
    data = join([None] * 6, **form)
    found = find_shard(*in_memory(data))
    if form["header"] and not form["checksum"]:  # like a block of elements that are all ones
        assert found is None
        return
    assert found is not None
    assert found.ranges == (None,) * 6


def test_many_missing_blocks() -> None:
    for place in (0, 4999):
        chunks = [CHUNK if k == place else None for k in range(5000)]
        for location in ("end", "start"):
            found = find_shard(*in_memory(join(chunks, location=location)))
            assert found is not None
            assert found.n == 5000


@given(st.data())
def test_a_damaged_index_is_none(data: st.DataObject) -> None:
    location = data.draw(st.sampled_from(["end", "start"]))
    shard = bytearray(join([CHUNK, None, CHUNK], location=location))
    n_index = 3 * 16 + 4
    at = data.draw(st.integers(0, n_index - 1)) + (location == "end") * (len(shard) - n_index)
    shard[at] ^= data.draw(st.integers(1, 255))
    assert find_shard(*in_memory(shard)) is None
    assert find_shard(*in_memory(shard[:-1])) is None


def test_blocks_must_fill_the_rest_of_the_file() -> None:
    index = np.array([[0, 20], [24, 20]], ">u8").tobytes()
    stored = 2 * (CHUNK + bytes(4))
    crc = google_crc32c.value(index).to_bytes(4, "little")
    assert find_shard(*in_memory(stored[:44] + index + crc)) is None


def test_a_block_to_be_replaced_costs_two_short_reads() -> None:
    block = encode_block(np.arange(5000, dtype="uint16"), compression={"type": "gzip"})
    reads: list[tuple[int, int]] = []

    def read(offset: int, n_bytes: int) -> bytes:
        reads.append((offset, n_bytes))
        return block[offset : offset + n_bytes]

    check_not_sharded(len(block), read, DataType.UINT16, Gzip())
    assert reads == [(0, 8), (len(block) - LAST, LAST)]


@pytest.mark.parametrize("size", [64, 128])
def test_ones_behind_a_header_are_no_index(size: int) -> None:
    block = struct.pack(">HHII", 0, 2, 2, 8) + b"\xff" * size
    assert stored_shard(*in_memory(block), DataType("uint32"), Raw()) is None
