"""Bring lists of label multisets into one form, and replace and sum them.

The rules are those of imglib2-label-multisets 0.15.1; labels are compared as int64, as in Java.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n5zarr.codecs.multisets import BACKGROUND, MAX_COUNT, LabelMultisets, gathered
from n5zarr.errors import option_error


def used_only(multisets: LabelMultisets, part: tuple[slice, ...] = ()) -> LabelMultisets:
    """Return the same multisets, or those of a part, without the lists that no voxel has.

    The work grows with the part, not with the box that it comes from.
    """
    voxels = multisets.lists[part]
    used, lists = np.unique(voxels, return_inverse=True)
    offsets, entries = gathered(multisets.offsets, used)
    lists = lists.reshape(voxels.shape)
    return LabelMultisets(lists, offsets, multisets.labels[entries], multisets.counts[entries])


def canonical(multisets: LabelMultisets) -> LabelMultisets:
    """Return the same multisets with each list once, as ``LabelUtils`` writes them.

    Lists have the order in which the voxels of the box, C order, first need them. In a list each
    label occurs once, with the sum of its counts, and labels ascend (as int64).

    Raises
    ------
    N5UnrepresentableError
        The sum of the counts of a label is too large (``kind="option"``).
    """
    used = used_only(multisets)
    offsets, labels, counts = summed(used.offsets, used.labels, used.counts)
    same, is_first = _groups(offsets, labels, counts)
    lists = same[used.lists].reshape(-1)
    _, first_voxel = np.unique(lists, return_index=True)
    in_order = np.argsort(first_voxel, kind="stable")
    number = np.empty(len(in_order), "i8")
    number[in_order] = np.arange(len(in_order))
    offsets, entries = gathered(offsets, is_first[in_order])
    return LabelMultisets(
        number[lists].reshape(multisets.shape), offsets, labels[entries], counts[entries]
    )


def summed(
    offsets: np.ndarray, labels: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sort the entries of each list by label, and sum the counts of each label."""
    list_of_entry = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    signed = labels.view("i8")
    is_same_list = list_of_entry[1:] == list_of_entry[:-1]
    if not (is_same_list & (signed[1:] <= signed[:-1])).any():
        return offsets, labels, _checked_counts(counts)
    order = np.lexsort((signed, list_of_entry))
    labels, counts, list_of_entry = labels[order], counts[order], list_of_entry[order]
    is_new = np.append(
        True, (labels[1:] != labels[:-1]) | (list_of_entry[1:] != list_of_entry[:-1])
    )
    starts = np.flatnonzero(is_new)
    summed = np.add.reduceat(counts, starts)
    lengths = np.bincount(list_of_entry[starts], minlength=len(offsets) - 1)
    return np.append(0, np.cumsum(lengths)), labels[starts], _checked_counts(summed)


def _checked_counts(counts: np.ndarray) -> np.ndarray:
    if counts.max(initial=0) > MAX_COUNT:
        raise option_error(f"counts: expected sums up to {MAX_COUNT}, got {counts.max()}")
    return counts


def _groups(
    offsets: np.ndarray, labels: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find equal lists.

    Returns
    -------
    group, first : numpy.ndarray
        The number of the group of each list, and one list of each group.
    """
    lengths = np.diff(offsets)
    group, first = np.zeros(len(lengths), "i8"), []
    n_groups = 0
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        entries = offsets[rows][:, None] + np.arange(length)
        keys = np.concatenate([labels[entries].view("i8"), counts[entries]], axis=1)
        keys = keys[:, (keys != keys[:1]).any(axis=0)]  # sorting by a constant takes as long
        order = np.lexsort(keys.T) if keys.shape[1] else np.arange(len(rows))
        is_new = np.append(True, (keys[order][1:] != keys[order][:-1]).any(axis=1))
        group[rows[order]] = n_groups + np.cumsum(is_new) - 1
        first.append(rows[order][is_new])
        n_groups += int(is_new.sum())
    return group, np.concatenate(first) if first else np.zeros(0, "i8")


def relabelled(multisets: LabelMultisets, labels: np.ndarray) -> LabelMultisets | None:
    """Give voxels other labels: a voxel of another label holds the new one, once.

    A voxel whose most frequent label is the new one keeps its multiset: labels that are read and
    written again change nothing.

    Parameters
    ----------
    multisets : LabelMultisets
        What is there.
    labels : numpy.ndarray
        The labels, uint64, in the same shape.

    Returns
    -------
    LabelMultisets or None
        None if nothing changes.
    """
    changes = multisets.argmax() != labels
    if not changes.any():
        return None
    return pasted(multisets, changes, LabelMultisets.of(labels[changes]))


def pasted(
    multisets: LabelMultisets,
    selection: np.ndarray | tuple[slice, ...],
    others: LabelMultisets,
) -> LabelMultisets:
    """Replace the multisets of some voxels.

    Parameters
    ----------
    multisets : LabelMultisets
        Of a box.
    selection : tuple of slice or mask
        The voxels of the box.
    others : LabelMultisets
        Their new multisets, in the shape of the selection.
    """
    lists = multisets.lists.copy()
    lists[selection] = others.lists + len(multisets.offsets) - 1
    return LabelMultisets(
        lists,
        np.append(multisets.offsets, multisets.offsets[-1] + others.offsets[1:]),
        np.append(multisets.labels, others.labels),
        np.append(multisets.counts, others.counts),
    )


def fitted(multisets: LabelMultisets, shape: Sequence[int]) -> LabelMultisets:
    """Cut a box to a shape, or enlarge it by voxels that hold the background once.

    Java's ``N5LabelMultisetCacheLoader``: so voxels of a missing block are read.
    """
    if multisets.shape == tuple(shape):
        return multisets
    common = tuple(map(slice, map(min, multisets.shape, shape)))
    empty = LabelMultisets(np.zeros(tuple(shape), "i8"), *_ONE)
    return pasted(empty, common, multisets[common])


_ONE = (np.array([0, 1]), np.array([BACKGROUND], "u8"), np.array([1]))
