"""`blosc` headers are checked before decoding, since numcodecs does not check them."""

from __future__ import annotations

import importlib
import re
import struct
import sys
from typing import Any

import numpy as np
import pytest

from n5zarr.codecs.label_multiset import encode_multisets
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.errors import N5BlockError, N5MissingDependencyError, N5UnsupportedError
from n5zarr.format.compression import Blosc
from tests.memory import traced
from tests.refusals import refused
from tests.unit.codecs.streams import DATA, numcodecs, packed, unpacked, usable

cramjam: Any = importlib.import_module("cramjam")  # has no types

BUFFER: bytes = numcodecs.Blosc("zstd", 5, 1).encode(DATA)
COPIED = numcodecs.Blosc("lz4", 0, 0).encode(DATA)  # clevel 0: bytes behind a header


def changed(buffer: bytes, at: int, value: int) -> bytes:
    """Put a 32-bit number into the header."""
    return buffer[:at] + struct.pack("<I", value) + buffer[at + 4 :]


def read(payload: bytes, n_bytes: int = len(DATA)) -> bytes:
    return unpacked(payload, Blosc(), n_bytes)


def of_format(number: int) -> bytes:
    return BUFFER[:2] + bytes([BUFFER[2] & 0x1F | number << 5]) + BUFFER[3:]


READ = {
    "compressed": BUFFER,
    "copied": COPIED,
    "junk": BUFFER + b"junk",
    "junk-after-copied": COPIED + b"junk",
    "surplus": numcodecs.Blosc().encode(DATA + b"surplus"),
    "other-parameters": numcodecs.Blosc("blosclz", 9, 2).encode(DATA),
}


@pytest.mark.parametrize("payload", READ.values(), ids=READ)
def test_a_buffer_describes_itself(payload: bytes) -> None:
    assert read(payload) == DATA


@pytest.mark.parametrize("buffer", [BUFFER, COPIED], ids=["compressed", "copied"])
def test_a_buffer_cut_anywhere_is_an_error(buffer: bytes) -> None:
    for length in range(1, len(buffer)):
        with refused(N5BlockError, "payload"):
            read(buffer[:length])
        with pytest.raises(N5BlockError):
            usable(buffer[:length], Blosc())


DAMAGED = {
    "cut": (COPIED[:1000], "a blosc buffer of 2016 bytes, got 1000 (incomplete write?)"),
    "longer-copied": (changed(COPIED, 4, 3000), "expected 3000 uncompressed bytes, got 2000"),
    "compressed-as-copied": (BUFFER[:2] + b"\2" + BUFFER[3:], "uncompressed bytes, got"),
    **{f"version-{n}": (bytes([n]) + BUFFER[1:], f"got version {n}") for n in (0, 3, 0x1F, 255)},
    **{f"nbytes-{n}": (changed(BUFFER, 4, n), "a blosc buffer: error during blosc")
       for n in (0, 1999)},
    **{f"nbytes-{n}": (changed(BUFFER, 4, n), f"blosc buffer of 2000 bytes, got one of {n}")
       for n in (2**31, 2**32 - 1)},
    **{f"cbytes-{n}": (changed(BUFFER, 12, n), f"expected a blosc buffer of {n} bytes, got ")
       for n in (0, 15, len(BUFFER) + 1, 2**32 - 1)},
    "inside": (BUFFER[:20] + bytes(len(BUFFER) - 20), "expected a blosc buffer: "),
    "block-size-0": (changed(BUFFER, 8, 0), "block payload: "),
    "not-snappy": (of_format(2), "block payload: "),
    **{f"format-{n}": (of_format(n), f"of a known format, got {n}") for n in (5, 6, 7)},
}  # fmt: skip


