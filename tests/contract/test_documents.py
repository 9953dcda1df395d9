"""``attributes.json`` has the right members after zarr has written, beside those of others."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import pickle
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tensorstore
import xarray as xr
import z5py
import zarr
from zarr.buffer import cpu
from zarr.storage import LocalStore, MemoryStore
from zarr.types import AnyArray

import n5zarr
from n5zarr import N5Store
from n5zarr.codecs.bzip2 import Bzip2Codec
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError, N5Warning
from tests.contract.stored import by_tensorstore, contents, other_types, spec_of

JAVA = (
    '{"dataType":"uint16","compression":{"type":"gzip","useZlib":false,"level":6,"by":"hand"},'
    '"scale":1.0E-12,"blockSize":[4,3,2],"id":123456789012345678901234567890,"ratio":2.0,'
    '"list":[1.50, 2E3],"dimensions":[11,7,5],"nothing":null,"text":"\\u00e9"}'
)
get_codec: Any = numcodecs.get_codec
NUMBERS = np.arange(35, dtype="i4").reshape(5, 7)
N5_KEYS = ("dataType", "compression", "blockSize", "dimensions")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "c.n5" / "java").mkdir(parents=True)
    (tmp_path / "c.n5" / "attributes.json").write_text('{"n5":"2.1.3"}')
    (tmp_path / "c.n5" / "java" / "attributes.json").write_text(JAVA)
    return tmp_path / "c.n5"


def document(root: Path, path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / path / "attributes.json").read_text())
    return found


def opened(root: Path, path: str, **how: Any) -> AnyArray:
    return zarr.open_array(N5Store(root, **how), path=path)


# ---------------------------------------------------------------------- what others wrote


@pytest.mark.parametrize("how", [{}, {"codecs": "n5"}, {"zarr_format": 2}, {"axis_order": "F"}])
def test_a_new_attribute_leaves_the_rest_as_it_was_spelled(root: Path, how: Any) -> None:
    opened(root, "java", **how).attrs["new"] = 1
    text = (root / "java" / "attributes.json").read_text()
    assert text == JAVA[:-1].replace('"list":[1.50, 2E3]', '"list":[1.50, 2E3]') + ',"new":1}'


CHANGES: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "an attribute is changed": (lambda array: array.attrs.update(ratio=2), "2.0,", "2,"),
    "an attribute is deleted": (lambda array: array.attrs.pop("ratio"), '"ratio":2.0,', ""),
    "the dataset is resized": (lambda array: array.resize((5, 7, 12)), "[11,", "[12,"),
}


@pytest.mark.parametrize(("change", "old", "new"), CHANGES.values(), ids=CHANGES)
def test_the_rest_keeps_its_place_and_spelling(
    root: Path, change: Callable[[Any], object], old: str, new: str
) -> None:
    change(opened(root, "java"))
    assert (root / "java" / "attributes.json").read_text() == JAVA.replace(old, new)


def test_lenient_documents_become_strict_but_for_their_comments(root: Path) -> None:
    (root / "lenient").mkdir()
    (root / "lenient" / "attributes.json").write_text("{a: NaN, /* b */ 'c': [-Infinity, 1]}")
    group = zarr.open_group(N5Store(root), path="lenient")
    assert repr(group.attrs["a"]) == "nan"
    group.attrs["d"] = 1
    text = (root / "lenient" / "attributes.json").read_text()
    assert text.count(" /* b */ ") == 1
    found = json.loads(text.replace("/* b */", ""), parse_constant=pytest.fail)
    assert found["d"] == 1
    again = zarr.open_group(N5Store(root), path="lenient").attrs.asdict()
    assert repr(again["a"]) == "nan"
    assert again["c"] == [-math.inf, 1]


def test_a_group_of_bigstitcher_keeps_its_keys(root: Path) -> None:
    text = '{"dimensions":[3],"blockSize":[2],"dataType":"uint8","compression":{"type":"raw"},'
    text += '"downsamplingFactors":[[1],[2]]}'
    (root / "setup0" / "timepoint0").mkdir(parents=True)
    (root / "setup0" / "attributes.json").write_text(text)
    group = zarr.open_group(N5Store(root), path="setup0")
    group.attrs["name"] = "a"
    assert (root / "setup0" / "attributes.json").read_text() == text[:-1] + ',"name":"a"}'
    group.attrs["dataType"] = "uint16"
    expected = json.loads(text) | {"dataType": "uint16", "name": "a"}
    assert document(root, "setup0") == expected
    assert zarr.open_group(N5Store(root), path="setup0", mode="r").attrs.asdict() == expected
    zarr.create_group(N5Store(root), path="setup0/timepoint1")
    assert document(root, "setup0")["dimensions"] == [3]


# ---------------------------------------------------------------------- what zarr writes


@pytest.mark.each_of(7)
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_plain_numbers_leave_no_record(tmp_path: Path, dtype: str, zarr_format: Any) -> None:
    """Arrays of plain numbers need no record; in Zarr v2 that holds for N5's byte order."""
    store = N5Store(tmp_path / "c.n5", zarr_format=zarr_format)
    array = zarr.create_array(
        store, name="a/b", shape=(5, 7, 11), chunks=(2, 3, 4),
        dtype=dtype if zarr_format == 3 else f">{dtype}", zarr_format=zarr_format,
    )  # fmt: skip
    array[:] = 1
    array.attrs["x"] = 1
    array.resize((6, 7, 11))
    assert document(tmp_path / "c.n5") == {"n5": "4.0.0"}
    assert document(tmp_path / "c.n5", "a/b") == {
        "dataType": np.dtype(dtype).name, "compression": {"type": "zstd", "level": 0},
        "blockSize": [4, 3, 2], "dimensions": [11, 7, 6], "x": 1,
    }  # fmt: skip


# ---------------------------------------------------------------------- byte orders of v2


def v2_array(path: Path, dtype: Any, **options: Any) -> zarr.Array[Any]:
    """Create an array through v2 with numbers in it."""
    store = N5Store(path, zarr_format=2, **options)
    array = zarr.create_array(
        store, name="a", shape=(5, 7), chunks=(2, 3), dtype=dtype, zarr_format=2
    )
    array[...] = NUMBERS.astype(dtype)
    return array


