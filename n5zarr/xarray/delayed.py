"""Join dask's delayed objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dask.delayed import Delayed

__all__ = ["join_delayed"]


def join_delayed(parts: Iterable[object]) -> Delayed | None:
    """Return an object that computes all parts that are not None; None if there are none."""
    remaining = [part for part in parts if part is not None]
    if not remaining:
        return None
    from dask.delayed import delayed  # noqa: PLC0415 - dask is an optional dependency

    joined: Delayed = delayed(list)(remaining)
    return joined
