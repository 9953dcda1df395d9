"""Blocks that are not local files are read and written concurrently, with few requests."""

from __future__ import annotations

import asyncio
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.buffer import Buffer
from zarr.abc.store import RangeByteRequest
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr.errors import N5BlockError, N5UnrepresentableError
from tests.memory import traced
from tests.waiting import PATIENCE, let_others_run

PRESENTATIONS: list[dict[str, Any]] = [
    {"codecs": "zarr"},
    {"codecs": "n5"},
    {"codecs": "portable", "axis_order": "F"},
    {"codecs": "zarr", "zarr_format": 2},
]


class Watched(MemoryStore):
    """A store that records its requests, and answers when enough of them wait."""

    _supports_sync_io = False  # as a server

    def __init__(self, contents: dict[str, Buffer] | None = None) -> None:
        super().__init__(contents)
        self.asked: list[tuple[str, int | None]] = []  # key, number of bytes
        self.n_awaited = self.n_now = self.n_most = 0

    def await_together(self, n: int) -> None:
        """Hold back the next blocks until there are as many requests at once."""
        self.n_awaited, self.n_most = n, 0

    async def _wait(self, key: str, n_bytes: int | None) -> None:
        self.asked.append((key, n_bytes))
        self.n_now += 1
        self.n_most = max(self.n_most, self.n_now)
        end = time.monotonic() + PATIENCE
        while self.n_most < self.n_awaited and not key.endswith("attributes.json"):
            assert time.monotonic() < end, f"{self.n_most} requests, expected {self.n_awaited}"
            await asyncio.sleep(0.001)  # threads of several event loops send them
        await let_others_run()  # one more would be noted, too
        self.n_now -= 1

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Buffer | None:
        is_part = isinstance(byte_range, RangeByteRequest)
        await self._wait(key, byte_range.end - byte_range.start if is_part else None)
        return await super().get(key, prototype, byte_range)

    async def set(self, key: str, value: Buffer, byte_range: Any = None) -> None:
        await self._wait(key, None)
        await super().set(key, value, byte_range)


def made(
    shape: tuple[int, ...], chunks: tuple[int, ...], values: np.ndarray, compression: Any = "gzip"
) -> Watched:
    """Return a container in memory with one dataset."""
    store = Watched()
    kind = {"type": compression}
    array: Any = n5zarr.create_array(
        store, path="a", shape=shape, chunks=chunks, dtype="u2", compression=kind
    )
    array[...] = values
    store.asked.clear()
    return store


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).integers(1, 2**16, shape, "u2")


@pytest.mark.each_of(5)
@pytest.mark.parametrize("how", PRESENTATIONS)
@pytest.mark.parametrize("n", [None, 1, 5])
def test_as_many_at_a_time_as_the_store_says(n: int | None, how: dict[str, Any]) -> None:
    values = numbers((30, 29, 7))
    inner = made(values.shape, (3, 4, 7), values)
    array: Any = zarr.open_array(N5Store(inner, concurrency=n, **how), path="a", mode="r+")
    expected = values if how.get("axis_order") != "F" else values.T
    n_expected = 64 if n is None else n
    inner.await_together(n_expected)
    for again in (array, pickle.loads(pickle.dumps(array))):  # which has a store of its own
        np.testing.assert_array_equal(again[...], expected)
    assert inner.n_most == n_expected
    inner.await_together(n_expected)
    array[...] = expected + 1
    assert inner.n_most == n_expected
    np.testing.assert_array_equal(array[...], expected + 1)


