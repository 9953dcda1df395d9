"""Share the files of tests among processes, each of which collects only its own.

Collecting all cases takes as long as a tenth of running them, and with pytest-xdist each process
collects all. Here the files are shared out by the seconds that the table of tests knows; unknown
files by their names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    import pytest


def shares_of(seconds: Mapping[str, float], n: int) -> dict[str, int]:
    """Return the number of the process that runs each file: the longest first, to the idlest.

    >>> shares_of({"a": 5.0, "b": 4.0, "c": 2.0, "d": 1.0}, 2)
    {'a': 0, 'b': 1, 'c': 1, 'd': 0}
    """
    total = [0.0] * n
    shares = {}
    for path in sorted(seconds, key=lambda each: (-seconds[each], each)):
        k = total.index(min(total))
        shares[path] = k
        total[k] += seconds[path] + 0.1
    return shares


def share_of(path: str, shares: Mapping[str, int], n: int) -> int:
    return shares.get(path, crc32(path.encode()) % n)


class OwnFiles:
    """A scheduler of pytest-xdist whose processes run all that each of them has collected."""

    def __init__(self, session: pytest.Session, n: int) -> None:
        self.session, self.n = session, n
        self.waiting: dict[Any, deque[int]] = {}  # of each process: what it has not yet run
        self.names: dict[Any, Sequence[str]] = {}
        self.done = set[str]()

    @property
    def nodes(self) -> list[Any]:
        return list(self.waiting)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all have collected, so that the number of tests is known."""
        return len(self.names) >= self.n

    @property
    def has_pending(self) -> bool:
        return any(self.waiting.values())

    @property
    def tests_finished(self) -> bool:
        return self.collection_is_completed and not self.has_pending

    def add_node(self, node: Any) -> None:
        """Add a process, which goes on to collect."""
        self.waiting[node] = deque()

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Let a process run what it has collected, at once."""
        self.names[node] = collection
        left = [k for k, name in enumerate(collection) if name not in self.done]
        self.waiting[node] = deque(left)
        if left:
            node.send_runtest_some(left)
        node.shutdown()  # after these

    def schedule(self) -> None:
        """Tell how many tests there are; they run already."""
        self.session.testscollected = sum(map(len, self.names.values()))

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        del duration
        self.waiting[node].remove(item_index)
        self.done.add(self.names[node][item_index])

    def remove_node(self, node: Any) -> str | None:
        """Remove a process; return the test that it was running, if it did not end well."""
        left = self.waiting.pop(node)
        if not left:
            return None
        crashed = self.names[node][left[0]]
        self.done.add(crashed)
        del self.names[node]  # the process that replaces it collects again
        return crashed

    def mark_test_pending(self, item: str) -> None:
        """Refuse to run a test again, which pytest-xdist asks for only by options not used here."""
        raise NotImplementedError(item)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Refuse: nothing is taken from a process."""
        raise NotImplementedError(node, indices)