def dtype_of(store: N5Store) -> str:
    array = zarr.open_array(store, path="a", mode="r")
    np.testing.assert_array_equal(array[...], NUMBERS.astype(array.dtype))
    assert np.asarray(array[...]).dtype == array.dtype
    return array.dtype.str


def test_an_array_written_through_v2_keeps_its_byte_order(tmp_path: Path) -> None:
    array = v2_array(tmp_path, "<f4")
    assert document(tmp_path, "a")["zarr"] == {"v2": {"dtype": "<f4"}}
    array.resize((6, 7))
    array.resize((5, 7))
    array.attrs["x"] = 1
    assert document(tmp_path, "a")["zarr"] == {"v2": {"dtype": "<f4"}}
    for codecs in ("zarr", "n5", "portable"):
        for axis_order in ("C", "F"):
            how: dict[str, Any] = {"codecs": codecs, "axis_order": axis_order}
            shown = zarr.open_array(N5Store(tmp_path, zarr_format=2, **how), path="a", mode="r")
            assert shown.dtype.str == "<f4"
            values = np.asarray(shown[...])
            assert values.dtype.str == "<f4"
            np.testing.assert_array_equal(values if axis_order == "C" else values.T, NUMBERS)
            mapping = N5Store(tmp_path, **how).as_mapping()
            assert json.loads(mapping["a/.zarray"])["dtype"] == "<f4"
    assert dtype_of(pickle.loads(pickle.dumps(array.store))) == "<f4"
    assert dtype_of(N5Store(tmp_path, zarr_format=2, read_only=True)) == "<f4"
    # as Zarr v3, and on disk, it is as any other
    assert dtype_of(N5Store(tmp_path)) == np.dtype("f4").str
    shown_v3 = zarr.open_array(N5Store(tmp_path), path="a", mode="r").metadata.to_dict()
    assert shown_v3["codecs"] == (
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
    )
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "a"), NUMBERS)


def test_plain_n5_stays_big_endian_in_v2(tmp_path: Path) -> None:
    for name, made in (
        ("v3", zarr.create_array(N5Store(tmp_path), name="v3", shape=(5, 7), dtype="<f4")),
        ("n5", n5zarr.create_array(tmp_path / "n5", shape=(5, 7), dtype="<f4")),
        (
            "n5v2",
            n5zarr.create_array(
                N5Store(tmp_path, zarr_format=2), path="n5v2", shape=(5, 7), dtype="<f4"
            ),
        ),
    ):
        made[...] = NUMBERS
        assert "zarr" not in document(tmp_path, name)
        shown = zarr.open_array(N5Store(tmp_path, zarr_format=2), path=name, mode="r")
        assert shown.dtype.str == ">f4"
        np.testing.assert_array_equal(shown[...], NUMBERS)


@pytest.mark.parametrize("data_type", ["int32", "float64", "uint16"])
def test_a_recorded_byte_order_of_other_elements_is_ignored(tmp_path: Path, data_type: str) -> None:
    v2_array(tmp_path, "<f4")
    file = tmp_path / "a" / "attributes.json"
    file.write_text(json.dumps({**document(tmp_path, "a"), "dataType": data_type}))
    for block in (tmp_path / "a").glob("*/*"):
        block.unlink()
    shown = zarr.open_array(N5Store(tmp_path, zarr_format=2), path="a", mode="r+")
    assert shown.dtype == np.dtype(data_type).newbyteorder(">")
    shown[...] = NUMBERS
    assert dtype_of(N5Store(tmp_path)) == np.dtype(data_type).str


def test_a_byte_order_is_forgotten_with_the_array_that_had_it(tmp_path: Path) -> None:
    v2_array(tmp_path, "<f4")
    zarr.create_array(N5Store(tmp_path), name="a", shape=(5, 7), dtype="f4", overwrite=True)
    assert "zarr" not in document(tmp_path, "a")
    v2_array(tmp_path / "b", [("x", ">i2"), ("y", "<i2")])
    recorded = document(tmp_path / "b", "a")["zarr"]["v2"]
    assert recorded == {"dtype": [["x", ">i2"], ["y", "<i2"]]}


@pytest.mark.parametrize("dtype", ["<f4", "<u2", "<i8"])
def test_swapped_chunks_are_made_without_compressing_them(tmp_path: Path, dtype: str) -> None:
    """Chunks in another byte order are streams without compression, as they are decoded at once."""
    store = N5Store(tmp_path, zarr_format=2)
    values = np.ones((40, 70), dtype)
    zarr.create_array(
        store, name="a", shape=values.shape, dtype=dtype, zarr_format=2,
        compressors=get_codec({"id": "gzip", "level": 9}),
    )[...] = values  # fmt: skip
    chunk = N5Store(tmp_path).as_mapping()["a/0.0"]
    assert len(chunk) > values.nbytes
    assert gzip.decompress(chunk) == values.tobytes()


def test_names_of_dimensions_are_axes_where_tensorstore_takes_them(tmp_path: Path) -> None:
    store = N5Store(tmp_path / "c.n5")
    names: dict[str, Any] = {
        "good": ["z", "y", "x"], "repeated": ["z", "y", "z"], "partial": ["z", None, "x"],
        "empty": ["z", "", "x"], "none": None,
    }  # fmt: skip
    for path, given in names.items():
        zarr.create_array(store, name=path, shape=(2, 3, 5), dtype="u1", dimension_names=given)
        found = zarr.open_array(N5Store(tmp_path / "c.n5"), path=path)
        shown: Any = found.metadata.dimension_names  # type: ignore[union-attr]
        assert shown == (given and tuple(given))
        assert "axes" not in found.attrs
        assert ("axes" in document(tmp_path / "c.n5", path)) is (path == "good")
    assert document(tmp_path / "c.n5", "good")["axes"] == ["x", "y", "z"]


@pytest.mark.parametrize("key", ["axes", "_ARRAY_DIMENSIONS"])
@pytest.mark.parametrize("named", [None, ["y", "x"], ["a", "b"]])
def test_attributes_that_look_like_names_stay_attributes(
    tmp_path: Path, key: str, named: list[str] | None
) -> None:
    array = zarr.create_array(
        N5Store(tmp_path / "c.n5"), name="a", shape=(2, 3), dtype="u1", dimension_names=named,
        attributes={key: ["a", "b"]},
    )  # fmt: skip
    for found in (array, zarr.open_array(N5Store(tmp_path / "c.n5"), path="a")):
        assert found.metadata.dimension_names == (named and tuple(named))  # type: ignore[union-attr]
        assert found.attrs.asdict() == {key: ["a", "b"]}
    assert document(tmp_path / "c.n5", "a")[key] == ["a", "b"]


