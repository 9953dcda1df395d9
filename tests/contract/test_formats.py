"""Groups, arrays and consolidated metadata are shown in the Zarr format of their writer."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5Error

VALUES = np.arange(35, dtype="u2").reshape(5, 7)


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else tmp_path / "c.n5"


def test_a_hierarchy_of_v2_is_one_when_it_is_opened_again(place: Any) -> None:
    group = zarr.create_group(N5Store(place), zarr_format=2, attributes={"k": [1, None]})
    group.create_array("x/y", shape=(5, 7), chunks=(2, 3), dtype="u2", order="F")[...] = VALUES
    again = zarr.open_group(N5Store(place), mode="r+")
    assert again.metadata.zarr_format == 2
    assert dict(again.attrs) == {"k": [1, None]}
    shown = dict(again.members(max_depth=None))
    assert {name: node.metadata.zarr_format for name, node in shown.items()} == {"x": 2, "x/y": 2}
    array: Any = again["x/y"]
    np.testing.assert_array_equal(array[...], VALUES)
    assert array.metadata.order == "F"
    array[1:4, 2:5] = 7
    array.resize((7, 7))
    array.attrs["new"] = True
    reopened: Any = zarr.open(N5Store(place), path="x/y", mode="r")
    assert (reopened.shape, dict(reopened.attrs)) == ((7, 7), {"new": True})
    assert (reopened[1:4, 2:5] == 7).all()


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_array_is_not_lost_to_one_of_the_other_format(place: Any, overwrite: bool) -> None:
    n5zarr.create_array(place, path="a/x", shape=(5, 7), dtype="u2")[...] = VALUES
    store = N5Store(place)
    options: dict[str, Any] = {"zarr_format": 2, "shape": (3,), "dtype": "f4"}
    if overwrite:
        zarr.create_array(store, name="a/x", overwrite=True, **options)
        assert zarr.open_array(N5Store(place), path="a/x", mode="r").shape == (3,)
        return
    for path, what in [("a/x", "an array"), ("a", "a group")]:
        with pytest.raises(N5Error, match=rf"{path}: .*got {what} of Zarr v3") as err:
            zarr.create_array(store, name=path, **options)
        assert err.value.kind == "changed"
    with pytest.raises(N5Error, match="got an array of Zarr v3"):
        zarr.open_group(store, path="a/x", mode="a", zarr_format=2)
    array = zarr.open_array(N5Store(place), path="a/x", mode="r")
    np.testing.assert_array_equal(array[...], VALUES)


@pytest.mark.parametrize("fast", [True, False])
def test_open_arrays_go_on_when_the_format_changes(tmp_path: Path, fast: bool) -> None:
    """Open arrays keep working when the format changes, as each chunk key has its own form."""
    root = tmp_path / "c.n5"
    pipeline = "n5zarr.arrays.pipeline.N5CodecPipeline"
    if not fast:
        pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        zarr.create_array(N5Store(root), name="g/x", shape=(5, 7), chunks=(2, 3), dtype="u2")
        of_v3: Any = zarr.open_array(N5Store(root), path="g/x", mode="r+")
        of_v3[...] = VALUES
        zarr.create_group(N5Store(root), path="g", zarr_format=2)
        of_v2: Any = zarr.open_array(N5Store(root), path="g/x", mode="r+")
        assert (of_v3.metadata.zarr_format, of_v2.metadata.zarr_format) == (3, 2)
        for k, array in enumerate([of_v3, of_v2, pickle.loads(pickle.dumps(of_v3))]):
            np.testing.assert_array_equal(array[k:], VALUES[k:])
            array[k] = 100 + k
            np.testing.assert_array_equal(of_v3[k], [100 + k] * 7)
            np.testing.assert_array_equal(of_v2[k], [100 + k] * 7)


def names_in_v2(root: Path, path: str) -> Any:
    return zarr.open_array(N5Store(root, zarr_format=2), path=path).attrs.get("_ARRAY_DIMENSIONS")


def names_in_v3(root: Path, path: str) -> Any:
    array: Any = zarr.open_array(N5Store(root, zarr_format=3), path=path, mode="r")
    return array.metadata.dimension_names


def test_arrays_with_some_names_have_no_attribute_in_v2(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    zarr.create_array(
        N5Store(root), name="a", shape=(5, 7), dtype="u2", dimension_names=("y", None)
    )
    assert names_in_v2(root, "a") is None
    assert names_in_v3(root, "a") == ("y", None)


def test_open_shows_the_nodes_of_both_formats(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    for number, zarr_format in enumerate([3, 2, 3]):
        name = f"g{number}" + "/h" * (number == 2)
        store = N5Store(root)
        zarr.create_array(store, name=f"{name}/a", shape=(5,), dtype="u2", zarr_format=zarr_format)  # type: ignore[arg-type]
    for place in (root, N5Store(root)):
        group: Any = n5zarr.open(place)
        names = {name for name, _ in group.members(max_depth=None)}
        assert names == {"g0", "g0/a", "g1", "g1/a", "g2", "g2/h", "g2/h/a"}
        assert set(group.keys()) == {"g0", "g1", "g2"}
        assert all(name in group for name in names)
        assert {group[name].metadata.zarr_format for name in names} == {3}


def test_xarray_says_that_an_array_of_v2_has_no_names(place: Any) -> None:
    """xarray reports that an array of v2 has no names of axes, as for zarr's own stores."""
    zarr.create_array(N5Store(place), name="a", shape=(3,), dtype="i4", zarr_format=2)
    with pytest.raises(KeyError, match="required for xarray to determine variable dimensions"):
        xr.open_zarr(N5Store(place), consolidated=False)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("encoding", [{}, {"scale_factor": 0.5}], ids=["plain", "scaled"])
