"""The kernel reads and writes ordinary blocks, and says which ones it leaves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numcodecs.blosc import Blosc
from numcodecs.zstd import Zstd

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.box import Groups
from n5zarr.arrays.open_dataset import OpenDataset, dataset_at, dataset_of_array
from n5zarr.codecs.buffers import Scratch
from n5zarr.fast import kernel
from n5zarr.fast.cells import Cells
from n5zarr.fast.whole_blocks import can_read_whole, read_whole
from n5zarr.format.order import N5Tuple
from tests.unit.arrays.blocks import (
    CHUNKS,
    COMPRESSIONS,
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

pytestmark = pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")

OWN = ["raw", "gzip", "zlib", "zstd", "blosc"]
BOXES: list[tuple[tuple[int, ...], tuple[int, ...], Any]] = [
    ((0, 0, 0), SHAPE, None),
    ((1, 3, 1), (5, 6, 3), None),
    ((3, 4, 2), (3, 4, 2), None),
    ((6, 10, 4), (1, 1, 1), None),
    ((4, 5, 2), (1, 2, 1), None),
    ((1, 0, 0), (3, 3, 2), (2, 5, 3)),
]


def dataset(root: Path, order: Any = "C") -> OpenDataset:
    store = N5Store(root, axis_order=order)
    found = store.run(dataset_at(store, "d", 3))
    assert found is not None
    return found


def cut(values: np.ndarray, start: Any, shape: Any, step: Any) -> np.ndarray:
    each = zip(start, shape, step or (1,) * len(start), strict=True)
    return values[tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in each)]


@pytest.mark.parametrize("compression", OWN)
@pytest.mark.parametrize("order", ["C", "F"])
def test_boxes_are_read(tmp_path: Path, compression: str, order: str) -> None:
    """Also a missing block, with a fill value, and into the other byte order."""
    values = write_dataset(tmp_path, numbers(), compression, missing=((1, 1, 1),))
    values[part_of((1, 1, 1))] = 9
    each, way = dataset(tmp_path, order), 1 if order == "C" else -1
    for start, shape, step in BOXES:
        for dtype, n_workers in (("<u2", None), (">u2", 3)):
            expected = cut(values, start, shape, step)
            out = np.zeros(shape[::way], dtype)
            turned = None if step is None else step[::way]
            assert not kernel.read_box(each, start[::way], out, 9, n_workers, step=turned)
            np.testing.assert_array_equal(out, expected if order == "C" else expected.T)


@pytest.mark.parametrize("compression", OWN)
def test_an_odd_block_is_left_alone_and_named(tmp_path: Path, compression: str) -> None:
    """A block larger than the end of the dataset allows, or of another mode, is odd."""
    values = write_dataset(tmp_path, numbers(), compression)
    each = dataset(tmp_path)
    for place in places():
        was = path_of(tmp_path, place).read_bytes()
        part = values[part_of(place)]
        odd = block_bytes(part, compression, mode=1)
        write_block(tmp_path, place, odd)
        position = place[::-1]
        out = np.zeros(SHAPE, "u2")
        assert kernel.read_box(each, (0, 0, 0), out, 0) == [position]
        out[part_of(place)] = part
        np.testing.assert_array_equal(out, values)
        put = kernel.putting(each, (0, 0, 0), out, 0)
        assert not put(N5Tuple(position), memoryview(odd), Scratch())
        out[part_of(place)] = 0
        assert put(N5Tuple(position), memoryview(was), Scratch())
        assert put(N5Tuple(position), memoryview(bytearray(was)), Scratch())
        np.testing.assert_array_equal(out, values)
        assert put(N5Tuple(position), None, Scratch())
        assert not out[part_of(place)].any()
        write_block(tmp_path, place, was)


@pytest.mark.parametrize("compression", OWN)
@pytest.mark.parametrize("order", ["C", "F"])
def test_many_boxes_of_which_a_group_is_left(tmp_path: Path, compression: str, order: str) -> None:
    values = write_dataset(tmp_path, numbers(), compression)
    write_block(tmp_path, (1, 1, 1), block_bytes(values[part_of((1, 1, 1))], compression, mode=1))
    starts = np.array([[0, 0, 0], [3, 4, 2], [5, 9, 3], [2, 3, 1]])
    each, size = dataset(tmp_path, order), (2, 2, 2)
    groups = Groups.of(starts[:, ::-1], size, CHUNKS[::-1])  # N5 order
    out = np.zeros((4, *size), "u2")
    left = kernel.read_boxes(each, groups, out, 0)
    assert [groups.places[k].tolist() for k in left] == [[1, 1, 1]]
    values[part_of((1, 1, 1))] = 0
    for start, found in zip(starts, out, strict=True):
        expected = cut(values, start, size, None)
        np.testing.assert_array_equal(found, expected if order == "C" else expected.T)


def copy_of(root: Path) -> np.ndarray:
    """Return what the raw blocks of the dataset hold."""
    found = np.zeros(SHAPE, "u2")
    for place in places():
        if path_of(root, place).exists():
            found[part_of(place)] = decoded(path_of(root, place).read_bytes())
    return found


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("start", "shape", "step"), BOXES)
def test_boxes_are_written(tmp_path: Path, order: str, start: Any, shape: Any, step: Any) -> None:
    values = write_dataset(tmp_path, numbers(), missing=((1, 1, 1),))
    each, way = dataset(tmp_path, order), 1 if order == "C" else -1
    new = numbers("<u2", shape) + 300
    cut(values, start, shape, step)[...] = new
    given = (new if order == "C" else new.T).astype(">u2")
    turned = None if step is None else step[::way]
    assert kernel.write_box(each, start[::way], given, 0, keep_empty=False, step=turned) == []
    np.testing.assert_array_equal(copy_of(tmp_path), values)


def test_a_block_that_would_lose_other_blocks_is_left(tmp_path: Path) -> None:
    """A block of another mode may be more than the block: Python looks at it."""
    values = write_dataset(tmp_path, numbers())
    odd = block_bytes(values[part_of((1, 1, 1))], mode=1)
    write_block(tmp_path, (1, 1, 1), odd)
    new = numbers() + 1
    left = kernel.write_box(dataset(tmp_path), (1, 1, 1), new[1:, 1:, 1:], 0, keep_empty=False)
    assert left in ([], [(1, 1, 1)])
    values[1:, 1:, 1:] = new[1:, 1:, 1:]
    if left:
        assert path_of(tmp_path, (1, 1, 1)).read_bytes() == odd
        write_block(tmp_path, (1, 1, 1), block_bytes(new[part_of((1, 1, 1))]))
    np.testing.assert_array_equal(copy_of(tmp_path), values)


ENCODERS: dict[str, tuple[dict[str, Any], Any]] = {
    "lz4": (
        {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 0, "blocksize": 4096},
        Blosc("lz4", 5, 0, 4096),
    ),
    "shuffled": (
        {"type": "blosc", "cname": "zlib", "clevel": 3, "shuffle": 1, "blocksize": 0},
        Blosc("zlib", 3, 1, 0),
    ),
    "bits shuffled": (
        {"type": "blosc", "cname": "zstd", "clevel": 9, "shuffle": 2, "blocksize": 8192},
        Blosc("zstd", 9, 2, 8192),
    ),
    "zstd": ({"type": "zstd", "level": 1}, Zstd(1)),
    "zstd, small": ({"type": "zstd", "level": 19}, Zstd(19)),
}


@pytest.mark.parametrize(("given", "encoder"), ENCODERS.values(), ids=ENCODERS)
def test_blocks_are_compressed_with_the_given_parameters(
    tmp_path: Path, given: dict[str, Any], encoder: Any
) -> None:
    values = (np.random.default_rng(3).integers(0, 9, 20011) ** 2).astype(">u4")
    n5zarr.create_array(
        tmp_path, path="d", data=values.astype("u4"), chunks=(20011,), compression=given
    )
    payload = (tmp_path / "d/0").read_bytes()[8:]
    assert payload == encoder.encode(values)


def test_a_level_of_gzip_makes_blocks_smaller(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 9, 30011) ** 2
    for level in (1, 9):
        compression: Any = {"type": "gzip", "level": level}
        n5zarr.create_array(
            tmp_path, path=f"d{level}", data=values, chunks=(30011,), compression=compression
        )
    assert (tmp_path / "d9/0").stat().st_size < (tmp_path / "d1/0").stat().st_size


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_each_compression_comes_back(tmp_path: Path, compression: str) -> None:
    given, values = COMPRESSIONS[compression], numbers()
    array: Any = n5zarr.create_array(
        tmp_path, path="d", shape=SHAPE, chunks=CHUNKS, dtype="u2", compression=given
    )
    array[...] = values
    out = np.zeros(SHAPE, "u2")
    assert not kernel.read_box(dataset(tmp_path), (0, 0, 0), out, 0)
    np.testing.assert_array_equal(out, values)
    if compression in OWN:
        expected = write_dataset(tmp_path / "other", values, compression)
        np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "other/d")[...], expected)


def test_what_is_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directories of all blocks, and each above, up to the dataset's."""
    synced: list[set[str]] = []
    monkeypatch.setattr(kernel, "sync_directories", synced.append)
    write_dataset(tmp_path, numbers())
    ways: list[tuple[Any, int]] = [("atomic", 0), ("durable", 1)]
    for durability, n in ways:
        array: Any = n5zarr.open_array(tmp_path / "d", "r+", durability=durability)
        array[3:7, 4:9, 2:4] = 5
        assert len(synced) == n
    names = ["", "1", "1/1", "1/2"]
    assert synced == [{os.path.join(tmp_path, "d", name) for name in names}]  # noqa: PTH118


