"""Present N5 arrays as lazy arrays of xarray, and find the arrays that lazy data will be read from.

The only module that looks inside of xarray's and dask's lazy objects, for which there is no public
API:

- ``Variable._data``: ``data`` and ``values`` would read the elements.
- ``array`` of xarray's adapters, which are nested around the array of a backend.
- ``ZarrArrayWrapper``, xarray's array of the engine ``"zarr"``; its ``get_array`` is public.
- The layers of dask's graph: ``mapping``, ``task`` and ``indices``, and ``value`` of a task. All
  keys of a graph would be made if it were read as a mapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, override, runtime_checkable

import numpy as np
import numpy.typing as npt
import xarray as xr
import zarr
from xarray.backends.zarr import ZarrArrayWrapper
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr._zarr import xarray_indexing
from n5zarr.arrays.described import FAST_ARRAY
from n5zarr.container.options import require
from n5zarr.format.grid import join_blocks
from n5zarr.storage.interface import Storage
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.storage.store_locations import overlap, places_behind
from n5zarr.store.n5_store import N5Store

_indexing = xarray_indexing()

_MANY, _FEWER = 2**24, 2**20  # chunks; dask holds all of an array in memory


@runtime_checkable
class HasPlaces(Protocol):
    """An array that is read from several datasets."""

    def places(self) -> Iterator[StorePath]:
        """Yield the locations of the datasets."""


class LazyArray(ZarrArrayWrapper):
    """Read like xarray's lazy array, but do not search the codecs of numbers for text."""

    __slots__ = ()

    def __init__(self, array: AnyArray) -> None:
        if isinstance(array, FAST_ARRAY.found() or ()):
            self._array, self.shape, self.dtype = array, array.shape, array.dtype
        else:
            super().__init__(array)  # type: ignore[no-untyped-call] # xarray's
        if self.dtype.kind == "T":  # xarray presents text as objects, and would load all of it
            self.dtype = np.dtype(object)

    @override
    def __getitem__(self, key: object) -> object:
        return self._text_as_objects(super().__getitem__(key))  # type: ignore[no-untyped-call] # xarray's

    @override
    async def async_getitem(self, key: object) -> npt.ArrayLike:
        return self._text_as_objects(await super().async_getitem(key))  # type: ignore[no-untyped-call]

    def _text_as_objects(self, value: npt.ArrayLike) -> npt.ArrayLike:
        return np.asarray(value, self.dtype) if self.dtype.kind == "O" else value


def check_not_read(
    arrays: Iterable[tuple[object, object]], storage: Storage, path: str, option: str
) -> None:
    """Raise if lazy data come from a node that is about to be removed.

    Parameters
    ----------
    arrays : iterable of (name, array)
        Variables of xarray, or arrays of dask or zarr; others are not looked at.
    storage, path : Storage, str
        What is removed.
    option : str
        The option of the user that removes it.

    Raises
    ------
    N5UnrepresentableError
        The node would be removed before its data are read (``kind="option"``).
    """
    removed = places_behind(storage, path)
    for name, array in arrays:
        for place in _places(array):
            read = place.store
            source = read.storage if isinstance(read, N5Store) else open_storage(Place(read))
            require(
                overlap(places_behind(source, place.path), removed) is None,
                f"{option} would remove the unread source of {name!r}, {source}: "
                f"/{place.path}; load() the data first, or write to another place",
                where=f"{storage}: {path or '/'}",
            )


def _places(array: object) -> Iterator[StorePath]:
    """Yield the locations of the Zarr arrays behind a variable, or an array of dask or zarr."""
    held = getattr(array, "_data", None) if isinstance(array, xr.Variable) else array
    graph = getattr(held, "__dask_graph__", None)
    for source in [held] if graph is None else _sources_in(graph()):
        yield from _places_of(source)


def _sources_in(graph: Any) -> Iterator[object]:  # noqa: ANN401 - dask has no types
    """Yield what the tasks of a graph of dask read from."""
    for layer in (getattr(graph, "layers", None) or {"": graph}).values():
        # if a layer is not materialized, the arrays are among its inputs
        if hasattr(layer, "mapping"):
            yield from (getattr(task, "value", task) for task in layer.mapping.values())
        else:
            inputs = [*getattr(getattr(layer, "task", None), "args", ())]
            inputs += [literal for literal, _ in getattr(layer, "indices", ())]
            yield from (getattr(task, "value", task) for task in inputs)


def _places_of(held: Any) -> Iterator[StorePath]:  # noqa: ANN401 - of xarray or dask
    """Yield the locations of the Zarr arrays inside xarray's adapters."""
    while not isinstance(held, ZarrArrayWrapper | HasPlaces | zarr.Array) and hasattr(
        held, "array"
    ):
        held = held.array
    if isinstance(held, HasPlaces):
        yield from held.places()
    array = held
    if isinstance(held, ZarrArrayWrapper):
        array = held.get_array()  # type: ignore[no-untyped-call] # xarray's
    if isinstance(array, zarr.Array):
        yield array.store_path


def preferred_chunks(
    dims: Sequence[str], shape: Sequence[int], block: Sequence[int]
) -> dict[str, int]:
    """Return the extent of dask's chunks for ``chunks={}``: blocks, joined if dask cannot hold all.

    Examples
    --------
    >>> preferred_chunks("yx", (5, 7), (2, 3)), preferred_chunks("yx", (10**10, 7), (1, 7))
    ({'y': 2, 'x': 3}, {'y': 16384, 'x': 7})
    """
    n_blocks = math.prod(-(-n // size) for n, size in zip(shape, block, strict=True))
    chunks = join_blocks(shape, block, most=_FEWER) if n_blocks > _MANY else block
    return dict(zip(dims, chunks, strict=True))
