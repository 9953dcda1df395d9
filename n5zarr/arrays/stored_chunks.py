"""Find out which chunks of an array are stored, whatever its format."""

from __future__ import annotations

import sys
from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.storage import LocalStore, MemoryStore, ZipStore
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import StoredChunks, TouchedBoxes, n_boxes, places_in, touched_boxes
from n5zarr.arrays.open_dataset import blocks_of_array
from n5zarr.container.block_listing import Ask, stored_rows
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.order import N5Tuple
from n5zarr.storage.url import is_of_one_key
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ChunkNames

FEW = 64
"""Units that are tried one by one instead of being listed."""

_LISTING = (N5Store, LocalStore, MemoryStore, ZipStore)  # those which raise if they cannot list
_KEYS = 2**12  # that are in memory at once


def stored_chunks(values: object, within: Sequence[slice] | None = None) -> StoredChunks | None:
    """List the chunks of an array that are stored, some at a time.

    Blocks of N5 come in their order, and chunks of Zarr in that of the store.

    Parameters
    ----------
    values : object
        An array of Zarr or h5py, or an object with a method of this name and parameter.
    within : sequence of slice, optional
        The elements whose chunks suffice, with start and stop; others may be listed, too.

    Returns
    -------
    StoredChunks or None
        None if nothing says which chunks are stored, or storage does not list them: then any may
        be.
    """
    if isinstance(values, zarr.Array):
        listing = _of_blocks(values, within) or _of_keys(values)
    elif hasattr(values, "stored_chunks"):
        listing = values.stored_chunks(within)
    else:
        listing = _of_hdf5(values)
    if listing is None:
        return None
    rows = iter(listing.rows)
    try:
        first = next(rows, None)
    except Exception as err:
        cannot_list = isinstance(err, N5UnsupportedError | NotImplementedError)
        if not (cannot_list or is_of_one_key(err)):
            raise
        return None
    if first is not None:
        return listing._replace(rows=chain([first], rows))
    # a web server without lists looks like an array without chunks, but for its document
    is_sure = (
        not isinstance(values, zarr.Array)
        or isinstance(values.store, _LISTING)
        or any(each_key(values.store, values.path))
    )
    return listing._replace(rows=()) if is_sure else None


def stored_boxes(
    shape: Sequence[int], steps: Sequence[Sequence[int]], arrays: Sequence[object]
) -> TouchedBoxes | None:
    """Find the boxes of a grid that touch a stored chunk of any of some arrays of one shape.

    Parameters
    ----------
    shape, steps : sequence
        As of :func:`~n5zarr.arrays.boxes.touched_boxes`.
    arrays : sequence of object
        The arrays, as :func:`stored_chunks` takes them.

    Returns
    -------
    TouchedBoxes or None
        None if there are few boxes, so that listing would take longer than reading, or if any
        array may have any chunk.
    """
    if n_boxes(shape, steps[0]) <= FEW:
        return None
    listings = []
    for values in arrays:
        listing = stored_chunks(values)
        if listing is None:
            return None
        listings.append(listing)
    return touched_boxes(shape, steps, listings)


def _of_blocks(values: AnyArray, within: Sequence[slice] | None) -> StoredChunks | None:
    """List the blocks of an array that is a dataset."""
    found = blocks_of_array(values)
    if found is None or found.view.shape != values.shape:
        return None
    return stored_blocks(found.store.run, found.path, found.view, within)


def stored_blocks(
    ask: Ask, path: str, view: DatasetView, within: Sequence[slice] | None = None
) -> StoredChunks:
    """List the blocks of a dataset as chunks of its array; see :func:`stored_chunks`."""
    part = None  # of the grid
    if within is not None:
        grid = [*map(range, view.dataset.grid)]
        part = list(view.with_other_axes([*places_in(within, view.chunk_shape)], grid))
    axes = list(view.presented(N5Tuple(tuple(range(view.dataset.ndim)))))
    rows = stored_rows(ask, path, view.dataset.grid, part)
    return StoredChunks(view.chunk_shape, (some[:, axes] for some in rows))


def _of_keys(values: AnyArray) -> StoredChunks | None:
    """List the keys of the chunks, or shards, of an array of Zarr."""
    try:
        unit = values.shards or values.chunks
        names = ChunkNames.of(values.metadata.to_dict())
    except (NotImplementedError, N5UnrepresentableError):  # chunks of several sizes, unknown keys
        return None
    if not values.store.supports_listing:
        return None
    return StoredChunks(unit, _rows_of_keys(values, unit, names))


def _rows_of_keys(
    values: AnyArray, unit: tuple[int, ...], names: ChunkNames
) -> Iterator[np.ndarray]:
    grid = [-(-n // max(1, size)) for n, size in zip(values.shape, unit, strict=True)]
    dtype = np.min_scalar_type(-max(grid, default=1))
    for keys in each_key(values.store, values.path):
        # Zarr v2 names the chunk of an array without axes "0"
        coords = [c if grid else () for c in map(names.coords, keys) if c is not None]
        coords = [c for c in coords if len(c) == len(grid)]
        inside = [c for c in coords if all(p < n for p, n in zip(c, grid, strict=True))]
        if inside:
            yield np.array(inside, dtype).reshape(len(inside), len(grid))


def _of_hdf5(dataset: Any) -> StoredChunks | None:  # noqa: ANN401 - h5py has no types
    """List the chunks of a dataset of h5py that have space in the file; None for other objects."""
    h5py = sys.modules.get("h5py")
    if h5py is None or not isinstance(dataset, h5py.Dataset) or dataset.chunks is None:
        return None
    if dataset.id.get_create_plist().get_fill_time() == h5py.h5d.FILL_TIME_NEVER:
        return None  # what is missing has any value
    if not hasattr(dataset.id, "chunk_iter"):  # older libraries take time squared
        return None
    corners = array("q")
    dataset.id.chunk_iter(lambda chunk: corners.extend(chunk.chunk_offset))
    rows = np.frombuffer(corners, np.int64).reshape(-1, len(dataset.chunks))
    return StoredChunks(dataset.chunks, [rows // dataset.chunks] if len(rows) else [])


def each_key(store: Store, path: str) -> Iterator[list[str]]:
    """List all keys below a path, relative to it, some at a time."""
    prefix = f"{path}/" if path else ""
    keys = store.list_prefix(prefix)
    while some := sync(_next(keys)):
        yield [key.removeprefix(prefix) for key in some]


async def _next(keys: AsyncIterator[str]) -> list[str]:
    found: list[str] = []
    async for key in keys:
        found.append(key)
        if len(found) == _KEYS:
            break
    return found
