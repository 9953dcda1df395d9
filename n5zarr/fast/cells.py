"""Cells of elements that become one element each: of pyramids."""

from __future__ import annotations

import math
from array import array as packed
from typing import NamedTuple

import numpy as np

from n5zarr.fast.native import load_kernel
from n5zarr.format.order import AxisOrder, from_presented

_kernel = load_kernel()


class Cells(NamedTuple):
    """Cells of elements that become one each; cells at the end of an axis may be smaller.

    Parameters
    ----------
    factors : tuple of int
        Elements of a cell along each axis.
    method : str
        ``"mean"``, halves rounded to the even integer, or ``"mode"``, of equally frequent elements
        the smallest.
    """

    factors: tuple[int, ...]
    method: str

    def can_do(self, dtype: np.dtype) -> bool:
        """Whether the kernel has this method for these elements."""
        if _kernel is None or not dtype.isnative:
            return False
        match self.method:
            case "mean":
                n_most, is_known = _kernel.MAX_CELL, dtype.kind in "iu" and dtype.itemsize < 8
            case "mode":
                n_most, is_known = _kernel.MAX_SORTED, dtype.kind in "iu"
            case _:
                return False
        return is_known and math.prod(self.factors) <= n_most

    def combine(self, array: np.ndarray) -> np.ndarray:
        """Combine the cells of an array, which is not empty."""
        shape = [-(-n // f) for n, f in zip(array.shape, self.factors, strict=True)]
        out = np.empty(shape, array.dtype)
        _kernel.combine(array, out, packed("q", self.factors), self._number)
        return out

    def numbers(self, order: AxisOrder) -> tuple[packed[int], int]:
        """Return what the kernel takes, in N5 order."""
        return packed("q", from_presented(self.factors, order)), self._number

    @property
    def _number(self) -> int:
        """Number of the method in the kernel."""
        return int(getattr(_kernel, self.method.upper()))
