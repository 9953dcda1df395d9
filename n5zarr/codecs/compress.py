"""Payloads: from and to bytes, dispatched on the compression."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from n5zarr.codecs import blosc, bzip2, gzip, jpeg, lz4, raw, xz, zstd
from n5zarr.codecs.buffers import REUSED, damaged
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.compression import Blosc, Gzip, Raw, Zstd

if TYPE_CHECKING:
    from n5zarr.codecs.buffers import BufferLike, Scratch
    from n5zarr.format.compression import Compression

__all__ = [
    "check_writable",
    "compress",
    "decompress",
    "decompress_all",
    "decompress_reused",
    "passes",
    "shows_cuts",
    "store",
    "usable",
    "within_limits",
]


_MODULES: dict[str, Any] = {
    "raw": raw,
    "gzip": gzip,
    "bzip2": bzip2,
    "xz": xz,
    "lzma": xz,
    "lz4": lz4,
    "blosc": blosc,
    "zstd": zstd,
    "jpeg": jpeg,
}


def compress(data: BufferLike, compression: Compression, item_size: int) -> BufferLike:
    """Compress the elements of a block.

    Parameters
    ----------
    data : bytes-like
        Elements, big-endian, first axis of N5 order fastest.
    compression : Compression
        How.
    item_size : int
        Bytes per element, for shuffling.

    Returns
    -------
    bytes-like
        The payload. ``raw`` returns ``data`` itself.

    Raises
    ------
    N5UnsupportedError
        The compression can only be read (``kind="compression"``).
    N5MissingDependencyError
        An optional package is needed.
    """
    packed: BufferLike = _MODULES[compression.type].compress(data, compression, item_size)
    return packed


def decompress(payload: memoryview, n_bytes: int, compression: Compression) -> BufferLike:
    """Decompress the payload of a block.

    Parameters
    ----------
    payload : memoryview
        What follows the header, as bytes.
    n_bytes : int
        How many bytes the header announces; never much more is inflated.
    compression : Compression
        How it was compressed.

    Returns
    -------
    bytes-like
        Exactly ``n_bytes``; as in Java, more in the payload does no harm, but for a compressed
        stream under the name ``raw``.

    Raises
    ------
    N5BlockError
        The payload is damaged or too short (``kind="payload"``).
    N5MissingDependencyError
        An optional package is needed.
    """
    if n_bytes == 0:
        return b""
    if len(payload) == 0:
        raise damaged(f"expected {n_bytes} bytes of {compression.type}, got an empty payload")
    data: BufferLike = _MODULES[compression.type].decompress(payload, n_bytes, compression)
    if len(data) != n_bytes:
        raise damaged(f"expected {n_bytes} bytes, got {len(data)} (truncated write?)")
    return data


def decompress_reused(
    payload: memoryview, n_bytes: int, compression: Compression, memory: Scratch
) -> BufferLike:
    """Decompress the payload of a block into memory that the next call uses again.

    See :func:`decompress`, whose result is the caller's.
    """
    to = getattr(_MODULES[compression.type], "decompress_to", None)
    if to is not None and n_bytes and n_bytes <= REUSED:
        buffer = memory.bytes(n_bytes, "decompressed")
        if to(payload, buffer):
            return buffer
    return decompress(payload, n_bytes, compression)


def decompress_all(payload: memoryview, limit: int, compression: Compression) -> BufferLike:
    """Decompress a payload whose size is not known.

    Parameters
    ----------
    payload : memoryview
        What follows the header, as bytes.
    limit : int
        How many bytes are too many.
    compression : Compression
        How it was compressed.

    Returns
    -------
    bytes-like
        All that is in the payload.

    Raises
    ------
    N5BlockError
        The payload is damaged or holds ``limit`` bytes or more (``kind="payload"``).
    N5MissingDependencyError
        An optional package is needed.
    """
    if isinstance(compression, Raw):
        data: BufferLike = payload
    elif len(payload) == 0:
        raise damaged(f"expected a {compression.type} stream, got an empty payload")
    else:
        data = _MODULES[compression.type].decompress(payload, limit, compression)
    if len(data) >= limit:
        raise damaged(f"expected less than {limit} bytes, got more")
    return data


def usable(payload: memoryview, n_bytes: int, compression: Compression) -> int | None:
    """Say how much of a payload Zarr's codec of the same compression can take as it is.

    Parameters
    ----------
    payload : memoryview
        What follows the header, as bytes.
    n_bytes : int
        How many bytes it must decode to.
    compression : Compression
        How it was compressed.

    Returns
    -------
    int or None
        Number of leading bytes; None when the chunk has to be made from the decoded block.

    Raises
    ------
    N5BlockError
        The payload is damaged in a way that needs no decoding to see (``kind="payload"``).
    """
    if isinstance(compression, Gzip) and compression.use_zlib:
        return gzip.usable_zlib(payload, n_bytes)
    n_usable: int | None = _MODULES[compression.type].usable(payload, n_bytes)
    return n_usable


def shows_cuts(compression: Compression) -> bool:
    """Whether :func:`usable` finds out that the end of a payload is missing.

    Examples
    --------
    >>> shows_cuts(Gzip()), shows_cuts(Gzip(use_zlib=True))
    (True, False)
    """
    is_zlib = isinstance(compression, Gzip) and compression.use_zlib
    return compression.type in ("raw", "gzip", "blosc", "zstd") and not is_zlib


def store(data: BufferLike, compression: Compression) -> BufferLike:
    """Wrap data in the cheapest stream that Zarr's codec of a compression decodes.

    Parameters
    ----------
    data : bytes-like
        What the stream must decode to.
    compression : Compression
        The compression that is presented; its level does not matter.

    Returns
    -------
    bytes-like
        The stream.
    """
    if isinstance(compression, Gzip) and compression.use_zlib:
        return gzip.store_zlib(data)
    stored: BufferLike = _MODULES[compression.type].store(data)
    return stored


def check_writable(compression: Compression) -> None:
    """Raise if a compression can only be read.

    Raises
    ------
    N5UnsupportedError
        It loses data, or there is no library that writes it (``kind="compression"``).
    """
    snappy = isinstance(compression, Blosc) and compression.cname == "snappy"
    if compression.type == "jpeg" or snappy:
        name = "blosc with snappy" if snappy else compression.type
        message = f"compression: {name} can only be read; use another one"
        raise N5UnsupportedError(message, kind="compression")


def within_limits(compression: Compression, item_size: int) -> Compression:
    """Bring parameters into the range that every reader takes, with the same meaning.

    Parameters
    ----------
    compression : Compression
        As it may stand in a document: zstd levels beyond the library's, which it cuts, and the
        shuffle -1 of blosc, which depends on the elements. tensorstore refuses both.
    item_size : int
        Bytes per element.

    Examples
    --------
    >>> from n5zarr.format.compression import Blosc, Zstd
    >>> within_limits(Zstd(level=100), 2), within_limits(Blosc(shuffle=-1), 2).shuffle
    (Zstd(level=22), 1)
    """
    match compression:
        case Zstd(level=level):
            return replace(compression, level=zstd.clamp_level(level))
        case Blosc(shuffle=-1):  # as numcodecs takes it
            return replace(compression, shuffle=2 if item_size == 1 else 1)
        case _:
            return compression


def passes(compression: Compression) -> bool:
    """Whether the stream of Zarr's codec of the same compression is a payload as it is.

    Examples
    --------
    >>> from n5zarr.format.compression import Lz4, Zstd
    >>> passes(Zstd()), passes(Lz4())
    (True, False)
    """
    return compression.type not in ("lz4", "lzma", "jpeg")