@pytest.mark.parametrize("wrong", ["0", "many", "-1", "1.5"])
def test_a_wrong_number_in_the_environment(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("N5ZARR_CONCURRENCY", wrong)
    assert N5Store(MemoryStore(), concurrency=4).with_read_only(True).concurrency == 4
    with pytest.raises(N5UnrepresentableError, match="concurrency: expected an integer"):
        _ = N5Store(MemoryStore()).concurrency


# ---------------------------------------------------------------------- parts of blocks

LARGE = (97, 89, 83)  # elements of 2 bytes: 1.4 MB
N_HEADER = 16


@pytest.fixture(scope="module")
def large() -> tuple[Watched, np.ndarray]:
    values = numbers((100, 89, 83))
    return made(values.shape, LARGE, values, "raw"), values


@pytest.mark.parametrize("how", PRESENTATIONS)
def test_only_the_needed_rows_of_a_large_raw_block(
    large: tuple[Watched, np.ndarray], how: dict[str, Any]
) -> None:
    inner, values = large
    array: Any = zarr.open_array(N5Store(inner, **how), path="a", mode="r")
    at: Any = np.s_[30:33, 5, ::3]
    expected = values[at]
    if how.get("axis_order") == "F":
        at, expected = at[::-1], expected.T
    asked = {("a/0/0/0", N_HEADER), ("a/0/0/0", 3 * 89 * 83 * 2)}
    # the first time also the length, which this store gets by reading: it may be Java's shard
    for length in ({("a/0/0/0", None)}, set()):
        inner.asked.clear()
        np.testing.assert_array_equal(array[at], expected)
        assert set(inner.asked) == asked | length
        assert len(inner.asked) == len(asked | length)
    inner.asked.clear()
    array[...]  # all of it, and the truncated block behind
    assert sorted(inner.asked) == [("a/0/0/0", None), ("a/0/0/1", None)]
    inner.asked.clear()
    last = (98,) if how.get("axis_order") != "F" else (..., 98)
    np.testing.assert_array_equal(array[last], values[98] if len(last) == 1 else values[98].T)
    assert inner.asked == [("a/0/0/1", None)]


def test_a_cache_keeps_whole_blocks(large: tuple[Watched, np.ndarray]) -> None:
    inner, values = large
    store = N5Store(inner, cache=CacheOptions(recheck=False))
    array: Any = zarr.open_array(store, path="a", mode="r")
    inner.asked.clear()
    for z in (3, 50):
        np.testing.assert_array_equal(array[z], values[z])
    assert inner.asked == [("a/0/0/0", None)]


@pytest.mark.parametrize("block", ["shorter", "truncated", "mode 1", "gone"])
def test_a_large_block_that_is_not_full_size(block: str) -> None:
    values = numbers(LARGE)
    inner = made((*LARGE[:2], 100), LARGE, np.pad(values, ((0, 0), (0, 0), (0, 17))), "raw")
    stored = inner._store_dict["a/0/0/0"].to_bytes()
    changed = {
        "shorter": stored[:500],
        "truncated": n5zarr.encode_block(values[:50, :60, :70], compression={"type": "raw"}),
        "mode 1": b"\0\1" + stored[2:16] + values.size.to_bytes(4, "big") + stored[16:],
    }
    array: Any = zarr.open_array(N5Store(inner), path="a", mode="r")
    if block == "gone":
        del inner._store_dict["a/0/0/0"]
    else:
        inner._store_dict["a/0/0/0"] = zarr.buffer.cpu.Buffer.from_bytes(changed[block])
    if block == "shorter":
        with pytest.raises(N5BlockError, match="a: block 0/0/0"):
            array[40:42, :60, :70]
        return
    expected = np.zeros_like(values) if block == "gone" else values
    if block == "truncated":
        expected = np.pad(values[:50, :60, :70], ((0, 47), (0, 29), (0, 13)))
    np.testing.assert_array_equal(array[40:52, :60, :75], expected[40:52, :60, :75])


# ---------------------------------------------------------------------- memory, errors, writers


@pytest.mark.parametrize("compression", ["raw", "zstd"])
def test_memory_holds_the_output_and_what_is_in_flight(compression: str) -> None:
    values = numbers((64, 256, 256))
    inner = made(values.shape, (8, 128, 128), values, compression)  # 32 blocks of 256 KiB
    array: Any = zarr.open_array(N5Store(inner, concurrency=2), path="a", mode="r")
    array[:8]
    with traced() as memory:
        found = array[...]
    np.testing.assert_array_equal(found, values)
    assert memory.peak < values.nbytes + 8 * 2**18


@pytest.mark.parametrize("how", PRESENTATIONS)
def test_a_damaged_block_is_named_and_ends_the_read(how: dict[str, Any]) -> None:
    values = numbers((400,))
    inner = made((400,), (2,), values)
    stored = inner._store_dict["a/7"].to_bytes()
    inner._store_dict["a/7"] = zarr.buffer.cpu.Buffer.from_bytes(stored[:-6])
    array: Any = zarr.open_array(N5Store(inner, concurrency=4, **how), path="a", mode="r")
    inner.asked.clear()
    with pytest.raises(N5BlockError, match="a: block 7: "):
        array[...]
    assert len(inner.asked) < 30


def test_blocks_of_every_kind_are_those_of_local_files(tmp_path: Path) -> None:
    values = numbers((13, 17, 11))
    local: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=values.shape, chunks=(5, 7, 4), dtype="u2", fill_value=3
    )
    local[...] = values
    (tmp_path / "c.n5/a/1/1/1").unlink()
    smaller = n5zarr.encode_block(values[:2, :3, :4], compression={"type": "gzip"})
    (tmp_path / "c.n5/a/0/0/0").write_bytes(smaller)
    full = np.full((5, 7, 4), 9, "u2")  # padded, as tensorstore writes
    (tmp_path / "c.n5/a/2/2/2").write_bytes(n5zarr.encode_block(full, compression={"type": "gzip"}))
    contents = {
        path.relative_to(tmp_path / "c.n5").as_posix(): path.read_bytes()
        for path in (tmp_path / "c.n5").rglob("*")
        if path.is_file()
    }
    buffers = {key: zarr.buffer.cpu.Buffer.from_bytes(data) for key, data in contents.items()}
    selections: list[Any] = [..., np.s_[1:12, 3:9, 2], np.s_[::2, [1, 1, 16], ::-1][0:2]]
    for how in PRESENTATIONS:
        two: list[Any] = [
            zarr.open_array(N5Store(place, **how), path="a", mode="r")
            for place in (tmp_path / "c.n5", Watched(dict(buffers)))
        ]
        for at in selections:
            np.testing.assert_array_equal(two[0][at], two[1][at])
        masks = [np.arange(n) % 3 == 0 for n in two[0].shape]
        np.testing.assert_array_equal(two[0].oindex[tuple(masks)], two[1].oindex[tuple(masks)])
