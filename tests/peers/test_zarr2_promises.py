"""Promises in the tests of zarr-python 2.18 about its N5Store hold, or are replaced.

Where this store does something else, the test says why. zarr 2 refused what N5 has no key for
(filters, ``order="F"``, fill values, structs, text); here the record keeps it.
"""

from __future__ import annotations

import importlib
import json
import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store, encode_block
from n5zarr.errors import N5Error

numcodecs: Any = importlib.import_module("numcodecs")
zarr_numcodecs: Any = importlib.import_module("zarr.codecs.numcodecs")
ZarrFormat = Literal[2, 3]
TYPES = [*(f"{kind}{n}" for kind in "ui" for n in (1, 2, 4, 8)), "f2", "f4", "f8"]
RESERVED = ["n5", "dataType", "dimensions", "blockSize", "compression"]

# zarr 3 warns of types without a specification, numpy of times without a unit
UNSTABLE = "The data type .* does not have a Zarr V3 specification"
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{UNSTABLE}:zarr.errors.UnstableSpecificationWarning"),
    pytest.mark.filterwarnings("ignore:The 'generic' unit for NumPy:DeprecationWarning"),
]


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.n5"


def create(path: Path, zarr_format: ZarrFormat, name: str = "a", **options: Any) -> Any:
    wanted: dict[str, Any] = {"shape": 1000, "chunks": 100, "dtype": "i4"} | options
    return zarr.create_array(N5Store(path), name=name, zarr_format=zarr_format, **wanted)


def reopened(path: Path, name: str = "a") -> Any:
    return zarr.open_array(N5Store(path), path=name, mode="r+")


def by_the_fast_way(path: Path, name: str = "a") -> Any:
    return n5zarr.open_array(path / name)[...]


def document(path: Path, name: str = "a") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / name / "attributes.json").read_text())
    return found


# ---------------------------------------------------------------------- the store


def test_stores_of_one_path_are_equal(path: Path) -> None:
    assert N5Store(path) == N5Store(path)
    assert N5Store(path) != N5Store(path.with_name("d.n5"))
    assert pickle.loads(pickle.dumps(N5Store(path))) == N5Store(path)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_new_array_has_the_keys_of_n5(path: Path, zarr_format: ZarrFormat, name: str) -> None:
    """A new array has N5's own keys, and the root states the version."""
    create(path, zarr_format, name)
    found = document(path, name)
    assert (found["dimensions"], found["blockSize"], found["dataType"]) == ([1000], [100], "int32")
    assert "n5" in document(path, "")
    array = reopened(path, name)
    assert (array.shape, array.chunks, array.dtype) == ((1000,), (100,), np.dtype("i4"))
    assert array.metadata.zarr_format == zarr_format
    assert not array[...].any()  # N5 has the fill value 0
    if name:
        assert isinstance(zarr.open(N5Store(path), path="a", mode="r"), zarr.Group)


@pytest.mark.parametrize("kind", ["array", "group"])
def test_an_existing_node_is_only_replaced_with_overwrite(
    path: Path, zarr_format: ZarrFormat, kind: str
) -> None:
    create(path, zarr_format, shape=2000)[...] = 1
    with pytest.raises(zarr.errors.ContainsArrayError):
        create(path, zarr_format)
    root = zarr.open_group(N5Store(path))
    with pytest.raises(zarr.errors.ContainsArrayError):
        root.create_group("a")
    if kind == "array":
        create(path, zarr_format, overwrite=True)
        assert reopened(path).shape == (1000,)
        assert not reopened(path)[...].any()
    else:
        root.create_group("a", overwrite=True)
        assert isinstance(zarr.open(N5Store(path), path="a", mode="r"), zarr.Group)
    assert not (path / "a/0").exists()


async def test_deleting_the_document_of_an_array_deletes_it(path: Path) -> None:
    """Deleting the document of an array deletes it, and deleting .zattrs only the attributes."""
    create(path, 2, attributes={"k": 1})
    store = N5Store(path)
    await store.delete("a/.zattrs")
    assert document(path)["dimensions"] == [1000]
    assert dict(reopened(path).attrs) == {}
    await store.delete("a/.zarray")
    assert not await N5Store(path).exists("a/.zarray")


def test_blocks_are_nested_in_reversed_order(path: Path, zarr_format: ZarrFormat) -> None:
    array = create(path, zarr_format, shape=(11, 22, 33), chunks=(1, 1, 1), dtype="u1")
    array[10, 20, 30] = 5
    assert (path / "a/30/20/10").exists()
    assert not (path / "a/10").exists()
    reopened(path)[10, 20, 30] = 0
    assert not (path / "a/30/20/10").exists()


