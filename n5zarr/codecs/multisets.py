"""Label multisets of a box of voxels, as arrays.

As in imglib2-label-multisets 0.15.1, labels are compared as int64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from n5zarr.errors import option_error

if TYPE_CHECKING:
    import numpy.typing as npt

BACKGROUND = 0
"""Java ``Label.BACKGROUND``: the label of a voxel without entries and of a missing block."""

MAX_COUNT = 2**31 - 1
"""Java's ``int``: the largest count of a label."""


class LabelMultisets:
    """The labels of each voxel of a box, with their counts.

    Voxels share lists of entries: voxel ``(z, y, x)`` has the list ``k = lists[z, y, x]``, with the
    labels ``labels[offsets[k]:offsets[k + 1]]`` and their ``counts``. Indexing with integers gives
    the entries of a voxel, ``{label: count}``; with slices, the multisets of a smaller box.

    Parameters
    ----------
    lists : array_like of int
        Number of the list of each voxel, in C order (z, y, x).
    offsets : array_like of int
        Shape ``(n_lists + 1,)``: the first entry of each list, and the number of all entries.
    labels : array_like of int
        Shape ``(n_entries,)``, uint64.
    counts : array_like of int
        Shape ``(n_entries,)``, from 0 to 2**31 - 1.

    Raises
    ------
    N5UnrepresentableError
        The arrays do not fit together, or a count is negative or too large (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> multisets = n5zarr.LabelMultisets([[0, 1, 1]], [0, 1, 3], [7, 7, 9], [1, 3, 5])
    >>> multisets[0, 1]
    {7: 3, 9: 5}
    >>> multisets.argmax().tolist(), multisets.totals().tolist(), multisets.count(7).tolist()
    ([[7, 9, 9]], [[1, 8, 8]], [[1, 3, 3]])
    """

    def __init__(
        self,
        lists: npt.ArrayLike,
        offsets: npt.ArrayLike,
        labels: npt.ArrayLike,
        counts: npt.ArrayLike,
    ) -> None:
        self.lists = _integers("lists", lists, "i8")
        self.offsets = _integers("offsets", offsets, "i8")
        self.labels = _integers("labels", labels, "u8")
        self.counts = _integers("counts", counts, "i8")
        lengths = np.diff(self.offsets)
        if not len(self.offsets) or self.offsets[0] or (lengths < 0).any():
            raise option_error("offsets: expected numbers that ascend from 0")
        if not self.offsets[-1] == len(self.labels) == len(self.counts):
            raise option_error(
                f"labels, counts: expected {self.offsets[-1]} entries as the offsets say, got "
                f"{len(self.labels)} and {len(self.counts)}"
            )
        if self.lists.size and not 0 <= self.lists.min() <= self.lists.max() < len(lengths):
            raise option_error(
                f"lists: expected numbers from 0 to {len(lengths) - 1}, got "
                f"{self.lists.min()} to {self.lists.max()}"
            )
        if len(self.counts) and not 0 <= self.counts.min() <= self.counts.max() <= MAX_COUNT:
            raise option_error(
                f"counts: expected numbers from 0 to {MAX_COUNT}, got {self.counts.min()} to "
                f"{self.counts.max()}"
            )

    @classmethod
    def of(cls, labels: npt.ArrayLike) -> Self:
        """Make the multisets of voxels that hold one label each, once.

        Parameters
        ----------
        labels : array_like of int
            The label of each voxel, C order.
        """
        found = _integers("labels", labels, "u8")
        unique, lists = np.unique(found, return_inverse=True)
        ones = np.ones(len(unique), "i8")
        return cls(lists.reshape(found.shape), np.arange(len(unique) + 1), unique, ones)

    @classmethod
    def from_csr(
        cls,
        offsets: npt.ArrayLike,
        labels: npt.ArrayLike,
        counts: npt.ArrayLike,
        shape: Sequence[int],
    ) -> Self:
        """Make multisets from one list for each voxel; the inverse of :meth:`to_csr`.

        Parameters
        ----------
        offsets, labels, counts : array_like of int
            As in :class:`LabelMultisets`, with one list for each voxel in C order.
        shape : sequence of int
            Extent of the box, in voxels, C order.
        """
        extent = tuple(map(index, shape))
        return cls(np.arange(math.prod(extent)).reshape(extent), offsets, labels, counts)

    def to_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return offsets, labels and counts with one list for each voxel, in C order.

        They are the arrays ``indptr``, ``indices`` and ``data`` of a sparse matrix with a row for
        each voxel.
        """
        lists = self.lists.reshape(-1)
        offsets, entries = gathered(self.offsets, lists)
        return offsets, self.labels[entries], self.counts[entries]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of the box, in voxels, C order."""
        return self.lists.shape

    @cached_property
    def list_of_entry(self) -> np.ndarray:
        """Number of the list of each entry, shape ``(n_entries,)``."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def __repr__(self) -> str:
        return (
            f"<LabelMultisets of {'x'.join(map(str, self.shape)) or 'one'} voxels, "
            f"{len(self.offsets) - 1} lists, {len(self.labels)} entries>"
        )

    def __getitem__(self, selection: Any) -> Any:  # noqa: ANN401 - depends on the selection
        lists = self.lists[selection]
        if np.ndim(lists):
            return LabelMultisets(lists, self.offsets, self.labels, self.counts)
        part = slice(self.offsets[lists], self.offsets[lists + 1])
        return dict(zip(self.labels[part].tolist(), self.counts[part].tolist(), strict=True))

    def argmax(self) -> np.ndarray:
        """Return the most frequent label of each voxel, uint64, in the shape of the box.

        Of equally frequent labels the lowest (as int64); 0, the background, for an empty list.
        """
        return self._of_voxels(most_frequent(self.offsets, self.labels, self.counts))

    def totals(self) -> np.ndarray:
        """Return the sum of the counts of each voxel, int64, in the shape of the box."""
        return self._of_voxels(self._sums(self.counts))

    def count(self, label: int) -> np.ndarray:
        """Return how often each voxel holds a label, int64, in the shape of the box.

        Raises
        ------
        N5UnrepresentableError
            The label is none: no integer from 0 to 2**64 - 1 (``kind="option"``).
        """
        if not (0 <= label < 2**64 and int(label) == label):
            raise option_error(f"label: expected an integer from 0 to 2**64 - 1, got {label!r}")
        return self._of_voxels(
            self._sums(np.where(self.labels == np.uint64(label), self.counts, 0))
        )

    def unique_labels(self) -> np.ndarray:
        """Return the labels that voxels of the box hold at least once: sorted, uint64."""
        return np.unique(self.labels[self._is_used[self.list_of_entry] & (self.counts > 0)])

    @property
    def is_background(self) -> bool:
        """Whether each voxel holds the background once, as those of a missing block do."""
        is_used = self._is_used
        starts = self.offsets[:-1][is_used]
        has_one = bool((np.diff(self.offsets)[is_used] == 1).all())
        return has_one and not self.labels[starts].any() and bool((self.counts[starts] == 1).all())

    @property
    def _is_used(self) -> np.ndarray:
        """Whether a voxel of the box has a list, for each list."""
        is_used = np.zeros(len(self.offsets) - 1, bool)
        is_used[self.lists] = True
        return is_used

    def _of_voxels(self, of_lists: np.ndarray) -> np.ndarray:
        return np.asarray(of_lists[self.lists])

    def _sums(self, values: np.ndarray) -> np.ndarray:
        sums = np.append(0, np.cumsum(values, dtype="i8"))
        return np.asarray(sums[self.offsets[1:]] - sums[self.offsets[:-1]])


def _integers(name: str, values: npt.ArrayLike, dtype: str) -> np.ndarray:
    """Return integers of a type, with the bits of uint64 for labels below 0."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise option_error(f"{name}: expected integers, got {array.dtype}")
    if dtype == "i8" and array.dtype == np.uint64 and array.size and array.max() > MAX_COUNT:
        raise option_error(f"{name}: expected numbers up to {MAX_COUNT}, got {array.max()}")
    return array.astype(dtype, copy=False)


def gathered(offsets: np.ndarray, lists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of some lists, one after the other, and the number of each entry."""
    lengths = offsets[lists + 1] - offsets[lists]
    ends = np.cumsum(lengths)
    entries = np.arange(lengths.sum()) + np.repeat(offsets[lists] - (ends - lengths), lengths)
    return np.append(0, ends), entries


def most_frequent(offsets: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the most frequent label of each list, uint64.

    ``LabelUtils.getArgMax``: of equally frequent labels the lowest (as int64). Deviation:
    :data:`BACKGROUND` for an empty list, as for a missing block, where Java has INVALID.
    """
    lengths = np.diff(offsets)
    found = np.full(len(lengths), BACKGROUND, "u8")
    filled = lengths > 0
    if len(labels) == len(lengths) == filled.sum():  # one entry each
        return labels.astype("u8")
    list_of_entry = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((labels.view("i8"), -counts, list_of_entry))
    found[filled] = labels[order[offsets[:-1][filled]]]
    return found
