"""``N5Store(..., coords=True)`` shows axes as coordinate arrays to ``xr.open_zarr``."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from tests.contract.truth import METADATA, TRUTH, check_truth

SAMPLE = n5zarr.sample_path()


def opened(store: Any, **options: Any) -> xr.Dataset:
    found: xr.Dataset = xr.open_zarr(store, **options)
    return found


@pytest.mark.each_of(7)
@pytest.mark.parametrize("truth", TRUTH, ids=lambda line: line["path"])
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_open_zarr_finds_names_positions_and_units(truth: dict[str, Any], axis_order: Any) -> None:
    store = N5Store(METADATA, coords=True, axis_order=axis_order)
    check_truth(opened(store, group=truth["path"]), truth, axis_order)


@pytest.mark.each_of(2)
@pytest.mark.parametrize("codecs", ["zarr", "n5", "portable"])
def test_it_is_what_the_engine_opens(codecs: Any) -> None:
    store: Any = N5Store(SAMPLE, coords=True, codecs=codecs)
    for group in ("em/s0", "em/s1", "em/s2", "labels/s0"):
        expected = xr.open_dataset(SAMPLE, engine="n5", group=group)
        xr.testing.assert_identical(opened(store, group=group).load(), expected)
    tree = xr.open_datatree(store, engine="zarr")
    assert sorted(tree.groups) == [
        "/", "/em", "/em/s0", "/em/s1", "/em/s2", "/labels", "/labels/s0",
    ]  # fmt: skip


def test_the_hierarchy_is_consistent() -> None:
    store = N5Store(SAMPLE, coords=True)
    root = zarr.open_group(store, mode="r")
    members = dict(root.members(max_depth=None))
    assert {"em/s1", "em/s1/s1", "em/s1/x", "labels/s0/s0", "labels/s0/z"} <= set(members)
    keys = sync(all_keys(store, ""))
    assert len(keys) == len(set(keys))
    for key in keys:
        assert sync(store.exists(key)), key
        assert sync(store.get(key, zarr.buffer.default_buffer_prototype())), key
    for prefix in ("em", "em/s1", "em/s1/s1", "em/s1/x", "em/s1/s1/c", "em/s1/s1/c/0"):
        below = sync(all_keys(store, prefix))
        assert below == [k for k in keys if k.startswith(f"{prefix}/")]
        names = sync(all_names(store, prefix))
        assert names == sorted({k[len(prefix) + 1 :].split("/")[0] for k in below})
    chunks = ("c", "c/1", "c/99", "c/0/0", "c/0/5")  # of a coordinate, which has one index
    nodes = ("em/zarr.json/x", "em/s9/zarr.json", "em/s1/q/zarr.json")
    for nothing in (*nodes, *(f"em/s1/x/{chunk}" for chunk in chunks)):
        assert not sync(store.exists(nothing))
        assert store.get_sync(nothing) is None
        assert sync(store.get(nothing, zarr.buffer.default_buffer_prototype())) is None
    assert sync(store.is_empty("em/s9"))


async def all_keys(store: N5Store, prefix: str) -> list[str]:
    return [key async for key in store.list_prefix(prefix)]


async def all_names(store: N5Store, prefix: str) -> list[str]:
    return [name async for name in store.list_dir(prefix)]


def test_it_can_be_pickled_and_is_read_only() -> None:
    store = N5Store(SAMPLE, coords=True)
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert store == N5Store(SAMPLE)  # of the same place
    assert again.coords
    assert "coords=True" in repr(store)
    xr.testing.assert_identical(opened(again, group="em/s2"), opened(store, group="em/s2"))
    assert store.read_only
    with pytest.raises(ValueError, match="read-only"):
        zarr.open_group(store, mode="r+").attrs["a"] = 1
    with pytest.raises(n5zarr.N5Error, match="coordinates are not stored"):
        store.with_read_only(read_only=False)


def test_a_root_that_is_a_dataset_is_a_group_of_it(tmp_path: Path) -> None:
    values = np.arange(15, dtype="u2").reshape(3, 5)
    n5zarr.create_array(tmp_path, data=values, axes="yx", units=["um", "um"], resolution=[2, 3])
    dataset = opened(N5Store(tmp_path, coords=True))
    assert list(dataset) == ["data"]
    assert dataset["x"].values.tolist() == [0, 3, 6, 9, 12]
    np.testing.assert_array_equal(dataset["data"], values)


@pytest.mark.parametrize("unit", ["s", "ms", "seconds", "milliseconds", "days"])
def test_time_stays_numbers(tmp_path: Path, unit: str) -> None:
    n5zarr.create_array(
        tmp_path / "c.n5" / "movie", shape=(4, 3), dtype="u1", axes="tx",
        units=[unit, "nm"], resolution=[0.5, 2],
    )  # fmt: skip
    for found in (
        opened(N5Store(tmp_path / "c.n5", coords=True), group="movie"),
        xr.open_dataset(tmp_path / "c.n5", engine="n5"),
        xr.open_dataset(tmp_path / "c.n5", engine="n5", group="movie"),
    ):
        assert found["t"].dtype == "float64"
        assert found["t"].values.tolist() == [0, 0.5, 1, 1.5]
        assert found["t"].attrs["units"].rstrip("s") == unit.rstrip("s")


def test_changes_of_axes_are_seen_when_the_group_is_opened_again(tmp_path: Path) -> None:
    make: Callable[..., Any] = n5zarr.create_array
    make(tmp_path / "a", shape=(3,), dtype="u1", axes="x", units=["nm"], resolution=[2])
    store = N5Store(tmp_path, coords=True)
    assert opened(store, group="a")["x"].values.tolist() == [0, 2, 4]
    make(tmp_path / "b", shape=(3,), dtype="u1", axes="x", units=["nm"], resolution=[2])
    assert set(opened(store, group="b")) == {"b"}
    make(tmp_path / "c", shape=(3,), dtype="u1", axes="x", units=["nm"], resolution=[9])
    assert set(opened(store)) == set()
    assert opened(store, group="c")["x"].values.tolist() == [0, 9, 18]


WRITTEN: dict[
    str, Callable[[Any, Path], Any]
] = {  # how xarray writes a Dataset, as itself or through n5zarr
    "to_n5": lambda ds, where: n5zarr.to_n5(ds, where, group="g"),
    "ngff": lambda ds, where: n5zarr.to_n5(ds, where, group="g", convention="ngff"),
    "v3": lambda ds, where: ds.to_zarr(N5Store(where), group="g", zarr_format=3),
    "v2": lambda ds, where: ds.to_zarr(N5Store(where), group="g", zarr_format=2),
    "no index": lambda ds, where: ds.drop_vars(["x", "y"]).to_zarr(N5Store(where), group="g"),
}


@pytest.mark.each_of(2)
@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_a_dataset_that_xarray_wrote_is_one(tmp_path: Path, how: str) -> None:
    ds = xr.Dataset(
        {"a": (("y", "x"), np.arange(35.0).reshape(5, 7)), "b": ("x", np.arange(7))},
        coords={
            "x": ("x", 0.5 * np.arange(7), {"units": "um"}),
            "y": ("y", 2.0 * np.arange(5), {"units": "um"}),
            **({"t": 4} if how == "no index" else {}),
        },
        attrs={"title": "both"},
    )
    WRITTEN[how](ds, tmp_path / "c.n5")
    written = ds.drop_vars(["x", "y"]) if how == "no index" else ds
    store = N5Store(tmp_path / "c.n5", coords=True)
    xr.testing.assert_identical(opened(store, group="g").load(), written)
    xr.testing.assert_identical(
        xr.open_dataset(tmp_path / "c.n5", engine="n5", group="g").load(), written
    )


def test_the_path_of_a_dataset_opens_whatever_is_beside_it(tmp_path: Path) -> None:
    for name in ("raw", "labels"):  # of the same positions
        n5zarr.create_array(
            tmp_path, path=f"em/{name}", shape=(3, 5), dtype="u1", axes="yx",
            units=["nm", "nm"], resolution=[4, 2],
        )  # fmt: skip
    store = N5Store(tmp_path, coords=True)
    for name in ("raw", "labels"):
        found = opened(store, group=f"em/{name}")
        assert (set(found), found["x"].values.tolist()) == ({name}, [0, 2, 4, 6, 8])
        assert zarr.open_array(store, path=f"em/{name}/{name}", mode="r").shape == (3, 5)
    assert set(zarr.open_group(store, path="em", mode="r").group_keys()) == {"raw", "labels"}


def test_coordinates_longer_than_a_chunk(tmp_path: Path) -> None:
    n = 2**20 + 7
    n5zarr.create_array(
        tmp_path / "a", shape=(n,), chunks=(2**16,), dtype="u1", axes="x", units=["nm"],
        resolution=[0.1], offset=[3],
    )  # fmt: skip
    found = opened(N5Store(tmp_path, coords=True), group="a")["x"].values
    np.testing.assert_array_equal(found, 0.1 * np.arange(n) + 3)


def test_names_and_units_that_would_mislead_zarr_or_xarray(tmp_path: Path) -> None:
    transform: Any = {
        "axes": ["..", "."], "scale": [1, 2], "translate": [0, 0],
        "units": ["hours since 2020-01-01", "nm"],
    }  # fmt: skip
    n5zarr.create_array(
        tmp_path / "a", shape=(3, 4), dtype="u1", attributes={"transform": transform}
    )
    with pytest.warns(n5zarr.N5Warning, match="hours since"):
        found = opened(N5Store(tmp_path, coords=True), group="a")
    assert found["dim_0"].values.tolist() == [0, 1, 2]
    assert found["dim_1"].values.tolist() == [0, 2, 4, 6]
