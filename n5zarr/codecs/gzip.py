"""``gzip``: RFC 1952 members, or one RFC 1950 stream with ``useZlib``.

Java: members may be concatenated, junk after them is an error; after a zlib stream junk is ignored.
N5: ``{"type":"gzip","useZlib":false,"level":6}``. Zarr: ``gzip``, and ``numcodecs.zlib``.

libdeflate inflates more than twice as fast as zlib, but stops silently after the first member and
cannot stop early. A payload that it does not inflate to the expected length is inflated again by
zlib, member by member.

ISA-L deflates noisy images five times as fast as libdeflate and to the same size, but data that
compress well to twice the size. So ISA-L is tried first, and its result is kept if the data
hardly compress.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import deflate
from isal import igzip_lib

from n5zarr.codecs.buffers import BufferLike, Streams, damaged, read_streams
from n5zarr.codecs.compression import Codec
from n5zarr.format.compression import Gzip
from n5zarr.format.lenient_json import JSON

_MAGIC = b"\x1f\x8b\x08"
_MEMBER_OVERHEAD = 18  # header and trailer, bytes
_MAX_RATIO = 1032  # no deflate stream expands further
_DEFAULT_LEVEL = 6
_SMALLEST, _SMALLEST_OF_LIBDEFLATE = 9, 12  # levels for the smallest size
_LARGE = 2**17  # bytes
_SAMPLE = 2**14  # bytes
_WINDOW = 2**15  # bytes that deflate looks back
_BETTER = 0.98  # of the size that ISA-L makes
_HARDLY = 0.6  # of the uncompressed size; above it both libraries reach the same size


class GzipCodec(Codec[Gzip]):
    """gzip, and zlib with ``useZlib``."""

    judges_ends = True  # the header, and for gzip the length at the end

    def compress(self, data: BufferLike, compression: Gzip, item_size: int) -> BufferLike:
        """Compress into one member or stream.

        Level 0 stores uncompressed, level 9 is libdeflate's level of the smallest size; for the
        levels between them see the module.
        """
        level = level_of_libdeflate(compression.level, memoryview(data).nbytes)
        if level < 0:
            container = igzip_lib.COMP_ZLIB if compression.use_zlib else igzip_lib.COMP_GZIP
            fast = _if_hardly_compressed(memoryview(data), container, item_size)
            if fast is not None:
                return fast
        return _deflated(data, abs(level), use_zlib=compression.use_zlib)

    def decompress(self, payload: memoryview, n_bytes: int, compression: Gzip) -> BufferLike:
        """Inflate the first ``n_bytes``: by libdeflate in one call if possible, else by zlib."""
        use_zlib = compression.use_zlib
        fits = n_bytes <= _MAX_RATIO * len(payload)  # else the memory would be allocated in vain
        if fits and (use_zlib or _end_of_member(payload, n_bytes) is not None):
            inflated = _at_once(payload, n_bytes, use_zlib=use_zlib)
            if inflated is not None:
                return inflated
        return _inflate(payload, n_bytes, use_zlib=use_zlib).data

    def measure(self, payload: memoryview, n_bytes: int, compression: Gzip) -> tuple[int, int]:
        """Count what the members hold; libdeflate suffices if only one can be there."""
        is_single = not compression.use_zlib and bytes(payload).find(_MAGIC, 1) < 0
        fits = is_single and _end_of_member(payload, n_bytes) is not None
        if fits and self.decodes(payload, n_bytes, compression):
            return n_bytes, len(payload)
        return _inflate(payload, n_bytes, use_zlib=compression.use_zlib)[1:]

    def usable(self, payload: memoryview, n_bytes: int, compression: Gzip) -> int | None:
        """Check the header and, for gzip, the length of the data at the end."""
        check = _end_of_zlib if compression.use_zlib else _end_of_member
        return check(payload, n_bytes)

    def is_bounded(self, payload: memoryview, n_bytes: int, compression: Gzip) -> bool | None:
        """Return False if other members may follow; the length at the end may be wrong."""
        is_single = compression.use_zlib or bytes(payload).find(_MAGIC, 1) < 0
        return None if is_single else False

    def decodes(self, payload: memoryview, n_bytes: int, compression: Gzip) -> bool:
        """Whether a payload decodes to ``n_bytes`` and no more, in one call."""
        return _at_once(payload, n_bytes, use_zlib=compression.use_zlib) is not None

    def seems_usable(
        self, start: memoryview, size: int, n_bytes: int, compression: Gzip
    ) -> int | None:
        """Check the header."""
        if compression.use_zlib:
            return size if _end_of_zlib(start, n_bytes) is not None else None
        return size if start[:3] == _MAGIC and size >= _MEMBER_OVERHEAD else None

    def store(self, data: BufferLike, compression: Gzip) -> BufferLike:
        """Wrap in stored deflate blocks."""
        return _deflated(data, 0, use_zlib=compression.use_zlib)

    def detects_incomplete(self, compression: Gzip) -> bool:
        """Return whether the format is gzip: a zlib stream has no length at its end."""
        return not compression.use_zlib

    def within_zarr_limits(self, compression: Gzip) -> Gzip:
        """Replace level -1, which zarr-python refuses, by the default that it stands for."""
        return (
            replace(compression, level=_DEFAULT_LEVEL) if compression.level == -1 else compression
        )

    def numcodec(self, compression: Gzip) -> dict[str, JSON]:
        """Return the configuration of numcodecs' ``gzip`` or ``zlib``."""
        return {"id": "zlib" if compression.use_zlib else "gzip", "level": compression.level}

    def zarr_codec(self, compression: Gzip) -> tuple[str, Mapping[str, JSON]]:
        """Return ``gzip``, or numcodecs' ``zlib``, which Zarr v3 does not specify."""
        return "numcodecs.zlib" if compression.use_zlib else "gzip", {"level": compression.level}

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Convert ``gzip`` or ``zlib``."""
        level = configuration.get("level", _DEFAULT_LEVEL)
        return {"type": "gzip", "useZlib": codec == "zlib", "level": level}


def level_of_libdeflate(level: int, n_bytes: int) -> int:
    """Return the level at which libdeflate compresses; below 0 where ISA-L may do better.

    For few data ISA-L's result depends on uninitialized memory.
    """
    level = {-1: _DEFAULT_LEVEL, _SMALLEST: _SMALLEST_OF_LIBDEFLATE}.get(level, level)
    return -level if n_bytes >= _SAMPLE and level < _SMALLEST else level


def _deflated(data: BufferLike, level: int, *, use_zlib: bool) -> bytearray:
    packed: bytearray = (deflate.zlib_compress if use_zlib else deflate.gzip_compress)(data, level)
    return packed


def _at_once(payload: memoryview, n_bytes: int, *, use_zlib: bool) -> bytearray | None:
    """Inflate by libdeflate; None unless it finds a stream of exactly ``n_bytes``."""
    inflate = deflate.zlib_decompress if use_zlib else deflate.gzip_decompress
    try:
        inflated: bytearray = inflate(payload, n_bytes)
    except deflate.DeflateError:
        return None
    return inflated if len(inflated) == n_bytes else None


def _if_hardly_compressed(data: memoryview, container: int, item_size: int) -> bytes | None:
    """Compress with ISA-L; None if the data, or a sample of them, compress well."""
    if data.nbytes > 2 * _SAMPLE:
        sample = _middle(data, _SAMPLE)
        if len(igzip_lib.compress(sample, 2, container)) < _HARDLY * _SAMPLE or _has_repeats(data):
            return None
    # noisy images compress best in small pieces, each with its own Huffman code; the smallest ones
    # only if elements have one byte
    is_tiny = data.nbytes < _LARGE and item_size == 1
    pieces = igzip_lib.MEM_LEVEL_MIN if is_tiny else igzip_lib.MEM_LEVEL_SMALL
    packed: bytes = igzip_lib.compress(data, 2, container, pieces)
    return packed if len(packed) >= _HARDLY * data.nbytes else None


def _has_repeats(data: memoryview) -> bool:
    """Whether libdeflate finds repeats that ISA-L overlooks in noise, such as repeated planes."""
    part = _middle(data, 2 * _WINDOW).tobytes()
    probes = range(0, len(part) - _WINDOW, _WINDOW // 7)
    if all(part.find(part[k : k + 16], k + 16, k + _WINDOW) < 0 for k in probes):
        return False
    return len(deflate.gzip_compress(part, 1)) < _BETTER * len(igzip_lib.compress(part, 2))


def _middle(data: memoryview, n_bytes: int) -> memoryview:
    start = max(0, (data.nbytes - n_bytes) // 2)
    return data[start : start + n_bytes]


class _Inflater:
    """zlib, member by member, as a :class:`~n5zarr.codecs.buffers.Decompressor`."""

    def __init__(self, *, use_zlib: bool) -> None:
        self._stream = zlib.decompressobj(15 if use_zlib else 31)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: BufferLike, max_length: int = -1, /) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail or data, max_length)


def _another_member(rest: memoryview) -> bool:
    """Whether another member follows; Java refuses anything else after a member."""
    if rest and rest[:3] != _MAGIC:
        raise damaged(f"expected another gzip member or the end, got {len(rest)} other bytes")
    return bool(rest)


def _inflate(payload: memoryview, n_bytes: int, *, use_zlib: bool) -> Streams:
    """Inflate member by member, with Java's rules for the bytes after the last one."""
    goes_on = (lambda _: False) if use_zlib else _another_member
    try:
        return read_streams(partial(_Inflater, use_zlib=use_zlib), payload, n_bytes, goes_on)
    except zlib.error as err:
        raise damaged(f"expected a {'zlib' if use_zlib else 'gzip'} stream: {err}") from err


def _end_of_member(payload: memoryview, n_bytes: int) -> int | None:
    """Compare magic and ISIZE, the length of the data at the end of a member."""
    if len(payload) < _MEMBER_OVERHEAD or payload[:3] != _MAGIC:
        return None
    isize = int.from_bytes(payload[-4:], "little")
    return len(payload) if isize == n_bytes & 0xFFFFFFFF else None


def _end_of_zlib(payload: memoryview, n_bytes: int) -> int | None:
    """Check the two bytes of the header; a zlib stream does not announce its size."""
    fits = len(payload) >= 8 and payload[0] & 15 == 8 and (payload[0] << 8 | payload[1]) % 31 == 0
    return len(payload) if fits else None
