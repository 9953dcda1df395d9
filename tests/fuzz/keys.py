"""Ask a store for mutated keys and paths, and check that they stay in the container."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import zarr
from zarr.buffer import cpu

import n5zarr
from n5zarr import N5Error, N5Store
from tests.fuzz.judge import Case, judged, said

__all__ = ["Keys"]

SECRET = b'{"secret":1,"attributes":{"secret":1}}'
KEYS = (
    "", "zarr.json", "attributes.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "a", "a/b",
    "a/b/zarr.json", "a/b/c/0/0", "a/b/c/1/0", "a/b/0.0", "a/b/0/1", "a/b/attributes.json",
    "a/note.txt", "a/zarr.json", "a/c/0/0", "a/b/.zarray", "secret/attributes.json",
)  # fmt: skip
PARTS = (
    "..", ".", "", "/", "//", "../", "../secret", "..\\secret", "%2e%2e", "%2e%2e%2f", "....//",
    "\0", "\n", "\\", "~", "C:", "c:/", "file://", "a" * 300, "a/" * 50, "é", "e\u0301", "\ud800",
    "\u202e", "\uff10", "\u0663", "-1", "+1", "00", "1e3", "9" * 30, "c/0/0", "0.0", "0/0",
    "zarr.json", "attributes.json", "link", "link/attributes.json", "loop",
    ".zarray", "?", "#", "*", "[0]", ":", " ", "CON", "a\\b",
)  # fmt: skip


def mutated_key(rng: random.Random) -> str:
    """Change a key of the container, or join parts of some."""
    names = rng.choice(KEYS).split("/")
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        at = rng.randrange(len(names) + 1)
        part = rng.choice(PARTS)
        match rng.randrange(4):
            case 0:
                names.insert(at, part)
            case 1:
                names[at : at + 1] = [part]
            case 2:
                names[at:at] = [*([".."] * rng.randrange(1, 6)), part]
            case _:
                k = min(at, len(names) - 1)
                names[k : k + 1] = [name + part for name in names[k : k + 1]]
        names = names or [""]
    text = "/".join(names)
    if rng.random() < 0.2:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + chr(rng.randrange(0x300)) + text[at + rng.randrange(2) :]
    return text


# ---------------------------------------------------------------------- ways to ask

type Ask = Callable[[N5Store, str], Awaitable[object]]
VALUE = cpu.Buffer.from_bytes(b'{"zarr_format":3,"node_type":"group","attributes":{"k":1}}')
CHUNK = cpu.Buffer.from_bytes(bytes(24))


async def listed(store: N5Store, key: str, name: str) -> object:
    return [each async for each in getattr(store, name)(key)]


READS: dict[str, Ask] = {
    "get": lambda store, key: store.get(key, cpu.buffer_prototype),
    "exists": lambda store, key: store.exists(key),
    "list_dir": lambda store, key: listed(store, key, "list_dir"),
    "list_prefix": lambda store, key: listed(store, key, "list_prefix"),
    "is_empty": lambda store, key: store.is_empty(key),
    "getsize_prefix": lambda store, key: store.getsize_prefix(key),
}
WRITES: dict[str, Ask] = {
    "set": lambda store, key: store.set(key, VALUE),
    "set of a chunk": lambda store, key: store.set(key, CHUNK),
    "set_if_not_exists": lambda store, key: store.set_if_not_exists(key, VALUE),
    "delete": lambda store, key: store.delete(key),
    "delete_dir": lambda store, key: store.delete_dir(key),
}
FUNCTIONS: dict[str, Callable[[Any, str], object]] = {
    "n5zarr.open": lambda root, path: n5zarr.open(root, path=path).attrs.asdict(),
    "zarr.open": lambda root, path: zarr.open(N5Store(root), path=path, mode="r").attrs.asdict(),
    "read_block": lambda root, path: n5zarr.read_block(root, path, (0, 0)),
    "get_attribute": lambda root, path: n5zarr.get_attribute(root, path, ""),
    "get_attribute, key": lambda root, key: n5zarr.get_attribute(root, "a/b", key),
    "set_attribute": lambda root, path: n5zarr.set_attribute(root, path, "k", 1),
    "set_attribute, key": lambda root, key: n5zarr.set_attribute(root, "a", key, 1),
    "create_array": lambda root, path: n5zarr.create_array(
        root, path=path, shape=(3, 5), chunks=(3, 5), dtype="u1"
    ),
    "create_group": lambda root, path: zarr.create_group(N5Store(root), path=path),
}
OF_ZARR = ("zarr.open", "create_array", "create_group")
WAYS = (*READS, *WRITES, *FUNCTIONS)


class Keys:
    """A container with files beside it that no key may reach."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.numbers = count()
        self.root = directory / "outer" / "c.n5"
        (self.root.parent / "secret").mkdir(parents=True)
        for place in (directory, self.root.parent, self.root.parent / "secret"):
            (place / "attributes.json").write_bytes(SECRET)
            (place / "zarr.json").write_bytes(SECRET)
        self.outside = self.seen()
        self.make()

    def make(self) -> None:
        """Make another container, as tasks that zarr has left may still write into the last one."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root = self.root.with_name(f"c{next(self.numbers)}.n5")
        array: Any = n5zarr.create_array(
            self.root, path="a/b", shape=(7, 5), chunks=(4, 5), dtype="u1", compression=None
        )
        array[...] = 1
        (self.root / "a" / "note.txt").write_text("read me")
        (self.root / "loop").symlink_to(self.root)

    def seen(self) -> dict[str, bytes]:
        """Return all files beside the container."""
        return {
            str(file): file.read_bytes()
            for file in self.directory.rglob("*")
            if not re.search(r"c\d+\.n5/", str(file)) and file.is_file()
        }

    def case(self, seed: str) -> Case:
        """Make a key."""
        rng = random.Random(seed)
        key = mutated_key(rng)
        return Case(WAYS[rng.randrange(len(WAYS))], key.encode("utf-8", "surrogatepass"), key)

    def kept(self, name: str, data: bytes) -> Case:
        """Make the case of a kept input."""
        return Case(name, data, data.decode("utf-8", "surrogatepass"))

    def run(self, case: Case, number: int) -> list[str]:
        """Use a key in one way; return the problems."""
        key = case.target
        if case.name in FUNCTIONS:
            found = said(FUNCTIONS[case.name], self.root, key)
        else:
            store = N5Store(self.root, zarr_format=(None, 2, 3)[number % 3])
            ask = (READS | WRITES)[case.name]
            found = said(lambda: asyncio.run(_called(ask, store, key)))
        # errors of the file system pass through: nothing there, a file on the way, too long a name
        is_right = isinstance(found, OSError) and not isinstance(found, N5Error)
        # zarr itself refuses some paths, and nodes where others are
        is_right |= isinstance(found, ValueError) and case.name in OF_ZARR
        wrong = judged(case.name, found, (), (Exception,) if is_right else ())
        is_reading = case.name in READS or case.name in (
            "n5zarr.open",
            "zarr.open",
            "get_attribute",
        )
        data = found.to_bytes() if hasattr(found, "to_bytes") else repr(found).encode()
        if is_reading and b"secret" in data and not isinstance(found, Exception):
            wrong.append(f"{case.name}: shows what is outside: {data!r:.200}")
        if case.name not in READS:
            if self.seen() != self.outside:
                wrong.append(f"{case.name}: changes what is outside")
            self.make()
        return wrong

    def allowed(self, case: Case) -> int:
        """Return the bytes of memory for the use of a key."""
        return 64 * 10**6


async def _called(ask: Ask, store: N5Store, key: str) -> object:
    return await ask(store, key)
