"""Find the arrays from which data that are not in memory yet will be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import zarr
from xarray.backends.zarr import ZarrArrayWrapper

from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.behind import overlap, places_behind
from n5zarr.storage.opening import open_storage
from n5zarr.store.n5_store import N5Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import xarray as xr

__all__ = ["check_not_read"]


def check_not_read(data: Iterable[xr.Dataset], opened: N5Store, path: str) -> None:
    """Check that data are not read from a node that is going to be removed.

    Raises
    ------
    N5UnrepresentableError
        They are, and would be gone before they are read (``kind="option"``).
    """
    removed = places_behind(opened.storage, path)
    for ds in data:
        for name, variable in ds.variables.items():
            for array in _arrays(variable):
                store = array.store
                storage = store.storage if isinstance(store, N5Store) else open_storage(store)
                if overlap(places_behind(storage, array.path), removed) is not None:
                    message = (
                        f"mode='w' removes what {name!r} is still to be read from, {storage}: "
                        f"/{array.path}; load() the data first, or write to another place"
                    )
                    where = f"{opened}: {path or '/'}"
                    raise N5UnrepresentableError(message, kind="option", where=where)


def _arrays(variable: xr.Variable) -> Iterator[zarr.Array[Any]]:
    """Yield the arrays of Zarr behind a variable, also behind one of dask."""
    held = getattr(variable, "_data", None)
    graph = getattr(held, "__dask_graph__", None)
    if graph is None:
        yield from _behind(held)
        return
    layers = getattr(graph(), "layers", None) or {"": graph()}
    for layer in layers.values():
        # of a layer that is not written out, the arrays are among its inputs
        tasks = layer.mapping.values() if hasattr(layer, "mapping") else _inputs(layer)
        for task in tasks:
            yield from _behind(getattr(task, "value", task))


def _inputs(layer: Any) -> Iterable[Any]:  # noqa: ANN401 - dask has no types
    task = getattr(layer, "task", None)
    return [*getattr(task, "args", ()), *(literal for literal, _ in getattr(layer, "indices", ()))]


def _behind(held: object) -> Iterator[zarr.Array[Any]]:
    """Yield the array of Zarr that xarray's adapters hold."""
    while not isinstance(held, ZarrArrayWrapper | zarr.Array) and hasattr(held, "array"):
        held = held.array
    found = getattr(held, "_array", None) if isinstance(held, ZarrArrayWrapper) else held
    if isinstance(found, zarr.Array):
        yield found
