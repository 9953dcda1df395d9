"""BigStitcher's interest points: paths, attributes, and the entries of their lists in the XML.

``InterestPointsN5`` and ``XmlIoViewInterestPoints`` of multiview-reconstruction. Each list of a
view is a group ``tpId_{timepoint}_viewSetupId_{setup}/{label}`` of ``interestpoints.n5``, with:

- ``interestpoints/id`` (``uint64``, 1 x N) and ``interestpoints/loc`` (``float64``, D x N, elements
  of full resolution in the order x, y, z); both of dimensions [0] for an empty list;
- ``correspondences/data`` (``uint64``, 4 x N): id, id in the other list, number of the other list
  in ``idMap`` (``{"timepoint,setup,label": number}``), and consensus set. Version 1 has no fourth
  row. There is no data if ``idMap`` is empty.

BigStitcher reads only lists that the XML names.

``InterestPointsZarrStore``, version 1.0.0, packs all lists of a project in ``interestpoints.zarr``:
the points in one array, their pairs in another. Attributes of the root name them, the generation of
the index, the labels, and the columns after x, y, z. Tables of the index, C order, ``int64``:

- ``index/gG/entries`` (E x 5): time point, setup, number of the label, first point, how many;
- ``index/gG/views`` (V x 5): the same, with the first row in ``pairs``, and how many;
- ``index/gG/pairs`` (P x 6): time point, setup, label of the other list, first correspondence, how
  many, and whether the list is the second one of them.

Arrays: ``loc`` (N x 3 and more, ``float64``) and ``id`` (N x 1, ``int32``) of points; ``data``
(M x 3, ``int32``) of correspondences: first id, second id, consensus set. A pair of lists is stored
once. In a column after x, y, z, -1 is no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from n5zarr.bigdataviewer.loader import base_path_in
from n5zarr.bigdataviewer.xml_text import parsed_xml, with_children
from n5zarr.errors import N5FormatError, N5UnsupportedError, option_error
from n5zarr.format.lenient_json import JSON

CONTAINER = "interestpoints.n5"
POINTS: dict[str, JSON] = {"pointcloud": "1.0.0", "type": "list", "list version": "1.0.0"}
CORRESPONDENCES = "2.0.0"

_PATH = re.compile(r"tpId_([0-9]{1,10})_viewSetupId_([0-9]{1,10})/(.+)")
_MAP_KEY = re.compile("([0-9]{1,10}),([0-9]{1,10}),(.*)", re.DOTALL)  # a label may have commas
_TAG = "ViewInterestPoints"
_FILE = "ViewInterestPointsFile"


class PointList(NamedTuple):
    """A list of interest points of a view.

    Parameters
    ----------
    timepoint, setup : int
        The view.
    label : str
        Name of the list.
    parameters : str
        Parameters of the detection, as BigStitcher writes them.
    path : str
        Path of its group.
    """

    timepoint: int
    setup: int
    label: str
    parameters: str
    path: str


def path_of(timepoint: int, setup: int, label: str) -> str:
    """Return the path of the group of a list.

    Examples
    --------
    >>> path_of(0, 3, "beads")
    'tpId_0_viewSetupId_3/beads'
    """
    return f"tpId_{timepoint}_viewSetupId_{setup}/{label}"


def list_of_path(path: str) -> PointList | None:
    """Parse the path of the group of a list; None for other paths."""
    match = _PATH.fullmatch(path)
    return match and PointList(int(match[1]), int(match[2]), match[3], "", path)


def parse_id_map(attribute: object) -> dict[int, tuple[int, int, str]]:
    """Parse ``idMap``: the time point, setup and label of each number.

    Raises
    ------
    N5FormatError
        The attribute has another form (``kind="member"``).
    """
    if attribute is None:
        return {}
    if not isinstance(attribute, dict):
        raise _misfit("idMap: expected an object", attribute)
    found = {}
    for key, number in attribute.items():
        match = _MAP_KEY.fullmatch(key)
        if match is None or not isinstance(number, int | float) or not math.isfinite(number):
            raise N5FormatError(
                f"idMap: expected 'timepoint,setup,label': number, got {key!r}: {number!r}",
                kind="member",
            )
        found[round(number)] = int(match[1]), int(match[2]), match[3]
    return found


def base_path(xml: bytes) -> str:
    """Return the directory that holds ``interestpoints.n5`` and ``.zarr``, relative to the XML."""
    return base_path_in(_root(xml))


def labels_in(xml: bytes) -> dict[str, int]:
    """Count the lists of each label that the XML names, of any kind."""
    labels = [element.get("label", "") for element in _root(xml).iterfind(f".//{_FILE}")]
    return {label: labels.count(label) for label in sorted(set(labels))}


def listed_in(xml: bytes) -> list[PointList]:
    """Parse the lists that the XML names.

    Raises
    ------
    N5UnrepresentableError
        The XML is not that of a BigStitcher project (``kind="option"``).
    N5UnsupportedError
        The points are in text files (``kind="option"``).
    """
    found = []
    for element in _root(xml).iterfind(f".//{_FILE}"):
        path = (element.text or "").strip().replace("\\", "/")
        if path.lower().startswith("interestpoints/"):
            raise N5UnsupportedError(
                f"{path}: expected interest points in N5, got text files; convert with BigStitcher",
                kind="option",
            )
        try:
            view = int(element.get("timepoint", "")), int(element.get("setup", ""))
        except ValueError:
            raise option_error(
                f"{path}: expected integers as timepoint and setup in the XML"
            ) from None
        label = element.get("label", "")
        path = path or path_of(*view, label)
        found.append(PointList(*view, label, element.get("params") or "", path))
    return found


def _root(xml: bytes) -> ElementTree.Element:
    root = parsed_xml(xml)
    if isinstance(root, str) or root.tag != "SpimData":
        raise option_error(
            "expected the XML of a BigStitcher project, with the root element SpimData"
        )
    return root


def with_lists(xml: bytes, lists: Sequence[PointList]) -> bytes:
    """Return the XML with an entry for each list that it lacks; keep all other text.

    Raises
    ------
    N5UnrepresentableError
        The XML has no element to which an entry can be added (``kind="option"``).
    """
    known = {entry[:3] for entry in listed_in(xml)}
    new = sorted(entry for entry in lists if entry[:3] not in known)
    return with_children(xml, f"SpimData/{_TAG}", list(map(_entry, new))) if new else xml


def _entry(each: PointList) -> str:
    label, parameters = quoteattr(each.label), quoteattr(each.parameters)
    return (
        f'<{_FILE} timepoint="{each.timepoint}" setup="{each.setup}" label={label} '
        f"params={parameters}>{escape(each.path)}</{_FILE}>"
    )


PACKED_CONTAINER = "interestpoints.zarr"
STAGING = "staging"
"""Directory of files that BigStitcher has not moved into the arrays yet."""
NO_VALUE = -1.0

_NAME = re.compile("[A-Za-z0-9_.-]+")
_DATA = re.compile("[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")

type ListKey = tuple[int, int, str]
"""Time point, setup and label of a list."""


class OtherList(NamedTuple):
    """The correspondences of a list with another one."""

    key: ListKey
    rows: range
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
        raise N5UnsupportedError(
            f"interestpoints: expected BigStitcher's version 1, got {version!r}", kind="version"
        )
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
) -> dict[ListKey, range]:
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
    return {_key(row, labels): _rows(row[3], row[4], n_points) for row in rows}


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
    return {
        _key(row, labels): [
            OtherList(_key(p, labels), _rows(p[3], p[4], n_correspondences), bool(p[5]))
            for p in (pairs[number] for number in _rows(row[3], row[4], len(pairs)))
        ]
        for row in rows
    }


def _key(row: Sequence[int], labels: Sequence[str]) -> ListKey:
    if not 0 <= row[2] < len(labels):
        raise _misfit(f"the index: expected the number of one of {len(labels)} labels", row)
    return row[0], row[1], labels[row[2]]


def _rows(first: int, count: int, n_rows: int) -> range:
    if first < 0 or count < 0 or first + count > n_rows:
        raise _misfit(f"the index: expected some of {n_rows} rows", f"{count} from {first}")
    return range(first, first + count)


def _misfit(expected: str, got: object) -> N5FormatError:
    return N5FormatError(f"{expected}, got {got!r}", kind="member")
