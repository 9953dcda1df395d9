"""Read and write blocks of Paintera's label multisets.

imglib2-label-multisets 0.15.1 ``LabelUtils.serializeLabelMultisetTypes`` and ``fromBytes``: the
payload of a block with V voxels, whose mode is 1 (varlength) with a byte as element, is

1. int32 big-endian A, then A x int64 big-endian arg-max labels (A is 0 in newer files, else V);
2. V x int32 big-endian: offset of the voxel's list in part 3; voxels may share a list;
3. little-endian: per list int32 N, then N x (int64 label, int32 count).
"""

from __future__ import annotations

import math
import struct

import numpy as np

from n5zarr.codecs.block import fitting_header
from n5zarr.codecs.buffers import BufferLike, damaged
from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.codecs.multiset_merging import canonical
from n5zarr.codecs.multisets import LabelMultisets, most_frequent
from n5zarr.errors import N5BlockError, option_error
from n5zarr.format.block import MAX_BLOCK_BYTES, BlockHeader, BlockMode
from n5zarr.format.compression import Compression
from n5zarr.format.data_type import DataType
from n5zarr.format.order import CTuple, N5Tuple, to_c, to_n5

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
    payload, box = _payload(data, ndim, compression, inside)
    return arg_max_labels(payload, math.prod(box)).reshape(to_c(box))


def decode_multisets(
    data: memoryview, ndim: int, compression: Compression, inside: N5Tuple | None = None
) -> LabelMultisets:
    """Decode a block of label multisets; parameters and extent as of :func:`decode_labels`.

    Raises
    ------
    N5BlockError
        Header or payload do not fit the dataset, or a count is negative.
    """
    payload, box = _payload(data, ndim, compression, inside)
    return multisets_of_payload(payload, to_c(box))


def _payload(
    data: memoryview, ndim: int, compression: Compression, inside: N5Tuple | None
) -> tuple[BufferLike, N5Tuple]:
    """Return the decompressed payload of a block, and the extent of its voxels."""
    header = fitting_header(data, ndim, DataType.UINT8, compression)
    payload = decompress(data[header.n_bytes :], header.n_payload_elements, compression)
    box = header.block_shape
    if inside not in (None, box) and is_made_up_of(payload, math.prod(inside)):
        box = inside
    return payload, box


def encode_multisets(multisets: LabelMultisets, compression: Compression) -> bytes:
    """Encode a block: as ``N5LabelMultisets`` does, with the extent of the multisets in the header.

    Parameters
    ----------
    multisets : LabelMultisets
        Of the part of the block inside the dataset.
    compression : Compression
        Of the dataset.

    Raises
    ------
    N5UnrepresentableError
        The payload is larger than 2 GiB (``kind="option"``).
    """
    payload = payload_of_multisets(multisets)
    header = BlockHeader(
        mode=BlockMode.VARLENGTH,
        block_shape=to_n5(CTuple(multisets.shape)),
        n_elements=len(payload),
    )
    return b"".join([header.to_bytes(), codec_of(compression).compress(payload, compression, 1)])


def payload_of_multisets(multisets: LabelMultisets) -> bytes:
    """Serialize multisets; see :mod:`n5zarr.codecs.label_multiset`.

    Raises
    ------
    N5UnrepresentableError
        The payload is larger than 2 GiB (``kind="option"``).
    """
    each = canonical(multisets)
    n_lists, n_entries = len(each.offsets) - 1, len(each.labels)
    total = 4 + 4 * each.lists.size + 4 * n_lists + _ENTRY.itemsize * n_entries
    if total > MAX_BLOCK_BYTES:
        message = f"label multisets: expected at most {MAX_BLOCK_BYTES} bytes, got {total}"
        raise option_error(f"{message}; write smaller blocks, or fewer entries")
    starts = np.arange(n_lists) + 3 * each.offsets[:-1]  # in words of 4 bytes
    words = np.empty(n_lists + 3 * n_entries, "<u4")
    words[starts] = np.diff(each.offsets)
    entries = np.arange(n_entries) * 3 + each.list_of_entry + 1
    words[entries] = each.labels & np.uint64(0xFFFFFFFF)
    words[entries + 1] = each.labels >> np.uint64(32)
    words[entries + 2] = each.counts
    offsets = (4 * starts).astype(">i4")[each.lists.reshape(-1)]
    return b"".join([bytes(4), offsets.tobytes(), words.tobytes()])


def multisets_of_payload(data: BufferLike, shape: CTuple) -> LabelMultisets:
    """Parse a payload; the inverse of :func:`payload_of_multisets`.

    Parameters
    ----------
    data : bytes-like
        The decompressed payload of a block.
    shape : tuple of int
        Extent of its voxels, C order.

    Raises
    ------
    N5BlockError
        The lists do not fit into the payload, or a count is negative (``kind="payload"``).
    """
    offsets, lists = _parts(data, math.prod(shape))
    starts, list_of_voxel = np.unique(offsets, return_inverse=True)
    ends, entries = _entries(lists, starts)
    if entries["count"].min(initial=0) < 0:
        raise damaged(f"expected counts from 0 on, got {entries['count'].min()}")
    labels = entries["label"].astype("i8").view("u8")
    return LabelMultisets(list_of_voxel.reshape(shape), ends, labels, entries["count"])


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
        labels the lowest (as int64); 0, the background, for an empty list.

    Raises
    ------
    N5BlockError
        The lists do not fit into the payload (``kind="payload"``).
    """
    offsets, lists = _parts(data, n_voxels)
    starts, list_of_voxel = np.unique(offsets, return_inverse=True)
    ends, entries = _entries(lists, starts)
    labels = entries["label"].astype("i8").view("u8")
    found = most_frequent(ends, labels, entries["count"].astype("i8"))
    return found.astype(">u8")[list_of_voxel]


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


def _entries(lists: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of the list at each of the starts, and where each list begins in them."""
    counts = _counts(lists, starts)
    ends = starts + 4 + _ENTRY.itemsize * counts
    # with overlapping lists a few bytes would expand to any number of entries
    overlap = (starts[1:] < ends[:-1]).any()
    if (counts < 0).any() or (ends > len(lists)).any() or overlap:
        raise damaged("expected label lists within the payload, got one that exceeds it")
    last = np.cumsum(counts)
    rank = np.arange(counts.sum()) - np.repeat(last - counts, counts)
    entry_starts = np.repeat(starts, counts) + 4 + _ENTRY.itemsize * rank
    entries = _gather(lists, entry_starts, _ENTRY.itemsize).view(_ENTRY).ravel()
    return np.append(0, last), entries


def _gather(data: np.ndarray, starts: np.ndarray, n_bytes: int) -> np.ndarray:
    """Copy ``n_bytes`` from each start into the rows of an array."""
    return data[starts[:, None] + np.arange(n_bytes)]
