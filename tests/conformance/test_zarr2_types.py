"""Data types that only zarr-python 2 wrote are read, and datasets without dimensions."""

from __future__ import annotations

import itertools
import json
import shutil
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import xarray as xr
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5AttributesError, N5BlockError, N5Warning
from n5zarr.metadata.inspect import describe
from n5zarr.store.buffers import StoreMapping
from tests.refusals import refused

DATA = Path(__file__).parents[1] / "data"
ROOT = DATA / "zarr2_types.n5"
EXPECTED = json.loads((DATA / "zarr2_types.expected.json").read_text())
VIEWS = list(itertools.product((3, 2), ("C", "F"), ("zarr", "n5", "portable")))


def expected(path: str) -> np.ndarray:
    """Return the values that zarr-python 2 itself read."""
    wanted = EXPECTED[path]
    return np.frombuffer(bytes.fromhex(wanted["elements"]), wanted["dtype"]).reshape(
        wanted["shape"]
    )


def opened(root: Path, path: str, view: tuple[Any, ...], mode: Any = "r") -> zarr.Array[Any]:
    zarr_format, axis_order, codecs = view
    store = N5Store(root, zarr_format=zarr_format, axis_order=axis_order, codecs=codecs)
    return zarr.open_array(store, path=path, mode=mode)


def fast(place: Path) -> zarr.Array[Any]:
    array = n5zarr.open(place)
    assert isinstance(array, zarr.Array)
    return array


def assert_same(found: Any, wanted: np.ndarray) -> None:
    values = np.asarray(found)
    assert (values.shape, values.dtype.newbyteorder("<")) == (wanted.shape, wanted.dtype)
    assert values.astype(wanted.dtype).tobytes() == wanted.tobytes()


def test_the_corpus_is_whole() -> None:
    types = {d["dtype"] for d in EXPECTED.values()}
    assert types == {"|b1", "<f2", "<M8[s]", "<M8[10s]", "<M8[D]", "<M8[ns]", "<m8[us]"} | {
        *("<m8[25us]", "<u2")
    }
    assert len(EXPECTED) == 34


@pytest.mark.each_of(7)
@pytest.mark.parametrize("path", EXPECTED)
def test_it_reads_as_zarr_python_2_read_it_in_every_view(path: str) -> None:
    for view in VIEWS:
        array = opened(ROOT, path, view)
        assert_same(array[...] if view[1] == "C" else np.transpose(array[...]), expected(path))
        if array.ndim:
            part = array[2:6, 1:4] if view[1] == "C" else np.transpose(array[1:4, 2:6])
            assert_same(part, expected(path)[2:6, 1:4])


@pytest.mark.parametrize("path", EXPECTED)
def test_it_opens_by_the_fast_way(path: str) -> None:
    assert_same(fast(ROOT / path)[...], expected(path))


@pytest.mark.parametrize("name", ["bool", "float16", "datetime64[s]", "timedelta64[us]"])
def test_xarray_opens_it(name: str) -> None:
    with xr.open_dataset(ROOT, engine="n5", group=name) as dataset:
        for path, variable in dataset.items():
            assert_same(variable.to_numpy(), expected(f"{name}/{path}"))


def test_a_single_block_has_its_elements() -> None:
    block = n5zarr.read_block(ROOT, "float16/blosc", (0, 1))
    assert block is not None
    assert isinstance(block.data, np.ndarray)
    # zarr-python 2 pads blocks: three rows of three are in the array
    assert block.header.block_shape == (3, 4)
    assert_same(block.data.reshape(4, 3)[:3], expected("float16/blosc")[4:, :3])
    scalar = n5zarr.read_block(ROOT, "scalar/uint16", ())
    assert scalar is not None
    assert np.asarray(scalar.data).tolist() == [expected("scalar/uint16")[()]]


@pytest.mark.each_of(5)
@pytest.mark.parametrize("path", EXPECTED)
def test_a_block_that_was_read_is_written_as_it_was(tmp_path: Path, path: str) -> None:
    copy = Path(shutil.copytree(ROOT / path, tmp_path / "c.n5"))
    is_raw = json.loads((copy / "attributes.json").read_text())["compression"]["type"] == "raw"
    wanted = expected(path)
    files = [p for p in copy.rglob("*") if p.is_file() and p.name != "attributes.json"]
    for file in files:
        names = file.relative_to(copy).parts
        position = tuple(map(int, names)) if wanted.ndim else ()
        before, block = file.read_bytes(), n5zarr.read_block(copy, "", position)
        file.unlink()
        assert block is not None
        n5zarr.write_block(copy, "", position, block)
        assert file.read_bytes() == before or not is_raw
    assert_same(opened(copy, "", VIEWS[0])[...], wanted)


