"""Read and write one block of a dataset as it is stored, header included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import index

import numpy as np
import numpy.typing as npt

from n5zarr.codecs.block import Block, format_block, header_error, parse_block
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.shard import check_not_sharded
from n5zarr.container.nodes import read_document
from n5zarr.container.options import require
from n5zarr.errors import ErrorsAt, N5UnrepresentableError
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    DatasetAttributes,
    GroupAttributes,
    parse_attributes,
)
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import block_path
from n5zarr.format.order import CTuple, N5Tuple, to_n5
from n5zarr.format.path import join
from n5zarr.storage.not_found import NotFoundError
from n5zarr.storage.place import Location, place_of
from n5zarr.storage.requests import Put, read_key, request_each
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import datasets_below, existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.store.shown_store import check_stored


def read_block(location: Location, path: str, grid_position: Sequence[int]) -> Block | None:
    """Read one block of a dataset as it is stored, whatever its mode.

    N5 spec, "File-system specification", items 5, 6 and 9: the block's file, which may be missing,
    and its format.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str
        Path of the dataset below ``location``.
    grid_position : sequence of int
        Grid position of the block, N5 order (x first).

    Returns
    -------
    Block or None
        Header and flat data: numbers, strings, or the bytes of an object; None if the block is
        missing.

    Raises
    ------
    FileNotFoundError
        No dataset exists at the path.
    N5Error
        The dataset or the block is broken or not supported.

    Examples
    --------
    >>> import n5zarr
    >>> block = n5zarr.read_block(n5zarr.sample_path(), "em/s2", (0, 0, 0))
    >>> block.header.block_shape, block.data.dtype
    ((32, 24, 10), dtype('uint8'))
    """
    store, dataset, key, where = _find(location, path, grid_position, read_only=True)
    data = store.run(read_key(key))
    if data is None:
        return None
    with ErrorsAt(where):
        block = parse_block(memoryview(data), dataset.ndim, dataset.data_type, dataset.compression)
    if dataset.numpy_type is not None and isinstance(block.data, np.ndarray):
        return replace(block, data=block.data.view(dataset.numpy_type))
    return block


def write_block(
    location: Location,
    path: str,
    grid_position: Sequence[int],
    data: Block | npt.ArrayLike | bytes,
    *,
    block_shape: Sequence[int] | None = None,
) -> None:
    """Write one block of a dataset, in any mode.

    N5 spec, "File-system specification", items 5 and 9. ``data`` may be the result of
    :func:`read_block`.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str
        Path of the dataset below ``location``.
    grid_position : sequence of int
        Grid position of the block, N5 order (x first).
    data : Block, array_like or bytes
        For numbers and strings, an array with the extent of the block, C order (z first). With
        ``block_shape``, flat elements, first axis of N5 order fastest; if their number does not
        match the extent, numbers are written in mode 1. For ``object``, the bytes.
    block_shape : sequence of int, optional
        Extent of the block in elements, N5 order.

    Raises
    ------
    FileNotFoundError
        No dataset exists at the path.
    N5UnrepresentableError
        The position is outside the grid (``kind="option"``), or the data do not have the data type
        of the dataset (``kind="data-type"``).
    N5Error
        The extent is larger than ``blockSize``, or the dataset is broken or not supported.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5")
    >>> array = n5zarr.create_array(where, path="a", shape=(5, 7), chunks=(2, 3), dtype="uint16")
    >>> n5zarr.write_block(where, "a", (1, 0), [[1, 2, 3], [4, 5, 6]])
    >>> array[:2, 3:].tolist()
    [[1, 2, 3, 0], [4, 5, 6, 0]]
    """
    store, dataset, key, where = _find(location, path, grid_position, read_only=False)
    with ErrorsAt(where):
        require(
            all(index(p) < n for p, n in zip(grid_position, dataset.grid, strict=True)),
            f"grid position: expected less than {dataset.grid}, got {grid_position}",
        )
        codec_of(dataset.compression).check_writable(dataset.compression)
        stored = _encoded(_checked(data, dataset, block_shape), dataset)
    data_type, compression = dataset.data_type, dataset.compression
    check = partial(
        check_not_sharded, data_type=data_type, compression=compression, where=lambda: where
    )
    store.run(request_each([Put(key, stored, check)]))


def _encoded(block: Block, dataset: DatasetAttributes) -> bytes:
    """Encode a block if its extent fits the dataset."""
    sizes = block.header.block_shape
    if dataset.data_type is not DataType.OBJECT and len(sizes) != dataset.ndim:
        raise header_error(f"expected {dataset.ndim} dimensions, got {len(sizes)}")
    if any(s > b for s, b in zip(sizes, dataset.block_size, strict=False)):
        raise header_error(f"expected at most {dataset.block_size}, got {sizes}")
    return format_block(block, dataset.data_type, dataset.compression)


def _checked(
    block: Block | npt.ArrayLike | bytes,
    dataset: DatasetAttributes,
    block_shape: Sequence[int] | None,
) -> Block:
    """Return a block with numbers converted to the dataset's type, other blocks unchanged."""
    if not isinstance(block, Block):
        return _block_of(block, dataset, block_shape)
    if dataset.data_type in (DataType.OBJECT, DataType.STRING):
        return block
    return replace(block, data=_numbers(block.data, dataset))


