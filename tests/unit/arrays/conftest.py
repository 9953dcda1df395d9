"""Tests of arrays use n5zarr's pipeline, also where the environment leaves it out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zarr

import n5zarr  # noqa: F401 - registers it


@pytest.fixture(autouse=True)
def _own_pipeline() -> Iterator[None]:
    with zarr.config.set({"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"}):
        yield
