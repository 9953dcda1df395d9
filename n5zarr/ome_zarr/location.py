"""Recognise OME-Zarr at a location, and show it as N5 to read it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

import zarr
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.container.foreign import read_node_of_any, read_zarr_node
from n5zarr.conventions.model import mapping
from n5zarr.format.foreign import ZARR_DOCUMENTS, Foreign
from n5zarr.format.path import groups_above, join, normalize_path
from n5zarr.images.ome_documents import is_cosem, ome_part, scene_in
from n5zarr.ome_zarr.shown_as_n5 import OmeImages
from n5zarr.shown.made_datasets import MadeDatasets
from n5zarr.storage.interface import Storage
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.storage.requests import read_each
from n5zarr.storage.url import is_chain
from n5zarr.store.locating import Located
from n5zarr.store.location import named_root, split_at_topmost
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.keys import ZarrFormat

_PARTS = ("multiscales", "bioformats2raw.layout", "plate", "well", "labels", "series")
_MOST_ABOVE = 8  # groups above a location that are looked at


def locate(place: Place, path: str = "") -> Located | None:
    """Show a location of OME-Zarr as one of N5, read only; None if there is anything else.

    The root is the first path element that ends in ``.zarr``. Without one, it is the topmost
    directory of an unbroken chain, from the location upwards, in which each is a node of Zarr. A
    level may be named as in Zarr or as in N5.

    Parameters
    ----------
    place : Place
        A hierarchy of OME-Zarr or a location in it, or anything else.
    path : str, optional
        Node below it.
    """
    found = find_ome(place, path)
    if found is None:
        return None
    images = found.images()
    return Located("ome-zarr", Place(images), sync(images.n5_path(found.path)))


class OmeLocation(NamedTuple):
    """A location in a hierarchy of OME-Zarr.

    Parameters
    ----------
    storage : Storage
        The keys of the hierarchy.
    path : str
        The node in it.
    zarr_format : {3, 2}
        The format of its documents.
    """

    storage: Storage
    path: str
    zarr_format: ZarrFormat

    def images(self) -> OmeImages:
        """Return the hierarchy as a container of N5."""
        store = self.storage.store
        if not store.read_only:  # else the store of local files would create a missing directory
            store = store.with_read_only(read_only=True)
        return OmeImages(store, str(self.storage), self.zarr_format)

    def array(self, path: str) -> AnyArray:
        """Open an array of the hierarchy to read it."""
        return zarr.open_array(
            StorePath(self.storage.store, path), mode="r", zarr_format=self.zarr_format
        )

    def is_ome(self) -> bool:
        """Whether the node, or a group above it, has metadata of OME-Zarr."""
        paths = [self.path, *reversed(groups_above(self.path))][:_MOST_ABOVE]
        keys = [join(each, name) for each in paths for name in ("zarr.json", ".zattrs")]
        for document in self.storage.run(read_each(keys)):
            try:
                parsed = mapping(json.loads(bytes(document or b"")))
            except ValueError:
                continue
            attributes = mapping(parsed.get("attributes")) if "zarr_format" in parsed else parsed
            has_part = any(ome_part(attributes, part) is not None for part in _PARTS)
            if (has_part and not is_cosem(attributes)) or scene_in(attributes):
                return True
        return False


def find_ome(place: Place, path: str = "", *, read_only: bool = True) -> OmeLocation | None:
    """Find the hierarchy of OME-Zarr at a location; None if there is anything else.

    Parameters
    ----------
    place, path
        As for :func:`locate`.
    read_only : bool, optional
        Whether a store that is opened for a URL refuses to write.
    """
    if isinstance(place.location, N5Store | MadeDatasets) or place.is_named("n5"):
        return None
    if isinstance(place.location, str) and is_chain(place.location):
        return None
    place = replace(place, path=normalize_path(place.path))
    # the lowest directory may be a level by its name in N5
    root = named_root(place, "zarr") or split_at_topmost(place, ZARR_DOCUMENTS, or_above=True)
    storage = open_storage(replace(root, path=""), read_only=read_only)
    node = join(root.path, normalize_path(path))
    found = _node_of(storage, node)
    if found is None or found.zarr_format is None:
        return None
    location = OmeLocation(storage, node, found.zarr_format)
    return location if location.is_ome() else None


def _node_of(storage: Storage, path: str) -> Foreign | None:
    """Recognise a node of Zarr; of an image or a level by its name in N5, the group."""
    is_n5, found = storage.run(read_node_of_any(path, str(storage)))
    for above in groups_above(path)[:-3:-1]:
        found = found or (None if is_n5 else storage.run(read_zarr_node(above, str(storage))))
    return found
