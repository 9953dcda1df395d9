"""``n5zarr.block_statistics``: compute range, mean and histogram, and count empty blocks."""

from __future__ import annotations

import heapq
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import batched
from typing import NamedTuple

import numpy as np

from n5zarr.container.block_listing import stored_rows
from n5zarr.errors import ErrorsAt, N5UnsupportedError
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.not_found import NotFoundError
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.storage.requests import read_each
from n5zarr.store.info import counted
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import datasets_below, existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.nodes import BlockTask
from n5zarr.tools.jobs.run import Progress, RunOptions, Scheduler
from n5zarr.zarr_view.chunks import stored_chunk
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

_BLOCKS = 8  # in a task, at least
_TASK_BYTES = 2**19  # of small blocks
_SAMPLED = 2**12  # blocks from which a sample is chosen at a time
_COUNTED = (  # numbers that blocks add to
    "n_read",
    "n_zero",
    "n_elements",
    "n_nan",
    "n_infinite",
    "n_bytes",
    "n_bytes_stored",
)
_BINS = 256  # at least half of it, of what is counted for each block


@dataclass(frozen=True, kw_only=True)
class BlockStatistics:
    """The result of :func:`block_statistics`, for the elements inside the dataset.

    Parameters
    ----------
    path : str
        Path of the dataset, below the root of the container.
    n_blocks : int
        Number of blocks in the grid.
    n_stored : int
        Number of blocks that exist; the others read as 0.
    n_read : int
        Number of blocks that were read: all, or a sample.
    n_zero : int
        Number of blocks among these that hold only 0.
    n_elements : int
        Number of elements in the blocks that were read.
    n_nan, n_infinite : int
        Number of NaN elements, and of infinite elements.
    minimum, maximum : float, int or None
        Range of the finite elements; None if there are none.
    mean : float or None
        Mean of the finite elements.
    bin_edges : tuple of float
        Boundaries of the histogram, one more than it has bins; empty without finite elements.
    histogram : tuple of int
        Number of finite elements in each bin, which includes its lower boundary.
    n_bytes : int
        Decoded size of the blocks that were read.
    n_bytes_stored : int
        Stored size of these blocks.
    """

    path: str
    n_blocks: int
    n_stored: int
    n_read: int
    n_zero: int
    n_elements: int
    n_nan: int
    n_infinite: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    bin_edges: tuple[float, ...]
    histogram: tuple[int, ...]
    n_bytes: int
    n_bytes_stored: int

    def __repr__(self) -> str:
        found = f"{self.minimum} to {self.maximum}, mean {self.mean}, {self.n_zero} blocks of 0"
        blocks = f"{self.n_read} of {counted(self.n_stored, 'stored block')} read"
        return f"<BlockStatistics of /{self.path}: {blocks}, {found}>"

    @property
    def is_sample(self) -> bool:
        """Whether not all blocks were read."""
        return self.n_read < self.n_stored

    @property
    def has_integers(self) -> bool:
        """Whether the elements are integers."""
        return isinstance(self.minimum, int)

    @property
    def compression_ratio(self) -> float | None:
        """Uncompressed size of the blocks relative to their stored size; None without blocks."""
        return self.n_bytes / self.n_bytes_stored if self.n_bytes_stored else None

    @property
    def empty_share(self) -> float | None:
        """Share of the grid that is missing or holds only 0, estimated from the sample."""
        if not self.n_blocks:
            return None
        zero = self.n_zero / self.n_read if self.n_read else 0.0
        return 1 - self.n_stored / self.n_blocks * (1 - zero)


