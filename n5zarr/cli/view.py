"""The command ``view``."""

from __future__ import annotations

import threading
import webbrowser
from typing import Annotated

import typer
from rich.markup import escape

import n5zarr
from n5zarr.cli.common import (
    Debug,
    Location,
    Options,
    console,
    errors_in_one_line,
    storage_options,
)
from n5zarr.cli.stopping import stoppable

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
        typer.Option(
            metavar="GLOB", help="Images whose elements are labels, such as seg. May be repeated."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the server; 0 takes a free one.")
    ] = 0,
    host: Annotated[str, typer.Option(help="Address that the server listens at.")] = "127.0.0.1",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the URL alone, and open nothing.")
    ] = False,
    option: Options = None,
    debug: Debug = False,
) -> None:
    """Show the images of a container in Neuroglancer, in the browser.

    Needs no internet. The server runs until it is interrupted (Ctrl-C).
    """
    with errors_in_one_line(debug=debug):
        shown = n5zarr.view(
            location,
            dataset=dataset or (),
            labels=labels or (),
            host=host,
            port=port,
            storage_options=storage_options(option),
        )
        with shown:
            console().print(escape(shown.url), soft_wrap=True)
            if not no_browser and not webbrowser.open(shown.url):
                note = "found no browser to open: open the URL yourself"
                console(stderr=True).print(f"[dim]{note}[/]", soft_wrap=True)
            with stoppable() as stop_if_asked:
                waiting = threading.Event()
                while not waiting.wait(0.5):
                    stop_if_asked()
