"""BigDataViewer and BigStitcher: ``setupN/timepointM/sK``; voxel size and unit from the XML.

``BdvN5Format``, ``MipmapTransforms.getMipmapTransformDefault``; N5 order, three dimensions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from n5zarr.conventions.model import Geometry, Node, axes_of, factors, numbers, shifted

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read", "setup_of", "voxel_sizes"]

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
    voxel, unit = node.voxel_size or (numbers(timepoint.get("resolution"), 3), None)
    voxel = voxel or (1.0, 1.0, 1.0)
    by = factors(node) or (1.0, 1.0, 1.0)
    axes = axes_of(
        3,
        scale=[v * f for v, f in zip(voxel, by, strict=True)],
        translation=shifted(voxel, by),
        units=unit,
    )
    return Geometry(convention="bdv", axes=axes)


def voxel_sizes(xml: bytes) -> tuple[str, Mapping[int, tuple[tuple[float, ...], str]]] | None:
    """Read BigDataViewer's XML.

    Returns
    -------
    location, sizes : str, mapping of int to (tuple of float, str), or None
        Where the XML says that the N5 is, relative to the XML, and voxel size and unit of each
        setup; None for any other XML.
    """
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        return None  # no such document has them, and they are how an XML can be a bomb
    try:
        root = ElementTree.fromstring(xml)  # noqa: S314 - without declarations, see above
    except ElementTree.ParseError:
        return None
    location = root.findtext(".//ImageLoader/n5")
    if location is None:
        return None
    sizes = {}
    for setup in root.iterfind(".//ViewSetup"):
        try:
            size = tuple(map(float, (setup.findtext("voxelSize/size") or "").split()))
            number = int(setup.findtext("id") or "")
        except ValueError:
            continue
        if len(size) == 3:
            sizes[number] = (size, setup.findtext("voxelSize/unit") or "pixel")
    return location, sizes
