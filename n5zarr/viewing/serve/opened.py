"""Hold the served location in a container, opened once, and its images, read on request."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from zarr.storage import StorePath

from n5zarr.container.walk import Walk
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.path import join
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.confined import ConfinedStore, is_confined
from n5zarr.storage.place import place_of
from n5zarr.store.bdv_xml import project_or_container
from n5zarr.store.missing_nodes import not_found
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.from_n5 import n5_tree
from n5zarr.tools.convert.ome_tree import as_ome
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.storage.place import Place
    from n5zarr.tools.convert.source import SourceTree

__all__ = ["Opened"]

_NODES = 1000  # that are looked at for an example


class Opened:
    """A location that is served, read only; of local files none outside of the container is read.

    Parameters
    ----------
    place : Place
        A container, a group or dataset in one, or the XML of BigDataViewer or BigStitcher.
    labels : sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.

    Attributes
    ----------
    store : N5Store
        The container, with n5zarr's own codec, as Zarr v3.
    path : str
        The node in it that is served; ``""`` is the root.
    project : Project or None
        What the XML says, if the location is one.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        A link leads from the container to the location, which is outside (``kind="path"``).
    """

    def __init__(self, place: Place, *, labels: Sequence[str] = ()) -> None:
        with asking_once(), project_or_container(place, read_only=True) as found:
            self.project, opened, self.path = found
            if opened.node(self.path) is None:
                raise not_found(opened, self.path)
        root = opened.storage.root
        if root is not None and not is_confined(str(root), self.path):
            real = os.path.realpath(root / self.path)
            message = f"expected no link out of the container, got one; serve {real} itself"
            raise N5UnrepresentableError(message, kind="path", where=join(str(root), self.path))
        kept = opened.storage.store if root is None else ConfinedStore(Path(root))
        self.store = N5Store(kept, codecs="n5", zarr_format=3, read_only=True)
        self._labels = tuple(labels)
        self._lock = threading.Lock()
        self._tree: SourceTree | N5UnrepresentableError | None = None

    def __str__(self) -> str:
        return str(self.project.file) if self.project else join(str(self.store), self.path)

    @property
    def place(self) -> StorePath:
        """The location for all functions that take one, confined as this is."""
        return StorePath(self.store.storage.store, self.path)

    def first_dataset(self) -> str | None:
        """Return the path, below this location, of the first dataset; None if there is none."""
        walk = Walk(self.store.container.nodes, self.store.ask)
        node = self.store.node(self.path)
        for found, _ in islice(walk.run(self.path, node) if node else (), _NODES):
            if isinstance(found.node, DatasetView):
                return found.path.removeprefix(self.path).lstrip("/")
        return None

    def tree(self) -> SourceTree:
        """Return the images as OME-Zarr has them, as they were when this was first asked.

        It reads every document, which may take long in a large container.

        Raises
        ------
        N5UnrepresentableError
            There is no image (``kind="option"``).
        """
        with self._lock, asking_once():
            if self._tree is None:
                try:
                    tree = replace(n5_tree(place_of(self.place)), project=self.project)
                    self._tree = as_ome(tree, labels=self._labels)
                except N5UnrepresentableError as err:
                    self._tree = err
        if isinstance(self._tree, N5UnrepresentableError):
            raise self._tree
        return self._tree
