"""The block grid has the right counts, extents and paths."""

from __future__ import annotations

from itertools import product

import pytest

from n5zarr.format.grid import (
    block_extent,
    block_path,
    blocks_cut_anew,
    grid_shape,
    is_block_name,
    parse_block_path,
)
from n5zarr.format.order import N5Tuple

DIMENSIONS, BLOCK_SIZE = N5Tuple((5, 7, 11)), N5Tuple((2, 3, 4))


@pytest.mark.parametrize(
    ("dimensions", "block_size", "expected"),
    [
        pytest.param(DIMENSIONS, BLOCK_SIZE, (3, 3, 3), id="truncated-at-every-end"),
        pytest.param((10,), (5,), (2,), id="exact"),
        pytest.param((11,), (5,), (3,), id="one-more"),
        pytest.param((9,), (5,), (2,), id="one-less"),
        pytest.param((3, 2), (16, 16), (1, 1), id="smaller-than-a-block"),
        pytest.param((0, 5), (2, 2), (0, 3), id="no-extent"),
        pytest.param((2**63 - 1,), (2,), (2**62,), id="the-longest"),
        pytest.param((1, 1), (1, 1), (1, 1), id="one"),
    ],
)
def test_blocks_are_counted_with_the_truncated_ones(
    dimensions: N5Tuple, block_size: N5Tuple, expected: tuple[int, ...]
) -> None:
    assert grid_shape(dimensions, block_size) == expected


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        pytest.param((0, 0, 0), (2, 3, 4), id="full"),
        pytest.param((2, 0, 0), (1, 3, 4), id="truncated-in-x"),
        pytest.param((0, 2, 0), (2, 1, 4), id="truncated-in-y"),
        pytest.param((0, 0, 2), (2, 3, 3), id="truncated-in-z"),
        pytest.param((2, 2, 2), (1, 1, 3), id="corner"),
        pytest.param((3, 0, 0), (0, 3, 4), id="outside"),
        pytest.param((9, 9, 9), (0, 0, 0), id="far-outside"),
    ],
)
def test_the_extent_of_a_cell_ends_with_the_dataset(
    position: N5Tuple, expected: tuple[int, ...]
) -> None:
    assert block_extent(DIMENSIONS, BLOCK_SIZE, position) == expected


@pytest.mark.parametrize(
    ("position", "path"), [((0,), "0"), ((2, 0, 11), "2/0/11"), ((2**40,), "1099511627776")]
)
def test_a_block_path_has_x_first_and_no_padding(position: N5Tuple, path: str) -> None:
    assert block_path(position) == path


@pytest.mark.parametrize("name", ["0", "1", "10", "9223372036854775807"], ids=repr)
def test_decimal_numbers_are_block_names(name: str) -> None:
    assert is_block_name(name)


@pytest.mark.parametrize(
    "name", ["", "00", "01", "-1", "+1", "1.0", "s0", "0 ", "0\n", "0x1", "\u0661", "1_0"], ids=repr
)
def test_anything_else_is_no_block_name(name: str) -> None:
    assert not is_block_name(name)


@pytest.mark.parametrize(
    ("path", "grid", "expected"),
    [
        pytest.param("2/0/11", (3, 1, 12), (2, 0, 11), id="inside"),
        pytest.param("3/0/11", (3, 1, 12), None, id="outside-in-x"),
        pytest.param("2/0/12", (3, 1, 12), None, id="outside-in-z"),
        pytest.param("2/0", (3, 1, 12), None, id="too-few"),
        pytest.param("2/0/1/0", (3, 1, 12), None, id="too-many"),
        pytest.param("2/00/1", (3, 1, 12), None, id="padded"),
        pytest.param("2//1", (3, 1, 12), None, id="empty-name"),
        pytest.param("", (3,), None, id="empty"),
        pytest.param("a", (3,), None, id="letters"),
        pytest.param("9223372036854775806", (2**63 - 1,), (2**63 - 2,), id="19-digits"),
        pytest.param("1" * 5000, (3,), None, id="thousands-of-digits"),
        pytest.param("0", (0,), None, id="empty-grid"),
    ],
)
def test_a_block_path_is_read_if_the_grid_has_it(
    path: str, grid: N5Tuple, expected: tuple[int, ...] | None
) -> None:
    assert parse_block_path(path, grid) == expected


@pytest.mark.parametrize("dimensions", [*product(range(8), range(6))])
def test_the_blocks_that_another_extent_cuts_anew(dimensions: tuple[int, int]) -> None:
    block_size = N5Tuple((3, 2))
    old = N5Tuple(dimensions)
    for new in map(N5Tuple, product(range(8), range(6))):
        expected = {
            position
            for position in product(range(3), range(3))
            if (before := block_extent(old, block_size, N5Tuple(position))) != block_size
            and (after := block_extent(new, block_size, N5Tuple(position))) != before
            and all(before)
            and all(after)
        }
        boxes = blocks_cut_anew(old, new, block_size)
        assert {position for box in boxes for position in product(*box)} == expected
