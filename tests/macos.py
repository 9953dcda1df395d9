"""Make local files behave as on macOS: ``uv run pytest -p tests.macos tests/unit/storage``.

There are no locks of open file descriptions, so that n5zarr takes those of ``flock``. The compiled
kernel is left out, because it takes the locks of this system.
"""

from __future__ import annotations

import fcntl
import sys


def pytest_load_initial_conftests() -> None:
    """Install the plugin before anything imports n5zarr; importing this module changes nothing."""
    assert "n5zarr" not in sys.modules, "n5zarr is imported already"
    sys.modules["n5zarr.fast._kernel"] = None  # type: ignore[assignment] # not to be imported
    for name in ("F_OFD_SETLK", "F_OFD_SETLKW", "F_OFD_GETLK"):
        if hasattr(fcntl, name):
            delattr(fcntl, name)
