"""Convert the bytes of a block into those of a Zarr chunk, and back.

N5 spec, "File-system specification", items 8 and 9.

The chunk of a full-size block is the block without its header. Truncated blocks, payloads that
Zarr's codec does not read, lz4, jpeg, strings and labels are decoded, padded to full size and
wrapped in the stream that is fastest to make, since Zarr decodes it at once. Writing is the
reverse: a full-size chunk gets a header; a chunk at the end of an axis is decoded, truncated to the
extent of the dataset, and compressed again.
"""

from __future__ import annotations

import math
from operator import le
from typing import assert_never

import numpy as np

from n5zarr.codecs.block import (
    check_count,
    check_header,
    decode_numeric,
    decode_strings,
    encode_payload,
    object_payload,
    pad_or_truncate,
)
from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.compress import codec_of, decompress, decompress_all
from n5zarr.codecs.label_multiset import decode_labels, decode_multisets, encode_multisets
from n5zarr.codecs.multiset_merging import fitted, relabelled
from n5zarr.codecs.multisets import BACKGROUND, LabelMultisets
from n5zarr.codecs.shard import check_no_shard
from n5zarr.codecs.strings import join_bytes, split_bytes, split_vlen_utf8, vlen_utf8
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.block import MAX_BLOCK_BYTES, BlockHeader
from n5zarr.format.order import CTuple, N5Tuple, to_c
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

START = 32
"""Bytes of a payload that :func:`chunk_part` needs."""


def chunk_slice(
    data: memoryview, view: DatasetView, position: N5Tuple | None = None
) -> slice | None:
    """Locate the bytes of a chunk inside its block.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    view : DatasetView
        The dataset as a Zarr array.
    position : tuple of int, optional
        Position of the block in the grid, N5 order; by default, a position inside the dataset.

    Returns
    -------
    slice or None
        The bytes of the block that are the chunk; None if :func:`make_chunk` must make it.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset; detects only what shows without decompressing.
    """
    check_no_shard(data, view.dataset.data_type, view.dataset.compression)
    if view.whole_blocks:
        return slice(None)
    start, n_bytes = _payload(data, view, position)
    if start is None:
        return None
    compression = view.dataset.compression
    n_usable = codec_of(compression).usable(data[start:], n_bytes, compression)
    return None if n_usable is None else slice(start, start + n_usable)


def chunk_part(
    start: memoryview, size: int, view: DatasetView, position: N5Tuple | None = None
) -> tuple[int, int] | None:
    """Locate the bytes of a chunk inside its block, from the beginning of the block.

    Parameters
    ----------
    start : memoryview
        The header of the stored block and the next :data:`START` bytes, or all of a shorter one.
    size : int
        Length of the block, in bytes.
    view : DatasetView
        The dataset as a Zarr array whose chunks are not whole blocks.
    position : tuple of int, optional
        Position of the block in the grid, N5 order; by default, a position inside the dataset.

    Returns
    -------
    (int, int) or None
        Offset and length; None unless the beginning proves that the payload is the chunk.

    Raises
    ------
    N5BlockError
        The beginning of the block does not fit the dataset.
    """
    begin, n_bytes = _payload(start, view, position)
    if begin is None:
        return None
    compression = view.dataset.compression
    n_usable = codec_of(compression).seems_usable(start[begin:], size - begin, n_bytes, compression)
    return None if n_usable is None else (begin, n_usable)


def chunk_extent(view: DatasetView, position: N5Tuple | None) -> N5Tuple:
    """Return the extent of a chunk in elements, N5 order: full size unless chunks are truncated.

    Parameters
    ----------
    view : DatasetView
        The dataset as a Zarr array.
    position : tuple of int, optional
        Position of the block in the grid, N5 order; by default, a position inside the dataset.
    """
    dataset = view.dataset
    if position is None or not view.truncated:
        return dataset.block_size
    return dataset.extent_of(position)


def _payload(
    data: memoryview, view: DatasetView, position: N5Tuple | None
) -> tuple[int | None, int]:
    """Return the offset of the payload, None if it is no chunk, and the size of its elements."""
    wanted = chunk_extent(view, position)
    if not view.passes_payloads:
        return None, 0
    start = len(view.full_header)
    if wanted == view.dataset.block_size and data[:start] == view.full_header:
        return start, view.full_n_bytes
    header = BlockHeader.from_bytes(data)
    check_header(header, view.dataset.ndim, view.dataset.data_type)
    check_count(header, view.dataset.data_type)
    # a varlength header is longer
    n_bytes = header.n_payload_elements * view.dataset.data_type.item_size
    return (header.n_bytes if header.block_shape == wanted else None), n_bytes


