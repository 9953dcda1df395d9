"""`gzip` follows Java's rules for members, trailing bytes and checksums."""

from __future__ import annotations

import gzip
import zlib

import deflate
import numpy as np
import pytest

from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Gzip
from tests.refusals import refused
from tests.unit.codecs.streams import packed, unpacked, usable

DATA = bytes(range(256)) * 4
HALVES = DATA[:500], DATA[500:]
MEMBER = gzip.compress(DATA, 6, mtime=0)
TWO = b"".join(gzip.compress(half) for half in HALVES)
ZLIB = zlib.compress(DATA, 6)
GZIP_, ZLIB_ = Gzip(), Gzip(use_zlib=True)

READ = {
    "one-member": (MEMBER, GZIP_),
    "two-members": (TWO, GZIP_),
    "empty-members-around-it": (gzip.compress(b"") + MEMBER + gzip.compress(b""), GZIP_),
    "many-members": (b"".join(gzip.compress(DATA[i : i + 1]) for i in range(1024)), GZIP_),
    "surplus-in-the-member": (gzip.compress(DATA + b"surplus"), GZIP_),
    "surplus-member": (MEMBER + gzip.compress(b"surplus"), GZIP_),
    "file-name": (MEMBER[:3] + b"\x08" + MEMBER[4:10] + b"name\0" + MEMBER[10:], GZIP_),
    # whatever follows a zlib stream
    "zlib": (ZLIB, ZLIB_),
    "zlib-junk-behind": (ZLIB + b"junk", ZLIB_),
    "zlib-zeros-behind": (ZLIB + bytes(512), ZLIB_),
    "zlib-surplus": (zlib.compress(DATA + b"surplus"), ZLIB_),
    "zlib-stored": (zlib.compress(DATA, 0), ZLIB_),
}


@pytest.mark.parametrize(("payload", "compression"), READ.values(), ids=READ)
def test_a_payload_that_java_reads_is_read(payload: bytes, compression: Gzip) -> None:
    assert unpacked(payload, compression, len(DATA)) == DATA


def flipped(payload: bytes, at: int) -> bytes:
    broken = bytearray(payload)
    broken[at] ^= 1
    return bytes(broken)


ANOTHER = "expected another gzip member or the end, got {} other"
DAMAGED = {
    **{f"{len(junk)}-junk-{junk[:2].hex()}": (MEMBER + junk, GZIP_, ANOTHER.format(len(junk)))
       for junk in (b"x", b"\0", b"\0" * 512, b"PK\3\4", b"x" * 20, b"\x1f", b"\x1f\x8b")},
    # the checksum and the length
    **{f"trailer{at}": (flipped(MEMBER, at), GZIP_, "gzip stream") for at in range(-8, 0)},
    **{f"zlib-trailer{at}": (flipped(ZLIB, at), ZLIB_, "zlib stream") for at in range(-4, 0)},
    "zlib-for-gzip": (ZLIB, GZIP_, "expected a gzip stream"),
    "gzip-for-zlib": (MEMBER, ZLIB_, "expected a zlib stream"),
    "two-zlib-streams": (b"".join(map(zlib.compress, HALVES)), ZLIB_,
                         "expected 1024 bytes, got 500"),
}  # fmt: skip


@pytest.mark.parametrize(("payload", "compression", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named(payload: bytes, compression: Gzip, message: str) -> None:
    with refused(N5BlockError, "payload", message):
        unpacked(payload, compression, len(DATA))


@pytest.mark.parametrize(
    ("payload", "compression", "shortest"),
    [(MEMBER, GZIP_, 1), (TWO, GZIP_, len(gzip.compress(HALVES[0]))), (ZLIB, ZLIB_, 1)],
    ids=["member", "second-member", "zlib"],
)
def test_a_stream_cut_anywhere_is_an_error(
    payload: bytes, compression: Gzip, shortest: int
) -> None:
    for length in range(shortest, len(payload)):
        with pytest.raises(N5BlockError):
            unpacked(payload[:length], compression, len(DATA))


def test_the_header_written_has_no_time_and_no_name() -> None:
    assert packed(DATA, GZIP_)[:8] == bytes.fromhex("1f8b0800") + bytes(4)


@pytest.mark.parametrize("shape", [(29, 31, 37), (31, 37, 41)])
@pytest.mark.parametrize(("dtype", "scale"), [("u1", 1), (">u2", 100), (">f4", 1)])
def test_noisy_images_become_as_small_as_by_zlib(
    shape: tuple[int, ...], dtype: str, scale: int
) -> None:
    z, y, x = np.indices(shape)
    smooth = 120 + 60 * np.sin(x / 17) * np.sin(y / 13) * np.sin(z / 11)
    image = (scale * (smooth + np.random.default_rng(5).normal(0, 3, shape))).astype(dtype)
    payload = packed(image.tobytes(), GZIP_, image.itemsize)
    assert gzip.decompress(payload) == image.tobytes()
    assert len(payload) < 1.02 * len(zlib.compress(image.tobytes(), 6))


STORED = zlib.compress(DATA, 0)
USABLE = {
    "one-member": (MEMBER, GZIP_, len(MEMBER)),
    "junk": (MEMBER + b"junk", GZIP_, None),
    "cut": (MEMBER[:-1], GZIP_, None),
    "shorter-than-any-member": (MEMBER[:17], GZIP_, None),
    "empty": (b"", GZIP_, None),
    "zlib-for-gzip": (ZLIB, GZIP_, None),
    "surplus": (gzip.compress(DATA + b"x"), GZIP_, None),
    "two-members": (TWO, GZIP_, None),
    "zlib": (ZLIB, ZLIB_, len(ZLIB)),
    "zlib-stored": (STORED, ZLIB_, len(STORED)),
    "gzip-for-zlib": (MEMBER, ZLIB_, None),
    "zlib-empty": (b"", ZLIB_, None),
    "zlib-header-only": (b"\x78\x9c", ZLIB_, None),
    "zlib-bad-header-check": (b"\x78\x9d" + ZLIB[2:], ZLIB_, None),
    "zlib-zeros": (bytes(20), ZLIB_, None),
}


@pytest.mark.parametrize(("payload", "compression", "expected"), USABLE.values(), ids=USABLE)
def test_only_one_stream_of_the_right_length_is_usable(
    payload: bytes, compression: Gzip, expected: int | None
) -> None:
    assert usable(payload, compression, len(DATA)) == expected


@pytest.mark.parametrize("use_zlib", [False, True])
def test_data_that_compress_well_are_left_to_libdeflate(use_zlib: bool) -> None:
    """ISA-L is for noise; both sizes are beside its sample, of which one decides."""
    rng = np.random.default_rng(3)
    by = deflate.zlib_compress if use_zlib else deflate.gzip_compress
    for n in (3 * 2**13, 5 * 2**14):
        data = rng.integers(0, 4, n).astype("u1").tobytes()
        assert packed(data, Gzip(level=5, use_zlib=use_zlib)) == bytes(by(data, 5))
        noise = rng.bytes(n)
        assert packed(noise, Gzip(use_zlib=use_zlib)) != by(noise, 5)
