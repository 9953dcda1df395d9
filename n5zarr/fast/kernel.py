"""Read and write boxes of a local dataset through the compiled kernel, if it is built.

The kernel reads, decodes and scatters, or gathers, encodes and writes, all blocks of a box without
the interpreter's lock, on as many threads as zarr allows. The head of ``_kernel.c`` says which
blocks are ordinary; the kernel leaves all others to :mod:`n5zarr.fast.batches`, which does the
same in Python. The logger of this module logs at DEBUG which blocks the kernel handles, and why.
"""

from __future__ import annotations

import logging
import os
from array import array as packed
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from operator import floordiv, mul
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np
from numcodecs.blosc import list_compressors as blosc_libraries

from n5zarr._zarr import max_workers
from n5zarr.arrays.box import BatchBox, Box, Groups
from n5zarr.arrays.open_dataset import SMALL_BLOCK, OpenDataset
from n5zarr.codecs.buffers import REUSED, Scratch, scratch
from n5zarr.codecs.compress import codec_of, decompress_reused
from n5zarr.codecs.gzip import level_of_libdeflate
from n5zarr.errors import N5Error
from n5zarr.fast.cells import Cells
from n5zarr.fast.native import load_kernel
from n5zarr.fast.python_blocks import PutByKernel
from n5zarr.fast.workers import work_together
from n5zarr.format.compression import Blosc, Compression, Gzip, Raw, Zstd
from n5zarr.format.order import N5Tuple, from_presented
from n5zarr.storage.ending import check_wanted
from n5zarr.storage.writing import sync_directories

if TYPE_CHECKING:
    from n5zarr._zarr import BatchItem

_log = logging.getLogger(__name__)

_WORTH_THREADS = 2**18  # bytes
_COST_OF_SMALL = 2**10  # bytes that cost as much as opening and reading a small uncompressed block


_kernel = load_kernel()


def is_compiled() -> bool:
    """Whether the kernel is built."""
    return _kernel is not None


def can_do(dataset: OpenDataset) -> bool:
    """Whether the kernel can read and write blocks of a dataset; odd ones it leaves to Python."""
    view = dataset.view
    if not is_compiled():
        reason = "the kernel is not built"
    elif view.kind.n_parts is not None or view.is_scalar:
        reason = "a block is not an array of numbers"
    elif not 0 < view.full_n_bytes <= REUSED:
        reason = f"a block has {view.full_n_bytes} bytes"
    else:
        return True
    _log.debug("%s: left to Python: %s", dataset, reason)
    return False


def box_of_batch(batch: Sequence[BatchItem], chunk_shape: tuple[int, ...]) -> BatchBox | None:
    """Return the box that the chunks of a batch form together; None if they form no box.

    Compares every chunk of the batch with its part of the box: its key, and its selections.

    Parameters
    ----------
    batch : sequence
        Items of one array, at least one.
    chunk_shape : tuple of int
        Extent of a chunk of the array, at least one axis.
    """
    found = _kernel.box_of_batch(tuple(batch), chunk_shape)
    return None if found is None else BatchBox(*found)


