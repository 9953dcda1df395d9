"""`lz4` is read as Java's `LZ4Block` stream, and in three other formats of that name."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
import zarr

import n5zarr
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Lz4
from tests.refusals import refused
from tests.unit.codecs.streams import (
    DATA,
    LZ4_MAGIC,
    lz4_block,
    lz4_frame,
    lz4_piece,
    numcodecs,
    packed,
    unpacked,
    usable,
)

END = LZ4_MAGIC + b"\x16" + bytes(12)
# 48 bytes as lz4-java writes them, with the checksum that it printed
SAMPLE_HEAD = bytes.fromhex("4c5a34426c6f636b 16 30000000 30000000 86192f01")


def read(payload: bytes, n_bytes: int = len(DATA)) -> bytes:
    return unpacked(payload, Lz4(), n_bytes)


def unmasked_data() -> bytes:
    """Find data whose checksum has one of the four bits that Java drops."""
    return next(
        data
        for data in (bytes([i]) * 40 for i in range(256))
        if xxhash.xxh32_intdigest(data, 0x9747B28C) >> 28
    )


BARE = lz4_block.compress(DATA, store_size=False)
READ = {
    "one-piece": lz4_piece(DATA) + END,
    "two-pieces": lz4_piece(DATA[:999]) + lz4_piece(DATA[999:]) + END,
    "raw-piece": lz4_piece(DATA, method=0x10) + END,
    "no-end-mark": lz4_piece(DATA),
    "junk-after-the-end-mark": lz4_piece(DATA) + END + b"junk",
    "junk-instead-of-the-end-mark": lz4_piece(DATA) + b"junk",
    "surplus": lz4_piece(DATA + b"surplus") + END,
    "lowest-level-that-fits": lz4_piece(DATA, level=1) + END,
    "frame-of-rust-n5": lz4_frame.compress(DATA),
    "frame-with-checksum": lz4_frame.compress(DATA, content_checksum=True),
    "frame-without-size": lz4_frame.compress(DATA, store_size=False),
    "numcodecs-of-zarr2": numcodecs.LZ4().encode(DATA),
    "bare-block-of-z5": BARE,
}


@pytest.mark.parametrize("payload", READ.values(), ids=READ)
def test_all_four_formats_are_read(payload: bytes) -> None:
    assert read(payload) == DATA


def test_the_checksum_of_the_sample_is_that_of_java() -> None:
    # the sample's checksum has 28 bits; data of 48 bytes for which it is the one printed by Java
    # are not given, so only the layout can be compared
    head = lz4_piece(bytes(48), method=0x10)[:21]
    assert (head[:17], len(head)) == (SAMPLE_HEAD[:17], len(SAMPLE_HEAD))


@pytest.mark.parametrize(
    ("block_size", "token"),
    [(64, 0x10), (1024, 0x10), (1025, 0x11), (65536, 0x16), (65537, 0x17), (2**25, 0x1F)],
)
def test_the_token_holds_the_level_of_the_block_size(block_size: int, token: int) -> None:
    payload = packed(bytes(range(10)), Lz4(block_size=block_size))
    assert payload[8] == token  # ten different bytes do not compress: raw
    assert payload[-21:] == LZ4_MAGIC + bytes([token & 0x1F]) + bytes(12)


def test_data_is_cut_into_pieces_of_the_block_size() -> None:
    pieces = lz4_piece(DATA[:1000], level=0) + lz4_piece(DATA[1000:], level=0)
    end = LZ4_MAGIC + bytes([0x10]) + bytes(12)
    assert packed(DATA, Lz4(block_size=1000)) == pieces + end


def test_no_data_is_an_end_mark() -> None:
    assert packed(b"", Lz4()) == END


def test_the_checksum_has_28_bits_as_in_java() -> None:
    data = unmasked_data()
    (checksum,) = struct.unpack_from("<I", packed(data, Lz4()), 17)
    assert checksum == xxhash.xxh32_intdigest(data, 0x9747B28C) & 0x0FFFFFFF


def test_a_full_checksum_is_refused_as_in_java() -> None:
    data = unmasked_data()
    with pytest.raises(N5BlockError, match="checksum does not match"):
        read(lz4_piece(data, mask=0xFFFFFFFF) + END, len(data))


DAMAGED = {
    "cut-piece": (lz4_piece(DATA)[:-1], "damaged or truncated"),
    "cut-header": (lz4_piece(DATA)[:15], "expected 2000 bytes, got 0"),
    "only-an-end-mark": (END, "expected 2000 bytes, got 0"),
    "too-few": (lz4_piece(DATA[:999]) + END, "expected 2000 bytes, got 999"),
    "unknown-method": (lz4_piece(DATA, method=0x30), "damaged or truncated"),
    "level-too-low": (lz4_piece(DATA, level=0), "more than its level allows"),
    "length-too-low": (lz4_piece(DATA, announced=1999), "LZ4Block frame: "),
    "length-too-high": (lz4_piece(DATA, announced=2001), "LZ4Block frame: "),
    "raw-length": (lz4_piece(DATA, method=0x10, announced=1999), "expected 1999 bytes, got 2000"),
    "not-lz4": (lz4_piece(DATA, stored=DATA), "LZ4Block frame: "),
    "checksum": (lz4_piece(DATA)[:17] + bytes(4) + lz4_piece(DATA)[21:], "checksum does not match"),
    "second-magic": (
        lz4_piece(DATA[:999]) + b"junk instead of a second magic" + lz4_piece(DATA[999:]),
        "damaged or truncated"),
    "junk": (b"neither of the four formats", "got neither"),
    "one-byte": (b"\0", "block payload: "),
}  # fmt: skip


@pytest.mark.parametrize(("payload", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named(payload: bytes, message: str) -> None:
    with refused(N5BlockError, "payload", message):
        read(payload)


FRAME = lz4_frame.compress(DATA, content_checksum=True)
CUT = {"frame": FRAME, "numcodecs": numcodecs.LZ4().encode(DATA), "bare": BARE}


@pytest.mark.parametrize("payload", CUT.values(), ids=CUT)
def test_other_formats_cut_anywhere_never_give_other_data(payload: bytes) -> None:
    for length in range(1, len(payload)):
        try:
            assert read(payload[:length]) == DATA, f"{length} of {len(payload)} bytes"
        except N5BlockError:
            continue


def test_a_changed_byte_in_a_checked_frame_never_gives_other_data() -> None:
    for at in range(len(FRAME)):
        broken = bytearray(FRAME)
        broken[at] ^= 0x55
        try:
            assert read(bytes(broken)) == DATA, f"byte {at}"
        except N5BlockError:
            continue


@pytest.mark.parametrize(
    "payload", [lz4_piece(DATA) + END, numcodecs.LZ4().encode(DATA), b""], ids=len
)
def test_no_payload_is_usable(payload: bytes) -> None:
    assert usable(payload, Lz4()) is None


def own_block(payload: bytes) -> bytes:
    return bytes(lz4_block.decompress(payload, uncompressed_size=70))


# the document of each program, and its way to unpack a block
PROGRAMS: dict[str, tuple[dict[str, Any], Any]] = {
    "zarr-python 2": ({"type": "lz4", "id": "lz4", "acceleration": 1}, numcodecs.LZ4().decode),
    "z5": ({"type": "lz4", "blockSize": 6}, own_block),
}


@pytest.mark.parametrize("how", ["n5zarr.open", "zarr", "v2"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_dataset_of_another_program_stays_one(tmp_path: Path, program: str, how: str) -> None:
    """Blocks are written as zarr-python 2 and z5 read them; other changes keep the document."""
    compression, unpack = PROGRAMS[program]
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="x", shape=(5, 14), chunks=(5, 7), dtype="u2")
    document = json.loads((root / "x/attributes.json").read_text())
    document["compression"] = compression
    (root / "x/attributes.json").write_text(json.dumps(document))
    store = n5zarr.N5Store(root, zarr_format=2 if how == "v2" else 3)
    array: Any = n5zarr.open(root, "r+", path="x")
    if how != "n5zarr.open":
        array = zarr.open_array(store, path="x", mode="r+")
    values = np.random.default_rng(3).integers(0, 2**16, (5, 14), "u2")
    array[...] = values
    array.resize((5, 21))
    array.attrs["note"] = "kept"
    for k, name in enumerate(("0", "1")):
        payload = (root / "x" / name / "0").read_bytes()[12:]
        assert bytes(unpack(payload)) == values[:, 7 * k : 7 * k + 7].astype(">u2").tobytes()
    assert json.loads((root / "x/attributes.json").read_text())["compression"] == compression
    assert not n5zarr.validate(root, deep=True).findings