def test_they_are_described_as_they_are() -> None:
    described = describe(ROOT, "datetime64[10s]/raw", size=True)
    assert described["data_type"] == "datetime64[10s]"
    assert described["shown_as"] == "numpy.datetime64"
    assert described["n_blocks_stored"] == 3
    scalar = describe(ROOT, "scalar/bool", size=True)
    assert (scalar["data_type"], scalar["shape_c"], scalar["n_bytes"]) == ("bool", (), 1)
    assert (scalar["n_blocks_stored"], scalar["n_bytes_stored"]) == (1, 5)
    assert describe(ROOT, "scalar/missing", size=True)["n_blocks_stored"] == 0


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("float128/raw", "float128"),  # not the same everywhere
        *((f"unreadable/{n}", n) for n in ("complex64", "str96", "bytes24", "void24")),
    ],
)
def test_other_types_are_refused_by_name(path: str, name: str) -> None:
    with refused(N5AttributesError, "data-type", f"'{name}'; convert it with the program") as err:
        n5zarr.open(ROOT / path)
    assert str(err.value).startswith(f"{ROOT}: {path}/attributes.json: dataType: expected one")


def test_a_listing_leaves_out_what_is_refused() -> None:
    with pytest.warns(N5Warning, match="float128"):
        assert list(zarr.open_group(N5Store(ROOT), path="float128", mode="r")) == []


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("codecs", ["zarr", "portable"])
def test_copied_keys_are_plain_zarr(zarr_format: Any, codecs: Any) -> None:
    keys = StoreMapping(N5Store(ROOT, zarr_format=zarr_format, codecs=codecs, read_only=True))
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*omitted from the listing", category=N5Warning
        )  # of what is refused
        contents: dict[str, Any] = {
            key: zarr.buffer.cpu.Buffer.from_bytes(keys[key]) for key in keys
        }
    copied = MemoryStore(contents)
    for path in EXPECTED:
        assert_same(zarr.open_array(copied, path=path, mode="r")[...], expected(path))


def test_a_document_is_believed_that_says_float16(tmp_path: Path) -> None:
    """A dataset whose document says float16 is read as float16, whatever its blocks were.

    This one is made by hand, with uint16 in it. Java does not know the type.
    """
    document = {"dimensions": [5], "blockSize": [5], "dataType": "float16"}
    document["compression"] = {"type": "raw"}  # type: ignore[assignment]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "attributes.json").write_text(json.dumps(document))
    numbers = (np.arange(5) * 100).astype(">u2")
    (tmp_path / "a" / "0").write_bytes(struct.pack(">HHI", 0, 1, 5) + numbers.tobytes())
    assert_same(fast(tmp_path / "a")[...], numbers.astype("<u2").view("<f2"))


# ---------------------------------------------------------------------- writing


def stored(folder: Path, block: str, dtype: str, n_axes: int) -> np.ndarray:
    """Decode a block without n5zarr."""
    data = (folder / block).read_bytes()
    mode, ndim = struct.unpack_from(">HH", data)
    assert (mode, ndim) == (0, n_axes)
    box = struct.unpack_from(f">{ndim}I", data, 4)
    payload = data[4 + 4 * ndim :]
    if (folder / "attributes.json").read_text().find('"gzip"') > 0:
        payload = zlib.decompress(payload, 31)
    big_endian = np.dtype(dtype).newbyteorder(">")
    assert len(payload) == np.prod(box, dtype=int) * big_endian.itemsize
    return np.frombuffer(payload, big_endian).reshape(box[::-1])


@pytest.mark.each_of(7)
@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("path", ["bool/gzip", "float16/raw", "float16/gzip", "datetime64[s]/raw"])
def test_chunks_are_written_as_zarr_python_2_wrote_them(
    tmp_path: Path, path: str, view: tuple[Any, ...]
) -> None:
    shutil.copytree(ROOT, tmp_path / "c.n5")
    folder = tmp_path / "c.n5" / path
    document = (folder / "attributes.json").read_bytes()
    values = expected(path)
    turned = values[::-1, ::-1].copy()
    array = opened(tmp_path / "c.n5", path, view, mode="r+")
    array[...] = turned if view[1] == "C" else turned.T
    assert (folder / "attributes.json").read_bytes() == document
    dtype = values.dtype.str
    assert_same(stored(folder, "0/0", dtype, 2).astype(dtype), turned[:4, :3])
    assert_same(stored(folder, "1/1", dtype, 2).astype(dtype), turned[4:, 3:])
    again = opened(tmp_path / "c.n5", path, (3, "C", "zarr"))
    assert_same(again[...], turned)


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("path", ["bool/gzip", "float16/raw", "datetime64[s]/raw", "scalar/bool"])
def test_attributes_and_size_change_and_the_type_stays(
    tmp_path: Path, path: str, zarr_format: Any
) -> None:
    shutil.copytree(ROOT, tmp_path / "c.n5")
    array = opened(tmp_path / "c.n5", path, (zarr_format, "C", "zarr"), mode="r+")
    array.attrs["x"] = 1
    values = expected(path)
    if array.ndim:
        array.resize((9, 5))
        values = np.concatenate([values, np.zeros((2, 5), values.dtype)])
    text = (tmp_path / "c.n5" / path / "attributes.json").read_text()
    before = json.loads((ROOT / path / "attributes.json").read_text())
    changes = {"x": 1, "dimensions": [5, 9]} if array.ndim else {"x": 1}
    assert json.loads(text) == {**before, **changes}
    assert_same(opened(tmp_path / "c.n5", path, (3, "C", "zarr"))[...], values)


