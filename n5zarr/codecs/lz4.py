"""``lz4``: Java's ``LZ4Block`` stream, and three other formats that programs write as ``lz4``.

N5: ``{"type":"lz4","blockSize":65536}``. lz4-java's ``LZ4BlockOutputStream`` cuts the data into
pieces of ``blockSize`` bytes and frames each::

    8   "LZ4Block"
    1   token: method (0x10 raw, 0x20 LZ4) | level, where a piece has at most 2**(10 + level) bytes
    4   length of the piece as stored, little-endian
    4   length of the uncompressed piece, little-endian
    4   XXH32 of the uncompressed piece, seed 0x9747b28c; Java keeps the lower 28 bits
    ..  the piece

and ends with a frame of no bytes. Other programs write the LZ4 frame format (rust-n5), numcodecs'
four bytes of length and an LZ4 block (zarr-python 2), or an LZ4 block (z5); the reader tries one
after the other. Blocks are written in the framing that the document means, so that a dataset of
zarr-python 2 or z5 stays one that they read. Zarr: ``numcodecs.lz4``; its bytes differ from Java's,
so no payload is a chunk.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Literal, NamedTuple

from n5zarr.codecs.buffers import BufferLike, check_drained, damaged
from n5zarr.codecs.compression import Codec
from n5zarr.errors import N5BlockError, N5MissingDependencyError
from n5zarr.format.compression import Lz4
from n5zarr.format.lenient_json import JSON

type _Framing = Literal["Java", "rust-n5", "zarr-python 2", "z5"]

_FRAME = struct.Struct("<8sBIII")
_MAGIC = b"LZ4Block"
_LZ4_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_RAW, _LZ4 = 0x10, 0x20
_SEED, _CHECKSUM_MASK = 0x9747B28C, 0x0FFFFFFF
_MIN_LEVEL_BITS = 10
_MIN_PIECE, _MAX_PIECE = 64, 2**25  # Java: limits of blockSize
_MAX_RATIO = 255  # no LZ4 block expands further
_MIN_DRAINED = 2**16  # bytes of surplus that are decompressed at a time


class Lz4Codec(Codec[Lz4]):
    """lz4; numcodecs' codec of this name uses another framing."""

    passes = False  # the framing differs

    def compress(self, data: BufferLike, compression: Lz4, item_size: int) -> BufferLike:
        """Frame the data as Java does, or as the program that wrote the document."""
        block, _, xxhash = _libraries()
        framing = _meant(compression)
        if framing != "Java":
            packed: bytes = block.compress(data, store_size=False)
            return packed if framing == "z5" else struct.pack("<I", len(data)) + packed
        size = min(compression.block_size, _MAX_PIECE)
        level = max(0, (size - 1).bit_length() - _MIN_LEVEL_BITS)
        view = memoryview(data)
        parts: list[BufferLike] = []
        for start in range(0, len(view), size):
            piece = view[start : start + size]
            packed = block.compress(piece, store_size=False)
            method = _LZ4 if len(packed) < len(piece) else _RAW
            stored = packed if method == _LZ4 else piece
            checksum = xxhash.xxh32_intdigest(piece, _SEED) & _CHECKSUM_MASK
            parts += [
                _FRAME.pack(_MAGIC, method | level, len(stored), len(piece), checksum),
                stored,
            ]
        return b"".join([*parts, _FRAME.pack(_MAGIC, _RAW | level, 0, 0, 0)])

    def framing(self, payload: memoryview, n_bytes: int) -> _Framing:
        """Name the program whose framing a payload has."""
        if payload[:8] == _MAGIC:
            return "Java"
        if payload[:4] == _LZ4_FRAME_MAGIC:
            return "rust-n5"
        return "zarr-python 2" if int.from_bytes(payload[:4], "little") == n_bytes else "z5"

    def decompress(self, payload: memoryview, n_bytes: int, compression: Lz4) -> BufferLike:
        """Decompress any of the four formats."""
        block, frame, xxhash = _libraries()
        if payload[:8] == _MAGIC:
            return _join(_java_pieces(payload, block, xxhash), n_bytes)
        try:
            if payload[:4] == _LZ4_FRAME_MAGIC:
                return bytes(frame.LZ4FrameDecompressor().decompress(payload, max_length=n_bytes))
            if int.from_bytes(payload[:4], "little") == n_bytes:
                return _unpacked(payload[4:], n_bytes, block)
        except (block.LZ4BlockError, RuntimeError):
            pass  # an LZ4 block may begin with the same bytes as either format
        try:
            return _unpacked(payload, n_bytes, block)
        except block.LZ4BlockError as err:
            raise damaged(
                "expected LZ4Block frames, an LZ4 frame or an LZ4 block, got neither"
            ) from err

    def measure(self, payload: memoryview, n_bytes: int, compression: Lz4) -> tuple[int, int]:
        """Count what Java's stream or an LZ4 frame holds; the other formats hold no surplus."""
        n_decoded, n_used = len(self.decompress(payload, n_bytes, compression)), len(payload)
        with suppress(N5BlockError, RuntimeError):  # readers do not meet damage after the elements
            if payload[:8] == _MAGIC:
                n_decoded = 0
                for piece in _java_frames(payload):
                    n_decoded += piece.n_bytes
                    n_used = piece.end
            elif payload[:4] == _LZ4_FRAME_MAGIC:
                return _measure_frame(payload, n_bytes)
        return n_decoded, n_used

    def store(self, data: BufferLike, compression: Lz4) -> BufferLike:
        """Wrap in numcodecs' framing, as one run of literals."""
        n_bytes = len(data)
        if n_bytes < 15:
            token = bytes([n_bytes << 4])
        else:
            full, rest = divmod(n_bytes - 15, 255)
            token = b"\xf0" + b"\xff" * full + bytes([rest])
        return struct.pack("<I", n_bytes) + token + bytes(data)

    def numcodec(self, compression: Lz4) -> dict[str, JSON]:
        """Return the configuration of numcodecs' ``lz4``."""
        return {"id": "lz4", "acceleration": 1}

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Convert numcodecs' ``lz4``, which has no size of pieces."""
        return {"type": "lz4"}


