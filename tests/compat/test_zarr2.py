"""Programs of zarr 2 run over `n5zarr.compat.zarr2`; documents are as zarr 2.18.3 writes them."""

from __future__ import annotations

import importlib
import json
import pickle
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as typed_dask
import h5py
import numcodecs as typed_numcodecs
import numpy as np
import pytest
import tensorstore as ts
import zarr as zarr3

import n5zarr
from n5zarr.compat import zarr2
from n5zarr.compat.zarr2 import core, errors, hierarchy, n5, storage
from n5zarr.errors import N5UnrepresentableError
from tests.compat import zarr2_program
from tests.peers.environments import environment, run
from tests.structure import REPOSITORY

zarr: Any = zarr2  # programs of yesterday have no types
numcodecs: Any = typed_numcodecs
da: Any = typed_dask
VALUES = np.random.default_rng(7).integers(0, 60000, (7, 11, 13)).astype("uint16")
BLOSC = {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
GZIP = {"type": "gzip", "level": 1, "useZlib": False}


@pytest.fixture
def root(tmp_path: Path) -> Any:
    made = zarr.open_group(str(tmp_path / "a.n5"), "w")
    made.create_dataset("em/s0", data=VALUES, chunks=(2, 3, 5), compressor=zarr.GZip(1))
    made["em"].attrs["name"] = "x"
    return made


def document(node: Any) -> dict[str, Any]:
    path = node.store.root / node.path / "attributes.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


# -------------------------------------------------------------------------------- documents

COMPRESSIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, BLOSC),
    ({"compressor": "default"}, BLOSC),
    ({"compressor": None}, {"type": "raw"}),
    ({"compressor": numcodecs.GZip(3)}, {"type": "gzip", "level": 3, "useZlib": False}),
    ({"compressor": numcodecs.Zlib(2)}, {"type": "gzip", "level": 2, "useZlib": True}),
    ({"compressor": numcodecs.BZ2(4)}, {"type": "bzip2", "blockSize": 4}),
    ({"compressor": numcodecs.LZMA(preset=3)}, {"type": "xz", "preset": 3}),
    ({"compressor": numcodecs.LZMA()}, {"type": "xz", "preset": 6}),
    ({"compressor": numcodecs.Blosc("zstd", 3, 2)},
        {**BLOSC, "cname": "zstd", "clevel": 3, "shuffle": 2}),
    ({"compression": "gzip"}, GZIP),
    ({"compression": "gzip", "compression_opts": 2}, {**GZIP, "level": 2}),
    ({"compression": "bz2", "compression_opts": {"level": 7}}, {"type": "bzip2", "blockSize": 7}),
    ({"compression": "zlib", "compression_opts": (5,)}, {**GZIP, "level": 5, "useZlib": True}),
    ({"compression": None}, {"type": "raw"}),
    ({"compression": numcodecs.GZip(1)}, GZIP),
    # zarr 2 adds members that only it needs, and that tensorstore refuses
    ({"compressor": numcodecs.Zstd(3)}, {"type": "zstd", "level": 3}),
    # zarr 2's lz4 is a format of its own, which Java does not read
    ({"compressor": numcodecs.LZ4()}, {"type": "lz4", "blockSize": 65536}),
]  # fmt: skip


@pytest.mark.parametrize(("options", "compression"), COMPRESSIONS)
def test_a_compressor_is_written_as_zarr_2_wrote_it(
    root: Any, options: dict[str, Any], compression: dict[str, Any]
) -> None:
    made = root.create_dataset("x", data=VALUES, chunks=(2, 3, 5), **options)
    assert document(made) == {
        "dataType": "uint16", "dimensions": [13, 11, 7], "blockSize": [5, 3, 2],
        "compression": compression,
    }  # fmt: skip
    wrapper = made.compressor
    assert wrapper.codec_id == "n5_wrapper"
    config = wrapper.get_config()["compressor_config"]
    assert (config is None) == (compression["type"] == "raw")
    again = root.create_dataset("again", shape=VALUES.shape, chunks=4, compressor=wrapper)
    assert document(again)["compression"] == compression
    if compression["type"] != "lz4":
        spec = {"driver": "n5", "kvstore": f"file://{made.store.root}/x/"}
        np.testing.assert_array_equal(ts.open(spec).result().read().result().T, VALUES)


