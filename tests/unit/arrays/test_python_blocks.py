"""Work on blocks is shared out to threads."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Event, current_thread

import pytest

from n5zarr.errors import N5BlockError
from n5zarr.fast.workers import share_out

LONG = 30  # seconds that no event needs


def test_the_error_of_the_first_items_is_raised_however_threads_take_turns() -> None:
    """The error of the first items is raised, also if it happens last."""
    this, has_other_begun, has_this_failed = current_thread(), Event(), Event()
    of_other: list[int] = []

    def work(items: Iterable[int]) -> list[int]:
        (item,) = items
        if current_thread() is not this:
            of_other.append(item)
            has_other_begun.set()
            assert has_this_failed.wait(LONG)
        elif item == 0:
            assert has_other_begun.wait(LONG)
            return [item]
        else:
            has_this_failed.set()
        message = f"block {item}"
        raise N5BlockError(message, kind="payload")

    with pytest.raises(N5BlockError) as err:
        share_out(work, [0, 1, 2], 2)
    assert str(err.value) == f"block {of_other[0]}"
    assert of_other[0] < 2