def read_box(  # noqa: PLR0913 - one keyword for each choice
    dataset: OpenDataset,
    start: tuple[int, ...],
    out: np.ndarray,
    fill_value: object,
    n_workers: int | None = None,
    *,
    step: tuple[int, ...] | None = None,
    cells: Cells | None = None,
) -> list[N5Tuple]:
    """Read a box.

    Parameters
    ----------
    dataset : OpenDataset
        The blocks and their presentation.
    start : tuple of int
        First element of the box, in the presented order.
    out : numpy.ndarray
        Receives the elements; has the dataset's dtype in any byte order, and is not empty.
    fill_value : number
        Value of the elements of missing blocks.
    n_workers : int, optional
        Largest number of threads, including this one; by default as many as zarr allows.
    step : tuple of int, optional
        Distance of the elements along each axis, in the presented order; by default 1.
    cells : Cells, optional
        Cells, in the presented order, of which ``out`` receives one element each; a block and the
        box begin at one. The kernel refuses them together with steps along any axis.

    Returns
    -------
    list of tuple of int
        Grid positions of the blocks that are left to Python.
    """
    view, n_bytes = dataset.view, dataset.view.full_n_bytes
    arguments, n_blocks = _first_arguments(dataset, start, out, fill_value, step, cells)
    if isinstance(view.dataset.compression, Raw) and cells is None:  # it reads rows
        row = n_bytes // view.dataset.block_size[-1]
        sizes = min(n_bytes, max(_kernel.GROUP, row)), 0
        n_bytes = _COST_OF_SMALL if n_bytes < SMALL_BLOCK else out.nbytes // n_blocks
    else:
        sizes = _most_packed(n_bytes), n_bytes
    left = _on_threads(
        _kernel.read_box,
        dataset,
        arguments,
        sizes,
        n_blocks,
        n_bytes,
        more=lambda _: () if cells is None else (cells.numbers(view.axis_order),),
        n_workers=n_workers,
    )
    if not left:  # the kernel does not report missing blocks, but Python does
        dataset.check_missing(view.grid_position(tuple(map(floordiv, start, view.chunk_shape))))
    _tell("read", dataset, start, out.shape, n_blocks, left)
    return left


def read_boxes(
    dataset: OpenDataset,
    groups: Groups,
    out: np.ndarray,
    fill_value: object,
    n_workers: int | None = None,
) -> list[int]:
    """Read many boxes of one shape; each block is read and decoded once.

    Parameters
    ----------
    dataset : OpenDataset
        The blocks and their presentation.
    groups : Groups
        The boxes that want elements of each block.
    out : numpy.ndarray
        Receives the elements: the boxes along the first axis, then the axes of the dataset in the
        presented order; has the dataset's dtype in any byte order, and is not empty.
    fill_value : number
        Value of the elements of missing blocks.
    n_workers : int, optional
        As of :func:`read_box`.

    Returns
    -------
    list of int
        Numbers of the groups that are left to Python.
    """
    view, compression = dataset.view, dataset.view.dataset.compression
    n_bytes, n_groups = view.full_n_bytes, len(groups.ends)
    sizes = n_bytes if isinstance(compression, Raw) else _most_packed(n_bytes), n_bytes
    # N5 order, then the boxes: out.T for axes in C order
    boxes_last = out if view.axis_order == "C" else np.moveaxis(out, 0, -1)
    zeros = (0,) * view.ndim
    arguments, _ = _first_arguments(dataset, zeros, boxes_last, fill_value)
    boxes = tuple(numbers.reshape(-1) for numbers in groups)
    found = _on_threads(
        _kernel.read_boxes,
        dataset,
        arguments,
        sizes,
        n_groups,
        n_bytes,
        more=lambda memory: ((*boxes, memory.bytes(n_bytes, "whole")),),
        n_workers=n_workers,
    )
    left = [position[0] for position in found]
    if not left:
        dataset.check_missing(groups.places[0])
    _tell("read", dataset, zeros, out.shape, n_groups, left)
    return left


def putting(
    dataset: OpenDataset,
    start: tuple[int, ...],
    out: np.ndarray,
    fill_value: object,
    step: tuple[int, ...] | None = None,
) -> PutByKernel:
    """Return a function that decodes blocks of a box; parameters are those of :func:`read_box`.

    The function takes the grid position of a block of the box, its bytes as they are stored, header
    first, or None if it is missing, and memory to decode in. It returns False for a block that is
    left to Python. Threads may call it at the same time.
    """
    compression = dataset.view.dataset.compression
    n_bytes = 0 if isinstance(compression, Raw) else dataset.view.full_n_bytes
    arguments, _ = _first_arguments(dataset, start, out, fill_value, step)

    def put(position: N5Tuple, stored: memoryview | None, memory: Scratch) -> bool:
        if stored is not None and not stored.readonly:  # others could change it meanwhile
            stored = memoryview(bytes(stored))
        unpack = _or_none(partial(decompress_reused, compression=compression, memory=memory))
        elements = memory.bytes(n_bytes, "elements")
        return bool(_kernel.put_block(*arguments, position, stored, elements, unpack))

    return put


