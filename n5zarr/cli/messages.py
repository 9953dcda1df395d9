"""Print on the terminal: lines and tables, JSON, errors and warnings."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import TextIO, override

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from n5zarr.format.raw_json import strict

# C0 except tab and end of line, C1, characters that reverse the direction of text, and surrogates
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)
"""Whether to omit warnings and progress bars: ``--quiet``."""


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
    # None: a service has closed it
    width = None if stream is None or stream.isatty() else 10_000
    return _Console(file=stream, highlight=False, markup=False, emoji=False, width=width)


def next_step(part: str) -> str:
    """Say what to do after a part of a job."""
    return f"part {part} has ended; when all have, the same command with --finish"


def print_text(
    *parts: RenderableType, style: str | None = None, stderr: bool = False, hang: str | None = None
) -> None:
    """Print lines and tables; a terminal shows them folded between words.

    Parameters
    ----------
    *parts : renderables
        Each line is a text; anything else fits the width of the terminal.
    style : str, optional
        Their style.
    stderr : bool, optional
        Whether to print on standard error.
    hang : str, optional
        Begins what does not fit in the first line; by default four spaces more than that has.
    """
    screen = console(stderr=stderr)
    for part in parts:
        text = Text(part) if isinstance(part, str) else part
        if not screen.is_terminal:
            _print_in_full(screen, text, style)
        elif isinstance(text, Text):
            for line in _folded(screen, text, hang):
                screen.print(line, style=style, soft_wrap=True)
        else:
            screen.print(text, style=style)


def _print_in_full(screen: Console, part: RenderableType, style: str | None) -> None:
    """Print one record a line, without the spaces that fill the columns of a table."""
    with screen.capture() as capture:
        screen.print(part, style=style, soft_wrap=isinstance(part, Text))
    lines = capture.get().removesuffix("\n").split("\n")
    screen.file.write("".join(f"{line.rstrip()}\n" for line in lines))
    screen.file.flush()


def _folded(screen: Console, text: Text, hang: str | None) -> Iterator[Text]:
    """Fold lines between words; a longer word, such as an address, stays whole."""
    for line in text.split("\n", allow_blank=True):
        first = line.plain
        indent = " " * (len(first) - len(first.lstrip()) + 4) if hang is None else hang
        begin, *rest = line.divide(_breaks(first, screen.width, screen.width - len(indent)))
        yield begin
        for part in rest:
            yield Text(indent) + part[len(part.plain) - len(part.plain.lstrip()) :]


def _breaks(line: str, first: int, width: int) -> Iterator[int]:
    """Yield the places at which to fold a line, in columns of a terminal.

    Examples
    --------
    >>> list(_breaks("ab cd  efghij k", 5, 4))
    [5, 13]
    """
    room, used = first, 0
    for word in re.finditer(r"\s*\S+", line):
        size = cell_len(word[0])
        if used and used + size > room:
            yield word.start()
            room, used = width, cell_len(word[0].lstrip())
        else:
            used += size


def complain(word: str, what: object) -> None:
    """Print an error or a warning as one line on standard error."""
    print_text(f"n5zarr: {word}: {' '.join(str(what).split())}", stderr=True)


def print_json(document: object) -> None:
    """Print JSON: NaN and infinities, which it does not have, and errors as text."""
    typer.echo(json.dumps(strict(document), indent=2, allow_nan=False, default=str))


def print_json_line(document: object) -> None:
    """Print JSON in one line, at once, for programs that read it while the command runs."""
    typer.echo(json.dumps(strict(document), allow_nan=False, default=str))
    sys.stdout.flush()
