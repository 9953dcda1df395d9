"""Check some blocks of a dataset together, in a worker."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import batched
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from n5zarr.codecs.block import decode_numeric
from n5zarr.codecs.shard import Shard
from n5zarr.container.block_listing import Ask
from n5zarr.errors import N5BlockError
from n5zarr.format.attributes import READ_SHARDS, DatasetAttributes
from n5zarr.format.block import BlockHeader
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple, to_c, to_n5
from n5zarr.format.path import join
from n5zarr.images.source import ends_of_blocks
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.requests import Get, read_each, request_each
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.nodes import (
    ENDS,
    EdgeForm,
    form_of,
    has_values_outside,
    read_ends,
)
from n5zarr.tools.jobs.run import SMALL
from n5zarr.tools.validate.blocks import (
    StoredBlock,
    UsualBlocks,
    check_block,
    framing_of,
    shard_in,
    whole,
)
from n5zarr.tools.validate.documents import check_dataset
from n5zarr.tools.validate.files import each_or_error, reason
from n5zarr.tools.validate.findings import Finding, KindOfFinding, finding

_AT_A_TIME = 32  # blocks in one batch of requests


@dataclass(frozen=True, slots=True)
class Batch:
    """Some blocks of a dataset, to be checked together, or its document.

    Parameters
    ----------
    path : str
        Path of the dataset.
    dataset : DatasetAttributes
        Its document.
    positions : tuple of tuple of int
        Grid positions of the blocks, N5 order; none to check the document of the dataset.
    outside : bool
        Whether to check only the elements of blocks outside the dataset.
    """

    path: str
    dataset: DatasetAttributes
    positions: tuple[N5Tuple, ...]
    outside: bool = False

    @property
    def n_bytes(self) -> int:
        """Decoded size of the blocks."""
        n_elements = math.prod(self.dataset.block_size)
        return len(self.positions) * n_elements * self.dataset.data_type.item_size

    @property
    def key(self) -> str:
        """A text that identifies the batch; it differs if the dataset has changed."""
        dataset = self.dataset
        form = (dataset.dimensions, dataset.block_size, dataset.type_name, dataset.compression)
        what = (form, self.positions, self.outside)
        return f"{self.path}:{zlib.crc32(repr(what).encode()):08x}"


@dataclass(slots=True)
class BatchReport:
    """The result of checking a batch.

    Parameters
    ----------
    key : str
        Key of the batch.
    findings : list of Finding
        The problems.
    n_blocks, n_bytes : int
        Number of blocks that exist, and their stored size.
    n_usual : int
        Number of blocks at the end of the dataset that are truncated, or padded with one value.
    padded : list of tuple of int
        Grid positions of the blocks whose padding has not been checked.
    odd : list of tuple of int
        Grid positions of the blocks that have other values outside of the dataset.
    grids : list of tuple of int or None
        Numbers of blocks in a shard of Java N5 4 that fit all files that are shards; None if
        there are none.
    framings : dict of str to int
        How many blocks are in the form of each program, where programs differ.
    """

    key: str
    findings: list[Finding] = field(default_factory=list)
    n_blocks: int = 0
    n_bytes: int = 0
    n_usual: int = 0
    padded: list[N5Tuple] = field(default_factory=list)
    odd: list[N5Tuple] = field(default_factory=list)
    grids: list[N5Tuple] | None = None
    framings: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Path of the dataset."""
        return self.key.rpartition(":")[0]

    def count(self, form: str | None, position: N5Tuple) -> None:
        """Count a block by its form; whether one is padded with one value is found later."""
        if form == "padded":
            self.padded.append(position)
        self.n_usual += form == "truncated"

    def count_framing(self, framing: str | None) -> None:
        """Count a block by the program whose form it has, if programs differ."""
        if framing is not None:
            self.framings[framing] = self.framings.get(framing, 0) + 1

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> BatchReport:
        """Make a report from its members as plain JSON."""
        report = cls(**members)
        report.findings = list(map(Finding.from_json, members["findings"]))
        for name in ("padded", "odd", "grids"):
            if members[name] is not None:
                setattr(report, name, [N5Tuple(tuple(numbers)) for numbers in members[name]])
        return report


class CheckTask(NamedTuple):
    """The batches that a worker checks together."""

    batches: Sequence[Batch]

    @property
    def n_bytes(self) -> int:
        """Decoded size of the blocks."""
        return sum(batch.n_bytes for batch in self.batches)

    @property
    def is_light(self) -> bool:
        """Whether the blocks are so small that checking them is mostly work of Python."""
        return self.n_bytes <= SMALL * sum(len(batch.positions) or 1 for batch in self.batches)


