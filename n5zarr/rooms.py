"""What the packages beside the core add to it.

A feature has a package of its own, a *room*, with its documents, reading, writing and steps of
jobs. The core names no room: it asks here for what is added at a point of extension, which is
imported then. Without the folder of a room, what it adds is missing, and all else works.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from n5zarr.errors import N5UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ADDED", "Point", "added", "needed"]

type Point = Literal["location", "source file", "step"]
"""What is at a location, shown as N5; a file that is converted; a step of a job."""

ADDED: Mapping[Point, Mapping[str, str]] = {
    # functions of a place and a path; None for a location that they leave to the next one
    "location": {
        "bdv": "n5zarr.store.bdv_xml:locate",
        "zarr": "n5zarr.store.ome_place:locate",
    },
    # functions of a path and a path in the file that return a `SourceTree`, or None likewise
    "source file": {
        "hdf5": "n5zarr.other_sources.hdf5:hdf5_tree",
        "tiff": "n5zarr.other_sources.tiff:tiff_tree",
    },
    "step": {
        "elements of label multisets": "n5zarr.paintera.label_multisets:labels_to_write",
        "create label multisets": "n5zarr.paintera.label_multisets:make_multisets",
        "convert to label sources": "n5zarr.paintera.convert:as_paintera",
        "copy label multisets": "n5zarr.paintera.copying:MultisetCopy",
        "levels of label multisets": "n5zarr.paintera.pyramid:MultisetPass",
        "describe a label source": "n5zarr.paintera.pyramid:describe_labels",
    },
}


def added(point: Point, name: str) -> Any:  # noqa: ANN401 - what the room adds
    """Return what a room adds at a point of extension; None if the room is not there.

    Examples
    --------
    >>> added("source file", "tiff").__name__, added("source file", "png")
    ('tiff_tree', None)
    """
    where = ADDED[point].get(name)
    if where is None:
        return None
    module, _, attribute = where.partition(":")
    package = module.rpartition(".")[0]
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as err:
        if err.name not in (package, module):
            raise
        return None


def needed(point: Point, name: str) -> Any:  # noqa: ANN401 - what the room adds
    """Return what a room adds at a point of extension, which must be there.

    Raises
    ------
    N5UnsupportedError
        The room is not there (``kind="option"``).
    """
    found = added(point, name)
    if found is None:
        room = ADDED[point][name].split(".")[1]
        message = f"{name}: expected the package n5zarr.{room}, which this copy of n5zarr lacks"
        raise N5UnsupportedError(message, kind="option")
    return found
