"""Selections are parsed, grouped and split as numpy selects, whatever they are."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from n5zarr.arrays import boxes as boxes_module
from n5zarr.arrays.box import (
    Box,
    Groups,
    Points,
    Rows,
    bounds_of,
    box_of_chunks,
    points_of,
    points_of_mask,
    rows_of,
)  # fmt: skip
from n5zarr.arrays.boxes import (
    StoredChunks,
    box_at,
    box_shape,
    boxes,
    least_box,
    n_boxes,
    places_in,
    touched_boxes,
)  # fmt: skip
from tests.unit.arrays.blocks import CHUNKS, SHAPE, part_of, places

ELEMENTS = np.arange(math.prod(SHAPE)).reshape(SHAPE)
PARTS: list[Any] = [
    0, 2, -1, -5, np.int8(3), slice(None), slice(1, 4), slice(2, 3), slice(-4, None), slice(0, 99),
    slice(None, None, 2), slice(1, 5, 3), slice(4, None, 50), slice(None, -1), slice(0, 5, 4),
]  # fmt: skip


def cut(box: Box) -> np.ndarray:
    """Return the elements of a box, from its fields."""
    each = zip(box.start, box.stop, box.step or (1,) * 3, strict=True)
    return ELEMENTS[tuple(slice(*ends) for ends in each)].squeeze(box.dropped)


@pytest.mark.parametrize("part", PARTS, ids=repr)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_boxes_are_numpys(part: Any, axis: int) -> None:
    others: Any = [slice(1, 4), 3, slice(None)]
    others[axis] = part
    selections = [tuple(others)]
    if axis < 2:
        selections += [(*others[: axis + 1], ...), tuple(others[: axis + 1])]
    if axis == 0:
        selections.append(part)
    if axis == 2:
        selections.append((..., part))
    for selection in selections:
        box = Box.of(selection, SHAPE)
        assert box is not None
        expected = ELEMENTS[selection]
        np.testing.assert_array_equal(cut(box), expected)
        kept = [n for k, n in enumerate(box.shape) if k not in box.dropped]
        assert tuple(kept) == expected.shape
        assert (box.step is None) == all(s == 1 for s in box.step or (1,))


@pytest.mark.parametrize(
    "selection",
    [
        7, -8, (0, 11), (0, 0, 5), (0, 0, 0, 0), slice(3, 3), slice(4, 2), slice(9, None),
        (..., 0, ...), True, np.bool_(True), None, 1.0, "a", [1], slice(None, None, -1),
        slice(None, None, 0), slice("a", None), (0, 0, 0, 0, ...), slice(1.0, 2),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_box(selection: Any) -> None:
    assert Box.of(selection, SHAPE) is None


@pytest.mark.parametrize(
    ("selection", "expected"),
    [(slice(3, 3), (3, 3)), (slice(5, 2), (5, 5)), (slice(2, 4), (2, 4)), (slice(3, 1, 2), (3, 3))],
)
def test_boxes_that_may_be_empty(selection: Any, expected: tuple[int, int]) -> None:
    box = Box.of(selection, (7,), may_be_empty=True)
    assert box == Box((expected[0],), (expected[1],))
    assert box.shape == (expected[1] - expected[0],)
    assert Box.of(slice(3, 1, -2), (7,), may_be_empty=True) is None


def test_an_ellipsis_may_stand_for_no_axis() -> None:
    assert Box.of((1, 2, ..., 3), SHAPE) == Box((1, 2, 3), (2, 3, 4), (0, 1, 2))
    assert Box.of((), ()) == Box((), ())
    assert Box.of(..., ()) == Box((), ())


BOXES = [
    Box.of(s, SHAPE)
    for s in ((...,), (slice(1, 6), slice(3, 9), slice(1, 4)), (6, 10, 4), (slice(3, 6), 4, 0),
              (slice(0, 7, 3), slice(1, 11, 2), slice(0, 5, 4)), (slice(0, 7, 6), slice(2, 9, 4)),
              (slice(2, 7, 2), slice(0, 11, 9), slice(1, 2)))
]  # fmt: skip


@pytest.mark.parametrize("box", BOXES, ids=repr)
def test_the_chunks_of_a_box(box: Any) -> None:
    """Those that have an element of it, and no others."""
    ranges = list(map(range, box.start, box.stop, box.step or (1, 1, 1)))
    touched = set(product(*({k // n for k in r} for r, n in zip(ranges, CHUNKS, strict=True))))
    assert set(product(*box.places(CHUNKS))) == touched
    assert Box.from_shape(box.start, box.shape, box.step).places(CHUNKS) == box.places(CHUNKS)
    if box.step is not None:
        return
    out = np.full(box.shape, -1)
    for place in product(*box.places(CHUNKS)):
        part = box.within(place, CHUNKS)
        corner = tuple(p * n for p, n in zip(place, CHUNKS, strict=True))
        chunk = Box(
            corner, tuple(map(min, (p + n for p, n in zip(corner, CHUNKS, strict=True)), SHAPE))
        )
        values = ELEMENTS[part_of(place)][part.relative_to(chunk)]
        out[part.relative_to(box)] = values
        np.testing.assert_array_equal(ELEMENTS[box.inner(part.relative_to(box))], values)
    np.testing.assert_array_equal(out, cut(Box(box.start, box.stop)))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 1), (4, 9, 5), (7, 11, 5)])
def test_boxes_are_grouped_by_block(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    starts = rng.integers(0, np.subtract(SHAPE, shape) + 1, (13, 3))
    expected: dict[tuple[int, ...], list[int]] = {}
    for k, start in enumerate(starts.tolist()):
        each = zip(start, shape, CHUNKS, strict=True)
        for place in product(*(sorted({i // c for i in range(s, s + n)}) for s, n, c in each)):
            expected.setdefault(place, []).append(k)
    groups = Groups.of(starts, shape, CHUNKS)
    found = [tuple(row) for row in groups.places.tolist()]
    assert found == sorted(expected)
    assert groups.starts is starts
    for k, place in enumerate(found):
        assert groups.of_block(k).tolist() == expected[place]
    chosen = list(range(len(found)))[::-2]
    some = groups.only(chosen)
    assert some.places.tolist() == [list(found[k]) for k in chosen]
    for k, block in enumerate(chosen):
        assert some.of_block(k).tolist() == expected[found[block]]


@pytest.mark.parametrize("factor", [1, 2**59])
def test_far_positions_are_grouped(factor: int) -> None:
    starts = np.array([[3, 1, 2], [0, 1, 2], [3, 1, 2], [0, 0, 9], [0, 1, 0]]) * factor
    groups = Groups.of(starts, (1, 1, 1), (1, 1, 1))
    rows = [[0, 0, 9], [0, 1, 0], [0, 1, 2], [3, 1, 2]]
    assert groups.places.tolist() == (np.array(rows) * factor).tolist()
    assert [groups.of_block(k).tolist() for k in range(4)] == [[3], [4], [1], [0, 2]]
    low, high = bounds_of(starts)
    assert [low.tolist(), high.tolist()] == [[0, 0, 0], [3 * factor, factor, 9 * factor]]


POINTS: list[Any] = [
    ([0, 6], [10, 0], [4, -5]), ([[1], [2]], [3, 4, 5], 0), (np.array([2]), -1, np.int16(1)),
    (3, 4, 1),
]  # fmt: skip


@pytest.mark.parametrize("selection", POINTS, ids=repr)
def test_points(selection: Any) -> None:
    points = points_of(selection, SHAPE)
    assert points is not None
    expected = np.atleast_1d(ELEMENTS[selection])
    assert points.shape == expected.shape
    found = ELEMENTS[tuple(points.coords.T)].reshape(points.shape)
    np.testing.assert_array_equal(found, expected)
    assert points.coords.dtype == np.int64
    assert (points.coords >= 0).all()


@pytest.mark.parametrize(
    "selection",
    [([7], [0], [0]), ([-8], [0], [0]), ([0], [0]), ([0, 1], [0, 1, 2], [0]), ([], [], []),
     ([0.5], [0], [0]), (slice(None), [0], [0]), ([True], [0], [0]), ("a", 0, 0), 5],
    ids=repr,
)  # fmt: skip
def test_what_is_no_list_of_points(selection: Any) -> None:
    assert points_of(selection, SHAPE) is None
    assert points_of((), ()) is None
    assert points_of(([0],) * 32, (1,) * 32) is None
    found = points_of(([0],) * 31, (1,) * 31)
    assert found is not None
    assert found.coords.shape == (1, 31)


def test_masks() -> None:
    mask = ELEMENTS % 7 == 3
    for given in (mask, (mask,)):
        points = points_of_mask(given, SHAPE)
        assert points is not None
        np.testing.assert_array_equal(ELEMENTS[tuple(points.coords.T)], ELEMENTS[mask])
        assert points.shape == (mask.sum(),)
    for other in (mask[1:], mask.astype("u1"), mask.tolist(), np.zeros(SHAPE, bool), (mask, mask)):
        assert points_of_mask(other, SHAPE) is None
    assert points_of_mask(np.array(True), ()) is None
    assert points_of_mask(np.ones((1,) * 32, bool), (1,) * 32) is None


ROWS: list[Any] = [
    ([1, 5, 5, 0],), (slice(1, 4), [-1, 2]), ([3, 0], slice(None), [1, 4]), (2, [0, 7], slice(3)),
    (np.arange(7) % 2 == 0, 3), (slice(2, 7), slice(1, 2), [True, False, False, True, True]),
    [2, 6], ([1, 5], [2, 2, 10], [3, 4]), (np.ones(7, bool), 5, slice(None, 4)),
    (slice(None), [4, -1], np.arange(5) % 3 == 0),
]  # fmt: skip


@pytest.mark.parametrize("selection", ROWS, ids=repr)
def test_rows(selection: Any) -> None:
    rows = rows_of(selection, SHAPE)
    assert rows is not None
    parts = list(selection) if isinstance(selection, tuple) else [selection]
    parts += [slice(None)] * (3 - len(parts))
    each = [np.atleast_1d(np.arange(n)[p]) for p, n in zip(parts, SHAPE, strict=True)]
    expected = ELEMENTS[np.ix_(*each)]
    found = [
        ELEMENTS[tuple(map(slice, start, start + np.array(rows.box.shape)))]
        for start in rows.starts
    ]
    assert rows.shape == tuple(len(each[axis]) for axis in rows.positions)
    whole = np.stack(found).reshape(*rows.shape, *rows.box.shape)
    whole = whole.squeeze(tuple(len(rows.shape) + axis for axis in rows.positions))
    whole = np.moveaxis(whole, range(len(rows.shape)), list(rows.positions))
    np.testing.assert_array_equal(whole, expected)
    dropped = tuple(k for k, part in enumerate(parts) if isinstance(part, int))
    assert rows.box.dropped == dropped


@pytest.mark.parametrize(
    "selection",
    [slice(None), 3, ([7],), ([-8],), ([],), ([[1]],), ([0.5],), ([1], ...), ([0], [0], [0], [0]),
     ([1], slice(None, None, 2)), ([1], slice(3, 3)), ([True, False],), ("a",)],
    ids=repr,
)  # fmt: skip
def test_what_are_no_rows(selection: Any) -> None:
    assert rows_of(selection, SHAPE) is None
    assert rows_of([0], (1,) * 32) is None
    assert rows_of([0], (1,) * 31) is not None


class View:
    chunk_shape = CHUNKS


class Dataset:
    view = View


def test_what_is_worth_grouping() -> None:
    """300 boxes in a block, on average, take as long as zarr's selection."""
    each: Any = Dataset
    coords = np.array([[0, 0, 0], [6, 4, 1]])  # in a grid of 3, 2 and 1 blocks
    many = np.resize(coords, (1800, 3))
    assert Points(many, (1800,)).is_worth_grouping(each)
    assert not Points(np.resize(coords, (1802, 3)), (1802,)).is_worth_grouping(each)
    box = Box((0, 3, 0), (1, 9, 1))  # 3 blocks along the second axis
    for n, expected in ((600, True), (601, False)):
        positions = {0: np.resize(np.array([1, 5]), n), 2: np.array([1])}
        assert Rows(positions, box).is_worth_grouping(each) == expected


