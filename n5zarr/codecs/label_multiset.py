"""Read Paintera's label multisets as the most frequent label of each voxel.

imglib2-label-multisets ``LabelUtils``: the payload of a block with V voxels is

1. int32 big-endian A, then A x int64 big-endian arg-max labels (A is 0 in newer files, else V);
2. V x int32 big-endian: offset of the voxel's list in part 3; voxels may share a list;
3. little-endian: per list int32 N, then N x (int64 label, int32 count).
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.codecs.block import fitting_header
from n5zarr.codecs.buffers import BufferLike, damaged
from n5zarr.codecs.compress import decompress
from n5zarr.errors import N5BlockError
from n5zarr.format.data_type import DataType
from n5zarr.format.order import N5Tuple, to_c

if TYPE_CHECKING:
    from n5zarr.format.compression import Compression

__all__ = ["BACKGROUND", "arg_max_labels", "decode_labels", "is_made_up_of"]

BACKGROUND = 0
"""Java ``Label.BACKGROUND``: the label of a voxel without entries and of a missing block."""

_ENTRY = np.dtype([("label", "<i8"), ("count", "<i4")])


def decode_labels(
    data: memoryview, ndim: int, compression: Compression, inside: N5Tuple | None = None
) -> np.ndarray:
    """Decode a block of label multisets into the most frequent label of each voxel.

    Java: a block holds the voxels inside the dataset, whatever its header says; Paintera writes
    other extents to the headers of coarser levels. Deviation: if the lists of these voxels do not
    make up the payload, it holds those of the header.

    Parameters
    ----------
    data : memoryview
        The stored block, header first, as bytes.
    ndim : int
        Number of dimensions of the dataset.
    compression : Compression
        Of the dataset.
    inside : tuple of int, optional
        Extent of the part of the block inside the dataset, N5 order.

    Returns
    -------
    numpy.ndarray
        Extent ``inside`` or as in the header, big-endian uint64, shape in C order.

    Raises
    ------
    N5BlockError
        Header or payload do not fit the dataset.
    """
    header = fitting_header(data, ndim, DataType.UINT8, compression)
    payload = decompress(data[header.n_bytes :], header.n_payload_elements, compression)
    box = header.block_shape
    if inside not in (None, box) and is_made_up_of(payload, math.prod(inside)):
        box = inside
    return arg_max_labels(payload, math.prod(box)).reshape(to_c(box))


def arg_max_labels(data: BufferLike, n_voxels: int) -> np.ndarray:
    """Return the most frequent label of each voxel.

    Parameters
    ----------
    data : bytes-like
        The decompressed payload of a block.
    n_voxels : int
        Number of voxels in the box of the block.

    Returns
    -------
    numpy.ndarray
        ``(n_voxels,)`` big-endian uint64, first axis of N5 order fastest. Of equally frequent
        labels the lowest (as int64); :data:`BACKGROUND` for an empty list.

    Raises
    ------
    N5BlockError
        The lists do not fit into the payload (``kind="payload"``).
    """
    offsets, lists = _parts(data, n_voxels)
    starts, list_of_voxel = np.unique(offsets, return_inverse=True)
    return _arg_max(lists, starts)[list_of_voxel]


def is_made_up_of(data: BufferLike, n_voxels: int) -> bool:
    """Whether a payload consists of the lists of so many voxels, with no byte between or after.

    Parameters
    ----------
    data : bytes-like
        The decoded payload of a block.
    n_voxels : int
        Number of voxels.
    """
    try:
        offsets, lists = _parts(data, n_voxels)
        starts = np.unique(offsets)
        counts = _counts(lists, starts)
    except N5BlockError:
        return False
    ends = starts + 4 + _ENTRY.itemsize * counts
    return bool((np.append(0, ends) == np.append(starts, len(lists))).all())


def _parts(data: BufferLike, n_voxels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the offset of the list of each voxel, and the bytes of the lists."""
    payload = np.frombuffer(data, "u1")
    if len(payload) < 4:
        raise damaged(f"expected a label multiset, got {len(payload)} bytes")
    (n_arg_max,) = struct.unpack_from(">i", data)
    lists = 4 + 8 * n_arg_max + 4 * n_voxels
    if n_arg_max not in (0, n_voxels) or lists > len(payload):
        raise damaged(f"expected label multisets of {n_voxels} voxels, got {len(payload)} bytes")
    offsets = payload[lists - 4 * n_voxels : lists].view(">i4").astype(np.int64)
    return offsets, payload[lists:]


def _counts(lists: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the number of entries of the list at each of the starts, which ascend."""
    if len(starts) and not (starts[0] >= 0 and starts[-1] + 4 <= len(lists)):
        raise damaged(f"expected list offsets within {len(lists)} bytes, got up to {starts[-1]}")
    return _gather(lists, starts, 4).view("<i4").ravel().astype(np.int64)


def _arg_max(lists: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the arg-max label of the list at each of the starts."""
    counts = _counts(lists, starts)
    ends = starts + 4 + _ENTRY.itemsize * counts
    # with overlapping lists a few bytes would expand to any number of entries
    overlap = (starts[1:] < ends[:-1]).any()
    if (counts < 0).any() or (ends > len(lists)).any() or overlap:
        raise damaged("expected label lists within the payload, got one that exceeds it")
    list_of_entry = np.repeat(np.arange(len(starts)), counts)
    first_entry = np.cumsum(counts) - counts
    rank = np.arange(counts.sum()) - first_entry[list_of_entry]
    entry_starts = starts[list_of_entry] + 4 + _ENTRY.itemsize * rank
    entries = _gather(lists, entry_starts, _ENTRY.itemsize).view(_ENTRY).ravel()
    order = np.lexsort((entries["label"], -entries["count"].astype(np.int64), list_of_entry))
    labels = np.full(len(starts), BACKGROUND, ">u8")
    filled = counts > 0
    labels[filled] = entries["label"][order[first_entry[filled]]].view("<u8")
    return labels


def _gather(data: np.ndarray, starts: np.ndarray, n_bytes: int) -> np.ndarray:
    """Copy ``n_bytes`` from each start into the rows of an array."""
    return data[starts[:, None] + np.arange(n_bytes)]
