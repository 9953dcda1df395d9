"""Differences of two arrays agree with numpy's comparison of the whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore, WrapperStore

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from n5zarr.tools.diff import arrays

compare_arrays: Any = arrays.compare_arrays
SHAPE = (7, 11, 13)


@pytest.mark.each_of(5)
@pytest.mark.parametrize("dtype", ["u1", "i8", "u8", "f4", "f8", "c8"])
@pytest.mark.parametrize("max_box_bytes", [1, 2**10, 2**25])
def test_it_finds_what_numpy_finds(tmp_path: Path, dtype: str, max_box_bytes: int) -> None:
    random = np.random.default_rng(7)
    one = random.integers(0, 100, SHAPE).astype(dtype)
    two = one.copy()
    two[random.random(SHAPE) < 0.01] += np.array(3, dtype)
    two[5, 2:4, 6:9] += np.array(5, dtype)
    a = n5zarr.create_array(tmp_path / "a.n5" / "x", data=one, chunks=(3, 4, 5))
    b = zarr.create_array(tmp_path / "b.zarr", data=two, chunks=(2, 11, 3))
    found = compare_arrays(a, b, max_memory=4 * max_box_bytes, n_workers=1)
    where = np.argwhere(one != two)
    assert (found.n_differing, found.n_elements) == (len(where), one.size)
    assert [e.position for e in found.elements] == [tuple(w) for w in where[:5].tolist()]
    assert [e.first for e in found.elements] == [one[tuple(w)].item() for w in where[:5]]
    assert [e.second for e in found.elements] == [two[tuple(w)].item() for w in where[:5]]
    assert found.largest == np.abs(two.astype("c16") - one).max()
    assert compare_arrays(a, one, max_memory=4 * max_box_bytes, n_workers=1) is None
    near = compare_arrays(one, two, tolerance=3.5)
    assert near.n_differing == (np.abs(two.astype("c16") - one) > 3.5).sum()


@pytest.mark.parametrize(
    ("one", "two", "n_differing", "largest"),
    [
        ([1.0, np.nan, 0.0, np.inf], [1.0, np.nan, -0.0, np.inf], 0, None),
        ([1.0, np.nan, 3.0], [1.0, 2.0, 5.0], 2, 2.0),
        ([np.nan], [2.0], 1, None),
        ([np.inf], [-np.inf], 1, np.inf),
        (np.array([-(2**63), 2]), np.array([2**63 - 1, 2]), 1, 2**64 - 1),
        (np.array([2**53 + 1, 7]), np.array([2.0**53, 7.0]), 1, 0.0),
        (np.array([-1, 7], "i1"), np.array([255, 7], "u1"), 1, 256.0),
        (np.array(["a", "b"], object), np.array(["a", "c"], object), 1, None),
        (np.array(["a", "b"], "T"), np.array(["a", "c"], "T"), 1, None),
        (np.array(["NaT", "2026"], "M8[Y]"), np.array(["NaT", "2025"], "M8[Y]"), 1, None),
        (np.array([(1, [2, np.nan]), (3, [4, 5])], "i4,2f4"),
         np.array([(1, [2, np.nan]), (3, [4, 6])], "i4,2f4"), 1, None),
        (np.array(3), np.array(4), 1, 1),
        (np.zeros((0, 3)), np.zeros((0, 3)), 0, None),
    ],
)  # fmt: skip
def test_values_that_are_compared_with_care(
    one: Any, two: Any, n_differing: int, largest: float | None
) -> None:
    found = compare_arrays(np.asarray(one), np.asarray(two))
    assert (0 if found is None else found.n_differing) == n_differing
    assert (None if found is None else found.largest) == largest


def test_missing_blocks_equal_the_fill_value(tmp_path: Path) -> None:
    sparse = n5zarr.create_array(tmp_path / "a.n5", shape=(7, 11), dtype="i2", chunks=(3, 4))
    assert compare_arrays(sparse, np.zeros((7, 11), "i2")) is None


@pytest.mark.each_of(5)
@pytest.mark.parametrize("fills", [(0, 0), (0, 4), (3, 0)])
@pytest.mark.parametrize("max_box_bytes", [1, 60])
def test_boxes_without_blocks_count_like_all_others(
    tmp_path: Path, fills: tuple[int, int], max_box_bytes: int
) -> None:
    shape, random = (19, 17, 23), np.random.default_rng(5)
    one, two = (np.full(shape, fill, "i4") for fill in fills)
    for _ in range(5):
        x, y, z = (int(random.integers(n - 2)) for n in shape)
        one[x : x + 2, y : y + 3, z : z + 2] = two[x : x + 2, y : y + 3, z : z + 2] = 9
    two[2:4, 11:13, 5] = -7
    a = n5zarr.create_array(tmp_path / "a.n5/x", data=one, chunks=(3, 4, 5), fill_value=fills[0])
    b = zarr.create_array(tmp_path / "b.zarr", shape=shape, dtype="i4", chunks=(2, 11, 3),
                          fill_value=fills[1])  # fmt: skip
    b[...] = two
    n_stored = sum(1 for file in (tmp_path / "b.zarr/c").rglob("*") if file.is_file())
    assert 0 < n_stored < b.nchunks / 2
    where = np.argwhere(one != two)
    how: Any = {"max_memory": 4 * max_box_bytes, "n_workers": 1}
    with h5py.File(tmp_path / "c.h5", "w") as file:
        c = file.create_dataset("x", shape, "i4", chunks=(2, 11, 3), fillvalue=fills[1])
        for corner in np.argwhere(two != fills[1]).tolist():
            c[tuple(corner)] = two[tuple(corner)]
        for other in (b, c):
            found = compare_arrays(a, other, **how)
            assert (found.n_differing, found.n_elements) == (len(where), one.size)
            assert [e.position for e in found.elements] == [tuple(w) for w in where[:5].tolist()]
            assert [e.first for e in found.elements] == [one[tuple(w)] for w in where[:5]]
            assert [e.second for e in found.elements] == [two[tuple(w)] for w in where[:5]]
            assert found.largest == np.abs(two - one).max()
            tolerant = compare_arrays(a, other, tolerance=5, **how)
            assert tolerant.n_differing == (np.abs(two - one) > 5).sum()


def test_a_store_that_lists_no_chunks_is_read_all(tmp_path: Path) -> None:
    class Silent(WrapperStore[MemoryStore]):
        async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
            async for key in super().list_prefix(prefix):
                if key.endswith("zarr.json"):
                    yield key

    store = Silent(MemoryStore())
    made = zarr.create_array(store, shape=(97, 7), chunks=(1, 7), dtype="u1")
    made[...] = 3
    found = compare_arrays(np.zeros((97, 7), "u1"), made, max_memory=28, n_workers=1)
    empty = n5zarr.create_array(tmp_path / "a.n5/x", shape=(97, 7), chunks=(1, 7), dtype="u1")
    assert found == compare_arrays(empty, made, max_memory=28, n_workers=1)
    assert found.n_differing == 97 * 7


def test_h5py_processes_and_progress(tmp_path: Path) -> None:
    data = np.arange(7 * 11, dtype="u2").reshape(7, 11)
    array = n5zarr.create_array(tmp_path / "a.n5", data=data, chunks=(3, 4))
    told: list[tuple[str, int, int]] = []
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = data
        assert compare_arrays(array, file["x"], progress=lambda *args: told.append(args)) is None
    assert told[-1] == ("compare", data.nbytes, data.nbytes)
    data[6, 10] = 0
    found = compare_arrays(array, data, max_memory=240, scheduler="processes", n_workers=1)
    assert [e.position for e in found.elements] == [(6, 10)]


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(N5UnrepresentableError, match=r"got \(3,\) and \(5,\)"):
        compare_arrays(np.zeros(3), np.zeros(5))


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    values = np.zeros(3)
    each: list[tuple[Any, str]] = [((str(tmp_path), values), "first"), ((values, [0]), "second")]
    for given, name in each:
        with pytest.raises(N5UnrepresentableError, match=f"{name}: expected an array, got"):
            compare_arrays(*given)
