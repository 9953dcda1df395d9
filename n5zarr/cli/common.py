"""Define what all commands share: arguments, options, errors in one line, output as JSON."""

from __future__ import annotations

import io
import json
import math
import re
import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, override

import typer
from rich.console import Console
from rich.markup import escape
from rich.segment import Segment

from n5zarr.errors import N5Error, N5Warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions, RenderableType

__all__ = [
    "AsJson",
    "Debug",
    "Described",
    "DryRun",
    "Library",
    "Location",
    "Node",
    "Options",
    "Overwrite",
    "Resume",
    "Scheduler",
    "Workers",
    "complain",
    "complain_of_each",
    "console",
    "errors_in_one_line",
    "is_quiet",
    "print_json",
    "printable",
    "say",
    "storage_options",
    "whole_numbers",
]

# C0 except tab and end of line, C1, characters that reverse the direction of text, and surrogates
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
"""Whether to omit warnings and progress bars: ``--quiet``."""

Location = Annotated[
    str, typer.Argument(metavar="PATH", help="A container, a node in one, or BigDataViewer's XML.")
]
Node = Annotated[
    str, typer.Argument(metavar="PATH", help="A container, or a group or dataset in one.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

Options = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        "-o",
        metavar="NAME=VALUE",
        help="For a URL: an option of its library, such as anon=true. May be repeated.",
    ),
]
Library = Annotated[
    Literal["fsspec", "obstore"],
    typer.Option("--backend", help="For a URL: the library that reads and writes it."),
]

# shared by long commands
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Run on threads, processes, or a dask scheduler such as tcp://host:8786. "
        "Default: threads.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Number of threads or processes. Default: one for each core."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing result.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")
]

type Described = dict[str, Any]
"""JSON from `describe` or `describe_tree`, or a part of it."""


def printable(text: str) -> str:
    r"""Return text in which characters that control a terminal are written as escapes.

    The writer of a container chose the names of nodes, attributes and messages; a terminal would
    execute control characters in them.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str) -> None:
    """Print a line on standard output."""
    typer.echo(printable(text))


class _Console(Console):
    """A console that prints control characters visibly instead of sending them."""

    @override
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


def console(*, stderr: bool = False) -> Console:
    """Return the console of an output; piped output is neither folded nor cut."""
    stream = sys.stderr if stderr else sys.stdout
    # during progress, rich replaces the stream
    return _console_of(getattr(stream, "rich_proxied_file", stream))


@lru_cache(maxsize=4)
def _console_of(stream: TextIO | None) -> Console:
    """Return the one console of a stream, so that lines appear above a progress bar, not in it."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # attributes may hold half of a character
    is_folded = stream is None or stream.isatty()  # None: a service has closed it
    return _Console(file=stream, highlight=False, width=None if is_folded else 10_000)


@contextmanager
def errors_in_one_line(*, debug: bool) -> Iterator[None]:
    """Print errors and warnings as one line on standard error.

    Exit with status 1 for a difference between files, with 2 for any other error.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            if is_quiet.get():
                warnings.simplefilter("ignore")
            else:
                warnings.simplefilter("always", N5Warning)
            yield
    # the reader has stopped, as in `n5zarr tree PATH | head`: typer ends silently
    except (BrokenPipeError, typer.Exit, typer.BadParameter):
        raise
    except (N5Error, OSError) as err:
        if debug:
            raise
        complain("error", err)
        for note in getattr(err, "__notes__", ()):
            console(stderr=True).print(f"  {escape(note)}", soft_wrap=True)
        raise typer.Exit(1 if getattr(err, "kind", "") == "differs" else 2) from None
    except Exception as err:
        if debug:
            raise
        # mostly from the library that reads a URL: a wrong address, name or key
        complain("error", f"{type(err).__name__}: {err} (--debug shows where)")
        raise typer.Exit(2) from None


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    complain("warning", message)


def complain(word: str, what: object) -> None:
    """Print an error or a warning as one line on standard error."""
    text = " ".join(str(what).split())
    console(stderr=True).print(f"n5zarr: {word}: {escape(text)}", soft_wrap=True)


def complain_of_each(problems: Iterable[object]) -> None:
    """Print errors, a line for each."""
    for problem in problems:
        complain("error", problem)


def print_json(document: object) -> None:
    """Print JSON; NaN and infinities, which it does not have, as text."""
    typer.echo(json.dumps(_finite(document), indent=2, allow_nan=False))


def _finite(value: object) -> object:
    """Replace NaN and infinities by text."""
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def storage_options(given: list[str] | None) -> dict[str, Any] | None:
    """Parse NAME=VALUE; a value that is no JSON is text."""
    options: dict[str, Any] = {}
    for option in given or []:
        name, equals, value = option.partition("=")
        if not equals:
            message = f"expected NAME=VALUE, got {option!r}"
            raise typer.BadParameter(message, param_hint="--storage-option")
        try:
            options[name] = json.loads(value.lower() if value in ("True", "False") else value)
        except ValueError:
            options[name] = value
    return options or None


def whole_numbers(name: str, text: str) -> list[int]:
    """Parse the value of an option: whole numbers with commas between them."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        message = f"expected whole numbers such as 2,2,2, got {text!r}"
        raise typer.BadParameter(message, param_hint=name) from None
