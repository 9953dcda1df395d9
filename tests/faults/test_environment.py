"""Full disks and missing permissions are errors, and each unit stays old or is new.

``N5ZARR_STRESS=1`` tries each operation with each amount that is left; else some.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from n5zarr.errors import N5Error
from tests.faults.boundary import Files
from tests.faults.operations import OPERATIONS, Case
from tests.processes import CONTEXT

resource = pytest.importorskip("resource", reason="there are no such limits on Windows")


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the file systems and limits are Linux's")
]

IS_LONG = bool(os.environ.get("N5ZARR_STRESS"))
NOBODY = 65534
PAGE = 4096
SHORT = ["create an array with elements", "replace an array", "write all blocks", "grow"]
AMOUNTS = range(12) if IS_LONG else (0, 2)
EXPECTED = {
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EROFS, errno.EFBIG
}  # fmt: skip
PATIENCE = 6000 if IS_LONG else 300  # seconds

type Limit = Callable[[Path, int], AbstractContextManager[None]]


@contextmanager
def full_disk(root: Path, n_left: int) -> Iterator[None]:
    """Fill the disk up to a number of free pages."""
    ballast = root.parent / "ballast"
    with ballast.open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(PAGE)):
                pass
        file.truncate(max(0, file.tell() // PAGE - n_left) * PAGE)
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def no_inodes(root: Path, n_left: int) -> Iterator[None]:
    """Use the inodes up to a number of free ones."""
    ballast = root.parent / "ballast"
    ballast.mkdir()
    n = 0
    with suppress(OSError):
        while True:
            (ballast / str(n)).touch(exist_ok=False)
            n += 1
    for k in range(min(n_left, n)):
        (ballast / str(k)).unlink()
    try:
        yield
    finally:
        for path in ballast.iterdir():
            path.unlink()
        ballast.rmdir()


@contextmanager
def no_descriptors(root: Path, n_left: int) -> Iterator[None]:
    """Limit the file descriptors to a number of free ones."""
    lowest = os.open(root, os.O_RDONLY)
    os.close(lowest)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + n_left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def short_files(root: Path, n_left: int) -> Iterator[None]:
    """Let no file be longer than some bytes, as a quota may."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50 * n_left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def no_permission(root: Path, n_left: int) -> Iterator[None]:
    """Forbid to write into directories, into files, or into both, or to read files."""
    paths = [path for path in root.rglob("*") if n_left % 3 or path.is_dir()]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        if n_left % 3 == 1 and path.is_dir():
            continue
        path.chmod(0o555 if path.is_dir() else 0o000 if n_left % 3 == 1 else 0o444)
    try:
        yield
    finally:
        for path, mode in modes.items():
            with suppress(FileNotFoundError):
                path.chmod(mode)


def run(program: str, *arguments: str | Path) -> None:
    command = [str(shutil.which(program)), *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def read_only(root: Path, n_left: int) -> Iterator[None]:
    """Mount the file system anew, to be read only."""
    run("mount", "-o", "remount,ro", root.parent)
    try:
        yield
    finally:
        run("mount", "-o", "remount,rw", root.parent)


LIMITS: dict[str, tuple[Limit, str]] = {
    "full disk": (full_disk, "size=512k"),
    "no inodes": (no_inodes, "nr_inodes=120"),
    "read-only mount": (read_only, "size=8m"),
    "no descriptors": (no_descriptors, ""),
    "short files": (short_files, ""),
    "no permission": (no_permission, ""),
}


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return a directory that all may reach, on a file system of its own where one is wanted."""
    options = LIMITS[request.getfixturevalue("kind")][1]
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        where.chmod(0o755)
        if options:
            try:
                run("mount", "-t", "tmpfs", "-o", options, "tmpfs", where)
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("this user may not mount")
        where.chmod(0o777)
        yield where
        if options:
            run("umount", where)


@pytest.mark.parametrize("kind", list(LIMITS))
def test_an_operation_that_the_system_refuses_raises_an_error(
    kind: str, place: Path, record_property: Callable[[str, object], None]
) -> None:
    told, outcomes = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=limited, args=(kind, place, outcomes))
    child.start()
    outcomes.close()
    found = told.recv() if told.poll(PATIENCE) else None
    child.join(PATIENCE)
    assert isinstance(found, Counter), found
    record_property(kind, dict(found))
    assert sum(found.values()) > len(AMOUNTS)
    assert any(outcome != "right" for outcome in found)  # something was refused


def limited(kind: str, place: Path, outcomes: Any) -> None:
    """Run operations under a limit; return how they end, or the problems."""
    sys.dont_write_bytecode = True  # Python would keep half of what it compiles
    try:
        if kind == "no permission" and os.getuid() == 0:
            for name in SHORT:  # which imports all that another user may not reach
                Case.of(OPERATIONS[name], emptied(place / "before"))
            os.setuid(NOBODY)  # root may do everything
        found = Counter[str]()
        for name in OPERATIONS if IS_LONG else SHORT:
            for n_left in AMOUNTS:
                found[check(kind, name, n_left, place / "files")] += 1
        outcomes.send(found)
    except (AssertionError, OSError, N5Error) as err:
        outcomes.send("".join(traceback.format_exception(err)))


def check(kind: str, name: str, n_left: int, root: Path) -> str:
    """Run an operation under a limit, and then without it; return how it ends."""
    files = emptied(root)
    case = Case.of(OPERATIONS[name], files)
    error, result = case.run(LIMITS[kind][0](root, n_left))
    if isinstance(error, OSError) and error.errno not in EXPECTED:
        raise error
    where = f"{name}, {n_left} left: {error!r}"
    outcome = case.judged(error, result, where)
    if error is not None:
        assert not [each for each in files.objects() if each.endswith(".partial")], where
        case.check_repeated(where)
    return f"{name}: {outcome}" if outcome in ("True", "False") else outcome


def emptied(root: Path) -> Files:
    files = Files(root)
    files.fill({})
    return files
