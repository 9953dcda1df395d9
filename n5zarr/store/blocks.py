"""Read one block of a dataset as it is stored, header included."""

from __future__ import annotations

from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.codecs.block import Block, parse_block
from n5zarr.container.nodes import read_document
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    DatasetAttributes,
    GroupAttributes,
    parse_attributes,
)
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.requests import read_key
from n5zarr.store.location import open_container

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.storage.place import Location
    from n5zarr.store.n5_store import N5Store

__all__ = ["read_block"]


def read_block(store: Location, path: str, grid_position: Sequence[int]) -> Block | None:
    """Read one block of a dataset as it is stored, whatever its mode.

    N5 spec, "File-system specification", items 5, 6 and 9: the block's file, which may be missing,
    and its format.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or a location in one.
    path : str
        Path of the dataset below ``store``.
    grid_position : sequence of int
        Position of the block in the grid, N5 order (x first).

    Returns
    -------
    Block or None
        Header and flat data: numbers, strings, or the bytes of an object; None where the block is
        missing.

    Raises
    ------
    FileNotFoundError
        No dataset is at the path.
    N5Error
        The dataset or the block is broken or not supported.

    Examples
    --------
    >>> import n5zarr
    >>> block = n5zarr.read_block(n5zarr.sample_path(), "em/s2", (0, 0, 0))
    >>> block.header.block_shape, block.data.dtype
    ((32, 24, 10), dtype('uint8'))
    """
    opened, node = open_container(store, path)
    where = f"{opened}: {node or '/'}"
    dataset = _read_attributes(opened, node, where)
    if isinstance(dataset, GroupAttributes):
        message = f"{where}: expected a dataset, got a group or nothing"
        raise FileNotFoundError(message)
    position = N5Tuple(tuple(map(index, grid_position)))
    if len(position) != dataset.ndim or any(p < 0 for p in position):
        message = f"grid position: expected {dataset.ndim} integers >= 0, got {position}"
        raise N5UnrepresentableError(message, kind="option", where=where)
    data = opened.ask(read_key(join(node, block_path(position))))
    if data is None:
        return None
    try:
        block = parse_block(memoryview(data), dataset.ndim, dataset.data_type, dataset.compression)
    except N5Error as err:
        raise err.located(f"{where}: block {block_path(position)}") from err.__cause__
    if dataset.numpy_type is not None and isinstance(block.data, np.ndarray):
        return replace(block, data=block.data.view(dataset.numpy_type))
    return block


def _read_attributes(opened: N5Store, node: str, where: str) -> DatasetAttributes | GroupAttributes:
    """Read and parse the document of a node."""
    try:
        return parse_attributes(opened.ask(read_document(node)))
    except N5Error as err:
        raise err.located(f"{where}: {ATTRIBUTES_JSON}") from err.__cause__
