"""Blocks of tensorstore and z5py are read here, and blocks of n5zarr are read by both."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from n5zarr import N5Store, encode_block
from n5zarr.format.grid import automatic_block_size

tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")
z5py = pytest.importorskip("z5py", reason="peer: uv sync installs it")

SHAPE, BLOCK = (7, 11, 13), (3, 4, 5)  # C order
DTYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8"]
COMPRESSIONS: dict[str, dict[str, Any]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip", "level": 6, "useZlib": False},
    "gzip-stored": {"type": "gzip", "level": 0, "useZlib": False},
    "zlib": {"type": "gzip", "level": 9, "useZlib": True},
    "bzip2": {"type": "bzip2", "blockSize": 9},
    "xz": {"type": "xz", "preset": 6},
    "zstd": {"type": "zstd", "level": 3},
    "blosc-lz4": {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    "blosc-zstd": {"type": "blosc", "cname": "zstd", "clevel": 9, "shuffle": 2, "blocksize": 0},
}


def values(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    if dtype[0] == "f":
        special = rng.normal(size=SHAPE).astype(dtype)
        special.flat[:4] = np.nan, np.inf, -np.inf, -0.0
        return special
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, SHAPE, dtype, endpoint=True)


def same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype.newbyteorder("=") == expected.dtype
    native = np.ascontiguousarray(found, expected.dtype)
    assert native.tobytes() == np.ascontiguousarray(expected).tobytes()


def write(folder: Path, array: np.ndarray, compression: dict[str, Any]) -> None:
    """Write a dataset block by block, truncated at the edges."""
    document = {
        "dimensions": array.shape[::-1], "blockSize": BLOCK[::-1], "dataType": array.dtype.name,
        "compression": compression,
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "attributes.json").write_text(json.dumps(document))
    for position in np.ndindex(*(-(-n // b) for n, b in zip(array.shape, BLOCK, strict=True))):
        box = tuple(slice(p * b, (p + 1) * b) for p, b in zip(position, BLOCK, strict=True))
        file = folder.joinpath(*map(str, position[::-1]))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encode_block(array[box], compression=compression))


def tensorstore_spec(path: Path) -> dict[str, Any]:
    return {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}


@pytest.mark.each_of(3)
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_peers_read_blocks_encoded_here(tmp_path: Path, dtype: str, compression: str) -> None:
    array = values(dtype)
    write(tmp_path / "c.n5" / "data", array, COMPRESSIONS[compression])
    opened = tensorstore.open(tensorstore_spec(tmp_path / "c.n5" / "data")).result()
    same_bits(opened.read().result().transpose(), array)
    (tmp_path / "c.n5" / "attributes.json").write_text('{"n5":"2.0.0"}')
    same_bits(z5py.File(str(tmp_path / "c.n5"), "r")["data"][:], array)


@pytest.mark.each_of(7)
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_of_tensorstore_are_read(tmp_path: Path, dtype: str, compression: str) -> None:
    array = values(dtype)
    metadata = {
        "dimensions": SHAPE[::-1], "blockSize": BLOCK[::-1], "dataType": array.dtype.name,
        "compression": COMPRESSIONS[compression],
    }  # fmt: skip
    spec = {**tensorstore_spec(tmp_path), "metadata": metadata, "create": True}
    tensorstore.open(spec).result().write(array.transpose()).result()
    for codecs in ("zarr", "n5", "portable"):
        same_bits(np.asarray(zarr.open_array(N5Store(tmp_path, codecs=codecs))[...]), array)


Z5PY: dict[str, dict[str, Any]] = {
    "raw": {"compression": "raw"},
    "gzip": {"compression": "gzip", "level": 5},
    "bzip2": {"compression": "bzip2", "level": 5},
    "xz": {"compression": "xz", "level": 6},
    "zstd": {"compression": "zstd", "level": 3},
    "lz4": {"compression": "lz4", "level": 6},
    "blosc": {"compression": "blosc", "codec": "lz4", "clevel": 5, "shuffle": 1},
}


@pytest.mark.each_of(5)
@pytest.mark.parametrize("options", Z5PY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_of_z5py_are_read(tmp_path: Path, dtype: str, options: str) -> None:
    array = values(dtype)
    container = z5py.File(str(tmp_path / "c.n5"), "w")
    container.create_dataset("data", data=array, chunks=BLOCK, **Z5PY[options])
    for codecs in ("zarr", "n5", "portable"):
        store = N5Store(tmp_path / "c.n5", codecs=codecs)
        same_bits(np.asarray(zarr.open_array(store, path="data")[...]), array)


def test_automatic_blocks_are_those_of_tensorstore() -> None:
    rng = random.Random(1)  # noqa: S311
    sides = [1, 2, 3, 7, 50, 100, 1000, 4999]
    for _ in range(150):
        shape = [rng.choice(sides) for _ in range(rng.randint(1, 5))]
        ratio = [rng.choice([1, 1, 2, 4, 3, 0.5]) for _ in shape]
        schema = {
            "dtype": "uint8", "domain": {"shape": shape},
            "chunk_layout": {"chunk": {"aspect_ratio": ratio}},
        }  # fmt: skip
        spec = {"driver": "n5", "kvstore": "memory://", "schema": schema}
        made = tensorstore.open(spec, create=True, delete_existing=True).result()
        assert automatic_block_size(tuple(shape), ratio) == made.chunk_layout.read_chunk.shape
