"""Read many boxes, or cells of elements as one each, with the kernel, and each block once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mod

import numpy as np
from zarr.types import AnyArray

from n5zarr.arrays.box import Groups
from n5zarr.arrays.boxes import BoxSlices, box_at
from n5zarr.arrays.open_dataset import OpenDataset, dataset_of_array, fill_value_of
from n5zarr.arrays.placing import read_on_host
from n5zarr.fast import kernel
from n5zarr.fast.cells import Cells
from n5zarr.format.order import present


def read_many(
    array: AnyArray, starts: np.ndarray, shape: tuple[int, ...], out: np.ndarray
) -> tuple[Groups, Sequence[int]] | None:
    """Read boxes that are inside of an array; the parameters are those of :func:`read_grouped`.

    Returns
    -------
    tuple or None
        The groups, and the numbers of those that are left to Python; None if nothing was read: the
        array is no local dataset, or not one for the kernel.
    """
    dataset = dataset_of_array(array)
    if dataset is None or not kernel.can_do(dataset):
        return None
    return read_grouped(dataset, starts, shape, out, fill_value_of(array.async_array.metadata))


def read_grouped(
    dataset: OpenDataset,
    starts: np.ndarray,
    shape: tuple[int, ...],
    out: np.ndarray,
    fill_value: object,
) -> tuple[Groups, Sequence[int]]:
    """Read boxes with the kernel, block by block.

    Parameters
    ----------
    dataset : OpenDataset
        A dataset that the kernel can read.
    starts, shape : numpy.ndarray of int64, tuple of int
        Boxes inside of the dataset, as in :func:`n5zarr.read_boxes`.
    out : numpy.ndarray
        Receives the elements, shape ``(boxes, *shape)``, any strides; is not empty.
    fill_value : number
        Value of the elements of missing blocks.

    Returns
    -------
    tuple
        The groups, and the numbers of those that are left to Python.
    """
    groups = Groups.of(starts, shape, dataset.view.chunk_shape)
    order = slice(None, None, -1 if dataset.view.axis_order == "C" else 1)
    starts_n5, places_n5 = (np.ascontiguousarray(each[:, order]) for each in groups[:2])
    in_n5_order = groups._replace(starts=starts_n5, places=places_n5)
    return groups, kernel.read_boxes(dataset, in_n5_order, out, fill_value)


def read_cells(
    array: AnyArray,
    box: BoxSlices,
    factors: tuple[int, ...],
    method: str,
    out: np.ndarray,
    combine: Callable[[np.ndarray], np.ndarray],
) -> bool:
    """Read a box, and combine each cell of its elements into one, without an array of the box.

    Parameters
    ----------
    array : zarr.Array
        Any array.
    box : tuple of slice
        Begins at a cell, and ends after one or with the array; without steps.
    factors, method : tuple of int, str
        Those of :class:`~n5zarr.fast.cells.Cells`.
    out : numpy.ndarray
        Receives an element for each cell; of the dtype of the array.
    combine : callable
        Does the same with an array, for blocks that the kernel leaves.

    Returns
    -------
    bool
        False if nothing was read: the array is no local dataset, its blocks cut cells, or the
        kernel does not combine such elements.
    """
    cells = Cells(factors, method)
    dataset = dataset_of_array(array) if cells.can_do(array.dtype) else None
    if dataset is None or not kernel.can_do(dataset):
        return False
    chunks = dataset.view.chunk_shape
    if any(map(mod, chunks, factors)):
        return False
    start = tuple(part.start for part in box)
    fill_value = fill_value_of(array.async_array.metadata)
    for position in kernel.read_box(dataset, start, out, fill_value, cells=cells):
        block = box_at(present(position, dataset.view.axis_order), chunks, array.shape)
        each = zip(block, box, strict=True)
        wanted = tuple(slice(max(b.start, s.start), min(b.stop, s.stop)) for b, s in each)
        places = zip(wanted, start, factors, strict=True)
        own = tuple(slice((s.start - n) // f, -((n - s.stop) // f)) for s, n, f in places)
        out[own] = combine(read_on_host(array, wanted))
    return True