def check_batches(store: N5Store, task: CheckTask, *, deep: bool) -> list[BatchReport]:
    """Check the batches of a task; with ``deep``, decode every block."""
    with asking_once():  # datasets of one group share the documents above
        return [_check_batch(store, batch, deep=deep) for batch in task.batches]


def _check_batch(store: N5Store, batch: Batch, *, deep: bool) -> BatchReport:
    report = BatchReport(batch.key)
    if not batch.positions:
        report.findings += _check_document(store, batch.path)
    for position, block in _read(store, batch, report, deep=deep):
        if isinstance(block, Exception):
            is_payload = getattr(block, "kind", None) == "payload"
            kind: KindOfFinding = "payload" if is_payload else "unreadable"
            report.findings.append(finding(kind, batch.path, reason(block), block=position))
            continue
        form: EdgeForm | None = "padded"
        if not batch.outside:
            found = list(check_block(block, batch.dataset, batch.path, position, deep=deep))
            report.findings += found
            report.n_blocks += 1
            report.n_bytes += block.size
            form = _form(block, batch, position, found)
            if all(each.severity != "error" for each in found):
                report.count_framing(framing_of(block, batch.dataset))
            is_shard = any(each.kind == "shard" for each in found)
            shard = shard_in(block, batch.dataset) if is_shard else None
            if shard is not None and shard.n > 1:
                report.grids = _possible_grids(shard, position, batch.dataset, report.grids)
        if form == "padded" and (deep or batch.outside):
            is_odd = _is_odd(block, batch, position)
            report.odd += [position] * is_odd
            report.n_usual += not is_odd
        else:
            report.count(form, position)
    return report


def _check_document(store: N5Store, path: str) -> Iterator[Finding]:
    ask, nodes = store.storage.run, store.container.nodes
    view = ask(nodes.datasets([path])).get(path)
    if view is not None:  # None for datasets that are no arrays
        yield from check_dataset(ask, nodes, path, view)


def _read(
    store: N5Store, batch: Batch, report: BatchReport, *, deep: bool
) -> Iterator[tuple[N5Tuple, StoredBlock | Exception]]:
    """Read the needed parts of blocks; omit blocks that are removed meanwhile.

    Usual blocks, of which nothing is to be found, are only counted in the report. In the place of a
    file that cannot be read comes the error.
    """
    is_whole = deep or batch.outside
    read = partial(_stored_blocks, store.storage.run, is_whole=is_whole)
    usual = None if is_whole else UsualBlocks(batch.dataset)
    for positions in batched(batch.positions, _AT_A_TIME):
        unusual = []
        for position, ends in _ends_of(store, batch, positions, is_whole=is_whole):
            form = None if ends is None or usual is None else usual.form(ends, position)
            if ends is not None and form is not None:
                report.n_blocks += 1
                report.n_bytes += ends[0]
                report.count(form, position)
            else:
                key = join(batch.path, block_path(position))
                unusual.append((position, key, ends))
        left = [key for _, key, ends in unusual if ends is None]
        blocks = iter(each_or_error(read, left) if left else ())
        for position, key, ends in unusual:
            block = _stored(store.storage.run, key, ends) if ends else next(blocks)
            if getattr(block, "kind", None) == "shard":  # too large to be read whole
                (block,) = read([key], is_whole=False)
            if block is not None:
                yield position, block


def _ends_of(
    store: N5Store, batch: Batch, positions: Sequence[N5Tuple], *, is_whole: bool
) -> Iterator[tuple[N5Tuple, tuple[int, bytes, bytes] | None]]:
    """Read both ends of blocks together, unless they are a small part of what is needed."""
    is_in_part = is_whole and batch.n_bytes > ENDS * len(batch.positions)
    some = () if is_in_part else positions
    known = ends_of_blocks(store, batch.path, some, ENDS, ENDS) or [None] * len(positions)
    for position, ends in zip(positions, known, strict=True):
        is_short = is_whole and ends is not None and len(ends[1]) < ends[0]
        yield position, None if is_short else ends  # a request refuses a far longer file


def _stored_blocks(ask: Ask, keys: Sequence[str], *, is_whole: bool) -> list[StoredBlock | None]:
    """Read blocks, or their ends; None for each missing one."""
    if is_whole:
        return [None if data is None else whole(data) for data in ask(read_each(keys))]
    each = zip(keys, ask(read_ends(keys)), strict=True)
    return [None if ends is None else _stored(ask, key, ends) for key, ends in each]


