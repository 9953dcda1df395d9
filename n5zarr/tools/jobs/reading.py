"""Read arrays of plain Zarr at the speed of their files."""

from __future__ import annotations

import zarr
from zarr.abc.store import SupportsSyncStore

from n5zarr._zarr import with_zarrs_pipeline
from n5zarr.store.n5_store import N5Store

__all__ = ["for_reading"]


def for_reading[T](values: T) -> T:
    """Return an array of plain Zarr with zarr's synchronous pipeline; others as they are.

    zarr's default pipeline runs a task of an event loop for each chunk. Where stores need none,
    this one reads small chunks in a quarter of the time.
    """
    if not isinstance(values, zarr.Array) or isinstance(values.store, N5Store):
        return values
    return with_zarrs_pipeline(values) if isinstance(values.store, SupportsSyncStore) else values
