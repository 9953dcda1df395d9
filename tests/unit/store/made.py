"""Containers in memory, written by the N5 specification without n5zarr."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from zarr.abc.store import Store
from zarr.buffer import cpu
from zarr.storage import MemoryStore

ROOT = b'{"n5":"4.0.0"}'


def document(data_type: str = "uint16", **changed: Any) -> bytes:
    """Return the document of a dataset of 7 x 5 elements in blocks of 3 x 2."""
    known = {"dataType": data_type, "dimensions": [7, 5], "blockSize": [3, 2]}
    return json.dumps({**known, "compression": {"type": "raw"}, **changed}).encode()


def block(values: Any, dtype: str = "u2", mode: int = 0) -> bytes:
    """Return a raw block of elements in C order."""
    array = np.asarray(values, dtype)
    header = struct.pack(f">HH{array.ndim}I", mode, array.ndim, *array.shape[::-1])
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


FULL, EDGE = [[1, 2, 3], [4, 5, 65535]], [[7], [8]]
SIMPLE = {
    "attributes.json": ROOT, "g/a/attributes.json": document(), "g/a/0/0": block(FULL),
    "g/a/2/1": block(EDGE), "h/attributes.json": b'{"x": 1}',
}  # fmt: skip


def memory(values: Mapping[str, bytes] = SIMPLE, *, read_only: bool = False) -> MemoryStore:
    buffers: Any = {key: cpu.Buffer.from_bytes(value) for key, value in values.items()}
    return MemoryStore(buffers, read_only=read_only)


def values_of(store: Store) -> dict[str, bytes]:
    inner: Any = store
    return {key: value.to_bytes() for key, value in inner._store_dict.items()}


def on_disk(root: Path, values: Mapping[str, bytes] = SIMPLE) -> Path:
    for key, value in values.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(value)
    return root
