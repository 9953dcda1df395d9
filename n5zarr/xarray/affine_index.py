"""Compute positions when they are needed, for axes too long to keep in memory: ``AffineIndex``.

xarray's own ``RangeIndex`` does not suffice: after a slice, its positions differ in the last bits
from ``scale * index + translation``, it selects by ``method="nearest"`` only, and does not align.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, override

import numpy as np
import pandas as pd
import xarray as xr
from xarray import IndexSelResult
from xarray.indexes import CoordinateTransform, CoordinateTransformIndex, PandasIndex

from n5zarr.container.axes import positions

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from n5zarr.conventions.model import Axis

__all__ = ["AffineIndex", "coordinate"]

_NEIGHBOURS = np.arange(-2, 4)
"""Elements around a rounded-down index: division rounds, and pandas compares with neighbours."""


class _Affine(CoordinateTransform):
    """Compute ``scale * elements[i] + translation``; elements are numbered along the whole axis.

    A slice narrows the elements and keeps scale and translation, so that its positions are the
    same to the last bit as those of the whole axis.
    """

    def __init__(
        self, dim: Hashable, scale: float, translation: float, elements: pd.RangeIndex
    ) -> None:
        super().__init__([dim], {str(dim): len(elements)})
        self.scale = scale
        self.translation = translation
        self.elements = elements

    def at(self, indices: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Compute the positions of elements of this part."""
        elements = self.elements.start + np.asarray(indices) * self.elements.step
        with np.errstate(over="ignore"):  # a scale of 1e308 gives infinity
            return np.asarray(self.scale * elements + self.translation, np.float64)

    def index_of(self, labels: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Compute the fractional index of each position."""
        elements = (np.asarray(labels) - self.translation) / self.scale
        return np.asarray((elements - self.elements.start) / self.elements.step)

    @override
    def forward(
        self, dim_positions: dict[str, npt.ArrayLike]
    ) -> dict[Hashable, npt.NDArray[np.float64]]:
        return {self.coord_names[0]: self.at(dim_positions[self.dims[0]])}

    @override
    def reverse(
        self, coord_labels: dict[Hashable, npt.ArrayLike]
    ) -> dict[str, npt.NDArray[np.float64]]:
        return {self.dims[0]: self.index_of(coord_labels[self.coord_names[0]])}

    @override
    def equals(self, other: CoordinateTransform, **_: object) -> bool:
        return (
            isinstance(other, _Affine)
            and self.has_grid_of(other)
            and self.elements.equals(other.elements)
            and self.dims == other.dims
        )

    def has_grid_of(self, other: _Affine) -> bool:
        return (self.scale, self.translation) == (other.scale, other.translation)


class AffineIndex(CoordinateTransformIndex):
    """Compute positions ``scale * i + translation`` along one dimension when they are needed.

    Selection works as with ordinary coordinates; alignment and ``concat`` work on parts of one
    axis. For other operations open the data without ``lazy_coords``.

    Parameters
    ----------
    transform : CoordinateTransform
        See :meth:`along`.
    """

    transform: _Affine

    @classmethod
    def along(cls, dim: Hashable, size: int, scale: float, translation: float) -> Self:
        """Create the index of a whole axis."""
        return cls(_Affine(dim, scale, translation, pd.RangeIndex(size)))

    @property
    def step(self) -> float:
        """Return the distance of neighbours; negative if positions decrease."""
        return self.transform.scale * self.transform.elements.step

    def _part(self, elements: pd.RangeIndex) -> Self:
        """Make the index of other elements of the same axis."""
        whole = self.transform
        return type(self)(_Affine(self.dim, whole.scale, whole.translation, elements))

    @override
    def isel(
        self, indexers: Mapping[Hashable, int | slice | np.ndarray | xr.Variable]
    ) -> AffineIndex | PandasIndex | None:
        wanted: Any = indexers[self.dim]
        if isinstance(wanted, slice):
            return self._part(self.transform.elements[wanted])
        if isinstance(wanted, xr.Variable) and wanted.dims != (self.dim,):
            return None  # pointwise selection: the result has another dimension
        indices = np.asarray(getattr(wanted, "values", wanted))
        if indices.ndim != 1:
            return None
        indices = np.flatnonzero(indices) if indices.dtype.kind == "b" else indices
        indices = np.where(indices < 0, indices + len(self.transform.elements), indices)
        return PandasIndex(self.transform.at(indices), self.dim)

    @override
    def sel(
        self,
        labels: dict[Hashable, Any],
        method: str | None = None,
        tolerance: float | None = None,
    ) -> IndexSelResult:
        # pandas chooses among the elements that can be the result
        ((name, label),) = labels.items()
        wanted, step = label, None
        if isinstance(label, slice):
            ends, step = (label.start, label.stop), label.step
            label = slice(*(ends if step is None or step > 0 else ends[::-1]))
            wanted = [end for end in ends if end is not None]
        elif np.asarray(label).dtype.kind == "b":
            wanted = []
        size = len(self.transform.elements)
        indices = np.nan_to_num(np.floor(self.transform.index_of(wanted)))
        indices = np.unique(np.clip(indices, 0, size - 1).astype(np.intp))
        near = np.append(indices[:, None] + _NEIGHBOURS, [0, size - 1])
        near = np.unique(near[(near >= 0) & (near < size)])
        found = PandasIndex(self.transform.at(near), self.dim).sel({name: label}, method, tolerance)
        chosen: Any = found.dim_indexers[self.dim]
        if isinstance(chosen, slice):
            start, stop, _ = chosen.indices(len(near))
            if start >= stop:
                return IndexSelResult({self.dim: slice(0)})
            first, last = int(near[start]), int(near[stop - 1])
            if step is not None and step < 0:
                return IndexSelResult({self.dim: slice(last, first - 1 if first else None, step)})
            return IndexSelResult({self.dim: slice(first, last + 1, step)})
        if np.asarray(chosen).dtype.kind == "b":
            return found
        at = near[np.asarray(chosen)]
        is_named = isinstance(chosen, xr.Variable | xr.DataArray)
        return IndexSelResult({self.dim: chosen.copy(data=at) if is_named else at})

    @override
    def join(self, other: Self, how: str = "inner") -> Self:
        mine, theirs = self.transform.elements, self._elements_of(other)
        joined = mine.intersection(theirs) if how == "inner" else mine.union(theirs)
        if isinstance(joined, pd.RangeIndex):
            return self._part(joined)
        raise ValueError(
            f"lazy coordinates cannot join positions along {self.dim!r} across a gap; "
            "open with lazy_coords=False"
        )

    @override
    def reindex_like(self, other: Self) -> dict[Hashable, np.ndarray]:
        return {self.dim: self.transform.elements.get_indexer(self._elements_of(other))}

    def _elements_of(self, other: AffineIndex) -> pd.RangeIndex:
        """Return the elements of another index; raise if its grid differs."""
        if not self.transform.has_grid_of(other.transform):
            raise ValueError(
                f"lazy coordinates cannot join positions along {self.dim!r} of different grids; "
                "open with lazy_coords=False"
            )
        return other.transform.elements

    @classmethod
    @override
    def concat(  # type: ignore[override] # xarray takes any index
        cls,
        indexes: Sequence[Any],
        dim: Hashable,
        positions: Iterable[Iterable[int]] | None = None,
    ) -> Self | PandasIndex:
        first: Self = indexes[0]
        if positions is None and all(
            isinstance(index, AffineIndex) and index.transform.has_grid_of(first.transform)
            for index in indexes  # those selected element by element are pandas'
        ):
            joined = first.transform.elements.append([i.transform.elements for i in indexes[1:]])
            if isinstance(joined, pd.RangeIndex):
                return first._part(joined)
        values = np.concatenate([index.to_pandas_index().to_numpy() for index in indexes])
        if positions is not None:
            values = values[np.argsort(np.concatenate([np.asarray(p) for p in positions]))]
        return PandasIndex(values, dim)

    # PandasIndex.concat reads these three attributes of every index

    @property
    def dim(self) -> str:
        """Name the dimension."""
        return self.transform.dims[0]

    @property
    def index(self) -> pd.Index:
        """Compute all positions."""
        return self.to_pandas_index()

    @property
    def coord_dtype(self) -> np.dtype[np.float64]:
        """Return the dtype of positions."""
        return np.dtype(np.float64)

    @override
    def to_pandas_index(self) -> pd.Index:
        indices = np.arange(len(self.transform.elements))
        return pd.Index(self.transform.at(indices), name=self.dim)

    def _repr_inline_(self, max_width: int) -> str:
        text = f"AffineIndex(scale={self.transform.scale:g}, size={len(self.transform.elements)})"
        return text if len(text) <= max_width else "AffineIndex"


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
