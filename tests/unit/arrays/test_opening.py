"""Nodes are opened, created and listed as the specification and the given options say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from obstore.store import MemoryStore
from zarr.errors import ContainsArrayError, ContainsGroupError
from zarr.storage import ObjectStore

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.described import DescribedArray
from n5zarr.arrays.group import N5Group, node_at, standard_codecs, values_of, with_fast_path
from n5zarr.errors import N5Error, N5UnrepresentableError, N5Warning
from n5zarr.fast.array import N5Array
from tests.unit.arrays.blocks import SHAPE, numbers, write_dataset


def document(root: Path, name: str = "d") -> Any:
    return json.loads((root / name / "attributes.json").read_text())


CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"dtype": "u2"}, ""), ({"dtype": "u4"}, "dtype: expected uint32, got uint16"),
    ({"ndim": 3}, ""), ({"ndim": 2}, "ndim: expected 2, got 3"),
    ({"shape": list(SHAPE)}, ""), ({"shape": SHAPE[::-1]}, "shape: expected"),
    ({"chunks": (3, 4, 2)}, ""), ({"chunks": (3, 4, 3)}, "chunks: expected"),
    ({"compression": {"type": "gzip"}}, ""), ({"compression": {"type": "gzip", "level": 3}}, ""),
    ({"compression": {"type": "gzip", "level": 4}}, "compression: expected"),
    ({"compression": {"type": "raw"}}, "compression: expected"),
    ({"shape": SHAPE, "dtype": "u2", "chunks": (1, 1, 1)}, "chunks: expected"),
    ({"mode": "a", "ndim": 3}, "conditions: expected the mode"),
    ({"mode": "r+", "ndim": 3}, ""),
    ({"mode": "r", "ndim": 3, "delete_existing": True}, "conditions: expected"),
    ({"mode": "r", "delete_existing": True}, "delete_existing: expected"),
    ({"mode": "r+", "delete_existing": True}, "delete_existing: expected"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), CONDITIONS)
def test_conditions(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    values = write_dataset(tmp_path, numbers(), "gzip")
    if message:
        with pytest.raises(N5UnrepresentableError, match=message) as err:
            n5zarr.open(tmp_path, path="d", **options)
        assert err.value.kind == "option"
    else:
        found: Any = n5zarr.open(tmp_path, path="d", **options)
        np.testing.assert_array_equal(found[...], values)


@pytest.mark.parametrize("mode", ["r", "r+", "a", "w", "w-"])
@pytest.mark.parametrize("kind", ["missing", "group", "array"])
@pytest.mark.parametrize("delete", [False, True])
def test_modes(tmp_path: Path, mode: Any, kind: str, *, delete: bool) -> None:
    """As those of zarr; ``w-`` makes a group, too."""
    write_dataset(tmp_path, numbers())
    zarr.create_group(N5Store(tmp_path), path="group/below")
    path = {"missing": "x", "group": "group", "array": "d"}[kind]
    if delete and mode in ("r", "r+"):
        return
    is_gone = delete or mode == "w" or kind == "missing"
    if (mode in ("r", "r+") and kind == "missing") or (mode == "w-" and not is_gone):
        expected = FileNotFoundError if kind == "missing" else FileExistsError
        with pytest.raises(expected):
            n5zarr.open(tmp_path, mode, path=path, delete_existing=delete)
        return
    found = n5zarr.open(tmp_path, mode, path=path, delete_existing=delete)
    assert type(found) is (N5Array if kind == "array" and not is_gone else N5Group)
    assert found.read_only == (mode == "r")
    if isinstance(found, N5Group):
        assert sorted(found) == (["below"] if kind == "group" and not is_gone else [])


def test_groups_and_arrays_are_told_apart(tmp_path: Path) -> None:
    write_dataset(tmp_path, numbers())
    assert type(n5zarr.open_array(tmp_path / "d")) is N5Array
    assert type(n5zarr.open_group(tmp_path)) is N5Group
    with pytest.raises(N5UnrepresentableError, match=r"arrays in it: d; n5zarr.open_group"):
        n5zarr.open_array(tmp_path)
    with pytest.raises(N5UnrepresentableError, match=r"n5zarr\.open_array opens it"):
        n5zarr.open_group(tmp_path, path="d")
    with pytest.raises(N5UnrepresentableError, match="are conditions of arrays"):
        n5zarr.open(tmp_path, ndim=3)
    with pytest.raises(N5UnrepresentableError, match="got a group"):
        n5zarr.open(tmp_path, compression={"type": "raw"})
    with pytest.raises(N5UnrepresentableError, match="create_array creates"):
        n5zarr.open_array(tmp_path, "w", path="d")  # type: ignore[arg-type]
    with pytest.raises(N5UnrepresentableError, match="fill_missing: expected only"):
        n5zarr.open(tmp_path, fill_missing=False)
    strict: Any = n5zarr.open(tmp_path, path="d", fill_missing=False)
    assert not strict.config.read_missing_chunks
    assumed = document(tmp_path) | {"dimensions": [5, 11, 6]}
    found: Any = n5zarr.open(tmp_path, path="d", assume_metadata=assumed)
    assert found.shape == (6, 11, 5)


@pytest.mark.parametrize("kind", ["local", "obstore"])
def test_members(tmp_path: Path, kind: str) -> None:
    location: Any = ObjectStore(MemoryStore()) if kind == "obstore" else tmp_path
    root: Any = n5zarr.open_group(location, "a")
    for path in ("a", "g/b", "g/h/c"):
        n5zarr.create_array(location, path=path, shape=(5,), dtype="u2")
    root.create_group("e")
    group: Any = n5zarr.open_group(location)
    everything = {"a": N5Array, "e": N5Group, "g": N5Group, "g/b": N5Array, "g/h": N5Group,
                  "g/h/c": N5Array}  # fmt: skip
    for depth, names in ((0, "a e g"), (1, "a e g g/b g/h"), (None, " ".join(everything))):
        found = dict(group.members(depth))
        assert sorted(found) == names.split()
        assert {name: type(each) for name, each in found.items()} == {
            name: everything[name] for name in names.split()
        }
        assert {each.path for each in found.values()} == set(names.split())
        assert group.nmembers(depth) == len(names.split())
    assert sorted(group.keys()) == sorted(group) == ["a", "e", "g"]
    assert sorted(group.group_keys()) == ["e", "g"]
    assert list(group.array_keys()) == ["a"]
    assert [each.path for each in group.array_values()] == ["a"]
    assert sorted(each.path for each in group.group_values()) == ["e", "g"]
    assert [(name, type(each)) for name, each in group.arrays()] == [("a", N5Array)]
    assert sorted(name for name, _ in group.groups()) == ["e", "g"]
    assert type(group["g"]) is type(group["g/h"]) is type(group.get_group("g")) is N5Group
    assert type(group["g/b"]) is type(group["g"]["h/c"]) is type(group.get_array("a")) is N5Array
    assert group["g"]["b"].path == "g/b"
    for level, n in ((0, 3), (1, 5), (None, 6)):
        text = str(group.tree(level=level, plain=True))
        assert text.count("──") == n
    assert str(group.tree(max_nodes=2, plain=True)).count("──") == 2
    for name in ("x", "g/x"):
        with pytest.raises(KeyError):
            group[name]
    with pytest.raises(ValueError, match="max_depth"):
        group.members(-2)


def test_groups_change(tmp_path: Path) -> None:
    group: Any = n5zarr.open_group(tmp_path, "a")
    assert type(group.create_group("g", attributes={"n": np.int16(3)})) is N5Group
    assert type(group.require_group("g/h")) is N5Group
    assert [type(each) for each in group.require_groups("g", "k")] == [N5Group] * 2
    array = group.create_array("a", shape=(5,), dtype="u2", attributes={"m": np.float64(2.5)})
    # zarr's own codecs, whose chunks are payloads
    assert type(array) is type(group.require_array("b", shape=(7,), dtype="u2"))
    assert document(tmp_path, "g") == {"n": 3}
    assert document(tmp_path, "a")["m"] == 2.5
    group.attrs["x"] = np.arange(3)
    group.update_attributes({"y": np.uint8(4)})
    array.update_attributes({"z": np.uint8(4)})
    array.attrs["w"] = np.int8(5)
    array.attrs.put({"v": np.int8(6)})
    assert document(tmp_path, ".") == {"n5": document(tmp_path, ".")["n5"], "x": [0, 1, 2], "y": 4}
    found = document(tmp_path, "a")
    assert (found["v"], "w" in found, "z" in found) == (6, False, False)
    assert group == n5zarr.open_group(tmp_path, "r+")
    assert group != n5zarr.open_group(tmp_path, "r+", path="g")
    assert group != 5
    assert group["a"] != 5
    assert group["a"] == zarr.open_array(group.store, path="a")
    assert group["a"] != group["b"]
    assert "N5Group" in repr(group)
    assert repr(group["a"]).endswith("shape=(5,) dtype=uint16>")


def test_arrays_describe_and_resize_themselves(tmp_path: Path) -> None:
    values = write_dataset(tmp_path, numbers(), missing=((1, 1, 1),))
    array: Any = n5zarr.open_array(tmp_path / "d", "r+")
    assert array.info["dimensions_n5"] == SHAPE[::-1]
    assert array.nchunks_initialized == 26
    array.resize((4, 11, 3))
    assert array.shape == (4, 11, 3)
    assert array.nchunks_initialized == 11
    assert len([*tmp_path.glob("d/*/*/*")]) == 11
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "d")[...], values[:4, :, :3])
    np.testing.assert_array_equal(array.get_coordinate_selection(([1, 3], [10, 0], [2, 1])),
                                  values[[1, 3], [10, 0], [2, 1]])  # fmt: skip


def test_nodes_are_opened_without_zarr(tmp_path: Path) -> None:
    write_dataset(tmp_path, numbers(), "zstd")
    store = N5Store(tmp_path, zarr_format=3)
    assert type(node_at(store, "d")) is zarr.Array
    assert type(node_at(store, "")) is zarr.Group
    assert node_at(store, "x") is None
    assert node_at(zarr.storage.MemoryStore(), "") is None
    assert node_at(N5Store(ObjectStore(MemoryStore())), "") is None
    assert node_at(N5Store(tmp_path, zarr_format=2), "d") is None
    by_zarr = zarr.open_array(store, path="d")
    found: Any = node_at(store, "d")
    assert found.metadata.to_dict() == by_zarr.metadata.to_dict()
    other = zarr.create_array({}, shape=(3,), dtype="u2")
    assert type(with_fast_path(other)) is DescribedArray
    view: Any = store.node("d")
    values = values_of(store.storage, "d", view)
    assert isinstance(values, N5Array)
    assert values.read_only
    np.testing.assert_array_equal(values[...], numbers())
    names = [type(codec).__name__ for codec in standard_codecs(view)]
    assert names == ["BytesCodec", "ZstdCodec"]


CREATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "own names": (
        {"shape": (5, 7), "dtype": "u2", "chunks": (2, 3)},
        {"dimensions": [7, 5], "blockSize": [3, 2], "dataType": "uint16",
         "compression": {"type": "gzip", "level": 6, "useZlib": False}},
    ),
    "F": (
        {"shape": (5, 7), "dtype": "f4", "chunks": 2, "axis_order": "F", "compression": "raw"},
        {"dimensions": [5, 7], "blockSize": [2, 2], "dataType": "float32",
         "compression": {"type": "raw"}},
    ),
    "no compression": ({"shape": 3 * (2,), "dtype": "i1", "compression": None},
                       {"compression": {"type": "raw"}, "dataType": "int8"}),
    "data": ({"data": np.ones((3, 5), ">i4")}, {"dimensions": [5, 3], "dataType": "int32"}),
    "data of a type": ({"data": [[1, 2]], "dtype": "u1", "shape": (1, 2)},
                       {"dimensions": [2, 1], "dataType": "uint8"}),
    "automatic": ({"shape": (300, 20), "dtype": "u1", "chunk_elements": 100},
                  {"blockSize": [10, 10]}),
    "proportions": ({"shape": (300, 200), "dtype": "u1", "chunk_elements": 100,
                     "chunk_aspect_ratio": (1, 4)}, {"blockSize": [20, 5]}),
    "attributes": ({"shape": (3,), "dtype": "u1", "attributes": {"a": np.int8(3)}}, {"a": 3}),
    "resolution": ({"shape": (3, 4), "dtype": "u1", "resolution": (5, np.float32(2))},
                   {"resolution": [2, 5]}),
    "positions of the user": (
        {"shape": (3, 4), "dtype": "u1", "resolution": (5, 2), "attributes": {"transform": 1}},
        {"resolution": [5, 2] , "transform": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("options", "expected"), CREATED.values(), ids=CREATED)
def test_documents_of_new_arrays(
    tmp_path: Path, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    array: Any = n5zarr.create_array(tmp_path, path="d", **options)
    assert isinstance(array, N5Array)
    found = document(tmp_path)
    if "transform" in expected:
        expected = expected | {"resolution": found["resolution"]}
        assert sorted(found["resolution"]) == [2, 5]
    assert found == found | expected
    if "data" in options:
        np.testing.assert_array_equal(array[...], options["data"])


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"shape": (3,)}, "expected shape and dtype, or data"),
    ({"dtype": "u1"}, "expected shape and dtype, or data"),
    ({"data": np.ones((3, 4)), "shape": (4, 3)}, "data: expected the shape"),
    ({"shape": (3,), "dtype": "u1", "chunks": (3, 3)}, "chunks: expected 1 values"),
    ({"shape": (3,), "dtype": "u1", "chunks": "big"}, "chunks: expected 'auto'"),
    ({"shape": (3,), "dtype": "u1", "chunk_elements": 0}, "chunk_elements: expected"),
    ({"shape": (3,), "dtype": "u1", "chunk_aspect_ratio": (1, 1)}, "chunk_aspect_ratio: expected"),
    ({"shape": (3,), "dtype": "u1", "chunk_aspect_ratio": (0,)}, "chunk_aspect_ratio: expected"),
    ({"shape": (3,), "dtype": "u1", "axes": "xy"}, "axes: expected 1 values"),
    ({"shape": (3, 4), "dtype": "u1", "axes": "xx"}, "axes"),
    ({"shape": (3,), "dtype": "u1", "axes": [3]}, "axes: expected a text"),
    ({"shape": (3,), "dtype": "u1", "units": [3]}, "units: expected a text"),
    ({"shape": (3,), "dtype": "u1", "resolution": [0]}, "resolution: expected a number"),
    ({"shape": (3,), "dtype": "u1", "resolution": ["a"]}, "resolution: expected a number"),
    ({"shape": (3,), "dtype": "u1", "offset": [float("inf")]}, "offset: expected a number"),
    ({"shape": (3,), "dtype": "nothing"}, "dtype: expected numbers, .* got 'nothing'"),
    ({"shape": (2**31,), "chunks": (2**31,), "dtype": "u1"}, "2147483647 bytes in a block"),
    ({"shape": (2**64, 2), "chunks": (4, 1), "dtype": "u1"},
     r"shape \(18446744073709551616, 2\), .*too large"),
    ({"shape": (3,), "dtype": "u1", "compression": {"type": "jpeg"}}, "jpeg can only be read"),
    ({"shape": (3,), "dtype": "bool", "compression": {"type": "blosc", "cname": "snappy"}},
     "compression: blosc with snappy can only be read"),
    ({"shape": (3, 5), "dtype": "u1", "units": ["nm"]}, "units: expected 2 values, one for each"),
    ({"shape": (3, 5), "dtype": "u1", "resolution": []}, "resolution: expected 2 values"),
    ({"shape": (3, 5), "dtype": "u1", "offset": [1, 2, 3]}, "offset: expected 2 values"),
    ({"data": np.array(["a"]), "dtype": "u1"}, "data: expected elements of uint8"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_write_nothing(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"path": "d"} | options
    with pytest.raises(N5Error, match=message):
        n5zarr.create_array(tmp_path / "c.n5", **given)
    assert not [*tmp_path.iterdir()]
    values = write_dataset(tmp_path, numbers())
    with pytest.raises(N5Error, match=message):
        n5zarr.create_array(tmp_path, overwrite=True, **given)
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "d")[...], values)


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    values = write_dataset(tmp_path, numbers())
    zarr.create_group(N5Store(tmp_path), path="g/h")
    kinds = ("d", ContainsArrayError, "an array"), ("g", ContainsGroupError, "a group")
    for path, error, what in kinds:
        with pytest.raises(error, match=f"/{path}: expected nothing, got {what}"):
            n5zarr.create_array(tmp_path, path=path, shape=(3,), dtype="u1")
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "d")[...], values)
    n5zarr.create_array(tmp_path, path="d", data=[1, 2], overwrite=True)
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "d")[...], [1, 2])


def test_new_arrays_of_other_elements(tmp_path: Path) -> None:
    """Text, booleans, times, scalars and both formats come back."""
    each: list[tuple[Any, dict[str, Any]]] = [
        (np.array(["a", "bc", ""], object), {"dtype": "str"}), (np.array([True, False]), {}),
        (np.array(["2026-11-29"], "M8[D]"), {}), (np.array(5, "u2"), {}),
        (np.arange(7) + 1j, {}), (np.arange(5), {"fill_value": 3}),
    ]  # fmt: skip
    for k, (data, options) in enumerate(each):
        made = n5zarr.create_array(tmp_path, path=f"d{k}", data=data, **options)
        for array in (made, n5zarr.open_array(tmp_path, path=f"d{k}")):
            np.testing.assert_array_equal(array[...], data)
        if options.get("fill_value"):
            assert made.fill_value == options["fill_value"]
    store = N5Store(tmp_path / "v2", zarr_format=2)
    second: Any = n5zarr.create_array(store, path="d", data=np.arange(5, dtype="u2"))
    assert second.metadata.zarr_format == 2
    assert document(tmp_path / "v2")["dataType"] == "uint16"
    np.testing.assert_array_equal(second[...], np.arange(5))
    with pytest.warns(N5Warning, match="fractions"):
        n5zarr.create_array(tmp_path, path="e", data=[1.5], dtype="u1")
