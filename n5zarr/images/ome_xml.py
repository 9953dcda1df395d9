"""Write ``OME/METADATA.ome.xml`` for a collection of OME-Zarr images.

The ``bioformats2raw.layout`` of OME-Zarr has it beside the list ``series``. Bio-Formats and
napari-ome-zarr find the images by it. Source: the schema of OME, 2016-06.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from n5zarr.conventions.model import mapping
from n5zarr.conventions.units import symbol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.images.image import Image

__all__ = ["METADATA_XML", "ome_xml"]

METADATA_XML = "OME/METADATA.ome.xml"

_NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
_TYPES = {"bool": "bit", "float32": "float", "float64": "double"} | {
    f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)
}
_UNITS = {"um": "µm"} | {unit: unit for unit in ("pm", "nm", "mm", "cm", "m")}


def ome_xml(images: Mapping[str, Image]) -> bytes | None:
    """Describe images, in the order of the series; None if OME cannot express one of them.

    Parameters
    ----------
    images : mapping of str to Image
        The images by ID: their paths, usually.
    """
    if not all(_is_known(*named) for named in images.items()):
        return None
    root = ElementTree.Element("OME", xmlns=_NAMESPACE, Creator="n5zarr")
    for name, image in images.items():
        _add(root, name, image)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _is_known(name: str, image: Image) -> bool:
    """Whether OME has this data type, this size and this ID."""
    has_spaces = name.split() != [name]
    return image.dtype.name in _TYPES and image.levels[0].n_elements > 0 and not has_spaces


def _add(root: ElementTree.Element, name: str, image: Image) -> None:
    element = ElementTree.SubElement(root, "Image", ID=f"Image:{name}", Name=image.name)
    letters = _letters([axis.type for axis in image.axes])
    finest = image.levels[0]
    sizes = dict.fromkeys("XYZCT", 1) | dict(zip(letters, finest.shape, strict=True))
    attributes = {f"Size{letter}": str(size) for letter, size in sizes.items()}
    for letter, axis, size in zip(letters, image.axes, finest.scale, strict=True):
        unit = _UNITS.get(symbol(axis.unit)[0]) if axis.unit else None
        if letter in "XYZ" and unit and size > 0:
            attributes[f"PhysicalSize{letter}"] = repr(size)
            attributes[f"PhysicalSize{letter}Unit"] = unit
    attributes |= {
        "ID": f"Pixels:{name}",
        "DimensionOrder": "XYZCT",
        "Type": _TYPES[image.dtype.name],
    }
    pixels = ElementTree.SubElement(element, "Pixels", attributes)
    channels = mapping(image.omero).get("channels")
    for i in range(sizes["C"]):
        channel = mapping(channels[i] if isinstance(channels, list) else None)
        named = {"Name": str(channel["label"])} if "label" in channel else {}
        own = {"ID": f"Channel:{name}:{i}", "SamplesPerPixel": "1"}
        ElementTree.SubElement(pixels, "Channel", own | named)
    ElementTree.SubElement(pixels, "MetadataOnly")


def _letters(types: Sequence[str]) -> list[str]:
    """Return the letters of OME for axes of some types; those of space end in Y, X.

    Examples
    --------
    >>> _letters(["time", "", "space", "space"])
    ['T', 'C', 'Y', 'X']
    """
    space = iter("ZYX"[-types.count("space") :])
    return [next(space) if t == "space" else "T" if t == "time" else "C" for t in types]
