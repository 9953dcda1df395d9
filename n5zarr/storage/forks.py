"""Know what a forked process has lost: the threads of its parent, and what waits for them.

obstore has threads for the whole process, which it starts at its first request and never again: in
a process forked after that, each request waits for ever, also one of a new store. So fsspec reads
there, which begins anew, or an error says what helps.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from n5zarr.errors import N5UnsupportedError

REMEDY = "start processes with 'spawn' or 'forkserver'"
_THREADS = "tokio-"  # how the names of obstore's threads begin


class _Forks:
    """The forks between this process and the first of its ancestors that imported n5zarr."""

    def __init__(self) -> None:
        self.number = 0
        self.has_lost_obstore = False
        self.lock = threading.RLock()  # of those that begin anew
        self._has_begun = False
        self._of_parents: list[object] = []

    def look(self) -> None:
        """Note, before a fork, whether obstore has threads."""
        self._has_begun = "obstore" in sys.modules and _may_have_threads()

    def begin_anew(self) -> None:
        """Count the fork, in the forked process."""
        self.number += 1
        self.has_lost_obstore |= self._has_begun
        self.lock = threading.RLock()

    def abandon(self, client: object) -> None:
        """Keep a client of the parent: its end would close connections that the parent uses."""
        self._of_parents.append(client)


def _may_have_threads(tasks: Path = Path("/proc/self/task")) -> bool:
    """Whether obstore has threads, as far as the system tells their names."""
    try:
        threads = list(tasks.iterdir())
    except OSError:
        return True
    for thread in threads:
        with suppress(OSError):  # it has ended
            if (thread / "comm").read_text().startswith(_THREADS):
                return True
    return False


FORKS = _Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=FORKS.look, after_in_child=FORKS.begin_anew)


def fork_error(what: str, why: str) -> N5UnsupportedError:
    """Return the error of what a forked process cannot read.

    Parameters
    ----------
    what : str
        The store or URL.
    why : str
        What is in the way, and what helps besides the start of processes in another way.
    """
    return N5UnsupportedError(
        f"{what}: expected a process that was not forked; {why}, or {REMEDY}", kind="fork"
    )
