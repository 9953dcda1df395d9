"""The cache saves requests, and shows old values only where that was allowed."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
import zarr

from n5zarr import CacheOptions, N5Store
from tests.remote.conftest import PATIENCE, S3, Place, on_s3


@pytest.fixture(params=list(S3))
def place(request: pytest.FixtureRequest, own_bucket: str, proxied_s3: Any) -> Place:
    place = on_s3(request.param, f"s3://{own_bucket}/c.n5", proxied_s3)
    array = zarr.create_array(place.open(), name="a", shape=(8,), chunks=(2,), dtype="u1")
    array[:6] = 1  # the last block is not there
    place.proxy.counts()
    return place


def cache_of(store: N5Store) -> object:
    storage: Any = store.storage
    return storage._cache


def opened(store: N5Store) -> Any:
    return zarr.open_array(store, path="a", mode="r" if store.read_only else "r+")


@pytest.mark.each_of(2)
def test_kept_values_are_not_requested_again(place: Place) -> None:
    store = place.open(cache=CacheOptions())
    array = opened(store)
    array[...]
    assert place.proxy.counts() == {"GET": 5}
    for _ in range(3):
        assert array[...].tolist() == [1] * 6 + [0] * 2
    assert place.proxy.counts() == {}  # not even for what is not there


@pytest.mark.each_of(3)
def test_open_reads_anew(place: Place) -> None:
    store = place.open(cache=CacheOptions(recheck="open"))
    array = opened(store)
    array[...]
    opened(place.open())[...] = 2
    assert array[...].tolist() == [1] * 6 + [0] * 2
    assert opened(store)[...].tolist() == [2] * 8


@pytest.mark.parametrize("place", ["obstore"], indirect=True)
def test_unchanged_values_are_not_sent_again(place: Place) -> None:
    store = place.open(cache=CacheOptions(recheck=True))
    array = opened(store)
    array[...]
    cache: Any = cache_of(store)
    before = {key: kept.answer for key, kept in cache._kept.items()}
    array[...]
    after = {key: kept.answer for key, kept in cache._kept.items()}
    # the same objects: nothing came
    assert all(after[key] is before[key] for key in before if before[key] is not None)
    assert any(value is not None for value in before.values())


@pytest.mark.each_of(2)
def test_own_writing_is_seen(place: Place) -> None:
    store = place.open(cache=CacheOptions(recheck=True))
    array = opened(store)
    array[...]
    others = opened(place.open())
    others[:1] = 9
    array[1:] = 3  # the rest of the block stays as others wrote it
    assert array[...].tolist() == [9] + [3] * 7
    array.attrs["x"] = 1
    assert opened(store).attrs["x"] == 1
    group = zarr.open_group(store, mode="r+")
    del group["a"]
    cached: Any = cache_of(store)
    assert not any("a/0" in str(what) for what in cached._kept)
    with pytest.raises(FileNotFoundError):
        opened(store)


@pytest.mark.each_of(3)
def test_a_write_looks_at_nothing_else_that_is_kept(place: Place) -> None:
    class Kept(OrderedDict[Any, Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    store = place.open(cache=CacheOptions(recheck=True))
    array = opened(store)
    assert array[...].tolist() == [1] * 6 + [0] * 2
    cached: Any = cache_of(store)
    cached._kept = Kept(cached._kept.items())
    array[:4] = 3  # whole blocks, a part of one, and one of background
    array[4:5] = 4
    array[6:] = 0
    array.attrs["x"] = 1
    assert array[...].tolist() == [3] * 4 + [4, 1, 0, 0]


@pytest.mark.each_of(3)
def test_an_answer_that_was_on_its_way_is_not_kept(place: Place) -> None:
    store = place.open(cache=CacheOptions(recheck=True))
    cached: Any = cache_of(store)
    array = opened(store)
    proxy = place.proxy

    def hold_the_first(method: str, path: str) -> str | None:
        is_block = method == "GET" and urlsplit(path).path.endswith("/a/0")
        return "late" if is_block and not proxy.is_held.is_set() else None

    proxy.fault = hold_the_first
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(lambda: array[:2])
        assert proxy.is_held.wait(PATIENCE)
        array[:2] = 7
        proxy.released.set()
        assert reading.result().tolist() == [1, 1]
    kept = cached._kept.get("a/0")
    assert kept is None or kept.answer.endswith(b"\x07\x07")
    assert array[:2].tolist() == [7, 7]


@pytest.mark.each_of(3)
def test_looking_below_an_array_does_not_keep_old_blocks(place: Place) -> None:
    store = place.open(cache=CacheOptions(recheck="open"))
    with pytest.raises(FileNotFoundError):
        zarr.open_group(store, path="a/0", mode="r")
    assert opened(store)[...].tolist() == [1] * 6 + [0] * 2
    opened(place.open())[...] = 9
    assert opened(store)[...].tolist() == [9] * 8


@pytest.mark.each_of(3)
def test_it_is_pickled_without_what_is_kept(place: Place) -> None:
    store = place.open(cache=CacheOptions(recheck=30))
    opened(store)[...]
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    place.proxy.counts()
    assert opened(again)[...].tolist() == [1] * 6 + [0] * 2
    assert place.proxy.counts() == {"GET": 5}
