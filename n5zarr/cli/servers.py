"""The commands with a server: ``serve`` and ``view``."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.text import Text

import n5zarr
from n5zarr.cli.messages import complain, print_json_line, print_text
from n5zarr.cli.options import ACCESS, AsJson, Host, Location, Port, options_of
from n5zarr.cli.progress import stoppable
from n5zarr.errors import N5Error
from n5zarr.format.path import join
from n5zarr.viewing.snippets import for_fsspec

if TYPE_CHECKING:
    from n5zarr import NeuroglancerView, Server


@options_of(n5zarr.get_attribute, only=ACCESS)
def serve(
    location: Location,
    *,
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
    as_json: AsJson,
    **access: Any,
) -> None:
    """Serve a container over HTTP as Zarr, OME-Zarr and N5, read-only.

    Ctrl-C stops the server. While it runs, any web page in a browser on this machine may read the
    container, but nothing outside it. --json prints the addresses as one line.
    """
    with (
        _until_stopped() as wait,
        n5zarr.serve(
            location, host=host, port=port, allow_hosts=allow_host or (), **access
        ) as server,
    ):
        if as_json:
            print_json_line(_views(server))
        else:
            for line in _addresses(server):  # a dataset is found after the first ones
                print_text(line)
        if open_page:
            webbrowser.open(server.url)
        wait(server)


def _views(server: Server) -> dict[str, str]:
    """Return the container, and the addresses of its page and of its views."""
    own = for_fsspec(server.url)
    views = {name: f"{own}{name}/" for name in ("zarr3", "zarr2", "ome", "ome04", "n5")}
    return {"container": str(server.app.state.served), "page": server.url, **views}


def _addresses(server: Server) -> Iterator[str | Text]:
    """Yield lines with the addresses of the container, and then how programs open a dataset."""
    served, own = server.app.state.served, for_fsspec(server.url)
    yield Text.assemble(("Serving", "bold"), f" {served}; Ctrl-C ends it")
    yield f"  Start page   {server.url}"
    yield f"  Zarr         {own}zarr3/ or {own}zarr2/"
    yield f"  OME-Zarr 0.5 {own}ome/"
    yield f"  OME-Zarr 0.4 {own}ome04/"
    yield f"  N5           {own}n5/"
    path = None
    with suppress(N5Error):  # a server may not list
        path = served.first_dataset()  # may take a while
    path = "PATH" if path is None else path
    zarr, n5 = (own + join(view, quote(path)) for view in ("zarr3", "n5"))
    yield Text(f"To open {path or 'it'}", "bold")
    yield f'  zarr         zarr.open("{zarr}", mode="r")'
    yield f'  TensorStore  tensorstore.open("{zarr}/|auto:")'
    yield f'               tensorstore.open("{n5}/|n5:")'
    yield f"  Neuroglancer {zarr}/|zarr3:"


@options_of(n5zarr.get_attribute, only=ACCESS)
def view(
    location: Location,
    *,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Image to show: path of the image, of one of its levels, or of a group of images. "
            "May be repeated.",
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Images that are labels, such as seg. May be repeated."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
    as_json: AsJson,
    **access: Any,
) -> None:
    """Show the images of a container in Neuroglancer, in the browser.

    This needs no internet. Ctrl-C stops the server. While it runs, any web page in a browser on
    this machine may read the container, but nothing outside it. --json prints the addresses as one
    line.
    """
    with (
        _until_stopped() as wait,
        n5zarr.view(
            location,
            dataset=dataset or (),
            labels=labels or (),
            host=host,
            port=port,
            **access,
        ) as shown,
    ):
        if as_json:
            print_json_line({**_views(shown.server), "neuroglancer": shown.url})
        else:
            print_text(*_addresses_of_view(shown))
        if not no_browser and not webbrowser.open(shown.url):
            complain("warning", "no browser available; open the address of Neuroglancer in one")
        wait(shown.server)


def _addresses_of_view(shown: NeuroglancerView) -> Iterator[str | Text]:
    served = shown.server.app.state.served
    yield Text.assemble(("Viewing", "bold"), f" {served}; Ctrl-C ends it")
    yield f"  Neuroglancer  {shown.url}"
    yield f"  Start page    {shown.server.url}"


@contextmanager
def _until_stopped() -> Iterator[Callable[[Server], None]]:
    """Yield a function that waits for a server to end; a signal ends it quietly, as is normal."""
    with suppress(KeyboardInterrupt, SystemExit), stoppable() as stop_if_asked:

        def wait(server: Server) -> None:
            while server.is_running:
                server.wait(1)
                stop_if_asked()

        yield wait
