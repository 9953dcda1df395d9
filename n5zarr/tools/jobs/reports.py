"""Record runs in a report, which ``tools.evidence`` writes; it is imported if one is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any, Protocol

from n5zarr.images.source import ArraySource
from n5zarr.rooms import Door
from n5zarr.tools.jobs.run import MAX_MEMORY, RunOptions

type Reported = str | os.PathLike[str] | Report | None
"""Where runs are recorded: a file, or a report that several runs share."""


class RunReport(Protocol):
    """What a report says of one run.

    Parameters
    ----------
    entry : dict
        Plain JSON; its member ``status`` becomes ``"ok"`` unless another one is set.
    """

    entry: dict[str, Any]

    def add_arrays(
        self,
        arrays: Mapping[str, Mapping[str, ArraySource]],
        options: RunOptions,
        *,
        hashed: Sequence[str] = (),
        max_memory: int = MAX_MEMORY,
        keeps_going: bool = False,
    ) -> None:
        """Describe arrays.

        Parameters
        ----------
        arrays : mapping
            The arrays at each path by the name of their side, such as ``"source"``.
        options : RunOptions
            Where the tasks run.
        hashed : sequence of str, optional
            The sides whose values are hashed.
        max_memory : int, optional
            Bytes of elements that all workers together may hold.
        keeps_going : bool, optional
            Whether a damaged block is a note of the dataset instead of an error.
        """


class Report(Protocol):
    """A report of runs: a file that is written again after each."""

    def run(
        self, command: str, places: Mapping[str, Any], options: Mapping[str, Any]
    ) -> AbstractContextManager[RunReport]:
        """Record a run, also one that fails."""

    def keep(self, places: Sequence[object], *, ended: bool, **options: object) -> bool:
        """Keep what the earlier report says of a run without problems, if it does.

        Parameters
        ----------
        places : sequence
            The locations of the run.
        ended : bool
            Whether an earlier report that has ended counts, too.
        **options
            The options that must be the same.
        """

    def end(self) -> None:
        """Write the file with the worst status of all runs."""


class NewReport(Protocol):
    """Begins a report, see :func:`new_report`."""

    def __call__(self, path: str | os.PathLike[str], *, is_shared: bool = False) -> Report:
        """Begin it."""


_REPORT: Door[NewReport] = Door("step", "report")


_present: ContextVar[RunReport | None] = ContextVar("report", default=None)


def report_of_run() -> RunReport | None:
    """Return what the report says of the present run, to add results; None without a report."""
    return _present.get()


def new_report(path: str | os.PathLike[str], *, is_shared: bool = False) -> Report:
    """Begin a report, or continue the one in a file.

    Parameters
    ----------
    path : path
        The file ``*.json``, in a folder that exists.
    is_shared : bool, optional
        Whether several runs are recorded, until :meth:`Report.end`.

    Raises
    ------
    N5UnsupportedError
        The package that writes reports is not there (``kind="option"``).
    N5UnrepresentableError
        The name has another suffix, there is no such folder, or the file is no report
        (``kind="option"``).
    """
    return _REPORT.needed()(path, is_shared=is_shared)


def recorded[**P, R](command: str, *places: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Record the runs of a function in its parameter ``report``, also those that fail.

    Parameters
    ----------
    command : str
        What runs.
    *places : str
        The parameters that are locations.
    """

    def of(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **options: P.kwargs) -> R:
            bound = signature(function).bind(*args, **options)
            bound.apply_defaults()
            given = bound.arguments
            report, _ = given.pop("report"), given.pop("progress")
            if isinstance(report, str | os.PathLike):
                report = new_report(report)
            locations = {name: given.pop(name) for name in places}
            none = nullcontext[Any]()
            with report.run(command, locations, given) if report else none as present:
                before = _present.set(present)
                try:
                    return function(*args, **options)
                finally:
                    _present.reset(before)

        return run

    return of
