"""Find the arrays from which lazy data will be read.

The only module that looks inside of xarray's and dask's lazy objects, for which there is no public
API:

- ``Variable._data``: ``data`` and ``values`` would read the elements.
- ``array`` of xarray's adapters, which are nested around the array of a backend.
- ``ZarrArrayWrapper``, xarray's array of the engine ``"zarr"``; its ``get_array`` is public.
- The layers of dask's graph: ``mapping``, ``task`` and ``indices``, and ``value`` of a task. All
  keys of a graph would be made if it were read as a mapping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr
import zarr
from xarray.backends.zarr import ZarrArrayWrapper

from n5zarr.container.options import require
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.storage.store_locations import overlap, places_behind
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.lazy_arrays import StackedViews

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zarr.storage import StorePath

    from n5zarr.storage.interface import Storage

__all__ = ["check_not_read"]


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
    while not isinstance(held, ZarrArrayWrapper | StackedViews | zarr.Array) and hasattr(
        held, "array"
    ):
        held = held.array
    if isinstance(held, StackedViews):
        yield from held.places()
    array = held
    if isinstance(held, ZarrArrayWrapper):
        array = held.get_array()  # type: ignore[no-untyped-call] # xarray's
    if isinstance(array, zarr.Array):
        yield array.store_path
