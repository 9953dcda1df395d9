"""``AffineIndex``: an xarray index that computes positions, for axes too long to keep in memory.

xarray's own ``RangeIndex`` does not suffice: it selects by ``method="nearest"`` only, and its
positions differ in the last bits from ``scale * index + translation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, override

import numpy as np
import pandas as pd
import xarray as xr
from xarray.core.indexing import IndexSelResult
from xarray.indexes import CoordinateTransform, CoordinateTransformIndex, PandasIndex

from n5zarr.container.axes import positions

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import numpy.typing as npt
    from xarray.indexes import Index

    from n5zarr.conventions.model import Axis

__all__ = ["AffineIndex", "coordinate"]


class _Affine(CoordinateTransform):
    """``scale * (first + step * i) + translation``, with ``first`` and ``step`` of a range.

    A slice narrows the range and keeps scale and translation, so that its positions are the same
    to the last bit as those of the whole axis.
    """

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

    def at(self, positions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        indices = self.lattice.start + np.asarray(positions) * self.lattice.step
        with np.errstate(over="ignore"):  # a scale of 1e308 gives infinity
            return np.asarray(self.scale * indices + self.translation, np.float64)

    def index_of(self, labels: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the fractional index of each position."""
        indices = (np.asarray(labels) - self.translation) / self.scale
        return np.asarray((indices - self.lattice.start) / self.lattice.step)

    @override
    def forward(
        self, dim_positions: dict[str, npt.ArrayLike]
    ) -> dict[Hashable, npt.NDArray[np.float64]]:
        return {self.coord_names[0]: self.at(dim_positions[self.dim])}

    @override
    def reverse(
        self, coord_labels: dict[Hashable, npt.ArrayLike]
    ) -> dict[str, npt.NDArray[np.float64]]:
        return {self.dim: self.index_of(coord_labels[self.coord_names[0]])}

    @override
    def equals(self, other: CoordinateTransform, **_: object) -> bool:
        return (
            isinstance(other, _Affine)
            and self.has_grid_of(other)
            and self.lattice == other.lattice
            and self.dims == other.dims
        )

    def has_grid_of(self, other: _Affine) -> bool:
        return (self.scale, self.translation) == (other.scale, other.translation)

    def on(self, lattice: range) -> _Affine:
        return _Affine(self.dim, len(lattice), self.scale, self.translation, lattice)