def test_what_the_kernel_can_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path, numbers())
    assert kernel.can_do(dataset(tmp_path))
    monkeypatch.setattr(kernel, "REUSED", 48)  # bytes of a full-size block
    assert kernel.can_do(dataset(tmp_path))
    monkeypatch.setattr(kernel, "REUSED", 47)
    assert not kernel.can_do(dataset(tmp_path))
    monkeypatch.undo()
    for shape, dtype in (((5,), "M8[s]"), ((), "u2"), ((5,), "c8"), ((5,), "f4"), ((5,), "str")):
        array: Any = n5zarr.create_array(
            tmp_path, path="e", shape=shape, dtype=dtype, overwrite=True
        )
        found = dataset_of_array(array)
        assert (found is not None and kernel.can_do(found)) == (dtype == "f4"), (shape, dtype)
    monkeypatch.setattr(kernel, "_kernel", None)
    assert not kernel.can_do(dataset(tmp_path))


@pytest.mark.parametrize(
    ("n_blocks", "n_bytes", "asked", "expected"),
    [(1, 2**20, None, []), (4, 2**16, None, [3]), (2, 2**20, None, [2]), (4, 2**16 - 1, None, [1]),
     (4, 2**16, 2, [2]), (9, 2**16, 5, [5])],
)  # fmt: skip
def test_how_many_threads_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    n_blocks: int, n_bytes: int, asked: int | None, expected: list[int],
) -> None:  # fmt: skip
    """Work that takes less time than another thread is done by this one."""
    used: list[int] = []

    def note(take: Any, n_workers: int, stop: Any) -> None:
        used.append(n_workers)
        take()
        stop()

    monkeypatch.setattr(kernel, "work_together", note)
    monkeypatch.setattr(kernel, "max_workers", lambda: 3)
    n = n_bytes
    n5zarr.create_array(
        tmp_path, path="d", data=np.ones(n * n_blocks, "u1"), chunks=(n,), compression="gzip"
    )
    used.clear()
    out = np.zeros(n * n_blocks, "u1")
    assert not kernel.read_box(dataset(tmp_path), (0,), out, 0, asked)
    assert out.all()
    assert used == expected


