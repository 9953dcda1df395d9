"""Read and write TensorStore's and Neuroglancer's ``axes``, ``units`` and ``resolution``.

tensorstore ``driver/n5/schema.yml``, Neuroglancer ``datasource/n5``; N5 order; on the array or any
ancestor. The factors of levels are on each level, or a list of lists on the group. Neuroglancer's
coordinates are those of the corners of voxels, so centres lie half a voxel further. An ``offset``
replaces that shift, as in n5-universe's ``N5GenericSingleScaleMetadataParser``.
"""

from __future__ import annotations

from dataclasses import replace
from operator import mul
from typing import TYPE_CHECKING

from n5zarr.conventions.model import (
    Axis,
    Geometry,
    Node,
    axes_of,
    factors,
    level_from,
    mapping,
    numbers_at,
    resolution_in,
    shifted,
    texts_at,
    unshifted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = ["KEYS", "read", "write"]


KEYS = (
    "axes",
    "units",
    "resolution",
    "offset",
    "pixelResolution",
    "downsamplingFactors",
    "scales",
    "coordinateArrays",
)


def read(node: Node) -> Geometry | None:
    """Read the array's keys, and missing ones from its ancestors; None if there are only names."""
    names = _inherited(node, "axes", texts_at)
    if not isinstance(node.attributes.get("axes"), list) and node.names is not None:
        names = node.names
    resolution, units, is_own = _resolution(node)
    labels = _inherited_object(node, "coordinateArrays")
    if units is None and (names is None or (resolution is None and not labels)):
        return None
    if resolution is None and names is None:
        return None
    base = resolution or (1.0,) * node.ndim
    by = factors(node) or (1.0,) * node.ndim
    scale, translation = tuple(map(mul, base, by)), shifted(base, by)
    if is_own:
        scale, translation = level_from(node, base, by)
    axes = axes_of(
        node.ndim,
        names=names,
        scale=scale,
        translation=numbers_at(node.attributes, "offset", node.ndim) or translation,
        units=units,
    )
    axes = tuple(_labelled(a, labels, n) for a, n in zip(axes, node.dimensions, strict=True))
    return Geometry(convention="neuroglancer", axes=axes)


def write(axes: Sequence[Axis]) -> dict[str, JSON]:
    """Make the attributes of a dataset from its axes in N5 order.

    ``axes`` is left out: the store writes it from the dimension names of the Zarr document.
    """
    base, by = unshifted(axes)
    attributes: dict[str, JSON] = {
        "units": [axis.unit or "" for axis in axes],
        "resolution": list(base),
    }
    if set(by) != {1.0}:
        attributes["downsamplingFactors"] = list(by)
    if tuple(axis.translation for axis in axes) != shifted(base, by):
        attributes["offset"] = [axis.translation for axis in axes]
    return attributes


def _inherited[T](
    node: Node, key: str, read_at: Callable[[Mapping[str, JSON], str, int], T | None]
) -> T | None:
    """Read a list of the dataset, or of the nearest ancestor that has one of the same rank."""
    # a text is not this convention's, but CF's units, or a remark on the resolution
    if isinstance(node.attributes.get(key), list):
        return read_at(node.attributes, key, node.ndim)
    for attributes in node.ancestors:
        listed = attributes.get(key)
        if isinstance(listed, list) and len(listed) == node.ndim:
            return read_at(attributes, key, node.ndim)
    return None


def _resolution(
    node: Node,
) -> tuple[tuple[float, ...] | None, tuple[str, ...] | None, bool]:
    """Find the nearest resolution, the units, and whether the resolution is the dataset's own."""
    units = _inherited(node, "units", texts_at)
    resolution = _inherited(node, "resolution", numbers_at)
    is_own = isinstance(node.attributes.get("resolution"), list)
    nearest = _pixel_resolution(node)
    if nearest is None or is_own or (resolution is not None and not nearest[2]):
        return resolution, units, is_own
    resolution, value, is_own = nearest
    unit = mapping(value).get("unit")
    if isinstance(unit, str):
        return resolution, (unit,) * node.ndim, is_own
    default = "um" if isinstance(value, list) else "nm"  # a bare list is n5-viewer's
    return resolution, units or (default,) * node.ndim, is_own


def _pixel_resolution(node: Node) -> tuple[tuple[float, ...], JSON, bool] | None:
    """Find the nearest ``pixelResolution``: numbers, value, and whether it is the dataset's own."""
    for depth, attributes in enumerate((node.attributes, *node.ancestors)):
        resolution = resolution_in(attributes)
        if resolution is not None and len(resolution) == node.ndim:
            return resolution, attributes["pixelResolution"], not depth
    return None


def _inherited_object(node: Node, key: str) -> Mapping[str, JSON]:
    objects = (mapping(attributes.get(key)) for attributes in (node.attributes, *node.ancestors))
    return next((value for value in objects if value), {})


def _labelled(axis: Axis, labels: Mapping[str, JSON], length: int) -> Axis:
    return replace(axis, labels=texts_at(labels, axis.name, length, "coordinateArrays: "))
