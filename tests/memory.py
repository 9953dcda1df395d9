"""Choose a place for tests that write thousands of small files: in memory, if there is one.

To make and remove a folder takes a tenth of the computing, and no waiting for the disk.
"""

from __future__ import annotations

import os

__all__ = ["MEMORY"]

_SHARED = "/dev/shm"  # noqa: S108 - files in it get names of their own
MEMORY = _SHARED if os.access(_SHARED, os.W_OK) else None  # as tempfile takes it
