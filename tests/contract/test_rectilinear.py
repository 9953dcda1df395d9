"""``N5Store(..., chunk_grid="rectilinear")`` shows the true sizes of blocks at the ends."""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.buffer import cpu

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError

JAVA = Path(__file__).parents[1] / "data" / "java"
DATASETS = json.loads((JAVA / "manifest.json").read_text())["datasets"]
SPARSE = JAVA / "sparse.n5"


@pytest.fixture(autouse=True)
def allowed() -> Iterator[None]:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield


@pytest.mark.each_of(2)
@pytest.mark.parametrize(("codecs", "axis_order"), [("zarr", "C"), ("n5", "F")])
def test_values_are_those_of_all_writers(codecs: Any, axis_order: Any) -> None:
    n_truncated = 0
    for dataset in DATASETS:
        store = N5Store(
            JAVA / dataset["root"], chunk_grid="rectilinear", codecs=codecs, axis_order=axis_order
        )
        array: Any = zarr.open_array(store, path=dataset["path"], mode="r")
        values = np.asarray(array[...])
        values = values.T if axis_order == "F" else values
        big = np.ascontiguousarray(values, values.dtype.newbyteorder(">"))
        assert hashlib.sha256(big.tobytes()).hexdigest() == dataset["sha256"], dataset
        n_truncated += array.metadata.chunk_grid.to_dict()["name"] == "rectilinear"
    assert n_truncated > 100


def test_truncated_blocks_are_passed_through() -> None:
    """Truncated blocks become chunks without a change; the regular grid would pad them."""
    directory = n5zarr.sample_path()
    store = N5Store(directory, chunk_grid="rectilinear")
    read = asyncio.run(store.get("em/s0/c/2/2/2", cpu.buffer_prototype))
    assert read is not None
    block = Path(directory, "em/s0/2/2/2").read_bytes()
    assert block[4:16] == b"".join(n.to_bytes(4, "big") for n in (28, 16, 8))
    assert read.to_bytes() == block[16:]
    array: Any = zarr.open_array(store, path="em/s0", mode="r")
    assert array.read_chunk_sizes == ((16, 16, 8), (40, 40, 16), (50, 50, 28))


def test_very_long_axes_keep_the_regular_grid(tmp_path: Path) -> None:
    """Very long axes keep the regular grid, as zarr would list the size of each chunk."""
    n = 2**40 + 1
    written = zarr.create_array(N5Store(tmp_path), shape=(n,), chunks=(64,), dtype="u1")
    written[n - 3 :] = [3, 5, 7]
    array: Any = zarr.open_array(N5Store(tmp_path, chunk_grid="rectilinear"), mode="r")
    assert array[n - 4 :].tolist() == [0, 3, 5, 7]


def test_coordinates_may_be_used_with_it() -> None:
    shown = N5Store(n5zarr.sample_path(), chunk_grid="rectilinear", coords=True)
    dataset = xr.open_zarr(shown, group="em/s1", consolidated=False)
    expected = xr.open_dataset(n5zarr.sample_path(), engine="n5", group="em/s1")
    xr.testing.assert_equal(dataset.load(), expected.load())


def test_it_can_only_be_read() -> None:
    store = N5Store(SPARSE, chunk_grid="rectilinear")
    assert store.read_only
    assert "chunk_grid='rectilinear'" in repr(store)
    assert pickle.loads(pickle.dumps(store)).chunk_grid == "rectilinear"
    with pytest.raises(N5UnsupportedError, match="expected a read-only store") as caught:
        store.with_read_only(read_only=False)
    assert caught.value.kind == "read-only"


def test_a_rectilinear_grid_that_zarr_does_not_allow_is_refused() -> None:
    with pytest.raises(N5UnsupportedError, match="zarr_format=2, which lacks this grid"):
        N5Store(SPARSE, chunk_grid="rectilinear", zarr_format=2)
    with pytest.raises(N5UnrepresentableError, match="'regular', 'rectilinear', got 'odd'"):
        N5Store(SPARSE, chunk_grid="odd")  # type: ignore[arg-type]
    with (
        zarr.config.set({"array.rectilinear_chunks": False}),
        pytest.raises(N5UnsupportedError, match=r"zarr.config.set\({'array.rectilinear_chunks'"),
    ):
        N5Store(SPARSE, chunk_grid="rectilinear")