def stored_chunk(
    data: memoryview,
    view: DatasetView,
    position: N5Tuple | None = None,
    extent: N5Tuple | None = None,
) -> np.ndarray:
    """Decode a block, and pad or crop it.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    view : DatasetView
        The dataset as a Zarr array.
    position : tuple of int, optional
        Position of the block in the grid, N5 order; by default, a position inside the dataset.
    extent : tuple of int, optional
        Extent of the chunk, N5 order; full size by default.

    Returns
    -------
    numpy.ndarray
        The chunk in C order with the elements as N5 stores them: big-endian, the parts of
        an element along an additional last axis; dtype object for strings and bytes.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    dataset = view.dataset
    shape_c = to_c(extent or dataset.block_size)
    fill_value: object = 0 if view.element is None else view.element.stored_fill
    match view.content:
        case Content.NUMBERS:
            block = decode_numeric(data, dataset.ndim, dataset.data_type, dataset.compression)
        case Content.STRINGS:
            block = decode_strings(data, dataset.ndim, dataset.compression)
            fill_value = view.kind.fill_value
        case Content.OBJECTS:
            payload = object_payload(data, dataset.compression)
            return split_bytes(payload, math.prod(shape_c)).reshape(shape_c)
        case Content.LABELS:
            inside = position and dataset.extent_of(position)
            block = decode_labels(data, dataset.ndim, dataset.compression, inside)
            fill_value = BACKGROUND
        case _:
            assert_never(view.content)
    return pad_or_truncate(block, shape_c, fill_value)


def decode_chunk(
    data: memoryview, view: DatasetView, position: N5Tuple | None = None
) -> np.ndarray:
    """Decode a block into the array that Zarr's codecs encode, axes in the order of the array.

    See :func:`stored_chunk`.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    elements = view.kind.from_stored(stored_chunk(data, view, position))
    if view.is_scalar:
        return elements.reshape(())
    return elements if view.axis_order == "C" else elements.transpose()


def make_chunk(
    data: memoryview,
    view: DatasetView,
    position: N5Tuple | None = None,
    *,
    small: bool = False,
) -> BufferLike:
    """Make the bytes of a chunk from a block for which :func:`chunk_slice` returns None.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    view : DatasetView
        The dataset as a Zarr array that is not transcoded.
    position : tuple of int, optional
        Position of the block in the grid, N5 order; by default, a position inside the dataset.
    small : bool, optional
        Compress like new blocks if Zarr's codec reads that; by default, make the stream that is
        fastest to make.

    Returns
    -------
    bytes-like
        A stream that the codecs of the Zarr array decode to the chunk.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    chunk = stored_chunk(data, view, position, chunk_extent(view, position))
    codec = codec_of(view.compression)
    match view.content:
        case Content.STRINGS:
            elements: BufferLike = vlen_utf8(chunk.ravel().tolist())
        case Content.OBJECTS:
            elements = join_bytes(chunk)
        case _:
            elements = np.ascontiguousarray(chunk, view.chunk_dtype).reshape(-1).view("u1").data
            if small and codec.passes:
                return codec.compress(elements, view.compression, view.chunk_dtype.itemsize)
    return codec.store(elements, view.compression)


# ---------------------------------------------------------------------- chunks to blocks


def make_block(chunk: memoryview, view: DatasetView, grid_position: N5Tuple) -> BufferLike:
    """Make a block from a chunk that Zarr wrote.

    Parameters
    ----------
    chunk : memoryview
        The full-size chunk, as bytes.
    view : DatasetView
        The dataset as a Zarr array that is not transcoded.
    grid_position : tuple of int
        Position of the block in the grid, N5 order.

    Returns
    -------
    bytes
        The block, header first; truncated if the dataset ends inside it.

    Raises
    ------
    N5BlockError
        The chunk does not decode to full size.
    N5UnsupportedError
        The dataset can only be read: jpeg (``kind="compression"``).
    """
    dataset = view.dataset
    extent = dataset.extent_of(grid_position)
    full = extent == dataset.block_size
    if view.whole_blocks:
        header = BlockHeader.from_bytes(chunk)
        if all(map(le, header.block_shape, extent)):
            return chunk
        block = decode_numeric(chunk, dataset.ndim, dataset.data_type, dataset.compression)
        return _encode(pad_or_truncate(block, to_c(extent)), view)
    if full and view.passes_payloads and codec_of(dataset.compression).passes:
        return b"".join([view.full_header, chunk])
    match view.content:
        case Content.NUMBERS:
            elements = decompress(chunk, view.full_n_bytes, view.compression)
            stored = np.frombuffer(elements, view.chunk_dtype)
        case Content.STRINGS:
            payload = decompress_all(chunk, MAX_BLOCK_BYTES, view.compression)
            stored = split_vlen_utf8(payload)
        case Content.OBJECTS:
            payload = decompress_all(chunk, MAX_BLOCK_BYTES, view.compression)
            stored = split_bytes(payload, math.prod(dataset.block_size))
        case _:
            raise _needs_stored()
    return _encode_truncated(stored.reshape(to_c(dataset.block_size)), view, extent)


def encode_chunk(array: np.ndarray, view: DatasetView, grid_position: N5Tuple) -> BufferLike:
    """Make a block from an array that Zarr's codecs decoded; inverse of :func:`decode_chunk`."""
    dataset = view.dataset
    extent = dataset.extent_of(grid_position)
    in_c = array if view.axis_order == "C" else array.transpose()
    stored = view.kind.to_stored(in_c).reshape(to_c(dataset.block_size))
    if view.content is Content.LABELS:
        raise _needs_stored()
    return _encode_truncated(stored, view, extent)


