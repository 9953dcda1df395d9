"""Options of every command: ``-h``, ``-v`` and ``-q`` before or after its name, help that folds."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, override

import typer
from rich.logging import RichHandler
from typer.core import TyperGroup
from typer.main import get_command

from n5zarr.cli.common import console, is_quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HELP", "Manners"]

HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Settings of the context of the outermost group."""

_VERBOSITY = f"{__name__}.verbosity"  # in `ctx.meta`, which all contexts of a run share


class Manners(TyperGroup):
    """The group of all commands: gives each of them, at any depth, the options for messages."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - those of typer
        super().__init__(**settings)
        shared = get_command(_SHARED).params
        for command in _with_commands(self):
            command.params += shared
            paragraphs = (command.help or "").split("\n\n")
            # rich keeps the ends of lines in all paragraphs but the first
            command.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
            _give_width(command, typer.Context(command, **HELP))

    @override
    def get_params(self, ctx: Any) -> Any:
        _give_width(self, ctx)  # the options for completion are added late
        return super().get_params(ctx)


def _give_width(command: Any, ctx: Any) -> None:  # noqa: ANN401 - typer's own or click's
    """Leave the column of values to the help of those options that take none."""
    for param in (*command.params, command.get_help_option(ctx)):
        if getattr(param, "is_flag", False):
            param.metavar = ""


def _with_commands(group: TyperGroup) -> Iterator[Any]:
    """Yield a group, and all groups and commands below it."""
    yield group
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            yield from _with_commands(command)
        else:
            yield command


def _set_verbosity(ctx: typer.Context, value: int) -> None:
    """Show the log of n5zarr while the command runs."""
    if not value or ctx.resilient_parsing:
        return
    logger = logging.getLogger("n5zarr")
    if _VERBOSITY not in ctx.meta:
        handler, before = _handler(), logger.level
        logger.addHandler(handler)
        ctx.find_root().call_on_close(lambda: logger.removeHandler(handler))
        ctx.find_root().call_on_close(lambda: logger.setLevel(before))
    ctx.meta[_VERBOSITY] = ctx.meta.get(_VERBOSITY, 0) + value
    logger.setLevel(logging.INFO if ctx.meta[_VERBOSITY] == 1 else logging.DEBUG)


def _handler() -> logging.Handler:
    screen = console(stderr=True)
    if screen.is_terminal:
        return RichHandler(console=screen, show_path=False, log_time_format="%X")
    handler = logging.StreamHandler(screen.file)  # rich fills lines up to their width
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler


def _set_quiet(ctx: typer.Context, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        token = is_quiet.set(True)
        ctx.call_on_close(lambda: is_quiet.reset(token))


_SHARED = typer.Typer(add_completion=False)


@_SHARED.command()
def _shared(
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            expose_value=False,
            callback=_set_verbosity,
            metavar="",
            show_default=False,
            help="Log each step; -vv: each request.",
        ),
    ] = 0,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            expose_value=False,
            callback=_set_quiet,
            help="Hide progress bars and warnings.",
        ),
    ] = False,
) -> None:
    """Declare the options of all commands."""
