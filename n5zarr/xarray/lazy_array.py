"""Present an N5 array as xarray's lazy array."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

import numpy as np
from xarray.backends.zarr import ZarrArrayWrapper

from n5zarr.arrays.array import N5Array

if TYPE_CHECKING:
    import numpy.typing as npt
    from zarr.types import AnyArray

__all__ = ["LazyArray"]


class LazyArray(ZarrArrayWrapper):
    """Read like xarray's lazy array, but do not search the codecs of numbers for text."""

    __slots__ = ()

    def __init__(self, array: AnyArray) -> None:
        if isinstance(array, N5Array):
            self._array, self.shape, self.dtype = array, array.shape, array.dtype
        else:
            super().__init__(array)  # type: ignore[no-untyped-call] # xarray's
        if self.dtype.kind == "T":  # xarray presents text as objects, and would load all of it
            self.dtype = np.dtype(object)

    @override
    def __getitem__(self, key: object) -> object:
        return self._shown(super().__getitem__(key))  # type: ignore[no-untyped-call] # xarray's

    @override
    async def async_getitem(self, key: object) -> npt.ArrayLike:
        return self._shown(await super().async_getitem(key))  # type: ignore[no-untyped-call]

    def _shown(self, value: npt.ArrayLike) -> npt.ArrayLike:
        return np.asarray(value, self.dtype) if self.dtype.kind == "O" else value
