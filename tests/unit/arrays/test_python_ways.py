"""What the ways in Python decide: which parts of blocks they read, and what they write whole."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zarr
from zarr.buffer import cpu

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.open_dataset import dataset_of_array
from n5zarr.errors import N5BlockError
from n5zarr.fast import default, workers
from n5zarr.fast.default import default_pipeline_name
from n5zarr.fast.pipeline import N5CodecPipeline
from n5zarr.fast.python_blocks import BlockReader, _selects_the_same
from n5zarr.fast.python_writing import BlockWriter
from n5zarr.fast.workers import _ends_of, share_out
from n5zarr.storage.ending import ending
from n5zarr.storage.threads import run_each
from tests.shards import write_shards
from tests.unit.arrays.blocks import SHAPE, numbers, places, write_dataset
from tests.waiting import PATIENCE


@pytest.mark.parametrize(
    ("selection", "expected"),
    [(slice(0, 3), True), (slice(0, 4), False), (slice(None), False), (slice(3, 1, -1), False),
     (slice(-5, -2), False), (2, True), (3, False), (-1, False), (np.array([0, 2]), True),
     (np.array([0, 3]), False), (np.array([-1, 0]), False), (np.array([True] * 5), False)],
    ids=repr,
)  # fmt: skip
def test_selections_from_a_smaller_block(selection: Any, *, expected: bool) -> None:
    """From 3 of 5 elements."""
    assert _selects_the_same(selection, 3, 5) == expected
    assert _selects_the_same(selection, 5, 5)


class Key(NamedTuple):
    path: str


def opened(root: Path, order: Any = "C") -> Any:
    found = dataset_of_array(n5zarr.open_array(root / "d", "r+", axis_order=order), to_write=True)
    assert found is not None
    return found


def item(key: str, inner: Any, outer: Any, spec: Any = None, *, is_complete: bool = True) -> Any:
    return Key(f"d/c/{key}"), spec, inner, outer, is_complete


SLABS: list[tuple[Any, Any]] = [  # of 3 rows of 16 bytes
    ((slice(1, 2), slice(None), 0), (16, 16, (slice(0, 1), slice(None), 0))),
    ((slice(0, 1), 2, 1), (0, 16, (slice(0, 1), 2, 1))),
    ((2, slice(1, 3), slice(0, 1)), (32, 16, (0, slice(1, 3), slice(0, 1)))),
    ((slice(0, 2), 0, 0), None), ((slice(1, 1), 0, 0), None), ((slice(0, 1, 2), 0, 0), None),
    (([0], 0, 0), None), (0, None),
]  # fmt: skip


@pytest.mark.parametrize(("selection", "expected"), SLABS)
def test_slabs(tmp_path: Path, selection: Any, expected: Any) -> None:
    write_dataset(tmp_path, numbers())
    reader = BlockReader(opened(tmp_path), np.zeros(SHAPE, "u2"), ())
    assert reader.slab(item("0/0/0", selection, ())) == expected
    if not isinstance(selection, tuple) or expected is None:
        return
    turned = BlockReader(opened(tmp_path, "F"), np.zeros(SHAPE[::-1], "u2"), ())
    offset, n_bytes, rest = expected
    assert turned.slab(item("0/0/0", selection[::-1], ())) == (offset, n_bytes, rest[::-1])


WHOLE: list[tuple[str, Any, tuple[int, ...], bool]] = [
    ("0/0/0", (slice(0, 3), slice(0, 4), slice(0, 2)), SHAPE, True),
    ("2/2/2", (slice(6, 7), slice(8, 11), slice(4, 5)), SHAPE, True),
    ("2/2/2", (slice(6, 9), slice(8, 12), slice(4, 6)), SHAPE, False),
    ("1/1/1", (slice(0, 3), slice(0, 4), slice(0, 2)), (3, 4, 2), True),
    ("1/1/1", (slice(0, 3), slice(0, 4), slice(0, 2)), (3, 4, 1), False),
    ("1/1/1", (slice(0, 3), slice(0, 4)), (3, 4), False),
    ("1/1/1", (slice(0, 3, 1), slice(0, 4), slice(0, 2)), (3, 4, 2), True),
    ("1/1/1", (slice(0, 6, 2), slice(0, 4), slice(0, 2)), (9, 4, 2), False),
    ("1/1/1", slice(0, 3), (3, 4, 2), False),
    ("1/1/1", (slice(0, 2), slice(0, 4), slice(0, 2)), (3, 4, 2), False),
    ("1/1/1", (slice(3, 6), slice(4, 8), slice(2, 4)), (), True),
]


@pytest.mark.parametrize(("key", "outer", "shape", "expected"), WHOLE)
def test_blocks_of_which_a_value_has_all_elements(
    tmp_path: Path, key: str, outer: Any, shape: tuple[int, ...], *, expected: bool
) -> None:
    write_dataset(tmp_path, numbers())
    writer = BlockWriter(opened(tmp_path), cpu.NDBuffer(np.ones(shape, "u2")))
    assert writer.writes_whole(item(key, (), outer), ()) == expected
    assert not writer.writes_whole(item(key, (), outer), (0,))
    assert not writer.writes_whole(item(key, (), outer, is_complete=False), ())


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 5, 37])
def test_results_are_in_the_order_of_items(n: int, n_workers: int) -> None:
    lots: list[int] = []

    def work(items: Any) -> list[int]:
        found = [2 * each for each in items]
        lots.append(len(found))
        return found

    assert share_out(work, range(n), n_workers) == [2 * k for k in range(n)]
    assert sum(lots) == n
    assert max(lots, default=1) == max(1, -(-n // (4 * n_workers)))


async def test_calls_at_a_time() -> None:
    busy, most, done = 0, 0, []

    async def work(k: int) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        done.append(k)

    await run_each(work, 7, 3)
    assert sorted(done) == list(range(7))
    assert most == 3
    with pytest.raises(ZeroDivisionError):
        await run_each(lambda k: work(1 // k), 3, 2)


def test_boxes_of_an_array_without_axes(tmp_path: Path) -> None:
    array = n5zarr.create_array(tmp_path, path="d", data=np.array(5, "u2"))
    for each in (array, zarr.open_array(array.store, path="d")):
        assert n5zarr.read_boxes(each, np.zeros((2, 0), int), ()).tolist() == [5, 5]


def test_the_pipeline_of_each_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path, numbers())
    ours: Any = zarr.open_array(N5Store(tmp_path), path="d").async_array.codec_pipeline
    assert type(ours) is N5CodecPipeline
    assert ours.n_names == 4
    own_codecs: Any = ours.zarr_pipeline
    assert [type(codec) for codec in ours] == [type(codec) for codec in own_codecs]
    other: Any = zarr.create_array({}, shape=(3,), dtype="u2")
    assert type(other.async_array.codec_pipeline) is not N5CodecPipeline

    asked = []

    class Own(N5Store):
        async def get(self, key: str, *arguments: Any, **options: Any) -> Any:
            asked.append(key)
            return await super().get(key, *arguments, **options)

        def get_sync(self, key: str, **options: Any) -> Any:
            asked.append(key)
            return super().get_sync(key, **options)

    own: Any = zarr.open_array(Own(tmp_path), path="d")
    assert type(own.async_array.codec_pipeline) is not N5CodecPipeline
    np.testing.assert_array_equal(own[...], numbers())
    assert {f"d/c/{'/'.join(map(str, place))}" for place in places()} <= set(asked)
    name = "n5zarr.arrays.pipeline.N5CodecPipeline"
    for value, expected in (("0", default_pipeline_name()), ("1", name)):
        monkeypatch.setenv("N5ZARR_PIPELINE", value)
        with zarr.config.set({"codec_pipeline.path": default_pipeline_name()}):
            default.make_default()
            assert zarr.config.get("codec_pipeline.path") == expected
    with zarr.config.set({"codec_pipeline.path": "other"}):
        default.make_default()
        assert zarr.config.get("codec_pipeline.path") == "other"


@pytest.mark.parametrize("box", [(slice(3, 6), slice(4, 8), slice(2, 4)), (...,)])
def test_missing_blocks_of_shards_are_errors(tmp_path: Path, box: Any) -> None:
    """A shard of Java has the name of another block: what is missing may be in one."""
    write_shards(tmp_path / "d", numbers(shape=(12, 8, 6)), (2, 4, 3), (4, 8, 6))
    array: Any = n5zarr.open_array(tmp_path / "d")
    assert array.chunks == (3, 4, 2)
    for each in (array, zarr.open_array(N5Store(tmp_path), path="d", mode="r")):
        with pytest.raises(N5BlockError) as err:
            each[slice(9, 12), slice(4, 8), slice(4, 6)]
        assert err.value.kind == "shard"
        with pytest.raises(N5BlockError):
            each[box]


def test_a_block_outside_of_the_grid_is_not_written(tmp_path: Path) -> None:
    write_dataset(tmp_path, numbers())
    writer = BlockWriter(opened(tmp_path), cpu.NDBuffer(np.ones((3, 4, 2), "u2")))
    outer = (slice(0, 3), slice(0, 4), slice(0, 2))
    for key, is_inside in (("2/2/2", True), ("3/0/0", False), ("0/3/0", False), ("0/0/3", False)):
        assert (writer.steps(item(key, outer, outer), ()) is not None) == is_inside


def test_the_errors_of_another_thread() -> None:
    """An interruption of waiting is kept, and the wait goes on."""

    class Interrupted(Future[None]):
        n_left, n_cancels = 2, 0

        def exception(self, timeout: float | None = None) -> BaseException | None:
            self.n_left -= 1
            if self.n_left >= 0:
                raise KeyboardInterrupt
            return super().exception(timeout)

        def cancel(self) -> bool:
            if type(self).n_cancels == 0:
                return super().cancel()
            type(self).n_cancels -= 1
            raise KeyboardInterrupt

    for failing, n_cancels in ((None, 0), (None, 2), (ValueError(), 0), (ValueError(), 2)):
        Interrupted.n_cancels = n_cancels
        running, never_begun, interrupted = Future[None](), Future[None](), Interrupted()
        for each in (running, interrupted):
            each.set_running_or_notify_cancel()
            each.set_exception(failing)
        found = _ends_of([running, never_begun, interrupted])
        assert sum(isinstance(each, KeyboardInterrupt) for each in found) == 2 + n_cancels
        assert found[2 + n_cancels :] == [failing, failing]
        assert never_begun.cancelled()


def test_a_call_waits_for_threads_that_nobody_awaits(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interruption may come before the wait for them has begun."""
    monkeypatch.setattr(workers, "_ends_of", lambda _: [])
    own, begun, ended = threading.get_ident(), threading.Event(), list[int]()

    def take() -> None:
        if threading.get_ident() == own:
            assert begun.wait(PATIENCE)
            raise KeyboardInterrupt
        begun.set()
        time.sleep(0.2)  # a share that is under way
        ended.append(1)

    with pytest.raises(KeyboardInterrupt), ending():
        workers.work_together(take, 2, lambda: None)
    assert ended == [1]
