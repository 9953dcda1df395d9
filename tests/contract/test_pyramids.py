"""Levels of pyramids, BigDataViewer's views, and ``ds.n5`` are read with positions."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store, N5Warning
from n5zarr.xarray.backend import N5BackendEntrypoint

SAMPLE = n5zarr.sample_path()
METADATA = Path(__file__).parents[1] / "data" / "java" / "metadata.n5"


def pyramid(path: Path, scales: list[tuple[float, float]], names: list[str]) -> None:
    for name, scale in zip(names, scales, strict=True):
        shape = tuple(int(120 / s) for s in scale)
        how: Any = {"axes": "yx", "units": ["um", "um"], "resolution": scale}
        n5zarr.create_array(path / name, data=np.full(shape, len(name), "u1"), **how)


@pytest.mark.each_of(4)
@pytest.mark.parametrize(
    ("resolution", "level"),
    [
        ({"x": 16}, "s1"), ({"x": 15.9}, "s0"), ({"x": 31}, "s1"), ({"x": 32}, "s2"),
        ({"x": 1000}, "s2"), ({"x": 1}, "s0"), ({"x": 32, "z": 40}, "s1"),
        ({"z": 79, "y": 99}, "s1"), ({}, "s2"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("path", ["em", "em/s0", "em/s2"])
def test_the_coarsest_level_that_is_fine_enough(
    resolution: dict[str, float], level: str, path: str
) -> None:
    found = n5zarr.open_level(SAMPLE, resolution, path=path)
    assert list(found) == [level]
    xr.testing.assert_identical(found, xr.open_dataset(SAMPLE, engine="n5", group=f"em/{level}"))
    assert list(n5zarr.open_level(f"{SAMPLE}/{path}", resolution, chunks={})) == [level]


def test_levels_are_sorted_by_size_and_not_by_name(tmp_path: Path) -> None:
    names = [f"s{k}" for k in range(11)]
    scales = [(2.0**k, 2.0 ** (k // 2)) for k in range(11)]
    pyramid(tmp_path / "c.n5", scales[:6], [*names[:5], "s10"])
    found = n5zarr.pyramid_levels(tmp_path / "c.n5")
    assert [level.path for level in found] == ["s0", "s1", "s2", "s3", "s4", "s10"]
    assert found[5].voxel_size == {"y": 32, "x": 4}
    assert list(n5zarr.open_level(tmp_path / "c.n5", level=5)) == ["s10"]
    pyramid(tmp_path / "d.n5", [(4, 4), (1, 1), (2, 2)], ["mag4", "mag1", "mag2"])
    assert [n.path for n in n5zarr.pyramid_levels(tmp_path / "d.n5")] == ["mag1", "mag2", "mag4"]


def test_the_error_for_a_missing_pyramid_lists_groups() -> None:
    with pytest.raises(n5zarr.N5Error, match="groups in it: em, labels"):
        n5zarr.pyramid_levels(SAMPLE)
    with pytest.raises(FileNotFoundError):
        n5zarr.pyramid_levels(SAMPLE, "nothing")
    wrong: list[dict[str, Any]] = [
        {"level": 3}, {"level": -1}, {"resolution": {"q": 1}}, {"resolution": {"x": 0}}, {},
        {"level": 1, "resolution": {"x": 1}},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(n5zarr.N5Error, match="expected"):
            n5zarr.open_level(SAMPLE, path="em", **options)


@pytest.mark.parametrize("path", ["n5viewer/c0", "neuroglancer/multi", "ngff-0.3", "paintera/data"])
def test_levels_in_every_convention(path: str) -> None:
    first, second = n5zarr.pyramid_levels(METADATA, path)
    assert [first.path, second.path] == [f"{path}/s0", f"{path}/s1"]
    assert [second.voxel_size[d] / first.voxel_size[d] for d in "xyz"] == [2, 2, 2]
    ordered = n5zarr.pyramid_levels(METADATA, path, axis_order="F")[1]
    assert list(ordered.sizes) == ["x", "y", "z"]


def test_the_accessor() -> None:
    dataset = xr.open_dataset(SAMPLE, engine="n5", group="em/s1")
    size = {"z": 40, "y": 16, "x": 16}
    for data in (dataset, dataset["s1"]):
        assert data.n5.voxel_size == size
        assert data.n5.convention == "cosem"
        assert data.isel(x=slice(None, None, 3)).n5.voxel_size == {**size, "x": 48}
        cropped = data.n5.crop(x=(100, 200), z=(None, 90), y=(300, 200))
        assert cropped["x"].values.tolist() == [100, 116, 132, 148, 164, 180, 196]
        assert cropped["z"].values.tolist() == [10, 50, 90]
        assert cropped["y"].values.tolist() == [212, 228, 244, 260, 276, 292]
        assert cropped.n5.convention == "cosem"
        assert list(cropped.n5.level(2)) == ["s2"]
        with pytest.raises(KeyError, match="expected a dimension with coordinates"):
            data.n5.crop(q=(1, 2))
        with pytest.raises(n5zarr.N5Error, match="expected 0 to 2"):
            data.n5.level(3)
    level = xr.open_dataset(SAMPLE, engine="n5", group="em/s1", chunks={}).n5.level(0)
    assert level["s0"].chunks is not None


def test_the_accessor_of_other_data() -> None:
    array = xr.DataArray(np.zeros((3, 2)), dims=("y", "x"), coords={"y": [9.0, 7.0, 5.0]})
    assert array.n5.voxel_size == {"y": -2}
    assert array.n5.convention is None
    assert array.n5.crop(y=(6, 10))["y"].values.tolist() == [9, 7]
    with pytest.raises(n5zarr.N5Error, match="engine='n5'"):
        array.n5.level(0)
    uneven = array.assign_coords(y=[1.0, 2.0, 4.0])
    assert uneven.n5.voxel_size == {}
    times = array.assign_coords(y=np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]"))
    assert times.n5.voxel_size == {}


XML = """<?xml version="1.0" encoding="UTF-8"?>
<SpimData version="0.2"><SequenceDescription>
<ImageLoader format="bdv.n5" version="1.0"><n5 type="relative">{n5}</n5></ImageLoader>
<ViewSetups>{setups}</ViewSetups></SequenceDescription>
<ViewRegistrations>{views}</ViewRegistrations></SpimData>
"""
VIEW = """<ViewRegistration timepoint="{t}" setup="{s}">
<ViewTransform type="affine"><Name>stitched</Name><affine>{affine}</affine></ViewTransform>
<ViewTransform type="affine"><affine>0.2 0 0 0 0 0.3 0 0 0 0 1.5 0</affine></ViewTransform>
</ViewRegistration>"""
SETUP = """<ViewSetup><id>{k}</id><name>tile {k}</name><size>7 5 3</size>
<voxelSize><unit>um</unit><size>0.2 0.3 {z}</size></voxelSize>
<attributes><channel>{k}</channel><tile>{tile}</tile></attributes></ViewSetup>"""


def views(
    container: Path, shapes: Mapping[tuple[int, int], tuple[int, ...]]
) -> dict[tuple[int, int, int], np.ndarray[Any, Any]]:
    written = {}
    rng = np.random.default_rng(3)
    for (setup, timepoint), shape in shapes.items():
        for level in (0, 1):
            extent = tuple(-(-n // 2**level) for n in shape)
            values = rng.integers(1, 999, extent).astype("u2")
            path = container / f"setup{setup}" / f"timepoint{timepoint}" / f"s{level}"
            attributes: Any = {"downsamplingFactors": [2**level] * 3}
            n5zarr.create_array(path, shape=extent, dtype="u2", attributes=attributes)[...] = values
            written[setup, timepoint, level] = values
    return written


NONE: dict[tuple[int, int], str] = {}


def write_xml(
    path: Path, n5: str, n_setups: int, z: float = 1.5, views: Mapping[tuple[int, int], str] = NONE
) -> None:
    """Write the XML, with the last transform of views by setup and time point."""
    setups = "".join(SETUP.format(k=k, z=z, tile=10 + k) for k in range(n_setups))
    listed = "".join(VIEW.format(s=s, t=t, affine=a) for (s, t), a in views.items())
    path.write_text(XML.format(n5=n5, setups=setups, views=listed))


def moved(x: float, y: float, z: float) -> str:
    return f"1 0 0 {x} 0 1 0 {y} 0 0 1 {z}"


def test_setups_and_time_points_are_stacked(tmp_path: Path) -> None:
    container = tmp_path / "dataset.n5"
    shapes = {(s, t): (3, 5, 7) for s in (0, 1, 10) for t in (0, 2, 11) if (s, t) != (1, 2)}
    written = views(container, shapes)
    write_xml(tmp_path / "dataset.xml", "dataset.n5", 11)
    for location in (container, tmp_path / "dataset.xml"):
        with pytest.warns(N5Warning, match="without data: 2-9"):
            tree = n5zarr.open_bdv(location)
        assert list(tree.children) == ["s0", "s1"]
        scales: Any = tree["s1"]
        for level in (0, 1):
            data: Any = tree[f"s{level}/data"]
            assert data.dims == ("setup", "timepoint", "z", "y", "x")
            assert data.chunks is not None
            assert data["setup"].values.tolist() == [0, 1, 10]
            assert data["timepoint"].values.tolist() == [0, 2, 11]
            assert data["setup_name"].values.tolist() == ["tile 0", "tile 1", "tile 10"]
            assert data["channel"].values.tolist() == ["0", "1", "10"]  # as they have no names
            assert data["tile"].values.tolist() == ["10", "11", "20"]
            for (s, t, k), values in written.items():
                if k == level:
                    np.testing.assert_array_equal(data.sel(setup=s, timepoint=t), values)
            assert not data.sel(setup=1, timepoint=2).any()  # a view that is missing
        np.testing.assert_allclose(scales["x"].values[:2], [0.1, 0.5])
        np.testing.assert_allclose(scales["z"].values[:2], [0.75, 3.75])
        assert tree["s1"]["z"].attrs == {"units": "um"}
    with pytest.warns(N5Warning, match="without data: 2-9"):
        ordered: Any = n5zarr.open_bdv(container, axis_order="F")["s0/data"]
    assert ordered.dims == ("setup", "timepoint", "x", "y", "z")
    np.testing.assert_array_equal(ordered[0, 0], written[0, 0, 0].T)


def test_setups_of_different_sizes_stay_apart(tmp_path: Path) -> None:
    container = tmp_path / "d.n5"
    written = views(container, {(0, 0): (3, 5, 7), (1, 0): (4, 5, 7)})
    tree: Any = n5zarr.open_bdv(container)
    assert sorted(tree.children) == ["setup0", "setup1"]
    np.testing.assert_array_equal(tree["setup1/s1/data"][0], written[1, 0, 1])
    views(container, {(1, 1): (3, 5, 7)})
    with pytest.raises(n5zarr.N5Error, match=r"setup1/timepoint1/s0: expected uint16 \(4, 5, 7\)"):
        n5zarr.open_bdv(container)


def test_voxel_sizes_that_differ_keep_setups_apart(tmp_path: Path) -> None:
    views(tmp_path / "d.n5", {(0, 0): (3, 5, 7), (1, 0): (3, 5, 7)})
    setups = (SETUP.format(k=k, z=k + 1, tile=0) for k in (0, 1))
    text = XML.format(n5="d.n5", setups="".join(setups), views="")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "dataset.xml").write_text(text)
    assert sorted(n5zarr.open_bdv(tmp_path / "d.n5").children) == ["s0", "s1"]
    (tmp_path / "d.xml").write_text(text)
    tree: Any = n5zarr.open_bdv(tmp_path / "d.n5")
    assert tree["setup1/s0"]["z"].values.tolist() == [0, 2, 4]


def test_views_of_java_and_what_is_none(tmp_path: Path) -> None:
    shutil.copytree(METADATA / "bdv", tmp_path / "c.n5")
    tree: Any = n5zarr.open_bdv(METADATA, path="bdv")
    assert tree["s0/data"].dims == ("setup", "timepoint", "z", "y", "x")
    assert tree["s0"]["x"].values[1] == 0.25
    xml = n5zarr.open_bdv(METADATA / "bdv" / "dataset.xml")
    xr.testing.assert_identical(xml.load(), tree.load())
    with pytest.raises(FileNotFoundError, match="expected groups setup0"):
        n5zarr.open_bdv(SAMPLE)
    (tmp_path / "other.xml").write_text("<a/>")
    with pytest.raises(n5zarr.N5Error, match="BigDataViewer's XML"):
        n5zarr.open_bdv(tmp_path / "other.xml")
    described = tmp_path / "elsewhere.xml"
    write_xml(described, "c.n5", 1, z=9)
    for xml_file in (tmp_path / "c.n5").glob("*.xml"):
        xml_file.unlink()
    forced: Any = n5zarr.open_bdv(tmp_path / "c.n5", xml=described)
    assert forced["s0"]["setup_name"].values.tolist() == ["tile 0"]
    assert forced["s0"]["z"].values.tolist() == [0, 9, 18, 27]
    assert forced["s0"]["z"].attrs == {"units": "um"}


def test_tiles_lie_where_their_registrations_put_them(tmp_path: Path) -> None:
    container = tmp_path / "d.n5"
    written = views(container, {(s, t): (3, 5, 7) for s in (0, 1) for t in (0, 4)})
    places = {(s, t): moved(s * 1.2, -3, 0.5) for s in (0, 1) for t in (0, 4)}
    write_xml(tmp_path / "d.xml", "d.n5", 2, views=places)
    tree: Any = n5zarr.open_bdv(container)
    assert sorted(tree.children) == ["setup0", "setup1"]
    for setup, first in ((0, 0.0), (1, 1.2)):
        full, half = tree[f"setup{setup}/s0"], tree[f"setup{setup}/s1"]
        np.testing.assert_allclose(full["x"], first + 0.2 * np.arange(7))
        np.testing.assert_allclose(half["x"], first + 0.1 + 0.4 * np.arange(4))
        np.testing.assert_allclose(half["y"], -3 + 0.15 + 0.6 * np.arange(3))
        np.testing.assert_allclose(full["z"], [0.5, 2, 3.5])
        assert full["z"].attrs == {"units": "um"}
        assert "registration" not in full["data"].attrs
        assert full["data"].dims == ("timepoint", "z", "y", "x")
        assert (int(full["setup"]), str(full["tile"].values)) == (setup, str(10 + setup))
        np.testing.assert_array_equal(half["data"].sel(timepoint=4), written[setup, 4, 1])
        # the engine says the same of one view
        alone = xr.open_dataset(container, engine="n5", group=f"setup{setup}/timepoint4/s1")
        for dim in "xyz":
            xr.testing.assert_identical(alone[dim].variable, half[dim].variable)
    every: Any = xr.open_datatree(container, engine="n5")
    assert every["setup1/timepoint0/s0"]["x"].values[0] == 1.2
    # what is at one place is one array, and so is everything where it is wanted
    for registrations in (False, True):
        stacked: Any = n5zarr.open_bdv(container, registrations=registrations)["s0/data"]
        assert stacked.dims == ("setup", "timepoint", "z", "y", "x")
        assert stacked["x"].values[0] == (1.2 if registrations else 0)
        places = dict.fromkeys(places, moved(1.2, 0, 0))
        write_xml(tmp_path / "d.xml", "d.n5", 2, views=places)


def test_time_points_that_differ_in_place_are_apart(tmp_path: Path) -> None:
    container = tmp_path / "d.n5"
    written = views(container, {(0, 0): (3, 5, 7), (0, 2): (3, 5, 7), (1, 2): (3, 5, 7)})
    drift = {(0, 0): moved(0, 0, 0), (0, 2): moved(0.5, 0, 0), (1, 2): moved(0, 0, 0)}
    write_xml(tmp_path / "d.xml", "d.n5", 2, views=drift)
    tree: Any = n5zarr.open_bdv(container)
    found = {node.path: node for node in tree.leaves}
    places = ["setup0/timepoint0", "setup0/timepoint2", "setup1/timepoint2"]
    assert sorted(found) == [f"/{place}/s{k}" for place in places for k in (0, 1)]
    late = found["/setup0/timepoint2/s0"]
    assert late["x"].values[0] == 0.5
    assert late["timepoint"].values.tolist() == [2]
    np.testing.assert_array_equal(late["data"][0], written[0, 2, 0])
    del drift[0, 2]  # so far only one time point is registered
    write_xml(tmp_path / "d.xml", "d.n5", 2, views=drift)
    partly: Any = n5zarr.open_bdv(container)
    assert list(partly["setup0"].children) == ["timepoint0", "timepoint2"]


def test_a_rotation_gives_one_warning_and_stays_an_attribute(tmp_path: Path) -> None:
    container = tmp_path / "d.n5"
    views(container, {(s, 0): (3, 5, 7) for s in (0, 1)})
    turn = "0 -1 0 8 1 0 0 9 0 0 1 2"
    write_xml(tmp_path / "d.xml", "d.n5", 2, views={(0, 0): turn, (1, 0): turn})
    with pytest.warns(n5zarr.N5Warning, match="s0 and 3 others: .* turns or shears") as warned:
        tree: Any = n5zarr.open_bdv(container)
    assert len(warned) == 1
    data = tree["s1/data"]
    assert data.dims == ("setup", "timepoint", "z", "y", "x")
    assert len(data.attrs["registration"]) == 12  # netCDF has no attributes of two dimensions
    rest = np.reshape(data.attrs["registration"], (3, 4))
    # an element in the third row and first plane of s1, in the world
    place = data.isel(x=1, y=2, z=0)
    at = [float(place[dim]) for dim in "xyz"]
    np.testing.assert_allclose(rest @ [*at, 1], [-0.3 * 4.5 + 8, 0.2 * 2.5 + 9, 1.5 * 0.5 + 2])
    with pytest.warns(n5zarr.N5Warning, match="turns or shears"):
        alone = xr.open_dataset(container / "setup1/timepoint0/s1", engine="n5")
    np.testing.assert_array_equal(alone["s1"].attrs["registration"], rest.ravel())
    back = "0 1 0 8 -1 0 0 9 0 0 1 2"
    write_xml(tmp_path / "d.xml", "d.n5", 2, views={(0, 0): turn, (1, 0): back})
    with pytest.warns(n5zarr.N5Warning, match="turns or shears"):
        assert sorted(n5zarr.open_bdv(container).children) == ["setup0", "setup1"]


def test_names_of_views_may_have_zeros(tmp_path: Path) -> None:
    written = views(tmp_path / "d.n5", {(0, 0): (3, 5, 7)})
    write_xml(tmp_path / "d.xml", "d.n5", 1, views={(0, 0): moved(1, 0, 0)})
    setup = (tmp_path / "d.n5" / "setup0").rename(tmp_path / "d.n5" / "setup00")
    (setup / "timepoint0").rename(setup / "timepoint00")
    found: Any = n5zarr.open_bdv(tmp_path / "d.n5")["s0"]
    np.testing.assert_array_equal(found["data"][0, 0], written[0, 0, 0])
    assert found["x"].values[0] == 1


def test_a_tree_mirrors_setups_and_channels() -> None:
    tree: Any = xr.open_datatree(METADATA, engine="n5")
    assert tree["canonical/ds/ds"]["x"].values[0] == 10
    assert tree["canonical/ms/s0/s0"]["x"].values[0] == 0
    assert tree["bdv/setup0/timepoint0/s1/s1"].dims == ("z", "y", "x")
    assert tree["n5viewer/c0/s0"]["x"].attrs == {"units": "um"}


@pytest.mark.parametrize(
    ("name", "group", "expected"),
    [
        # C order in `transform`; the array's own pixelResolution is x first
        ("02-openorganelle-fibsem-array-s3.json", "a", "cosem"),
        ("04-cosem-F-ordering-array.json", "a", "cosem"),
        ("19-bdv-s0-array.json", "setup0/timepoint0/s0", "bdv"),
        ("23-n5viewer-pixelResolution-object.json", "a", "n5viewer"),
        ("24-n5viewer-pixelResolution-array.json", "a", "n5viewer"),
        ("25-n5-universe-canonical-affine.json", "a", "canonical"),
    ],
)
def test_real_documents_give_positions(
    tmp_path: Path, name: str, group: str, expected: str
) -> None:
    document = json.loads((METADATA.parents[1] / "attributes" / name).read_text())
    (tmp_path / "c.n5" / group).mkdir(parents=True)
    (tmp_path / "c.n5" / group / "attributes.json").write_text(json.dumps(document))
    found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group=group)
    assert found.n5.convention == expected
    placed = n5zarr.geometry(tmp_path / "c.n5", group)
    size = dict(zip(placed.names, placed.scale, strict=True))
    assert found.n5.voxel_size == pytest.approx(size, rel=1e-12)  # measured between positions
    if expected == "cosem":
        scale = document["transform"]["scale"]
        in_c = document["transform"].get("ordering") != "F"
        assert list(size.values()) == (scale if in_c else scale[::-1])
    elif expected == "n5viewer":
        given = document["pixelResolution"]
        numbers = given["dimensions"] if isinstance(given, dict) else given
        factors = document.get("downsamplingFactors", [1, 1, 1])
        products = [n * f for n, f in zip(numbers, factors, strict=True)]
        assert list(size.values()) == products[::-1]
    elif expected == "canonical":
        affine = document["spatialTransform"]["transform"]["affine"]
        assert list(size.values()) == [affine[10], affine[5], affine[0]]


def test_levels_are_found_whatever_is_written_of_them(tmp_path: Path) -> None:
    # a single plane says nothing of the distance to the next; units may differ
    for k, (n, unit, size) in enumerate([(16, "nm", 10.0), (8, "um", 0.02), (4, "nm", 40.0)]):
        shape = (max(n // 4, 1), n, n)
        n5zarr.create_array(
            tmp_path / "c.n5" / f"s{k}", shape=shape, dtype="u1", axes="zyx", units=[unit] * 3,
            resolution=[1.0 if shape[0] == 1 else size, size, size],
        )  # fmt: skip
    levels = n5zarr.pyramid_levels(tmp_path / "c.n5")
    assert [level.path for level in levels] == ["s0", "s1", "s2"]
    for wanted, level in ((5, "s0"), (19, "s0"), (20, "s1"), (40, "s2")):
        assert list(n5zarr.open_level(tmp_path / "c.n5", {"x": wanted})) == [level]


def test_levels_without_positions_count_elements_of_the_finest(tmp_path: Path) -> None:
    for k in (0, 1):
        n5zarr.create_array(tmp_path / "c.n5" / f"s{k}", shape=(8 >> k, 6 >> k), dtype="u1")
    sizes = [level.voxel_size for level in n5zarr.pyramid_levels(tmp_path / "c.n5")]
    assert sizes == [{"dim_0": 1, "dim_1": 1}, {"dim_0": 2, "dim_1": 2}]
    assert list(n5zarr.open_level(tmp_path / "c.n5", level=1)) == ["s1"]
    for wanted, level in ((1, "s0"), (2, "s1")):
        assert list(n5zarr.open_level(tmp_path / "c.n5", {"dim_1": wanted})) == [level]
    with pytest.raises(n5zarr.N5Error, match="or choose with level="):
        n5zarr.open_level(tmp_path / "c.n5", {"x": 1})


def test_a_forced_convention_is_kept_from_level_to_level() -> None:
    found = xr.open_dataset(METADATA, engine="n5", group="cosem/s0", convention="n5viewer")
    assert found.n5.level(1).n5.convention == "n5viewer"
    with pytest.raises(n5zarr.N5Error, match="expected one of bdv, canonical"):
        xr.open_dataset(METADATA, engine="n5", group="cosem/s0", convention="bogus")


@pytest.mark.each_of(5)
@pytest.mark.parametrize("is_lazy", [True, False])
@pytest.mark.parametrize(
    "change",
    [copy.deepcopy, lambda ds: pickle.loads(pickle.dumps(ds)), lambda ds: ds.isel(x=slice(3), y=0),
     xr.Dataset.load, xr.Dataset.chunk, xr.Dataset.transpose],
    ids=["deep copy", "pickle", "selection", "loaded", "dask", "transposed"],
)  # fmt: skip
def test_the_origin_goes_along_with_the_data(
    change: Callable[[xr.Dataset], xr.Dataset], is_lazy: bool
) -> None:
    ds = xr.open_dataset(SAMPLE, engine="n5", group="em/s1", chunks={} if is_lazy else None)
    changed = change(ds)
    assert changed.n5.convention == "cosem"
    assert list(changed.n5.level(0)) == list(changed["s1"].n5.level(0)) == ["s0"]
    assert str(changed["s1"].encoding["source"]) == f"{ds.encoding['source']}/em/s1"


def test_cropping_where_positions_are_uneven() -> None:
    array = xr.DataArray([1, 2, 3, 4], dims="x", coords={"x": [10, 7, 6, 1]})
    assert array.n5.crop(x=(0, 8))["x"].values.tolist() == [7, 6, 1]


def test_encoding_can_be_handed_on(tmp_path: Path) -> None:
    found = xr.open_dataset(SAMPLE, engine="n5", group="em/s1")
    encoding = {name: dict(found[name].encoding) for name in ("s1", "x")}
    found.to_zarr(tmp_path / "a.zarr", encoding=encoding, consolidated=False)
    found.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    again = pickle.loads(pickle.dumps(found))
    assert list(again.n5.level(0)) == ["s0"]


def test_other_files_called_xml_do_no_harm(tmp_path: Path) -> None:
    views(tmp_path / "d.n5", {(0, 0): (3, 5, 7)})
    (tmp_path / "a.xml").mkdir()
    (tmp_path / "b.xml").symlink_to("nowhere")
    (tmp_path / "c.xml").write_bytes(b'<?xml version="1.0" encoding="klingon"?><a/>')
    write_xml(tmp_path / "d.xml", "d.n5", 1)
    assert n5zarr.open_bdv(tmp_path / "d.n5").children["s0"]["x"].attrs == {"units": "um"}
    text = (tmp_path / "d.xml").read_text()
    (tmp_path / "d.xml").write_text(text.replace("0.2 0.3 1.5", "0.2 b"))
    with pytest.warns(n5zarr.N5Warning, match="voxelSize in the XML: expected 3 numbers"):
        tree = n5zarr.open_bdv(tmp_path / "d.n5")
    assert "x" not in tree["s0"].coords


def test_a_dataset_at_the_root_has_no_levels(tmp_path: Path) -> None:
    """There is no group above it."""
    n5zarr.create_array(tmp_path / "c.n5", data=np.ones((7, 5), "u1"), chunks=(3, 2))
    with pytest.raises(n5zarr.N5Error, match="expected datasets that are levels of one image, got"):
        n5zarr.pyramid_levels(tmp_path / "c.n5")


def test_what_is_no_view_is_left_out_of_views(tmp_path: Path) -> None:
    """A dataset in the place of a setup, a group in that of a level, and time points without."""
    data = np.arange(7 * 5 * 3, dtype="u2").reshape(7, 5, 3)
    n5zarr.create_array(tmp_path / "c.n5", path="setup0/timepoint0/s0", data=data)
    n5zarr.create_array(tmp_path / "c.n5", path="setup1", data=data)
    zarr.open_group(N5Store(tmp_path / "c.n5"), path="setup2/timepoint0/s0", mode="w")
    zarr.open_group(N5Store(tmp_path / "c.n5"), path="setup0/timepoint1", mode="w")
    tree: Any = n5zarr.open_bdv(tmp_path / "c.n5")
    assert tree["s0/data"].shape == (1, 1, 7, 5, 3)
    np.testing.assert_array_equal(tree["s0/data"].isel(setup=0, timepoint=0), data)


def test_a_description_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    """xarray asks each engine whether it opens a file."""
    (tmp_path / "folder.xml").mkdir()
    for name in ("missing.xml", "folder.xml"):
        assert not N5BackendEntrypoint().guess_can_open(tmp_path / name)
