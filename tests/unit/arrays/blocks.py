"""Datasets that tests write by the N5 specification, without n5zarr."""

from __future__ import annotations

import gzip
import json
import os
import struct
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numcodecs.blosc import Blosc
from numcodecs.zstd import Zstd

SHAPE, CHUNKS = (7, 11, 5), (3, 4, 2)  # C order; blocks are cut off at the end of each axis
NAMES = {"u": "uint", "i": "int", "f": "float"}
COMPRESSIONS: dict[str, dict[str, Any]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip", "level": 3, "useZlib": False},
    "zlib": {"type": "gzip", "level": 3, "useZlib": True},
    "zstd": {"type": "zstd", "level": 2},
    "blosc": {"type": "blosc", "cname": "lz4", "clevel": 4, "shuffle": 1, "blocksize": 0},
    "lz4": {"type": "lz4", "blockSize": 65536},
    "bzip2": {"type": "bzip2", "blockSize": 7},
}


def numbers(dtype: str = "u2", shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Return numbers above 0 that differ from their neighbours."""
    size = int(np.prod(shape))
    return (np.arange(1, size + 1) % 251 + 1).reshape(shape).astype(dtype)


def block_bytes(values: np.ndarray, compression: str = "raw", mode: int = 0) -> bytes:
    """Return a block of elements in C order: N5 spec, "File-system specification"."""
    stored = values.astype(values.dtype.newbyteorder(">")).tobytes()
    match compression:
        case "gzip":
            stored = gzip.compress(stored)
        case "zlib":
            stored = zlib.compress(stored)
        case "zstd":
            stored = Zstd().encode(stored)
        case "blosc":
            stored = Blosc("lz4").encode(np.frombuffer(stored, values.dtype))
        case _:
            pass
    header = struct.pack(f">HH{values.ndim}I", mode, values.ndim, *values.shape[::-1])
    if mode == 1:
        header += struct.pack(">I", values.size)
    return header + stored


def path_of(root: Path, place: tuple[int, ...]) -> Path:
    """Return the file of a chunk of the dataset ``d``."""
    return root.joinpath("d", *map(str, place[::-1]))


def part_of(place: tuple[int, ...], chunks: tuple[int, ...] = CHUNKS) -> tuple[slice, ...]:
    return tuple(slice(p * n, (p + 1) * n) for p, n in zip(place, chunks, strict=True))


def places(
    shape: tuple[int, ...] = SHAPE, chunks: tuple[int, ...] = CHUNKS
) -> list[tuple[int, ...]]:
    return list(product(*(range(-(-n // size)) for n, size in zip(shape, chunks, strict=True))))


def write_dataset(
    root: Path,
    values: np.ndarray,
    compression: str = "raw",
    chunks: tuple[int, ...] = CHUNKS,
    missing: tuple[tuple[int, ...], ...] = (),
) -> np.ndarray:
    """Write the dataset ``d`` of a container; return what it holds."""
    dtype = values.dtype
    document = {
        "dimensions": values.shape[::-1],
        "blockSize": chunks[::-1],
        "dataType": f"{NAMES[dtype.kind]}{8 * dtype.itemsize}",
        "compression": COMPRESSIONS[compression],
    }
    (root / "d").mkdir(parents=True, exist_ok=True)
    (root / "attributes.json").write_text('{"n5": "2.5.1"}')
    (root / "d/attributes.json").write_text(json.dumps(document))
    expected = values.copy()
    for place in places(values.shape, chunks):
        part = part_of(place, chunks)
        if place in missing:
            expected[part] = 0
        else:
            write_block(root, place, block_bytes(values[part], compression))
    return expected


def write_block(root: Path, place: tuple[int, ...], stored: bytes) -> None:
    """Write a block that is a minute old, so that nobody waits for its writer."""
    path = path_of(root, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(stored)
    os.utime(path, (1.7e9, 1.7e9))


def decoded(stored: bytes) -> np.ndarray:
    """Return the elements of a raw block of uint16."""
    mode, ndim = struct.unpack_from(">HH", stored)
    shape = struct.unpack_from(f">{ndim}I", stored, 4)
    assert mode == 0
    return np.frombuffer(stored, ">u2", offset=4 + 4 * ndim).reshape(shape[::-1])


SELECTIONS: dict[str, Any] = {
    "all": (slice(None), slice(None), slice(None)),
    "inner": (slice(1, 6), slice(3, 9), slice(1, 4)),
    "one block": (slice(3, 6), slice(4, 8), slice(2, 4)),
    "part of a block": (slice(4, 5), slice(5, 7), slice(2, 3)),
    "end": (slice(6, 7), slice(8, 11), slice(4, 5)),
    "number": (4, slice(2, 10), slice(None)),
    "two numbers": (slice(None), -1, 0),
    "three numbers": (6, 10, 4),
    "steps": (slice(1, 7, 2), slice(0, 11, 5), slice(None, None, 3)),
    "ellipsis": (..., slice(1, 3)),
    "short": (slice(2, 5),),
}
