"""``n5zarr.repair_edges``: store all blocks at the end of datasets padded, or all truncated."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import batched
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from n5zarr.codecs.block import decode_numeric, encode_payload, pad_or_truncate
from n5zarr.codecs.compress import check_writable
from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.container.options import check_option
from n5zarr.container.walk import Walk
from n5zarr.errors import N5Error
from n5zarr.format.block import BlockHeader
from n5zarr.format.grid import block_extent, block_path
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.format.path import join
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import Steps, Update
from n5zarr.store.missing_nodes import not_found
from n5zarr.tools.jobs.run import run_tasks
from n5zarr.tools.validate.blocks import form_of, has_values_outside
from n5zarr.tools.validate.files import ask_quietly, blocks_of, open_to_repair, read_ends
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.format.attributes import DatasetAttributes
    from n5zarr.storage.place import Backend, Location
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.jobs.run import Progress, Scheduler

__all__ = ["RepairedEdges", "repair_edges"]

_BLOCKS = 64  # in a task

type Wanted = Literal["pad", "truncate"]


@dataclass(frozen=True, kw_only=True)
class RepairedEdges:
    """The result of :func:`n5zarr.repair_edges`.

    Parameters
    ----------
    n_rewritten : int
        How many blocks were written again.
    n_as_wanted : int
        How many blocks at the end of a dataset were so already.
    n_with_values : int
        Of the blocks that were truncated, how many had values outside of the dataset, which are
        gone.
    skipped : mapping of str to str
        Why others are as they were, by block or dataset.
    """

    n_rewritten: int
    n_as_wanted: int
    n_with_values: int
    skipped: Mapping[str, str]


class _Part(NamedTuple):
    path: str
    dataset: DatasetAttributes
    positions: Sequence[N5Tuple]

    @property
    def n_bytes(self) -> int:
        """Largest decoded size of the blocks."""
        return len(self.positions) * _n_bytes_of_block(self.dataset)


def _n_bytes_of_block(dataset: DatasetAttributes) -> int:
    return math.prod(dataset.block_size) * dataset.data_type.item_size


def _n_bytes_at_end(dataset: DatasetAttributes) -> int:
    """Return the largest decoded size of all blocks that the end of the dataset truncates."""
    pairs = zip(dataset.dimensions, dataset.block_size, strict=True)
    n_inside = math.prod(n // size for n, size in pairs)
    return (math.prod(dataset.grid) - n_inside) * _n_bytes_of_block(dataset)


def repair_edges(  # noqa: PLR0913 - as its neighbours
    store: Location,
    path: str = "",
    *,
    to: Wanted,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> RepairedEdges:
    """Store all blocks at the end of a dataset padded, like tensorstore, or truncated, like Java.

    The values in the dataset stay unchanged. Truncating a padded block drops its values outside the
    dataset. Each block is replaced atomically; blocks inside the dataset, damaged blocks, strings,
    objects and label multisets are not changed.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Node below ``store``: a dataset, or a group with datasets at any depth.
    to : {"pad", "truncate"}
        ``"pad"``: blocks get the full ``blockSize``. ``"truncate"``: blocks end with the dataset.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        As for :func:`n5zarr.validate`.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5Error
        The container cannot be written.
    """
    place = place_of(store, storage_options, backend)
    check_option("to", to, ("pad", "truncate"))
    opened, node_path = open_to_repair(place, path)
    datasets, skipped = _writable_datasets(opened, node_path)
    counts: Counter[str] = Counter()
    work = partial(_repair_part, opened, to=to)
    parts = (part for p, dataset in datasets.items() for part in _parts(opened, p, dataset))
    n_done, total = 0, sum(map(_n_bytes_at_end, datasets.values()))
    for part, counted, problems in run_tasks(work, parts, scheduler=scheduler, n_workers=n_workers):
        counts.update(counted)
        skipped |= problems
        n_done += part.n_bytes
        if progress is not None:
            progress("repair edges", n_done, total)
    if progress is not None and total:
        progress("repair edges", total, total)
    return RepairedEdges(
        n_rewritten=counts["rewritten"],
        n_as_wanted=counts["as_wanted"],
        n_with_values=counts["with_values"],
        skipped=skipped,
    )


def _writable_datasets(
    opened: N5Store, path: str
) -> tuple[dict[str, DatasetAttributes], dict[str, str]]:
    """Return the datasets at and below a node, and reasons why some cannot be written."""
    node = opened.node(path)
    if node is None:
        raise not_found(opened, path)
    datasets: dict[str, DatasetAttributes] = {}
    skipped: dict[str, str] = {}
    for found, _ in Walk(opened.container.nodes, partial(ask_quietly, opened)).run(path, node):
        if isinstance(found.node, DatasetView):
            reason = _cannot(found.node)
            if reason is None:
                datasets[found.path] = found.node.dataset
            else:
                skipped[found.path] = reason
    return datasets, skipped


def _cannot(view: DatasetView) -> str | None:
    """Return the reason why a dataset's blocks cannot be written; None if they can."""
    if view.content is not Content.NUMBERS:
        return f"holds {view.content.value}"
    try:
        check_writable(view.dataset.compression)
    except N5Error as err:
        return err.message
    return None


