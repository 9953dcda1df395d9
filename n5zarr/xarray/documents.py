"""Open the views that a document beside a container names, such as BigDataViewer's XML."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.format.order import AxisOrder
from n5zarr.rooms import ADDED, Door
from n5zarr.storage.place import Place, place_of
from n5zarr.store.locating import locate

if TYPE_CHECKING:
    import xarray as xr


_OPEN_DESCRIBED: Door[Callable[[Place, str | None, AxisOrder], dict[str, xr.Dataset] | None]] = (
    Door("images", "views as arrays")
)


def is_document(location: str | os.PathLike[str]) -> bool:
    """Return whether a location is a local document that names a container."""
    place = place_of(location)
    try:
        is_named = place.format in ADDED["location"] and not place.is_url
        return is_named and locate(place).document is not None
    except (N5UnrepresentableError, OSError):  # XML of another program; nothing
        return False


def open_views(
    place: Place, group: str | None, axis_order: AxisOrder
) -> dict[str, xr.Dataset] | None:
    """Open the views at and below a group by the document that names them; None of all else."""
    open_described = _OPEN_DESCRIBED.found() if place.format in ADDED["location"] else None
    return None if open_described is None else open_described(place, group, axis_order)


def first_of(
    nodes: Mapping[str, xr.Dataset], drop_variables: str | Iterable[str] | None
) -> xr.Dataset:
    """Return the Dataset of the first node; warn if only the other nodes have data."""
    first, *others = nodes
    if others and not nodes[first].data_vars:
        listed = ", ".join(path.lstrip("/") for path in others if nodes[path].data_vars)
        warnings.warn(
            f"the views are in nodes: open one with group=, or all with xr.open_datatree: {listed}",
            N5Warning,
            stacklevel=3,
        )
    dropped = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
    return nodes[first].drop_vars(dropped, errors="ignore")
