"""Chunks, documents and merged changes in the cases that one translation leaves to another."""

from __future__ import annotations

import gzip
import json
import math
import struct
from typing import Any

import numpy as np
import pytest

from n5zarr.codecs.block import Block, format_block
from n5zarr.codecs.label_multiset import decode_multisets, encode_multisets
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.errors import N5BlockError, N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.attributes import DatasetAttributes, parse_attributes
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Bzip2, Gzip, Jpeg, Lz4, Raw
from n5zarr.format.data_type import DataType
from n5zarr.format.order import N5Tuple
from n5zarr.format.raw_json import RawObject
from n5zarr.zarr_view import dataset_view
from n5zarr.zarr_view.change import (
    Change,
    NewArray,
    NewAttributes,
    NewGroup,
    NewNames,
    NoArray,
    NodeContext,
    Resized,
    WrittenFormat,
)
from n5zarr.zarr_view.chunk_grid import grid_document
from n5zarr.zarr_view.chunks import (
    chunk_extent,
    chunk_part,
    chunk_slice,
    decode_chunk,
    encode_chunk,
    make_block,
    make_chunk,
    relabelled_block,
    stored_chunk,
    stored_multisets,
)
from n5zarr.zarr_view.compressors import (
    compressors_to_write,
    excess,
    is_in_zarr,
    is_portable,
    keeps_elements,
    keeps_elements_v2,
    name_and_configuration,
)
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content, Element
from n5zarr.zarr_view.from_zarr import Members, members_of_v2, members_of_v3, plain_dataset
from n5zarr.zarr_view.merge import changed, other_format
from n5zarr.zarr_view.record import Record
from tests.refusals import refused
from tests.unit.codecs.streams import numcodecs

# uint16, 3 x 2, values 1 to 6; and its part of 2 x 2 at the end of the first axis
HEADER = bytes.fromhex("0000 0002 00000003 00000002")
ELEMENTS = bytes.fromhex("0001 0002 0003 0004 0005 0006")
EDGE = bytes.fromhex("0000 0002 00000002 00000002 000a 000b 000c 000d")
DATASET: dict[str, Any] = {
    "dataType": "uint16", "compression": {"type": "raw"}, "blockSize": [3, 2], "dimensions": [5, 3],
}  # fmt: skip
END = N5Tuple((1, 0))


def dataset(**members: Any) -> DatasetAttributes:
    parsed = parse_attributes(DATASET | members)
    assert isinstance(parsed, DatasetAttributes)
    return parsed


def view(members: Any = None, **options: Any) -> DatasetView:
    defaults: dict[str, Any] = {"codecs": "zarr", "axis_order": "C"}
    return DatasetView(**defaults | {"dataset": dataset(**members or {})} | options)


RAW_GZIP = {"compression": {"type": "gzip"}}
RECTILINEAR = {"chunk_grid": "rectilinear"}
FILLED = Element(dtype=np.dtype("u2"), fill_value=9)
OBJECTS = Element(dtype=np.dtype("O"), fill_value=b"")
TEXT = Element.text()


# ---------------------------------------------------------------------- blocks to chunks


@pytest.mark.parametrize(
    ("options", "block", "position", "expected"),
    [
        ({}, HEADER + ELEMENTS, None, (12, 12)),
        ({}, HEADER + ELEMENTS + b"more", None, None),
        ({}, EDGE, END, None),
        (RECTILINEAR, EDGE, END, (12, 8)),
        (RECTILINEAR, EDGE, None, None),
        (RECTILINEAR, HEADER + ELEMENTS, END, None),
        ({"members": {"dataType": "string"}}, HEADER + ELEMENTS, None, None),
        ({"members": {"compression": {"type": "gzip"}}}, HEADER + gzip.compress(ELEMENTS), None,
         (12, len(gzip.compress(ELEMENTS)))),
    ],
)  # fmt: skip
def test_a_chunk_is_located_from_the_beginning_of_its_block(
    options: dict[str, Any], block: bytes, position: N5Tuple | None, expected: Any
) -> None:
    own = view(**options)
    found = chunk_part(memoryview(block)[:44], len(block), own, position)
    assert found == expected
    whole = chunk_slice(memoryview(block), own, position)
    if expected is not None:
        assert whole == slice(expected[0], sum(expected))
    with pytest.raises(N5BlockError):
        chunk_part(memoryview(b"\0\0"), 2, view(), position)


def test_a_shard_of_java_is_no_chunk() -> None:
    edges = EDGE + EDGE + struct.pack(">4Q", 0, 20, 20, 20)
    for own in (view(), view(codecs="n5"), view(RAW_GZIP)):
        with pytest.raises(N5BlockError, match="got a shard of Java N5 4 with 2 chunks"):
            chunk_slice(memoryview(edges), own)


@pytest.mark.parametrize(
    ("members", "options", "truncated"),
    [
        ({}, RECTILINEAR, True), ({}, {}, False), ({}, RECTILINEAR | {"zarr_format": 2}, False),
        ({"dimensions": [6, 4]}, RECTILINEAR, False), ({"dimensions": [6, 3]}, RECTILINEAR, True),
        ({"dimensions": [0, 3]}, RECTILINEAR, False), ({"dataType": "string"}, RECTILINEAR, False),
        ({"dataType": "uint8"}, RECTILINEAR | {"element": Element(dtype=np.dtype("?"))}, False),
    ],
)  # fmt: skip
def test_which_chunks_are_truncated(
    members: dict[str, Any], options: dict[str, Any], *, truncated: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    own = view(members, **options)
    assert own.truncated is truncated
    expected = own.dataset.extent_of(END) if truncated else (3, 2)
    assert chunk_extent(own, END) == expected
    assert chunk_extent(own, None) == (3, 2)
    monkeypatch.setattr(dataset_view, "LONGEST_AXIS", 1)
    assert not view(members, **options).truncated


def test_the_sizes_of_truncated_chunks_are_listed() -> None:
    regular = {"name": "regular", "configuration": {"chunk_shape": (3, 4)}}
    assert grid_document((7, 8), (3, 4), truncated=False) == regular
    found: Any = grid_document((7, 8, 2, 3), (3, 4, 3, 3), truncated=True)["configuration"]
    assert found == {
        "kind": "inline", "chunk_shapes": [[[3, 2], 1], [[4, 2]], [2], [[3, 1]]]
    }  # fmt: skip
    assert view(**RECTILINEAR).v3_document()["chunk_grid"] == {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[[2, 1], 1], [[3, 1], 2]]},
    }


