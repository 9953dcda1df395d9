"""The command ``view``."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer
from rich.markup import escape

import n5zarr
from n5zarr.cli.common import (
    Debug,
    Library,
    Location,
    Options,
    complain,
    console,
    storage_options,
)
from n5zarr.cli.serving import Host, Port, until_stopped

__all__ = ["view"]


def view(
    location: Location,
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
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Show the images of a container in Neuroglancer, in the browser.

    This needs no internet. Ctrl-C stops the server. While it runs, any web page in a browser on
    this machine may read the container, but nothing outside it.
    """
    with until_stopped(debug=debug) as wait:
        shown = n5zarr.view(
            location,
            dataset=dataset or (),
            labels=labels or (),
            host=host,
            port=port,
            storage_options=storage_options(option),
            backend=backend,
        )
        with shown:
            served = shown.server.app.state.served
            screen = console()
            screen.print(f"[bold]Viewing[/] {escape(str(served))}; Ctrl-C ends it", soft_wrap=True)
            screen.print(f"  Neuroglancer  {escape(shown.url)}", soft_wrap=True)
            screen.print(f"  Start page    {escape(shown.server.url)}", soft_wrap=True)
            if not no_browser and not webbrowser.open(shown.url):
                complain("warning", "no browser available; open the address of Neuroglancer in one")
            wait(shown.server)
