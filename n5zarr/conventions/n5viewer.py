"""Read and write n5-viewer's ``pixelResolution``, of full resolution, and ``downsamplingFactors``.

n5-universe ``N5SingleScaleMetadataParser``; N5 order. Without factors the name ``s<k>`` means 2^k.
A bare list has no unit: it is that of the dataset or the group above, else micrometres, as in
n5-viewer's README.
Names of axes may be the group's, as in Neuroglancer. ``affineTransform``, the rows of a matrix, is
applied last.

``pixelResolution`` and ``affineTransform`` of a group are the defaults of its levels, those of the
root of all channels (n5-viewer ``N5ExportMetadata``). A dataset with its own ``pixelResolution``
has its own ``affineTransform`` only, as in n5-universe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from n5zarr.conventions import neuroglancer
from n5zarr.conventions.levels import (
    Steps,
    applied_after,
    diagonal_of,
    downsampling_factors,
    level_from,
    problems_of_factors,
)
from n5zarr.conventions.model import (
    Axis,
    Convention,
    Geometry,
    MisfitError,
    Node,
    Written,
    axes_of,
    brief,
    centre_shifts,
    mapping,
    numbers,
    resolution_in,
    texts,
)
from n5zarr.conventions.units import symbol, unit_in
from n5zarr.format.lenient_json import JSON

_AFFINE = "affineTransform"


def read(node: Node) -> Geometry | None:
    """Read ``pixelResolution``; None if it is missing."""
    value = node.attributes.get("pixelResolution")
    if value is None:
        return None
    resolution = resolution_in(node.attributes)
    if not resolution or len(resolution) > node.ndim:
        raise MisfitError(
            f"pixelResolution: expected at most {node.ndim} numbers, got {brief(value)}"
        )
    by = downsampling_factors(node) or (float(2 ** (node.level or 0)),) * node.ndim
    placed = level_from(node, resolution, by[: len(resolution)])
    matrix = node.attributes.get(_AFFINE)
    if matrix is not None:
        placed = applied_after(placed, _steps_of(matrix, len(resolution)))
    return Geometry(
        axes=axes_of(
            node.ndim,
            names=node.names or _texts_above(node, "axes"),
            scale=placed[0],
            translation=placed[1],
            units=_units(node, value),
        ),
    )


def read_group(node: Node) -> Geometry | None:
    """Apply ``affineTransform`` to ``pixelResolution`` of a group; None unless both are there."""
    matrix, has_own = _matrix(node), isinstance(node.attributes.get("resolution"), list)
    is_meant = matrix is not None and not has_own and any(map(resolution_in, node.ancestors[:2]))
    found = neuroglancer.read(node) if is_meant else None
    if found is None:
        return None
    steps = _steps_of(matrix, min(node.ndim, 3))
    moved = tuple(
        replace(axis, scale=axis.scale * by, translation=axis.translation * by + to)
        for axis, by, to in zip(found.axes, *steps, strict=False)
    )
    return Geometry(axes=(*moved, *found.axes[len(moved) :]))


def problems_of(node: Node) -> Iterator[str]:
    """Say that ``affineTransform`` is not applied."""
    groups, own = node.ancestors[:2], node.attributes
    is_beside = _AFFINE in own if resolution_in(own) else any(map(resolution_in, groups))
    if _matrix(node) is not None and not is_beside:
        yield (
            "affineTransform: expected it beside the pixelResolution of the dataset, or of a group "
            "if the dataset has none, got it without: it is not applied"
        )


def _matrix(node: Node) -> JSON:
    """Return the nearest ``affineTransform``: of the dataset, its channel, or all channels."""
    found = (holder.get(_AFFINE) for holder in (node.attributes, *node.ancestors[:2]))
    return next((matrix for matrix in found if matrix is not None), None)


def _units(node: Node, value: JSON) -> Sequence[str] | str | None:
    for resolution in (value, *(group.get("pixelResolution") for group in node.ancestors[:2])):
        unit = mapping(resolution).get("unit")
        if isinstance(unit, str):
            return unit
    own = unit_in(node.attributes)
    return own or _texts_above(node, "units") or ("um" if isinstance(value, list) else None)


def _texts_above(node: Node, key: str) -> tuple[str, ...] | None:
    """Read a list of one string per axis from the nearest group above that has it."""
    names = (texts(group.get(key), node.ndim) for group in node.ancestors)
    return next((listed for listed in names if listed), None)


def _steps_of(matrix: JSON, n: int) -> Steps:
    """Read the rows of an affine matrix that does not mix axes."""
    rows = matrix if isinstance(matrix, list) else []
    if n < 3 and _is_nested(rows) and len(rows) == 3:  # three dimensions, as in n5-universe
        rows = [[*row[:n], *row[3:]] for row in rows[:n]]
    flat = numbers([v for row in rows for v in row] if _is_nested(rows) else rows, n * (n + 1))
    steps = None if flat is None else diagonal_of(flat, n)
    if steps is None:
        raise MisfitError(
            f"affineTransform: expected {n} rows that do not mix axes, got {brief(matrix)}: "
            "positions along one axis would depend on another one"
        )
    return steps


def _is_nested(rows: list[JSON]) -> bool:
    return bool(rows) and all(isinstance(row, list) for row in rows)


def write(axes: Sequence[Axis], _path: str, first: Sequence[Axis] | None = None) -> Written:
    """Describe a dataset.

    Only the axes of space have a resolution, and they share one unit; x, y and z come first.
    The resolution of ``first`` is written where that is exact.
    """
    space = [axis for axis in axes if axis.type == "space"]
    first_space = None if first is None else [axis for axis in first if axis.type == "space"]
    base, by, offsets = _resolution(space, first_space)
    unit = next((axis.unit for axis in space if axis.unit), "pixel")
    name, size = symbol(unit)
    known = name if size == 1.0 and name else unit  # Neuroglancer refuses other spellings
    attributes: dict[str, JSON] = {
        "pixelResolution": {"unit": known, "dimensions": list(base)},
        "downsamplingFactors": [*by, *[1.0] * (len(axes) - len(space))],
    }
    if any(offsets):
        # always three rows: n5-universe's transform has three dimensions
        rows = [[float(i == j) for j in range(3)] + [o] for i, o in enumerate([*offsets, 0, 0][:3])]
        attributes[_AFFINE] = [[*row] for row in rows]
    return Written(attributes)


def _resolution(
    space: Sequence[Axis], first: Sequence[Axis] | None
) -> tuple[Sequence[float], Sequence[float], list[float]]:
    """Return resolution, factors and offsets that give positions to the last bit.

    Uses resolution and shift of full resolution, like n5-viewer, if possible.
    """
    relative = neuroglancer.exact_factors(space, first), neuroglancer.base_and_factors(space)
    for base, by in filter(None, relative):
        shifts = centre_shifts(base, by)
        offsets = [axis.translation - s for axis, s in zip(space, shifts, strict=True)]
        pairs = zip(space, shifts, offsets, strict=True)
        if all(s + o == axis.translation for axis, s, o in pairs):
            return base, by, offsets
    return (
        [axis.scale for axis in space],
        [1.0] * len(space),
        [axis.translation for axis in space],
    )


N5VIEWER = Convention(
    name="n5viewer",
    read=read,
    write=write,
    lists=("pixelResolution", "downsamplingFactors", _AFFINE),
    objects=("pixelResolution",),
    placing_keys=("pixelResolution",),
    problems=problems_of_factors,
)
