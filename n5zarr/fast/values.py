"""Values to write, as elements of a box or a selection."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from n5zarr.arrays.box import Box


def elements_for(value: object, box: Box, dtype: np.dtype) -> np.ndarray | None:
    """Return the elements of a box; None unless the value is plain numbers."""
    if np.isscalar(value) and not isinstance(value, str | bytes):
        return np.broadcast_to(np.asanyarray(value, dtype), box.shape)
    value = np.asarray(value) if isinstance(value, list | tuple) else value
    if not isinstance(value, np.ndarray) or type(value) not in (np.ndarray, np.memmap):
        return None
    value = _of_shape(
        value, tuple(n for axis, n in enumerate(box.shape) if axis not in box.dropped)
    )
    if value.dtype.kind not in "biuf":
        return None
    same: np.ndarray = value if value.dtype == dtype else value.astype(dtype, order="A")
    return same.reshape(box.shape)


def fitting(value: npt.ArrayLike, shape: tuple[int, ...] | None) -> npt.ArrayLike:
    """Return a value of the shape of a selection; a scalar, or one for an unknown shape, as it is.

    Raises
    ------
    ValueError
        The value has another shape.
    """
    return value if shape is None or not np.ndim(value) else _of_shape(np.asanyarray(value), shape)


def _of_shape(value: np.ndarray, expected: tuple[int, ...]) -> np.ndarray:
    """Return a value of the expected shape, without axes of 1 before it, repeated as numpy does.

    zarr takes from other values what each chunk covers, and leaves out the rest.

    Raises
    ------
    ValueError
        The value has another shape.
    """
    if value.shape == expected:
        return value
    extra = value.ndim - len(expected)
    if extra > 0 and max(value.shape[:extra]) == 1:
        return _of_shape(value[(0,) * extra], expected)
    with suppress(ValueError):
        return np.broadcast_to(value, expected)
    is_reversed = value.shape == expected[::-1]
    raise ValueError(
        f"expected a value of shape {expected}, got {value.shape}"
        + ", its axes in reverse: C order is z, y, x, the order of N5's dimensions x, y, z; "
        "value.T has the other one" * is_reversed
    )


def shape_of(selection: object, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of an orthogonal selection: integers, slices, lists, masks of an axis.

    Examples
    --------
    >>> shape_of((0, slice(1, None, 2), [True, False, True]), (2, 7, 3))
    (3, 2)
    """
    parts = list(selection) if isinstance(selection, tuple) else [selection]
    n_missing = len(shape) - sum(part is not Ellipsis for part in parts)
    at = next((k for k, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts[at : at + 1] = [slice(None)] * n_missing
    if len(parts) != len(shape):
        return None
    each = zip(parts, shape, strict=True)
    return tuple(_extent(part, n) for part, n in each if isinstance(part, slice) or np.ndim(part))  # type: ignore[arg-type]


def _extent(part: object, n: int) -> int:
    if isinstance(part, slice):
        return len(range(*part.indices(n)))
    found = np.asarray(part)
    return int(np.count_nonzero(found)) if found.dtype == bool else found.size
