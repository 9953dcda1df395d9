"""Let signals stop a long command so that it cleans up."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["stoppable"]


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Let signals raise an exception, so that running code cleans up.

    Yields
    ------
    callable
        Raises if a signal has arrived. Call it regularly: an exception that a signal raises is
        lost while C calls Python back.
    """
    received: list[int] = []

    def stop_if_asked() -> None:
        if received:
            raise (
                KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])
            )

    def stop(number: int, _: object) -> None:
        received.append(number)
        stop_if_asked()

    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    # keep ignored signals, such as SIGHUP under nohup
    before = {
        n: signal.getsignal(n) for n in numbers if n and signal.getsignal(n) != signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, stop)
    try:
        yield stop_if_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
