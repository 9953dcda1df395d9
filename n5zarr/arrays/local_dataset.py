"""Datasets in local files, whose blocks the fast path reads and writes by their paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from n5zarr.format.grid import block_extent
from n5zarr.format.order import from_presented
from n5zarr.store.n5_store import N5Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from n5zarr.storage.interface import Durability
    from n5zarr.zarr_view.dataset_view import DatasetView

__all__ = ["LocalDataset", "local_dataset"]


class LocalDataset(NamedTuple):
    """A dataset in local files, and how the keys of its chunks become paths of its blocks.

    Parameters
    ----------
    directory : str
        Of the dataset, with a separator at its end.
    n_prefix : int
        How many characters of a chunk's key come before its coordinates.
    view : DatasetView
        How the dataset is shown.
    locate : callable
        Names the block of a chunk's key, for messages.
    durability : {"atomic", "durable", "overwrite"}
        How blocks are written.
    warn : callable
        Takes messages for the user.
    """

    directory: str
    n_prefix: int
    view: DatasetView
    locate: Callable[[str], str]
    durability: Durability
    warn: Callable[[str], None]

    def block_path(self, key: str) -> str:
        """Return the path of the block of a chunk."""
        coords = key[self.n_prefix :].split("/")
        return self.directory + "/".join(from_presented(coords, self.view.axis_order))

    def extent(self, key: str) -> tuple[int, ...]:
        """Return what of a chunk lies inside the dataset, in the order that is shown."""
        coords = tuple(map(int, key[self.n_prefix :].split("/")))
        position = self.view.grid_position(coords)
        dataset = self.view.dataset
        return self.view.presented(block_extent(dataset.dimensions, dataset.block_size, position))


def local_dataset(store: object, key: str, *, to_write: bool = False) -> LocalDataset | None:
    """Read the dataset of a chunk, if it is one of whole blocks in local files.

    Parameters
    ----------
    store : zarr.abc.store.Store
        Of the chunk.
    key : str
        Of the chunk.
    to_write : bool, optional
        Whether blocks will be written. The document is read again then: others may have made the
        dataset larger.

    Returns
    -------
    LocalDataset or None
        None for a store, or an array, that zarr's own way has to read or write.
    """
    if not isinstance(store, N5Store) or (to_write and store.read_only):
        return None
    root = store.storage.root
    if root is None or store.coords:
        return None
    dataset = store.run_sync(store.container.dataset_of(key, anew=to_write))
    if dataset is None:
        return None
    path, view = dataset
    directory = f"{root}/{path}/" if path else f"{root}/"
    return LocalDataset(
        directory=directory,
        n_prefix=len(f"{path}/c/".lstrip("/")),
        view=view,
        locate=store.locate,
        durability=store.durability,
        warn=store.container.warn,
    )
