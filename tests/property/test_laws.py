"""Laws hold for inverses and the grid, and any bytes give a value or an N5Error."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import n5zarr
from n5zarr import N5Error
from n5zarr.codecs.block import pad_or_truncate
from n5zarr.codecs.label_multiset import arg_max_labels
from n5zarr.codecs.strings import join_strings, split_strings
from n5zarr.format.attributes import DatasetAttributes, GroupAttributes, parse_attributes
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.grid import block_extent, block_path, grid_shape, parse_block_path
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.order import AxisOrder, CTuple, N5Tuple, to_c, to_n5
from n5zarr.zarr_view.keys import DEFAULT_NAMES, ChunkKey, ZarrFormat, parse_key
from tests.fuzz import mutate

COMPRESSIONS: list[dict[str, JSON]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 1},
    {"type": "gzip", "useZlib": True},
    {"type": "bzip2"},
    {"type": "xz", "preset": 0},
    {"type": "lz4", "blockSize": 64},
    {"type": "blosc", "cname": "lz4", "shuffle": 1},
    {"type": "blosc", "cname": "zstd", "clevel": 0, "shuffle": 2},
    {"type": "zstd"},
]
DTYPES = [f"{kind}{bits}" for kind in ("uint", "int") for bits in (8, 16, 32, 64)]
DTYPES += ["float32", "float64"]

sizes = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)
compressions = st.sampled_from(COMPRESSIONS)
dtypes = st.sampled_from(DTYPES).map(np.dtype)
axis_orders: st.SearchStrategy[AxisOrder] = st.sampled_from(("C", "F"))
zarr_formats: st.SearchStrategy[ZarrFormat] = st.sampled_from((2, 3))
grid_positions = st.lists(st.integers(0, 2**62), min_size=1, max_size=5).map(tuple)
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1, max_size=8
).filter(lambda name: name not in (".", ".."))
paths = st.lists(names, max_size=3).map("/".join)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@st.composite
def grids(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw dimensions and block size of one rank."""
    block_size = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    dimensions = draw(
        st.lists(st.integers(0, 11), min_size=len(block_size), max_size=len(block_size))
    )
    return tuple(dimensions), tuple(block_size)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Draw an array that a block can hold."""
    return draw(hnp.arrays(draw(dtypes), draw(sizes)))


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """Draw bytes that were flipped, cut, inserted or removed, mostly near the start."""
    return st.builds(mutate.damaged, st.randoms(), st.just(data), st.just([data]))


# Grid and order


@given(grids())
def test_the_tiles_of_a_grid_cover_the_array_once(grid: tuple[N5Tuple, N5Tuple]) -> None:
    dimensions, block_size = grid
    covered = np.zeros(dimensions, int)
    for position in itertools.product(*map(range, grid_shape(dimensions, block_size))):
        extent = block_extent(dimensions, block_size, N5Tuple(position))
        starts = [p * b for p, b in zip(position, block_size, strict=True)]
        assert all(1 <= e <= b for e, b in zip(extent, block_size, strict=True))
        assert all(s + e <= d for s, e, d in zip(starts, extent, dimensions, strict=True))
        covered[tuple(slice(s, s + e) for s, e in zip(starts, extent, strict=True))] += 1
    assert (covered == 1).all()


@given(grids())
def test_a_cell_outside_of_the_grid_is_empty(grid: tuple[N5Tuple, N5Tuple]) -> None:
    dimensions, block_size = grid
    assert 0 in block_extent(dimensions, block_size, grid_shape(dimensions, block_size))


@given(st.lists(st.integers()))
def test_reversing_twice_gives_the_order_back(values: list[int]) -> None:
    assert to_c(to_n5(values)) == to_n5(to_c(values)) == tuple(values)
    assert list(to_c(values)) == list(reversed(values))


@given(grid_positions)
def test_block_paths_are_read_back(position: N5Tuple) -> None:
    path = block_path(position)
    assert parse_block_path(path, N5Tuple(tuple(p + 1 for p in position))) == position
    assert parse_block_path(path, position) is None


# Keys


@given(paths, grid_positions, zarr_formats)
def test_chunk_keys_and_chunks_correspond(
    path: str, coords: tuple[int, ...], zarr_format: ZarrFormat
) -> None:
    parsed = parse_key(DEFAULT_NAMES[zarr_format].key(path, coords), zarr_format)
    assert isinstance(parsed, ChunkKey)
    assert parsed.path == path
    assert parsed.coords == coords


@given(st.text(max_size=30), zarr_formats)
def test_any_key_is_read_or_refused(key: str, zarr_format: ZarrFormat) -> None:
    try:
        parsed = parse_key(key, zarr_format)
    except N5Error as err:
        assert err.kind == "path"  # noqa: PT017
    else:
        if isinstance(parsed, ChunkKey):
            assert DEFAULT_NAMES[zarr_format].key(parsed.path, parsed.coords) == key


# Headers and blocks


@given(
    st.sampled_from(BlockMode),
    st.lists(st.integers(0, 2**32 - 1), max_size=70).map(tuple),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=8),
)
def test_headers_are_read_back(mode: BlockMode, shape: N5Tuple, count: int, payload: bytes) -> None:
    header = BlockHeader(
        mode=mode,
        block_shape=N5Tuple(()) if mode is BlockMode.OBJECT else shape,
        n_elements=None if mode is BlockMode.DEFAULT else count,
    )
    data = header.to_bytes()
    assert len(data) == header.n_bytes
    if len(data) + len(payload) >= 6:  # the shortest block there is
        assert BlockHeader.from_bytes(data + payload) == header


@given(arrays(), compressions, axis_orders)
def test_blocks_are_read_back(
    array: np.ndarray, compression: dict[str, JSON], axis_order: AxisOrder
) -> None:
    block = n5zarr.encode_block(array, compression=compression, axis_order=axis_order)
    decoded = n5zarr.decode_block(
        block, data_type=array.dtype.name, compression=compression, axis_order=axis_order
    )
    assert (decoded.dtype, decoded.shape) == (array.dtype, array.shape)
    assert decoded.tobytes() == array.tobytes()


@given(arrays())
def test_a_raw_block_is_the_elements_in_n5_order(array: np.ndarray) -> None:
    block = n5zarr.encode_block(array, compression={"type": "raw"}, axis_order="F")
    elements = np.asarray(array, array.dtype.newbyteorder(">")).tobytes("F")
    assert block[-len(elements) :] == elements
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    assert block[: -len(elements)] == b"\0\0" + array.ndim.to_bytes(2, "big") + sizes


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=12),
    compressions,
)
def test_blocks_of_strings_are_read_back(strings: list[str], compression: dict[str, JSON]) -> None:
    block = n5zarr.encode_block(np.array(strings, object), compression=compression)
    decoded = n5zarr.decode_block(block, data_type="string", compression=compression)
    assert decoded.tolist() == strings
    assert split_strings(join_strings(strings), len(strings)) == strings


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
@given(st.data())
def test_a_damaged_block_gives_a_value_or_an_error(
    compression: dict[str, JSON], data: st.DataObject
) -> None:
    dtype = data.draw(st.sampled_from(["uint8", "uint16", "float64"]))
    array = (np.arange(5 * 7 * 11) % 23).astype(dtype).reshape(11, 7, 5)
    block = data.draw(damaged(n5zarr.encode_block(array, compression=compression)))
    try:
        decoded = n5zarr.decode_block(block, data_type=dtype, compression=compression)
    except N5Error as err:
        assert err.kind in ("header", "payload", "varlength", "compression")  # noqa: PT017
    else:
        assert decoded.dtype == dtype


@given(
    st.binary(max_size=80),
    st.sampled_from(["uint8", "uint16", "float64"]),
    st.sampled_from([*COMPRESSIONS, {"type": "jpeg"}, {"type": "lzma", "format": 2}]),
    st.sampled_from(
        [b"", bytes.fromhex("0000 0001 00000003"), bytes.fromhex("0000 0002 00000001 00000002")]
    ),
)
def test_any_bytes_give_a_block_or_an_error(
    payload: bytes, data_type: str, compression: dict[str, JSON], header: bytes
) -> None:
    try:
        decoded = n5zarr.decode_block(
            header + payload, data_type=data_type, compression=compression
        )
    except N5Error:
        return
    assert isinstance(decoded, np.ndarray)


@given(st.integers(1, 6), st.binary(max_size=120))
def test_any_bytes_give_labels_or_an_error(n_voxels: int, payload: bytes) -> None:
    for data in (payload, bytes(4) + payload):
        try:
            labels = arg_max_labels(data, n_voxels)
        except N5Error:
            continue
        assert labels.shape == (n_voxels,)


# Documents


@given(json_values)
def test_documents_are_parsed_as_by_json(value: JSON) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert parse_json(text.encode()) == json.loads(text)


@given(json_values)
def test_a_comment_in_front_changes_nothing(value: JSON) -> None:
    text = json.dumps(value)
    assert parse_json(f"/* lenient */ {text} // too".encode()) == json.loads(text)


@given(st.binary(max_size=60) | st.text("{}[]:,;='\"\\/*#\n aeN1-.u0", max_size=40).map(str.encode))
def test_any_bytes_are_a_document_or_an_error(data: bytes) -> None:
    try:
        parse_json(data)
    except N5Error as err:
        assert err.kind == "json"  # noqa: PT017


@given(
    st.dictionaries(
        st.sampled_from(
            ["dimensions", "blockSize", "dataType", "compression", "compressionType", "n5", "axes"]
        ),
        json_values | st.lists(st.integers(0, 9), max_size=3) | st.sampled_from(["uint8", "raw"]),
    )
)
def test_any_document_is_a_node_or_an_error(document: dict[str, JSON]) -> None:
    try:
        parsed = parse_attributes(document)
    except N5Error as err:
        assert err.kind in ("member", "data-type", "compression")  # noqa: PT017
    else:
        assert isinstance(parsed, GroupAttributes | DatasetAttributes)


def naive_fit(block: np.ndarray, shape: tuple[int, ...], fill_value: Any) -> np.ndarray:
    """Pad and crop one element at a time."""
    fitted = np.empty(shape, block.dtype)
    for index in np.ndindex(*shape):
        inside = all(i < s for i, s in zip(index, block.shape, strict=True))
        fitted[index] = block[index] if inside else fill_value
    return fitted


@given(st.data(), sizes, st.sampled_from([0, 1, 255]))
def test_fitting_pads_and_crops_like_a_loop(
    data: st.DataObject, shape: CTuple, fill_value: Literal[0, 1, 255]
) -> None:
    same_rank = st.tuples(*[st.integers(1, 7)] * len(shape))
    block = data.draw(hnp.arrays(">u2", data.draw(same_rank)))
    fitted = pad_or_truncate(block, shape, fill_value)
    assert fitted.dtype == block.dtype
    assert math.prod(fitted.shape) == math.prod(shape)
    np.testing.assert_array_equal(fitted, naive_fit(block, shape, fill_value))