def test_truncated_chunks_are_made_and_recorded_codecs_left() -> None:
    own = view(**RECTILINEAR)
    assert bytes(make_chunk(memoryview(EDGE), own, END)) == EDGE[12:]
    full = memoryview(HEADER + ELEMENTS)
    assert bytes(make_chunk(full, own, END)) == bytes.fromhex("0001 0002 0004 0005")
    record = Record(codecs=[{"name": "bytes", "configuration": {"endian": "little"}}])
    assert view(record=record).transcoded is not None
    assert view(record=record, **RECTILINEAR).transcoded is None


def test_a_block_decodes_to_any_content() -> None:
    text = format_block(
        Block(BlockHeader(mode=BlockMode.VARLENGTH, block_shape=N5Tuple((1, 2)), n_elements=0),
              ["a", "b"]), DataType.STRING, Raw(),
    )  # fmt: skip
    own = view({"dataType": "string"}, element=Element(dtype=TEXT.dtype, fill_value="-"))
    assert stored_chunk(memoryview(text), own).tolist() == [["a", "-", "-"], ["b", "-", "-"]]
    values = np.array([b"1", b"", b"22", b"", b"", b"6"], object)
    payload = bytes(numcodecs.VLenBytes().encode(values))
    block = b"\0\2" + len(payload).to_bytes(4, "big") + payload
    own = view({"dataType": "object"}, element=OBJECTS)
    assert stored_chunk(memoryview(block), own).tolist() == values.reshape(2, 3).tolist()
    assert bytes(make_chunk(memoryview(block), own)) == payload
    assert bytes(make_block(memoryview(payload), own, END)) == block
    array = values.reshape(2, 3)
    assert bytes(encode_chunk(array, own, END)) == block
    packed = view({"dataType": "object", "compression": {"type": "gzip"}}, element=OBJECTS)
    written = bytes(make_block(memoryview(gzip.compress(payload)), packed, END))
    assert gzip.decompress(written[6:]) == payload
    strings = bytes(numcodecs.VLenUTF8().encode(np.array([*"abcdef"], object)))
    own = view({"dataType": "string"}, element=TEXT)
    assert bytes(make_block(memoryview(strings), own, END))[-8:] == b"a\0b\0d\0e\0"
    scalar = view({"dimensions": [1], "blockSize": [1]}, record=Record(shape=[]))
    one = memoryview(bytes.fromhex("0000 0001 00000001 0007"))
    assert decode_chunk(one, scalar).shape == ()
    filled = stored_chunk(memoryview(EDGE), view(element=FILLED))
    assert filled.tolist() == [[10, 11, 9], [12, 13, 9]]
    assert stored_chunk(memoryview(EDGE), view(), None, N5Tuple((1, 2))).tolist() == [[10], [12]]


def test_a_small_chunk_is_compressed_like_a_new_block() -> None:
    members = {"compression": {"type": "gzip"}, "blockSize": [300, 2], "dimensions": [500, 3]}
    block = memoryview(bytes.fromhex("0000 0002 00000002 00000002") + gzip.compress(bytes(8)))
    own = view(members)
    fast, small = (bytes(make_chunk(block, own, small=small)) for small in (False, True))
    assert gzip.decompress(fast) == gzip.decompress(small) == bytes(1200)
    assert len(small) < 100
    assert len(fast) > 1200
    lz4 = view(members | {"compression": {"type": "lz4"}})
    other = memoryview(bytes.fromhex("0000 0002 00000002 00000001 00000004") + b"\x40\0\1\0\2")
    with pytest.raises(N5BlockError):
        make_chunk(other, lz4, small=True)


def test_whole_blocks_are_written_as_they_are_unless_they_reach_too_far() -> None:
    own = view(codecs="n5")
    assert make_block(memoryview(EDGE), own, END) == EDGE
    assert bytes(make_block(memoryview(HEADER + ELEMENTS), own, END)) == bytes.fromhex(
        "0000 0002 00000002 00000002 0001 0002 0004 0005"
    )
    portable = view({"compression": {"type": "gzip"}}, codecs="portable", zarr_format=2,
                    record=Record(v2={"dtype": "<u2"}))  # fmt: skip
    little = np.frombuffer(ELEMENTS, ">u2").astype("<u2").tobytes()
    block = bytes(make_block(memoryview(gzip.compress(little)), portable, N5Tuple((0, 0))))
    assert gzip.decompress(block[12:]) == ELEMENTS
    lz4 = view({"compression": {"type": "lz4"}}, codecs="portable")
    assert chunk_slice(make_block(memoryview(ELEMENTS), lz4, N5Tuple((0, 0))), lz4) is None  # type: ignore[arg-type]


LABELS = view({"dataType": "uint8", "isLabelMultiset": True})