def test_an_attribute_that_looks_like_names_does_not_bring_others_to_light(tmp_path: Path) -> None:
    array = zarr.create_array(
        N5Store(tmp_path / "c.n5"), name="a", shape=(2, 3), dtype="u1", dimension_names=["y", "x"]
    )
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    for _ in range(2):
        found = opened(tmp_path / "c.n5", "a")
        assert found.metadata.dimension_names == ("y", "x")  # type: ignore[union-attr]
        assert found.attrs.asdict() == {"_ARRAY_DIMENSIONS": ["y", "x"]}
    del opened(tmp_path / "c.n5", "a").attrs["_ARRAY_DIMENSIONS"]
    assert document(tmp_path / "c.n5", "a")["axes"] == ["x", "y"]
    assert "zarr" not in document(tmp_path / "c.n5", "a")


ODD: dict[str, Any] = {
    "dimensions": [1, 2],
    "blockSize": "big",
    "dataType": "uint8",
    "compression": {"type": "raw"},
    "compressionType": None,
    "n5": "9.9.9",
    "zarr": {"codecs": 5},
    "nan": math.nan,
    "deep": {"a/b": [1, math.inf, {"~": -math.inf}], "none": None},
    "big": 2**77,
    "": "empty",
    "é\u2028": "ü",
}


@pytest.mark.parametrize("kind", ["group", "array"])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_odd_attributes_come_back_and_hide_nothing(
    tmp_path: Path, kind: str, zarr_format: Any
) -> None:
    store = N5Store(tmp_path / "c.n5", zarr_format=zarr_format)
    how = {"attributes": ODD, "zarr_format": zarr_format}
    if kind == "group":
        zarr.create_group(store, path="a", **how)
    else:
        zarr.create_array(store, name="a", shape=(3,), dtype="u1", **how)
    again = N5Store(tmp_path / "c.n5", zarr_format=zarr_format)
    node = zarr.open(again, path="a", zarr_format=zarr_format)
    assert isinstance(node, zarr.Array) is (kind == "array")
    assert repr(node.attrs.asdict()) == repr({**node.attrs.asdict(), **ODD})
    assert node.attrs.asdict().keys() == ODD.keys()
    text = (tmp_path / "c.n5" / "a" / "attributes.json").read_text()
    json.loads(text, parse_constant=pytest.fail)  # z5py takes no bare NaN
    # what was put aside can be changed and removed like any other
    node.attrs["dimensions"] = 5
    del node.attrs["zarr"]
    node.attrs["nan"] = 1.5
    changed = zarr.open(N5Store(tmp_path / "c.n5", zarr_format=zarr_format), path="a").attrs
    assert changed.asdict()["dimensions"] == 5
    assert changed.asdict()["nan"] == 1.5
    assert "zarr" not in changed
    assert changed.keys() == ODD.keys() - {"zarr"}


def test_consolidated_metadata_is_made_anew_when_it_is_asked_for(tmp_path: Path) -> None:
    for zarr_format in (3, 2):
        path = tmp_path / f"{zarr_format}.n5"
        store = N5Store(path, zarr_format=zarr_format)
        group = zarr.create_group(store, zarr_format=zarr_format)
        group.create_array("a/b", shape=(4,), dtype="u2")
        with pytest.raises((ValueError, KeyError)):
            zarr.open_consolidated(store)
        if zarr_format == 3:
            with pytest.warns(UserWarning, match="onsolidated"):
                zarr.consolidate_metadata(store)
        else:
            zarr.consolidate_metadata(store)
        assert document(path) == {"n5": "4.0.0", "zarr": {"consolidated": True}}
        array = group["a/b"]
        assert isinstance(array, zarr.Array)
        array.append(np.arange(3, dtype="u2"))
        again = N5Store(path, zarr_format=zarr_format)
        found = zarr.open_consolidated(again)["a/b"]
        assert isinstance(found, zarr.Array)
        np.testing.assert_array_equal(found[:], [0, 0, 0, 0, 0, 1, 2])


# ---------------------------------------------------------------------- changing arrays


def test_overwriting_leaves_no_old_block(tmp_path: Path) -> None:
    store = N5Store(tmp_path / "c.n5")
    zarr.create_array(store, name="a", shape=(9,), chunks=(3,), dtype="u1")[:] = 1
    new = zarr.create_array(
        store, name="a", shape=(9,), chunks=(2,), dtype="f8", overwrite=True, fill_value=0.5
    )
    assert [p.name for p in (tmp_path / "c.n5" / "a").iterdir()] == ["attributes.json"]
    np.testing.assert_array_equal(new[:], [0.5] * 9)
    zarr.create_group(store, path="a", overwrite=True)
    assert document(tmp_path / "c.n5", "a") == {}


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"chunks": [[2, 3], [4, 3]]}, "regular grid"),
        ({"shape": (2**16, 2**16), "chunks": (2**16, 2**15), "dtype": "u1"}, "2147483647 bytes"),
        ({"name": "attributes.json"}, "reserves the name"),
    ],
)
def test_an_array_that_n5_cannot_hold_is_refused_before_any_write(
    root: Path, how: dict[str, Any], message: str
) -> None:
    before = contents(root)
    array: dict[str, Any] = {"name": "java", "shape": (5, 7), "dtype": "u2", "overwrite": False}
    array |= {"name": "new"} | how
    with (
        zarr.config.set({"array.rectilinear_chunks": True}),
        pytest.raises(N5UnrepresentableError, match=message),
    ):
        zarr.create_array(N5Store(root), **array)
    after = contents(root)
    assert after == before


def test_the_other_format_is_refused_by_name(root: Path) -> None:
    """A store that shows one Zarr format refuses the other, and the message names the option."""
    formats: list[tuple[Any, Any]] = [(3, 2), (2, 3)]
    for fixed, other in formats:
        with pytest.raises(N5UnrepresentableError, match=rf"N5Store\(.*, zarr_format={fixed}\)"):
            zarr.create_group(N5Store(root, zarr_format=fixed), path="x", zarr_format=other)
    assert sorted(p.name for p in root.iterdir()) == ["attributes.json", "java"]


