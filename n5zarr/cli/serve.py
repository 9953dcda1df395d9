"""The command ``serve``."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from n5zarr.cli.common import Debug, Location, Options, console, errors_in_one_line, storage_options
from n5zarr.cli.stopping import stoppable
from n5zarr.errors import N5MissingDependencyError

if TYPE_CHECKING:
    from n5zarr.viewing.serve.run import Server

__all__ = ["serve"]

Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for other machines.")]
Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on; 0 takes a free one.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A further name by which browsers may call the server, such as that of a proxy. "
        "May be repeated.",
    ),
]


def serve(
    location: Location,
    host: Host = "127.0.0.1",
    port: Port = 0,
    allow_host: AllowHost = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the start page in the browser.")
    ] = False,
    option: Options = None,
    debug: Debug = False,
) -> None:
    """Serve a container over HTTP as Zarr, as OME-Zarr and as it is, read only.

    Ctrl-C ends it. Any web page in a browser on this machine may read what is served.
    """
    with errors_in_one_line(debug=debug), stoppable():
        try:
            from n5zarr.viewing.serve.run import running  # noqa: PLC0415 - needs an extra
        except ModuleNotFoundError as err:
            raise N5MissingDependencyError(err.name or "uvicorn", "n5zarr serve", "view") from err
        options = storage_options(option)
        with running(
            location, host, port, allow_hosts=allow_host or (), storage_options=options
        ) as server:
            _print(server, location)
            if open_page:
                webbrowser.open(server.url)
            try:
                while server.is_running:
                    server.wait(60)
            except (KeyboardInterrupt, SystemExit):
                pass  # how a server is ended


def _print(server: Server, location: str) -> None:
    url = server.url
    screen = console()
    for line in (
        f"[bold]Serving[/] {escape(location)}, read only; Ctrl-C ends it",
        "",
        f"start page   {url}",
        f'Zarr         {url}zarr/  zarr.open("{url}zarr/PATH", mode="r", zarr_format=3)',
    ):
        screen.print(line, soft_wrap=True)
