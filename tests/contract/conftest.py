"""Two ways to read blocks, and processes that have imported zarr and n5zarr."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import n5zarr
from tests.programs import Programs


@pytest.fixture(params=["kernel", "python"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Choose the kernel or Python."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr("n5zarr.fast.kernel.can_do", lambda dataset: False)
        yield str(request.param)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a copy of the sample."""
    return Path(shutil.copytree(n5zarr.sample_path(), tmp_path / "mine.n5"))


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    """Run programs in new processes, whose environment configures neither zarr nor n5zarr."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("ZARR_", "N5ZARR_"))]:
            patch.delenv(name)
        started = Programs("import gc, os, sys, numpy as np, zarr, n5zarr")
    with started:
        yield started
