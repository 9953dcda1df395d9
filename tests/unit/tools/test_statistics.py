"""Statistics of blocks agree with those of numpy over the stored part of the array."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5BlockError, N5UnsupportedError
from n5zarr.storage.requests import read_each
from tests.contract.stored import by_tensorstore

JAVA = Path(__file__).parents[2] / "data" / "java"
TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


def of_values(folder: Path, values: np.ndarray, **options: Any) -> n5zarr.BlockStatistics:
    n5zarr.create_array(folder / "c.n5", path="a", data=values, **options)
    return n5zarr.block_statistics(folder / "c.n5", "a")


def check(found: n5zarr.BlockStatistics, values: np.ndarray) -> None:
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values.ravel()
    assert found.n_elements == values.size
    assert (found.minimum, found.maximum) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(finite.mean(dtype="f8"), rel=1e-12)
    assert sum(found.histogram) == finite.size
    edges = np.array(found.bin_edges)
    if finite.dtype.kind != "f" or finite.dtype.itemsize == 8:
        expected, _ = np.histogram(finite.astype("f8"), edges)
        assert list(found.histogram) == expected.tolist()
    assert len(found.histogram) <= 258


@pytest.mark.parametrize("dtype", [*TYPES, "float32", "float64"])
def test_they_are_those_of_the_array(dtype: str) -> None:
    path = JAVA / "dtypes.n5" / dtype / "3d"
    found = n5zarr.block_statistics(path, n_blocks=None, scheduler="threads")
    values = by_tensorstore(path)
    check(found, values)
    assert found.has_integers == (dtype in TYPES)
    assert found.n_bytes == values.nbytes
    blocks = [p for p in path.rglob("*") if p.is_file() and not p.suffix]
    assert found.n_bytes_stored == sum(p.stat().st_size for p in blocks)
    assert not found.is_sample


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_floats_of_any_range_have_a_histogram(tmp_path: Path, scale: float) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, (23, 31)) * scale
    values[3:5] = 0.5 * scale  # a block of one value must not make the bins coarse
    values[7, 2], values[8, 3], values[9, 4] = np.nan, np.inf, -np.inf
    found = of_values(tmp_path, values, chunks=(2, 31))
    assert (found.n_nan, found.n_infinite) == (1, 2)
    assert len(found.histogram) >= 100
    check(found, values)


def test_values_at_both_ends_of_the_type(tmp_path: Path) -> None:
    values = np.array([[0, 2**64 - 1, 7], [2**63, 1, 2]], "u8")
    found = of_values(tmp_path, values, chunks=(1, 3))
    assert (found.minimum, found.maximum) == (0, 2**64 - 1)
    assert sum(found.histogram) == 6
    assert found.histogram[0] == 4


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("parts", "mean"),
    [
        ((-1, 0.5, 1), 1 / 6), ((1, 1, 1, 1, 1), 1), ((-1, -1, -0.5), -5 / 6),
        ((1, np.nan, 0.5, np.inf, -np.inf), 0.75), ((1,), 1), ((-1,), -1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunks", [1, 7])
def test_floats_at_both_ends_of_the_type(
    tmp_path: Path, dtype: str, parts: tuple[float, ...], mean: float, chunks: int
) -> None:
    largest = float(np.finfo(dtype).max)
    values = (np.array(parts) * largest).astype(dtype)
    finite = values[np.isfinite(values)]
    found = of_values(tmp_path, values, chunks=(chunks,))
    assert (found.minimum, found.maximum) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(mean * largest, rel=1e-7)
    assert sum(found.histogram) == finite.size
    assert -np.inf < found.bin_edges[0] <= float(finite.min())
    assert float(finite.max()) <= found.bin_edges[-1] < np.inf


def test_nothing_but_nan(tmp_path: Path) -> None:
    found = of_values(tmp_path, np.full((3, 5), np.nan, "f4"))
    assert (found.minimum, found.maximum, found.mean, found.histogram) == (None, None, None, ())
    assert found.n_nan == 15


def test_empty_blocks_are_missing_or_hold_only_0(tmp_path: Path) -> None:
    where = tmp_path / "c.n5"
    array: Any = n5zarr.create_array(where, path="a", shape=(5 * 7, 11), chunks=(5, 11), dtype="u2")
    array[:10] = 3
    n5zarr.write_block(where, "a", (0, 4), np.zeros((5, 11), "u2"))
    found = n5zarr.block_statistics(where, "a")
    assert (found.n_blocks, found.n_stored, found.n_zero) == (7, 3, 1)
    assert found.empty_share == pytest.approx(5 / 7)
    n5zarr.create_array(where, path="b", shape=(3, 5), dtype="u2")
    none = n5zarr.block_statistics(where, "b")
    assert (none.n_stored, none.empty_share, none.compression_ratio) == (0, 1.0, None)


def test_a_sample_is_the_same_each_time_and_says_so(tmp_path: Path) -> None:
    values = np.arange(300 * 7, dtype="u4").reshape(300, 7)
    n5zarr.create_array(tmp_path / "c.n5", path="a", data=values, chunks=(1, 7))
    found = n5zarr.block_statistics(tmp_path / "c.n5", "a", n_blocks=20)
    assert (found.n_read, found.n_stored, found.is_sample) == (20, 300, True)
    assert found.n_elements == 140
    assert found == n5zarr.block_statistics(tmp_path / "c.n5", "a", n_blocks=20)
    other = n5zarr.block_statistics(tmp_path / "c.n5", "a", n_blocks=20, seed=1)
    assert other.mean != found.mean


def test_label_multisets_are_counted_by_their_most_frequent_label() -> None:
    path = JAVA / "labels.n5" / "labels" / "s0"
    array: Any = n5zarr.open(path)
    found = n5zarr.block_statistics(path)
    assert found.maximum == array[...].max()
    assert found.n_elements == array.size


def test_booleans_are_0_and_1(tmp_path: Path) -> None:
    found = of_values(tmp_path, np.arange(35).reshape(5, 7) % 3 == 0)
    assert (found.minimum, found.maximum, found.histogram) == (0, 1, (23, 12))


def test_data_without_statistics_are_refused(tmp_path: Path) -> None:
    with pytest.raises(N5UnsupportedError, match="expected real numbers"):
        n5zarr.block_statistics(JAVA / "strings.n5" / "simple")
    with pytest.raises(FileNotFoundError, match="expected a dataset, got a group"):
        n5zarr.block_statistics(n5zarr.sample_path(), "em")
    root = shutil.copytree(n5zarr.sample_path(), tmp_path / "c.n5")
    (root / "em/s2/0/0/0").write_bytes(b"\0\0")
    with pytest.raises(N5BlockError, match="em/s2: block 0/0/0"):
        n5zarr.block_statistics(root, "em/s2")
    assert json.loads((root / "attributes.json").read_text())["n5"]


@pytest.mark.parametrize("values", [(0.3, 0.7, -5e-324), (0.3, 0.3, 0.3), (0.0, 0.0, 0.0)])
def test_large_blocks_of_one_float_each(tmp_path: Path, values: tuple[float, ...]) -> None:
    """Blocks above half a MiB are counted one by one; neither hides the others' values."""
    array = np.repeat(values, 65_543)
    found = of_values(tmp_path, array, chunks=(65_543,))
    n_stored = sum(value != 0 for value in values)  # blocks of 0 are not written
    assert (found.n_stored, found.n_read) == (n_stored, n_stored)
    assert found.empty_share == pytest.approx(1 - n_stored / 3)
    if n_stored:
        check(found, array)
        filled = [edge for edge, n in zip(found.bin_edges, found.histogram, strict=False) if n]
        assert len(filled) == len(set(values))


def test_an_array_without_elements_has_no_statistics(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(0, 5), dtype="u2")
    found = n5zarr.block_statistics(tmp_path / "c.n5", "a")
    assert (found.n_blocks, found.empty_share, found.compression_ratio) == (0, None, None)


def test_a_block_that_is_removed_meanwhile_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listed, and another program removes it before it is read."""

    def read_after_removal(keys: Sequence[str]) -> Any:
        (tmp_path / "c.n5/a/1").unlink(missing_ok=True)
        return read_each(keys)

    monkeypatch.setattr("n5zarr.tools.statistics.read_each", read_after_removal)
    found = of_values(tmp_path, np.arange(1, 8, dtype="u2"), chunks=(3,))
    assert (found.n_stored, found.n_read, found.n_elements) == (3, 2, 4)
    assert (found.minimum, found.maximum, found.mean) == (1, 7, (1 + 2 + 3 + 7) / 4)
