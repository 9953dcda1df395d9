"""Provide a directory for tests that write thousands of small files, or sync them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory import MEMORY


@pytest.fixture
def where() -> Iterator[Path]:
    """Return a directory, in memory where there is one."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)
