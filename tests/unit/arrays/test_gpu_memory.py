"""Elements reach the memory of a GPU, and come from there, by every method of an array."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from tests.gpu import stand_in
from tests.unit.arrays.blocks import numbers, write_dataset


@pytest.fixture
def cupy() -> Iterator[Any]:
    own = {"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"}
    with zarr.config.set(own), stand_in() as module, zarr.config.enable_gpu():
        yield module


@pytest.mark.parametrize("by", ["n5zarr", "zarr"])
def test_reading_and_writing(tmp_path: Path, cupy: Any, by: str) -> None:
    values = write_dataset(tmp_path, numbers(), "gzip", missing=((1, 1, 1),))
    array: Any
    if by == "zarr":
        array = zarr.open_array(N5Store(tmp_path), path="d", mode="r+")
    else:
        array = n5zarr.open_array(tmp_path / "d", "r+")
    mask = values % 7 == 3
    points = ([1, 6], [10, 0], [4, 2])
    each = [
        (array[1:, 3:9, 2], values[1:, 3:9, 2]),
        (array.oindex[[0, 5], 3:9], values[[0, 5], 3:9]),
    ]
    if by == "n5zarr":  # zarr's own makes numpy's arrays of points
        each += [
            (array.get_mask_selection(mask), values[mask]),
            (array.vindex[points], values[points]),
        ]
    out = zarr.buffer.gpu.NDBuffer.create(shape=(7, 2, 5), dtype="u2")
    found = array.get_basic_selection((slice(None), slice(3, 5)), out=out)
    each += [(found, values[:, 3:5]), (out.as_ndarray_like(), values[:, 3:5])]
    for got, expected in each:
        assert isinstance(got, cupy.ndarray)
        np.testing.assert_array_equal(cupy.asnumpy(got), expected)
    assert array[3, 4, 1] == values[3, 4, 1]
    array[1:6, 2:10, 1:4] = cupy.asarray(values[1:6, 2:10, 1:4] + 300)
    values[1:6, 2:10, 1:4] += 300
    if by == "n5zarr":
        array.set_mask_selection(mask, cupy.asarray(np.full(mask.sum(), 9, "u2")))
        values[mask] = 9
    found = n5zarr.open_array(tmp_path / "d")[...]
    np.testing.assert_array_equal(cupy.asnumpy(found), values)
