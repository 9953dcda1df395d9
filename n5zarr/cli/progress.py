"""Show the progress of a long command on a terminal, and let signals stop it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from n5zarr.cli.common import console, is_quiet
from n5zarr.cli.stopping import stoppable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["progress_bar"]


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
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    )
    is_off = not screen.is_terminal or is_quiet.get()
    progress = Progress(*columns, console=screen, disable=is_off)
    with progress as bar, stoppable() as stop_if_asked:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            stop_if_asked()
            if total and stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            if total:
                bar.update(tasks[stage], completed=done, total=total)

        yield show
