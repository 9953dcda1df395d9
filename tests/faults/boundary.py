"""Observe the calls of a process on files below a directory, through ``os_calls.c``.

It must be loaded before all else, by ``LD_PRELOAD``: :func:`environment` compiles it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from n5zarr import N5Store
from n5zarr.storage.interface import Durability
from tests.contract.test_kernel_build import compiler

HERE = Path(__file__).parent
FOR_EVER = 2**40

type How = Literal["pass", "fail", "half", "do and fail", "kill"]
_HOW: list[How] = ["pass", "fail", "half", "do and fail", "kill"]  # as in os_calls.c


def environment(directory: Path) -> dict[str, str]:
    """Compile the library, and return the environment of a process that loads it."""
    found = compiler()
    if found is None:
        pytest.skip("no C compiler")
    library = directory / "os_calls.so"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    source = HERE / "os_calls.c"
    subprocess.run([found, *flags, "-o", library, source, "-ldl", "-lpthread"], check=True)
    return os.environ | {"LD_PRELOAD": str(library)}


class Call(NamedTuple):
    """A call that has succeeded."""

    # what it did: ``open``, ``open to write``, ``create``, ``list``, ``read``, ``write``,
    # ``truncate``, ``sync``, ``mkdir``, ``link``, ``rename``, ``unlink``, ``rmdir``; to what; the
    # new name
    kind: str
    path: str
    other: str
    # of the open file; where it was written, or its new length
    inode: int
    at: int
    data: bytes  # what was written

    @classmethod
    def of(cls, line: str) -> Call:
        kind, path, other, inode, at, data = line.split("\t")
        path, other = (os.path.normpath(name) if name else "" for name in (path, other))
        return cls(kind, path, other, int(inode), int(at), bytes.fromhex(data))


class Boundary:
    """An observer of a directory, which can let calls fail."""

    def __init__(self, root: Path) -> None:
        self._library = ctypes.CDLL(None)
        self._library.boundary_calls.restype = ctypes.c_long
        self._library.boundary_failed.restype = ctypes.c_char_p
        self._root = root
        self._log = root.with_name(f"{root.name}.log")

    def arm(
        self, how: How, at: int, error: int = 0, *, until: int | None = None, recorded: bool = False
    ) -> None:
        """Let the n-th call from now on fail, or all from then until another one."""
        numbers = map(ctypes.c_long, (at, at if until is None else until))
        log = os.fsencode(self._log) if recorded else b""
        self._library.boundary_arm(os.fsencode(self._root), *numbers, _HOW.index(how), error, log)

    @contextmanager
    def recorded(self) -> Iterator[list[Call]]:
        """Record all calls; they are in the list afterwards."""
        calls: list[Call] = []
        self.arm("pass", 0, recorded=True)
        yield calls
        calls += self.calls()

    def n_calls(self) -> int:
        """Return the number of calls since the fault was set."""
        return int(self._library.boundary_calls())

    def failed(self) -> str:
        """Return the kind of the call that has failed, where "create" is "open", too."""
        return bytes(self._library.boundary_failed()).decode()

    def disarm(self) -> None:
        """Stop observing."""
        zero = ctypes.c_long(0)
        self._library.boundary_arm(b"", zero, zero, 0, 0, b"")

    def calls(self) -> list[Call]:
        """Return the calls that have been recorded."""
        self.disarm()
        return list(map(Call.of, self._log.read_text().splitlines()))


class Files:
    """Two containers in local files; see :class:`tests.faults.operations.Place`."""

    def __init__(self, root: Path, durability: Durability = "atomic", codecs: str = "n5") -> None:
        self.root, self.durability, self.codecs = root, durability, codecs
        root.mkdir(exist_ok=True)

    def open(self, name: str = "c.n5") -> N5Store:
        where = self.root / name
        return N5Store(where, durability=self.durability, codecs=self.codecs)  # type: ignore[arg-type]

    def objects(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def fill(self, objects: dict[str, bytes]) -> None:
        """Replace all files and directories by these files."""
        shutil.rmtree(self.root)
        self.root.mkdir()
        for name, data in objects.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
