"""zarr-n5 (Python) reads what n5zarr writes and the other way; zarrs_n5 (Rust) by its rules.

Rules of zarrs_n5 0.2.1 at e0d3c093, in our words.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

import n5zarr
from tests.contract.stored import write_by_tensorstore

zarr_n5 = pytest.importorskip("zarr_n5", reason="peer: uv sync installs it")
convert_hierarchy = pytest.importorskip("zarr_n5.convert").convert_hierarchy

SHAPE, BLOCK = (7, 11, 13), (3, 4, 5)
TYPES = [f"{u}int{n}" for n in (8, 16, 32, 64) for u in ("u", "")] + ["float32", "float64"]
COMPRESSIONS: dict[str, dict[str, Any]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip", "level": 6, "useZlib": False},
    "zstd": {"type": "zstd", "level": 3},
    "blosc": {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
}


@pytest.fixture(autouse=True)
def _zarr_n5_alone() -> Iterator[None]:
    """Let zarr use the codec of zarr-n5."""
    with zarr.config.set({"codecs.n5_default": "zarr_n5.codec.default.N5DefaultCodec"}):
        yield


def values_of(data_type: str) -> np.ndarray:
    values = np.arange(math.prod(SHAPE)).reshape(SHAPE) % 101 + 1
    values[:3, :4, :5] = 0
    return values.astype(data_type)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("name", COMPRESSIONS)
def test_it_reads_what_n5zarr_writes(name: str, data_type: str, tmp_path: Path) -> None:
    values = values_of(data_type)
    n5zarr.create_array(
        tmp_path / "a.n5", path="a", data=values, chunks=BLOCK, compression=COMPRESSIONS[name]
    )
    store = zarr_n5.N5WrapperStore(LocalStore(tmp_path / "a.n5"))
    array: Any = zarr.open_array(store, path="a", mode="r")
    assert type(array.metadata.codecs[0]) is zarr_n5.N5DefaultCodec
    np.testing.assert_array_equal(array[...].T, values)  # its axes are in N5 order


@pytest.mark.each_of(3)
@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("name", COMPRESSIONS)
def test_n5zarr_reads_its_documents(name: str, data_type: str, tmp_path: Path) -> None:
    """Its converter writes them beside blocks, here of tensorstore; its codec writes no blocks."""
    values = values_of(data_type)
    path = tmp_path / "a.n5"
    compression = {k: v for k, v in COMPRESSIONS[name].items() if k != "useZlib"}
    write_by_tensorstore(path, values, BLOCK, compression)
    asyncio.run(convert_hierarchy(str(path), infer_groups=False))
    with zarr.config.set({"codecs.n5_default": "n5zarr.store.n5_default.N5DefaultCodec"}):
        array: Any = zarr.open_array(path, mode="r")
        np.testing.assert_array_equal(array[...].T, values)
    np.testing.assert_array_equal(n5zarr.open_array(path)[...], values)


# ------------------------------------------------------------------------------- zarrs_n5

LEVELS = {
    "raw": {},
    "bzip2": {"blockSize": range(1, 10)},
    "gzip": {"level": range(-1, 10)},
    "zstd": {"level": range(-5, 23)},
    "blosc": {"clevel": range(10), "shuffle": range(-1, 3)},
}


def check_zarrs_n5_reads(attributes: dict[str, Any], block: bytes) -> None:
    """Check as ``N5ArrayMetadata`` and ``N5BlockHeader`` do."""
    assert all(isinstance(each, int) and each >= 0 for each in attributes["dimensions"])
    assert all(isinstance(each, int) and each > 0 for each in attributes["blockSize"])
    assert attributes["dataType"] in TYPES
    compression = attributes["compression"]
    for member, allowed in LEVELS[compression["type"]].items():
        assert compression.get(member, allowed[0]) in allowed
    if compression["type"] == "blosc":
        assert compression.get("cname") in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
        assert compression.get("blocksize", 0) >= 0
    assert not compression.get("useZlib")  # which it ignores
    ndim = len(attributes["dimensions"])
    mode, n = np.frombuffer(block, ">u2", 2)
    assert (mode, n) == (0, ndim)
    assert all(np.frombuffer(block, ">u4", ndim, 4) > 0)


@pytest.mark.parametrize("compression", LEVELS)
@pytest.mark.parametrize("data_type", TYPES)
def test_zarrs_n5_reads_what_n5zarr_writes(
    compression: str, data_type: str, tmp_path: Path
) -> None:
    n5zarr.create_array(
        tmp_path / "a.n5", data=values_of(data_type), chunks=BLOCK, compression=compression
    )
    attributes = json.loads((tmp_path / "a.n5/attributes.json").read_text())
    for position in ("1/1/1", "2/2/2"):  # whole, and truncated
        check_zarrs_n5_reads(attributes, (tmp_path / "a.n5" / position).read_bytes())


def test_its_documents_beside_n5_change_nothing(tmp_path: Path) -> None:
    """It writes a grid that zarr-python lacks, and N5's document as ``_n5``."""
    values = values_of("uint16")
    n5zarr.create_array(tmp_path / "a.n5", path="a", data=values, chunks=BLOCK)
    attributes = json.loads((tmp_path / "a.n5/a/attributes.json").read_text())
    inner = [
        {"name": "transpose", "configuration": {"order": [2, 1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "gzip", "configuration": {"level": 6}},
    ]
    grid = {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": list(BLOCK[::-1])}}
    document = {
        "zarr_format": 3, "node_type": "array", "shape": SHAPE[::-1], "data_type": "uint16",
        "chunk_grid": grid, "fill_value": 0, "attributes": {"_n5": attributes},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "codecs": [{"name": "n5_default", "configuration": {"codecs": inner}}],
    }  # fmt: skip
    (tmp_path / "a.n5/a/zarr.json").write_text(json.dumps(document))
    (tmp_path / "a.n5/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "a.n5", path="a")[...], values)
    done = n5zarr.convert(tmp_path / "a.n5", tmp_path / "b.n5", verify=True)
    assert [array.path for array in done.arrays] == ["a"]
