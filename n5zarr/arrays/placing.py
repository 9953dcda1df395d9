"""Place elements in the memory that zarr is configured for, such as a GPU's, with one copy.

Blocks are decoded in the host's memory, whatever memory their elements are wanted in. Values that
the elements of an array do not hold are told here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt
import zarr
from zarr.abc.buffer import BufferPrototype, NDArrayLike, NDBuffer
from zarr.buffer import cpu, default_buffer_prototype, gpu

from n5zarr.errors import N5UnrepresentableError, N5Warning

if TYPE_CHECKING:
    from n5zarr._zarr import ArraySpec, BatchItem, Fields, NDArrayLikeOrScalar


_SKIPPED = (
    f"{Path(__file__).parents[1]}",
    f"{Path(zarr.__file__).parent}",
    f"{Path(warnings.__file__).with_name('contextlib')}",  # of methods decorated by `ending`
)
_PIECE = 2**16  # elements that are looked at together: so that they stay in the cache
_NUMBERS = "biufc"  # kinds of numpy's data types that a GPU has


class ArrayMemory:
    """numpy's memory."""

    is_known = True  # whether results may be made without zarr

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype, order: Literal["C", "F"] = "C"
    ) -> np.ndarray:
        """Make an array on the host for elements that :meth:`placed` takes."""
        return np.empty(shape, dtype, order)

    def placed(self, elements: np.ndarray) -> NDArrayLikeOrScalar:
        """Return elements of the host in this memory."""
        return elements

    def on_host(self, value: npt.ArrayLike) -> npt.ArrayLike:
        """Return a value, which may be in this memory, on the host."""
        return value

    def buffer_of(self, array: object) -> NDBuffer | None:
        """Return the buffer of an array in this memory; None for the host's."""
        del array
        return None

    def get(
        self,
        read: Callable[..., NDArrayLikeOrScalar],
        selection: object,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        """Read a selection by one of zarr's methods into this memory."""
        return read(selection, out=out, fields=fields, prototype=prototype)

    def set(
        self,
        write: Callable[..., None],
        selection: object,
        value: npt.ArrayLike,
        fields: Fields | None,
        prototype: BufferPrototype | None,
    ) -> None:
        """Write a value of the host or this memory by one of zarr's methods."""
        write(selection, value, fields=fields, prototype=prototype)


class _ZarrsMemory(ArrayMemory):
    """ArrayMemory of the host in arrays that only zarr makes."""

    is_known = False


class _OtherMemory(ArrayMemory):
    """ArrayMemory other than the host's.

    Parameters
    ----------
    nd_buffer : type
        zarr's class for arrays in this memory.
    """

    def __init__(self, nd_buffer: type[NDBuffer]) -> None:
        self._nd_buffer = nd_buffer
        self._is_gpu = issubclass(nd_buffer, gpu.NDBuffer)

    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype, order: Literal["C", "F"] = "C"
    ) -> np.ndarray:
        """Make an array in the byte order of the machine; page-locked for a GPU."""
        native = _native(dtype)
        if self._is_gpu and native.kind in _NUMBERS:
            # a system may allow little of this memory; cupy copies from any other
            with suppress(RuntimeError):
                pinned: np.ndarray = import_module("cupyx").empty_pinned(shape, native, order)
                return pinned
        return np.empty(shape, native, order)

    def placed(self, elements: np.ndarray) -> NDArrayLikeOrScalar:
        if self._is_gpu and elements.dtype.kind not in _NUMBERS:
            expected = "expected numbers or booleans to move to a GPU"
            way_out = "prototype=zarr.buffer.cpu.buffer_prototype reads them on the host"
            raise N5UnrepresentableError(
                f"{expected}, got {elements.dtype}; {way_out}", kind="data-type"
            )
        # no copy of what `empty` has made, which remains page-locked
        return self._nd_buffer.from_numpy_array(
            elements.astype(_native(elements.dtype), copy=False)
        ).as_ndarray_like()

    def on_host(self, value: npt.ArrayLike) -> npt.ArrayLike:
        buffer = self.buffer_of(value)
        return value if buffer is None else buffer.as_numpy_array()

    def buffer_of(self, array: object) -> NDBuffer | None:
        if isinstance(array, np.ndarray | np.generic) or not hasattr(array, "dtype"):
            return None
        return self._nd_buffer.from_ndarray_like(cast("NDArrayLike", array))

    def get(
        self,
        read: Callable[..., NDArrayLikeOrScalar],
        selection: object,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        del prototype
        on_host = None if out is None else cpu.NDBuffer(self.empty(out.shape, out.dtype))
        found = read(selection, out=on_host, fields=fields, prototype=cpu.buffer_prototype)
        if out is not None and on_host is not None:
            fill(out, on_host)
        if not isinstance(found, np.ndarray):  # a scalar, on the host in zarr, too
            return found
        if out is None:
            return self.placed(found)
        filled = out.as_ndarray_like()  # zarr presents points of several axes as one
        return filled if found.shape == filled.shape else filled.reshape(found.shape)

    def set(
        self,
        write: Callable[..., None],
        selection: object,
        value: npt.ArrayLike,
        fields: Fields | None,
        prototype: BufferPrototype | None,
    ) -> None:
        del prototype
        write(selection, self.on_host(value), fields=fields, prototype=cpu.buffer_prototype)


def _native(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("=") if dtype.kind in _NUMBERS else dtype


_NUMPYS, _ZARRS = ArrayMemory(), _ZarrsMemory()


def memory_of(out: NDBuffer | None = None, prototype: BufferPrototype | None = None) -> ArrayMemory:
    """Return the memory in which zarr would place a result.

    Parameters
    ----------
    out : zarr.abc.buffer.NDBuffer, optional
        Receives the elements.
    prototype : zarr.abc.buffer.BufferPrototype, optional
        Otherwise says where they go; by default, zarr's configuration says so.
    """
    if out is not None:
        nd_buffer = type(out)
    elif prototype is not None:
        nd_buffer = prototype.nd_buffer
    elif zarr.config.get("ndbuffer") == "zarr.buffer.cpu.NDBuffer":
        return _NUMPYS
    else:
        nd_buffer = default_buffer_prototype().nd_buffer
    if nd_buffer is cpu.NDBuffer:
        return _NUMPYS
    # zarr refuses what is no buffer
    is_zarrs = issubclass(nd_buffer, cpu.NDBuffer) or not hasattr(nd_buffer, "from_numpy_array")
    return _ZARRS if is_zarrs else _OtherMemory(nd_buffer)


def host_batch(batch: Iterable[BatchItem]) -> tuple[BatchItem, ...]:
    """Return the items of a batch with prototypes of the host, so that codecs work there."""
    items = tuple(batch)
    if not items or issubclass(items[0][1].prototype.nd_buffer, cpu.NDBuffer):
        return items
    known: dict[int, ArraySpec] = {}  # most often one for all items
    for _, spec, *_ in items:
        if id(spec) not in known:
            known[id(spec)] = replace(spec, prototype=cpu.buffer_prototype)
    return tuple((where, known[id(spec)], *rest) for where, spec, *rest in items)


def host_buffer(buffer: NDBuffer, *, copy: bool) -> cpu.NDBuffer:
    """Return a buffer itself if it is the host's, else one of the same shape on the host.

    Parameters
    ----------
    buffer : zarr.abc.buffer.NDBuffer
        A buffer in any memory.
    copy : bool
        Whether to copy the elements.
    """
    if isinstance(buffer, cpu.NDBuffer):
        return buffer
    if copy:
        return cpu.NDBuffer(buffer.as_numpy_array())
    return cpu.NDBuffer(memory_of(buffer).empty(buffer.shape, buffer.dtype))


def fill(out: NDBuffer, elements: cpu.NDBuffer) -> None:
    """Copy elements of the host into a buffer in other memory."""
    out[...] = type(out).from_numpy_array(elements.as_numpy_array())


def read_on_host(array: Any, box: Any = ...) -> np.ndarray:  # noqa: ANN401 - what numpy takes
    """Read a box onto the host, whatever memory zarr is configured for.

    Parameters
    ----------
    array
        An array of zarr, or any other that supports ``array[box]``.
    box : tuple of int and slice, slice or Ellipsis
        The box.
    """
    if isinstance(array, zarr.Array):
        return np.asarray(array.get_basic_selection(box, prototype=cpu.buffer_prototype))
    return np.asarray(array[box])


def warn(message: str) -> None:
    """Warn in the line of the user that calls n5zarr or zarr."""
    warnings.warn(message, N5Warning, skip_file_prefixes=_SKIPPED)


def warn_of_loss(value: object, dtype: np.dtype) -> None:
    """Warn of numbers that integers do not hold: numpy refuses Python's, and warns of NaN."""
    is_plain = isinstance(value, np.ndarray | np.generic | list | tuple | float)
    values = np.asanyarray(value if is_plain and dtype.kind in "iu" else np.zeros((), dtype))
    if values.dtype.kind not in "iuf" or np.can_cast(values.dtype, dtype) or not values.size:
        return
    least, most = np.iinfo(dtype).min, int(np.iinfo(dtype).max)
    wraps = np.fmin.reduce(values, None) <= least - 1 or np.fmax.reduce(values, None) >= most + 1
    flat, n = values.ravel("K"), values.size * (values.dtype.kind == "f")
    pieces = (flat[i : i + _PIECE] for i in range(0, n, _PIECE))
    if wraps or any((np.abs(some - np.trunc(some)) > 0).any() for some in pieces):
        expected = f"whole numbers from {least} to {most} for elements of {dtype}"
        got = "others, which wrap" if wraps else "fractions, which are cut off"
        warn(f"expected {expected}, got {got}")
