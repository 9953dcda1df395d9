"""Find the arrays from which lazy data will be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import zarr
from xarray.backends.zarr import ZarrArrayWrapper

from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.storage.store_locations import overlap, places_behind
from n5zarr.store.n5_store import N5Store
from n5zarr.xarray.stacked_views import StackedViews

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import xarray as xr
    from zarr.storage import StorePath

__all__ = ["check_not_read"]


def check_not_read(data: Iterable[xr.Dataset], opened: N5Store, path: str) -> None:
    """Raise if lazy data come from a node that is about to be removed.

    Raises
    ------
    N5UnrepresentableError
        The node would be removed before its data are read (``kind="option"``).
    """
    removed = places_behind(opened.storage, path)
    for ds in data:
        for name, variable in ds.variables.items():
            for place in _places(variable):
                store = place.store
                storage = (
                    store.storage if isinstance(store, N5Store) else open_storage(Place(store))
                )
                if overlap(places_behind(storage, place.path), removed) is not None:
                    message = (
                        f"mode='w' would remove the unread source of {name!r}, {storage}: "
                        f"/{place.path}; load() the data first, or write to another place"
                    )
                    where = f"{opened}: {path or '/'}"
                    raise N5UnrepresentableError(message, kind="option", where=where)


def _places(variable: xr.Variable) -> Iterator[StorePath]:
    """Yield the locations of the Zarr arrays behind a variable, including one of dask."""
    held = getattr(variable, "_data", None)
    graph = getattr(held, "__dask_graph__", None)
    if graph is None:
        yield from _behind(held)
        return
    layers = getattr(graph(), "layers", None) or {"": graph()}
    for layer in layers.values():
        # if a layer is not materialized, the arrays are among its inputs
        tasks = layer.mapping.values() if hasattr(layer, "mapping") else _inputs(layer)
        for task in tasks:
            yield from _behind(getattr(task, "value", task))


def _inputs(layer: Any) -> Iterable[Any]:  # noqa: ANN401 - dask has no types
    task = getattr(layer, "task", None)
    return [*getattr(task, "args", ()), *(literal for literal, _ in getattr(layer, "indices", ()))]


def _behind(held: object) -> Iterator[StorePath]:
    """Yield the locations of the Zarr arrays inside xarray's adapters."""
    while not isinstance(held, ZarrArrayWrapper | StackedViews | zarr.Array) and hasattr(
        held, "array"
    ):
        held = held.array
    if isinstance(held, StackedViews):
        yield from held.places()
    found = getattr(held, "_array", None) if isinstance(held, ZarrArrayWrapper) else held
    if isinstance(found, zarr.Array):
        yield found.store_path
