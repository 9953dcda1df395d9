"""Downsample arrays: combine each cell of elements into one element.

A cell has as many elements along each axis as the factor says; cells at the end of an axis may have
fewer. ``mean``, ``mode``, ``median`` and ``stride`` give what tensorstore's ``downsample`` gives:

``mean``
    Integers are rounded, halves to the even one; 64 bits are summed exactly. Of bool, the
    more frequent one, False of equally frequent ones.
``mode``
    The most frequent element, of equally frequent ones the smallest; for labels.
``median``
    The middle element; of two the smaller one, so that it is one of the elements.
``stride``
    The first element.
``gaussian``
    The mean of the neighbourhood with the weights of a Gaussian around the middle of the cell, with
    a standard deviation of a third of the factor, as scikit-image's ``pyramid_reduce``; computed in
    float32 for integers of up to 16 bits and float32, else in float64. Beyond the end of an axis
    nothing is weighed.

NaN is the result of mean and gaussian where one is among the elements; for mode and median it is
the largest number, and each one is different from all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Literal, Protocol, cast, get_args

import numpy as np

from n5zarr.arrays.boxes import boxes
from n5zarr.container.options import require
from n5zarr.rooms import Door

type Method = Literal["mean", "mode", "median", "gaussian", "stride", "multiset"]

METHODS: tuple[Method, ...] = get_args(Method.__value__)[:-1]
"""The methods for numbers; ``"multiset"`` is the one for label multisets."""

_SLAB = 2**18  # elements at a time, which stay in the cache of a core: 1.6 times as fast as 2**21
_N_SIGMA = 4  # like scipy.ndimage
_LARGE = 128  # elements of a cell: from there on np.sort is faster than a network


def choose_method(given: str, dtype: np.dtype, *, is_multiset: bool = False) -> Method:
    """Choose the method of downsampling; ``"auto"`` chooses by the data type.

    Label multisets have one method.

    Integers of 32 and 64 bits are labels nearly always, and the mean of two labels is a third one.

    Raises
    ------
    N5UnrepresentableError
        There is no such method (``kind="option"``).

    Examples
    --------
    >>> choose_method("auto", np.dtype("u8")), choose_method("auto", np.dtype("u2"))
    ('mode', 'mean')
    """
    if is_multiset:
        message = f"method: expected auto or multiset for label multisets, got {given!r}"
        require(given in ("auto", "multiset"), message)
        return "multiset"
    if given == "auto":
        is_label = dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize >= 4)
        return "mode" if is_label else "mean"
    expected = f"auto, {', '.join(METHODS)}"
    require(given in METHODS, f"method: expected one of {expected}, got {given!r}")
    return cast("Method", given)


def halo(method: Method, factors: Sequence[int]) -> tuple[int, ...]:
    """Count the elements on both sides of a cell that its element depends on, along each axis.

    Examples
    --------
    >>> halo("mean", (2, 2)), halo("gaussian", (1, 2))
    ((0, 0), (0, 2))
    """
    if method != "gaussian":
        return (0,) * len(factors)
    return tuple(math.floor(_N_SIGMA * f / 3 + 0.5 - (f - 1) / 2) if f > 1 else 0 for f in factors)


class _Cells(Protocol):
    """Combines the elements of cells in compiled code."""

    def can_do(self, dtype: np.dtype) -> bool:
        """Whether it combines such elements."""

    def combine(self, array: np.ndarray) -> np.ndarray:
        """Return one element for each cell."""


_CELLS: Door[Callable[[tuple[int, ...], str], _Cells]] = Door("speed", "cells")


# infinities become NaN or stay, without a warning for each block
@np.errstate(invalid="ignore", over="ignore")
def downsample(
    array: np.ndarray,
    factors: Sequence[int],
    method: Method,
    around: Sequence[tuple[int, int]] | None = None,
) -> np.ndarray:
    """Combine each cell of elements into one: mean, mode, median, Gaussian, or one of them.

    Parameters
    ----------
    array : numpy.ndarray
        Numbers or bool, of at least one axis.
    factors : sequence of int
        Elements of a cell along each axis.
    method : {"mean", "mode", "median", "gaussian", "stride"}
        How to combine the elements of a cell, see the module.
    around : sequence of (int, int), optional
        How many elements at the begin and at the end of each axis are no part of cells, but may be
        weighed.

    Returns
    -------
    numpy.ndarray
        New, of the same dtype; along each axis the number of elements that are parts of cells,
        divided by the factor and rounded up.

    Examples
    --------
    >>> downsample(np.array([[1, 2, 7], [3, 4, 9]]), (2, 2), "mean")
    array([[2, 8]])
    """
    if method == "gaussian":
        return _gaussian(array, factors, around or [(0, 0)] * array.ndim)
    if around is not None:
        array = array[tuple(slice(n, array.shape[i] - m) for i, (n, m) in enumerate(around))]
    if method == "stride":
        return array[tuple(slice(None, None, f) for f in factors)].copy()
    if array.dtype.kind == "b":  # the mode is all of them
        return downsample(array.view("u1"), factors, "mode").view(array.dtype)
    fast = _CELLS.found()
    whole = fast and fast(tuple(factors), method)
    if whole is not None and whole.can_do(array.dtype) and array.size:
        return whole.combine(array)
    combine = _COMBINE[method]
    out = np.empty([-(-n // f) for n, f in zip(array.shape, factors, strict=True)], array.dtype)
    for cells, cell in _alike(array.shape, factors):
        inside, part = array[tuple(s for s, _ in cells)], out[tuple(s for _, s in cells)]
        for box in _slabs(part.shape, cell):
            source = tuple(slice(s.start * c, s.stop * c) for s, c in zip(box, cell, strict=True))
            part[box] = combine(inside[source], cell)
    return out


def _alike(
    shape: Sequence[int], factors: Sequence[int]
) -> Iterator[tuple[tuple[tuple[slice, slice], ...], tuple[int, ...]]]:
    """Split an array into parts with cells of the same extent; cells at ends may be smaller.

    Yields
    ------
    tuple of (slice, slice), tuple of int
        For each axis the part of the array and that of the result; the extent of the cells.
    """
    axes = []
    for n, f in zip(shape, factors, strict=True):
        whole, rest = divmod(n, f)
        full = ((slice(0, whole * f), slice(0, whole)), f)
        last = ((slice(whole * f, n), slice(whole, whole + 1)), rest)
        axes.append([part for part, n in ((full, whole), (last, rest)) if n])
    for parts in product(*axes):
        yield tuple(part for part, _ in parts), tuple(size for _, size in parts)


def _slabs(shape: tuple[int, ...], cell: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Split the result so that each part needs few elements of the source."""
    step = list(shape)
    for axis, n in enumerate(shape):
        step[axis] = max(1, n * _SLAB // max(math.prod(step) * math.prod(cell), 1))
        if step[axis] > 1:
            step[axis] = min(step[axis], n)
            break
    return boxes(shape, step)


# ------------------------------------------------- arrays of whole cells: one element for each


def _mean(array: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    n = math.prod(cell)
    if array.dtype.kind == "f":
        wide = np.promote_types(array.dtype, "f4")  # the sum of float16 may be too large for it
        return np.asarray(_sum(array, cell, wide) / wide.type(n), array.dtype)
    if array.dtype.itemsize == 8:
        return _mean_of_64_bits(array, cell)
    largest = n * (np.iinfo(array.dtype).max + 1) + n
    kind = array.dtype.kind
    room = next(b for b in (2, 4, 8) if largest <= np.iinfo(f"{kind}{b}").max)
    total = _sum(array, cell, np.dtype(f"{kind}{room}"))
    return _divided(total, n).astype(array.dtype)


def _sum(array: np.ndarray, cell: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Sum each cell; the fastest axis comes last, when the array is smallest."""
    total = array.astype(dtype, copy=False)
    for axis, size in enumerate(cell):
        before = (slice(None),) * axis
        first, *others = (total[(*before, slice(i, None, size))] for i in range(size))
        for other in others:
            first = first + other
        total = first
    return total


def _divided(total: np.ndarray, n: int) -> np.ndarray:
    """Divide integers, and round halves to the even one."""
    if n == 1:
        return total
    one = total.dtype.type(1)
    half, divisor = total.dtype.type((n - 1) // 2), total.dtype.type(n)
    raised = total + half if n % 2 else total + half + ((total // divisor) & one)
    return np.asarray(raised // divisor)


def _mean_of_64_bits(array: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    """Sum the upper and the lower half of each integer, as their sum has more than 64 bits."""
    n = math.prod(cell)
    word = array.dtype.type
    upper = _sum(array >> word(32), cell, array.dtype)
    lower = _sum(array & word(2**32 - 1), cell, array.dtype)
    quotient, rest = np.divmod(upper, word(n))
    low = (rest << word(32)) + lower  # below n * 2**33
    # the even one is the same with and without the upper half, which is a multiple of 2**32
    return np.asarray((quotient << word(32)) + _divided(low, n))


def _mode(array: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    if math.prod(cell) > _LARGE:
        return _mode_of_large(array, cell)
    rows = _rows(array, cell)
    best = rows[0]
    is_mixed = np.zeros(best.shape, bool)
    for row in rows[1:]:
        is_mixed |= row != best
    mixed = np.flatnonzero(is_mixed)
    if 4 * len(mixed) > best.size:
        return _most_frequent(_sorted(rows))
    # labels: most cells have a single label, and need no sorting
    best.reshape(-1)[mixed] = _most_frequent(_sorted([row.reshape(-1)[mixed] for row in rows]))
    return best


def _most_frequent(ordered: Sequence[np.ndarray]) -> np.ndarray:
    """Return the first element of the longest run of equal elements in each sorted cell."""
    best = ordered[0].copy()
    run = np.ones(best.shape, np.min_scalar_type(len(ordered)))
    most = run.copy()
    for smaller, element in pairwise(ordered):
        run *= smaller == element
        run += run.dtype.type(1)
        np.copyto(best, element, where=run > most)
        np.maximum(most, run, out=most)
    return best


def _mode_of_large(array: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    """Sort each cell, and return the first element of its longest run of equal elements."""
    ordered = _cells_sorted(array, cell)
    number = np.arange(ordered.shape[-1], dtype=np.int32)
    is_first = np.ones(ordered.shape, bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=is_first[..., 1:])
    run = number - np.maximum.accumulate(np.where(is_first, number, 0), axis=-1)
    longest = np.argmax(run, axis=-1)[..., None]
    return np.take_along_axis(ordered, longest, axis=-1)[..., 0]


def _median(array: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    n = math.prod(cell)
    if n > _LARGE:
        return _cells_sorted(array, cell)[..., (n - 1) // 2]
    return _sorted(_rows(array, cell))[(n - 1) // 2]


def _cells_sorted(array: np.ndarray, cell: tuple[int, ...]) -> np.ndarray:
    """Copy the elements of each cell to a new last axis, sorted, with NaN last."""
    pairs = [(n // c, c) for n, c in zip(array.shape, cell, strict=True)]
    cells = array.reshape([n for pair in pairs for n in pair])
    cells = cells.transpose(*range(0, cells.ndim, 2), *range(1, cells.ndim, 2))
    return np.sort(cells.reshape(*(n for n, _ in pairs), math.prod(cell)), axis=-1)


def _rows(array: np.ndarray, cell: tuple[int, ...]) -> list[np.ndarray]:
    """Return one array for each place in a cell, with the elements of all cells at this place."""
    return [
        array[tuple(slice(o, None, c) for o, c in zip(offsets, cell, strict=True))].copy()
        for offsets in product(*map(range, cell))
    ]


def _sorted(rows: list[np.ndarray]) -> list[np.ndarray]:
    """Sort each cell, with NaN last; the first array gets the smallest elements of all cells.

    By Batcher's network, with numpy on all cells at once: 4 to 10 times as fast as ``np.sort``,
    which sorts one cell after the other. The memory of the rows is used.
    """
    spare = np.empty_like(rows[0])
    for i, j in _comparators(len(rows)):
        np.fmin(rows[i], rows[j], out=spare)
        np.maximum(rows[i], rows[j], out=rows[j])  # NaN, if there is one
        rows[i], spare = spare, rows[i]
    return rows


def _comparators(n: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs that Batcher's odd-even mergesort compares, for any number of elements."""
    p = 1
    while p < n:
        k = p
        while k:
            for j in range(k % p, n - k, 2 * k):
                for i in range(j, j + min(k, n - j - k)):
                    if i // (2 * p) == (i + k) // (2 * p):
                        yield i, i + k
            k //= 2
        p *= 2


_COMBINE: dict[str, Callable[[np.ndarray, tuple[int, ...]], np.ndarray]] = {
    "mean": _mean,
    "mode": _mode,
    "median": _median,
}


# ------------------------------------------------------------------------------------- gaussian


def _gaussian(
    array: np.ndarray, factors: Sequence[int], around: Sequence[tuple[int, int]]
) -> np.ndarray:
    dtype = array.dtype
    weighed = array.astype("f4" if dtype.itemsize <= 2 or dtype == "f4" else "f8")
    reach = halo("gaussian", factors)
    for axis, (f, h, (begin, end)) in enumerate(zip(factors, reach, around, strict=True)):
        weighed = _weighed(weighed, axis, f, h, (begin, end))
    if dtype.kind == "f":
        return weighed.astype(dtype)
    if dtype.kind == "b":
        return weighed > 0.5
    limits = np.iinfo(dtype)
    rounded = np.rint(weighed)
    # float64 has no 2**64 - 1: the next smaller number that it has
    top = np.nextafter(float(limits.max), 0) if dtype.itemsize == 8 else limits.max
    return rounded.clip(limits.min, top).astype(dtype)


def _weighed(
    array: np.ndarray, axis: int, factor: int, reach: int, around: tuple[int, int]
) -> np.ndarray:
    """Weigh the neighbourhood of each cell along one axis."""
    begin, end = around
    n = array.shape[axis]
    if factor == 1:
        inside = (slice(None),) * axis + (slice(begin, n - end),)
        return array[inside]
    n_cells = -(-(n - begin - end) // factor)
    along = np.moveaxis(array, axis, 0)
    total = np.zeros((n_cells, *along.shape[1:]), array.dtype)
    weights = np.zeros(n_cells)
    # a factor may be larger than the array
    for i in range(max(-reach, -begin - n), min(factor + reach, n)):
        weight = math.exp(-(((i - (factor - 1) / 2) / (factor / 3)) ** 2) / 2)
        # the cells whose element i, counted from their first one, is in the array
        first = max(0, -((begin + i) // factor))
        last = min(n_cells, -(-(n - begin - i) // factor))
        elements = along[begin + i + first * factor : begin + i + last * factor : factor]
        total[first:last] += array.dtype.type(weight) * elements[: last - first]
        weights[first:last] += weight
    total /= weights.astype(array.dtype).reshape(-1, *[1] * (array.ndim - 1))
    return np.moveaxis(total, 0, axis)
