"""Every function that takes the location of a container takes all kinds of locations."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import obstore.store
import pytest
import xarray as xr
import zarr
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from upath import UPath
from zarr.storage import FsspecStore, LocalStore, MemoryStore, StorePath, WrapperStore

import n5zarr
from n5zarr import N5FSStore, N5Store
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.place import place_of
from tests.command import printed

store: Any = N5Store  # with arguments that their types refuse
fs_store: Any = N5FSStore
VALUES = np.arange(35, dtype="u2").reshape(5, 7)


@pytest.fixture
def root(tmp_path: Path) -> str:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="em/s0", shape=(5, 7), chunks=(2, 3), dtype="u2")[...] = VALUES
    return str(root)


@pytest.fixture
def in_memory(root: str) -> Iterator[str]:
    """Return the URL of a copy in fsspec's memory."""
    fs = fsspec.filesystem("memory")
    fs.put(root, "/lab/c.n5", recursive=True)
    yield "memory://lab/c.n5"
    fs.rm("/lab", recursive=True)


def zipped(root: str) -> str:
    """Return the path of a zip file that holds the folder of a container."""
    return shutil.make_archive(root, "zip", Path(root).parent, Path(root).name)


LOCAL: dict[str, Callable[[str], Any]] = {
    "text": str,
    "prefix": lambda root: f"n5://{root}",
    "pipeline": lambda root: f"{root}|n5:",
    "file URL": lambda root: f"file://{root}",
    "UPath": UPath,
    "FSMap": fsspec.get_mapper,
    "StorePath": lambda root: StorePath(LocalStore(root.removesuffix("c.n5")), "c.n5"),
    "chain": lambda root: f"zip://c.n5::file://{zipped(root)}",
    "UPath in a zip file": lambda root: UPath("zip://c.n5", fo=zipped(root)),
    "UPath of a chain": lambda root: UPath(f"zip://c.n5::file://{zipped(root)}"),
    "FSMap in a zip file": lambda root: fsspec.get_mapper(f"zip://c.n5::{zipped(root)}"),
    "pipeline of a zip file": lambda root: f"{zipped(root)}|zip:c.n5|n5:",
    "pipeline of a URL of a zip file": lambda root: f"file://{zipped(root)}|zip:c.n5/|n5:",
    "LocalStore": LocalStore,
    "obstore": obstore.store.LocalStore,
}
REMOTE: dict[str, Callable[[str], Any]] = {
    "text": str,
    "prefix": lambda url: f"n5://{url}",
    "pipeline": lambda url: f"{url}|n5:",
    "UPath": UPath,
    "FSMap": fsspec.get_mapper,
    "StorePath": lambda url: StorePath(FsspecStore.from_url(url.removesuffix("/c.n5")), "c.n5"),
}


def values_of(place: Any) -> Iterator[Any]:
    """Return the values that each function reads from a location."""
    yield zarr.open_array(N5Store(place, read_only=True), path="em/s0", mode="r")[...]
    yield zarr.open_array(N5FSStore(place, mode="r"), path="em/s0", mode="r")[...]
    array: Any = n5zarr.open(place, path="em/s0")
    yield array[...]
    yield xr.open_dataset(place, engine="n5", group="em/s0")["s0"].to_numpy()


@pytest.mark.parametrize("kind", LOCAL)
def test_local_places(root: str, kind: str) -> None:
    for values in values_of(LOCAL[kind](root)):
        np.testing.assert_array_equal(values, VALUES)


@pytest.mark.parametrize("kind", REMOTE)
def test_places_of_fsspec(in_memory: str, kind: str) -> None:
    for values in values_of(REMOTE[kind](in_memory)):
        np.testing.assert_array_equal(values, VALUES)


def test_local_mappings_have_the_fast_path(root: str) -> None:
    assert N5Store(fsspec.get_mapper(root)).root == N5Store(root).root


def test_stores_of_obstore(root: str) -> None:
    assert N5Store(obstore.store.LocalStore(root)).root == N5Store(root).root
    memory = obstore.store.MemoryStore()
    n5zarr.create_array(memory, path="a", data=VALUES, chunks=(2, 3))
    array: Any = n5zarr.open(memory, path="a")
    np.testing.assert_array_equal(array[...], VALUES)
    with pytest.raises(N5UnrepresentableError, match="storage_options: expected none"):
        N5Store(obstore.store.MemoryStore(), storage_options={"anon": True})


def test_a_file_system_and_a_path(root: str, in_memory: str) -> None:
    memory = fsspec.filesystem("memory")
    for fs, path in [
        (LocalFileSystem(), root),
        (memory, "/lab/c.n5"),
        (DirFileSystem(str(Path(root).parent), LocalFileSystem()), "c.n5"),
        (DirFileSystem("/lab", memory), "c.n5"),
    ]:
        array = zarr.open_array(N5Store(path, fs=fs, mode="r"), path="em/s0", mode="r")
        np.testing.assert_array_equal(array[...], VALUES)
        array = zarr.open_array(N5FSStore(path, fs=fs), path="em/s0")
        array[0, 0] = 99
        assert array[0, 0] == 99
        assert path != root or zarr.open_array(N5Store(root), path="em/s0")[0, 0] == 99
        array[0, 0] = VALUES[0, 0]