def _meant(compression: Lz4) -> _Framing:
    """Name the program whose framing a document means; that of rust-n5 is like Java's."""
    if compression.acceleration is not None:
        return "zarr-python 2"
    return "z5" if compression.block_size < _MIN_PIECE else "Java"


def _libraries() -> tuple[ModuleType, ModuleType, ModuleType]:
    """Import the optional modules ``lz4.block``, ``lz4.frame`` and ``xxhash``."""
    # statements: import_module for each block would take a tenth of the time of a small block
    try:
        import lz4.block  # noqa: PLC0415 - optional
        import lz4.frame  # noqa: PLC0415 - optional
        import xxhash  # noqa: PLC0415 - optional
    except ImportError as err:
        raise N5MissingDependencyError(err.name or "lz4", "lz4 compression", "lz4") from err
    return lz4.block, lz4.frame, xxhash


def _join(pieces: Iterator[BufferLike], n_bytes: int) -> BufferLike:
    """Join pieces until there are ``n_bytes``; as in Java, the end mark may be missing."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) >= n_bytes:
            break
    return memoryview(data)[:n_bytes]


def _measure_frame(payload: memoryview, n_bytes: int) -> tuple[int, int]:
    """Count the bytes that an LZ4 frame decodes to, and its own."""
    stream = _libraries()[1].LZ4FrameDecompressor()
    n_decoded = len(stream.decompress(payload, max_length=n_bytes))
    while not (stream.eof or stream.needs_input):
        n_decoded += len(stream.decompress(b"", max_length=_MIN_DRAINED))
        check_drained(n_bytes, n_decoded - n_bytes)
    return n_decoded, len(payload) - len(stream.unused_data or b"")


class _Frame(NamedTuple):
    """One frame of an ``LZ4Block`` stream, as stored; the end mark has no bytes."""

    stored: memoryview
    method: int
    n_bytes: int  # uncompressed
    checksum: int
    end: int  # in the payload


def _java_frames(payload: memoryview) -> Iterator[_Frame]:
    """Yield the frames of an ``LZ4Block`` stream, up to the end mark."""
    start = 0
    while len(payload) - start >= _FRAME.size:
        magic, token, n_stored, n_piece, checksum = _FRAME.unpack_from(payload, start)
        start += _FRAME.size
        stored = payload[start : start + n_stored]
        start += n_stored
        if magic != _MAGIC or token & 0xF0 not in (_RAW, _LZ4) or len(stored) < n_stored:
            raise damaged("expected an LZ4Block frame, got a damaged or truncated one")
        if n_piece > 1 << (_MIN_LEVEL_BITS + (token & 15)):
            raise damaged(f"LZ4Block frame: got {n_piece} bytes, more than its level allows")
        yield _Frame(stored, token & 0xF0, n_piece, checksum, start)
        if n_piece == 0:
            return


def _java_pieces(
    payload: memoryview, block: ModuleType, xxhash: ModuleType
) -> Iterator[BufferLike]:
    """Yield the pieces of an ``LZ4Block`` stream, decompressed and checked."""
    for frame in _java_frames(payload):
        if frame.n_bytes == 0:
            return
        piece = _piece(frame.stored, frame.n_bytes, frame.method, block)
        if xxhash.xxh32_intdigest(piece, _SEED) & _CHECKSUM_MASK != frame.checksum:
            raise damaged("LZ4Block frame: the checksum does not match")
        yield piece


def _unpacked(stored: memoryview, n_bytes: int, block: ModuleType) -> bytes:
    """Decompress an LZ4 block; raise before allocating if it is too short for ``n_bytes``."""
    if n_bytes > _MAX_RATIO * len(stored):
        message = f"expected {n_bytes} bytes, got a block of {len(stored)}, too few for them"
        raise block.LZ4BlockError(message)
    return bytes(block.decompress(stored, uncompressed_size=n_bytes))


def _piece(stored: memoryview, n_piece: int, method: int, block: ModuleType) -> BufferLike:
    """Decompress a piece, and check its length."""
    if method == _RAW:
        piece: BufferLike = stored
    else:
        try:
            piece = _unpacked(stored, n_piece, block)
        except block.LZ4BlockError as err:
            raise damaged(f"LZ4Block frame: {str(err).lower()}") from err
    if len(piece) != n_piece:
        raise damaged(f"LZ4Block frame: expected {n_piece} bytes, got {len(piece)}")
    return piece
