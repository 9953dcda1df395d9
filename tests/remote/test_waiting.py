"""Blocks that threads wait for: errors end a read at once, and so does the end of the process."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr.arrays.open_dataset import blocks_of_array
from n5zarr.fast import remote_blocks, workers
from n5zarr.fast import turns as waiting_turns
from n5zarr.fast.turns import Turns
from n5zarr.storage import threads
from n5zarr.storage.threads import NoThreadError
from tests.memory import traced
from tests.remote.conftest import chosen_options, upload
from tests.remote.servers import Proxy
from tests.waiting import PATIENCE, wait_until

N_BLOCKS = 3 * 7 * 5


@pytest.fixture(scope="module")
def many(s3_server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, np.ndarray]:
    """Return the URL of a container with a dataset of many small blocks, and its values."""
    values = np.arange(6 * 21 * 25, dtype="u2").reshape(6, 21, 25)
    tmp_path = tmp_path_factory.mktemp("many")
    n5zarr.create_array(tmp_path / "many.n5", path="d", data=values, chunks=(2, 3, 5))
    upload(s3_server, "many", tmp_path / "many.n5")
    return "s3://many/many.n5", values


def test_many_blocks_by_few_threads(many: tuple[str, np.ndarray], proxied_s3: Proxy) -> None:
    url, values = many
    store = N5Store(url, storage_options=chosen_options(proxied_s3.url), concurrency=3)
    assert store.storage.get_waiting is not None
    array: Any = n5zarr.open(store, path="d")
    proxied_s3.counts()
    np.testing.assert_array_equal(array[...], values)
    assert proxied_s3.counts() == {"GET": N_BLOCKS}
    np.testing.assert_array_equal(array[3:5, 5, ::3], values[3:5, 5, ::3])
    cached = N5Store(url, storage_options=chosen_options(proxied_s3.url), cache=CacheOptions())
    assert cached.storage.get_waiting is None


def test_an_error_does_not_wait_for_other_blocks(
    many: tuple[str, np.ndarray], proxied_s3: Proxy
) -> None:
    url, _ = many
    store = N5Store(url, storage_options=chosen_options(proxied_s3.url, 20 * PATIENCE))
    array: Any = n5zarr.open(store, path="d")
    asked = itertools.count()
    proxied_s3.fault = lambda method, path: "hang" if next(asked) % 3 else "403"
    pool = ThreadPoolExecutor(1)
    reading = pool.submit(lambda: array[...])
    with pytest.raises(PermissionError, match=r"many\.n5: d/\d+/\d+/\d+: .*forbidden"):
        reading.result(PATIENCE)


def test_requests_are_logged_also_if_they_fail(
    many: tuple[str, np.ndarray], proxied_s3: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    url, _ = many
    store = N5Store(url, storage_options=chosen_options(proxied_s3.url), concurrency=1)
    array: Any = n5zarr.open(store, path="d")
    caplog.set_level("DEBUG", "n5zarr.storage.requests")
    assert array[0, 0, 0] == 0
    proxied_s3.fault = lambda method, path: "500"
    with pytest.raises(OSError, match=r"d/0/0/1: .*500"):
        array[2, 0, 0]
    told = [line for line in caplog.messages if f"{url}/d/0/0/" in line]
    assert told[0].startswith(f"Get {url}/d/0/0/0: ")
    assert told[1:] == [f"Get {url}/d/0/0/1: OSError"]


def test_memory_is_that_of_the_cores(s3_server: str, tmp_path: Path) -> None:
    """However many blocks are under way, only as many as there are cores are decoded at once."""
    n_bytes, n_blocks = 2**21, 48  # the server of the test, in this process, takes 20 MB
    n5zarr.create_array(
        tmp_path / "large.n5",
        path="d",
        data=np.ones((n_blocks, n_bytes), "u1"),
        chunks=(1, n_bytes),
        compression="zstd",
    )
    upload(s3_server, "large", tmp_path / "large.n5")
    store = N5Store("s3://large/large.n5", storage_options=chosen_options(s3_server))
    array: Any = n5zarr.open(store, path="d")
    with zarr.config.set({"threading.max_workers": 2}):
        array[:, :1]
        with traced() as memory:
            assert array[:, :1].all()
    assert memory.peak < n_blocks * n_bytes // 2  # with what the server needs


SCRIPT = """
import atexit, sys, threading
import n5zarr
atexit.register(print, "ends", flush=True)  # right before n5zarr ends
array = n5zarr.open(n5zarr.N5Store(sys.argv[1], key="a", secret="b", endpoint_url=sys.argv[2],
                                   concurrency=5), path="d")