@pytest.mark.parametrize(
    "name", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32",
             "float64"]
)  # fmt: skip
@pytest.mark.parametrize("order", "<>")
def test_the_types_of_n5_are_native(root: Any, name: str, order: Any) -> None:
    values = VALUES.astype(name)
    made = root.array("x", values.astype(values.dtype.newbyteorder(order)), chunks=(2, 3, 5))
    sizes = {"dimensions": [13, 11, 7], "blockSize": [5, 3, 2]}
    assert document(made) == {"dataType": name, "compression": BLOSC, **sizes}
    assert made.dtype == np.dtype(name)
    assert made.dtype.isnative
    np.testing.assert_array_equal(made[...], values)


CHUNKS: list[tuple[Any, tuple[int, ...], list[int]]] = [
    (True, (5, 300), [300, 5]), (None, (5, 300), [300, 5]), (False, (5, 300), [300, 5]),
    (3, (5, 300), [3, 3]), (np.int64(3), (5, 300), [3, 3]), ((2,), (5, 300), [300, 2]),
    ((2, None), (5, 300), [300, 2]), ((-1, 7), (5, 300), [7, 5]), ([2, 9], (5, 300), [9, 2]),
    (True, (10007, 20011, 7), [1, 2502, 626]), (True, (301, 401, 503), [126, 101, 38]),
]  # fmt: skip