def test_pipelines_name_nodes(root: str, in_memory: str) -> None:
    for place in (root, in_memory):
        array: Any = n5zarr.open(f"{place}|n5:em/s0")
        np.testing.assert_array_equal(array[...], VALUES)
        opened = xr.open_dataset(f"{place}|n5:em/s0", engine="n5")
        np.testing.assert_array_equal(opened["s0"], VALUES)
        with pytest.raises(N5UnrepresentableError, match="expected the root of a container"):
            N5Store(f"{place}|n5:em/s0")
    assert json.loads(printed("info", "--json", f"{root}|n5:em/s0"))["shape_c"] == [5, 7]
    assert "s0" in printed("tree", f"n5://{root}")


def test_pipelines_with_other_steps_are_refused(root: str) -> None:
    for place in (f"{root}|tar:c.n5|n5:em/s0", f"{root}|zip:a|zip:b|n5:"):
        with pytest.raises(N5UnrepresentableError, match=r"expected only '\|zip:' before '\|n5:'"):
            n5zarr.open(place)


def test_the_place_of_an_array_is_one(root: str) -> None:
    array: Any = zarr.open_array(N5Store(root), path="em/s0", mode="r")
    for place in (array.store_path, array):
        again: Any = n5zarr.open(place)
        np.testing.assert_array_equal(again[...], VALUES)
        assert n5zarr.get_attribute(place, "", "dimensions") == [7, 5]
    assert n5zarr.geometry(array.store_path).shape == (5, 7)


def test_options_as_keywords(in_memory: str, root: str) -> None:
    """Keywords that the store does not know go to the file system, as in zarr-python 2."""
    opened = N5FSStore(in_memory, mode="r", skip_instance_cache=True)
    assert opened.read_only
    array = zarr.open_array(opened, path="em/s0", mode="r")
    np.testing.assert_array_equal(array[...], VALUES)
    assert N5FSStore(root, auto_mkdir=True).root == N5Store(root).root  # as zarr-python 2 has it
    for store_class in (N5Store, N5FSStore):
        with pytest.raises(TypeError, match="unexpected keyword argument 'codec'"):
            store_class(root, codec="n5")


def test_the_calls_of_zarr_2(tmp_path: Path) -> None:
    """``N5FSStore(path)``, groups and arrays work as in zarr-python 2.18."""
    group = zarr.group(store=N5FSStore(str(tmp_path / "a.n5"), normalize_keys=False))
    array = group.create_array("x", shape=(5, 7), chunks=(2, 3), dtype="u2")
    array[...] = VALUES
    found: Any = zarr.open(N5FSStore(str(tmp_path / "a.n5"), mode="r", dimension_separator="."))
    np.testing.assert_array_equal(found["x"][...], VALUES)
    assert (tmp_path / "a.n5/x/0/0").exists()


class OpenedFirst(WrapperStore[LocalStore]):
    """A store that answers only after it was opened, as the ``ZipStore`` of zarr 3.4.1."""

    _supports_sync_io = False

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        assert self._is_open
        return await super().get(*args, **kwargs)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        assert self._is_open
        async for name in super().list_dir(prefix):
            yield name


USES: dict[str, Callable[[Any, Path], Any]] = {
    "validate": lambda given, _: n5zarr.validate(given),
    "convert": lambda given, to: n5zarr.convert(given, to, to="zarr"),
    "download": n5zarr.download,
    "compare": lambda given, _: n5zarr.compare(given, given),
    "get_attribute": lambda given, _: n5zarr.get_attribute(given, "em/s0", "dimensions"),
    "read_block": lambda given, _: n5zarr.read_block(given, "em/s0", (0, 0)),
    "zarr": lambda given, _: [*zarr.open_group(N5Store(given), mode="r").members(max_depth=None)],
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_stores_are_opened_before_they_are_asked(
    root: str, tmp_path: Path, use: Callable[[Any, Path], Any]
) -> None:
    assert use(OpenedFirst(LocalStore(root, read_only=True)), tmp_path / "to")


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(partial(store, 5), id="number"),
        pytest.param(partial(store, {}), id="dictionary"),
        pytest.param(partial(N5Store, "a.n5", fs="memory"), id="name-of-a-file-system"),
        pytest.param(partial(N5Store, MemoryStore(), fs=LocalFileSystem()), id="store-and-fs"),
        pytest.param(partial(store, "a.n5", mode="x"), id="mode"),
        pytest.param(partial(N5FSStore, "a.n5", normalize_keys=True), id="normalized-keys"),
        pytest.param(partial(fs_store, "a.n5", dimension_separator=":"), id="separator"),
    ],
)
def test_wrong_places_are_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(N5UnrepresentableError) as err:
        wrong()
    assert err.value.kind == "option"


@pytest.mark.parametrize("given", ["memory://lab/a.n5", UPath("memory://lab/a.n5")], ids=repr)
def test_options_are_those_of_the_location_that_is_a_url(given: Any) -> None:
    options = {"skip_instance_cache": True}
    assert place_of(given, options, one_of_two=True) == place_of(given, options)
    assert place_of("a.n5", options, one_of_two=True).storage_options is None
