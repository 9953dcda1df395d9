"""Errors of n5zarr with their kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from n5zarr.errors import N5Error


@contextmanager
def refused[E: N5Error](
    error: type[E] | tuple[type[E], ...], kind: str, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of this class and kind, whose text matches a regular expression."""
    with pytest.raises(error, match=match) as caught:
        yield caught
    assert caught.value.kind == kind
