"""``n5zarr.to_n5``: what xarray holds as N5, and the same back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorstore as ts
import xarray as xr
import z5py
from hypothesis import given
from hypothesis import strategies as st
from zarr.errors import ContainsGroupError

import n5zarr

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLE = n5zarr.sample_path()
CONVENTIONS = ["cosem", "n5viewer", "neuroglancer", "ngff"]
SHAPE = (13, 17, 19)


def volume(
    shape: Sequence[int] = SHAPE,
    dims: str = "zyx",
    *,
    name: str | None = "image",
    scale: Sequence[float] = (40.0, 0.1, 0.3),
    place: Sequence[float] = (10.0, 0.5, -3.0),
    dtype: Any = "uint16",
) -> xr.DataArray:
    coords = {
        dim: (dim, scale[i] * np.arange(shape[i]) + place[i], {"units": "nm"})
        for i, dim in enumerate(dims)
    }
    values = np.random.default_rng(7).integers(1, 99, tuple(shape)).astype(dtype)
    return xr.DataArray(values, dims=tuple(dims), coords=coords, name=name, attrs={"note": "n"})


def opened(path: Path, group: str = "") -> xr.Dataset:
    return xr.open_dataset(path, engine="n5", group=group).load()


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "attributes.json").read_text())
    return found


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_what_was_written_comes_back(tmp_path: Path, convention: Any) -> None:
    dataset = volume().to_dataset()
    dataset["labels"] = dataset["image"].astype("uint64")
    dataset["mean"] = dataset["image"].mean("z")
    dataset.attrs["title"] = "t"
    n5zarr.to_n5(dataset, tmp_path / "c.n5", convention=convention)
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)
    # positions are metadata, not datasets
    names = {path.name for path in (tmp_path / "c.n5").iterdir()}
    assert names == {"attributes.json", "image", "labels", "mean"}
    for name, variable in dataset.data_vars.items():
        alone = opened(tmp_path / "c.n5", str(name))
        xr.testing.assert_identical(alone[name], variable)


def test_each_convention_is_written_as_others_write_it(tmp_path: Path) -> None:
    for convention in CONVENTIONS:
        options: Any = {"convention": convention}
        n5zarr.to_n5(volume(), tmp_path / convention, group="image", **options)
    cosem = document(tmp_path / "cosem" / "image")
    assert cosem["transform"] == {
        "axes": ["z", "y", "x"],
        "scale": [40, 0.1, 0.3],
        "translate": [10, 0.5, -3],
        "units": ["nm", "nm", "nm"],
    }
    viewer = document(tmp_path / "n5viewer" / "image")
    assert viewer["pixelResolution"] == {"unit": "nm", "dimensions": [0.3, 0.1, 40]}
    assert viewer["affineTransform"] == [1, 0, 0, -3, 0, 1, 0, 0.5, 0, 0, 1, 10]
    glancer = document(tmp_path / "neuroglancer" / "image")
    assert (glancer["axes"], glancer["units"]) == (["x", "y", "z"], ["nm", "nm", "nm"])
    assert (glancer["resolution"], glancer["offset"]) == ([0.3, 0.1, 40], [-3, 0.5, 10])
    (image,) = document(tmp_path / "ngff")["multiscales"]
    assert [axis["name"] for axis in image["axes"]] == ["x", "y", "z"]
    (level,) = image["datasets"]
    assert level["path"] == "image"
    assert [t["type"] for t in level["coordinateTransformations"]] == ["scale", "translation"]
    for convention in CONVENTIONS:  # nothing but what N5 and the convention have
        assert "zarr" not in document(tmp_path / convention / "image")


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_pyramid_is_written_as_levels_beside_each_other(tmp_path: Path, convention: Any) -> None:
    tree = xr.open_datatree(SAMPLE, engine="n5").load()
    n5zarr.to_n5(tree, tmp_path / "c.n5", convention=convention)
    found = xr.open_datatree(tmp_path / "c.n5", engine="n5").load()
    xr.testing.assert_identical(found, tree)
    assert document(tmp_path / "c.n5" / "em" / "s1")["dimensions"] == [64, 48, 20]
    levels = n5zarr.pyramid_levels(tmp_path / "c.n5", "em")
    expected = n5zarr.pyramid_levels(SAMPLE, "em")
    assert [level.voxel_size for level in levels] == [level.voxel_size for level in expected]
    if convention == "n5viewer":  # of full resolution, on every level
        assert document(tmp_path / "c.n5" / "em" / "s2")["pixelResolution"]["dimensions"] == [
            8, 8, 20,
        ]  # fmt: skip
        assert document(tmp_path / "c.n5" / "em" / "s2")["downsamplingFactors"] == [4, 4, 4]
    if convention in ("cosem", "ngff"):
        (image,) = document(tmp_path / "c.n5" / "em")["multiscales"]
        assert [level["path"] for level in image["datasets"]] == ["s0", "s1", "s2"]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_other_coordinates_are_datasets(tmp_path: Path, convention: Any) -> None:
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-05"], "M8[ns]")
    dataset = xr.Dataset(
        {
            "a": (("t", "y", "x"), np.random.default_rng(0).random((3, 5, 7))),
            "b": (("t",), [1, 2, 3]),
        },
        coords={
            "t": times,
            "y": ("y", 0.25 * np.arange(5.0) + 1, {"units": "um"}),
            "x": [1, 2, 4, 8, 16, 32, 64],
            "where": (("y", "x"), np.arange(35.0).reshape(5, 7)),
            "label": ("t", ["a", "b", "c"]),
            "scalar": 5,
        },
    )
    n5zarr.to_n5(dataset, tmp_path / "c.n5", group="g", convention=convention)
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "g"), dataset)
    alone = opened(tmp_path / "c.n5", "g/a")
    for dim in "tyx":
        found, expected = alone[dim].variable, dataset[dim].variable
        assert found.identical(expected)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_unit_of_the_values_is_not_that_of_an_axis(tmp_path: Path, convention: Any) -> None:
    array = volume()
    array.attrs["units"] = "counts"
    n5zarr.to_n5(array, tmp_path / "c.n5", convention=convention)
    xr.testing.assert_identical(opened(tmp_path / "c.n5")["image"], array)


@given(
    scale=st.floats(1e-6, 1e6), place=st.floats(-1e6, 1e6), n=st.integers(1, 40),
    cut=st.integers(0, 20), convention=st.sampled_from(CONVENTIONS),
)  # fmt: skip
def test_positions_keep_their_last_bit(
    tmp_path_factory: pytest.TempPathFactory,
    scale: float, place: float, n: int, cut: int, convention: Any,
) -> None:  # fmt: skip
    """A part of an axis is not always scale and offset to the last bit: then it is a dataset."""
    array = volume((2, n + cut), "yx", scale=(3.0, scale), place=(1.0, place))
    path = tmp_path_factory.mktemp("bits") / "c.n5"
    n5zarr.to_n5(array.isel(x=slice(cut, None)), path, convention=convention)
    xr.testing.assert_identical(
        opened(path), array.isel(x=slice(cut, None)).to_dataset(name="image")
    )


def test_a_part_keeps_its_scale_for_other_tools(tmp_path: Path) -> None:
    array = volume((2, 40), "yx", scale=(3.0, 0.13), place=(1.0, 0.0)).isel(x=slice(10, None))
    n5zarr.to_n5(array, tmp_path / "c.n5")
    transform = document(tmp_path / "c.n5" / "image")["transform"]
    assert transform["scale"] == [3, 0.13]
    xr.testing.assert_identical(opened(tmp_path / "c.n5")["image"], array)


# ---------------------------------------------------------------------- elements


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False, True]),
        np.array([1 + 2j, 3, np.nan]),
        np.array(["a", "bc", "ü"]),
        np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[ns]"),
        np.array([1, 2, np.inf], "f2"),
        np.array([-1, 0, 1], "i1"),
        np.array([0.0, -0.0, np.nan], "f4"),
        np.array([2**63, 0, 2**64 - 1], "u8"),
        np.array([1, 2, 3], ">i4"),
        np.zeros((3, 0), "u1"),
    ],
    ids=lambda v: f"{v.dtype}-{v.ndim}",
)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_elements_of_every_kind(tmp_path: Path, values: Any, convention: Any) -> None:
    dims = ("x", "y")[: values.ndim]
    coords = {"x": ("x", [0.5, 1.0, 1.5], {"units": "um"})}
    dataset = xr.Dataset({"v": (dims, values)}, coords=coords)
    n5zarr.to_n5(dataset, tmp_path / "c.n5", convention=convention)
    found = opened(tmp_path / "c.n5")
    xr.testing.assert_identical(found, dataset)
    assert found["v"].dtype.newbyteorder("=") == values.dtype.newbyteorder("=")
    if values.dtype.kind in "fc":
        np.testing.assert_array_equal(np.signbit(found["v"].real), np.signbit(values.real))


def test_every_block_that_is_not_zero_is_there(tmp_path: Path) -> None:
    values = np.zeros((5, 3, 2), "f4")
    values[0] = np.nan
    values[1] = -0.0
    values[2, 1, 1] = 5
    array = xr.DataArray(values, dims=("z", "y", "x"), name="a")
    n5zarr.to_n5(array, tmp_path / "c.n5", chunks={"z": 1})
    found = document(tmp_path / "c.n5" / "a")
    assert "fill_value" not in json.dumps(found)
    blocks = sorted(int(p.name) for p in (tmp_path / "c.n5" / "a" / "0" / "0").iterdir())
    assert blocks == [0, 1, 2]
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "c.n5" / "a")}}
    theirs = ts.open(spec).result().read().result().T
    np.testing.assert_array_equal(theirs.view("u4"), values.view("u4"))


def test_others_read_it(tmp_path: Path) -> None:
    array = volume()
    n5zarr.to_n5(array, tmp_path / "c.n5", chunks={"z": 4, "y": 5, "x": 7})
    path = tmp_path / "c.n5" / "image"
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    np.testing.assert_array_equal(ts.open(spec).result().read().result().T, array.values)
    with z5py.File(str(tmp_path / "c.n5"), "r") as container:
        np.testing.assert_array_equal(container["image"][:], array.values)
    found = document(path)
    assert (found["dimensions"], found["blockSize"]) == ([19, 17, 13], [7, 5, 4])
    assert document(tmp_path / "c.n5")["n5"] == "4.0.0"


@pytest.mark.parametrize("compression", [None, {"type": "blosc"}, {"type": "zstd", "level": 5}])
def test_compression_and_blocks_can_be_chosen(tmp_path: Path, compression: Any) -> None:
    array = volume()
    n5zarr.to_n5(array, tmp_path / "c.n5", compression=compression, chunks={"x": 3})
    found = document(tmp_path / "c.n5" / "image")
    assert found["compression"]["type"] == (compression or {"type": "raw"})["type"]
    assert found["blockSize"] == [3, 17, 13]
    kept = tmp_path / "kept.n5"
    n5zarr.to_n5(xr.open_dataset(tmp_path / "c.n5", engine="n5"), kept)
    assert document(kept / "image")["blockSize"] == [3, 17, 13]
    automatic = tmp_path / "automatic.n5"
    n5zarr.to_n5(xr.open_dataset(tmp_path / "c.n5", engine="n5"), automatic, chunks="auto")
    assert document(automatic / "image")["blockSize"] == [19, 17, 13]


def test_packed_variables(tmp_path: Path) -> None:
    array = xr.DataArray([1.5, np.nan, 2.25], dims="x", name="a")
    array.encoding = {"dtype": "int16", "scale_factor": 0.25, "_FillValue": -1}
    n5zarr.to_n5(array, tmp_path / "c.n5")
    assert document(tmp_path / "c.n5" / "a")["dataType"] == "int16"
    xr.testing.assert_equal(opened(tmp_path / "c.n5")["a"], array)


# ---------------------------------------------------------------------- dask


def test_chunks_of_dask_are_put_together_into_blocks(tmp_path: Path) -> None:
    array = volume().chunk({"z": (3, 1, 9), "y": 5, "x": -1})
    n5zarr.to_n5(array, tmp_path / "c.n5", chunks={"z": 4, "y": 4, "x": 5})
    xr.testing.assert_identical(opened(tmp_path / "c.n5")["image"], array.load())


def test_the_data_can_be_written_later(tmp_path: Path) -> None:
    tree = xr.open_datatree(SAMPLE, engine="n5", chunks={})
    later: Any = n5zarr.to_n5(tree, tmp_path / "c.n5", compute=False)
    assert not xr.open_datatree(tmp_path / "c.n5", engine="n5")["em/s0/s0"].any()
    later.compute()
    found = xr.open_datatree(tmp_path / "c.n5", engine="n5")
    xr.testing.assert_identical(found.load(), tree.load())


# ---------------------------------------------------------------------- what exists


def test_what_exists_is_not_lost(tmp_path: Path) -> None:
    dataset = volume().to_dataset()
    n5zarr.to_n5(dataset, tmp_path / "c.n5")
    with pytest.raises(ContainsGroupError, match="mode='w' removes it"):
        n5zarr.to_n5(dataset * 2, tmp_path / "c.n5")
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)
    n5zarr.to_n5(dataset.rename(image="other"), tmp_path / "c.n5", mode="a")
    assert set(opened(tmp_path / "c.n5")) == {"image", "other"}
    n5zarr.to_n5(dataset * 2, tmp_path / "c.n5", mode="a")
    np.testing.assert_array_equal(opened(tmp_path / "c.n5")["image"], dataset["image"] * 2)
    n5zarr.to_n5(dataset * 3, tmp_path / "c.n5", mode="r+")
    np.testing.assert_array_equal(opened(tmp_path / "c.n5")["image"], dataset["image"] * 3)
    moved = dataset.assign_coords(x=dataset["x"] + 1)
    with pytest.raises(n5zarr.N5Error, match="'x': expected positions"):
        n5zarr.to_n5(moved, tmp_path / "c.n5", mode="a")
    n5zarr.to_n5(dataset, tmp_path / "c.n5", mode="w")
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)


def test_a_level_is_put_beside_others_whose_group_stays(tmp_path: Path) -> None:
    first, second = (opened(Path(SAMPLE), f"em/s{k}") for k in (1, 2))
    n5zarr.to_n5(first, tmp_path / "c.n5", group="em/s1")
    group = tmp_path / "c.n5" / "em" / "attributes.json"
    group.write_text(json.dumps({**json.loads(group.read_text()), "more": [1]}))
    n5zarr.to_n5(second, tmp_path / "c.n5", group="em/s2")
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "em/s1"), first)
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "em/s2"), second)
    assert json.loads(group.read_text())["more"] == [1]
    with pytest.raises(ContainsGroupError):
        n5zarr.to_n5(second, tmp_path / "c.n5", group="em/s2")
    half = first.isel(z=slice(0, 7))
    n5zarr.to_n5(half, tmp_path / "c.n5", group="em/s1", mode="w")
    n5zarr.to_n5(first.isel(z=slice(7, None)), tmp_path / "c.n5", group="em/s1", append_dim="z")
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "em/s1"), first)


@pytest.mark.parametrize("lazy", [False, True], ids=["numpy", "dask"])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_appending(tmp_path: Path, convention: Any, lazy: bool) -> None:
    dataset = volume().to_dataset()
    dataset["profile"] = ("z", np.arange(13.0))
    dataset["flat"] = ("y", np.arange(17.0))
    if lazy:
        dataset = dataset.chunk({"z": 3, "y": 7})
    parts = [dataset.isel(z=slice(0, 6)), dataset.isel(z=slice(6, 13))]
    chunks = {"z": 4, "y": 4, "x": 5}
    n5zarr.to_n5(parts[0], tmp_path / "c.n5", convention=convention, chunks=chunks)
    n5zarr.to_n5(parts[1], tmp_path / "c.n5", append_dim="z")
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset.load())
    with pytest.raises(n5zarr.N5Error, match="expected positions after those in the container"):
        n5zarr.to_n5(parts[1], tmp_path / "c.n5", append_dim="z")
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)


def test_appending_along_coordinates_that_are_datasets(tmp_path: Path) -> None:
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-05", "2020-02-01"], "M8[ns]")
    dataset = xr.Dataset(
        {"a": (("t", "x"), np.arange(12.0).reshape(4, 3))}, coords={"t": times, "x": [1, 2, 4]}
    )
    n5zarr.to_n5(dataset.isel(t=slice(0, 2)), tmp_path / "c.n5")
    n5zarr.to_n5(dataset.isel(t=slice(2, 4)), tmp_path / "c.n5", append_dim="t")
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)


@pytest.mark.parametrize("lazy", [False, True], ids=["numpy", "dask"])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_regions(tmp_path: Path, convention: Any, lazy: bool) -> None:
    dataset = volume().to_dataset()
    empty = dataset.copy(data={"image": np.zeros(SHAPE, "uint16")})
    chunks = {"z": 4, "y": 4, "x": 5}
    n5zarr.to_n5(empty, tmp_path / "c.n5", convention=convention, chunks=chunks)
    source = dataset.chunk({"z": 1}) if lazy else dataset
    n5zarr.to_n5(source.isel(z=slice(4, 8)), tmp_path / "c.n5", region="auto")
    n5zarr.to_n5(source.isel(z=slice(0, 4)), tmp_path / "c.n5", region={"z": "auto"})
    n5zarr.to_n5(source.isel(z=slice(8, 13)), tmp_path / "c.n5", region={"z": slice(8, None)})
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)
    refused: list[Any] = [{"z": slice(0, 4)}, {"z": slice(0, 5)}, {"q": "auto"}]
    for region in refused:
        with pytest.raises(n5zarr.N5Error):
            n5zarr.to_n5(source.isel(z=slice(4, 8)), tmp_path / "c.n5", region=region)
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)


def test_a_region_of_dask_that_shares_blocks_with_its_neighbours_is_refused(
    tmp_path: Path,
) -> None:
    dataset = volume().to_dataset()
    n5zarr.to_n5(dataset, tmp_path / "c.n5", chunks={"z": 4})
    part = (dataset * 2).chunk({"z": 2}).isel(z=slice(3, 8))
    with pytest.raises(ValueError, match="overlap"):
        n5zarr.to_n5(part, tmp_path / "c.n5", region="auto")
    n5zarr.to_n5(part, tmp_path / "c.n5", region="auto", mode="a")  # by one writer
    expected = dataset.copy(deep=True)
    expected["image"][3:8] = part["image"]
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), expected)


@pytest.mark.parametrize(
    "options",
    [
        {"convention": "paintera"},
        {"mode": "x"},
        {"chunks": "big"},
        {"compression": {"type": "zip"}},
        {"region": "auto", "append_dim": "z"},
    ],
    ids=str,
)
def test_options_outside_their_vocabulary(tmp_path: Path, options: Any) -> None:
    with pytest.raises(n5zarr.N5Error):
        n5zarr.to_n5(volume(), tmp_path / "c.n5", **options)
    assert not (tmp_path / "c.n5" / "image").exists()


def test_what_does_not_exist_cannot_be_changed(tmp_path: Path) -> None:
    for options in ({"region": "auto"}, {"append_dim": "z"}):
        with pytest.raises(FileNotFoundError):
            n5zarr.to_n5(volume(), tmp_path / "c.n5", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "c.n5").exists()


def test_names_of_data_arrays(tmp_path: Path) -> None:
    n5zarr.to_n5(volume(name=None), tmp_path / "a.n5")
    assert list(opened(tmp_path / "a.n5")) == ["data"]
    n5zarr.to_n5(volume(name=None), tmp_path / "a.n5", group="em/s0")
    assert list(opened(tmp_path / "a.n5", "em/s0")) == ["s0"]
    assert document(tmp_path / "a.n5" / "em" / "s0")["dataType"] == "uint16"
