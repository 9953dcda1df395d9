"""The command ``n5zarr``: all its commands by purpose, and ``demo``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from n5zarr.cli import look
from n5zarr.cli.attributes import attrs
from n5zarr.cli.common import Debug, console, errors_in_one_line
from n5zarr.cli.convert import convert, rechunk
from n5zarr.cli.demo import PICTURE, report, write
from n5zarr.cli.diff import diff
from n5zarr.cli.download import download
from n5zarr.cli.empty_blocks import rm_empty
from n5zarr.cli.nwb import nwb
from n5zarr.cli.pyramid import pyramid
from n5zarr.cli.serve import serve
from n5zarr.cli.shared_options import HELP, Manners
from n5zarr.cli.thumbnail import thumbnail
from n5zarr.cli.validate import validate
from n5zarr.cli.version import version_line
from n5zarr.cli.view import view
from n5zarr.cli.virtualize import sidecar, virtualize
from n5zarr.store import inspect
from n5zarr.store.location import sample_path

__all__ = ["app"]

app = typer.Typer(
    name="n5zarr",
    cls=Manners,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)
LOOK, MOVE, MAKE, CHECK, LEARN = "Look", "Copy and convert", "Make and change", "Check", "Learn"
for panel, command in (
    (LOOK, look.tree),
    (LOOK, look.info),
    (LOOK, view),
    (LOOK, thumbnail),
    (LOOK, serve),
    (MOVE, convert),
    (MOVE, download),
    (MOVE, virtualize),
    (MOVE, sidecar),
    (MAKE, pyramid),
    (MAKE, rechunk),
    (MAKE, attrs),
    (CHECK, validate),
    (CHECK, diff),
    (CHECK, rm_empty),
):
    app.command(rich_help_panel=panel)(command)
app.add_typer(nwb, name="nwb", rich_help_panel=MOVE)


def _version(value: bool) -> None:
    if value:
        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Inspect, copy, convert, change and check N5 containers.

    PATH is a local path or a URL of a container, or of a group or dataset in it:
    data.n5/em/s0, s3://bucket/data.n5.
    """


@app.command(rich_help_panel=LEARN)
def demo(
    output: Annotated[str, typer.Option("--output", "-o", help="Picture to write.")] = PICTURE,
    debug: Debug = False,
) -> None:
    """Read the sample container, write a picture of it, and write a new container."""
    path = sample_path()
    screen = console()
    with errors_in_one_line(debug=debug):
        screen.print("[bold]The container[/]  n5zarr tree SAMPLE\n")
        look.print_tree(inspect.describe_each(path))
        screen.print("\n[bold]Reading it[/]\n")
        for line in report(path, output):
            screen.print(escape(line), soft_wrap=True)
        screen.print("\n[bold]Writing[/]\n")
        for line in write(path):
            screen.print(escape(line), soft_wrap=True)
    screen.print(
        "\n[bold]What happened[/]\n\n"
        "The container is N5, byte for byte as Java writes it: attributes.json files and one file\n"
        "per block, axes x first. n5zarr.N5Store showed it to zarr as Zarr v3, axes z first, and\n"
        "passed full-size blocks through as they are. n5zarr.open decoded the labels itself.\n"
        "What was written is N5 again, for Java, tensorstore and z5py as for zarr.\n"
    )
    screen.print("[bold]What to try next[/]\n")
    for line in (
        f"n5zarr info {path}/em/s0",
        "n5zarr tree YOUR.n5",
        "python -c \"import n5zarr; print(n5zarr.open('YOUR.n5/path/to/dataset'))\"",
    ):
        screen.print(f"  {escape(line)}", soft_wrap=True)
