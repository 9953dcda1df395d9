"""Find the codec of a compression, and decompress payloads with checks of their size.

See `n5zarr.codecs.compression` for the interface of a codec, and how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from n5zarr.codecs.blosc import BloscCodec
from n5zarr.codecs.buffers import REUSED, BufferLike, Scratch, damaged
from n5zarr.codecs.bzip2 import Bzip2Codec
from n5zarr.codecs.compression import Codec
from n5zarr.codecs.gzip import GzipCodec
from n5zarr.codecs.jpeg import JpegCodec
from n5zarr.codecs.lz4 import Lz4Codec
from n5zarr.codecs.raw import RawCodec
from n5zarr.codecs.xz import LzmaCodec, XzCodec
from n5zarr.codecs.zstd import ZstdCodec
from n5zarr.errors import N5AttributesError, N5BlockError
from n5zarr.format.compression import Compression, Raw, parse_compression
from n5zarr.format.lenient_json import JSON

# N5 spec, "Extensible compression schemes". The cast is sound: a codec is looked up by the type of
# its own compression, so it is never called with another one.
_CODECS = cast(
    "Mapping[str, Codec[Compression]]",
    {
        "raw": RawCodec(),
        "gzip": GzipCodec(),
        "bzip2": Bzip2Codec(),
        "xz": XzCodec(),
        "lzma": LzmaCodec(),
        "lz4": Lz4Codec(),
        "blosc": BloscCodec(),
        "zstd": ZstdCodec(),
        "jpeg": JpegCodec(),
    },
)

# names in a ``zarr.json`` or numcodecs' ids, and the compression of N5 that is nearest
_OF_ZARR = {
    "gzip": "gzip",
    "zlib": "gzip",
    "bz2": "bzip2",
    "lzma": "xz",
    "lz4": "lz4",
    "blosc": "blosc",
    "zstd": "zstd",
}


def codec_of(compression: Compression) -> Codec[Compression]:
    """Find the codec of a compression.

    Examples
    --------
    >>> from n5zarr.format.compression import Zstd
    >>> codec_of(Zstd()).zarr_codec(Zstd())
    ('zstd', {'level': 3, 'checksum': False})
    """
    return _CODECS[compression.type]


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
    if payload and 0 < n_bytes <= REUSED:
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


# ---------------------------------------------------------------------- the codecs of Zarr


def within_zarr_limits(compression: Compression, item_size: int) -> Compression:
    """Bring parameters into the range that zarr-python accepts.

    Examples
    --------
    >>> from n5zarr.format.compression import Gzip
    >>> within_zarr_limits(Gzip(level=-1), 2)
    Gzip(use_zlib=False, level=6)
    """
    codec = _CODECS[compression.type]
    return codec.within_zarr_limits(codec.within_limits(compression, item_size))


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
    name = codec.removeprefix("numcodecs.")
    if name not in _OF_ZARR:
        return None
    nearest = _CODECS[_OF_ZARR[name]].from_zarr(name, configuration)
    try:
        return parse_compression(nearest)
    except N5AttributesError:
        return parse_compression({"type": nearest["type"]})