@pytest.mark.parametrize(("chunks", "shape", "block_size"), CHUNKS)
def test_chunks_are_those_of_zarr_2(
    root: Any, chunks: Any, shape: tuple[int, ...], block_size: list[int]
) -> None:
    made = root.zeros("x", shape=shape, chunks=chunks, dtype="u2")
    assert document(made)["blockSize"] == block_size
    assert made.chunks == tuple(reversed(block_size))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"dtype": bool}, r"ten types, got bool; n5zarr\.create_array writes the nearest"),
    ({"dtype": "f2"}, "ten types, got float16"),
    ({"dtype": "M8[s]"}, "ten types, got datetime64"),
    ({"dtype": "S3"}, "ten types, got bytes24"),
    ({"dtype": str}, "ten types, got str"),
    ({"fill_value": 5}, r"expected 0, .* got 5; assign the values, or n5zarr\.create_array"),
    ({"fillvalue": 5}, "expected 0, .* got 5"),
    ({"fill_value": np.nan, "dtype": "f4"}, "expected 0, .* got nan"),
    ({"order": "F"}, r"expected 'C', got 'F'; zarr\.create_array"),
    ({"filters": [numcodecs.Delta("u2")]}, "filters: expected none"),
    ({"compressor": numcodecs.MsgPack()}, "compressor: expected one that N5 has"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_n5_has_not_is_refused_with_the_way(
    root: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        root.create_dataset("x", shape=(5, 7), **{"dtype": "u2", **options})
    with pytest.raises(N5UnrepresentableError, match="expected 0"):
        root.ones("x", shape=(5, 7), dtype="u2")
    with pytest.raises(N5UnrepresentableError, match="expected 0"):
        root.full("x", 7, shape=(5, 7), dtype="u2")
    assert "x" not in root


def test_what_zarr_2_ignored_is_ignored(root: Any) -> None:
    root.create_dataset("x", shape=5, synchronizer=zarr.ThreadSynchronizer(), cache_attrs=False)
    with pytest.warns(UserWarning, match="ignoring keyword argument 'level'"):
        made = root.create_dataset("y", shape=5, compression="gzip", level=7)
    assert document(made) == {
        "dataType": "float64", "dimensions": [5], "blockSize": [5], "compression": GZIP
    }  # fmt: skip


# ----------------------------------------------------------------------------------- arrays


def test_arrays_and_groups_are_those_of_zarr_3_with_more_names(root: Any) -> None:
    array = root["em/s0"]
    for node, old, new in ((root, zarr.Group, zarr3.Group), (array, zarr.Array, zarr3.Array)):
        assert isinstance(node, old)
        assert isinstance(node, new)
        assert type(pickle.loads(pickle.dumps(node))) is type(node)
    assert core.Array is zarr.Array
    assert hierarchy.Group is zarr.Group
    assert array.chunk_store is array.store
    assert root.chunk_store is root.store
    assert isinstance(root.store, n5.N5Store)
    assert isinstance(root.store, n5zarr.N5Store)
    np.testing.assert_array_equal(da.from_array(array).compute(), VALUES)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[2:4], VALUES[2:4])


def test_one_element_is_a_number(root: Any) -> None:
    element = root["em/s0"][1, 2, 3]
    assert type(element) is np.uint16
    assert json.dumps(element.item()) == str(VALUES[1, 2, 3])
    assert root["em/s0"][1].shape == (11, 13)


def test_all_chunks_are_stored_unless_the_program_says_otherwise(root: Any) -> None:
    dense = root.zeros("dense", shape=(7, 11), chunks=3)
    sparse = root.zeros("sparse", shape=(7, 11), chunks=3, write_empty_chunks=False)
    dense[...] = sparse[...] = 0
    assert (dense.nchunks_initialized, sparse.nchunks_initialized) == (12, 0)
    root["sparse"][:4] = 0  # opened
    assert root["sparse"].nchunks_initialized == 8


def test_an_array_is_resized_by_axes(root: Any) -> None:
    array = root["em/s0"]
    array.resize(5, 4, 13)
    array.append(np.ones((2, 4, 13), "u2"))
    assert (len(array), array.shape) == (7, (7, 4, 13))
    np.testing.assert_array_equal(array[...], np.concatenate([VALUES[:5, :4], np.ones((2, 4, 13))]))
    with pytest.raises(TypeError, match="len"):
        len(root.zeros("none", shape=(), dtype="u2"))


def test_data_of_any_kind_are_written(root: Any, tmp_path: Path) -> None:
    assert root.array("list", [3, 5, 7])[:].tolist() == [3, 5, 7]
    assert root.create_dataset("like", data=root["em/s0"], shape=(1,)).chunks == (2, 3, 5)
    root["x"] = VALUES[0]
    root["x"] = VALUES[1]
    np.testing.assert_array_equal(root["x"][:], VALUES[1])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("h", data=VALUES, chunks=(4, 4, 4))
        assert root.create_dataset("h", data=file["h"], dtype="f4").chunks == (4, 4, 4)
    np.testing.assert_array_equal(root["h"][...], VALUES)
    like = root.zeros_like("zeros", root["em/s0"], shape=(3, 5, 7))
    assert document(like) == {
        "dataType": "uint16", "dimensions": [7, 5, 3], "blockSize": [5, 3, 2], "compression": GZIP
    }  # fmt: skip


# ----------------------------------------------------------------------------------- groups


def test_groups_are_mappings_with_the_names_of_h5py(root: Any) -> None:
    root.require_group("n/m").attrs.update({"a": 1}, b=[2])
    assert (len(root), sorted(root.keys())) == (2, ["em", "n"])
    assert ["em/s0" in root, "x" in root] == [True, False]
    assert root.n.m.attrs.asdict() == {"a": 1, "b": [2]}
    assert [(name, node.path) for name, node in root["em"].items()] == [("s0", "em/s0")]
    assert sorted(root.arrays(recurse=True)) == [("s0", root["em/s0"])]
    assert list(root.array_keys()) == []
    assert list(root["em"].array_keys()) == ["s0"]
    assert list(root.array_keys(recurse=True)) == ["s0"]
    seen: list[str] = []
    root.visit(seen.append)
    assert sorted(seen) == ["em", "em/s0", "n", "n/m"]
    assert root.visititems(lambda name, node: name if hasattr(node, "shape") else None) == "em/s0"
    assert "s0" in str(root.tree(expand=True))
    with root as same:
        assert same.em.s0.shape == VALUES.shape
    for name in ("nix", "_nix"):
        assert not hasattr(root, name)
    with pytest.raises(KeyError):
        root["nix"]  # zarr 2 gave a group
    del root["n"]
    assert list(root) == ["em"]


REQUIRED: list[tuple[dict[str, Any], type[Exception] | None]] = [
    ({"shape": (7, 11, 13), "dtype": "u2"}, None),
    ({"shape": (7, 11, 13), "dtype": "u1"}, None),  # fits
    ({"shape": (7, 11, 13), "dtype": "u1", "exact": True}, TypeError),
    ({"shape": (7, 11, 13), "dtype": "u4"}, TypeError),
    ({"shape": (7, 11, 12), "dtype": "u2"}, TypeError),
    ({"shape": 7, "dtype": "u2"}, TypeError),
]


@pytest.mark.parametrize(("given", "error"), REQUIRED)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_required_dataset_is_there_or_made(
    root: Any, given: dict[str, Any], error: type[Exception] | None, is_new: bool
) -> None:
    group: Any = n5zarr.open(root.store.root, "a") if is_new else root
    given = {**given, "data": VALUES * 0, "chunks": 4}
    if error is None:
        np.testing.assert_array_equal(group.require_dataset("em/s0", **given)[...], VALUES)
    else:
        with pytest.raises(error, match="em/s0"):
            group.require_dataset("em/s0", **given)
    with pytest.raises(TypeError, match="em: expected a dataset"):
        group.require_dataset("em", (3,), "u2")
    made = group.require_dataset("new", (7, 11, 13), "u2", data=VALUES, chunks=(4, 5, 6))
    np.testing.assert_array_equal(made[...], VALUES)


# ------------------------------------------------------------------------- opening, copying

OPENED: list[tuple[Callable[[str], object], type[Exception] | None]] = [
    (lambda p: zarr.open(p, "r").em.s0, None),
    (lambda p: zarr.open(p, mode="r", path="em/s0"), None),
    (lambda p: zarr.open(zarr.N5Store(p), "r+")["em"].s0, None),
    (lambda p: zarr.open_array(p, "r", path="em/s0"), None),
    (lambda p: zarr.open(n5zarr.N5Store(p), "r", path="em/s0"), None),
    (lambda p: zarr.Array(zarr.N5FSStore(p, "r"), path="em/s0", read_only=True), None),
    (lambda p: zarr.Array(n5.N5FSStore(p, False, "r"), "em/s0", True), None),
    (lambda p: zarr.Group(zarr.N5Store(p), "em")["s0"], None),
    (lambda p: zarr.open(p, "a", path="em/s0", shape=VALUES.shape), None),
    (lambda p: zarr.group(p, path="em")["s0"], None),
    (lambda p: zarr.open(p + "/em/s0", "r"), errors.PathNotFoundError),  # Zarr v2, as it was
    (lambda p: zarr.open("no" + p, "r"), errors.PathNotFoundError),
    (lambda p: zarr.open("no.n5", "r"), errors.PathNotFoundError),
    (lambda p: zarr.open("no.zarr", "r+"), ValueError),
    (lambda p: zarr.open_array(p, "r", path="no"), errors.ArrayNotFoundError),
    (lambda p: zarr.open_array(p, path="no"), errors.ArrayNotFoundError),
    (lambda p: zarr.open_group(p, "r", path="no"), errors.GroupNotFoundError),
    (lambda p: zarr.open_group(p, "r", path="em/s0"), errors.ContainsArrayError),
    (lambda p: zarr.open_array(p, "r", path="em"), errors.ContainsGroupError),
    (lambda p: zarr.open(p, "w-"), errors.ContainsGroupError),
    (lambda p: zarr.open(p, "x"), ValueError),
    (lambda p: zarr.open(p, "w-", path="em/s0", shape=(3,)), errors.ContainsArrayError),
    (lambda p: zarr.open(p, "r").create_group("x"), ValueError),
]


@pytest.mark.parametrize(("opened", "error"), OPENED, ids=range(len(OPENED)))
def test_what_is_there_is_opened_by_mode_and_suffix(
    root: Any, opened: Callable[[str], Any], error: type[Exception] | None
) -> None:
    if error is None:
        array = opened(root.store.path)
        assert type(array) is type(root["em/s0"])
        np.testing.assert_array_equal(array[...], VALUES)
    else:
        with pytest.raises(error):
            opened(root.store.path)


def test_a_url_that_ends_in_n5_is_n5() -> None:
    root = zarr.open("memory://compat/b.n5", "w")
    root.create_dataset("x", data=VALUES, chunks=4)
    assert isinstance(root.store, zarr.N5FSStore)
    assert root.store.path.endswith("compat/b.n5")
    np.testing.assert_array_equal(n5zarr.open_array("memory://compat/b.n5", path="x")[...], VALUES)
    plain = zarr.open("memory://compat/b.zarr", "w", storage_options={})
    assert plain.create_dataset("x", data=VALUES).metadata.zarr_format == 2


def test_arrays_are_made_by_functions(tmp_path: Path) -> None:
    path = str(tmp_path / "a.n5")
    made = zarr.open(path, "w", shape=(5, 6), chunks=(2, 3), dtype="u1")
    made[:] = 1
    assert zarr.open(path, "a", shape=(5, 6))[...].sum() == 30
    assert zarr.open(
        zarr.N5Store(tmp_path / "b.n5"), "a", path="x/y", shape=3, dtype="f8"
    ).chunks == (3,)
    store = zarr.N5Store(tmp_path / "b.n5")
    zeros = zarr.zeros((4, 5), chunks=2, store=store, path="z", overwrite=True)
    assert zeros[...].sum() == 0
    assert zarr.array(VALUES).metadata.zarr_format == 2  # in memory
    zarr.save(path, VALUES)
    np.testing.assert_array_equal(zarr.load(path), VALUES)
    zarr.save(path, VALUES, last=VALUES[1])
    found = zarr.load(path)
    assert sorted(found) == ["arr_0", "last"]
    np.testing.assert_array_equal(found["last"], VALUES[1])


@pytest.mark.parametrize("store", [zarr.DirectoryStore, zarr.NestedDirectoryStore])
def test_any_other_path_is_zarr_2(tmp_path: Path, store: Any) -> None:
    root = zarr.group(store(tmp_path / "a.zarr"))
    made = root.create_dataset("x", data=VALUES, chunks=(2, 3, 5))
    separator = "." if store is zarr.DirectoryStore else "/"
    assert (tmp_path / "a.zarr" / "x" / separator.join("301")).exists()
    found = json.loads((tmp_path / "a.zarr/x/.zarray").read_text())
    assert found == {
        "zarr_format": 2, "shape": [7, 11, 13], "chunks": [2, 3, 5], "dtype": "<u2", "order": "C",
        "fill_value": 0, "filters": None, "dimension_separator": separator,
        "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    }  # fmt: skip
    assert made.compressor == numcodecs.Blosc()
    assert root.full("b", True, shape=(3,), dtype=bool)[:].tolist() == [True] * 3
    again = zarr.open(str(tmp_path / "a.zarr"), "r")
    assert isinstance(again.x, zarr.Array)
    np.testing.assert_array_equal(again["x"][2:5], VALUES[2:5])
    slashed = zarr.open(zarr.DirectoryStore(path=tmp_path / "b.zarr", dimension_separator="/"), "w")
    slashed.zeros("x", shape=(4, 4), chunks=2)[...] = 1
    assert (tmp_path / "b.zarr/x/1/1").exists()
    assert slashed.store.path == str(tmp_path / "b.zarr")


def test_what_zarr_3_wrote_is_opened(tmp_path: Path) -> None:
    zarr3.open_group(tmp_path / "a.zarr", mode="w").create_array("x", data=VALUES)
    for mode in ("r", "a"):
        np.testing.assert_array_equal(zarr.open(str(tmp_path / "a.zarr"), mode)["x"][...], VALUES)


def test_nodes_are_copied_between_n5_zarr_and_hdf5(root: Any, tmp_path: Path) -> None:
    plain = zarr.open(str(tmp_path / "a.zarr"), "w")
    assert zarr.copy(root["em/s0"], plain, name="x") == (1, 0, VALUES.nbytes)
    assert zarr.copy(root["em"], plain) == (2, 0, VALUES.nbytes)
    assert plain["em"].attrs.asdict() == {"name": "x"}
    assert plain["em/s0"].compressor == numcodecs.GZip(1)
    assert plain["em/s0"].chunks == (2, 3, 5)
    assert zarr.copy_all(plain, root.create_group("back"), if_exists="skip")[0] == 3
    np.testing.assert_array_equal(root["back/em/s0"][...], VALUES)
    assert zarr.copy(plain["x"], root, if_exists="replace")[0] == 1
    assert zarr.copy(plain["x"], root, if_exists="skip") == (0, 1, 0)
    assert zarr.copy(root, root.create_group("self"), "s", shallow=True)[0] == 2  # itself, and x
    with pytest.raises(errors.CopyError, match="'x'"):
        zarr.copy(plain["x"], root)
    with pytest.raises(N5UnrepresentableError, match="dry_run"):
        zarr.copy(plain["x"], root, "y", dry_run=True)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/h", data=VALUES, chunks=(4, 4, 4)).attrs["unit"] = "nm"
        zarr.copy(file["g"], root, compressor=None, without_attrs=True)
        zarr.copy(file["g/h"], root)
    np.testing.assert_array_equal(root["g/h"][...], VALUES)
    assert root["h"].attrs.asdict() == {"unit": "nm"}


# -------------------------------------------------------------------------------- the names


def test_a_wrapped_block_is_that_of_the_specification() -> None:
    part = np.arange(1, 7, dtype="u2").reshape(2, 3)
    block = bytes.fromhex("00000002 00000003 00000002 000100020003000400050006")
    codec = n5.N5ChunkWrapper("u2", (2, 3))
    assert codec.encode(part) == block
    assert codec.get_config() == {"id": "n5_wrapper", "compressor_config": None}
    config = {"id": "gzip", "level": 1}
    for options in ({"compressor": zarr.GZip(1)}, {"compressor_config": config}):
        codec = n5.N5ChunkWrapper("u2", (2, 3), **options)
        np.testing.assert_array_equal(codec.decode(codec.encode(part)), part.ravel())
        assert codec.get_config()["compressor_config"] == config


ABSENT: list[tuple[Any, str, type[Exception], str]] = [
    (zarr, "LRUStoreCache", AttributeError, r"CacheOptions\(bytes="),
    (zarr, "consolidate_metadata", AttributeError, "n5zarr.open needs no copy"),
    (zarr, "full", AttributeError, r"n5zarr\.create_array"),
    (zarr, "nix", AttributeError, "no attribute 'nix'"),
    (zarr, "copy_store", AttributeError, r"write n5zarr\.convert"),
    (storage, "FSStore", ImportError, r"n5zarr\.N5Store\(url\)"),
    (storage, "nix", AttributeError, "no attribute 'nix'"),
]


@pytest.mark.parametrize(("module", "name", "error", "message"), ABSENT)
def test_absent_names_say_what_to_write(
    module: Any, name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(module, name)
    if error is ImportError:
        with pytest.raises(ImportError, match=message):
            importlib.import_module("builtins").exec(f"from {module.__name__} import {name}")


def test_absent_methods_say_what_to_write(root: Any) -> None:
    with pytest.raises(AttributeError, match=r"hashlib\.sha1"):
        root["em/s0"].hexdigest("sha1")
    with pytest.raises(AttributeError, match="require_groups"):
        root.create_groups("a", "b")


def test_codecs_are_those_of_numcodecs() -> None:
    assert zarr.Blosc is numcodecs.Blosc
    assert zarr.blosc is numcodecs.blosc
    assert zarr.__version__ == "2.18.3"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("n5", "N5FSStore"), ("hierarchy", "open_group"), ("storage", "DirectoryStore"),
        ("core", "Array"), ("errors", "PathNotFoundError"),
    ],
)  # fmt: skip
def test_modules_have_the_names_of_zarr_2(module: str, name: str) -> None:
    imported = importlib.import_module(f"n5zarr.compat.zarr2.{module}")
    assert getattr(imported, name)
    assert getattr(zarr, module) is imported
    assert zarr.convenience.open is zarr.open
    assert zarr.creation.create is zarr.create


def test_an_import_is_quiet_and_only_where_it_is_asked_for() -> None:
    code = """import sys, n5zarr; n5zarr.open
assert not any(name.startswith("n5zarr.compat") for name in sys.modules)
import n5zarr.compat.zarr2"""
    run(sys.executable, "-W", "error", "-c", code)


LINES = re.findall(
    r"^\| `[^`]+` \| `([^`]+)` \|",
    (REPOSITORY / "docs/errors.md").read_text().split("\n## No attribute ")[1].split("\n## ")[0],
    re.MULTILINE,
)


@pytest.mark.parametrize("line", LINES)
def test_lines_that_zarr_3_refuses_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "data.n5")
    monkeypatch.chdir(tmp_path)
    line = line.replace("from zarr.", "from n5zarr.compat.zarr2.")
    exec(line, {"zarr": zarr, "N5Store": zarr.N5Store, "np": np})  # noqa: S102 - of the page


