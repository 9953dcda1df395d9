"""Viewers read the attributes of ``to_n5``, ``create_array`` and ``set_geometry`` as meant."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import xarray as xr
import zarr

import n5zarr
from n5zarr.conventions.describe import WRITTEN
from tests.contract.viewers import (
    NeuroglancerError,
    Seen,
    bigdataviewer,
    n5_universe,
    n5_universe_dataset,
    neuroglancer,
)

JAVA = Path(__file__).parents[1] / "data" / "java"
CONVENTIONS = ["auto", *WRITTEN]
# x, y, z; half an element of s0 further with each doubling
SCALE, PLACE, FACTORS = (4.0, 8.0, 40.0), (100.5, -200.0, 3000.0), [(1, 1, 1), (2, 2, 1), (4, 4, 2)]
SHAPES = [(11, 13, 19), (11, 7, 10), (6, 4, 5)]  # z, y, x
UNITS = {"nm": ("nanometer", 1e-9), "micrometer": ("micrometer", 1e-6)}
SYMBOLS = {"nm": "nm", "micrometer": "um"}


def expected(by: tuple[int, ...], unit: str) -> Seen:
    place = (p + s * (f - 1) / 2 for p, s, f in zip(PLACE, SCALE, by, strict=True))
    return Seen(tuple(s * f for s, f in zip(SCALE, by, strict=True)), tuple(place), unit)


def pyramid(unit: str) -> xr.DataTree:
    levels = {}
    for k, (by, shape) in enumerate(zip(FACTORS, SHAPES, strict=True)):
        seen = expected(by, unit)
        coords = {
            dim: (dim, s * np.arange(n) + t, {"units": unit})
            for dim, n, s, t in zip(
                "zyx", shape, seen.scale[::-1], seen.translation[::-1], strict=True
            )
        }
        values = np.arange(np.prod(shape), dtype="u2").reshape(shape)
        array = xr.DataArray(values, dims=tuple("zyx"), coords=coords)
        levels[f"/em/s{k}"] = array.to_dataset(name=f"s{k}")
    return xr.DataTree.from_dict(levels)


def arrays(root: Path, unit: str) -> None:
    for k, (by, shape) in enumerate(zip(FACTORS, SHAPES, strict=True)):
        seen = expected(by, unit)
        n5zarr.create_array(
            root, path=f"em/s{k}", shape=shape, dtype="u2", axes="zyx", units=[unit] * 3,
            resolution=seen.scale[::-1], offset=seen.translation[::-1],
        )  # fmt: skip


@pytest.fixture(params=[*CONVENTIONS, "create_array", "set_geometry"], scope="module")
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=UNITS, scope="module")
def unit(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, how: Any, unit: str) -> Path:
    where = tmp_path_factory.mktemp("viewers") / "c.n5"
    if how == "create_array":
        arrays(where, unit)
    elif how == "set_geometry":
        for k, shape in enumerate(SHAPES):
            n5zarr.create_array(where, path=f"em/s{k}", shape=shape, dtype="u2")
        options: Any = {"scale": SCALE[::-1], "translation": PLACE[::-1]}
        n5zarr.set_geometry(where, "em", names="zyx", units=[unit] * 3, **options)
    else:
        n5zarr.to_n5(pyramid(unit), where, convention=how)
    return where


def test_n5_universe_reads_as_its_parsers_did() -> None:
    """The rules of n5-universe in these tests agree with the output of the real parsers."""
    lines = (JAVA / "metadata.expected.jsonl").read_text().splitlines()
    said = {line["path"].strip("/"): line for line in map(json.loads, lines)}
    checked = 0
    for path, line in said.items():
        if path.startswith("ngff") or "SpatialDataset" in line["class"] or "children" in line:
            continue
        seen = n5_universe_dataset(JAVA / "metadata.n5" / path)
        rows = line["spatialTransform3d"]
        assert seen is not None, path
        assert seen.scale[:3] == tuple(rows[i][i] for i in range(3)), path
        assert seen.translation[:3] == tuple(row[3] for row in rows), path
        assert seen.unit == line["unit"], path
        checked += 1
    assert checked > 15
    for name in ("ngff-0.4-n5order", "ngff-0.4-corder", "ngff-0.5-n5order"):
        levels = n5_universe(JAVA / "metadata.n5" / name)
        for level, seen in levels.items():
            line = said[f"{name}/{level}"]
            assert seen.scale == tuple(line["spatialTransform"][i][i] for i in range(3))
            assert seen.translation == tuple(row[3] for row in line["spatialTransform"])
            assert seen.unit == line["unit"]


@pytest.mark.each_of(3)
def test_n5_universe_finds_all_levels_in_place(root: Path, how: str, unit: str) -> None:
    # the names that NGFF and, for Neuroglancer, `pixelResolution` need
    spelled = {"ngff": UNITS[unit][0], "n5viewer": SYMBOLS[unit]}.get(how, unit)
    levels = n5_universe(root / "em")
    assert sorted(levels) == ["s0", "s1", "s2"]
    for k, by in enumerate(FACTORS):
        wanted = expected(by, spelled)
        assert levels[f"s{k}"] == wanted
        alone = n5_universe_dataset(root / "em" / f"s{k}")
        assert alone == replace(wanted, unit=SYMBOLS[unit] if how == "n5viewer" else unit)


@pytest.mark.each_of(3)
def test_n5_viewer_finds_all_levels_in_place(root: Path, how: str, unit: str) -> None:
    levels = n5_universe(root / "em", is_viewer=True)
    for k, by in enumerate(FACTORS):
        seen, wanted = levels[f"s{k}"], expected(by, unit)
        if how == "ngff":  # it takes lists in C order only, n5-universe those in N5 order
            seen = Seen(seen.scale[::-1], seen.translation[::-1], seen.unit)
        assert (seen.scale, seen.translation) == (wanted.scale, wanted.translation)


@pytest.mark.each_of(3)
def test_neuroglancer_opens_the_pyramid_from_its_group(root: Path, unit: str) -> None:
    space = neuroglancer(root, root / "em")
    size = UNITS[unit][1]
    assert (space.names, space.units) == (["x", "y", "z"], ["m"] * 3)
    assert [tuple(by) for by in space.factors] == FACTORS
    for k, by in enumerate(FACTORS):
        seen, wanted = space.level(k, unit, size), expected(by, unit)
        np.testing.assert_allclose(seen.scale, wanted.scale, rtol=1e-12)
        # it knows no offset: levels lie to each other as they do elsewhere
        relative = np.subtract(wanted.translation, PLACE)
        np.testing.assert_allclose(seen.translation, relative, rtol=1e-12)
        alone = neuroglancer(root, root / "em" / f"s{k}")
        voxel = np.multiply(alone.scales, alone.factors[0]) / size
        np.testing.assert_allclose(voxel, wanted.scale, rtol=1e-12)


@pytest.mark.each_of(3)
def test_tensorstore_finds_scale_and_unit(root: Path, how: str, unit: str) -> None:
    for k, by in enumerate(FACTORS):
        kvstore = {"driver": "file", "path": str(root / "em" / f"s{k}")}
        opened = tensorstore.open({"driver": "n5", "kvstore": kvstore}, read=True).result()
        assert opened.domain.labels == ("x", "y", "z")
        if how == "n5viewer":
            assert opened.dimension_units == (None,) * 3  # which it does not know
            continue
        # factors, which tensorstore leaves out, are n5-universe's
        own = how == "neuroglancer"
        scale = SCALE if own else expected(by, unit).scale
        assert opened.dimension_units == tuple(tensorstore.Unit(s, SYMBOLS[unit]) for s in scale)


# by its path, such a dataset is BigDataViewer's before it is Neuroglancer's or NGFF's
@pytest.mark.parametrize("convention", ["auto", "cosem", "n5viewer"])
def test_big_data_viewer_finds_the_levels_of_a_setup(tmp_path: Path, convention: Any) -> None:
    levels = {f"/setup3/timepoint0/s{k}": pyramid("um")[f"em/s{k}"] for k in range(3)}
    tree = xr.DataTree.from_dict({k: v.to_dataset() for k, v in levels.items()})
    n5zarr.to_n5(tree, tmp_path / "c.n5", convention=convention)
    data_type, factors = bigdataviewer(tmp_path / "c.n5", 3)
    assert data_type == "uint16"
    assert [tuple(by) for by in factors] == FACTORS


@pytest.mark.each_of(2)
@pytest.mark.parametrize("unit", ["pixel", "angstrom", "inch", "Kelvin", None])
def test_neuroglancer_is_given_units_that_it_knows(tmp_path: Path, unit: Any) -> None:
    n5zarr.to_n5(pyramid(unit or "nm").map_over_datasets(_renamed, unit), tmp_path / "c.n5")
    if unit == "Kelvin":  # of which nothing is known: it stays as it was written
        with pytest.raises(NeuroglancerError, match="Unsupported unit"):
            neuroglancer(tmp_path / "c.n5", tmp_path / "c.n5" / "em")
        return
    space = neuroglancer(tmp_path / "c.n5", tmp_path / "c.n5" / "em")
    size = {"angstrom": 1e-10, "inch": 0.0254}.get(unit, 1.0)
    np.testing.assert_allclose(space.scales, np.multiply(SCALE, size), rtol=1e-12)
    own = json.loads((tmp_path / "c.n5" / "em" / "s1" / "attributes.json").read_text())
    level = pyramid("nm")["em/s1"].to_dataset()
    begin = [float(level[dim][0]) * size for dim in "xyz"]
    np.testing.assert_allclose(own["offset"], begin, rtol=1e-12)
    found = xr.open_datatree(tmp_path / "c.n5", engine="n5")
    assert found["em/s1/x"].attrs.get("units") == unit


def _renamed(ds: xr.Dataset, unit: str | None) -> xr.Dataset:
    if unit is None:
        return ds.assign_coords({dim: (dim, ds[dim].values) for dim in ds.dims})
    return ds


@pytest.mark.parametrize("first", WRITTEN)
def test_a_level_added_later_follows_those_beside_it(tmp_path: Path, first: Any) -> None:
    tree, where = pyramid("um"), tmp_path / "c.n5"
    for k in range(3):
        how: Any = {"convention": first} if k == 0 else {}
        n5zarr.to_n5(tree[f"em/s{k}"].to_dataset(), where, group=f"em/s{k}", **how)
        assert len(neuroglancer(where, where / "em").factors) == k + 1
    assert [level.convention for level in n5zarr.geometry(where, "em").levels] == [first] * 3
    assert sorted(n5_universe(where / "em")) == ["s0", "s1", "s2"]
    xr.testing.assert_identical(xr.open_datatree(where, engine="n5")["em"].load(), tree["em"])


def test_a_group_that_says_something_else_stays_as_it_is(tmp_path: Path) -> None:
    arrays(tmp_path / "a.n5", "nm")
    group = n5zarr.open_group(tmp_path / "a.n5" / "em", mode="r+")
    group.attrs["resolution"] = [1, 2, 3]  # a part of what is written, changed
    group.attrs["scales"] = [[1, 1, 1], [3, 3, 3]]
    before = (tmp_path / "a.n5" / "em" / "attributes.json").read_bytes()
    n5zarr.set_geometry(tmp_path / "a.n5", "em/s1", units=["nm"] * 3)
    assert (tmp_path / "a.n5" / "em" / "attributes.json").read_bytes() == before


def test_a_dataset_beside_the_levels_gets_no_positions_from_them(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="em/mask", shape=(3, 5, 7), dtype="u1")
    arrays(tmp_path / "c.n5", "nm")
    assert n5zarr.geometry(tmp_path / "c.n5", "em/mask").convention is None
    with pytest.raises(NeuroglancerError):
        neuroglancer(tmp_path / "c.n5", tmp_path / "c.n5" / "em")


def test_levels_keep_the_zarr_format_of_their_group(tmp_path: Path) -> None:
    store = n5zarr.N5Store(tmp_path / "c.n5")
    zarr.create_group(store, path="em", zarr_format=2)
    arrays(tmp_path / "c.n5", "nm")
    assert zarr.open_group(n5zarr.N5Store(tmp_path / "c.n5"), path="em").metadata.zarr_format == 2
    assert len(neuroglancer(tmp_path / "c.n5", tmp_path / "c.n5" / "em").factors) == 3


def test_positions_that_are_integers_are_metadata_of_a_level(tmp_path: Path) -> None:
    for k in range(2):
        coords = {"x": ("x", 4 * 2**k * np.arange(7) + 3, {"units": "nm"})}
        level = xr.DataArray(np.ones(7, "u1"), coords=coords, dims="x", name=f"s{k}")
        n5zarr.to_n5(level, tmp_path / "c.n5", group=f"em/s{k}")
        found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group=f"em/s{k}")
        xr.testing.assert_identical(found[f"s{k}"].load(), level)
    assert [by for (by,) in neuroglancer(tmp_path / "c.n5", tmp_path / "c.n5" / "em").factors] == [
        1, 2,
    ]  # fmt: skip


def test_a_level_that_viewers_will_not_find_is_told(tmp_path: Path) -> None:
    level = xr.DataArray(np.ones(3, "u1"), coords={"x": [1.0, 2.0, 4.0]}, dims="x", name="s0")
    with pytest.warns(
        n5zarr.N5Warning, match=r"em/s0: written as a group .* em/s0/s0, .* x to the last"
    ):
        n5zarr.to_n5(level, tmp_path / "c.n5", group="em/s0")
    found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="em/s0")
    xr.testing.assert_identical(found["s0"].load(), level)


# ------------------------------------------------------------- what is there, and what comes later


def group_of(root: Path, path: str = "em") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / path / "attributes.json").read_text())
    return found


def test_a_dataset_beside_a_pyramid_gets_no_positions_from_it(tmp_path: Path) -> None:
    where = tmp_path / "c.n5"
    n5zarr.to_n5(pyramid("nm"), where)
    before = group_of(where)
    for name in ("mask", "s3"):
        n5zarr.create_array(where, path=f"em/{name}", shape=(3, 5, 7), dtype="u1")
        assert n5zarr.geometry(where, f"em/{name}").convention is None
    bare = xr.DataArray(np.ones((3, 5, 7), "u1"), dims=tuple("zyx"), name="other")
    n5zarr.to_n5(bare, where, group="em/other")
    assert not xr.open_dataset(where, engine="n5", group="em/other").coords
    assert group_of(where) == before
    assert len(neuroglancer(where, where / "em").factors) == 3


def test_a_group_with_anything_else_in_it_is_left_alone(tmp_path: Path) -> None:
    where = tmp_path / "c.n5"
    n5zarr.create_array(where, path="em/labels/raw", shape=(3, 5, 7), dtype="u1")
    arrays(where, "nm")
    assert "resolution" not in group_of(where)


def test_attributes_that_no_longer_hold_are_removed_from_the_group(tmp_path: Path) -> None:
    for change in ("unit", "place"):
        where = tmp_path / f"{change}.n5"
        n5zarr.to_n5(pyramid("nm"), where)
        if change == "unit":
            n5zarr.set_geometry(where, "em/s0", units=["um"] * 3)
        else:
            uneven = pyramid("nm")["em/s0"].to_dataset().assign_coords(x=np.arange(19.0) ** 2)
            with pytest.warns(n5zarr.N5Warning, match="em/s0: written as a group"):
                n5zarr.to_n5(uneven, where, group="em/s0", mode="w")
        assert not {"axes", "units", "resolution", "downsamplingFactors"} & group_of(where).keys()
    for k in range(1, 3):
        n5zarr.set_geometry(tmp_path / "unit.n5", f"em/s{k}", units=["um"] * 3)
    space = neuroglancer(tmp_path / "unit.n5", tmp_path / "unit.n5" / "em")
    np.testing.assert_allclose(space.scales, np.multiply(SCALE, 1e-6))


def test_a_setup_of_big_data_viewer_is_only_continued(tmp_path: Path) -> None:
    theirs = {"downsamplingFactors": [[1, 1, 1], [2, 2, 1], [4, 4, 2]], "dataType": "uint16"}
    setup = tmp_path / "c.n5" / "setup0"
    setup.mkdir(parents=True)
    (setup / "attributes.json").write_text(json.dumps(theirs))
    n5zarr.create_array(
        tmp_path / "c.n5", path="setup0/timepoint1/s0", shape=(8, 12, 16), dtype="f4",
        axes="zyx", units=["um"] * 3, resolution=[40, 8, 4],
    )  # fmt: skip
    assert group_of(tmp_path / "c.n5", "setup0") == theirs
    tree = xr.DataTree.from_dict(
        {f"/setup1/timepoint0/s{k}": pyramid("um")[f"em/s{k}"].to_dataset() for k in range(3)}
    )
    n5zarr.to_n5(tree, tmp_path / "d.n5")
    xr.testing.assert_identical(xr.open_datatree(tmp_path / "d.n5", engine="n5").load(), tree)


def test_integers_that_floats_cannot_hold_stay_integers(tmp_path: Path) -> None:
    times = 1700000000123456789 + 10**9 * np.arange(4)
    level = xr.DataArray(
        np.zeros((4, 3), "u1"), dims=("t", "x"), coords={"t": ("t", times, {"units": "m"})}
    )
    n5zarr.to_n5(level, tmp_path / "c.n5", group="raw")
    found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="raw")
    assert found["t"].values.tolist() == times.tolist()


@pytest.mark.each_of(4)
@pytest.mark.parametrize("convention", ["neuroglancer", "ngff"])
@pytest.mark.parametrize("unit", ["inch", "angstrom", "pixel"])
def test_a_level_alone_has_a_unit_that_fits_its_resolution(
    tmp_path: Path, convention: Any, unit: str
) -> None:
    n5zarr.to_n5(pyramid(unit), tmp_path / "c.n5", convention=convention)
    seen = n5_universe_dataset(tmp_path / "c.n5" / "em" / "s1")
    assert seen is not None
    # without one that Neuroglancer knows, the resolution has none for n5-universe, either
    sizes = {"inch": 0.0254, "angstrom": 1e-10} if convention == "ngff" else {}
    assert seen.unit == ("m" if unit in sizes else "pixel")
    given = np.divide(seen.scale, sizes.get(unit, 1))
    np.testing.assert_allclose(given, expected(FACTORS[1], unit).scale, rtol=1e-12)
    found = xr.open_datatree(tmp_path / "c.n5", engine="n5")
    xr.testing.assert_identical(found.load(), pyramid(unit))


def test_levels_join_the_image_that_lists_the_others(tmp_path: Path) -> None:
    tree = pyramid("um")
    for name, version in (("old", "0.4"), ("new", "0.5")):
        where = tmp_path / f"{name}.n5"
        for k in range(2):
            n5zarr.to_n5(tree[f"em/s{k}"].to_dataset(), where, group=f"em/s{k}", convention="ngff")
        document = group_of(where)
        (image,) = document.pop("multiscales")
        image["name"] = "/em"  # as n5-universe names it
        if version == "0.5":
            image.pop("version")
            document["ome"] = {"version": "0.5", "multiscales": [image]}
        else:
            document["multiscales"] = [image]
        (where / "em" / "attributes.json").write_text(json.dumps(document))
        n5zarr.to_n5(tree["em/s2"].to_dataset(), where, group="em/s2")
        found = group_of(where)
        (image,) = found.get("ome", found)["multiscales"]
        assert [level["path"] for level in image["datasets"]] == ["s0", "s1", "s2"]
        assert sorted(n5_universe(where / "em")) == ["s0", "s1", "s2"]
        for k in range(3):
            level = xr.open_dataset(where, engine="n5", group=f"em/s{k}").load()
            xr.testing.assert_identical(level, tree[f"em/s{k}"].to_dataset())


def test_a_list_of_factors_of_another_program_is_continued(tmp_path: Path) -> None:
    where = tmp_path / "c.n5"
    resolution = {"unit": "nm", "dimensions": list(SCALE)}
    (where / "em").mkdir(parents=True)
    document = {"pixelResolution": resolution, "scales": [[1, 1, 1], [2, 2, 1]]}
    (where / "em" / "attributes.json").write_text(json.dumps(document))
    for k in range(2):
        n5zarr.create_array(where, path=f"em/s{k}", shape=SHAPES[k], dtype="u2", axes="zyx")
    level = expected(FACTORS[2], "nm")
    n5zarr.create_array(
        where, path="em/s2", shape=SHAPES[2], dtype="u2", axes="zyx", units=["nm"] * 3,
        resolution=level.scale[::-1], offset=np.subtract(level.translation, PLACE)[::-1].tolist(),
    )  # fmt: skip
    assert group_of(where)["scales"] == [[1, 1, 1], [2, 2, 1], [4, 4, 2]]
    assert len(neuroglancer(where, where / "em").factors) == 3


def test_levels_made_at_the_same_time_are_all_listed(tmp_path: Path) -> None:
    def make(k: int) -> None:
        seen = expected(FACTORS[k], "nm")
        n5zarr.create_array(
            tmp_path / f"{attempt}.n5", path=f"em/s{k}", shape=SHAPES[k], dtype="u2", axes="zyx",
            units=["nm"] * 3, resolution=seen.scale[::-1], offset=seen.translation[::-1],
        )  # fmt: skip

    for attempt in range(8):
        make(0)
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(make, (1, 2)))
        (image,) = group_of(tmp_path / f"{attempt}.n5")["multiscales"]
        assert [level["path"] for level in image["datasets"]] == ["s0", "s1", "s2"]
        where = tmp_path / f"{attempt}.n5"
        assert len(neuroglancer(where, where / "em").factors) == 3


@pytest.mark.parametrize(
    "wrong", [{"units": [1, 2, 3]}, {"resolution": [1, 2, 0]}, {"offset": [1, 2, float("nan")]}]
)
def test_no_dataset_is_made_of_values_that_no_axis_has(tmp_path: Path, wrong: Any) -> None:
    (name,) = wrong
    with pytest.raises(n5zarr.N5Error, match=f"{name}: expected a .* for each axis"):
        n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(2, 3, 5), dtype="u1", **wrong)
    assert not (tmp_path / "c.n5").exists()
