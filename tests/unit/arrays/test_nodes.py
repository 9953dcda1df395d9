"""What arrays and groups of n5zarr have beyond zarr's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from tests.unit.arrays.blocks import CHUNKS, numbers, write_dataset


@pytest.fixture
def group(tmp_path: Path) -> Any:
    write_dataset(tmp_path, numbers())
    n5zarr.open_group(tmp_path, "a").create_group("g/h")
    return n5zarr.open(tmp_path, "r+")


def test_visiting_ends_with_the_first_value(group: Any) -> None:
    seen: list[str] = []
    assert group.visititems(lambda name, _: seen.append(name)) is None
    assert sorted(seen) == ["d", "g", "g/h"]
    assert group.visititems(lambda name, node: name if isinstance(node, zarr.Array) else None) == (
        "d"
    )
    assert group.visititems(lambda *_: 0) == 0  # also what is false is a value


def test_datasets_below_a_group(group: Any) -> None:
    values = numbers()
    with group as same:
        assert same is group
        made = same["g"].create_dataset("x/y", data=values, chunks=CHUNKS, compression="raw")
    assert (made.path, made.chunks) == ("g/x/y", CHUNKS)
    np.testing.assert_array_equal(group["g/x/y"][...], values)
    found = group["g"].require_dataset("x/y", values.shape, values.dtype)
    assert found.path == made.path
    new = group.require_dataset("z", 7, "i2", chunks=(3,))
    assert (new.shape, new.dtype, new.chunks) == ((7,), np.dtype("i2"), (3,))
    assert group.require_dataset("z", (7,), "i1").dtype == "i2"  # its elements fit
    for shape, dtype, exact in [((7,), "i1", True), ((7,), "i4", False), ((8,), None, False)]:
        with pytest.raises(TypeError, match="z: expected "):
            group.require_dataset("z", shape, dtype, exact=exact)
    with pytest.raises(TypeError, match="h: expected a dataset"):
        group["g"].require_dataset("h", (7,))


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_appending(group: Any, axis: int | None) -> None:
    array, values = group["d"], numbers()
    array.append(values, *[axis] * (axis is not None))
    expected = np.concatenate([values, values], axis or 0)
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(n5zarr.open_array(array.store, path="d")[...], expected)
