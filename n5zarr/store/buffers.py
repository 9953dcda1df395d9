"""Convert values to and from zarr's buffers, and a zarr store to a mapping of bytes."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.codecs.buffers import BufferLike


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


class StoreMapping(MutableMapping[str, bytes]):
    """The keys and values of a zarr store as a mapping.

    Parameters
    ----------
    store : zarr.abc.store.Store
        The store. Each access reads or writes it; nothing is cached.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getitem__(self, key: str) -> bytes:
        value = sync(self.store.get(key, cpu.buffer_prototype))
        if value is None:
            raise KeyError(key)
        return value.to_bytes()

    def __setitem__(self, key: str, value: bytes) -> None:
        sync(self.store.set(key, cpu.Buffer.from_bytes(value)))

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        sync(self.store.delete(key))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and sync(self.store.exists(key))

    def __iter__(self) -> Iterator[str]:
        return iter(sync(self._keys()))

    def __len__(self) -> int:
        return len(sync(self._keys()))

    async def _keys(self) -> list[str]:
        return [key async for key in self.store.list()]

    def __repr__(self) -> str:
        return f"StoreMapping({self.store!r})"