# ---------------------------------------------------------------------- create_array and open


def test_an_array_is_created_with_all_that_n5_can_say(tmp_path: Path) -> None:
    values = np.arange(5 * 7 * 11, dtype="f4").reshape(5, 7, 11)
    for axis_order in ("C", "F"):
        path = tmp_path / f"{axis_order}.n5"

        def in_order(values: Any, axis_order: str = axis_order) -> Any:
            return values if axis_order == "C" else values[::-1]

        array = n5zarr.create_array(
            path / "em" / "s0", shape=in_order((5, 7, 11)), chunks=in_order((2, 3, 4)), dtype="f4",
            compression={"type": "blosc", "cname": "zstd"}, axes=in_order("zyx"),
            units=in_order(["um", "nm", "nm"]), resolution=in_order([0.1, 4, 5]),
            offset=in_order([1, 2, 3]), attributes={"name": "em"}, axis_order=axis_order,
        )  # fmt: skip
        array[...] = values if axis_order == "C" else values.T
        assert document(path, "em/s0") == {
            "dataType": "float32",
            "compression": {
                "type": "blosc", "cname": "zstd", "clevel": 6, "shuffle": 0, "blocksize": 0,
            },
            "blockSize": [4, 3, 2],
            "dimensions": [11, 7, 5],
            "name": "em",
            "transform": {
                "axes": ["z", "y", "x"], "scale": [0.1, 4, 5], "translate": [1, 2, 3],
                "units": ["um", "nm", "nm"],
            },
            "units": ["nm", "nm", "um"],
            "resolution": [5, 4, 0.1],
            "offset": [3, 2, 1],
            "axes": ["x", "y", "z"],
        }  # fmt: skip
        np.testing.assert_array_equal(opened(path, "em/s0")[:], values)