# -------------------------------------------------------------------- beside the real zarr 2


@pytest.mark.long
def test_a_program_does_the_same_in_zarr_2(tmp_path: Path) -> None:
    python = environment(tmp_path / "env", "zarr==2.18.7", "numcodecs<0.16", "fsspec")
    found = {}
    for writer, reader in ((0, 0), (1, 1), (0, 1), (1, 0)):
        who = [(python, "zarr"), (sys.executable, "n5zarr.compat.zarr2")][reader]
        read = tmp_path / f"{writer}{reader}.json"
        program, folder = str(zarr2_program.__file__), str(tmp_path / f"by {writer}")
        run(who[0], "-W", "ignore", program, who[1], folder, str(read))
        found[writer, reader] = json.loads(read.read_text())
    assert len(found[0, 0]) > 20
    for each in found.values():
        assert each == found[0, 0]
    folders = [tmp_path / f"by {writer}" for writer in (0, 1)]
    documents = [
        {
            str(p.parent.relative_to(each)): json.loads(p.read_text())
            for p in each.rglob("attributes.json")
        }
        for each in folders
    ]
    for each in (*documents[0].values(), *documents[1].values()):
        each.pop("n5", None)  # which zarr 2 writes into all groups
    assert documents[0] == documents[1]


@pytest.mark.parametrize("opened", [zarr.open, zarr.open_group, zarr.Group])
def test_a_store_that_only_reads_is_opened_to_read(tmp_path: Path, opened: Any) -> None:
    zarr.open(str(tmp_path / "c.n5"), "w").create_dataset("x", data=np.arange(7))
    group = opened(zarr.N5FSStore(str(tmp_path / "c.n5"), mode="r"))
    assert (group["x"][:] == np.arange(7)).all()
    with pytest.raises(zarr.errors.ReadOnlyError):
        group["x"][:] = 0


