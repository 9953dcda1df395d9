"""``zstd``: Zstandard frames (RFC 8878).

N5: ``{"type":"zstd","level":3}``. Zarr: ``zstd``. Java reads several frames, skippable frames,
frames without content size, and checksums, and ignores bytes after the frames. n5-zstandard 1.0.1
and older wrote frames without content size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numcodecs.zstd as library

from n5zarr.codecs.buffers import BufferLike, Scratch, Streams, damaged, max_unpacked, read_streams
from n5zarr.codecs.compression import Codec
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Zstd
from n5zarr.format.lenient_json import JSON

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


_MIN_LEVEL, _MAX_LEVEL = -131072, 22
_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50  # to ...5F
_LONGEST_HEADER = 18  # bytes, of a frame
_BLOCK = 2**17  # bytes that one block decodes to, at most
_WINDOW = 2**27  # bytes, at most, of a frame that is decoded as a stream: zstd's default


@dataclass(frozen=True, slots=True)
class _Frame:
    end: int
    content_size: int | None  # bytes; None when not announced
    is_empty: bool  # by its headers, and without content size or checksum to verify


class ZstdCodec(Codec[Zstd]):
    """Zstandard."""

    def compress(self, data: BufferLike, compression: Zstd, item_size: int) -> BufferLike:
        """Compress into one frame with content size and without checksum, as Java does."""
        return zstd.compress(data, _clamp_level(compression.level))

    def decompress(self, payload: memoryview, n_bytes: int, compression: Zstd) -> BufferLike:
        """Decompress as many frames as hold ``n_bytes``."""
        return memoryview(_unpacked(payload, n_bytes).data)[:n_bytes]

    def measure(self, payload: memoryview, n_bytes: int, compression: Zstd) -> tuple[int, int]:
        """Count what the frames hold; skippable frames after them are part of the payload."""
        _, n_decoded, end = _unpacked(payload, n_bytes)
        return n_decoded, _after_skippable(payload, end)

    def usable(self, payload: memoryview, n_bytes: int, compression: Zstd) -> int | None:
        """Compare the content size if the frame announces it; exclude bytes after the frame."""
        return _end_of_only_frame(payload, n_bytes)

    def is_bounded(self, payload: memoryview, n_bytes: int, compression: Zstd) -> bool | None:
        """Return None for a frame that announces no size."""
        (frame,) = _frames(payload)
        return None if frame.content_size is None else True

    def seems_usable(
        self, start: memoryview, size: int, n_bytes: int, compression: Zstd
    ) -> int | None:
        """Compare the content size of the first frame, if the frame announces it."""
        if len(start) < _LONGEST_HEADER or int.from_bytes(start[:4], "little") != _MAGIC:
            return None
        return size if _content_size(start, 4)[0] in (None, n_bytes) else None

    def store(self, data: BufferLike, compression: Zstd) -> BufferLike:
        """Wrap in raw blocks of one frame."""
        view = memoryview(data)
        n_blocks = max(1, -(-len(view) // _BLOCK))
        # single segment, content size in 8 bytes
        parts = [_MAGIC.to_bytes(4, "little"), b"\xe0", len(view).to_bytes(8, "little")]
        for i in range(n_blocks):
            block = view[i * _BLOCK : (i + 1) * _BLOCK]
            parts += [((i == n_blocks - 1) | len(block) << 3).to_bytes(3, "little"), bytes(block)]
        return b"".join(parts)

    def decompress_into(
        self, payload: memoryview, n_bytes: int, memory: Scratch
    ) -> memoryview | None:
        """Decompress one frame that announces ``n_bytes``."""
        end = _end_of_only_frame(payload, n_bytes)
        return None if end is None else memory.filled(library.decompress, payload[:end], n_bytes)

    def detects_incomplete(self, compression: Zstd) -> bool:
        """Return True: the headers of all blocks of a frame are read, up to its end."""
        return True

    def within_limits(self, compression: Zstd, item_size: int) -> Zstd:
        """Clamp the level as Java's library does; tensorstore refuses others."""
        return replace(compression, level=_clamp_level(compression.level))

    def numcodec(self, compression: Zstd) -> dict[str, JSON]:
        """Return the configuration of numcodecs' ``zstd``."""
        return {"id": "zstd", "level": compression.level}

    def zarr_codec(self, compression: Zstd) -> tuple[str, Mapping[str, JSON]]:
        """Return ``zstd`` of Zarr v3."""
        return "zstd", {"level": compression.level, "checksum": False}

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Convert ``zstd``."""
        return {"type": "zstd", "level": configuration.get("level", 3)}


def _clamp_level(level: int) -> int:
    """Bring a level into the range of the library, as Java's binding does."""
    return min(max(level, _MIN_LEVEL), _MAX_LEVEL)


