"""The locations behind a store are found."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import obstore.store
import pytest
import xarray as xr
import zarr
from zarr.abc.store import Store
from zarr.experimental.cache_store import CacheStore
from zarr.storage import (
    FsspecStore,
    LocalStore,
    LoggingStore,
    MemoryStore,
    ObjectStore,
    WrapperStore,
)

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.store_locations import places_behind
from tests.refusals import refused


@pytest.mark.parametrize("cache", ["simplecache", "filecache", "blockcache"])
def test_the_location_behind_a_cache_of_fsspec_is_found(cache: str, tmp_path: Path) -> None:
    store = N5Store(f"{cache}::file://{tmp_path}/a.n5", read_only=True)
    assert str(tmp_path / "a.n5/em") in places_behind(store.storage, "em")


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "fsspec": lambda path: FsspecStore.from_url(f"memory://places-{os.getpid()}-{path.name}"),
    "obstore": lambda _: ObjectStore(obstore.store.MemoryStore()),
    "files of obstore": lambda path: ObjectStore(obstore.store.LocalStore(path)),
    "files": LocalStore,
}
WAYS: dict[str, Callable[[Store], Any]] = {
    "plain": N5Store,
    "wrapped": lambda store: N5Store(WrapperStore(store)),
    "twice": lambda store: N5Store(WrapperStore(LoggingStore(store, log_level="ERROR"))),
    "cache of zarr": lambda store: N5Store(CacheStore(store, cache_store=MemoryStore())),
    "own cache": lambda store: N5Store(WrapperStore(store), cache=CacheOptions(recheck=True)),
    "F order": lambda store: N5Store(WrapperStore(store), axis_order="F"),
    "coords": lambda store: N5Store(WrapperStore(store), coords=True),
    "own store in a wrapper": lambda store: WrapperStore(N5Store(store)),
}
VALUES = np.arange(13 * 11, dtype="u2").reshape(13, 11)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", STORES)
def test_no_store_is_overwritten_with_itself(kind: str, way: str, tmp_path: Path) -> None:
    inner = STORES[kind](tmp_path)
    n5zarr.create_array(N5Store(inner), path="a", data=VALUES, chunks=(5, 3))
    pairs = [(WAYS[way](inner), N5Store(inner))]
    if way not in ("coords", "own store in a wrapper"):
        pairs.append((N5Store(inner), WAYS[way](inner)))
        assert pairs[0][0] == pairs[0][1]
        assert pairs[0][1] == pairs[0][0]
    for source, target in pairs:
        with refused(N5UnrepresentableError, "option", "outside the source"):
            n5zarr.convert(source, target, overwrite=True)
        if way in ("coords", "F order") or not isinstance(source, N5Store):
            continue
        read: Any = source
        lazy = xr.open_dataset(read, engine="n5", group="a", chunks={})
        with pytest.raises(N5UnrepresentableError, match="unread source"):
            n5zarr.to_n5(lazy, target, group="a", mode="w")
    found: Any = zarr.open_array(N5Store(inner), path="a", mode="r")
    np.testing.assert_array_equal(found[...], VALUES)


def test_stores_of_different_data_are_apart(tmp_path: Path) -> None:
    kinds = ["memory", "fsspec", "obstore", "files"]
    stores = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        stores += [STORES[kind](tmp_path / name) for kind in kinds]
    wrapped = [N5Store(WrapperStore(store)) for store in stores]
    for k, one in enumerate(wrapped):
        assert [one == other for other in map(N5Store, stores)] == [j == k for j in range(8)]
