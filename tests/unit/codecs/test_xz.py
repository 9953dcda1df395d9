"""`xz`, `lzma` and `bzip2` streams are decoded, though they announce no size."""

from __future__ import annotations

import bz2
import lzma

import pytest

from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Bzip2, Compression, Lzma, Xz

DATA = bytes(range(250)) * 8
XZ = lzma.compress(DATA)
BZIP2 = bz2.compress(DATA)
ALONE = lzma.compress(DATA, lzma.FORMAT_ALONE)


def read(payload: bytes, compression: Compression, n_bytes: int = len(DATA)) -> bytes:
    return bytes(decompress(memoryview(payload), n_bytes, compression))


@pytest.mark.parametrize(
    ("payload", "compression"),
    [
        pytest.param(XZ, Xz(), id="xz"),
        pytest.param(XZ + b"junk", Xz(), id="xz-junk"),
        pytest.param(XZ + bytes(512), Xz(), id="xz-padding"),
        pytest.param(lzma.compress(DATA, check=lzma.CHECK_NONE), Xz(), id="xz-no-check"),
        pytest.param(lzma.compress(DATA, check=lzma.CHECK_CRC32), Xz(), id="xz-crc32"),
        pytest.param(lzma.compress(DATA, check=lzma.CHECK_SHA256), Xz(), id="xz-sha256"),
        pytest.param(lzma.compress(DATA + b"surplus"), Xz(), id="xz-surplus"),
        pytest.param(XZ, Lzma(), id="lzma-1"),
        pytest.param(ALONE, Lzma(format=2), id="lzma-2"),
        pytest.param(BZIP2, Bzip2(), id="bzip2"),
        pytest.param(BZIP2 + b"junk", Bzip2(), id="bzip2-junk"),
        pytest.param(bz2.compress(DATA + b"surplus"), Bzip2(), id="bzip2-surplus"),
        pytest.param(bz2.compress(DATA, 1), Bzip2(block_size=9), id="bzip2-other-block-size"),
    ],
)
def test_a_payload_that_java_reads_is_read(payload: bytes, compression: Compression) -> None:
    assert read(payload, compression) == DATA


@pytest.mark.parametrize(
    ("payload", "compression"),
    [
        pytest.param(XZ, Xz(), id="xz"),
        pytest.param(BZIP2, Bzip2(), id="bzip2"),
        pytest.param(ALONE, Lzma(format=2), id="lzma"),
    ],
)
def test_a_stream_cut_anywhere_is_an_error(payload: bytes, compression: Compression) -> None:
    for length in range(1, len(payload)):
        with pytest.raises(N5BlockError) as caught:
            read(payload[:length], compression)
        assert caught.value.kind == "payload"


@pytest.mark.parametrize(
    ("payload", "compression", "at"),
    [
        pytest.param(XZ, Xz(), -30, id="xz-index"),
        pytest.param(XZ, Xz(), -10, id="xz-footer-crc"),
        pytest.param(XZ, Xz(), 8, id="xz-header-crc"),
        pytest.param(BZIP2, Bzip2(), -2, id="bzip2-crc"),
        pytest.param(BZIP2, Bzip2(), 12, id="bzip2-block-crc"),
    ],
)
def test_a_bad_checksum_is_an_error(payload: bytes, compression: Compression, at: int) -> None:
    broken = bytearray(payload)
    broken[at] ^= 0x10
    with pytest.raises(N5BlockError, match=f"{compression.type} stream: "):
        read(bytes(broken), compression)


def test_lzma_alone_is_no_xz() -> None:
    with pytest.raises(N5BlockError, match="expected an xz stream: "):
        read(ALONE, Xz())


@pytest.mark.parametrize(
    ("payload", "compression"),
    [pytest.param(XZ + b"junk", Xz(), id="xz"), pytest.param(BZIP2 + b"junk", Bzip2(), id="bzip2")],
)
def test_junk_is_no_second_stream(payload: bytes, compression: Compression) -> None:
    with pytest.raises(N5BlockError):
        read(payload, compression, len(DATA) + 1)


def test_an_xz_container_with_crc64_is_written() -> None:
    packed = bytes(codec_of(Xz()).compress(DATA, Xz(), 1))
    assert packed[:8] == b"\xfd7zXZ\0" + b"\0\x04"


@pytest.mark.parametrize(("block_size", "magic"), [(1, b"BZh1"), (5, b"BZh5"), (9, b"BZh9")])
def test_the_block_size_of_bzip2_is_written(block_size: int, magic: bytes) -> None:
    assert (
        bytes(
            codec_of(Bzip2(block_size=block_size)).compress(DATA, Bzip2(block_size=block_size), 1)
        )[:4]
        == magic
    )


@pytest.mark.parametrize(
    ("payload", "compression", "expected"),
    [
        pytest.param(XZ, Xz(), len(XZ), id="xz"),
        pytest.param(ALONE, Xz(), None, id="lzma-alone"),
        pytest.param(ALONE, Lzma(format=2), None, id="lzma-alone-as-lzma"),
        pytest.param(BZIP2, Xz(), None, id="bzip2-as-xz"),
        pytest.param(b"", Xz(), None, id="empty-xz"),
        pytest.param(BZIP2, Bzip2(), len(BZIP2), id="bzip2"),
        pytest.param(XZ, Bzip2(), None, id="xz-as-bzip2"),
        pytest.param(b"BZ", Bzip2(), None, id="cut-bzip2"),
    ],
)
def test_the_magic_makes_a_stream_usable(
    payload: bytes, compression: Compression, expected: int | None
) -> None:
    assert codec_of(compression).usable(memoryview(payload), len(DATA), compression) == expected
