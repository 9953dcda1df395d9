"""Signal handlers and finalizers that use n5zarr on the same thread change no numbers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.fast import kernel, workers
from n5zarr.fast.workers import work_together
from n5zarr.storage import files, locks, threads
from n5zarr.storage.writing import FileWriter
from tests.contract.test_kernel import COMPRESSIONS, name
from tests.waiting import PATIENCE, is_inside, wait_until

BLOCKS = ("n5zarr.codecs", "n5zarr.arrays", "n5zarr.fast", "n5zarr.storage")
SHAPE, CHUNKS = (5, 7, 11), (3, 5, 7)


@contextmanager
def on_timer(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Let a handler be called when the timer of this process ends."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def update(path: Path, change: Callable[[bytes | None], bytes]) -> bytes | None:
    return FileWriter("atomic", pytest.fail).update(str(path), change)


def values(seed: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 60_000, shape, "u2")


@contextmanager
def interrupted(handler: Callable[[], None]) -> Iterator[list[str]]:
    """Run a handler at some of the calls and returns within n5zarr."""
    at: list[str] = []
    is_handled = threading.local()

    def event(frame: FrameType, kind: str, argument: Any) -> None:
        if hasattr(is_handled, "now") or not frame.f_globals.get("__name__", "").startswith(BLOCKS):
            return
        where = f"{kind} {getattr(argument, '__name__', '')} in {frame.f_code.co_qualname}"
        if at.count(where) > 1:
            return
        is_handled.now = True
        at.append(where)
        handler()
        del is_handled.now

    threading.setprofile_all_threads(event)
    try:
        yield at
    finally:
        threading.setprofile_all_threads(None)


@pytest.mark.each_of(6)
@pytest.mark.parametrize("fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
def test_a_handler_at_every_moment(where: Path, compression: dict[str, Any], *, fast: bool) -> None:
    if not kernel.is_compiled():
        pytest.skip("no compiled kernel, so that a handler cannot read on zarr's own thread")

    def create(path: str, shape: tuple[int, ...] = SHAPE) -> Any:
        return n5zarr.create_array(
            where / "c.n5", path=path, shape=shape, chunks=CHUNKS, dtype="u2",
            compression=compression,
        )  # fmt: skip

    # few blocks: each takes xz milliseconds, at hundreds of moments
    mine, read, written = create("mine"), create("read", (5, 5, 3)), create("written", (5, 5, 3))
    expected, others = values(1), values(2, read.shape)
    mine[:] = expected
    read[:] = others
    n_read = 0

    def handler() -> None:
        nonlocal n_read
        n_read += 1
        written[:] = values(n_read, written.shape)
        assert np.array_equal(read[:], others)

    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(kernel, "can_do", lambda d: not d.directory.endswith("mine/"))
        with interrupted(handler) as at:
            found = mine[1:, 1:, 2:]
        assert np.array_equal(found, expected[1:, 1:, 2:])
        assert len(at) > 10
        with interrupted(handler):
            mine[:] = values(3)
        with interrupted(handler):
            mine[1:4, 2:, 3:] = values(4)[1:4, 2:, 3:]  # blocks of which a part stays
    expected = values(3)
    expected[1:4, 2:, 3:] = values(4)[1:4, 2:, 3:]
    for opened in (zarr.open_array(n5zarr.N5Store(where / "c.n5"), path="mine", mode="r"), mine):
        assert np.array_equal(opened[:], expected)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_a_timer_that_writes_while_gzip_is_written(tmp_path: Path) -> None:
    arrays = [
        n5zarr.create_array(
            tmp_path / "c.n5", path=path, shape=(67, 61, 59), chunks=(31, 29, 37), dtype="u2"
        )
        for path in ("a", "b")
    ]
    contents = [values(seed, (67, 61, 59)) for seed in (5, 6)]
    n_handled = 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal n_handled
        n_handled += 1
        arrays[1][:] = contents[1]

    with on_timer(handler):
        for _ in range(20):
            signal.setitimer(signal.ITIMER_REAL, 0.003)
            arrays[0][:] = contents[0]
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            assert np.array_equal(arrays[0][:], contents[0])
    assert n_handled > 10
    assert np.array_equal(arrays[0][:], contents[0])
    assert np.array_equal(arrays[1][:], contents[1])


def test_threads_that_help_are_waited_for() -> None:
    """Helping threads are waited for, so that nothing is written after an error is raised."""
    began, running, is_checked = threading.Barrier(3), [], threading.Event()
    here = threading.current_thread()

    def take() -> None:
        if threading.current_thread() is here:
            began.wait(PATIENCE)
            return
        running.append(1)
        place = len(running)
        began.wait(PATIENCE)

        def is_waited_for() -> bool:  # for the one after the other
            return len(running) == place and is_inside(here, Future.exception)

        wait_until(lambda: is_waited_for() or is_checked.is_set())
        running.pop()
        raise ValueError(threading.current_thread().name)

    try:
        for _ in range(5):
            with pytest.raises(ValueError, match="n5zarr"):
                work_together(take, 3, lambda: None)
            assert running == []
    finally:
        is_checked.set()


def test_without_more_threads_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(workers, "WORK", threads.Pool("n5zarr"))
    monkeypatch.setattr(threading.Thread, "start", start)
    left, done = list(range(5)), []

    def take() -> None:
        while left:
            done.append(left.pop())

    work_together(take, 3, left.clear)
    assert sorted(done) == [0, 1, 2, 3, 4]


def test_a_finalizer_that_reads_what_is_being_updated(tmp_path: Path) -> None:
    """A finalizer on the thread that holds the lock reads the old file."""
    path = tmp_path / "attributes.json"
    path.write_bytes(b"{}")
    read: list[bytes | None] = []

    def change(data: bytes | None) -> bytes:
        thread = threading.Thread(target=lambda: read.append(files.read(path, settled=True)))
        thread.start()
        thread.join(10)
        return b'{"a":1}'

    assert update(path, change) == b'{"a":1}'
    assert read == [b"{}"]
    assert files.read(path) == b'{"a":1}'


def test_two_updates_that_wait_for_each_other_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_PATIENCE", 0.1)
    path = tmp_path / "attributes.json"
    path.write_bytes(b"{}")

    def change(data: bytes | None) -> bytes:
        with pytest.raises(TimeoutError, match="expected the lock"):
            update(path, lambda _: b'{"b":1}')
        return b'{"a":1}'

    assert update(path, change) == b'{"a":1}'
    assert update(path, lambda _: b"{}") == b"{}"


def wait_for_holders(path: Path, n_writers: int, hold: Callable[[], object]) -> list[TimeoutError]:
    """Let threads change a file, each for some time; return the errors of those that gave up."""
    path.write_bytes(b"-")
    began, errors = threading.Barrier(n_writers), list[TimeoutError]()

    def change(data: bytes | None) -> bytes:
        hold()
        return (data or b"") + b"."

    def write() -> None:
        began.wait(PATIENCE)
        try:
            FileWriter("overwrite", pytest.fail).update(str(path), change)
        except TimeoutError as err:
            errors.append(err)

    threads = [threading.Thread(target=write) for _ in range(n_writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert path.read_bytes() == b"-" + b"." * (n_writers - len(errors))
    return errors


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_patience_is_for_one_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for many short holders, or for one that works, does not give up."""
    monkeypatch.setattr(locks, "_PATIENCE", 0.4)
    path = tmp_path / "0"
    assert wait_for_holders(path, 7, partial(time.sleep, 0.13)) == []
    if hasattr(time, "pthread_getcpuclockid"):  # else nobody can tell
        assert wait_for_holders(path, 2, partial(work, 0.8)) == []
    (error,) = wait_for_holders(path, 2, partial(time.sleep, 1.3))
    assert "another part of this process holds it" in str(error)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_keeps_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "attributes.json"
    path.write_bytes(b"{}")
    children = []
    ours, theirs = os.pipe()

    def fork() -> None:
        children.append(os.fork())
        if not children[-1]:
            os.close(theirs)
            os.read(ours, 1)  # until it is killed, or this process ends
            os._exit(0)

    try:
        with locks.reading(locks.HeldFile(path, os.O_RDONLY)):
            fork()

        def change(data: bytes | None) -> bytes:
            fork()
            return b'{"a":1}'

        start = time.monotonic()
        assert update(path, change) == b'{"a":1}'
        assert update(path, lambda _: b"{}") == b"{}"
        assert files.read(path, settled=True) == b"{}"
        assert time.monotonic() - start < 10
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(ours)
        os.close(theirs)
