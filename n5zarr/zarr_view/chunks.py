"""Chunks: the bytes of a block to the bytes of the chunk that is shown, and back.

A full-size block needs no work: the chunk is the block without its header. Everything else, that is
a truncated block, one whose stream Zarr's codec would not take, lz4, jpeg, strings and labels, is
decoded, brought to full size and wrapped in the cheapest stream of the codec that is shown, since
it is decoded again at once. Writing is the reverse: a full-size chunk gets a header; at the end of
an axis it is decoded, truncated to the extent of the dataset, and compressed as N5 says.
"""

from __future__ import annotations

import math
from operator import le
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from n5zarr.codecs.block import (
    check_count,
    check_header,
    decode_labels,
    decode_numeric,
    decode_strings,
    encode_payload,
    fit,
    parse_block,
)
from n5zarr.codecs.compress import decompress, decompress_all, passes, store, usable
from n5zarr.codecs.label_multiset import BACKGROUND
from n5zarr.codecs.strings import join_bytes, split_bytes, split_vlen_utf8, vlen_utf8
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.block import MAX_BLOCK_BYTES, BlockHeader
from n5zarr.format.grid import block_extent
from n5zarr.format.order import to_c
from n5zarr.zarr_view.dataset_view import Content

if TYPE_CHECKING:
    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.order import N5Tuple
    from n5zarr.zarr_view.dataset_view import DatasetView

__all__ = [
    "chunk_slice",
    "decode_chunk",
    "encode_chunk",
    "make_block",
    "make_chunk",
    "stored_chunk",
]


def chunk_slice(data: memoryview, shown: DatasetView) -> slice | None:
    """Find the chunk inside the block.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    shown : DatasetView
        How the dataset is shown.

    Returns
    -------
    slice or None
        Which bytes of the block are the chunk; None when :func:`make_chunk` has to make it.

    Raises
    ------
    N5BlockError
        What can be seen without decompressing does not fit.
    """
    if shown.whole_blocks:
        return slice(None)
    if not shown.passes_payloads:
        return None
    start = len(shown.full_header)
    if data[:start] != shown.full_header:
        header = BlockHeader.from_bytes(data)
        check_header(header, shown.dataset.ndim, shown.dataset.data_type)
        check_count(header)
        if header.block_shape != shown.dataset.block_size:
            return None
        start = header.n_bytes  # a varlength header is longer
    n_usable = usable(data[start:], shown.full_n_bytes, shown.dataset.compression)
    return None if n_usable is None else slice(start, start + n_usable)


def stored_chunk(data: memoryview, shown: DatasetView) -> np.ndarray:
    """Decode a block and bring it to full size.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    shown : DatasetView
        How the dataset is shown.

    Returns
    -------
    numpy.ndarray
        The full-size chunk in C order, as it is stored: big-endian, with an axis of parts where
        elements have parts; dtype object for strings and bytes.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    dataset = shown.dataset
    shape_c = to_c(dataset.block_size)
    fill_value: object = 0 if shown.element is None else shown.element.stored_fill
    match shown.content:
        case Content.NUMBERS:
            block = decode_numeric(data, dataset.ndim, dataset.data_type, dataset.compression)
        case Content.STRINGS:
            block = decode_strings(data, dataset.ndim, dataset.compression)
            fill_value = shown.kind.fill_value
        case Content.OBJECTS:
            payload = parse_block(data, 0, dataset.data_type, dataset.compression).data
            assert isinstance(payload, bytes)  # noqa: S101 - what an object block has
            return split_bytes(payload, math.prod(shape_c)).reshape(shape_c)
        case Content.LABELS:
            block, fill_value = decode_labels(data, dataset.ndim, dataset.compression), BACKGROUND
        case _:
            assert_never(shown.content)
    return fit(block, shape_c, fill_value)


def decode_chunk(data: memoryview, shown: DatasetView) -> np.ndarray:
    """Decode a block into the array that Zarr's codecs encode, axes as they are shown.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    elements = shown.kind.from_stored(stored_chunk(data, shown))
    if shown.is_scalar:
        return elements.reshape(())
    return elements if shown.axis_order == "C" else elements.transpose()


