"""Where files are in memory, and how much memory of Python and numpy a test takes."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["MEMORY", "Traced", "traced"]

_SHARED = "/dev/shm"  # noqa: S108 - files in it get names of their own

# a folder as tempfile takes it, for tests that write thousands of small files: to make and remove
# a folder there takes a tenth of the computing, and no waiting for the disk
MEMORY = _SHARED if os.access(_SHARED, os.W_OK) else None


@dataclass
class Traced:
    """The most memory that was allocated at once, in bytes."""

    peak: int = 0


@contextmanager
def traced() -> Iterator[Traced]:
    """Trace the memory that Python and numpy allocate; its peak is known afterwards."""
    found = Traced()
    tracemalloc.start()
    try:
        yield found
        found.peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
