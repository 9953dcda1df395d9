"""Read the size of a value in a zarr store, and its first and last bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zarr.abc.store import RangeByteRequest
from zarr.buffer import cpu
from zarr.storage import ObjectStore

from n5zarr.storage.objects import start_of_object

if TYPE_CHECKING:
    from zarr.abc.store import Store

__all__ = ["read_ends"]


async def read_ends(
    store: Store, key: str, first: int, last: int
) -> tuple[int, bytes, bytes] | None:
    """Read the size of a value, and its first and last bytes."""
    found = await _start(store, key, first)
    if found is None:
        return None
    start, size = found
    if len(start) >= size or not last:  # some servers send the whole value
        return size, start, b""
    rest = RangeByteRequest(max(first, size - last), size)
    end = await store.get(key, cpu.buffer_prototype, rest)
    if end is None:
        return None
    if size <= first + last:
        return size, start + end.to_bytes(), b""
    return size, start, end.to_bytes()


async def _start(store: Store, key: str, n_bytes: int) -> tuple[bytes, int] | None:
    """Read the first bytes of a value, and its size; None if the key is missing."""
    if isinstance(store, ObjectStore):
        return await start_of_object(store, key, n_bytes)
    part = RangeByteRequest(0, n_bytes)
    value, size = await asyncio.gather(
        store.get(key, cpu.buffer_prototype, part), store.getsize(key), return_exceptions=True
    )
    if size == 0:  # some servers refuse a range of an empty value
        return b"", 0
    if isinstance(value, BaseException):
        raise value
    if value is None:
        return None
    if isinstance(size, BaseException):
        raise size
    return value.to_bytes(), size
