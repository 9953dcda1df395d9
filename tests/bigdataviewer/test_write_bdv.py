"""Projects that ``write_bdv`` writes, as Java, pydantic-bigstitcher and zarr read them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import fsspec
import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.bigdataviewer import spimdata
from tests.bigdataviewer.loaders import read_with_tensorstore
from tests.bigdataviewer.split_project import FACTORS, TIMEPOINTS, image, write_project
from tests.contract import bigstitcher

SHAPE = (7, 67, 71)
FORMATS = ["n5", "ome-zarr"]
NAMES = [
    "data set", "50%20", "a#b", "q?", "plus+", "a:b", "[1] {Ä}", "x;y&z='é'", "back\\slash", "é",
]  # fmt: skip


def numbers(*more: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(1, 999, (*more, *SHAPE)).astype("u2")


def placed(array: Any, first: tuple[float, float, float] = (0, 0, 0), **coords: Any) -> Any:
    """Return an array of xarray with voxels of 2, 0.5 and 0.25 um."""
    found = xr.DataArray(array, dims=("z", "y", "x")[-array.ndim :], coords=coords)
    for dim, start, step in zip("zyx", first, (2, 0.5, 0.25), strict=True):
        values = start + step * np.arange(found.sizes[dim])
        found = found.assign_coords({dim: (dim, values, {"units": "um"})})
    return found


def elements(project: spimdata.SpimData, folder: Path, view: tuple[int, int], level: int) -> Any:
    """Read a view where Java's loaders look for it."""
    container = folder / project.container
    if project.loader == "bdv.n5":
        path = f"setup{view[0]}/timepoint{view[1]}/s{level}"
        return n5zarr.open_array(container, path=path)[...]
    path, indices = project.images[view]
    format_: Any = project.zarr_format
    array: Any = zarr.open_array(container / path / str(level), mode="r", zarr_format=format_)
    assert array.ndim == 5
    return array[tuple(reversed(indices))]


@pytest.mark.parametrize("images", FORMATS)
def test_java_reads_names_sizes_and_elements(images: Any, tmp_path: Path) -> None:
    data = numbers(2, 3)
    stack = xr.DataArray(
        da.from_array(data, chunks=(1, 1, 3, 67, 71)),  # type: ignore[no-untyped-call]
        dims=("c", "t", "z", "y", "x"),
        coords={"c": ["GFP & co", "DÄPI"], "t": [2, 3, 7]},
    )
    xml = tmp_path / "my data.xml"
    n5zarr.write_bdv(stack, xml, format=images, voxel_size=(2, 0.5, 0.25), unit="um", chunks=31)
    found = spimdata.read(xml)
    assert found.container == ("my data.n5" if images == "n5" else "my data.ome.zarr")
    assert found.timepoints == [2, 3, 7]
    assert found.missing == set()
    for number, channel in enumerate(["GFP & co", "DÄPI"]):
        setup = found.setups[number]
        assert setup.size == (71, 67, 7)
        assert (setup.voxel_size, setup.unit) == ((0.25, 0.5, 2.0), "um")
        assert setup.names == {"channel": channel, "tile": "0", "angle": "0", "illumination": "0"}
        for index, timepoint in enumerate(found.timepoints):
            view = number, timepoint
            np.testing.assert_array_equal(elements(found, tmp_path, view, 0), data[number, index])
            # mpicbg's unit: the finest voxel
            np.testing.assert_array_equal(found.model(*view)[:, :3], np.diag([1, 2, 8]))


