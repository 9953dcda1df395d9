"""``n5zarr.repair_edges``: store all blocks at the end of datasets padded, or all truncated."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import batched, chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from n5zarr.codecs.block import decode_numeric, encode_payload, pad_or_truncate
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.container.block_listing import stored_positions
from n5zarr.container.options import check_option
from n5zarr.errors import N5Error
from n5zarr.format.block import BlockHeader
from n5zarr.format.order import to_c
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import Update
from n5zarr.tools.jobs.nodes import BlockTask, walk
from n5zarr.tools.jobs.run import RunOptions
from n5zarr.tools.validate.blocks import form_of, has_values_outside
from n5zarr.tools.validate.files import open_to_repair, read_ends
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from n5zarr.format.attributes import DatasetAttributes
    from n5zarr.format.order import N5Tuple
    from n5zarr.storage.place import Backend, Location
    from n5zarr.storage.requests import Steps
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.run import Progress, Scheduler

__all__ = ["EdgeRepair", "repair_edges"]

_BLOCKS = 64  # in a task

type Wanted = Literal["pad", "truncate"]


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
    to: Wanted,
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
    place = place_of(location, storage_options, backend)
    check_option("to", to, ("pad", "truncate"))
    store, node_path = open_to_repair(place, path)
    found = {
        each.path: each.node
        for each in walk(store, node_path, store.storage.run)
        if isinstance(each.node, DatasetView)
    }
    skipped = {p: reason for p, view in found.items() if (reason := _reason_to_skip(view))}
    datasets = {p: view for p, view in found.items() if p not in skipped}
    counts = Counter(n_rewritten=0, n_as_wanted=0, n_with_values=0)
    work = partial(_repair_blocks, store, to=to)
    tasks = chain.from_iterable(_tasks(store, p, view) for p, view in datasets.items())
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


def _tasks(store: N5Store, path: str, view: DatasetView) -> Iterator[BlockTask]:
    """Yield the stored blocks at the end of a dataset, some at a time."""
    dataset = view.dataset
    positions = stored_positions(store.storage.run, path, dataset.grid)
    at_end = (p for p in positions if dataset.extent_of(p) != dataset.block_size)
    for some in batched(at_end, _BLOCKS):
        yield BlockTask(path, view, some)


def _repair_blocks(
    store: N5Store, task: BlockTask, *, to: Wanted
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

    yield [Update(key, rewritten)]
    return had_values
