"""Check one stored block: its header, its size at its position, and its payload."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from operator import le, lt
from typing import Literal

import numpy as np

from n5zarr.codecs.block import check_count, check_header, decode_strings
from n5zarr.codecs.compress import codec_of, measure
from n5zarr.codecs.label_multiset import decode_multisets
from n5zarr.codecs.shard import Shard, check_stored_size, shard_text, stored_shard
from n5zarr.errors import N5BlockError
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Jpeg, Raw
from n5zarr.format.data_type import DataType
from n5zarr.format.order import N5Tuple
from n5zarr.tools.validate.findings import Finding, KindOfFinding, Severity, finding

type _Problem = tuple[KindOfFinding, str, Severity | None]

_LARGE = 2**26  # bytes; a smaller block gets memory whatever its header says
_CHECKSUM = 8  # bytes after raw elements that may be a checksum


class StoredBlock:
    """A stored block, of which only the needed bytes are read.

    Parameters
    ----------
    size : int
        Length in bytes.
    first, last : bytes
        The first and last bytes; all of them in ``first`` where the block is short.
    read : callable
        Reads the whole block, or a part with the given offset and length; None if it is gone.
    """

    def __init__(
        self,
        size: int,
        first: bytes,
        last: bytes,
        read: Callable[[tuple[int, int] | None], bytes | None],
    ) -> None:
        self.size = size
        self._first, self._last = first, last
        self._read = read

    @cached_property
    def outline(self) -> memoryview:
        """The block with zeros in place of unread bytes."""
        if len(self._first) == self.size:
            return memoryview(self._first)
        if self.size > _LARGE:
            check_stored_size(self.size, self.part)
        # memory that is never touched costs nothing
        data = np.zeros(self.size, "u1")
        data[: len(self._first)] = np.frombuffer(self._first, "u1")
        data[self.size - len(self._last) :] = np.frombuffer(self._last, "u1")
        return memoryview(data)

    def part(self, offset: int, n_bytes: int) -> memoryview:
        """Return some bytes; read them if they are not at the ends of the block."""
        end = min(offset + n_bytes, self.size)
        if end <= len(self._first):
            return memoryview(self._first)[offset:end]
        if (begin := offset - (self.size - len(self._last))) >= 0:
            return memoryview(self._last)[begin : begin + n_bytes]
        return memoryview(self._read((offset, end - offset)) or b"")

    @property
    def whole(self) -> memoryview:
        """All bytes; the rest is read now. Empty if the block was removed meanwhile."""
        if len(self._first) < self.size:
            self._first = self._read(None) or b""
            self.size = len(self._first)
        return memoryview(self._first)


def whole(data: bytes) -> StoredBlock:
    """Make a stored block from all its bytes."""
    return StoredBlock(len(data), data, b"", lambda _: data)


class UsualBlocks:
    """Recognises blocks without findings at little cost, as nearly all are.

    They have the full size or are truncated, and their ends show that they are whole.

    Parameters
    ----------
    dataset : DatasetAttributes
        The dataset of the blocks.
    """

    def __init__(self, dataset: DatasetAttributes) -> None:
        self._dataset, self._codec = dataset, codec_of(dataset.compression)
        pairs = zip(dataset.dimensions, dataset.block_size, strict=True)
        self._n_inside = [n // size for n, size in pairs]
        self._header = b""
        # label multisets are bytes of no positions: none of them is padding
        is_numeric = dataset.data_type.is_numeric and not dataset.is_label_multiset
        if is_numeric and self._codec.judges_ends:
            self._header = _header_of(dataset.block_size)

    def form(
        self, ends: tuple[int, bytes, bytes], position: N5Tuple
    ) -> Literal["inside", "padded", "truncated"] | None:
        """Return the form of a block in which :func:`check_block` certainly finds nothing.

        Parameters
        ----------
        ends : tuple
            Size, first and last bytes of a file whose last bytes are not those of a shard.
        position : tuple of int
            Position in the grid, N5 order.

        Returns
        -------
        str or None
            How the block is stored; None for one that may have findings without being decoded.
        """
        # what these codecs accept behind the header is no index of a shard, either
        size, first, _ = ends
        if size > _LARGE or not self._header:
            return None
        is_inside = all(map(lt, position, self._n_inside))
        is_full = first.startswith(self._header)
        full = self._dataset.block_size
        shape = full if is_inside else self._dataset.extent_of(position)
        header = self._header if is_full else _header_of(shape)
        if 0 in shape or not first.startswith(header):
            return None
        if not self._is_whole(ends, header, full if is_full else shape):
            return None
        return "inside" if is_inside else "padded" if is_full else "truncated"

    def _is_whole(self, ends: tuple[int, bytes, bytes], header: bytes, shape: N5Tuple) -> bool:
        size, first, _ = ends
        n_bytes = math.prod(shape) * self._dataset.data_type.item_size
        with suppress(N5BlockError):
            is_short = len(first) == size
            outline = memoryview(first) if is_short else StoredBlock(*ends, lambda _: None).outline
            payload = outline[len(header) :]
            n_usable = self._codec.usable(payload, n_bytes, self._dataset.compression)
            return n_usable == len(payload)
        return False


def _header_of(shape: N5Tuple) -> bytes:
    return BlockHeader(mode=BlockMode.DEFAULT, block_shape=shape).to_bytes()


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
        Path of the dataset.
    position : tuple of int
        Position in the grid, N5 order.
    deep : bool
        Whether to decode the payload; otherwise it is decoded only if its ends do not show that it
        is whole.

    Yields
    ------
    Finding
        The kinds ``shard``, ``empty-block``, ``header``, ``payload``, ``misplaced-block``,
        ``larger-block``, ``short-block``, ``varlength``, ``longer-payload``, ``trailing-bytes``.
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
        surplus = list(_check_payload(block, header, dataset, position, deep=deep))
    except N5BlockError as err:
        kind: KindOfFinding = "header" if err.kind == "header" else "payload"
        yield found(kind if block.size else "empty-block", err.message)
        return
    if shard is None:
        yield from (found(*problem) for problem in surplus)
    if header.mode is not BlockMode.OBJECT:
        yield from (found(*problem) for problem in _check_sizes(header, dataset, position))


def shard_in(block: StoredBlock, dataset: DatasetAttributes) -> Shard | None:
    """Return the index of a shard of Java N5 4 in the place of a block; None for blocks."""
    return stored_shard(block.size, block.part, dataset.data_type, dataset.compression)


def framing_of(block: StoredBlock, dataset: DatasetAttributes) -> str | None:
    """Name the program whose form of the compression a sound block has; None if it has one form."""
    codec = codec_of(dataset.compression)
    if codec.judges_ends or not dataset.data_type.is_numeric:  # text does not tell its length
        return None
    header = BlockHeader.from_bytes(block.outline)
    n_bytes = header.n_payload_elements * dataset.data_type.item_size
    return codec.framing(block.whole[header.n_bytes :], n_bytes)


def _check_payload(
    block: StoredBlock,
    header: BlockHeader,
    dataset: DatasetAttributes,
    position: N5Tuple,
    *,
    deep: bool,
) -> Iterator[_Problem]:
    """Raise if the payload is damaged; yield problems of bytes that readers ignore."""
    compression, data_type = dataset.compression, dataset.data_type
    if isinstance(compression, Jpeg) and data_type is not DataType.UINT8:
        return
    is_text = data_type is DataType.STRING
    n_bytes = header.n_payload_elements * data_type.item_size
    if not (deep or is_text) and n_bytes:
        payload = (block.outline if codec_of(compression).judges_ends else block.whole)[
            header.n_bytes :
        ]
        if codec_of(compression).usable(payload, n_bytes, compression) == len(payload):
            return
    if is_text:
        decode_strings(block.whole, dataset.ndim, compression)
    elif dataset.is_label_multiset:
        inside = dataset.extent_of(position)
        decode_multisets(block.whole, dataset.ndim, compression, inside)
    payload = block.whole[header.n_bytes :]
    n_decoded, n_used = _counts(payload, n_bytes, dataset)
    if n_decoded > n_bytes:
        yield _surplus(n_decoded, header, dataset)
    if n_used < len(payload):
        yield _trailing(len(payload) - n_used)


def _counts(payload: memoryview, n_bytes: int, dataset: DatasetAttributes) -> tuple[int, int]:
    """Return the decoded size of a payload, and how many of its bytes are used."""
    if n_bytes == 0:
        return 0, len(payload)
    if dataset.data_type is not DataType.STRING:
        return measure(payload, n_bytes, dataset.compression)
    try:
        return n_bytes, measure(payload, n_bytes, dataset.compression)[1]
    except N5BlockError:  # fewer bytes than the number
        return n_bytes, len(payload)


def _trailing(n_more: int) -> _Problem:
    return "trailing-bytes", f"expected the end of the block, got {n_more} bytes more", None


def _surplus(n_decoded: int, header: BlockHeader, dataset: DatasetAttributes) -> _Problem:
    """Describe a payload that holds more elements than its header says."""
    n_bytes = header.n_payload_elements * dataset.data_type.item_size
    if isinstance(dataset.compression, Raw) and n_decoded - n_bytes <= _CHECKSUM:
        return _trailing(n_decoded - n_bytes)
    message = f"expected {n_bytes} bytes, got {n_decoded}"
    ways_out = f"; n5zarr and Java read the first {n_bytes}"
    is_array = header.mode is not BlockMode.OBJECT and not dataset.is_label_multiset
    others = [str(t) for t in DataType if t.item_size * header.n_payload_elements == n_decoded]
    if is_array and others:
        return "longer-payload", f"{message}: as many as {' or '.join(others)} has{ways_out}", None
    if is_array and n_decoded == math.prod(dataset.block_size) * dataset.data_type.item_size:
        fits = f"as many as {dataset.block_size} has, not {header.block_shape}"
        return "longer-payload", f"{message}: {fits}{ways_out}", None
    return "longer-payload", message + ways_out, "warning"


# ---------------------------------------------------------------------- sizes


def _check_sizes(
    header: BlockHeader, dataset: DatasetAttributes, position: N5Tuple
) -> Iterator[tuple[KindOfFinding, str]]:
    """Compare the sizes of a block with its elements, with ``blockSize`` and with its extent."""
    if dataset.data_type is not DataType.STRING and not dataset.is_label_multiset:
        try:
            check_count(header, dataset.data_type)
        except N5BlockError as err:
            yield "varlength", err.message
    sizes, full = header.block_shape, dataset.block_size
    extent = dataset.extent_of(position)
    if sizes in (full, extent):
        return
    last = dataset.extent_of(N5Tuple(tuple(n - 1 for n in dataset.grid)))
    expected = f"expected {extent}" if extent == full else f"expected {extent}, or {full} padded"
    if not all(map(le, sizes, full)):
        yield "larger-block", f"{expected}, got the larger {sizes}; only Java and n5zarr read it"
    # other sizes are of regions that Java saved; these are of blocks at the end of another axis
    elif all(s in (e, b) for s, e, b in zip(sizes, last, full, strict=True)):
        yield "misplaced-block", f"{expected}, got {sizes}, as of a block at another position"
    elif any(map(lt, sizes, extent)):
        yield "short-block", f"{expected}, got {sizes}; the rest of the block reads as 0"
