"""Show the progress of a long command, and let signals stop it so that it cleans up."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from n5zarr.cli.messages import console, is_quiet


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
        n: signal.signal(n, stop) for n in numbers if n and signal.getsignal(n) != signal.SIG_IGN
    }
    try:
        yield stop_if_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show how far each stage of a run is, with rate and time left; nothing if piped or quiet.

    Yields
    ------
    callable
        Takes the name of a stage, the bytes done and the bytes to do. Raises if a signal has
        arrived.
    """
    screen = console(stderr=True)
    if not screen.is_terminal or is_quiet.get():
        with stoppable() as stop_if_asked:
            yield lambda *_: stop_if_asked()
        return
    from rich.progress import (  # noqa: PLC0415 - half of what a short command imports of rich
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=screen) as bar, stoppable() as stop_if_asked:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            stop_if_asked()
            if total and stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            if total:
                bar.update(tasks[stage], completed=done, total=total)

        yield show
