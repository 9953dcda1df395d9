"""Read and write n5-viewer's ``pixelResolution``, of full resolution, and ``downsamplingFactors``.

n5-universe ``N5SingleScaleMetadataParser``; N5 order. Without factors the name ``s<k>`` means 2^k.
A bare list has no unit: it is that of the group above, else micrometres, as in n5-viewer's README.
Names of axes may be the group's, as in Neuroglancer. ``affineTransform``, the rows of a matrix, is
applied last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.conventions.model import (
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    factors,
    level_from,
    mapping,
    numbers,
    resolution_in,
    shifted,
    texts,
    unshifted,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON

__all__ = ["KEYS", "read", "write"]

KEYS = ("pixelResolution", "downsamplingFactors", "affineTransform")


def read(node: Node) -> Geometry | None:
    """Read ``pixelResolution``; None where there is none."""
    value = node.attributes.get("pixelResolution")
    if value is None:
        return None
    resolution = resolution_in(node.attributes)
    if not resolution or len(resolution) > node.ndim:
        message = f"pixelResolution: expected at most {node.ndim} numbers, got {brief(value)}"
        raise MisfitError(message)
    by = factors(node) or (float(2 ** (node.level or 0)),) * node.ndim
    scale, translation = level_from(node, resolution, by[: len(resolution)])
    matrix = node.attributes.get("affineTransform")
    if matrix is not None:
        scale, translation = _apply_matrix(matrix, scale, translation)
    axes = axes_of(
        node.ndim,
        names=node.names or _above(node, "axes"),
        scale=scale,
        translation=translation,
        units=_units(node, value),
    )
    return Geometry(convention="n5viewer", axes=axes)


def _units(node: Node, value: JSON) -> Sequence[str] | str | None:
    for resolution in (value, *(group.get("pixelResolution") for group in node.ancestors[:2])):
        unit = mapping(resolution).get("unit")
        if isinstance(unit, str):
            return unit
    return _above(node, "units") or ("um" if isinstance(value, list) else None)


def _above(node: Node, key: str) -> tuple[str, ...] | None:
    """Read a list of one string per axis from the nearest group above that has it."""
    names = (texts(group.get(key), node.ndim) for group in node.ancestors)
    return next((listed for listed in names if listed), None)


def _apply_matrix(
    matrix: JSON, scale: tuple[float, ...], translation: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Apply the rows of an affine matrix that does not mix axes."""
    n = len(scale)
    rows = matrix if isinstance(matrix, list) else []
    flat = numbers([v for row in rows for v in row] if _is_nested(rows) else rows, n * (n + 1))
    mixes = flat is None or any(flat[i * (n + 1) + j] for i in range(n) for j in range(n) if i != j)
    if flat is None or mixes:
        message = (
            f"affineTransform: expected {n} rows that do not mix axes, got {brief(matrix)}: "
            "positions along one axis would depend on another one"
        )
        raise MisfitError(message)
    diagonal = flat[:: n + 2]
    offsets = flat[n :: n + 1]
    return (
        tuple(d * s for d, s in zip(diagonal, scale, strict=True)),
        tuple(d * t + o for d, t, o in zip(diagonal, translation, offsets, strict=True)),
    )


def _is_nested(rows: list[JSON]) -> bool:
    return bool(rows) and all(isinstance(row, list) for row in rows)


def write(axes: Sequence[Axis]) -> dict[str, JSON]:
    """Make the attributes of a dataset from its axes in N5 order.

    Only the axes of space have a resolution, and they share one unit; x, y and z come first.
    """
    space = [axis for axis in axes if axis.type == "space"]
    base, by = unshifted(space)
    unit = next((axis.unit for axis in space if axis.unit), None)
    attributes: dict[str, JSON] = {
        "pixelResolution": {"unit": unit or "pixel", "dimensions": list(base)},
        "downsamplingFactors": [*by, *[1.0] * (len(axes) - len(space))],
    }
    offsets = [a.translation - s for a, s in zip(space, shifted(base, by), strict=True)]
    if any(offsets):
        n = len(space)
        rows = [[float(i == j) for j in range(n)] + [offsets[i]] for i in range(n)]
        attributes["affineTransform"] = [value for row in rows for value in row]
    return attributes
