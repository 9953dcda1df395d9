"""Read Paintera's ``resolution`` and ``offset`` of the group above, or of the dataset; N5 order.

By Paintera's ``PainteraDataMultiScaleParser``, all levels of a group begin at its offset, without a
shift; if its ``multiScale`` is true, its resolution is 1 by default. By n5-universe's
``N5GenericSingleScaleMetadataParser``, an offset of the dataset itself replaces the shift. Paintera
writes no unit; other programs write ``unit``, ``units`` or ``offset_unit``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from n5zarr.conventions.levels import (
    downsampling_factors,
    factors_to_first,
    level_from,
    problems_of_factors,
)
from n5zarr.conventions.model import (
    Convention,
    Geometry,
    Node,
    axes_of,
    is_of_levels,
    n_listed,
    numbers,
    numbers_at,
)
from n5zarr.conventions.units import offset_at, unit_in
from n5zarr.format.lenient_json import JSON


def read(node: Node) -> Geometry | None:
    """Read ``resolution`` of the dataset or of the group of levels; None if it is missing."""
    return _read_own(node) or _read_group(node)


def _read_own(node: Node) -> Geometry | None:
    if not isinstance(node.attributes.get("resolution"), list):  # it may be a text about it
        return None
    n = n_listed(node.attributes, "resolution", node.ndim)
    resolution = numbers_at(node.attributes, "resolution", n) or ()
    by = (downsampling_factors(node) or (1.0,) * node.ndim)[:n]
    scale, translation = level_from(node, resolution, by)
    return _geometry(node, node.attributes, scale, translation, "")


def _read_group(node: Node) -> Geometry | None:
    group = node.ancestors[0] if node.ancestors and not is_of_levels(node.ancestors[0]) else {}
    resolution = numbers(group.get("resolution"), node.ndim)
    is_default = "resolution" not in group and group.get("multiScale") is True
    if is_default and (node.level == 0 or downsampling_factors(node) is not None):
        resolution = (1.0,) * node.ndim
    if resolution is None or node.level is None:
        return None
    by = factors_to_first(node) or (1.0,) * node.ndim
    scale = [r * f for r, f in zip(resolution, by, strict=True)]
    return _geometry(node, group, scale, (), "group of the levels: ")


def _geometry(
    node: Node,
    attributes: Mapping[str, JSON],
    scale: Sequence[float],
    shift: Sequence[float],
    within: str,
) -> Geometry:
    """Place a dataset in the unit that attributes have, at their offset if they have one."""
    unit, n = unit_in(attributes), n_listed(attributes, "offset", node.ndim)
    return Geometry(
        axes=axes_of(
            node.ndim,
            names=node.names,
            scale=scale,
            translation=offset_at(attributes, n, unit, within) or shift,
            units=unit,
        ),
    )


PAINTERA = Convention(
    name="paintera",
    read=read,
    per_axis=("resolution", "offset"),
    lists=("downsamplingFactors",),
    placing_keys=("resolution",),
    group_keys=("resolution", "offset", "downsamplingFactors", "multiScale"),
    is_by_factors=True,
    problems=problems_of_factors,
)
