"""Damage stored blocks as broken disks do, and as an adversary would."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import sys
import zlib
from functools import cache
from typing import Literal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

import random
from collections.abc import Callable, Sequence

__all__ = ["EDGES", "damaged", "mutated"]

EDGES = (0, 1, 2, 7, 8, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
"""Numbers at which sizes change sign, overflow or fall below a limit."""

LARGE = 2**27
"""Bytes that a payload decodes to which is made to fill the memory."""


def mutated(rng: random.Random, block: bytes, others: Sequence[bytes]) -> bytes:
    """Change a stored block in one of many ways."""
    n_header = header_length(block)
    if rng.random() < 0.65 or not n_header:
        return damaged(rng, block, others)
    header, payload = block[:n_header], block[n_header:]
    way = rng.choices(tuple(_WAYS), tuple(_WAYS.values()))[0]
    return way(rng, header, payload, rng.choice(others))


def header_length(block: bytes) -> int:
    """Return the length of the header, 0 for a block without one."""
    if len(block) < 6:
        return 0
    mode, ndim = struct.unpack_from(">HH", block)
    length: int = 6 if mode == 2 else 4 + 4 * ndim + 4 * mode
    return length if mode <= 2 and length <= len(block) else 0


# ---------------------------------------------------------------------- any bytes


def damaged(rng: random.Random, block: bytes, others: Sequence[bytes]) -> bytes:
    """Change a stored block in one or two of the ways in which files break."""
    data = bytearray(block)
    for _ in range(rng.choice((1, 1, 1, 2))):
        # the sizes and flags of header and payload are in the first bytes
        at = rng.randrange(min(len(data), rng.choice((12, 40, 100, len(data)))) or 1)
        if rng.random() < 0.5:
            change_value(rng, data, at)
        else:
            change_length(rng, data, at, rng.choice(others))
    return bytes(data)


def change_value(rng: random.Random, data: bytearray, at: int) -> None:
    order: Literal["big", "little"] = rng.choice(("big", "little"))
    match rng.randrange(4):
        case 0:
            data[at : at + 1] = rng.randbytes(1)
        case 1:
            data[at : at + 1] = bytes([(*data, 0)[at] ^ 1 << rng.randrange(8)])
        case 2:
            data[at : at + 4] = rng.choice(EDGES).to_bytes(4, order)
        case _:  # near to a size that is there
            number = int.from_bytes(data[at : at + 4], order) + rng.choice((-4, -1, 1, 4, 16))
            data[at : at + 4] = (number % 2**32).to_bytes(4, order)


def change_length(rng: random.Random, data: bytearray, at: int, other: bytes) -> None:
    match rng.randrange(5):
        case 0:
            del data[at:]
        case 1:
            data += rng.randbytes(rng.choice((1, 4, 16, 300)))
        case 2:
            data[at:] = other[at:]
        case 3:
            data[at:at] = data[at : at + rng.choice((1, 4, 64))]
        case _:
            del data[at : at + rng.choice((1, 4, 64))]


# ---------------------------------------------------------------------- headers


def other_header(rng: random.Random, header: bytes, payload: bytes, other: bytes) -> bytes:
    """Write another mode, another rank, other sizes or another count."""
    mode, ndim = struct.unpack_from(">HH", header)
    if mode == 2:
        return struct.pack(">HI", rng.choice((0, 1, 2, 3)), rng.choice(EDGES)) + payload
    sizes = list(struct.unpack_from(f">{ndim}I", header, 4)) or [1]
    n_elements = 1
    for size in sizes:
        n_elements *= size
    count = rng.choice((n_elements, n_elements, n_elements + 1, n_elements - 1, *EDGES)) % 2**32
    match rng.randrange(6):
        case 0:
            rng.shuffle(sizes)
        case 1:
            sizes[rng.randrange(len(sizes))] = rng.choice(EDGES)
        case 2:
            sizes = [min(2**32 - 1, max(0, size + rng.choice((-1, 0, 1)))) for size in sizes]
        case 3:
            sizes.append(rng.choice((0, 1, 2)))
        case 4:
            del sizes[rng.randrange(len(sizes))]
        case _:  # many, or as many elements in another shape
            sizes = rng.choice(([n_elements % 2**32, *[1] * (ndim - 1)], [1] * 70, [65536, 65536]))
    new_mode = rng.choice((mode, mode, 1 - mode, 2, 3, 255))
    counts = (count,) if new_mode == 1 else ()
    numbers = (*sizes, *counts)
    return struct.pack(f">HH{len(numbers)}I", new_mode, len(sizes), *numbers) + payload


# ---------------------------------------------------------------------- payloads


def zstd_unsized(data: bytes) -> bytes:
    packer = zstd.ZstdCompressor()
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 1, mtime=0),
    "zlib": zlib.compress,
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE, preset=0),
    "zstd": zstd.compress,
    "zstd without size": zstd_unsized,
    "raw": bytes,
}


def repacked(rng: random.Random, header: bytes, payload: bytes, other: bytes) -> bytes:
    """Compress some bytes in one of all ways, as a whole or in several streams."""
    name = rng.choice(tuple(PACKERS))
    data = rng.choice((payload, other, bytes(len(payload)), payload * 3))[: 2**14]
    cut = rng.randrange(len(data) + 1)
    pieces = rng.choice(((data,), (data[:cut], data[cut:]), (data[:cut],), (b"", data)))
    return header + b"".join(map(PACKERS[name], pieces))


def repeated(rng: random.Random, header: bytes, payload: bytes, other: bytes) -> bytes:
    """Write the payload, or empty streams, again and again."""
    n = rng.choice((2, 2, 3, 17, 300))
    part = rng.choice((payload, PACKERS[rng.choice(tuple(PACKERS))](b""), payload[:9]))
    head = rng.choice((b"", payload))
    return header + head + (part * n)[: 2**18]


def long(rng: random.Random, header: bytes, payload: bytes, other: bytes) -> bytes:
    """Make a payload of some hundred thousand bytes that may take long to decode."""
    size = rng.choice((2**16, 2**18, 2**20, 2**22))
    start = payload[: rng.choice((0, 4, 16, 40, len(payload)))]
    part = rng.choice((
        b"\xff", b"\0", b"\x80", payload or b"x", PACKERS[rng.choice(tuple(PACKERS))](b""),
        b"\x50\x2a\x4d\x18\0\0\0\0", b"\x04\x22\x4d\x18", b"BZh9", b"\x1f\x8b\x08", b"a\0",
    )) or b"x"  # fmt: skip
    return header + start + part * (size // len(part))


def large(rng: random.Random, header: bytes, payload: bytes, other: bytes) -> bytes:
    """Make a payload that decodes to far more than the block."""
    return header + rng.choice((b"", payload)) + bomb(rng.choice(tuple(BOMBS)))


@cache
def bomb(name: str) -> bytes:
    return BOMBS[name]()


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip members": lambda: gzip.compress(bytes(2**22), 9, mtime=0) * (LARGE >> 22),
    "gzip": lambda: gzip.compress(bytes(LARGE), 1, mtime=0),
    "zlib": lambda: zlib.compress(bytes(LARGE), 1),
    "bzip2 streams": lambda: bz2.compress(bytes(2**22), 1) * (LARGE >> 22),
    "xz streams": lambda: lzma.compress(bytes(2**22), preset=0) * (LARGE >> 22),
    "xz": lambda: lzma.compress(bytes(LARGE), preset=0),
    "zstd": lambda: zstd.compress(bytes(LARGE), 1),
    "zstd without size": lambda: zstd_unsized(bytes(LARGE)),
    # frames that announce nothing, of one block that repeats a byte 128 KiB long
    "zstd frames": lambda: (b"\x28\xb5\x2f\xfd\0\x58" + b"\x03\0\x10\0") * (LARGE >> 17),
}


# ---------------------------------------------------------------------- fields inside of payloads


def field(rng: random.Random, header: bytes, payload: bytes, other: bytes) -> bytes:
    """Change the fields that state how much memory a stream needs, and correct checksums."""
    data = bytearray(payload)
    if payload[:6] == b"\xfd7zXZ\0" and len(data) > 24:
        size = 4 * (data[12] + 1)
        data[12 + rng.randrange(1, max(2, size - 4))] = rng.choice(
            (rng.randrange(256), 40, 39, 21, 3)
        )
        data[12 + size - 4 : 12 + size] = zlib.crc32(data[12 : 12 + size - 4]).to_bytes(4, "little")
    elif payload[:4] == b"\x28\xb5\x2f\xfd":
        # the descriptor and the window of a frame
        data[4:6] = bytes([rng.choice((0, 0x20, 0x40, 0x80, 0xC0, 0xE0)), rng.randrange(256)])
    elif payload[:1] == b"\x5d":  # .lzma: the size of its dictionary, or of its data
        at = rng.choice((1, 5))
        data[at : at + 4] = rng.choice(EDGES).to_bytes(4, "little")
    elif payload[:8] == b"LZ4Block" and len(data) > 21:
        at = rng.choice((9, 13))
        data[8] = rng.choice((0x10, 0x20)) | rng.randrange(16)
        data[at : at + 4] = rng.choice((*EDGES, 2**20, 2**25)).to_bytes(4, "little")
    elif len(data) >= 16:  # the lengths in the header of blosc, its flags, its table
        at = rng.choice((2, 3, 4, 8, 12, 16, 20, 24))
        order: Literal["big", "little"] = "little"
        near = int.from_bytes(data[at : at + 4], order) + rng.choice((-16, -1, 0, 1, 16, 2**16))
        data[at : at + 4] = (rng.choice((near, near, *EDGES)) % 2**32).to_bytes(4, order)
    return header + bytes(data)


_WAYS: dict[Callable[[random.Random, bytes, bytes, bytes], bytes], float] = {
    other_header: 12,
    repacked: 8,
    repeated: 4,
    field: 10,
    long: 0.1,
    large: 0.1,
}
