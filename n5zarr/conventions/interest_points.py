"""BigStitcher's interest points: paths, attributes, and the entries of their lists in the XML.

``InterestPointsN5`` and ``XmlIoViewInterestPoints`` of multiview-reconstruction. Each list of a
view is a group ``tpId_{timepoint}_viewSetupId_{setup}/{label}`` of ``interestpoints.n5``, with:

- ``interestpoints/id`` (``uint64``, 1 x N) and ``interestpoints/loc`` (``float64``, D x N, elements
  of full resolution in the order x, y, z); both of dimensions [0] for an empty list;
- ``correspondences/data`` (``uint64``, 4 x N): id, id in the other list, number of the other list
  in ``idMap`` (``{"timepoint,setup,label": number}``), and consensus set. Version 1 has no fourth
  row. There is no data if ``idMap`` is empty.

BigStitcher reads only lists that the XML names.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from n5zarr.conventions.bdv_loader import base_path_in
from n5zarr.conventions.xml_text import parsed_xml, with_children
from n5zarr.errors import N5FormatError, N5UnsupportedError, option_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree import ElementTree

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "CONTAINER",
    "CORRESPONDENCES",
    "POINTS",
    "PointList",
    "base_path",
    "labels_in",
    "list_of_path",
    "listed_in",
    "parse_id_map",
    "path_of",
    "with_lists",
]

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
    if match is None:
        return None
    return PointList(int(match.group(1)), int(match.group(2)), match.group(3), "", path)


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
        raise N5FormatError(f"idMap: expected an object, got {attribute!r}", kind="member")
    found = {}
    for key, number in attribute.items():
        match = _MAP_KEY.fullmatch(key)
        if match is None or not isinstance(number, int | float) or not math.isfinite(number):
            message = f"idMap: expected 'timepoint,setup,label': number, got {key!r}: {number!r}"
            raise N5FormatError(message, kind="member")
        found[round(number)] = int(match.group(1)), int(match.group(2)), match.group(3)
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
        It is not the XML of a BigStitcher project (``kind="option"``).
    N5UnsupportedError
        The points are in text files (``kind="option"``).
    """
    found = []
    for element in _root(xml).iterfind(f".//{_FILE}"):
        path = (element.text or "").strip().replace("\\", "/")
        if path.lower().startswith("interestpoints/"):
            message = (
                f"{path}: expected interest points in N5, got text files; convert with BigStitcher"
            )
            raise N5UnsupportedError(message, kind="option")
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
    before = listed_in(xml)
    known = {(entry.timepoint, entry.setup, entry.label) for entry in before}
    new = sorted(entry for entry in lists if entry[:3] not in known)
    if not new:
        return xml
    return with_children(xml, f"SpimData/{_TAG}", list(map(_entry, new)))


def _entry(each: PointList) -> str:
    label, parameters = quoteattr(each.label), quoteattr(each.parameters)
    return (
        f'<{_FILE} timepoint="{each.timepoint}" setup="{each.setup}" label={label} '
        f"params={parameters}>{escape(each.path)}</{_FILE}>"
    )