CHUNK_SELECTIONS: list[Any] = [
    ((...,), (...,)),
    ((1, 2, 0), (slice(3, 6), slice(8, 11), slice(0, 2))),
    ((-1, slice(1, None), slice(0, 2)), (slice(6, 7), slice(4, 11), slice(0, 4))),
    (slice(1, 2), (slice(3, 6), slice(None), slice(None))),
]


@pytest.mark.parametrize(("chunks", "selection"), CHUNK_SELECTIONS)
def test_boxes_of_chunks(chunks: Any, selection: Any) -> None:
    box = box_of_chunks(chunks, SHAPE, CHUNKS)
    assert box is not None
    assert box.dropped == ()
    np.testing.assert_array_equal(cut(box), ELEMENTS[selection])


@pytest.mark.parametrize(
    "chunks", [3, slice(-2, None), slice(0, -1), slice(0, 3, 2), slice(2, 2), [0]], ids=repr
)
def test_what_is_no_box_of_chunks(chunks: Any) -> None:
    assert box_of_chunks(chunks, SHAPE, CHUNKS) is None


# ------------------------------------------------------------------ boxes of a grid


def ends(box: Any) -> list[tuple[int, int]]:
    return [(part.start, part.stop) for part in box]


def test_the_boxes_of_a_grid() -> None:
    expected = [[part.indices(n)[:2] for part, n in zip(part_of(p), SHAPE, strict=True)]
                for p in places()]  # fmt: skip
    assert [ends(box) for box in boxes(SHAPE, CHUNKS)] == expected
    assert [ends(box_at(p, CHUNKS, SHAPE)) for p in places()] == expected
    assert n_boxes(SHAPE, CHUNKS) == len(expected)
    for box in (
        (slice(1, 6), slice(4, 9)),
        (slice(3, 3), slice(0, 1)),
        (slice(5, 7), slice(8, 11)),
    ):
        touched = [sorted({k // n for k in range(*part.indices(99))})
                   for part, n in zip(box, (3, 4), strict=True)]  # fmt: skip
        assert [list(found) for found in places_in(box, (3, 4))] == touched


@pytest.mark.parametrize("together", [3, 2**16])
@pytest.mark.parametrize("unit", [(3, 4, 2), (2, 5, 5), (7, 2, 3), (1, 1, 1)])
@pytest.mark.parametrize("step", [(3, 4, 2), (4, 3, 1), (7, 11, 5)])
def test_touched_boxes(
    monkeypatch: pytest.MonkeyPatch, together: int, unit: Any, step: Any
) -> None:
    monkeypatch.setattr(boxes_module, "_TOGETHER", together)
    monkeypatch.setattr(boxes_module, "_ROWS", 2)
    rng = np.random.default_rng(7)
    grid = places(SHAPE, unit)
    rows = np.array([grid[k] for k in rng.integers(0, len(grid), min(6, len(grid)))])
    stored = np.zeros(SHAPE, bool)
    for row in rows:
        stored[part_of(tuple(row), unit)] = True
    expected = [p for p in places(SHAPE, step) if stored[part_of(p, step)].any()]
    found = touched_boxes(SHAPE, [step], [StoredChunks(unit, [rows[:2], rows[2:]])])
    assert list(found.positions()) == expected
    assert [ends(box) for box in found] == [ends(box_at(p, step, SHAPE)) for p in expected]
    assert found.n_elements == sum(stored[part_of(p, step)].size for p in expected)
    others = [ends(box_at(p, step, SHAPE)) for p in places(SHAPE, step) if p not in expected]
    assert [ends(box) for box in found.others()] == others
    box = (slice(1, 6), slice(3, 9), slice(0, 4))
    parts = np.zeros(SHAPE, bool)
    for part in StoredChunks(unit, [rows]).parts_of(box):
        parts[part] = True
        assert parts[part].size > 0
    inside = np.zeros(SHAPE, bool)
    inside[box] = stored[box]
    np.testing.assert_array_equal(parts, inside)


def test_of_several_extents_the_cheaper_one_is_chosen() -> None:
    """The preferred one costs 64 elements and a chunk; more than four times that of the other."""
    one = [StoredChunks((1,), [np.array([[5]])])]
    cases: list[tuple[int, tuple[int, ...]]] = [(6, (6,)), (7, (7,)), (8, (1,)), (64, (1,))]
    for preferred, expected in cases:
        found = touched_boxes((64,), [(preferred,), (1,)], one)
        assert found.step == expected, preferred
    for unit, expected in ((64, (1,)), (65, (10**6,))):  # in 65 boxes it would be decoded as often
        large = [StoredChunks((unit,), [np.array([[0]])])]
        assert touched_boxes((10**6,), [(10**6,), (1,)], large).step == expected


def test_arrays_without_axes() -> None:
    found = touched_boxes((), [()], [StoredChunks((), [])])
    assert list(found) == []
    assert list(found.others()) == list(boxes((), ())) == [()]


@pytest.mark.parametrize(
    ("shape", "unit", "source", "most", "expected"),
    [
        ((100, 100, 100), (10, 10, 10), (20, 10, 64), 100_000, (20, 50, 100)),
        ((100, 100), (10, 10), (20, 30), 600, (20, 30)),
        ((100, 100), (10, 10), (20, 30), 599, (10, 30)),
        ((100, 100), (10, 10), (20, 30), 199, (10, 10)),
        ((95, 100), (10, 10), (200, 200), 10**6, (95, 100)),
        ((7, 11), (3, 4), (3, 4), 12, (3, 4)),
        ((7, 11), (3, 4), (3, 4), 11, (3, 4)),
        ((7, 11), (3, 4), (3, 4), 36, (3, 11)),
        ((7, 11), (3, 4), (3, 4), 10**6, (7, 11)),
        ((5,), (9,), (2,), 100, (5,)),
        ((0, 5), (3, 5), (3, 5), 100, (1, 5)),
    ],
)  # fmt: skip
def test_the_shape_of_boxes(shape: Any, unit: Any, source: Any, most: int, expected: Any) -> None:
    """Counted by hand: whole units, the last axis first, as many as fit."""
    assert box_shape(shape, unit, source, most) == expected


@pytest.mark.parametrize(
    ("unit", "source", "expected"),
    [((3, 4, 2), (3, 4, 2), (3, 4, 2)), ((3, 4, 2), (4, 1, 5), (6, 4, 5)),
     ((9, 9, 9), (1, 1, 1), (7, 9, 5))],
)  # fmt: skip
def test_the_least_box(unit: Any, source: Any, expected: Any) -> None:
    assert least_box(SHAPE, unit, source) == expected
    assert least_box((0, 11, 5), unit, source)[0] == 1
