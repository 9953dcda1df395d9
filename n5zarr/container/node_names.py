"""Decide which names in a directory may be names of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import check_key
from n5zarr.storage.requests import Entry

MAX_LEVELS = 255
"""Largest depth of listed groups; open deeper ones by their paths."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A child that cannot be read, with its error."""

    error: N5Error


class ReplacedError(N5Error, KeyError):
    """A node cannot be read, although a listing of this store object has named it.

    zarr lists the members of a group, then opens each. It leaves out those that raise a KeyError,
    as the listing does with nodes that it finds broken.
    """

    @classmethod
    def of(cls, err: N5Error) -> Self:
        """Make it of the error of reading."""
        error = cls(err.message, kind=err.kind, where=err.where)
        error.args = (str(err),)  # zarr's warning
        return error


def names_of_nodes(
    path: str, entries: Sequence[Entry]
) -> tuple[list[str], list[tuple[str, Broken]]]:
    """Return the sorted names in a directory that may be nodes, and the invalid names.

    Parameters
    ----------
    path : str
        The directory, for messages.
    entries : sequence of Entry
        Its entries.
    """
    directories = sorted(
        e.name for e in entries if e.is_dir is not False and e.name != ATTRIBUTES_JSON
    )
    refusals = [_refusal(path, name) for name in directories]
    each = list(zip(directories, refusals, strict=True))
    names = [name for name, error in each if error is None]
    refused = [(name, error) for name, error in each if error is not None]
    return names, [(name, Broken(error.located(path or "/"))) for name, error in refused]


def _refusal(path: str, name: str) -> N5Error | None:
    """Return the error of a directory that cannot be a node; None of other directories."""
    if path.count("/") + bool(path) >= MAX_LEVELS:
        return N5UnsupportedError(
            f"expected at most {MAX_LEVELS} levels of groups, got more; open it by its path",
            kind="path",
        )
    try:
        check_key(name)
    except N5Error as err:
        return err
    return None
