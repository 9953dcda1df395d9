"""Decode and encode single blocks without a container, for services and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.codecs.block import decode_numeric, decode_strings, encode_payload, header_error
from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.shard import check_no_shard
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.block import MAX_ARRAY_NDIM, MAX_BLOCK_BYTES, BlockHeader, BlockMode
from n5zarr.format.compression import parse_compression
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, check_axis_order, from_presented

if TYPE_CHECKING:
    import numpy.typing as npt


def decode_block(
    data: BufferLike,
    *,
    data_type: str,
    compression: Mapping[str, JSON],
    axis_order: AxisOrder = "C",
) -> np.ndarray:
    """Decode one N5 block into an array.

    Parameters
    ----------
    data : bytes-like
        The stored block: header and payload.
    data_type : str
        N5's name: ``"uint8"`` ... ``"float64"`` or ``"string"``.
    compression : mapping
        The ``compression`` object of the dataset, such as ``{"type": "gzip"}``.
    axis_order : {"C", "F"}, optional
        ``"C"``: shape ``(z, y, x)``. ``"F"``: shape ``(x, y, z)``, as in the block header.

    Returns
    -------
    numpy.ndarray
        A new array with the extent of the header, in native byte order; dtype object for strings.

    Raises
    ------
    N5BlockError
        Header or payload do not fit, or the number of elements does not match the extent;
        :func:`n5zarr.read_block` reads such blocks.
    N5AttributesError
        The compression is unknown or has wrong members (``kind="compression"``).

    References
    ----------
    N5 spec, "File-system specification", item 9.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.arange(6, dtype="uint16").reshape(3, 2)
    >>> block = encode_block(array, compression={"type": "raw"})
    >>> block.hex(" ", 2)
    '0000 0002 0000 0002 0000 0003 0000 0001 0002 0003 0004 0005'
    >>> decode_block(block, data_type="uint16", compression={"type": "raw"})
    array([[0, 1],
           [2, 3],
           [4, 5]], dtype=uint16)
    """
    view = memoryview(data).cast("B")
    kind = _named_data_type(data_type)
    parsed = parse_compression(compression)
    check_axis_order(axis_order)
    check_no_shard(view, kind, parsed)
    header = BlockHeader.from_bytes(view)
    ndim = len(header.block_shape)
    if header.mode is not BlockMode.OBJECT and not ndim:
        # zeros look like such a header; without the dataset, 0 dimensions cannot be confirmed
        raise header_error(f"expected 1 to {MAX_ARRAY_NDIM} dimensions, got 0")
    if kind is DataType.STRING:
        block = decode_strings(view, ndim, parsed)
    else:
        block = decode_numeric(view, ndim, kind, parsed)
        block = block.astype(block.dtype.newbyteorder("="))
    return block if axis_order == "C" else block.transpose()


def _named_data_type(name: str) -> DataType:
    """Parse the name of a data type other than ``object``."""
    if name not in DataType or name == DataType.OBJECT:
        names = ", ".join(d for d in DataType if d is not DataType.OBJECT)
        message = f"data type: expected one of {names}, got {name!r}; convert to one of these first"
        raise N5UnrepresentableError(message, kind="data-type")
    return DataType(name)


def encode_block(
    array: npt.ArrayLike,
    *,
    compression: Mapping[str, JSON],
    data_type: str | None = None,
    axis_order: AxisOrder = "C",
) -> bytes:
    """Encode an array as one N5 block, with the options of :func:`decode_block`.

    Parameters
    ----------
    array : array_like
        The elements, at least 1-D: one of N5's numeric dtypes in any byte order, or strings
        (dtype object, ``str`` or ``StringDType``).
    compression : mapping
        The ``compression`` object of the dataset; absent members take Java's defaults.
    data_type : str, optional
        N5's name, as for :func:`decode_block`; by default that of the dtype. Another dtype is
        converted if this type can hold all of its values.
    axis_order : {"C", "F"}, optional
        ``"C"``: the array is ``(z, y, x)``. ``"F"``: it is ``(x, y, z)``.

    Returns
    -------
    bytes
        Header in mode 0 (strings: mode 1) and payload.

    Raises
    ------
    N5UnrepresentableError
        A block cannot have this dtype, rank or size, or ``axis_order`` is unknown.
    N5AttributesError
        The compression is unknown or has wrong members (``kind="compression"``).

    References
    ----------
    N5 spec, "File-system specification", item 9.
    """
    check_axis_order(axis_order)
    array = np.asarray(array)
    is_string = array.dtype.kind in "OUT"
    own = "string" if is_string else array.dtype.newbyteorder("=").name
    kind = _named_data_type(data_type or own)
    if kind != own:
        array = _as_kind(array, kind)
    block_shape = from_presented(array.shape, axis_order)
    if not block_shape or not all(block_shape) or array.nbytes > MAX_BLOCK_BYTES:
        message = (
            f"block of shape {array.shape} and {array.nbytes} bytes: expected at least one "
            f"dimension, no empty one, and at most {MAX_BLOCK_BYTES} bytes"
        )
        raise N5UnrepresentableError(message, kind="header")
    return encode_payload(
        array if axis_order == "C" else array.transpose(), kind, parse_compression(compression)
    )


def _as_kind(array: np.ndarray, kind: DataType) -> np.ndarray:
    """Convert an array to a data type that can hold all values of its dtype."""
    is_number = array.dtype.kind not in "OUT" and kind is not DataType.STRING
    is_safe = is_number and np.can_cast(array.dtype, kind.dtype)
    # numpy calls the cast from integers of 64 bits to float64 safe, but it loses digits
    if not is_safe or (array.dtype.kind in "iu" and array.itemsize == 8 and kind.dtype.kind == "f"):
        message = f"dtype: expected one that converts to {kind} without loss, got {array.dtype}"
        raise N5UnrepresentableError(message, kind="data-type")
    return array.astype(kind.dtype)
