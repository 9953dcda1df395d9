"""`zstd` frames of every kind that Java reads are decoded."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from n5zarr.codecs.compress import codec_of
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Zstd
from tests.refusals import refused
from tests.unit.codecs.streams import DATA, numcodecs, packed, unpacked, usable

zstd_codec: Any = importlib.import_module("n5zarr.codecs.zstd")  # without types

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
    return unpacked(payload, Zstd(), n_bytes)


FIRST, SECOND = (numcodecs.Zstd().encode(half) for half in HALVES)
READ = {
    "one-frame": FRAME,
    "checksum": CHECKED,
    "no-content-size": UNANNOUNCED,
    "two-frames": FIRST + SECOND,
    "skippable-in-front": SKIPPED + FRAME,
    "skippable-behind": FRAME + SKIPPED,
    "skippable-between": FIRST + SKIPPED + SECOND,
    "junk": FRAME + b"trailing junk",
    "zeros": FRAME + bytes(512),
    "junk-after-no-content-size": UNANNOUNCED + b"junk",
    "surplus": numcodecs.Zstd().encode(DATA + b"surplus"),
    "surplus-frame": FRAME + FRAME,
    "empty-frames-in-front": EMPTY + SKIPPED + EMPTY + FRAME,
    "empty-around-no-content-size": 2 * EMPTY + UNANNOUNCED + EMPTY,
    "empty-between-no-content-size": EMPTY.join([b"", *map(unannounced, HALVES), SKIPPED]),
    "raw-blocks": bytes(codec_of(Zstd()).store(DATA, Zstd())),
    "blocks-of-1000-below-the-window-of-1024": UNANNOUNCED[:5] + b"\x00" + UNANNOUNCED[6:],
    "window-of-128-mib": UNANNOUNCED[:5] + bytes([17 << 3]) + UNANNOUNCED[6:],
}


@pytest.mark.parametrize("payload", READ.values(), ids=READ)
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
        with refused(N5BlockError, "payload"):
            read(frame[:length])


DAMAGED = {
    "cut-checksum": (CHECKED[:-1], len(DATA), "got one without its checksum"),
    # as for libzstd's streams and Java
    "block-above-the-window": (
        UNANNOUNCED[:6] + (1 | 1025 << 3).to_bytes(3, "little") + DATA[:1025], 1025,
        "zstd blocks of at most 1024 bytes, got one of 1025"),
    "window-above-128-mib": (UNANNOUNCED[:5] + bytes([17 << 3 | 1]) + UNANNOUNCED[6:], len(DATA),
                             "window of at most 134217728 bytes, got 150994944"),
    "checksum": (CHECKED[:-1] + bytes([CHECKED[-1] ^ 1]), len(DATA), "expected zstd frames: "),
    "junk": (b"junk that is long enough", len(DATA), "expected a zstd frame, got none"),
    "too-few-bytes": (FRAME, 2001, "expected 2001 bytes, got 2000"),
    # single segment, content size in 8 bytes, one raw block of three bytes
    "absurd-content-size": (
        bytes.fromhex("28b52ffd e0") + b"\xff" * 7 + b"\x0f" + bytes.fromhex("190000") + b"abc", 3,
        "block payload: "),
}  # fmt: skip


@pytest.mark.parametrize(("payload", "n_bytes", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named(payload: bytes, n_bytes: int, message: str) -> None:
    with pytest.raises(N5BlockError, match=message):
        read(payload, n_bytes)


def test_one_frame_with_content_size_and_no_checksum_is_written() -> None:
    payload = packed(DATA, Zstd())
    descriptor = payload[4]
    assert payload[:4] == bytes.fromhex("28b52ffd")
    assert descriptor >> 6 or descriptor >> 5 & 1  # there is a content size
    assert not descriptor >> 2 & 1  # there is no checksum


USABLE = {
    "one-frame": (FRAME, len(FRAME)),
    "checksum": (CHECKED, len(CHECKED)),
    "no-content-size": (UNANNOUNCED, len(UNANNOUNCED)),
    "junk-is-cut-off": (FRAME + b"trailing junk", len(FRAME)),
    "skippable-behind-is-cut-off": (FRAME + SKIPPED, len(FRAME)),
    "two-frames": (FRAME + FRAME, None),
    "cut": (FRAME[:-1], None),
    "cut-checksum": (CHECKED[:-1], None),
    "surplus": (numcodecs.Zstd().encode(DATA + b"x"), None),
    "empty": (b"", None),
    "junk-only": (b"not a zstd frame", None),
}


@pytest.mark.parametrize(("payload", "expected"), USABLE.values(), ids=USABLE)
def test_only_one_frame_of_the_right_length_is_usable(payload: bytes, expected: int | None) -> None:
    assert usable(payload, Zstd()) == expected
