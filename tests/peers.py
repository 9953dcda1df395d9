"""What tests need beyond the project: a peer, an extra, a compiler's kernel, a system.

Where it is missing, the tests that need it are skipped. With the environment variable
``N5ZARR_REQUIRE_PEERS=1``, as in CI, they fail instead, so that a broken installation is not green.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

from n5zarr.arrays import kernel

REQUIRED = os.environ.get("N5ZARR_REQUIRE_PEERS", "") not in ("", "0")


def peer(name: str, reason: str = "uv sync installs it") -> Any:
    """Import a package that a test needs; skip the test, or the module of tests, without it.

    A package that is there and cannot be imported is an error.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        missing(f"no {name}: {reason}")


def missing(reason: str) -> None:
    """Skip for want of something that CI has; fail in CI."""
    if REQUIRED:
        pytest.fail(f"N5ZARR_REQUIRE_PEERS is set, but there is {reason}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def need_kernel() -> None:
    """Go on only with the compiled kernel."""
    if not kernel.is_compiled():
        missing("no compiled kernel: no C compiler when the project was installed")