def test_labels_keep_multisets_and_become_blocks() -> None:
    stored = LabelMultisets([[0, 1], [1, 1]], [0, 2, 3], [7, 8, 9], [1, 3, 1])
    block = encode_multisets(stored, Raw())
    found = stored_multisets(memoryview(block), LABELS, END)
    assert found.shape == (2, 2)
    assert found[0, 0] == {7: 1, 8: 3}
    assert stored_multisets(None, LABELS, END).is_background
    assert stored_multisets(None, LABELS, END).shape == (2, 2)
    chunk = np.array([[8, 9, 5], [9, 4, 5]], ">u8")
    made = relabelled_block(memoryview(chunk.tobytes()), LABELS, END, block)
    assert made is not None
    after = decode_multisets(memoryview(made), 2, Raw())
    assert [after[0, 0], after[0, 1], after[1, 1]] == [{7: 1, 8: 3}, {9: 1}, {4: 1}]
    same = np.array([[8, 9, 5], [9, 9, 5]], ">u8")
    assert relabelled_block(memoryview(same.tobytes()), LABELS, END, block) is block
    assert relabelled_block(None, LABELS, END, block) is None
    assert relabelled_block(memoryview(bytes(48)), LABELS, END, block) is None
    assert relabelled_block(None, LABELS, END, None) is None
    writes: list[Any] = [
        lambda: make_block(memoryview(chunk.tobytes()), LABELS, END),
        lambda: encode_chunk(chunk, LABELS, END),
    ]
    for write in writes:
        with pytest.raises(N5UnsupportedError, match="expected the stored block, too"):
            write()
    assert decode_chunk(memoryview(block), LABELS, END).tolist() == [[8, 9, 0], [9, 9, 0]]


# ---------------------------------------------------------------------- documents


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"members": {"dataType": "string"}}, False),
        ({"record": Record(shape=[]), "members": {"dimensions": [1], "blockSize": [1]}}, False),
        ({"element": Element(dtype=np.dtype("f2")), "members": {"dataType": "float32"}}, False),
        ({"record": Record(codecs=["bytes", "gzip"])}, True),
        ({"record": Record(codecs=["bytes", "numcodecs.delta"])}, False),
        ({"zarr_format": 2}, True),
        ({"zarr_format": 2, "record": Record(v2={"compressor": {"id": "zlib"}})}, True),
        ({"zarr_format": 2, "record": Record(v2={"compressor": {"id": "odd"}})}, False),
        ({"zarr_format": 2, "record": Record(v2={"filters": [{"id": "delta"}]})}, False),
    ],
)
def test_whether_blocks_hold_the_elements_as_they_are(
    options: dict[str, Any], *, expected: bool
) -> None:
    assert view(**options).holds_elements is expected


def test_what_only_converts_elements_to_bytes() -> None:
    assert keeps_elements(["transpose", "numcodecs.zlib", "crc32c"])
    assert not keeps_elements(["bytes", {"name": "sharding_indexed"}])
    for compressor, filters, expected in (
        (None, None, True), ({"id": "lz4"}, None, True), ({"id": "odd"}, None, False),
        ("lz4", None, False), (None, [{"id": "delta"}], False),
    ):  # fmt: skip
        encoding: Any = {"compressor": compressor, "filters": filters}
        assert keeps_elements_v2(encoding) is expected
    assert name_and_configuration({"name": "a", "configuration": 3}) == ("a", {})
    assert name_and_configuration("a") == ("a", {})
    assert [is_in_zarr(c) for c in (Raw(), Gzip(), Lz4(), Jpeg())] == [True, True, True, False]
    assert [is_portable(c) for c in (Raw(), Gzip(), Bzip2())] == [True, True, False]
    assert compressors_to_write(Gzip(level=5), 3) == [
        {"name": "gzip", "configuration": {"level": 5}}
    ]
    assert compressors_to_write(Gzip(level=5), 2) == {"id": "gzip", "level": 5}
    assert (compressors_to_write(Raw(), 3), compressors_to_write(Raw(), 2)) == ([], None)
    with pytest.raises(N5UnsupportedError, match="expected one that Zarr has, got jpeg"):
        compressors_to_write(Jpeg(), 3)


def shard(*inner: int, of: int = 2**15, **more: Any) -> dict[str, Any]:
    configuration = {"chunk_shape": [*inner], **more}
    return {
        "chunk_grid": {"configuration": {"chunk_shape": [of]}},
        "codecs": [{"name": "sharding_indexed", "configuration": configuration}],
    }  # fmt: skip


ASTYPE = {"decode_dtype": "u1", "encode_dtype": "f8"}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"codecs": ["bytes"] * 64}, None),
        ({"codecs": ["bytes"] * 65}, "expected at most 64, got 65"),
        ({"zarr_format": 2, "filters": [{"id": "delta"}] * 64, "compressor": None}, None),
        ({"zarr_format": 2, "filters": [{"id": "delta"}] * 64, "compressor": {"id": "gzip"}}, "65"),
        ({"zarr_format": 2, "filters": None, "compressor": {"id": "gzip"}}, None),
        (shard(1, of=2**14), None),
        (shard(1), "16384 chunks, or chunks of 4096 elements and more, got 32768 chunks of 1"),
        (shard(2**12, of=2**40), None),
        (shard(2**12 - 1, of=2**40), "chunks of 4095"),
        (shard(0), "got 32768 chunks of 0"),
        (shard(4, codecs=["bytes"] * 32, index_codecs=["bytes"] * 32), "got 65"),
        (shard(4, codecs=["bytes"] * 32, index_codecs=["bytes"] * 31), None),
        ({"codecs": [{"name": "numcodecs.astype", "configuration": ASTYPE}]}, None),
        ({"codecs": [{"name": "numcodecs.astype", "configuration": ASTYPE}] * 2}, "at most 16"),
        ({"codecs": [{"name": "numcodecs.fixedscaleoffset",
                      "configuration": {"dtype": "u1", "astype": "f8"}}] * 2}, "at most 16"),
        ({"codecs": [{"name": "x", "configuration": {"dtype": "f8", "astype": "u1"}}] * 2}, None),
        ({"codecs": ["numcodecs.msgpack2"] * 2}, "at most 16"),
        *(({"codecs": [name, {"name": "x", "configuration": {"dtype": "u1", "astype": "u2"}}]},
           None) for name in ("json2", "msgpack2", "vlen-array")),
        *(({"codecs": [name, {"name": "x", "configuration": {"dtype": "u1", "astype": "u4"}}]},
           "at most 16") for name in ("json2", "msgpack2", "vlen-array")),
        ({"codecs": ["base64"] * 9}, None),
        ({"codecs": ["base64"] * 10}, "at most 16"),
        ({"codecs": 3}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_the_cost_of_codecs_is_limited(document: dict[str, Any], found: str | None) -> None:
    problem = excess(document)
    assert problem is None if found is None else problem is not None
    assert found is None or found in str(problem)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0),
        ({"members": {"dataType": "float32"}}, 0.0),
        ({"members": {"dataType": "string"}}, ""),
        ({"record": Record(fill_value=7), "element": FILLED}, 7),
    ],
)
def test_the_fill_value_of_v3(options: dict[str, Any], expected: Any) -> None:
    assert repr(view(**options).v3_document()["fill_value"]) == repr(expected)


