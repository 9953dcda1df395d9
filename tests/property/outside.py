"""Write a container as another program does, such as Java, without n5zarr.

It writes files in place, under a record lock: opened without truncating, locked, truncated, and
written (``FileSystemKeyValueAccess`` of N5 4.0.2).
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def deflate(payload: bytes, compression: dict[str, Any]) -> bytes:
    """Compress a payload as a ``compression`` of N5 says."""
    match compression["type"]:
        case "raw":
            return payload
        case "gzip" if compression.get("useZlib"):
            return zlib.compress(payload)
        case "gzip":
            return gzip.compress(payload)
        case "bzip2":
            return bz2.compress(payload)
        case "xz":
            return lzma.compress(payload)
        case name:
            encoder: Any = numcodecs.registry.get_codec({"id": name})  # type: ignore[no-untyped-call]
            return bytes(encoder.encode(payload))


def write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        if fcntl is not None:
            fcntl.lockf(file, fcntl.LOCK_EX)
        os.ftruncate(file, 0)
        os.write(file, content)
    finally:
        os.close(file)


def write_block(dataset: Path, coords: tuple[int, ...], block: np.ndarray) -> None:
    """Write a block of the size of the given array, which may differ from the place.

    Coordinates and axes are in C order.
    """
    document = json.loads((dataset / "attributes.json").read_text())
    header = struct.pack(f">HH{block.ndim}I", 0, block.ndim, *reversed(block.shape))
    payload = block.astype(block.dtype.newbyteorder(">")).tobytes()
    path = dataset.joinpath(*map(str, reversed(coords)))
    write_file(path, header + deflate(payload, document["compression"]))


def block_shape(dataset: Path, coords: tuple[int, ...]) -> tuple[int, ...]:
    """Read the size of a block from its header, in C order."""
    data = dataset.joinpath(*map(str, reversed(coords))).read_bytes()
    _, ndim = struct.unpack_from(">HH", data)
    return tuple(reversed(struct.unpack_from(f">{ndim}I", data, 4)))


def remove_block(dataset: Path, coords: tuple[int, ...]) -> None:
    dataset.joinpath(*map(str, reversed(coords))).unlink(missing_ok=True)


def describe(
    shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype, compression: dict[str, Any]
) -> dict[str, Any]:
    """Make N5's own keys of a dataset; tuples are in C order."""
    return {
        "dataType": dtype.name,
        "compression": compression,
        "blockSize": chunks[::-1],
        "dimensions": shape[::-1],
    }


def read_document(node: Path) -> dict[str, Any]:
    path = node / "attributes.json"
    document: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return document


def write_document(node: Path, document: dict[str, Any]) -> None:
    write_file(node / "attributes.json", json.dumps(document).encode())


def merge_document(node: Path, changes: dict[str, Any]) -> None:
    """Set attributes as Java does: read all, change some, write all."""
    write_document(node, read_document(node) | changes)


def remove_node(node: Path) -> None:
    shutil.rmtree(node)
