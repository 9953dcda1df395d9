"""Block sizes are chosen, blocks joined and boxes found; names and documents are classified."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from n5zarr.errors import N5AttributesError, N5UnrepresentableError
from n5zarr.format.attributes import (
    DatasetAttributes,
    describes_array,
    group_attributes,
    has_java_codecs,
    is_dataset,
    own_keys,
    parse_attributes,
)
from n5zarr.format.compression import Gzip, Raw
from n5zarr.format.data_type import DataType
from n5zarr.format.foreign import (
    format_of_name,
    has_blocks_of_n5,
    has_name_of_zarr,
    holds_chunks_of_zarr,
    is_sidecar,
)
from n5zarr.format.grid import (
    automatic_block_size,
    block_path,
    blocks_outside,
    grid_shape,
    join_blocks,
    parse_block_path,
)
from n5zarr.format.order import (
    N5Tuple,
    check_axis_order,
)
from n5zarr.format.path import groups_above, is_name
from n5zarr.format.raw_json import RawObject, nonfinite_note

DATASET: dict[str, Any] = {
    "dimensions": [5, 3], "blockSize": [3, 2], "dataType": "uint16", "compression": {"type": "raw"},
}  # fmt: skip


# tensorstore's rule: the largest block of the proportions with at most 2**20 elements
@pytest.mark.parametrize(
    ("dimensions", "ratio", "n_elements", "expected"),
    [
        ((), None, 2**20, ()), ((0,), None, 2**20, (1,)), ((5, 7), None, 2**20, (5, 7)),
        ((1000, 1000), None, 100, (10, 10)), ((1000, 1000), None, 99, (9, 9)),
        ((3, 1000, 1000), None, 300, (3, 10, 10)), ((1000, 1000), [1, 4], 100, (5, 20)),
        ((1000, 1000), [4, 1], 100, (20, 5)), ((2, 1000), [4, 1], 100, (2, 50)),
        ((1000, 3), None, 1, (1, 1)), ((1000,), None, 999, (999,)),
        ((1024, 1024, 1024), None, 2**21, (128, 128, 128)),
    ],
)  # fmt: skip
def test_a_block_size_is_the_largest_of_its_proportions(
    dimensions: tuple[int, ...], ratio: list[float] | None, n_elements: int, expected: Any
) -> None:
    assert automatic_block_size(dimensions, ratio, n_elements) == expected
    if n_elements == 2**20:
        assert automatic_block_size(dimensions, ratio) == expected


def test_a_block_has_about_a_million_elements_by_default() -> None:
    assert automatic_block_size((2**11, 2**11)) == (2**10, 2**10)
    assert automatic_block_size((2**30,)) == (2**20,)


@pytest.mark.parametrize(
    ("shape", "block", "n_elements", "most", "expected"),
    [
        ((8, 8), (2, 2), 0, 16, (2, 2)),
        ((8, 8), (2, 2), 0, 15, (4, 2)),
        ((8, 8), (2, 2), 0, 8, (4, 2)),
        ((8, 8), (2, 2), 0, 7, (4, 4)),
        ((8, 8), (2, 2), 0, 1, (8, 8)),
        ((8, 8), (2, 2), 4, 16, (2, 2)),
        ((8, 8), (2, 2), 7, 16, (2, 2)),
        ((8, 8), (2, 2), 8, 16, (4, 2)),
        ((8, 8), (2, 2), 10**6, 1, (8, 8)),
        ((8, 8), (2, 4), 0, 7, (4, 4)),
        # an axis with one element in a block is joined last, a whole one never
        ((8, 8), (1, 4), 0, 8, (1, 8)),
        ((8, 8), (1, 8), 0, 4, (2, 8)),
        ((3, 8), (4, 2), 0, 2, (4, 4)),
        ((5, 7), (2, 3), 0, 2, (8, 6)),
        ((9,), (2,), 0, 4, (4,)),
        ((0, 5), (2, 2), 0, 1, (2, 8)),
        ((), (), 0, 1, ()),
        # elements beyond the array do not count
        ((3, 8), (4, 2), 12, 9, (4, 4)),
        ((3, 8), (4, 2), 11, 9, (4, 2)),
    ],
)
def test_blocks_are_joined_to_chunks(
    shape: Any, block: Any, n_elements: int, most: int, expected: Any
) -> None:
    found = join_blocks(shape, block, n_elements=n_elements, most=most)
    assert found == expected
    if not n_elements:
        assert join_blocks(shape, block, most=most) == expected


@pytest.mark.parametrize("old", [*product(range(0, 8, 2), range(0, 6, 2))], ids=str)
def test_the_blocks_outside_of_another_grid(old: tuple[int, int]) -> None:
    block_size = N5Tuple((3, 2))
    for new in product(range(9), range(6)):
        grids = [grid_shape(N5Tuple(extent), block_size) for extent in (old, new)]
        before, after = ({*product(*map(range, grid))} for grid in grids)
        boxes = blocks_outside(N5Tuple(old), N5Tuple(new), block_size)
        found = [position for box in boxes for position in product(*box)]
        assert len(found) == len({*found})
        assert {*found} == before - after
        assert all(map(all, boxes))


def test_a_dataset_without_dimensions_has_one_block() -> None:
    assert block_path(N5Tuple(())) == "0"
    assert parse_block_path("0", N5Tuple(())) == ()
    assert parse_block_path("1", N5Tuple(())) is None
    assert parse_block_path("1" * 19, N5Tuple((2**63 - 1,))) == (int("1" * 19),)
    assert parse_block_path("1" * 20, N5Tuple((10**20,))) is None


# ---------------------------------------------------------------------- order, paths


def test_the_axis_order_is_c_or_f() -> None:
    for order in "CF":
        check_axis_order(order)
    with pytest.raises(N5UnrepresentableError, match="axis_order: expected 'C' or 'F', got 'c'"):
        check_axis_order("c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s0", True), ("a.b", True), ("\u00fc", True), ("", False), ("a/b", False), (".", False),
        ("..", False), ("a\\b", False), ("a\0", False), ("\ud800", False),
    ],
)  # fmt: skip
def test_what_a_node_may_be_named(text: str, *, expected: bool) -> None:
    assert is_name(text) is expected


def test_the_groups_above_a_path() -> None:
    assert groups_above("a/b/c") == ["", "a", "a/b"]
    assert (groups_above("a"), groups_above("")) == ([""], [])


# ---------------------------------------------------------------------- documents


@pytest.mark.parametrize(
    ("document", "is_group", "expected"),
    [
        (DATASET, False, True), (DATASET, True, True),
        (DATASET | {"downsamplingFactors": [[1, 1]]}, True, False),
        (DATASET | {"downsamplingFactors": [[1, 1]]}, False, True),
        (DATASET | {"downsamplingFactors": [2, 2]}, True, True), ({"u": 1}, False, False),
        ([DATASET], False, False), (None, False, False),
    ],
)  # fmt: skip
def test_whether_a_document_describes_an_array(
    document: Any, *, is_group: bool, expected: bool
) -> None:
    assert describes_array(document, is_group=is_group) is expected


KEYS = {"dimensions", "blockSize", "dataType", "compression", "compressionType"}


@pytest.mark.parametrize(
    ("document", "options", "expected"),
    [
        (DATASET, {}, KEYS | {"n5", "zarr"}),
        (DATASET | {"codecs": []}, {}, KEYS | {"codecs", "n5", "zarr"}),
        (DATASET | {"codecs": "mine"}, {}, KEYS | {"n5", "zarr"}),
        (DATASET, {"is_group": True}, {"n5", "zarr"}), ({"u": 1}, {}, {"n5", "zarr"}),
        ({"n5": "4.0.0"}, {"is_root": False}, {"n5", "zarr"}),
        ({"n5": "mine"}, {"is_root": False}, {"zarr"}), ({}, {"is_root": False}, {"zarr"}),
        ({"n5": "mine"}, {}, {"n5", "zarr"}),
    ],
)  # fmt: skip
def test_which_keys_are_no_users_attributes(
    document: dict[str, Any], options: dict[str, bool], expected: set[str]
) -> None:
    assert {*own_keys(document, **options)} == expected
    assert len(own_keys(document, **options)) == len(expected)


def test_a_group_has_the_attributes_that_are_not_n5s_own() -> None:
    document = DATASET | {"n5": "mine", "zarr": {"u": 1}}
    group = group_attributes(document, is_root=False)
    assert group.attributes == DATASET | {"n5": "mine"}
    assert group.record == {"u": 1}
    assert group_attributes(document, is_root=True).attributes == DATASET
    assert parse_attributes({"n5": "x"}, is_root=False).attributes == {"n5": "x"}
    assert parse_attributes({"n5": "x"}).attributes == {}
    assert parse_attributes(None).attributes == {}


BLOCK = {"name": "n5bytes"}
JAVA = {key: value for key, value in DATASET.items() if key != "compression"}


@pytest.mark.parametrize(
    ("codecs", "expected"),
    [
        ([BLOCK], Raw()),
        ([BLOCK, {"name": "gzip", "configuration": {"level": 3}}], Gzip(level=3)),
        ([BLOCK, {"name": "gzip"}], Gzip()),
        ([BLOCK, {"name": "gzip", "configuration": 3}], Gzip()), ([], None),
        ([{"name": "gzip"}], None), ([BLOCK, "gzip"], None), ([BLOCK, {"name": "odd"}], None),
        ([BLOCK, {"name": "gzip"}, {"name": "gzip"}], None),
        ([{"name": "sharding_indexed"}], "shards"),
        ([{"name": "sharding_indexed"}, {"name": "gzip"}], "shards"),
    ],
)  # fmt: skip
def test_codecs_of_java_win_over_the_compression(codecs: list[Any], expected: Any) -> None:
    document = JAVA | {"codecs": codecs, "compression": {"type": "xz"}}
    assert has_java_codecs(document)
    assert is_dataset(JAVA | {"codecs": codecs})
    if isinstance(expected, Raw | Gzip):
        parsed = parse_attributes(document)
        assert isinstance(parsed, DatasetAttributes)
        assert parsed.compression == expected
        assert parsed.attributes == {}
        return
    found = "expected blocks, got shards of Java" if expected else "expected 'n5bytes' and at most"
    with pytest.raises(N5AttributesError, match=found) as caught:
        parse_attributes(document)
    assert [(p.loc, p.kind) for p in caught.value.problems] == [(("codecs",), "compression")]


def test_a_dataset_says_its_type_grid_and_extents() -> None:
    parsed = parse_attributes(DATASET)
    assert isinstance(parsed, DatasetAttributes)
    assert (parsed.type_name, parsed.ndim, parsed.grid) == ("uint16", 2, (2, 2))
    assert parsed.extent_of(N5Tuple((1, 0))) == (2, 2)
    assert parsed.has_block_size
    assert not parsed.is_label_multiset
    assert not parsed.may_be_group
    odd = parse_attributes(DATASET | {"dataType": "float16"})
    assert isinstance(odd, DatasetAttributes)
    assert (odd.type_name, odd.numpy_type) == ("float16", np.dtype("f2"))


def test_each_data_type_has_its_size_and_order() -> None:
    for data_type in DataType:
        if data_type not in (DataType.STRING, DataType.OBJECT):
            assert data_type.item_size == np.dtype(data_type.value).itemsize
            assert data_type.dtype == np.dtype(data_type.value).newbyteorder(">")
    assert (DataType.OBJECT.item_size, DataType.STRING.item_size) == (1, 1)


def test_a_member_that_was_removed_comes_back_without_its_text() -> None:
    raw = RawObject.parse(b'{"a": 1.0E-12 /* c */, "b": 2.0}')
    raw.remove("a")
    raw.remove("nothing")
    assert raw.texts == {"b": "2.0"}
    raw.set("a", 5)
    assert raw.to_bytes() == b'{"b":2.0,"a":5}'
    assert nonfinite_note({"em": {"a": [math.nan] * 9}}).endswith("em/a/6, em/a/7 and 1 more")
    assert nonfinite_note({"em": {"a": [math.nan] * 8}}).endswith("em/a/7")
    assert nonfinite_note({"em": {"a": 1}}) == ""


# ---------------------------------------------------------------------- other formats


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.n5", "n5"), (".n5", None), ("a.N5", None), ("a.n5x", None), ("a.zarr", "zarr"),
        ("a.HDF5", "hdf5"), ("a.nwb", "hdf5"), ("a.btf", "tiff"), ("a.OZX", "zip"),
        ("dataset.xml~12", "bdv"), ("dataset.xml~", None), ("a.xml", "bdv"), ("n5", None),
    ],
)  # fmt: skip
def test_formats_by_the_end_of_a_name(name: str, expected: str | None) -> None:
    assert format_of_name(name) == expected


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("a.zarr", True), ("x/a.zarr/b", True), ("x\\a.zarr\\b", True), ("a.zarr/b.n5", False),
        ("a.n5/b.zarr", False), ("a.zarrs/b", False), ("a/b", False), ("s3://a.zarr/em", True),
    ],
)  # fmt: skip
def test_names_of_zarr(location: str, *, expected: bool) -> None:
    assert has_name_of_zarr(location) is expected


SIDECAR = b'{"n5zarr": {"must_understand": false, "sidecar_of": "attributes.json"}}'


@pytest.mark.parametrize(
    ("document", "is_written_beside", "has_blocks"),
    [
        (SIDECAR, True, True), (SIDECAR.replace(b"false", b"true"), False, False),
        (b'{"codecs": ["bytes", {"name": "n5_default"}]}', False, True),
        (b'{"codecs": ["n5_default"]}', False, False), (b'{"codecs": null}', False, False),
        (b"{", False, False),
    ],
)  # fmt: skip
def test_a_zarr_json_beside_n5(
    document: bytes, *, is_written_beside: bool, has_blocks: bool
) -> None:
    assert is_sidecar(document) is is_written_beside
    assert has_blocks_of_n5(document) is has_blocks


V2_KEYS = '"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}'


@pytest.mark.parametrize(
    ("document", "chunks", "others"),
    [
        ('{"zarr_format": 3}', ["c", "c.0", "c.0.12"], ["0", "c0", "c.", "d"]),
        ('{"zarr_format": 3, "chunk_key_encoding": "v2"}', ["c"], ["0"]),
        ('{"zarr_format": 3, ' + V2_KEYS + "}", ["0", "12"], ["c", "0.0"]),
        ('{"zarr_format": 3, "shape": [3, 5], ' + V2_KEYS.replace("/", ".") + "}",
         ["0.1"], ["0", "0.1.2"]),
        ('{"zarr_format": 2, "shape": [3, 5, 7]}', ["0.1.2"], ["0", "0.1"]),
        ('{"zarr_format": 2, "shape": [3, 5], "dimension_separator": "/"}', ["0"], ["0.1"]),
        ('{"zarr_format": 2, "shape": []}', ["0"], ["0.0"]),
        ("{", ["0"], ["c"]),
    ],
)  # fmt: skip
def test_names_that_begin_the_keys_of_chunks(
    document: str, chunks: list[str], others: list[str]
) -> None:
    for name in chunks:
        assert holds_chunks_of_zarr(["x", name], document.encode()), name
    assert not holds_chunks_of_zarr(others, document.encode())
