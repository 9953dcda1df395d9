"""`gzip` follows Java's rules for members, trailing bytes and checksums."""

from __future__ import annotations

import gzip
import zlib

import deflate
import numpy as np
import pytest

from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Gzip

DATA = bytes(range(256)) * 4
HALVES = DATA[:500], DATA[500:]
MEMBER = gzip.compress(DATA, 6, mtime=0)
ZLIB = zlib.compress(DATA, 6)


def read(payload: bytes, *, use_zlib: bool = False, n_bytes: int = len(DATA)) -> bytes:
    return bytes(decompress(memoryview(payload), n_bytes, Gzip(use_zlib=use_zlib)))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(MEMBER, id="one-member"),
        pytest.param(b"".join(gzip.compress(half) for half in HALVES), id="two-members"),
        pytest.param(
            gzip.compress(b"") + MEMBER + gzip.compress(b""), id="empty-members-around-it"
        ),
        pytest.param(
            b"".join(gzip.compress(DATA[i : i + 1]) for i in range(1024)), id="many-members"
        ),
        pytest.param(gzip.compress(DATA + b"surplus"), id="surplus-in-the-member"),
        pytest.param(MEMBER + gzip.compress(b"surplus"), id="surplus-member"),
        pytest.param(MEMBER[:3] + b"\x08" + MEMBER[4:10] + b"name\0" + MEMBER[10:], id="file-name"),
    ],
)
def test_a_payload_that_java_reads_is_read(payload: bytes) -> None:
    assert read(payload) == DATA


@pytest.mark.parametrize(
    "junk", [b"x", b"\0", b"\0" * 512, b"PK\3\4", b"\x1f", b"\x1f\x8b", b"x" * 20]
)
def test_junk_after_the_last_member_is_an_error_as_in_java(junk: bytes) -> None:
    with pytest.raises(N5BlockError) as caught:
        read(MEMBER + junk)
    assert caught.value.kind == "payload"


def test_junk_says_what_was_expected() -> None:
    with pytest.raises(N5BlockError, match="expected another gzip member or the end, got 5 other"):
        read(MEMBER + b"junk!")


def test_a_member_cut_anywhere_is_an_error() -> None:
    for length in range(1, len(MEMBER)):
        with pytest.raises(N5BlockError):
            read(MEMBER[:length])


def test_a_second_member_cut_anywhere_is_an_error() -> None:
    first, second = (gzip.compress(half) for half in HALVES)
    for length in range(len(second)):
        with pytest.raises(N5BlockError):
            read(first + second[:length])


@pytest.mark.parametrize("at", range(-8, 0), ids=lambda at: f"trailer{at}")
def test_a_bad_crc_or_length_is_an_error(at: int) -> None:
    broken = bytearray(MEMBER)
    broken[at] ^= 1
    with pytest.raises(N5BlockError, match="gzip stream"):
        read(bytes(broken))


def test_zlib_bytes_without_use_zlib_are_an_error() -> None:
    with pytest.raises(N5BlockError, match="expected a gzip stream"):
        read(ZLIB)


def test_gzip_bytes_with_use_zlib_are_an_error() -> None:
    with pytest.raises(N5BlockError, match="expected a zlib stream"):
        read(MEMBER, use_zlib=True)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(ZLIB, id="plain"),
        pytest.param(ZLIB + b"junk", id="junk-behind"),
        pytest.param(ZLIB + bytes(512), id="zeros-behind"),
        pytest.param(zlib.compress(DATA + b"surplus"), id="surplus"),
        pytest.param(zlib.compress(DATA, 0), id="stored"),
    ],
)
def test_zlib_streams_are_read_whatever_follows(payload: bytes) -> None:
    assert read(payload, use_zlib=True) == DATA


def test_a_zlib_stream_cut_anywhere_is_an_error() -> None:
    for length in range(1, len(ZLIB)):
        with pytest.raises(N5BlockError):
            read(ZLIB[:length], use_zlib=True)


@pytest.mark.parametrize("at", range(-4, 0), ids=lambda at: f"trailer{at}")
def test_a_bad_adler_checksum_is_an_error(at: int) -> None:
    broken = bytearray(ZLIB)
    broken[at] ^= 1
    with pytest.raises(N5BlockError, match="zlib stream"):
        read(bytes(broken), use_zlib=True)


