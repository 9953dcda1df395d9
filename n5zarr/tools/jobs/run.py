"""Run many independent tasks on threads, on processes or on dask's workers."""

from __future__ import annotations

import os
import sys
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol

from n5zarr.errors import N5MissingDependencyError, N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Progress", "Scheduler", "n_cores", "run_tasks"]

type Scheduler = object
"""``None``, ``"threads"``, ``"processes"``, the address of a dask scheduler, or a dask client."""

_AHEAD = 2  # tasks that wait, for each worker


class Progress(Protocol):
    """What a long run tells of itself; an exception that it raises ends the run."""

    def __call__(self, stage: str, done: int, total: int, /) -> None:
        """Take the name of a stage, the bytes done and the bytes to do."""


def n_cores() -> int:
    """Count the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def run_tasks[T, R](
    work: Callable[[T], R],
    tasks: Iterable[T],
    *,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
) -> Iterator[R]:
    """Run a function for each task, some at a time, and yield the results as they come.

    Tasks are taken as workers become free, so that their number costs no memory. If the caller
    stops, or a task fails, waiting tasks are dropped and running ones are waited for.

    Parameters
    ----------
    work : callable
        Takes a task. With processes or dask, it is pickled once for each task.
    tasks : iterable
        The tasks.
    scheduler : optional
        ``"threads"`` or ``"processes"`` of this machine, the address of a dask scheduler such as
        ``"tcp://host:8786"``, or a ``distributed.Client``. By default the active client of dask,
        if there is one, else threads.
    n_workers : int, optional
        How many threads or processes; by default one for each core.

    Yields
    ------
    object
        What ``work`` returns, in any order.

    Raises
    ------
    N5UnrepresentableError
        There is no such scheduler (``kind="option"``).
    N5MissingDependencyError
        The address is one of dask, and ``distributed`` is not installed.
    """
    with _executor(scheduler, n_workers or n_cores()) as (executor, n_at_once):
        remaining = iter(tasks)
        running: set[Future[R]] = set()
        try:
            while True:
                free = n_at_once * _AHEAD - len(running)
                running |= {executor.submit(work, task) for task in islice(remaining, free)}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()
            wait(running)


@contextmanager
def _executor(scheduler: Scheduler, n_workers: int) -> Iterator[tuple[Executor, int]]:
    """Yield what runs the tasks, and how many it runs at once."""
    client = _active_client() if scheduler is None else scheduler
    if client is None or client == "threads":
        with ThreadPoolExecutor(n_workers, "n5zarr") as threads:
            yield threads, n_workers
    elif client == "processes":
        # a fork would copy locks that other threads hold
        with ProcessPoolExecutor(n_workers, get_context("spawn")) as processes:
            yield processes, n_workers
    elif isinstance(client, str):
        with _connected(client) as connected:
            yield connected.get_executor(pure=False), _n_threads(connected)
    elif hasattr(client, "get_executor"):
        yield client.get_executor(pure=False), _n_threads(client)
    else:
        message = (
            "scheduler: expected 'threads', 'processes', the address of a dask scheduler or a "
            f"distributed.Client, got {scheduler!r}"
        )
        raise N5UnrepresentableError(message, kind="option")


def _active_client() -> Any:  # noqa: ANN401 - distributed has no types
    """Return the client that dask would use; None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed.client import default_client  # noqa: PLC0415 - the extra may be missing

    try:
        return default_client()  # type: ignore[no-untyped-call]
    except ValueError:
        return None


def _connected(address: str) -> Any:  # noqa: ANN401 - distributed has no types
    try:
        from distributed import Client  # noqa: PLC0415 - the extra may be missing
    except ImportError as err:
        raise N5MissingDependencyError("distributed", f"the scheduler {address}", "xarray") from err
    try:
        return Client(address, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as err:
        message = f"scheduler: expected the address of a dask scheduler, got {address!r}: {err}"
        raise N5UnrepresentableError(message, kind="option") from err


def _n_threads(client: Any) -> int:  # noqa: ANN401 - distributed has no types
    """Count the tasks that dask's workers run at once; workers may still be about to join."""
    return max(1, int(sum(client.nthreads().values())))
