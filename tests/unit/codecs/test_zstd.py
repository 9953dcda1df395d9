"""`zstd` frames of every kind that Java reads are decoded."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Zstd

# none of these has types
zstd_codec: Any = importlib.import_module("n5zarr.codecs.zstd")
numcodecs: Any = importlib.import_module("numcodecs")

DATA = bytes(range(250)) * 8
HALVES = DATA[:700], DATA[700:]
FRAME = numcodecs.Zstd(level=3).encode(DATA)
CHECKED = numcodecs.Zstd(level=3, checksum=True).encode(DATA)
SKIPPED = bytes.fromhex("502a4d18 05000000") + b"hello"
# One frame without content size: window descriptor 0x00 (1 KiB), then raw blocks of 1000 bytes.
UNANNOUNCED = bytes.fromhex("28b52ffd 00 00") + b"".join(
    ((start == 1000) | 1000 << 3).to_bytes(3, "little") + DATA[start : start + 1000]
    for start in (0, 1000)
)
EMPTY = bytes.fromhex("28b52ffd 00 58 010000")  # with a window of 2 MiB
REPEATED = bytes.fromhex("28b52ffd 00 00") + (1 | 1 << 1 | 1000 << 3).to_bytes(3, "little") + b"z"


def unannounced(data: bytes) -> bytes:
    return bytes.fromhex("28b52ffd 00 08") + (1 | len(data) << 3).to_bytes(3, "little") + data


def read(payload: bytes, n_bytes: int = len(DATA)) -> bytes:
    return bytes(decompress(memoryview(payload), n_bytes, Zstd()))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(FRAME, id="one-frame"),
        pytest.param(CHECKED, id="checksum"),
        pytest.param(UNANNOUNCED, id="no-content-size"),
        pytest.param(b"".join(numcodecs.Zstd().encode(half) for half in HALVES), id="two-frames"),
        pytest.param(SKIPPED + FRAME, id="skippable-in-front"),
        pytest.param(FRAME + SKIPPED, id="skippable-behind"),
        pytest.param(
            numcodecs.Zstd().encode(HALVES[0]) + SKIPPED + numcodecs.Zstd().encode(HALVES[1]),
            id="skippable-between",
        ),
        pytest.param(FRAME + b"trailing junk", id="junk"),
        pytest.param(FRAME + bytes(512), id="zeros"),
        pytest.param(UNANNOUNCED + b"junk", id="junk-after-no-content-size"),
        pytest.param(numcodecs.Zstd().encode(DATA + b"surplus"), id="surplus"),
        pytest.param(FRAME + FRAME, id="surplus-frame"),
        pytest.param(EMPTY + SKIPPED + EMPTY + FRAME, id="empty-frames-in-front"),
        pytest.param(2 * EMPTY + UNANNOUNCED + EMPTY, id="empty-around-no-content-size"),
        pytest.param(
            EMPTY.join([b"", *map(unannounced, HALVES), SKIPPED]),
            id="empty-between-no-content-size",
        ),
        pytest.param(bytes(codec_of(Zstd()).store(DATA, Zstd())), id="raw-blocks"),
    ],
)
def test_a_payload_that_java_reads_is_read(payload: bytes) -> None:
    assert read(payload) == DATA


def test_empty_frames_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty frames are skipped, as each would need a decompressor and its window."""
    made: list[Any] = []
    new = zstd_codec.zstd.ZstdDecompressor

    def counted() -> Any:
        made.append(new())
        return made[-1]

    monkeypatch.setattr(zstd_codec.zstd, "ZstdDecompressor", counted)
    assert read(1000 * EMPTY + UNANNOUNCED + 1000 * EMPTY) == DATA
    with pytest.raises(N5BlockError, match="expected 10 bytes, got 0"):
        read(1000 * EMPTY, 10)
    assert len(made) == 1


def test_blocks_that_repeat_one_byte_are_read() -> None:
    assert read(REPEATED, 1000) == b"z" * 1000


