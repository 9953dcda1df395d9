"""Read many boxes of one shape, for training, meshes, points, and each block once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import zarr
from zarr.abc.buffer import NDBuffer
from zarr.buffer import cpu
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.arrays.box import Groups
from n5zarr.arrays.placing import fill, memory_of
from n5zarr.errors import option_error
from n5zarr.rooms import Door
from n5zarr.storage.ending import ending, within_call
from n5zarr.storage.threads import run_each
from n5zarr.store.n5_store import N5Store

_READ_MANY: Door[
    Callable[
        [AnyArray, np.ndarray, tuple[int, ...], np.ndarray], tuple[Groups, Sequence[int]] | None
    ]
] = Door("speed", "boxes")


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
        Receives the elements; has the shape of the result and the array's dtype. With
        ``zarr.config.enable_gpu()``, also an array of cupy.

    Returns
    -------
    numpy.ndarray
        The elements, shape ``(boxes, *shape)``. Missing blocks have the fill value. ``out``, if it
        is given; else with ``zarr.config.enable_gpu()`` an array of cupy.

    Raises
    ------
    N5UnrepresentableError
        A box is not inside of the array, or ``out`` has another shape or dtype, or is read-only
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
    if not isinstance(cast("object", array), zarr.Array):
        raise option_error(f"array: expected an array of zarr, got {type(array).__name__}")
    first, extent = _checked(array, starts, shape)
    expected, memory = (len(first), *extent), memory_of()
    if out is None:
        found = _read_into(array, first, extent, memory.empty(expected, array.dtype))
        return cast("np.ndarray", memory.placed(found))
    target = memory.buffer_of(out)
    if target is None:
        _check_out(out, expected, array.dtype)
        return _read_into(array, first, extent, out)
    _check_fits(target, expected, array.dtype)
    found = _read_into(array, first, extent, memory.empty(expected, array.dtype))
    fill(target, cpu.NDBuffer(found))
    return out


def _read_into(
    array: AnyArray, starts: np.ndarray, shape: tuple[int, ...], out: np.ndarray
) -> np.ndarray:
    """Read boxes that are inside of the array into an array that fits them; return it."""
    if out.size and array.ndim == 0:
        out[...] = array.get_basic_selection((), prototype=cpu.buffer_prototype)
    elif out.size:
        read = _READ_MANY.found()
        found = None if read is None else read(array, starts, shape, out)
        if found is None:
            _read_blocks(array, *_groups_of_any(array, starts, shape), shape, out)
        elif found[1]:
            _read_blocks(array, found[0].only(found[1]), array.chunks, shape, out)
    return out


def _checked(
    array: AnyArray, starts: npt.ArrayLike, shape: Sequence[int]
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the boxes as integers; raise if one is not inside of the array."""
    try:
        found, extent = np.asarray(starts), tuple(map(index, shape))
    except (TypeError, ValueError) as err:  # rows of several lengths; fractions
        raise option_error(f"starts, shape: expected integers, got {starts!r}, {shape!r}") from err
    if found.shape == (0,):
        found = np.empty((0, array.ndim), "i8")
    if found.ndim != 2 or found.shape[1] != array.ndim or found.dtype.kind not in "iu":
        raise option_error(
            f"starts: expected integers of the shape (boxes, {array.ndim}), got {found.dtype} of "
            f"the shape {found.shape}"
        )
    if len(extent) != array.ndim or min(extent, default=1) < 0:
        raise option_error(f"shape: expected {array.ndim} numbers from 0 on, got {extent}")
    first = found.astype("i8")
    is_outside = ((first < 0) | (first > np.subtract(array.shape, extent))).any(axis=1)
    if is_outside.any():
        k = int(is_outside.argmax())
        raise option_error(
            f"starts: expected boxes inside of the array of the shape {array.shape}, got box {k} "
            f"from {found[k].tolist()} with the shape {extent}"
        )
    return first, extent


def _check_out(out: object, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if not isinstance(out, np.ndarray):
        is_on_gpu = hasattr(out, "__cuda_array_interface__")
        way_out = "; call zarr.config.enable_gpu() for one of a GPU" if is_on_gpu else ""
        raise option_error(f"out: expected a numpy array, got {type(out).__name__}{way_out}")
    _check_fits(out, shape, dtype)
    if not out.flags.writeable:
        raise option_error("out: expected an array that can be written, got a read-only one")


def _check_fits(out: np.ndarray | NDBuffer, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if out.shape != shape or out.dtype != dtype:
        raise option_error(
            f"out: expected an array of {dtype} and shape {shape}, got {out.dtype}, {out.shape}"
        )


def _groups_of_any(
    array: AnyArray, starts: np.ndarray, shape: tuple[int, ...]
) -> tuple[Groups, tuple[int, ...]]:
    """Group boxes of any array by chunk; also return the shape of chunks."""
    try:
        return Groups.of(starts, shape, array.chunks), array.chunks
    except NotImplementedError:  # chunks of several sizes: each box is read for itself
        numbers = np.arange(len(starts))
        return Groups(starts, starts, numbers, numbers + 1), ()


def _read_blocks(
    array: AnyArray,
    groups: Groups,
    chunk_shape: tuple[int, ...],
    shape: tuple[int, ...],
    out: np.ndarray,
) -> None:
    """Read blocks through zarr, some at a time; nothing is read after this has ended."""
    with ending():
        sync(within_call(_read_each(array, groups, chunk_shape, shape, out)))


async def _read_each(
    array: AnyArray,
    groups: Groups,
    chunk_shape: tuple[int, ...],
    shape: tuple[int, ...],
    out: np.ndarray,
) -> None:
    """Read of each block the part that its boxes want; an error ends the other reads."""
    store = array.store
    n_at_once = store.concurrency if isinstance(store, N5Store) else None

    async def read(k: int) -> None:
        members = groups.of_block(k)
        begins, ends = groups.starts[members], groups.starts[members] + shape
        if chunk_shape:  # of each box, the part in the block
            corner = groups.places[k] * chunk_shape
            begins, ends = np.maximum(begins, corner), np.minimum(ends, corner + chunk_shape)
        origin, stop = begins.min(axis=0), ends.max(axis=0)
        try:
            values: Any = await array.async_array.getitem(
                _slices(origin, stop), prototype=cpu.buffer_prototype
            )
        except Exception as err:
            first = members[0]
            err.add_note(f"for box {first}, from {groups.starts[first].tolist()}")
            raise
        for member, begin, end in zip(members.tolist(), begins, ends, strict=True):
            start = groups.starts[member]
            place: Any = (member, *_slices(begin - start, end - start))
            out[place] = values[_slices(begin - origin, end - origin)]

    await run_each(read, len(groups.ends), n_at_once or zarr.config.get("async.concurrency"))


def _slices(begin: np.ndarray, end: np.ndarray) -> tuple[slice, ...]:
    return tuple(map(slice, begin.tolist(), end.tolist()))
