"""Compressions of N5 as codecs of Zarr v3, and as numcodecs' configurations for Zarr v2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.codecs.compress import within_limits
from n5zarr.format.compression import (
    Blosc,
    Bzip2,
    Compression,
    Gzip,
    Jpeg,
    Lz4,
    Lzma,
    Raw,
    Xz,
    Zstd,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "accepted",
    "codec_v3",
    "is_portable",
    "numcodec",
    "numcodecs_compressor",
    "same_codecs",
    "zarr_compressors",
]

_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


def same_codecs(first: Sequence[JSON], second: Sequence[JSON]) -> bool:
    """Whether two chains make the same bytes, however they are spelled.

    Examples
    --------
    >>> same_codecs(["bytes"], [{"name": "bytes", "configuration": {}}])
    True
    """
    return list(map(_spelled, first)) == list(map(_spelled, second))


def _spelled(codec: JSON) -> tuple[JSON, JSON]:
    if not isinstance(codec, Mapping):
        return codec, {}
    return codec.get("name"), codec.get("configuration") or {}


def is_portable(compression: Compression) -> bool:
    """Whether Zarr v3 specifies a codec for the compression."""
    shown = codec_v3(compression)
    return shown is None or not shown[0].startswith("numcodecs.")


def accepted(compression: Compression, item_size: int) -> Compression:
    """Bring parameters into the range that zarr-python accepts."""
    match within_limits(compression, item_size):
        case Gzip(level=-1) as accepted:
            return replace(accepted, level=6)
        case Blosc(cname="snappy") as accepted:  # numcodecs is built without it
            return replace(accepted, cname="lz4")
        case accepted:
            return accepted


def codec_v3(compression: Compression) -> tuple[str, Mapping[str, JSON]] | None:
    """Give name and configuration of the codec; None for no compression."""
    match compression:
        case Raw() | Jpeg():
            return None
        case Gzip(use_zlib=True):
            return "numcodecs.zlib", {"level": compression.level}
        case Gzip():
            return "gzip", {"level": compression.level}
        case Zstd():
            return "zstd", {"level": compression.level, "checksum": False}
        case Blosc():
            return "blosc", {
                "cname": compression.cname,
                "clevel": compression.clevel,
                "shuffle": _SHUFFLES[compression.shuffle],
                "blocksize": compression.block_size,
            }
        case _:
            configuration = numcodec(compression) or {}  # is the same
            return f"numcodecs.{configuration.pop('id')}", configuration


def zarr_compressors(compression: Compression) -> list[dict[str, JSON]]:
    """Give the compressor of a ``zarr.json`` for a compression of N5; none for raw."""
    shown = codec_v3(accepted(compression, 1))
    return [] if shown is None else [{"name": shown[0], "configuration": shown[1]}]


def numcodecs_compressor(compression: Compression) -> dict[str, JSON] | None:
    """Give the compressor of a ``.zarray`` for a compression of N5; None for raw."""
    return numcodec(accepted(compression, 1))


def numcodec(compression: Compression) -> dict[str, JSON] | None:
    """Give numcodecs' configuration; None for no compression."""
    config: dict[str, JSON] | None = None
    match compression:
        case Raw() | Jpeg():
            pass
        case Gzip(use_zlib=use_zlib, level=level):
            config = {"id": "zlib" if use_zlib else "gzip", "level": level}
        case Zstd(level=level):
            config = {"id": "zstd", "level": level}
        case Blosc(cname=cname, clevel=clevel, shuffle=shuffle, block_size=size):
            config = {"id": "blosc", "cname": cname, "clevel": clevel}
            config |= {"shuffle": shuffle, "blocksize": size}
        case Bzip2(block_size=level):
            config = {"id": "bz2", "level": level}
        case Xz() | Lzma():
            preset = compression.preset if isinstance(compression, Xz) else None
            config = {"id": "lzma", "format": 1, "check": -1, "preset": preset, "filters": None}
        case Lz4():
            config = {"id": "lz4", "acceleration": 1}
    return config
