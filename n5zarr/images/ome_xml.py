"""Write ``OME/METADATA.ome.xml`` for a collection of OME-Zarr images.

The ``bioformats2raw.layout`` of OME-Zarr has it beside the list ``series``. Bio-Formats and
napari-ome-zarr find the images by it. Source: the schema of OME, 2016-06.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from n5zarr.conventions.model import first_of, mapping
from n5zarr.conventions.units import symbol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from n5zarr.format.lenient_json import JSON

__all__ = ["METADATA_XML", "SeriesImage", "ome_xml"]

METADATA_XML = "OME/METADATA.ome.xml"

_NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
_TYPES = {"bool": "bit", "float32": "float", "float64": "double"} | {
    f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)
}
_UNITS = {"um": "µm"} | {unit: unit for unit in ("pm", "nm", "mm", "cm", "m")}


class SeriesImage(NamedTuple):
    """An image of a collection.

    Parameters
    ----------
    path : str
        Of its group.
    ome : mapping
        The attribute ``ome`` of its group.
    shape : tuple of int
        Extent of its finest level, in the order of the axes of ``ome``.
    dtype : numpy.dtype
        Data type.
    """

    path: str
    ome: Mapping[str, JSON]
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


def ome_xml(images: Sequence[SeriesImage]) -> bytes | None:
    """Describe images, in the order of the series; None if OME cannot express one of them."""
    if not all(map(_is_known, images)):
        return None
    root = ElementTree.Element("OME", xmlns=_NAMESPACE, Creator="n5zarr")
    for image in images:
        _add(root, image)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _is_known(image: SeriesImage) -> bool:
    """Whether OME has this data type, this size and this path as an ID."""
    has_spaces = image.path.split() != [image.path]
    return image.dtype.name in _TYPES and min(image.shape) > 0 and not has_spaces


def _add(root: ElementTree.Element, image: SeriesImage) -> None:
    found = first_of(image.ome.get("multiscales"))
    element = ElementTree.SubElement(
        root, "Image", ID=f"Image:{image.path}", Name=str(found.get("name", ""))
    )
    axes = found.get("axes")
    kinds = _letters([mapping(axis) for axis in (axes if isinstance(axes, list) else ())])
    sizes = dict.fromkeys("XYZCT", 1) | dict(zip(kinds, image.shape, strict=True))
    attributes = {f"Size{letter}": str(size) for letter, size in sizes.items()}
    finest = first_of(found.get("datasets"))
    scale = first_of(finest.get("coordinateTransformations")).get("scale")
    if isinstance(axes, list) and isinstance(scale, list):
        for letter, axis, size in zip(kinds, axes, scale, strict=True):
            unit = _UNITS.get(symbol(str(mapping(axis).get("unit")))[0])
            if letter in "XYZ" and unit and isinstance(size, int | float) and size > 0:
                attributes[f"PhysicalSize{letter}"] = repr(size)
                attributes[f"PhysicalSize{letter}Unit"] = unit
    attributes |= {
        "ID": f"Pixels:{image.path}",
        "DimensionOrder": "XYZCT",
        "Type": _TYPES[image.dtype.name],
    }
    pixels = ElementTree.SubElement(element, "Pixels", attributes)
    channels = mapping(image.ome.get("omero")).get("channels")
    for i in range(sizes["C"]):
        channel = mapping(channels[i] if isinstance(channels, list) else None)
        named = {"Name": str(channel["label"])} if "label" in channel else {}
        own = {"ID": f"Channel:{image.path}:{i}", "SamplesPerPixel": "1"}
        ElementTree.SubElement(pixels, "Channel", own | named)
    ElementTree.SubElement(pixels, "MetadataOnly")


def _letters(axes: Sequence[Mapping[str, JSON]]) -> list[str]:
    """Return the letters of OME for axes of OME-Zarr; those of space end in Y, X.

    Examples
    --------
    >>> _letters([{"type": "time"}, {}, {"type": "space"}, {"type": "space"}])
    ['T', 'C', 'Y', 'X']
    """
    space = iter("ZYX"[-[axis.get("type") for axis in axes].count("space") :])
    return [
        next(space) if axis.get("type") == "space" else "T" if axis.get("type") == "time" else "C"
        for axis in axes
    ]
