"""Define rows: a call of another library, and the call of n5zarr that takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["Library", "Row", "Section"]


@dataclass(frozen=True)
class Row:
    """A call of another library, and its replacement.

    Parameters
    ----------
    old, new : str
        Lines; the value of the last one is compared, and so is the container afterwards. Without
        ``new`` there is no counterpart.
    why : str
        Why they differ, or why there is no counterpart; empty where they are equal.
    raises : str
        Which of the two raises an error: ``"old"``, ``"new"`` or ``"both"``.
    listed : bool
        Whether the page shows the row; others are only tested.
    """

    old: str
    new: str = ""
    why: str = ""
    raises: str = ""
    listed: bool = True


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
    """Rows of one topic, which form a section of the page.

    Parameters
    ----------
    title : str
        Its heading.
    text, others : str
        The rows that the page shows, and those that are only tested, as :func:`parsed` takes them.
    same : tuple of str
        Lines that are the same in both, and come first.
    more : tuple of Row
        Other rows.
    before_old, before_new : str
        Lines before each call.
    """

    title: str
    text: str = ""
    others: str = ""
    same: tuple[str, ...] = ()
    more: tuple[Row, ...] = ()
    before_old: str = ""
    before_new: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return all rows."""
        same = (Row(line, line) for line in self.same)
        others = (replace(row, listed=False) for row in parsed(self.others))
        return (*same, *parsed(self.text), *others, *self.more)


@dataclass(frozen=True)
class Library:
    """A library, with its page in ``docs/migration``.

    Parameters
    ----------
    name : str
        How the tables call it.
    page : str
        Name of its page.
    before_old, before_new : str
        Lines that every row has before it.
    sections : tuple of Section
        The rows.
    packages : tuple of str
        What an environment of its own needs; none if it is installed beside n5zarr.
    """

    name: str
    page: str
    before_old: str
    before_new: str
    sections: tuple[Section, ...]
    packages: tuple[str, ...] = ()
