"""Read many boxes of one shape at once, each block once: for training, meshes, points."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from n5zarr._zarr_private import sync
from n5zarr.arrays import kernel
from n5zarr.arrays.groups import Groups
from n5zarr.arrays.open_dataset import dataset_of_array
from n5zarr.errors import N5Error, option_error
from n5zarr.store.n5_store import N5Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from zarr.types import AnyArray

__all__ = ["read_boxes", "read_local"]


def read_boxes(
    array: AnyArray,
    starts: npt.ArrayLike,
    shape: Sequence[int],
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Read many boxes of one shape, with all threads; each block is read and decoded once.

    Parameters
    ----------
    array : zarr.Array
        An array of :func:`n5zarr.open` or of any zarr store.
    starts : array_like of int
        First element of each box in the order of the array, shape (boxes, axes).
    shape : sequence of int
        Extent of each box in elements, in the order of the array.
    out : numpy.ndarray, optional
        Receives the elements; has the shape of the result and the array's dtype.

    Returns
    -------
    numpy.ndarray
        The elements, shape ``(boxes, *shape)``. Missing blocks have the fill value.

    Raises
    ------
    N5UnrepresentableError
        A box is not inside of the array, or ``out`` has another shape or dtype
        (``kind="option"``).
    N5BlockError
        A block is damaged; a note says which box it belongs to.

    Examples
    --------
    >>> import n5zarr
    >>> array = n5zarr.open_array(n5zarr.sample_path(), path="em/s0")
    >>> n5zarr.read_boxes(array, [[20, 40, 60], [3, 5, 7]], (2, 2, 3)).shape
    (2, 2, 2, 3)
    """
    starts, shape = _checked(array, starts, shape)
    expected = (len(starts), *shape)
    if out is None:
        out = np.empty(expected, array.dtype)
    elif out.shape != expected or out.dtype != array.dtype or not out.flags.writeable:
        raise option_error(
            f"out: expected a writable array of {array.dtype} and shape {expected}, got one of "
            f"{out.dtype} and {out.shape}"
        )
    if out.size:
        known = _read_with_kernel(array, starts, shape, out)
        if known is None:
            groups = Groups.of(starts, shape, _chunk_shape(array))
            known = groups, range(len(groups.ends))
        if known[1]:
            sync(_read_groups(array, known[0], shape, out, known[1]))
    return out


def _checked(
    array: AnyArray, starts: npt.ArrayLike, shape: Sequence[int]
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the boxes as integers; raise if one is not inside of the array."""
    found = np.asarray(starts)
    if found.size == 0:
        found = found.astype("i8").reshape(len(found), array.ndim)
    if found.ndim != 2 or found.shape[1] != array.ndim or found.dtype.kind not in "iu":
        raise option_error(
            f"starts: expected integers of the shape (boxes, {array.ndim}), got {found.dtype} of "
            f"the shape {found.shape}"
        )
    extent = tuple(int(n) for n in shape)
    if len(extent) != array.ndim or min(extent, default=1) < 0:
        raise option_error(f"shape: expected {array.ndim} numbers from 0 on, got {tuple(shape)}")
    is_outside = ((found < 0) | (found > np.subtract(array.shape, extent))).any(axis=1)
    if is_outside.any():
        k = int(is_outside.argmax())
        raise option_error(
            f"starts: expected boxes inside of the array of the shape {array.shape}, got box {k} "
            f"from {found[k].tolist()} with the shape {extent}"
        )
    return found.astype("i8"), extent


def read_local(
    array: AnyArray, starts: np.ndarray, shape: tuple[int, ...], out: np.ndarray
) -> bool:
    """Read boxes with the kernel, and return whether it has read all; ``out`` is not empty.

    Parameters
    ----------
    array : zarr.Array
        The array.
    starts, shape : numpy.ndarray of int64, tuple of int
        Boxes inside of the array, as in :func:`read_boxes`.
    out : numpy.ndarray
        Receives the elements, shape ``(boxes, *shape)``, any strides.
    """
    found = _read_with_kernel(array, starts, shape, out)
    return found is not None and not found[1]


def _read_with_kernel(
    array: AnyArray, starts: np.ndarray, shape: tuple[int, ...], out: np.ndarray
) -> tuple[Groups, Sequence[int]] | None:
    """Read boxes with the kernel; return the groups, and those that are left to Python."""
    dataset = dataset_of_array(array)
    if dataset is None or not kernel.can_do(dataset):
        return None
    groups = Groups.of(starts, shape, dataset.view.chunk_shape)
    order = slice(None, None, -1 if dataset.view.axis_order == "C" else 1)
    starts_n5, places_n5 = (np.ascontiguousarray(each[:, order]) for each in groups[:2])
    in_n5_order = groups._replace(starts=starts_n5, places=places_n5)
    fill_value = array.async_array.metadata.fill_value
    fill_value = 0 if fill_value is None else fill_value
    return groups, kernel.read_boxes(dataset, in_n5_order, out, fill_value)


def _chunk_shape(array: AnyArray) -> tuple[int, ...]:
    try:
        return array.shards or array.chunks
    except NotImplementedError:  # chunks of several sizes: each box is read for itself
        return array.shape


async def _read_groups(
    array: AnyArray, groups: Groups, shape: tuple[int, ...], out: np.ndarray, left: Sequence[int]
) -> None:
    """Read blocks through zarr, some at a time: the part of each that its boxes want."""
    size = _chunk_shape(array)
    store = array.store
    n_at_once = store.concurrency if isinstance(store, N5Store) else None
    limit = asyncio.Semaphore(n_at_once or zarr.config.get("async.concurrency"))

    async def read(k: int) -> None:
        members = groups.of_block(k)
        corner = groups.places[k] * size
        # of each box, the part in the block
        begins = np.maximum(groups.starts[members], corner)
        ends = np.minimum(groups.starts[members] + shape, corner + size)
        origin, stop = begins.min(axis=0), ends.max(axis=0)
        async with limit:
            try:
                values: Any = await array.async_array.getitem(_slices(origin, stop))
            except N5Error as err:
                first = members[0]
                err.add_note(f"for box {first}, from {groups.starts[first].tolist()}")
                raise
            values = np.asarray(values)
            for member, begin, end in zip(members, begins, ends, strict=True):
                start = groups.starts[member]
                part = values[_slices(begin - origin, end - origin)]
                out[(member, *_slices(begin - start, end - start))] = part

    await asyncio.gather(*map(read, left))


def _slices(begin: np.ndarray, end: np.ndarray) -> tuple[slice, ...]:
    return tuple(map(slice, begin.tolist(), end.tolist()))
