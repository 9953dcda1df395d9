"""All compressions make round trips, and agree with Zarr's codecs on stored streams."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from n5zarr.codecs import compress as payloads
from n5zarr.errors import N5BlockError, N5MissingDependencyError
from n5zarr.format.compression import (
    Blosc,
    Bzip2,
    Compression,
    Gzip,
    Jpeg,
    Lz4,
    Lzma,
    Raw,
    Xz,
    Zstd,
    compression_to_json,
)
from tests.memory import traced
from tests.refusals import refused
from tests.unit.codecs.streams import numcodecs, packed, unpacked, usable

SIZES = [
    1, 14, 15, 16, 269, 270, 271, 524, 525, 65535, 65536, 65537, 131071, 131072, 131073, 300001,
]  # fmt: skip

PARAMETERS: list[Compression] = [
    Raw(),
    *(Gzip(level=level) for level in range(-1, 10)),
    *(Gzip(level=level, use_zlib=True) for level in (-1, 0, 1, 6, 9)),
    *(Bzip2(block_size=size) for size in range(1, 10)),
    *(Xz(preset=preset) for preset in range(7)),
    *(Lz4(block_size=size) for size in (-1, 0, 9, 64, 1000, 65536, 2**20, 2**25, 2**31 - 1)),
    *(Zstd(level=level) for level in (-(2**31), -5, 0, 1, 3, 19, 22, 23, 2**31 - 1)),
    *(
        Blosc(cname=cname, clevel=clevel, shuffle=shuffle)
        for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
        for clevel in (0, 1, 6, 9)
        for shuffle in (-1, 0, 1, 2)
    ),
    Blosc(block_size=4096),
]
DEFAULTS: list[Compression] = [
    Raw(), Gzip(), Gzip(use_zlib=True), Bzip2(), Xz(), Lz4(), Blosc(), Zstd(),
]  # fmt: skip
CHECKED: list[Compression] = [Gzip(), Gzip(use_zlib=True), Bzip2(), Xz(), Lz4()]


def name(compression: Compression) -> str:
    return "-".join(str(value) for value in compression_to_json(compression).values())


def sample(n_bytes: int) -> bytes:
    """Return bytes of which some compress and some do not."""
    noise = random.Random(n_bytes).randbytes(n_bytes // 2)  # noqa: S311 - no secret
    return (noise + bytes(range(200)) * (n_bytes // 200 + 1))[:n_bytes]


DECODERS: dict[str, tuple[Compression, Callable[[Any], Any]]] = {
    "raw": (Raw(), bytes),
    "gzip-numcodecs": (Gzip(), numcodecs.GZip().decode),
    "gzip-stdlib": (Gzip(), gzip.decompress),
    "zlib-numcodecs": (Gzip(use_zlib=True), numcodecs.Zlib().decode),
    "zlib-stdlib": (Gzip(use_zlib=True), zlib.decompress),
    "bz2-numcodecs": (Bzip2(), numcodecs.BZ2().decode),
    "bz2-stdlib": (Bzip2(), bz2.decompress),
    "xz-numcodecs": (Xz(), numcodecs.LZMA().decode),
    "xz-stdlib": (Xz(), lambda data: lzma.decompress(data, lzma.FORMAT_XZ)),
    "lzma-numcodecs": (Lzma(format=2), numcodecs.LZMA().decode),
    "zstd": (Zstd(), numcodecs.Zstd().decode),
    "blosc": (Blosc(), numcodecs.Blosc().decode),
    "lz4": (Lz4(), numcodecs.LZ4().decode),
    "jpeg": (Jpeg(), bytes),
}


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("n_bytes", [0, *SIZES])
def test_a_stored_stream_is_decoded_by_the_codec_that_zarr_uses(decoder: str, n_bytes: int) -> None:
    compression, decode = DECODERS[decoder]
    if n_bytes == 0 and decoder in ("lz4", "zstd", "blosc"):
        return  # numcodecs cannot decode these to nothing, and no chunk is empty
    data = sample(n_bytes)
    stream = payloads.codec_of(compression).store(memoryview(data), compression)
    assert bytes(decode(bytes(stream))) == data


@pytest.mark.parametrize(
    "compression", [Raw(), Gzip(), Gzip(use_zlib=True), Xz(), Lz4(), Zstd(), Blosc()], ids=name
)
def test_a_stored_stream_is_hardly_longer_than_the_data(compression: Compression) -> None:
    stream = payloads.codec_of(compression).store(sample(300001), compression)
    assert len(stream) < 300001 * 1.01 + 200


@pytest.mark.parametrize(
    "compression", [Raw(), Gzip(), Gzip(use_zlib=True), Xz(), Zstd(), Blosc(), Bzip2()], ids=name
)
@pytest.mark.parametrize("n_bytes", SIZES)
def test_a_stored_stream_is_also_a_payload(compression: Compression, n_bytes: int) -> None:
    stream = bytes(payloads.codec_of(compression).store(sample(n_bytes), compression))
    assert usable(stream, compression, n_bytes) == len(stream)
    assert unpacked(stream, compression, n_bytes) == sample(n_bytes)


def test_raw_elements_are_not_copied_to_be_written() -> None:
    data = sample(12)
    assert payloads.codec_of(Raw()).compress(data, Raw(), 2) is data


@pytest.mark.parametrize(("length", "expected"), [(11, None), (12, 12), (13, 12), (0, None)])
def test_only_the_needed_raw_bytes_are_usable(length: int, expected: int | None) -> None:
    assert usable(bytes(length), Raw(), 12) == expected


@pytest.mark.parametrize("compression", PARAMETERS, ids=name)
@pytest.mark.parametrize("n_bytes", [1, 12, 5000])
def test_decompressing_what_was_compressed_gives_it_back(
    compression: Compression, n_bytes: int
) -> None:
    data = sample(n_bytes)
    assert unpacked(packed(data, compression, 2), compression, n_bytes) == data


@pytest.mark.parametrize(
    ("n_bytes", "item_size"), [(65536, 1), (65537, 1), (300001, 1), (4096, 4), (4096, 8)]
)
@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
def test_payloads_of_any_size_and_items_come_back(
    compression: Compression, n_bytes: int, item_size: int
) -> None:
    data = sample(n_bytes)
    assert unpacked(packed(data, compression, item_size), compression, n_bytes) == data


READERS: dict[str, tuple[Compression, Callable[[Any], Any]]] = {
    "gzip": (Gzip(level=3), gzip.decompress),
    "zlib": (Gzip(use_zlib=True), zlib.decompress),
    "bzip2": (Bzip2(block_size=2), bz2.decompress),
    "xz": (Xz(preset=1), lzma.decompress),
    "zstd": (Zstd(level=7), numcodecs.Zstd().decode),
    "blosc": (Blosc(cname="zstd", shuffle=2), numcodecs.Blosc().decode),
}


@pytest.mark.parametrize("n_bytes", [15, 271, 65537, 131073])
@pytest.mark.parametrize("reader", READERS)
def test_other_programs_decode_what_was_compressed(reader: str, n_bytes: int) -> None:
    compression, decode = READERS[reader]
    assert bytes(decode(packed(sample(n_bytes), compression, 2))) == sample(n_bytes)


WRITERS: dict[str, tuple[Compression, Callable[[Any], Any]]] = {
    "gzip": (Gzip(), gzip.compress),
    "zlib": (Gzip(use_zlib=True), zlib.compress),
    "bzip2": (Bzip2(), bz2.compress),
    "xz": (Xz(), lzma.compress),
    "lzma-xz": (Lzma(), lzma.compress),
    "lzma-alone": (Lzma(format=2), lambda data: lzma.compress(data, lzma.FORMAT_ALONE)),
    "zstd": (Zstd(), numcodecs.Zstd(level=9).encode),
    "blosc": (Blosc(), numcodecs.Blosc("lz4hc", 5, 1).encode),
    "lz4-of-numcodecs": (Lz4(), numcodecs.LZ4().encode),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_payloads_of_other_programs_are_decompressed(writer: str) -> None:
    compression, encode = WRITERS[writer]
    assert unpacked(bytes(encode(sample(70001))), compression, 70001) == sample(70001)


@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
def test_more_than_the_needed_bytes_in_the_payload_do_no_harm(compression: Compression) -> None:
    payload = packed(sample(5000), compression)
    for needed in (1234, 4999):
        assert unpacked(payload, compression, needed) == sample(5000)[:needed]


@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
@pytest.mark.parametrize("needed", [101, 102, 2**31 - 1])
def test_fewer_than_the_needed_bytes_are_an_error(compression: Compression, needed: int) -> None:
    with refused(N5BlockError, "payload", "block payload: "):
        unpacked(packed(sample(100), compression), compression, needed)


@pytest.mark.parametrize("compression", [*DEFAULTS, Lzma(), Jpeg()], ids=name)
def test_an_empty_payload_is_an_error(compression: Compression) -> None:
    with pytest.raises(N5BlockError) as caught:
        unpacked(b"", compression, 12)
    expected = f"expected 12 bytes of {compression.type}, got an empty payload"
    assert str(caught.value) == f"block payload: {expected}"


@pytest.mark.parametrize("compression", [*DEFAULTS, Lzma(), Jpeg()], ids=name)
def test_no_bytes_are_needed_for_no_elements(compression: Compression) -> None:
    assert payloads.decompress(memoryview(b""), 0, compression) == b""


@pytest.mark.parametrize(
    "junk", [b"\0" * 40, b"\xff" * 40, b"not compressed at all, but long enough"]
)
@pytest.mark.parametrize("compression", [*DEFAULTS[1:], Lzma(), Jpeg()], ids=name)
def test_bytes_of_no_codec_are_an_error(compression: Compression, junk: bytes) -> None:
    with refused(N5BlockError, "payload"):
        unpacked(junk, compression, 100)


@pytest.mark.parametrize("stored", DEFAULTS[1:], ids=name)
@pytest.mark.parametrize("announced", [*DEFAULTS[1:], Jpeg()], ids=name)
def test_a_payload_of_another_codec_is_an_error(
    stored: Compression, announced: Compression
) -> None:
    if stored == announced:
        return
    with refused(N5BlockError, "payload"):
        unpacked(packed(sample(5000), stored), announced, 5000)


@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
def test_a_cut_payload_is_an_error_at_every_byte(compression: Compression) -> None:
    payload = packed(sample(100), compression)
    end_mark = 21 if isinstance(compression, Lz4) else 0  # Java does without it
    for length in range(len(payload) - end_mark):
        with refused(N5BlockError, "payload"):
            unpacked(payload[:length], compression, 100)


# A little noise, runs, and a ramp: a flipped bit then often changes the length of what comes out.
NOISE = bytes(random.Random(0).choices(range(8), k=700))  # noqa: S311 - no secret
RUNS = b"".join(bytes([i]) * (i % 31 + 1) for i in range(0, 256, 3))
RAMP = b"".join((i // 3 + i % 7).to_bytes(2, "big") for i in range(500))


@pytest.mark.parametrize("data", [NOISE, RUNS, RAMP], ids=["noise", "runs", "ramp"])
@pytest.mark.parametrize("compression", CHECKED, ids=name)
def test_a_flipped_bit_under_a_checksum_never_gives_other_data(
    compression: Compression, data: bytes
) -> None:
    payload = packed(data, compression)
    wrong = []
    for bit in range(8 * len(payload)):
        broken = bytearray(payload)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            if unpacked(bytes(broken), compression, len(data)) != data:
                wrong.append(bit)
        except N5BlockError:
            continue
    assert wrong == []


# Bounded inflation: what a small block announces bounds what a large payload may allocate.

BOMB = 2**25
MUCH = 2**23


BOMBS: dict[str, tuple[Compression, Callable[[Any], Any]]] = {
    "gzip": (Gzip(), lambda data: gzip.compress(data, 1)),
    "zlib": (Gzip(use_zlib=True), lambda data: zlib.compress(data, 1)),
    "bzip2": (Bzip2(), lambda data: bz2.compress(data, 1)),
    "xz": (Xz(), lambda data: lzma.compress(data, preset=0)),
    "zstd": (Zstd(), numcodecs.Zstd(level=1).encode),
    "blosc": (Blosc(), numcodecs.Blosc("zstd", 1, 0).encode),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_inflates_to_what_is_announced(bomb: str) -> None:
    compression, encode = BOMBS[bomb]
    payload = bytes(encode(bytes(BOMB)))
    with traced() as memory:
        try:
            found = unpacked(payload, compression, 100)
        except N5BlockError:
            found = bytes(100)  # refusing is as good
    assert found == bytes(100)
    assert memory.peak < MUCH


def test_a_gzip_bomb_that_lies_about_its_length_is_bounded_too() -> None:
    payload = gzip.compress(bytes(BOMB), 1)[:-4] + (100).to_bytes(4, "little")
    with pytest.raises(N5BlockError, match="expected 100 bytes, got more than"):
        unpacked(payload, Gzip(), 100)


@pytest.mark.parametrize("compression", [Gzip(), Gzip(use_zlib=True), Zstd(), Blosc()], ids=name)
def test_nothing_is_allocated_for_a_size_that_the_payload_cannot_have(
    compression: Compression,
) -> None:
    payload = packed(sample(100), compression)
    with traced() as memory, pytest.raises(N5BlockError):
        unpacked(payload, compression, 2**31 - 1)
    assert memory.peak < MUCH


@pytest.mark.parametrize(
    ("package", "compression", "extra"),
    [("lz4.block", Lz4(), "lz4"), ("xxhash", Lz4(), "lz4"), ("PIL", Jpeg(), "jpeg")],
    ids=["lz4", "xxhash", "jpeg"],
)
def test_a_missing_package_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str, compression: Compression, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with refused(N5MissingDependencyError, "dependency") as caught:
        unpacked(b"x" * 40, compression, 40)
    assert f"pip install 'n5zarr[{extra}]'" in str(caught.value)
    assert f"{extra} compression needs the package" in str(caught.value)
