"""Open the location that is served, once, and find its images when they are first needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from zarr.storage import StorePath

from n5zarr.container.walk import Walk
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.path import join
from n5zarr.images.find import images_in
from n5zarr.images.from_n5 import n5_tree
from n5zarr.images.image import Images
from n5zarr.shown.made_datasets import MadeDatasets
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.confined import ConfinedStore, is_confined
from n5zarr.storage.place import Place, place_of
from n5zarr.store.locating import locate
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ZarrFormat

_MOST_NODES = 1000  # looked at to find a dataset


class ServedLocation:
    """A location to serve, read only; local files outside the container are never read.

    Parameters
    ----------
    place : Place
        A container, a group or dataset in one, OME-Zarr, or the XML of BigDataViewer or
        BigStitcher.
    labels : sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.

    Attributes
    ----------
    store : N5Store
        The container, with n5zarr's own codec, as Zarr v3.
    path : str
        The node in it that is served; ``""`` is the root.
    document : Document or None
        The document that names the container, if the location is one.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        The location is outside the container, behind a link in it (``kind="path"``).
    """

    def __init__(self, place: Place, *, labels: Sequence[str] = ()) -> None:
        with asking_once():
            located = locate(place)
            self.document = located.document
            with located.named():
                store, self.path = located.open(writes=False)
                existing_node(store, self.path)
        root = store.storage.root
        if root is not None and not is_confined(str(root), self.path):
            real = os.path.realpath(root / self.path)
            raise N5UnrepresentableError(
                f"expected no link out of the container, got one; serve {real} itself",
                kind="path",
                where=join(str(root), self.path),
            )
        kept = store.storage.store if root is None else ConfinedStore(Path(root))
        kept = kept.confined() if isinstance(kept, MadeDatasets) else kept
        self.store = N5Store(kept, codecs="n5", zarr_format=3, read_only=True)
        self._labels = tuple(labels)
        self._lock = threading.Lock()
        self._images: dict[ZarrFormat, Images | N5UnrepresentableError] = {}

    def __str__(self) -> str:
        return str(self.document) if self.document else join(str(self.store), self.path)

    @property
    def place(self) -> StorePath:
        """The location as other functions take it, also without files outside the container."""
        return StorePath(self.store.storage.store, self.path)

    def first_dataset(self) -> str | None:
        """Return the path, below this location, of the first dataset; None if there is none."""
        walk = Walk(self.store.container.nodes, self.store.run)
        node = self.store.node(self.path)
        for found, _ in islice(walk.run(self.path, node) if node else (), _MOST_NODES):
            if isinstance(found.node, DatasetView):
                return found.path.removeprefix(self.path).lstrip("/")
        return None

    def images(self, zarr_format: ZarrFormat = 3) -> Images:
        """Find the images, once: later calls return them as they were then.

        The first call reads all documents, which takes long in a large container.

        Parameters
        ----------
        zarr_format : {3, 2}, optional
            The format of their encoded chunks.

        Raises
        ------
        N5UnrepresentableError
            There is no image (``kind="option"``).
        """
        with self._lock, asking_once():
            if zarr_format not in self._images:
                try:
                    tree = n5_tree(place_of(self.place), zarr_format)
                    tree = replace(tree, document=self.document)
                    self._images[zarr_format] = images_in(tree, labels=self._labels)
                except N5UnrepresentableError as err:
                    self._images[zarr_format] = err
            images = self._images[zarr_format]
        if isinstance(images, N5UnrepresentableError):
            raise images
        return images
