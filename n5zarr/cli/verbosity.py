"""The options ``-v`` and ``-q``, which each command has before and after its name."""

from __future__ import annotations

import logging
from typing import Annotated

import typer
from rich.logging import RichHandler

from n5zarr.cli.messages import console, is_quiet

__all__ = ["Quiet", "Verbose"]

_VERBOSITY = f"{__name__}.verbosity"  # in `ctx.meta`, which all contexts of a run share


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


Verbose = Annotated[
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
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        expose_value=False,
        callback=_set_quiet,
        help="Hide progress bars and warnings.",
    ),
]
