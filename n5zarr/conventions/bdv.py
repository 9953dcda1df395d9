"""BigDataViewer and BigStitcher: ``setupN/timepointM/sK``; voxel size and unit from the XML.

``BdvN5Format``, ``MipmapTransforms.getMipmapTransformDefault``; N5 order, three dimensions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from n5zarr.conventions.model import (
    Geometry,
    MisfitError,
    Node,
    axes_of,
    factors,
    numbers_at,
    shifted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KEYS", "Description", "Setup", "parse_xml", "read", "setup_of"]

KEYS = ("downsamplingFactors",)

_SETUP = re.compile(r"setup([0-9]{1,9})")
_TIMEPOINT = re.compile(r"timepoint[0-9]{1,9}")


def setup_of(path: tuple[str, ...]) -> int | None:
    """Give the number of the setup that a level belongs to; None for any other path.

    Examples
    --------
    >>> setup_of(("bdv", "setup3", "timepoint0", "s1")), setup_of(("em", "s1"))
    (3, None)
    """
    if len(path) < 3 or not _TIMEPOINT.fullmatch(path[-2]):
        return None
    found = _SETUP.fullmatch(path[-3])
    return None if found is None else int(found.group(1))


def read(node: Node) -> Geometry | None:
    """Read the place of a level in its setup; None for any other dataset."""
    if setup_of(node.path) is None or node.ndim != 3:
        return None
    timepoint = node.ancestors[0] if node.ancestors else {}
    if node.voxel_size is not None and len(node.voxel_size[0]) != 3:
        message = f"voxelSize in the XML: expected 3 numbers, got {list(node.voxel_size[0])}"
        raise MisfitError(message)
    voxel, unit = node.voxel_size or (
        numbers_at(timepoint, "resolution", 3, "group of the levels: "),
        None,
    )
    voxel = voxel or (1.0, 1.0, 1.0)
    by = factors(node) or (1.0, 1.0, 1.0)
    axes = axes_of(
        3,
        scale=[v * f for v, f in zip(voxel, by, strict=True)],
        translation=shifted(voxel, by),
        units=unit,
    )
    return Geometry(convention="bdv", axes=axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A view setup: one channel, angle, tile and illumination of an acquisition.

    Parameters
    ----------
    name : str
        As the XML has it.
    voxel_size : tuple of float or None
        In the order x, y, z; whatever numbers are written.
    unit : str
        Of the voxel size.
    attributes : mapping of str to int
        Numbers of channel, angle, tile and illumination.
    """

    name: str
    voxel_size: tuple[float, ...] | None
    unit: str
    attributes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """BigDataViewer's XML: where it says that the N5 is, relative to the XML, and its setups."""

    location: str
    setups: Mapping[int, Setup]


def parse_xml(xml: bytes) -> Description | None:
    """Read BigDataViewer's XML; None for any other."""
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        return None  # no such document has them, and they are how an XML can be a bomb
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 - without declarations, see above
    except (ElementTree.ParseError, LookupError, ValueError):  # or an unknown encoding
        return None
    location = root.findtext(".//ImageLoader/n5")
    if location is None:
        return None
    setups = {}
    for element in root.iterfind(".//ViewSetup"):
        number = _whole(element.findtext("id"))
        if number is not None:
            setups[number] = _setup(element)
    return Description(location=location.strip(), setups=setups)


def _setup(element: ElementTree.Element) -> Setup:
    text = element.findtext("voxelSize/size")
    try:
        size = None if text is None else tuple(map(float, text.split()))
    except ValueError:
        size = ()
    listed = {child.tag: _whole(child.text) for child in element.iterfind("attributes/*")}
    return Setup(
        name=element.findtext("name") or "",
        voxel_size=size,
        unit=element.findtext("voxelSize/unit") or "pixel",
        attributes={key: value for key, value in listed.items() if value is not None},
    )


def _whole(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