def test_a_given_document_has_its_codecs_and_the_present_shape() -> None:
    given = {"zarr_format": 3, "codecs": ["bytes"], "shape": [9], "fill_value": 3, "odd": 1}
    own = view({"axes": ["x", "y"]}, given=given)
    document = own.v3_document()
    assert (document["shape"], document["codecs"]) == ((3, 5), ["bytes"])
    assert (document["fill_value"], document["odd"]) == (3, 1)
    assert document["dimension_names"] == ("y", "x")
    extra = view(record=Record(extra={"odd": 2, "shape": [7]})).v3_document()
    assert (extra["odd"], extra["shape"]) == (2, (3, 5))
    v2 = {"dtype": "<u2", "compressor": {"id": "zlib"}, "filters": None, "order": "F"}
    old = view(given=v2, zarr_format=2)
    assert old.v2_encoding == {key: v2[key] for key in ("compressor", "filters", "order")}
    assert (old.v2_dtype, old.v2_document()["dtype"]) == ("<u2", "<u2")
    assert old.transcoded is not None
    assert json.loads(old.transcoded)["shape"] == [2, 3]
    assert "attributes" not in json.loads(old.transcoded)
    assert json.loads(view({"u": 1}).v3_text)["attributes"] == {}


@pytest.mark.parametrize(
    ("v2", "v2_fill", "element", "expected"),
    [
        (None, None, None, None), ({"fill_value": 0}, None, None, 0),
        ({"fill_value": 0}, 7, FILLED, 7), ({"fill_value": 0}, None, FILLED, None),
    ],
)  # fmt: skip
def test_the_fill_value_of_a_zarray(v2: Any, v2_fill: Any, element: Any, expected: Any) -> None:
    own = view(record=Record(v2=v2), v2_fill=v2_fill, element=element, zarr_format=2)
    assert own.v2_document()["fill_value"] == expected


@pytest.mark.parametrize(
    ("options", "is_transcoded", "dtype"),
    [
        ({}, False, ">u2"),
        ({"record": Record(v2={"dtype": "<u2"})}, False, "<u2"),
        ({"record": Record(v2={"dtype": "<i2"})}, False, ">u2"),
        ({"record": Record(v2={"order": "F"})}, True, ">u2"),
        ({"record": Record(v2={"filters": [{"id": "delta"}]})}, True, ">u2"),
        ({"record": Record(v2={"order": "F"}), "axis_order": "F"}, False, ">u2"),
        ({"members": {"dataType": "float32"}, "element": Element(dtype=np.dtype("f2"))}, True,
         ">f2"),
        ({"members": {"dataType": "string", "compression": {"type": "lz4"}}, "element": TEXT},
         True, "|O"),
        ({"members": {"dataType": "string", "compression": {"type": "gzip"}}, "element": TEXT},
         False, "|O"),
    ],
)  # fmt: skip
def test_when_chunks_of_v2_are_made_by_zarrs_codecs(
    options: dict[str, Any], dtype: str, *, is_transcoded: bool
) -> None:
    own = view(zarr_format=2, **options)
    assert (own.transcoded is not None) is is_transcoded
    assert own.v2_dtype == dtype
    assert dtype == "|O" or own.chunk_dtype.str[0] == dtype[0]


def test_the_compression_of_chunks_may_differ_from_that_of_blocks() -> None:
    lz4, jpeg = (
        {"compression": {"type": "lz4"}},
        {"compression": {"type": "jpeg"}, "dataType": "uint8"},
    )
    zipped = {"compression": {"type": "gzip"}}
    for own, expected in (
        (view(lz4), Lz4()),
        (view(lz4, codecs="portable"), Raw()),
        (view(jpeg), Raw()),
        (view(zipped | {"dataType": "string"}), Raw()),  # strings that Java wrote
        (view(zipped | {"dataType": "string"}, element=TEXT), Gzip()),
        (view(zipped | {"dataType": "uint8", "isLabelMultiset": True}), Raw()),
        (view({"compression": {"type": "gzip", "level": -1}}), Gzip(level=6)),
    ):
        assert own.compression == expected
    small = {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}
    found: Any = view({"compression": small, "dataType": "uint8"}).derived_codecs()[1]
    assert found["configuration"]["shuffle"] == "bitshuffle"
    assert found["configuration"]["typesize"] == 1