@other_types
@pytest.mark.parametrize("dtype", ["bool", "f2", "c8", "M8[s]", "S3", "U2", "i4,f8", str])
@pytest.mark.parametrize("shape", [(3, 5), ()])
def test_other_dtypes_are_created_too(tmp_path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    array = n5zarr.create_array(tmp_path / "c.n5", path="a", shape=shape, dtype=dtype)
    zeros = np.zeros(shape, array.dtype)
    array[...] = zeros
    assert document(tmp_path / "c.n5", "a")["compression"] == {
        "type": "gzip",
        "useZlib": False,
        "level": 6,
    }
    assert np.array_equal(opened(tmp_path / "c.n5", "a")[...], zeros)


def test_assumed_metadata_is_not_read(root: Path) -> None:
    array = n5zarr.open(root, "r+", path="java")
    assert isinstance(array, zarr.Array)
    array[:] = 5
    (root / "java" / "attributes.json").unlink()
    metadata: Any = {
        "dimensions": [11, 7, 5],
        "blockSize": [4, 3, 2],
        "dataType": "uint16",
        "compression": {"type": "gzip"},
    }
    found = n5zarr.open(root, path="java", assume_metadata=metadata)
    assert isinstance(found, zarr.Array)
    assert (np.asarray(found[...]) == 5).all()
    assert not (root / "java" / "attributes.json").exists()


@pytest.mark.parametrize("codecs", ["zarr", "n5", "portable"])
def test_a_mapping_has_the_keys_and_values_of_zarr_2(tmp_path: Path, codecs: Any) -> None:
    store = N5Store(tmp_path / "c.n5", codecs=codecs)
    array = zarr.create_array(store, name="g/a", shape=(5, 7), chunks=(3, 4), dtype="u2")
    array[:] = np.arange(35).reshape(5, 7)
    array.attrs["x"] = 1
    mapping = store.as_mapping()
    chunks = {f"g/a/{i}.{j}" for i in range(2) for j in range(2)}
    assert set(mapping) == {".zgroup", "g/.zgroup", "g/a/.zarray", "g/a/.zattrs"} | chunks
    assert len(mapping) == 8
    assert json.loads(mapping["g/a/.zattrs"]) == {"x": 1}
    with pytest.raises(KeyError):
        mapping["g/a/9.9"]
    # a mapping of the same keys elsewhere is the same array
    copy = N5Store(tmp_path / "copy.n5", codecs=codecs).as_mapping()
    copy.update(mapping)
    np.testing.assert_array_equal(opened(tmp_path / "copy.n5", "g/a")[:], array[:])
    if codecs != "n5":
        plain = MemoryStore()
        for key, value in mapping.items():
            plain._store_dict[key] = zarr.buffer.cpu.Buffer.from_bytes(value)
        np.testing.assert_array_equal(zarr.open_array(plain, path="g/a")[:], array[:])
    del copy["g/a/0.0"]
    with pytest.raises(KeyError):
        del copy["g/a/0.0"]
    assert opened(tmp_path / "copy.n5", "g/a")[0, 1] == 0


# ---------------------------------------------------------------------- other mixtures


@pytest.mark.parametrize("codecs", ["zarr", "portable"])
@pytest.mark.parametrize("how", [{"type": "gzip"}, {"type": "xz"}, {"type": "zstd"}])
def test_an_attribute_does_not_change_how_strings_of_java_are_read(
    root: Path, codecs: Any, how: Any
) -> None:
    (root / "text").mkdir()
    text = {"dimensions": [3], "blockSize": [2], "dataType": "string", "compression": how}
    (root / "text" / "attributes.json").write_text(json.dumps(text))
    for i, strings in enumerate((["a", "bb"], ["c"])):
        block = n5zarr.encode_block(np.array(strings, object), compression=how)
        (root / "text" / str(i)).write_bytes(block)
    array = opened(root, "text", codecs=codecs)
    array.attrs["new"] = 1
    assert document(root, "text") == text | {"new": 1}
    assert opened(root, "text")[:].tolist() == ["a", "bb", "c"]  # type: ignore[union-attr]
    array[1:] = ["x", ""]
    assert opened(root, "text", codecs=codecs)[:].tolist() == ["a", "x", ""]  # type: ignore[union-attr]


@pytest.mark.each_of(5)
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("axis_order", ["C", "F"])
@pytest.mark.parametrize("codecs", ["zarr", "n5", "portable"])
@pytest.mark.parametrize("fill_value", [0, 7])
def test_writing_through_every_presentation_is_the_same(
    tmp_path: Path, zarr_format: Any, axis_order: Any, codecs: Any, fill_value: int
) -> None:
    values = np.arange(35, dtype="i4").reshape(7, 5)
    made = N5Store(tmp_path / "c.n5", axis_order=axis_order)
    n5zarr.create_array(
        made, path="a", shape=(7, 5), chunks=(3, 2), dtype="i4", fill_value=fill_value
    )
    how = {"zarr_format": zarr_format, "axis_order": axis_order, "codecs": codecs}
    array = zarr.open_array(N5Store(tmp_path / "c.n5", **how), path="a")
    array[...] = values
    np.testing.assert_array_equal(opened(tmp_path / "c.n5", "a", axis_order=axis_order), values)
    array.resize((8, 6))
    expected = np.full((8, 6), fill_value)
    expected[:7, :5] = values
    for found in (array, opened(tmp_path / "c.n5", "a", axis_order=axis_order)):
        np.testing.assert_array_equal(found[...], expected)


@other_types
@pytest.mark.parametrize("values", [[True, False], [0j, 1j], ["", "b"], [0.0, 1.5]])
def test_xarray_masks_no_default_in_format_2(tmp_path: Path, values: list[Any]) -> None:
    dataset = xr.Dataset({"v": ("x", values)})
    dataset.to_zarr(N5Store(tmp_path / "c.n5", zarr_format=2), zarr_format=2)
    found = xr.open_zarr(N5Store(tmp_path / "c.n5", zarr_format=2))["v"]
    assert found.values.tolist() == values


def test_nodes_that_others_have_removed_are_made_anew(tmp_path: Path) -> None:
    group = zarr.create_group(N5Store(tmp_path / "c.n5"))
    for _ in range(2):
        array = group.create_array("a", shape=(3,), dtype="u1", attributes={"k": 1}, overwrite=True)
        array[:] = 1
        group.create_group("g", attributes={"k": 1}, overwrite=True)
        assert zarr.open_group(N5Store(tmp_path / "c.n5"))["g"].attrs.asdict() == {"k": 1}
        assert opened(tmp_path / "c.n5", "a").attrs.asdict() == {"k": 1}
        np.testing.assert_array_equal(opened(tmp_path / "c.n5", "a")[:], [1, 1, 1])
        shutil.rmtree(tmp_path / "c.n5" / "a")
        shutil.rmtree(tmp_path / "c.n5" / "g")


def test_the_wrapped_store_writes_if_the_given_one_does(tmp_path: Path) -> None:
    store = N5Store(LocalStore(tmp_path / "c.n5"))
    asyncio.run(store.store.set("README.md", cpu.Buffer.from_bytes(b"about")))
    assert (tmp_path / "c.n5" / "README.md").read_bytes() == b"about"
    assert store.with_read_only(read_only=False).store == store.store
    assert not store.store.read_only
    for other in (LocalStore(tmp_path / "c.n5", read_only=True), tmp_path / "c.n5"):
        assert N5Store(other).store.read_only


def test_a_name_that_looks_unfinished_is_a_name(tmp_path: Path) -> None:
    group = zarr.create_group(N5Store(tmp_path / "c.n5"))
    group.create_group("x.partial")
    assert list(group.keys()) == ["x.partial"]


def test_an_assumed_dataset_is_whole_when_it_is_written(root: Path) -> None:
    metadata: Any = {
        "dimensions": [3], "blockSize": [2], "dataType": "uint8", "compression": {"type": "raw"},
    }  # fmt: skip
    store = N5Store(root)
    array = n5zarr.open(store, "r+", path="new", assume_metadata=metadata)
    assert isinstance(array, zarr.Array)
    assert zarr.open_group(store).get("new") is None  # the store that was given knows nothing of it
    array.attrs["x"] = 1
    assert document(root, "new") == metadata | {"x": 1}


def test_text_can_be_compressed_with_lz4(tmp_path: Path) -> None:
    array = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(3,), chunks=(2,), dtype=str, compression={"type": "lz4"}
    )
    array[:] = ["a", "b" * 500, ""]
    assert opened(tmp_path / "c.n5", "a")[:].tolist() == ["a", "b" * 500, ""]  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", ["bool", "f2"])
@pytest.mark.parametrize("how", ["create_array", "format 2", "to_n5", "convert", "to zarr"])
def test_a_compression_that_zarr_lacks_is_never_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, dtype: str
) -> None:
    """Zarr encodes such arrays, so that the blocks would be raw; native types have blocks of N5."""
    monkeypatch.setattr(Bzip2Codec, "numcodec", lambda self, compression: None)
    values = np.zeros((5, 7), dtype)
    asked: dict[str, Any] = {"compression": "bzip2"}
    out = tmp_path / ("out.zarr" if how == "to zarr" else "out.n5")

    def make() -> None:
        if how == "to_n5":
            n5zarr.to_n5(xr.Dataset({"a": (("y", "x"), values)}), out, **asked)
        elif how in ("convert", "to zarr"):
            zarr.create_array(tmp_path / "in.zarr", data=values, overwrite=True)
            n5zarr.convert(tmp_path / "in.zarr", out, **asked)
        else:
            store = N5Store(out, zarr_format=2 if how == "format 2" else None)
            n5zarr.create_array(store, path="a", data=values, **asked)

    with pytest.raises(N5UnsupportedError, match="expected one that Zarr has, got bzip2"):
        make()
    assert not list(tmp_path.glob("out*/**/0"))
    if how not in ("format 2", "to zarr"):
        values = np.zeros((5, 7), "u2")
        make()
        documents = [json.loads(each.read_text()) for each in out.rglob("attributes.json")]
        assert [d["compression"]["type"] for d in documents if "compression" in d] == ["bzip2"]


def test_a_changed_sign_of_zero_is_a_change(tmp_path: Path) -> None:
    group = zarr.create_group(N5Store(tmp_path / "c.n5"), attributes={"a": 0.0, "b": 1})
    group.attrs["a"] = -0.0
    group.attrs["b"] = 1.0
    assert (tmp_path / "c.n5" / "attributes.json").read_text()[14:] == '"a":-0.0,"b":1.0}'


