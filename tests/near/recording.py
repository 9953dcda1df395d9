"""Record the lines of the package that each test runs.

``uv run python -m tests.near`` runs the tests with :mod:`tests.near.recorded`. Each process writes
one file into the folder that ``N5ZARR_RECORDED`` names; :mod:`tests.near.table` makes the table of
them. Processes that tests start record, too: the folder ``started`` is on their path, and its
``sitecustomize`` begins this. Before each test, what each ``lru_cache`` keeps is forgotten, so that
the second test of a cached function is seen.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import os
import pickle
import pkgutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PACKAGE = str(REPOSITORY / "n5zarr") + os.sep
FOLDER = "N5ZARR_RECORDED"
SECONDS_ONLY = "N5ZARR_RECORD_SECONDS"
_TOOL = 3  # of those that sys.monitoring leaves free

Lines = defaultdict[str, int]  # of each file, as the bits of a number


class Recorder:
    """The lines that ran since a test began, and those of the tests before it."""

    def __init__(self) -> None:
        self.now = Lines(int)
        self.known: dict[str, tuple[float, Lines]] = {}
        self.caches: list[Any] = []
        atexit.register(self.write)
        if SECONDS_ONLY in os.environ:
            return
        sys.monitoring.use_tool_id(_TOOL, "n5zarr's tests")
        sys.monitoring.register_callback(_TOOL, sys.monitoring.events.LINE, self._line)

    def _line(self, code: CodeType, line: int) -> object:
        if code.co_filename.startswith(PACKAGE):
            self.now[code.co_filename] |= 1 << line
        return sys.monitoring.DISABLE  # until a test begins

    def watch_all(self) -> None:
        """Watch whatever runs, once: what a short process needs."""
        sys.monitoring.set_events(_TOOL, sys.monitoring.events.LINE)

    def watch(self) -> None:
        """Watch the functions of all modules, which are imported now."""
        import n5zarr  # noqa: PLC0415 - the processes that tests start import it when they want it

        for module in pkgutil.walk_packages(n5zarr.__path__, "n5zarr."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        for code in _codes():
            sys.monitoring.set_local_events(_TOOL, code, sys.monitoring.events.LINE)
        self.caches = [
            each
            for each in gc.get_objects()
            if isinstance(each, functools._lru_cache_wrapper)
            and _is_own(getattr(each.__wrapped__, "__code__", None))
        ]

    def begin(self) -> None:
        """Begin a test: forget what others have left."""
        for each in self.caches:
            each.cache_clear()
        self.now = Lines(int)
        if SECONDS_ONLY not in os.environ:
            sys.monitoring.restart_events()

    def end(self, name: str, seconds: float) -> None:
        """Add what ran to a test; the cases of one are one."""
        before, lines = self.known.get(name, (0.0, Lines(int)))
        for path, bits in self.now.items():
            lines[path] |= bits
        self.known[name] = before + seconds, lines

    def write(self) -> None:
        """Write what is known into a file of its own."""
        path = Path(os.environ[FOLDER], f"{os.getpid()}-{time.time_ns()}")
        path.write_bytes(
            pickle.dumps({k: (s, dict(lines)) for k, (s, lines) in self.known.items()})
        )


def function_of(nodeid: str) -> str:
    """Return a test's name without its case.

    >>> function_of("tests/a.py::B::test_c[1-[x]]")
    'tests/a.py::B::test_c'
    """
    path, colons, name = nodeid.partition("::")
    return path + colons + name.partition("[")[0]


def _is_own(code: object) -> bool:
    return isinstance(code, CodeType) and code.co_filename.startswith(PACKAGE)


def _codes() -> Iterator[CodeType]:
    """Yield the code of all functions of the package, those in functions, too."""
    known = [each.__code__ for each in gc.get_objects() if isinstance(each, FunctionType)]
    seen = set[int]()
    while known:
        code = known.pop()
        if id(code) not in seen and _is_own(code):
            seen.add(id(code))
            yield code
            known += [each for each in code.co_consts if isinstance(each, CodeType)]


def begin_in_process() -> None:
    """Record a process that a test has started, as far as it runs to its end."""
    name = function_of(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])
    if name:
        recorder = Recorder()
        recorder.known[name] = 0.0, recorder.now
        recorder.watch_all()
