"""Batches of zarr: blocks that the kernel leaves are read and written in Python, and no others."""

from __future__ import annotations

import fcntl
import os
import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError, N5Error
from n5zarr.fast import batches, kernel
from n5zarr.fast.pipeline import N5CodecPipeline
from n5zarr.storage import ending
from tests.unit.arrays.blocks import (
    SELECTIONS,
    SHAPE,
    block_bytes,
    decoded,
    numbers,
    part_of,
    path_of,
    places,
    write_block,
    write_dataset,
)  # fmt: skip
from tests.waiting import when_another_program_holds_a_lock

needs_locks = pytest.mark.skipif(
    not hasattr(fcntl, "F_OFD_SETLK"), reason="no timers: locks of open files are Linux's"
)


@pytest.fixture(params=["kernel", "python"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(kernel, "can_do", lambda _: False)
    elif not kernel.is_compiled():
        pytest.skip("no compiled kernel")
    return str(request.param)


def opened(root: Path, mode: Any = "r+") -> Any:
    """Open an array that zarr reads and writes, through batches."""
    array = zarr.open_array(N5Store(root), path="d", mode=mode)
    assert isinstance(array.async_array.codec_pipeline, N5CodecPipeline)
    assert type(array) is zarr.Array
    return array


def hold(path: Path) -> int:
    """Lock a file as Java does to write; return the open file, whose end releases it."""
    file = os.open(path, os.O_RDWR)
    whole = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole)
    return file


@pytest.mark.parametrize("compression", ["raw", "gzip", "bzip2"])
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_selections(tmp_path: Path, compression: str, selection: Any) -> None:
    """Of a dataset with a missing block, and one that other programs make: of another mode."""
    values = numbers()
    n5zarr.create_array(tmp_path, path="d", data=values, chunks=(3, 4, 2), compression=compression)
    path_of(tmp_path, (1, 0, 1)).unlink()
    values[part_of((1, 0, 1))] = 0
    if compression != "bzip2":
        odd = block_bytes(values[part_of((0, 1, 0))], compression, mode=1)
        write_block(tmp_path, (0, 1, 0), odd)
    array = opened(tmp_path)
    np.testing.assert_array_equal(array[selection], values[selection])
    new = (numbers("u2", np.shape(values[selection])) + 400).astype("u2")
    array[selection] = new
    values[selection] = new
    np.testing.assert_array_equal(opened(tmp_path)[...], values)
    array[selection] = 7
    values[selection] = 7
    np.testing.assert_array_equal(opened(tmp_path)[...], values)


POINTS: dict[str, Any] = {
    "list": ([1, 5, 6], slice(2, 9), [0, 4]),
    "mask": (np.arange(7) % 3 == 0, slice(None), slice(1, 2)),
    "one": ([4], [10], [3]),
    "number and list": (2, [0, 7], slice(None)),
}


@pytest.mark.parametrize("selection", POINTS.values(), ids=POINTS)
def test_lists(tmp_path: Path, selection: Any) -> None:
    values = write_dataset(tmp_path, numbers(), "gzip", missing=((2, 2, 2),))
    write_block(tmp_path, (1, 1, 1), block_bytes(values[part_of((1, 1, 1))], "gzip", mode=1))
    array = opened(tmp_path)
    each = [np.atleast_1d(np.arange(n)[s]) for s, n in zip(selection, SHAPE, strict=True)]
    dropped = tuple(k for k, part in enumerate(selection) if isinstance(part, int))
    expected = values[np.ix_(*each)].squeeze(dropped)
    np.testing.assert_array_equal(array.oindex[selection], expected)
    array.oindex[selection] = expected + 500
    values[np.ix_(*each)] += 500
    np.testing.assert_array_equal(opened(tmp_path)[...], values)


@needs_locks
@pytest.mark.parametrize("place", [(0, 0, 0), (1, 1, 1), (1, 2, 0), (2, 2, 2)])
@pytest.mark.parametrize("is_part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("by", ["zarr", "n5zarr"])
def test_a_block_whose_lock_another_has_is_written_later(
    tmp_path: Path, place: tuple[int, ...], by: str, way: str, *, is_part: bool
) -> None:
    """And every other block at once; none is lost."""
    values = write_dataset(tmp_path, numbers())
    array = opened(tmp_path) if by == "zarr" else n5zarr.open_array(tmp_path / "d", "r+")
    file = hold(path_of(tmp_path, place))
    others = [other for other in places() if other != place]
    box = (slice(1, 7), slice(2, 10), slice(1, 5)) if is_part else (...,)
    values[box] += 600
    seen: list[int] = []

    def release() -> None:
        written = [decoded(path_of(tmp_path, other).read_bytes()) for other in others]
        each = zip(others, written, strict=True)
        seen.append(sum(np.array_equal(values[part_of(other)], found) for other, found in each))
        os.close(file)

    with when_another_program_holds_a_lock(release):
        array[box] = values[box]
    if way == "kernel":
        assert seen == [len(others)]
    for each in places():
        found = decoded(path_of(tmp_path, each).read_bytes())
        np.testing.assert_array_equal(found, values[part_of(each)])


@pytest.mark.parametrize("compression", ["raw", "gzip"])
@pytest.mark.parametrize("place", [(0, 0, 0), (1, 2, 1), (2, 0, 2), (2, 2, 2)])
def test_a_damaged_block_is_named(tmp_path: Path, place: tuple[int, ...], compression: str) -> None:
    values = write_dataset(tmp_path, numbers(), compression)
    array = opened(tmp_path)
    write_block(tmp_path, place, block_bytes(values[part_of(place)], compression)[:-9])
    name = "/".join(map(str, place[::-1]))
    with pytest.raises(N5BlockError, match=name) as err:
        array[...]
    with pytest.raises(N5BlockError) as of_n5zarr:
        n5zarr.open_array(tmp_path / "d")[...]
    assert str(of_n5zarr.value) == str(err.value)
    others = tuple(slice(0, p.start) if p.start else slice(p.stop, None) for p in part_of(place))
    np.testing.assert_array_equal(array[others], values[others])


def test_missing_blocks_that_are_errors(tmp_path: Path) -> None:
    write_dataset(tmp_path, numbers(), missing=((1, 1, 1),))
    array = opened(tmp_path).with_config({"read_missing_chunks": False})
    with pytest.raises(zarr.errors.ChunkNotFoundError, match="1/1/1"):
        array[...]
    np.testing.assert_array_equal(array[:3], numbers()[:3])


@pytest.mark.parametrize(("limit", "expected"), [(48 * 27, 0), (48 * 27 - 1, 1)])
def test_where_much_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, expected: int
) -> None:
    """On a thread, so that zarr's event loop goes on."""
    for name in ("_FEW_BYTES", "_FEW_SLOW_BYTES"):
        monkeypatch.setattr(batches, name, limit)
    passed: list[Any] = []

    def on_thread(*arguments: Any) -> Any:
        passed.append(arguments[0])
        return ending.on_thread(*arguments)

    monkeypatch.setattr(batches, "on_thread", on_thread)
    values = write_dataset(tmp_path, numbers(), "gzip")
    np.testing.assert_array_equal(opened(tmp_path)[...], values)
    assert passed.count(batches._read_local) == expected


@pytest.mark.parametrize("write_empty", [False, True])
def test_chunks_of_background(tmp_path: Path, *, write_empty: bool) -> None:
    write_dataset(tmp_path, numbers())
    array = opened(tmp_path).with_config({"write_empty_chunks": write_empty})
    array[3:6, 4:8, 2:4] = 0
    array[0:3, 0:4, 0:2] = np.zeros((3, 4, 2), "u2")
    array[3:6, 0:4, 1:2] = 0
    array[3:6, 0:4, 0:1] = np.zeros((3, 4, 1), "u2")
    for place in ((1, 1, 1), (0, 0, 0), (1, 0, 0)):
        assert path_of(tmp_path, place).exists() == write_empty
    assert path_of(tmp_path, (1, 2, 1)).exists()


def test_a_dataset_that_another_program_replaces(tmp_path: Path) -> None:
    write_dataset(tmp_path, numbers())
    array = opened(tmp_path)
    assert array[0, 0, 0] == 2
    n5zarr.create_array(
        tmp_path, path="d", data=numbers("f4"), chunks=(3, 4, 2), overwrite=True, compression="raw"
    )
    for do in (array.__getitem__, lambda box: array.__setitem__(box, 3)):
        with pytest.raises(N5Error) as err:
            do((0, 0, 0))
        assert err.value.kind == "changed"


def test_a_dataset_that_another_program_enlarges(tmp_path: Path) -> None:
    """Blocks at the end of the old one are kept beyond it."""
    write_dataset(tmp_path, numbers())
    array = opened(tmp_path)
    array[...]  # is remembered
    large = np.full((9, 12, 6), 77, "u2")
    write_dataset(tmp_path, large)
    array[...] = numbers()
    large[:7, :11, :5] = numbers()
    np.testing.assert_array_equal(opened(tmp_path)[...], large)


@pytest.mark.parametrize("large", [10, 2**17])
def test_orders_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(batches, "_LARGE", large)
    values = write_dataset(tmp_path, numbers(), "gzip", missing=((0, 1, 0),))
    array = opened(tmp_path, "r").with_config({"order": "F"})
    np.testing.assert_array_equal(array[1:, 2:, 1:4], values[1:, 2:, 1:4])
    np.testing.assert_array_equal(array.vindex[[1, 6, 2], [7, 10, 5], [0, 4, 1]],
                                  values[[1, 6, 2], [7, 10, 5], [0, 4, 1]])  # fmt: skip
    assert partial(array.__getitem__, (0, 0, 0))() == values[0, 0, 0]