@pytest.mark.parametrize("kept", [(0, 0, 0), (1, 2, 1), (2, 2, 2)])
def test_a_block_that_is_there_shows_that_files_are_no_shards(tmp_path: Path, kept: Any) -> None:
    """Its presence is remembered, so that no other file is looked at."""
    missing = tuple(place for place in places() if place != kept)
    write_dataset(tmp_path, numbers(), missing=missing)
    each = dataset(tmp_path)
    start = tuple(part.start for part in part_of(kept))
    assert not kernel.read_box(each, start, np.zeros((1, 1, 1), "u2"), 0)
    assert "d" in each.store.container.memory.plain


@pytest.mark.parametrize(
    ("factors", "method", "dtype", "expected"),
    [((2, 2), "mean", "u2", True), ((2, 2), "mean", "i8", False), ((2, 2), "mean", "f4", False),
     ((2, 2), "mode", "i8", True), ((2, 2), "mode", "f4", False), ((2, 2), "max", "u2", False),
     ((2, 2), "mean", ">u2", False), ((2**20, 2**20), "mean", "u1", False),
     ((2**10, 2**10), "mode", "u1", False), ((16, 4), "mean", "u4", True),
     ((13, 5), "mean", "u2", False), ((2,), "mean", "u8", False), ((2, 4), "mode", "u2", True),
     ((3, 3), "mode", "u2", False)],
)  # fmt: skip
def test_the_cells_that_the_kernel_can_combine(
    factors: tuple[int, ...], method: str, dtype: str, *, expected: bool
) -> None:
    assert Cells(factors, method).can_do(np.dtype(dtype)) == expected


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("together", [1, 100, 2**21])
def test_whole_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, together: int
) -> None:
    """Blocks in any order; one is missing, one odd, one outside of the grid."""
    monkeypatch.setattr("n5zarr.fast.whole_blocks._TOGETHER", together)
    values = write_dataset(tmp_path, numbers(), "gzip", missing=((1, 1, 1),))
    odd = (0, 1, 2)
    write_block(tmp_path, odd, block_bytes(values[part_of(odd)], "gzip", mode=1))
    each = dataset(tmp_path, order)
    assert can_read_whole(each)
    wanted = [*places()[::-1], (3, 0, 0)]
    positions = [N5Tuple(place[::-1]) for place in wanted]
    values[part_of((1, 1, 1))] = 9
    padded = np.full((9, 12, 6), 9, "u2")
    padded[:7, :11, :5] = values
    seen = []
    for numbers_, chunks in read_whole(each, positions, np.dtype("<u2"), 9):
        assert len(numbers_) == len(chunks)
        for k, chunk in zip(numbers_, chunks, strict=True):
            expected = padded[part_of(wanted[k])]
            np.testing.assert_array_equal(chunk, expected if order == "C" else expected.T)
            seen.append(k)
    left = {wanted.index(odd), len(wanted) - 1}
    assert sorted(seen) == [k for k in range(len(wanted)) if k not in left]


def test_steps_over_whole_blocks(tmp_path: Path) -> None:
    """A step that jumps over whole blocks reads those that have elements, and no other."""
    values = write_dataset(tmp_path, numbers())
    for place in places():
        if place[1] == 1:
            write_block(tmp_path, place, b"odd")
    out = np.zeros((7, 2, 5), "u2")
    assert not kernel.read_box(dataset(tmp_path), (0, 0, 0), out, 0, step=(1, 8, 1))
    np.testing.assert_array_equal(out, values[:, ::8])