@pytest.mark.parametrize(("payload", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named(payload: bytes, message: str) -> None:
    with refused(N5BlockError, "payload", re.escape(message)):
        read(payload)


def test_the_block_size_of_a_copied_buffer_does_not_matter() -> None:
    odd = bytearray(changed(COPIED, 8, 1121))
    odd[3] = 2  # bytes of an item
    assert numcodecs.Blosc().decode(bytes(odd)) == DATA
    assert read(bytes(odd)) == DATA


def test_snappy_cannot_be_written() -> None:
    with refused(N5UnsupportedError, "compression", "blosc: cname: expected one"):
        packed(DATA, Blosc(cname="snappy"))


def snappy(data: bytes, *, item_size: int, block_size: int, split: bool, shuffle: bool) -> bytes:
    """Build a buffer of snappy streams, by README_HEADER.rst of c-blosc 1.

    Streams that do not get shorter are stored; a short last block is never split.
    """
    blocks, offsets = [], []
    n_blocks = -(-len(data) // block_size)
    end = 16 + 4 * n_blocks
    for start in range(0, len(data), block_size):
        block = data[start : start + block_size]
        if shuffle:
            block = b"".join(block[i::item_size] for i in range(item_size))
        n_streams = item_size if split and len(block) == block_size else 1
        n_plain = len(block) // n_streams
        stored = b""
        for i in range(n_streams):
            plain = block[i * n_plain : (i + 1) * n_plain]
            packed = bytes(cramjam.snappy.compress_raw(plain))
            stream = packed if len(packed) < len(plain) else plain
            stored += struct.pack("<I", len(stream)) + stream
        offsets.append(end)
        blocks.append(stored)
        end += len(stored)
    flags = 2 << 5 | (not split) << 4 | shuffle
    header = struct.pack("<BBBBIII", 2, 1, flags, item_size, len(data), block_size, end)
    return header + struct.pack(f"<{n_blocks}I", *offsets) + b"".join(blocks)


NUMBERS = b"".join((i * i).to_bytes(4, "big") for i in range(600))
SNAPPY = snappy(NUMBERS, item_size=4, block_size=1024, split=True, shuffle=True)


@pytest.mark.parametrize("shuffle", [False, True], ids=["plain", "shuffled"])
@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("block_size", [1024, 2400, 4096])
@pytest.mark.parametrize("item_size", [1, 2, 4])
def test_snappy_buffers_are_read(
    item_size: int, block_size: int, split: bool, shuffle: bool
) -> None:
    options: dict[str, Any] = {"split": split, "shuffle": shuffle and item_size > 1}
    size = min(block_size, len(NUMBERS))
    buffer = snappy(NUMBERS, item_size=item_size, block_size=size, **options)
    assert read(buffer, len(NUMBERS)) == NUMBERS
    assert read(buffer + b"junk", 100) == NUMBERS[:100]


def test_a_snappy_buffer_cut_anywhere_is_an_error() -> None:
    for length in range(1, len(SNAPPY)):
        with pytest.raises(N5BlockError):
            read(SNAPPY[:length], len(NUMBERS))


def test_a_changed_byte_in_a_snappy_buffer_gives_a_value_or_an_error() -> None:
    for at in range(len(SNAPPY)):
        for value in (0, 0x55, 0xFF):
            broken = SNAPPY[:at] + bytes([value]) + SNAPPY[at + 1 :]
            try:
                assert len(read(broken, len(NUMBERS))) == len(NUMBERS)
            except N5BlockError:
                continue


def test_snappy_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(N5MissingDependencyError, match=r"pip install 'n5zarr\[snappy\]'"):
        read(SNAPPY, len(NUMBERS))


@pytest.mark.parametrize("item_size", [1, 2, 4, 8])
def test_the_item_size_is_written(item_size: int) -> None:
    assert packed(DATA, Blosc(cname="lz4", shuffle=1), item_size)[3] == item_size


def test_labels_are_written_as_bytes() -> None:
    labels = LabelMultisets.of(np.zeros((20, 20), "u8"))
    assert encode_multisets(labels, Blosc())[16 + 3] == 1


USABLE = {
    "compressed": (BUFFER, len(BUFFER)),
    "copied": (COPIED, len(COPIED)),
    "junk-is-cut-off": (BUFFER + b"junk", len(BUFFER)),
    "surplus": (numcodecs.Blosc().encode(DATA + b"x"), None),
    "unknown-format": (of_format(6), None),
}


@pytest.mark.parametrize(("payload", "expected"), USABLE.values(), ids=USABLE)
def test_only_a_buffer_of_the_right_length_is_usable(payload: bytes, expected: int | None) -> None:
    assert usable(payload, Blosc()) == expected


def test_snappy_buffers_are_never_usable() -> None:
    assert usable(SNAPPY, Blosc(), len(NUMBERS)) is None


def test_a_snappy_header_does_not_allocate_what_it_announces() -> None:
    lying = changed(changed(SNAPPY, 4, 2**28), 8, 2**28)
    with traced() as memory, pytest.raises(N5BlockError):
        read(lying, len(NUMBERS))
    assert 0 < memory.peak < 2**23
