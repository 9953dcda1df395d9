"""``run_tasks``: what becomes of other tasks and of errors when something ends a run."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from n5zarr.errors import N5UnrepresentableError
from n5zarr.tools.jobs.run import run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from distributed import Client


class ServerError(Exception):
    """An error that cannot be unpickled, as those of many libraries."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")


def fails(_: object) -> None:
    raise ServerError(503, "slow down")


def sleeps(where: Path, task: int) -> int:
    (where / f"{task}.in").touch()
    time.sleep(0.02 if task == 0 else 0.2)
    (where / f"{task}.out").touch()
    return task


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
def test_no_task_runs_after_the_caller_has_stopped(tmp_path: Path, request: Any, kind: str) -> None:
    scheduler = request.getfixturevalue("client") if kind == "dask" else kind
    results = run_tasks(partial(sleeps, tmp_path), range(100), scheduler=scheduler, n_workers=2)
    assert next(results) == (0, 0)
    seconds = time.time() - (tmp_path / "0.out").stat().st_mtime  # many on a busy machine
    results.close()  # type: ignore[attr-defined]
    begun, ended = (sorted(path.stem for path in tmp_path.glob(f"*.{k}")) for k in ("in", "out"))
    assert begun == ended
    time.sleep(0.3)
    assert 1 < len([*tmp_path.glob("*.in")]) == len(begun) < 10 + 2 * seconds / 0.2


def test_tasks_that_somebody_cancels_are_told_of(client: Client) -> None:
    from distributed import Future  # noqa: PLC0415

    def cancel() -> None:
        client.cancel([Future(key, client) for key in list(client.futures)])  # type: ignore[no-untyped-call]

    timer = threading.Timer(0.3, cancel)
    timer.start()
    with pytest.raises(ConnectionError, match="tasks were cancelled"):
        list(run_tasks(time.sleep, [0.6] * 9, scheduler=client))
    timer.join()


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (fails, RuntimeError, "ServerError: 503: slow down"),
        (os._exit, ChildProcessError, "a worker process ended before its task was done"),
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
