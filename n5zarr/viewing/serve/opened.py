"""What is served: a location in a container, opened once, and its images, found when asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from zarr.storage import StorePath

from n5zarr.format.path import join
from n5zarr.store.location import open_container
from n5zarr.viewing.images import open_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.storage.place import Location
    from n5zarr.tools.convert.source import SourceTree

__all__ = ["Opened"]


class Opened:
    """A location that is served, read only."""

    def __init__(
        self,
        location: Location,
        storage_options: Mapping[str, object] | None = None,
        *,
        labels: Sequence[str] = (),
    ) -> None:
        self.store, self.path = open_container(
            location, storage_options=storage_options, read_only=True
        )
        self.project = None
        self._given = location, labels, storage_options
        self._lock = threading.Lock()
        self._tree: SourceTree | None = None

    def __str__(self) -> str:
        return join(str(self.store), self.path)

    @property
    def place(self) -> StorePath:
        """The location for all functions that take one."""
        return StorePath(self.store.storage.store, self.path)

    def tree(self) -> SourceTree:
        """Return the images as OME-Zarr has them."""
        with self._lock:
            if self._tree is None:
                location, labels, options = self._given
                self._tree = open_tree(location, labels=labels, storage_options=options)
            return self._tree
