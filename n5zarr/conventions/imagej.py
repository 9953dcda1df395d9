"""Read ImageJ's ``pixelWidth`` and its siblings, of n5-ij; axes x, y, c, z, t without singletons.

``ImagePlusLegacyMetadataParser``.
"""

from __future__ import annotations

from n5zarr.conventions.model import Geometry, MisfitError, Node, axes_of, brief, numbers

__all__ = ["KEYS", "read"]

_SCALE = {"x": "pixelWidth", "y": "pixelHeight", "z": "pixelDepth", "t": "frameInterval"}
KEYS = (*_SCALE.values(), "pixelUnit", "xOrigin", "yOrigin", "zOrigin", "fps")


def read(node: Node) -> Geometry | None:
    """Read ImageJ's attributes; None if they are missing."""
    attributes = node.attributes
    if not {"pixelWidth", "pixelUnit"} <= attributes.keys():
        return None

    def number(key: str, default: float) -> float:
        found = numbers([attributes.get(key, default)])
        if found is None:
            raise MisfitError(f"{key}: expected a number, got {brief(attributes[key])}")
        return found[0]

    def scale(name: str) -> float:
        given = number(_SCALE[name], 1) if name in _SCALE else 1.0
        return 1.0 if name == "t" and not given else given  # ImageJ writes 0 for no interval

    optional = (("c", "numChannels"), ("z", "numSlices"), ("t", "numFrames"))
    names = ["x", "y", *(name for name, key in optional if number(key, 1) > 1)]
    if len(names) != node.ndim:
        raise MisfitError(
            f"numChannels, numSlices, numFrames: expected {node.ndim} axes, got {names}"
        )
    unit = attributes["pixelUnit"]
    return Geometry(
        convention="imagej",
        axes=axes_of(
            node.ndim,
            names=names,
            scale=[scale(name) for name in names],
            translation=[number(f"{name}Origin", 0) for name in names],
            units=[unit if name in "xyz" and isinstance(unit, str) else None for name in names],
        ),
    )
