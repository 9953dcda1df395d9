"""zarr's own strategies hold on stores of N5; its own tests run where their source is.

``N5ZARR_ZARR_SOURCE=zarr-3.4.2`` (``pip download --no-binary zarr --no-deps zarr==3.4.2``,
unpacked) runs two of zarr's modules; ``python -m tests.peers.zarr_suite`` runs all that matter.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zarr.storage import MemoryStore
from zarr.testing import strategies as zst

from n5zarr import N5Store
from n5zarr.fast.default import default_pipeline_name
from tests.peers.suites import failures
from tests.peers.zarr_suite import differences, run

SOURCE = os.environ.get("N5ZARR_ZARR_SOURCE", "")
PIPELINES = ["n5zarr.arrays.pipeline.N5CodecPipeline", default_pipeline_name()]


@pytest.mark.each_of(2)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("pipeline", PIPELINES, ids=["ours", "zarrs"])
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_selections_that_zarr_draws(pipeline: str, data: st.DataObject) -> None:
    """Selections as in zarr's ``test_basic_indexing`` and ``test_oindex`` are right."""
    dtype: Any = data.draw(st.sampled_from([np.dtype("u2"), np.dtype("f8")]))
    values = np.array(data.draw(zst.numpy_arrays(dtype=dtype)))
    chunks = data.draw(zst.chunk_shapes(shape=values.shape))
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        array: Any = zarr.create_array(
            N5Store(MemoryStore()), name="a", shape=values.shape, chunks=chunks, dtype=values.dtype
        )
    array[...] = values
    np.testing.assert_array_equal(array[...], values)
    for _ in range(3):
        where = data.draw(zst.basic_indices(shape=values.shape))
        np.testing.assert_array_equal(array[where], values[where])
        array[where] = values[where] + 1
        values[where] = values[where] + 1
        np.testing.assert_array_equal(array[...], values)
        axes, numpys = data.draw(zst.orthogonal_indices(shape=values.shape))
        np.testing.assert_array_equal(array.oindex[axes], values[numpys])


if SOURCE:

    def test_modules_of_zarr(tmp_path: Path) -> None:
        modules = ["tests/test_indexing.py", "tests/test_codec_pipeline.py"]
        plain, imported, store = (
            run(Path(SOURCE), way, tmp_path / f"{way}.json", modules)
            for way in ("plain", "imported", "store")
        )
        assert len(plain) > 500
        assert differences(plain, imported) == []
        wrong = failures(store)
        assert all("expected a regular grid" in each for each in wrong.values()), json.dumps(wrong)