def _parts(opened: N5Store, path: str, dataset: DatasetAttributes) -> Iterator[_Part]:
    ask = partial(ask_quietly, opened)
    at_end = (
        position
        for position in blocks_of(ask, path, dataset.grid)
        if isinstance(position, tuple) and _extent(dataset, position) != dataset.block_size
    )
    for some in batched(at_end, _BLOCKS):
        yield _Part(path, dataset, some)


def _extent(dataset: DatasetAttributes, position: N5Tuple) -> N5Tuple:
    return block_extent(dataset.dimensions, dataset.block_size, position)


def _repair_part(
    opened: N5Store, part: _Part, *, to: Wanted
) -> tuple[_Part, Counter[str], dict[str, str]]:
    """Write blocks again that have the other form; return counts and problems."""
    counts: Counter[str] = Counter()
    problems: dict[str, str] = {}
    keys = [join(part.path, block_path(position)) for position in part.positions]
    each = ask_quietly(opened, read_ends(keys))
    for position, key, ends in zip(part.positions, keys, each, strict=True):
        if ends is None:
            continue
        try:
            header = BlockHeader.from_bytes(ends[1])
            form = form_of(header.block_shape, part.dataset, position)
            wanted = part.dataset.block_size if to == "pad" else _extent(part.dataset, position)
            if header.block_shape == wanted:
                counts["as_wanted"] += 1
            elif form == "other":
                problems[key] = f"its sizes are those of another position, {header.block_shape}"
            else:
                rewrite = _Rewrite(part.dataset, position, wanted)
                ask_quietly(opened, _update(key, rewrite))
                counts["rewritten"] += 1
                counts["with_values"] += to == "truncate" and rewrite.had_values
        except N5Error as err:
            problems[key] = err.message
    return part, counts, problems


class _Rewrite:
    """Makes a block with the new extent from the stored one, while storage holds its lock."""

    def __init__(self, dataset: DatasetAttributes, position: N5Tuple, wanted: N5Tuple) -> None:
        self._dataset, self._position, self._wanted = dataset, position, wanted
        self.had_values = False

    def __call__(self, old: bytes | None) -> bytes | None:
        if old is None:
            return None
        dataset, data_type = self._dataset, self._dataset.data_type
        check_not_sharded(*in_memory(old), data_type, dataset.compression)
        block = decode_numeric(memoryview(old), dataset.ndim, data_type, dataset.compression)
        extent = _extent(dataset, self._position)
        outside = has_values_outside(block, extent)
        inside = pad_or_truncate(block, to_c(extent))
        self.had_values = outside or _is_filled(block, inside)
        new = pad_or_truncate(block, to_c(self._wanted))
        return encode_payload(new, data_type, dataset.compression)


def _is_filled(block: np.ndarray, inside: np.ndarray) -> bool:
    """Whether a block has more elements other than 0 than its part inside the dataset."""
    return bool(np.count_nonzero(block) > np.count_nonzero(inside))


def _update(key: str, change: _Rewrite) -> Steps[None]:
    yield [Update(key, change)]
