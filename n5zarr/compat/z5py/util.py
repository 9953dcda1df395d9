"""``z5py.util`` of z5py 2: blocks of a shape, and copies of datasets and groups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

from n5zarr.compat.z5py.dataset import Dataset, box_of
from n5zarr.compat.z5py.file import File, Group


def blocking(
    shape: tuple[int, ...],
    block_shape: tuple[int, ...],
    roi: object = None,
    center_blocks_at_roi: bool = False,
) -> product[tuple[slice, ...]]:
    """Yield the blocks of a shape, or their parts in a region, last axis fastest.

    Parameters
    ----------
    shape, block_shape : tuple of int
        The extents.
    roi : tuple of slice, optional
        The region.
    center_blocks_at_roi : bool, optional
        Whether the first block begins where the region does.
    """
    box = box_of(... if roi is None else roi, tuple(shape))
    axes = []
    for start, stop, n in zip(box.start, box.stop, block_shape, strict=True):
        begins = range(start if center_blocks_at_roi else start // n * n, stop, n)
        axes.append([slice(max(begin, start), min(begin + n, stop)) for begin in begins])
    return product(*axes)


def copy_dataset(
    in_path: str,
    out_path: str,
    in_path_in_file: str,
    out_path_in_file: str,
    n_threads: int,
    chunks: tuple[int, ...] | None = None,
    block_shape: tuple[int, ...] | None = None,
    dtype: Any = None,
    use_zarr_format: bool | None = None,
    roi: object = None,
    fit_to_roi: bool = False,
    verbose: bool = False,
    **new_compression: Any,
) -> None:
    """Copy a dataset, block by block; by default its chunks, type and compression stay.

    Parameters
    ----------
    in_path, out_path, in_path_in_file, out_path_in_file : str
        The files, of which the second is created if it is missing, and the datasets.
    n_threads : int
        Number of threads.
    chunks, dtype, **new_compression : optional
        Those of the copy.
    block_shape : tuple of int, optional
        Elements to read at once: a multiple of ``chunks``.
    roi, fit_to_roi : tuple of slice and bool, optional
        The region to copy, and whether the copy has its shape.
    use_zarr_format, verbose : optional
        Must not be true; has no effect.
    """
    source, target = File(in_path)[in_path_in_file], File(out_path, "a", use_zarr_format)
    box = box_of(... if roi is None else roi, source.shape)
    origin = box.start if fit_to_roi else (0,) * source.ndim
    of_blocks = source.chunks if chunks is None else tuple(chunks)
    by_chunk = roi is None and of_blocks == source.chunks
    size = of_blocks if by_chunk or block_shape is None else block_shape
    made = target.require_dataset(
        out_path_in_file,
        box.shape if fit_to_roi else source.shape,
        source.dtype if dtype is None else dtype,
        of_blocks,
        **{"compression": source.compression, **(new_compression or source.compression_opts)},
    )

    def copy(part: tuple[slice, ...]) -> None:
        if by_chunk:
            position = tuple(p.start // n for p, n in zip(part, size, strict=True))
            chunk = source.read_chunk(position)
            if chunk is not None:
                is_varlength = chunk.shape != made.get_chunk_shape(position)
                made.write_chunk(position, chunk.astype(made.dtype, copy=False), is_varlength)
        else:
            to = tuple(slice(p.start - a, p.stop - a) for p, a in zip(part, origin, strict=True))
            made[to] = source[part]

    with ThreadPoolExecutor(n_threads) as threads:
        list(threads.map(copy, blocking(source.shape, size, roi, fit_to_roi)))
    _copy_attributes(source, made)


def rechunk(
    in_path: str,
    out_path: str,
    in_path_in_file: str,
    out_path_in_file: str,
    out_chunks: tuple[int, ...],
    n_threads: int,
    out_blocks: tuple[int, ...] | None = None,
    **options: Any,
) -> None:
    """Copy a dataset into other blocks: `copy_dataset` with older names."""
    copy_dataset(
        in_path, out_path, in_path_in_file, out_path_in_file, n_threads, out_chunks, out_blocks,
        **options,
    )  # fmt: skip


def copy_group(
    in_path: str, out_path: str, in_path_in_file: str, out_path_in_file: str, n_threads: int
) -> None:
    """Copy a group with all below it."""
    source = File(in_path)[in_path_in_file]
    made = File(out_path, "a").require_group(out_path_in_file)
    _copy_attributes(source, made)

    def copy(name: str, node: Group | Dataset) -> None:
        if isinstance(node, Dataset):
            inner = f"{in_path_in_file}/{name}", f"{out_path_in_file}/{name}"
            copy_dataset(in_path, out_path, *inner, n_threads)
        else:
            _copy_attributes(node, made.require_group(name))

    source.visititems(copy)


def _copy_attributes(source: Group | Dataset, made: Group | Dataset) -> None:
    made.attrs.update({key: value for key, value in source.attrs.items() if key != "n5"})