class AffineIndex(CoordinateTransformIndex):
    """Positions ``scale * i + translation`` along one dimension, computed when needed.

    Slices, single labels, ``isel``, alignment and ``concat`` work on parts of one axis. For other
    operations open the data without ``lazy_coords``.

    Parameters
    ----------
    transform : CoordinateTransform
        See :meth:`along`.
    """

    transform: _Affine

    @classmethod
    def along(cls, dim: Hashable, size: int, scale: float, translation: float) -> Self:
        """Create the index of a whole axis."""
        return cls(_Affine(dim, size, scale, translation, range(size)))

    @property
    def step(self) -> float:
        """The distance of neighbours; negative if positions decrease."""
        return self.transform.scale * self.transform.lattice.step

    @override
    def isel(
        self, indexers: Mapping[Hashable, int | slice | np.ndarray | xr.Variable]
    ) -> AffineIndex | PandasIndex | None:
        wanted = indexers[self._dim]
        if isinstance(wanted, slice):
            return type(self)(self.transform.on(self.transform.lattice[wanted]))
        if isinstance(wanted, xr.Variable) and wanted.dims != (self._dim,):
            return None  # pointwise selection: the result has another dimension
        positions = np.asarray(wanted.values if isinstance(wanted, xr.Variable) else wanted)
        if positions.ndim != 1:
            return None
        if positions.dtype.kind == "b":
            positions = np.flatnonzero(positions)
        size = len(self)
        return PandasIndex(
            self.transform.at(np.where(positions < 0, positions + size, positions)), self._dim
        )

    @override
    def sel(
        self,
        labels: dict[Hashable, slice | xr.Variable | xr.DataArray | npt.ArrayLike],
        method: str | None = None,
        tolerance: float | None = None,
    ) -> IndexSelResult:
        (label,) = labels.values()
        if isinstance(label, slice):
            return IndexSelResult({self._dim: self._between(label)})
        values: np.ndarray = np.asarray(label)
        if values.dtype.kind == "b":
            positions = values
        else:
            positions = self._positions(values.ravel(), method, tolerance).reshape(values.shape)
        if isinstance(label, xr.Variable):
            return IndexSelResult({self._dim: xr.Variable(label.dims, positions)})
        if isinstance(label, xr.DataArray):
            indexer = xr.DataArray(positions, coords=label.coords, dims=label.dims)
            return IndexSelResult({self._dim: indexer})
        return IndexSelResult({self._dim: int(positions) if positions.ndim == 0 else positions})

    def _between(self, label: slice) -> slice:
        size = len(self.transform.lattice)
        start = 0 if label.start is None else self._first_from(label.start)
        stop = size if label.stop is None else self._first_from(label.stop, beyond=True)
        return slice(start, max(start, stop), label.step)

    def _first_from(self, label: float, *, beyond: bool = False) -> int:
        """Return the first element at a label or after it, in the direction of the axis.

        With ``beyond``, the first one after it.
        """
        size = len(self.transform.lattice)
        # one element has no direction; treat it as increasing, as pandas does
        sign = -1 if size > 1 and self.step < 0 else 1
        estimate = float(self.transform.index_of(label))
        # division rounds: start one element early, then step to the exact one
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
        self, values: np.ndarray, method: str | None, tolerance: float | None
    ) -> npt.NDArray[np.intp]:
        size = len(self.transform.lattice)
        if method not in (None, "nearest"):
            message = (
                f"method={method!r}: lazy coordinates support only None and 'nearest'; open with "
                "lazy_coords=False"
            )
            raise ValueError(message)
        exact = self.transform.index_of(values)
        # take the nearest of three, as division rounds; half way the larger one, like pandas
        middle = np.nan_to_num(np.clip(exact, 0, max(size - 1, 0)))
        beside = np.array([[-1], [0], [1]])
        near = np.clip(np.rint(middle).astype(np.intp) + beside, 0, max(size - 1, 0))
        at = self.transform.at(near)
        distance = np.abs(at - values)
        larger = np.where(distance == distance.min(0), at, -np.inf).argmax(0)
        nearest = np.take_along_axis(near, larger[None], 0)[0]
        limit = 0 if method is None else np.inf if tolerance is None else tolerance
        within = distance.min(0) <= limit
        if size == 0 or not within.all():
            missing = values if size == 0 else values[~within]
            message = f"no position {missing.tolist()} along {self._dim!r}"
            raise KeyError(message)
        return np.asarray(nearest)

    @override
    def join(self, other: Self, how: str = "inner") -> Self:
        if how in ("left", "right"):
            return self if how == "left" else other
        if not len(self) or not len(other):
            return self if bool(len(self)) == (how == "outer") else other
        mine, theirs = self.transform.lattice, self._grid_of(other)
        if how == "inner":
            joined = range(max(mine.start, theirs.start), min(mine.stop, theirs.stop), mine.step)
        else:
            joined = range(min(mine.start, theirs.start), max(mine.stop, theirs.stop), mine.step)
            if max(mine.start, theirs.start) > min(mine.stop, theirs.stop):
                message = (
                    f"lazy coordinates cannot join positions along {self._dim!r} across a gap; "
                    "open with lazy_coords=False"
                )
                raise ValueError(message)
        return type(self)(self.transform.on(joined))

    @override
    def reindex_like(self, other: Self) -> dict[Hashable, np.ndarray]:
        if not len(self) or not len(other):
            return {self._dim: np.full(len(other), -1)}
        mine, theirs = self.transform.lattice, self._grid_of(other)
        first = (theirs.start - mine.start) // mine.step
        positions = np.arange(len(theirs)) + first
        positions[(positions < 0) | (positions >= len(mine))] = -1
        return {self._dim: positions}

    def _grid_of(self, other: AffineIndex) -> range:
        """Return the range of another index; raise if its grid differs."""
        mine, theirs = self.transform.lattice, other.transform.lattice
        is_same = self.transform.has_grid_of(other.transform) and mine.step == theirs.step
        if not is_same or mine.step < 0 or (theirs.start - mine.start) % mine.step:
            message = (
                f"lazy coordinates cannot join positions along {self._dim!r} of different grids; "
                "open with lazy_coords=False"
            )
            raise ValueError(message)
        return theirs

    @classmethod
    @override
    def concat(  # type: ignore[override] # xarray takes any index
        cls,
        indexes: Sequence[Self],
        dim: Hashable,
        positions: Iterable[Iterable[int]] | None = None,
    ) -> Self | PandasIndex:
        joined = None if positions is not None else _joined(indexes)
        if joined is not None:
            return cls(joined)
        values = np.concatenate([index.to_pandas_index().to_numpy() for index in indexes])
        if positions is not None:
            values = values[np.argsort(np.concatenate([np.asarray(p) for p in positions]))]
        return PandasIndex(values, dim)

    # PandasIndex.concat reads these three attributes of every index

    @property
    def dim(self) -> str:
        """The dimension."""
        return self._dim

    @property
    def index(self) -> pd.Index:
        """All positions, computed."""
        return self.to_pandas_index()

    @property
    def coord_dtype(self) -> np.dtype[np.float64]:
        """The dtype of positions."""
        return np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self.transform.lattice)

    @override
    def to_pandas_index(self) -> pd.Index:
        return pd.Index(self.transform.at(np.arange(len(self))), name=self._dim)

    def _repr_inline_(self, max_width: int) -> str:
        text = f"AffineIndex(scale={self.transform.scale:g}, size={len(self)})"
        return text if len(text) <= max_width else "AffineIndex"


def _joined(indexes: Sequence[Index]) -> _Affine | None:
    """Join consecutive parts of one axis; None if they are not consecutive."""
    parts = [index.transform for index in indexes if isinstance(index, AffineIndex)]
    if len(parts) < len(indexes):
        return None  # some were selected element by element: these have a PandasIndex
    first = parts[0]
    end = first.lattice.start
    for part in parts:
        lattice = part.lattice
        is_same = first.has_grid_of(part) and lattice.step == first.lattice.step
        if not is_same or lattice.start != end:
            return None
        end += lattice.step * len(lattice)
    return first.on(range(first.lattice.start, end, first.lattice.step))


def coordinate(dim: Hashable, axis: Axis, size: int) -> xr.Variable:
    """Compute the coordinate of an axis.

    Parameters
    ----------
    dim : str
        The dimension of the axis.
    axis : Axis
        Scale, translation and unit, or labels.
    size : int
        The number of elements.
    """
    if axis.labels is not None:
        return xr.Variable((dim,), np.array(axis.labels))
    return xr.Variable((dim,), positions(axis, size), {"units": axis.unit} if axis.unit else {})
