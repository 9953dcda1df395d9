"""Count which modules a call enters, and where a lower module calls a higher one.

``uv run python -m tests.walks``, or ``tests.structure --walks``, makes nine calls of users, each
once before and then counted, in all threads. It prints the number of modules that each enters, and
its *climbs*: pairs of modules in which the first one, whose package is lower, calls the second one,
by itself or through a library. What `n5zarr.rooms` adds is called through a *door*, and counted
apart. A flow is a climb as well: storage runs what a package above it has written. Ends non-zero
above the ceilings, which follow what is reached down to the aims.
"""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any
from urllib.request import urlopen

import numpy as np
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.rooms import ADDED
from tests.structure import LAYERS, PACKAGE, read_modules, room

type Pair = tuple[str, str]

RANK = {name: rank for rank, name in enumerate(LAYERS)}
DOORS = {where for names in ADDED.values() for where in names.values()}
NAMES = {str(m.path): name for name, m in read_modules(Path(n5zarr.__file__).parents[1]).items()}
BOX = np.s_[1:4, 2:5, 3:9]

# modules and climbs: the most, and what is aimed at
CEILINGS = {
    "box of plain zarr": ((21, 1), (16, 0)),
    "box of N5Array": ((19, 1), (19, 1)),
    "n5zarr.open": ((31, 1), (26, 0)),
    "engine": ((48, 1), (34, 0)),
    "serve": ((43, 2), (44, 2)),
    "open_bdv": ((54, 3), (45, 2)),
    "convert": ((81, 4), (72, 4)),
    "build_pyramid": ((104, 9), (80, 6)),
    "write_bdv": ((127, 7), (105, 6)),
}


@dataclass
class Walk:
    """What a call enters: modules, and the functions in which lower modules call higher ones."""

    modules: set[str] = field(default_factory=set)
    climbs: defaultdict[Pair, set[Pair]] = field(default_factory=lambda: defaultdict(set))
    doors: defaultdict[Pair, set[Pair]] = field(default_factory=lambda: defaultdict(set))

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.modules), len(self.climbs)

    def enter(self, code: CodeType, _: int) -> None:
        """Note that a function begins; its frame calls this one."""
        name = NAMES.get(code.co_filename)
        if name is None or not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a module
            return
        self.modules.add(name)
        caller = sys._getframe(1).f_back
        while caller is not None and caller.f_code.co_filename not in NAMES:
            caller = caller.f_back
        by = name if caller is None else NAMES[caller.f_code.co_filename]
        if caller is not None and RANK[room(by)] < RANK[room(name)]:
            door = f"{name}:{code.co_qualname.partition('.')[0]}"
            found = self.doors if by == f"{PACKAGE}.rooms" or door in DOORS else self.climbs
            is_flow = code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE)
            called = code.co_qualname + (" (a flow)" if is_flow else "")
            found[by, name].add((caller.f_code.co_qualname, called))


def walk(call: Callable[[], object]) -> Walk:
    """Make a call, and count what it enters, in all threads."""
    found, events, tool = Walk(), sys.monitoring.events.PY_START, sys.monitoring.PROFILER_ID
    gc.collect()
    gc.disable()  # finalizers of other objects are no part of the call
    sys.monitoring.use_tool_id(tool, __name__)
    try:
        sys.monitoring.register_callback(tool, events, found.enter)
        sys.monitoring.set_events(tool, events)
        call()
    finally:
        sys.monitoring.set_events(tool, 0)
        sys.monitoring.free_tool_id(tool)
        gc.enable()
    return found


def make_container(folder: Path) -> Path:
    """Write a container with a dataset, and the finest level of a pyramid."""
    root = folder / "c.n5"
    for path in ("a", "p/s0"):
        values = np.arange(385, dtype="u2").reshape(5, 7, 11)
        n5zarr.create_array(root, path=path, data=values, chunks=(2, 3, 4), compression="gzip")
    for file in root.rglob("*"):
        os.utime(file, (1e9, 1e9))  # written long ago: no lock is needed to read it
    return root


def calls(folder: Path) -> Mapping[str, Callable[[], object]]:
    """Return the calls of users, which can be made again."""
    root, project = make_container(folder), n5zarr.sample_path("bigstitcher")
    plain: Any = zarr.open_array(N5Store(root), path="a", mode="r")
    own: Any = n5zarr.open(root / "a")
    image = xr.DataArray(np.arange(2400, dtype="u2").reshape(4, 20, 30), dims=("z", "y", "x"))
    new = (folder / str(number) for number in count())

    def served() -> None:
        with n5zarr.serve(root / "a") as server, urlopen(f"{server.url}zarr3/c/0/0/0") as answer:  # noqa: S310
            assert answer.read()

    def build() -> None:
        copied = shutil.copytree(root, next(new) / "c.n5")
        n5zarr.build_pyramid(copied / "p/s0", levels=2, n_workers=1)

    return {
        "box of plain zarr": partial(plain.__getitem__, BOX),
        "box of N5Array": partial(own.__getitem__, BOX),
        "n5zarr.open": lambda: n5zarr.open(root / "a"),
        "engine": lambda: xr.open_dataset(root / "a", engine="n5"),
        "serve": served,
        "open_bdv": lambda: n5zarr.open_bdv(project),
        "convert": lambda: n5zarr.convert(root, next(new) / "c.zarr", n_workers=1),
        "build_pyramid": build,
        "write_bdv": lambda: n5zarr.write_bdv(image, next(new) / "new.xml", n_workers=1),
    }


def walks() -> Iterator[tuple[str, Walk]]:
    """Make the calls, and yield what each enters, in the same order in any process."""
    with TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            call()  # what it imports, and remembers, is no part of it
            yield name, walk(call)


def report(name: str, found: Walk) -> Iterator[str]:
    each = zip(found.counts, ("modules", "climbs"), *CEILINGS[name], strict=True)
    counts = [f"{n} {what} (at most {most}, aim {aim})" for n, what, most, aim in each]
    yield f"{name}: {', '.join(counts)}, {len(found.doors)} doors"
    for kind, pairs in (("climb", found.climbs), ("door", found.doors)):
        for (by, to), functions in sorted(pairs.items()):
            who = ", ".join(f"{a} > {b}" for a, b in sorted(functions))
            yield f"  {kind} {by} > {to}: {who}"


def main() -> int:
    status = 0
    for name, found in walks():
        sys.stdout.writelines(f"{line}\n" for line in report(name, found))
        is_above = any(n > most for n, most in zip(found.counts, CEILINGS[name][0], strict=True))
        status = 1 if is_above else status
    return status


if __name__ == "__main__":
    sys.exit(main())
