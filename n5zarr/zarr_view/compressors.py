"""Present compressions of N5 as compressors of Zarr v3 and v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from n5zarr.codecs.compress import codec_of, within_zarr_limits

if TYPE_CHECKING:
    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON

__all__ = [
    "is_portable",
    "keeps_elements",
    "keeps_elements_v2",
    "numcodecs_compressor",
    "same_codecs",
    "zarr_compressors",
]

_COMPRESSORS = ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd")
_LOSSLESS = {
    "transpose", "bytes", "gzip", "zstd", "blosc", "crc32c",
    *(f"numcodecs.{name}" for name in _COMPRESSORS),
}  # fmt: skip


def keeps_elements(codecs: Sequence[JSON]) -> bool:
    """Whether a chain of Zarr v3 only converts elements to bytes: no filters, no shards.

    Examples
    --------
    >>> keeps_elements(["bytes", {"name": "zstd"}]), keeps_elements(["numcodecs.delta", "bytes"])
    (True, False)
    """
    return all(_name_and_configuration(codec)[0] in _LOSSLESS for codec in codecs)


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
    return list(map(_name_and_configuration, first)) == list(map(_name_and_configuration, second))


def _name_and_configuration(codec: JSON) -> tuple[JSON, JSON]:
    if not isinstance(codec, Mapping):
        return codec, {}
    return codec.get("name"), codec.get("configuration") or {}


def is_portable(compression: Compression) -> bool:
    """Whether every reader of Zarr v3 can decompress: no codec, or one that Zarr v3 specifies."""
    codec = codec_of(compression).zarr_codec(compression)
    return codec is None or not codec[0].startswith("numcodecs.")


def zarr_compressors(compression: Compression) -> list[dict[str, JSON]]:
    """Return the compressors of a ``zarr.json`` for a compression of N5; empty for raw."""
    limited = within_zarr_limits(compression, 1)
    codec = codec_of(limited).zarr_codec(limited)
    return [] if codec is None else [{"name": codec[0], "configuration": codec[1]}]


def numcodecs_compressor(compression: Compression) -> dict[str, JSON] | None:
    """Return the compressor of a ``.zarray`` for a compression of N5; None for raw."""
    limited = within_zarr_limits(compression, 1)
    return codec_of(limited).numcodec(limited)
