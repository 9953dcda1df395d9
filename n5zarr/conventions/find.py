"""Which convention a dataset follows, in n5-universe's order.

COSEM, n5-viewer and canonical stand on the dataset; then what n5-universe does not know or reads
from groups; ImageJ last, which is not among its parsers by default. Names alone come after all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.conventions import bdv, canonical, cosem, imagej, n5viewer, neuroglancer, ngff, paintera
from n5zarr.conventions.model import Geometry, Node, axes_of
from n5zarr.translate.presentation import derived_names

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONVENTIONS", "find_geometry"]


def _names_only(node: Node) -> Geometry | None:
    found = derived_names(node.attributes, node.ndim)
    return found and Geometry(convention="names", axes=axes_of(node.ndim, names=found[1]))


CONVENTIONS: tuple[tuple[str, Callable[[Node], Geometry | None]], ...] = (
    ("cosem", cosem.read),
    ("n5viewer", n5viewer.read),
    ("canonical", canonical.read),
    ("bdv", bdv.read),
    ("ngff", ngff.read),
    ("canonical", canonical.read_group),
    ("neuroglancer", neuroglancer.read),
    ("paintera", paintera.read),
    ("paintera", paintera.read_group),
    ("imagej", imagej.read),
    ("names", _names_only),
)


def find_geometry(node: Node, convention: str | None = None) -> Geometry | None:
    """Find the axes of a dataset.

    Parameters
    ----------
    node : Node
        The dataset and what stands above it.
    convention : str, optional
        The only one to try.

    Returns
    -------
    Geometry or None
        None where no convention, or not the wanted one, says anything.
    """
    for name, read in CONVENTIONS:
        found = read(node) if convention in (None, name) else None
        if found is not None:
            return found
    return None
