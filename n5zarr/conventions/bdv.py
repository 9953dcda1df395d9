"""Read BigDataViewer's and BigStitcher's axes: ``setupN/timepointM/sK``, and the XML beside it.

``BdvN5Format``, ``MipmapTransforms.getMipmapTransformDefault``; N5 order, three dimensions. The
registration of a view (spimdata ``ViewRegistration``) maps elements of full resolution to world
coordinates; views without one have the voxel size as scale.

``NAME.settings.xml`` (bigdataviewer-core ``SetupAssignments.toXml``) has limits and colours: an
element ``ConverterSetup`` for each setup, with ``id``, ``min``, ``max`` and ``color``, the number
of an ``ARGBType``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from n5zarr.conventions.bdv_loader import Loader, parse_loader
from n5zarr.conventions.bdv_registrations import model_of, read_transforms, view_in
from n5zarr.conventions.levels import factors_in_json
from n5zarr.conventions.model import (
    Geometry,
    MisfitError,
    Node,
    SetupView,
    axes_of,
    centre_shifts,
    downsampling_factors,
    numbers_at,
    range_of,
)
from n5zarr.conventions.xml_text import numbers_in, parsed_xml, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from xml.etree import ElementTree

    import numpy.typing as npt

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "KEYS",
    "NEAR",
    "Description",
    "Setup",
    "SetupSettings",
    "parse_settings",
    "parse_xml",
    "problem_of",
    "read",
    "setup_of",
    "view_of",
    "write_setup",
    "write_timepoint",
]

KEYS = ("downsamplingFactors",)

_SETUP = re.compile(r"setup([0-9]{1,10})")
_TIMEPOINT = re.compile(r"timepoint([0-9]{1,10})")
NEAR = 0.1
"""Relative difference of equal scales: registrations may stretch a sample."""

_MAX_TIMEPOINTS = 100_000  # each is a block of dask; more are a mistake, or an attack
_END = 2**31  # numbers are ints in Java
_NOTHING = 1e-12  # largest rounding error, relative, of a matrix that does not rotate


def view_of(path: tuple[str, ...]) -> tuple[int, int] | None:
    """Parse the numbers of setup and time point from the path of a level; None for other paths.

    Examples
    --------
    >>> view_of(("bdv", "setup3", "timepoint0", "s1")), view_of(("em", "s1"))
    ((3, 0), None)
    """
    if len(path) < 3:
        return None
    setup, timepoint = _SETUP.fullmatch(path[-3]), _TIMEPOINT.fullmatch(path[-2])
    return setup and timepoint and (int(setup.group(1)), int(timepoint.group(1)))


def setup_of(name: str) -> int | None:
    """Parse the number of a setup from the name of its group; None for other names."""
    match = _SETUP.fullmatch(name)
    return match and int(match.group(1))


def read(node: Node) -> Geometry | None:
    """Read scale and translation of a level of a setup; None for any other dataset."""
    if view_of(node.path) is None or node.ndim != 3:
        return None
    scale, offset, rest = _place(node)
    by = downsampling_factors(node) or (1.0, 1.0, 1.0)
    return Geometry(
        convention="bdv",
        axes=axes_of(
            3,
            scale=[s * f for s, f in zip(scale, by, strict=True)],
            translation=[o + s for o, s in zip(offset, centre_shifts(scale, by), strict=True)],
            units=None if node.view is None else node.view.unit,
        ),
        rest=rest,
    )


def write_setup(factors: Sequence[Sequence[float]], data_type: str) -> dict[str, JSON]:
    """Make the attributes of ``setupN`` for BigDataViewer's ``DefaultN5Properties``.

    Parameters
    ----------
    factors : sequence of sequence of float
        Factors of each level, ``s0`` first; N5 order.
    data_type : str
        ``dataType`` of the levels.
    """
    return {
        "downsamplingFactors": [factors_in_json(by) for by in factors],
        "dataType": data_type,
    }


def write_timepoint(
    voxel_size: Sequence[float] | None, *, is_complete: bool = True
) -> dict[str, JSON]:
    """Make the attributes of ``setupN/timepointM``, as BigStitcher's ``setupBdvDatasetsN5``.

    Parameters
    ----------
    voxel_size : sequence of float or None
        Voxel size of the setup, x, y, z; left out unless it is three numbers above 0.
    is_complete : bool, optional
        Whether all levels are stored.
    """
    sizes = [*(voxel_size or ())]
    is_right = len(sizes) == 3 and all(0 < size < math.inf for size in sizes)
    resolution: dict[str, JSON] = {"resolution": [*sizes]} if is_right else {}
    return {**resolution, "saved_completely": is_complete, "multiScale": True}


type _Numbers = Sequence[float]


def _place(node: Node) -> tuple[_Numbers, _Numbers, tuple[tuple[float, ...], ...]]:
    """Return scale and translation at full resolution, and the rest of the registration."""
    view = node.view
    if view is not None and view.registration is not None:
        if not view.registration:
            raise MisfitError(
                "ViewRegistration in the XML: expected affine transforms of 12 numbers"
            )
        return _parts(view.registration)
    if view is not None and view.voxel_size is not None:
        if len(view.voxel_size) != 3:
            raise MisfitError(
                f"voxelSize in the XML: expected 3 numbers, got {list(view.voxel_size)}"
            )
        return view.voxel_size, (0.0, 0.0, 0.0), ()
    timepoint = node.ancestors[0] if node.ancestors else {}
    resolution = numbers_at(timepoint, "resolution", 3, "group of the levels: ")
    return resolution or (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), ()


def _parts(registration: _Numbers) -> tuple[_Numbers, _Numbers, tuple[tuple[float, ...], ...]]:
    """Split a registration into scale and translation along each axis, and a rotation or shear.

    Scale and translation map the first element to the same point as the registration; rotation
    and shear leave this point in place.
    """
    matrix = np.reshape(registration, (3, 4))
    linear, offset = matrix[:, :3], matrix[:, 3]
    lengths = np.linalg.norm(linear, axis=0)
    mixed = linear - np.diag(np.diag(linear))
    if (np.abs(mixed) <= _NOTHING * lengths).all():
        return np.diag(linear).tolist(), offset.tolist(), ()
    if not lengths.all():
        raise MisfitError(
            "ViewRegistration in the XML: expected a matrix without a column of zeros"
        )
    turned = linear / lengths
    rest = np.column_stack([turned, offset - turned @ offset])
    return lengths.tolist(), offset.tolist(), tuple(map(tuple, rest.tolist()))


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
    """

    loader: Loader
    setups: Mapping[int, Setup]
    registrations: Mapping[tuple[int, int], tuple[float, ...]]
    timepoints: tuple[int, ...] | None
    missing: frozenset[tuple[int, int]]
    finest: float = 1.0
    name: str = "the XML"

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
def parse_xml(xml: bytes) -> Description | None:
    """Parse BigDataViewer's XML; None for any other XML."""
    root = parsed_xml(xml)
    if isinstance(root, str):
        return None
    loader = parse_loader(root)
    if isinstance(loader, str):
        return None
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
    timepoints = _timepoints(root.find(".//Timepoints"))
    sizes = (size for setup in setups.values() for size in setup.voxel_size or ())
    return Description(
        loader=loader.with_views(setups, timepoints or (0,)),
        setups=setups,
        registrations={v: model_of(each) for v, each in read_transforms(root).items()},
        timepoints=timepoints,
        missing=frozenset(filter(None, missing)),
        finest=min(sizes, default=1.0),
    )


def problem_of(xml: bytes) -> str | None:
    """Describe why XML is not BigDataViewer's for N5; None if it is."""
    root = parsed_xml(xml)
    if isinstance(root, str):
        return root
    if root.tag != "SpimData":
        return f"the root element {root.tag}, not SpimData without a namespace"
    loader = parse_loader(root)
    return loader if isinstance(loader, str) else None


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


def _timepoints(element: ElementTree.Element | None) -> tuple[int, ...] | None:
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
    for entry in (pattern.replace(" ", "").strip() or "0").split(","):
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