threading.Thread(target=lambda: array[...], daemon=True).start()
sys.stdin.readline()  # the first blocks have been requested
"""


def test_a_process_that_ends_requests_no_more_blocks(
    many: tuple[str, np.ndarray], proxied_s3: Proxy
) -> None:
    url, _ = many
    proxied_s3.is_held.clear()
    asked: list[str] = []

    def hold(method: str, path: str) -> str | None:
        if not path.partition("?")[0].rpartition("/")[2].isdigit():
            return None
        asked.append(path)
        return "late"  # is_held is set, and the answer is sent when it is released

    proxied_s3.fault = hold
    command = [sys.executable, "-c", SCRIPT, url, proxied_s3.url]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert proxied_s3.is_held.wait(PATIENCE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ends\n"
        proxied_s3.released.set()
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert len(asked) < N_BLOCKS // 2


READS_FOR_EVER = """
import sys, threading
import n5zarr
array = n5zarr.open(n5zarr.N5Store(sys.argv[1], key="a", secret="b", endpoint_url=sys.argv[2],
                                   concurrency=5), path="d")

def read():
    while True:
        array[...]

for _ in range(3):
    threading.Thread(target=read, daemon=True).start()
sys.stdin.readline()
"""


def test_a_process_ends_while_threads_read(many: tuple[str, np.ndarray], proxied_s3: Proxy) -> None:
    """Also if they go on for ever, and the server does not answer one of them."""
    asked: list[str] = []

    def note(method: str, path: str) -> str | None:
        is_block = path.partition("?")[0].rpartition("/")[2].isdigit()
        asked.extend([path] * is_block)
        return "hang" if is_block and len(asked) == 1 else None

    proxied_s3.fault = note
    command = [sys.executable, "-c", READS_FOR_EVER, many[0], proxied_s3.url]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        wait_until(lambda: len(asked) > 2 * N_BLOCKS)
        process.communicate("\n", timeout=PATIENCE)


def test_without_threads_blocks_are_awaited(
    many: tuple[str, np.ndarray], s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, values = many
    array: Any = n5zarr.open(N5Store(url, storage_options=chosen_options(s3_server)), path="d")

    def none(*_: object) -> None:
        raise NoThreadError("can't start new thread")

    monkeypatch.setattr(Turns, "add", none)
    np.testing.assert_array_equal(array[2:5, 1:9, 3:40], values[2:5, 1:9, 3:40])


def test_an_interruption_while_threads_start_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have started take no more, and the end of the process waits for none."""
    monkeypatch.setattr(waiting_turns, "SERVERS", threads.Pool("n5zarr waits"))
    start, started, go_on = threading.Thread.start, itertools.count(), threading.Event()

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if next(started) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    left, taken, turns = deque(range(1000)), deque[int](), Turns(5)

    def take() -> bool:
        taken.append(left.popleft())
        go_on.wait(PATIENCE)
        return bool(left)

    with pytest.raises(KeyboardInterrupt), workers.waiting(turns, take, 5, left.clear, print):
        raise AssertionError
    go_on.set()
    wait_until(lambda: len(turns._free) == 5)  # none is lost
    assert not workers._stops
    assert len(taken) <= 4
    wait_until(lambda: not waiting_turns.SERVERS.asked)


def test_a_second_interruption_leaves_no_thread_waiting_for_memory(
    many: tuple[str, np.ndarray], s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a reading gives back the memories that it has taken."""
    store = N5Store(many[0], storage_options=chosen_options(s3_server))
    array: Any = n5zarr.open(store, path="d")
    dataset = blocks_of_array(array)
    assert dataset is not None
    monkeypatch.setattr(remote_blocks, "max_workers", lambda: 2)
    reading = remote_blocks._Reading(dataset, lambda key: None, [], lambda *_: None)

    class Interrupted(type(reading._memories)):  # type: ignore[misc]
        gets = itertools.count()

        def get(self, *args: Any, **kwargs: Any) -> Any:
            if next(self.gets) == 1:
                raise KeyboardInterrupt
            return super().get(*args, **kwargs)

    memories = Interrupted()
    for _ in range(2):
        memories.put(reading._memories.get())
    monkeypatch.setattr(reading, "_memories", memories)
    with pytest.raises(KeyboardInterrupt):
        reading.end()
    assert memories.qsize() == 2
