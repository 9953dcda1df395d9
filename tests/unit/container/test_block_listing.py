"""Blocks are listed in order, and in little memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from n5zarr.container.block_listing import (
    blocks_by_prefix,
    grid_position_rows,
    stored_positions,
    stored_rows,
)
from n5zarr.format.order import N5Tuple
from n5zarr.storage.requests import Entry, KeysBelow, drive
from tests.memory import traced


def asking(entries: Callable[[str], Sequence[Entry]], paths: list[str]) -> Any:
    """Run flows in storage of directories, and record which are listed."""

    def answer(request: Any) -> Any:
        if isinstance(request, KeysBelow):
            return None
        paths.append(request.path)
        return entries(request.path)

    return lambda steps: drive(steps, answer)


def listed(grid: tuple[int, ...], entries: Callable[[str], Sequence[Entry]]) -> np.ndarray:
    found: np.ndarray = asking(entries, [])(grid_position_rows("em", N5Tuple(grid)))
    return found


@pytest.mark.parametrize("is_dir", [None, True])
def test_blocks_are_sorted_by_number_and_other_names_left_out(is_dir: bool | None) -> None:
    tree = {
        "em": ["10", "9", "s1", "01", "99999999999999999999999", "300"],
        "em/9": ["2", "attributes.json", "128"], "em/10": ["128", "x", "0", "129"],
    }  # fmt: skip

    def entries(path: str) -> list[Entry]:
        return [Entry(name, is_dir and path == "em") for name in tree.get(path, ())]

    assert listed((300, 129), entries).tolist() == [[9, 2], [9, 128], [10, 0], [10, 128]]
    assert listed((), lambda _: [Entry("x", None)]).shape == (0, 0)


def test_a_block_takes_a_few_bytes() -> None:
    directories = [Entry(str(n), is_dir=True) for n in range(2601)]
    files = [Entry(str(n), is_dir=False) for n in range(23)]
    with traced() as memory:
        found = listed((2601, 23), lambda path: directories if path == "em" else files)
    assert found.shape == (2601 * 23, 2)
    assert memory.peak < 100 * len(found)  # 300 and more with a tuple and a name for each


def test_all_blocks_of_a_wide_dataset_take_no_more_memory_than_a_batch() -> None:
    names = [Entry(str(n), is_dir=None) for n in range(50)]
    paths: list[str] = []
    n_blocks, last = 0, [-1]
    with traced() as memory:
        for rows in stored_rows(asking(lambda _: names, paths), "em", N5Tuple((50, 50, 50))):
            n_blocks += len(rows)
            assert last < rows[0].tolist()
            last = rows[-1].tolist()
            paths.clear()
    assert n_blocks == 50**3
    assert memory.peak < 3 * 10**6  # 10 and more with a tuple for each


def test_a_part_of_the_grid_lists_its_directories_only() -> None:
    tree = {
        "em": ["0", "4", "9"], "em/4": ["1", "3", "12"], "em/4/3": ["5", "7", "8"],
        "em/4/12": ["6"], "em/9": ["3"],
    }  # fmt: skip
    paths: list[str] = []
    ask = asking(lambda path: [Entry(n, is_dir=None) for n in tree.get(path, ())], paths)
    within = [range(1, 9), range(2, 13), range(6, 8)]
    grid = N5Tuple((13, 17, 11))
    (rows,) = stored_rows(ask, "em", grid, within)
    assert rows.tolist() == [[4, 3, 7], [4, 12, 6]]
    assert sorted(paths) == ["em", "em/4", "em/4/12", "em/4/3"]
    assert list(stored_positions(ask, "em", grid)) == [
        (4, 3, 5), (4, 3, 7), (4, 3, 8), (4, 12, 6),
    ]  # fmt: skip


def test_blocks_are_found_among_all_keys_below_a_prefix() -> None:
    keys = ["10/128", "9/2", "9/128", "attributes.json", "9/129", "s1/0", "01/2", "9/2/0", "9", ""]
    steps = blocks_by_prefix("em", N5Tuple((300, 129)))
    request: Any = next(steps)[0]
    assert (type(request), request.path) == (KeysBelow, "em")
    sizes = [2**n for n in range(len(keys))]
    pages = [request.take(keys[:2], sizes[:2]), request.take(keys[2:], sizes[2:])]
    with pytest.raises(StopIteration) as stop:
        steps.send([pages])
    assert stop.value.value.rows.tolist() == [[9, 2], [9, 128], [10, 128]]
    assert stop.value.value.n_bytes == 1 + 2 + 4
    page = request.take(keys, None)
    assert page.n_bytes is None
    assert page.others == ("attributes.json", "9/129", "s1/0", "01/2", "9/2/0", "9")
    # some libraries list the marker of a directory without its slash
    assert request.take(["9/", "9", "8", "0.__lock"], [0, 0, 1, 0]).others == ("8", "0.__lock")
