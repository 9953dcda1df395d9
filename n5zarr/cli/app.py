"""The command ``n5zarr``: all its commands by purpose."""

from __future__ import annotations

from typing import Annotated, Any, override

import typer
from typer.core import TyperGroup

from n5zarr.cli.command import command
from n5zarr.cli.convert import convert, convert_nwb, download, rechunk, sidecar, virtualize
from n5zarr.cli.demo import demo
from n5zarr.cli.diff import diff
from n5zarr.cli.in_place import attrs, rm_empty
from n5zarr.cli.info import info
from n5zarr.cli.options import Quiet, Verbose
from n5zarr.cli.pyramid import pyramid
from n5zarr.cli.servers import serve, view
from n5zarr.cli.thumbnail import thumbnail
from n5zarr.cli.tree import tree
from n5zarr.cli.validate import validate
from n5zarr.cli.version import version_line

__all__ = ["app"]

_COMMANDS = {
    "Look": (tree, info, view, thumbnail, serve),
    "Copy and convert": (convert, download, virtualize, sidecar),
    "Make and change": (pyramid, rechunk, attrs),
    "Check": (validate, diff, rm_empty),
    "Learn": (demo,),
}

_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class Commands(TyperGroup):
    """A group of commands whose help fills its lines."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        commands = [c for c in self.commands.values() if not isinstance(c, Commands)]
        for each in (self, *commands):
            paragraphs = (each.help or "").split("\n\n")
            # rich keeps the ends of lines in all paragraphs but the first
            each.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
            _give_width(each, typer.Context(each, **_HELP))

    @override
    def get_params(self, ctx: Any) -> Any:
        _give_width(self, ctx)  # the options for completion are added late
        return super().get_params(ctx)


def _give_width(command: Any, ctx: Any) -> None:
    """Leave the column of values to the help of those options that take none."""
    for param in (*command.params, command.get_help_option(ctx)):
        if getattr(param, "is_flag", False):
            param.metavar = ""


app = typer.Typer(
    name="n5zarr",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)
nwb = typer.Typer(cls=Commands, no_args_is_help=True)
for panel, functions in _COMMANDS.items():
    for function in functions:
        app.command(rich_help_panel=panel)(command(function))
nwb.command("convert")(command(convert_nwb))
app.add_typer(nwb, name="nwb", rich_help_panel="Copy and convert")


def _version(value: bool) -> None:
    if value:
        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Inspect, copy, convert, change and check N5 containers.

    LOCATION is a local path or a URL of a container, or of a group or dataset in it:
    data.n5/em/s0, s3://bucket/data.n5.
    """


@nwb.callback()
def of_nwb(verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Work with NWB files."""
