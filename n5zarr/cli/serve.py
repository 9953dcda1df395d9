"""The command ``serve``."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer
from rich.markup import escape

import n5zarr
from n5zarr.cli.common import Debug, Library, Location, Options, console, storage_options
from n5zarr.cli.serving import Host, Port, until_stopped
from n5zarr.errors import N5Error
from n5zarr.format.path import join
from n5zarr.viewing.snippets import for_fsspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from n5zarr import Server

__all__ = ["serve"]

_NONE = "PATH"  # placeholder if no dataset exists


def serve(
    location: Location,
    host: Host = "127.0.0.1",
    port: Port = 0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Accept requests under this host name, too, such as that of a proxy. "
            "May be repeated.",
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the start page in the browser.")
    ] = False,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Serve a container over HTTP as Zarr, OME-Zarr and N5, read-only.

    Ctrl-C stops the server. While it runs, any web page in a browser on this machine may read the
    container, but nothing outside it.
    """
    with until_stopped(debug=debug) as wait:
        running = n5zarr.serve(
            location,
            host=host,
            port=port,
            allow_hosts=allow_host or (),
            storage_options=storage_options(option),
            backend=backend,
        )
        with running as server:
            for line in _lines(server):
                console().print(line, soft_wrap=True)
            if open_page:
                webbrowser.open(server.url)
            wait(server)


def _lines(server: Server) -> Iterator[str]:
    """Print the address of the container, and how programs open it."""
    served, own = server.app.state.served, for_fsspec(server.url)
    yield f"[bold]Serving[/] {escape(str(served))}; Ctrl-C ends it"
    yield f"  Start page   {escape(server.url)}"  # IPv6 looks like markup
    yield f"  Zarr         {escape(own)}zarr3/ or {escape(own)}zarr2/"
    for name, view in (("OME-Zarr", "ome/"), ("N5", "n5/")):
        yield f"  {name:12} {escape(own)}{view}"
    dataset = None
    with suppress(N5Error):  # a server may not list
        dataset = served.first_dataset()
    path = _NONE if dataset is None else dataset
    zarr, n5 = (escape(own + join(view, quote(path))) for view in ("zarr3", "n5"))
    yield f"[bold]To open {escape(path) or 'it'}[/]"
    yield f'  zarr         zarr.open("{zarr}", mode="r")'
    yield f'  TensorStore  tensorstore.open("{zarr}/|auto:") or "{n5}/|n5:"'
    yield f"  Neuroglancer {zarr}/|zarr3:"
