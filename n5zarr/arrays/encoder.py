"""Encode chunks of ordinary Zarr arrays with the codecs of N5's compressions, which are faster.

A payload of N5 is a chunk of Zarr; shards join such chunks. zarr itself encodes all other arrays.
Zarr v3, codec ``sharding_indexed``: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import add
from typing import Any, Self

import google_crc32c
import numpy as np
from zarr.codecs import BytesCodec
from zarr.types import AnyArray

from n5zarr.arrays.boxes import BoxSlices
from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.compress import codec_of, zarr_to_compression
from n5zarr.format.compression import Compression, Raw
from n5zarr.zarr_view.compressors import numcodecs_compressor, zarr_compressors

_MISSING = 2**64 - 1  # offset and size of a missing chunk


def join_shard(chunks: Sequence[BufferLike | None]) -> bytes | None:
    """Join the chunks of a shard, with the index behind them: little endian, with a CRC-32C.

    Parameters
    ----------
    chunks : sequence of bytes-like or None
        The encoded chunks of the whole shard in C order; None for a missing chunk.

    Returns
    -------
    bytes or None
        None if all chunks are missing.

    Examples
    --------
    >>> len(join_shard([b"abc", None]))
    39
    """
    sizes = [None if chunk is None else memoryview(chunk).nbytes for chunk in chunks]
    index = shard_index(sizes)
    return None if index is None else b"".join([*(c for c in chunks if c is not None), index])


def shard_index(sizes: Sequence[int | None]) -> bytes | None:
    """Make the index of a shard from the sizes of its chunks, None for a missing one.

    None if all chunks are missing.
    """
    if all(size is None for size in sizes):
        return None
    index = np.full((len(sizes), 2), _MISSING, "<u8")
    end = 0
    for k, size in enumerate(sizes):
        if size is not None:
            index[k] = end, size
            end += size
    stored = index.tobytes()
    checksum: bytes = google_crc32c.value(stored).to_bytes(4, "little")
    return stored + checksum


_SAME_BYTES = ("gzip", "zstd", "blosc")
_MORE = 2**10  # bytes, with a 256th of a chunk: more than what compression ever adds, and the index


@dataclass(frozen=True)
class Encoder:
    """Encode the chunks, or shards, of one array.

    Parameters
    ----------
    dtype : numpy.dtype
        Of the stored elements, with their byte order.
    compression : Compression
        How they are compressed.
    chunks : tuple of int
        Extent of a chunk in elements, C order.
    shards : tuple of int or None
        Extent of a shard.
    fill_value : numpy.ndarray
        Value of missing elements, 0-D, of ``dtype``.
    """

    dtype: np.dtype[Any]
    compression: Compression
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    fill_value: np.ndarray

    @classmethod
    def of(cls, array: AnyArray) -> Self | None:
        """Make the encoder of an array; None if zarr must encode its chunks."""
        if array.dtype.kind not in "buifc" or array.filters or not array.shape:
            return None
        dtype, compression = array.dtype, _compression(array)
        serializer = array.serializer
        if compression is None or getattr(array, "order", "C") != "C":
            return None
        if array.metadata.zarr_format == 3:
            if not isinstance(serializer, BytesCodec):
                return None
            endian = getattr(serializer.endian, "value", serializer.endian)
            dtype = dtype.newbyteorder(">" if endian == "big" else "<")
        fill = np.array(0 if array.fill_value is None else array.fill_value).astype(dtype)
        return cls(dtype, compression, array.chunks, array.shards, fill)

    def units(
        self, box: BoxSlices, values: np.ndarray
    ) -> Iterator[tuple[tuple[int, ...], BufferLike]]:
        """Encode a box of whole chunks or shards; omit those with fill values only.

        Parameters
        ----------
        box : tuple of slice
            The place of the values in the array; begins at a chunk or shard.
        values : numpy.ndarray
            The elements.

        Yields
        ------
        position, data : tuple of int, bytes-like
            Position in the grid of chunks or shards, and the encoded unit.
        """
        values = np.asarray(values)
        step = self.shards or self.chunks
        first = [s.start // n for s, n in zip(box, step, strict=True)]
        for position, unit in _split(values, step):
            data = self.chunk(unit) if self.shards is None else self._shard(unit)
            if data is not None:
                yield tuple(map(add, first, position)), data

    def _shard(self, values: np.ndarray) -> BufferLike | None:
        """Encode the chunks of a shard, each in the memory of the shard: new memory is slow."""
        grid = tuple(s // c for s, c in zip(self.shards or (), self.chunks, strict=True))
        parts = dict(_split(values, self.chunks))
        item_size = self.dtype.itemsize
        n_bytes = math.prod(self.chunks) * item_size
        # what is not used costs nothing
        memory = np.empty((1 + math.prod(grid)) * (_MORE + n_bytes + n_bytes // 256), "u1")
        sizes, end = [], 0
        for position in np.ndindex(grid):
            start = -(-end // item_size) * item_size  # aligned: where the chunk is put, if raw
            place = memory[start : start + n_bytes].view(self.dtype).reshape(self.chunks)
            data = self.chunk(parts[position], place) if position in parts else None
            n = 0 if data is None else memoryview(data).nbytes
            sizes.append(n or None)
            if data is not None and not isinstance(self.compression, Raw):
                memory[end : end + n] = np.frombuffer(data, "u1")
            end += n
        index = shard_index(sizes)
        if index is None:
            return None
        memory[end : end + len(index)] = np.frombuffer(index, "u1")
        return memory[: end + len(index)].data

    def chunk(self, values: np.ndarray, memory: np.ndarray | None = None) -> BufferLike | None:
        """Encode a chunk, padded if the array ends inside it.

        Parameters
        ----------
        values : numpy.ndarray
            The elements.
        memory : numpy.ndarray, optional
            A contiguous chunk of the array's dtype that gets the elements.
        """
        chunk = values
        if memory is not None or values.shape != self.chunks or values.dtype != self.dtype:
            chunk = np.empty(self.chunks, self.dtype) if memory is None else memory
            if values.shape != self.chunks:
                chunk[...] = self.fill_value
            chunk[tuple(map(slice, values.shape))] = values
        elements = np.ascontiguousarray(chunk).reshape(-1)
        if self._is_empty(elements):
            return None
        return codec_of(self.compression).compress(
            elements.view("u1").data, self.compression, self.dtype.itemsize
        )

    def _is_empty(self, elements: np.ndarray) -> bool:
        """Whether all elements are the fill value, bit for bit: -0.0 is not 0.0."""
        stored, fill = elements.view("u1"), self.fill_value.tobytes()
        if not any(fill):
            return not stored.any()
        first = elements[:1].tobytes()
        return first == fill and stored.tobytes() == fill * elements.size


def _split(values: np.ndarray, step: Sequence[int]) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the parts of a box and their positions; those at its end are smaller."""
    grid = [range(-(-n // s)) for n, s in zip(values.shape, step, strict=True)]
    for position in product(*grid):
        yield (
            position,
            values[tuple(slice(p * s, (p + 1) * s) for p, s in zip(position, step, strict=True))],
        )


def _compression(array: AnyArray) -> Compression | None:
    """Return the compression of N5 that makes the same chunks; None if it is missing."""
    if not array.compressors:
        return Raw()
    if len(array.compressors) > 1:
        return None
    name, given = _named(array.compressors[0])
    found = nearest_compression(array.compressors[0])
    if name not in _SAME_BYTES or found is None:
        return None
    is_v2 = array.metadata.zarr_format == 2
    made: Any = (
        numcodecs_compressor(found) if is_v2 else zarr_compressors(found)[0]["configuration"]
    )
    # parameters that N5 lacks, such as zstd's checksum, must be off
    members = ((key, value) for key, value in given.items() if key != "typesize")
    same = all(made[key] == value if key in made else not value for key, value in members)
    return found if same else None


def nearest_compression(codec: Any) -> Compression | None:  # noqa: ANN401 - zarr's or numcodecs'
    """Return the compression of N5 that is nearest to a compressor of an array, if any."""
    return zarr_to_compression(*_named(codec))


def _named(codec: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401 - zarr's or numcodecs'
    """Return the name of a compressor, and its configuration."""
    if hasattr(codec, "get_config"):  # numcodecs'
        configuration = codec.get_config()
        return configuration.pop("id"), configuration
    named = codec.to_dict()
    return named["name"], dict(named.get("configuration") or {})
