"""Read cells of elements as one element each, from decoded blocks: a coarser level of an image."""

from __future__ import annotations

from operator import mod
from typing import TYPE_CHECKING

from n5zarr.arrays import kernel
from n5zarr.arrays.batch import fill_value_of
from n5zarr.arrays.boxes import box_at
from n5zarr.arrays.open_dataset import dataset_of_array
from n5zarr.arrays.placing import read_on_host
from n5zarr.format.order import present

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from zarr.types import AnyArray

    from n5zarr.arrays.boxes import BoxSlices
    from n5zarr.arrays.kernel import Cells

__all__ = ["read_cells"]


def read_cells(
    array: AnyArray,
    box: BoxSlices,
    cells: Cells,
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
    cells : Cells
        The cells.
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
    dataset = dataset_of_array(array) if cells.can_do(array.dtype) else None
    if dataset is None or not kernel.can_do(dataset):
        return False
    chunks = dataset.view.chunk_shape
    if any(map(mod, chunks, cells.factors)):
        return False
    start = tuple(part.start for part in box)
    fill_value = fill_value_of(array.async_array.metadata)
    for position in kernel.read_box(dataset, start, out, fill_value, cells=cells):
        block = box_at(present(position, dataset.view.axis_order), chunks, array.shape)
        each = zip(block, box, strict=True)
        wanted = tuple(slice(max(b.start, s.start), min(b.stop, s.stop)) for b, s in each)
        places = zip(wanted, start, cells.factors, strict=True)
        own = tuple(slice((s.start - n) // f, -((n - s.stop) // f)) for s, n, f in places)
        out[own] = combine(read_on_host(array, wanted))
    return True
