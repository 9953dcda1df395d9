"""An index for axes too long to hold: positions are computed, nothing is stored.

xarray's own ``RangeIndex`` selects by ``method="nearest"`` only and computes other last bits than
``scale * index + translation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, override

import numpy as np
import pandas as pd
import xarray as xr
from xarray.indexes import CoordinateTransform, CoordinateTransformIndex, PandasIndex

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy.typing as npt
    from xarray.core.indexing import IndexSelResult

__all__ = ["AffineIndex"]


class _Affine(CoordinateTransform):
    """``scale * (first + step * i) + translation``: slices keep the bits of the whole axis."""

    def __init__(
        self, dim: Hashable, size: int, scale: float, translation: float, lattice: range
    ) -> None:
        super().__init__([dim], {str(dim): size})
        self.scale = scale
        self.translation = translation
        self.lattice = lattice

    @property
    def dim(self) -> str:
        return self.dims[0]

    def at(self, positions: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401 - scalars and arrays
        found = self.lattice.start + np.asarray(positions) * self.lattice.step
        return np.asarray(self.scale * found + self.translation, np.float64)

    @override
    def forward(self, dim_positions: dict[str, Any]) -> dict[Hashable, Any]:
        return {self.coord_names[0]: self.at(dim_positions[self.dim])}

    @override
    def reverse(self, coord_labels: dict[Hashable, Any]) -> dict[str, Any]:
        labels = np.asarray(coord_labels[self.coord_names[0]])
        found = (labels - self.translation) / self.scale
        return {self.dim: (found - self.lattice.start) / self.lattice.step}

    @override
    def equals(self, other: CoordinateTransform, **_: Any) -> bool:
        return (
            isinstance(other, _Affine)
            and self.is_of_grid(other)
            and self.lattice == other.lattice
            and self.dims == other.dims
        )

    def is_of_grid(self, other: _Affine) -> bool:
        return (self.scale, self.translation) == (other.scale, other.translation)

    def on(self, lattice: range) -> _Affine:
        return _Affine(self.dim, len(lattice), self.scale, self.translation, lattice)


class AffineIndex(CoordinateTransformIndex):
    """Positions ``scale * i + translation`` along one dimension, none of them held.

    Slices, single labels, ``isel``, alignment and ``concat`` work on parts of one axis; beyond
    that, open without ``lazy_coords``.

    Parameters
    ----------
    transform : CoordinateTransform
        See :meth:`along`.
    """

    transform: _Affine

    @classmethod
    def along(cls, dim: Hashable, size: int, scale: float, translation: float) -> Self:
        """Make the index of a whole axis."""
        return cls(_Affine(dim, size, scale, translation, range(size)))

    @override
    def isel(
        self, indexers: Mapping[Any, int | slice | np.ndarray | xr.Variable]
    ) -> AffineIndex | PandasIndex | None:
        wanted = indexers[self.transform.dim]
        if isinstance(wanted, slice):
            return type(self)(self.transform.on(self.transform.lattice[wanted]))
        positions = np.asarray(wanted.values if isinstance(wanted, xr.Variable) else wanted)
        if positions.ndim != 1:
            return None
        positions = np.arange(len(self.transform.lattice))[positions]
        dims = wanted.dims if isinstance(wanted, xr.Variable) else (self.transform.dim,)
        return PandasIndex(self.transform.at(positions), dims[0])

    @override
    def sel(
        self,
        labels: dict[Any, Any],
        method: str | None = None,
        tolerance: float | None = None,
    ) -> IndexSelResult:
        from xarray.core.indexing import IndexSelResult  # noqa: PLC0415 - where xarray keeps it

        (label,) = labels.values()
        if isinstance(label, slice):
            return IndexSelResult({self.transform.dim: self._between(label)})
        values = np.asarray(label)
        positions = self._positions(values.ravel(), method, tolerance).reshape(values.shape)
        if isinstance(label, xr.Variable | xr.DataArray):
            return IndexSelResult({self.transform.dim: xr.Variable(label.dims, positions)})
        found = int(positions) if positions.ndim == 0 else positions
        return IndexSelResult({self.transform.dim: found})

    def _between(self, label: slice) -> slice:
        size = len(self.transform.lattice)
        start = 0 if label.start is None else self._first_from(label.start)
        stop = size if label.stop is None else self._first_from(label.stop, beyond=True)
        return slice(start, max(start, stop), label.step)

    def _first_from(self, label: float, *, beyond: bool = False) -> int:
        """Find the first element that lies at a label or, in the direction of the axis, after."""
        size = len(self.transform.lattice)
        # one element has no direction, and is taken to increase, as pandas does
        sign = -1 if size > 1 and self.transform.scale * self.transform.lattice.step < 0 else 1
        estimate = float(self.transform.reverse({self.transform.coord_names[0]: label})[self._dim])
        k = int(np.clip(np.floor(estimate) - 1, 0, size))

        def is_before(i: int) -> bool:
            difference = sign * (float(self.transform.at(i)) - float(label))
            return difference < 0 or (beyond and difference == 0)

        while k > 0 and not is_before(k - 1):
            k -= 1
        while k < size and is_before(k):
            k += 1
        return k

    @property
    def _dim(self) -> str:
        return self.transform.dim

    def _positions(
        self, values: npt.NDArray[Any], method: str | None, tolerance: float | None
    ) -> npt.NDArray[np.intp]:
        size = len(self.transform.lattice)
        if method not in (None, "nearest"):
            message = f"method={method!r}: with lazy_coords only None and 'nearest'"
            raise ValueError(message)
        exact = self.transform.reverse({self.transform.coord_names[0]: values})[self._dim]
        found = np.clip(np.rint(exact), 0, max(size - 1, 0)).astype(np.intp)
        distance = np.abs(self.transform.at(found) - values)
        within = distance <= (0 if method is None else np.inf if tolerance is None else tolerance)
        if size == 0 or not within.all():
            missing = values if size == 0 else values[~within]
            message = f"no position {missing.tolist()} along {self._dim!r}"
            raise KeyError(message)
        return np.asarray(found)

    @override
    def join(self, other: Self, how: str = "inner") -> Self:
        mine, theirs = self.transform.lattice, self._grid_of(other)
        if how in ("left", "right"):
            return self if how == "left" else other
        choose = (max, min) if how == "inner" else (min, max)
        joined = range(
            choose[0](mine.start, theirs.start), choose[1](mine.stop, theirs.stop), mine.step
        )
        return type(self)(self.transform.on(joined))

    @override
    def reindex_like(self, other: Self) -> dict[Hashable, Any]:
        mine, theirs = self.transform.lattice, self._grid_of(other)
        positions = np.arange(len(theirs)) + (theirs.start - mine.start) // mine.step
        positions[(positions < 0) | (positions >= len(mine))] = -1
        return {self._dim: positions}

    def _grid_of(self, other: AffineIndex) -> range:
        """Give what another index has of the same grid."""
        mine, theirs = self.transform.lattice, other.transform.lattice
        same = self.transform.is_of_grid(other.transform) and mine.step == theirs.step
        if not same or mine.step < 0 or (theirs.start - mine.start) % mine.step:
            message = (
                f"the positions along {self._dim!r} are of different grids, which lazy coordinates "
                "cannot join; open with lazy_coords=False"
            )
            raise ValueError(message)
        return theirs

    @classmethod
    @override
    def concat(
        cls,
        indexes: Sequence[Self],
        dim: Hashable,
        positions: Any = None,
    ) -> Any:
        first = indexes[0].transform
        end = first.lattice.start
        for index in indexes:
            lattice = index.transform.lattice
            same = first.is_of_grid(index.transform) and lattice.step == first.lattice.step
            if positions is not None or not same or lattice.start != end:
                values = np.concatenate([i.transform.at(np.arange(len(i))) for i in indexes])
                return PandasIndex(values, dim)
            end += lattice.step * len(lattice)
        return cls(first.on(range(first.lattice.start, end, first.lattice.step)))

    def __len__(self) -> int:
        return len(self.transform.lattice)

    @override
    def to_pandas_index(self) -> pd.Index:
        return pd.Index(self.transform.at(np.arange(len(self))), name=self._dim)

    def _repr_inline_(self, max_width: int) -> str:
        text = f"AffineIndex(scale={self.transform.scale:g}, size={len(self)})"
        return text if len(text) <= max_width else "AffineIndex"