def _block_of(
    data: npt.ArrayLike | bytes, dataset: DatasetAttributes, block_shape: Sequence[int] | None
) -> Block:
    """Make a block from an array or from flat elements."""
    if dataset.data_type is DataType.OBJECT:
        if not isinstance(data, bytes | bytearray | memoryview):
            message = f"expected bytes for an object, got {type(data).__name__}"
            raise N5UnrepresentableError(message, kind="data-type")
        return Block(BlockHeader(mode=BlockMode.OBJECT, n_elements=len(data)), bytes(data))
    is_text = dataset.data_type is DataType.STRING
    array = np.asarray(data, object) if is_text else _numbers(data, dataset)
    shape = to_n5(CTuple(array.shape))
    if block_shape is not None:
        shape = N5Tuple(tuple(map(index, block_shape)))
        if min(shape, default=0) < 0:
            raise header_error(f"expected sizes of at least 1, got {shape}")
        if array.ndim != 1:
            raise header_error(f"expected flat elements with block_shape, got {array.shape}")
    flat = array.reshape(-1)
    if not is_text and len(flat) == math.prod(shape):
        return Block(BlockHeader(mode=BlockMode.DEFAULT, block_shape=shape), flat)
    n_elements = 0 if is_text else len(flat)  # encoding counts texts
    header = BlockHeader(mode=BlockMode.VARLENGTH, block_shape=shape, n_elements=n_elements)
    return Block(header, flat.tolist() if is_text else flat)


def _numbers(data: object, dataset: DatasetAttributes) -> np.ndarray:
    """Convert numbers to the data type of the dataset; raise if a value changes."""
    wanted = dataset.numpy_type or dataset.data_type.dtype
    given: np.ndarray = np.asarray(data)
    require(
        given.dtype.kind in "biuf" or given.dtype == wanted,
        f"expected elements of {wanted}, got {given.dtype}",
        kind="data-type",
    )
    with np.errstate(invalid="ignore", over="ignore"):
        numbers: np.ndarray = given.astype(wanted)
        # compare both ways: numpy compares integers with floats as floats; NaT does not equal NaT
        is_same = given.dtype == wanted or (
            np.array_equal(numbers, given) and np.array_equal(numbers.astype(given.dtype), given)
        )
    require(
        is_same or given.dtype.kind == np.dtype(wanted).kind == "f",
        f"expected values that {wanted} can hold, got others of {given.dtype}",
        kind="data-type",
    )
    # the same bytes, in the byte order of this machine; encoding swaps them
    return numbers if dataset.numpy_type is None else numbers.view(dataset.data_type.value)


def _find(
    location: Location, path: str, grid_position: Sequence[int], *, read_only: bool
) -> tuple[N5Store, DatasetAttributes, str, str]:
    """Return the store, the document, the key of the block, and its name for messages."""
    store, node = open_container(place_of(location), path, writes=not read_only)
    where = f"{store}: {node or '/'}"
    check_stored(store.storage.store, where, "n5zarr.open reads its elements")
    with ErrorsAt(f"{where}: {ATTRIBUTES_JSON}"):
        dataset = parse_attributes(store.run(read_document(node)))
    if isinstance(dataset, GroupAttributes):
        existing_node(store, node, "a dataset")
        below = datasets_below(store, node)
        raise NotFoundError(f"{where}: expected a dataset, got a group; in it: {below or 'none'}")
    position = N5Tuple(tuple(map(index, grid_position)))
    require(
        len(position) == dataset.ndim and all(p >= 0 for p in position),
        f"grid position: expected {dataset.ndim} integers >= 0, got {position}",
        where,
    )
    block = block_path(position)
    return store, dataset, join(node, block), f"{where}: block {block}"