@pytest.mark.parametrize("use_zlib", [False, True])
def test_a_single_zlib_stream_is_not_continued(use_zlib: bool) -> None:
    pack = zlib.compress if use_zlib else gzip.compress
    payload = b"".join(pack(half) for half in HALVES)
    if use_zlib:
        with pytest.raises(N5BlockError, match="expected 1024 bytes, got 500"):
            read(payload, use_zlib=True)
    else:
        assert read(payload) == DATA


def test_the_header_written_has_no_time_and_no_name() -> None:
    packed = bytes(codec_of(Gzip()).compress(DATA, Gzip(), 1))
    assert packed[:4] == bytes.fromhex("1f8b0800")
    assert packed[4:8] == bytes(4)


@pytest.mark.parametrize("shape", [(29, 31, 37), (31, 37, 41)])
@pytest.mark.parametrize(("dtype", "scale"), [("u1", 1), (">u2", 100), (">f4", 1)])
def test_noisy_images_become_as_small_as_by_zlib(
    shape: tuple[int, ...], dtype: str, scale: int
) -> None:
    z, y, x = np.indices(shape)
    smooth = 120 + 60 * np.sin(x / 17) * np.sin(y / 13) * np.sin(z / 11)
    image = (scale * (smooth + np.random.default_rng(5).normal(0, 3, shape))).astype(dtype)
    packed = bytes(codec_of(Gzip()).compress(image.tobytes(), Gzip(), image.itemsize))
    assert gzip.decompress(packed) == image.tobytes()
    assert len(packed) < 1.02 * len(zlib.compress(image.tobytes(), 6))


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(MEMBER, len(MEMBER), id="one-member"),
        pytest.param(MEMBER + b"junk", None, id="junk"),
        pytest.param(MEMBER[:-1], None, id="cut"),
        pytest.param(MEMBER[:17], None, id="shorter-than-any-member"),
        pytest.param(b"", None, id="empty"),
        pytest.param(ZLIB, None, id="zlib"),
        pytest.param(gzip.compress(DATA + b"x"), None, id="surplus"),
        pytest.param(gzip.compress(HALVES[0]) + gzip.compress(HALVES[1]), None, id="two-members"),
    ],
)
def test_only_a_member_of_the_right_length_is_usable(payload: bytes, expected: int | None) -> None:
    assert codec_of(Gzip()).usable(memoryview(payload), len(DATA), Gzip()) == expected


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(ZLIB, len(ZLIB), id="zlib"),
        pytest.param(zlib.compress(DATA, 0), len(zlib.compress(DATA, 0)), id="stored"),
        pytest.param(MEMBER, None, id="gzip"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b"\x78\x9c", None, id="header-only"),
        pytest.param(b"\x78\x9d" + ZLIB[2:], None, id="bad-header-check"),
        pytest.param(bytes(20), None, id="zeros"),
    ],
)
def test_only_a_zlib_header_is_usable_with_use_zlib(payload: bytes, expected: int | None) -> None:
    assert (
        codec_of(Gzip(use_zlib=True)).usable(memoryview(payload), len(DATA), Gzip(use_zlib=True))
        == expected
    )


@pytest.mark.parametrize("use_zlib", [False, True])
def test_data_that_compress_well_are_left_to_libdeflate(use_zlib: bool) -> None:
    """ISA-L is for noise; both sizes are beside its sample, of which one decides."""
    rng = np.random.default_rng(3)
    for n in (3 * 2**13, 5 * 2**14):
        data = rng.integers(0, 4, n).astype("u1").tobytes()
        packed = bytes(codec_of(Gzip()).compress(data, Gzip(level=5, use_zlib=use_zlib), 1))
        by = deflate.zlib_compress if use_zlib else deflate.gzip_compress
        assert packed == bytes(by(data, 5))
        noise = rng.bytes(n)
        assert bytes(codec_of(Gzip()).compress(noise, Gzip(use_zlib=use_zlib), 1)) != by(noise, 5)