@pytest.mark.parametrize("dtype", ["bool", "float16", "datetime64[s]"])
def test_new_arrays_are_what_every_reader_knows(tmp_path: Path, dtype: str) -> None:
    """A new array in the place of one of zarr-python 2 has a data type of N5."""
    shutil.copytree(ROOT, tmp_path / "c.n5")
    path = f"{dtype}/raw"
    array = n5zarr.create_array(
        tmp_path / "c.n5" / path, shape=(7, 5), chunks=(4, 3), dtype=dtype, overwrite=True
    )
    array[...] = expected(path)
    kept = {"bool": "uint8", "float16": "float32", "datetime64[s]": "int64"}[dtype]
    assert (
        json.loads((tmp_path / "c.n5" / path / "attributes.json").read_text())["dataType"] == kept
    )
    assert_same(fast(tmp_path / "c.n5" / path)[...], expected(path))


def test_a_record_of_something_else_is_not_taken_for_it(tmp_path: Path) -> None:
    """A record is ignored if zarr-python 2 has since replaced the array and kept the record."""
    zarr.create_array(N5Store(tmp_path), name="a", shape=(3,), dtype="bool", fill_value=True)
    file = tmp_path / "a" / "attributes.json"
    document = json.loads(file.read_text())
    assert document["zarr"]["fill_value"] is True
    file.write_text(json.dumps({**document, "dataType": "bool"}))
    assert_same(fast(tmp_path / "a")[...], np.zeros(3, bool))


def test_a_live_array_notices_that_it_was_replaced(tmp_path: Path) -> None:
    array = zarr.create_array(N5Store(tmp_path), name="a", shape=(3,), chunks=(3,), dtype="uint16")
    array[...] = 1
    file = tmp_path / "a" / "attributes.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "dataType": "float16"}))
    with refused(n5zarr.N5Error, "changed", "replaced"):
        zarr.open_array(array.store, path="a", mode="r")


# ---------------------------------------------------------------------- no dimensions


@pytest.mark.each_of(4)
@pytest.mark.parametrize("compression", ["raw", "gzip", "blosc"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
def test_without_dimensions_tensorstore_and_this_read_each_other(
    tmp_path: Path, dtype: str, compression: str
) -> None:
    metadata = {
        "dataType": dtype, "dimensions": [], "blockSize": [], "compression": {"type": compression},
    }  # fmt: skip
    if compression == "blosc":
        metadata["compression"] |= {"cname": "lz4", "clevel": 5, "shuffle": 1}  # type: ignore[operator]
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "a")}}
    theirs = tensorstore.open({**spec, "metadata": metadata}, create=True).result()
    assert fast(tmp_path / "a")[...] == 0
    theirs[...] = 201
    for view in VIEWS:
        array = opened(tmp_path, "a", view, mode="r+")
        assert (array.shape, array.dtype.newbyteorder("="), array[()]) == ((), np.dtype(dtype), 201)
    for number, view in enumerate(VIEWS):
        array = opened(tmp_path, "a", view, mode="r+")
        array[...] = number + 7
        assert theirs.read().result() == number + 7
        assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["0", "attributes.json"]
    keys = list(N5Store(tmp_path, zarr_format=2).as_mapping())
    assert keys == [".zgroup", "a/.zarray", "a/0"]
    del N5Store(tmp_path, zarr_format=2).as_mapping()["a/0"]
    assert fast(tmp_path / "a")[...] == 0


def test_a_dataset_without_dimensions_can_be_a_container(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scalar" / "float16", tmp_path / "c.n5")
    assert_same(fast(tmp_path / "c.n5")[...], expected("scalar/float16"))
    with xr.open_dataset(ROOT, engine="n5", group="scalar") as dataset:
        assert set(dataset) == {"bool", "float16", "datetime64[s]", "uint16", "missing"}
        assert_same(dataset["float16"].to_numpy(), expected("scalar/float16"))


def test_a_block_of_another_rank_is_damaged(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scalar" / "uint16", tmp_path / "c.n5")
    (tmp_path / "c.n5" / "0").write_bytes(bytes.fromhex("0000 0001 00000001 0005"))
    with pytest.raises(N5BlockError, match="expected 0 dimensions, got 1"):
        fast(tmp_path / "c.n5")[...]