def _encode_truncated(stored: np.ndarray, view: DatasetView, extent: N5Tuple) -> BufferLike:
    """Encode a block, truncated if the dataset ends inside it."""
    if view.content is Content.OBJECTS:
        return _encode(stored, view)  # the header has no sizes, so a reader expects a full block
    return _encode(pad_or_truncate(stored, to_c(extent)), view)


def _encode(stored: np.ndarray, view: DatasetView) -> BufferLike:
    return encode_payload(stored, view.dataset.data_type, view.dataset.compression)


def _needs_stored() -> N5UnsupportedError:
    message = "label multisets: expected the stored block, too, which their labels change"
    return N5UnsupportedError(message, kind="data-type")


def stored_multisets(
    data: memoryview | None, view: DatasetView, position: N5Tuple
) -> LabelMultisets:
    """Decode a block of label multisets into those of the voxels inside the dataset.

    Parameters
    ----------
    data : memoryview or None
        The stored block, header first, as bytes; None for a missing one, which is background.
    view : DatasetView
        The dataset as a Zarr array.
    position : tuple of int
        Position of the block in the grid, N5 order.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    dataset = view.dataset
    extent = dataset.extent_of(position)
    if data is None:
        return fitted(LabelMultisets.of(np.zeros((0,) * dataset.ndim, "u8")), to_c(extent))
    return fitted(decode_multisets(data, dataset.ndim, dataset.compression, extent), to_c(extent))


def relabelled_block(
    chunk: memoryview | None, view: DatasetView, position: N5Tuple, stored: bytes | None
) -> bytes | None:
    """Make a block of label multisets from a chunk of labels, and the block that is there.

    A voxel that has this label as its most frequent one keeps its multiset; others hold their new
    label once, as by imglib2's ``FromIntegerTypeConverter``. So a chunk of which Zarr has read all
    labels and changed some loses no multiset of the others.

    Parameters
    ----------
    chunk : memoryview or None
        The full-size chunk, as bytes; None for one of background.
    view : DatasetView
        The dataset as a Zarr array that is not transcoded.
    position : tuple of int
        Position of the block in the grid, N5 order.
    stored : bytes or None
        The block that is there.

    Returns
    -------
    bytes or None
        The block, header first; None if all its voxels hold the background once, as those of a
        missing block: Java writes no such block.

    Raises
    ------
    N5BlockError
        The stored block is damaged, or the chunk is not full-size.
    """
    dataset = view.dataset
    before = stored_multisets(None if stored is None else memoryview(stored), view, position)
    labels = np.zeros(before.shape, "u8")
    if chunk is not None:
        n_bytes = math.prod(dataset.block_size) * view.chunk_dtype.itemsize
        elements = np.frombuffer(decompress(chunk, n_bytes, view.compression), view.chunk_dtype)
        full = elements.reshape(to_c(dataset.block_size))
        labels = pad_or_truncate(full, CTuple(before.shape)).astype("u8")
    after = relabelled(before, labels)
    if after is None:
        return stored
    return None if after.is_background else encode_multisets(after, dataset.compression)