@pytest.mark.each_of(3)
@pytest.mark.parametrize("images", FORMATS)
@pytest.mark.parametrize("name", [name for name in NAMES if os.name != "nt" or name.isalpha()])
def test_paths_of_containers_are_parts_of_uris(images: Any, name: str, tmp_path: Path) -> None:
    data, xml = numbers()[:, :5, :3], tmp_path / f"{name}.xml"
    n5zarr.write_bdv({0: data}, xml, format=images, levels=0)
    back = tmp_path / f"new {name}/{name}.xml"
    n5zarr.convert(xml, back, to="n5" if images == "ome-zarr" else "ome-zarr", ome_version=None)
    for file in (xml, back):
        found = spimdata.read(file)
        assert found.container.removesuffix(".ome.zarr").removesuffix(".n5") == name
        np.testing.assert_array_equal(elements(found, file.parent, (0, 0), 0), data)
        opened: Any = n5zarr.open_bdv(file)["s0/data"]
        np.testing.assert_array_equal(opened[0, 0], data)


@pytest.mark.parametrize("images", FORMATS)
def test_names_in_object_stores_are_quoted_only_in_the_xml(images: Any) -> None:
    memory, data = fsspec.filesystem("memory"), numbers()[:, :5, :3]
    location = "memory://odd project/50%20 #1.xml"
    try:
        n5zarr.write_bdv({0: data}, location, format=images, levels=0)
        names = {name.rpartition("/")[2] for name in memory.ls("/odd project", detail=False)}
        suffix = "n5" if images == "n5" else "ome.zarr"
        assert names == {"50%20 #1.xml", f"50%20 #1.{suffix}"}
        assert f">50%2520%20%231.{suffix}<" in memory.cat("/odd project/50%20 #1.xml").decode()
        opened: Any = n5zarr.open_bdv(location)["s0/data"]
        np.testing.assert_array_equal(opened[0, 0], data)
    finally:
        memory.rm("/odd project", recursive=True)


@pytest.mark.parametrize("version", ["0.4", "0.5", "0.6"])
def test_the_version_of_zarr_is_stated(version: Any, tmp_path: Path) -> None:
    data = numbers()
    xml = tmp_path / "dataset.xml"
    n5zarr.write_bdv({3: data}, xml, format="ome-zarr", ome_version=version, levels=1)
    found = spimdata.read(xml)
    assert found.zarr_format == (2 if version == "0.4" else 3)
    np.testing.assert_array_equal(elements(found, tmp_path, (3, 0), 0), data)


@pytest.mark.parametrize("images", FORMATS)
def test_numbers_of_views_are_ints_in_java(images: Any, tmp_path: Path) -> None:
    """``Integer.parseInt`` reads the numbers of setups and time points up to 2147483647."""
    data, last = numbers()[:, :5, :3], 2**31 - 1
    xml, other = tmp_path / "dataset.xml", tmp_path / "new/dataset.xml"
    views = {(last, 0): data, (10**9, 10**9): data + 1, (7, last): data + 2}
    position = np.column_stack([np.eye(3), (2, 3, 5)])
    registrations = dict.fromkeys(views, position)
    n5zarr.write_bdv(views, xml, format=images, levels=0, registrations=registrations)
    n5zarr.convert(xml, other, to="n5" if images == "ome-zarr" else "ome-zarr")
    for file in (xml, other):
        found, tree = spimdata.read(file), n5zarr.open_bdv(file)
        assert found.timepoints == [0, 10**9, last]
        data_of_views: Any = tree["s0/data"]
        for (setup, timepoint), values in views.items():
            array = elements(found, file.parent, (setup, timepoint), 0)
            np.testing.assert_array_equal(array, values)
            read = data_of_views.sel(setup=setup, timepoint=timepoint)
            np.testing.assert_array_equal(read, values)
            assert [float(read[dim][0]) for dim in "xyz"] == [2, 3, 5]
    for view in ((2**31, 0), (0, 2**31)):
        with pytest.raises(N5UnrepresentableError, match=r"from 0 to 2147483647, got .*2147483648"):
            n5zarr.write_bdv({view: data}, tmp_path / "no/dataset.xml", format=images)


