"""Operations survive a failure of each call of the operating system, and an end at it.

``test_os_calls.py`` runs this in a process in which the boundary is loaded.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import n5zarr
from n5zarr.storage.interface import Durability
from tests.faults.boundary import FOR_EVER, Boundary, Call, Files, How
from tests.faults.operations import (
    OPERATIONS,
    Case,
    Operation,
    check_repeated,
    faults_of,
    kept,
)
from tests.faults.power_cut import Disk

pytestmark = [
    # zarr leaves coroutines where one of several requests fails
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
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
def root(where: Path) -> Path:
    return where / "files"


def faults_at(calls: list[Call]) -> Iterator[Fault]:
    for at, call in enumerate(calls, 1):
        for error in ERRORS[call.kind]:
            yield Fault("fail", at, error, at, call)
        if call.kind in ("read", "write"):
            yield Fault("half", at, 0, at, call)
        if call.kind in _CHANGES:
            yield Fault("do and fail", at, errno.EIO, at, call)
        yield Fault("fail", at, errno.EIO, FOR_EVER, call)


class Undisturbed(NamedTuple):
    """An operation without faults: its calls, and the disk before it."""

    case: Case[Files]
    calls: list[Call]
    disk: Disk

    @classmethod
    def of(cls, name: str, place: Files) -> Undisturbed:
        calls, disks = list[Call](), list[Disk]()

        @contextmanager
        def watch() -> Iterator[None]:
            disks.append(Disk(place.root))
            with Boundary(place.root).recorded() as found:
                yield
            calls.extend(found)

        return cls(Case.of(OPERATIONS[name], place, watch()), calls, *disks)


def spread[Item](items: list[Item], n: int) -> list[Item]:
    """Choose some of many items, evenly spread."""
    return items if IS_LONG else [items[k * len(items) // n] for k in range(min(n, len(items)))]


def durability_of(name: str) -> Durability:
    return "durable" if len(name) % 2 else "atomic"


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_each_call_may_fail(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    case, calls, _ = Undisturbed.of(name, Files(root, durability_of(name)))
    outcomes = Counter[str]()
    for fault in spread([*faults_at(calls)], N_SHORT):
        outcomes[f"{fault.how} {fault.call.kind}: {check_fault(case, fault)}"] += 1
    record_property("calls of the system that fail", dict(outcomes))


def check_fault(case: Case[Files], fault: Fault) -> str:
    operation, place = case.operation, case.place
    boundary = Boundary(place.root)

    @contextmanager
    def armed() -> Iterator[None]:
        boundary.arm(fault.how, fault.at, fault.error, until=fault.until)
        try:
            yield
        finally:
            boundary.disarm()

    error, result = case.run(
        armed(),
        lambda: (
            boundary.failed() in ("unlink", "rmdir")
            or not (unfinished(place) or (operation.creates and empty_directories(place.root)))
        ),
    )
    where = f"{fault}: {error!r}"
    outcome = case.judged(error, result, where)
    if error is None:
        return outcome
    is_unknown = boundary.failed() == "unlink" or (fault.how, boundary.failed()) == (
        "do and fail", "open",
    )  # fmt: skip
    if fault.until != FOR_EVER and not is_unknown:  # who is told of no file removes none
        assert not unfinished(place), where
        if operation.creates and boundary.failed() != "rmdir":  # an empty directory is a group
            assert not empty_directories(place.root), where
    case.check_repeated(where)
    return outcome


@pytest.mark.parametrize("name", WRITING)
def test_each_call_may_be_the_last(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    place = Files(root, durability_of(name))
    case, calls, _ = Undisturbed.of(name, place)
    moments = spread([*range(1, len(calls) + 1)], N_SHORT)
    n_left = 0
    for at in moments:
        place.fill(case.old)
        killed(case.operation, place, at)
        where = f"killed at {at}: {calls[at - 1]}"
        found = faults_of(case.operation, *map(kept, (case.old, case.new, place.objects())))
        assert found == [], where
        n_left += clean(place)
        case.check_repeated(where)
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
    case, calls, disk = Undisturbed.of(name, Files(root, "durable"))
    calls = [*filter(is_change, calls)]
    old, new = kept(case.old), kept(case.new)
    n_outcomes = 0
    for n, call in enumerate(calls, 1):
        disk.apply(call)
        for left in disk.outcomes(LIMIT):
            wrong = faults_of(case.operation, old, new, kept(left))
            assert wrong == [], f"after {n} of {len(calls)}: {call}"
            n_outcomes += 1
    for left in disk.outcomes(FINAL_LIMIT):  # what has returned is there
        assert kept(left) == new
    record_property("power cut", {"moments": len(calls), "outcomes": n_outcomes})


def test_a_power_cut_is_noticed_without_syncs(root: Path) -> None:
    """A power cut loses data that is not synced, so that these tests can notice it."""
    case, calls, disk = Undisturbed.of("write all blocks", Files(root, "atomic"))
    for call in filter(is_change, calls):
        disk.apply(call)
    outcomes = [kept(left) for left in disk.outcomes(FINAL_LIMIT)]
    old, new = kept(case.old), kept(case.new)
    assert any(faults_of(case.operation, old, new, left) for left in outcomes)
    assert old in outcomes
    assert new in outcomes


# what a killed run has finished, the next one does not sync: docs/convert.md; the last two find by
# reading that nothing is left to do
RESUMED = ("convert", "build a pyramid", "remove an item of an attribute", "delete a node")


@pytest.mark.parametrize("name", [name for name in WRITING if name not in RESUMED])
def test_power_is_cut_after_what_was_killed_has_been_repeated(
    name: str, root: Path, record_property: Callable[[str, object], None]
) -> None:
    """A result that was returned survives a power cut, also if a killed writer had begun it."""
    place = Files(root, "durable")
    case, calls, _ = Undisturbed.of(name, place)
    moments = spread([*range(1, len(calls) + 1)], N_SHORT)
    boundary = Boundary(root)
    for at in moments:
        place.fill(case.old)
        disk = Disk(root)
        killed(case.operation, place, at, recorded=True)
        done = boundary.calls()
        with boundary.recorded() as again:
            check_repeated(case.operation, place)
        for call in (*done, *again):
            disk.apply(call)
        for left in disk.outcomes(FINAL_LIMIT):
            assert kept(left) == kept(case.new), f"killed at {at}: {calls[at - 1]}"
    record_property("power cut after a kill and a repetition", {"cases": len(moments)})