def block_statistics(  # noqa: PLR0913 - one keyword for each option
    location: Location,
    path: str = "",
    *,
    n_blocks: int | None = 64,
    seed: int = 0,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> BlockStatistics:
    """Compute range, mean and histogram of a dataset, and how many of its blocks are empty.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Dataset below ``location``.
    n_blocks : int or None, optional
        Number of stored blocks to read, chosen at random; None reads all.
    seed : int, optional
        Seed of the random choice: the same seed chooses the same blocks.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        ``"threads"``, ``"processes"``, or dask's address or client; number of workers; a callable
        that takes the name of a stage, the bytes done and the bytes to do.

    Returns
    -------
    BlockStatistics
        Statistics of the elements that Zarr shows: for label multisets, the most frequent labels.

    Raises
    ------
    FileNotFoundError
        No dataset is there.
    N5UnsupportedError
        The elements are not real numbers (``kind="data-type"``).
    N5BlockError
        A block is damaged; :func:`n5zarr.validate` finds all of them.

    Examples
    --------
    >>> import n5zarr
    >>> found = n5zarr.block_statistics(n5zarr.sample_path(), "em/s2")
    >>> found.minimum, found.maximum, found.n_elements
    (46, 184, 7680)
    """
    place = place_of(location, storage_options, backend)
    store, node = open_container(place, path, writes=False)
    with asking_once():
        view = _dataset(store, node)
    listing = _Listing(store, node, view)
    sample = None if n_blocks is None else listing.sample(n_blocks, seed)
    total = (math.prod(view.grid) if sample is None else len(sample)) * view.full_n_bytes
    n_blocks_of_task = max(_BLOCKS, _TASK_BYTES // max(1, view.full_n_bytes))
    batches = batched(listing if sample is None else sample, n_blocks_of_task)
    tasks = (BlockTask(node, view, positions) for positions in batches)
    tally = _Tally()
    run = RunOptions(scheduler, n_workers, progress)
    for _, part in run.each(partial(_count, store), tasks, "statistics", total):
        tally.add(part)
    return tally.result(node, math.prod(view.grid), listing.n_stored)


class _Listing:
    """The stored blocks of a dataset, which are counted while they are listed."""

    def __init__(self, store: N5Store, path: str, view: DatasetView) -> None:
        self._rows = stored_rows(store.run, path, view.dataset.grid)
        self.n_stored = 0

    def __iter__(self) -> Iterator[N5Tuple]:
        for rows in self._rows:
            self.n_stored += len(rows)
            yield from map(N5Tuple, map(tuple, rows.tolist()))

    def sample(self, n: int, seed: int) -> list[N5Tuple]:
        """List all blocks, and choose those with the smallest random numbers."""
        random = np.random.default_rng(seed)
        chosen: list[tuple[float, N5Tuple]] = []
        for some in batched(self, _SAMPLED):
            numbers = random.random(len(some)).tolist()
            chosen = heapq.nsmallest(n, [*chosen, *zip(numbers, some, strict=True)])
        return sorted(position for _, position in chosen)


def _dataset(store: N5Store, node: str) -> DatasetView:
    """Read the dataset, which must hold real numbers."""
    view = existing_node(store, node, "a dataset")
    if not isinstance(view, DatasetView):
        below = datasets_below(store, node) or "none"
        raise NotFoundError(
            f"{store}: {node or '/'}: expected a dataset, got a group; in it: {below}"
        )
    if view.content not in (Content.NUMBERS, Content.LABELS) or view.kind.dtype.kind not in "biuf":
        message = f"statistics: expected real numbers, got {view.kind.dtype}"
        raise N5UnsupportedError(message, kind="data-type", where=f"{store}: {node or '/'}")
    return view


class _Histogram(NamedTuple):
    """Numbers of elements in bins of width ``2**exponent``, by ``floor(element / width)``.

    Bins of two histograms lie within each other, so that histograms of blocks can be added without
    knowing the range of all.
    """

    exponent: int
    counts: Mapping[int, int]

    @classmethod
    def of(cls, finite: np.ndarray, low: float, high: float) -> _Histogram:
        """Count the elements of a block, in 128 to 256 bins unless there are fewer integers."""
        exponent = _exponent(low, high)
        if finite.dtype.kind == "f":
            if low == high:  # as narrow as floats of this size: other blocks decide
                exponent = math.frexp(low)[1] - 52 if low else -1074
            numbers = np.floor(np.ldexp(finite.astype("f8"), -exponent))
        else:
            exponent = max(0, exponent)
            numbers = finite >> exponent
            if numbers.dtype.kind == "i":
                numbers = numbers.astype("i8")  # the difference of two int8 may be none
        first = numbers.min()
        counts = np.bincount((numbers - first).astype(np.intp))
        return cls(exponent, {int(first) + int(i): int(counts[i]) for i in counts.nonzero()[0]})


@dataclass
class _Tally:
    """The statistics of some blocks, to which those of other blocks can be added."""

    counts: Counter[str] = field(default_factory=Counter)  # members of the result
    sums: list[float | Fraction] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    histograms: list[_Histogram] = field(default_factory=list)

    def add_blocks(self, blocks: Sequence[np.ndarray], n_bytes_stored: int) -> None:
        """Count the elements of some blocks together."""
        elements = blocks[0] if len(blocks) == 1 else np.concatenate([b.ravel() for b in blocks])
        self.counts.update(
            n_read=len(blocks),
            n_zero=sum(not block.any() for block in blocks),
            n_elements=elements.size,
            n_bytes=elements.nbytes,
            n_bytes_stored=n_bytes_stored,
        )
        finite = elements.ravel()
        if elements.dtype.kind == "f":
            n_nan, n_infinite = int(np.isnan(elements).sum()), int(np.isinf(elements).sum())
            self.counts.update(n_nan=n_nan, n_infinite=n_infinite)
            finite = finite[np.isfinite(finite)]
        if finite.size:
            low, high = finite.min().item(), finite.max().item()
            self.lows.append(low)
            self.highs.append(high)
            self.sums.append(_sum(finite))
            self.histograms.append(_Histogram.of(finite, low, high))

    def add(self, other: _Tally) -> None:
        """Add the statistics of other blocks."""
        self.counts.update(other.counts)
        self.sums += other.sums
        self.histograms += other.histograms
        if self.histograms:
            self.lows = [min(self.lows + other.lows)]
            self.highs = [max(self.highs + other.highs)]
            self.histograms = [_joined(self.histograms, self.lows[0], self.highs[0])]

    def result(self, path: str, n_blocks: int, n_stored: int) -> BlockStatistics:
        """Return the statistics as a result."""
        counts = {name: self.counts[name] for name in _COUNTED}
        n_finite = counts["n_elements"] - counts["n_nan"] - counts["n_infinite"]
        edges, histogram = _bins(self.histograms[0]) if self.histograms else ((), ())
        return BlockStatistics(
            path=path,
            n_blocks=n_blocks,
            n_stored=n_stored,
            **counts,
            minimum=min(self.lows, default=None),
            maximum=max(self.highs, default=None),
            mean=_mean(self.sums, n_finite) if n_finite else None,
            bin_edges=edges,
            histogram=histogram,
        )


def _sum(finite: np.ndarray) -> float | Fraction:
    """Add elements; the sum may be larger than any float."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(finite.sum(dtype="f8"))
    if math.isfinite(total):
        return total
    return Fraction(float(np.ldexp(finite, -64).sum(dtype="f8"))) * 2**64


def _mean(sums: Sequence[float | Fraction], n: int) -> float:
    try:
        return math.fsum(sums) / n
    except OverflowError:
        return float(sum(Fraction(each) for each in sums) / n)


def _exponent(low: float, high: float) -> int:
    """Return the binary logarithm of the width of 128 to 256 bins from one value to the other."""
    width = float(high) / _BINS - float(low) / _BINS  # without overflow
    return math.frexp(width)[1] if width > 0 else -1074


def _joined(histograms: Sequence[_Histogram], low: float, high: float) -> _Histogram:
    """Add histograms, with bins that suit the range of all elements."""
    exponent = max(_exponent(low, high), *(each.exponent for each in histograms))
    counts: Counter[int] = Counter()
    for each in histograms:
        for number, count in each.counts.items():
            counts[number >> (exponent - each.exponent)] += count
    return _Histogram(exponent, counts)


def _bins(histogram: _Histogram) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return boundaries and counts of all bins, also of empty bins between others."""
    first, last = min(histogram.counts), max(histogram.counts)
    edges = tuple(_edge(number, histogram.exponent) for number in range(first, last + 2))
    return edges, tuple(histogram.counts.get(number, 0) for number in range(first, last + 1))


def _edge(number: int, exponent: int) -> float:
    """Return a boundary; the largest float for one beyond."""
    try:
        return math.ldexp(number, exponent)
    except OverflowError:
        return math.copysign(sys.float_info.max, number)


def _count(store: N5Store, task: BlockTask) -> _Tally:
    """Read some blocks, and count their elements."""
    tally = _Tally()
    view, dataset = task.view, task.view.dataset
    small: list[np.ndarray] = []
    n_bytes_stored = 0  # of these
    data = store.run(read_each(task.keys))
    for position, block in zip(task.positions, data, strict=True):
        if block is None:  # removed since it was listed
            continue
        extent = dataset.extent_of(position)
        with ErrorsAt(partial(store.container.chunks.block_name, task.path, position)):
            chunk = stored_chunk(memoryview(block), view, position)[tuple(map(slice, to_c(extent)))]
        elements = view.kind.from_stored(chunk)
        native = elements.dtype.newbyteorder("=") if elements.dtype.kind != "b" else "u1"
        elements = elements.astype(native)
        if elements.nbytes > _TASK_BYTES:
            tally.add_blocks([elements], len(block))
        else:
            small.append(elements)
            n_bytes_stored += len(block)
    if small:
        tally.add_blocks(small, n_bytes_stored)
    return tally
