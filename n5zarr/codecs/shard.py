"""Recognise shards of Java N5 4: files of several blocks with an index of their places.

N5 has no shards. Java N5 4 writes them all the same, into datasets whose ``attributes.json`` does
not say so: ``blockSize`` is that of the blocks inside, and the file lies at its position in the
grid of shards. Java, n5 commit 7ba6b144: ``shard/ShardIndex.java``, ``shard/RawShardCodec.java``.

=========  =====================================================================
part       bytes
=========  =====================================================================
blocks     one after another, in the order of the index, without gaps
index      for each block, first axis of N5 order fastest: uint64 offset, uint64 length,
           big-endian; both all ones if the block is missing
checksum   CRC-32C of the index, little-endian
=========  =====================================================================

The index is behind the blocks, or before them; offsets count from the start of the file. Java can
also write little-endian entries, no checksum, or a block header before the index.

Deviation: only an index whose blocks fill the rest of the file is one. Java checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

import google_crc32c

from n5zarr.codecs.buffers import BufferLike, damaged, max_unpacked
from n5zarr.errors import N5BlockError
from n5zarr.format.attributes import READ_SHARDS
from n5zarr.format.block import MAX_ARRAY_NDIM, BlockHeader, BlockMode
from n5zarr.format.compression import Compression, Raw
from n5zarr.format.data_type import DataType

type Read = Callable[[int, int], BufferLike]

LAST = 20
"""Bytes at the end of a file that :func:`is_likely` needs: an entry and the checksum."""

_ENTRY, _CHECKSUM = 16, 4  # bytes
_MISSING = b"\xff" * _ENTRY
_MOST_INDEX = 2**26  # bytes of the index of a file that is too large to be read whole
_PIECE = 2**10  # entries that are read at once
_LONGEST_HEADER = 8 + 4 * MAX_ARRAY_NDIM


class _Form(NamedTuple):
    """The form of an index: bytes of the checksum, and an entry."""

    n_checksum: int
    entry: Struct


_FORMS = [_Form(n, Struct(f"{order}QQ")) for n in (_CHECKSUM, 0) for order in "><"]


@dataclass(frozen=True, slots=True)
class Shard:
    """The index of a shard.

    Parameters
    ----------
    ranges : tuple
        Offset and length of each block in the file, in bytes, first axis of N5 order fastest; None
        for a missing block.
    begins : int
        Offset of the first block in the file: 0, or that of the end of the index.
    """

    ranges: tuple[tuple[int, int] | None, ...]
    begins: int

    @property
    def n(self) -> int:
        """Number of blocks, missing ones included."""
        return len(self.ranges)

    @property
    def is_block(self) -> bool:
        """Whether the file begins with its only block: then programs read it as this block."""
        return self.n == 1 and not self.begins


# ---------------------------------------------------------------------- recognising


def is_likely(last: bytes, size: int) -> bool:
    r"""Whether the last bytes of a file may be the end of an index; False for nearly every block.

    Parameters
    ----------
    last : bytes
        The last :data:`LAST` bytes.
    size : int
        Length of the file.

    Examples
    --------
    >>> is_likely(bytes(15) + b"\x1c" + b"\x0a\x98\xe1\xf6", 48), is_likely(bytes(20), 48)
    (True, False)
    """
    # offset and length below 2**48 have two zeros each; this settles most blocks at little cost
    if (last.count(0) < 4 and last.count(255) < _ENTRY) or len(last) < LAST:
        return False
    for form in _FORMS:
        offset, length = form.entry.unpack_from(last, LAST - _ENTRY - form.n_checksum)
        if offset + length <= size - _ENTRY - form.n_checksum and length:
            return True
    return last[:_ENTRY] == _MISSING or last[-_ENTRY:] == _MISSING


def in_memory(data: BufferLike) -> tuple[int, Read]:
    """Return length and reader of a whole file, as :func:`find_shard` takes them."""
    return len(data), lambda offset, n: data[offset : offset + n]


def find_shard(size: int, read: Read) -> Shard | None:
    """Return the index of a shard; None for other files.

    Parameters
    ----------
    size : int
        Length of the file.
    read : callable
        Reads bytes of the file: takes an offset and their number.
    """
    find = [_find_at_start]
    if is_likely(bytes(read(max(0, size - LAST), LAST)), size):
        find = [_find_at_end, _find_at_start]
    each = (look(size, read, form) for look in find for form in _FORMS)
    return next((shard for shard in each if shard is not None), None)


def _find_at_end(size: int, read: Read, form: _Form) -> Shard | None:
    end = size - form.n_checksum
    last = end - _ENTRY * _count_missing(read, end, -1)
    begins = 0  # the index, if all blocks are missing
    if last >= _ENTRY:
        offset, length = form.entry.unpack(read(last - _ENTRY, _ENTRY))
        begins = offset + length
    if not 0 <= begins <= end - _ENTRY:
        return None
    n_header = _length_of_header(read(begins, 4))
    return _parse(read(begins, size - begins), n_header, form, 0, begins)


def _find_at_start(size: int, read: Read, form: _Form) -> Shard | None:
    n_header = _length_of_header(read(0, 4))
    first = n_header + _ENTRY * _count_missing(read, n_header, size)
    ends = size  # the index, if all blocks are missing
    if first <= size - _ENTRY:
        ends = form.entry.unpack(read(first, _ENTRY))[0]
    if not n_header + _ENTRY <= ends <= size:
        return None
    return _parse(read(0, ends), n_header, form, ends, size)


def _length_of_header(start: BufferLike) -> int:
    """Return the length of the block header before an index, which has at least two dimensions.

    0 if there is none: an entry begins with four bytes that are 0, or with other bytes.
    """
    ndim = int.from_bytes(start[2:4])
    return 4 + 4 * ndim if bytes(start[:2]) == b"\0\0" and 2 <= ndim <= MAX_ARRAY_NDIM + 1 else 0


def _count_missing(read: Read, at: int, end: int) -> int:
    """Count the entries of missing blocks after a place, or before it if ``end`` is negative."""
    n = 0
    while True:
        room = at // _ENTRY if end < 0 else (end - at) // _ENTRY
        n_bytes = _ENTRY * min(_PIECE, room)
        at -= n_bytes if end < 0 else 0
        piece = bytes(read(at, n_bytes))
        rest = piece.rstrip(b"\xff") if end < 0 else piece.lstrip(b"\xff")
        at += 0 if end < 0 else n_bytes
        n += (len(piece) - len(rest)) // _ENTRY
        if rest or not piece:
            return n


def _parse(index: BufferLike, n_header: int, form: _Form, begins: int, end: int) -> Shard | None:
    """Parse an index.

    Parameters
    ----------
    index : bytes-like
        Header, entries and checksum.
    n_header : int
        Length of the header, in bytes.
    form : _Form
        The form of the rest.
    begins, end : int
        Where the blocks are in the file.

    Returns
    -------
    Shard or None
        None unless header and checksum match, and the blocks fill their place.
    """
    stop = len(index) - form.n_checksum
    if stop <= n_header or (stop - n_header) % _ENTRY:
        return None
    if form.entry.unpack_from(index, n_header)[0] not in (begins, 2**64 - 1):
        return None  # before the work on the whole index
    if not _is_sound(index, stop, n_header, form):
        return None
    ranges: list[tuple[int, int] | None] = []
    at = begins
    for offset, length in form.entry.iter_unpack(index[n_header:stop]):
        if offset == length == 2**64 - 1:
            ranges.append(None)
        elif offset == at and length:
            ranges.append((offset, length))
            at += length
        else:
            return None
    if n_header and not (any(ranges) or form.n_checksum):
        return None  # elements of a block that are all ones look the same
    return Shard(tuple(ranges), begins) if at == end else None


def _is_sound(index: BufferLike, stop: int, n_header: int, form: _Form) -> bool:
    """Whether the header of an index, if there is one, and the checksum match its entries."""
    if n_header:
        header = _header(index[:n_header])
        if header is None or header.n_payload_elements != 2 * (stop - n_header) // _ENTRY:
            return False
    # Java: ``N5BlockCodecs.java`` encodes behind the header, so the checksum is of the entries
    checksum = google_crc32c.value(bytes(index[n_header:stop])).to_bytes(_CHECKSUM, "little")
    return not form.n_checksum or checksum == bytes(index[stop:])


# ---------------------------------------------------------------------- blocks


def check_no_shard(data: memoryview, data_type: DataType, compression: Compression) -> None:
    """Raise if a stored block is a shard, whose blocks it would not give.

    A shard with one block that has a header is read as this block. Costs nearly nothing for others.

    Parameters
    ----------
    data : memoryview
        The stored block, as bytes.
    data_type, compression : DataType, Compression
        Of the dataset.

    Raises
    ------
    N5BlockError
        The block is a shard (``kind="shard"``).
    """
    size = len(data)
    if size < LAST or not (may_begin(data) or is_likely(bytes(data[-LAST:]), size)):
        return
    shard = stored_shard(*in_memory(data), data_type, compression)
    if shard is not None and not (shard.is_block and _header(data)):
        raise shard_error(shard)


def stored_shard(
    size: int, read: Read, data_type: DataType, compression: Compression
) -> Shard | None:
    """Return the index of a file that is a shard in the place of a block; None for blocks.

    The parameters are those of :func:`check_not_sharded`.
    """
    if size < LAST:
        return None
    if not (may_begin(read(0, 8)) or is_likely(bytes(read(size - LAST, LAST)), size)):
        return None
    header = _header(read(0, _LONGEST_HEADER))
    if header is not None and _is_raw_block(header, size, data_type, compression):
        return None
    return find_shard(size, read)


def check_not_sharded(
    size: int,
    read: Read,
    data_type: DataType,
    compression: Compression,
    where: Callable[[], str] | None = None,
) -> None:
    """Raise if a file that is to be changed, replaced or removed is a shard, even of one block.

    Parameters
    ----------
    size : int
        Length of the file.
    read : callable
        Reads bytes of the file: takes an offset and their number.
    data_type, compression : DataType, Compression
        Of the dataset.
    where : callable, optional
        Returns the name of the block for messages.

    Raises
    ------
    N5BlockError
        The block is a shard (``kind="shard"``).
    """
    shard = stored_shard(size, read, data_type, compression)
    if shard is not None:
        raise shard_error(shard).located("" if where is None else where())


def check_stored_size(size: int, read: Read, item_size: int = 8) -> None:
    """Raise if a stored block is far longer than its elements; call it before reading the block.

    Parameters
    ----------
    size : int
        Length of the block, in bytes.
    read : callable
        Reads bytes of the block: takes an offset and their number.
    item_size : int, optional
        Largest number of bytes of an element.

    Raises
    ------
    N5BlockError
        The block is a shard (``kind="shard"``), too long (``kind="payload"``) or has no header
        (``kind="header"``).
    """
    try:
        header = BlockHeader.from_bytes(memoryview(read(0, 64)))
        most = header.n_bytes + max_unpacked(header.n_payload_elements * item_size)
        if header.mode is BlockMode.OBJECT or size <= most:
            return
        raise damaged(f"expected at most {most} bytes of {header.block_shape}, got {size}")
    except N5BlockError:
        shard = find_shard(size, lambda offset, n: read(offset, n) if n <= _MOST_INDEX else b"")
        if shard is None:
            raise
        raise shard_error(shard) from None


def shard_error(shard: Shard) -> N5BlockError:
    """Make the error of a shard in the place of a block."""
    message = f"{shard_text(shard)}; n5zarr validate prints the size of the shards; {READ_SHARDS}"
    return N5BlockError(message, kind="shard")


def shard_text(shard: Shard) -> str:
    """Say what a shard is, for messages."""
    chunks = "1 chunk" if shard.n == 1 else f"{shard.n} chunks"
    end = "start" if shard.begins else "end"
    return (
        f"expected a block, got a shard of Java N5 4 with {chunks}, index at the {end}, which "
        "attributes.json does not tell"
    )


def may_begin(start: BufferLike) -> bool:
    """Whether a file may begin with an index: unlike a block, or like one with a first size of 2.

    The latter is the header before an index, as each entry is two numbers.
    """
    ndim = start[2] << 8 | start[3]
    begins_block = start[0] == 0 and start[1] < BlockMode.OBJECT and 0 < ndim <= MAX_ARRAY_NDIM
    return not begins_block or (ndim > 1 and bytes(start[4:8]) == b"\0\0\0\2")


def _header(start: BufferLike) -> BlockHeader | None:
    """Parse the header of a block of numbers, text or bytes; None if there is none."""
    try:
        header = BlockHeader.from_bytes(memoryview(start))
    except N5BlockError:
        return None
    if header.mode is BlockMode.OBJECT:
        return header
    return header if header.block_shape and all(header.block_shape) else None


def _is_raw_block(
    header: BlockHeader, size: int, data_type: DataType, compression: Compression
) -> bool:
    """Whether a file has exactly the length of an uncompressed block with this header."""
    if not isinstance(compression, Raw):
        return False
    return size == header.n_bytes + header.n_payload_elements * data_type.item_size
