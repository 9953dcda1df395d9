"""A few tests of dask and xarray pass on stores of N5; all that are there run on request.

``N5ZARR_SUITES=1`` runs all of dask's and xarray's; ``N5ZARR_ANNDATA_SOURCE=anndata-0.13.4`` and
``N5ZARR_Z5_SOURCE=z5-3.0.2`` those of anndata and z5py. ``python -m tests.peers.suites`` runs
everything and writes ``docs/design/results.md``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.peers.suites import ANNDATAS, DASK, DATATREE, Z5PY, Suite, failures, reason, run

SOURCES = {name: os.environ.get(f"N5ZARR_{name.upper()}_SOURCE", "") for name in ("anndata", "z5")}
FEW = {
    DASK.name: "test_zarr_roundtrip or test_zarr_group or test_zarr_regions or irregular",
    DATATREE.name: "Zarr and (encoding or round_trip or rplus or unaligned or consolidated)",
}


@pytest.mark.long
@pytest.mark.parametrize("suite", [DASK, DATATREE], ids=["dask", "xarray"])
def test_a_few_of(suite: Suite) -> None:
    found = run(suite, on_n5=True, more=("-k", FEW[suite.name]))
    assert failures(found) == {}
    assert len(found) >= 8


WHOLE = [DASK, DATATREE] if os.environ.get("N5ZARR_SUITES") else []
WHOLE += [suite for suite in (ANNDATAS, Z5PY) if SOURCES[suite.source]]
if WHOLE:

    @pytest.mark.parametrize("suite", WHOLE, ids=[suite.package for suite in WHOLE])
    def test_all_of(suite: Suite) -> None:
        source = Path(SOURCES[suite.source]) if suite.source else None
        failed = failures(run(suite, on_n5=True, source=source))
        plain = failures(run(suite, on_n5=False, source=source, only=failed)) if failed else {}
        new = {name: text for name, text in failed.items() if name not in plain}
        assert [k for k, text in new.items() if reason(suite.reasons, k, text) == "Other."] == []
