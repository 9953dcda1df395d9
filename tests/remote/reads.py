"""Open and read an array in all ways, also in a process that imports little else."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
import zarr

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr.errors import N5Error

__all__ = ["VALUES", "opened", "read", "read_all"]

VALUES = np.arange(5 * 7 * 11, dtype="u2").reshape(5, 7, 11)
CORNERS = [[0, 0, 0], [2, 3, 5]]
SHAPE = (3, 2, 5)
BOXES = np.stack([VALUES[z : z + 3, y : y + 2, x : x + 5] for z, y, x in CORNERS])


def opened(place: dict[str, Any]) -> dict[str, Any]:
    """Open an array in each way, and read of each."""
    given = dict(place)
    location = given.pop("location")
    store = N5Store(location, **given)
    group: Any = n5zarr.open(location, **given)
    made: dict[str, Any] = {
        "open_array": n5zarr.open_array(location, path="em/s0", **given),
        "open": group["em/s0"],
        "N5Store": zarr.open_array(store, path="em/s0", mode="r"),
        "engine": xr.open_dataset(location, engine="n5", group="em/s0", **given)["s0"],
        "engine, dask": xr.open_dataset(location, engine="n5", group="em/s0", chunks={}, **given)[
            "s0"
        ],
    }
    if "c.n5" in location and "://" in location:
        cached = N5Store(location, cache=CacheOptions(), **given)
        made["cache"] = zarr.open_array(cached, path="em/s0", mode="r")
    return made


def read(name: str, array: Any) -> None:
    """Read an array in each way that it has, and compare."""
    if isinstance(array, xr.DataArray):
        computed = array.compute(scheduler="synchronous")
        np.testing.assert_array_equal(computed.values, VALUES)
        return
    np.testing.assert_array_equal(array[...], VALUES)
    np.testing.assert_array_equal(
        array.vindex[[0, 4], [6, 1], [3, 10]], VALUES[[0, 4], [6, 1], [3, 10]]
    )
    np.testing.assert_array_equal(n5zarr.read_boxes(array, CORNERS, SHAPE), BOXES)


def read_all(arrays: dict[str, Any], place: dict[str, Any], pipe: Any) -> None:
    """Read arrays of the parent, and what is opened anew; tell the name of each that was read."""
    try:
        for name, array in arrays.items():
            read(name, array)
            pipe.send(name)
        for name, array in opened(place).items():
            read(name, array)
            pipe.send(f"{name}, anew")
    except (N5Error, OSError, RuntimeError, TypeError, ValueError) as err:
        pipe.send(repr(err))
        raise
    finally:
        pipe.close()
