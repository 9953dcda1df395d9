"""Blocks that are not local files, and many boxes, cells and ends of files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from obstore.store import LocalStore, MemoryStore
from zarr.storage import ObjectStore

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.open_dataset import dataset_of_array
from n5zarr.errors import N5BlockError, N5UnrepresentableError
from n5zarr.fast import kernel, many_files, python_blocks, remote_blocks
from n5zarr.fast.cells import Cells
from n5zarr.fast.many_boxes import read_cells
from n5zarr.format.order import N5Tuple
from tests.unit.arrays.blocks import (
    SELECTIONS,
    SHAPE,
    block_bytes,
    numbers,
    part_of,
    path_of,
    places,
    write_block,
    write_dataset,
)  # fmt: skip


def by_zarr(root: Path, kind: str, order: Any = "C") -> Any:
    location: Any = root
    if kind == "obstore":
        location = ObjectStore(LocalStore(str(root)))
    elif kind == "zarr":
        location = zarr.storage.LocalStore(root)
    return zarr.open_array(N5Store(location, axis_order=order), path="d", mode="r+")


@pytest.mark.parametrize("slab", [1, 2**20])
@pytest.mark.parametrize("kind", ["obstore", "zarr", "local"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("odd", [None, (1, 1, 0), (2, 2, 2)])
def test_slabs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slab: int, kind: str, order: str, odd: Any
) -> None:
    """Of raw blocks, the wanted rows alone are read; of odd blocks, all."""
    for module in (remote_blocks, python_blocks):
        monkeypatch.setattr(module, "_SLAB_BLOCK", slab)
    monkeypatch.setattr(kernel, "can_do", lambda _: False)
    values = write_dataset(tmp_path, numbers(), missing=((0, 1, 1),))
    if odd is not None:
        write_block(tmp_path, odd, block_bytes(values[part_of(odd)], mode=1))
    array = by_zarr(tmp_path, kind, order)
    for selection in SELECTIONS.values():
        expected = values[selection]
        if order == "F":
            if len(selection) < 3 or ... in selection:
                continue
            selection, expected = selection[::-1], expected.T  # noqa: PLW2901
        np.testing.assert_array_equal(array[selection], expected)


@pytest.mark.parametrize("kind", ["obstore", "zarr"])
@pytest.mark.parametrize("place", [(0, 0, 0), (1, 2, 1), (2, 2, 2)])
@pytest.mark.parametrize("compression", ["raw", "gzip"])
def test_a_damaged_block_is_named(
    tmp_path: Path, kind: str, place: tuple[int, ...], compression: str
) -> None:
    values = write_dataset(tmp_path, numbers(), compression)
    write_block(tmp_path, place, block_bytes(values[part_of(place)], compression)[:-7])
    name = "/".join(map(str, place[::-1]))
    location: Any = ObjectStore(LocalStore(str(tmp_path)))
    for array in (by_zarr(tmp_path, kind), n5zarr.open_array(location, path="d")):
        with pytest.raises(N5BlockError, match=name):
            array[...]


def test_a_dataset_that_is_gone(tmp_path: Path) -> None:
    """Where nothing says so, an array without any block is looked for."""
    location: Any = ObjectStore(store := MemoryStore())
    array: Any = n5zarr.create_array(
        location, path="d", shape=SHAPE, chunks=(3, 4, 2), dtype="u2", fill_value=4
    )
    other = zarr.open_array(N5Store(location), path="d")
    for each in (array, other):
        np.testing.assert_array_equal(each[...], np.full(SHAPE, 4))
    array[:2] = 1
    store.delete([found["path"] for batch in store.list() for found in batch])
    for each in (array, other):
        with pytest.raises((n5zarr.N5Error, FileNotFoundError)):
            each[...]


SHAPES: list[Any] = [(1, 1, 1), (2, 3, 1), (4, 6, 5), SHAPE]


@pytest.mark.parametrize("kind", ["kernel", "python", "obstore", "zarr", "odd"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_many_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, shape: Any, order: Any
) -> None:
    values = write_dataset(tmp_path, numbers(), "gzip", missing=((1, 1, 1),))
    if kind == "odd":
        write_block(tmp_path, (0, 0, 1), block_bytes(values[part_of((0, 0, 1))], "gzip", mode=1))
    if kind == "python":
        monkeypatch.setattr(kernel, "can_do", lambda _: False)
    location: Any = ObjectStore(LocalStore(str(tmp_path))) if kind == "obstore" else tmp_path
    array: Any
    if kind == "zarr":
        array = zarr.create_array({}, data=values if order == "C" else values.T, chunks=(3, 4, 2))
    else:
        array = n5zarr.open_array(location, path="d", axis_order=order)
    starts = np.random.default_rng(3).integers(0, np.subtract(SHAPE, shape) + 1, (9, 3))
    expected = np.array([values[tuple(map(slice, s, np.add(s, shape)))] for s in starts])
    if order == "F":
        starts, shape, expected = starts[:, ::-1], shape[::-1], expected.transpose(0, 3, 2, 1)
    np.testing.assert_array_equal(n5zarr.read_boxes(array, starts, shape), expected)
    out = np.zeros(expected.shape, "u2")
    assert n5zarr.read_boxes(array, starts.tolist(), shape, out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("starts", "shape", "message"),
    [
        ([[0, 0, 4]], (1, 1, 2), "box 0 from"), ([[0, 0, 0], [-1, 0, 0]], (1, 1, 1), "box 1 from"),
        ([[5, 0, 0]], (3, 1, 1), "box 0 from"), ([[0, 0]], (1, 1, 1), "integers of the shape"),
        ([0, 0, 0], (1, 1, 1), "integers of the shape"), ([[0, 0, 0.5]], (1, 1, 1), "float64"),
        ([[0, 0, 0]], (1, 1), "3 numbers from 0 on"), ([[0, 0, 0]], (1, 1, -1), "3 numbers"),
        ([[0, 0, 0]], (1, 1, 0.5), "integers, got"), ([[0], [0, 1]], (1, 1, 1), "expected"),
        ([[0, 0, 0]], 1, "starts, shape: expected integers"), ([[]], (1, 1, 1), "of the shape"),
        ([[0, 0, 2**64 - 1]], (1, 1, 1), "starts: expected"),
    ],
)  # fmt: skip
def test_boxes_that_do_not_fit(tmp_path: Path, starts: Any, shape: Any, message: str) -> None:
    write_dataset(tmp_path, numbers())
    array = n5zarr.open_array(tmp_path / "d")
    with pytest.raises(N5UnrepresentableError, match=message) as err:
        n5zarr.read_boxes(array, starts, shape)
    assert err.value.kind == "option"
    assert n5zarr.read_boxes(array, [], (2, 3, 4)).shape == (0, 2, 3, 4)
    assert n5zarr.read_boxes(array, [[7, 11, 5]], (0, 0, 0)).shape == (1, 0, 0, 0)


@pytest.mark.parametrize("out", [np.zeros((1, 2, 3, 3), "u2"), np.zeros((1, 2, 3, 4), "i2"), [1]])
def test_outputs_that_do_not_fit(tmp_path: Path, out: Any) -> None:
    write_dataset(tmp_path, numbers())
    array = n5zarr.open_array(tmp_path / "d")
    with pytest.raises(N5UnrepresentableError, match="out: expected"):
        n5zarr.read_boxes(array, [[0, 0, 0]], (2, 3, 4), out)
    with pytest.raises(N5UnrepresentableError, match="array: expected an array of zarr"):
        n5zarr.read_boxes(np.zeros((2, 3)), [(0, 0)], (1, 1))  # type: ignore[arg-type]
    fixed = np.zeros((1, 2, 3, 4), "u2")
    fixed.flags.writeable = False
    with pytest.raises(N5UnrepresentableError, match="read-only"):
        n5zarr.read_boxes(array, [[0, 0, 0]], (2, 3, 4), fixed)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_an_error_says_which_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_compiled: bool
) -> None:
    if not is_compiled:
        monkeypatch.setattr(kernel, "can_do", lambda _: False)
    values = write_dataset(tmp_path, numbers(), "gzip")
    write_block(tmp_path, (1, 1, 1), block_bytes(values[part_of((1, 1, 1))], "gzip")[:-7])
    array = n5zarr.open_array(tmp_path / "d")
    with pytest.raises(N5BlockError, match="1/1/1") as err:
        n5zarr.read_boxes(array, [[0, 0, 0], [3, 4, 2], [3, 4, 3]], (1, 1, 1))
    assert err.value.__notes__ == ["for box 1, from [3, 4, 2]"]
    found = n5zarr.read_boxes(array, [[0, 0, 0]], (3, 4, 2))
    np.testing.assert_array_equal(found, values[None, :3, :4, :2])


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
@pytest.mark.parametrize("place", [None, (0, 0, 0), (1, 1, 1), (2, 2, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cells_of_blocks_that_are_left(tmp_path: Path, place: Any, order: Any) -> None:
    values = np.repeat(np.repeat(numbers("u2", (7, 6, 3)), 2, 1), 2, 2)[:, :11, :5]
    write_dataset(tmp_path, values, "gzip")
    if place is not None:
        write_block(tmp_path, place, block_bytes(values[part_of(place)], "gzip", mode=1))
    array = n5zarr.open_array(tmp_path / "d", axis_order=order)
    way = 1 if order == "C" else -1
    for start, stop in (((0, 0, 0), SHAPE), ((2, 4, 2), SHAPE), ((1, 2, 0), (5, 8, 4))):
        box = tuple(map(slice, start, stop))[::way]
        expected = values[tuple(map(slice, start, stop))][:, ::2, ::2]
        expected = expected if order == "C" else expected.T
        out = np.zeros(expected.shape, "u2")
        cells = Cells((1, 2, 2)[::way], "mode")
        steps = tuple(slice(None, None, n) for n in cells.factors)
        assert read_cells(array, box, *cells, out, lambda each, s=steps: each[s])  # type: ignore[misc]
        np.testing.assert_array_equal(out, expected)
    for factors, method in (((2, 2, 2), "mode"), ((1, 2, 2), "max")):
        cells, out = Cells(factors[::way], method), np.zeros((7, 11, 5), "u2")
        whole = tuple(map(slice, (0, 0, 0), array.shape))
        assert not read_cells(array, whole, *cells, out, np.asarray)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_ends_and_times_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_compiled: bool
) -> None:
    if not is_compiled:
        monkeypatch.setattr(many_files, "_kernel", None)
    elif not kernel.is_compiled():
        pytest.skip("no compiled kernel")
    contents = [bytes(range(1, n + 1)) for n in (0, 5, 42, 43, 44, 200, 1, 19, 20, 21)]
    for k, content in enumerate(contents):
        (tmp_path / str(k)).write_bytes(content)
        os.utime(tmp_path / str(k), ns=(10**18 + k, 10**18 + k))
    positions = [N5Tuple((k,)) for k in (*range(10), 99)]
    found = many_files.read_ends(f"{tmp_path}/", positions, 23, 20)
    if is_compiled:
        for content, each in zip(contents[1:], found[1:10], strict=True):
            if len(content) <= 43:
                assert each == (len(content), content, b"")
            else:
                assert each == (len(content), content[:23], content[-20:])
    else:
        assert found == [None] * 11
    assert found[10] is None
    assert many_files.read_ends(f"{tmp_path}/", [], 23, 20) == []
    names = [str(tmp_path / name) for name in "504x"]
    stamps = [(10**18 + 5, 200), (10**18, 0), (10**18 + 4, 44), None]
    assert many_files.stamps(names) == (stamps if is_compiled else None)
    assert many_files.stamps([]) == ([] if is_compiled else None)
    assert many_files.stamps(names[:1]) is None  # one alone takes less time without the kernel


def test_the_blocks_of_an_open_dataset(tmp_path: Path) -> None:
    write_dataset(tmp_path, numbers())
    found = dataset_of_array(n5zarr.open_array(tmp_path / "d"))
    assert found is not None
    for place in places():
        position = found.position("d/c/" + "/".join(map(str, place)))
        assert position == place[::-1]
        assert found.in_grid(position)
        assert tmp_path / found.key(position) == path_of(tmp_path, place)
        assert found.extent(position) == numbers()[part_of(place)].shape[::-1]
        assert "/".join(map(str, position)) in found.where(position)
    for axis in range(3):
        outside = [0, 0, 0]
        outside[axis] = 3
        assert not found.in_grid(N5Tuple(tuple(outside)))
    assert not found.is_worth_threads
    assert found.holds((3, 4, 2), np.dtype(">u2"))
    assert not found.holds((3, 4, 2), np.dtype("i2"))
    assert not found.holds((3, 4, 1), np.dtype("u2"))