def make_chunk(data: memoryview, shown: DatasetView) -> BufferLike:
    """Make the bytes of a chunk from a block that is not one already.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    shown : DatasetView
        How the dataset is shown; one that is not transcoded.

    Returns
    -------
    bytes-like
        A stream that the codecs shown decode to the full-size chunk.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    chunk = stored_chunk(data, shown)
    match shown.content:
        case Content.STRINGS:
            return store(vlen_utf8(chunk.ravel().tolist()), shown.compression)
        case Content.OBJECTS:
            return store(join_bytes(chunk), shown.compression)
        case _:
            elements = chunk.astype(shown.chunk_dtype, copy=False).reshape(-1)
            return store(elements.view("u1").data, shown.compression)


# ---------------------------------------------------------------------- chunks to blocks


def make_block(chunk: memoryview, shown: DatasetView, grid_position: N5Tuple) -> BufferLike:
    """Make a block from a chunk that Zarr wrote.

    Parameters
    ----------
    chunk : memoryview
        The full-size chunk, as bytes.
    shown : DatasetView
        How the dataset is shown; one that is not transcoded.
    grid_position : tuple of int
        Of the block, N5 order.

    Returns
    -------
    bytes
        The block, header first; truncated to the extent of the dataset.

    Raises
    ------
    N5BlockError
        The chunk does not decode to full size.
    N5UnsupportedError
        The dataset can only be read: jpeg, label multisets.
    """
    dataset = shown.dataset
    extent = block_extent(dataset.dimensions, dataset.block_size, grid_position)
    full = extent == dataset.block_size
    if shown.whole_blocks:
        header = BlockHeader.from_bytes(chunk)
        if all(map(le, header.block_shape, extent)):
            return chunk
        block = decode_numeric(chunk, dataset.ndim, dataset.data_type, dataset.compression)
        return _encode(fit(block, to_c(extent), 0), shown)
    if full and shown.passes_payloads and passes(dataset.compression):
        return b"".join([shown.full_header, chunk])
    match shown.content:
        case Content.NUMBERS:
            elements = decompress(chunk, shown.full_n_bytes, shown.compression)
            stored = np.frombuffer(elements, shown.chunk_dtype)
        case Content.STRINGS:
            payload = decompress_all(chunk, MAX_BLOCK_BYTES, shown.compression)
            stored = split_vlen_utf8(payload)
        case Content.OBJECTS:
            payload = decompress_all(chunk, MAX_BLOCK_BYTES, shown.compression)
            stored = split_bytes(payload, math.prod(dataset.block_size))
        case _:
            raise _read_only_labels()
    return _cut(stored.reshape(to_c(dataset.block_size)), shown, extent)


def encode_chunk(array: np.ndarray, shown: DatasetView, grid_position: N5Tuple) -> BufferLike:
    """Make a block from what Zarr's codecs decoded; the inverse of :func:`decode_chunk`."""
    dataset = shown.dataset
    extent = block_extent(dataset.dimensions, dataset.block_size, grid_position)
    in_c = array if shown.axis_order == "C" else array.transpose()
    stored = shown.kind.to_stored(in_c).reshape(to_c(dataset.block_size))
    if shown.content is Content.LABELS:
        raise _read_only_labels()
    return _cut(stored, shown, extent)


def _cut(stored: np.ndarray, shown: DatasetView, extent: N5Tuple) -> BufferLike:
    """Truncate a full-size block to the extent of the dataset and encode it."""
    if shown.content is Content.OBJECTS:
        return _encode(stored, shown)  # its header has no shape to tell how much is left
    inside: tuple[Any, ...] = tuple(map(slice, to_c(extent)))
    return _encode(stored[(*inside, ...)], shown)  # an array also where there are no axes


def _encode(stored: np.ndarray, shown: DatasetView) -> BufferLike:
    return encode_payload(stored, shown.dataset.data_type, shown.dataset.compression)


def _read_only_labels() -> N5UnsupportedError:
    message = "label multisets are shown as their most frequent labels and can only be read"
    return N5UnsupportedError(message, kind="read-only")
