"""Where the elements of a dataset lie: what conventions need, read from a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr._zarr_compat import sync
from n5zarr.conventions.bdv import setup_of, voxel_sizes
from n5zarr.conventions.find import find_geometry
from n5zarr.conventions.model import Node

if TYPE_CHECKING:
    from pathlib import Path

    from n5zarr.conventions.model import Geometry
    from n5zarr.store import N5Store
    from n5zarr.translate.presentation import Presentation

__all__ = ["read_geometry"]


def read_geometry(
    opened: N5Store, path: str, shown: Presentation, convention: str | None = None
) -> Geometry | None:
    """Read the axes of a dataset.

    Parameters
    ----------
    opened : N5Store
        The container.
    path : str
        Of the dataset.
    shown : Presentation
        The dataset.
    convention : str, optional
        The only one to try.

    Returns
    -------
    Geometry or None
        None where nothing is said of the axes.
    """
    names = tuple(path.split("/")) if path else ()
    above, first = sync(opened.run(opened.hierarchy.surroundings(path)))
    node = Node(
        path=names,
        dimensions=shown.dataset.dimensions,
        attributes=shown.dataset.attributes,
        ancestors=above,
        first_level=None if first is None else first.dataset.dimensions,
        voxel_size=_voxel_size(getattr(opened, "root", None), names),
    )
    return find_geometry(node, convention)


def _voxel_size(root: Path | None, names: tuple[str, ...]) -> tuple[tuple[float, ...], str] | None:
    """Find the XML that describes a setup: beside it, or beside the container."""
    setup = setup_of(names)
    if root is None or setup is None:
        return None
    container = root.joinpath(*names[:-3])
    for folder in (container, *container.parents):
        for xml in sorted(folder.glob("*.xml")):
            found = voxel_sizes(xml.read_bytes())
            if found is not None and (folder / found[0]).resolve() == container:
                return found[1].get(setup)
        if folder == root.parent:
            break
    return None
