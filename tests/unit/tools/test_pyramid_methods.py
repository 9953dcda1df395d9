"""Methods of downsampling agree with tensorstore and scipy; levels fit shape and voxels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
from scipy import ndimage

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from n5zarr.fast import kernel
from n5zarr.tools.pyramid.methods import downsample, halo
from n5zarr.tools.pyramid.model import choose_levels

nan = np.nan
DTYPES = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
CASES = [
    ((7, 11, 13), (2, 2, 2)),
    ((7, 11, 13), (1, 3, 2)),
    ((5, 3), (4, 5)),  # a cell longer than the array
    ((17,), (3,)),
    ((3, 5, 7, 2), (2, 1, 3, 2)),
    ((131, 67, 37), (2, 2, 2)),  # more than is worked on at a time
    ((17, 23, 31), (5, 7, 11)),  # cells that are sorted in another way
]


def elements(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return elements of which many are equal, or as large as they can be."""
    rng = np.random.default_rng(7)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype[0] == "f":
        return np.round(rng.normal(size=shape), 1).astype(dtype)
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    values[rng.random(shape) < 0.4] = limits.max
    values[rng.random(shape) < 0.4] = limits.min
    return values


def by_tensorstore(given: np.ndarray, factors: Any, method: Any) -> np.ndarray:
    downsampled = tensorstore.downsample(tensorstore.array(given), factors, method)
    return np.asarray(downsampled.read().result())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["mean", "mode", "median", "stride"])
@pytest.mark.parametrize("has_kernel", [True, False])
def test_cells_become_what_tensorstore_makes_of_them(
    dtype: str, method: Any, *, has_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_kernel:
        monkeypatch.setattr(kernel, "_kernel", None)
    for shape, factors in CASES:
        given = elements(dtype, shape)
        wanted = by_tensorstore(given, factors, method)
        found = downsample(given, factors, method)
        assert found.dtype == given.dtype
        if method == "mean" and dtype[0] == "f":  # summed in another order
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7)
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=str((shape, factors)))


def test_labels_that_meet_nowhere_or_everywhere_are_counted_alike() -> None:
    labels = np.kron(np.arange(27, dtype="u8").reshape(3, 3, 3), np.ones((7, 5, 11), "u8"))
    for given in (labels, np.ones_like(labels), elements("u8", labels.shape) % 3):
        wanted = by_tensorstore(given, (2, 2, 2), "mode")
        np.testing.assert_array_equal(downsample(given, (2, 2, 2), "mode"), wanted)


def test_nan_is_the_largest_number_and_spoils_a_mean() -> None:
    given = np.array([1, nan, 2, nan, 3, 1, nan, nan, 3, 3, nan, nan], "f4")
    assert downsample(given, (4,), "median").tolist() == [2, 3, 3]
    assert downsample(given, (4,), "mode").tolist() == [1, 1, 3]
    assert np.isnan(downsample(given, (4,), "mean")).all()
    assert np.isnan(downsample(given[[1, 3]], (2,), "median")).all()
    cell = np.array([nan] * 200 + [3, 3, 1])  # a large one
    assert downsample(cell, (203,), "mode") == 3
    assert np.isnan(downsample(cell, (203,), "median"))


def test_huge_cells_take_no_longer_than_their_elements() -> None:
    given = elements("u8", (61, 67, 71))
    for method in ("mode", "median"):
        wanted = by_tensorstore(given, given.shape, method)
        np.testing.assert_array_equal(downsample(given, given.shape, method), wanted)
    assert downsample(given[0], (2**40, 2), "gaussian").shape == (1, 36)


@pytest.mark.parametrize("method", ["mean", "mode", "median"])
def test_float16_is_downsampled_as_by_tensorstore(method: Any) -> None:
    given = np.random.default_rng(3).normal(50000, 900, (29, 31, 37)).astype("f2")
    wanted = by_tensorstore(given, (2, 3, 5), method)
    np.testing.assert_allclose(downsample(given, (2, 3, 5), method), wanted, rtol=2**-10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["mean", "gaussian"])
def test_infinities_are_no_reason_for_warnings(method: Any) -> None:
    given = np.array([np.inf, -np.inf, 3e38, 3e38], "f4")
    assert np.isnan(downsample(given, (2,), method)[0])