def test_the_codec_of_whole_blocks_in_v2_and_where_it_is_not_used() -> None:
    assert view(codecs="n5", zarr_format=2).derived_v2()["compressor"] == {
        "id": "n5zarr_block", "dtype": ">u2", "block_shape": (2, 3), "compression": {"type": "raw"}
    }  # fmt: skip
    assert view(codecs="n5", zarr_format=2, element=FILLED).derived_v2()["compressor"] is None
    assert view(codecs="n5", element=FILLED).whole_blocks
    scalar = {"members": {"dimensions": [1], "blockSize": [1]}, "record": Record(shape=[])}
    for options in (scalar, {"members": {"dataType": "string"}}, {"members": {"dataType": "uint8"},
                    "element": Element(dtype=np.dtype("?"))}):  # fmt: skip
        assert not view(codecs="n5", **options).whole_blocks
    parts = view(
        {"dataType": "float32"}, element=Element(dtype=np.dtype("c8")), record=Record(shape=[])
    )
    assert parts.is_scalar
    assert not view(record=Record(shape=[]), members={"dimensions": [1, 1]}).is_scalar
    assert parts.with_other_axes((), (2, 7)) == (2, 7)
    assert view().with_other_axes("ab", "xy") == ("b", "a")
    named = view({"axes": ["x", ""]})
    assert named.dimension_names == (None, "x")
    assert view({"u": [1]}).attributes == {"u": [1]}
    own = view({"u": [1]})
    own.attributes["u"].append(2)  # type: ignore[union-attr]
    assert own.attributes == {"u": [1]}


# ---------------------------------------------------------------------- documents to records


def test_a_rank_or_extent_that_n5_lacks_is_refused() -> None:
    element = Element(dtype=np.dtype("u1"))

    def made(shape: list[int], chunks: list[int], own: Element = element) -> Any:
        return plain_dataset(shape, chunks, own, Raw(), "C")[0]

    assert made([2**63 - 1], [2**31 - 1]).grid == (2**32 + 3,)
    assert made([3, 5], [2, 3]).dimensions == (5, 3)
    assert made([], []).dimensions == (1,)
    for shape, chunks, own, found in (
        ([2**63], [1], element, "too large"), ([3], [2**31], element, ""),
        ([3], [2**30], FILLED, "at most 2147483647"),
        ([2**31, 7], [2**15, 2**15], FILLED, "at most 2147483647"),
        ([1] * 2**16, [1] * 2**16, FILLED, "at most 65535 dimensions"),
    ):  # fmt: skip
        with refused(N5UnrepresentableError, "member", found or None):
            made(shape, chunks, own)


V2: dict[str, Any] = {
    "zarr_format": 2, "shape": [3, 5], "chunks": [2, 3], "dtype": ">u2", "compressor": None,
    "filters": None, "order": "C", "fill_value": 0,
}  # fmt: skip
PLAIN = Element(dtype=np.dtype("u2"))


@pytest.mark.parametrize(
    ("members", "element", "keeps_zero", "record"),
    [
        ({}, PLAIN, False, {}),
        ({}, PLAIN, True, {"v2": {"fill_value": 0}}),
        ({"fill_value": None}, PLAIN, True, {}),
        ({"fill_value": 9}, FILLED, True, {"fill_value": 9}),
        ({"dtype": "<u2"}, PLAIN, False, {"v2": {"dtype": "<u2"}}),
        ({"filters": []}, PLAIN, False, {}),
        ({"compressor": {"id": "n5zarr_block", "compression": {"type": "xz"}}}, PLAIN, False, {}),
        ({"filters": [{"id": "delta", "dtype": ">u2"}], "compressor": {"id": "gzip", "level": 5}},
         PLAIN, False,
         {"v2": {"compressor": {"id": "gzip", "level": 5},
                 "filters": [{"id": "delta", "dtype": ">u2"}], "order": "C"}}),
        ({"order": "F"}, PLAIN, False,
         {"v2": {"compressor": None, "filters": None, "order": "F"}}),
    ],
)  # fmt: skip
def test_what_is_recorded_of_a_zarray(
    members: Any, element: Element, record: Any, *, keeps_zero: bool
) -> None:
    v3 = ("uint16", element.fill_value)
    made = members_of_v2(V2 | members, element, v3, "C", keeps_zero=keeps_zero)  # type: ignore[arg-type]
    assert made.record.to_json() == record
    assert made.to_json()["dimensions"] == [5, 3]
    with pytest.raises(N5UnrepresentableError, match="at most 64"):
        members_of_v2(V2 | {"filters": [{"id": "delta"}] * 65}, PLAIN, ("uint16", 0), "C")


@pytest.mark.parametrize(
    ("codecs", "axis_order", "recorded"),
    [
        ([{"name": "bytes", "configuration": {"endian": "little"}}], "C", False),
        ([{"name": "bytes", "configuration": {"endian": "little"}}], "F", False),
        ([{"name": "transpose", "configuration": {"order": [1, 0]}}, "bytes"], "F", True),
        ([{"name": "transpose", "configuration": {"order": [1, 0]}},
          {"name": "bytes", "configuration": {"endian": "big"}}], "F", False),
        ([{"name": "transpose", "configuration": {"order": [1, 0]}},
          {"name": "bytes", "configuration": {"endian": "big"}}], "C", True),
        ([{"name": "transpose", "configuration": {"order": [0, 1]}},
          {"name": "bytes", "configuration": {"endian": "big"}}], "F", True),
        ([{"name": "n5zarr.block", "configuration": {"compression": {"type": "raw"}}}], "C", False),
    ],
)  # fmt: skip
def test_which_codecs_follow_from_n5s_keys(codecs: Any, axis_order: Any, *, recorded: bool) -> None:
    grid = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
    document = {"shape": [3, 5], "data_type": "uint16", "chunk_grid": grid, "fill_value": 0}
    made = members_of_v3(document | {"codecs": codecs}, PLAIN, axis_order)
    assert (made.record.codecs is not None) is recorded
    assert made.record.axis_order == (axis_order if recorded else "C")


# ---------------------------------------------------------------------- merging


def merged(before: Any, change: Change, told: list[str] | None = None) -> Any:
    data = before if isinstance(before, bytes) or before is None else json.dumps(before).encode()
    return json.loads(changed(data, change, told))


def members(**options: Any) -> Members:
    defaults: dict[str, Any] = {
        "dimensions": N5Tuple((5, 3)), "block_size": N5Tuple((3, 2)), "element": PLAIN,
        "compression": Raw(), "record": Record(),
    }  # fmt: skip
    return Members(**defaults | options)


