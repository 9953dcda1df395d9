"""Web servers that need a connection for each request, as Python's own, get few at once."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, override

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from tests.remote import servers
from tests.waiting import PATIENCE

VALUES = np.arange(9 * 7, dtype="u2").reshape(9, 7)
MOST = 4


class _Connections:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_open = self.most = self.n_blocks = 0
        self.many = threading.Event()

    def open(self) -> None:
        with self.lock:
            self.n_open += 1
            self.most = max(self.most, self.n_open)

    def close(self) -> None:
        with self.lock:
            self.n_open -= 1

    def wait_for_others(self) -> None:
        """Wait until more blocks are requested at once than a server of one request gets."""
        with self.lock:
            self.n_blocks += 1
            if self.n_blocks > MOST:
                self.many.set()
        assert self.many.wait(PATIENCE)


class _Brief(servers.Files):
    protocol_version = "HTTP/1.0"

    def __init__(self, connections: _Connections, *args: Any, **options: Any) -> None:
        self.connections = connections
        super().__init__(*args, **options)

    @override
    def do_GET(self) -> None:
        self.connections.open()
        self.answer_later()
        self.connections.close()  # before the client can see an end
        super().do_GET()

    def answer_later(self) -> None:
        time.sleep(0.02)  # so that too many connections would be open together


class _Keeping(_Brief):
    protocol_version = "HTTP/1.1"

    @override
    def answer_later(self) -> None:
        if self.path.rpartition("/")[2].isdigit():
            self.connections.wait_for_others()


class _Slow(_Brief):
    @override
    def answer_later(self) -> None:
        time.sleep(0.6)  # longer than n5zarr waits before it looks whether there is a server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("brief")
    n5zarr.create_array(root / "c.n5", path="em/s0", data=VALUES, chunks=(1, 1))
    return root


@pytest.fixture
def connections() -> _Connections:
    return _Connections()


@pytest.fixture
def served(folder: Path, connections: _Connections, request: Any) -> Iterator[str]:
    with servers.serving(partial(request.param, connections, directory=str(folder))) as url:
        yield f"{url}/c.n5"


@pytest.mark.parametrize("backend", [None, "fsspec"])
@pytest.mark.parametrize("served", [_Brief], indirect=True)
def test_few_connections_at_once(served: str, connections: _Connections, backend: Any) -> None:
    store = N5Store(served, backend=backend, concurrency=64)
    array: Any = n5zarr.open(store, path="em/s0")
    np.testing.assert_array_equal(array[...], VALUES)
    np.testing.assert_array_equal(array[...], VALUES)
    assert 1 < connections.most <= MOST


# a loop that has ended cannot close the connections of its client
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("served", [_Brief], indirect=True)
def test_few_connections_at_once_on_any_loops(served: str, connections: _Connections) -> None:
    """fsspec's client belongs to the first of them, which has ended."""

    async def look() -> None:
        array = await zarr.api.asynchronous.open_array(store=N5Store(served), path="em/s0")
        np.testing.assert_array_equal(await array.getitem(slice(3)), VALUES[:3])

    loops = weakref.WeakSet[asyncio.AbstractEventLoop]()

    def use_another_loop() -> None:
        with asyncio.Runner() as runner:
            runner.run(look())
            loops.add(runner.get_loop())

    for _ in range(3):
        use_another_loop()
    array: Any = n5zarr.open(N5Store(served, concurrency=64), path="em/s0")
    np.testing.assert_array_equal(array[...], VALUES)
    assert 1 < connections.most <= MOST
    gc.collect()
    assert not loops


@pytest.mark.parametrize("backend", [None, "fsspec"])
@pytest.mark.parametrize("served", [_Keeping], indirect=True)
def test_many_where_connections_are_kept(
    served: str, connections: _Connections, backend: Any
) -> None:
    array: Any = n5zarr.open(N5Store(served, backend=backend), path="em/s0")
    np.testing.assert_array_equal(array[...], VALUES)
    assert connections.most > MOST


@pytest.mark.parametrize("served", [_Slow], indirect=True)
def test_an_answer_needs_no_second_connection(
    served: str, connections: _Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers late, and takes no other connection meanwhile, is there."""
    tried = threading.Event()

    async def connect(*_: Any, **__: Any) -> Any:
        tried.set()
        await asyncio.sleep(PATIENCE)

    monkeypatch.setattr(asyncio, "open_connection", connect)
    opened: Any = n5zarr.open(N5Store(served, backend="obstore"), path="em/s0")
    assert opened.shape == VALUES.shape
    assert tried.is_set()
    assert connections.most == 1
