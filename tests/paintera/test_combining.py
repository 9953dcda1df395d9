"""Label multisets are turned and combined as by Java."""

from __future__ import annotations

import numpy as np
import pytest

from n5zarr.codecs.label_multiset import multisets_of_payload, payload_of_multisets
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.order import CTuple
from n5zarr.paintera.combining import downsampled, transposed
from tests.multisets import Voxels, downscaled, random_voxels, serialized, voxels_of
from tests.unit.codecs.test_multisets import LEVELS, made

RNG = np.random.default_rng(5)


def test_java_makes_the_same_levels() -> None:
    """0.12.1 orders equally frequent labels, which a limit cuts, at random."""
    assert {case["version"] for case in LEVELS} == {"0.15.1", "0.12.1"}
    for case in LEVELS:
        shape, factors = tuple(case["dims"][::-1]), tuple(case["factors"][::-1])
        multisets = multisets_of_payload(bytes.fromhex(case["payload"]), CTuple(shape))
        found = downsampled(multisets, factors, case["limit"])
        if case["limit"] < 1:
            assert payload_of_multisets(found).hex() == case["downscaled"]
            continue
        theirs = multisets_of_payload(bytes.fromhex(case["downscaled"]), CTuple(found.shape))
        for position, entries in voxels_of(theirs).items():  # 0.12.1 leaves empty lists empty
            assert sorted(entries.values()) == sorted(filter(None, found[position].values()))


def test_axes_are_reversed() -> None:
    voxels = random_voxels(RNG, (2, 3, 5))
    found = voxels_of(transposed(made(voxels, (2, 3, 5))))
    assert found == {position[::-1]: entries for position, entries in voxels.items()}


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 100])
@pytest.mark.parametrize(
    ("shape", "factors"),
    [
        ((4, 6, 8), (2, 2, 2)), ((5, 7, 11), (2, 3, 2)), ((3, 5, 7), (1, 2, 4)),
        ((2, 2, 2), (5, 7, 3)), ((13,), (4,)),
    ],
)  # fmt: skip
def test_downsampling_sums_the_counts_of_each_cell(
    shape: tuple[int, ...], factors: tuple[int, ...], limit: int
) -> None:
    voxels = random_voxels(RNG, shape)
    found = downsampled(made(voxels, shape), factors, limit)
    expected = downscaled(voxels, factors, limit)
    assert voxels_of(found) == expected
    assert payload_of_multisets(found) == serialized(expected)


def test_a_limit_keeps_the_most_frequent_label() -> None:
    voxels: Voxels = {(0,): {5: 9, 6: 1, 7: 3}, (1,): {8: 2, 6: 2}}
    found = downsampled(made(voxels, (2,)), (2,), 2)
    assert found[0] == {5: 9, 6: 3}  # 6 and 7 three times each: the lower one
    assert found.argmax().tolist() == [5]


def test_cells_without_entries_hold_the_background_no_time() -> None:
    assert downsampled(made({(0,): {}, (1,): {}, (2,): {3: 1}}, (3,)), (2,))[0] == {0: 0}


def test_sums_that_java_cannot_hold_are_an_error() -> None:
    most = LabelMultisets([0, 0], [0, 1], [7], [2**31 - 1])
    with pytest.raises(N5UnrepresentableError, match="sums up to 2147483647, got 4294967294"):
        downsampled(most, (2,))
