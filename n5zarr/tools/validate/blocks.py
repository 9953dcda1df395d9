"""Check one stored block: its header, its size at its position, and its payload."""

from __future__ import annotations

import math
from functools import cached_property
from operator import ge, le, lt
from typing import TYPE_CHECKING, Literal

import numpy as np

from n5zarr.codecs.block import check_header, decode_labels, decode_strings
from n5zarr.codecs.compress import decompress, judges_ends, usable
from n5zarr.codecs.shard import shard_text, stored_shard
from n5zarr.errors import N5BlockError
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Jpeg
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import block_extent
from n5zarr.format.order import to_c
from n5zarr.tools.validate.findings import finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from n5zarr.codecs.shard import Shard
    from n5zarr.format.attributes import DatasetAttributes
    from n5zarr.format.order import N5Tuple
    from n5zarr.tools.validate.findings import Finding, KindOfFinding, Severity

__all__ = [
    "ENDS",
    "Form",
    "StoredBlock",
    "check_block",
    "form_of",
    "has_values_outside",
    "shard_in",
    "whole",
]

ENDS = 4096  # bytes at either end of a block that are read unless it is decoded

type Form = Literal["padded", "truncated", "other"]
"""Storage of a block at the end of the dataset: full size, truncated, or another size."""


class StoredBlock:
    """A stored block, of which only the needed bytes are read.

    Parameters
    ----------
    size : int
        Length in bytes.
    first, last : bytes
        The first and last bytes; all of them in ``first`` where the block is short.
    read : callable
        Reads the whole block; None if it is gone.
    """

    def __init__(
        self, size: int, first: bytes, last: bytes, read: Callable[[], bytes | None]
    ) -> None:
        self.size = size
        self._first, self._last = first, last
        self._read = read

    @cached_property
    def outline(self) -> memoryview:
        """The block with zeros in place of unread bytes."""
        if len(self._first) == self.size:
            return memoryview(self._first)
        # memory that is never touched costs nothing
        data = np.zeros(self.size, "u1")
        data[: len(self._first)] = np.frombuffer(self._first, "u1")
        data[self.size - len(self._last) :] = np.frombuffer(self._last, "u1")
        return memoryview(data)

    def part(self, offset: int, n_bytes: int) -> memoryview:
        """Return some bytes; read the rest of the block if they are not at its ends."""
        end = min(offset + n_bytes, self.size)
        is_known = end <= len(self._first) or offset >= self.size - len(self._last)
        return (self.outline if is_known else self.whole)[offset:end]

    @property
    def whole(self) -> memoryview:
        """All bytes; the rest is read now. Empty if the block was removed meanwhile."""
        if len(self._first) < self.size:
            self._first = self._read() or b""
            self.size = len(self._first)
        return memoryview(self._first)


def whole(data: bytes) -> StoredBlock:
    """Make a stored block from all its bytes."""
    return StoredBlock(len(data), data, b"", lambda: data)


def check_block(
    block: StoredBlock, dataset: DatasetAttributes, path: str, position: N5Tuple, *, deep: bool
) -> Iterator[Finding]:
    """Find the problems of one block.

    Parameters
    ----------
    block : StoredBlock
        The block.
    dataset : DatasetAttributes
        Its dataset.
    path : str
        Of the dataset.
    position : tuple of int
        Position in the grid, N5 order.
    deep : bool
        Whether to decode the payload; otherwise it is decoded only if its ends do not show that it
        is whole.

    Yields
    ------
    Finding
        The kinds ``shard``, ``empty-block``, ``header``, ``payload``, ``misplaced-block``,
        ``larger-block``, ``short-block``, ``varlength``, ``trailing-bytes``.
    """

    def found(kind: KindOfFinding, message: str, severity: Severity | None = None) -> Finding:
        return finding(kind, path, message, block=position, severity=severity)

    shard = shard_in(block, dataset)
    if shard is not None:
        yield found("shard", shard_text(shard), None if not shard.is_block else "warning")
    if shard is not None and not shard.is_block:
        return
    try:
        header = BlockHeader.from_bytes(block.outline)
        check_header(header, dataset.ndim, dataset.data_type)
        surplus = _check_payload(block, header, dataset, deep=deep)
    except N5BlockError as err:
        kind: KindOfFinding = "header" if err.kind == "header" else "payload"
        yield found(kind if block.size else "empty-block", err.message)
        return
    if surplus and shard is None:
        yield found("trailing-bytes", f"expected the end of the block, got {surplus} bytes more")
    if header.mode is not BlockMode.OBJECT:
        yield from (found(*problem) for problem in _sizes(header, dataset, position))


