"""Define rows: a call of another library, and the call of n5zarr that takes its place."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Section:
    """Rows of one topic, which form a section of the page."""

    title: str
    rows: tuple[Row, ...]
    before_old: str = ""
    before_new: str = ""


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
    packages: tuple[str, ...] = field(default=())
