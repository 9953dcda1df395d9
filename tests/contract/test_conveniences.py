"""``open_array``, ``open_group``, ``create_array(data=)`` and ``fill_missing`` work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.errors import ChunkNotFoundError
from zarr.storage import MemoryStore

import n5zarr
from n5zarr.errors import N5MissingDependencyError, N5UnrepresentableError

VALUES = np.arange(35, dtype="u2").reshape(5, 7)


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else tmp_path / "c.n5"


# ---------------------------------------------------------------------- arrays and groups


def test_an_array_of_data(place: Any) -> None:
    array = n5zarr.create_array(place, path="g/x", data=VALUES, chunks=(2, 3), compression="zstd")
    assert (array.shape, array.dtype) == ((5, 7), np.dtype("u2"))
    found = n5zarr.open_array(place, path="g/x", shape=(5, 7), compression={"type": "zstd"})
    np.testing.assert_array_equal(found[...], VALUES)
    wider = n5zarr.create_array(place, path="g/y", data=VALUES.tolist(), dtype="f4", shape=(5, 7))
    np.testing.assert_array_equal(wider[...], VALUES.astype("f4"))
    scalar = n5zarr.create_array(place, path="g/z", data=3.5)
    assert (scalar.shape, float(scalar[...])) == ((), 3.5)  # type: ignore[arg-type]
    assert isinstance(scalar.get_basic_selection(()), np.generic)  # as zarr's
    raw = n5zarr.create_array(
        place, path="g/w", data=VALUES, compression=None, attributes={"by": "me"}
    )
    assert raw.compressors == ()
    assert raw.attrs["by"] == "me"
    group = n5zarr.open_group(place)
    assert [group.nmembers(depth) for depth in (0, 1, None)] == [1, 5, 5]


def test_missing_blocks_can_be_errors(place: Any) -> None:
    array = n5zarr.create_array(place, path="x", shape=(5, 7), chunks=(2, 3), dtype="u2")
    array[2:4, 3:6] = 7
    careful = n5zarr.open_array(place, path="x", fill_missing=False)
    assert (careful[2:4, 3:6] == 7).all()  # type: ignore[union-attr]
    boxes: list[Any] = [(slice(None), slice(None)), (0, 0), (slice(1, 3), slice(3, 6))]
    for box in boxes:
        with pytest.raises(ChunkNotFoundError):
            careful[box]
    assert n5zarr.open_array(place, path="x")[0, 0] == 0
    with pytest.raises(N5UnrepresentableError, match="fill_missing: expected only with an array"):
        n5zarr.open(place, fill_missing=False)


def test_nothing_is_removed_for_data_that_cannot_be_written(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="a", data=np.arange(5, dtype="u2"))
    for data, dtype in [(["abc"], "i4"), (["\ud800"], "string")]:
        with pytest.raises(N5UnrepresentableError):
            n5zarr.create_array(root, path="a", data=data, dtype=dtype, overwrite=True)
    array: Any = n5zarr.open_array(root, path="a")
    assert array[...].tolist() == [0, 1, 2, 3, 4]


def test_a_missing_package_is_told_before_anything_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(6, dtype="u2").reshape(2, 3)
    n5zarr.create_array(tmp_path / "c.n5/x", data=values)
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    with pytest.raises(N5MissingDependencyError, match="lz4"):
        n5zarr.create_array(tmp_path / "c.n5/x", data=values, compression="lz4", overwrite=True)
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "c.n5/x")[:], values)
