"""``blosc``: one c-blosc 1 buffer.

N5: ``{"type":"blosc","cname":"zstd","clevel":6,"shuffle":1,"blocksize":0}``. Zarr: ``blosc``. The
header of the buffer has the parameters. Java compresses with an item size of 1, which makes byte
shuffle useless; n5zarr uses the item size of the elements, which every reader accepts.

numcodecs reads past the end of a truncated buffer, and leaves memory that no stream fills
uninitialized: so the header is checked first. numcodecs is built without snappy: so this module
decompresses the streams of a snappy buffer into an uncompressed buffer, and c-blosc undoes the
shuffle of that.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import numcodecs.blosc as library

from n5zarr.codecs.buffers import BufferLike, Scratch, damaged, max_unpacked
from n5zarr.codecs.compression import Codec
from n5zarr.errors import N5UnsupportedError, import_optional
from n5zarr.format.compression import Blosc
from n5zarr.format.lenient_json import JSON

_HEADER = struct.Struct(
    "<BBBBIII"
)  # version, lz version, flags, item size, nbytes, blocksize, cbytes
_LENGTH = struct.Struct("<I")
_COPIED = 0x2  # flag: not compressed at all
_MAX_RATIO = 2**15  # no stream of any format expands further
_SNAPPY_RATIO = 24  # no snappy stream expands further: 64 bytes for 3
_NOT_SPLIT = 0x10  # flag: one stream per block; without the flag the next two limits decide
_MAX_SPLITS, _MIN_STREAM = 16, 128  # streams of a block, bytes of each
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")  # Zarr v3's names of 0, 1 and 2
_FORMATS = ("blosclz", "lz4", "snappy", "zlib", "zstd")  # bits 5 to 7 of the flags


class BloscCodec(Codec[Blosc]):
    """Blosc 1."""

    judges_ends = True  # the header has all lengths

    def compress(self, data: BufferLike, compression: Blosc, item_size: int) -> BufferLike:
        """Compress into one buffer."""
        c = compression
        if c.cname not in library.list_compressors():
            raise _no_such_library(c.cname)
        packed: bytes = library.compress(
            data, c.cname.encode(), c.clevel, c.shuffle, c.block_size, item_size
        )
        return packed

    def decompress(self, payload: memoryview, n_bytes: int, compression: Blosc) -> BufferLike:
        """Decompress the buffer with the parameters in its header."""
        return memoryview(self._unpacked(payload, n_bytes))[:n_bytes]

    def measure(self, payload: memoryview, n_bytes: int, compression: Blosc) -> tuple[int, int]:
        """Count what the buffer holds."""
        return len(self._unpacked(payload, n_bytes)), _read_header(payload)[2]

    def _unpacked(self, payload: memoryview, n_bytes: int) -> bytes:
        flags, nbytes, cbytes = _read_header(payload)
        if nbytes > max_unpacked(n_bytes) or nbytes > _MAX_RATIO * cbytes:
            raise damaged(f"expected a blosc buffer of {n_bytes} bytes, got one of {nbytes}")
        buffer: BufferLike = payload[:cbytes]
        if not flags & _COPIED and _format(flags) == "snappy":
            buffer = _without_snappy(payload[:cbytes])
        elif not flags & _COPIED and _format(flags) == "unknown":
            raise damaged(f"expected a blosc buffer of a known format, got {flags >> 5}")
        try:
            unpacked: bytes = library.decompress(buffer)
        except (RuntimeError, ValueError) as err:
            raise damaged(f"expected a blosc buffer: {err}") from err
        return unpacked

    def usable(self, payload: memoryview, n_bytes: int, compression: Blosc) -> int | None:
        """Compare the lengths in the header; None for a buffer that numcodecs cannot decompress."""
        return _end_of_buffer(payload, n_bytes)

    def seems_usable(
        self, start: memoryview, size: int, n_bytes: int, compression: Blosc
    ) -> int | None:
        """Compare the lengths in the header, as :meth:`usable`."""
        return _end_of_buffer(start, n_bytes, size)

    def store(self, data: BufferLike, compression: Blosc) -> BufferLike:
        """Copy into an uncompressed buffer."""
        stored: bytes = library.compress(data, b"lz4", 0, library.NOSHUFFLE)
        return stored

    def decompress_into(
        self, payload: memoryview, n_bytes: int, memory: Scratch
    ) -> memoryview | None:
        """Decompress a buffer that announces ``n_bytes``."""
        end = _end_of_buffer(payload, n_bytes)
        return None if end is None else memory.filled(library.decompress, payload[:end], n_bytes)

    def detects_incomplete(self, compression: Blosc) -> bool:
        """Return True: the header has the length of the buffer."""
        return True

    def check_writable(self, compression: Blosc) -> None:
        """Raise for snappy, which numcodecs is built without."""
        if compression.cname == "snappy":
            message = "compression: blosc with snappy can only be read; use another one"
            raise N5UnsupportedError(message, kind="compression")

    def within_limits(self, compression: Blosc, item_size: int) -> Blosc:
        """Replace shuffle -1, which tensorstore refuses, by numcodecs' choice for it."""
        if compression.shuffle != -1:
            return compression
        return replace(compression, shuffle=2 if item_size == 1 else 1)

    def within_zarr_limits(self, compression: Blosc) -> Blosc:
        """Replace snappy, which numcodecs is built without."""
        return replace(compression, cname="lz4") if compression.cname == "snappy" else compression

    def numcodec(self, compression: Blosc) -> dict[str, JSON]:
        """Return the configuration of numcodecs' ``blosc``."""
        return {
            "id": "blosc",
            "cname": compression.cname,
            "clevel": compression.clevel,
            "shuffle": compression.shuffle,
            "blocksize": compression.block_size,
        }

    def zarr_codec(self, compression: Blosc) -> tuple[str, Mapping[str, JSON]]:
        """Return Zarr v3's ``blosc`` without ``typesize``, which depends on the elements."""
        return "blosc", {
            "cname": compression.cname,
            "clevel": compression.clevel,
            "shuffle": _SHUFFLES[compression.shuffle],
            "blocksize": compression.block_size,
        }

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Convert ``blosc``, whose shuffle is a name in Zarr v3 and a number in numcodecs."""
        shuffle = configuration.get("shuffle", 1)
        if isinstance(shuffle, str):
            shuffle = _SHUFFLES.index(shuffle) if shuffle in _SHUFFLES else None
        return {
            "type": "blosc",
            "cname": configuration.get("cname", "lz4"),
            "clevel": configuration.get("clevel", 5),
            "shuffle": shuffle,
            "blocksize": configuration.get("blocksize", 0),
        }


def _end_of_buffer(payload: memoryview, n_bytes: int, size: int | None = None) -> int | None:
    """Return the length of a buffer that numcodecs decompresses to ``n_bytes``; None for others."""
    flags, nbytes, cbytes = _read_header(payload, size)
    decodable = flags & _COPIED or _format(flags) in library.list_compressors()
    return cbytes if nbytes == n_bytes and decodable else None


def _read_header(payload: memoryview, size: int | None = None) -> tuple[int, int, int]:
    """Read flags and the lengths before and after compression; raise if they are inconsistent.

    ``size`` is the length of the whole payload, if its beginning is given.
    """
    if len(payload) < _HEADER.size:
        raise damaged(f"expected a blosc header of {_HEADER.size} bytes, got {len(payload)}")
    size = len(payload) if size is None else size
    version, _, flags, item_size, nbytes, block_size, cbytes = _HEADER.unpack_from(payload)
    if version not in (1, 2):
        raise damaged(f"expected a blosc buffer of version 1 or 2, got version {version}")
    if not _HEADER.size <= cbytes <= size:
        raise damaged(f"expected a blosc buffer of {cbytes} bytes, got {size} (incomplete write?)")
    if flags & _COPIED and cbytes != nbytes + _HEADER.size:
        raise damaged(f"expected {nbytes} uncompressed bytes, got {cbytes - _HEADER.size}")
    if not flags & _COPIED and block_size % _n_streams(flags, item_size, block_size):
        raise damaged(f"expected items of {item_size} bytes, got blosc blocks of {block_size}")
    return flags, nbytes, cbytes


def announced_lengths(payload: memoryview) -> tuple[int, int]:
    """Read the lengths before and after compression that a buffer announces; 0 for other data."""
    if len(payload) < _HEADER.size:
        return 0, 0
    version, _, _, _, nbytes, _, cbytes = _HEADER.unpack_from(payload)
    return (nbytes, cbytes) if version in (1, 2) else (0, 0)


def _n_streams(flags: int, item_size: int, block_size: int) -> int:
    """Compute the number of streams, equal in size, into which c-blosc splits a full block."""
    is_split = not flags & _NOT_SPLIT and 0 < item_size <= _MAX_SPLITS
    return item_size if is_split and block_size // item_size >= _MIN_STREAM else 1


def _without_snappy(payload: memoryview) -> bytes:
    """Rewrite a buffer of snappy streams as one of uncompressed streams.

    c-blosc 1, README_HEADER.rst: a buffer has the header, the offset of each block, and the blocks.
    A block has one stream, or one per byte of an item where the block was split. Its length
    precedes each stream. A stream as long as its data is not compressed.
    """
    cramjam = import_optional("cramjam", "blosc with snappy", "snappy")
    version, lz, flags, item_size, nbytes, block_size, _ = _HEADER.unpack_from(payload)
    n_blocks = -(-nbytes // block_size) if block_size else 0
    table = _HEADER.size + 4 * n_blocks
    if nbytes > _SNAPPY_RATIO * len(payload):
        raise damaged(f"expected a blosc buffer of {nbytes} bytes, got {len(payload)} with snappy")
    if not 0 < table <= len(payload):
        raise damaged(f"expected a blosc buffer of {n_blocks} blocks, got {len(payload)} bytes")
    offsets, blocks = [], []
    end = table
    for i in range(n_blocks):
        n_block = min(block_size, nbytes - i * block_size)
        # a shorter last block is never split
        n_streams = 1 if n_block < block_size else _n_streams(flags, item_size, block_size)
        try:
            (start,) = _LENGTH.unpack_from(payload, _HEADER.size + 4 * i)
            block = _plain_streams(payload[start:], n_streams, n_block // n_streams, cramjam)
        except (struct.error, cramjam.DecompressionError) as err:
            raise damaged(f"expected snappy streams in block {i} of the blosc buffer") from err
        offsets.append(end)
        blocks.append(block)
        end += len(block)
    body = struct.pack(f"<{n_blocks}I", *offsets) + b"".join(blocks)
    flags = flags & 0x1F | _FORMATS.index("lz4") << 5
    cbytes = _HEADER.size + len(body)
    return _HEADER.pack(version, lz, flags, item_size, nbytes, block_size, cbytes) + body


def _plain_streams(block: memoryview, n_streams: int, n_bytes: int, cramjam: ModuleType) -> bytes:
    """Decompress the streams of a block, each preceded by its length."""
    parts: list[BufferLike] = []
    start = 0
    for _ in range(n_streams):
        (n_packed,) = _LENGTH.unpack_from(block, start)
        packed = block[start + 4 : start + 4 + n_packed]
        start += 4 + n_packed
        if n_packed == len(packed) == n_bytes:
            plain: BufferLike = packed
        else:
            plain = bytearray(n_bytes)  # of fixed size: no stream can make it larger
            if cramjam.snappy.decompress_raw_into(packed, plain) != n_bytes:
                raise damaged(f"expected a snappy stream of {n_bytes} bytes, got fewer")
        parts += [_LENGTH.pack(n_bytes), plain]
    return b"".join(parts)


def _format(flags: int) -> str:
    return _FORMATS[flags >> 5] if flags >> 5 < len(_FORMATS) else "unknown"


def _no_such_library(cname: str) -> N5UnsupportedError:
    known = ", ".join(library.list_compressors())
    message = f"blosc: cname: expected one that numcodecs supports: {known}, got {cname!r}"
    return N5UnsupportedError(message, kind="compression")
