"""Read BigDataViewer's XML: setups, time points, registrations, and display settings beside it.

The registration of a view (spimdata ``ViewRegistration``) maps elements of full resolution to world
coordinates; views without one have the voxel size as scale.

``NAME.settings.xml`` (bigdataviewer-core ``SetupAssignments.toXml``) has limits and colours: an
element ``ConverterSetup`` for each setup, with ``id``, ``min``, ``max`` and ``color``, the number
of an ``ARGBType``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

import numpy as np

from n5zarr.bigdataviewer.boxes import SPLIT
from n5zarr.bigdataviewer.loader import Loader, parse_loader
from n5zarr.bigdataviewer.registrations import model_of, read_transforms, view_in
from n5zarr.bigdataviewer.xml_text import numbers_in, parsed_xml, whole_number
from n5zarr.conventions.model import SetupView, range_of

if TYPE_CHECKING:
    import numpy.typing as npt

NEAR = 0.1
"""Relative difference of equal scales: registrations may stretch a sample."""

_MAX_TIMEPOINTS = 100_000  # each is a block of dask; more are a mistake, or an attack
_END = 2**31  # numbers are ints in Java

type _Numbers = Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A view setup: one channel, angle, tile and illumination of an acquisition.

    Parameters
    ----------
    name : str
        Name in the XML.
    voxel_size : tuple of float or None
        In the order x, y, z; the values are not checked.
    unit : str
        Unit of the voxel size.
    attributes : mapping of str to int
        Numbers of channel, angle, tile and illumination.
    names : mapping of str to str
        Their names; the number as text where the XML has no name.
    size : tuple of int
        Dimensions in elements, in the order x, y, z; empty where they cannot be parsed.
    tile_location : tuple of float
        Recorded position of the tile, in the order x, y, z; empty if the XML has none.
    """

    name: str
    voxel_size: tuple[float, ...] | None
    unit: str
    attributes: Mapping[str, int]
    names: Mapping[str, str]
    size: tuple[int, ...]
    tile_location: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """BigDataViewer's XML.

    Parameters
    ----------
    loader : Loader
        Names the N5 container.
    setups : mapping of int to Setup
        Setups by number.
    registrations : mapping of (int, int) to tuple of float
        Rows of the matrices, by setup and time point; empty where they cannot be parsed.
    timepoints : tuple of int or None
        Sorted numbers of the time points; None if they cannot be parsed.
    missing : frozenset of (int, int)
        Setups and time points of the views that were not recorded.
    finest : float, optional
        The smallest extent of a voxel in any setup.
    name : str
        Name of the file, for messages.
    of_images : Description, optional
        The setups that have images, without registrations, if the project is split.
    """

    loader: Loader
    setups: Mapping[int, Setup]
    registrations: Mapping[tuple[int, int], tuple[float, ...]]
    timepoints: tuple[int, ...] | None
    missing: frozenset[tuple[int, int]]
    finest: float = 1.0
    name: str = "the XML"
    of_images: Description | None = None

    def view(self, setup: int, timepoint: int) -> SetupView:
        """Return voxel size, unit and registration of a setup at a time point."""
        registration = self.registrations.get((setup, timepoint))
        known = self.setups.get(setup)
        if known is None or known.voxel_size is None:
            unit = None if known is None or registration is None else known.unit
            return SetupView(voxel_size=None, unit=unit, registration=registration)
        if registration and self._is_in_elements(registration, known.voxel_size):
            registration = tuple(value * self.finest for value in registration)
        return SetupView(voxel_size=known.voxel_size, unit=known.unit, registration=registration)

    def _is_in_elements(self, registration: _Numbers, voxel_size: _Numbers) -> bool:
        """Whether world coordinates are in BigStitcher's unit, the finest voxel size."""
        lengths = np.linalg.norm(np.reshape(registration, (3, 4))[:, :3], axis=0)
        far = _difference(lengths * self.finest, voxel_size)
        return far < NEAR and far < _difference(lengths, voxel_size)


