"""Label multisets as arrays: what they say of voxels, and what they refuse."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from n5zarr.codecs.label_multiset import (
    decode_multisets,
    encode_multisets,
    multisets_of_payload,
    payload_of_multisets,
)
from n5zarr.codecs.multiset_merging import canonical, fitted, pasted, relabelled
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.errors import N5BlockError, N5UnrepresentableError
from n5zarr.format.compression import Gzip, Raw
from n5zarr.format.order import CTuple, N5Tuple
from tests.multisets import Voxels, parsed, random_voxels, serialized, signed, voxels_of
from tests.refusals import refused

JAVA = Path(__file__).parents[2] / "data" / "java"
MANIFEST = json.loads((JAVA / "manifest.json").read_text())["labelMultisets"]
BLOCKS = [block for case in MANIFEST for block in case.get("blocks", [])]
LEVELS = [json.loads(line) for line in (JAVA / "multisets.jsonl").read_text().splitlines()]
RNG = np.random.default_rng(5)


def made(voxels: Voxels, shape: tuple[int, ...]) -> LabelMultisets:
    """Make multisets with a list for each voxel."""
    each = [list(voxels[p].items()) for p in itertools.product(*map(range, shape))]
    offsets = np.cumsum([0, *map(len, each)])
    entries = [entry for one in each for entry in one]
    labels = np.array([label for label, _ in entries], "u8")
    return LabelMultisets.from_csr(offsets, labels, [count for _, count in entries], shape)


def test_blocks_of_java_are_read_and_written_byte_for_byte() -> None:
    """``labels.n5``: written by n5-imglib2, see ``tests/data/PROVENANCE.md``."""
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        payload, shape = bytes.fromhex(block["bytes"]), CTuple(block["size"][::-1])
        multisets = multisets_of_payload(payload, shape)
        noted = [
            {int(k): int(v) for k, v in (entry.split(":") for entry in voxel.split(","))}
            for voxel in block["voxelsN5Order"].split(";")
        ]
        assert list(voxels_of(multisets).values()) == noted
        assert payload_of_multisets(multisets) == payload


def test_blocks_on_disk_of_java_have_the_same_header() -> None:
    path = JAVA / "labels.n5/labels/s0"
    for block in BLOCKS:
        stored = memoryview((path / "/".join(map(str, block["pos"]))).read_bytes())
        multisets = decode_multisets(stored, 3, Gzip())
        again = encode_multisets(multisets, Raw())
        assert again[:20] == bytes(stored[:20])  # mode, rank, extent and number of bytes
        assert again[20:] == bytes.fromhex(block["bytes"])


def test_java_makes_the_same_labels() -> None:
    """``multisets.jsonl``, see ``tests/data/PROVENANCE.md``."""
    for case in LEVELS:
        multisets = multisets_of_payload(
            bytes.fromhex(case["payload"]), CTuple(tuple(case["dims"][::-1]))
        )
        assert payload_of_multisets(multisets).hex() == case["payload"]
        is_empty = multisets.totals().ravel() == 0  # INVALID in Java
        labels = np.array(case["argMax"], "i8").view("u8")
        assert (multisets.argmax().ravel() == labels)[~is_empty].all()


@pytest.mark.parametrize("shape", [(2, 3, 5), (7, 11), (13,), (1, 1, 1), (2, 3, 2, 3)])
def test_random_multisets_go_there_and_back(shape: tuple[int, ...]) -> None:
    voxels = random_voxels(RNG, shape)
    multisets = made(voxels, shape)
    payload = payload_of_multisets(multisets)
    assert payload == serialized(voxels)
    assert parsed(payload, shape) == voxels
    again = multisets_of_payload(payload, CTuple(shape))
    assert voxels_of(again) == voxels
    assert again.to_csr()[0].tolist() == multisets.to_csr()[0].tolist()


def test_what_multisets_say_of_their_voxels() -> None:
    shape = (2, 3, 5)
    voxels = random_voxels(RNG, shape)
    multisets = made(voxels, shape)
    totals, largest, of_seven = (np.zeros(shape, "u8") for _ in range(3))
    for position, entries in voxels.items():
        totals[position] = sum(entries.values())
        of_seven[position] = entries.get(7, 0)
        ranked = sorted(entries, key=lambda label: (-entries[label], signed(label)))
        largest[position] = ranked[0] if ranked else 0
    assert multisets.totals().tolist() == totals.tolist()
    assert multisets.argmax().tolist() == largest.tolist()
    assert multisets.argmax().dtype == np.uint64
    assert multisets.count(7).tolist() == of_seven.tolist()
    for wrong in (-1, 2**64, 1.5):
        with pytest.raises(N5UnrepresentableError, match="label: expected an integer from 0"):
            multisets.count(wrong)  # type: ignore[arg-type] # 1.5
    used = sorted({label for entries in voxels.values() for label in entries})
    assert multisets.unique_labels().tolist() == used
    part = multisets[1, :, 1:4]
    assert part.shape == (3, 3)
    assert part[2, 0] == voxels[1, 2, 1]
    only = {label for p, e in voxels.items() if p[0] == 1 and 1 <= p[2] < 4 for label in e}
    assert part.unique_labels().tolist() == sorted(only)


def test_labels_become_multisets_of_one_entry() -> None:
    labels = RNG.integers(0, 2**64 - 1, (3, 5, 7), "u8")
    multisets = LabelMultisets.of(labels)
    assert multisets.argmax().tolist() == labels.tolist()
    assert set(multisets.totals().ravel().tolist()) == {1}
    assert LabelMultisets.of([[-1]])[0, 0] == {2**64 - 1: 1}  # the bits, as Java's long


def test_lists_have_one_form() -> None:
    """Each list once, in the order of voxels, labels sorted as Java's long, counts summed."""
    labels = np.array([9, 2**64 - 1, 9, 2**64 - 1, 9, 4], "u8")
    same = LabelMultisets([[2, 0, 1, 0]], [0, 3, 5, 6], labels, [1, 2, 3, 2, 4, 5])
    one = canonical(same)
    assert one.lists.tolist() == [[0, 1, 1, 1]]
    assert one.offsets.tolist() == [0, 1, 3]
    assert one.labels.tolist() == [4, 2**64 - 1, 9]
    assert one.counts.tolist() == [5, 2, 4]