def _tell(
    did: str,
    dataset: OpenDataset,
    start: tuple[int, ...],
    shape: tuple[int, ...],
    n_blocks: int,
    left: Sequence[object],
) -> None:
    """Log a box, and the grid positions of the first blocks that are left to Python."""
    if _log.isEnabledFor(logging.DEBUG):
        what = f"{n_blocks} blocks, {len(left)} left to Python {left[:3]}"
        _log.debug("%s: %s from %s, shape %s: %s", dataset, did, start, shape, what)


def write_box(
    dataset: OpenDataset,
    start: tuple[int, ...],
    value: np.ndarray,
    fill_value: object,
    *,
    keep_empty: bool,
    step: tuple[int, ...] | None = None,
) -> list[N5Tuple]:
    """Write a box; a block that is partly in the box keeps its other elements.

    Parameters
    ----------
    dataset : OpenDataset
        The blocks and their presentation.
    start : tuple of int
        First element of the box, in the presented order.
    value : numpy.ndarray
        Its elements; has the dataset's dtype in any byte order, and is not empty.
    fill_value : number
        Value of the elements of missing blocks.
    keep_empty : bool
        Whether to write blocks of only the fill value; else they are removed.
    step : tuple of int, optional
        Distance of the elements along each axis, in the presented order; by default 1.

    Returns
    -------
    list of tuple of int
        Grid positions of the blocks that are left to Python.
    """
    compression, n_bytes = dataset.view.dataset.compression, dataset.view.full_n_bytes
    item_size = dataset.view.dataset.data_type.item_size
    codec = codec_of(compression)
    pack = _or_none(partial(codec.compress, compression=compression, item_size=item_size))
    match codec.within_limits(compression, item_size):
        case Gzip(level=level) | Zstd(level=level):
            parameters: tuple[int, int, int, str] = (
                level_of_libdeflate(level, n_bytes) if isinstance(compression, Gzip) else level,
                *(0, 0, ""),
            )
        case Blosc(clevel=level, shuffle=shuffle, block_size=block_size, cname=cname):
            parameters = (level, shuffle, block_size, cname)
        case _:
            parameters = (0, 0, 0, "")
    arguments, n_blocks = _first_arguments(dataset, start, value, fill_value, step)

    def more(_: Scratch) -> tuple[Any, ...]:
        durability = getattr(_kernel, dataset.durability.upper())
        unique = os.urandom(_kernel.UNIQUE // 2).hex()
        return ((pack, keep_empty, durability, *parameters, unique),)

    sizes = _most_packed(n_bytes), n_bytes
    left = _on_threads(_kernel.write_box, dataset, arguments, sizes, n_blocks, n_bytes, more=more)
    if dataset.durability == "durable":
        sync_directories(_directories(dataset, Box.from_shape(start, value.shape, step)))
    _tell("write", dataset, start, value.shape, n_blocks, left)
    return left


def _directories(dataset: OpenDataset, box: Box) -> set[str]:
    """Return the directories of the blocks of a box, and those above, up to the dataset's."""
    view = dataset.view
    axes = from_presented(box.places(view.chunk_shape), view.axis_order)[:-1]
    return {
        dataset.directory + "/".join(map(str, position))
        for n in range(len(axes) + 1)
        for position in product(*axes[:n])
    }


def _or_none[**P, Result](function: Callable[P, Result]) -> Callable[P, Result | None]:
    """Turn N5Error into None: Python then handles the block again, and raises if needed."""

    def declining(*args: P.args, **kwargs: P.kwargs) -> Result | None:
        try:
            return function(*args, **kwargs)
        except N5Error:
            return None

    return declining


def _most_packed(n_bytes: int) -> int:
    """Return a size that payloads rarely exceed; larger ones are left to Python."""
    return n_bytes + n_bytes // 256 + 1024


def _kind(compression: Compression) -> str:
    """Return the name of a compression in the kernel."""
    match compression:
        case Raw():
            return "RAW"
        case Gzip(use_zlib=use_zlib):
            return "ZLIB" if use_zlib else "GZIP"
        case Zstd():
            return "ZSTD"
        case Blosc(cname=cname) if cname in blosc_libraries():
            return "BLOSC"
        case _:
            return "OTHER"


def _first_arguments(
    dataset: OpenDataset,
    start: tuple[int, ...],
    array: np.ndarray,
    fill_value: object,
    step: tuple[int, ...] | None = None,
    cells: Cells | None = None,
) -> tuple[tuple[Any, ...], int]:
    """Return the first arguments of the kernel's functions, and the number of blocks of a box.

    _kernel.c checks them. ``cells`` are those that the array has an element for.
    """
    view, attributes = dataset.view, dataset.view.dataset
    in_n5_order = array.T if view.axis_order == "C" else array
    begin = from_presented(start, view.axis_order)
    steps = (1,) * view.ndim if step is None else from_presented(step, view.axis_order)
    n_blocks = 1
    extent: Sequence[int] = in_n5_order.shape[: view.ndim]  # without the axis of many boxes
    if cells is not None:
        extent = list(map(mul, extent, from_presented(cells.factors, view.axis_order)))
    for first, n, each, size in zip(begin, extent, steps, attributes.block_size, strict=True):
        n_blocks *= n if each >= size else (first + (n - 1) * each) // size - first // size + 1
    geometry = (*attributes.block_size, *attributes.dimensions, *begin, *steps)
    stored, given = attributes.data_type.dtype, array.dtype
    arguments = (
        packed("q", geometry),
        in_n5_order if given.isnative else in_n5_order.view(given.newbyteorder("=")),
        getattr(_kernel, _kind(attributes.compression)),
        np.array(fill_value, stored).tobytes(),
        stored.isnative != given.isnative,
    )
    return arguments, n_blocks


def _on_threads(  # noqa: PLR0913 - what the three functions of the kernel need
    function: Callable[..., list[N5Tuple]],
    dataset: OpenDataset,
    arguments: tuple[Any, ...],
    sizes: tuple[int, int],
    n_blocks: int,
    n_bytes: int,
    *,
    more: Callable[[Scratch], tuple[Any, ...]] = lambda _: (),
    n_workers: int | None = None,
) -> list[N5Tuple]:
    """Call a function of the kernel on several threads, each claiming blocks until none remain.

    ``sizes`` are the bytes of memory for a payload and for elements; ``n_bytes`` those that a block
    costs. ``more`` makes the last arguments, from the memory of a thread.
    """
    compression = dataset.view.dataset.compression
    n_stored, directory = sizes[0] + len(dataset.view.full_header), os.fsencode(dataset.directory)
    if n_blocks * n_bytes < _WORTH_THREADS:  # asking for the number of cores takes longer
        n_workers = 1
    # the blocks that threads have claimed, and whether there are such threads
    taken = packed("q", (0, n_blocks > 1 and n_workers != 1))

    def work() -> list[N5Tuple]:
        with scratch() as memory:
            stored, elements = memory.bytes(n_stored, "read"), memory.bytes(sizes[1], "elements")
            # for payloads for which the kernel has no library
            unpack = _or_none(partial(decompress_reused, compression=compression, memory=memory))
            return function(directory, *arguments, taken, stored, elements, unpack, *more(memory))

    check_wanted()
    if n_blocks == 1:
        return work()
    left: list[N5Tuple] = []
    asks = get_ident()

    def take() -> None:
        if get_ident() != asks:
            _kernel.spread()
        left.extend(work())

    def stop() -> None:
        taken[0] = n_blocks

    work_together(take, min(max_workers() if n_workers is None else n_workers, n_blocks), stop)
    return sorted(left, key=lambda position: position[::-1])  # in whatever order they were claimed
