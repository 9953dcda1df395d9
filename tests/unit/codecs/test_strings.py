"""Blocks of strings have the bytes of n5 4.x, and are read as by Java."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from n5zarr.codecs.single_block import decode_block, encode_block
from n5zarr.codecs.strings import (
    join_bytes,
    join_strings,
    split_bytes,
    split_strings,
    split_vlen_utf8,
    vlen_utf8,
)
from n5zarr.errors import N5BlockError, N5UnrepresentableError
from tests.refusals import refused
from tests.unit.codecs.streams import numcodecs

RAW = {"type": "raw"}
# size [4], ["a", "bb", "", "ü€"], as n5 4.x writes it
SAMPLE = bytes.fromhex("0001 0001 00000004 0000000c 61 00 6262 00 00 c3bc e282ac 00")
WORDS = ["a", "bb", "", "ü€"]


def read(block: bytes) -> list[str]:
    strings: list[str] = decode_block(block, data_type="string", compression=RAW).ravel().tolist()
    return strings


def test_the_sample_of_java_is_read() -> None:
    array = decode_block(SAMPLE, data_type="string", compression=RAW)
    assert (array.dtype, array.shape, array.tolist()) == (np.dtype(object), (4,), WORDS)


@pytest.mark.parametrize("dtype", [object, str, np.dtypes.StringDType()])
def test_the_sample_of_java_is_written(dtype: Any) -> None:
    assert encode_block(np.array(WORDS, dtype), compression=RAW) == SAMPLE


def test_the_first_axis_of_n5_order_is_fastest() -> None:
    block = encode_block(np.array([["p", "q"], ["s", "tt"], ["", "u"]]), compression=RAW)
    assert block[:16] == bytes.fromhex("0001 0002 00000002 00000003 0000000c")
    assert block[16:] == b"p\0q\0s\0tt\0\0u\0"


SPLIT = {
    "plain": (b"a\0bb\0\0", ["a", "bb", ""]),
    "last-nul-missing": (b"a\0bb", ["a", "bb"]),
    "padded": (b"a\0", ["a", "", ""]),
    "all-empty": (b"\0\0\0", ["", "", ""]),
    "no-bytes": (b"", ["", ""]),
    "invalid-utf-8": (b"\xff\0ok\0", ["\ufffd", "ok"]),
    "empty-first": (b"\0a\0", ["", "a"]),
}


@pytest.mark.parametrize(("payload", "expected"), SPLIT.values(), ids=SPLIT)
def test_a_payload_is_split_at_nul(payload: bytes, expected: list[str]) -> None:
    assert split_strings(payload, len(expected)) == expected


def test_more_strings_than_the_block_holds_are_an_error() -> None:
    with refused(N5BlockError, "payload", "expected 2 strings, got 3"):
        split_strings(b"a\0b\0c\0", 2)


def test_each_string_is_followed_by_nul() -> None:
    assert join_strings(WORDS) == SAMPLE[12:]
    assert join_strings([]) == b""


@pytest.mark.parametrize("string", ["\0", "a\0b", "\0\0", "ü\0"])
def test_a_nul_inside_a_string_survives(string: str) -> None:
    payload = join_strings([string, "next"])
    assert payload.count(b"\0") == 2
    assert split_strings(payload, 2) == [string, "next"]


@pytest.mark.parametrize(
    "header",
    ["0000 0001 00000004", *(f"0001 0001 00000004 000000{n}" for n in ("03", "63", "00"))],
    ids=["mode-0-of-n5-3", "count-too-low", "count-too-high", "count-zero"],
)
def test_mode_and_count_do_not_matter_as_in_java(header: str) -> None:
    assert read(bytes.fromhex(header) + SAMPLE[12:]) == WORDS


@pytest.mark.parametrize("type_", ["gzip", "zstd", "xz", "bzip2", "lz4", "blosc"])
def test_strings_are_compressed_like_any_payload(type_: str) -> None:
    array = np.array([WORDS, WORDS[::-1], ["", "", "", ""]], object)
    block = encode_block(array, compression={"type": type_})
    decoded = decode_block(block, data_type="string", compression={"type": type_})
    assert decoded.tolist() == array.tolist()


def test_a_lone_surrogate_cannot_be_written() -> None:
    with pytest.raises(N5UnrepresentableError):
        encode_block(np.array(["\ud800"], object), compression=RAW)


@pytest.mark.parametrize("value", [None, 1, b"bytes", 2.5])
def test_an_object_that_is_no_string_cannot_be_written(value: object) -> None:
    with pytest.raises(N5UnrepresentableError):
        encode_block(np.array(["a", value], object), compression=RAW)


@pytest.mark.parametrize("strings", [WORDS, [], ["", ""], ["x" * 300]], ids=len)
def test_zarr_decodes_the_strings_that_are_shown(strings: list[str]) -> None:
    assert numcodecs.VLenUTF8().decode(vlen_utf8(strings)).tolist() == strings


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "expected 2 values of bytes, got 0"),
        (bytes.fromhex("03000000") + bytes(12), "expected 2 values of bytes, got 3"),
        (bytes.fromhex("02000000 00000000"), "expected 2 values of bytes, got 8 bytes in total"),
        (bytes.fromhex("02000000 01000000 61 05000000 62"), "expected values of bytes, got "),
    ],
    ids=["empty", "another number", "short", "cut"],
)
def test_damaged_values_of_bytes_are_told(payload: bytes, message: str) -> None:
    """Zarr's vlen-bytes has the number of values, then the length and bytes of each."""
    with refused(N5BlockError, "payload", message):
        split_bytes(payload, 2)


def test_values_of_bytes_may_be_empty_and_of_any_length() -> None:
    payload = bytes.fromhex("03000000 00000000 02000000 ff00 01000000 61")
    assert split_bytes(payload, 3).tolist() == [b"", b"\xff\0", b"a"]
    assert join_bytes(np.array([[b""], [b"\xff\0"], [b"a"]], object)) == payload


def test_a_damaged_chunk_of_text_is_told() -> None:
    """Zarr's vlen-utf8, of which the second string is cut."""
    with pytest.raises(N5BlockError, match="expected a chunk of vlen-utf8, got "):
        split_vlen_utf8(bytes.fromhex("02000000 01000000 61 05000000 62"))
