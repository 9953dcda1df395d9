"""Wait for other threads, processes and tasks, by their signals, else by polling."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 60  # seconds: none of what is waited for takes so long on a busy machine


def wait_until(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until a condition holds, and fail if it never does."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f"not so within {patience} seconds"
        time.sleep(0.002)  # what is polled has no event


async def let_others_run() -> None:
    """Let the other tasks of this event loop run until they wait for something else."""
    for _ in range(100):
        await asyncio.sleep(0)  # one turn of the loop


def is_inside(thread: threading.Thread, function: Callable[..., object]) -> bool:
    """Return whether a thread is executing a function of Python, or one that it called."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code is not function.__code__:
        frame = frame.f_back
    return frame is not None


@contextmanager
def alarms(handle: Callable[..., Any], *seconds: float) -> Iterator[None]:
    """Call a function as the handler of a signal, after some seconds and perhaps in turns."""
    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, *seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def when_another_program_holds_a_lock(do: Callable[[], object]) -> Iterator[None]:
    """Call a function when n5zarr is about to wait for another program's lock; check it waits."""
    n_waits = 0

    class Waiting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            nonlocal n_waits
            if "waits for another program" in record.getMessage():
                n_waits += 1
                do()

    logger, handler = logging.getLogger("n5zarr.storage.locks"), Waiting()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert n_waits == 1