async def test_chunks_without_an_array_are_refused(path: Path) -> None:
    """Chunks without an array are refused, which zarr 2 stored under any key."""
    buffer = zarr.buffer.cpu.Buffer.from_bytes(b"xxx")
    for key in ("0.0", "foo/10.20.30", "42"):
        with pytest.raises(N5Error):
            await N5Store(path).set(key, buffer)


async def test_names_of_chunks(path: Path) -> None:
    """Names of chunks in Zarr v2 have dots, also in lists."""
    create(path, 2, shape=(4, 4), chunks=(2, 2))[...] = 1
    listed = {key async for key in N5Store(path).list_dir("a")}
    assert listed == {".zarray", "0.0", "0.1", "1.0", "1.1"}
    assert reopened(path).metadata.dimension_separator == "."
    slashes = {"name": "v2", "separator": "/"}
    create(path, 2, "b", shape=(4, 4), chunks=(2, 2), chunk_key_encoding=slashes)[...] = 1
    assert (path / "b/1/0").exists()
    assert (reopened(path, "b")[...] == 1).all()


def test_a_path_with_the_suffix_is_no_reason_to_write_n5(path: Path) -> None:
    """A path with the suffix `.n5` is written as N5 only through n5zarr, unlike in zarr 2."""
    with pytest.raises(FileNotFoundError):
        zarr.open_array(path, mode="r")
    root: Any = n5zarr.open(path, mode="w")
    root.create_array("a", shape=100, chunks=10, dtype="f8")[...] = 42
    assert (by_the_fast_way(path) == 42).all()


def test_a_group_whose_document_is_empty(path: Path, zarr_format: ZarrFormat) -> None:
    root = zarr.create_group(N5Store(path), zarr_format=zarr_format)
    root.create_group("inner").create_array("array", shape=100, chunks=10, dtype="f8")[...] = 42
    (path / "inner/attributes.json").write_text("{}")
    again: Any = zarr.open_group(N5Store(path), mode="r")["inner/array"]
    assert (again.shape, again.chunks) == ((100,), (10,))
    assert (again[...] == 42).all()


def test_attributes_of_groups(path: Path, zarr_format: ZarrFormat) -> None:
    zarr.create_group(N5Store(path), zarr_format=zarr_format, attributes={"foo": "bar"})
    root = zarr.open_group(N5Store(path))
    assert dict(root.attrs) == {"foo": "bar"}
    assert root.metadata.zarr_format == zarr_format
    assert document(path, "")["foo"] == "bar"


# ---------------------------------------------------------------------- arrays


def test_without_dimensions(path: Path, zarr_format: ZarrFormat) -> None:
    array = create(path, zarr_format, shape=(), chunks=(), dtype="f8")
    assert (array.ndim, array.shape, array.chunks, array.nchunks) == (0, (), (), 1)
    with pytest.raises(TypeError):
        len(array)
    for value in (42, 43):
        array[...] = value
        assert reopened(path)[()] == reopened(path)[...] == value
    for selection in (0, slice(None)):
        with pytest.raises(IndexError):
            array[selection]
        with pytest.raises(IndexError):
            array[selection] = 42
    with pytest.raises(ValueError, match="sequence"):
        array[...] = np.array([1, 2, 3])


@pytest.mark.parametrize("fill_value", [0, None, 1])
def test_fill_values(path: Path, zarr_format: ZarrFormat, fill_value: int | None) -> None:
    """Any fill value is kept in the record, of which zarr 2 refused all but 0."""
    values = np.full(1050, fill_value or 0, "i4")
    values[190:310] = np.arange(190, 310)
    create(path, zarr_format, shape=1050, fill_value=fill_value)[190:310] = values[190:310]
    np.testing.assert_array_equal(reopened(path)[...], values)
    assert document(path).get("zarr", {}).get("fill_value") == (fill_value or None)


@pytest.mark.parametrize("keep_empty", [False, True])
def test_chunks_are_counted(path: Path, zarr_format: ZarrFormat, keep_empty: bool) -> None:
    array = create(path, zarr_format, shape=100, chunks=10)
    array = array.with_config({"write_empty_chunks": keep_empty})
    assert array.nchunks_initialized == 0
    (path / "a/foo").write_text("bar")
    assert array.nchunks_initialized == 0
    array[...] = 42
    assert array.nchunks_initialized == 10
    (path / "a/0").unlink()
    assert array.nchunks_initialized == 9
    array[...] = 0
    assert array.nchunks_initialized == (10 if keep_empty else 0)