NAN = {"zarr": {"nonfinite": {"/u": "NaN", "/w/0": "NaN"}, "nulls": ["/n"]}, "u": None, "w": [None],
       "n": None}  # fmt: skip


def written(zarr_format: Any, **options: Any) -> WrittenFormat:
    return WrittenFormat(zarr_format=zarr_format, **options)


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        # names that are hidden in a group are no attributes of a dataset
        ({"dimensions": 3, "n5": 1}, Change(kind=NewArray(members())),
         DATASET | {"zarr": {"attributes": {"dimensions": 3, "n5": 1}}}),
        ({"axes": ["x"]}, Change(kind=NewArray(members())),
         DATASET | {"zarr": {"attributes": {"axes": ["x"]}}}),
        ({"axes": ["x", "y"]}, Change(kind=NewArray(members())), DATASET | {"axes": ["x", "y"]}),
        (DATASET | {"compressionType": "gzip"}, Change(kind=NewArray(members())), DATASET),
        # what the elements need is recorded, and what is not about them stays
        (DATASET | {"zarr": {"fill_value": 3, "attributes": {"n5": 1}}},
         Change(kind=NewArray(members(record=Record(data_type="bool")))),
         DATASET | {"zarr": {"data_type": "bool", "attributes": {"n5": 1}}}),
        (DATASET | {"u": 1, "zarr": {"fill_value": 3, "zarr_format": 2}}, Change(kind=NoArray()),
         {"u": 1}),
        ({"u": 1, "zarr": {"zarr_format": 2}}, Change(kind=NoArray()),
         {"u": 1, "zarr": {"zarr_format": 2}}),
        # values without JSON keep their record unless they are changed
        (NAN, Change(attributes=NewAttributes({"u": math.nan, "w": 1, "n": None},
                                              {"u": math.nan, "w": [math.nan], "n": None})),
         {"u": None, "w": 1, "n": None,
          "zarr": {"nonfinite": {"/u": "NaN"}, "nulls": ["/n"]}}),
        (NAN, Change(attributes=NewAttributes({}, {"u": 1, "n": None, "w": 1})), {}),
        (b'{"a~b":NaN,"c/d":[1,Infinity]}', Change(attributes=NewAttributes({"x": 1}, {})),
         {"a~b": None, "c/d": [1, None], "x": 1,
          "zarr": {"nonfinite": {"/a~0b": "NaN", "/c~1d/1": "Infinity"}}}),
        ({"a~b": None, "zarr": {"nonfinite": {"/a~0b": "NaN"}}},
         Change(attributes=NewAttributes({"a~b": 1}, {"a~b": math.nan})), {"a~b": 1}),
        # users' attributes that a dataset cannot have
        (DATASET, Change(attributes=NewAttributes({"n5": 1, "blockSize": 2}, {})),
         DATASET | {"zarr": {"attributes": {"n5": 1, "blockSize": 2}}}),
        (DATASET | {"zarr": {"attributes": {"n5": 1}}},
         Change(attributes=NewAttributes({}, {"n5": 1})), DATASET),
        (DATASET | {"zarr": {"attributes": {"n5": 1}}},
         Change(attributes=NewAttributes({"n5": 2}, {"n5": 1})),
         DATASET | {"zarr": {"attributes": {"n5": 2}}}),
        (DATASET | {"units": ["nm", "um"]}, Change(attributes=NewAttributes({"units": 3}, {})),
         DATASET | {"zarr": {"attributes": {"units": 3}}}),
        (DATASET | {"zarr": {"attributes": {"units": 3}}},
         Change(attributes=NewAttributes({"units": ["nm", "um"]}, {"units": 3})),
         DATASET | {"units": ["nm", "um"]}),
        (DATASET, Change(attributes=NewAttributes({"resolution": [1, 2]}, {})),
         DATASET | {"resolution": [1, 2]}),
        (DATASET, Change(attributes=NewAttributes({"resolution": [1]}, {})),
         DATASET | {"resolution": [1]}),
        (DATASET, Change(attributes=NewAttributes({"resolution": []}, {})),
         DATASET | {"zarr": {"attributes": {"resolution": []}}}),
        (DATASET, Change(attributes=NewAttributes({"resolution": [1, "2"]}, {})),
         DATASET | {"zarr": {"attributes": {"resolution": [1, "2"]}}}),
        (DATASET, Change(attributes=NewAttributes({"zarr": 1}, {})),
         DATASET | {"zarr": {"attributes": {"zarr": 1}}}),
        ({}, Change(attributes=NewAttributes({"n5": "4.0.0"}, {})),
         {"zarr": {"attributes": {"n5": "4.0.0"}}}),
        (DATASET, Change(attributes=NewAttributes({"axes": ["x"]}, {})),
         DATASET | {"zarr": {"attributes": {"axes": ["x"]}}}),
        (DATASET, Change(attributes=NewAttributes({"axes": "xy"}, {})), DATASET | {"axes": "xy"}),
        (DATASET, Change(attributes=NewAttributes({"axes": ["x", "x"]}, {})),
         DATASET | {"zarr": {"attributes": {"axes": ["x", "x"]}}}),
        (DATASET, Change(attributes=NewAttributes({"axes": ["", ""]}, {})),
         DATASET | {"axes": ["", ""]}),
        ({"dimensions": [1], "dataType": 2},
         Change(attributes=NewAttributes({"compression": 3}, {})),
         {"dimensions": [1], "dataType": 2, "zarr": {"attributes": {"compression": 3}}}),
        ({"u": 1},
         Change(node=NodeContext(is_root=True), attributes=NewAttributes({"n5": "x"}, {})),
         {"u": 1, "zarr": {"attributes": {"n5": "x"}}}),
        ({"n5": "4.0.0", "u": 1},
         Change(node=NodeContext(is_root=True), attributes=NewAttributes({}, {"u": 1, "n5": "x"})),
         {"n5": "4.0.0"}),
        # xarray's names take the place of others in v2
        (DATASET | {"zarr": {"dimension_names": ["a", None]}},
         Change(written=written(2, is_fixed=True),
                attributes=NewAttributes({"_ARRAY_DIMENSIONS": ["y", "x"]}, {})),
         DATASET | {"_ARRAY_DIMENSIONS": ["y", "x"]}),
        (DATASET | {"_ARRAY_DIMENSIONS": ["y", "x"], "axes": ["a", "b"]},
         Change(written=written(2, is_fixed=True),
                attributes=NewAttributes({}, {"_ARRAY_DIMENSIONS": ["y", "x"]})),
         DATASET | {"axes": ["a", "b"], "zarr": {"dimension_names": []}}),
        # formats
        (None, Change(kind=NewGroup(), written=written(2)), {"zarr": {"zarr_format": 2}}),
        (None, Change(kind=NewGroup(), written=written(3, above=2)), {"zarr": {"zarr_format": 3}}),
        (None, Change(kind=NewGroup(), written=written(3)), {}),
        (None, Change(kind=NewGroup(), written=written(2, is_fixed=True)), {}),
        (None, Change(kind=NewGroup(), written=written(2, is_there=True, names_format=False)), {}),
        (None, Change(kind=NewGroup(), written=written(2, names_format=False)),
         {"zarr": {"zarr_format": 2}}),
        ({"zarr": {"zarr_format": 2}},
         Change(kind=NewGroup(), written=written(3, is_fixed=True)), {"zarr": {"zarr_format": 3}}),
        ({"zarr": {"zarr_format": 2}},
         Change(kind=NewGroup(), written=written(3, is_fixed=True, is_known=True)),
         {"zarr": {"zarr_format": 2}}),
        ({"zarr": {"zarr_format": 3}},
         Change(kind=NewGroup(), written=written(2, is_fixed=True)), {"zarr": {"zarr_format": 2}}),
        # of a node that Zarr does not know, the content is kept
        ({"u": 1}, Change(kind=NewGroup(), attributes=NewAttributes({"w": 2}), written=written(2)),
         {"u": 1, "w": 2, "zarr": {"zarr_format": 2}}),
        ({"u": 1}, Change(kind=NewGroup(), attributes=NewAttributes({"w": 2}),
                          written=written(2, is_known=True)),
         {"w": 2, "zarr": {"zarr_format": 2}}),
        ({"zarr": {"consolidated": True, "extra": {"m": 1}}}, Change(),
         {"zarr": {"consolidated": True, "extra": {"m": 1}}}),
    ],
)  # fmt: skip
def test_a_change_is_merged(before: Any, change: Change, expected: Any) -> None:
    assert merged(before, change) == expected


