"""``xz``: an .xz container; ``lzma``: zarr-python 2's name for .lzma.

N5: ``{"type":"xz","preset":6}``. Zarr: ``numcodecs.lzma``. Java knows every kind of integrity
check, and reads one stream only; bytes after it are ignored.
"""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Iterator, Mapping
from functools import partial

from n5zarr.codecs.buffers import BufferLike, Streams, damaged, read_streams
from n5zarr.codecs.compression import Codec
from n5zarr.format.compression import Lzma, Xz
from n5zarr.format.lenient_json import JSON

_MAGIC = b"\xfd7zXZ\x00"
_FLAGS = b"\x00\x01"  # integrity check: CRC32
_CHUNK = 2**16  # bytes in an uncompressed LZMA2 chunk, at most
_MEMORY = 2**27  # bytes for decoding, twice those of preset 9; a header may ask for 4 GiB


class XzCodec(Codec[Xz | Lzma]):
    """.xz."""

    judges_ends = True  # the index of a payload with one block is at its end

    def compress(self, data: BufferLike, compression: Xz | Lzma, item_size: int) -> BufferLike:
        """Compress into one container, .xz with CRC64 as Java does."""
        if isinstance(compression, Lzma):
            form = lzma.FORMAT_ALONE if compression.format == lzma.FORMAT_ALONE else lzma.FORMAT_XZ
            return lzma.compress(data, format=form)
        return lzma.compress(data, preset=compression.preset)

    def decompress(self, payload: memoryview, n_bytes: int, compression: Xz | Lzma) -> BufferLike:
        """Decompress the first ``n_bytes``."""
        return _read(payload, n_bytes, compression).data

    def measure(self, payload: memoryview, n_bytes: int, compression: Xz | Lzma) -> tuple[int, int]:
        """Count what the streams hold."""
        return _read(payload, n_bytes, compression)[1:]

    def usable(self, payload: memoryview, n_bytes: int, compression: Xz | Lzma) -> int | None:
        """Check magic and footer, and compare ``n_bytes`` with the size in the index."""
        if bytes(payload[:6]) != _MAGIC or bytes(payload[-2:]) != b"YZ":
            return None
        index_size = 4 * (int.from_bytes(payload[-8:-4], "little") + 1)
        index = iter(payload[-12 - index_size + 1 : -12])  # without the zero byte at its start
        try:
            n_records = _read_varint(index)
            sizes = [(_read_varint(index), _read_varint(index))[1] for _ in range(n_records)]
        except StopIteration:
            return None
        return len(payload) if sum(sizes) == n_bytes else None

    def is_bounded(self, payload: memoryview, n_bytes: int, compression: Xz | Lzma) -> bool | None:
        """Return False if other streams may follow; the sizes in the index may be wrong."""
        return None if bytes(payload).find(_MAGIC, 1) < 0 else False

    def seems_usable(
        self, start: memoryview, size: int, n_bytes: int, compression: Xz | Lzma
    ) -> int | None:
        """Check the magic; the sizes are at the end."""
        return size if bytes(start[:6]) == _MAGIC else None

    def store(self, data: BufferLike, compression: Xz | Lzma) -> BufferLike:
        """Wrap in uncompressed LZMA2 chunks: a thousand times cheaper than preset 0.

        See "The .xz File Format", version 1.2.0, sections 2 to 4; LZMA2 chunks as in liblzma.
        """
        view = memoryview(data)
        chunks = b"".join(
            # 1 resets the dictionary, 2 does not; sizes are stored less one
            struct.pack(">BH", 1 if start == 0 else 2, min(_CHUNK, len(view) - start) - 1)
            + bytes(view[start : start + _CHUNK])
            for start in range(0, len(view), _CHUNK)
        )
        # one filter, LZMA2 (0x21), whose one property byte 0x08 is a dictionary of 64 KiB
        header = _with_crc(bytes([2, 0, 0x21, 1, 0x08, 0, 0, 0]))
        body = header + chunks + b"\0"
        check = struct.pack("<I", zlib.crc32(view))
        index = _with_crc(_padded(b"\0\x01" + _varint(len(body) + len(check)) + _varint(len(view))))
        backward = struct.pack("<I", len(index) // 4 - 1) + _FLAGS
        footer = struct.pack("<I", zlib.crc32(backward)) + backward + b"YZ"
        stream_header = _MAGIC + _FLAGS + struct.pack("<I", zlib.crc32(_FLAGS))
        return stream_header + _padded(body) + check + index + footer

    def numcodec(self, compression: Xz | Lzma) -> dict[str, JSON]:
        """Return the configuration of numcodecs' ``lzma``, which writes .xz here."""
        preset = compression.preset if isinstance(compression, Xz) else None
        return {"id": "lzma", "format": 1, "check": -1, "preset": preset, "filters": None}

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Convert numcodecs' ``lzma``."""
        preset = configuration.get("preset")
        return {"type": "xz", "preset": 6 if preset is None else preset}


class LzmaCodec(XzCodec):
    """.lzma, which only zarr-python 2 writes; numcodecs writes .xz here."""

    passes = False


def _read(payload: memoryview, n_bytes: int, compression: Xz | Lzma) -> Streams:
    form = lzma.FORMAT_XZ if compression.type == "xz" else lzma.FORMAT_AUTO
    new = partial(lzma.LZMADecompressor, form, memlimit=_MEMORY)
    try:
        return read_streams(new, payload, n_bytes)
    except lzma.LZMAError as err:
        raise damaged(f"expected an {compression.type} stream: {str(err).lower()}") from err


def _read_varint(data: Iterator[int]) -> int:
    """Read an integer of at most 9 bytes; "The .xz File Format", section 1.2."""
    value = 0
    for shift in range(0, 63, 7):
        byte = next(data)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise StopIteration


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _with_crc(data: bytes) -> bytes:
    return data + struct.pack("<I", zlib.crc32(data))


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
