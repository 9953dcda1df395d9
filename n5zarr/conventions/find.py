"""Which convention a dataset follows, in n5-universe's order.

COSEM, n5-viewer and canonical stand on the dataset; then what n5-universe does not know or reads
from groups; ImageJ last, which is not among its parsers by default. Names alone come after all.
COSEM's transforms on groups come before n5-viewer, since their levels have ``pixelResolution``,
too; so has what render writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.conventions import (
    bdv,
    canonical,
    cosem,
    funlib,
    imagej,
    n5viewer,
    neuroglancer,
    ngff,
    paintera,
    render,
)
from n5zarr.conventions.model import Axis, Geometry, MisfitError, Node, axes_of
from n5zarr.conventions.units import is_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "CONVENTIONS",
    "WRITTEN",
    "Found",
    "Written",
    "describe_axes",
    "find_geometry",
    "other_attributes",
]


def _names_only(node: Node) -> Geometry | None:
    if node.names is None:
        return None
    return Geometry(convention="names", axes=axes_of(node.ndim, names=node.names))


CONVENTIONS: tuple[tuple[str, Callable[[Node], Geometry | None]], ...] = (
    ("cosem", cosem.read),
    ("cosem", cosem.read_group),
    ("render", render.read),
    ("n5viewer", n5viewer.read),
    ("canonical", canonical.read),
    ("bdv", bdv.read),
    ("ngff", ngff.read),
    ("canonical", canonical.read_group),
    ("funlib", funlib.read),
    ("neuroglancer", neuroglancer.read),
    ("paintera", paintera.read),
    ("paintera", paintera.read_group),
    ("imagej", imagej.read),
    ("names", _names_only),
)
_KEYS = {
    key
    for module in (bdv, canonical, cosem, funlib, n5viewer, neuroglancer, ngff, paintera, render)
    for key in module.KEYS
}
# whatever they are, where a dataset follows the convention
_OWN_KEYS = {"funlib": funlib.KEYS, "imagej": imagej.KEYS}
_OBJECTS = {"transform", "pixelResolution", "spatialTransform", "coordinateArrays"}
_OF_ANY_LENGTH = {"pixelResolution", "downsamplingFactors", "affineTransform", "scales"}


WRITTEN = ("cosem", "n5viewer", "neuroglancer", "ngff")


class Written(NamedTuple):
    """How a convention says where a dataset lies.

    Parameters
    ----------
    attributes : dict
        Of the dataset.
    image, level : dict or None
        An image in ``multiscales`` of the group, and a member of its ``datasets``.
    """

    attributes: dict[str, JSON]
    image: dict[str, JSON] | None = None
    level: dict[str, JSON] | None = None


def describe_axes(convention: str, axes: Sequence[Axis], path: str) -> Written:
    """Write axes in the terms of a convention.

    Parameters
    ----------
    convention : {"cosem", "n5viewer", "neuroglancer", "ngff"}
        Which one.
    axes : sequence of Axis
        In N5 order.
    path : str
        Of the dataset below its group.
    """
    match convention:
        case "cosem":
            attributes = cosem.write(axes)
            return Written(attributes, {}, {"path": path, **attributes})
        case "n5viewer":
            return Written(n5viewer.write(axes))
        case "neuroglancer":
            return Written(neuroglancer.write(axes))
        case _:
            return Written({}, *ngff.write(axes, path))


class Found(NamedTuple):
    """The axes of a dataset, and what was written of them that cannot be meant."""

    geometry: Geometry | None
    problems: tuple[str, ...]


def find_geometry(node: Node, convention: str | None = None) -> Found:
    """Find the axes of a dataset.

    Parameters
    ----------
    node : Node
        The dataset and what stands above it.
    convention : str, optional
        The only one to try.

    Returns
    -------
    Found
        The geometry is None where no convention, or not the wanted one, says anything.
    """
    problems: list[str] = []
    found = None
    try:
        for name, read in CONVENTIONS:
            found = read(node) if convention in (None, name) else None
            if found is not None:
                break
    except MisfitError as err:  # another convention would say half of it
        problems.append(str(err))
        found = _names_only(node)
    if found is not None:
        found = replace(found, axes=_sensible(found.axes, problems))
        if found.rest:
            problems.append(
                "the registration turns or shears: positions are along the axes of the view, and "
                "the attribute 'registration' has the matrix that takes them to the world"
            )
    return Found(found, tuple(dict.fromkeys(problems)))


def _sensible(axes: tuple[Axis, ...], problems: list[str]) -> tuple[Axis, ...]:
    """Take away from axes what cannot be meant, and say so."""
    kept: list[Axis] = []
    for axis in axes:
        name = axis.name
        if name and name in [other.name for other in kept]:
            problems.append(f"axes: expected distinct names, got {[a.name for a in axes]}")
            axis = replace(axis, name="")  # noqa: PLW2901
        if not axis.scale or not math.isfinite(axis.scale) or not math.isfinite(axis.translation):
            problems.append(
                f"axis {name!r}: expected a distance of elements other than 0 and a position, got "
                f"{axis.scale:g} and {axis.translation:g}"
            )
            axis = replace(axis, scale=1.0, translation=0.0, unit=None)  # noqa: PLW2901
        if axis.unit and not is_unit(axis.unit):
            problems.append(f"axis {name!r}: the unit {axis.unit!r} is none that is known")
        kept.append(axis)
    return tuple(kept)


def other_attributes(attributes: Mapping[str, JSON], geometry: Geometry | None) -> dict[str, JSON]:
    """Leave out of the attributes of a dataset what its axes say.

    They would be wrong after the first slice.

    Parameters
    ----------
    attributes : mapping
        Of the dataset.
    geometry : Geometry or None
        What was read from them, if anything was.
    """
    if geometry is None or geometry.convention == "names":
        return dict(attributes)
    own = _OWN_KEYS.get(geometry.convention, ())
    return {
        key: value
        for key, value in attributes.items()
        if key not in own and not (key in _KEYS and _says_axes(key, value, len(geometry.axes)))
    }


def _says_axes(key: str, value: JSON, ndim: int) -> bool:
    """Whether a value is one that a convention has under this key, and not a user's own."""
    if isinstance(value, list):
        return key in _OF_ANY_LENGTH or (key not in _OBJECTS and len(value) == ndim)
    return isinstance(value, Mapping) and key in _OBJECTS
