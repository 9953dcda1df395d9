"""Chunks: the bytes of a block to the bytes of the chunk that is shown.

A full-size block needs no work: the chunk is the block without its header. Everything else, that is
a truncated block, one whose stream Zarr's codec would not take, lz4, jpeg, strings and labels, is
decoded, brought to full size and wrapped in the cheapest stream of the codec that is shown, since
it is decoded again at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from n5zarr.codecs.block import (
    check_count,
    check_header,
    decode_labels,
    decode_numeric,
    decode_strings,
    fit,
)
from n5zarr.codecs.compress import store, usable
from n5zarr.codecs.label_multiset import BACKGROUND
from n5zarr.codecs.strings import vlen_utf8
from n5zarr.format.block import BlockHeader
from n5zarr.format.order import to_c
from n5zarr.translate.presentation import Content

if TYPE_CHECKING:
    import numpy as np

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.translate.presentation import Presentation

__all__ = ["chunk_slice", "decode_chunk", "make_chunk"]


def chunk_slice(data: memoryview, shown: Presentation) -> slice | None:
    """Find the chunk inside the block.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    shown : Presentation
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


def decode_chunk(data: memoryview, shown: Presentation) -> np.ndarray:
    """Decode a block and bring it to full size.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    shown : Presentation
        How the dataset is shown.

    Returns
    -------
    numpy.ndarray
        The full-size chunk in C order, big-endian; dtype object for strings.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    dataset = shown.dataset
    fill_value: object = 0
    match shown.content:
        case Content.NUMBERS:
            block = decode_numeric(data, dataset.ndim, dataset.data_type, dataset.compression)
        case Content.STRINGS:
            block, fill_value = decode_strings(data, dataset.ndim, dataset.compression), ""
        case Content.LABELS:
            block, fill_value = decode_labels(data, dataset.ndim, dataset.compression), BACKGROUND
        case _:
            assert_never(shown.content)
    return fit(block, to_c(dataset.block_size), fill_value)


def make_chunk(data: memoryview, shown: Presentation) -> BufferLike:
    """Make the bytes of a chunk from a block that is not one already.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    shown : Presentation
        How the dataset is shown.

    Returns
    -------
    bytes-like
        A stream that the codecs shown decode to the full-size chunk.

    Raises
    ------
    N5BlockError
        The block does not fit the dataset or is damaged.
    """
    chunk = decode_chunk(data, shown)
    if shown.content is Content.STRINGS:
        return vlen_utf8(chunk.ravel().tolist())
    return store(chunk.reshape(-1).view("u1").data, shown.compression)
