"""Join dask's delayed objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dask.delayed import Delayed

__all__ = ["as_list", "join_delayed"]


def as_list(parts: Iterable[object]) -> Delayed:
    """Return an object that computes all parts, and returns a list."""
    from dask.delayed import delayed  # noqa: PLC0415 - dask is an optional dependency

    joined: Delayed = delayed(list)([*parts])
    return joined


def join_delayed(parts: Iterable[Delayed | None]) -> Delayed | None:
    """Return an object that computes all parts; None if there are none."""
    remaining = [part for part in parts if part is not None]
    if len(remaining) <= 1:
        return remaining[0] if remaining else None
    return as_list(remaining)
