"""``n5zarr.stored_blocks``: yield where the blocks of an array are, or those that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Unpack

import numpy as np
import zarr
from zarr.types import AnyArray

from n5zarr.arrays.boxes import StoredChunks, box_at, touched_boxes
from n5zarr.arrays.open_dataset import OpenDataset, blocks_of_array
from n5zarr.arrays.opening import ArrayOptions, open_array
from n5zarr.arrays.stored_chunks import each_key, stored_chunks
from n5zarr.container.block_listing import blocks_by_prefix
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.grid import parse_block_path
from n5zarr.format.path import join
from n5zarr.storage.place import Location


def stored_blocks(
    location: Location | AnyArray,
    path: str = "",
    *,
    missing: bool = False,
    slices: bool = False,
    **options: Unpack[ArrayOptions],
) -> Iterator[tuple[Any, ...]]:
    """Yield where the blocks of an array are that exist, while storage lists them.

    Of an array of Zarr, these are its chunks, or its shards if it has them. zarr stores a block
    that holds only the fill value if ``write_empty_chunks`` is set. Only fsspec lists all before
    the first one comes.

    Parameters
    ----------
    location : path, URL, zarr store or zarr.Array
        A location of a dataset, or any array of Zarr, of whatever store.
    path : str, optional
        Dataset below ``location``.
    missing : bool, optional
        Yield the other blocks of the grid instead, in order, the last axis fastest. They are known
        when all that exist are listed: then memory holds the positions of these, as small integers.
    slices : bool, optional
        Yield the elements of each block that are inside of the array.
    **options : optional
        Those of :func:`n5zarr.open_array`.

    Yields
    ------
    tuple of int, or of slice
        The position of a block in the grid, in the order of the array: ``array.blocks[position]``.
        With ``slices``, start and stop along each axis, in elements: ``array[box]``. In the order
        of storage.

    Raises
    ------
    FileNotFoundError
        The container or dataset does not exist.
    N5UnrepresentableError
        The node is a group (``kind="option"``).
    N5BlockError
        The files are shards of Java's N5 (``kind="shard"``).
    N5UnsupportedError
        Storage does not list its keys, as most web servers, or you may not list them, or chunks
        have several sizes (``kind="listing"``).

    Examples
    --------
    >>> import n5zarr
    >>> array = n5zarr.open_array(n5zarr.sample_path(), path="em/s1")
    >>> next(n5zarr.stored_blocks(array, slices=True))
    (slice(0, 16, None), slice(0, 40, None), slice(0, 50, None))
    >>> list(n5zarr.stored_blocks(n5zarr.sample_path(), "em/s1", missing=True))
    []
    """
    if path or options or not isinstance(location, zarr.Array):
        location = open_array(location, path=path, **options)
    unit, listed = listing = _listed(location)
    if missing:
        boxes = touched_boxes(location.shape, [unit], [listing]).others()
        return (
            boxes
            if slices
            else (tuple(p.start // n for p, n in zip(box, unit, strict=True)) for box in boxes)
        )
    places = (tuple(row) for rows in listed for row in rows.tolist())
    return (box_at(place, unit, location.shape) for place in places) if slices else places


def _listed(array: AnyArray) -> StoredChunks:
    """List the blocks of an array; raise if nothing does."""
    found = blocks_of_array(array)
    if found is not None and found.view.shape == array.shape:
        with suppress(PermissionError):  # to list, as is said below
            found.check_missing()
            nothing = blocks_by_prefix(join(found.path, "-"), found.view.grid)
            if found.store.run(nothing) is not None:  # as objects, page by page
                return StoredChunks(found.view.chunk_shape, _rows(found))
    if (listing := stored_chunks(array)) is None:
        raise N5UnsupportedError(
            "listing: expected storage that lists its keys, also to you, and blocks of one size, "
            "got others; n5zarr.read_block(...) is None for a block that is missing",
            kind="listing",
            where=f"{array.store}: /{array.path}",
        )
    return listing


def _rows(found: OpenDataset) -> Iterator[np.ndarray]:
    """List the blocks of a dataset in the order of their keys, as pages of these come."""
    for keys in each_key(found.store.store, found.path):
        parsed = [parse_block_path(key, found.view.dataset.grid) for key in keys]
        rows = [found.view.presented(position) for position in parsed if position is not None]
        yield np.array(rows, np.int64).reshape(len(rows), found.view.ndim)