def _end_of_only_frame(payload: memoryview, n_bytes: int) -> int | None:
    """Return the end of a payload's only frame; None unless it may decode to ``n_bytes``."""
    try:
        frames = list(islice(_frames(payload), 2))
    except N5BlockError:
        return None
    if len(frames) != 1 or frames[0].content_size not in (None, n_bytes):
        return None
    return frames[0].end


def _unpacked(payload: memoryview, n_bytes: int) -> Streams:
    """Decompress the frames that hold ``n_bytes``."""
    end, parts, is_known = _needed(payload, n_bytes)
    if not parts:
        return Streams(b"", 0, end)
    try:
        if not is_known:  # a few bytes may expand without limit
            streams = parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
            read = read_streams(zstd.ZstdDecompressor, streams, n_bytes)
            return read._replace(end=end - len(streams) + read.end)
        unpacked: bytes = library.decompress(payload[:end])
    except (RuntimeError, ValueError, zstd.ZstdError) as err:
        raise damaged(f"expected zstd frames: {str(err).lower()}") from err
    return Streams(unpacked, len(unpacked), end)


def _needed(payload: memoryview, n_bytes: int) -> tuple[int, list[memoryview], bool]:
    """Return the end of the frames that hold ``n_bytes``, the non-empty ones, if all have a size.

    Skips empty frames, since a decompressor for each of many would take long.
    """
    end, known, is_known = 0, 0, True
    parts = []
    for frame in _frames(payload):
        if not frame.is_empty:
            parts.append(payload[end : frame.end])
        end = frame.end
        known += frame.content_size or 0
        is_known = is_known and frame.content_size is not None
        if known >= n_bytes:
            break
    if known > max_unpacked(n_bytes):
        raise damaged(f"expected zstd frames of {n_bytes} bytes, got {known} bytes")
    if end == 0:
        raise damaged("expected a zstd frame, got none")
    return end, parts, is_known


def _frames(payload: memoryview) -> Iterator[_Frame]:
    """Yield the frames, as read from their headers without decompressing; stop at other data."""
    start = _after_skippable(payload, 0)
    while start + 8 < len(payload):
        if int.from_bytes(payload[start : start + 4], "little") != _MAGIC:
            return
        frame = _frame(payload, start + 4)
        yield frame
        start = _after_skippable(payload, frame.end)


def _after_skippable(payload: memoryview, start: int) -> int:
    """Return the end of the skippable frames at ``start``; RFC 8878, section 3.1.2."""
    while int.from_bytes(payload[start : start + 4], "little") & ~15 == _SKIPPABLE:
        start += 8 + int.from_bytes(payload[start + 4 : start + 8], "little")
    return start


def _frame(payload: memoryview, start: int) -> _Frame:
    """Read the frame whose magic ends at ``start``; RFC 8878, section 3.1.1.

    Decoding in one call, as numcodecs does, checks neither the window nor the size of blocks.
    """
    descriptor = payload[start]
    announced, offset = _content_size(payload, start)
    window = _window(payload, start, announced)
    if announced is None and window > _WINDOW:
        raise damaged(f"expected a zstd window of at most {_WINDOW} bytes, got {window}")
    largest = min(window, _BLOCK)
    n_blocks, last, is_empty = 0, 0, descriptor == 0
    while not last:
        header = int.from_bytes(payload[offset : offset + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if size > largest:
            raise damaged(f"expected zstd blocks of at most {largest} bytes, got one of {size}")
        is_empty = is_empty and size == 0 and kind < 2  # 2 is compressed, 3 is damaged
        offset += 3 + (1 if kind == 1 else size)  # kind 1 repeats one byte
        n_blocks += 1
        if offset > len(payload):
            raise damaged(f"expected a whole zstd frame, got one cut off at {len(payload)} bytes")
    if (announced or 0) > n_blocks * _BLOCK:
        raise damaged(f"expected a zstd frame of {announced} bytes, got one of {n_blocks} blocks")
    end = offset + 4 * (descriptor >> 2 & 1)
    if end > len(payload):
        raise damaged("expected a whole zstd frame, got one without its checksum")
    return _Frame(end, announced, is_empty)


def _window(payload: memoryview, start: int, announced: int | None) -> int:
    """Read how far back a frame refers; RFC 8878, 3.1.1.1.2."""
    if payload[start] >> 5 & 1:
        return announced or 0
    exponent, mantissa = divmod(payload[start + 1], 8)
    return (8 + mantissa) << (7 + exponent)


def _content_size(payload: memoryview, start: int) -> tuple[int | None, int]:
    """Read the size that a frame announces, and where its header ends; RFC 8878, 3.1.1.1."""
    descriptor = payload[start]
    single_segment = descriptor >> 5 & 1
    n_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    offset = start + 2 - single_segment + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(payload[offset : offset + n_bytes], "little")
    # a 2-byte field counts from 256
    return size + 256 * (n_bytes == 2) if n_bytes else None, offset + n_bytes
