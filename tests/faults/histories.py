"""Record concurrent operations, and search an order of them that explains the results.

Each operation is noted with the times at which it was called and returned. A history is
linearizable (Herlihy and Wing 1990) if there is a moment for each operation, between both times,
such that the operations, done one after the other at these moments, give what was observed. The
search is that of Wing and Gong (1993); it remembers which states it has tried (Lowe 2017).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple


class Operation(NamedTuple):
    """An operation of one writer on one object, and its observed result."""

    place: Hashable  # the object
    name: str  # what was done
    value: Any  # with what, or what was observed
    # nanoseconds of the clock that all processes of the system share
    called: int
    returned: int


def timed[T](do: Callable[[], T]) -> tuple[T, tuple[int, int]]:
    """Call a function; return its result, and the times of call and return."""
    called = time.monotonic_ns()
    result = do()
    return result, (called, time.monotonic_ns())


def unexplained[State: Hashable](
    history: Sequence[Operation], initial: State, done: Callable[[State, Operation], State | None]
) -> list[Operation]:
    """Find an object whose operations have no order.

    ``done`` takes a state and an operation, and returns the state after it; None if what was
    observed cannot be observed in this state.
    """
    places: dict[Hashable, list[Operation]] = {}
    for operation in sorted(history, key=lambda each: each.called):
        places.setdefault(operation.place, []).append(operation)
    for operations in places.values():
        if not has_order(operations, initial, done):
            return operations
    return []


def has_order[State: Hashable](
    operations: Sequence[Operation], state: State, done: Callable[[State, Operation], State | None]
) -> bool:
    """Return whether the operations of one object, sorted by call times, have an order."""
    everything = (1 << len(operations)) - 1
    tried: set[tuple[int, State]] = set()
    pending = [(0, state)]  # operations that are done, one bit each, and the state after them
    while pending:
        before, state = pending.pop()
        if before == everything:
            return True
        end = min(o.returned for n, o in enumerate(operations) if not before >> n & 1)
        for n, operation in enumerate(operations):
            if operation.called > end:
                break  # another one returned before this one was called
            if before >> n & 1:
                continue
            after = done(state, operation)
            if after is not None and (key := (before | 1 << n, after)) not in tried:
                tried.add(key)
                pending.append(key)
    return False
