"""Change how blocks are stored, not what they hold: remove empty blocks, pad or truncate others.

N5 spec, "File-system specification", item 6: datasets are sparse, so a block that holds only the
fill value may be missing. Blocks at the end of a dataset have the full ``blockSize``, or end there.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import batched, chain, compress
from pathlib import Path
from typing import Literal

import numpy as np

from n5zarr.arrays.open_dataset import OpenDataset
from n5zarr.codecs.block import decode_numeric, encode_payload, pad_or_truncate
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.container.block_listing import stored_positions
from n5zarr.container.node_names import Broken
from n5zarr.container.options import check_option
from n5zarr.container.walk import Unreadable
from n5zarr.errors import N5Error
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import is_block_name
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.rooms import Door
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.storage.requests import MANY_BYTES, Steps, Update, read_each
from n5zarr.store.locating import open_container
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.nodes import (
    BlockTask,
    block_tasks,
    form_of,
    has_values_outside,
    open_to_repair,
    read_ends,
    walk,
)
from n5zarr.tools.jobs.run import Progress, RunOptions, Scheduler
from n5zarr.zarr_view.chunks import stored_chunk
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

_AT_A_TIME = 32  # blocks that one task reads: a server answers many requests together
_MOST_AT_A_TIME = 512  # of small ones
_TOGETHER = 2**21  # bytes of these
_AT_ENDS = 64  # blocks at the end of datasets that one task rewrites


type PadOrTruncate = Literal["pad", "truncate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRemoval:
    """The result of :func:`remove_empty_blocks`: what was removed, or would be with ``dry_run``.

    Parameters
    ----------
    n_datasets : int
        Number of datasets that were checked.
    n_blocks : int
        Number of blocks that were read.
    n_removed : int
        Number of blocks with only the fill value.
    n_bytes : int
        Stored size of these blocks.
    n_directories : int
        Number of empty directories that were removed.
    problems : tuple of Exception
        Errors of damaged blocks and unreadable nodes, which stay unchanged.
    """

    n_datasets: int
    n_blocks: int
    n_removed: int
    n_bytes: int
    n_directories: int
    problems: tuple[Exception, ...]


def remove_empty_blocks(  # noqa: PLR0913 - what all long runs take
    location: Location,
    path: str = "",
    *,
    dry_run: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> BlockRemoval:
    """Remove stored blocks with only the fill value from a dataset, or from all below a group.

    The datasets read as before. Only datasets of numbers are checked; text, objects and label
    multisets have no fill value that all programs share. Blocks are compared bit by bit, in their
    whole stored extent; so blocks with -0.0 or with data beyond the end of the dataset stay. Local
    blocks are locked, and checked again before they are removed, so that nothing is lost if another
    program is writing. On servers without conditional requests, no program should write meanwhile.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Node below ``location``.
    dry_run : bool, optional
        Count, and remove nothing.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        ``"threads"``, ``"processes"``, or dask's address or client; number of workers; a callable
        that takes the name of a stage, the bytes done and the bytes to do.

    Returns
    -------
    BlockRemoval
        Counts. The fill value is 0, or the one that Zarr wrote into n5zarr's record; other programs
        read missing blocks as 0 even then.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5UnsupportedError
        The container can only be read (``kind="read-only"``).
    N5Error
        The node itself is broken or not supported.
    """
    place = place_of(location, storage_options, backend)
    store, node = open_container(place, path, writes=not dry_run)
    problems: list[Exception] = []
    found: dict[str, DatasetView] = {}
    for each in walk(store, node):
        if isinstance(each.node, DatasetView):
            found[each.path] = each.node
        elif isinstance(each.node, Unreadable | Broken) and _is_damaged(each.node):
            problems.append(each.node.error)
    tasks = chain.from_iterable(
        block_tasks(store, where, view, _n_together(view))
        for where, view in found.items()
        if view.content is Content.NUMBERS  # text, objects and label multisets have no zero
    )
    total = sum(math.prod(view.dataset.grid) * view.full_n_bytes for view in found.values())
    work = partial(_check_blocks, store, dry_run=dry_run)
    run, n_blocks = RunOptions(scheduler, n_workers, progress), 0
    removed: list[int] = []
    done = run.each(work, tasks, "look for empty blocks", total, is_light=lambda t: t.is_light)
    for task, (sizes, damaged) in done:
        n_blocks += len(task.positions)
        removed += sizes
        problems += damaged
    root = None if dry_run else store.storage.root
    return BlockRemoval(
        n_datasets=len(found),
        n_blocks=n_blocks,
        n_removed=len(removed),
        n_bytes=sum(removed),
        n_directories=0 if root is None else sum(_prune(root / where) for where in found),
        problems=tuple(problems),
    )


def _check_blocks(
    store: N5Store, task: BlockTask, *, dry_run: bool
) -> tuple[list[int], list[Exception]]:
    """Remove the empty blocks of a task; return their sizes, and the errors of damaged blocks."""
    sizes: dict[str, int] = {}
    problems: list[Exception] = []
    is_filled = _are_filled(store, task)
    task = task._replace(positions=tuple(compress(task.positions, ~is_filled)))
    blocks = store.run(read_each(task.keys))
    for key, position, block in zip(task.keys, task.positions, blocks, strict=True):
        try:
            if block is not None and _is_empty(block, task.view):
                sizes[key] = len(block)
        except N5Error as err:
            problems.append(err.located(store.container.chunks.block_name(task.path, position)))
    if not dry_run and sizes:
        store.run(_remove_each(sizes, task.view))
    return list(sizes.values()), problems


def _n_together(view: DatasetView) -> int:
    """Return how many blocks one task reads; small ones are decoded together."""
    return max(_AT_A_TIME, min(_MOST_AT_A_TIME, _TOGETHER // max(1, view.full_n_bytes)))


def _is_damaged(node: Unreadable | Broken) -> bool:
    """Whether a node may hold blocks but cannot be read; False if it is no array or no N5."""
    return isinstance(node, Unreadable) or node.error.kind not in ("foreign", "data-type")


_READ_WHOLE: Door[
    Callable[
        [OpenDataset, Sequence[N5Tuple], np.dtype, object],
        Iterator[tuple[Sequence[int], np.ndarray]],
    ]
] = Door("speed", "whole blocks")


def _are_filled(store: N5Store, task: BlockTask) -> np.ndarray:
    """Tell which blocks hold more than the fill value; False also of those that are to be read."""
    dataset, fill = OpenDataset(store, task.path, task.view), _fill_of(task.view)
    is_filled = np.zeros(len(task.positions), bool)
    dtype = task.view.dataset.data_type.dtype.newbyteorder("=")
    read_whole = _READ_WHOLE.found()
    if read_whole is None:
        return is_filled
    for numbers, chunks in read_whole(dataset, task.positions, dtype, fill):
        axes = tuple(range(1, chunks.ndim))
        is_filled[list(numbers)] = _differs(chunks, fill).any(axis=axes)
    return is_filled


def _remove_each(sizes: dict[str, int], view: DatasetView) -> Steps[None]:
    """Remove blocks that are still empty; keep the sizes of these only."""

    def without_empty(key: str, block: bytes | None) -> bytes | None:
        # called again if another program has written meanwhile
        sizes.pop(key, None)
        if block is None or not _is_empty(block, view):
            return block
        sizes[key] = len(block)
        return None

    yield [Update(key, partial(without_empty, key), MANY_BYTES) for key in list(sizes)]


def _is_empty(block: bytes, view: DatasetView) -> bool:
    """Whether a block holds only the fill value, bit by bit."""
    check_not_sharded(*in_memory(block), view.dataset.data_type, view.dataset.compression)
    chunk = stored_chunk(memoryview(block), view)
    return not _differs(np.ascontiguousarray(chunk), _fill_of(view)).any()


def _fill_of(view: DatasetView) -> object:
    return 0 if view.element is None else view.element.stored_fill


def _differs(elements: np.ndarray, fill: object) -> np.ndarray:
    """Tell which elements of a contiguous array are others than the fill value, bit by bit."""
    bits = f"u{elements.dtype.itemsize}"
    differs: np.ndarray = elements.view(bits) != np.asarray(fill, elements.dtype).view(bits)
    return differs


def _prune(dataset: Path) -> int:
    """Remove empty directories of a block grid; return how many."""
    n_removed = 0
    for numbered in (entry for entry in dataset.iterdir() if is_block_name(entry.name)):
        for directory, _, _ in numbered.walk(top_down=False):
            if all(map(is_block_name, directory.relative_to(dataset).parts)):
                with contextlib.suppress(OSError):  # not empty, or gone
                    directory.rmdir()
                    n_removed += 1
    return n_removed


# ---------------------------------------------------------------------- ends of datasets


@dataclass(frozen=True, kw_only=True)
class EdgeRepair:
    """The result of :func:`n5zarr.repair_edges`.

    Parameters
    ----------
    n_rewritten : int
        Number of blocks that were rewritten.
    n_as_wanted : int
        Number of blocks at the end of a dataset that had the wanted form already.
    n_with_values : int
        Number of truncated blocks whose values outside of the dataset are lost.
    skipped : mapping of str to str
        Reasons why others stay unchanged, by block or dataset.
    """

    n_rewritten: int
    n_as_wanted: int
    n_with_values: int
    skipped: Mapping[str, str]


def repair_edges(  # noqa: PLR0913 - one keyword for each option
    location: Location,
    path: str = "",
    *,
    to: PadOrTruncate,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> EdgeRepair:
    """Store all blocks at the end of a dataset padded, like tensorstore, or truncated, like Java.

    The values in the dataset stay unchanged. Truncating a padded block drops its values outside the
    dataset. Each block is replaced atomically; blocks inside the dataset, damaged blocks, strings,
    objects and label multisets are not changed.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Node below ``location``: a dataset, or a group with datasets at any depth.
    to : {"pad", "truncate"}
        ``"pad"``: blocks get the full ``blockSize``. ``"truncate"``: blocks end with the dataset.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        ``"threads"``, ``"processes"``, or dask's address or client; number of workers; a callable
        that takes the name of a stage, the bytes done and the bytes to do.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5Error
        The container cannot be written.
    """
    check_option("to", to, ("pad", "truncate"))
    store, node_path = open_to_repair(place_of(location, storage_options, backend), path)
    found = {
        each.path: each.node
        for each in walk(store, node_path, store.storage.run)
        if isinstance(each.node, DatasetView)
    }
    skipped = {p: reason for p, view in found.items() if (reason := _reason_to_skip(view))}
    datasets = {p: view for p, view in found.items() if p not in skipped}
    counts = Counter(n_rewritten=0, n_as_wanted=0, n_with_values=0)
    work = partial(_repair_blocks, store, to=to)
    tasks = (
        BlockTask(where, view, some)
        for where, view in datasets.items()
        for some in batched(_at_end(store, where, view.dataset), _AT_ENDS)
    )
    total = sum(map(_n_bytes_at_end, datasets.values()))
    run = RunOptions(scheduler, n_workers, progress)
    for _, (counted, problems) in run.each(work, tasks, "repair edges", total):
        counts.update(counted)
        skipped |= problems
    return EdgeRepair(**counts, skipped=skipped)


def _reason_to_skip(view: DatasetView) -> str:
    """Return the reason why a dataset's blocks cannot be written; ``""`` if they can."""
    if view.content is not Content.NUMBERS:
        return f"holds {view.content.value}"
    try:
        codec_of(view.dataset.compression).check_writable(view.dataset.compression)
    except N5Error as err:
        return err.message
    return ""


