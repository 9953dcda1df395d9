"""Compare the values of two arrays, box by box."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import batched, chain, islice, product
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from n5zarr.arrays.boxes import BoxSlices, TouchedBoxes, box_shape, boxes, least_box
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_boxes
from n5zarr.container.options import require
from n5zarr.images.source import Values
from n5zarr.tools.jobs.nodes import for_reading
from n5zarr.tools.jobs.run import MAX_MEMORY, Progress, RunOptions, Scheduler

_SHOWN = 5  # elements that differ
_TOGETHER = 64  # boxes of a task
_BOX_BYTES = 2**23  # of one array; a worker holds both, and its results


class Readable(Values, Protocol):
    """An array of zarr, h5py, tensorstore or numpy, which can be read box by box."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementDifference:
    """An element that differs.

    Parameters
    ----------
    position : tuple of int
        Where it is, in elements, in the order of the arrays.
    first, second : object
        Its value in either array, as a value of Python.
    """

    position: tuple[int, ...]
    first: object
    second: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayDifference:
    """The differences between the values of two arrays.

    Parameters
    ----------
    n_elements : int
        Number of elements that were compared.
    n_differing : int
        Number of elements that differ.
    elements : tuple of ElementDifference
        The first differing elements, in C order.
    largest : int, float or None
        The largest absolute difference; exact for integers of one type. None if the elements are
        not numbers, or if one element of each differing pair is NaN.
    """

    n_elements: int
    n_differing: int
    elements: tuple[ElementDifference, ...]
    largest: float | None