def test_new_labels_change_only_the_voxels_that_read_otherwise() -> None:
    voxels: Voxels = {(0,): {5: 9, 6: 1}, (1,): {5: 9, 6: 1}, (2,): {}, (3,): {6: 2, 5: 2}}
    multisets = made(voxels, (4,))
    assert relabelled(multisets, np.array([5, 5, 0, 5], "u8")) is None
    changed = relabelled(multisets, np.array([5, 6, 0, 6], "u8"))
    assert changed is not None
    assert voxels_of(changed) == {(0,): {5: 9, 6: 1}, (1,): {6: 1}, (2,): {}, (3,): {6: 1}}


def test_a_box_is_cut_and_enlarged_by_background() -> None:
    voxels = random_voxels(RNG, (2, 3))
    other = fitted(made(voxels, (2, 3)), (3, 2))
    expected = {p: voxels.get(p, {0: 1}) for p in itertools.product(range(3), range(2))}
    assert voxels_of(other) == expected


def test_a_part_is_replaced() -> None:
    voxels, others = random_voxels(RNG, (3, 5)), random_voxels(RNG, (2, 2))
    found = pasted(made(voxels, (3, 5)), (slice(1, 3), slice(0, 2)), made(others, (2, 2)))
    expected = voxels | {(y + 1, x): entries for (y, x), entries in others.items()}
    assert voxels_of(found) == expected


MISFITS: dict[str, tuple[Any, str]] = {
    "list": (([[1]], [0, 1], [7], [1]), "lists: expected numbers from 0 to 0"),
    "below-0": (([[-1]], [0, 1], [7], [1]), "lists: expected numbers from 0"),
    "overlap": (([0], [0, 2, 1], [7], [1]), "offsets: expected numbers that"),
    "gap": (([0], [1, 2], [7, 8], [1, 1]), "offsets: expected numbers"),
    "no-offset": (([0], [], [], []), "offsets: expected numbers that ascend"),
    "outside": (([0], [0, 2], [7], [1]), "expected 2 entries"),
    "other-counts": (([0], [0, 1], [7], [1, 2]), "expected 1 entries"),
    "negative": (([0], [0, 1], [7], [-1]), "counts: .* got -1 to -1"),
    "too-large": (([0], [0, 1], [7], [2**31]), "counts: .*2147483648"),
    "fraction": (([0], [0, 1], [7.5], [1]), "labels: expected integers"),
    "wraps": (([0], [0, 1], [7], np.array([2**63], "u8")), "counts: expected numbers up"),
}


@pytest.mark.parametrize(("arrays", "message"), MISFITS.values(), ids=MISFITS)
def test_arrays_that_do_not_fit_together_are_an_error(arrays: Any, message: str) -> None:
    with refused(N5UnrepresentableError, "option", message):
        LabelMultisets(*arrays)


def test_sums_that_java_cannot_hold_are_an_error() -> None:
    twice = LabelMultisets([0], [0, 2], [7, 7], [2**31 - 1, 1])
    with pytest.raises(N5UnrepresentableError, match="sums up to 2147483647, got 2147483648"):
        payload_of_multisets(twice)


def test_negative_counts_in_a_block_are_an_error() -> None:
    payload = serialized({(0,): {7: 1}})[:-4] + b"\xff" * 4
    with refused(N5BlockError, "payload", "expected counts from 0 on, got -1"):
        multisets_of_payload(payload, CTuple((1,)))


def test_a_block_holds_the_voxels_inside_the_dataset() -> None:
    voxels = random_voxels(RNG, (2, 3))
    block = encode_multisets(made(voxels, (2, 3)), Raw())
    larger = block[:4] + bytes.fromhex("00000005 00000004") + block[12:]
    found = decode_multisets(memoryview(larger), 2, Raw(), N5Tuple((3, 2)))
    assert voxels_of(found) == voxels
