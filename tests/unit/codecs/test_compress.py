"""All compressions make round trips, and agree with Zarr's codecs on stored streams."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import random
import sys
import tracemalloc
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

# none of these has types
numcodecs: Any = importlib.import_module("numcodecs")

SIZES = [1, 15, 16, 269, 270, 65535, 65536, 65537, 131071, 131072, 131073, 300001]

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
    assert (
        len(payloads.codec_of(compression).store(sample(300001), compression)) < 300001 * 1.01 + 200
    )


@pytest.mark.parametrize(
    "compression", [Raw(), Gzip(), Gzip(use_zlib=True), Xz(), Zstd(), Blosc(), Bzip2()], ids=name
)
@pytest.mark.parametrize("n_bytes", SIZES)
def test_a_stored_stream_is_also_a_payload(compression: Compression, n_bytes: int) -> None:
    stream = memoryview(bytes(payloads.codec_of(compression).store(sample(n_bytes), compression)))
    assert payloads.codec_of(compression).usable(stream, n_bytes, compression) == len(stream)
    assert bytes(payloads.decompress(stream, n_bytes, compression)) == sample(n_bytes)


@pytest.mark.parametrize("compression", PARAMETERS, ids=name)
@pytest.mark.parametrize("n_bytes", [1, 12, 5000])
def test_decompressing_what_was_compressed_gives_it_back(
    compression: Compression, n_bytes: int
) -> None:
    data = sample(n_bytes)
    payload = memoryview(bytes(payloads.codec_of(compression).compress(data, compression, 2)))
    assert bytes(payloads.decompress(payload, n_bytes, compression)) == data


@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
@pytest.mark.parametrize("n_bytes", [65536, 65537, 300001])
def test_large_payloads_come_back(compression: Compression, n_bytes: int) -> None:
    data = sample(n_bytes)
    payload = memoryview(bytes(payloads.codec_of(compression).compress(data, compression, 1)))
    assert bytes(payloads.decompress(payload, n_bytes, compression)) == data


@pytest.mark.parametrize("item_size", [1, 2, 4, 8])
@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
def test_the_item_size_does_not_change_what_comes_back(
    compression: Compression, item_size: int
) -> None:
    data = sample(4096)
    payload = memoryview(
        bytes(payloads.codec_of(compression).compress(data, compression, item_size))
    )
    assert bytes(payloads.decompress(payload, 4096, compression)) == data


@pytest.mark.parametrize(
    ("compression", "decode"),
    [
        pytest.param(Gzip(level=3), gzip.decompress, id="gzip"),
        pytest.param(Gzip(use_zlib=True), zlib.decompress, id="zlib"),
        pytest.param(Bzip2(block_size=2), bz2.decompress, id="bzip2"),
        pytest.param(Xz(preset=1), lzma.decompress, id="xz"),
        pytest.param(Zstd(level=7), numcodecs.Zstd().decode, id="zstd"),
        pytest.param(Blosc(cname="zstd", shuffle=2), numcodecs.Blosc().decode, id="blosc"),
    ],
)
def test_other_programs_decode_what_was_compressed(
    compression: Compression, decode: Callable[[Any], Any]
) -> None:
    data = sample(70001)
    assert (
        bytes(decode(bytes(payloads.codec_of(compression).compress(data, compression, 2)))) == data
    )


@pytest.mark.parametrize(
    ("compression", "encode"),
    [
        pytest.param(Gzip(), gzip.compress, id="gzip"),
        pytest.param(Gzip(use_zlib=True), zlib.compress, id="zlib"),
        pytest.param(Bzip2(), bz2.compress, id="bzip2"),
        pytest.param(Xz(), lzma.compress, id="xz"),
        pytest.param(Lzma(), lzma.compress, id="lzma-xz"),
        pytest.param(
            Lzma(format=2), lambda data: lzma.compress(data, lzma.FORMAT_ALONE), id="lzma-alone"
        ),
        pytest.param(Zstd(), numcodecs.Zstd(level=9).encode, id="zstd"),
        pytest.param(Blosc(), numcodecs.Blosc("lz4hc", 5, 1).encode, id="blosc"),
        pytest.param(Lz4(), numcodecs.LZ4().encode, id="lz4-of-numcodecs"),
    ],
)
def test_payloads_of_other_programs_are_decompressed(
    compression: Compression, encode: Callable[[Any], Any]
) -> None:
    data = sample(70001)
    payload = memoryview(bytes(encode(data)))
    assert bytes(payloads.decompress(payload, len(data), compression)) == data


@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
def test_more_than_the_needed_bytes_in_the_payload_do_no_harm(compression: Compression) -> None:
    data = sample(5000)
    payload = memoryview(bytes(payloads.codec_of(compression).compress(data, compression, 1)))
    assert bytes(payloads.decompress(payload, 1234, compression)) == data[:1234]


@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
@pytest.mark.parametrize("needed", [101, 2**31 - 1])
def test_fewer_than_the_needed_bytes_are_an_error(compression: Compression, needed: int) -> None:
    payload = memoryview(
        bytes(payloads.codec_of(compression).compress(sample(100), compression, 1))
    )
    with pytest.raises(N5BlockError, match="block payload: ") as caught:
        payloads.decompress(payload, needed, compression)
    assert caught.value.kind == "payload"


@pytest.mark.parametrize("compression", [*DEFAULTS, Lzma(), Jpeg()], ids=name)
def test_an_empty_payload_is_an_error(compression: Compression) -> None:
    with pytest.raises(N5BlockError) as caught:
        payloads.decompress(memoryview(b""), 12, compression)
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
    with pytest.raises(N5BlockError) as caught:
        payloads.decompress(memoryview(junk), 100, compression)
    assert caught.value.kind == "payload"


@pytest.mark.parametrize("stored", DEFAULTS[1:], ids=name)
@pytest.mark.parametrize("announced", [*DEFAULTS[1:], Jpeg()], ids=name)
def test_a_payload_of_another_codec_is_an_error(
    stored: Compression, announced: Compression
) -> None:
    if stored == announced:
        return
    payload = memoryview(bytes(payloads.codec_of(stored).compress(sample(5000), stored, 1)))
    with pytest.raises(N5BlockError) as caught:
        payloads.decompress(payload, 5000, announced)
    assert caught.value.kind == "payload"


@pytest.mark.parametrize("compression", DEFAULTS, ids=name)
def test_a_cut_payload_is_an_error_at_every_byte(compression: Compression) -> None:
    data = sample(100)
    payload = memoryview(bytes(payloads.codec_of(compression).compress(data, compression, 1)))
    end_mark = 21 if isinstance(compression, Lz4) else 0  # Java does without it
    for length in range(len(payload) - end_mark):
        with pytest.raises(N5BlockError) as caught:
            payloads.decompress(payload[:length], 100, compression)
        assert caught.value.kind == "payload"


# A little noise, runs, and a ramp: a flipped bit then often changes the length of what comes out.
NOISE = bytes(random.Random(0).choices(range(8), k=700))  # noqa: S311 - no secret
RUNS = b"".join(bytes([i]) * (i % 31 + 1) for i in range(0, 256, 3))
RAMP = b"".join((i // 3 + i % 7).to_bytes(2, "big") for i in range(500))


@pytest.mark.parametrize("data", [NOISE, RUNS, RAMP], ids=["noise", "runs", "ramp"])
@pytest.mark.parametrize("compression", CHECKED, ids=name)
def test_a_flipped_bit_under_a_checksum_never_gives_other_data(
    compression: Compression, data: bytes
) -> None:
    payload = bytes(payloads.codec_of(compression).compress(data, compression, 1))
    wrong = []
    for bit in range(8 * len(payload)):
        broken = bytearray(payload)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            unpacked = payloads.decompress(memoryview(bytes(broken)), len(data), compression)
        except N5BlockError:
            continue
        if bytes(unpacked) != data:
            wrong.append(bit)
    assert wrong == []


# Bounded inflation: what a small block announces bounds what a large payload may allocate.

BOMB = 2**26
MUCH = 2**23


@pytest.mark.parametrize(
    ("compression", "encode"),
    [
        pytest.param(Gzip(), lambda data: gzip.compress(data, 1), id="gzip"),
        pytest.param(Gzip(use_zlib=True), lambda data: zlib.compress(data, 1), id="zlib"),
        pytest.param(Bzip2(), lambda data: bz2.compress(data, 1), id="bzip2"),
        pytest.param(Xz(), lambda data: lzma.compress(data, preset=0), id="xz"),
        pytest.param(Zstd(), numcodecs.Zstd(level=1).encode, id="zstd"),
        pytest.param(Blosc(), numcodecs.Blosc("zstd", 1, 0).encode, id="blosc"),
    ],
)
def test_a_bomb_inflates_to_what_is_announced(
    compression: Compression, encode: Callable[[Any], Any]
) -> None:
    payload = memoryview(bytes(encode(bytes(BOMB))))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        try:
            unpacked = bytes(payloads.decompress(payload, 100, compression))
        except N5BlockError:
            unpacked = bytes(100)  # refusing is as good
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert unpacked == bytes(100)
    assert peak - before < MUCH


def test_a_gzip_bomb_that_lies_about_its_length_is_bounded_too() -> None:
    payload = gzip.compress(bytes(BOMB), 1)[:-4] + (100).to_bytes(4, "little")
    with pytest.raises(N5BlockError, match="expected 100 bytes, got more than"):
        payloads.decompress(memoryview(payload), 100, Gzip())


@pytest.mark.parametrize("compression", [Gzip(), Gzip(use_zlib=True), Zstd(), Blosc()], ids=name)
def test_nothing_is_allocated_for_a_size_that_the_payload_cannot_have(
    compression: Compression,
) -> None:
    payload = memoryview(
        bytes(payloads.codec_of(compression).compress(sample(100), compression, 1))
    )
    tracemalloc.start()
    try:
        with pytest.raises(N5BlockError):
            payloads.decompress(payload, 2**31 - 1, compression)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MUCH


@pytest.mark.parametrize(
    ("package", "compression", "extra"),
    [
        pytest.param("lz4.block", Lz4(), "lz4", id="lz4"),
        pytest.param("xxhash", Lz4(), "lz4", id="xxhash"),
        pytest.param("PIL", Jpeg(), "jpeg", id="jpeg"),
    ],
)
def test_a_missing_package_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str, compression: Compression, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(N5MissingDependencyError) as caught:
        payloads.decompress(memoryview(b"x" * 40), 40, compression)
    assert caught.value.kind == "dependency"
    assert f"pip install 'n5zarr[{extra}]'" in str(caught.value)
    assert f"{extra} compression needs the package" in str(caught.value)