def test_an_array_in_a_zip_file_is_opened_to_read(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zip")
    with zarr3.storage.ZipStore(path, mode="w") as store:
        zarr3.create_array(store, data=np.arange(7), zarr_format=2)
    assert (zarr.open(path, "r")[:] == np.arange(7)).all()


def test_elements_are_read_into_an_array_of_numpy(root: Any) -> None:
    out = np.zeros((2, 11, 13), "u2")
    assert root["em/s0"].get_basic_selection(slice(3, 5), out=out) is out
    assert (out == VALUES[3:5]).all()
    assert root["em/s0"].get_basic_selection((3, 4, 5)) == VALUES[3, 4, 5]


def test_what_is_missing_cannot_be_deleted(root: Any) -> None:
    with pytest.raises(KeyError, match="nix"):
        del root["nix"]
    del root["em/s0"]
    assert list(root["em"]) == []


def test_moving_names_a_way(root: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"write os\.rename"):
        root.move("em", "en")


def test_an_array_is_made_like_another(root: Any) -> None:
    made = root.full_like("x", root["em/s0"], fill_value=0)
    assert (made.shape, made.chunks) == (VALUES.shape, (2, 3, 5))
    assert made.compressor.get_config() == root["em/s0"].compressor.get_config()


def test_a_group_is_copied_with_its_attributes(root: Any, tmp_path: Path) -> None:
    for without in (False, True):
        copy = zarr.open_group(str(tmp_path / f"copy{without}.n5"), "w")
        assert zarr.copy_all(root["em"], copy, without_attrs=without) == (1, 0, VALUES.nbytes)
        assert dict(copy.attrs) == ({} if without else {"name": "x"})
        assert (copy["s0"][...] == VALUES).all()


def test_what_is_in_a_store(root: Any) -> None:
    place = str(root.store.path)
    for given in (root.store, place):
        assert storage.contains_array(given, "em/s0")
        assert storage.contains_group(given, "em")
        assert storage.contains_group(given)
        assert not storage.contains_array(given, "em")
        assert not storage.contains_group(given, "nix")
    assert not storage.contains_array(f"{place}.zarr")
    assert not (root.store.root.parent / "a.n5.zarr").exists()  # reading creates no folder
    assert root["em/s0"].itemsize == 2


def test_names_that_are_absent_can_be_asked_for() -> None:
    assert not hasattr(zarr, "open_consolidated")
    assert getattr(zarr, "tree", None) is None
