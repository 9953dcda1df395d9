"""What a signal handler raises, at any moment, leaves no lock, no open file, and one file at most.

``-m long`` raises at more lines and at instructions of each operation, in each place,
``N5ZARR_ALL=1`` at many; others each time.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, Self

import pytest
from zarr.storage import MemoryStore, WrapperStore

import n5zarr
from n5zarr import N5Store
from n5zarr.storage import key_locks, locks
from n5zarr.storage.requests import Put, Remove, Update, request_each
from tests.contract.test_kernel import python_only
from tests.faults.boundary import Files
from tests.faults.operations import (
    OPERATIONS,
    Case,
    Memory,
    check_model,
    check_repeated,
    faults_of,
    kept,
    until_quiet,
)
from tests.faults.test_reentrancy import on_timer
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the file systems and limits are Linux's"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]

# moments of an operation, about
N_SHORT, N_LONG = 5, 100 if os.environ.get("N5ZARR_ALL") == "1" else 12
HELD_BY = ("storage/", "container/updates.py", "fast/python_writing.py", "fast/chunk_updates.py")
FOLDER = Path(n5zarr.__file__).parent
JOBS = ("convert", "build a pyramid")  # which n5zarr's own threads do
WRITING = [name for name, each in OPERATIONS.items() if each.result is None and name not in JOBS]


class StopError(BaseException):
    """What the signal handler raises; zarr's event loop survives it, on whose thread none run."""


class Moment(NamedTuple):
    """A step of Python: a line, or an instruction, and how often it was there before."""

    code: CodeType
    step: int
    n_before: int


class Interrupted:
    """A context in which one moment of this thread is interrupted; it notes all until then.

    A moment of None notes only.
    """

    def __init__(self, at: Moment | None, kind: str) -> None:
        self.at, self.kind = at, kind
        self.moments: dict[Moment, None] = {}

    def __enter__(self) -> Self:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, _: str, __: object) -> Any:
        path = Path(frame.f_code.co_filename)
        if not (path.is_relative_to(FOLDER) and str(path.relative_to(FOLDER)).startswith(HELD_BY)):
            return None
        frame.f_trace_opcodes = self.kind == "opcode"
        return self._step

    def _step(self, frame: FrameType, event: str, _: object) -> Any:
        if event != self.kind:
            return self._step
        step = frame.f_lasti if self.kind == "opcode" else frame.f_lineno
        each = (Moment(frame.f_code, step, n) for n in range(3))
        found = next((moment for moment in each if moment not in self.moments), None)
        if found is None:  # one of many
            return self._step
        self.moments[found] = None
        if found == self.at:
            self.at = None
            raise StopError(f"{frame.f_code.co_qualname}, {self.kind} {step}")
        return self._step


class Awaited(WrapperStore[MemoryStore]):
    """A store without synchronous methods."""

    _supports_sync_io = False


PLACES: dict[str, Callable[[Path], Files | Memory]] = {
    "memory": lambda root: Memory(lambda store: store),
    "memory, awaited": lambda root: Memory(Awaited),
    "files, by the kernel": Files,
    "files": lambda root: Files(root, "durable"),
    "files, overwritten": lambda root: Files(root, "overwrite"),
}


