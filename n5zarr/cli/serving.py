"""Options and the shutdown that the commands with a server share."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from n5zarr.cli.common import errors_in_one_line
from n5zarr.cli.stopping import stoppable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from n5zarr import Server

__all__ = ["Host", "Port", "until_stopped"]

Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines read.")]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0: any free port.")]


@contextmanager
def until_stopped(*, debug: bool) -> Iterator[Callable[[Server], None]]:
    """Yield a function that waits for a server to end; end quietly on a signal."""
    # a signal is the normal end of a server, not an error
    quiet = suppress(KeyboardInterrupt, SystemExit)
    with errors_in_one_line(debug=debug), quiet, stoppable() as check:

        def wait(server: Server) -> None:
            while server.is_running:
                server.wait(1)
                check()

        yield wait
