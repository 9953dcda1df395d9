"""ImageJ, through n5-ij: ``pixelWidth`` and its siblings; axes x, y, c, z, t without singletons.

``ImagePlusLegacyMetadataParser``.
"""

from __future__ import annotations

from n5zarr.conventions.model import Geometry, Node, axes_of

__all__ = ["read"]


def read(node: Node) -> Geometry | None:
    """Read ImageJ's attributes; None where there are none."""
    found = node.attributes
    if not isinstance(found.get("pixelWidth"), int | float) or "pixelUnit" not in found:
        return None

    def number(key: str, default: float) -> float:
        value = found.get(key)
        return float(value) if isinstance(value, int | float) and value else default

    optional = (("c", "numChannels"), ("z", "numSlices"), ("t", "numFrames"))
    names = ["x", "y", *(name for name, key in optional if number(key, 1) > 1)]
    if len(names) != node.ndim:
        return None
    scale = {"x": "pixelWidth", "y": "pixelHeight", "z": "pixelDepth", "t": "frameInterval"}
    unit = found["pixelUnit"]
    axes = axes_of(
        node.ndim,
        names=names,
        scale=[number(scale[name], 1) if name in scale else 1.0 for name in names],
        translation=[number(f"{name}Origin", 0) for name in names],
        units=[unit if name in "xyz" and isinstance(unit, str) else None for name in names],
    )
    return Geometry(convention="imagej", axes=axes)
