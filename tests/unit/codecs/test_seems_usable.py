"""The beginning of a payload tells as much as the whole, for damaged blocks of Java."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path

import pytest

from n5zarr.codecs.compress import codec_of
from n5zarr.errors import N5BlockError
from n5zarr.format.block import BlockHeader
from n5zarr.format.compression import Blosc, Gzip, Raw, Xz, Zstd, parse_compression

JAVA = Path(__file__).parents[2] / "data" / "java" / "compressions.n5"


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
            judged = codec_of(compression).seems_usable(
                payload[:32], len(payload), n_bytes, compression
            )
            assert judged == codec_of(compression).usable(payload, n_bytes, compression), file
            n_usable += judged is not None
    assert n_usable > 500


def test_other_streams_are_not_taken() -> None:
    stream = memoryview(zlib.compress(bytes(100)))
    for compression in (Gzip(), Xz(), Zstd()):
        assert (
            codec_of(compression).seems_usable(stream[:32], len(stream), 100, compression) is None
        )
    assert codec_of(Gzip(use_zlib=True)).seems_usable(
        stream[:32], len(stream), 100, Gzip(use_zlib=True)
    ) == len(stream)
    assert codec_of(Raw()).seems_usable(memoryview(bytes(32)), 100, 100, Raw()) == 100
    assert codec_of(Raw()).seems_usable(memoryview(bytes(32)), 101, 100, Raw()) is None


def test_a_buffer_of_blosc_that_is_cut_is_damaged() -> None:
    header = bytes([2, 1, 0x3, 1]) + b"".join(n.to_bytes(4, "little") for n in (100, 100, 116))
    start = memoryview(header + bytes(16))
    assert codec_of(Blosc()).seems_usable(start, 116, 100, Blosc()) == 116
    assert codec_of(Blosc()).seems_usable(start, 116, 200, Blosc()) is None
    with pytest.raises(N5BlockError, match="expected a blosc buffer of 116 bytes, got 115"):
        codec_of(Blosc()).seems_usable(start, 115, 100, Blosc())
