"""``raw``: the payload is the elements themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.compression import Raw


def compress(data: BufferLike, compression: Raw, item_size: int) -> BufferLike:
    """Return the data."""
    return data


def decompress(payload: memoryview, n_bytes: int, compression: Raw) -> BufferLike:
    """Return the first ``n_bytes``; Java ignores what follows them."""
    return payload[:n_bytes]


def usable(payload: memoryview, n_bytes: int) -> int | None:
    """Say how many bytes of the payload are the raw chunk."""
    return n_bytes if len(payload) >= n_bytes else None


def store(data: BufferLike) -> BufferLike:
    """Return the data."""
    return data
