"""Present views as one lazy array of xarray, by setup and time point."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, override

import numpy as np
from xarray.backends import BackendArray
from zarr.storage import StorePath

from n5zarr._zarr import xarray_indexing
from n5zarr.arrays.group import as_zarr, with_fast_path
from n5zarr.arrays.placing import memory_of
from n5zarr.bigdataviewer.views import SetupLevel
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.lazy_arrays import LazyArray

if TYPE_CHECKING:
    from n5zarr._zarr import ExplicitIndexer

_indexing = xarray_indexing()

type _Key = tuple[Any, ...]
type _Array = np.ndarray[Any, np.dtype[Any]]


class StackedViews(BackendArray):
    """Read views of equal shape and data type; open each array when it is first read.

    Parameters
    ----------
    store : N5Store
        The container.
    views : sequence of sequence of SetupLevel or None
        The views by setup and time point; None stands for one without data, filled with 0.
    """

    def __init__(self, store: N5Store, views: Sequence[Sequence[SetupLevel | None]]) -> None:
        self.store = store
        self.views = [list(of_setup) for of_setup in views]
        first = next(view for view in self._existing())
        self.shape = (len(self.views), len(self.views[0]), *first.dataset.shape)
        self.dtype = first.dataset.kind.dtype

    def _existing(self) -> Iterator[SetupLevel]:
        return (view for of_setup in self.views for view in of_setup if view is not None)

    def places(self) -> Iterator[StorePath]:
        """Yield the locations of the datasets."""
        return (StorePath(self.store, view.path) for view in self._existing())

    def __getitem__(self, key: ExplicitIndexer) -> _Array:
        """Read a selection."""
        is_of_points = isinstance(key, _indexing.VectorizedIndexer)
        return self._points(key.tuple) if is_of_points else self._box(key.tuple)

    @override
    async def async_getitem(self, key: ExplicitIndexer) -> _Array:
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, setup: int, timepoint: int, key: ExplicitIndexer) -> _Array | None:
        """Read a selection of a view; None if it has no data."""
        view = self.views[setup][timepoint]
        if view is None:
            return None
        array: Any = with_fast_path(as_zarr(self.store, view.path, view.dataset))
        values: Any = LazyArray(array)[key]
        return np.asarray(memory_of().on_host(values))

    def _box(self, key: _Key) -> _Array:
        """Read a selection of integers, slices and arrays, each of which selects along its axis."""
        setups, timepoints = (np.arange(n)[k] for n, k in zip(self.shape, key[:2], strict=False))
        inner = key[2:]
        is_basic = not any(isinstance(k, np.ndarray) for k in inner)
        of_view = _indexing.BasicIndexer(inner) if is_basic else _indexing.OuterIndexer(inner)
        shape = (*setups.shape, *timepoints.shape, *_extent(inner, self.shape[2:]))
        pairs = [(s, t) for s in setups.flat for t in timepoints.flat]
        if len(pairs) == 1:  # no copy of large data
            read = self._read(*pairs[0], of_view)
            return np.zeros(shape, self.dtype) if read is None else read.reshape(shape)
        found = np.zeros(shape, self.dtype)
        by_view = found.reshape(len(pairs), *shape[setups.ndim + timepoints.ndim :])
        for i, pair in enumerate(pairs):
            read = self._read(*pair, of_view)
            if read is not None:
                by_view[i] = read
        return found

    def _points(self, key: _Key) -> _Array:
        """Read points; the arrays belong together, as xarray has made arrays of slices, too."""
        setups, timepoints, *inner = np.broadcast_arrays(*key)
        found = np.zeros(setups.shape, self.dtype)
        for setup, timepoint in np.unique([setups.ravel(), timepoints.ravel()], axis=1).T:
            chosen = (setups == setup) & (timepoints == timepoint)
            points = _indexing.VectorizedIndexer(tuple(k[chosen] for k in inner))
            read = self._read(setup, timepoint, points)
            if read is not None:
                found[chosen] = read
        return found


def _extent(key: Sequence[Any], shape: Sequence[int]) -> list[int]:
    """Return the extent of a selection along each axis that no integer selects."""
    return [
        len(range(n)[k]) if isinstance(k, slice) else np.size(k)
        for k, n in zip(key, shape, strict=True)
        if not isinstance(k, int | np.integer)
    ]
