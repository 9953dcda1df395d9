"""`xz`, `lzma` and `bzip2` streams are decoded, though they announce no size."""

from __future__ import annotations

import bz2
import lzma

import pytest

from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Bzip2, Compression, Lzma, Xz
from tests.refusals import refused
from tests.unit.codecs.streams import DATA, packed, unpacked, usable

XZ = lzma.compress(DATA)
BZIP2 = bz2.compress(DATA)
ALONE = lzma.compress(DATA, lzma.FORMAT_ALONE)

READ = {
    "xz": (XZ, Xz()),
    "xz-junk": (XZ + b"junk", Xz()),
    "xz-padding": (XZ + bytes(512), Xz()),
    "xz-no-check": (lzma.compress(DATA, check=lzma.CHECK_NONE), Xz()),
    "xz-crc32": (lzma.compress(DATA, check=lzma.CHECK_CRC32), Xz()),
    "xz-sha256": (lzma.compress(DATA, check=lzma.CHECK_SHA256), Xz()),
    "xz-surplus": (lzma.compress(DATA + b"surplus"), Xz()),
    "lzma-1": (XZ, Lzma()),
    "lzma-2": (ALONE, Lzma(format=2)),
    "bzip2": (BZIP2, Bzip2()),
    "bzip2-junk": (BZIP2 + b"junk", Bzip2()),
    "bzip2-surplus": (bz2.compress(DATA + b"surplus"), Bzip2()),
    "bzip2-other-block-size": (bz2.compress(DATA, 1), Bzip2(block_size=9)),
}


@pytest.mark.parametrize(("payload", "compression"), READ.values(), ids=READ)
def test_a_payload_that_java_reads_is_read(payload: bytes, compression: Compression) -> None:
    assert unpacked(payload, compression) == DATA


CUT = {"xz": (XZ, Xz()), "bzip2": (BZIP2, Bzip2()), "lzma": (ALONE, Lzma(format=2))}


@pytest.mark.parametrize(("payload", "compression"), CUT.values(), ids=CUT)
def test_a_stream_cut_anywhere_is_an_error(payload: bytes, compression: Compression) -> None:
    for length in range(1, len(payload)):
        with refused(N5BlockError, "payload"):
            unpacked(payload[:length], compression)


CHECKED = {
    "xz-index": (XZ, Xz(), -30),
    "xz-footer-crc": (XZ, Xz(), -10),
    "xz-header-crc": (XZ, Xz(), 8),
    "bzip2-crc": (BZIP2, Bzip2(), -2),
    "bzip2-block-crc": (BZIP2, Bzip2(), 12),
}


@pytest.mark.parametrize(("payload", "compression", "at"), CHECKED.values(), ids=CHECKED)
def test_a_bad_checksum_is_an_error(payload: bytes, compression: Compression, at: int) -> None:
    broken = bytearray(payload)
    broken[at] ^= 0x10
    with pytest.raises(N5BlockError, match=f"{compression.type} stream: "):
        unpacked(bytes(broken), compression)


def test_lzma_alone_is_no_xz() -> None:
    with pytest.raises(N5BlockError, match="expected an xz stream: "):
        unpacked(ALONE, Xz())


@pytest.mark.parametrize(
    ("payload", "compression"), [(XZ, Xz()), (BZIP2, Bzip2())], ids=["xz", "bzip2"]
)
def test_junk_is_no_second_stream(payload: bytes, compression: Compression) -> None:
    with pytest.raises(N5BlockError):
        unpacked(payload + b"junk", compression, len(DATA) + 1)


def test_an_xz_container_with_crc64_is_written() -> None:
    assert packed(DATA, Xz())[:8] == b"\xfd7zXZ\0" + b"\0\x04"


@pytest.mark.parametrize(("block_size", "magic"), [(1, b"BZh1"), (5, b"BZh5"), (9, b"BZh9")])
def test_the_block_size_of_bzip2_is_written(block_size: int, magic: bytes) -> None:
    assert packed(DATA, Bzip2(block_size=block_size))[:4] == magic


USABLE = {
    "xz": (XZ, Xz(), len(XZ)),
    "lzma-alone": (ALONE, Xz(), None),
    "lzma-alone-as-lzma": (ALONE, Lzma(format=2), None),
    "bzip2-as-xz": (BZIP2, Xz(), None),
    "empty-xz": (b"", Xz(), None),
    "bzip2": (BZIP2, Bzip2(), len(BZIP2)),
    "xz-as-bzip2": (XZ, Bzip2(), None),
    "cut-bzip2": (b"BZ", Bzip2(), None),
}


@pytest.mark.parametrize(("payload", "compression", "expected"), USABLE.values(), ids=USABLE)
def test_the_magic_makes_a_stream_usable(
    payload: bytes, compression: Compression, expected: int | None
) -> None:
    assert usable(payload, compression) == expected
