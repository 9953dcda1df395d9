"""Present compressions of N5 as compressors of Zarr v3 and v2, and judge chains of codecs.

The cost of recorded codecs is limited: zarr runs them on every block, even one with a small file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from n5zarr.codecs.compress import codec_of, within_zarr_limits
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.compression import Compression, Raw
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.keys import ZarrFormat

_COMPRESSORS = ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd")
_LOSSLESS = {
    "transpose", "bytes", "gzip", "zstd", "blosc", "crc32c",
    *(f"numcodecs.{name}" for name in _COMPRESSORS),
}  # fmt: skip

_MOST_CODECS = 64
_MOST_GROWTH = 16  # such as from bytes to complex numbers
_MOST_CHUNKS = 2**14  # in a shard: zarr takes some 25 us and 750 bytes for each
_ENOUGH = 2**12  # elements; a shard may have any number of chunks of this size or larger
_GROWTH = {"base64": 4 / 3, "json2": 8, "msgpack2": 8, "vlen-array": 8}


def keeps_elements(codecs: Sequence[JSON]) -> bool:
    """Whether a chain of Zarr v3 only converts elements to bytes: no filters, no shards.

    Examples
    --------
    >>> keeps_elements(["bytes", {"name": "zstd"}]), keeps_elements(["numcodecs.delta", "bytes"])
    (True, False)
    """
    return all(name_and_configuration(codec)[0] in _LOSSLESS for codec in codecs)


def keeps_elements_v2(encoding: Mapping[str, JSON]) -> bool:
    """Whether compressor and filters of a ``.zarray`` only convert elements to bytes."""
    compressor = encoding["compressor"]
    name = compressor.get("id") if isinstance(compressor, Mapping) else None
    return not encoding["filters"] and (compressor is None or name in _COMPRESSORS)


def same_codecs(first: Sequence[JSON], second: Sequence[JSON]) -> bool:
    """Whether two chains of codecs make the same bytes, in any notation.

    Examples
    --------
    >>> same_codecs(["bytes"], [{"name": "bytes", "configuration": {}}])
    True
    """
    return list(map(name_and_configuration, first)) == list(map(name_and_configuration, second))


def name_and_configuration(codec: JSON) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a codec of Zarr v3, which may be all of it, and its configuration."""
    if not isinstance(codec, Mapping):
        return str(codec), {}
    configuration = codec.get("configuration")
    return str(codec.get("name")), configuration if isinstance(configuration, Mapping) else {}


def excess(document: Mapping[str, Any]) -> str | None:
    """Describe the limit that the codecs of a ``zarr.json`` or ``.zarray`` exceed; None if none.

    Examples
    --------
    >>> excess({"codecs": [{"name": "bytes"}] * 65})
    'codecs: expected at most 64, got 65'
    """
    with suppress(TypeError, ValueError, KeyError, AttributeError):  # zarr reports these
        if document.get("zarr_format") == 2:
            codecs = [*(document.get("filters") or []), document.get("compressor")]
            chain = [(str(c["id"]), c) for c in codecs if isinstance(c, Mapping)]
        else:
            chain = [*_chain(document["codecs"])]
        growth = math.prod(_growth(name, configuration) for name, configuration in chain)
        if len(chain) > _MOST_CODECS:
            return f"codecs: expected at most {_MOST_CODECS}, got {len(chain)}"
        if growth > _MOST_GROWTH:
            return f"codecs: expected filters that make at most {_MOST_GROWTH} bytes of each byte"
        inner = [math.prod(c["chunk_shape"]) for name, c in chain if name == "sharding_indexed"]
        if inner:
            return _excess_of_chunks(document["chunk_grid"]["configuration"]["chunk_shape"], inner)
    return None


def _excess_of_chunks(shard: Sequence[int], inner: Sequence[int]) -> str | None:
    n_chunks = math.prod(shard) // max(1, min(inner))
    if n_chunks <= _MOST_CHUNKS or min(inner) >= _ENOUGH:
        return None
    return (
        f"codecs: expected shards of at most {_MOST_CHUNKS} chunks, or chunks of {_ENOUGH} "
        f"elements and more, got {n_chunks} chunks of {min(inner)}"
    )


def _chain(codecs: Sequence[JSON]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield names and configurations of all codecs of Zarr v3, including those inside shards."""
    for codec in codecs:
        name, configuration = name_and_configuration(codec)
        yield name.removeprefix("numcodecs."), configuration
        for inner in ("codecs", "index_codecs"):
            yield from _chain(configuration.get(inner) or ())


def _growth(name: str, configuration: Mapping[str, Any]) -> float:
    """Return the largest number of bytes that a filter makes of one byte."""
    of, to = ("decode_dtype", "encode_dtype") if name == "astype" else ("dtype", "astype")
    if of in configuration and to in configuration:
        wide: int = np.dtype(configuration[to]).itemsize
        narrow: int = np.dtype(configuration[of]).itemsize
        return max(1.0, wide / max(1, narrow))
    return _GROWTH.get(name, 1)


def is_in_zarr(compression: Compression) -> bool:
    """Whether Zarr has the compression."""
    return isinstance(compression, Raw) or codec_of(compression).numcodec(compression) is not None


def is_portable(compression: Compression) -> bool:
    """Whether every reader of Zarr v3 can decompress: no codec, or one that Zarr v3 specifies."""
    codec = codec_of(compression).zarr_codec(compression)
    return codec is None or not codec[0].startswith("numcodecs.")


def zarr_compressors(compression: Compression) -> list[dict[str, JSON]]:
    """Return the compressors of a ``zarr.json`` for a compression of N5; empty for raw."""
    limited = within_zarr_limits(compression, 1)
    codec = codec_of(limited).zarr_codec(limited)
    return [] if codec is None else [{"name": codec[0], "configuration": codec[1]}]


def compressors_to_write(
    compression: Compression, zarr_format: ZarrFormat
) -> list[dict[str, JSON]] | dict[str, JSON] | None:
    """Return the ``compressors`` with which zarr creates an array; only raw has none.

    Raises
    ------
    N5UnsupportedError
        Zarr lacks the compression (``kind="compression"``).
    """
    if not is_in_zarr(compression):
        raise N5UnsupportedError(
            f"compression: expected one that Zarr has, got {compression.type}, which holds only "
            "arrays of N5's numeric types; choose another, such as gzip or zstd",
            kind="compression",
        )
    return (numcodecs_compressor if zarr_format == 2 else zarr_compressors)(compression)


def numcodecs_compressor(compression: Compression) -> dict[str, JSON] | None:
    """Return the compressor of a ``.zarray`` for a compression of N5; None for raw."""
    limited = within_zarr_limits(compression, 1)
    return codec_of(limited).numcodec(limited)
