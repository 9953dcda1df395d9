"""Prepare what jobs read: walk over nodes, make tasks of blocks, choose how arrays are read."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import batched
from operator import ge
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import zarr
from zarr.abc.store import SupportsSyncStore

from n5zarr._zarr import with_zarrs_pipeline
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.container.block_listing import Ask, stored_positions
from n5zarr.container.options import require
from n5zarr.container.walk import Walk, WalkNode
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource
from n5zarr.storage.interface import Storage
from n5zarr.storage.place import Place
from n5zarr.storage.requests import Ends, Steps, request_each
from n5zarr.store.locating import locate
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.run import SMALL
from n5zarr.zarr_view.dataset_view import DatasetView

_log = logging.getLogger(__name__)

_ANY_LENGTH = "OT"  # kinds of numpy's data types
ENDS = 4096  # bytes at either end of a block that are read unless it is decoded


def check_no_links(storage: Storage, paths: Iterable[str]) -> None:
    """Raise if a node to be removed is a link: its files are those of another place.

    Raises
    ------
    N5UnrepresentableError
        A node is a link (``kind="option"``).
    """
    root = storage.root
    for path in paths if root is not None else ():
        place = Path(str(root), path)
        require(
            not (place.is_symlink() or place.is_junction()),
            f"{place}: expected a directory to remove, got a link to {place.resolve()}; remove the "
            "link first",
        )


def walk(store: N5Store, path: str, ask: Ask | None = None) -> Iterator[WalkNode]:
    """Yield a node and all nodes below it.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        The node.
    ask : callable, optional
        Runs a flow; by default that of the container.

    Raises
    ------
    FileNotFoundError
        The node does not exist.
    """
    node = existing_node(store, path)
    for found, _ in Walk(store.container.nodes, ask or store.run).run(path, node):
        yield found


type EdgeForm = Literal["padded", "truncated", "other"]
"""Storage of a block at the end of the dataset: full size, truncated, or another size."""


class BlockTask(NamedTuple):
    """Some stored blocks of a dataset that a worker handles together.

    Parameters
    ----------
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset.
    positions : tuple of tuple of int
        Grid positions of the blocks, N5 order.
    """

    path: str
    view: DatasetView
    positions: tuple[N5Tuple, ...]

    @property
    def keys(self) -> list[str]:
        """The keys of the blocks."""
        return [join(self.path, block_path(position)) for position in self.positions]

    @property
    def n_bytes(self) -> int:
        """Size of the blocks, decoded and with their full extent."""
        return len(self.positions) * self.view.full_n_bytes

    @property
    def is_light(self) -> bool:
        """Whether the blocks are so small that the work on them is mostly that of Python."""
        return self.view.full_n_bytes <= SMALL


def block_tasks(store: N5Store, path: str, view: DatasetView, n: int) -> Iterator[BlockTask]:
    """List the stored blocks of a dataset, and yield tasks of at most ``n`` blocks."""
    n_blocks = 0
    for positions in batched(stored_positions(store.run, path, view.dataset.grid), n):
        n_blocks += len(positions)
        yield BlockTask(path, view, positions)
    _log.info("%s: /%s: %d blocks", store, path, n_blocks)


def for_reading[T](values: T) -> T:
    """Return an array of plain Zarr with zarr's synchronous pipeline; others as they are.

    zarr's default pipeline runs a task of an event loop for each chunk. Where stores need none,
    this one reads small chunks in a quarter of the time.
    """
    if not isinstance(values, zarr.Array) or isinstance(values.store, N5Store):
        return values
    return with_zarrs_pipeline(values) if isinstance(values.store, SupportsSyncStore) else values


def count_blocks(array: ArraySource) -> tuple[int | None, int | None]:
    """Count the blocks, chunks or shards of the grid, and those that are stored.

    None if the storage does not tell.
    """
    listing = stored_chunks(array.values)
    if listing is None:
        return None, None
    each = zip(array.shape, listing.unit, strict=True)
    return math.prod(-(-n // max(1, own)) for n, own in each), sum(map(len, listing.rows))


def name_of_type(dtype: np.dtype[Any]) -> str:
    """Name a data type without its byte order: formats store different ones."""
    return str(dtype if dtype.kind in _ANY_LENGTH else dtype.newbyteorder("="))


# ---------------------------------------------------------------------- repairs


def open_to_repair(place: Place, path: str) -> tuple[N5Store, str]:
    """Open a container, or the one that an XML names, to change files; raise if it is read-only."""
    located = locate(place, path)
    with located.named():
        return located.open(writes=True)


def read_ends(keys: Sequence[str]) -> Steps[Sequence[tuple[int, bytes, bytes] | None]]:
    """Read size, first and last bytes of some keys; None for each missing one."""
    return (yield from request_each(Ends(key, ENDS, ENDS) for key in keys))


def form_of(sizes: N5Tuple, dataset: DatasetAttributes, position: N5Tuple) -> EdgeForm | None:
    """Tell how a block at the end of the dataset is stored; None for a block inside it."""
    extent = dataset.extent_of(position)
    if extent == dataset.block_size:
        return None
    if sizes == extent:
        return "truncated"
    return "padded" if all(map(ge, sizes, extent)) else "other"


def has_values_outside(elements: np.ndarray, extent: N5Tuple) -> bool:
    """Whether the elements of a block outside of the dataset differ from each other.

    Programs pad with one value, mostly 0.

    Parameters
    ----------
    elements : numpy.ndarray
        The block, shape in C order.
    extent : tuple of int
        The part of it inside the dataset, N5 order.
    """
    is_outside = np.ones(elements.shape, bool)
    is_outside[tuple(map(slice, to_c(extent)))] = False
    outside = elements[is_outside]
    return bool(outside.size) and outside.tobytes() != outside[:1].tobytes() * outside.size