@pytest.mark.parametrize("images", FORMATS)
def test_positions_become_transforms(images: Any, tmp_path: Path) -> None:
    left = placed(numbers(), (4, -1.5, 0), tile="left", channel=561)
    right = placed(numbers(seed=1), (4, -1.5, 16.25), tile="right", channel=561)
    xml = tmp_path / "dataset.xml"
    n5zarr.write_bdv({3: left, 5: right}, xml, format=images)
    found = spimdata.read(xml)
    assert [name for name, _ in found.transforms[5, 0]] == ["translation", "calibration"]
    expected = np.column_stack([np.diag([1, 2, 8]), [65, -6, 16]])  # in elements of 0.25 um
    np.testing.assert_array_equal(found.model(5, 0), expected)
    assert [found.setups[n].names["tile"] for n in (3, 5)] == ["left", "right"]
    assert found.setups[3].names["channel"] == "561"
    tree = n5zarr.open_bdv(xml)
    for number, array in {3: left, 5: right}.items():
        read = tree[f"setup{number}/s0"]["data"].squeeze("timepoint")
        for dim in "zyx":
            xr.testing.assert_identical(read[dim].variable, array[dim].variable)
        np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize("images", FORMATS)
def test_what_open_bdv_reads_is_written(images: Any, tmp_path: Path, n5_project: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", n5zarr.N5Warning)  # a setup is turned
        tree = n5zarr.open_bdv(n5_project)
        xml = tmp_path / "dataset.xml"
        n5zarr.write_bdv(tree, xml, format=images)
    found, given = spimdata.read(xml), spimdata.read(n5_project)
    assert found.timepoints == [*bigstitcher.TIMEPOINTS]
    assert found.missing == {bigstitcher.MISSING}
    for number, setup in bigstitcher.SETUPS.items():
        assert found.setups[number].name == setup.name
        names = {kind: name or "0" for kind, name in given.setups[number].names.items()}
        assert found.setups[number].names == names  # an entity without a name has its number
        assert found.setups[number].location == given.setups[number].location
        assert found.setups[number].voxel_size == setup.voxel_size
        for timepoint in bigstitcher.TIMEPOINTS:
            view = number, timepoint
            if view != bigstitcher.MISSING:
                values = elements(found, tmp_path, view, 0)
                np.testing.assert_array_equal(values, bigstitcher.elements(*view, 0))
                np.testing.assert_allclose(found.model(*view), given.model(*view), atol=1e-12)


def test_registrations_of_another_project_are_kept_bit_for_bit(
    tmp_path: Path, n5_project: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", n5zarr.N5Warning)
        tree = n5zarr.open_bdv(n5_project, registrations=False)
        registrations = n5zarr.read_registrations(n5_project)
        del registrations[bigstitcher.MISSING]
        n5zarr.write_bdv(tree, tmp_path / "dataset.xml", registrations=registrations)
    assert n5zarr.read_registrations(tmp_path / "dataset.xml") == registrations


@pytest.mark.parametrize("images", FORMATS)
def test_levels_are_means_that_java_finds(images: Any, tmp_path: Path) -> None:
    data = numbers()
    xml = tmp_path / "dataset.xml"
    n5zarr.write_bdv({0: data, (1, 0): data + 1}, xml, format=images, factors=(1, 2, 2), levels=2)
    found = spimdata.read(xml)
    padded = np.pad(data.astype(float), ((0, 0), (0, 1), (0, 1)), mode="reflect")
    mean = padded.reshape(7, 34, 2, 36, 2).mean(axis=(2, 4))
    inner = np.s_[:, :33, :35]
    read = elements(found, tmp_path, (0, 0), 1)
    assert read.shape == (7, 34, 36)
    assert np.abs(read.astype(float) - mean)[inner].max() <= 0.5
    assert elements(found, tmp_path, (1, 0), 2).shape == (7, 17, 18)
    if images == "n5":
        setup = json.loads((tmp_path / "dataset.n5/setup0/attributes.json").read_text())
        assert setup["downsamplingFactors"] == [[1, 1, 1], [2, 2, 1], [4, 4, 1]]
        assert setup["dataType"] == "uint16"
        return
    group: Any = zarr.open_group(tmp_path / "dataset.ome.zarr/s0-t0.zarr", mode="r", zarr_format=2)
    (multiscale,) = group.attrs["multiscales"]
    assert multiscale["version"] == "0.4"  # what n5-universe 2.3 parses
    scales = [dataset["coordinateTransformations"][0] for dataset in multiscale["datasets"]]
    assert [each["scale"][-3:] for each in scales] == [[1, 1, 1], [1, 2, 2], [1, 4, 4]]
    assert [dataset["path"] for dataset in multiscale["datasets"]] == ["0", "1", "2"]


@pytest.mark.parametrize("images", FORMATS)
def test_pydantic_bigstitcher_reads_it(images: Any, tmp_path: Path) -> None:
    peer = pytest.importorskip("pydantic_bigstitcher")
    xml = tmp_path / "dataset.xml"
    n5zarr.write_bdv(
        {0: numbers(), 2: numbers()}, xml, format=images, levels=0,
        setups={2: {"name": "second", "tile": "7"}},
    )  # fmt: skip
    found = peer.SpimData2.from_xml(xml.read_bytes())
    setups = found.sequence_description.view_setups.elements
    assert [setup.name for setup in setups] == ["0", "second"]
    assert len(found.view_registrations.elements) == 2


def test_setups_without_names_are_tiles(tmp_path: Path) -> None:
    n5zarr.write_bdv({0: numbers(), 2: numbers()}, tmp_path / "dataset.xml", levels=0)
    setups = spimdata.read(tmp_path / "dataset.xml").setups
    assert [setups[n].names["tile"] for n in (0, 2)] == ["0", "2"]
    assert {setups[n].names["channel"] for n in (0, 2)} == {"0"}


def test_arrays_of_zarr_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "a.zarr"
    source: Any = zarr.create_array(place, shape=SHAPE, chunks=(3, 31, 37), dtype="i2")
    source[...] = numbers()
    asked: list[int] = []
    read = type(source).get_basic_selection

    def noted(array: Any, box: Any, **options: Any) -> Any:
        part = read(array, box, **options)
        asked.append(part.size)
        return part

    monkeypatch.setattr(type(source), "get_basic_selection", noted)
    n5zarr.write_bdv({0: source}, tmp_path / "dataset.xml", chunks=31, max_memory=2**16, levels=0)
    assert 0 < max(asked) < numbers().size
    monkeypatch.undo()
    found = spimdata.read(tmp_path / "dataset.xml")
    np.testing.assert_array_equal(elements(found, tmp_path, (0, 0), 0), numbers())


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({}, {}, "at least one view"),
        (3, {}, "expected a DataTree"),
        ({"a": numbers()}, {}, r"keys 3, a setup, or \(3, 0\)"),
        ({-1: numbers()}, {}, "keys 3"),
        ({0: numbers()[0, 0]}, {}, "axes z, y, x, got 1"),
        ({0: numbers() > 3}, {}, "integers or floats that N5 has"),
        ({0: numbers(), (0, 0): numbers()}, {}, "each setup and time point once"),
        ({(0, 0): numbers(), (0, 1): numbers()[1:]}, {}, "setup 0: expected the shape"),
        (xr.DataArray(numbers(2), dims=[*"qzyx"]), {}, "expected the dimensions"),
        (xr.DataArray(numbers(2, 1), dims=["t", "timepoint", *"zyx"]), {}, "one dimension of time"),
        (xr.DataArray(numbers(2, 2), dims=("setup", "tile", "z", "y", "x")), {}, "either setup"),
        (xr.DataArray(numbers(), dims=[*"zyx"], coords={"x": np.arange(71) ** 2}), {}, "evenly"),
        ({0: numbers()}, {"voxel_size": (1, 1)}, "voxel_size: expected a number above 0 for"),
        ({0: numbers()}, {"voxel_size": (1, 0, 1)}, "voxel_size: expected a number above 0"),
        ({0: numbers()}, {"voxel_size": 2}, "voxel_size: expected a number above 0 for each"),
        (placed(numbers())[:, ::-1], {}, "setup 0: expected ascending positions"),
        (placed(numbers())[:, ::-1], {"voxel_size": (2, 1, 1)}, "expected ascending positions"),
        ({(0, 0): placed(numbers()), (0, 1): placed(numbers()).assign_coords(x=np.arange(71))}, {},
            "unit and voxel size of time point 0"),
        (xr.DataArray(numbers(2), dims=("setup", *"zyx"), coords={"setup": [-1, 1]}), {}, "got -1"),
        ({0: numbers()}, {"setups": ["left"]}, "setups: expected a mapping of setups"),
        ({0: numbers()}, {"setups": {0: "left"}}, "setups: expected a mapping of setups"),
        ({0: numbers()}, {"registrations": [np.eye(4)]}, "registrations: expected a mapping"),
        ({0: numbers()}, {"setups": {1: {"name": "a"}}}, "setups: expected names"),
        ({0: numbers()}, {"setups": {0: {"colour": "a"}}}, "setups: expected names"),
        ({0: numbers(), 3: numbers()},
            {"setups": {0: {"tile": "a", "name": "left"}, 3: {"tile": "a", "name": "right"}}},
            r"differ from others in illumination, channel, tile, angle, got .* for 0 and 3"),
        ({0: numbers()}, {"setups": {0: {"name": "a\0"}}}, "characters that XML can hold"),
        ({0: numbers()}, {"setups": {0: {"name": "a\ud800"}}}, "characters that XML can hold"),
        ({0: numbers()}, {"registrations": {1: np.eye(4)}}, "a setup or a view of the data"),
        ({0: numbers()}, {"registrations": {0: np.zeros((3, 4))}}, "that can be inverted"),
        ({0: numbers()}, {"method": "no"}, "method"),
        ({0: numbers()}, {"factors": (0, 0, 0)}, "factors"),
        ({0: numbers()}, {"factors": (1, 2)}, "factors"),
        ({0: numbers()}, {"levels": 99}, "levels: expected at most"),
        ({0: numbers()}, {"format": "ome-zarr", "factors": (1, 1, 1)}, "factors"),
        ({0: numbers()}, {"format": "hdf5"}, "format"),
        ({0: numbers()}, {"ome_version": "0.5"}, "ome_version"),
    ],
)  # fmt: skip
def test_mistakes_are_told_and_nothing_is_written(
    data: Any, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.write_bdv(data, tmp_path / "dataset.xml", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_project_is_replaced_only_on_demand(tmp_path: Path) -> None:
    xml = tmp_path / "dataset.xml"
    n5zarr.write_bdv({0: numbers()}, xml, levels=0)
    before = xml.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        n5zarr.write_bdv({0: numbers(seed=1)}, xml, levels=0)
    xml.unlink()  # the container alone is not overwritten, either
    with pytest.raises(N5UnrepresentableError, match="overwrite=True"):
        n5zarr.write_bdv({0: numbers(seed=1)}, xml, levels=0)
    n5zarr.write_bdv({0: numbers(seed=1)}, xml, levels=0, overwrite=True)
    assert xml.read_bytes() == before
    found = spimdata.read(xml)
    np.testing.assert_array_equal(elements(found, tmp_path, (0, 0), 0), numbers(seed=1))
    with pytest.raises(N5UnrepresentableError, match=r"path of an XML file"):
        n5zarr.write_bdv({0: numbers()}, tmp_path / "dataset.n5")


@pytest.mark.parametrize("images", FORMATS)
def test_a_project_that_is_read_is_not_removed(images: Any, tmp_path: Path) -> None:
    xml = tmp_path / "dataset.xml"
    n5zarr.write_bdv({0: numbers(), 1: numbers(seed=1)}, xml, format=images)
    tree = n5zarr.open_bdv(xml)
    lazy: list[Any] = [tree, n5zarr.open_bdv(xml, chunks=None), tree["s0"].to_dataset()]
    lazy += [tree["s0/data"], {0: tree["s0/data"].isel(setup=0)}, {0: tree["s0/data"].data[0, 0]}]
    if images == "n5":
        lazy += [{0: n5zarr.open_array(tmp_path / "dataset.n5", path="setup0/timepoint0/s0")}]
    for data in lazy:
        with pytest.raises(N5UnrepresentableError, match=r"overwrite=True would remove the unread"):
            n5zarr.write_bdv(data, xml, format=images, overwrite=True)
    n5zarr.write_bdv(tree.load(), xml, format=images, overwrite=True)
    found = spimdata.read(xml)
    np.testing.assert_array_equal(elements(found, tmp_path, (1, 0), 0), numbers(seed=1))


def test_time_points_may_be_turned_and_stretched(tmp_path: Path) -> None:
    xml = tmp_path / "moving.xml"
    times = [0, 2, 3, 5]
    one = numbers()[:, :11, :13]
    n5zarr.write_bdv({(7, t): one for t in times}, xml, voxel_size=(1.7, 0.1625, 0.1625))
    for t in times[1:]:
        turned = np.eye(3, 4) + np.random.default_rng(t).normal(size=(3, 4)) / 100
        n5zarr.register(xml, {(7, t): turned + np.outer([107, -211, t], [0, 0, 0, 1])})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", n5zarr.N5Warning)  # coordinates cannot turn
        tree = n5zarr.open_bdv(xml)
    n5zarr.write_bdv(tree, tmp_path / "copy.xml")
    old, new = spimdata.read(xml), spimdata.read(tmp_path / "copy.xml")
    for t in times:
        np.testing.assert_allclose(new.model(7, t), old.model(7, t), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("images", FORMATS)
def test_an_older_xml_does_not_place_new_images(
    images: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xml = tmp_path / "dataset.xml"
    n5zarr.write_bdv({0: numbers()}, xml, format=images, voxel_size=(1, 1, 1))

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("n5zarr.bigdataviewer.write.build_levels", fail)
        with pytest.raises(OSError, match="no space left"):  # after the images
            n5zarr.write_bdv(
                {0: numbers()}, xml, format=images, voxel_size=(3, 3, 3), overwrite=True
            )
    np.testing.assert_array_equal(n5zarr.open_bdv(xml)["s0"].coords["x"][:2], [0, 3])
    given = {(0, 1): np.diag([1, 1, 2, 1]), 0: np.eye(4)}
    views = {(0, 0): numbers(), (0, 1): numbers()}
    n5zarr.write_bdv(views, xml, format=images, overwrite=True, registrations=given)
    assert n5zarr.read_registrations(xml)[0, 1][0].matrix[2, 2] == 2


# ------------------------------------------------------------------------ levels="given"

SCALE = {"z": 2.0, "y": 0.5, "x": 0.5}
SETUPS = (0, 3)


def tree_of_images() -> xr.DataTree:
    """Return two setups with levels that no method makes of each other."""
    nodes = {}
    for setup in SETUPS:
        for level, by in enumerate(FACTORS):
            data = np.stack([image(setup, t, level) for t in TIMEPOINTS])
            coords: dict[str, Any] = {"timepoint": [*TIMEPOINTS], "setup": setup}
            for dim, factor, n in zip("zyx", by[::-1], data.shape[1:], strict=True):
                places = 10 + (np.arange(n) * factor + (factor - 1) / 2) * SCALE[dim]
                coords[dim] = (dim, places, {"units": "um"})
            array = xr.DataArray(data, dims=("timepoint", *"zyx"), coords=coords)
            nodes[f"setup{setup}/s{level}"] = array.to_dataset(name="data")
    return xr.DataTree.from_dict(nodes)


def in_n5(folder: Path, setup: int, t: int) -> list[Any]:
    """Read the levels of a view, as ``DefaultN5Properties`` counts them."""
    document = json.loads((folder / f"d.n5/setup{setup}/attributes.json").read_text())
    assert [tuple(by) for by in document["downsamplingFactors"]] == FACTORS
    assert document["dataType"] == "uint16"
    paths = [folder / f"d.n5/setup{setup}/timepoint{t}/s{level}" for level in range(len(FACTORS))]
    for path, by in zip(paths[1:], FACTORS[1:], strict=True):
        own = json.loads((path / "attributes.json").read_text())
        assert own["downsamplingFactors"] == [*by]
    return [read_with_tensorstore("n5", path).T for path in paths]


def in_ome(folder: Path, setup: int, t: int, version: str) -> list[Any]:
    """Read the levels of a view, as ``AllenOMEZarrProperties``: factors are ratios of scales."""
    image = folder / f"d.ome.zarr/s{setup}-t{t}.zarr"
    found = json.loads((image / {"0.4": ".zattrs", "0.5": "zarr.json"}[version]).read_text())
    found = found if version == "0.4" else found["attributes"]["ome"]
    levels = found["multiscales"][0]["datasets"]
    assert [each["path"] for each in levels] == ["0", "1", "2"]
    scales = [np.array(e["coordinateTransformations"][0]["scale"]) for e in levels]
    assert [tuple((s / scales[0])[:1:-1].tolist()) for s in scales] == FACTORS
    driver = {"0.4": "zarr", "0.5": "zarr3"}[version]
    return [read_with_tensorstore(driver, image / each["path"])[0, 0] for each in levels]


@pytest.mark.parametrize("version", [None, "0.4", "0.5"])
def test_java_finds_the_levels(version: Any, tmp_path: Path) -> None:
    options: Any = {} if version is None else {"format": "ome-zarr", "ome_version": version}
    n5zarr.write_bdv(tree_of_images(), tmp_path / "d.xml", levels="given", **options)
    for view in product(SETUPS, TIMEPOINTS):
        found = in_ome(tmp_path, *view, version) if version else in_n5(tmp_path, *view)
        for level, array in enumerate(found):
            np.testing.assert_array_equal(array, image(*view, level))
    again: Any = n5zarr.open_bdv(tmp_path / "d.xml")
    for node in tree_of_images().leaves:
        for name in ("data", *"zyx"):
            np.testing.assert_allclose(again[node.path][name], node[name])


def test_a_split_project_is_written_as_it_is(tmp_path: Path) -> None:
    tree: Any = n5zarr.open_bdv(write_project(tmp_path, "n5"))
    n5zarr.write_bdv(tree, tmp_path / "new.xml", levels="given")
    again: Any = n5zarr.open_bdv(tmp_path / "new.xml")
    for node in tree.leaves:
        for name in ("data", "present", *"zyx"):
            np.testing.assert_allclose(again[node.path][name], node[name])


def without(path: str) -> Callable[[xr.DataTree], xr.DataTree]:
    return lambda tree: xr.DataTree.from_dict(
        {node.path: node.to_dataset() for node in tree.leaves if node.path != path}
    )


def changed(**coords: Any) -> Callable[[xr.DataTree], xr.DataTree]:
    def change(tree: xr.DataTree) -> xr.DataTree:
        node: Any = tree["setup3/s1"]
        node.dataset = node.to_dataset().assign(**coords)
        return tree

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("/setup3/s1"), r"setup 3, time point 0: expected each level from s0 to s2.* s1"),
        (without("/setup3/s0"), r"setup 3, time point 0: expected s0, got s1 only"),
        (changed(x=lambda d: d["x"] - 0.25),
            r"begins 0\.5 elements of s0 after s0 along x.* got 0;"),
        (changed(data=lambda d: d["data"].astype("f4")), r"s1: expected a level of s0, uint16"),
        (lambda tree: tree["setup0/s0"].to_dataset(), r"levels: expected 'given' with a DataTree"),
    ],
)  # fmt: skip
def test_mistaken_levels_are_told_and_nothing_is_written(
    change: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.write_bdv(change(tree_of_images()), tmp_path / "d.xml", levels="given")
    assert [*tmp_path.iterdir()] == []
