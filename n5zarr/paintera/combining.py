"""Turn, join and downsample label multisets.

The rules are those of imglib2-label-multisets 0.15.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from n5zarr.codecs.multiset_merging import summed
from n5zarr.codecs.multisets import BACKGROUND, LabelMultisets, gathered


def transposed(multisets: LabelMultisets) -> LabelMultisets:
    """Reverse the axes."""
    return LabelMultisets(
        multisets.lists.transpose(), multisets.offsets, multisets.labels, multisets.counts
    )


def joined(
    shape: Sequence[int], parts: Sequence[tuple[tuple[slice, ...], LabelMultisets]]
) -> LabelMultisets:
    """Join the multisets of parts that make up a box.

    Parameters
    ----------
    shape : sequence of int
        Extent of the box.
    parts : sequence of tuple
        The place of each part in the box, and its multisets.
    """
    lists, n_lists, n_entries, offsets = np.empty(tuple(shape), "i8"), 0, 0, [np.zeros(1, "i8")]
    for place, part in parts:
        lists[place] = part.lists + n_lists
        offsets.append(part.offsets[1:] + n_entries)
        n_lists += len(part.offsets) - 1
        n_entries += len(part.labels)
    labels = np.concatenate([np.zeros(0, "u8"), *(part.labels for _, part in parts)])
    counts = np.concatenate([np.zeros(0, "i8"), *(part.counts for _, part in parts)])
    return LabelMultisets(lists, np.concatenate(offsets), labels, counts)


def downsampled(
    multisets: LabelMultisets, factors: Sequence[int], max_entries: int = -1
) -> LabelMultisets:
    """Combine the voxels of each cell: counts are summed.

    ``LabelMultisetTypeDownscaler.createDownscaledCell``: a cell without entries holds label 0 with
    count 0; cells at the end of the box have the voxels that are there. Deviation: a limit keeps
    the most frequent labels, of equally frequent ones the lowest (as int64), as versions up to
    0.12.1 do. Later versions keep the rarest, so that another label would be the most frequent.

    Parameters
    ----------
    multisets : LabelMultisets
        Of a box that begins with a whole cell.
    factors : sequence of int
        Number of voxels of a cell along each axis, C order.
    max_entries : int, optional
        Largest number of entries of a voxel; no limit below 1.

    Raises
    ------
    N5UnrepresentableError
        The sum of the counts of a label is too large (``kind="option"``).
    """
    shape = tuple(-(-n // f) for n, f in zip(multisets.shape, factors, strict=True))
    places = [np.arange(n) // f for n, f in zip(multisets.shape, factors, strict=True)]
    cells = np.ravel_multi_index(np.ix_(*places), shape)
    n_lists = max(1, len(multisets.offsets) - 1)
    # most voxels of a cell share a list
    pairs, n_voxels = np.unique(cells * n_lists + multisets.lists, return_counts=True)
    ends, entries = gathered(multisets.offsets, pairs % n_lists)
    counts = multisets.counts[entries] * np.repeat(n_voxels, np.diff(ends))
    first_pair = np.searchsorted(pairs // n_lists, np.arange(math.prod(shape) + 1))
    found = summed(ends[first_pair], multisets.labels[entries], counts)
    offsets, labels, counts = _limited(*_with_entries(*found), max_entries)
    return LabelMultisets(np.arange(math.prod(shape)).reshape(shape), offsets, labels, counts)


def _with_entries(
    offsets: np.ndarray, labels: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give label 0 with count 0 to lists without entries."""
    is_empty = np.diff(offsets) == 0
    if not is_empty.any():
        return offsets, labels, counts
    places = offsets[:-1][is_empty]
    labels = np.insert(labels, places, np.uint64(BACKGROUND))
    return offsets + np.append(0, np.cumsum(is_empty)), labels, np.insert(counts, places, 0)


def _limited(
    offsets: np.ndarray, labels: np.ndarray, counts: np.ndarray, max_entries: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keep the most frequent entries of each list, in their order."""
    lengths = np.diff(offsets)
    if max_entries < 1 or lengths.max(initial=0) <= max_entries:
        return offsets, labels, counts
    order = np.lexsort((labels.view("i8"), -counts, np.repeat(np.arange(len(lengths)), lengths)))
    is_kept = np.zeros(len(labels), bool)
    is_kept[order] = np.arange(len(labels)) - np.repeat(offsets[:-1], lengths) < max_entries
    lengths = np.minimum(lengths, max_entries)
    return np.append(0, np.cumsum(lengths)), labels[is_kept], counts[is_kept]