@pytest.fixture
def root(where: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory; whoever waits for a lock that is left soon fails."""
    monkeypatch.setattr(key_locks, "_PATIENCE", 5)
    monkeypatch.setattr(locks, "_PATIENCE", 5)
    return where / "files"


def open_files() -> set[str]:
    """Return the open files of this process, by number and name."""
    found = set()
    for number in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # of this listing
            found.add(f"{number.name} {number.readlink()}")
    return found


def check_nothing_is_held() -> None:
    assert [holder.name for holder in key_locks._held if not holder.is_gone] == []
    assert locks._announced() == []


def check(case: Case[Any], at: Moment, kind: str) -> bool:
    """Interrupt an operation, and check what there is then; False if it took another way."""
    operation, place = case.operation, case.place
    place.fill(case.old)
    before, where = open_files(), ""
    interrupted = Interrupted(at, kind)
    try:
        with interrupted:
            operation.run(place)
    except StopError as err:
        where = str(err)
    if interrupted.at is not None:
        return False
    assert where, "the interrupt was lost"
    print(where, place)  # noqa: T201 - shown if what follows fails
    until_quiet()
    check_nothing_is_held()
    assert open_files() <= before, where
    left = list(place.root.rglob("*.partial")) if isinstance(place, Files) else []
    assert len(left) <= 1, where
    if not isinstance(place, Files) or place.durability != "overwrite":
        assert faults_of(operation, *map(kept, (case.old, case.new, place.objects()))) == [], where
        check_repeated(operation, place)
        check_model(operation, place.objects())
    return True


def check_some(
    name: str, kind: str, root: Path, record_property: Any, n_most: int, places: list[str]
) -> None:
    """Interrupt an operation in some moments, in some places."""
    n_interrupts = 0
    for where in places:
        is_slow = where in ("files", "files, overwritten")
        with python_only() if is_slow else nullcontext():
            undisturbed = Interrupted(None, kind)
            case = Case.of(OPERATIONS[name], PLACES[where](root.with_name(where)), undisturbed)
            moments = list(undisturbed.moments)
            step = max(1, len(moments) // n_most)
            start = random.randrange(step)  # noqa: S311 - others each time
            n_interrupts += sum(check(case, at, kind) for at in moments[start::step])
    record_property(f"interrupts, by {kind}", {name: n_interrupts})


@pytest.mark.parametrize("name", WRITING)
def test_an_interrupt_at_a_line_leaves_nothing(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    k = WRITING.index(name)
    places = [[*PLACES][n % len(PLACES)] for n in (k, k + 2)]
    check_some(name, "line", root, record_property, N_SHORT, places)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["line", "opcode"])
@pytest.mark.parametrize("name", WRITING)
def test_an_interrupt_at_any_step_leaves_nothing(
    name: str, kind: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    check_some(name, kind, root, record_property, N_LONG, [*PLACES])


# ------------------------------------------------------------------ interrupts by a timer


def calls_of(store: N5Store) -> list[Callable[[int], object]]:
    """List changes and reads of a container with an array ``a``."""

    def ask(*requests: Any) -> object:
        return store.run(request_each(requests))

    return [
        lambda n: n5zarr.set_attribute(store, "a", "k", n),
        lambda n: ask(Put(f"b/{n % 3}", b"%d" % n)),
        lambda n: ask(Update(f"c/{n % 3}", lambda old: b"%d" % n)),
        lambda n: ask(Remove(f"b/{n % 3}")),
        lambda n: n5zarr.get_attribute(store, "a", "k"),
    ]


@contextmanager
def timer() -> Iterator[Callable[[Callable[[], object], float], BaseException | None]]:
    """Yield a function that interrupts a call after some seconds, and returns what was raised."""
    is_armed = False

    def handle(*_: object) -> None:
        if is_armed:
            raise KeyboardInterrupt

    def run(call: Callable[[], object], after: float) -> BaseException | None:
        nonlocal is_armed
        try:
            signal.setitimer(signal.ITIMER_REAL, after)
            is_armed = True
            try:
                call()
            finally:
                is_armed = False
        except KeyboardInterrupt as err:
            return err
        return None

    others = gc.callbacks[:]
    gc.callbacks.clear()  # those of hypothesis lose an interruption
    try:
        with on_timer(handle):
            yield run
    finally:
        gc.callbacks.extend(others)


@pytest.mark.parametrize("seconds", [1, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["memory", "files"])
def test_a_timer_that_interrupts_leaves_nothing(
    kind: str, seconds: float, root: Path, record_property: Callable[[str, object], None]
) -> None:
    """Another thread changes the same document meanwhile.

    The exceptions are kept, as a console keeps the last one: their tracebacks hold what the calls
    had.
    """
    where = MemoryStore() if kind == "memory" else root
    store, numbers, raised = N5Store(where), random.Random(5), list[BaseException]()  # noqa: S311
    n5zarr.create_array(store, path="a", shape=(7, 5), chunks=(3, 2), dtype="u2")
    has_ended, n_changes = threading.Event(), 0

    def change() -> None:
        nonlocal n_changes
        while not has_ended.wait(0.002):
            n5zarr.set_attribute(N5Store(where), "a", f"of_thread[{n_changes}]", n_changes)
            n_changes += 1

    thread, calls, took = threading.Thread(target=change), calls_of(store), list[float]()
    before = open_files()
    for call in calls:
        begin = time.perf_counter()
        call(1)
        took.append(time.perf_counter() - begin)
    thread.start()
    with timer() as interrupted:
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end or not raised:
            n += 1
            call = partial(calls[n % len(calls)], n)
            error = interrupted(call, took[n % len(calls)] * numbers.uniform(0.1, 1.1))
            if error is not None:
                raised.append(error)
                call()  # waits for nobody who has gone
    has_ended.set()
    thread.join(PATIENCE)
    check_nothing_is_held()
    assert open_files() <= before
    assert n5zarr.get_attribute(store, "a", "of_thread") == list(range(n_changes))
    record_property("interrupts by a timer", {kind: len(raised)})
