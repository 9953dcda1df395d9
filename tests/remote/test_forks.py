"""Processes, threads and event loops read what was opened elsewhere, or say why not; none hangs.

Each way of starting is tried at each location, with all ways of opening. The parent has opened and
read everything, so that all libraries have begun to work.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from obstore.store import HTTPStore, S3Store
from zarr.storage import LoggingStore, ObjectStore

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr.errors import N5UnsupportedError
from n5zarr.storage.forks import FORKS, _may_have_threads
from tests.processes import CONTEXT
from tests.remote import servers
from tests.remote.conftest import chosen_options, fsspec_options, obstore_options, upload
from tests.remote.reads import VALUES, opened, read, read_all
from tests.waiting import PATIENCE

CONTEXTS: dict[str, Any] = {name: get_context(name) for name in get_all_start_methods()}
CONTEXTS |= {"forkserver": CONTEXT} if "forkserver" in CONTEXTS else {}
# Python says so of each process with threads, as each parent here is
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
needs_fork = pytest.mark.skipif("fork" not in CONTEXTS, reason="Windows has no fork")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("forks")
    n5zarr.create_array(root / "c.n5", path="em/s0", data=VALUES, chunks=(2, 3, 5))
    shutil.make_archive(str(root / "c"), "zip", root / "c.n5")
    return root


@pytest.fixture(scope="module")
def web(folder: Path) -> Iterator[str]:
    with servers.static(folder) as url:
        yield url


@pytest.fixture(scope="module")
def s3(folder: Path) -> Iterator[str]:
    with servers.s3() as url:
        upload(url, "forks", folder / "c.n5")
        yield url


LOCATIONS: dict[str, Callable[[Path, str, str], dict[str, Any]]] = {
    "local": lambda folder, web, s3: {"location": str(folder / "c.n5")},
    "zip": lambda folder, web, s3: {"location": f"zip://{folder / 'c.zip'}"},
    "http": lambda folder, web, s3: {"location": f"{web}/c.n5"},
    "http, fsspec": lambda folder, web, s3: {"location": f"{web}/c.n5", "backend": "fsspec"},
    "zip, fsspec": lambda folder, web, s3: {"location": f"zip::file://{folder / 'c.zip'}"},
    "s3": lambda folder, web, s3: {
        "location": "s3://forks/c.n5",
        "storage_options": chosen_options(s3),
    },
    "s3, fsspec": lambda folder, web, s3: {
        "location": "s3://forks/c.n5",
        "storage_options": fsspec_options(s3),
        "backend": "fsspec",
    },
}


@pytest.fixture(params=LOCATIONS)
def place(request: pytest.FixtureRequest, folder: Path, web: str, s3: str) -> dict[str, Any]:
    return LOCATIONS[request.param](folder, web, s3)


def told(context: Any, work: Callable[..., None], *args: Any) -> list[Any]:
    """Return what a process sends through a pipe; kill it if it hangs."""
    here, there = context.Pipe(duplex=False)
    process: Any = context.Process(target=work, args=(*args, there))
    process.start()
    there.close()
    said: list[Any] = []
    try:
        while here.poll(PATIENCE):
            said.append(here.recv())
        said.append("hangs")
    except EOFError:
        process.join(PATIENCE)
    finally:
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    return said


@pytest.mark.each_of(7)
@pytest.mark.parametrize("way", CONTEXTS)
def test_processes(way: str, place: dict[str, Any]) -> None:
    arrays = opened(place)
    for name, array in arrays.items():
        read(name, array)
    said = told(CONTEXTS[way], read_all, arrays, place)
    assert said == [*arrays, *(f"{name}, anew" for name in arrays)]


@pytest.mark.each_of(4)
def test_threads(place: dict[str, Any]) -> None:
    arrays = opened(place)
    with ThreadPoolExecutor(7) as threads:
        reads = [threads.submit(read, *item) for item in [*arrays.items()] * 5]
        for reading in reads:
            reading.result(PATIENCE)


async def _awaited(array: Any) -> Any:
    return await array.async_array.getitem((slice(None), slice(2, 5)))


@pytest.mark.each_of(2)
def test_event_loops(place: dict[str, Any]) -> None:
    if place.get("backend") == "fsspec" or "::" in place["location"]:
        pytest.skip("fsspec's file systems belong to zarr's loop")
    arrays = opened(place)
    for _ in range(3):
        for array in arrays.values():
            if not isinstance(array, xr.DataArray):
                np.testing.assert_array_equal(asyncio.run(_awaited(array)), VALUES[:, 2:5])


def _tell_errors(arrays: dict[str, Any], anew: Callable[[], Any], pipe: Any) -> None:
    reads: list[Callable[[], Any]] = [partial(a.__getitem__, ...) for a in arrays.values()]
    for read_it in [*reads, anew]:
        try:
            pipe.send(read_it().sum())
        except N5UnsupportedError as err:
            pipe.send((err.kind, str(err)))
    pipe.close()


@needs_fork
def test_obstore_after_a_fork(web: str, s3: str) -> None:
    """What only obstore can read raises an error at once, which names the place and the way out."""
    objects: dict[str, Any] = {
        "web": HTTPStore(f"{web}/c.n5", client_options={"allow_http": True}),
        "wrapped": S3Store("forks", prefix="c.n5", **obstore_options(s3)),
    }
    stores = {
        "web": N5Store(objects["web"]),
        "wrapped": N5Store(LoggingStore(ObjectStore(objects["wrapped"]))),
        "asked for": N5Store(
            "s3://forks/c.n5", backend="obstore", storage_options=obstore_options(s3)
        ),
    }
    arrays: dict[str, Any] = {
        name: n5zarr.open(store, path="em/s0") for name, store in stores.items()
    }
    for array in arrays.values():
        assert array[...].sum() == VALUES.sum()
    anew = partial(n5zarr.open_array, objects["web"], path="em/s0")
    said = told(get_context("fork"), _tell_errors, arrays, anew)
    assert len(said) == len(arrays) + 1
    for kind, message in said:
        assert kind == "fork"
        assert "c.n5" in message
        assert "without backend='obstore'" in message
        assert "'spawn' or 'forkserver'" in message


def _read_pickled(connection: Any, pipe: Any) -> None:
    pipe.send(connection.recv()[...].sum())
    pipe.close()


@needs_fork
def test_an_array_that_is_sent_to_a_forked_process(s3: str) -> None:
    """Also to one that was forked before the array was opened, as pools do."""
    context = get_context("fork")
    array: Any = n5zarr.open_array("s3://forks/c.n5/em/s0", storage_options=chosen_options(s3))
    assert array[...].sum() == VALUES.sum()
    here, there = context.Pipe()
    here.send(array)
    assert told(context, _read_pickled, there) == [VALUES.sum()]


def _write(store: Any, pipe: Any) -> None:
    array: Any = n5zarr.create_array(store, path="new", data=VALUES, chunks=(2, 3, 5))
    pipe.send(array[...].sum())
    pipe.close()


@needs_fork
def test_a_forked_process_writes(s3: str) -> None:
    store = N5Store("s3://forks/written.n5", storage_options=chosen_options(s3))
    n5zarr.create_array(store, path="old", data=VALUES, chunks=(2, 3, 5))
    assert told(get_context("fork"), _write, store) == [VALUES.sum()]
    array: Any = n5zarr.open(store, path="new")
    np.testing.assert_array_equal(array[...], VALUES)


@needs_fork
def test_locks_of_the_parent(web: str) -> None:
    """Threads of the parent may hold locks while it forks."""
    store = N5Store(f"{web}/c.n5", cache=CacheOptions())
    array: Any = n5zarr.open(store, path="em/s0")
    assert array[...].sum() == VALUES.sum()
    storage: Any = store.storage
    with storage._cache._lock, FORKS.lock:
        said = told(get_context("fork"), _tell_errors, {"cached": array}, VALUES.copy)
    assert said == [VALUES.sum(), VALUES.sum()]


def test_threads_of_obstore_are_found(tmp_path: Path) -> None:
    assert _may_have_threads(tmp_path / "missing")
    for number, name in enumerate(["python", "tokio-rt-worker"]):
        (tmp_path / str(number)).mkdir()
        assert not _may_have_threads(tmp_path)
        (tmp_path / str(number) / "comm").write_text(f"{name}\n")
    assert _may_have_threads(tmp_path)