def _stored(ask: Ask, key: str, ends: tuple[int, bytes, bytes]) -> StoredBlock:
    """Make a stored block from its ends, which reads the rest if it is needed."""

    def read(part: tuple[int, int] | None) -> bytes | None:
        (found,) = ask(request_each([Get(key, part=part)]))
        return None if found is None else bytes(found)

    return StoredBlock(*ends, read)


def _form(
    block: StoredBlock, batch: Batch, position: N5Tuple, found: Sequence[Finding]
) -> EdgeForm | None:
    """Tell how a block at the end of a dataset is stored; None unless it is sound, of numbers."""
    dataset = batch.dataset
    is_sound = all(each.severity != "error" for each in found)
    is_numeric = dataset.data_type not in (DataType.STRING, DataType.OBJECT)
    if not (is_sound and is_numeric) or dataset.is_label_multiset:
        return None
    return form_of(BlockHeader.from_bytes(block.outline).block_shape, dataset, position)


def _is_odd(block: StoredBlock, batch: Batch, position: N5Tuple) -> bool:
    """Whether a padded block has values outside of the dataset that are no padding."""
    dataset = batch.dataset
    extent = dataset.extent_of(position)
    try:
        elements = decode_numeric(block.whole, dataset.ndim, dataset.data_type, dataset.compression)
    except N5BlockError:  # found by the check of the block, or changed since
        return False
    return has_values_outside(elements, extent)


# ---------------------------------------------------------------------- shards

# The document does not tell the size of shards of Java N5 4. Java, n5 commit 7ba6b144,
# ``shard/Nesting.java``: a file lies at its position in the grid of shards, and its index has one
# entry for each block, x fastest, also for those outside of the dataset.


def _possible_grids(
    shard: Shard,
    position: N5Tuple,
    dataset: DatasetAttributes,
    among: Iterable[N5Tuple] | None = None,
) -> list[N5Tuple]:
    """List the numbers of blocks along each axis that a shard may have.

    Parameters
    ----------
    shard : Shard
        Its index.
    position : tuple of int
        Position of the file, N5 order.
    dataset : DatasetAttributes
        Its dataset.
    among : iterable of tuple of int, optional
        Those that fit other files of the dataset; all products by default.

    Returns
    -------
    list of tuple of int
        In N5 order: with these, no block of the shard is outside of the dataset.
    """
    there = np.flatnonzero([place is not None for place in shard.ranges])
    return [
        grid
        for grid in (_products(shard.n, dataset.ndim) if among is None else among)
        if np.prod(grid) == shard.n and _is_inside(there, grid, position, dataset.grid)
    ]


def _products(n: int, ndim: int) -> Iterator[N5Tuple]:
    """Yield the tuples of ``ndim`` numbers with the product ``n``."""
    if ndim <= 1:
        if ndim == 1 or n == 1:
            yield N5Tuple((n,) * ndim)
        return
    for first in (k for k in range(1, n + 1) if n % k == 0):
        yield from (N5Tuple((first, *rest)) for rest in _products(n // first, ndim - 1))


def _is_inside(there: np.ndarray, grid: N5Tuple, position: N5Tuple, blocks: N5Tuple) -> bool:
    """Whether the position of a shard and all its blocks are inside of the dataset."""
    first = tuple(map(mul, position, grid))
    last = [axis.max(initial=0) for axis in to_n5(np.unravel_index(there, to_c(grid)))]
    return all(f + k < n for f, k, n in zip(first, last, blocks, strict=True))


def size_finding(path: str, dataset: DatasetAttributes, grids: Iterable[N5Tuple]) -> Finding:
    """Make the finding that names the size of the shards of a dataset.

    Parameters
    ----------
    path : str
        Of the dataset.
    dataset : DatasetAttributes
        Its document.
    grids : iterable of tuple of int
        The grids of :func:`_possible_grids` that fit all files.
    """
    grids = list(grids)
    sizes = [_text(map(mul, grid, dataset.block_size)) for grid in grids]
    if len(sizes) == 1:
        chunks = f"{_text(grids[0])} chunks of {_text(dataset.block_size)} elements"
        message = f"shards of {sizes[0]} elements (z, y, x), {chunks}; {READ_SHARDS}"
    elif sizes:
        message = (
            f"these sizes of shards (z, y, x) fit the files: {' or '.join(sizes)}; ask who wrote "
            f"them; {READ_SHARDS}"
        )
    else:
        message = "no size of shards fits all files: blocks may have been written among them"
    return finding("shard-size", path, message)


def _text(sizes_n5: Iterable[int]) -> str:
    return ",".join(map(str, to_c(sizes_n5)))
