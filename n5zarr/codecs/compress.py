"""Compress and decompress payloads: pass each call to the codec of the compression.

See `n5zarr.codecs.compression` for the interface of a codec, and how to add one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from n5zarr.codecs.blosc import BloscCodec
from n5zarr.codecs.buffers import REUSED, damaged
from n5zarr.codecs.bzip2 import Bzip2Codec
from n5zarr.codecs.gzip import GzipCodec
from n5zarr.codecs.jpeg import JpegCodec
from n5zarr.codecs.lz4 import Lz4Codec
from n5zarr.codecs.raw import RawCodec
from n5zarr.codecs.xz import XzCodec
from n5zarr.codecs.zstd import ZstdCodec
from n5zarr.errors import N5AttributesError, N5BlockError
from n5zarr.format.compression import Raw, parse_compression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.codecs.buffers import BufferLike, Scratch
    from n5zarr.codecs.compression import Codec
    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON

__all__ = [
    "check_writable",
    "compress",
    "decodes",
    "decompress",
    "decompress_all",
    "decompress_reused",
    "detects_incomplete",
    "is_bounded",
    "judges_ends",
    "measure",
    "numcodec",
    "passes",
    "seems_usable",
    "store",
    "usable",
    "within_limits",
    "within_zarr_limits",
    "zarr_codec",
    "zarr_to_compression",
]

_xz = XzCodec()

# N5 spec, "Extensible compression schemes". The cast is sound: a codec is looked up by the type of
# its own compression, so it is never called with another one.
_CODECS = cast(
    "Mapping[str, Codec[Compression]]",
    {
        "raw": RawCodec(),
        "gzip": GzipCodec(),
        "bzip2": Bzip2Codec(),
        "xz": _xz,
        "lzma": _xz,
        "lz4": Lz4Codec(),
        "blosc": BloscCodec(),
        "zstd": ZstdCodec(),
        "jpeg": JpegCodec(),
    },
)


def compress(data: BufferLike, compression: Compression, item_size: int) -> BufferLike:
    """Compress the elements of a block.

    Parameters
    ----------
    data : bytes-like
        Elements, big-endian, first axis of N5 order fastest.
    compression : Compression
        Of the dataset.
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
    return _CODECS[compression.type].compress(data, compression, item_size)


def decompress(payload: memoryview, n_bytes: int, compression: Compression) -> BufferLike:
    """Decompress the payload of a block.

    Parameters
    ----------
    payload : memoryview
        The bytes of the block after its header.
    n_bytes : int
        Number of bytes that the header announces; at most a little more is decompressed.
    compression : Compression
        How it was compressed.

    Returns
    -------
    bytes-like
        Exactly ``n_bytes``. As in Java, a payload may hold more, unless the compression is ``raw``
        and the payload is a compressed stream.

    Raises
    ------
    N5BlockError
        The payload is damaged or too short (``kind="payload"``).
    N5MissingDependencyError
        An optional package is needed.
    """
    if n_bytes == 0:
        return b""
    _check_not_empty(payload, n_bytes, compression)
    data = _CODECS[compression.type].decompress(payload, n_bytes, compression)
    if len(data) != n_bytes:
        raise _incomplete(n_bytes, len(data))
    return data


def _check_not_empty(payload: memoryview, n_bytes: int, compression: Compression) -> None:
    if len(payload) == 0:
        raise damaged(f"expected {n_bytes} bytes of {compression.type}, got an empty payload")


def _incomplete(n_bytes: int, n_decoded: int) -> N5BlockError:
    return damaged(f"expected {n_bytes} bytes, got {n_decoded} (incomplete write?)")


def measure(payload: memoryview, n_bytes: int, compression: Compression) -> tuple[int, int]:
    """Decode a payload, and count the bytes that readers ignore, too.

    Parameters
    ----------
    payload, n_bytes, compression
        As for :func:`decompress`; ``n_bytes`` at least 1.

    Returns
    -------
    n_decoded, n_used : int
        Number of bytes to which the streams decode that hold the first ``n_bytes``, and number of
        bytes of the payload up to their end.

    Raises
    ------
    N5BlockError
        As in :func:`decompress`.
    """
    _check_not_empty(payload, n_bytes, compression)
    n_decoded, n_used = _CODECS[compression.type].measure(payload, n_bytes, compression)
    if n_decoded < n_bytes:
        raise _incomplete(n_bytes, n_decoded)
    return n_decoded, n_used


