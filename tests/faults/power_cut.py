"""Compute the states of a disk after a power cut, from recorded calls.

What a file holds is certain only after a sync of the file; what a directory lists, only after a
sync of the directory. Until then, a file may hold what it held at any moment since, or half of the
last of it, and each name of a directory may stand for any of what it has stood for since.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from tests.faults.boundary import Call


@dataclass(eq=False)
class _File:
    contents: list[bytes]  # that it may have; the last one is what programs see

    def options(self) -> list[bytes]:
        """Return the possible contents, the newest last."""
        now = self.contents[-1]
        unsynced = [] if len(self.contents) == 1 else [now[: len(now) // 2]]
        return list(dict.fromkeys([*self.contents[::-1], *unsynced]))[::-1]


@dataclass(eq=False)
class _Directory:
    names: dict[str, list[Any]] = field(default_factory=dict)  # of files, directories, and None

    def now(self, name: str) -> Any:
        return self.names.get(name, [None])[-1]

    def put(self, name: str, what: Any) -> None:
        self.names.setdefault(name, [None]).append(what)

    def sync(self) -> None:
        self.names = {n: known[-1:] for n, known in self.names.items() if known[-1] is not None}


class Disk:
    """A model of the files below a directory, and of what is synced.

    What the directory holds at first is on the disk.
    """

    def __init__(self, root: Path) -> None:
        self._prefix = f"{root}/"
        self._top = _Directory()
        self._by_inode: dict[int, _File] = {}
        for path in sorted(root.rglob("*")):
            directory, name = self._at(str(path))
            if path.is_dir():
                directory.put(name, _Directory())
            else:
                file = _File([path.read_bytes()])
                self._by_inode[path.stat().st_ino] = file
                directory.put(name, file)
            directory.sync()

    def _at(self, path: str) -> tuple[Any, str]:
        """Find the directory of a path, and its name in it."""
        *above, name = path.removeprefix(self._prefix).split("/")
        directory = self._top
        for each in above:
            if directory.now(each) is None:  # another thread was killed before it told of it
                directory.put(each, _Directory())
            directory = directory.now(each)
        return directory, name

    def apply(self, call: Call) -> None:
        """Apply a recorded call to the model."""
        match call.kind:
            case "write" | "truncate":
                file = self._by_inode[call.inode]
                now = file.contents[-1]
                if call.kind == "truncate":
                    new = now[: call.at].ljust(call.at, b"\0")
                else:
                    kept = now[: call.at].ljust(call.at, b"\0")
                    new = kept + call.data + now[call.at + len(call.data) :]
                file.contents.append(new)
            case "sync":
                self._sync(call)
            case "create" | "mkdir" | "link" | "rename" | "unlink" | "rmdir":
                self._change_names(call)
            case _:  # it changes nothing
                pass

    def _sync(self, call: Call) -> None:
        if call.inode in self._by_inode and not self._is_directory(call.path):
            file = self._by_inode[call.inode]
            file.contents = file.contents[-1:]
        elif f"{call.path}/" == self._prefix:
            self._top.sync()
        else:
            directory, name = self._at(call.path)
            directory.now(name).sync()

    def _is_directory(self, path: str) -> bool:
        directory, name = self._at(path) if f"{path}/" != self._prefix else (None, "")
        return directory is None or isinstance(directory.now(name), _Directory)

    def _change_names(self, call: Call) -> None:
        directory, name = self._at(call.path)
        what = directory.now(name)
        match call.kind:
            case "create":
                self._by_inode[call.inode] = created = _File([b""])
                created.contents.append(b"")  # an empty file is not on the disk, either
                directory.put(name, created)
            case "mkdir":
                directory.put(name, _Directory())
            case "unlink" | "rmdir":
                directory.put(name, None)
            case _:
                other, new = self._at(call.other)
                other.put(new, what)
                if call.kind == "rename":
                    directory.put(name, None)

    def outcomes(self, limit: int) -> Iterator[dict[str, bytes]]:
        """Yield the possible states after a power cut: all, or some of more than a limit."""
        open_choices = list(self._choices(self._top))
        sizes = [len(options) for options in open_choices]
        for chosen in _some(sizes, limit):
            picked = {id(o): o[k] for o, k in zip(open_choices, chosen, strict=True)}
            found: dict[str, bytes] = {}
            self._collect(self._top, "", picked, found)
            yield found

    def _choices(self, directory: _Directory) -> Iterator[Any]:
        """Yield lists of options; equal options are always the same object."""
        seen: set[int] = set()
        stack: list[Any] = [directory]
        while stack:
            each = stack.pop()
            if id(each) in seen or each is None:
                continue
            seen.add(id(each))
            if isinstance(each, _File):
                if len(each.contents) > 1:
                    self._options[id(each)] = each.options()
                    yield self._options[id(each)]
                continue
            for known in each.names.values():
                if len(known) > 1:
                    yield known
                stack.extend(known)

    _options: dict[int, list[bytes]] = {}  # noqa: RUF012 - of files, while outcomes are made

    def _collect(
        self, directory: _Directory, path: str, picked: Mapping[int, Any], found: dict[str, bytes]
    ) -> None:
        for name, known in directory.names.items():
            what = picked[id(known)] if len(known) > 1 else known[0]
            if isinstance(what, _Directory):
                self._collect(what, f"{path}{name}/", picked, found)
            elif isinstance(what, _File):
                several = len(what.contents) > 1
                data = picked[id(self._options[id(what)])] if several else what.contents[0]
                found[path + name] = data


def _some(sizes: Sequence[int], limit: int) -> Iterator[Sequence[int]]:
    """Yield choices of one of several numbers each: all, or the extremes and random ones."""
    if prod(sizes) <= limit:
        yield from product(*map(range, sizes))
        return
    oldest, newest = [0] * len(sizes), [n - 1 for n in sizes]
    yield oldest
    yield newest
    for k, n in enumerate(sizes):
        for option in range(n):
            yield [*newest[:k], option, *newest[k + 1 :]]
            yield [*oldest[:k], option, *oldest[k + 1 :]]
    numbers = random.Random(len(sizes))  # noqa: S311 - choices of a test
    for _ in range(limit):
        yield [numbers.randrange(n) for n in sizes]
