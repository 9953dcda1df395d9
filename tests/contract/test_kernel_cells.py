"""The kernel combines cells of elements as a count of each cell says, from any blocks."""

from __future__ import annotations

import shutil
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.errors import N5Error
from n5zarr.fast import kernel
from n5zarr.fast.cells import Cells
from n5zarr.fast.many_boxes import read_cells
from tests.contract.test_kernel import COMPRESSIONS, arguments, name

pytestmark = pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")

INTEGERS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]


def by_counting(array: np.ndarray, factors: tuple[int, ...], method: str) -> np.ndarray:
    """Combine each cell with Python's numbers, which are exact."""
    shape = [-(-n // f) for n, f in zip(array.shape, factors, strict=True)]
    out = np.empty(shape, array.dtype)
    for place in product(*map(range, shape)):
        cell = tuple(slice(p * f, (p + 1) * f) for p, f in zip(place, factors, strict=True))
        numbers = array[cell].ravel().tolist()
        if method == "mean":
            out[place] = round(Fraction(sum(numbers), len(numbers)))  # halves to even
        else:
            counts = Counter(numbers)
            out[place] = min(counts, key=lambda number: (-counts[number], number))
    return out


def elements(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return elements of which many are alike, and some as large or as small as can be."""
    rng = np.random.default_rng(11)
    limits = np.iinfo(dtype)
    values = rng.integers(0, 3, shape).astype(dtype)
    for number in (limits.max, limits.min, limits.max - 1):
        values[rng.random(shape) < 0.2] = number
    return values


@pytest.mark.parametrize("method", ["mean", "mode"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_cells_of_any_strides(dtype: str, method: str) -> None:
    for shape, factors in [
        ((11, 7, 13), (2, 2, 2)),
        ((11, 7, 13), (1, 2, 3)),
        ((5, 3), (1, 7)),  # a cell longer than the array
        ((2053,), (5,)),  # longer than a piece of a row
        ((3, 5, 2, 3, 7), (2, 1, 2, 1, 2)),
        ((1, 1), (1, 1)),
    ]:
        cells = Cells(factors, method)
        if not cells.can_do(np.dtype(dtype)):
            assert (method, dtype[1]) == ("mean", "8")
            continue
        given = elements(dtype, shape)
        wanted = by_counting(given, factors, method)
        for each in (
            given,
            np.asfortranarray(given),
            np.repeat(given, 3, -1)[..., ::3],
            given[::-1].copy()[::-1],
        ):
            found = cells.combine(each)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, wanted, err_msg=str((shape, factors)))


def test_the_largest_cells_have_the_largest_sums() -> None:
    for dtype in INTEGERS[:6]:
        limits = np.iinfo(dtype)
        for number in (limits.max, limits.min):
            given = np.full((67, 5), number, dtype)
            found = Cells((16, 4), "mean").combine(given)
            assert found.shape == (5, 2)
            assert (found == number).all()


@pytest.mark.each_of(5)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
def test_boxes_of_whole_partial_padded_and_missing_blocks(
    tmp_path: Path, compression: dict[str, Any], order: Any
) -> None:
    how: dict[str, Any] = {"compression": compression, "axis_order": order, "chunks": (6, 10, 4)}
    values = elements("i2", (29, 23, 13))
    n5zarr.create_array(tmp_path / "c.n5", path="d", data=values, fill_value=-7, **how)
    folder = tmp_path / "c.n5" / "d"
    blocks = sorted(p for p in folder.rglob("*") if p.suffix == "" and p.is_file())
    blocks[3].unlink()
    # a block at the end that has full size, as some programs write
    padded = np.pad(values, [(0, 1), (0, 7), (0, 3)], constant_values=9)
    n5zarr.create_array(tmp_path / "p.n5", path="d", data=padded, **how)
    for path in blocks[-2:]:
        shutil.copyfile(tmp_path / "p.n5" / path.relative_to(tmp_path / "c.n5"), path)
    values = zarr.open_array(n5zarr.N5Store(tmp_path / "c.n5", axis_order=order), path="d")[...]  # type: ignore[assignment]
    assert -7 in values
    array: Any = n5zarr.open_array(tmp_path / "c.n5", path="d", axis_order=order)
    for method, factors in [("mean", (2, 5, 1)), ("mode", (1, 2, 2)), ("mode", (2, 2, 2))]:
        cells = Cells(factors, method)
        for box in [
            (slice(0, 29), slice(0, 23), slice(0, 13)),
            (slice(4, 18), slice(10, 20), slice(0, 8)),
            (slice(28, 29), slice(20, 23), slice(12, 13)),
        ]:
            wanted = by_counting(values[box], factors, method)
            out = np.zeros_like(wanted)
            assert read_cells(array, box, *cells, out, no_call)
            np.testing.assert_array_equal(out, wanted, err_msg=f"{method} {box}")
            wider = np.zeros([2 * n for n in wanted.shape], "i2")
            assert read_cells(array, box, *cells, wider[::2, ::2, ::2], no_call)
            np.testing.assert_array_equal(wider[::2, ::2, ::2], wanted)
            assert not wider[1::2].any()


def no_call(part: np.ndarray) -> np.ndarray:
    raise AssertionError(part.shape)


def test_blocks_that_are_odd_are_combined_in_python_or_refused(tmp_path: Path) -> None:
    values = elements("u2", (13, 11))
    array: Any = n5zarr.create_array(tmp_path, path="d", data=values, chunks=(4, 6))
    file = tmp_path / "d" / "1" / "2"
    # smaller than its place
    file.write_bytes(n5zarr.encode_block(values[8:11, 6:11], compression={"type": "gzip"}))
    values[11:12, 6:11] = 0
    box, parts = (slice(2, 13), slice(4, 11)), []

    def combine(part: np.ndarray) -> np.ndarray:
        parts.append(part.shape)
        return by_counting(part, (2, 2), "mode")

    out = np.zeros((6, 4), "u2")
    assert read_cells(array, box, *Cells((2, 2), "mode"), out, combine)
    np.testing.assert_array_equal(out, by_counting(values[box], (2, 2), "mode"))
    assert parts == [(4, 5)]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(N5Error, match="1/2"):
        read_cells(array, box, *Cells((2, 2), "mode"), out, combine)


def test_blocks_that_cut_cells_are_not_read(tmp_path: Path) -> None:
    array: Any = n5zarr.create_array(tmp_path / "c.n5", shape=(13, 11), chunks=(4, 5), dtype="u2")
    out = np.zeros((7, 6), "u2")
    box = (slice(0, 13), slice(0, 11))
    assert not read_cells(array, box, *Cells((2, 2), "mean"), out, no_call)
    assert not read_cells(
        zarr.ones((13, 11), dtype="u2"), box, *Cells((2, 2), "mean"), out, no_call
    )


MISTAKES: dict[str, tuple[dict[str, Any], Any]] = {
    "factor 0": ({}, (np.array([3, 0], "i8"), 0)),
    "factor -1": ({}, (np.array([3, -1], "i8"), 0)),
    "factor 2**62": ({}, (np.array([3, 2**62], "i8"), 0)),
    "65 elements": ({}, (np.array([13, 5], "i8"), 0)),
    "9 elements to sort": ({}, (np.array([3, 3], "i8"), 1)),
    "one factor": ({}, (np.array([2], "i8"), 0)),
    "three factors": ({}, (np.array([1, 1, 1], "i8"), 0)),
    "factors: int32": ({}, (np.array([3, 2], "i4"), 0)),
    "method -1": ({}, (np.array([3, 2], "i8"), -1)),
    "method 2": ({}, (np.array([3, 2], "i8"), 2)),
    "floats": ({"array": np.ones((2, 3), "f2").T}, (np.array([3, 2], "i8"), 0)),
    "bool": ({"array": np.ones((2, 3), "?").T, "fill": b"\0"}, (np.array([3, 2], "i8"), 1)),
    "8 bytes": ({"array": np.ones((2, 3), "u8").T, "fill": bytes(8)}, (np.array([3, 2], "i8"), 0)),
    "an element too many": ({"array": np.ones((3, 4), "u2").T}, (np.array([3, 2], "i8"), 0)),
    "blocks that cut cells": ({"array": np.ones((3, 4), "u2").T}, (np.array([2, 2], "i8"), 0)),
    "begins inside of a cell": (
        {"geometry": np.array([3, 4, 8, 6, 1, 0, 1, 1], "i8")}, (np.array([3, 2], "i8"), 0)),
    "begins after the end": (
        {"geometry": np.array([3, 4, 8, 6, 9, 0, 1, 1], "i8")}, (np.array([3, 2], "i8"), 0)),
    "steps": ({"geometry": np.array([3, 4, 8, 6, 0, 0, 1, 2], "i8")}, (np.array([3, 2], "i8"), 0)),
    "steps along an axis without cells": (
        {"geometry": np.array([3, 4, 8, 6, 0, 0, 2, 1], "i8")}, (np.array([1, 2], "i8"), 0)),
    "elements: too short": ({"elements": bytearray(23)}, (np.array([3, 2], "i8"), 0)),
}  # fmt: skip


def test_arguments_that_fit(tmp_path: Path) -> None:
    array = np.ones((3, 3), "u2").T
    call = arguments(tmp_path, array=array, fill=b"\1\2")
    assert kernel._kernel.read_box(*call, (np.array([3, 2], "i8"), 0)) == []
    assert (array == 0x0102).all()


@pytest.mark.parametrize(("changes", "cells"), MISTAKES.values(), ids=MISTAKES.keys())
def test_cells_that_do_not_fit(tmp_path: Path, changes: dict[str, Any], cells: Any) -> None:
    call = arguments(tmp_path, **({"array": np.ones((3, 3), "u2").T} | changes))
    with pytest.raises(ValueError, match="expected"):
        kernel._kernel.read_box(*call, cells)


FACTORS = np.array([2, 3], "i8")
ARRAY = np.ones((5, 7), "u2")
OTHER_ORDER = np.dtype("u2").newbyteorder()


@pytest.mark.parametrize(
    "call",
    [
        (ARRAY, np.ones((3, 2), "u2"), FACTORS, 0),
        (ARRAY, np.ones((3, 4), "u2"), FACTORS, 0),
        (ARRAY, np.ones((3, 3, 1), "u2"), FACTORS, 0),
        (ARRAY, np.ones((3, 3), "i2"), FACTORS, 0),
        (ARRAY, np.ones((3, 3), "u4"), FACTORS, 0),
        (ARRAY, np.ones((3, 3), OTHER_ORDER), FACTORS, 0),
        (ARRAY, ARRAY[:3, :3], FACTORS, 0),
        (ARRAY[:0], np.ones((0, 3), "u2"), FACTORS, 0),
        (ARRAY.astype(OTHER_ORDER), np.ones((3, 3), OTHER_ORDER), FACTORS, 0),
        (ARRAY, np.ones((3, 3), "u2"), FACTORS[:1], 0),
        (ARRAY, np.ones((3, 3), "u2"), FACTORS, 2),
        (np.ones((), "u2"), np.ones((), "u2"), FACTORS[:0], 0),
        (np.ones((5, 7), "f4"), np.ones((3, 3), "f4"), FACTORS, 0),
        (np.ones((5, 7), "u8"), np.ones((3, 3), "u8"), FACTORS, 0),
    ],
    ids=str,
)
def test_arrays_that_do_not_fit(call: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        kernel._kernel.combine(*call)


def test_nothing_is_written_where_nothing_may_be() -> None:
    with pytest.raises((ValueError, BufferError)):
        kernel._kernel.combine(ARRAY, np.broadcast_to(np.ones(3, "u2"), (3, 3)), FACTORS, 0)
