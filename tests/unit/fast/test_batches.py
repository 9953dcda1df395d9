"""What batches of zarr's pipeline may be, and which of them write whole blocks."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.codecs.compress import decompress_reused
from n5zarr.fast import kernel, pipeline
from n5zarr.fast.batches import _has_only_full_blocks
from n5zarr.fast.pipeline import N5CodecPipeline
from tests.unit.arrays.blocks import numbers, write_dataset


@pytest.mark.parametrize("name", ["read", "write"])
def test_a_batch_may_be_an_iterator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    values, own = write_dataset(tmp_path, numbers()), getattr(N5CodecPipeline, name)
    array: Any = zarr.open_array(N5Store(tmp_path), path="d", mode="r+")

    async def once(self: Any, batch: Any, *rest: Any, **options: Any) -> Any:
        return await own(self, iter(tuple(batch)), *rest, **options)

    monkeypatch.setattr(N5CodecPipeline, name, once)
    array[1:6] = values[1:6] + 1
    values[1:6] += 1
    np.testing.assert_array_equal(array[...], values)


@pytest.mark.skipif(
    not (kernel.is_compiled() and hasattr(os, "sched_getaffinity")),
    reason="there are no such limits",
)
def test_a_thread_moves_away_from_work_and_may_go_anywhere_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor, allowed = ctypes.CDLL(None).sched_getcpu, os.sched_getaffinity(0)
    found: list[tuple[bool, set[int]]] = []

    def moving(*args: Any, **options: Any) -> Any:  # while the kernel works on this processor
        before = processor()
        kernel._kernel.spread()
        found.append((processor() != before, os.sched_getaffinity(0)))
        return decompress_reused(*args, **options)

    array: Any = n5zarr.create_array(tmp_path, path="b", data=numbers(), compression="bzip2")
    monkeypatch.setattr(kernel, "decompress_reused", moving)
    for _ in range(50):  # the system, too, may move a thread
        np.testing.assert_array_equal(array[...], numbers())
    assert all(after == allowed for _, after in found)
    assert any(has_moved for has_moved, _ in found) or len(allowed) == 1


@pytest.mark.parametrize(
    ("is_complete", "key", "is_full"), [(True, "0", True), (False, "0", False), (True, "1", False)]
)
def test_blocks_that_are_written_whole(is_complete: bool, key: str, is_full: bool) -> None:
    """A part of a block, or a block at the end, which another program may have enlarged, is not."""
    dataset: Any = SimpleNamespace(
        view=SimpleNamespace(dataset=SimpleNamespace(block_size=(3,))),
        position=int,
        extent=lambda k: (3 - k,),
    )
    part = (slice(0, 3),)
    items: Any = [
        (SimpleNamespace(path=k), None, part, part, c) for k, c in [("0", True), (key, is_complete)]
    ]
    assert _has_only_full_blocks(dataset, items) is is_full


@pytest.mark.parametrize("n_blocks", [1, 5])
def test_zarr_writes_while_modules_of_n5zarr_are_imported(
    n_blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler or a finalizer that has interrupted the import writes, and is refused."""
    monkeypatch.setattr(pipeline, "_loaded", [])
    monkeypatch.setattr(pipeline, "_is_importing", lambda: True)
    values = np.arange(1, 3 * n_blocks + 1, dtype="u2")
    with zarr.config.set({"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"}):
        array: Any = zarr.create_array(
            N5Store(tmp_path), name="d", shape=values.shape, chunks=(3,), dtype="u2"
        )
        array[1:] = values[1:]
        array[:2] = values[:2]
        assert (array[...] == values).all()
        other: Any = zarr.open_array(N5Store(tmp_path, read_only=True), path="d", mode="r")
        with pytest.raises(ValueError, match="read-only"):
            other[:2] = 0
    assert pipeline._loaded == []
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path, path="d")[...], values)