@pytest.mark.parametrize("fill", [-1, 0])
def test_missing_values_of_either_format_are_missing_in_each_way(
    tmp_path: Path, zarr_format: Any, encoding: dict[str, Any], fill: int
) -> None:
    values = np.array([1, np.nan, 2])
    xr.Dataset({"a": ("x", values)}).to_zarr(
        N5Store(tmp_path / "c.n5"),
        zarr_format=zarr_format,
        consolidated=False,
        encoding={"a": {"_FillValue": fill, "dtype": "i2", **encoding}},
    )
    for found in (
        xr.open_zarr(N5Store(tmp_path / "c.n5"), consolidated=False),
        xr.open_dataset(tmp_path / "c.n5", engine="n5"),
        xr.open_datatree(tmp_path / "c.n5", engine="n5"),
    ):
        np.testing.assert_array_equal(found["a"], values)
        assert found["a"].encoding["_FillValue"] == fill


def test_zeros_are_not_missing_without_a_fill_value_of_xarrays(tmp_path: Path) -> None:
    array: Any = zarr.create_array(
        N5Store(tmp_path / "c.n5"), name="a", shape=(3,), dtype="i2", zarr_format=2
    )
    array[...] = [1, 0, 2]
    assert zarr.open_array(N5Store(tmp_path / "c.n5"), path="a").fill_value == 0
    found = xr.open_dataset(tmp_path / "c.n5", engine="n5")["a"]
    assert (found.dtype, found.to_numpy().tolist()) == (np.dtype("i2"), [1, 0, 2])
    xr.Dataset({"b": ("x", [1, 0, 2])}).to_zarr(N5Store(tmp_path / "d.n5"), zarr_format=2)
    for ds in (
        xr.open_zarr(N5Store(tmp_path / "d.n5")),
        xr.open_dataset(tmp_path / "d.n5", engine="n5"),
    ):
        assert (ds["b"].dtype, ds["b"].to_numpy().tolist()) == (np.dtype("i8"), [1, 0, 2])
