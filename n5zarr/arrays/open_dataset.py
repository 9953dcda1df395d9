"""Datasets whose blocks the fast path reads and writes itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import lt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from zarr.abc.codec import GetResult
from zarr.types import AnyArray

from n5zarr._zarr import MISSING, PRESENT
from n5zarr.container.missing_blocks import check_missing
from n5zarr.format.compression import Raw
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.interface import Durability
from n5zarr.storage.requests import Steps
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ZarrFormat

if TYPE_CHECKING:
    from n5zarr._zarr import ArrayMetadata, ArraySpec

SMALL_BLOCK = 2**17
"""Bytes of an uncompressed block that one thread reads or writes faster than two."""

_SEPARATOR = re.compile(r"[/.]")


class OpenDataset(NamedTuple):
    """A dataset and its blocks.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Path of the dataset in the container.
    view : DatasetView
        The dataset as a Zarr array.
    """

    store: N5Store
    path: str
    view: DatasetView

    def __str__(self) -> str:
        return f"{self.store}: /{self.path}"

    @property
    def directory(self) -> str:
        """The local directory of the dataset, with a separator at its end."""
        root = self.store.root
        return f"{root}/{self.path}/" if self.path else f"{root}/"

    @property
    def durability(self) -> Durability:
        """The way to write blocks."""
        return self.store.storage.durability

    @property
    def is_worth_threads(self) -> bool:
        """Whether the work on a block outside the interpreter exceeds the cost of a thread."""
        is_raw = isinstance(self.view.dataset.compression, Raw)
        return not is_raw or self.view.full_n_bytes >= SMALL_BLOCK

    def holds(self, chunk_shape: tuple[int, ...], dtype: np.dtype) -> bool:
        """Whether the dataset, which may have been replaced, has an array's chunks and elements."""
        native = self.view.data_type.dtype.newbyteorder("=")
        return self.view.chunk_shape == chunk_shape and native == dtype.newbyteorder("=")

    def position(self, key: str) -> N5Tuple:
        """Return the grid position of the block of a chunk from the chunk's key."""
        return self.view.grid_position(chunk_coords(key, self.view.ndim))

    def check_missing(self, read: Sequence[int] | None = None) -> None:
        """Raise if blocks may be missing because the local files are shards; looks at one, once.

        ``read`` is the grid position of a block that was read, if it is there, N5 order.
        """
        plain = self.store.container.memory.plain
        if self.path in plain:
            return
        block = None if read is None else block_path(N5Tuple(tuple(map(int, read))))
        if block and Path(self.directory, block).exists():
            plain.add(self.path)
        else:
            self.store.run(check_missing(self.store.container.nodes, self.path))

    def checking(self, results: Sequence[GetResult | None]) -> Steps[None]:
        """Do the same for the results of a read; a block that was found is no shard."""
        if PRESENT in results:
            self.store.container.memory.plain.add(self.path)
        elif MISSING in results:
            yield from check_missing(self.store.container.nodes, self.path)

    def key(self, position: N5Tuple) -> str:
        """Return the key of a block in the container."""
        return join(self.path, block_path(position))

    def in_grid(self, position: N5Tuple) -> bool:
        """Whether the present grid of the dataset has a position."""
        return all(map(lt, position, self.view.grid))

    def extent(self, position: N5Tuple) -> N5Tuple:
        """Return the extent of the part of a block that is inside the dataset."""
        return self.view.dataset.extent_of(position)

    def where(self, position: N5Tuple) -> str:
        """Return the name of a block for messages: container, dataset and position."""
        return self.store.container.chunks.block_name(self.path, position)


def chunk_coords(key: str, ndim: int) -> tuple[int, ...]:
    """Parse the coordinates in Zarr's chunk grid at the end of a chunk's key.

    Examples
    --------
    >>> chunk_coords("em/s0/c/2/1/0", 3), chunk_coords("em/s0/2.1.0", 3)
    ((2, 1, 0), (2, 1, 0))
    """
    return tuple(map(int, _SEPARATOR.split(key)[-ndim:]))


def fill_value_of(array: ArraySpec | ArrayMetadata) -> object:
    """Return the value of the elements of missing blocks, from the description of an array."""
    value: object = array.fill_value
    return 0 if value is None else value


def is_local(store: N5Store) -> bool:
    """Whether a container is in local files."""
    return store.storage.root is not None


def dataset_of_array(
    array: AnyArray,
    *,
    to_write: bool = False,
    is_anywhere: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> OpenDataset | None:
    """Return the dataset of an array if it is local and its blocks hold the array's elements.

    Parameters
    ----------
    array : zarr.Array
        Any array.
    to_write : bool, optional
        Whether blocks are to be written; its document is then read again.
    is_anywhere : bool, optional
        Whether the dataset may be elsewhere, if threads can wait for its blocks.
    tell : callable, optional
        Takes the reason if there is none.
    """
    store = array.store
    if not to_write and not array.config.read_missing_chunks:
        reason = "missing blocks are errors"
    elif not isinstance(store, N5Store) or not (
        is_local(store) or (is_anywhere and store.storage.get_waiting is not None)
    ):
        reason = "the container is not in local files"
    elif to_write and store.read_only:
        reason = "the store is read only"
    else:
        zarr_format = array.async_array.metadata.zarr_format
        dataset = store.run(dataset_at(store, array.path, zarr_format, anew=to_write))
        if dataset is not None and dataset.holds(array.chunks, array.dtype):
            return dataset
        reason = "the dataset with these chunks and elements no longer exists"
    tell(reason)
    return None


def blocks_of_array(array: AnyArray) -> OpenDataset | None:
    """Return the dataset whose blocks are the chunks, or shards, of an array; None if none is."""
    store = array.store
    if not isinstance(store, N5Store):
        return None
    zarr_format = array.async_array.metadata.zarr_format
    found = store.run(store.dataset_of(array.path, zarr_format, as_blocks=True))
    return None if found is None else OpenDataset(store, *found)


def dataset_at(
    store: N5Store, path: str, zarr_format: ZarrFormat, *, anew: bool = False
) -> Steps[OpenDataset | None]:
    """Read the dataset of an array, if its blocks hold the elements of the array unchanged.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Path of the array in the store.
    zarr_format : {2, 3}
        Format of the array.
    anew : bool, optional
        Whether to read the document again: another program may have resized the dataset.

    Returns
    -------
    OpenDataset or None
        None for an array that zarr itself has to read or write.
    """
    dataset = yield from store.dataset_of(path, zarr_format, anew=anew)
    return None if dataset is None else OpenDataset(store, *dataset)
