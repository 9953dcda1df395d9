"""Tests of arrays use n5zarr's pipeline, also where the environment leaves it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import zarr

import n5zarr  # noqa: F401 - registers it

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _own_pipeline() -> Iterator[None]:
    with zarr.config.set({"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"}):
        yield