def shard_in(block: StoredBlock, dataset: DatasetAttributes) -> Shard | None:
    """Return the index of a shard of Java N5 4 in the place of a block; None for blocks."""
    return stored_shard(block.size, block.part, dataset.data_type, dataset.compression)


def _sizes(
    header: BlockHeader, dataset: DatasetAttributes, position: N5Tuple
) -> Iterator[tuple[KindOfFinding, str]]:
    if _is_other_count(header, dataset):
        message = (
            f"expected {math.prod(header.block_shape)} elements for the extent "
            f"{header.block_shape}, got {header.n_payload_elements}; n5zarr.read_block reads them"
        )
        yield "varlength", message
    problem = _size_problem(header.block_shape, dataset, position)
    if problem is not None:
        yield problem


def _is_other_count(header: BlockHeader, dataset: DatasetAttributes) -> bool:
    if header.n_elements is None or dataset.data_type is DataType.STRING:
        return False
    count = math.prod(header.block_shape)
    return not dataset.is_label_multiset and header.n_payload_elements != count


def _check_payload(
    block: StoredBlock, header: BlockHeader, dataset: DatasetAttributes, *, deep: bool
) -> int:
    """Check the payload; return the number of bytes after it, if known."""
    compression = dataset.compression
    if isinstance(compression, Jpeg) and dataset.data_type is not DataType.UINT8:
        return 0
    n_bytes = header.n_payload_elements * dataset.data_type.item_size
    surplus = 0
    if dataset.data_type is not DataType.STRING and n_bytes:
        data = block.outline if judges_ends(compression) else block.whole
        payload = data[header.n_bytes :]
        n_used = usable(payload, n_bytes, compression)
        surplus = 0 if n_used is None else len(payload) - n_used
        if n_used is not None and not deep:
            return surplus
    _decode(block.whole, header, dataset, n_bytes)
    return surplus


def _decode(
    data: memoryview, header: BlockHeader, dataset: DatasetAttributes, n_bytes: int
) -> None:
    if dataset.data_type is DataType.STRING:
        decode_strings(data, dataset.ndim, dataset.compression)
    elif dataset.is_label_multiset:
        decode_labels(data, dataset.ndim, dataset.compression)
    else:
        decompress(data[header.n_bytes :], n_bytes, dataset.compression)


# ---------------------------------------------------------------------- sizes


def _size_problem(
    sizes: N5Tuple, dataset: DatasetAttributes, position: N5Tuple
) -> tuple[KindOfFinding, str] | None:
    """Compare the sizes of a block with ``blockSize`` and with its extent in the dataset."""
    full = dataset.block_size
    extent = block_extent(dataset.dimensions, full, position)
    if sizes in (full, extent):
        return None
    expected = f"expected {extent}" if extent == full else f"expected {extent}, or {full} padded"
    if not all(map(le, sizes, full)):
        return "larger-block", f"{expected}, got the larger {sizes}; only Java and n5zarr read it"
    last = block_extent(
        dataset.dimensions, full, type(position)(tuple(n - 1 for n in dataset.grid))
    )
    # other sizes are of regions that Java saved; these are of blocks at the end of another axis
    if all(s in (e, b) for s, e, b in zip(sizes, last, full, strict=True)):
        return "misplaced-block", f"{expected}, got {sizes}, as of a block at another position"
    if any(map(lt, sizes, extent)):
        return "short-block", f"{expected}, got {sizes}; the rest of the block reads as 0"
    return None


def form_of(sizes: N5Tuple, dataset: DatasetAttributes, position: N5Tuple) -> Form | None:
    """Return the storage of a block at the end of the dataset; None for a block inside it."""
    extent = block_extent(dataset.dimensions, dataset.block_size, position)
    if extent == dataset.block_size:
        return None
    if sizes == extent:
        return "truncated"
    return "padded" if all(map(ge, sizes, extent)) else "other"


def has_values_outside(elements: np.ndarray, extent: N5Tuple) -> bool:
    """Whether the elements of a block outside of the dataset differ from each other.

    Programs pad with one value, mostly 0.

    Parameters
    ----------
    elements : numpy.ndarray
        The block, shape in C order.
    extent : tuple of int
        The part of it inside the dataset, N5 order.
    """
    is_outside = np.ones(elements.shape, bool)
    is_outside[tuple(map(slice, to_c(extent)))] = False
    outside = elements[is_outside]
    return bool(outside.size) and outside.tobytes() != outside[:1].tobytes() * outside.size