@pytest.mark.parametrize("shape", [(1050,), (100, 100)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_order(path: Path, shape: tuple[int, ...], order: Literal["C", "F"]) -> None:
    """The order F is kept in the record, which zarr 2 refused; the blocks are the same."""
    values = np.arange(np.prod(shape)).reshape(shape)
    options: Any = {"shape": shape, "chunks": (10,) * len(shape), "dtype": values.dtype}
    create(path, 2, order=order, **options)[...] = values
    create(path, 2, "c", compressors=None, **options)[...] = values
    assert reopened(path).metadata.order == order
    np.testing.assert_array_equal(reopened(path)[...], values)
    np.testing.assert_array_equal(by_the_fast_way(path), values)


STRUCTS = [
    np.array([(b"aaa", 1, 4.2), (b"bbb", 2, 8.4)], [("foo", "S3"), ("bar", "i4"), ("baz", "f8")]),
    np.array(
        [(0, ((0, 1), 1)), (1, ((1, 2), 2))],
        [("foo", "i8"), ("bar", [("a", [("x", "f4"), ("y", "f4")]), ("b", "u1")])],
    ),
]


@pytest.mark.parametrize("values", STRUCTS, ids=["flat", "nested"])
def test_structs(path: Path, zarr_format: ZarrFormat, values: np.ndarray) -> None:
    """Structs are stored as bytes on a fastest axis, where zarr 2 raised TypeError."""
    create(path, zarr_format, shape=2, chunks=2, dtype=values.dtype)[...] = values
    np.testing.assert_array_equal(reopened(path)[...], values)
    assert document(path)["dataType"] == "uint8"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_types(path: Path, zarr_format: ZarrFormat, dtype: str, byte_order: str) -> None:
    """Types are kept, and new arrays of float16 are stored as float32, a type of N5."""
    values = np.linspace(0, 100, 10).astype(byte_order + dtype)
    create(path, zarr_format, shape=10, chunks=3, dtype=values.dtype)[...] = values
    np.testing.assert_array_equal(reopened(path)[...], values)
    if zarr_format == 2:  # v3 has the byte order in its codecs
        assert reopened(path).dtype == values.dtype
    kept = "float32" if dtype == "f2" else np.dtype(dtype).name
    assert document(path)["dataType"] == kept


@pytest.mark.parametrize("dtype", ["M8", "m8"])
def test_times_without_a_unit(path: Path, zarr_format: ZarrFormat, dtype: str) -> None:
    """Times without a unit are kept, which zarr 2 refused."""
    values = np.array([1, 2, 3], "i8").view(dtype)
    create(path, zarr_format, shape=3, chunks=2, dtype=values.dtype)[...] = values
    np.testing.assert_array_equal(reopened(path)[...].view("i8"), [1, 2, 3])


def test_objects(path: Path, zarr_format: ZarrFormat) -> None:
    """Objects without a type are refused, and text is stored as N5's strings."""
    with pytest.raises(ValueError, match="Object"):
        create(path, zarr_format, shape=3, dtype=object)
    values = np.array(["", "¡Hola mundo!", "世界"], dtype="T")
    create(path, zarr_format, "t", shape=3, chunks=2, dtype=str)[...] = values
    assert reopened(path, "t")[...].tolist() == values.tolist()
    assert document(path, "t")["dataType"] == "string"


@pytest.mark.parametrize("key", RESERVED)
def test_attributes_named_like_keys_of_n5(path: Path, zarr_format: ZarrFormat, key: str) -> None:
    """Attributes named like keys of N5 leave these alone, which zarr 2 let them replace."""
    array = create(path, zarr_format)
    before = document(path)
    array.attrs[key] = ""
    assert dict(reopened(path).attrs) == {key: ""}
    assert document(path) | {"zarr": 0} == before | {"zarr": 0}


BLOSC = {"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0}
# what zarr 2 wrote for each, too
COMPRESSORS: list[tuple[Any, dict[str, Any]]] = [
    (None, {"type": "raw"}),
    (numcodecs.BZ2(level=3), {"type": "bzip2", "blockSize": 3}),
    (numcodecs.Zlib(level=1), {"type": "gzip", "useZlib": True, "level": 1}),
    (numcodecs.GZip(level=1), {"type": "gzip", "useZlib": False, "level": 1}),
    (numcodecs.LZMA(), {"type": "xz", "preset": 6}),
    (numcodecs.LZMA(preset=1), {"type": "xz", "preset": 1}),
    (numcodecs.Blosc(cname="zstd", clevel=3, shuffle=2), BLOSC),
    (numcodecs.Zstd(level=3), {"type": "zstd", "level": 3}),
    # not LZMA's format of zarr 2, which no other program reads: the record has it
    (numcodecs.LZMA(format=2), {"type": "xz", "preset": 6}),
]


@pytest.mark.parametrize(("compressor", "kept"), COMPRESSORS, ids=str)
def test_compressors(path: Path, compressor: Any, kept: dict[str, Any]) -> None:
    array = create(path, 2, compressors=compressor)
    array[:100] = 1
    assert (reopened(path)[:100] == 1).all()
    array[...] = 2
    assert (reopened(path)[...] == 2).all()
    assert (by_the_fast_way(path) == 2).all()
    assert document(path)["compression"] == kept
    assert reopened(path).compressors == (() if compressor is None else (compressor,))


def test_filters(path: Path, zarr_format: ZarrFormat) -> None:
    """Filters are kept in the record, which zarr 2 refused."""
    create(path, zarr_format, "none", filters=[])[...] = 1
    assert reopened(path, "none").filters == ()
    of = numcodecs if zarr_format == 2 else zarr_numcodecs
    narrowed: Any = of.AsType(encode_dtype="f4", decode_dtype="f8")
    values = np.linspace(0, 1, 1000)
    create(path, zarr_format, dtype="f8", filters=[narrowed])[...] = values
    np.testing.assert_array_equal(reopened(path)[...], values.astype("f4"))
    assert document(path)["dataType"] == "float64"


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_blocks_that_are_partial(path: Path, zarr_format: ZarrFormat, n_dims: int) -> None:
    """Java's blocks that are smaller than a chunk are filled with 0."""
    create(path, zarr_format, shape=(8,) * n_dims, chunks=(4,) * n_dims, dtype="u1")
    part = np.ones((2,) * n_dims, "u1")
    file = path.joinpath("a", *"0" * n_dims)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_block(part, compression=document(path)["compression"]))
    expected = np.zeros((8,) * n_dims, "u1")
    expected[(slice(2),) * n_dims] = 1
    np.testing.assert_array_equal(reopened(path)[...], expected)


def test_the_type_is_that_of_plain_zarr(path: Path) -> None:
    plain = zarr.create_array({}, shape=100, dtype="f8", zarr_format=2)
    create(path, 2, shape=100, dtype="f8")
    assert reopened(path).metadata.dtype == plain.metadata.dtype
    assert reopened(path).fill_value == plain.fill_value
    assert document(path)["zarr"]["v2"] == {"dtype": "<f8", "fill_value": 0.0}


def test_resizing_and_appending(path: Path, zarr_format: ZarrFormat) -> None:
    """Resizing keeps elements within a block, so that they return, as in plain Zarr."""
    values = np.arange(105 * 105, dtype="i4").reshape(105, 105)
    array = create(path, zarr_format, shape=(105, 105), chunks=(10, 10))
    array[...] = values
    array.resize((205, 205))
    assert reopened(path).shape == (205, 205)
    np.testing.assert_array_equal(reopened(path)[:105, :105], values)
    assert not reopened(path)[105:].any()
    array.resize((55, 55))
    np.testing.assert_array_equal(reopened(path)[...], values[:55, :55])
    array.resize((55, 60))
    array.append(values[:7, :60])
    np.testing.assert_array_equal(reopened(path)[55:], values[:7, :60])
    np.testing.assert_array_equal(reopened(path)[:55, 55:], values[:55, 55:60])
    assert document(path)["dimensions"] == [60, 62]


def test_consolidated(path: Path, zarr_format: ZarrFormat) -> None:
    root = zarr.create_group(N5Store(path), zarr_format=zarr_format)
    root.create_group("g1").create_array("a", shape=30, chunks=10, dtype="f8")[...] = 42
    warned = pytest.warns(zarr.errors.ZarrUserWarning, match="Consolidated")
    with warned if zarr_format == 3 else nullcontext():
        zarr.consolidate_metadata(N5Store(path))
    found: Any = zarr.open_consolidated(N5Store(path))
    assert (found["g1/a"][...] == 42).all()
