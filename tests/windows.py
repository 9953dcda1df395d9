"""Make local files behave as on Windows: ``uv run pytest -p tests.windows tests/unit/storage``.

A file that is open cannot be replaced, renamed or removed, nor can a directory with such a file;
``os.rename`` replaces nothing; a directory cannot be opened. n5zarr finds no function in ``os``
that Windows lacks, no locks and no kernel. Paths and names stay those of this system, and other
processes are as they are.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.abc
import importlib.machinery
import os as system
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

MISSING = re.compile(
    r"O_(NONBLOCK|CLOEXEC|DIRECTORY|NOFOLLOW)|p?readv?|p?writev?|f?chown|lchown|fork|getuid"
    r"|geteuid|killpg|mkfifo|register_at_fork|sched_getaffinity|setsid|statvfs"
)
KEPT = {"write", "read"}  # of those that the expression covers
IMPORTS = re.compile(rb"^( *)import (os|fcntl)$", re.MULTILINE)


def identities(paths: Iterable[Path], *, follow: bool = False) -> Iterator[tuple[int, int]]:
    """Yield device and number of each existing file."""
    for path in paths:
        with contextlib.suppress(OSError):  # closed or removed since
            status = path.stat(follow_symlinks=follow)
            yield status.st_dev, status.st_ino


def check_closed(path: Any) -> None:
    """Raise the error of Windows for a file that is open, and for a directory with one."""
    place = Path(path)
    below = place.rglob("*") if place.is_dir() and not place.is_symlink() else ()
    held = set(identities(Path("/proc/self/fd").iterdir(), follow=True))
    if not held.isdisjoint(identities([place, *below])):
        raise PermissionError(errno.EACCES, "a program has it open", path)


def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of ``os`` refuse files that are open."""

    def call(*paths: Any, **options: Any) -> Any:
        for path in paths[:2]:
            if not options and not isinstance(path, int):
                check_closed(path)
        return function(*paths, **options)

    return call


def rename(source: Any, target: Any, **options: Any) -> None:
    if Path(target).exists(follow_symlinks=False):
        raise FileExistsError(errno.EEXIST, "os.rename replaces nothing on Windows", target)
    RENAME(source, target, **options)


def open_file(path: Any, *arguments: Any, **options: Any) -> int:
    is_temporary = arguments[0] & getattr(system, "O_TMPFILE", 0) == getattr(system, "O_TMPFILE", 1)
    if not is_temporary and "dir_fd" not in options and Path(path).is_dir():
        raise PermissionError(errno.EACCES, "Windows opens no directories", path)
    return OPEN(path, *arguments, **options)


class Os(ModuleType):
    """The module ``os`` as n5zarr finds it on Windows."""

    name = "nt"

    def __getattr__(self, name: str) -> object:
        if MISSING.fullmatch(name) and name not in KEPT:
            raise AttributeError(name)
        return getattr(system, name)


class Loader(importlib.machinery.SourceFileLoader):
    """A loader of modules of n5zarr that find :class:`Os`, and no ``fcntl``."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = IMPORTS.sub(rb"\1from tests.windows import \2", self.get_data(path))
        return self.source_to_code(source, path)


class Finder(importlib.abc.MetaPathFinder):
    """A finder of the modules of n5zarr."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "n5zarr":
            return None
        if fullname.endswith("._kernel"):
            raise ModuleNotFoundError(fullname)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(fullname, spec.loader.path)
        return spec


os = Os("os")
OPEN, RENAME = system.open, refusing(system.rename)


def pytest_load_initial_conftests() -> None:
    """Install the plugin before anything imports n5zarr; importing this module changes nothing."""
    assert "n5zarr" not in sys.modules, "n5zarr is imported already"
    sys.meta_path.insert(0, Finder())
    system.open, system.rename = open_file, rename  # type: ignore[assignment]
    for each in ("remove", "replace", "rmdir", "unlink"):
        setattr(system, each, refusing(getattr(system, each)))
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # it opens directories
