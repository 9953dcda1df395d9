"""What a container holds, read and written without n5zarr if possible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from zarr.buffer import cpu
from zarr.storage import MemoryStore

from n5zarr import N5Store

# zarr warns of data types that its specification does not have
other_types = pytest.mark.filterwarnings(
    "ignore:The data type .* does not have a Zarr V3 specification"
    ":zarr.errors.UnstableSpecificationWarning"
)


def spec_of(dataset: Path) -> dict[str, Any]:
    return {"driver": "n5", "kvstore": {"driver": "file", "path": f"{dataset}/"}}


def by_tensorstore(dataset: Path) -> np.ndarray:
    """Read a dataset with tensorstore, in C order."""
    opened = tensorstore.open(spec_of(dataset), read=True).result()
    return np.asarray(opened.read().result()).T


def by_zarr(place: Path, path: str = "") -> np.ndarray:
    """Read an array of Zarr, or of N5 in the place of one."""
    is_n5 = (place / path / "attributes.json").exists()
    opened: Any = zarr.open_array(N5Store(place) if is_n5 else place, mode="r", path=path)
    return np.asarray(opened[...])


def write_by_tensorstore(
    dataset: Path,
    values: np.ndarray,
    chunks: Sequence[int],
    compression: Any = "gzip",
    **options: Any,
) -> None:
    """Write values into a dataset, with shape and chunks in C order; create it if need be."""
    if isinstance(compression, str):
        compression = {"type": compression}
    metadata = {
        "dimensions": [*values.shape[::-1]], "blockSize": [*chunks[::-1]],
        "dataType": values.dtype.name, "compression": compression,
    }  # fmt: skip
    spec = {**spec_of(dataset), "metadata": metadata, **options}
    tensorstore.open(spec, open=True, create=True).result().write(values.T).result()


def strict(text: str) -> Any:
    """Parse a document as other programs do, without NaN."""
    return json.loads(text, parse_constant=pytest.fail)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def in_memory(folder: Path) -> MemoryStore:
    """Return a store in memory with all files below a folder."""
    return MemoryStore({k: cpu.Buffer.from_bytes(v) for k, v in contents(folder).items()})
