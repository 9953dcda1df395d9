"""Convert values to and from zarr's buffers, whole or a byte range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer, BufferPrototype

    from n5zarr.codecs.buffers import BufferLike

__all__ = ["as_buffer", "as_bytes"]


def as_bytes(value: Buffer) -> memoryview:
    """Return the bytes of a value to be stored.

    Raises
    ------
    TypeError
        The value is not one of zarr's buffers.
    """
    if not hasattr(value, "as_numpy_array"):
        message = f"N5Store.set(): `value` must be a Buffer instance. Got {type(value)} instead."
        raise TypeError(message)
    return memoryview(value.as_numpy_array())


def as_buffer(
    value: BufferLike | None, prototype: BufferPrototype, byte_range: ByteRequest | None
) -> Buffer | None:
    """Return the bytes of a range as a buffer of the prototype's type."""
    if value is None:
        return None
    buffer = prototype.buffer.from_bytes(value)
    wanted: object = byte_range  # callers without type checks may pass anything
    match wanted:
        case None:
            return buffer
        case RangeByteRequest(start, end):
            return buffer[start:end]
        case OffsetByteRequest(offset):
            return buffer[offset:]
        case SuffixByteRequest(suffix):
            return buffer[max(0, len(buffer) - suffix) :]
        case _:
            raise TypeError(f"Unexpected byte_range, got {wanted!r}.")
