"""Order the axes of images as OME-Zarr wants them, and make its metadata of images and groups.

Source: https://ngff.openmicroscopy.org/0.5/, "multiscales", "labels" and "bioformats2raw.layout".
Documents only, all in OME-Zarr's C order; index 0 is the centre of the first element, in OME-Zarr
and in the conventions of N5.

Images and groups are described without a version, and get that of the destination last:

- 0.5 is Zarr v3: https://ngff.openmicroscopy.org/0.5/. One attribute, ``ome``, has the metadata and
  the version.
- 0.6 is as 0.5, with coordinate systems: :mod:`n5zarr.images.ome_06`.
- 0.4 is Zarr v2: https://ngff.openmicroscopy.org/0.4/. Each part of the metadata is an attribute,
  and those that describe images have the version. Groups that hold levels name their axes, too.

``OME/METADATA.ome.xml`` is beside the list ``series`` of ``bioformats2raw.layout``. Bio-Formats and
napari-ome-zarr find the images by it. Source: the schema of OME, 2016-06.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import relpath
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from n5zarr.container.options import require
from n5zarr.conventions.axis_names import XARRAY_KEY
from n5zarr.conventions.model import Axis, first_of, items_of, mapping
from n5zarr.conventions.ngff import transforms_of
from n5zarr.conventions.units import in_full, is_count, ratio, symbol
from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.images.image import Channel, Image, ImageAxis, ImageLevel
from n5zarr.images.ome_06 import REGISTRATION, as_06, is_registration
from n5zarr.images.ome_documents import without_ome
from n5zarr.images.ome_rules import check_axes
from n5zarr.images.source import ArraySource
from n5zarr.images.stacked import reordered
from n5zarr.zarr_view.keys import ZarrFormat

type OmeVersion = Literal["0.4", "0.5", "0.6"]

OME_FORMATS: Mapping[OmeVersion, ZarrFormat] = {"0.4": 2, "0.5": 3, "0.6": 3}
"""The format of Zarr that each version prescribes."""

DEFAULT_VERSION: OmeVersion = "0.5"

_VERSIONED_IN_0_4 = {"omero", "image-label", "plate", "well"}  # beside each image of multiscales


def ome_attributes(version: OmeVersion, metadata: Mapping[str, JSON]) -> dict[str, JSON]:
    """Make the attributes of a group from its metadata of OME-Zarr.

    Parameters
    ----------
    version : {"0.4", "0.5", "0.6"}
        The version to write.
    metadata : mapping
        ``multiscales``, ``omero``, ``labels`` and so on, without a version.

    Examples
    --------
    >>> ome_attributes("0.5", {"labels": ["cells"]}), ome_attributes("0.4", {"labels": ["cells"]})
    ({'ome': {'version': '0.5', 'labels': ['cells']}}, {'labels': ['cells']})
    >>> ome_attributes("0.4", {"multiscales": [{"axes": [{"name": "x"}]}], "image-label": {}})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'multiscales': [{'version': '0.4', 'axes': [{'name': 'x'}]}],
     'image-label': {'version': '0.4'},
     '_ARRAY_DIMENSIONS': ['x']}
    """
    attributes = dict(metadata)
    for key in metadata.keys() & _VERSIONED_IN_0_4:
        attributes[key] = _stated(metadata[key], version if version == "0.4" else None)
    images = metadata.get("multiscales")
    if version == "0.6" and isinstance(images, list):
        attributes["multiscales"] = [as_06(mapping(image)) for image in images]
    if version != "0.4":
        return {"ome": {"version": version, **attributes}}
    if isinstance(images, list):
        attributes["multiscales"] = [_stated(image, version) for image in images]
        axes = items_of(first_of(images).get("axes"))
        attributes[XARRAY_KEY] = [mapping(axis).get("name") for axis in axes]
    return attributes


def _stated(part: JSON, version: OmeVersion | None) -> dict[str, JSON]:
    """Return a part of the metadata with the version in it, or without any."""
    others = {key: value for key, value in mapping(part).items() if key != "version"}
    return others if version is None else {"version": version, **others}


_ORDER = {"time": 0, "space": 2}  # channel, or any other axis, between them


class Aligned(NamedTuple):
    """The axes of an image in the order of OME-Zarr, and the place of each level along them.

    Parameters
    ----------
    axes : tuple of ImageAxis
        The axes; their names are ``dimension_names`` of the arrays, too.
    order : tuple of int
        Number of the source's axis, in C order, for each axis.
    places : mapping of str to tuple
        Scale and translation of each level, by name.
    """

    axes: tuple[ImageAxis, ...]
    order: tuple[int, ...]
    places: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]

    def image(
        self,
        path: str,
        name: str,
        arrays: Mapping[str, ArraySource],
        attributes: Mapping[str, JSON],
    ) -> Image:
        """Make an image without display settings, which is not of labels.

        Parameters
        ----------
        path, name : str
            Where its group is in OME-Zarr, and what it is called.
        arrays : mapping of str to ArraySource
            The array of each level by name, with the axes of the source; at least one.
        attributes : mapping
            Attributes of its group, other than those of OME-Zarr.
        """
        names = tuple(axis.name for axis in self.axes)
        levels = tuple(
            ImageLevel(
                path=join(path, level),
                array=replace(
                    reordered(arrays[level], self.order, _mirrored(scale)), dimension_names=names
                ),
                scale=tuple(map(abs, scale)),
                translation=tuple(
                    t + min(s, 0) * (arrays[level].shape[axis] - 1)
                    for s, t, axis in zip(scale, translation, self.order, strict=True)
                ),
            )
            for level, (scale, translation) in self.places.items()
            if level in arrays
        )
        absent = {join(path, level): p for level, p in self.places.items() if level not in arrays}
        each = zip(self.axes, levels[0].shape, strict=True)
        n_channels = next((n for axis, n in each if axis.type == "channel"), 1)
        return Image(
            path=path,
            name=name,
            axes=self.axes,
            levels=levels,
            channels=(Channel(),) * n_channels,
            attributes=without_ome(attributes),
            absent=absent,
            mirrored=tuple(names[i] for i in _mirrored(next(iter(self.places.values()))[0])),
        )


def align_axes(levels: Mapping[str, Sequence[Axis]]) -> Aligned:
    """Order the axes of an image as OME-Zarr wants them: time, channel, space.

    The axes of space stay in the order of the source. Units are in full. Counts of elements, such
    as ``"pixel"``, are no units.

    Parameters
    ----------
    levels : mapping of str to sequence of Axis
        Axes by name of the level, C order, the finest level first.

    Raises
    ------
    N5UnrepresentableError
        OME-Zarr has no such images: fewer than two axes of space or more than three, more than one
        of time or of another type, or levels that differ in them (``kind="option"``).

    Examples
    --------
    >>> from n5zarr.conventions.model import Axis
    >>> y, x = Axis(name="y", type="space", unit="um"), Axis(name="x", type="space", scale=0.5)
    >>> found = align_axes({"s0": [y, x]})
    >>> [axis.unit for axis in found.axes], found.places
    (['micrometer', None], {'s0': ((1.0, 0.5), (0.0, 0.0))})
    """
    first = tuple(next(iter(levels.values())))
    kinds = [_type_of(axis) for axis in first]
    order = tuple(sorted(range(len(first)), key=lambda i: _ORDER.get(kinds[i], 1)))
    problem = next(check_axes([{"name": first[i].name, "type": kinds[i]} for i in order]), None)
    require(problem is None, f"OME-Zarr: {problem}; n5zarr.set_geometry names axes")
    units = [
        None if kind == "channel" else _unit_of(a) for a, kind in zip(first, kinds, strict=True)
    ]
    places = {}
    for path, axes in levels.items():
        placed = _in_units_of(path, axes, first)
        require(
            all(a.scale > 0 or k in _ORDER for a, k in zip(placed, kinds, strict=True)),
            f"{path}: expected scales below 0 along axes of space and time alone, got {kinds} with "
            f"{[axis.scale for axis in placed]}",
        )
        scale = tuple(float(placed[i].scale) for i in order)
        places[path] = scale, tuple(float(placed[i].translation) for i in order)
    return Aligned(
        tuple(ImageAxis(name=first[i].name, type=kinds[i], unit=units[i]) for i in order),
        order,
        places,
    )


def _type_of(axis: Axis) -> str:
    """Return the type of an axis: as given, or from its unit."""
    if axis.type in ("space", "time", "channel"):
        return axis.type
    if axis.labels is not None:
        return "channel"
    of_unit = {"m": "space", "s": "time"}
    return next((kind for base, kind in of_unit.items() if ratio(axis.unit, base)), "")


def _mirrored(scale: Sequence[float]) -> list[int]:
    """Return the axes along which positions descend, where the elements are reversed."""
    return [i for i, size in enumerate(scale) if size < 0]


def _unit_of(axis: Axis) -> str | None:
    return None if not axis.unit or is_count(axis.unit) else in_full(axis.unit)


def _in_units_of(path: str, axes: Sequence[Axis], first: Sequence[Axis]) -> list[Axis]:
    """Return the axes of a level in the units of the finest level: OME-Zarr has one for all."""
    require(
        [axis.name for axis in axes] == [axis.name for axis in first],
        f"{path}: expected the axes of the finest level, {[a.name for a in first]}, got "
        f"{[a.name for a in axes]}",
    )
    converted = []
    for axis, finest in zip(axes, first, strict=True):
        by = ratio(_unit_of(axis), _unit_of(finest))
        if by is None:
            raise option_error(
                f"{path}: axis {axis.name!r}: expected the unit of the finest level, "
                f"{finest.unit!r}, got {axis.unit!r}; n5zarr.set_geometry writes both"
            )
        scaled = (axis.scale, axis.translation)
        scale, translation = scaled if by == 1 else (v * by for v in scaled)
        converted.append(replace(axis, scale=scale, translation=translation))
    return converted


def image_attributes(image: Image, version: OmeVersion = DEFAULT_VERSION) -> dict[str, JSON]:
    """Make the attributes of the group of an image in a version of OME-Zarr."""
    axes: list[JSON] = []
    for axis in image.axes:
        described = {"name": axis.name, "type": axis.type, "unit": axis.unit}
        axes.append({key: value for key, value in described.items() if value})
    datasets: list[JSON] = []
    for path, (scale, translation) in image.places.items():
        below = path.removeprefix(image.path).strip("/")
        steps = transforms_of(zip(scale, translation, strict=True))
        datasets.append({"path": below, "coordinateTransformations": steps})
    others = dict(image.attributes)
    multiscale: dict[str, JSON] = {"name": image.name, "axes": axes}
    names = [axis.name for axis in image.axes]
    if version == "0.6" and is_registration(others.get(REGISTRATION), names):
        multiscale[REGISTRATION] = others.pop(REGISTRATION)  # which it expresses
    multiscale["datasets"] = datasets
    ome: dict[str, JSON] = {"multiscales": [multiscale]}
    ome |= {} if image.omero is None else {"omero": dict(image.omero)}
    ome |= {"image-label": _label_source(image.path, image.image_of)} if image.is_labels else {}
    return {**others, **ome_attributes(version, ome)}


def _label_source(label: str, image: str | None) -> dict[str, JSON]:
    """Make ``image-label`` of a label image, which names the image of the labels.

    Examples
    --------
    >>> _label_source("em/labels/nuclei", "em"), _label_source("seg", None)
    ({'source': {'image': '../..'}}, {})
    """
    return {} if image is None else {"source": {"image": relpath(image or ".", label or ".")}}


def series_metadata(images: Sequence[str]) -> dict[str, dict[str, JSON]]:
    """Make the metadata of the root and of the group ``OME`` of a container of several images.

    Parameters
    ----------
    images : sequence of str
        Paths of the images, labels not among them.

    Returns
    -------
    dict
        Metadata by path of the group.
    """
    return {"": {"bioformats2raw.layout": 3}, "OME": {"series": [*images]}}


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
    """Whether OME can express the data type, the size and the ID of an image."""
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
    channels = items_of(mapping(image.omero).get("channels"))
    for i in range(sizes["C"]):
        channel = mapping(channels[i] if channels else None)
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
