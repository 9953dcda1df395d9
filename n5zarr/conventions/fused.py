"""Read where volumes are that BigStitcher-Spark has fused: ``chCtpT/sK``; N5 order.

``CreateFusionContainer`` writes ``Bigstitcher-Spark`` to the root, and ``SparkAffineFusion`` fuses
in these coordinates: element 0 is at ``Boundingbox_min`` in the world of the input, whose z is
divided by ``AnisotropyFactor`` before (``TransformVirtual.adjustAllTransforms``). The world has no
unit there. Fusions for BigDataViewer have an XML, and begin at 0 in it.
"""

from __future__ import annotations

import re

from n5zarr.conventions.levels import factors_to_first, problems_of_factors
from n5zarr.conventions.model import (
    Convention,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    brief,
    centre_shifts,
    mapping,
    numbers_at,
)

_KEY = "Bigstitcher-Spark"
_VOLUME = re.compile(r"ch[0-9]+tp[0-9]+")


def read(node: Node) -> Geometry | None:
    """Read the bounding box of a fused volume; None for any other dataset."""
    fusion = mapping(node.ancestors[1].get(_KEY)) if len(node.ancestors) > 1 else {}
    if not fusion:  # as for each level at the root, whose path has no volume
        return None
    is_level = node.level is not None and _VOLUME.fullmatch(node.path[-2]) and node.ndim == 3
    start = numbers_at(fusion, "Boundingbox_min", 3, f"{_KEY}/") if is_level else None
    if start is None:
        return None
    anisotropy = fusion.get("AnisotropyFactor", 1) if fusion.get("PreserveAnisotropy") else 1
    if isinstance(anisotropy, bool) or not isinstance(anisotropy, int | float):
        raise MisfitError(f"{_KEY}/AnisotropyFactor: expected a number, got {brief(anisotropy)}")
    by = factors_to_first(node) or (1.0, 1.0, 1.0)
    full = (1.0, 1.0, float(anisotropy))
    starts = zip(start, full, centre_shifts(full, by), strict=True)
    return Geometry(
        axes=axes_of(
            3,
            scale=[s * f for s, f in zip(full, by, strict=True)],
            translation=[n * s + shift for n, s, shift in starts],
        ),
    )


FUSED = Convention(name="fused", read=read, problems=problems_of_factors)
