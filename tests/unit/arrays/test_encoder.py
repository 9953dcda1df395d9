"""zarr reads the chunks and shards of :class:`Encoder`, whatever they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zarr
from zarr.buffer import cpu
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec

from n5zarr.arrays.encoder import Encoder

COMPRESSORS: dict[str, Any] = {
    "raw": None,
    "gzip": GzipCodec(level=0),  # adds the most
    "zstd": ZstdCodec(level=1),
    "blosc": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
}


@pytest.mark.parametrize("compressor", COMPRESSORS.values(), ids=COMPRESSORS.keys())
@pytest.mark.parametrize("shards", [None, (6, 10, 14)])
@pytest.mark.parametrize("dtype", ["u1", ">f8"])
@pytest.mark.parametrize("fill", [0, 7])
def test_noise_and_missing_chunks(compressor: Any, shards: Any, dtype: str, fill: int) -> None:
    shape, chunks = (17, 11, 29), (3, 5, 7)
    store: dict[str, Any] = {}
    array: Any = zarr.create_array(
        store, shape=shape, chunks=chunks, shards=shards, dtype=np.dtype(dtype), fill_value=fill,
        compressors=compressor, serializer=BytesCodec(endian="big"), name="a",
    )  # fmt: skip
    values = np.random.default_rng(5).bytes(np.dtype(dtype).itemsize * 17 * 11 * 29)
    elements = np.frombuffer(values, dtype).reshape(shape).copy()
    elements[2:9, 4:, 6:15] = fill
    encoder = Encoder.of(array)
    assert encoder is not None
    units = dict(encoder.units(tuple(slice(0, n) for n in shape), elements))
    assert ((1, 1, 1) in units) == (shards is not None)  # the only chunks with the fill value
    for position, data in units.items():
        key = "/".join(map(str, position))
        store[f"a/c/{key}"] = cpu.Buffer.from_bytes(data)
    np.testing.assert_array_equal(array[...], elements)


def test_a_shard_of_missing_chunks_is_missing() -> None:
    array: Any = zarr.create_array({}, shape=(13,), chunks=(3,), shards=(6,), dtype="i2")
    encoder = Encoder.of(array)
    assert encoder is not None
    elements = np.array([0] * 6 + [5] + [0] * 6, "i2")
    assert [position for position, _ in encoder.units((slice(0, 13),), elements)] == [(1,)]
