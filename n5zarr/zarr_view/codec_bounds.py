"""Limit the cost of recorded codecs: zarr runs them on every block, even one with a small file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

__all__ = ["excess"]

_MOST_CODECS = 64
_MOST_GROWTH = 16  # such as from bytes to complex numbers
_MOST_CHUNKS = 2**14  # in a shard: zarr takes some 25 us and 750 bytes for each
_ENOUGH = 2**12  # elements; a shard may have any number of chunks of this size or larger
_GROWTH = {"base64": 4 / 3, "json2": 8, "msgpack2": 8, "vlen-array": 8}


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


def _chain(codecs: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield names and configurations of all codecs of Zarr v3, including those inside shards."""
    for codec in codecs:
        if isinstance(codec, Mapping):
            configuration = codec.get("configuration") or {}
            yield str(codec.get("name")).removeprefix("numcodecs."), configuration
            for inner in ("codecs", "index_codecs"):
                yield from _chain(configuration.get(inner) or ())
        else:
            yield str(codec), {}


def _growth(name: str, configuration: Mapping[str, Any]) -> float:
    """Return the largest number of bytes that a filter makes of one byte."""
    of, to = ("decode_dtype", "encode_dtype") if name == "astype" else ("dtype", "astype")
    if of in configuration and to in configuration:
        wide: int = np.dtype(configuration[to]).itemsize
        narrow: int = np.dtype(configuration[of]).itemsize
        return max(1.0, wide / max(1, narrow))
    return _GROWTH.get(name, 1)