STOPPING: dict[str, list[Any]] = {
    "resolution": [
        -1.0, "4 nm", None, [1, None], [1.0, math.inf], {"x": 1}, True, [True, 2], [1, 2, 3, 4],
    ],
    "units": ["m", None, ["m", 1], [], ["m"] * 4],
    "axes": [
        "zy", "xxy", "ZYX", "T Y", [{"name": "z"}, {"name": "y"}, {"name": "x"}], ["x", "x", "y"],
        ["x"],
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", STOPPING)
def test_no_attribute_makes_tensorstore_refuse_a_dataset(tmp_path: Path, name: str) -> None:
    data = np.arange(5 * 7 * 11, dtype="u2").reshape(5, 7, 11)
    n5zarr.create_array(tmp_path / "c.n5", path="a", shape=data.shape, chunks=(2, 3, 4), dtype="u2")
    array: Any = opened(tmp_path / "c.n5", "a")
    array[...] = data
    for value in STOPPING[name]:
        array.attrs[name] = value
        np.testing.assert_array_equal(by_tensorstore(tmp_path / "c.n5" / "a"), data)
        assert opened(tmp_path / "c.n5", "a").attrs.asdict() == {name: value}
        assert name not in document(tmp_path / "c.n5", "a")
    fitting = [1.5, 2, 3] if name == "resolution" else ["z", "y", "x"]
    # what another tool writes under this name is newer
    theirs = document(tmp_path / "c.n5", "a") | {name: fitting}
    (tmp_path / "c.n5" / "a" / "attributes.json").write_text(json.dumps(theirs))
    if name != "axes":  # which is shown as names
        assert opened(tmp_path / "c.n5", "a").attrs.asdict() == {name: fitting}
    opened(tmp_path / "c.n5", "a").attrs[name] = fitting
    assert document(tmp_path / "c.n5", "a")[name] == fitting
    assert by_tensorstore(tmp_path / "c.n5" / "a").shape == (5, 7, 11)
    del opened(tmp_path / "c.n5", "a").attrs[name]
    assert "zarr" not in document(tmp_path / "c.n5", "a")
    assert opened(tmp_path / "c.n5", "a").attrs.asdict() == {}


def write_with(root: Path, how: str, attributes: dict[str, Any]) -> None:
    """Write the dataset ``a`` of rank 4 with attributes, in one of the ways to write them."""
    like: dict[str, Any] = {"shape": (2, 3, 5, 7), "dtype": "u1"}
    match how:
        case "create_array":
            n5zarr.create_array(root, path="a", **like, attributes=attributes)
        case "to_n5":
            positions = {
                dim: np.arange(n) * 2.0 for dim, n in zip("czyx", (2, 3, 5, 7), strict=True)
            }
            variable = (tuple("czyx"), np.ones(like["shape"], "u1"), attributes)
            n5zarr.to_n5(xr.Dataset({"a": variable}, coords=positions), root)
        case "convert":
            reversed_in_zarr = {k: v[::-1] for k, v in attributes.items()}
            zarr.create_array(
                root.with_suffix(".zarr"), name="a", **like, attributes=reversed_in_zarr
            )
            n5zarr.convert(root.with_suffix(".zarr"), root)
        case "set_attribute" | "attrs":
            array = n5zarr.create_array(root, path="a", **like)
            for key, value in attributes.items():
                if how == "attrs":
                    array.attrs[key] = value
                else:
                    n5zarr.set_attribute(array.store, "a", key, value)
        case _:
            zarr_format: Any = int(how[-1])
            store = N5Store(root, zarr_format=zarr_format)
            array = zarr.create_array(store, name="a", **like, zarr_format=zarr_format)
            array.attrs.update(attributes)


@pytest.mark.each_of(2)
@pytest.mark.parametrize(
    "how", ["zarr 3", "zarr 2", "attrs", "set_attribute", "create_array", "to_n5", "convert"]
)
@pytest.mark.parametrize(
    "attributes",
    [{"resolution": [4, 4, 40]}, {"resolution": [2.5], "units": ["nm", "um"]}, {"axes": "cxyt"}],
    ids=str,
)
def test_lists_of_the_axes_of_space_and_letters_stay_where_others_read_them(
    tmp_path: Path, how: str, attributes: dict[str, Any]
) -> None:
    """gunpowder, LSD and CNNectome write shorter lists, ilastik ``axes`` as text."""
    root = tmp_path / "c.n5"
    with pytest.warns(N5Warning, match="c.n5: a: tensorstore refuses this dataset") as caught:
        write_with(root, how, {**attributes, "note": [1]})
    assert len(caught) == 1
    stored = document(root, "a")
    assert {key: stored.get(key) for key in attributes} == attributes
    assert "attributes" not in stored.get("zarr", {})
    assert {**z5py.File(str(root), "r")["a"].attrs}.items() >= attributes.items()
    with pytest.raises(ValueError, match=r'Error parsing object member "(axes|resolution|units)"'):
        tensorstore.open(spec_of(root / "a"), read=True).result()
    # what stands there stays, without another word
    for value in ([2], 3):
        opened(root, "a").attrs["note"] = value
    assert {key: document(root, "a")[key] for key in attributes} == attributes
    for key in attributes:
        del opened(root, "a").attrs[key]
    # the names of axes that `to_n5` gives take the place of the text
    assert not document(root, "a").items() >= attributes.items()


def test_what_others_wrote_and_what_the_record_has_stays_until_it_is_set_anew(
    tmp_path: Path,
) -> None:
    """A document of Java keeps what tensorstore refuses; an older one its record."""
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="a", shape=(2, 3, 5), dtype="u1")
    theirs = {"units": "m", "resolution": -1.0, "axes": "ZYX"}
    lists = {"resolution": [4, 40], "units": ["nm", "um"]}
    for plain, recorded in ((theirs, {}), ({}, lists)):
        more = {"zarr": {"attributes": recorded}} if recorded else {}
        file = root / "a" / "attributes.json"
        keys = {k: v for k, v in document(root, "a").items() if k in N5_KEYS}
        file.write_text(json.dumps(keys | plain | more))
        assert opened(root, "a").attrs.asdict() == plain | recorded
        opened(root, "a").attrs["note"] = 1
        assert document(root, "a") == keys | plain | more | {"note": 1}
    assert n5zarr.geometry(root, "a").scale == (1, 40, 4)
    array = opened(root, "a")
    del array.attrs["resolution"]
    with pytest.warns(N5Warning, match="tensorstore"):
        array.attrs["resolution"] = [4, 40]
    assert document(root, "a")["resolution"] == [4, 40]
    assert document(root, "a")["zarr"] == {"attributes": {"units": ["nm", "um"]}}


@other_types
@pytest.mark.parametrize("dtype", ["c8", "S3", "U2"])
def test_lists_for_all_axes_of_elements_with_parts_go_into_the_record(
    tmp_path: Path, dtype: str
) -> None:
    """The dataset has one axis more than the array: others would take the list for other axes."""
    root = tmp_path / "c.n5"
    given: dict[str, Any] = {"resolution": [1, 2, 3], "axes": "zyx"}
    n5zarr.create_array(root, path="a", shape=(2, 3, 5), dtype=dtype, attributes=given)
    assert not document(root, "a").keys() & given.keys()
    assert opened(root, "a").attrs.asdict() == given
    tensorstore.open(spec_of(root / "a"), read=True).result()


@pytest.mark.parametrize("order", [(".zattrs", ".zarray"), (".zarray", ".zattrs")])
@pytest.mark.parametrize(
    ("given", "is_plain"),
    [
        ({"units": "K"}, False),
        ({"resolution": -1.0}, False),
        ({"axes": "hello"}, False),
        ({"resolution": [True, False, True]}, False),
        ({"resolution": [4.0, 40.0]}, True),
    ],
)
def test_attributes_that_zarr_v2_writes_before_the_array_are_in_the_same_place(
    tmp_path: Path, given: dict[str, Any], is_plain: bool, order: tuple[str, str]
) -> None:
    """It writes both documents of a new array at the same time."""
    memory, store = MemoryStore(), N5Store(tmp_path / "c.n5", zarr_format=2)
    zarr.create_array(
        memory, name="a", shape=(2, 3, 5), dtype="u1", zarr_format=2, attributes=given
    )

    async def copy() -> None:
        for name in order:
            await store.set(f"a/{name}", memory._store_dict[f"a/{name}"])

    warns: Any = pytest.warns(N5Warning, match="tensorstore") if is_plain else nullcontext()
    with warns:
        asyncio.run(copy())
    assert (given.keys() <= document(tmp_path / "c.n5", "a").keys()) is is_plain
    assert zarr.open_array(store, path="a").attrs.asdict() == given


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_tensorstore_opens_all_variables_that_xarray_writes(
    tmp_path: Path, zarr_format: Any
) -> None:
    """Attributes of CF are single texts and numbers."""
    days = np.array(["2026-01-01", "2026-01-02"], "M8[ns]")
    of_air = {
        "units": "K", "standard_name": "air_temperature", "resolution": "0.25 degree",
        "axes": "T Z Y X", "valid_range": [150.0, 350.0], "missing_value": -999.0,
    }  # fmt: skip
    data = xr.Dataset(
        {
            "air": (("time", "lat", "lon"), np.ones((2, 3, 5), "f4"), of_air),
            "p": (("lat",), np.ones(3), {"units": "Pa", "resolution": -1.0, "axes": 1}),
            "flag": (("lat", "lon"), np.ones((3, 5), "i2"), {"units": "1", "resolution": 30}),
            "crs": ((), np.int32(0), {"units": "", "grid_mapping_name": "latitude_longitude"}),
        },
        coords={
            "time": days,
            "lat": ("lat", [1.0, 2, 3], {"units": "degrees_north", "axis": "Y"}),
            "lon": ("lon", np.arange(5.0), {"units": "degrees_east", "axis": "X"}),
        },
        attrs={"units": "K", "resolution": [1, 2]},
    )
    data.to_zarr(N5Store(tmp_path / "c.n5"), zarr_format=zarr_format, consolidated=False)
    n5zarr.to_n5(data, tmp_path / "d.n5")
    for root, names in (("c.n5", {*data.variables}), ("d.n5", {*data.data_vars})):
        written = {p.parent.name for p in (tmp_path / root).rglob("*/attributes.json")}
        assert written >= names
        for name in written:
            by_tensorstore(tmp_path / root / name)
    again = xr.open_zarr(N5Store(tmp_path / "c.n5"), zarr_format=zarr_format, consolidated=False)
    assert again["air"].attrs.items() >= {"units": "K", "resolution": "0.25 degree"}.items()


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_group_that_is_a_dataset_by_now_changes_attributes_only(
    tmp_path: Path, zarr_format: Any
) -> None:
    root = tmp_path / "c.n5"
    parent = zarr.open_group(
        N5Store(root, zarr_format=zarr_format), mode="w", zarr_format=zarr_format
    )
    group = parent.create_group("d", attributes={"old": 1})
    n5zarr.create_array(root, path="d", shape=(5, 7), chunks=(2, 3), dtype="u2", overwrite=True)[
        :
    ] = 3
    before = document(root, "d")
    group.attrs["x"] = 1
    assert document(root, "d") == {**before, "x": 1}
    del group.attrs["x"]
    assert document(root, "d") == before
    np.testing.assert_array_equal(opened(root, "d")[:], np.full((5, 7), 3))


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_keys_of_datasets_on_groups_are_plain_unless_they_would_make_one(
    tmp_path: Path, zarr_format: Any
) -> None:
    root = tmp_path / "c.n5"
    store = N5Store(root, zarr_format=zarr_format)
    group = zarr.create_group(store, path="setup0", zarr_format=zarr_format)
    attributes: dict[str, Any] = {
        "dataType": "uint16", "n5": "mine", "compression": {"type": "raw"}, "codecs": [1],
    }  # fmt: skip
    group.attrs.update(attributes)
    assert document(root, "setup0") == attributes
    group.attrs["dimensions"] = [5]
    assert document(root, "setup0") == {**attributes, "zarr": {"attributes": {"dimensions": [5]}}}
    again = zarr.open(N5Store(root, zarr_format=zarr_format), path="setup0", mode="r+")
    assert isinstance(again, zarr.Group)
    assert again.attrs.asdict() == {**attributes, "dimensions": [5]}
    del again.attrs["compression"]
    del again.attrs["codecs"]
    again.attrs["dimensions"] = [7]  # which makes no dataset now
    assert document(root, "setup0") == {"dataType": "uint16", "n5": "mine", "dimensions": [7]}


@pytest.mark.parametrize("how", ["n5zarr.open", "n5", "zarr"])
@pytest.mark.parametrize(
    ("shape", "chunks", "dtype"),
    [((101,), (10,), "f4"), ((7, 5), (3, 2), "u2"), ((11,), (4,), "i2")],
)
def test_a_replaced_array_is_not_written_by_who_holds_the_old_one(
    tmp_path: Path, how: Any, shape: Any, chunks: Any, dtype: Any
) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="d", shape=(9,), chunks=(4,), dtype="u2", fill_value=7)
    old: Any = (
        n5zarr.open(root, mode="r+", path="d")
        if how == "n5zarr.open"
        else zarr.open_array(N5Store(root, codecs=how), path="d", mode="r+")
    )
    old[:] = 1
    new: Any = n5zarr.create_array(
        root, path="d", shape=shape, chunks=chunks, dtype=dtype, overwrite=True
    )
    new[:] = 3
    before = contents(root)
    uses: tuple[Callable[[], Any], ...] = (
        lambda: old.resize((8,)),
        lambda: old.__setitem__(slice(None), 5),
        lambda: old.__setitem__(slice(0, 4), 5),
        lambda: old.__setitem__(slice(1, 3), 5),
        lambda: old.oindex.__setitem__([0, 5], 5),
        lambda: old[:],
        lambda: old[5],
        lambda: old.oindex[[0, 5]],
    )
    for change in uses:
        with pytest.raises(N5Error) as caught:
            change()
        assert caught.value.kind == "changed"
    assert contents(root) == before
    again: Any = n5zarr.open(root, mode="r+", path="d")
    again[:] = 4
    np.testing.assert_array_equal(opened(root, "d")[:], np.full(shape, 4))