@pytest.mark.parametrize(
    ("before", "names", "given", "rank", "expected"),
    [
        ({}, ["a", "b"], {}, 2, {"axes": ["a", "b"]}),
        ({}, ["a", "b"], {}, 3, {"zarr": {"dimension_names": ["a", "b"]}}),
        ({}, None, {}, 2, {}),
        ({"axes": ["a", "b"]}, ["a", "b"], {}, 2, {"axes": ["a", "b"]}),
        ({"axes": ["a", "b"]}, ["c", None], {}, 2, {"zarr": {"dimension_names": ["c", None]}}),
        ({"axes": ["a", "b"]}, None, {}, 2, {}),
        # a user's attribute stays one
        ({"axes": ["a", "b"]}, ["a", "b"], {"axes": ["a", "b"]}, 2,
         {"axes": ["a", "b"], "zarr": {"dimension_names": ["a", "b"]}}),
        ({"axes": ["a", "b"]}, None, {"axes": ["a", "b"]}, 2,
         {"axes": ["a", "b"], "zarr": {"dimension_names": []}}),
        ({"axes": ["a", "b"]}, ["c", "d"], {"axes": 1}, 2,
         {"axes": ["a", "b"], "zarr": {"dimension_names": ["c", "d"]}}),
        # xarray's names, in C order
        ({"_ARRAY_DIMENSIONS": ["b", "a"]}, ["a", "b"], {}, 2, {"_ARRAY_DIMENSIONS": ["b", "a"]}),
        ({"_ARRAY_DIMENSIONS": ["b", "a"]}, ["c", "d"], {}, 2, {"_ARRAY_DIMENSIONS": ["d", "c"]}),
        ({"_ARRAY_DIMENSIONS": ["b", "a"]}, ["c", None], {}, 2,
         {"zarr": {"dimension_names": ["c", None]}}),
        ({"_ARRAY_DIMENSIONS": ["b", "a"]}, None, {}, 2, {}),
        ({"_ARRAY_DIMENSIONS": ["b", "a"], "axes": ["e", "f"]}, None, {}, 2, {}),
        ({"_ARRAY_DIMENSIONS": ["b", "a"]}, ["c", "d"], {"_ARRAY_DIMENSIONS": ["b", "a"]}, 2,
         {"_ARRAY_DIMENSIONS": ["b", "a"], "zarr": {"dimension_names": ["c", "d"]}}),
        ({"zarr": {"dimension_names": ["a", None]}}, ["a", "b"], {}, 2, {"axes": ["a", "b"]}),
        ({}, ["a", None], {}, 2, {"zarr": {"dimension_names": ["a", None]}}),
        ({}, ["a", "a"], {}, 2, {"zarr": {"dimension_names": ["a", "a"]}}),
    ],
)  # fmt: skip
def test_names_of_dimensions_are_merged(
    before: Any, names: Any, given: Any, rank: int, expected: Any
) -> None:
    change = Change(
        names=NewNames(names=names, ndim=2, rank=rank), attributes=NewAttributes(given, given)
    )
    assert merged(DATASET | before, change) == DATASET | expected


