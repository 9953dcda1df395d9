"""Provide a directory for tests that write thousands of small files, or sync them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.memory import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def where() -> Iterator[Path]:
    """Return a directory, in memory where there is one."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)