def test_a_version_below_the_root_is_shown_if_zarr_wrote_it(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    group = zarr.create_group(N5Store(root), path="g")
    group.attrs["n5"] = "4.0.0"
    again = zarr.open_group(N5Store(root), path="g", mode="r+")
    assert again.attrs.asdict() == {"n5": "4.0.0"}
    del again.attrs["n5"]
    assert document(root, "g") == {}
    (root / "g/attributes.json").write_text('{"n5":"2.5.1"}')  # as Paintera does
    assert zarr.open_group(N5Store(root), path="g", mode="r").attrs.asdict() == {}


def test_the_version_of_a_container_is_no_attribute(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    group = zarr.create_group(N5Store(root))
    group.attrs["n5"] = "mine"
    assert document(root) == {"n5": "4.0.0", "zarr": {"attributes": {"n5": "mine"}}}
    assert zarr.open_group(N5Store(root), mode="r").attrs.asdict() == {"n5": "mine"}
    group.attrs["n5"] = "2.5.1"  # which Java wrote
    assert document(root) == {"n5": "2.5.1"}


def test_empty_directories_below_the_root_are_groups(tmp_path: Path) -> None:
    """Empty directories below the root are groups, as Java and z5py create them."""
    root = tmp_path / "c.n5"
    z5py.File(str(root), "a").create_group("a/b")
    (root / "c/d").mkdir(parents=True)
    members = dict(zarr.open_group(N5Store(root), mode="r").members(max_depth=None))
    assert sorted(members) == ["a", "a/b", "c", "c/d"]
    assert all(isinstance(member, zarr.Group) for member in members.values())
    (tmp_path / "empty.n5").mkdir()
    with pytest.raises(FileNotFoundError):
        zarr.open(N5Store(tmp_path / "empty.n5"), mode="r")
    zarr.create_group(N5Store(tmp_path / "empty.n5"))  # a new container


def test_only_parameters_that_every_reader_takes_are_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    values = np.arange(35, dtype="u2").reshape(5, 7)
    written: dict[str, tuple[Any, dict[str, int]]] = {
        "low": ({"type": "zstd", "level": -200_000}, {"level": -131_072}),
        "high": ({"type": "zstd", "level": 100}, {"level": 22}),
        "auto": ({"type": "blosc", "shuffle": -1}, {"shuffle": 1}),
    }
    root = tmp_path / "c.n5"
    for name, (given, expected) in written.items():
        n5zarr.create_array(root, path=name, data=values, chunks=(3, 4), compression=given)
        assert document(root, name)["compression"].items() >= expected.items()
        np.testing.assert_array_equal(by_tensorstore(root / name), values)
    # what zarr-python 2 has written is written on
    path = root / "auto" / "attributes.json"
    path.write_text(path.read_text().replace('"shuffle":1', '"shuffle":-1'))
    for array in (
        n5zarr.open(root, mode="r+", path="auto"),
        zarr.open_array(N5Store(root), path="auto", mode="r+"),
    ):
        array[:] = values + 1  # type: ignore[index]
        np.testing.assert_array_equal(opened(root, "auto")[:], values + 1)
        assert document(root, "auto")["compression"]["shuffle"] == -1
    assert capfd.readouterr() == ("", "")


def test_a_dataset_whose_type_another_program_has_changed_has_that_type(tmp_path: Path) -> None:
    """The record of complex numbers is of the former elements, and is ignored."""
    array: Any = zarr.create_array(
        N5Store(tmp_path / "c.n5"), name="a", shape=(7, 5), chunks=(3, 2), dtype="c8"
    )
    array[...] = 1 + 2j
    file = tmp_path / "c.n5/a/attributes.json"
    document = json.loads(file.read_text())
    shutil.rmtree(tmp_path / "c.n5/a")
    n5zarr.create_array(tmp_path / "c.n5", path="a", data=np.full((7, 5), 9, "u2"), chunks=(3, 2))
    document |= {k: v for k, v in json.loads(file.read_text()).items() if k != "zarr"}
    file.write_text(json.dumps(document))
    with pytest.warns(N5Warning, match="record ignored: another tool has changed the elements"):
        changed: Any = n5zarr.open_array(tmp_path / "c.n5", path="a")
    assert (changed.shape, changed.dtype) == ((7, 5), np.dtype("u2"))
    np.testing.assert_array_equal(changed[...], np.full((7, 5), 9))