def _n_bytes_at_end(view: DatasetView) -> int:
    """Return the largest decoded size of all blocks that the end of the dataset truncates."""
    dataset = view.dataset
    pairs = zip(dataset.dimensions, dataset.block_size, strict=True)
    n_inside = math.prod(n // size for n, size in pairs)
    return (math.prod(dataset.grid) - n_inside) * view.full_n_bytes


def _at_end(store: N5Store, path: str, dataset: DatasetAttributes) -> Iterator[N5Tuple]:
    """Return the positions of the stored blocks at the end of a dataset."""
    positions = stored_positions(store.storage.run, path, dataset.grid)
    return (p for p in positions if dataset.extent_of(p) != dataset.block_size)


def _repair_blocks(
    store: N5Store, task: BlockTask, *, to: PadOrTruncate
) -> tuple[Counter[str], dict[str, str]]:
    """Rewrite blocks that have another form; return counts, and reasons for unchanged blocks."""
    counts: Counter[str] = Counter()
    problems: dict[str, str] = {}
    dataset = task.view.dataset
    each = store.storage.run(read_ends(task.keys))
    for position, key, ends in zip(task.positions, task.keys, each, strict=True):
        if ends is None:
            continue
        try:
            shape = BlockHeader.from_bytes(ends[1]).block_shape
            wanted = dataset.block_size if to == "pad" else dataset.extent_of(position)
            if shape == wanted:
                counts["n_as_wanted"] += 1
            elif form_of(shape, dataset, position) == "other":
                problems[key] = f"its sizes are those of another position, {shape}"
            else:
                had_values = store.storage.run(_rewrite(key, dataset, position, wanted))
                counts["n_rewritten"] += 1
                counts["n_with_values"] += to == "truncate" and had_values
        except N5Error as err:
            problems[key] = err.message
    return counts, problems


def _rewrite(
    key: str, dataset: DatasetAttributes, position: N5Tuple, wanted: N5Tuple
) -> Steps[bool]:
    """Store a block with another extent; return whether it had values outside of the dataset."""
    data_type, compression = dataset.data_type, dataset.compression
    had_values = False

    def rewritten(old: bytes | None) -> bytes | None:
        nonlocal had_values
        if old is None:
            return None
        check_not_sharded(*in_memory(old), data_type, compression)
        block = decode_numeric(memoryview(old), dataset.ndim, data_type, compression)
        extent = dataset.extent_of(position)
        inside = pad_or_truncate(block, to_c(extent))
        is_filled = np.count_nonzero(block) > np.count_nonzero(inside)
        had_values = has_values_outside(block, extent) or bool(is_filled)
        return encode_payload(pad_or_truncate(block, to_c(wanted)), data_type, compression)

    yield [Update(key, rewritten, MANY_BYTES)]
    return had_values
