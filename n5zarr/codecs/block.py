"""Decode and encode whole blocks, header and payload; pad truncated blocks to full size.

N5 spec, "File-system specification", item 9.

Java, and n5zarr: a block has the extent of its header, smaller or larger than ``blockSize``. A
varlength header whose number of elements matches its extent is read as one of mode 0. Surplus
bytes after the elements are ignored.

Deviation: Java does not check the number of dimensions in the header.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import ge

import numpy as np

from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.compress import codec_of, decompress, decompress_all
from n5zarr.codecs.shard import check_no_shard
from n5zarr.codecs.strings import join_bytes, join_strings, split_strings
from n5zarr.errors import N5BlockError
from n5zarr.format.block import MAX_ARRAY_NDIM, MAX_BLOCK_BYTES, BlockHeader, BlockMode
from n5zarr.format.compression import Compression
from n5zarr.format.data_type import DataType
from n5zarr.format.order import CTuple, N5Tuple, to_c, to_n5

_MOST_TEXT = 2**22
"""Bytes of text that any block may hold: some programs write another count to the header."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A block of any mode, decompressed.

    N5 spec, "File-system specification", item 9.

    Parameters
    ----------
    header : BlockHeader
        Mode, extent in N5 order, number of elements.
    data : numpy.ndarray, list of str or bytes
        The elements, flat, first axis of N5 order fastest: a 1-D array in native byte order for
        numbers, strings for ``string``, the bytes for ``object``.
    """

    header: BlockHeader
    data: np.ndarray | list[str] | bytes


def check_header(header: BlockHeader, ndim: int, data_type: DataType) -> None:
    """Check that a header fits the dataset, before memory is allocated for the block.

    N5 spec, "File-system specification", items 7 (size) and 9 (mode, number of dimensions).

    Parameters
    ----------
    header : BlockHeader
        Of the block.
    ndim : int
        Number of dimensions of the dataset.
    data_type : DataType
        Of the dataset.

    Raises
    ------
    N5BlockError
        Mode, number of dimensions or sizes do not fit (``kind="header"``).
    """
    object_mode = header.mode is BlockMode.OBJECT
    if object_mode != (data_type is DataType.OBJECT):
        expected = "2" if data_type is DataType.OBJECT else "0 or 1"
        raise header_error(f"mode: expected {expected} for {data_type}, got {header.mode}")
    if not object_mode and len(header.block_shape) != ndim:
        raise header_error(f"expected {ndim} dimensions, got {len(header.block_shape)}")
    if ndim > MAX_ARRAY_NDIM:
        raise header_error(f"expected at most {MAX_ARRAY_NDIM} dimensions, got {ndim}")
    if not all(header.block_shape):
        raise header_error(f"expected sizes of at least 1, got {header.block_shape}")
    n_bytes = max(header.n_payload_elements, math.prod(header.block_shape)) * data_type.item_size
    if n_bytes > MAX_BLOCK_BYTES:
        raise header_error(f"expected at most {MAX_BLOCK_BYTES} bytes, got {n_bytes}")


def header_error(message: str) -> N5BlockError:
    """Make the error of a header that does not fit its dataset or data."""
    return N5BlockError(f"block header: {message}", kind="header")


def fitting_header(
    data: memoryview, ndim: int, data_type: DataType, compression: Compression
) -> BlockHeader:
    """Parse the header of a stored block that is a block and fits the dataset."""
    check_no_shard(data, data_type, compression)
    header = BlockHeader.from_bytes(data)
    check_header(header, ndim, data_type)
    return header


def _payload(
    data: memoryview, header: BlockHeader, item_size: int, compression: Compression
) -> BufferLike:
    return decompress(data[header.n_bytes :], header.n_payload_elements * item_size, compression)


def _strings(data: memoryview, header: BlockHeader, compression: Compression) -> list[str]:
    """Decode the strings of a block; like Java, ignore its number of elements."""
    limit = max(2 * header.n_payload_elements, _MOST_TEXT)
    payload = decompress_all(data[header.n_bytes :], limit, compression)
    return split_strings(payload, math.prod(header.block_shape))


def decode_numeric(
    data: memoryview, ndim: int, data_type: DataType, compression: Compression
) -> np.ndarray:
    """Decode a block of numbers.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    ndim : int
        Number of dimensions of the dataset.
    data_type : DataType
        A numeric one.
    compression : Compression
        Of the dataset.

    Returns
    -------
    numpy.ndarray
        Extent as in the header, big-endian, shape in C order. A view of the decompressed bytes; for
        ``raw`` a view of ``data``.

    Raises
    ------
    N5BlockError
        Header or payload do not fit the dataset, or the number of elements does not match the
        extent (``kind`` ``"header"``, ``"payload"``, ``"varlength"`` or ``"shard"``).
    """
    header = fitting_header(data, ndim, data_type, compression)
    check_count(header, data_type)
    elements = _payload(data, header, data_type.item_size, compression)
    return np.frombuffer(elements, data_type.dtype).reshape(to_c(header.block_shape))


def check_count(header: BlockHeader, data_type: DataType) -> None:
    """Raise unless the number of elements in a header matches its extent.

    N5 spec, "File-system specification", item 9 (varlength).

    Paintera takes a dataset for label multisets if the finest level of its group says so; imglib2,
    and n5zarr, only if the dataset itself does. So the error tells how to say it.
    """
    n_box = math.prod(header.block_shape)
    if header.n_payload_elements != n_box:
        message = (
            f"block header: expected {n_box} elements for the box {header.block_shape}, got "
            f"{header.n_payload_elements} (varlength); n5zarr.read_block reads it"
        )
        if data_type is DataType.UINT8 and header.n_payload_elements > n_box:
            message += (
                "; if these are Paintera's label multisets, set the attribute isLabelMultiset of "
                "this dataset to true"
            )
        raise N5BlockError(message, kind="varlength")


def decode_strings(data: memoryview, ndim: int, compression: Compression) -> np.ndarray:
    """Decode a block of strings.

    Returns
    -------
    numpy.ndarray
        Extent as in the header, dtype object, shape in C order.

    Raises
    ------
    N5BlockError
        Header or payload do not fit the dataset.
    """
    header = fitting_header(data, ndim, DataType.STRING, compression)
    return np.array(_strings(data, header, compression), object).reshape(to_c(header.block_shape))


def decode_full(
    data: memoryview,
    block_size: N5Tuple,
    data_type: DataType,
    compression: Compression,
    fill_value: object = 0,
) -> np.ndarray:
    """Decode a block of numbers, and pad or truncate it to full size.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    block_size : tuple of int
        Full size, in elements, N5 order.
    data_type : DataType
        A numeric one.
    compression : Compression
        Of the dataset.
    fill_value : object, optional
        Value of the elements that a truncated block lacks.

    Returns
    -------
    numpy.ndarray
        Big-endian, shape in C order.

    Raises
    ------
    N5BlockError
        See :func:`decode_numeric` and :func:`pad_or_truncate`.
    """
    block = decode_numeric(data, len(block_size), data_type, compression)
    return pad_or_truncate(block, to_c(block_size), fill_value)


def pad_or_truncate(block: np.ndarray, shape: CTuple, fill_value: object = 0) -> np.ndarray:
    """Pad a truncated block to full size, or truncate a block at the end of the dataset.

    N5 spec, "File-system specification", item 8: blocks at the end of an axis may be smaller. No
    other function in Python pads or truncates a stored block. The compiled kernel need not: it
    takes full-size and truncated blocks only, and copies the elements inside the dataset.

    Parameters
    ----------
    block : numpy.ndarray
        The elements of a block, C order.
    shape : tuple of int
        The new extent, C order; along each axis it may be larger or smaller than the block.
    fill_value : object, optional
        Value of the added elements.

    Returns
    -------
    numpy.ndarray
        ``block`` itself if it has the shape, a view if it is truncated only, else a new array.

    Raises
    ------
    N5BlockError
        The shape has 2 GiB or more, which no N5 block can have (``kind="header"``).
    """
    if block.shape == shape:
        return block
    common = tuple(slice(min(b, s)) for b, s in zip(block.shape, shape, strict=True))
    if all(map(ge, block.shape, shape)):
        return block[common]
    n_bytes = math.prod(shape) * block.dtype.itemsize
    if n_bytes > MAX_BLOCK_BYTES:
        raise header_error(
            f"expected a full block of at most {MAX_BLOCK_BYTES} bytes, got blockSize "
            f"{to_n5(shape)} with {n_bytes}; n5zarr.read_block reads the stored block"
        )
    padded = np.full(shape, fill_value, block.dtype)
    padded[common] = block[common]
    return padded


def parse_block(
    data: BufferLike, ndim: int, data_type: DataType, compression: Compression
) -> Block:
    """Decode a block of any mode into its header and flat data.

    Parameters
    ----------
    data : bytes-like
        The stored block, header first.
    ndim : int
        Number of dimensions of the dataset.
    data_type : DataType
        Of the dataset.
    compression : Compression
        Of the dataset.

    Returns
    -------
    Block
        With a copy of the data.

    Raises
    ------
    N5BlockError
        Header or payload do not fit the dataset.
    """
    view = memoryview(data)
    header = fitting_header(view, ndim, data_type, compression)
    if data_type is DataType.STRING:
        return Block(header, _strings(view, header, compression))
    if data_type is DataType.OBJECT:
        return Block(header, object_payload(view, compression))
    elements = _payload(view, header, data_type.item_size, compression)
    flat = np.frombuffer(elements, data_type.dtype)
    return Block(header, flat.astype(data_type.dtype.newbyteorder("=")))


def format_block(block: Block, data_type: DataType, compression: Compression) -> bytes:
    """Encode a block of any mode; the inverse of :func:`parse_block`.

    N5 spec, "File-system specification", item 9.

    Parameters
    ----------
    block : Block
        Header and flat data. The count of a block of strings or bytes is taken from the data.
    data_type : DataType
        Of the dataset.
    compression : Compression
        Of the dataset.

    Raises
    ------
    N5BlockError
        Mode, extent or number of elements do not fit the dataset or the data (``kind="header"``).
    N5UnrepresentableError
        The data are not of the data type (``kind="data-type"``).
    """
    header = block.header
    check_header(header, len(header.block_shape), data_type)
    n_elements = len(block.data)
    if data_type is DataType.OBJECT or data_type is DataType.STRING:
        is_text = data_type is DataType.STRING
        if is_text and n_elements != math.prod(header.block_shape):
            raise header_error(f"expected strings for {header.block_shape}, got {n_elements}")
        elements = join_strings(block.data) if is_text else bytes(block.data)  # type: ignore[arg-type]
        if header.mode is not BlockMode.DEFAULT:  # some programs write strings in mode 0
            header = replace(header, n_elements=len(elements))
    else:
        if n_elements != header.n_payload_elements:
            raise header_error(f"expected {header.n_payload_elements} elements, got {n_elements}")
        elements = np.ascontiguousarray(block.data, data_type.dtype).tobytes()
    check_header(header, len(header.block_shape), data_type)
    return header.to_bytes() + bytes(
        codec_of(compression).compress(elements, compression, data_type.item_size)
    )


def object_payload(data: memoryview, compression: Compression) -> bytes:
    """Decode the bytes of an ``object`` block.

    N5 spec, "File-system specification", item 9 (object).

    Raises
    ------
    N5BlockError
        Header or payload do not fit the dataset.
    """
    header = fitting_header(data, 0, DataType.OBJECT, compression)
    return bytes(_payload(data, header, 1, compression))


def encode_payload(array_c: np.ndarray, data_type: DataType, compression: Compression) -> bytes:
    """Encode the elements of a block as :func:`encode_parts` does, into one bytes object."""
    return b"".join(encode_parts(array_c, data_type, compression))


def encode_parts(
    array_c: np.ndarray, data_type: DataType, compression: Compression
) -> tuple[bytes, BufferLike]:
    """Encode the elements of a block, without a check of their number, extent and type.

    N5 spec, "File-system specification", item 9.

    Parameters
    ----------
    array_c : numpy.ndarray
        The elements, shape in C order.
    data_type : DataType
        Of the dataset.
    compression : Compression
        Of the dataset.

    Returns
    -------
    header, payload : bytes, bytes-like
        Two objects, so that a raw payload is not copied.
    """
    block_shape = to_n5(CTuple(array_c.shape))
    if data_type is DataType.STRING:
        elements: BufferLike = join_strings(array_c.ravel().tolist())
        header = BlockHeader(
            mode=BlockMode.VARLENGTH, block_shape=block_shape, n_elements=len(elements)
        )
    elif data_type is DataType.OBJECT:
        elements = join_bytes(array_c)
        header = BlockHeader(mode=BlockMode.OBJECT, n_elements=len(elements))
    else:
        contiguous = np.ascontiguousarray(array_c, data_type.dtype)
        elements = contiguous.reshape(-1).view("u1").data
        header = BlockHeader(mode=BlockMode.DEFAULT, block_shape=block_shape)
    return header.to_bytes(), codec_of(compression).compress(
        elements, compression, data_type.item_size
    )
