"""The locations behind a store are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from n5zarr import N5Store
from n5zarr.storage.store_locations import places_behind

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("cache", ["simplecache", "filecache", "blockcache"])
def test_the_location_behind_a_cache_of_fsspec_is_found(cache: str, tmp_path: Path) -> None:
    """The location behind a cache of fsspec is found without a read."""
    store = N5Store(f"{cache}::file://{tmp_path}/a.n5", read_only=True)
    assert str(tmp_path / "a.n5/em") in places_behind(store.storage, "em")