@pytest.mark.parametrize(
    "frame", [FRAME, CHECKED, UNANNOUNCED], ids=["plain", "checked", "unannounced"]
)
def test_a_frame_cut_anywhere_is_an_error(frame: bytes) -> None:
    for length in range(1, len(frame)):
        with pytest.raises(N5BlockError) as caught:
            read(frame[:length])
        assert caught.value.kind == "payload"


def test_a_cut_checksum_is_named() -> None:
    with pytest.raises(N5BlockError, match="got one without its checksum"):
        read(CHECKED[:-1])


def test_blocks_above_the_window_are_an_error() -> None:
    """Blocks above the window are an error, as for libzstd's streams and Java."""
    small = UNANNOUNCED[:5] + b"\x00" + UNANNOUNCED[6:]
    assert read(small) == DATA  # a window of 1024 bytes, blocks of 1000
    longer = UNANNOUNCED[:6] + (1 | 1025 << 3).to_bytes(3, "little") + DATA[:1025]
    with pytest.raises(N5BlockError, match="zstd blocks of at most 1024 bytes, got one of 1025"):
        read(longer, 1025)


def test_a_window_above_128_mib_is_an_error() -> None:
    largest = UNANNOUNCED[:5] + bytes([17 << 3]) + UNANNOUNCED[6:]
    assert read(largest) == DATA
    larger = UNANNOUNCED[:5] + bytes([17 << 3 | 1]) + UNANNOUNCED[6:]
    with pytest.raises(N5BlockError, match="window of at most 134217728 bytes, got 150994944"):
        read(larger)


def test_a_wrong_checksum_is_an_error() -> None:
    broken = CHECKED[:-1] + bytes([CHECKED[-1] ^ 1])
    with pytest.raises(N5BlockError, match="expected zstd frames: "):
        read(broken)


def test_only_junk_is_no_frame() -> None:
    with pytest.raises(N5BlockError, match="expected a zstd frame, got none"):
        read(b"junk that is long enough")


def test_frames_of_too_few_bytes_are_an_error() -> None:
    with pytest.raises(N5BlockError, match="expected 2001 bytes, got 2000"):
        read(FRAME, 2001)


def test_an_absurd_content_size_is_refused() -> None:
    # single segment, content size in 8 bytes, one raw block of three bytes
    payload = (
        bytes.fromhex("28b52ffd e0") + b"\xff" * 7 + b"\x0f" + bytes.fromhex("190000") + b"abc"
    )
    with pytest.raises(N5BlockError, match="block payload: "):
        read(payload, 3)


def test_one_frame_with_content_size_and_no_checksum_is_written() -> None:
    packed = bytes(codec_of(Zstd()).compress(DATA, Zstd(), 1))
    descriptor = packed[4]
    assert packed[:4] == bytes.fromhex("28b52ffd")
    assert descriptor >> 6 or descriptor >> 5 & 1  # there is a content size
    assert not descriptor >> 2 & 1  # there is no checksum


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(FRAME, len(FRAME), id="one-frame"),
        pytest.param(CHECKED, len(CHECKED), id="checksum"),
        pytest.param(UNANNOUNCED, len(UNANNOUNCED), id="no-content-size"),
        pytest.param(FRAME + b"trailing junk", len(FRAME), id="junk-is-cut-off"),
        pytest.param(FRAME + SKIPPED, len(FRAME), id="skippable-behind-is-cut-off"),
        pytest.param(FRAME + FRAME, None, id="two-frames"),
        pytest.param(FRAME[:-1], None, id="cut"),
        pytest.param(CHECKED[:-1], None, id="cut-checksum"),
        pytest.param(numcodecs.Zstd().encode(DATA + b"x"), None, id="surplus"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b"not a zstd frame", None, id="junk-only"),
    ],
)
def test_only_one_frame_of_the_right_length_is_usable(payload: bytes, expected: int | None) -> None:
    assert codec_of(Zstd()).usable(memoryview(payload), len(DATA), Zstd()) == expected
