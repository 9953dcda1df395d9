"""``n5zarr.remove_empty_blocks``: remove stored blocks that hold only the fill value.

N5 spec, "File-system specification", item 6: datasets are sparse, so such a block may be missing.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import batched
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.container.block_listing import stored_positions
from n5zarr.container.node_names import Broken
from n5zarr.container.walk import Unreadable, Walk
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.grid import block_path, is_block_name
from n5zarr.format.path import join
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import Steps, Update, read_each
from n5zarr.store.location import open_container
from n5zarr.store.missing_nodes import not_found
from n5zarr.tools.jobs.run import run_tasks
from n5zarr.zarr_view.chunks import stored_chunk
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from n5zarr.format.order import N5Tuple
    from n5zarr.storage.place import Backend, Location
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.run import Progress, Scheduler

__all__ = ["RemovedBlocks", "remove_empty_blocks"]

_log = logging.getLogger(__name__)

_AT_A_TIME = 32  # blocks that one task reads: a server answers many requests together


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedBlocks:
    """The result of :func:`remove_empty_blocks`: what it has removed, or would remove.

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


class _Task(NamedTuple):
    path: str
    view: DatasetView
    positions: tuple[N5Tuple, ...]


class _Done(NamedTuple):
    n_elements: int
    n_blocks: int
    removed: list[int]  # sizes
    problems: list[Exception]

    def counted(self) -> Counter[str]:
        """Count blocks and bytes."""
        return Counter(
            n_elements=self.n_elements,
            n_blocks=self.n_blocks,
            n_removed=len(self.removed),
            n_bytes=sum(self.removed),
        )


def remove_empty_blocks(  # noqa: PLR0913 - what all long runs take
    store: Location,
    path: str = "",
    *,
    dry_run: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> RemovedBlocks:
    """Remove stored blocks with only the fill value from a dataset, or from all below a group.

    The datasets read as before. Only datasets of numbers are checked; text, objects and label
    multisets have no fill value that all programs share. Blocks are compared bit by bit, in their
    whole stored extent; so blocks with -0.0 or with data beyond the end of the dataset stay. Local
    blocks are locked, and checked again before they are removed, so that nothing is lost if another
    program is writing. On servers without conditional requests, no program should write meanwhile.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Node below ``store``.
    dry_run : bool, optional
        Count, and remove nothing.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers : optional
        Where to run it, see :func:`~n5zarr.tools.jobs.run.run_tasks`.
    progress : callable, optional
        Called with ``"look for empty blocks"``, the bytes of elements done and to do.

    Returns
    -------
    RemovedBlocks
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
    place = place_of(store, storage_options, backend)
    opened, node = open_container(place, path, read_only=dry_run)
    if opened.read_only and not dry_run:
        message = "expected a writable store, got a read-only one"
        raise N5UnsupportedError(message, kind="read-only", where=str(opened))
    problems: list[Exception] = []
    found = dict(_datasets(opened, node, problems))
    tasks = (
        _Task(where, view, positions)
        for where, view in found.items()
        for positions in batched(_positions(opened, where, view), _AT_A_TIME)
    )
    n_bytes = sum(math.prod(view.dataset.grid) * view.full_n_bytes for view in found.values())
    work = partial(_look_and_remove, opened, dry_run=dry_run)
    counts: Counter[str] = Counter()
    for done in run_tasks(work, tasks, scheduler=scheduler, n_workers=n_workers):
        counts += done.counted()
        problems += done.problems
        if progress is not None:
            progress("look for empty blocks", counts["n_elements"], n_bytes)
    if progress is not None and n_bytes:
        progress("look for empty blocks", n_bytes, n_bytes)
    root = opened.storage.root
    pruned = 0 if dry_run or root is None else sum(_prune(root / where) for where in found)
    return RemovedBlocks(
        n_datasets=len(found),
        n_blocks=counts["n_blocks"],
        n_removed=counts["n_removed"],
        n_bytes=counts["n_bytes"],
        n_directories=pruned,
        problems=tuple(problems),
    )


def _datasets(
    opened: N5Store, path: str, problems: list[Exception]
) -> Iterator[tuple[str, DatasetView]]:
    """Yield the datasets at and below a node; collect nodes that cannot be read."""
    node = opened.node(path)
    if node is None:
        raise not_found(opened, path)
    for found, _ in Walk(opened.container.nodes, opened.ask).run(path, node):
        if isinstance(found.node, DatasetView):
            yield found.path, found.node
        elif isinstance(found.node, Unreadable | Broken) and _is_damaged(found.node):
            problems.append(found.node.error)


def _is_damaged(node: Unreadable | Broken) -> bool:
    """Whether a node may hold blocks but cannot be read; False if it is no array or no N5."""
    return isinstance(node, Unreadable) or node.error.kind not in ("foreign", "data-type")


def _positions(opened: N5Store, path: str, view: DatasetView) -> Iterator[N5Tuple]:
    if view.content is not Content.NUMBERS:  # text, objects and label multisets have no zero
        return
    n_blocks = 0
    for position in stored_positions(opened.ask, path, view.dataset.grid):
        n_blocks += 1
        yield position
    _log.info("%s: /%s: %d blocks", opened, path, n_blocks)


def _look_and_remove(opened: N5Store, task: _Task, *, dry_run: bool) -> _Done:
    """Read some blocks, and remove those that are empty."""
    keys = [join(task.path, block_path(position)) for position in task.positions]
    blocks = opened.ask(read_each(keys))
    done = _Done(len(keys) * task.view.full_n_bytes, len(keys), [], [])
    empty: list[str] = []
    for key, position, block in zip(keys, task.positions, blocks, strict=True):
        try:
            if block is not None and _is_empty(block, task.view):
                empty.append(key)
                done.removed.append(len(block))
        except N5Error as err:
            where = opened.container.chunks.block_name(task.path, position)
            done.problems.append(err.located(where))
    if not dry_run and empty:
        sizes = opened.ask(_remove_each(empty, task.view))
        done.removed[:] = [size for size in sizes if size is not None]
    return done


def _remove_each(keys: Sequence[str], view: DatasetView) -> Steps[list[int | None]]:
    """Remove blocks that are still empty; return the size of each that is removed."""
    sizes: dict[str, int | None] = dict.fromkeys(keys)

    def without_empty(key: str, block: bytes | None) -> bytes | None:
        # called again if another program has written meanwhile
        is_empty = block is not None and _is_empty(block, view)
        sizes[key] = len(block) if block is not None and is_empty else None
        return None if is_empty else block

    yield [Update(key, partial(without_empty, key)) for key in keys]
    return list(sizes.values())


def _is_empty(block: bytes, view: DatasetView) -> bool:
    """Whether a block holds only the fill value, bit by bit."""
    check_not_sharded(*in_memory(block), view.dataset.data_type, view.dataset.compression)
    chunk = stored_chunk(memoryview(block), view)
    fill = np.asarray(0 if view.element is None else view.element.stored_fill, chunk.dtype)
    bits = f"u{chunk.dtype.itemsize}"
    return not np.any(np.ascontiguousarray(chunk).view(bits) != fill.view(bits))


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
