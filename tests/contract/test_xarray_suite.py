"""xarray's own tests of its Zarr backend, from its wheel, run with N5Store as the target."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zarr

from n5zarr import N5Store
from tests.contract.stored import other_types

# what xarray's tests provoke
pytestmark = [
    other_types,
    pytest.mark.filterwarnings(
        "ignore:Consolidated metadata is currently not part:zarr.errors.ZarrUserWarning"
    ),
    pytest.mark.filterwarnings(
        "ignore:variable None will be stored as signed integers:xarray.SerializationWarning"
    ),
]
backends: Any = importlib.import_module("xarray.tests.test_backends")
fixtures: Any = importlib.import_module("xarray.tests.conftest")
use_dask, time_unit = fixtures.use_dask, fixtures.time_unit


@pytest.fixture(params=[3, 2])
def default_zarr_format(request: pytest.FixtureRequest) -> Iterator[int]:
    with zarr.config.set(default_zarr_format=request.param):
        yield request.param


@pytest.fixture
def tmp_store(tmp_path: Path) -> N5Store:
    return N5Store(tmp_path / "store.n5", zarr_format=zarr.config.get("default_zarr_format"))


class _Target:
    """The target to which the tests write."""

    @pytest.fixture(autouse=True)
    def _keep_path(self, tmp_path: Path, default_zarr_format: Any) -> None:
        self.path = tmp_path
        self.zarr_format = default_zarr_format
        self.n_targets = 0

    @contextlib.contextmanager
    def create_zarr_target(self) -> Iterator[N5Store]:
        self.n_targets += 1
        yield N5Store(self.path / f"{self.n_targets}.n5", zarr_format=self.zarr_format)


@pytest.mark.each_of(11)
class TestN5Store(_Target, backends.ZarrBase):  # type: ignore[misc] # untyped
    pass


@pytest.mark.each_of(11)
class TestRegionAuto(_Target, backends.TestZarrRegionAuto):  # type: ignore[misc] # untyped
    pass


class TestDataArray(backends.TestDataArrayToZarr):  # type: ignore[misc] # untyped
    pass


class TestChunkNames(_Target):
    """The one test of another class that creates arrays with other chunk keys."""

    test_chunk_key_encoding_v2 = backends.TestZarrDictStore.test_chunk_key_encoding_v2

    @pytest.fixture(params=[3])
    def default_zarr_format(self, request: pytest.FixtureRequest) -> Iterator[int]:
        with zarr.config.set(default_zarr_format=request.param):
            yield request.param
