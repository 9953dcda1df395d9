"""``engine="n5"``: axes and units as coordinates, with every warning an error."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.xarray.backend import N5BackendEntrypoint

JAVA = Path(__file__).parents[1] / "data" / "java"
METADATA = JAVA / "metadata.n5"
SAMPLE = n5zarr.sample_path()
TRUTH = [json.loads(line) for line in (JAVA / "metadata.truth.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("truth", TRUTH, ids=lambda line: line["path"])
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_every_convention_gives_coordinates(truth: dict[str, Any], axis_order: Any) -> None:
    path = truth["path"]
    dataset = xr.open_dataset(METADATA, engine="n5", group=path, axis_order=axis_order)
    array = dataset[path.rpartition("/")[2]]
    in_order = truth["axes"] if axis_order == "F" else truth["axes"][::-1]
    assert list(array.dims) == in_order
    units = truth["unit"] if isinstance(truth["unit"], list) else [truth["unit"]] * 3
    for i, name in enumerate(truth["axes"]):
        labels = truth.get("labels", {}).get(name)
        if labels:
            assert dataset[name].values.tolist() == labels
            continue
        expected = truth["scale"][i] * np.arange(array.sizes[name]) + truth["translation"][i]
        np.testing.assert_array_equal(dataset[name].values, expected)
        assert dataset[name].attrs.get("units") == units[i]
    plain = zarr.open_array(N5Store(METADATA, axis_order=axis_order), path=path)
    assert array.dtype == plain.dtype
    np.testing.assert_array_equal(array.values, plain[...])


def test_a_pyramid_is_a_tree_and_its_group_says_so() -> None:
    tree = xr.open_datatree(SAMPLE, engine="n5")
    assert tree["em/s1/s1"].dims == ("z", "y", "x")
    assert sorted(tree["em"].children) == ["s0", "s1", "s2"]
    assert tree["labels/s0"].dtype == "uint64"
    with pytest.warns(n5zarr.N5Warning, match=r"xr\.open_datatree: s0, s1, s2"):
        assert len(xr.open_dataset(SAMPLE, engine="n5", group="em")) == 0
    groups = xr.open_groups(SAMPLE, engine="n5")
    assert sorted(groups) == ["/", "/em", "/em/s0", "/em/s1", "/em/s2", "/labels"]


def test_what_people_do_with_a_level() -> None:
    dataset = xr.open_dataset(SAMPLE, engine="n5", group="em/s1")
    array = dataset["s1"]
    raw = np.asarray(zarr.open_array(N5Store(SAMPLE), path="em/s1")[...])
    np.testing.assert_array_equal(array.sel(x=20.0, y=4.0, method="nearest"), raw[:, 0, 1])
    np.testing.assert_array_equal(array.sel(z=slice(50, 130)), raw[1:4])
    np.testing.assert_array_equal(
        array.isel(z=[3, 1], x=slice(None, None, -2)), raw[[3, 1], :, ::-2]
    )
    np.testing.assert_array_equal((array + array).values, raw + raw)
    np.testing.assert_array_equal(dataset.to_dataarray()[0], raw)
    joined = xr.concat([array.isel(z=slice(0, 3)), array.isel(z=slice(3, None))], "z")
    xr.testing.assert_identical(joined, array)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset))["s1"], raw)
    lazy = xr.open_dataset(SAMPLE, engine="n5", group="em/s1", chunks={})
    assert lazy["s1"].chunks == ((16, 4), (40, 8), (50, 14))
    np.testing.assert_array_equal(lazy["s1"].mean("z"), raw.mean(0))


def test_datasets_that_agree_are_one_dataset(tmp_path: Path) -> None:
    for name in ("image", "labels"):
        n5zarr.create_array(
            tmp_path / "c.n5" / "g" / name,
            shape=(3, 5),
            dtype="u2",
            axes="yx",
            units=["nm", "nm"],
            resolution=[4, 8],
        )[:] = 7
    dataset = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="g")
    assert list(dataset.data_vars) == ["image", "labels"]
    assert dataset["x"].values.tolist() == [0, 8, 16, 24, 32]
    assert dataset["x"].attrs == {"units": "nm"}
    assert "units" not in dataset["image"].attrs
    dropped = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="g", drop_variables="labels")
    assert list(dropped.data_vars) == ["image"]


def test_what_xarray_wrote_comes_back(tmp_path: Path) -> None:
    dataset = xr.Dataset(
        {
            "a": (("t", "x"), np.array([[1.5, np.nan], [3, 4], [5, 6]]), {"note": "n"}),
            "b": (("t",), np.array([1, 2, 3], "i2")),
        },
        coords={"t": np.array(["2020-01-01", "2020-01-02", "2020-01-05"], "M8[ns]"), "x": [10, 20]},
        attrs={"title": "t"},
    )
    dataset.to_zarr(N5Store(tmp_path / "c.n5"), consolidated=False)
    found = xr.open_dataset(tmp_path / "c.n5", engine="n5")
    xr.testing.assert_identical(found.load(), dataset)


def test_plain_zarr_is_written_from_it(tmp_path: Path) -> None:
    """With the compression of N5's standard presentation, readable without n5zarr."""
    dataset = xr.open_dataset(SAMPLE, engine="n5", group="em/s1")
    dataset.to_zarr(tmp_path / "plain.zarr", consolidated=False)
    document = json.loads((tmp_path / "plain.zarr" / "s1" / "zarr.json").read_text())
    assert [codec["name"] for codec in document["codecs"]] == ["bytes", "gzip"]
    script = f"""
import sys
sys.modules["n5zarr"] = None
import zarr
print(zarr.open_array({str(tmp_path / "plain.zarr")!r}, path="s1", mode="r")[...].sum())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == int(dataset["s1"].sum())


@pytest.mark.parametrize(
    ("location", "can"),
    [
        ("x.n5", True),
        ("s3://bucket/x.n5/em/s0", True),
        (Path("a.n5") / "b", True),
        ("x.zarr", False),
        ("x.nc", False),
        (5, False),
    ],
)
def test_the_engine_may_be_left_out_for_n5(location: Any, can: bool) -> None:
    assert N5BackendEntrypoint().guess_can_open(location) is can


def test_the_engine_is_found_without_being_named(tmp_path: Path) -> None:
    assert list(xr.open_dataset(f"{SAMPLE}/em/s2")) == ["s2"]
    assert N5BackendEntrypoint().guess_can_open(N5Store(SAMPLE))
    (tmp_path / "attributes.json").write_text("{}")
    assert N5BackendEntrypoint().guess_can_open(tmp_path)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(SAMPLE, engine="n5", group="nothing")


def test_a_convention_can_be_forced() -> None:
    path = METADATA / "cosem" / "s1"
    by_n5viewer = xr.open_dataset(path, engine="n5", convention="n5viewer")
    assert by_n5viewer["x"].values[1] - by_n5viewer["x"].values[0] == 12
    assert xr.open_dataset(path, engine="n5", convention="imagej").coords == {}


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("codecs", ["zarr", "n5", "portable"])
def test_a_store_object_is_opened_whatever_it_shows(zarr_format: Any, codecs: Any) -> None:
    store: Any = N5Store(SAMPLE, zarr_format=zarr_format, codecs=codecs)  # xarray's types know none
    found = xr.open_dataset(store, engine="n5", group="em/s2")
    xr.testing.assert_identical(found, xr.open_dataset(f"{SAMPLE}/em/s2"))


def test_broken_neighbours_do_not_keep_a_dataset_from_being_opened(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "c.n5")
    (tmp_path / "c.n5" / "em" / "s0" / "attributes.json").write_text('{"dimensions":')
    assert xr.open_dataset(tmp_path / "c.n5" / "em" / "s1")["x"].attrs == {"units": "nm"}
    (tmp_path / "c.n5" / "em" / "attributes.json").write_text("{")
    with pytest.warns(n5zarr.N5Warning, match=r"no axes are taken from em/attributes\.json"):
        found = xr.open_dataset(tmp_path / "c.n5" / "em" / "s1")
    assert found["x"].attrs == {"units": "nm"}
    (tmp_path / "c.n5" / "em" / "attributes.json").unlink()
    with pytest.warns(n5zarr.N5Warning, match="left out") as warned:
        tree = xr.open_datatree(tmp_path / "c.n5", engine="n5")
    assert sorted(tree["em"].children) == ["s1", "s2"]
    assert len(warned) == 1