def compare_arrays(  # noqa: PLR0913 - what all long runs take, beside the arrays
    first: Readable,
    second: Readable,
    *,
    tolerance: float = 0,
    max_memory: int = MAX_MEMORY,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> ArrayDifference | None:
    """Compare the values of two arrays of the same shape.

    NaN equals NaN, and 0.0 equals -0.0. Arrays of different types are equal if their values are.

    Parameters
    ----------
    first, second : array_like
        Arrays of the same shape, which support ``array[box]``. If they have ``chunks``, boxes are
        whole chunks of the first and, as far as memory allows, of the second array.
    tolerance : float, optional
        Absolute differences of numbers up to this value are ignored.
    max_memory : int, optional
        Bytes of elements that all workers together may hold; each reads at least one chunk.
    scheduler, n_workers, progress : optional
        ``"threads"``, ``"processes"``, or dask's address or client; number of workers; a callable
        that takes the name of a stage, the bytes done and the bytes to do.

    Returns
    -------
    ArrayDifference or None
        None if the arrays are equal.

    Raises
    ------
    N5UnrepresentableError
        The shapes differ, or an argument is no array (``kind="option"``).

    Examples
    --------
    >>> found = compare_arrays(np.arange(7), np.array([0, 1, 2, 9, 4, 5, 0]))
    >>> found.n_differing, found.elements[0].position, found.largest
    (2, (3,), 6)
    """
    for name, array in (("first", first), ("second", second)):
        require(
            hasattr(array, "shape") and hasattr(array, "dtype"),
            f"{name}: expected an array, got {array!r:.80}; n5zarr.compare takes locations, and "
            "n5zarr.open opens one",
        )
    run = RunOptions(scheduler, n_workers, progress)
    return compare_each([(first, second)], run, tolerance, max_memory)[0]


def compare_each(
    pairs: Sequence[tuple[Readable, Readable]],
    run: RunOptions,
    tolerance: float = 0,
    max_memory: int = MAX_MEMORY,
) -> list[ArrayDifference | None]:
    """Compare the values of many pairs of arrays in one run; see :func:`compare_arrays`."""
    for first, second in pairs:
        require(
            tuple(first.shape) == tuple(second.shape),
            f"expected arrays of one shape, got {first.shape} and {second.shape}",
        )
    pairs = [(for_reading(first), for_reading(second)) for first, second in pairs]
    merged: list[ArrayDifference | None] = [None] * len(pairs)
    total = sum(math.prod(first.shape) * _item_size(first) for first, _ in pairs)
    # a worker holds a box of either array, and as much for their differences
    max_bytes = min(_BOX_BYTES, run.memory_of_worker(max_memory) // 4)
    tasks = chain.from_iterable(_tasks(n, *pair, max_bytes) for n, pair in enumerate(pairs))
    for task, found in run.each(partial(_compare_task, tolerance), tasks, "compare", total):
        merged[task.number] = _merge(merged[task.number], found)
    return [
        None if found is None else replace(found, n_elements=math.prod(first.shape))
        for found, (first, _) in zip(merged, pairs, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Rest:
    """The elements outside of the compared boxes, which all hold the fill values of the arrays.

    Parameters
    ----------
    n_elements : int
        Number of them.
    positions : tuple of tuple of int
        The first of them, in C order.
    """

    n_elements: int
    positions: Sequence[tuple[int, ...]]

    @classmethod
    def of(cls, touched: TouchedBoxes) -> _Rest:
        n_elements = math.prod(touched.shape) - touched.n_elements
        # a later box begins behind the first elements of as many boxes
        some = islice(touched.others(), _SHOWN)
        ranges = ([range(part.start, part.stop) for part in box] for box in some)
        first = [p for each in ranges for p in islice(product(*each), _SHOWN)]
        return cls(n_elements, sorted(first)[:_SHOWN])


class _Task(NamedTuple):
    number: int  # of the pair
    first: Readable
    second: Readable
    boxes: Sequence[BoxSlices]
    rest: _Rest | None = None  # all have the values of the one element in the box

    @property
    def n_bytes(self) -> int:
        """Size of the elements of the first array that the task compares."""
        if self.rest is not None:
            return self.rest.n_elements * _item_size(self.first)
        sizes = ((part.stop - part.start for part in box) for box in self.boxes)
        return sum(map(math.prod, sizes)) * _item_size(self.first)


def _tasks(number: int, first: Readable, second: Readable, max_bytes: int) -> Iterator[_Task]:
    """Yield boxes of whole chunks of the first array, if any chunk in them is stored."""
    if not math.prod(first.shape):
        return
    shape, max_elements = tuple(first.shape), max(1, max_bytes // _item_size(first))
    grids = _chunks(first), _chunks(second)
    step = box_shape(shape, box_shape(shape, *grids, max_elements), shape, max_elements)
    # the chunks of one side cover no more than what is stored, where both sides store the same
    touched = stored_boxes(shape, [step, least_box(shape, *grids), *grids], [first, second])
    if touched is None:
        yield from (_Task(number, first, second, [box]) for box in boxes(shape, step))
        return
    together = min(_TOGETHER, max(1, max_elements // math.prod(touched.step)))
    for some in batched(touched, together):
        yield _Task(number, first, second, some)
    rest = _Rest.of(touched)
    if rest.n_elements:
        one = tuple(slice(i, i + 1) for i in rest.positions[0])
        yield _Task(number, first, second, [one], rest)


def _item_size(array: Readable) -> int:
    return max(1, array.dtype.itemsize)


def _chunks(array: Readable) -> tuple[int, ...]:
    """Return the shape of the chunks of an array; of single elements if it has none."""
    chunks: Any = getattr(array, "chunks", None)
    if not isinstance(chunks, tuple) or not all(isinstance(n, int) for n in chunks):
        chunks = (1,) * len(array.shape)
    return tuple(max(1, n) for n in chunks)


def _merge(a: ArrayDifference | None, b: ArrayDifference | None) -> ArrayDifference | None:
    if a is None or b is None:
        return a or b
    elements = heapq.nsmallest(_SHOWN, (*a.elements, *b.elements), key=attrgetter("position"))
    numbers = [n for n in (a.largest, b.largest) if n is not None]
    return ArrayDifference(
        n_elements=a.n_elements + b.n_elements,
        n_differing=a.n_differing + b.n_differing,
        elements=tuple(elements),
        largest=max(numbers, default=None),
    )


def _compare_task(tolerance: float, task: _Task) -> ArrayDifference | None:
    """Compare the boxes of a task."""
    found = None
    for box in task.boxes:
        found = _merge(found, _compare_box(tolerance, task.first, task.second, box))
    rest = task.rest
    if found is None or rest is None:
        return found
    (element,) = found.elements  # all elements of the rest differ like this one
    return replace(
        found,
        n_elements=rest.n_elements,
        n_differing=rest.n_elements,
        elements=tuple(replace(element, position=position) for position in rest.positions),
    )


def _compare_box(
    tolerance: float, first: Readable, second: Readable, box: BoxSlices
) -> ArrayDifference | None:
    """Compare the elements of a box; return None if all are equal."""
    a, b = (read_on_host(array, box) for array in (first, second))
    differs = _differs(a, b)
    if tolerance and differs.any() and _is_number(a) and _is_number(b):
        with np.errstate(invalid="ignore", over="ignore"):
            differs &= ~(_distance(a, b) <= tolerance)
    n_differing = int(np.count_nonzero(differs))
    if not n_differing:
        return None
    ours, theirs = a[differs], b[differs]
    positions = np.argwhere(differs)[:_SHOWN].tolist()
    elements = [
        ElementDifference(
            position=tuple(s.start + i for s, i in zip(box, where, strict=True)),
            first=_value(ours[n]),
            second=_value(theirs[n]),
        )
        for n, where in enumerate(positions)
    ]
    return ArrayDifference(
        n_elements=a.size,
        n_differing=n_differing,
        elements=tuple(elements),
        largest=_largest(ours, theirs),
    )


def _value(element: Any) -> object:  # noqa: ANN401 - of any type
    return element.item() if isinstance(element, np.generic) else element


def _differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell which elements differ; NaN and NaT equal themselves."""
    if a.dtype.names is not None and a.dtype.names == b.dtype.names:
        differs = np.zeros(a.shape, bool)
        for name in a.dtype.names:
            member = _differs(a[name], b[name])
            # a member may be an array itself
            differs |= member.reshape(*a.shape, -1).any(axis=-1)
        return differs
    if {a.dtype.kind, b.dtype.kind} in ({"i", "f"}, {"u", "f"}):
        return _differs_exactly(a, b)
    differs = np.asarray(a != b)
    if a.dtype.kind in "fcmM" and b.dtype.kind in "fcmM":
        differs &= ~((a != a) & (b != b))  # noqa: PLR0124 - only NaN is not equal to itself
    return differs


def _differs_exactly(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compare integers with floats exactly; numpy converts both to floats: 2**53 + 1 is 2**53."""
    integers, floats = (a, b) if b.dtype.kind == "f" else (b, a)
    with np.errstate(invalid="ignore", over="ignore"):
        as_floats = integers.astype(floats.dtype)
        is_same = (as_floats == floats) & (as_floats.astype(integers.dtype) == integers)
    return np.asarray(~is_same)


def _is_number(array: np.ndarray) -> bool:
    return array.dtype.kind in "biufc"


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the absolute differences of numbers; they are exact for integers of one type."""
    if a.dtype.kind in "iu" and a.dtype == b.dtype:
        # as unsigned integers: the difference of signed ones may be beyond their range
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        high, low = np.maximum(a, b).astype(unsigned), np.minimum(a, b).astype(unsigned)
        return np.asarray(high - low)
    wide = np.result_type(a.dtype, b.dtype, np.float64)
    return np.asarray(np.abs(a.astype(wide) - b.astype(wide)))


def _largest(a: np.ndarray, b: np.ndarray) -> float | None:
    if not (_is_number(a) and _is_number(b)):
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        distance = _distance(a, b)
    known = distance[distance == distance]  # noqa: PLR0124 - not NaN
    return known.max().item() if known.size else None
