"""What people give as the place of a container, in every function that takes one."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import fsspec
import numpy as np
import pytest
import xarray as xr
import zarr
from fsspec.implementations.local import LocalFileSystem
from typer.testing import CliRunner
from upath import UPath
from zarr.storage import LocalStore, MemoryStore, StorePath

import n5zarr
from n5zarr import N5FSStore, N5Store
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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
    """The URL of a copy in fsspec's memory."""
    fs = fsspec.filesystem("memory")
    fs.put(root, "/lab/c.n5", recursive=True)
    yield "memory://lab/c.n5"
    fs.rm("/lab", recursive=True)


LOCAL: dict[str, Callable[[str], Any]] = {
    "text": str,
    "prefix": lambda root: f"n5://{root}",
    "pipeline": lambda root: f"{root}|n5:",
    "file URL": lambda root: f"file://{root}",
    "UPath": UPath,
    "FSMap": fsspec.get_mapper,
    "StorePath": lambda root: StorePath(LocalStore(root.removesuffix("c.n5")), "c.n5"),
    "LocalStore": LocalStore,
}
REMOTE: dict[str, Callable[[str], Any]] = {
    "text": str,
    "prefix": lambda url: f"n5://{url}",
    "pipeline": lambda url: f"{url}|n5:",
    "UPath": UPath,
    "FSMap": fsspec.get_mapper,
    "StorePath": lambda url: StorePath(
        zarr.storage.FsspecStore.from_url(url.removesuffix("/c.n5")), "c.n5"
    ),
}


def values_of(place: Any) -> Iterator[Any]:
    """What each function reads."""
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


def test_a_file_system_and_a_path(root: str, in_memory: str) -> None:
    for fs, path in [(LocalFileSystem(), root), (fsspec.filesystem("memory"), "/lab/c.n5")]:
        array = zarr.open_array(N5Store(path, fs=fs, mode="r"), path="em/s0", mode="r")
        np.testing.assert_array_equal(array[...], VALUES)
        array = zarr.open_array(N5FSStore(path, fs=fs), path="em/s0")
        array[0, 0] = 99
        assert array[0, 0] == 99
    assert zarr.open_array(N5Store(root), path="em/s0")[0, 0] == 99


def test_pipelines_name_nodes(
    root: str, in_memory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in (root, in_memory):
        array: Any = n5zarr.open(f"{place}|n5:em/s0")
        np.testing.assert_array_equal(array[...], VALUES)
        np.testing.assert_array_equal(
            xr.open_dataset(f"{place}|n5:em/s0", engine="n5")["s0"], VALUES
        )
        with pytest.raises(N5UnrepresentableError, match="expected the root of a container"):
            N5Store(f"{place}|n5:em/s0")
    shown = CliRunner().invoke(app, ["info", "--json", f"{root}|n5:em/s0"])
    assert json.loads(shown.output)["shape_c"] == [5, 7]
    assert "s0" in CliRunner().invoke(app, ["tree", f"n5://{root}"]).output


def test_options_as_keywords(in_memory: str, root: str) -> None:
    """Those that are none of the store's go to the file system, as in zarr-python 2."""
    opened = N5FSStore(in_memory, mode="r", skip_instance_cache=True)
    assert opened.read_only
    array = zarr.open_array(opened, path="em/s0", mode="r")
    np.testing.assert_array_equal(array[...], VALUES)
    for store_class in (N5Store, N5FSStore):
        with pytest.raises(TypeError, match="unexpected keyword argument 'codec'"):
            store_class(root, codec="n5")


def test_the_calls_of_zarr_2(tmp_path: Path) -> None:
    """As in zarr-python 2.18: ``N5FSStore(path)``, a group, an array."""
    group = zarr.group(store=N5FSStore(str(tmp_path / "a.n5"), normalize_keys=False))
    array = group.create_array("x", shape=(5, 7), chunks=(2, 3), dtype="u2")
    array[...] = VALUES
    found: Any = zarr.open(N5FSStore(str(tmp_path / "a.n5"), mode="r", dimension_separator="."))
    np.testing.assert_array_equal(found["x"][...], VALUES)
    assert (tmp_path / "a.n5/x/0/0").exists()


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