def test_gaussian_of_odd_factors_is_scipys_at_the_middles_of_cells() -> None:
    given = np.random.default_rng(3).normal(size=(61, 47))
    for factors in ((3, 1), (1, 5), (3, 3)):
        sigma = [f / 3 if f > 1 else 0 for f in factors]
        filtered = ndimage.gaussian_filter(given, sigma, truncate=4)
        wanted = filtered[tuple(slice((f - 1) // 2, None, f) for f in factors)]
        found = downsample(given, factors, "gaussian")
        inner = (slice(3, wanted.shape[0] - 3), slice(3, wanted.shape[1] - 3))
        np.testing.assert_allclose(found[inner], wanted[inner], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_gaussian_of_a_gradient_is_its_value_in_the_middle_of_the_cell(factor: int) -> None:
    given = np.arange(60 * factor, dtype="u2")
    middles = np.arange(60) * factor + (factor - 1) / 2
    found = downsample(given, (factor,), "gaussian")
    assert np.abs(found - middles)[4:-4].max() <= 0.5


@pytest.mark.parametrize("dtype", ["u1", "u8", "f4"])
def test_gaussian_of_a_part_is_a_part_of_that_of_the_whole(dtype: str) -> None:
    given = elements(dtype, (53, 31))
    factors = (2, 3)
    whole = downsample(given, factors, "gaussian")
    near, far = halo("gaussian", factors)
    part = given[8 * 2 - near : 17 * 2 + near, 4 * 3 - far : 31]
    around = [(near, near), (far, 0)]
    np.testing.assert_array_equal(downsample(part, factors, "gaussian", around), whole[8:17, 4:])


def test_axes_become_alike_before_all_are_halved() -> None:
    levels = choose_levels((211, 4001, 6007), (32, 64, 64), (40.0, 4.0, 4.0))
    assert [level.factors for level in levels] == [(1, 2, 2)] * 3 + [(2, 2, 2)] * 4
    assert levels[2].total == (1, 8, 8)
    assert levels[-1].shape == (14, 32, 47)  # the one before has 94 elements along an axis
    two = choose_levels((211, 4001, 6007), (32, 64, 64), (40.0, 4.0, 5.0), n_levels=2)
    assert [level.factors for level in two] == [(1, 2, 2), (1, 2, 2)]


def test_axes_without_voxels_and_of_one_element_stay() -> None:
    levels = choose_levels((3, 1, 500, 700), (1, 1, 64, 64), (None, 1.0, 1.0, 1.0))
    assert {level.factors for level in levels} == {(1, 1, 2, 2)}
    assert levels[-1].shape == (3, 1, 32, 44)
    assert choose_levels((3, 60, 70), (1, 64, 128), (None, 1.0, 1.0)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factors": (2, 2)}, "factors: expected 3, one for each axis"),
        ({"factors": (1, 1, 1)}, "one above 1"),
        ({"factors": (2, 0, 2)}, "at least 1"),
        ({"factors": (2, 2**60, 2)}, r"at most 2\*\*53 elements of s0 for one"),
        ({"n_levels": 0}, "a number above 0, got 0"),
        ({"n_levels": 9}, r"at most 7, got 9: s7 has the shape \(1, 1, 1\)"),
    ],
)
def test_levels_that_cannot_be_are_refused(options: Any, message: str) -> None:
    with pytest.raises(N5UnrepresentableError, match=message) as caught:
        choose_levels((11, 67, 101), (8, 8, 8), (1.0, 1.0, 1.0), **options)
    assert caught.value.kind == "option"


def test_a_gaussian_level_of_booleans_is_where_most_of_them_are(tmp_path: Path) -> None:
    """Far from an edge, a level of a constant is that constant."""
    values = np.zeros((22, 26), bool)
    values[:, 13:] = True
    n5zarr.create_array(tmp_path / "c.n5", path="em/s0", data=values, chunks=(7, 5))
    n5zarr.build_pyramid(tmp_path / "c.n5/em", method="gaussian", levels=1)
    level: Any = n5zarr.open_array(tmp_path / "c.n5", path="em/s1")
    assert (level.dtype, level.shape) == (np.dtype(bool), (11, 13))
    assert not level[:, :5].any()
    assert level[:, 8:].all()
