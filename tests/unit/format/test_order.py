"""Axes are reversed between N5 order and C order by one function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from n5zarr.format.order import AxisOrder, from_presented, present, to_c, to_n5, transposition


@pytest.mark.parametrize(
    "values",
    [(), (7,), (7, 5), [7, 5, 3], iter("xyz")],
    ids=["none", "one", "tuple", "list", "iterator"],
)
@pytest.mark.parametrize("turn", [to_c, to_n5])
def test_each_order_is_the_other_reversed(turn: Any, values: Iterable[object]) -> None:
    kept = tuple(values)
    assert turn(iter(kept)) == kept[::-1]


@pytest.mark.parametrize(
    ("axis_order", "shown"),
    [pytest.param("C", (3, 5, 7), id="C-is-reversed"), pytest.param("F", (7, 5, 3), id="F-is-not")],
)
def test_shown_shapes_follow_the_axis_order(axis_order: AxisOrder, shown: tuple[int, ...]) -> None:
    assert present((7, 5, 3), axis_order) == shown
    assert from_presented(shown, axis_order) == (7, 5, 3)


def test_a_transposition_lists_the_axes_last_to_first() -> None:
    assert transposition(3) == [2, 1, 0]
    assert transposition(0) == []
