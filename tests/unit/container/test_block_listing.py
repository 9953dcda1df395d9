"""Listing of blocks: what is one, in which order, and in how much memory."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from n5zarr.container.block_listing import grid_position_rows
from n5zarr.container.prefix_listing import blocks_by_prefix
from n5zarr.format.order import N5Tuple
from n5zarr.storage.requests import Entry, KeysBelow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np


def listed(grid: tuple[int, ...], entries: Callable[[str], Sequence[Entry]]) -> np.ndarray:
    """Answer the requests of the flow; ``entries`` lists a directory."""
    steps = grid_position_rows("em", N5Tuple(grid))
    requests: Any = next(steps)
    try:
        while True:
            by_prefix = [isinstance(request, KeysBelow) for request in requests]
            requests = steps.send(
                [None if no else entries(r.path) for r, no in zip(requests, by_prefix, strict=True)]
            )
    except StopIteration as stop:
        rows: np.ndarray = stop.value
        return rows


@pytest.mark.parametrize("is_dir", [None, True])
def test_blocks_are_sorted_by_number_and_other_names_left_out(is_dir: bool | None) -> None:
    tree = {
        "em": ["10", "9", "s1", "01", "99999999999999999999999", "300"],
        "em/9": ["2", "attributes.json", "128"],
        "em/10": ["128", "x", "0", "129"],
    }
    found = listed(
        (300, 129),
        lambda path: [Entry(n, is_dir and path == "em") for n in tree.get(path, ())],
    )
    assert found.tolist() == [[9, 2], [9, 128], [10, 0], [10, 128]]
    assert listed((), lambda _: [Entry("x", None)]).shape == (0, 0)


def test_a_block_takes_a_few_bytes() -> None:
    directories = [Entry(str(n), is_dir=True) for n in range(2601)]
    files = [Entry(str(n), is_dir=False) for n in range(23)]
    tracemalloc.start()
    try:
        found = listed((2601, 23), lambda path: directories if path == "em" else files)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.shape == (2601 * 23, 2)
    assert peak < 100 * len(found)  # 300 and more with a tuple and a name for each


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
