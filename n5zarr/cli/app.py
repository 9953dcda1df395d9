"""The command ``n5zarr``: all its commands by purpose."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Annotated, Any, override

import typer
from typer.core import TyperGroup
from typer.main import get_command

from n5zarr.cli.command import command
from n5zarr.cli.options import Quiet, Verbose
from n5zarr.cli.version import version_line

# By panel of the help: the names of the commands, each with its module and function.
_PANELS = {
    "Look": {
        "tree": "tree.tree",
        "info": "info.info",
        "view": "servers.view",
        "thumbnail": "thumbnail.thumbnail",
        "serve": "servers.serve",
    },
    "Copy and convert": {
        "convert": "convert.convert",
        "download": "convert.download",
        "virtualize": "convert.virtualize",
    },
    "Make and change": {
        "pyramid": "convert.pyramid",
        "rechunk": "convert.rechunk",
        "attrs": "in_place.attrs",
    },
    "Check": {
        "validate": "validate.validate",
        "diff": "diff.diff",
        "rm-empty": "in_place.rm_empty",
    },
    "Learn": {"demo": "demo.demo"},
}
_OF_NWB = {"": {"convert": "convert.convert_nwb"}}

_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def _command_at(name: str, panel: str, place: str) -> Any:
    """Make a command of the function at a place in this package."""
    module, _, function = place.partition(".")
    called = getattr(import_module(f"n5zarr.cli.{module}"), function)
    if not gc.isenabled():  # as main leaves it: what is imported is no garbage, even at the end
        gc.freeze()
        gc.enable()
    single = typer.Typer(add_completion=False, context_settings=_HELP)
    single.command(name, rich_help_panel=panel)(command(called))
    made = get_command(single)
    _fill_lines(made)
    return made


def _fill_lines(made: Any) -> None:
    paragraphs = (made.help or "").split("\n\n")
    # rich keeps the ends of lines in all paragraphs but the first
    made.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
    _ready(made, typer.Context(made, **_HELP))


def _ready(command: Any, ctx: Any) -> None:
    for param in (*command.params, command.get_help_option(ctx)):
        if getattr(param, "is_flag", False):
            param.metavar = ""  # leave the column of values to the help of other options
        if not isinstance(param.process_value, partial):
            param.process_value = partial(_value, param, param.process_value)


def _value(param: Any, process: Callable[[Any, Any], Any], ctx: Any, given: Any) -> Any:
    """Return the value of a parameter; typer imports pydantic to cast it, which takes long.

    Arguments are texts, and defaults have their types already.
    """
    is_text = isinstance(given, str) and param.param_type_name == "argument"
    is_cast = is_text or isinstance(given, bool) or given == param.default
    if param.required if given is None else not is_cast:
        return process(ctx, given)
    value = () if given is None and (param.multiple or param.nargs == -1) else given
    return value if param.callback is None else param.callback(ctx, param, value)


class _Group(TyperGroup):
    """A group of commands, each made when it is first asked for, whose help fills its lines.

    So a command starts without the modules that only others need.
    """

    panels: Mapping[str, Mapping[str, str]] = _PANELS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        places = {
            name: (name, panel, place)
            for panel, of in self.panels.items()
            for name, place in of.items()
        }
        self.commands: dict[str, Any] = {**places, **self.commands}
        _fill_lines(self)

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if isinstance(found := self.commands.get(cmd_name), tuple):
            self.commands[cmd_name] = found = _command_at(*found)
        return found

    @override
    def get_params(self, ctx: Any) -> Any:
        _ready(self, ctx)  # the options for completion are added late
        return super().get_params(ctx)


class _Nwb(_Group):
    panels = _OF_NWB


app = typer.Typer(
    name="n5zarr",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)
nwb = typer.Typer(cls=_Nwb, no_args_is_help=True)
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
