"""BigStitcher's interest points in Zarr: the document and the index of ``interestpoints.zarr``.

multiview-reconstruction ``InterestPointsZarrStore``, version 1.0.0. The points of all lists are in
one array, their pairs in another. Attributes of the root name them, the generation of the index,
the labels, and the columns after x, y, z. Tables of the index, C order, ``int64``:

- ``index/gG/entries`` (E x 5): time point, setup, number of the label, first point, how many;
- ``index/gG/views`` (V x 5): the same, with the first row in ``pairs``, and how many;
- ``index/gG/pairs`` (P x 6): time point, setup, label of the other list, first correspondence, how
  many, and whether the list is the second one of them.

Arrays: ``loc`` (N x 3 and more, ``float64``) and ``id`` (N x 1, ``int32``) of points; ``data``
(M x 3, ``int32``) of correspondences: first id, second id, consensus set. A pair of lists is stored
once. In a column after x, y, z, -1 is no value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.errors import N5FormatError, N5UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "NO_VALUE",
    "PACKED_CONTAINER",
    "STAGING",
    "ListKey",
    "OtherList",
    "PackedRoot",
    "Span",
    "parse_entries",
    "parse_root",
    "parse_views",
]

PACKED_CONTAINER = "interestpoints.zarr"
STAGING = "staging"
"""Directory of files that BigStitcher has not moved into the arrays yet."""
NO_VALUE = -1.0

_NAME = re.compile("[A-Za-z0-9_.-]+")
_DATA = re.compile("[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")

type ListKey = tuple[int, int, str]
"""Time point, setup and label of a list."""


class Span(NamedTuple):
    """Rows of an array: the first, and the one after the last."""

    first: int
    end: int


class OtherList(NamedTuple):
    """The correspondences of a list with another one."""

    key: ListKey
    rows: Span
    is_swapped: bool


class PackedRoot(NamedTuple):
    """The attributes of the root.

    Parameters
    ----------
    tables, points, correspondences : str
        Paths of the groups of the index, of the points and of the correspondences.
    labels : sequence of str
        The labels, by number.
    columns : sequence of str
        Names of the columns of ``loc`` after x, y, z.
    """

    tables: str
    points: str
    correspondences: str
    labels: Sequence[str]
    columns: Sequence[str]


def parse_root(attributes: Mapping[str, JSON]) -> PackedRoot:
    """Parse the attributes of the root.

    Raises
    ------
    N5FormatError
        A member is missing, or has another form (``kind="member"``).
    N5UnsupportedError
        The version is not 1 (``kind="version"``).

    Examples
    --------
    >>> members = {"interestpoints": "1.0.0", "generation": 2, "labels": ["beads"]}
    >>> data = {"pointsData": "points/g1", "corrData": "correspondences/g2"}
    >>> parse_root(members | data).tables
    'index/g2'
    """
    version = attributes.get("interestpoints")
    if not isinstance(version, str) or version.partition(".")[0] != "1":
        message = f"interestpoints: expected BigStitcher's version 1, got {version!r}"
        raise N5UnsupportedError(message, kind="version")
    generation = attributes.get("generation")
    if not isinstance(generation, int) or generation < 0:
        raise _misfit("generation: expected a whole number", generation)
    paths = [attributes.get(name) for name in ("pointsData", "corrData")]
    for path in paths:
        if not isinstance(path, str) or not _DATA.fullmatch(path):
            raise _misfit("pointsData, corrData: expected paths of groups", path)
    return PackedRoot(
        f"index/g{generation}",
        str(paths[0]),
        str(paths[1]),
        _texts(attributes, "labels", re.compile("(?s).+")),
        _texts(attributes, "pointAttributes", _NAME) if "pointAttributes" in attributes else (),
    )


def _texts(attributes: Mapping[str, JSON], name: str, pattern: re.Pattern[str]) -> tuple[str, ...]:
    given = attributes.get(name)
    texts = [text for text in given if isinstance(text, str)] if isinstance(given, list) else []
    is_right = isinstance(given, list) and len(texts) == len(given) == len({*texts})
    if not is_right or not all(map(pattern.fullmatch, texts)):
        raise _misfit(f"{name}: expected a list of different names", given)
    return tuple(texts)


def parse_entries(
    rows: Sequence[Sequence[int]], labels: Sequence[str], n_points: int
) -> dict[ListKey, Span]:
    """Parse ``entries``: the points of each list.

    Parameters
    ----------
    rows : sequence of sequence of int
        The table.
    labels : sequence of str
        The labels, by number.
    n_points : int
        Number of all points.

    Raises
    ------
    N5FormatError
        A row names no label, or points that do not exist (``kind="member"``).
    """
    return {_key(row, labels): _span(row[3], row[4], n_points) for row in rows}


def parse_views(
    rows: Sequence[Sequence[int]],
    pairs: Sequence[Sequence[int]],
    labels: Sequence[str],
    n_correspondences: int,
) -> dict[ListKey, list[OtherList]]:
    """Parse ``views`` and ``pairs``: the correspondences of each list.

    Parameters
    ----------
    rows, pairs : sequence of sequence of int
        The tables.
    labels : sequence of str
        The labels, by number.
    n_correspondences : int
        Number of all correspondences.

    Raises
    ------
    N5FormatError
        A row names no label, or rows that do not exist (``kind="member"``).
    """
    found = {}
    for row in rows:
        first, end = _span(row[3], row[4], len(pairs))
        found[_key(row, labels)] = [
            OtherList(_key(p, labels), _span(p[3], p[4], n_correspondences), bool(p[5]))
            for p in pairs[first:end]
        ]
    return found


def _key(row: Sequence[int], labels: Sequence[str]) -> ListKey:
    if not 0 <= row[2] < len(labels):
        raise _misfit(f"the index: expected the number of one of {len(labels)} labels", row)
    return row[0], row[1], labels[row[2]]


def _span(first: int, count: int, n_rows: int) -> Span:
    if first < 0 or count < 0 or first + count > n_rows:
        raise _misfit(f"the index: expected some of {n_rows} rows", f"{count} from {first}")
    return Span(first, first + count)


def _misfit(expected: str, got: object) -> N5FormatError:
    return N5FormatError(f"{expected}, got {got!r}", kind="member")
