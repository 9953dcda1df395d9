"""Read whole blocks of local files with the compiled kernel, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import batched

import numpy as np

from n5zarr.arrays.box import Groups
from n5zarr.arrays.open_dataset import OpenDataset, is_local
from n5zarr.codecs.buffers import scratch
from n5zarr.fast import kernel
from n5zarr.format.block import MAX_ARRAY_NDIM
from n5zarr.format.order import N5Tuple, present

_TOGETHER = 2**21  # bytes: these stay near to a core


def can_read_whole(dataset: OpenDataset) -> bool:
    """Whether :func:`read_whole` reads blocks of a dataset."""
    has_axes = 0 < dataset.view.ndim < MAX_ARRAY_NDIM  # one more is that of the blocks
    return has_axes and is_local(dataset.store) and kernel.can_do(dataset)


def read_whole(
    dataset: OpenDataset,
    positions: Sequence[N5Tuple],
    dtype: np.dtype,
    fill_value: object,
    n_workers: int | None = None,
) -> Iterator[tuple[Sequence[int], np.ndarray]]:
    """Read whole blocks as chunks.

    Parameters
    ----------
    dataset : OpenDataset
        The blocks and their presentation.
    positions : sequence of tuple of int
        Grid positions of the blocks.
    dtype : numpy.dtype
        That of the dataset, in any byte order.
    fill_value : number
        Value of the elements of missing blocks, and of those outside of the dataset.
    n_workers : int, optional
        Largest number of threads; by default as many as zarr allows.

    Yields
    ------
    tuple
        Which of the positions these are, and their chunks, shape ``(n, *chunk_shape)``; the memory
        is that of the next ones. Blocks that are left to Python, or outside of the grid, are not
        among them; none is if the dataset is not local, or not one for the kernel.
    """
    if not can_read_whole(dataset):
        return
    view, n_bytes = dataset.view, dataset.view.full_n_bytes
    alike: dict[N5Tuple, list[int]] = {}  # the kernel reads boxes of one shape together
    for k, position in enumerate(positions):
        alike.setdefault(dataset.extent(position), []).append(k)
    with scratch() as memory:
        for extent, numbers in alike.items():
            # `batched` makes memory for as many as it may take
            n = max(1, min(_TOGETHER // n_bytes, len(numbers)))
            for some in batched(numbers if all(extent) else (), n):
                flat = np.frombuffer(memory.bytes(len(some) * n_bytes, "chunks"), dtype)
                chunks = flat.reshape(len(some), *view.chunk_shape)
                inside = chunks[:, *map(slice, present(extent, view.axis_order))]
                if inside.size < chunks.size:
                    chunks[...] = fill_value
                places = np.array([positions[k] for k in some], np.int64)
                each = np.arange(len(some))
                groups = Groups(places * view.dataset.block_size, places, each, each + 1)
                left = kernel.read_boxes(dataset, groups, inside, fill_value, n_workers)
                kept = np.setdiff1d(each, left)
                yield ([some[k] for k in kept], chunks[kept]) if left else (some, chunks)
