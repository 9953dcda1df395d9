"""Boxes of a grid that touch a stored chunk agree with a search of every element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from n5zarr.arrays.boxes import StoredChunks, boxes, least_box, touched_boxes

HUGE = (100_003, 99_991, 100_019)

extents = st.integers(1, 4).flatmap(lambda n: st.lists(st.integers(1, 13), min_size=n, max_size=n))


@st.composite
def sides(draw: st.DrawFn, shape: Sequence[int]) -> StoredChunks:
    """Draw the chunks of an array: any extent, any positions, in any order and batches."""
    unit = tuple(draw(st.integers(1, 15)) for _ in shape)
    places = [st.integers(0, -(-n // u) - 1) for n, u in zip(shape, unit, strict=True)]
    positions = draw(st.lists(st.tuples(*places), max_size=6))
    ends = sorted({0, *draw(st.sets(st.integers(0, len(positions)))), len(positions)})
    parts = [positions[i:j] for i, j in pairwise(ends)]
    return StoredChunks(unit, [np.array(p, "i2").reshape(-1, len(shape)) for p in parts if p])


@given(st.data())
def test_it_finds_what_every_element_tells(data: st.DataObject) -> None:
    shape = data.draw(extents)
    step = tuple(data.draw(st.integers(1, 9)) for _ in shape)
    listed = data.draw(st.lists(sides(shape), min_size=1, max_size=3))
    stored = np.zeros(shape, bool)
    for side in listed:
        for position in (row for rows in side.rows for row in rows.tolist()):
            at = zip(position, side.unit, strict=True)
            stored[tuple(slice(p * u, (p + 1) * u) for p, u in at)] = True
    found = touched_boxes(shape, [step], listed)
    every = list(boxes(shape, step))
    assert list(found) == [box for box in every if stored[box].any()]
    assert list(found.others()) == [box for box in every if not stored[box].any()]
    assert found.n_elements == sum(stored[box].size for box in found)


@given(st.data())
def test_a_chunk_lies_in_few_of_the_least_boxes(data: st.DataObject) -> None:
    shape = data.draw(extents)
    unit, chunk = (tuple(data.draw(st.integers(1, n)) for n in shape) for _ in range(2))
    box = least_box(shape, unit, chunk)
    for n, u, c, b in zip(shape, unit, chunk, box, strict=True):
        assert b == n or (b % u == 0 and c <= b < c + u)


def test_a_huge_grid_is_not_walked() -> None:
    """A grid with more boxes than 64 bits can count is not walked."""
    shape = (2**62, 2**61 - 1, 2**60)
    corner = [2**62 // 7, (2**61 - 2) // 5, 0]
    found = touched_boxes(shape, [(7, 5, 3)], [StoredChunks((7, 5, 3), [np.array([corner])])])
    (box,) = found
    assert [part.start for part in box] == [corner[0] * 7, corner[1] * 5, 0]
    others = list(islice(found.others(), 3))
    assert [[part.start for part in box] for box in others] == [[0, 0, 0], [0, 0, 3], [0, 0, 6]]


@pytest.mark.parametrize("n_batches", [1, 300])
def test_a_box_takes_a_few_bytes(n_batches: int) -> None:
    import tracemalloc  # noqa: PLC0415

    random = np.random.default_rng(3)
    n = 150_000

    def rows() -> Any:
        for _ in range(n_batches):
            yield random.integers(0, [12_501, 12_499, 12_503], (n // n_batches, 3), "i2")

    tracemalloc.start()
    try:
        found = touched_boxes(HUGE, [(8, 8, 8)], [StoredChunks((8, 8, 8), rows())])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.places) > 0.99 * n
    assert found.n_elements <= n * math.prod((8, 8, 8))
    assert peak < 200 * n  # arrays of numbers; tuples alone take more
