"""Operations survive a failure of each call of the operating system, and an end at it.

``test_os_calls.py`` runs this in a process in which the boundary is loaded.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import n5zarr
from n5zarr.errors import N5Error
from tests.faults.boundary import FOR_EVER, Boundary, Call, Files, How
from tests.faults.operations import (
    OPERATIONS,
    Operation,
    check_model,
    check_repeated,
    faults_of,
    kept,
    prepare,
    until_quiet,
)
from tests.faults.power_cut import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from n5zarr.storage.interface import Durability

pytestmark = [
    # zarr leaves coroutines where one of several requests fails
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]

IS_LONG = bool(os.environ.get("N5ZARR_STRESS"))
N_SHORT = 2  # cases of each operation
WRITING = [name for name, operation in OPERATIONS.items() if operation.result is None]
LIMIT, FINAL_LIMIT = (512, 8192) if IS_LONG else (8, 64)  # what a power cut leaves, at a moment

_NO_PLACE = [errno.ENOSPC, errno.EDQUOT]
_REFUSED = [errno.EACCES, errno.EROFS]
ERRORS: dict[str, list[int]] = {
    "open": [errno.EMFILE, errno.EACCES, errno.EIO],
    "open to write": [errno.ENFILE, errno.EACCES, errno.EROFS],
    "create": [errno.EMFILE, *_NO_PLACE, *_REFUSED],
    "list": [errno.EMFILE, errno.EACCES, errno.EIO],
    "read": [errno.EIO],
    "write": [*_NO_PLACE, errno.EIO, errno.EFBIG],
    "truncate": [errno.EIO],
    "sync": [errno.EIO, errno.ENOSPC],
    "mkdir": [*_NO_PLACE, *_REFUSED],
    "link": [errno.EMLINK, errno.ENOSPC, *_REFUSED],
    "rename": [errno.ENOSPC, *_REFUSED],
    "unlink": [errno.EIO, *_REFUSED],
    "rmdir": [errno.EIO, *_REFUSED],
}
_CHANGES = {"create", "write", "mkdir", "link", "rename", "unlink", "rmdir"}


class Fault(NamedTuple):
    """An error of some call, or of all calls up to another one."""

    how: How
    at: int
    error: int
    until: int
    call: Call

    def __str__(self) -> str:
        error = errno.errorcode.get(self.error, "")
        since = " and at all that follow" if self.until == FOR_EVER else ""
        return f"{self.how} {error} at {self.at}{since}: {self.call.kind} {self.call.path}"


@pytest.fixture
def root() -> Iterator[Path]:
    """Return a directory, in memory where there is one."""
    shared = Path("/dev/shm")  # noqa: S108 - no file of a fixed name
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory:
        yield Path(directory) / "files"


class Undisturbed(NamedTuple):
    """The calls and results of an operation without faults."""

    old: dict[str, bytes]
    new: dict[str, bytes]
    calls: list[Call]

    @classmethod
    def of(cls, operation: Operation, place: Files) -> Undisturbed:
        prepare(place)
        old = place.objects()
        boundary = Boundary(place.root)
        boundary.record()
        result = operation.run(place)
        calls = boundary.calls()
        assert operation.result is None or result == operation.result
        new = place.objects()
        check_model(operation, new)
        assert faults_of(operation, kept(old), kept(new), kept(new)) == []
        return cls(old, new, calls)

    def faults(self) -> Iterator[Fault]:
        for at, call in enumerate(self.calls, 1):
            for error in ERRORS[call.kind]:
                yield Fault("fail", at, error, at, call)
            if call.kind in ("read", "write"):
                yield Fault("half", at, 0, at, call)
            if call.kind in _CHANGES:
                yield Fault("do and fail", at, errno.EIO, at, call)
            yield Fault("fail", at, errno.EIO, FOR_EVER, call)


def spread[Item](items: list[Item], n: int) -> list[Item]:
    """Choose some of many items, evenly spread."""
    return items if IS_LONG else [items[k * len(items) // n] for k in range(min(n, len(items)))]


def durability_of(name: str) -> Durability:
    return "durable" if len(name) % 2 else "atomic"


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_each_call_may_fail(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    operation, place = OPERATIONS[name], Files(root, durability_of(name))
    done = Undisturbed.of(operation, place)
    outcomes = Counter[str]()
    for fault in spread(list(done.faults()), N_SHORT):
        outcomes[
            f"{fault.how} {fault.call.kind}: {check_fault(operation, place, done, fault)}"
        ] += 1
    record_property("calls of the system that fail", dict(outcomes))


def check_fault(operation: Operation, place: Files, done: Undisturbed, fault: Fault) -> str:
    boundary = Boundary(place.root)
    place.fill(done.old)
    outcome, result = "right", None
    boundary.arm(fault.how, fault.at, fault.error, until=fault.until)
    try:
        result = operation.run(place)
    except (OSError, N5Error) as err:
        outcome = type(err).__name__
        until_quiet(
            lambda: (
                boundary.failed() in ("unlink", "rmdir")
                or not (unfinished(place) or (operation.creates and empty_directories(place.root)))
            ),
        )
    finally:
        boundary.disarm()
    now, new = place.objects(), kept(done.new)
    where = f"{fault}: {outcome}"
    if outcome == "right":
        if operation.result is not None and result != operation.result:
            return str(result)
        assert kept(now) == new, where
        return outcome
    assert faults_of(operation, kept(done.old), new, kept(now)) == [], where
    is_unknown = boundary.failed() == "unlink" or (fault.how, boundary.failed()) == (
        "do and fail", "open",
    )  # fmt: skip
    if fault.until != FOR_EVER and not is_unknown:  # who is told of no file removes none
        assert not unfinished(place), where
        if operation.creates and boundary.failed() != "rmdir":  # an empty directory is a group
            assert not empty_directories(place.root), where
    check_repeated(operation, place)
    assert kept(place.objects()) == new, where
    return outcome


@pytest.mark.parametrize("name", WRITING)
def test_each_call_may_be_the_last(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    operation, place = OPERATIONS[name], Files(root, durability_of(name))
    done = Undisturbed.of(operation, place)
    moments = spread(list(range(1, len(done.calls) + 1)), N_SHORT)
    n_left = 0
    for at in moments:
        place.fill(done.old)
        killed(operation, place, at)
        now = place.objects()
        where = f"killed at {at}: {done.calls[at - 1]}"
        assert faults_of(operation, kept(done.old), kept(done.new), kept(now)) == [], where
        n_left += clean(place)
        check_repeated(operation, place)
        assert kept(place.objects()) == kept(done.new), where
        n_left += clean(place)
        assert not unfinished(place), where
    record_property("killed at a call", {"cases": len(moments), "files left": n_left})


def killed(operation: Operation, place: Files, at: int, *, recorded: bool = False) -> None:
    """Run an operation in a process that is killed at a call."""
    child = os.fork()
    if child == 0:
        Boundary(place.root).arm("kill", at, recorded=recorded)
        try:
            operation.run(place)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def unfinished(place: Files) -> list[Path]:
    return list(place.root.rglob("*.partial"))


def empty_directories(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_dir() and not any(path.iterdir())]


def clean(place: Files) -> int:
    """Remove the files of killed writers, as ``validate --clean`` does; return their number."""
    n_removed = 0
    for name in ("c.n5", "out.n5"):
        is_begun = any((place.root / name).rglob("attributes.json"))
        if is_begun and not (place.root / name / "n5zarr-incomplete.json").exists():
            found = n5zarr.validate(place.root / name).findings
            cleaned = n5zarr.clean_leftovers(place.root / name, found, min_age=0)
            n_removed += len(cleaned.removed)
    return n_removed


def is_change(call: Call) -> bool:
    return call.kind not in ("open", "open to write", "list", "read")


@pytest.mark.parametrize("name", WRITING)
def test_power_may_be_cut_after_each_call(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    operation, place = OPERATIONS[name], Files(root, "durable")
    prepare(place)
    disk, old = Disk(root), place.objects()
    boundary = Boundary(root)
    boundary.record()
    operation.run(place)
    calls = list(filter(is_change, boundary.calls()))
    new = place.objects()
    n_outcomes = 0
    for n, call in enumerate(calls, 1):
        disk.apply(call)
        for left in disk.outcomes(LIMIT):
            wrong = faults_of(operation, kept(old), kept(new), kept(left))
            assert wrong == [], f"after {n} of {len(calls)}: {call}"
            n_outcomes += 1
    for left in disk.outcomes(FINAL_LIMIT):  # what has returned is there
        assert kept(left) == kept(new)
    record_property("power cut", {"moments": len(calls), "outcomes": n_outcomes})


def test_a_power_cut_is_noticed_without_syncs(root: Path) -> None:
    """A power cut loses data that is not synced, so that these tests can notice it."""
    operation, place = OPERATIONS["write all blocks"], Files(root, "atomic")
    prepare(place)
    disk, old = Disk(root), place.objects()
    boundary = Boundary(root)
    boundary.record()
    operation.run(place)
    for call in filter(is_change, boundary.calls()):
        disk.apply(call)
    outcomes = list(disk.outcomes(FINAL_LIMIT))
    new = place.objects()
    assert any(faults_of(operation, kept(old), kept(new), kept(left)) for left in outcomes)
    assert any(kept(left) == kept(old) for left in outcomes)
    assert any(kept(left) == kept(new) for left in outcomes)


# what a killed run has finished, the next one does not sync: docs/convert.md; the last two find by
# reading that nothing is left to do
RESUMED = (
    "convert",
    "build a pyramid",
    "remove an item of an attribute",
    "delete a node",
)


@pytest.mark.parametrize("name", [name for name in WRITING if name not in RESUMED])
def test_power_is_cut_after_what_was_killed_has_been_repeated(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    """A result that was returned survives a power cut, also if a killed writer had begun it."""
    operation, place = OPERATIONS[name], Files(root, "durable")
    done = Undisturbed.of(operation, place)
    moments = spread(list(range(1, len(done.calls) + 1)), N_SHORT)
    boundary = Boundary(root)
    for at in moments:
        place.fill(done.old)
        disk = Disk(root)
        killed(operation, place, at, recorded=True)
        for call in boundary.calls():
            disk.apply(call)
        boundary.record()
        check_repeated(operation, place)
        for call in boundary.calls():
            disk.apply(call)
        for left in disk.outcomes(FINAL_LIMIT):
            assert kept(left) == kept(done.new), f"killed at {at}: {done.calls[at - 1]}"
    record_property("power cut after a kill and a repetition", {"cases": len(moments)})
