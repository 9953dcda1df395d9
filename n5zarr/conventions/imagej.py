"""Read ImageJ's ``pixelWidth`` and its siblings, of n5-ij and VirtualCell; axes x, y, c, z, t.

n5-ij (``ImagePlusLegacyMetadataParser``) leaves out singletons, and has the unit in ``pixelUnit``.
VirtualCell (``N5Specs.ImageJMetaData``) always has five axes, and the unit in ``unit``; its
``numFrames`` counts the whole simulation, of which the dataset may be a part (``N5Exporter``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from n5zarr.conventions.model import (
    Convention,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    numbers,
)

_SIZES = {"x": "pixelWidth", "y": "pixelHeight", "z": "pixelDepth"}
_COUNTS = {"c": "numChannels", "z": "numSlices", "t": "numFrames"}
_UNITS = ("pixelUnit", "unit")
_KEYS = (*_SIZES.values(), "frameInterval", "fps", *_UNITS, "xOrigin", "yOrigin", "zOrigin")


def read(node: Node) -> Geometry | None:
    """Read ImageJ's attributes; None if they are missing."""
    attributes = node.attributes
    is_of_imagej = "pixelWidth" in attributes and {"pixelHeight", *_UNITS} & attributes.keys()
    if not is_of_imagej or node.ndim < 2:
        return None

    def number(key: str, default: float) -> float:
        found = numbers([attributes.get(key, default)])
        if found is None:
            raise MisfitError(f"{key}: expected a number, got {brief(attributes[key])}")
        return found[0]

    interval = number("frameInterval", 0)  # 0 is none; `fps` is the speed of showing
    scale = {name: number(key, 1) for name, key in _SIZES.items()} | {"t": interval or 1.0}
    counts = {name: number(key, 0) for name, key in _COUNTS.items()}  # 0 is unknown
    others = node.dimensions[2:]
    orders = [tuple(name for name, count in counts.items() if count > 1)]  # as n5-ij
    if len(orders[0]) != len(others):
        orders = [
            order
            for order in combinations(counts, len(others))
            if len(others) == len(counts) or _has(counts, order, others)  # all are in one order
        ]
    if len(orders) != 1:
        raise MisfitError(
            f"{', '.join(_COUNTS.values())}: expected the sizes of the axes after x and y, "
            f"{[*others]}, got {brief([*counts.values()])}"
        )
    names = ("x", "y", *orders[0])
    given = next((unit for key in _UNITS if isinstance(unit := attributes.get(key), str)), None)
    units: dict[str, str | None] = {
        **dict.fromkeys(_SIZES, given),
        "t": "sec" if interval else None,
    }
    return Geometry(
        axes=axes_of(
            node.ndim,
            names=names,
            scale=[scale.get(name, 1.0) for name in names],
            translation=[number(f"{name}Origin", 0) for name in names],
            units=[units.get(name) for name in names],
        ),
    )


def _has(counts: Mapping[str, float], names: Sequence[str], sizes: Sequence[int]) -> bool:
    """Whether axes have the numbers of elements that are known, and all others have one."""
    found = dict(zip(names, sizes, strict=True))
    return all(count in (0, found.get(name, 1)) for name, count in counts.items())


IMAGEJ = Convention(name="imagej", read=read, own_keys=_KEYS)