def decompress_reused(
    payload: memoryview, n_bytes: int, compression: Compression, memory: Scratch
) -> BufferLike:
    """Decompress the payload of a block, if possible into memory that the next call overwrites.

    Otherwise as :func:`decompress`.
    """
    if 0 < n_bytes <= REUSED:
        data = _CODECS[compression.type].decompress_into(payload, n_bytes, memory)
        if data is not None:
            return data
    return decompress(payload, n_bytes, compression)


def decompress_all(payload: memoryview, limit: int, compression: Compression) -> BufferLike:
    """Decompress a payload whose size is not known.

    Parameters
    ----------
    payload : memoryview
        The bytes of the block after its header.
    limit : int
        Smallest number of decompressed bytes that is an error.
    compression : Compression
        How it was compressed.

    Returns
    -------
    bytes-like
        All decompressed bytes.

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
        data = _CODECS[compression.type].decompress(payload, limit, compression)
    if len(data) >= limit:
        raise damaged(f"expected less than {limit} bytes, got more")
    return data


def usable(payload: memoryview, n_bytes: int, compression: Compression) -> int | None:
    """Count the leading bytes of a payload that Zarr's codec of the same compression decodes.

    Parameters
    ----------
    payload : memoryview
        The bytes of the block after its header.
    n_bytes : int
        Number of bytes that the payload must decode to.
    compression : Compression
        How it was compressed.

    Returns
    -------
    int or None
        Number of bytes; None if the block has to be decoded to make the chunk.

    Raises
    ------
    N5BlockError
        The payload is damaged; detects only damage that shows without decompressing
        (``kind="payload"``).
    """
    return _CODECS[compression.type].usable(payload, n_bytes, compression)


def is_bounded(payload: memoryview, n_bytes: int, compression: Compression) -> bool | None:
    """Whether other decoders expand a payload to at most little more than ``n_bytes``.

    Parameters
    ----------
    payload : memoryview
        A stream that :func:`usable` accepts.
    n_bytes : int
        Number of bytes that it should decode to.
    compression : Compression
        How it was compressed.

    Returns
    -------
    bool or None
        None for streams without a size or with one that may be wrong: call :func:`decodes`.
    """
    return _CODECS[compression.type].is_bounded(payload, n_bytes, compression)


def decodes(payload: memoryview, n_bytes: int, compression: Compression) -> bool:
    """Whether a payload decodes to ``n_bytes``, by decompressing it; see :func:`decompress`."""
    return _CODECS[compression.type].decodes(payload, n_bytes, compression)


def seems_usable(
    start: memoryview, size: int, n_bytes: int, compression: Compression
) -> int | None:
    """Count as :func:`usable` does, judged by the first bytes of a payload.

    Parameters
    ----------
    start : memoryview
        The first 32 bytes of the payload, or all of a shorter one.
    size : int
        Length of the payload, in bytes.
    n_bytes : int
        Number of bytes that the payload must decode to.
    compression : Compression
        How it was compressed.

    Returns
    -------
    int or None
        Number of bytes; None if the first bytes do not determine it. Later damage is not detected.

    Raises
    ------
    N5BlockError
        The first bytes are damaged (``kind="payload"``).
    """
    return _CODECS[compression.type].seems_usable(start, size, n_bytes, compression)


def judges_ends(compression: Compression) -> bool:
    """Whether :func:`usable` reads the first and last 4096 bytes only.

    Examples
    --------
    >>> from n5zarr.format.compression import Gzip, Zstd
    >>> judges_ends(Gzip()), judges_ends(Zstd())
    (True, False)
    """
    return _CODECS[compression.type].judges_ends(compression)


def detects_incomplete(compression: Compression) -> bool:
    """Whether :func:`usable` notices that the end of a payload is missing.

    Examples
    --------
    >>> from n5zarr.format.compression import Gzip
    >>> detects_incomplete(Gzip()), detects_incomplete(Gzip(use_zlib=True))
    (True, False)
    """
    return _CODECS[compression.type].detects_incomplete(compression)


def store(data: BufferLike, compression: Compression) -> BufferLike:
    """Wrap data in the stream of Zarr's codec that takes the least time to make.

    Parameters
    ----------
    data : bytes-like
        The bytes that the stream must decode to.
    compression : Compression
        The compression whose codec is in the Zarr document; its level does not matter.

    Returns
    -------
    bytes-like
        The stream.
    """
    return _CODECS[compression.type].store(data, compression)


def check_writable(compression: Compression) -> None:
    """Raise if a compression can only be read.

    Raises
    ------
    N5UnsupportedError
        The compression loses data, or no library writes it (``kind="compression"``).
    """
    _CODECS[compression.type].check_writable(compression)


def within_limits(compression: Compression, item_size: int) -> Compression:
    """Bring parameters into the range that every N5 reader accepts, with the same meaning.

    Parameters
    ----------
    compression : Compression
        As in a document, which may have zstd levels that the library clamps, and blosc's shuffle
        -1, which depends on the elements. tensorstore refuses both.
    item_size : int
        Bytes per element.

    Examples
    --------
    >>> from n5zarr.format.compression import Blosc, Zstd
    >>> within_limits(Zstd(level=100), 2), within_limits(Blosc(shuffle=-1), 2).shuffle
    (Zstd(level=22), 1)
    """
    return _CODECS[compression.type].within_limits(compression, item_size)


def passes(compression: Compression) -> bool:
    """Whether each stream of Zarr's codec is a valid payload, so that chunks are stored unchanged.

    Examples
    --------
    >>> from n5zarr.format.compression import Lz4, Zstd
    >>> passes(Zstd()), passes(Lz4())
    (True, False)
    """
    return _CODECS[compression.type].passes(compression)


# ---------------------------------------------------------------------- the codecs of Zarr


def within_zarr_limits(compression: Compression, item_size: int) -> Compression:
    """Bring parameters into the range that zarr-python accepts.

    Examples
    --------
    >>> from n5zarr.format.compression import Gzip
    >>> within_zarr_limits(Gzip(level=-1), 2)
    Gzip(use_zlib=False, level=6)
    """
    limited = within_limits(compression, item_size)
    return _CODECS[compression.type].within_zarr_limits(limited)


def zarr_codec(compression: Compression) -> tuple[str, Mapping[str, JSON]] | None:
    """Return name and configuration of the codec in a ``zarr.json``; None for no compression.

    Examples
    --------
    >>> from n5zarr.format.compression import Zstd
    >>> zarr_codec(Zstd())
    ('zstd', {'level': 3, 'checksum': False})
    """
    return _CODECS[compression.type].zarr_codec(compression)


def numcodec(compression: Compression) -> dict[str, JSON] | None:
    """Return the configuration of numcodecs' codec, with ``id``; None for no compression.

    Examples
    --------
    >>> from n5zarr.format.compression import Zstd
    >>> numcodec(Zstd())
    {'id': 'zstd', 'level': 3}
    """
    return _CODECS[compression.type].numcodec(compression)


def zarr_to_compression(codec: str, configuration: Mapping[str, JSON]) -> Compression | None:
    """Find the compression of N5 that is nearest to a codec of Zarr.

    Parameters
    ----------
    codec : str
        The name in a ``zarr.json``, or numcodecs' ``id``.
    configuration : mapping
        Its parameters.

    Returns
    -------
    Compression or None
        With default parameters if those of the codec are out of N5's range; None if no compression
        of N5 is related to the codec.

    Examples
    --------
    >>> zarr_to_compression("numcodecs.bz2", {"level": 1})
    Bzip2(block_size=1)
    """
    for n5_codec in _CODECS.values():
        nearest = n5_codec.from_zarr(codec.removeprefix("numcodecs."), configuration)
        if nearest is not None:
            try:
                return parse_compression(nearest)
            except N5AttributesError:
                return parse_compression({"type": nearest["type"]})
    return None
