"""Payloads are measured and judged, Zarr's codecs translated, and blocks of any mode encoded."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import json
import lzma
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from n5zarr.codecs.block import (
    Block,
    check_count,
    check_header,
    decode_full,
    decode_strings,
    encode_parts,
    format_block,
    object_payload,
    pad_or_truncate,
    parse_block,
)
from n5zarr.codecs.buffers import (
    REUSED,
    Scratch,
    check_drained,
    max_unpacked,
    read_streams,
    scratch,
)
from n5zarr.codecs.compress import (
    codec_of,
    decompress_all,
    decompress_reused,
    measure,
    zarr_to_compression,
)
from n5zarr.codecs.multiset_merging import canonical, used_only
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.codecs.raw import RawCodec
from n5zarr.codecs.shard import (
    Shard,
    check_no_shard,
    check_not_sharded,
    check_stored_size,
    find_shard,
    in_memory,
    is_likely,
    may_begin,
    shard_text,
    stored_shard,
)
from n5zarr.codecs.single_block import encode_block
from n5zarr.codecs.strings import split_bytes, split_strings
from n5zarr.errors import N5BlockError, N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.block import BlockHeader, BlockMode
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
    parse_compression,
)
from n5zarr.format.data_type import DataType
from n5zarr.format.order import CTuple, N5Tuple
from tests.refusals import refused
from tests.unit.codecs.streams import LZ4_MAGIC, lz4_block, lz4_frame, lz4_piece, numcodecs, packed

DATA = bytes(range(100)) * 3  # 300 bytes
ZLIB = Gzip(use_zlib=True)
JAVA = Path(__file__).parents[2] / "data" / "java" / "compressions.n5"


def java_lz4(*pieces: bytes, end: bool = True) -> bytes:
    """Frame uncompressed pieces as lz4-java does."""
    frames = [lz4_piece(piece, method=0x10, level=0) for piece in pieces]
    return b"".join(frames) + (LZ4_MAGIC + b"\x10" + bytes(12)) * end


def zstd(data: bytes) -> bytes:
    return bytes(numcodecs.Zstd(1).encode(data))


SKIPPABLE = struct.pack("<II", 0x184D2A5F, 3) + b"abc"
LZ4_FRAME = bytes(lz4_frame.compress(DATA))
BLOSC = bytes(numcodecs.Blosc("lz4", 1).encode(DATA))
XZ, ALONE = lzma.compress(DATA), lzma.compress(DATA, format=lzma.FORMAT_ALONE)
JUNK = b"junk"


# number of bytes that are wanted, those that the streams hold, and less what follows them
@pytest.mark.parametrize(
    ("compression", "payload", "n_bytes", "expected"),
    [
        (Raw(), DATA, 300, (300, None)),
        (Raw(), DATA, 7, (300, None)),
        (Gzip(), gzip.compress(DATA), 300, (300, None)),
        (Gzip(), gzip.compress(DATA), 7, (300, None)),
        (Gzip(), gzip.compress(DATA) + gzip.compress(DATA), 301, (600, None)),
        # zlib reads on to the end of the member that it began
        (Gzip(), gzip.compress(DATA[:7]) + gzip.compress(DATA), 7, (7, -len(gzip.compress(DATA)))),
        (ZLIB, zlib.compress(DATA) + JUNK, 300, (300, -4)),
        (ZLIB, zlib.compress(DATA), 7, (300, None)),
        (Bzip2(), bz2.compress(DATA) + bz2.compress(DATA), 301, (600, None)),
        (Bzip2(), bz2.compress(DATA) + JUNK, 300, (300, -4)),
        (Xz(), XZ + JUNK, 300, (300, -4)),
        (Xz(), XZ, 7, (300, None)),
        (Lzma(), ALONE, 300, (300, None)),
        (Lzma(), XZ, 300, (300, None)),
        (Zstd(), zstd(DATA) + JUNK, 300, (300, -4)),
        (Zstd(), zstd(DATA) + zstd(DATA), 301, (600, None)),
        (Zstd(), zstd(DATA) + zstd(DATA), 300, (300, -len(zstd(DATA)))),
        (Zstd(), SKIPPABLE + zstd(DATA) + SKIPPABLE + JUNK, 300, (300, -4)),
        (Blosc(), BLOSC + JUNK, 300, (300, -4)),
        (Blosc(), BLOSC, 7, (300, None)),
        (Lz4(), java_lz4(DATA) + JUNK, 300, (300, -4)),
        (Lz4(), java_lz4(DATA, DATA), 300, (600, None)),
        (Lz4(), java_lz4(DATA, end=False), 300, (300, None)),
        (Lz4(), java_lz4(DATA) + java_lz4(DATA), 300, (300, -len(java_lz4(DATA)))),
        (Lz4(), LZ4_FRAME + JUNK, 300, (300, -4)),
        (Lz4(), LZ4_FRAME, 7, (300, None)),
        (Lz4(), struct.pack("<I", 300) + lz4_block.compress(DATA, store_size=False), 300,
         (300, None)),
        (Lz4(), lz4_block.compress(DATA, store_size=False), 300, (300, None)),
    ],
    ids=[f"{n}" for n in range(28)],
)  # fmt: skip
def test_a_payload_is_measured_to_its_end(
    compression: Compression, payload: bytes, n_bytes: int, expected: tuple[int, int | None]
) -> None:
    found = measure(memoryview(payload), n_bytes, compression)
    assert found == (expected[0], len(payload) + (expected[1] or 0))
    memory = Scratch()
    for _ in range(2):
        data = decompress_reused(memoryview(payload), n_bytes, compression, memory)
        whole = DATA if n_bytes <= 300 else DATA + DATA
        assert bytes(data) == whole[:n_bytes]


@pytest.mark.parametrize(
    "compression", [Gzip(), Bzip2(), Xz(), Zstd(), Blosc(), Lz4(), Raw(), ZLIB]
)
def test_a_payload_of_too_few_bytes_is_not_measured(compression: Compression) -> None:
    payload = packed(DATA, compression)
    for given, found in ((payload, "block payload: "), (b"", "got an empty payload")):
        for n_bytes in (301, 302):
            with pytest.raises(N5BlockError, match=found):
                measure(memoryview(given), n_bytes, compression)


@pytest.mark.parametrize("compression", [Gzip(), Bzip2(), Xz(), Zstd(), Blosc(), Raw()])
def test_a_payload_of_unknown_size_is_decompressed_up_to_a_limit(compression: Compression) -> None:
    payload = memoryview(packed(DATA, compression))
    assert bytes(decompress_all(payload, 301, compression)) == DATA
    with pytest.raises(N5BlockError, match="expected less than 300 bytes, got more"):
        decompress_all(payload, 300, compression)
    if compression != Raw():
        with pytest.raises(N5BlockError, match=f"expected a {compression.type} stream, got an emp"):
            decompress_all(memoryview(b""), 300, compression)


TWO = 2 * [DATA]


@pytest.mark.parametrize(
    ("compression", "payload", "is_bounded", "decodes"),
    [
        (Raw(), DATA, True, True), (Gzip(), gzip.compress(DATA), None, True),
        (Gzip(), b"".join(map(gzip.compress, TWO)), False, None),
        (ZLIB, zlib.compress(DATA), None, True), (ZLIB, zlib.compress(DATA + b"1"), None, False),
        (ZLIB, zlib.compress(DATA[:-1]), None, False), (Bzip2(), bz2.compress(DATA), None, True),
        (Bzip2(), bz2.compress(DATA + b"1"), None, False), (Bzip2(), b"BZh junk", None, False),
        (Bzip2(), b"".join(map(bz2.compress, TWO)), False, None), (Xz(), XZ, None, True),
        (Xz(), XZ + XZ, False, None), (Zstd(), zstd(DATA), True, True),
        (Blosc(), BLOSC, True, True),
    ],
    ids=[f"{n}" for n in range(14)],
)  # fmt: skip
def test_whether_other_decoders_expand_a_payload_to_more(
    compression: Compression, payload: bytes, *, is_bounded: bool | None, decodes: bool | None
) -> None:
    codec, view = codec_of(compression), memoryview(payload)
    assert codec.is_bounded(view, 300, compression) is is_bounded
    if decodes is not None:
        assert codec.decodes(view, 300, compression) is decodes


@pytest.mark.parametrize(
    ("codec", "configuration", "expected"),
    [
        ("gzip", {"level": 3}, Gzip(level=3)),
        ("gzip", {}, Gzip(level=6)),
        ("numcodecs.zlib", {"level": 3}, Gzip(use_zlib=True, level=3)),
        ("bz2", {}, Bzip2(block_size=9)),
        ("bz2", {"level": 2}, Bzip2(block_size=2)),
        ("bz2", {"level": 77}, Bzip2()),
        ("lzma", {}, Xz(preset=6)),
        ("lzma", {"preset": None}, Xz(preset=6)),
        ("lzma", {"preset": 0}, Xz(preset=0)),
        ("lz4", {"acceleration": 4}, Lz4()),
        ("zstd", {}, Zstd(level=3)),
        ("zstd", {"level": -7}, Zstd(level=-7)),
        ("blosc", {}, Blosc(cname="lz4", clevel=5, shuffle=1, block_size=0)),
        ("blosc", {"cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "blocksize": 4},
         Blosc(cname="zstd", clevel=3, shuffle=2, block_size=4)),
        ("blosc", {"shuffle": "noshuffle"}, Blosc(cname="lz4", clevel=5, shuffle=0, block_size=0)),
        ("blosc", {"shuffle": 2}, Blosc(cname="lz4", clevel=5, shuffle=2, block_size=0)),
        ("blosc", {"shuffle": "odd"}, None),
        ("delta", {}, None),
        ("jpeg", {}, None),
    ],
)  # fmt: skip
def test_the_compression_that_is_nearest_to_a_codec_of_zarr(
    codec: str, configuration: dict[str, Any], expected: Compression | None
) -> None:
    found = zarr_to_compression(codec, configuration)
    if configuration == {"shuffle": "odd"}:
        assert isinstance(found, Blosc)  # with the defaults of N5
    else:
        assert found == expected


BLOSC_5 = {"cname": "zstd", "clevel": 5, "blocksize": 64}
LZMA = {"format": 1, "check": -1, "filters": None}


# numcodecs' and Zarr v3's documentation of each codec
@pytest.mark.parametrize(
    ("compression", "numcodec", "zarr_codec"),
    [
        (Raw(), None, None),
        (Jpeg(), None, None),
        (Gzip(level=5), {"id": "gzip", "level": 5}, ("gzip", {"level": 5})),
        (Gzip(use_zlib=True, level=5), {"id": "zlib", "level": 5},
         ("numcodecs.zlib", {"level": 5})),
        (Bzip2(block_size=5), {"id": "bz2", "level": 5}, ("numcodecs.bz2", {"level": 5})),
        (Xz(preset=5), {"id": "lzma", "preset": 5} | LZMA,
         ("numcodecs.lzma", {"preset": 5} | LZMA)),
        (Lzma(format=2), {"id": "lzma", "preset": None} | LZMA,
         ("numcodecs.lzma", {"preset": None} | LZMA)),
        (Lz4(), {"id": "lz4", "acceleration": 1}, ("numcodecs.lz4", {"acceleration": 1})),
        (Zstd(level=5), {"id": "zstd", "level": 5}, ("zstd", {"level": 5, "checksum": False})),
        (Blosc(cname="zstd", clevel=5, shuffle=2, block_size=64),
         {"id": "blosc", "shuffle": 2} | BLOSC_5, ("blosc", {"shuffle": "bitshuffle"} | BLOSC_5)),
    ],
)  # fmt: skip
def test_the_codec_of_zarr(compression: Compression, numcodec: Any, zarr_codec: Any) -> None:
    codec = codec_of(compression)
    assert codec.numcodec(compression) == numcodec
    assert codec.zarr_codec(compression) == zarr_codec
    assert codec.within_limits(compression, 2) == compression
    assert codec.within_zarr_limits(compression) == compression
    assert codec.passes is not isinstance(compression, Jpeg | Lz4 | Lzma)


def test_parameters_are_brought_into_limits_and_some_are_only_read() -> None:
    default = Gzip(level=-1)
    assert codec_of(default).within_limits(default, 2) == default
    assert codec_of(default).within_zarr_limits(default) == Gzip(level=6)
    snappy = Blosc(cname="snappy")
    assert codec_of(snappy).within_zarr_limits(snappy) == Blosc(cname="lz4")
    for compression in (snappy, Jpeg()):
        with refused(N5UnsupportedError, "compression", "can only be read"):
            codec_of(compression).check_writable(compression)
        with pytest.raises(N5UnsupportedError):
            codec_of(compression).compress(DATA, compression, 1)
    codec_of(default).check_writable(default)
    detecting: list[Compression] = [Raw(), Gzip(), Zstd(), Blosc()]
    for each in (Raw(), Gzip(), ZLIB, Bzip2(), Xz(), Lz4(), Zstd(), Blosc(), Jpeg()):
        own = codec_of(each)
        assert own.detects_incomplete(each) is (each in detecting)
        ends = not isinstance(each, Lz4 | Zstd | Jpeg)
        assert own.judges_ends is ends


@pytest.mark.parametrize(
    ("compression", "start", "size", "expected"),
    [
        (Gzip(), b"\x1f\x8b\x08", 18, 18), (Gzip(), b"\x1f\x8b\x08", 17, None),
        (Gzip(), b"\x1f\x8b\x07", 18, None), (ZLIB, zlib.compress(DATA)[:32], 99, 99),
        (ZLIB, b"\x78\x9d" + bytes(8), 99, None), (ZLIB, b"\x78\x9c" + bytes(5), 99, None),
        (ZLIB, b"\x78\x9c" + bytes(6), 99, 99), (Bzip2(), b"BZh", 99, 99),
        (Bzip2(), b"BZi", 9, None),
        (Xz(), XZ[:32], 99, 99), (Xz(), b"\xfd7zXZ\1", 99, None), (Raw(), DATA[:32], 300, 300),
        (Raw(), DATA[:32], 301, None), (Zstd(), zstd(DATA)[:32], 99, 99),
        (Zstd(), zstd(DATA)[:17], 99, None), (Zstd(), zstd(DATA)[:18], 99, 99),
        (Zstd(), zstd(DATA + b"1")[:32], 99, None),
        (Blosc(), BLOSC[:32], len(BLOSC), len(BLOSC)), (Blosc(), BLOSC[:32], 9999, len(BLOSC)),
        (Blosc(), bytes(numcodecs.Blosc("lz4", 1).encode(DATA[1:])), len(BLOSC), None),
        (Lz4(), java_lz4(DATA)[:32], 99, None), (Jpeg(), DATA[:32], 99, None),
        *[(of, zlib.compress(DATA)[:32], 99, None) for of in (Gzip(), Xz(), Zstd())],
    ],
    ids=[f"{n}" for n in range(25)],
)  # fmt: skip
def test_a_payload_is_judged_by_its_beginning(
    compression: Compression, start: bytes, size: int, expected: int | None
) -> None:
    found = codec_of(compression).seems_usable(memoryview(start), size, 300, compression)
    assert found == expected


def test_blocks_of_java_are_judged_by_their_beginning_as_by_all_of_them() -> None:
    n_usable = 0
    for document in JAVA.rglob("attributes.json"):
        members = json.loads(document.read_text())
        if "compression" not in members:
            continue
        compression = parse_compression(members["compression"])
        item_size = int(members["dataType"].lstrip("uintfloa")) // 8
        for file in document.parent.rglob("*"):
            if not file.is_file() or not file.name.isdigit():
                continue
            block = memoryview(file.read_bytes())
            header = BlockHeader.from_bytes(block)
            n_bytes = math.prod(header.block_shape) * item_size
            payload = block[header.n_bytes :]
            codec = codec_of(compression)
            judged = codec.seems_usable(payload[:32], len(payload), n_bytes, compression)
            assert judged == codec.usable(payload, n_bytes, compression), file
            n_usable += judged is not None
    assert n_usable > 500


def test_a_buffer_of_blosc_that_is_cut_is_damaged() -> None:
    found = f"expected a blosc buffer of {len(BLOSC)} bytes, got {len(BLOSC) - 1}"
    with pytest.raises(N5BlockError, match=found):
        codec_of(Blosc()).seems_usable(memoryview(BLOSC[:32]), len(BLOSC) - 1, 300, Blosc())


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        (gzip.compress(DATA), "gzip"), (zstd(DATA), "zstd"), (bz2.compress(DATA), "bzip2"),
        (XZ, "xz"), (java_lz4(DATA), "lz4"), (LZ4_FRAME, "lz4"), (BLOSC, "blosc"),
    ],
    ids=["gzip", "zstd", "bzip2", "xz", "lz4", "lz4-frame", "blosc"],
)  # fmt: skip
def test_a_compressed_payload_is_not_read_as_elements(payload: bytes, name: str) -> None:
    codec, view = RawCodec(), memoryview(payload)
    for n_bytes in (300, 7) if name != "blosc" else (300, 299):
        for read in (codec.decompress, codec.measure, codec.usable):
            with pytest.raises(N5BlockError, match=f"expected {n_bytes} bytes, .* got a {name} "):
                read(view, n_bytes, Raw())
    assert bytes(codec.decompress(view, len(view), Raw())) == payload  # it has the right length
    assert codec.usable(view[1:], 300, Raw()) == (300 if len(view) > 300 else None)
    # of blosc, the lengths tell: it must be long enough, and the buffer whole
    longer = memoryview(BLOSC + b"1")
    assert codec.usable(longer, 300, Raw()) is None
    assert codec.usable(memoryview(BLOSC), 301, Raw()) is None


def test_a_pixel_is_measured_by_the_end_of_its_image() -> None:
    image = importlib.import_module("PIL.Image").new("L", (3, 2), 7)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=100)
    payload = file.getvalue()
    assert measure(memoryview(payload + JUNK), 6, Jpeg()) == (6, len(payload))
    assert measure(memoryview(payload), 5, Jpeg()) == (6, len(payload))


@pytest.mark.parametrize(
    ("payload", "expected"),
    [(java_lz4(DATA), "Java"), (LZ4_FRAME, "rust-n5"), (struct.pack("<I", 300), "zarr-python 2"),
     (struct.pack("<I", 299), "z5")],
    ids=["java", "frame", "numcodecs", "z5"],
)  # fmt: skip
def test_the_program_that_framed_lz4_is_named(payload: bytes, expected: str) -> None:
    assert codec_of(Lz4()).framing(memoryview(payload), 300) == expected
    assert codec_of(Gzip()).framing(memoryview(payload), 300) is None


# ---------------------------------------------------------------------- memory, streams


def test_memory_is_lent_and_reused_for_a_purpose() -> None:
    memory = Scratch()
    first = memory.bytes(5, "a")
    first[:] = b"12345"
    assert bytes(memory.bytes(3, "a")) == b"123"
    assert memory.bytes(6, "a").nbytes == 6
    assert memory.bytes(2, "b").obj is not memory.bytes(2, "a").obj
    with scratch() as outer:
        with scratch() as inner:
            assert inner is not outer
        with scratch() as again:
            assert again is inner
    with scratch() as later:
        assert later is outer
    too_large = decompress_reused(memoryview(zstd(bytes(REUSED + 1))), REUSED + 1, Zstd(), memory)
    assert len(too_large) == REUSED + 1
    reused = decompress_reused(memoryview(zstd(DATA)), 300, Zstd(), memory)
    assert isinstance(reused, memoryview)
    assert reused.obj is memory.bytes(300, "decompressed").obj
    damaged = bytearray(BLOSC)
    damaged[20:24] = b"\xff\xff\xff\x7f"
    with pytest.raises(N5BlockError):
        decompress_reused(memoryview(bytes(damaged)), 300, Blosc(), memory)


def test_the_surplus_of_a_stream_is_limited() -> None:
    assert max_unpacked(7) == 2**20 + 14
    check_drained(7, 2**20 + 14)
    with pytest.raises(N5BlockError, match="expected 7 bytes, got more than"):
        check_drained(7, 2**20 + 15)
    large = bz2.compress(bytes(2**20 + 7 + 15))
    with pytest.raises(N5BlockError, match="expected 7 bytes, got more than"):
        read_streams(bz2.BZ2Decompressor, memoryview(large), 7)
    fits = bz2.compress(bytes(2**20 + 7))
    found = read_streams(bz2.BZ2Decompressor, memoryview(fits), 7)
    assert found == (bytes(7), 2**20 + 7, len(fits))


def test_streams_are_read_one_after_the_other_until_there_are_enough() -> None:
    parts = [bz2.compress(DATA), bz2.compress(b""), bz2.compress(DATA), bz2.compress(b"x")]
    payload = memoryview(b"".join(parts))
    found = read_streams(bz2.BZ2Decompressor, payload, 301)
    assert found == ((DATA + DATA)[:301], 600, sum(map(len, parts[:3])))
    assert read_streams(bz2.BZ2Decompressor, payload, 999)[1:] == (601, len(payload))
    only = read_streams(bz2.BZ2Decompressor, payload, 301, lambda _: False)
    assert only == (DATA, 300, len(parts[0]))
    with pytest.raises(N5BlockError, match="expected 300 bytes, got a stream cut off after 0"):
        read_streams(bz2.BZ2Decompressor, memoryview(parts[0])[:20], 300)
    noise = np.random.default_rng(7).bytes(2**18)
    cut = memoryview(lzma.compress(noise))
    assert read_streams(lzma.LZMADecompressor, cut, 2**18).data == noise
    with pytest.raises(N5BlockError, match="expected 3000 bytes, got a stream cut off after 3000"):
        read_streams(lzma.LZMADecompressor, cut[:-4], 3000)


# ---------------------------------------------------------------------- blocks of any mode


def header(*shape: int, mode: BlockMode = BlockMode.DEFAULT, n: int | None = None) -> BlockHeader:
    return BlockHeader(mode=mode, block_shape=N5Tuple(shape), n_elements=n)


VARLENGTH, OBJECT = BlockMode.VARLENGTH, BlockMode.OBJECT


@pytest.mark.parametrize(
    ("data", "own", "data_type", "expected"),
    [
        ([1, 2, 3, 4, 5, 6], header(3, 2), DataType.UINT16,
         "0000 0002 00000003 00000002 0001 0002 0003 0004 0005 0006"),
        ([7], header(3, 2, mode=VARLENGTH, n=1), DataType.INT32,
         "0001 0002 00000003 00000002 00000001 00000007"),
        (["a", "\u00fc"], header(2, mode=VARLENGTH, n=0), DataType.STRING,
         "0001 0001 00000002 00000005 6100 c3bc00"),
        (["a", "b"], header(2), DataType.STRING, "0000 0001 00000002 6100 6200"),
        (b"abc", header(mode=OBJECT, n=9), DataType.OBJECT, "0002 00000003 616263"),
    ],
    ids=["numbers", "varlength", "strings", "strings-of-mode-0", "object"],
)  # fmt: skip
def test_a_block_of_any_mode_is_written_and_read(
    data: Any, own: BlockHeader, data_type: DataType, expected: str
) -> None:
    is_number = isinstance(data, list) and not isinstance(data[0], str)
    given = np.array(data, data_type.value) if is_number else data
    written = format_block(Block(own, given), data_type, Raw())
    assert written == bytes.fromhex(expected)
    read = parse_block(written, len(own.block_shape), data_type, Raw())
    assert read.header.block_shape == own.block_shape
    assert list(read.data) == list(data)
    if is_number:
        assert isinstance(read.data, np.ndarray)
        assert read.data.dtype == np.dtype(data_type.value)
        assert read.data.dtype.isnative


@pytest.mark.parametrize(
    ("data", "own", "data_type", "found"),
    [
        (["a"], header(2, mode=VARLENGTH, n=0), DataType.STRING, r"strings for \(2,\), got 1"),
        (np.zeros(5), header(3, 2), DataType.UINT8, "expected 6 elements, got 5"),
        (b"abc", header(3), DataType.OBJECT, "mode: expected 2 for object"),
        (np.zeros(3), header(mode=OBJECT, n=3), DataType.UINT8, "mode: expected 0 or 1 for uint8"),
        (np.zeros(0), header(0), DataType.UINT8, "expected sizes of at least 1"),
    ],
)
def test_a_header_that_does_not_fit_its_data_is_refused(
    data: Any, own: BlockHeader, data_type: DataType, found: str
) -> None:
    with refused(N5BlockError, "header", found):
        format_block(Block(own, data), data_type, Raw())


def test_a_block_is_decoded_full_size_with_a_fill_value() -> None:
    block = memoryview(bytes.fromhex("0000 0002 00000002 00000001 0001 0002"))
    full = decode_full(block, N5Tuple((3, 2)), DataType.UINT16, Raw(), 9)
    assert full.tolist() == [[1, 2, 9], [9, 9, 9]]
    assert decode_full(block, N5Tuple((3, 2)), DataType.UINT16, Raw())[1].tolist() == [0, 0, 0]
    cut = decode_full(block, N5Tuple((1, 1)), DataType.UINT16, Raw())
    assert cut.tolist() == [[1]]
    whole = np.arange(6).reshape(2, 3)
    assert np.shares_memory(pad_or_truncate(whole, CTuple((2, 2))), whole)


def test_the_limits_of_a_header() -> None:
    check_header(header(3, mode=VARLENGTH, n=2**31 - 1), 1, DataType.UINT8)
    with pytest.raises(N5BlockError, match="expected at most 2147483647 bytes, got 2147483648"):
        check_header(header(3, mode=VARLENGTH, n=2**31), 1, DataType.UINT8)
    check_header(header(*[1] * 64), 64, DataType.UINT8)
    with pytest.raises(N5BlockError, match="expected at most 64 dimensions, got 65"):
        check_header(header(*[1] * 65), 65, DataType.UINT8)


@pytest.mark.parametrize(
    ("n", "data_type", "is_hinted"),
    [(7, DataType.UINT8, True), (5, DataType.UINT8, False), (7, DataType.UINT16, False)],
)
def test_more_bytes_than_voxels_may_be_label_multisets(
    n: int, data_type: DataType, is_hinted: bool
) -> None:
    check_count(header(3, 2, mode=VARLENGTH, n=6), data_type)
    with refused(N5BlockError, "varlength", f"expected 6 elements for the box .*, got {n}") as err:
        check_count(header(3, 2, mode=VARLENGTH, n=n), data_type)
    assert ("isLabelMultiset" in str(err.value)) is is_hinted


def test_text_may_be_longer_than_its_header_says() -> None:
    text = b"a\0" * 3
    block = bytes.fromhex("0001 0001 00000003 00000001") + gzip.compress(text)
    assert decode_strings(memoryview(block), 1, Gzip()).tolist() == ["a"] * 3
    long = bytes.fromhex("0001 0001 00000001 00000001") + gzip.compress(bytes([97]) * 2**22)
    with pytest.raises(N5BlockError, match="expected less than 4194304 bytes"):
        decode_strings(memoryview(long), 1, Gzip())
    fits = bytes.fromhex("0001 0001 00000001 00000001") + gzip.compress(bytes([97]) * (2**22 - 1))
    assert len(decode_strings(memoryview(fits), 1, Gzip())[0]) == 2**22 - 1
    own = bytes.fromhex("0001 0001 00000001 00200001") + gzip.compress(bytes([97]) * 2**22)
    assert len(decode_strings(memoryview(own), 1, Gzip())[0]) == 2**22


def test_objects_are_read_to_the_length_of_their_header() -> None:
    block = memoryview(bytes.fromhex("0002 00000003 616263 64"))
    assert object_payload(block, Raw()) == b"abc"
    values = np.array([[b"a", b""]], object)
    head, payload = encode_parts(values, DataType.OBJECT, Raw())
    expected = "02000000 01000000 61 00000000"
    assert (head.hex(), bytes(payload)) == ("00020000000d", bytes.fromhex(expected))
    assert split_bytes(bytes.fromhex(expected), 2).tolist() == [b"a", b""]
    assert split_bytes(bytes.fromhex("01000000 00000000"), 1).tolist() == [b""]
    with pytest.raises(N5BlockError, match="expected 2 values of bytes, got 11 bytes in total"):
        split_bytes(bytes.fromhex("02000000 00000000 000000"), 2)
    for data in (b"", b"\0\0\0"):
        with pytest.raises(N5BlockError, match="expected 0 values"):
            split_bytes(data, 0)
    assert split_strings(b"", 2**20) == [""] * 2**20
    with pytest.raises(N5BlockError, match=f"expected {2**20 + 1} strings, got 0"):
        split_strings(b"", 2**20 + 1)
    with pytest.raises(N5BlockError, match="expected 1 strings, got 3 or more"):
        split_strings(b"a\0b\0c\0", 1)


def test_a_block_of_an_array_is_limited_to_two_gigabytes() -> None:
    longest = np.broadcast_to(np.uint8(1), (2**31,))
    with refused(N5UnrepresentableError, "header", "and at most 2147483647 bytes"):
        encode_block(longest, compression={"type": "raw"})
    for dtype, data_type in (
        ("i8", "float64"),
        ("u8", "float32"),
        ("f8", "float32"),
        ("U1", "int8"),
    ):
        with pytest.raises(N5UnrepresentableError, match=f"converts to {data_type} without loss"):
            encode_block(np.zeros(3, dtype), compression={"type": "raw"}, data_type=data_type)
    for dtype, data_type in (("i4", "float64"), ("u1", "int16"), ("f4", "float64")):
        block = encode_block(np.ones(1, dtype), compression={"type": "raw"}, data_type=data_type)
        assert (
            block[8:]
            == np.ones(1, data_type).astype(np.dtype(data_type).newbyteorder(">")).tobytes()
        )


# ---------------------------------------------------------------------- shards of Java N5 4

BLOCK = bytes.fromhex("0000 0001 00000002 0001 0002")


def index(*entries: tuple[int, int], form: str = ">") -> bytes:
    return b"".join(struct.pack(f"{form}QQ", *entry) for entry in entries)


SHARD = BLOCK + BLOCK + index((0, 12), (12, 12))
ONE = BLOCK + index((0, 12))
MISSING = (2**64 - 1, 2**64 - 1)


@pytest.mark.parametrize(
    ("data", "ranges", "begins"),
    [
        (SHARD, ((0, 12), (12, 12)), 0), (BLOCK + index((0, 12), MISSING), ((0, 12), None), 0),
        (index((32, 12), (44, 12)) + BLOCK + BLOCK, ((32, 12), (44, 12)), 32),
        (index(MISSING, (32, 12)) + BLOCK, (None, (32, 12)), 32),
        (BLOCK + BLOCK + index((0, 12), (12, 12), form="<"), ((0, 12), (12, 12)), 0),
        (BLOCK + index((0, 11)), None, 0), (BLOCK + index((1, 12)), None, 0),
        (BLOCK + b"x" + index((0, 12)), None, 0), (BLOCK + index((0, 0), (0, 12)), None, 0),
    ],
    ids=[f"{n}" for n in range(9)],
)  # fmt: skip
def test_an_index_must_describe_the_whole_file(data: bytes, ranges: Any, begins: int) -> None:
    found = find_shard(*in_memory(data))
    assert found == (None if ranges is None else Shard(ranges, begins))
    if found is not None:
        assert found.n == len(ranges)
        assert ("index at the start" in shard_text(found)) is bool(begins)
        assert f"shard of Java N5 4 with {found.n} chunks" in shard_text(found)


def test_a_shard_of_one_block_is_read_and_not_replaced() -> None:
    args = DataType.UINT16, Gzip()
    check_no_shard(memoryview(ONE), *args)
    for data, n in ((ONE, "1 chunk,"), (SHARD, "2 chunks")):
        with refused(N5BlockError, "shard", rf"^here: expected a block, got a shard .*{n}"):
            check_not_sharded(*in_memory(data), *args, where=lambda: "here")
        with pytest.raises(N5BlockError, match=r"^expected a block, got a shard"):
            check_not_sharded(*in_memory(data), *args)
    with pytest.raises(N5BlockError, match="2 chunks, index at the end"):
        check_no_shard(memoryview(SHARD), *args)
    headless = b"\xff" * 12 + index((0, 12))
    with pytest.raises(N5BlockError, match="1 chunk"):
        check_no_shard(memoryview(headless), *args)
    # an uncompressed block of this length is a block
    raw = bytes.fromhex("0000 0001 0000000a") + SHARD[:4] + index((0, 12))
    assert stored_shard(*in_memory(raw), DataType.UINT16, Raw()) is None
    assert stored_shard(*in_memory(SHARD[-19:]), *args) is None
    check_not_sharded(*in_memory(BLOCK), *args)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("0000 0001 00000005", False), ("0001 0003 00000007", False), ("0000 0002 00000002", True),
        ("0000 0001 00000002", False), ("0002 0001 00000005", True), ("0100 0001 00000005", True),
        ("0000 0000 00000005", True), ("0000 0040 00000005", False), ("0000 0041 00000005", True),
        ("0000 0101 00000005", True), ("0000 0002 00000003", False),
    ],
)  # fmt: skip
def test_beginnings_of_an_index(start: str, *, expected: bool) -> None:
    assert may_begin(bytes.fromhex(start)) is expected


@pytest.mark.parametrize(
    ("last", "size", "expected"),
    [
        (bytes(4) + index((12, 12)), 40, True), (bytes(4) + index((12, 12)), 39, False),
        (index((12, 12)) + b"abcd", 44, True), (index((12, 12)) + b"abcd", 43, False),
        (bytes(4) + index((12, 12), form="<"), 40, True), (b"\1" * 4 + index(MISSING), 99, True),
        (index(MISSING) + b"abcd", 99, True), (bytes(20), 99, False), (b"\1" * 20, 99, False),
        (index((12, 12)), 40, False),
    ],
)  # fmt: skip
def test_ends_of_an_index(last: bytes, size: int, *, expected: bool) -> None:
    assert is_likely(last, size) is expected


def test_a_file_that_is_far_longer_than_its_elements_is_not_read() -> None:
    most = 12 + 2 * 16 + 2**20 - 4  # of two elements of at most eight bytes
    longest = BLOCK + bytes(most - 12)
    check_stored_size(*in_memory(longest))
    with refused(N5BlockError, "payload", rf"at most {most} bytes of .2,., got {most + 1}"):
        check_stored_size(*in_memory(longest + b"1"))
    with pytest.raises(N5BlockError, match="at most"):
        check_stored_size(*in_memory(longest), 1)
    with refused(N5BlockError, "header"):
        check_stored_size(*in_memory(b"\0\0"))
    many = BLOCK * 10**5
    shard = many + index(*((12 * k, 12) for k in range(10**5)))
    with refused(N5BlockError, "shard", "with 100000 chunks"):
        check_stored_size(*in_memory(shard))
    check_stored_size(2**30, in_memory(bytes.fromhex("0002 00000001"))[1])


# ---------------------------------------------------------------------- label multisets


def test_lists_that_no_voxel_has_do_not_count() -> None:
    multisets = LabelMultisets([[2, 0], [2, 2]], [0, 1, 3, 5], [5, 6, 7, 9, 8], [1, 1, 1, 4, 2])
    assert repr(multisets) == "<LabelMultisets of 2x2 voxels, 3 lists, 5 entries>"
    assert multisets.unique_labels().tolist() == [5, 8, 9]
    assert multisets[0, 0] == {9: 4, 8: 2}
    assert multisets[1].shape == (2,)
    assert multisets.argmax().tolist() == [[9, 5], [9, 9]]
    assert multisets.totals().tolist() == [[6, 1], [6, 6]]
    assert multisets.count(8).tolist() == [[2, 0], [2, 2]]
    assert [part.tolist() for part in multisets.to_csr()] == [
        [0, 2, 3, 5, 7], [9, 8, 5, 9, 8, 9, 8], [4, 2, 1, 4, 2, 4, 2]
    ]  # fmt: skip
    part = used_only(multisets, (slice(0, 1), slice(1, 2)))
    assert (part.offsets.tolist(), part.labels.tolist(), part.lists.tolist()) == (
        [0, 1], [5], [[0]],
    )  # fmt: skip
    # in the order in which voxels need them, labels sorted
    one = canonical(multisets)
    assert one.lists.tolist() == [[0, 1], [0, 0]]
    assert one.labels.tolist() == [8, 9, 5]
    assert one.counts.tolist() == [2, 4, 1]
    assert multisets.count(2**64 - 1).sum() == 0
    assert LabelMultisets.of(np.zeros((2, 3), "u8")).is_background
    for labels, counts in (([0, 0], [1, 2]), ([0, 1], [1, 1])):
        assert not LabelMultisets([0, 1], [0, 1, 2], labels, counts).is_background
    assert LabelMultisets([0], [0, 1, 2], [0, 7], [1, 9]).is_background
    assert not LabelMultisets([0], [0, 2], [0, 7], [1, 9]).is_background
    assert not LabelMultisets([0], [0, 0], [], []).is_background