@pytest.mark.parametrize(
    ("before", "change", "found", "kind"),
    [
        (DATASET, Change(extra={"m": 1}), "expected a group or nothing", "changed"),
        (DATASET, Change(kind=NewGroup()), "expected a group or nothing", "changed"),
        (DATASET | {"blockSize": [4, 2]}, Change(kind=Resized(members())),
         r"got a dataset of uint16 in blocks \(4, 2\)", "changed"),
        (b'{"a":', Change(attributes=NewAttributes({})), "not JSON", "json"),
        (DATASET, Change(kind=NewArray(members()), written=written(2)), "got an array of Zarr v3",
         "changed"),
        ({}, Change(kind=NewArray(members()), written=written(2)), "got a group of Zarr v3",
         "changed"),
        ({}, Change(kind=NewArray(members()), written=written(3, above=2)), "a group of Zarr v2",
         "changed"),
        (DATASET | {"dataType": "uint8", "isLabelMultiset": True},
         Change(kind=Resized(members())), "got label multisets", "data-type"),
        ({}, Change(kind=Resized(members())), r"dataset of uint16 in blocks \(3, 2\) .*a group",
         "changed"),
        (DATASET | {"dataType": "uint8"}, Change(kind=Resized(members())),
         r"got a dataset of uint8 in blocks \(3, 2\)", "changed"),
    ],
)  # fmt: skip
def test_a_change_that_does_not_fit_is_refused(
    before: Any, change: Change, found: str, kind: str
) -> None:
    with refused(N5Error, kind, found):
        merged(before, change)


def test_what_is_told_and_what_a_resize_keeps() -> None:
    told: list[str] = []
    merged(DATASET, Change(attributes=NewAttributes({"resolution": [1], "units": ["a"]}, {})), told)
    assert len(told) == 2
    assert all(text.startswith("tensorstore refuses this dataset") for text in told)
    merged(DATASET, Change(attributes=NewAttributes({"resolution": [1, 2], "axes": 1}, {})), told)
    assert len(told) == 2
    # the axis of the parts of complex numbers is not the users'
    complex_ = DATASET | {"zarr": {"data_type": "complex64"}}
    made = merged(complex_, Change(attributes=NewAttributes({"resolution": [1]}, {})), told)
    assert made["zarr"]["attributes"] == {"resolution": [1]}
    half = DATASET | {"dataType": "float16"}
    resized = members(element=Element(dtype=np.dtype("f2")), dimensions=N5Tuple((7, 3)))
    assert merged(half, Change(kind=Resized(resized)))["dimensions"] == [7, 3]
    assert "v2" in str(other_format("x", 3))
    assert "v3" in str(other_format("x", 2))


@pytest.mark.parametrize(
    ("key", "value", "document", "is_root", "expected"),
    [
        ("dimensions", 1, DATASET, False, True), ("n5", "4.0.0", DATASET, False, True),
        ("u", 1, DATASET, False, False), ("n5", "4.0.0", {}, False, True),
        ("n5", "mine", {}, False, False), ("n5", "mine", {}, True, True),
        ("n5", "4.0.0", {}, True, False), ("zarr", 1, {}, False, True),
        ("dimensions", 1, {}, False, False),
        ("compression", 1, {"dimensions": [1], "dataType": 2}, False, True),
    ],
)  # fmt: skip
def test_reserved_names(
    key: str, value: Any, document: Any, *, is_root: bool, expected: bool
) -> None:
    raw = RawObject.parse(json.dumps(document).encode())
    assert NodeContext(is_root=is_root).is_reserved(raw, key, value) is expected


def test_a_group_by_its_listing_is_one() -> None:
    suspect = DATASET | {"downsamplingFactors": [[1, 1]], "n5": "4.0.0", "zarr": {}}
    raw = RawObject.parse(json.dumps(suspect).encode())
    assert NodeContext().is_of_array(raw)
    node = NodeContext(is_group=True)
    assert not node.is_of_array(raw)
    assert node.users_members(raw) == DATASET | {"downsamplingFactors": [[1, 1]]}
    assert NodeContext().users_members(raw) == {"downsamplingFactors": [[1, 1]]}
    since = Change(attributes=NewAttributes({"u": 1})).since({"w": 1})
    assert since.attributes == NewAttributes({"u": 1}, {"w": 1})
    assert Change().since({"w": 1}) == Change()


@pytest.mark.parametrize(
    ("options", "record", "expected"),
    [
        ({"zarr_format": None}, Record(zarr_format=2), False),
        ({"zarr_format": 3}, Record(), False),
        ({"zarr_format": 2}, Record(), True),
        ({"zarr_format": 2}, Record(zarr_format=2), False),
        ({"zarr_format": 3, "above": 2}, Record(), True),
        ({"zarr_format": 2, "is_fixed": True}, Record(), False),
        ({"zarr_format": 2, "is_known": True}, Record(), False),
    ],
)
def test_a_node_of_the_other_format_is_hidden(
    options: Any, record: Record, *, expected: bool
) -> None:
    assert WrittenFormat(**options).hides(record) is expected


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("f2", [1.5, -0.0, 65504, math.inf]), ("M8[s]", [7, -1]), ("V3", [b"abc", b"d"])],
)
def test_contents_and_elements(dtype: str, values: list[Any]) -> None:
    own = Element(dtype=np.dtype(dtype))
    array = np.array(values, dtype)
    np.testing.assert_array_equal(own.from_stored(own.to_stored(array)), array)
    assert own.has_byte_order is (dtype != "V3")
    assert TEXT.has_byte_order is False
    assert TEXT.v2_dtype == "|O"
    assert TEXT.fill_is_zero
    assert (Element(dtype=TEXT.dtype, fill_value="a").stored_fill, OBJECTS.stored_fill) == (
        "a", b"",
    )  # fmt: skip
    kinds = {"string": Content.STRINGS, "object": Content.OBJECTS, "uint8": Content.NUMBERS}
    for name, content in kinds.items():
        assert Content.of(dataset(dataType=name)) is content
    assert not own.matches_v2_dtype([["a"]])
    assert not TEXT.matches_v2_dtype("<u2")