def _difference(lengths: npt.NDArray[np.float64], voxel_size: _Numbers) -> float:
    """Return the largest relative difference of two scales, as a logarithm."""
    if len(voxel_size) != 3 or not (lengths > 0).all() or min(voxel_size) <= 0:
        return math.inf
    return float(np.abs(np.log(lengths / voxel_size)).max())


@lru_cache(maxsize=4)  # called for each dataset of a container
def parse_xml(xml: bytes, *, any_loader: bool = False) -> Description | None:
    """Parse BigDataViewer's XML; None for any other XML.

    Parameters
    ----------
    xml : bytes
        The XML.
    any_loader : bool, optional
        Whether the images may have any format; the loader then names none if n5zarr does not read
        it.
    """
    root = parsed_xml(xml)
    if isinstance(root, str):
        return None
    loader = parse_loader(root)
    if isinstance(loader, str):
        if not any_loader or problem_of(xml, any_loader=True) is not None:
            return None
        loader = Loader("")
    inner = _sequence_of_images(root)
    of_images = None if inner is None else _described(inner, loader)
    return replace(_described(root, loader), of_images=of_images)


def _sequence_of_images(root: ElementTree.Element) -> ElementTree.Element | None:
    """Take the loader out of the root; return the setups in it, which have the images.

    Those of a project that is not split are its own: None.
    """
    sequence, found = root.find("SequenceDescription"), None
    loader = None if sequence is None else sequence.find("ImageLoader")
    if sequence is not None and loader is not None:
        sequence.remove(loader)
    while loader is not None and loader.get("format") in SPLIT:
        found = loader.find("SequenceDescription")
        found = ElementTree.Element("SequenceDescription") if found is None else found
        loader = loader.find("ImageLoader")
    return found


def _described(root: ElementTree.Element, loader: Loader) -> Description:
    """Describe the setups and views below an element."""
    listed = {
        attributes.get("name"): {whole_number(e.findtext("id")): e for e in attributes}
        for attributes in root.iterfind(".//Attributes")
    }
    setups = {}
    for element in root.iterfind(".//ViewSetup"):
        number = whole_number(element.findtext("id"))
        if number is not None:
            setups[number] = _setup(element, listed)
    missing = (view_in(element.attrib) for element in root.iterfind(".//MissingView"))
    timepoints = timepoints_in(root.find(".//Timepoints"))
    sizes = (size for setup in setups.values() for size in setup.voxel_size or ())
    return Description(
        loader=loader.with_views(setups, timepoints or (0,)),
        setups=setups,
        registrations={v: model_of(each) for v, each in read_transforms(root).items()},
        timepoints=timepoints,
        missing=frozenset(filter(None, missing)),
        finest=min(sizes, default=1.0),
    )


@lru_cache(maxsize=4)
def problem_of(xml: bytes, *, any_loader: bool = False) -> str | None:
    """Describe why XML is not BigDataViewer's for images that n5zarr reads; None if it is.

    Parameters
    ----------
    xml, any_loader
        As for :func:`parse_xml`.
    """
    root = parsed_xml(xml)
    if isinstance(root, str):
        return root
    if root.tag != "SpimData":
        return f"the root element {root.tag}, not SpimData without a namespace"
    loader = parse_loader(root)
    is_there = root.find("SequenceDescription/ImageLoader") is not None
    return loader if isinstance(loader, str) and not (any_loader and is_there) else None


type _Listed = Mapping[str | None, Mapping[int | None, ElementTree.Element]]
"""The elements that describe channels, tiles and so on, by name of the attribute and number."""


