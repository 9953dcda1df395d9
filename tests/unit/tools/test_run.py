"""``run_tasks`` ends other tasks and reports errors when something ends a run."""

from __future__ import annotations

import concurrent.futures
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.ending import Call
from n5zarr.tools.jobs.run import RunOptions, run_tasks
from tests.waiting import PATIENCE, is_inside, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client


class ServerError(Exception):
    """An error that cannot be unpickled, as those of many libraries."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")


def fails(_: object) -> None:
    raise ServerError(503, "slow down")


def dies(_: object) -> None:
    os._exit(1)


BEGUN, ENDED, RELEASED = list[object](), list[object](), threading.Event()


@pytest.fixture(autouse=True)
def _nothing_has_begun() -> Iterator[None]:
    BEGUN.clear()
    ENDED.clear()
    RELEASED.clear()
    yield
    RELEASED.set()


def waits(task: int) -> int:
    """Run until the main thread waits for running tasks, as it must when it has stopped."""
    BEGUN.append(task)
    main = threading.main_thread()
    if task:
        RELEASED.wait(PATIENCE)
        waiting = (concurrent.futures.wait, Call.end)  # the latter for threads
        wait_until(lambda: any(is_inside(main, f) for f in waiting) or not is_inside(main, stop))
    ENDED.append(task)
    return task


def stop(results: Iterator[object]) -> None:
    RELEASED.set()
    results.close()  # type: ignore[attr-defined]
    assert sorted(map(str, BEGUN)) == sorted(map(str, ENDED))


def waits_until_released(task: int) -> None:
    BEGUN.append(task)
    RELEASED.wait(PATIENCE)


@pytest.fixture
def client() -> Iterator[Client]:
    from distributed import Client, LocalCluster  # noqa: PLC0415 - other processes come without

    options: dict[str, Any] = {"processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, **options) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster, set_as_default=False) as connected,  # type: ignore[no-untyped-call]
    ):
        yield connected


@pytest.mark.parametrize("kind", ["threads", "dask"])
def test_no_task_runs_after_the_caller_has_stopped(request: Any, kind: str) -> None:
    scheduler = request.getfixturevalue("client") if kind == "dask" else kind
    results = run_tasks(waits, range(100), scheduler=scheduler, n_workers=2)
    assert next(results) == (0, 0)
    wait_until(lambda: len(BEGUN) == 3)
    stop(results)
    assert len(BEGUN) == (4 if kind == "dask" else 3)  # those of dask that wait are not dropped
    # the same workers have done all that was asked of them before
    assert len(list(run_tasks(str, range(9), scheduler=scheduler, n_workers=2))) == 9
    assert len(BEGUN) == len(ENDED) <= 4


def test_tasks_that_somebody_cancels_are_told_of(client: Client) -> None:
    from distributed import Future  # noqa: PLC0415

    def cancel() -> None:
        wait_until(lambda: len(BEGUN) == 2)
        client.cancel([Future(key, client) for key in list(client.futures)])  # type: ignore[no-untyped-call]

    somebody = threading.Thread(target=cancel)
    somebody.start()
    with pytest.raises(ConnectionError, match="tasks were cancelled"):
        list(run_tasks(waits_until_released, range(9), scheduler=client))
    somebody.join()
    RELEASED.set()


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (fails, RuntimeError, "ServerError: 503: slow down"),
        (dies, ChildProcessError, "a worker process ended before its task was done"),
    ],
)
def test_processes_tell_what_ended_them(work: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        list(run_tasks(work, range(3), scheduler="processes", n_workers=1))


@pytest.mark.parametrize(
    "options",
    [{"scheduler": "cluster"}, {"scheduler": "tcp://host"}, {"n_workers": -1}, {"n_workers": 0}],
)
def test_mistakes_are_told_at_once(options: Any) -> None:
    start = time.monotonic()
    with pytest.raises(N5UnrepresentableError, match="expected"):
        list(run_tasks(str, (), **options))
    assert time.monotonic() - start < 5


class Part:
    """A task with a number of bytes."""

    n_bytes = 1


def test_light_tasks_run_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "thread_time", time.perf_counter)  # Python takes all time
    running, most = 0, 0

    def work(_: Part) -> None:
        nonlocal running, most
        running += 1
        time.sleep(0.001)  # passes Python's lock on, so that another thread would begin
        most = max(most, running)
        running -= 1

    options = RunOptions("threads", 4)
    assert len(list(options.each(work, [Part() for _ in range(40)], "", 40, is_light=bool))) == 40
    assert most == 1


@pytest.mark.parametrize("light", [True, False])
def test_tasks_that_wait_or_are_not_light_run_together(
    monkeypatch: pytest.MonkeyPatch, light: bool
) -> None:
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)  # each one waits all of its time
    is_first_done, together = threading.Event(), threading.Barrier(4, timeout=PATIENCE)

    def work(_: Part) -> None:
        if is_first_done.is_set():
            together.wait()
        is_first_done.set()

    def tasks() -> Iterator[Part]:
        yield Part()
        wait_until(is_first_done.is_set)
        yield from (Part() for _ in range(8))

    options = RunOptions("threads", 4)
    assert len(list(options.each(work, tasks(), "", 9, is_light=lambda _: light))) == 9


def test_an_error_of_a_light_task_lets_the_others_end() -> None:
    options = RunOptions("threads", 4)
    with pytest.raises(ServerError):
        list(options.each(fails, [Part() for _ in range(9)], "", 9, is_light=bool))


def test_an_error_of_a_process_keeps_its_class() -> None:
    with pytest.raises(ZeroDivisionError):
        list(run_tasks(divmod_by, [0], scheduler="processes", n_workers=1))


def divmod_by(task: int) -> object:
    return divmod(7, task)


def test_workers_of_dask_count_as_they_are(client: Client) -> None:
    """By the client or its address: one worker has two threads; a closed client is refused."""
    assert RunOptions(client, None, None).n_at_once == 2
    assert RunOptions(client, None, None).memory_of_worker(1001) == 500
    assert client.scheduler is not None
    address = client.scheduler.address
    assert sorted(run_tasks(str, range(5), scheduler=address)) == [(n, str(n)) for n in range(5)]
    client.close()  # type: ignore[no-untyped-call]
    with pytest.raises(N5UnrepresentableError, match="expected a client that is connected"):
        list(run_tasks(str, range(5), scheduler=client))
