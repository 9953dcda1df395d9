"""Define rows: a call of another library, and the call of n5zarr that takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["Library", "Row", "Section"]


@dataclass(frozen=True)
class Row:
    """A call of another library, and its replacement."""

    old: str  # its last value is compared, and the container afterwards
    new: str = ""  # none where there is no counterpart
    why: str = ""  # they differ, or there is no counterpart; empty where they are equal
    raises: str = ""  # an error: "old", "new" or "both"
    listed: bool = True  # on the page; others are only tested


def parsed(text: str) -> Iterator[Row]:
    """Yield the rows of a text.

    Lines that begin with ``-`` are old, those with ``+`` new, those with ``=`` rows in which both
    are the same. ``#`` says why they differ, ``!`` which raises an error, and perhaps why.

    >>> [(row.old, row.new, row.raises) for row in parsed("- a\\n- b\\n+ c\\n! old: z\\n= d")]
    [('a\\nb', 'c', 'old'), ('d', 'd', '')]
    """
    row, last = Row(""), ""
    for kind, line in ((line[0], line[2:]) for line in text.strip().splitlines()):
        if row.old and (kind == "=" or kind == "-" != last):
            yield row
            row = Row("")
        match kind:
            case "=":
                row = Row(line, line)
            case "-":
                row = replace(row, old=f"{row.old}\n{line}".lstrip("\n"))
            case "+":
                row = replace(row, new=f"{row.new}\n{line}".lstrip("\n"))
            case "#":
                row = replace(row, why=line)
            case _:
                raises, _, why = line.partition(": ")
                row = replace(row, raises=raises, why=why)
        last = kind
    if row.old:
        yield row


@dataclass(frozen=True)
class Section:
    """Rows of one topic, which form a section of the page."""

    title: str
    text: str = ""  # rows that the page shows, as `parsed` takes them
    others: str = ""  # rows that are only tested
    same: tuple[str, ...] = ()  # lines that are the same in both, and come first
    more: tuple[Row, ...] = ()  # other rows
    before_old: str = ""  # lines before each call
    before_new: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        same = (Row(line, line) for line in self.same)
        others = (replace(row, listed=False) for row in parsed(self.others))
        return (*same, *parsed(self.text), *others, *self.more)


@dataclass(frozen=True)
class Library:
    """A library, with its page in ``docs/migration``."""

    name: str  # as the tables call it
    page: str  # its name
    before_old: str  # lines before each row
    before_new: str
    sections: tuple[Section, ...]  # of rows
    packages: tuple[str, ...] = ()  # that an environment of its own needs
