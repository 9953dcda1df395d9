"""Many writers of one block lose nothing, and no reader sees a torn block.

``N5ZARR_STRESS=1`` writes 300 rounds instead of a few.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import dask.array
import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError
from n5zarr.fast import kernel
from n5zarr.storage import files, locks
from n5zarr.storage.interface import Durability
from n5zarr.storage.writing import FileWriter
from tests.contract.test_kernel import python_only
from tests.faults.test_reentrancy import interrupted, on_timer
from tests.processes import CONTEXT, METHOD

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks of open files")

ROUNDS = 300 if os.environ.get("N5ZARR_STRESS") else 8
PATIENCE = 100  # seconds
SHAPE = (37, 41, 43)  # one block
QUARTERS = [
    (slice(None), y, x)
    for y in (slice(0, 17), slice(17, None))
    for x in (slice(0, 11), slice(11, None))
]

DURABILITIES: list[Durability] = ["atomic", "durable", "overwrite"]
# kernel without Python, kernel that calls Python to encode, kernel that calls Python for both
COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 1},
    {"type": "lz4"},
]


def through_n5zarr(root: Path, name: str, durability: Durability) -> Any:
    return n5zarr.open(root, "r+", path=name, durability=durability)


def through_zarr(root: Path, name: str, durability: Durability) -> Any:
    return zarr.open_array(N5Store(root, durability=durability), path=name, mode="r+")


@pytest.fixture
def tmp_path(where: Path) -> Path:
    return where


OPENINGS: list[Callable[[Path, str, Durability], Any]] = [through_n5zarr, through_zarr]


class Case(NamedTuple):
    """A dataset of one block, and the options of its writers."""

    root: Path
    name: str
    durabilities: tuple[Durability, ...]  # of the writers, in turn
    opening: Callable[[Path, str, Durability], Any]
    is_fast: bool

    def create(self, compression: dict[str, Any]) -> None:
        array = n5zarr.create_array(
            self.root, path=self.name, shape=SHAPE, chunks=SHAPE, dtype="u2",
            compression=compression,
        )  # fmt: skip
        array[...] = 1

    def open(self, number: int = 0) -> Any:
        durability = self.durabilities[number % len(self.durabilities)]
        return self.opening(self.root, self.name, durability)


def cases(root: Path) -> list[Case]:
    """Create datasets for writers in each way, or, without ``N5ZARR_STRESS``, for each fifth."""
    found = []
    ways: list[tuple[Durability, ...]] = [*((one,) for one in DURABILITIES), tuple(DURABILITIES)]
    kinds = [*product(ways, COMPRESSIONS, OPENINGS, (True, False))]
    for way, compression, opening, is_fast in kinds[:: 1 if ROUNDS > 8 else 5]:
        name = "-".join(
            (*way, compression["type"], opening.__name__, "Python"[: 6 * (not is_fast)])
        )
        found.append(Case(root, name, way, opening, is_fast))
        found[-1].create(compression)
    return found


def quarters(array: Any) -> list[int]:
    """Return the value of each quarter, and check that it has only one."""
    block = np.asarray(array[...])
    values = [np.unique(block[quarter]).tolist() for quarter in QUARTERS]
    assert [len(found) for found in values] == [1] * 4, values
    return [found[0] for found in values]


# ------------------------------------------------------------------ what the writers do


def write_quarter(case: Case, number: int) -> None:
    """Write one quarter again and again, and check that it always holds the last value."""
    array = case.open(number)
    for value in range(2, ROUNDS + 2):
        array[QUARTERS[number]] = value
        assert quarters(array)[number] == value


def read_quarters(case: Case, number: int) -> None:
    """Read while others write, and check that the value of no quarter goes back."""
    array, before = case.open(number), [0] * 4
    end = time.monotonic() + PATIENCE
    while min(before) < ROUNDS + 1:
        now = quarters(array)
        assert all(new >= old for new, old in zip(now, before, strict=True)), (before, now)
        before = now
        assert time.monotonic() < end


def work(jobs: list[tuple[Callable[[Case, int], None], Case, int]], barrier: Barrier) -> None:
    for job, case, number in jobs:
        barrier.wait(PATIENCE)
        with nullcontext() if case.is_fast else python_only():
            job(case, number)


def run_in_processes(cases: list[Case], *jobs: Callable[[Case, int], None]) -> None:
    """Run jobs at the same time, each in a process of its own, for one case after the other."""
    barrier = CONTEXT.Barrier(len(jobs))
    processes = [
        CONTEXT.Process(target=work, args=([(job, case, number) for case in cases], barrier))
        for number, job in enumerate(jobs)
    ]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(PATIENCE * len(cases))
    finally:
        for process in processes:
            process.kill()
    assert [process.exitcode for process in processes] == [0] * len(jobs)


def test_four_processes_write_quarters_of_one_block(tmp_path: Path) -> None:
    run_in_processes(cases(tmp_path / "c.n5"), *[write_quarter] * 4, read_quarters)


@pytest.mark.parametrize(
    ("durability", "scheduler"), [*((d, "threads") for d in DURABILITIES), ("atomic", "processes")]
)
@pytest.mark.parametrize("opening", OPENINGS)
def test_chunks_of_dask_that_are_not_aligned_with_blocks(
    tmp_path: Path, durability: Durability, opening: Any, scheduler: str
) -> None:
    values = np.random.default_rng(1).integers(1, 2**16, (23, 29), "u2")
    n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=values.shape, chunks=(11, 13), dtype="u2",
        compression={"type": "raw"},
    )  # fmt: skip
    for chunks in ((3, 5), (7, 2), (5, 29)):
        array = opening(tmp_path / "c.n5", "a", durability)
        pieces = dask.array.from_array(values, chunks=chunks)  # type: ignore[no-untyped-call]
        with dask.config.set({"multiprocessing.context": METHOD}):
            dask.array.store(pieces, array, lock=False, scheduler=scheduler, num_workers=4)
        np.testing.assert_array_equal(array[...], values)
        values = values[::-1].copy()


# ------------------------------------------------------------------ killed writers


def write_for_ever(case: Case, ready: Any) -> None:
    array = case.open()
    ready.set()
    for value in range(2, 10**6):
        array[QUARTERS[value % 2]] = value


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_killed_writer_leaves_no_lock(tmp_path: Path, durability: Durability) -> None:
    case = Case(tmp_path / "c.n5", "d", (durability,), through_n5zarr, True)
    case.create({"type": "raw"})
    array = case.open()
    delays = random.Random(13)  # noqa: S311
    for number in range(max(3, ROUNDS // 5)):
        ready = CONTEXT.Event()
        writer = CONTEXT.Process(target=write_for_ever, args=(case, ready))
        writer.start()
        assert ready.wait(PATIENCE)
        writer.join(delays.uniform(0, 0.05))
        assert writer.exitcode is None  # killed while it writes, at any moment
        writer.kill()
        writer.join()
        try:
            array[QUARTERS[3]] = 7 + number
        except N5BlockError:  # half of it was written: it is an error, and never torn numbers
            assert durability == "overwrite"
            array[...] = 7 + number
        assert quarters(array)[3] == 7 + number


# ------------------------------------------------------------------ on one thread


@pytest.mark.each_of(23)
@pytest.mark.parametrize("is_fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda c: c["type"])
def test_a_handler_that_writes_the_block_that_is_being_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    compression: Any,
    durability: Durability,
    *,
    is_fast: bool,
) -> None:
    """A signal handler that writes a block during its update gets an error or is kept."""
    case = Case(tmp_path / "c.n5", "d", (durability,), through_n5zarr, is_fast)
    case.create(compression)
    array, other = case.open(), case.open()
    written = [1, 1]
    seen: list[str] = []

    def handler() -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # on zarr's own threads, zarr would wait for itself
        value = max(written) + 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "can_do", can_do)
            try:
                other[QUARTERS[1]] = value
                written[1] = value
                assert quarters(other)[1] == value
            except TimeoutError as err:
                seen.append(str(err))

    can_do = kernel.can_do
    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    with nullcontext() if is_fast else python_only():
        for value in range(1000, 1003):
            with interrupted(handler) as at:
                array[QUARTERS[0]] = value
            assert quarters(array)[:2] == [value, written[1]]
            assert at
    assert written[1] > 1
    assert all("expected the lock" in message for message in seen)


@pytest.mark.each_of(2)
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("theirs", ["update", "write", "remove", "read"])
@pytest.mark.parametrize("ours", ["update", "write", "remove"])
def test_a_handler_that_uses_the_file_that_is_being_written(
    tmp_path: Path, ours: str, theirs: str, durability: Durability
) -> None:
    """A handler that changes a file during its update is kept, or one of both gets an error."""
    path = tmp_path / "file"
    n_refused = 0

    def handler() -> None:
        nonlocal n_refused
        before = open_and_read(path)
        try:
            use(path, theirs, b"T", durability)
        except TimeoutError:
            n_refused += 1
            assert open_and_read(path) == before
        else:
            done.append(theirs)

    for is_there in (True, False):
        done: list[str] = []
        path.unlink(missing_ok=True)
        if is_there:
            path.write_bytes(b"head")
        with interrupted(handler):
            use(path, ours, b"O", durability)
        found = open_and_read(path)
        assert found is None or found[:4] == b"head"
        if {ours, theirs} <= {"update", "read"}:
            assert found is not None
            assert found.count(b"O") == 1
            assert found.count(b"T") == done.count("update")
        if ours == theirs == "write":
            assert found in (b"headO", b"headT")  # whoever ends last
    # who replaces a file does not wait for another who does
    both_replace = ours == theirs == "write" and durability != "overwrite"
    assert (
        (n_refused == 0)
        if both_replace
        else (n_refused or "remove" in (ours, theirs) or theirs == "read")
    )


def use(path: Path, how: str, mark: bytes, durability: Durability) -> None:
    with FileWriter(durability, pytest.fail) as writer:
        match how:
            case "update":
                writer.update(str(path), lambda data: (data or b"head") + mark)
            case "write":
                writer.write(str(path), b"head", mark)
            case "remove":
                writer.remove(str(path))
            case _:
                files.read(path, settled=True)


def open_and_read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda c: c["type"])
def test_a_timer_that_writes_the_block_that_is_being_written(
    tmp_path: Path, compression: Any, durability: Durability
) -> None:
    case = Case(tmp_path / "c.n5", "d", (durability,), through_n5zarr, True)
    case.create(compression)
    array, other = case.open(), case.open()
    written = [1]
    delays = random.Random(17)  # noqa: S311

    def handler(_: int, __: FrameType | None) -> None:
        value = written[0] + 1
        try:
            other[QUARTERS[1]] = value
        except TimeoutError:
            return
        written[0] = value

    with on_timer(handler):
        for value in range(1000, 50_000):
            if written[0] > ROUNDS:
                break
            signal.setitimer(signal.ITIMER_REAL, delays.uniform(0.00002, 0.0005))
            array[QUARTERS[0]] = value
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert quarters(array)[:2] == [value, written[0]]
    assert written[0] > ROUNDS


def test_two_threads_that_are_interrupted_while_they_replace_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads whose handlers replace each other's files do not wait for ever."""
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    for path in paths:
        Path(path).write_bytes(b"before")
    replace, both, handled = os.replace, threading.Barrier(2), threading.local()

    def with_handler(source: str, target: str) -> None:
        if not hasattr(handled, "now"):
            handled.now = True
            both.wait(30)
            other = paths[1 - paths.index(target)]
            FileWriter("atomic", pytest.fail).write(other, b"by a handler")
        replace(source, target)

    monkeypatch.setattr(os, "replace", with_handler)
    writers = [
        threading.Thread(
            target=FileWriter("atomic", pytest.fail).write, args=(path, b"by a thread")
        )
        for path in paths
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)  # half of the time after which a lock is given up
    assert not any(writer.is_alive() for writer in writers)
    for path in paths:  # either may be last
        assert Path(path).read_bytes() in (b"by a thread", b"by a handler")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