def _setup(element: ElementTree.Element, listed: _Listed) -> Setup:
    text = element.findtext("voxelSize/size")
    given = {child.tag: whole_number(child.text) for child in element.iterfind("attributes/*")}
    numbers = {key: value for key, value in given.items() if value is not None}
    entries = {key: listed.get(key, {}).get(value) for key, value in numbers.items()}
    named = {
        key: "" if entry is None else (entry.findtext("name") or "").strip()
        for key, entry in entries.items()
    }
    tile = entries.get("tile")
    place = () if tile is None else numbers_in(tile.findtext("location") or "")
    return Setup(
        name=element.findtext("name") or "",
        voxel_size=None if text is None else numbers_in(text),
        unit=element.findtext("voxelSize/unit") or "pixel",
        attributes=numbers,
        # the name of an entity of spimdata is its number, unless it has another
        names={key: named[key] or str(value) for key, value in numbers.items()},
        size=tuple(map(int, filter(math.isfinite, numbers_in(element.findtext("size") or "")))),
        tile_location=place if len(place) == 3 else (),
    )


def timepoints_in(element: ElementTree.Element | None) -> tuple[int, ...] | None:
    """Parse the time points as spimdata's ``XmlIoTimePoints``: a list, a range or a pattern."""
    if element is None:
        return None
    try:
        match element.get("type"):
            case "list":
                found = [range(int(t), int(t) + 1) for t in _texts(element, "Timepoint/id")]
            case "range":
                (first,), (last,) = _texts(element, "first"), _texts(element, "last")
                found = [range(int(first), int(last) + 1)]
            case "pattern":
                found = _ranges_of_pattern(element.findtext("integerpattern") or "")
            case _:
                return None
        if sum(map(len, found)) > _MAX_TIMEPOINTS:
            return None
    except (ValueError, OverflowError):  # OverflowError: a range too long for Python
        return None
    numbers = sorted({t for each in found for t in each})
    return tuple(numbers) if all(abs(t) < _END for t in numbers[:1] + numbers[-1:]) else None


def _texts(element: ElementTree.Element, path: str) -> list[str]:
    return [each.text or "" for each in element.iterfind(path)]


def _ranges_of_pattern(pattern: str) -> list[range]:
    """Parse numbers and ranges, ``0,4-8,20-50:10``, as spimdata's ``IntegerPattern``."""
    found = []
    pattern = pattern.replace(" ", "").replace("_", "?")  # Python's numbers may contain _
    for entry in (pattern.strip() or "0").rstrip(",").split(","):
        first, dash, rest = entry.partition("-")
        last, _, step = rest.partition(":")
        start, end, by = int(first), int(last if dash else first), int(step or 1)
        if by < 1:
            raise ValueError(f"expected a step of at least 1, got {entry}")
        found.append(range(start, end + 1, by) if end > start else range(start, end - 1, -by))
    return found


class SetupSettings(NamedTuple):
    """The display settings of a setup.

    Parameters
    ----------
    limits : tuple of float
        Values of the darkest and the brightest shade.
    color : str
        Six hexadecimal digits, red first.
    """

    limits: tuple[float, float]
    color: str


def parse_settings(xml: bytes) -> Mapping[int, SetupSettings]:
    """Parse the settings of BigDataViewer; skip invalid entries.

    Examples
    --------
    >>> parse_settings(b'''<Settings><SetupAssignments><ConverterSetups><ConverterSetup>
    ... <id>3</id><min>90.0</min><max>1200.0</max><color>-65281</color>
    ... </ConverterSetup></ConverterSetups></SetupAssignments></Settings>''')
    {3: SetupSettings(limits=(90.0, 1200.0), color='FF00FF')}
    """
    root = parsed_xml(xml)
    if isinstance(root, str):
        return {}
    found = {}
    for element in root.iterfind(".//ConverterSetups/ConverterSetup"):
        texts = [element.findtext(tag) or "" for tag in ("id", "min", "max", "color")]
        try:
            number, color = int(texts[0]), int(texts[3])
            limits = range_of([float(texts[1]), float(texts[2])])
        except ValueError:
            continue
        if limits is not None:
            found[number] = SetupSettings(limits, f"{color & 0xFFFFFF:06X}")
    return found
