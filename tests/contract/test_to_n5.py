"""Objects of xarray are written as N5 by ``n5zarr.to_n5``, and read back the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import z5py
from hypothesis import given
from hypothesis import strategies as st
from zarr.errors import ContainsGroupError

import n5zarr
from n5zarr.conventions.describe import WRITTEN
from tests.contract.stored import by_tensorstore, contents

SAMPLE = n5zarr.sample_path()
METADATA = Path(__file__).parents[1] / "data" / "java" / "metadata.n5"
CONVENTIONS = ["auto", *WRITTEN]
SHAPE = (13, 17, 19)


def volume(
    shape: Sequence[int] = SHAPE,
    dims: str = "zyx",
    *,
    name: str | None = "image",
    scale: Sequence[float] = (40.0, 0.1, 0.3),
    place: Sequence[float] = (10.0, 0.5, -3.0),
) -> xr.DataArray:
    coords = {
        dim: (dim, scale[i] * np.arange(shape[i]) + place[i], {"units": "nm"})
        for i, dim in enumerate(dims)
    }
    values = np.random.default_rng(7).integers(1, 99, tuple(shape), "uint16")
    return xr.DataArray(values, dims=tuple(dims), coords=coords, name=name, attrs={"note": "n"})


def opened(path: Path, group: str = "") -> xr.Dataset:
    return xr.open_dataset(path, engine="n5", group=group).load()


def document(path: Path) -> Any:
    return json.loads((path / "attributes.json").read_text())


@pytest.fixture(params=CONVENTIONS)
def convention(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[False, True], ids=["numpy", "dask"])
def lazy(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.each_of(2)
def test_a_dataset_is_read_as_it_was_written(tmp_path: Path, convention: Any) -> None:
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
        "axes": ["z", "y", "x"], "scale": [40, 0.1, 0.3], "translate": [10, 0.5, -3],
        "units": ["nm", "nm", "nm"],
    }  # fmt: skip
    viewer = document(tmp_path / "n5viewer" / "image")
    assert viewer["pixelResolution"] == {"unit": "nm", "dimensions": [0.3, 0.1, 40]}
    assert viewer["affineTransform"] == [[1, 0, 0, -3], [0, 1, 0, 0.5], [0, 0, 1, 10]]
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


@pytest.mark.each_of(2)
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
        own = document(tmp_path / "c.n5" / "em" / "s2")
        assert own["pixelResolution"]["dimensions"] == [8, 8, 20]
        assert own["downsamplingFactors"] == [4, 4, 4]
    if convention in ("cosem", "ngff"):
        (image,) = document(tmp_path / "c.n5" / "em")["multiscales"]
        assert [level["path"] for level in image["datasets"]] == ["s0", "s1", "s2"]


@pytest.mark.each_of(2)
def test_other_coordinates_are_datasets(tmp_path: Path, convention: Any) -> None:
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-05"], "M8[ns]")
    values = np.random.default_rng(0).random((3, 5, 7))
    dataset = xr.Dataset(
        {"a": (("t", "y", "x"), values), "b": (("t",), [1, 2, 3])},
        coords={
            "t": times, "y": ("y", 0.25 * np.arange(5.0) + 1, {"units": "um"}),
            "x": [1, 2, 4, 8, 16, 32, 64], "where": (("y", "x"), np.arange(35.0).reshape(5, 7)),
            "label": ("t", ["a", "b", "c"]), "scalar": 5,
        },
    )  # fmt: skip
    n5zarr.to_n5(dataset, tmp_path / "c.n5", group="g", convention=convention)
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "g"), dataset)
    alone = opened(tmp_path / "c.n5", "g/a")
    for dim in "tyx":
        found, expected = alone[dim].variable, dataset[dim].variable
        assert found.identical(expected)  # type: ignore[no-untyped-call]


@given(
    scale=st.floats(1e-6, 1e6), place=st.floats(-1e6, 1e6), n=st.integers(1, 40),
    cut=st.integers(0, 20), how=st.sampled_from(CONVENTIONS),
)  # fmt: skip
def test_positions_keep_their_last_bit(
    tmp_path_factory: pytest.TempPathFactory, scale: float, place: float, n: int, cut: int, how: Any
) -> None:
    """Where scale and offset cannot, they become a dataset."""
    array = volume((2, n + cut), "yx", scale=(3.0, scale), place=(1.0, place))
    part = array.isel(x=slice(cut, None))
    path = tmp_path_factory.mktemp("bits") / "c.n5"
    n5zarr.to_n5(part, path, convention=how)
    xr.testing.assert_identical(opened(path), part.to_dataset(name="image"))


def test_a_part_keeps_its_scale_for_other_tools(tmp_path: Path) -> None:
    array = volume((2, 40), "yx", scale=(3.0, 0.13), place=(1.0, 0.0)).isel(x=slice(10, None))
    n5zarr.to_n5(array, tmp_path / "c.n5")
    transform = document(tmp_path / "c.n5" / "image")["transform"]
    assert transform["scale"] == [3, 0.13]
    xr.testing.assert_identical(opened(tmp_path / "c.n5")["image"], array)


def with_units(values: Any) -> xr.Dataset:
    coords = {"x": ("x", [0.5, 1.0, 1.5], {"units": "um"})}
    return xr.Dataset({"v": (("x", "y")[: values.ndim], values)}, coords)


def of_type(dtype: str) -> xr.Dataset:
    coords = {
        "x": ("x", np.arange(3) * 2.0, {"units": "nm"}),
        "t": ("t", np.arange(5) * 4.0 + 1, {"units": "nm"}),
    }
    data = {"b": (("x", "t"), np.zeros((3, 5), dtype)), "n": (("x", "t"), np.ones((3, 5)))}
    return xr.Dataset(data, coords)


LIKE_CONVENTIONS = {
    "offset": [1, 2], "scales": "x", "resolution": "high", "transform": [1, 2, 3, 4, 5, 6],
    "axes": "p", "units": "counts",
}  # fmt: skip
SAME: dict[str, xr.Dataset] = {
    "a unit of the values": volume().assign_attrs(units="counts").to_dataset(),
    "attributes of the user": volume().assign_attrs(LIKE_CONVENTIONS).to_dataset(),
    # names that a convention does not have
    **{f"dimensions {dims}": volume((3, 5, 7), dims).to_dataset() for dims in
       ("abc", "tzy", "xyz", "czy")},
    # dimensions of what N5 has no type for
    **{f"dimensions of {dtype}": of_type(dtype) for dtype in ("c8", "U3", "bool", "f2")},
    **{f"{v.dtype}-{v.ndim}": with_units(v) for v in (
        np.array([True, False, True]), np.array([1 + 2j, 3, np.nan]), np.array(["a", "bc", "ü"]),
        np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[ns]"), np.array([1, 2, np.inf], "f2"),
        np.array([-1, 0, 1], "i1"), np.array([0.0, -0.0, np.nan], "f4"),
        np.array([2**63, 0, 2**64 - 1], "u8"), np.array([1, 2, 3], ">i4"), np.zeros((3, 0), "u1"),
    )},
}  # fmt: skip


@pytest.mark.each_of(3)
@pytest.mark.parametrize("name", SAME)
def test_names_attributes_and_elements_of_every_kind(
    tmp_path: Path, name: str, convention: Any
) -> None:
    dataset = SAME[name]
    n5zarr.to_n5(dataset, tmp_path / "c.n5", convention=convention)
    found = opened(tmp_path / "c.n5")
    xr.testing.assert_identical(found, dataset)
    for key, variable in dataset.data_vars.items():
        assert found[key].dtype.newbyteorder("=") == variable.dtype.newbyteorder("=")
        if variable.dtype.kind in "fc":
            np.testing.assert_array_equal(np.signbit(found[key].real), np.signbit(variable.real))


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
    theirs = by_tensorstore(tmp_path / "c.n5" / "a")
    np.testing.assert_array_equal(theirs.view("u4"), values.view("u4"))


def test_others_read_it(tmp_path: Path) -> None:
    array = volume()
    n5zarr.to_n5(array, tmp_path / "c.n5", chunks={"z": 4, "y": 5, "x": 7})
    path = tmp_path / "c.n5" / "image"
    np.testing.assert_array_equal(by_tensorstore(path), array.values)
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


def test_the_data_can_be_written_later(tmp_path: Path) -> None:
    tree = xr.open_datatree(SAMPLE, engine="n5", chunks={})
    later: Any = n5zarr.to_n5(tree, tmp_path / "c.n5", compute=False)
    assert not xr.open_datatree(tmp_path / "c.n5", engine="n5")["em/s0/s0"].any()
    later.compute()
    found = xr.open_datatree(tmp_path / "c.n5", engine="n5")
    xr.testing.assert_identical(found.load(), tree.load())


def test_an_existing_dataset_is_only_replaced_if_the_mode_says_so(tmp_path: Path) -> None:
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
    with pytest.raises(n5zarr.N5Error, match="'x': expected the positions"):
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


@pytest.mark.each_of(3)
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
    with pytest.raises(n5zarr.N5Error, match=r"'z': expected the positions 530\.0"):
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


@pytest.mark.each_of(3)
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
    refused: list[tuple[Any, str]] = [
        ({"z": slice(0, 4)}, "'z': expected the positions"),
        ({"z": slice(0, 5)}, "region: 'z': expected a part of 4 elements, got 0 to 5"),
        ({"z": "auto", "q": "auto"}, "region: expected dimensions of .*, got 'q'"),
    ]
    for region, message in refused:
        with pytest.raises(n5zarr.N5Error, match=message):
            n5zarr.to_n5(source.isel(z=slice(4, 8)), tmp_path / "c.n5", region=region)
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), dataset)


def test_a_region_of_dask_that_shares_blocks_with_others_is_refused(tmp_path: Path) -> None:
    dataset = volume().to_dataset()
    n5zarr.to_n5(dataset, tmp_path / "c.n5", chunks={"z": 4})
    part = (dataset * 2).chunk({"z": 2}).isel(z=slice(3, 8))
    with pytest.raises(n5zarr.N5Error, match="whole blocks of 4 along 'z'"):
        n5zarr.to_n5(part, tmp_path / "c.n5", region="auto")
    n5zarr.to_n5(part, tmp_path / "c.n5", region="auto", mode="a")  # by one writer
    expected = dataset.copy(deep=True)
    expected["image"][3:8] = part["image"]
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"convention": "paintera"}, "convention: expected .*, got 'paintera'"),
        ({"mode": "x"}, "mode: expected .*, got 'x'"),
        ({"chunks": "big"}, "chunks: expected .*, got 'big'"),
        ({"compression": {"type": "zip"}}, r"compression\.type: expected .*, got 'zip'"),
        ({"region": "auto", "append_dim": "z"}, "append_dim: expected this or region, got both"),
    ],
    ids=str,
)
def test_options_outside_their_vocabulary(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(n5zarr.N5Error, match=message):
        n5zarr.to_n5(volume(), tmp_path / "c.n5", **options)
    assert not (tmp_path / "c.n5" / "image").exists()


def test_changing_a_missing_container_raises_file_not_found(tmp_path: Path) -> None:
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


def test_a_coordinate_is_not_given_to_datasets_with_other_positions(tmp_path: Path) -> None:
    uneven, even = (
        xr.DataArray([0, 1, 2], dims="x", name=name, coords={"x": ("x", xs, {"units": "nm"})})
        for name, xs in (("a", [0.0, 1.0, 5.0]), ("b", [0.0, 2.0, 4.0]))
    )
    for first, second in ((uneven, even), (even, uneven)):
        path = tmp_path / f"{first.name}.n5"
        n5zarr.to_n5(first.to_dataset(), path, group="g")
        before = contents(path)
        with pytest.raises(n5zarr.N5Error, match="'x': expected the positions"):
            n5zarr.to_n5(second.to_dataset(), path, group="g", mode="a")
        if second is even:
            with pytest.raises(n5zarr.N5Error, match="'x': expected the positions"):
                n5zarr.to_n5(second, path, group=f"g/{second.name}")
        assert contents(path) == before


def test_another_image_in_the_group_keeps_its_axes(tmp_path: Path) -> None:
    first, second = volume(), volume((7, 9, 10), scale=(80.0, 0.2, 0.6), name="s1")
    for dim in "zyx":
        second[dim].attrs["units"] = "um"
    n5zarr.to_n5(first, tmp_path / "c.n5", group="em/s0", convention="ngff")
    n5zarr.to_n5(second, tmp_path / "c.n5", group="em/s1", convention="ngff")
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "em/s0")["s0"], first.rename("s0"))
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "em/s1")["s1"], second)


@pytest.mark.parametrize("group", ["ngff-0.4-corder", "ngff-0.4-n5order"])
def test_a_level_joins_an_image_in_either_order(tmp_path: Path, group: str) -> None:
    shutil.copytree(METADATA, tmp_path / "c.n5")
    levels = [opened(tmp_path / "c.n5", f"{group}/s{k}") for k in (0, 1)]
    more = levels[1].isel(x=slice(None, None, 2), y=slice(None, None, 2)).rename(s1="s2")
    attributes = document(tmp_path / "c.n5" / group)
    attributes["multiscales"][0]["name"] = group
    (tmp_path / "c.n5" / group / "attributes.json").write_text(json.dumps(attributes))
    n5zarr.to_n5(more, tmp_path / "c.n5", group=f"{group}/s2", convention="ngff")
    for k, level in enumerate([*levels, more]):
        xr.testing.assert_identical(opened(tmp_path / "c.n5", f"{group}/s{k}"), level)
    (image,) = document(tmp_path / "c.n5" / group)["multiscales"]
    assert [entry["path"] for entry in image["datasets"]] == ["s0", "s1", "s2"]
    assert image["axes"] == attributes["multiscales"][0]["axes"]


def test_the_canonical_list_of_levels_stays(tmp_path: Path, convention: Any) -> None:
    shutil.copytree(METADATA, tmp_path / "c.n5")
    before = document(tmp_path / "c.n5" / "canonical" / "ms")
    level = volume((2, 3, 5), name="s2")
    # there is no place for NGFF's metadata, so that positions are datasets
    told = pytest.warns(n5zarr.N5Warning, match="canonical/ms/s2: written as a group")
    with told if convention == "ngff" else nullcontext():
        n5zarr.to_n5(level, tmp_path / "c.n5", group="canonical/ms/s2", convention=convention)
    assert document(tmp_path / "c.n5" / "canonical" / "ms") == before
    found = opened(tmp_path / "c.n5", "canonical/ms/s2")
    xr.testing.assert_identical(found["s2"], level)


def test_data_without_positions_get_none(tmp_path: Path) -> None:
    bare = volume().drop_vars(["x", "y", "z"])
    n5zarr.to_n5(volume(), tmp_path / "c.n5", group="em/s0", convention="ngff")
    n5zarr.to_n5(bare, tmp_path / "c.n5", group="em/s0", mode="w")
    assert not opened(tmp_path / "c.n5", "em/s0").coords
    shutil.copytree(METADATA, tmp_path / "m.n5")
    for group in ("neuroglancer/multi/mask", "paintera/data/s3"):
        with pytest.raises(n5zarr.N5Error, match="expected coordinates along"):
            n5zarr.to_n5(bare, tmp_path / "m.n5", group=group)
        assert not (tmp_path / "m.n5" / group).exists()
        n5zarr.to_n5(volume(), tmp_path / "m.n5", group=group)
        xr.testing.assert_equal(opened(tmp_path / "m.n5", group)["x"], volume()["x"])


def test_overwriting_data_keeps_or_adds_positions(tmp_path: Path) -> None:
    bare = volume().drop_vars(["x", "y", "z"])
    n5zarr.to_n5(bare.to_dataset(), tmp_path / "c.n5", group="g")
    n5zarr.to_n5(volume().to_dataset(), tmp_path / "c.n5", group="g", mode="a")
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "g"), volume().to_dataset())
    n5zarr.to_n5(bare, tmp_path / "d.n5", group="em/s0")
    with pytest.raises(n5zarr.N5Error, match="expected data with the positions of the dataset"):
        n5zarr.to_n5(volume(), tmp_path / "d.n5", group="em/s0", mode="a")


@pytest.mark.each_of(3)
@pytest.mark.parametrize("path", ["cosem/s0", "n5viewer/c0/s0", "ngff-0.5-n5order/s0", "imagej"])
def test_datasets_of_other_programs_are_changed(tmp_path: Path, path: str, lazy: bool) -> None:
    shutil.copytree(METADATA, tmp_path / "c.n5")
    before = opened(tmp_path / "c.n5", path)
    name = path.rpartition("/")[2]
    attributes = document(tmp_path / "c.n5" / path)
    part = (before.isel(x=slice(0, 4)) * 2).assign_coords(before.isel(x=slice(0, 4)).coords)
    part = part.chunk({"x": 1}) if lazy else part
    n5zarr.to_n5(part, tmp_path / "c.n5", group=path, region="auto")
    found = opened(tmp_path / "c.n5", path)
    np.testing.assert_array_equal(found[name].isel(x=slice(0, 4)), part[name])
    np.testing.assert_array_equal(found[name].isel(x=slice(4, None)), before[name][..., 4:])
    assert document(tmp_path / "c.n5" / path) == attributes
    step = before["z"].values[1] - before["z"].values[0]
    after = before.isel(z=[0]).assign_coords(z=before["z"][-1:] + step)
    n5zarr.to_n5(after, tmp_path / "c.n5", group=path, append_dim="z")
    longer = opened(tmp_path / "c.n5", path)
    assert longer.sizes["z"] == before.sizes["z"] + 1
    np.testing.assert_array_equal(longer[name].isel(z=-1), before[name].isel(z=0))
    assert document(tmp_path / "c.n5" / path) == attributes | {
        "dimensions": [longer.sizes[dim] for dim in "xyz"]
    }


def test_one_time_point_at_a_time(tmp_path: Path) -> None:
    movie = volume((5, 3, 4), "tyx", scale=(0.1, 2.0, 3.0), place=(0.0, 0.0, 0.0)).to_dataset()
    for way in ("metadata", "dataset"):
        path = tmp_path / f"{way}.n5"
        first = 2 if way == "metadata" else 1
        n5zarr.to_n5(movie.isel(t=slice(0, first)), path)
        for k in range(first, 5):
            n5zarr.to_n5(movie.isel(t=[k]), path, append_dim="t")
        found = opened(path)
        np.testing.assert_array_equal(found["image"], movie["image"])
        np.testing.assert_allclose(found["t"], movie["t"], rtol=0, atol=1e-9)
        assert found["t"].attrs == {"units": "nm"}


@pytest.mark.parametrize("region", ["auto", {}])
def test_a_region_of_everything(tmp_path: Path, region: Any) -> None:
    dataset = xr.Dataset({"a": (("t", "x"), np.ones((3, 4), "u1"))})
    n5zarr.to_n5(dataset, tmp_path / "c.n5")
    n5zarr.to_n5(dataset * 5, tmp_path / "c.n5", region=region)
    assert (opened(tmp_path / "c.n5")["a"] == 5).all()


def test_a_refused_append_changes_no_file(tmp_path: Path) -> None:
    times = np.array(["2020-01-01", "2020-01-02", "2020-01-05"], "M8[ns]")
    dataset = xr.Dataset(
        {"a": (("t", "x"), np.ones((3, 4), "u1")), "b": ("t", [1, 2, 3]), "s": ("t", list("abc"))},
        coords={"t": times, "x": ("x", [1.0, 2, 3, 4], {"units": "nm"})},
    )
    n5zarr.to_n5(dataset, tmp_path / "c.n5")
    before = contents(tmp_path / "c.n5")
    later = dataset.assign_coords(t=times + np.timedelta64(9, "D"))
    wrong = {
        "expected all variables with 't', got none for .'b'.": later.drop_vars("b"),
        "'b': expected elements of int64, got <U1": later.assign(b=("t", ["x", "y", "z"])),
        "s: expected elements of <U1, got <U6": later.assign(s=("t", ["longer", "y", "z"])),
        "b: expected elements that int64 can hold": later.assign(b=("t", [1.5, 2, 3])),
        "a: expected elements that uint8 can hold": later.assign(a=later["a"].astype("i4") * 300),
        "'t': .*they would read as other times":
            later.assign_coords(t=times + np.timedelta64(7, "h")),
        "expected variables that exist, also got .'c'.": later.assign(c=later["b"]),
        "'x': expected 4 elements, got 3": later.isel(x=slice(0, 3)),
        "'x': expected the positions .* 3.0, ... nm, .* 3.0, ... nm":
            later.assign_coords(x=("x", [1.0, 2, 3, 5], {"units": "nm"})),
        "'x': expected the positions .* nm, .* um":
            later.assign_coords(x=("x", [1.0, 2, 3, 4], {"units": "um"})),
        "append_dim: expected a dimension of both": later.rename(t="q"),
    }  # fmt: skip
    for message, ds in wrong.items():
        with pytest.raises(n5zarr.N5Error, match=message):
            n5zarr.to_n5(ds, tmp_path / "c.n5", append_dim="t")
        assert contents(tmp_path / "c.n5") == before, message
    turned = later.transpose("x", "t")
    n5zarr.to_n5(turned, tmp_path / "c.n5", append_dim="t")
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), xr.concat([dataset, later], "t"))


@pytest.mark.parametrize(
    "chunks", [{"q": 4}, {"z": -1}, {"z": 2.5}, {"z": 0}, (1, 2, 3), "foo"], ids=str
)
def test_blocks_that_cannot_be(tmp_path: Path, chunks: Any) -> None:
    n5zarr.to_n5(volume(), tmp_path / "c.n5")
    before = contents(tmp_path / "c.n5")
    with pytest.raises(n5zarr.N5Error, match="chunks: expected"):
        n5zarr.to_n5(volume(), tmp_path / "c.n5", chunks=chunks, mode="w")
    assert contents(tmp_path / "c.n5") == before


TREES: dict[str, dict[str, xr.Dataset]] = {
    "agreeing": {n: volume(name=n[1:]).to_dataset() for n in ("/a", "/b")},
    "with a root": {f"/{n}": volume(name=n or "r").to_dataset() for n in ("", "a", "b")},
    "nested": {n: volume(name=n[-1]).to_dataset() for n in ("/a", "/a/b")},
    "levels": {
        "/g/s0": volume(name="s0").to_dataset(),
        "/g/s1": volume((7, 9, 10), name="s1", scale=(80.0, 0.2, 0.6)).to_dataset(),
        "/other": xr.Dataset({"v": ("q", [1, 2])}, attrs={"note": "n"}),
    },
    "single": {"/g/s0": volume(name="s0").to_dataset()},
}


@pytest.mark.each_of(4)
@pytest.mark.parametrize("name", TREES)
def test_trees_come_back(tmp_path: Path, name: str, convention: Any) -> None:
    tree = xr.DataTree.from_dict(TREES[name])
    n5zarr.to_n5(tree, tmp_path / "c.n5", convention=convention)
    found = xr.open_datatree(tmp_path / "c.n5", engine="n5").load()
    xr.testing.assert_identical(found, tree)
    if name == "levels":
        assert "dimensions" in document(tmp_path / "c.n5" / "g" / "s0")


def test_a_pyramid_is_made_level_by_level(tmp_path: Path) -> None:
    level = xr.open_dataset(SAMPLE, engine="n5", group="em/s0")["s0"]
    n5zarr.to_n5(level, tmp_path / "c.n5", group="em/s0")
    for k in (1, 2, 3):
        level = level.coarsen(z=2, y=2, x=2, boundary="trim").mean().astype("u1")
        n5zarr.to_n5(level, tmp_path / "c.n5", group=f"em/s{k}")
    levels = n5zarr.pyramid_levels(tmp_path / "c.n5", "em")
    assert [found.voxel_size["x"] for found in levels] == [8, 16, 32, 64]
    (image,) = document(tmp_path / "c.n5" / "em")["multiscales"]
    assert [entry["path"] for entry in image["datasets"]] == ["s0", "s1", "s2", "s3"]


def test_one_plane_keeps_its_thickness(tmp_path: Path) -> None:
    plane = xr.open_dataset(SAMPLE, engine="n5", group="em/s0").isel(z=slice(5, 6))
    n5zarr.to_n5(plane, tmp_path / "c.n5", group="em/s0")
    assert document(tmp_path / "c.n5" / "em" / "s0")["transform"]["scale"] == [20, 8, 8]
    xr.testing.assert_identical(opened(tmp_path / "c.n5", "em/s0"), plane.load())


def series(values: Any, **how: Any) -> xr.Dataset:
    found = xr.Dataset({"a": ("t", np.asarray(values))})
    found["a"].encoding = how
    return found


@pytest.mark.each_of(2)
@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (np.zeros(3, "i2"), np.array([70000, 1])), (np.zeros(3, "u1"), np.array([300], "u8")),
        (np.zeros(3, "i4"), np.array([2**40 + 5])), (np.zeros(3, "i1"), np.array([200], "u1")),
        (np.zeros(3, "f4"), np.array([2**24 + 1])), (np.zeros(3, "f8"), np.array([2**53 + 1])),
        (np.zeros(3, "f4"), np.array([0.1])), (np.zeros(3, "u1"), np.array([-1, -2])),
        (np.zeros(3, "u1"), np.array([1.5])), (np.zeros(3, bool), np.array([2])),
        (np.array(["a"]), np.array(["longer"])),
    ],
    ids=str,
)  # fmt: skip
def test_elements_that_would_become_others_are_refused(
    tmp_path: Path, stored: Any, given: Any, lazy: bool
) -> None:
    n5zarr.to_n5(series(stored), tmp_path / "c.n5")
    before = contents(tmp_path / "c.n5")
    part = series(given).chunk() if lazy else series(given)
    with pytest.raises(n5zarr.N5Error, match="expected elements"):
        n5zarr.to_n5(part, tmp_path / "c.n5", append_dim="t")
    if not lazy or stored.dtype.kind == "U":  # dask finds out while it computes
        assert contents(tmp_path / "c.n5") == before
    whole = series(np.resize(given, len(stored)))
    with pytest.raises(n5zarr.N5Error, match="expected"):
        n5zarr.to_n5(whole.chunk() if lazy else whole, tmp_path / "c.n5", mode="a")
    assert contents(tmp_path / "c.n5") == before


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (np.zeros(3, "u2"), np.array([7, 65535])), (np.zeros(3, "f8"), np.array([7, np.nan], "f4")),
        (np.zeros(3, "f4"), np.array([0.5, np.nan])),
        (np.array([True, False]), np.array([False, True, True])),
        (np.zeros(3, "c16"), np.array([1 + 2j, np.nan], "c8")),
        (np.array(["abc"]), np.array(["d", "ef"])),
    ],
    ids=str,
)  # fmt: skip
def test_elements_that_stay_the_same_are_taken(
    tmp_path: Path, stored: Any, given: Any, lazy: bool
) -> None:
    n5zarr.to_n5(series(stored), tmp_path / "c.n5")
    part = series(given).chunk({"t": 1}) if lazy else series(given)
    n5zarr.to_n5(part, tmp_path / "c.n5", append_dim="t")
    found = opened(tmp_path / "c.n5")["a"]
    assert found.dtype == stored.dtype
    np.testing.assert_array_equal(found, np.concatenate([stored, given.astype(stored.dtype)]))


def test_packed_variables_are_rounded_and_not_wrapped(tmp_path: Path, lazy: bool) -> None:
    how = {"dtype": "u1", "scale_factor": 0.5, "add_offset": -1.0, "_FillValue": 255}
    n5zarr.to_n5(series([1.5, np.nan, 2.5], **how), tmp_path / "c.n5")
    assert document(tmp_path / "c.n5" / "a")["dataType"] == "uint8"
    good, bad = series([3.2, np.nan]), series([300.0, -70.0])
    if lazy:
        good, bad = good.chunk(), bad.chunk()
    n5zarr.to_n5(good, tmp_path / "c.n5", append_dim="t")
    np.testing.assert_array_equal(opened(tmp_path / "c.n5")["a"], [1.5, np.nan, 2.5, 3.0, np.nan])
    with pytest.raises(n5zarr.N5Error, match="uint8 can hold"):
        n5zarr.to_n5(bad, tmp_path / "c.n5", append_dim="t")
    assert opened(tmp_path / "c.n5").sizes["t"] == 5
    n5zarr.to_n5(series([1.0, np.nan], dtype="i2", _FillValue=-1), tmp_path / "d.n5")
    with pytest.raises(n5zarr.N5Error, match="int16 can hold"):
        n5zarr.to_n5(series([-1.0]), tmp_path / "d.n5", append_dim="t")


def test_a_shared_coordinate_is_not_lengthened_for_one_variable(tmp_path: Path) -> None:
    both = xr.Dataset(
        {"a": (("t", "x"), np.ones((5, 3))), "b": (("t", "x"), np.ones((5, 3)))},
        coords={"t": [0.0, 1, 5, 7, 11]},
    )
    n5zarr.to_n5(both, tmp_path / "c.n5", group="g")
    before = contents(tmp_path / "c.n5")
    more = both[["a"]].isel(t=slice(0, 2)).assign_coords(t=[13.0, 17])
    with pytest.raises(n5zarr.N5Error, match="share the coordinate 't'"):
        n5zarr.to_n5(more["a"], tmp_path / "c.n5", group="g/a", append_dim="t")
    assert contents(tmp_path / "c.n5") == before


def test_nothing_that_is_given_is_dropped(tmp_path: Path) -> None:
    stored = xr.Dataset(
        {"a": ("t", np.zeros(5)), "still": ("x", np.ones(3))},
        coords={"t": [0.0, 1, 5, 7, 11], "label": ("t", list("abcde"))},
    )
    stored["t"].attrs["units"] = "s"
    stored["a"].attrs["units"] = "V"
    n5zarr.to_n5(stored, tmp_path / "c.n5")
    before = contents(tmp_path / "c.n5")
    more = stored.isel(t=slice(0, 2)).assign_coords(t=("t", [13.0, 17], {"units": "s"}))
    in_ms, in_mv = more.copy(deep=True), more.copy(deep=True)
    in_ms["t"].attrs["units"], in_mv["a"].attrs["units"] = "ms", "mV"
    for wrong, message in (
        (more.assign(still=more["still"] + 1), "'still' has no 't': expected its values"),
        (more.assign_coords(other=("t", [1, 2])), "'other': the container has no such coordinate"),
        (in_ms, "'t': expected units 's', got 'ms'"),
        (in_mv, "'a': expected units 'V', got 'mV'"),
    ):
        with pytest.raises(n5zarr.N5Error, match=message):
            n5zarr.to_n5(wrong, tmp_path / "c.n5", append_dim="t")
        assert contents(tmp_path / "c.n5") == before
    n5zarr.to_n5(more, tmp_path / "c.n5", append_dim="t")
    expected = xr.concat([stored, more], "t", data_vars="minimal")
    xr.testing.assert_identical(opened(tmp_path / "c.n5"), expected)
    part = expected.isel(t=slice(2, 4)).assign_coords(label=("t", ["y", "z"]))
    n5zarr.to_n5(part[["a"]], tmp_path / "c.n5", region="auto")
    assert opened(tmp_path / "c.n5")["label"].values.tolist() == list("abyzeab")
    bare = xr.Dataset({"v": ("t", np.zeros(3))})
    n5zarr.to_n5(bare, tmp_path / "d.n5")
    with pytest.raises(n5zarr.N5Error, match="no such coordinate"):
        n5zarr.to_n5(bare.assign_coords(t=[5.0, 6, 7]), tmp_path / "d.n5", append_dim="t")


def test_attributes_of_a_group_do_not_move_what_is_in_it(tmp_path: Path) -> None:
    n5zarr.to_n5(volume(), tmp_path / "c.n5", group="g/s0", convention="ngff")
    before = contents(tmp_path / "c.n5")
    moving = (
        {"multiscales": [{"name": "mine"}]},
        {"resolution": [1, 2, 3]},
        {"translate": [1, 2, 3]},
    )
    for attrs in moving:
        extra = xr.Dataset({"foo": ("q", np.ones(2))}, attrs=attrs)
        with pytest.raises(n5zarr.N5Error, match="expected none that move"):
            n5zarr.to_n5(extra, tmp_path / "c.n5", group="g", mode="a")
        assert contents(tmp_path / "c.n5") == before


def test_data_without_a_coordinate_do_not_get_that_beside_them(tmp_path: Path) -> None:
    uneven = xr.Dataset({"a": (("y", "x"), np.ones((7, 5)))}, coords={"x": [0.0, 1, 4, 9, 16]})
    n5zarr.to_n5(uneven, tmp_path / "c.n5", group="g")
    bare = xr.DataArray(np.ones((3, 5)), dims=("w", "x"))
    with pytest.raises(n5zarr.N5Error, match="expected a coordinate along 'x'"):
        n5zarr.to_n5(bare, tmp_path / "c.n5", group="g/c")


def test_all_is_checked_before_anything_changes(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict(TREES["levels"])
    n5zarr.to_n5(tree, tmp_path / "c.n5")
    before = contents(tmp_path / "c.n5")
    moved = xr.DataTree.from_dict({
        "/g/s0": TREES["levels"]["/g/s0"] * 2,
        "/g/s1": TREES["levels"]["/g/s1"].assign_coords(x=np.arange(10.0) + 77),
    })  # fmt: skip
    options: list[dict[str, Any]] = [{"mode": "a"}, {"mode": "r+"}, {"region": "auto"}]
    for how in options:
        with pytest.raises(n5zarr.N5Error, match=r"g/s1: .*'x': expected .* got 77\.0, 78\.0"):
            n5zarr.to_n5(moved, tmp_path / "c.n5", **how)
        assert contents(tmp_path / "c.n5") == before
    impossible = xr.DataArray(np.array([object()]), dims="x", name="image")
    with pytest.raises(ValueError, match=r"object|dtype|serial"):
        n5zarr.to_n5(impossible, tmp_path / "c.n5", mode="w")
    assert contents(tmp_path / "c.n5") == before


def test_overwriting_with_dask_keeps_to_the_blocks_that_are_there(tmp_path: Path) -> None:
    dataset = volume().to_dataset().assign(b=volume() * 2)
    n5zarr.to_n5(dataset, tmp_path / "c.n5", chunks={"z": 7, "y": 7, "x": 7})
    n5zarr.to_n5((dataset * 2).chunk({"z": 5}), tmp_path / "c.n5", mode="a")
    np.testing.assert_array_equal(opened(tmp_path / "c.n5")["b"], dataset["b"] * 2)


@pytest.mark.parametrize("path", ["cosem/s0", "n5viewer/c0/s1", "paintera/data/s1", "imagej"])
def test_datasets_of_other_programs_are_overwritten(tmp_path: Path, path: str) -> None:
    shutil.copytree(METADATA, tmp_path / "c.n5")
    before = opened(tmp_path / "c.n5", path)
    attributes = document(tmp_path / "c.n5" / path)
    name = path.rpartition("/")[2]
    other = before.copy(data={name: before[name].values[::-1]})
    n5zarr.to_n5(other, tmp_path / "c.n5", group=path, mode="a")
    xr.testing.assert_identical(opened(tmp_path / "c.n5", path), other)
    assert document(tmp_path / "c.n5" / path) == attributes


@pytest.mark.parametrize("n", [1, 2])
def test_changes_can_be_computed_later(tmp_path: Path, n: int) -> None:
    dataset = xr.Dataset({f"v{k}": ("t", np.arange(5)) for k in range(n)})
    n5zarr.to_n5(dataset, tmp_path / "c.n5")
    later: Any = n5zarr.to_n5(dataset.chunk(), tmp_path / "c.n5", append_dim="t", compute=False)
    assert opened(tmp_path / "c.n5").sizes["t"] == 10
    later.compute()
    np.testing.assert_array_equal(opened(tmp_path / "c.n5")["v0"], [*range(5), *range(5)])


def test_times_that_the_container_cannot_say(tmp_path: Path) -> None:
    def times(unit: str) -> xr.Dataset:
        t = np.array(["2020-01-01"], "M8[ns]") + np.arange(3) * np.timedelta64(1, unit)  # type: ignore[call-overload]
        return xr.Dataset({"v": ("t", [1, 2, 3])}, coords={"t": t})

    n5zarr.to_n5(times("D"), tmp_path / "c.n5")
    for later in (times("h"), times("h").chunk()):
        with pytest.raises(n5zarr.N5Error, match="values that can be stored as int64 'days"):
            n5zarr.to_n5(later, tmp_path / "c.n5", append_dim="t")


def test_a_tree_of_which_not_all_can_be_levels(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict({
        "/s0": xr.Dataset({"s0": ("y", np.ones(4))}, coords={"y": np.arange(4.0)}),
        "/s1": xr.Dataset({"s1": ("x", np.ones(5))}, coords={"x": np.arange(5) ** 2.0}),
        "/s3": xr.Dataset({"s3": ("x", np.ones(3))}, coords={"x": np.arange(3) ** 2.0}),
    })  # fmt: skip
    n5zarr.to_n5(tree, tmp_path / "c.n5")
    xr.testing.assert_identical(xr.open_datatree(tmp_path / "c.n5", engine="n5").load(), tree)


@pytest.mark.each_of(2)
@pytest.mark.parametrize("chunks", [None, {}], ids=["lazy", "dask"])
@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("group", ["", "em", "em/s0"])
def test_data_are_not_removed_before_they_are_read(
    group: str, inline: bool, chunks: dict[str, int] | None, tmp_path: Path
) -> None:
    mine = Path(shutil.copytree(SAMPLE, tmp_path / "c.n5"))
    expected = xr.open_dataset(SAMPLE, engine="n5", group="em/s0").load()
    how: Any = {"chunks": chunks, "inline_array": inline}
    unread = xr.open_dataset(mine, engine="n5", group="em/s0", **how)
    turned = unread if chunks is None else unread.transpose("x", ...)
    with pytest.raises(n5zarr.N5Error, match=r"mode='w' would remove the unread source of 's0'"):
        n5zarr.to_n5(turned, mine, group=group, mode="w")
    xr.testing.assert_identical(opened(mine, "em/s0"), expected)
    n5zarr.to_n5(unread, mine, group="copy/s0", mode="w")
    xr.testing.assert_identical(opened(mine, "copy/s0"), expected)
    n5zarr.to_n5(unread.load(), mine, group=group, mode="w")
    xr.testing.assert_identical(opened(mine, group), expected)
