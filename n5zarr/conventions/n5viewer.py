"""n5-viewer: ``pixelResolution`` of full resolution on every level, and ``downsamplingFactors``.

n5-universe ``N5SingleScaleMetadataParser``; N5 order. Without factors the name ``s<k>`` means 2^k.
A bare list has no unit; n5-viewer's README takes micrometres.
"""

from __future__ import annotations

from n5zarr.conventions.model import Geometry, Node, axes_of, factors, mapping, numbers, shifted

__all__ = ["read"]


def read(node: Node) -> Geometry | None:
    """Read ``pixelResolution``; None where there is none."""
    value = node.attributes.get("pixelResolution")
    resolution = numbers(value) or numbers(mapping(value).get("dimensions"))
    if not resolution or len(resolution) > node.ndim:
        return None
    unit = mapping(value).get("unit") if isinstance(value, dict) else "um"
    by = factors(node) or (float(2 ** (node.level or 0)),) * node.ndim
    by = by[: len(resolution)]
    axes = axes_of(
        node.ndim,
        scale=[r * f for r, f in zip(resolution, by, strict=True)],
        translation=shifted(resolution, by),
        units=unit if isinstance(unit, str) else None,
    )
    return Geometry(convention="n5viewer", axes=axes)
