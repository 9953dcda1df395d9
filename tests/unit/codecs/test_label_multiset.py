"""Label multisets are decoded as imglib2-label-multisets writes them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from n5zarr.codecs.label_multiset import arg_max_labels, decode_labels
from n5zarr.errors import N5BlockError
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Raw
from n5zarr.format.order import N5Tuple
from tests.refusals import refused

MANIFEST = json.loads((Path(__file__).parents[2] / "data" / "java" / "manifest.json").read_text())[
    "labelMultisets"
]
# voxels 7:1; 7:1; 7:3,9:5
SAMPLE = bytes.fromhex(
    "00000000 00000000 00000000 00000010"
    "01000000 0700000000000000 01000000"
    "02000000 0700000000000000 03000000 0900000000000000 05000000"
)
MAX = 2**64


def multiset(voxels: list[list[tuple[int, int]]], arg_max: list[int] | None = None) -> bytes:
    """Build a payload, each voxel with a list of its own."""
    lists, offsets = b"", b""
    for entries in voxels:
        offsets += struct.pack(">i", len(lists))
        lists += struct.pack("<i", len(entries))
        lists += b"".join(struct.pack("<Qi", label % MAX, count) for label, count in entries)
    labels = arg_max or []
    return struct.pack(f">i{len(labels)}Q", len(labels), *labels) + offsets + lists


def test_the_sample_of_the_library_is_read() -> None:
    labels = arg_max_labels(SAMPLE, 3)
    assert labels.dtype == np.dtype(">u8")
    assert labels.tolist() == [7, 7, 9]


MOST_FREQUENT: dict[str, tuple[list[tuple[int, int]], int]] = {
    "one": ([(5, 1)], 5),
    "the-most-frequent": ([(5, 1), (6, 2)], 6),
    "the-lowest-of-equally-frequent": ([(6, 2), (5, 2)], 5),
    "the-lowest-in-either-order": ([(5, 2), (6, 2)], 5),
    "background-for-none": ([], 0),
    "background": ([(0, 9), (5, 1)], 0),
    "transparent": ([(-1, 1)], MAX - 1),
    "invalid": ([(-2, 3), (5, 1)], MAX - 2),
    "compared-as-signed": ([(5, 2), (-1, 2)], MAX - 1),
    "large": ([(2**40, 2**31 - 1), (1, 1)], 2**40),
}


@pytest.mark.parametrize(("entries", "expected"), MOST_FREQUENT.values(), ids=MOST_FREQUENT)
def test_the_most_frequent_label_is_shown(entries: list[tuple[int, int]], expected: int) -> None:
    assert arg_max_labels(multiset([entries]), 1).tolist() == [expected]
    assert arg_max_labels(multiset([[(3, 1)], entries, []]), 3).tolist() == [3, expected, 0]


def test_the_arg_max_list_of_older_files_is_skipped() -> None:
    payload = multiset([[(7, 1)], [(9, 2)]], arg_max=[7, 9])
    assert arg_max_labels(payload, 2).tolist() == [7, 9]


def parse_voxels(text: str) -> list[int]:
    """Return the arg-max label of each voxel of the manifest's notation."""
    labels = []
    for voxel in text.split(";"):
        counts = {int(e.split(":")[0]): int(e.split(":")[1]) for e in voxel.split(",")}
        labels.append(min(counts, key=lambda label: (-counts[label], label)))
    return labels


BLOCKS = [block for case in MANIFEST for block in case.get("blocks", [])]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block["pos"]))
def test_blocks_of_the_library_are_read(block: dict[str, Any]) -> None:
    expected = parse_voxels(block["voxelsN5Order"])
    payload = bytes.fromhex(block["bytes"])
    assert arg_max_labels(payload, len(expected)).tolist() == expected


def block_of(payload: bytes, *shape: int) -> memoryview:
    header = BlockHeader(
        mode=BlockMode.VARLENGTH, block_shape=N5Tuple(shape), n_elements=len(payload)
    )
    return memoryview(header.to_bytes() + payload)


def test_a_block_has_the_shape_of_its_header() -> None:
    assert decode_labels(block_of(SAMPLE, 3, 1), 2, Raw()).tolist() == [[7, 7, 9]]


def test_a_payload_cut_anywhere_is_an_error() -> None:
    for length in range(len(SAMPLE)):
        with refused(N5BlockError, "payload"):
            arg_max_labels(SAMPLE[:length], 3)


DAMAGED = {
    "empty": (b"", 3, "expected a label multiset, got 0 bytes"),
    "negative-arg-max": (b"\xff" * 4 + SAMPLE[4:], 3, "label multisets of 3 voxels"),
    "other-arg-max": (b"\0\0\0\2" + SAMPLE[4:], 3, "label multisets of 3 voxels"),
    "negative": (SAMPLE[:4] + b"\xff" * 4 + SAMPLE[8:], 3, "list offsets within"),
    "too-far": (SAMPLE[:4] + b"\0\0\0\x2c" + SAMPLE[8:], 3, "list offsets within"),
    "minus-one": (SAMPLE[:16] + b"\xff" * 4 + SAMPLE[20:], 3, "label lists within"),
    "too-many": (SAMPLE[:16] + b"\xff\xff\xff\x7f" + SAMPLE[20:], 3, "label lists within"),
    "more-voxels": (SAMPLE, 1000, "label multisets of 1000 voxels"),
}


@pytest.mark.parametrize(("payload", "n_voxels", "message"), DAMAGED.values(), ids=DAMAGED)
def test_lists_that_leave_the_payload_are_an_error(
    payload: bytes, n_voxels: int, message: str
) -> None:
    with refused(N5BlockError, "payload", message):
        arg_max_labels(payload, n_voxels)


def test_lists_that_overlap_are_an_error() -> None:
    # each list claims half of the payload: thousands of voxels would need gigabytes
    n_voxels = 3000
    lists = struct.pack("<i", n_voxels // 6) * 2 * n_voxels
    offsets = struct.pack(f">{n_voxels}i", *range(0, 4 * n_voxels, 4))
    with refused(N5BlockError, "payload"):
        arg_max_labels(bytes(4) + offsets + lists, n_voxels)


@pytest.mark.parametrize("arg_max", [None, [1, 2, 3, 4, 5, 6]], ids=["newer", "older"])
def test_a_block_holds_the_voxels_inside_the_dataset(arg_max: list[int] | None) -> None:
    payload = multiset([[(k, 1)] for k in range(1, 7)], arg_max)
    labels = decode_labels(block_of(payload, 4, 5), 2, Raw(), N5Tuple((2, 3)))
    assert labels.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("n_shared", [1, 2])
def test_a_padded_block_holds_the_voxels_of_its_header(n_shared: int) -> None:
    lists = b"".join(struct.pack("<iqi", 1, 7, 1) for _ in range(n_shared))
    offsets = struct.pack(">6i", *[16 * (k % n_shared) for k in range(6)])
    block = block_of(bytes(4) + offsets + lists, 2, 3)
    assert decode_labels(block, 2, Raw(), N5Tuple((1, 2))).tolist() == [[7, 7]] * 3


def test_voxels_that_fit_neither_are_an_error() -> None:
    with pytest.raises(N5BlockError, match="label multisets of 20 voxels"):
        decode_labels(block_of(SAMPLE, 4, 5), 2, Raw(), N5Tuple((2, 2)))
