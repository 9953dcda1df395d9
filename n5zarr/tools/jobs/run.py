"""Run many independent tasks on threads, on processes or on dask's workers; report progress."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from multiprocessing import get_context
from typing import Any, Protocol

from n5zarr.container.options import require
from n5zarr.cores import usable_cores
from n5zarr.errors import import_optional, option_error
from n5zarr.storage.ending import Call, check_wanted, ended_by, entering
from n5zarr.tools.jobs.parts import WHOLE, WORKERS, Division

type Scheduler = object
"""``None``, ``"threads"``, ``"processes"``, the address of a dask scheduler, or a dask client."""

MAX_MEMORY = 2**30
"""Bytes that all workers of a job together may hold, unless a user says otherwise."""

SMALL = 2**14
"""Bytes of a unit that is read, written and decoded in less time than Python takes for it."""

_AHEAD = 2  # tasks that wait, for each worker


class Progress(Protocol):
    """A receiver of progress reports; an exception that it raises ends the run."""

    def __call__(self, stage: str, done: int, total: int, /) -> None:
        """Take the name of a stage, the bytes done and the bytes to do."""


class Task(Protocol):
    """A part of a job."""

    @property
    def n_bytes(self) -> int:
        """Size of what is done, in bytes; only for the progress."""


@dataclass(frozen=True)
class RunOptions:
    """The options that all jobs have: where their tasks run, and who receives the progress.

    Public functions have them as parameters of these names, so that ``help`` shows them.

    Parameters
    ----------
    scheduler, n_workers : optional
        As for :func:`run_tasks`.
    progress : callable, optional
        Called with the name of a stage, the bytes done and the bytes to do.
    division : Division, optional
        Which part of the job the run does.
    """

    scheduler: Scheduler = None
    n_workers: int | None = None
    progress: Progress | None = None
    division: Division = WHOLE

    @cached_property
    def _chosen(self) -> Scheduler:
        return (_active_client() or "threads") if self.scheduler is None else self.scheduler

    @property
    def _n_here(self) -> int:
        """Number of threads or processes."""
        here = usable_cores() if self.n_workers is None else self.n_workers
        return here if self.division.is_whole else min(here, WORKERS)

    @cached_property
    def n_at_once(self) -> int:
        """Number of tasks that run at once: on this machine, or on all workers of dask."""
        here = self._n_here
        if self._chosen in ("threads", "processes") or here < 1:
            return here
        with _executor(self._chosen, here) as (_, n_at_once, _):
            return n_at_once

    def memory_of_worker(self, max_memory: int) -> int:
        """Return the bytes that each worker may use, if all together may use ``max_memory``.

        Raises
        ------
        N5UnrepresentableError
            ``max_memory`` is not above 0 (``kind="option"``).
        """
        require(max_memory >= 1, f"max_memory: expected bytes above 0, got {max_memory}")
        n_workers = self.n_at_once if self.division.is_whole else WORKERS
        return max(1, max_memory // max(1, n_workers))

    def checked(self, hidden: Sequence[str] = ()) -> RunOptions:
        """Check that the scheduler answers, and choose threads for stores of this process.

        Parameters
        ----------
        hidden : sequence of str, optional
            Names of the stores that other processes do not see.

        Raises
        ------
        N5UnrepresentableError
            The scheduler does not exist, or does not see a store (``kind="option"``).
        """
        if hidden and self.scheduler not in (None, "threads"):
            raise option_error(
                f"scheduler: expected 'threads', as other processes do not see {hidden[0]}, got "
                f"{self.scheduler!r}"
            )
        require(self.n_at_once >= 1, f"n_workers: expected a number above 0, got {self.n_at_once}")
        scheduler = "threads" if hidden else self._chosen
        if scheduler != "threads":
            next(run_tasks(str, (), scheduler=scheduler, n_workers=self.n_workers), None)
        return replace(self, scheduler=scheduler)

    def each[T: Task, R](
        self,
        work: Callable[[T], R],
        tasks: Iterable[T],
        stage: str,
        total: int,
        *,
        is_light: Callable[[T], bool] | None = None,
    ) -> Iterator[tuple[T, R]]:
        """Run a function for each task, and report the progress after each result.

        Parameters
        ----------
        work, tasks
            As for :func:`run_tasks`.
        stage : str
            Name of the stage.
        total : int
            The bytes to do; all of them are reported as done at the end.
        is_light : callable, optional
            Whether a task does little outside of Python; see :class:`_Turns`.

        Yields
        ------
        tuple
            A task and its result, in any order.
        """
        n_done = 0
        has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()  # new in Python 3.13
        if is_light is not None and self._chosen == "threads" and has_lock:
            work = _Turns(work, is_light)
        for task, result in run_tasks(
            work, tasks, scheduler=self.scheduler, n_workers=self._n_here
        ):
            yield task, result
            n_done = min(total, n_done + task.n_bytes)
            if self.progress is not None and total:
                self.progress(stage, n_done, total)
        if self.progress is not None and n_done < total:
            self.progress(stage, total, total)


class _Turns[T, R]:
    """Run light tasks on one thread at a time, until one of them has waited for its storage.

    Each call of the system passes Python's lock to another thread. Two threads that run little else
    than Python therefore take longer than one, and twice its processor time.

    Parameters
    ----------
    work : callable
        Takes a task.
    is_light : callable
        Whether a task does little outside of Python.
    """

    def __init__(self, work: Callable[[T], R], is_light: Callable[[T], bool]) -> None:
        self._work = work
        self._is_light = is_light
        self._lock = threading.Lock()
        self._waits = False

    def __call__(self, task: T) -> R:
        if self._waits or not self._is_light(task):
            return self._work(task)
        with self._lock:
            begin, used = time.perf_counter(), time.thread_time()
            result = self._work(task)
            used, took = time.thread_time() - used, time.perf_counter() - begin
            self._waits = used < took / 2  # on a network, or if others use this core
        return result


def run_tasks[T, R](
    work: Callable[[T], R],
    tasks: Iterable[T],
    *,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
) -> Iterator[tuple[T, R]]:
    """Run a function for each task, some at a time, and yield the results as they come.

    Tasks are taken as workers are free. If the caller stops, or a task fails, waiting tasks are
    dropped, and blocks at hand of threads or tasks of processes waited for; with dask all sent.

    Parameters
    ----------
    work : callable
        Takes a task. With processes or dask, it is pickled once for each task.
    tasks : iterable
        The tasks.
    scheduler : optional
        ``"threads"``, ``"processes"``, the address of a dask scheduler, as ``"tcp://host:8786"``,
        or a ``distributed.Client``. By default the active one, or threads.
    n_workers : int, optional
        How many threads or processes; by default one for each core.

    Yields
    ------
    tuple
        A task, and what ``work`` returns for it, in any order.

    Raises
    ------
    N5UnrepresentableError
        The scheduler does not exist, or ``n_workers`` is not above 0 (``kind="option"``).
    N5MissingDependencyError
        The address is one of dask, and ``distributed`` is not installed.
    ChildProcessError, ConnectionError
        A process ended before its task was done; the scheduler of dask has gone.
    """
    call, n_workers = Call(), usable_cores() if n_workers is None else n_workers
    with ended_by(call.stop), _executor(scheduler, n_workers) as (executor, n_at_once, drops):
        if isinstance(executor, ProcessPoolExecutor):
            work = partial(_with_errors_that_pickle, work)
        elif isinstance(executor, ThreadPoolExecutor):
            work = partial(_as_part_of, call, work)
        remaining = iter(tasks)
        running: dict[Future[R], T] = {}
        try:
            while True:
                free = n_at_once * _AHEAD - len(running)
                running |= {executor.submit(work, task): task for task in islice(remaining, free)}
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            call.end()
            if drops():
                for future in running:
                    future.cancel()
            wait(running)


def _as_part_of[T, R](call: Call, work: Callable[[T], R], task: T) -> R:
    """Run a task of a call, which waits for its end; the pool may have lost its thread."""
    with entering(call), ended_by(lambda: None):
        check_wanted()
        return work(task)


def _with_errors_that_pickle[T, R](work: Callable[[T], R], task: T) -> R:
    """Run a task; replace an error that would break the pool, as it cannot be sent back."""
    try:
        return work(task)
    except Exception as err:
        try:
            pickle.loads(pickle.dumps(err))  # noqa: S301 - our own
        except Exception:  # its class may raise anything
            message = f"{type(err).__name__}: {err}"
        else:
            raise
    # not while the other is handled: with tblib, which dask brings, it would be sent along
    raise RuntimeError(message)


@contextmanager
def _executor(
    scheduler: Scheduler, n_workers: int
) -> Iterator[tuple[Executor, int, Callable[[], bool]]]:
    """Yield the executor, its number of tasks at once, and whether it can drop waiting tasks."""
    require(n_workers >= 1, f"n_workers: expected a number above 0, got {n_workers}")
    client = _active_client() if scheduler is None else scheduler
    if client is None or client == "threads":
        with ThreadPoolExecutor(n_workers, "n5zarr") as threads:
            yield threads, n_workers, lambda: True
    elif client == "processes":
        try:
            # a fork would copy locks that other threads hold
            with ProcessPoolExecutor(n_workers, get_context("spawn")) as processes:
                yield processes, n_workers, lambda: True
        except BrokenProcessPool as err:
            raise ChildProcessError(
                "a worker process ended before its task was done: it was killed, perhaps for lack "
                "of memory, or could not import the main program, whose own work belongs below "
                "`if __name__ == '__main__':`"
            ) from err
    elif isinstance(client, str) and ":" in client:
        with _connected(client) as connected, _of_dask(connected) as executor:
            yield executor
    elif hasattr(client, "get_executor"):
        with _of_dask(client) as executor:
            yield executor
    else:
        raise option_error(
            "scheduler: expected 'threads', 'processes', the address of a dask scheduler or a "
            f"distributed.Client, got {scheduler!r}"
        )


@contextmanager
def _of_dask(client: Any) -> Iterator[tuple[Executor, int, Callable[[], bool]]]:  # noqa: ANN401
    """Yield dask's workers, for :func:`_executor`.

    A future of dask that is cancelled while its task runs is done for us at once, while the task
    goes on writing; and one that is done at that moment is never told of. So none is cancelled
    while there are workers.
    """
    if getattr(client, "asynchronous", False) or getattr(client, "status", "") != "running":
        raise option_error(
            f"scheduler: expected a client that is connected, and not asynchronous: {client}"
        )

    def has_no_workers() -> bool:  # of a client that is closed, all futures are done
        return client.status == "running" and not client.nthreads()

    try:
        # workers may still be about to join
        n_at_once = max(1, int(sum(client.nthreads().values())))
        yield client.get_executor(pure=False), n_at_once, has_no_workers
    except CancelledError as err:
        raise ConnectionError(
            f"{client}: dask's scheduler has stopped, or its tasks were cancelled"
        ) from err


def _active_client() -> Any:  # noqa: ANN401 - distributed has no types
    """Return the client that dask would use, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed.client import default_client  # noqa: PLC0415 - the extra may be missing

    try:
        return default_client()  # type: ignore[no-untyped-call]
    except ValueError:
        return None


def _connected(address: str) -> Any:  # noqa: ANN401 - distributed has no types
    distributed = import_optional("distributed", f"the scheduler {address}", "xarray")
    addressing = distributed.comm.addressing
    try:
        if addressing.parse_address(address)[0] in ("tcp", "tls"):
            # a client of a wrong address waits a minute to end
            addressing.get_address_host_port(address)
        return distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as err:
        raise option_error(
            f"scheduler: expected the address of a dask scheduler, got {address!r}: {err}"
        ) from err
