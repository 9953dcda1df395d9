"""Block headers of all three modes (N5 4.0.0, item 9) are read, and cut ones refused."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from n5zarr.errors import N5BlockError
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.order import N5Tuple
from tests.refusals import refused

EXAMPLE = bytes.fromhex("0000 0003 00000001 00000002 00000003 0001 0002 0003 0004 0005 0006")
STRINGS = bytes.fromhex("0001 0001 00000004 0000000c 61 00 6262 00 00 c3bc e282ac 00")
OBJECT = bytes.fromhex("0002 00000004")


# mode, shape, number of elements in the header and in the payload
HEADERS: dict[str, tuple[bytes, int, Any]] = {
    "default": (EXAMPLE, 16, (BlockMode.DEFAULT, (1, 2, 3), None, 6)),
    "varlength": (STRINGS, 12, (BlockMode.VARLENGTH, (4,), 12, 12)),
    "object": (OBJECT, 6, (BlockMode.OBJECT, (), 4, 4)),
    "no-elements": (bytes.fromhex("0001 0002 00000002 00000002 00000000"), 16,
                    (BlockMode.VARLENGTH, (2, 2), 0, 0)),
    "unsigned": (bytes.fromhex("0000 0001 ffffffff"), 8,
                 (BlockMode.DEFAULT, (2**32 - 1,), None, 2**32 - 1)),
}  # fmt: skip


@pytest.mark.parametrize(("data", "n_bytes", "expected"), HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_a_header_of_each_mode_is_read(
    data: bytes, n_bytes: int, expected: Any, kind: type[bytes | memoryview]
) -> None:
    header = BlockHeader.from_bytes(kind(data))
    found = (header.mode, header.block_shape, header.n_elements, header.n_payload_elements)
    assert (found, header.n_bytes) == (expected, n_bytes)
    assert header.to_bytes() == data[:n_bytes]


@pytest.mark.parametrize(("data", "n_bytes"), [(EXAMPLE, 16), (STRINGS, 12), (OBJECT, 6)])
def test_a_header_cut_at_any_byte_is_an_error(data: bytes, n_bytes: int) -> None:
    for length in range(n_bytes):
        with refused(N5BlockError, "header", f"got {length} "):
            BlockHeader.from_bytes(data[:length])
    assert BlockHeader.from_bytes(data[:n_bytes]).n_bytes == n_bytes


def test_a_cut_header_says_what_it_announces() -> None:
    with pytest.raises(N5BlockError) as caught:
        BlockHeader.from_bytes(EXAMPLE[:9])
    assert str(caught.value) == (
        "block header: expected 16 bytes for 3 dimensions in mode 0, got 9 (incomplete write?)"
    )


def test_a_header_of_many_dimensions_is_cut_too() -> None:
    with pytest.raises(N5BlockError, match="expected 262144 bytes for 65535 dimensions"):
        BlockHeader.from_bytes(bytes.fromhex("0000 ffff") + EXAMPLE)


@pytest.mark.parametrize("mode", [3, 4, 0x1F8B, 0xFFFF])
def test_an_unknown_mode_is_named(mode: int) -> None:
    with refused(N5BlockError, "header") as caught:
        BlockHeader.from_bytes(struct.pack(">H", mode) + EXAMPLE[2:])
    assert f"mode: expected 0, 1 or 2, got {mode}" in str(caught.value)


@pytest.mark.parametrize("ndim", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("mode", [BlockMode.DEFAULT, BlockMode.VARLENGTH])
def test_writing_and_reading_are_inverse(mode: BlockMode, ndim: int) -> None:
    count = 17 if mode is BlockMode.VARLENGTH else None
    shape = N5Tuple(tuple(range(2, 2 + ndim)))
    header = BlockHeader(mode=mode, block_shape=shape, n_elements=count)
    data = header.to_bytes()
    assert len(data) == header.n_bytes == 4 + 4 * ndim + 4 * mode
    assert BlockHeader.from_bytes(data + b"payload") == header
