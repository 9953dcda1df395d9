"""Run the copies of a conversion, and verify them."""

from __future__ import annotations

from collections import deque
from itertools import chain
from operator import add, attrgetter
from typing import TYPE_CHECKING

from n5zarr.tools.convert.files import Copied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.tools.convert.files import Copy, Task
    from n5zarr.tools.jobs.run import RunOptions

__all__ = ["run_copies", "verify_copies"]

_IS_LIGHT = attrgetter("copy.is_light")


def run_copies(copies: Sequence[Copy], done: set[str], options: RunOptions) -> list[Copied]:
    """Copy everything; return the counts of each copy.

    Parameters
    ----------
    copies : sequence of Copy
        What is copied.
    done : set of str
        Keys that an interrupted run has written.
    options : RunOptions
        Where the tasks run.
    """
    counts = {copy: Copied() for copy in copies}
    tasks = chain.from_iterable(copy.tasks(done) for copy in copies)
    total = sum(copy.n_bytes for copy in copies)
    for task, copied in options.each(_copy, tasks, "copy", total, is_light=_IS_LIGHT):
        counts[task.copy] = Copied(*map(add, counts[task.copy], copied))
    return list(counts.values())


def _copy(task: Task) -> Copied:
    return task.copy.copy(task.part)


def verify_copies(copies: Sequence[Copy], options: RunOptions) -> None:
    """Read sources and destinations, and compare them.

    Raises
    ------
    N5Error
        A value differs (``kind="differs"``).
    """
    tasks = chain.from_iterable(copy.comparisons() for copy in copies)
    total = sum(copy.n_bytes for copy in copies)
    deque(options.each(_verify, tasks, "verify", total, is_light=_IS_LIGHT), maxlen=0)


def _verify(task: Task) -> None:
    task.copy.compare(task.part)
