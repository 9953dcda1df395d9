"""Validation of a container on a server finds the same, and reads parts of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import n5zarr
from n5zarr.errors import N5UnsupportedError
from tests.remote.conftest import S3

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.conftest import Place


@pytest.mark.each_of(8)
def test_the_findings_are_those_of_the_files(place: Place, local: Path) -> None:
    if not place.has_lists:
        with pytest.raises(N5UnsupportedError, match="listing: ") as refused:
            n5zarr.validate(place.open())
        assert refused.value.kind == "listing"
        return
    there, here = n5zarr.validate(place.open()), n5zarr.validate(local)
    assert there.ok
    assert there.findings == here.findings
    assert (there.n_groups, there.n_datasets, there.n_blocks, there.n_bytes) == (
        here.n_groups + (place.name in S3),  # the marker `empty/`
        here.n_datasets,
        here.n_blocks,
        here.n_bytes,
    )
    assert here.n_blocks > 0
