"""``engine="n5"`` shows axes and units as coordinates, and warns of nothing."""

from __future__ import annotations

import json
import math
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.xarray import lazy_arrays
from n5zarr.xarray.backend import N5BackendEntrypoint
from tests.contract.truth import METADATA, TRUTH, check_truth
from tests.memory import traced

JAVA = Path(__file__).parents[1] / "data" / "java"
SAMPLE = n5zarr.sample_path()


@pytest.mark.parametrize("truth", TRUTH, ids=lambda line: line["path"])
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_every_convention_gives_coordinates(truth: dict[str, Any], axis_order: Any) -> None:
    found = xr.open_dataset(METADATA, engine="n5", group=truth["path"], axis_order=axis_order)
    check_truth(found, truth, axis_order)


def test_a_pyramid_is_a_tree_and_its_group_says_so() -> None:
    tree = xr.open_datatree(SAMPLE, engine="n5")
    assert tree["em/s1/s1"].dims == ("z", "y", "x")
    assert sorted(tree["em"].children) == ["s0", "s1", "s2"]
    assert tree["labels/s0"].dtype == "uint64"
    with pytest.warns(n5zarr.N5Warning, match=r"xr\.open_datatree: s0, s1, s2"):
        assert len(xr.open_dataset(SAMPLE, engine="n5", group="em")) == 0
    groups = xr.open_groups(SAMPLE, engine="n5")
    assert sorted(groups) == ["/", "/em", "/em/s0", "/em/s1", "/em/s2", "/labels"]


def test_datasets_that_agree_are_one_dataset(tmp_path: Path) -> None:
    for name in ("image", "labels"):
        n5zarr.create_array(
            tmp_path / "c.n5" / "g" / name, shape=(3, 5), dtype="u2", axes="yx", units=["nm", "nm"],
            resolution=[4, 8],
        )[:] = 7  # fmt: skip
    dataset = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="g")
    assert list(dataset.data_vars) == ["image", "labels"]
    assert dataset["x"].values.tolist() == [0, 8, 16, 24, 32]
    assert dataset["x"].attrs == {"units": "nm"}
    assert "units" not in dataset["image"].attrs
    dropped = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="g", drop_variables="labels")
    assert list(dropped.data_vars) == ["image"]


def test_a_dataset_that_xarray_wrote_is_read_back(tmp_path: Path) -> None:
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
    """A dataset of the engine is written as plain Zarr that is readable without n5zarr."""
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


def test_chunks_of_dask_that_end_inside_of_blocks_are_refused_as_for_zarr(tmp_path: Path) -> None:
    """No two tasks write one block, and both remedies that the pages name work."""
    blocks, steps = (16, 40, 50), {"z": 10, "y": 30, "x": 60}
    dataset = xr.open_dataset(SAMPLE, engine="n5", group="em/s0", chunks={})
    expected = dataset["s0"].values
    plain = xr.Dataset({"s0": (("z", "y", "x"), expected)})
    plain.to_zarr(tmp_path / "source.zarr", encoding={"s0": {"chunks": blocks}}, consolidated=False)
    from_zarr = xr.open_zarr(tmp_path / "source.zarr", consolidated=False)
    keys = ("chunks", "preferred_chunks")
    assert [dataset["s0"].encoding[key] for key in keys] == [
        from_zarr["s0"].encoding[key] for key in keys
    ]
    cropped = dataset.n5.crop(x=(100, None))
    assert cropped["s0"].chunks[2] == (37, 50, 28)
    for number, given in enumerate((dataset.chunk(steps), from_zarr.chunk(steps), cropped)):
        where = tmp_path / f"{number}.n5"
        with pytest.raises(ValueError, match="would overlap multiple Dask chunks"):
            given.to_zarr(N5Store(where), consolidated=False)
        given.to_zarr(N5Store(where), mode="w", align_chunks=True, consolidated=False)
        written = tensorstore_array(where / "s0")
        assert written.chunk_layout.read_chunk.shape == blocks[::-1]
        last = expected[..., -given.sizes["x"] :]
        np.testing.assert_array_equal(written.read().result().T, last)
        n5zarr.to_n5(given, tmp_path / f"ours{number}.n5")
        ours = tensorstore_array(tmp_path / f"ours{number}.n5" / "s0")
        assert ours.chunk_layout.read_chunk.shape == blocks[::-1]
        np.testing.assert_array_equal(ours.read().result().T, last)
    dataset.drop_encoding().chunk(steps).to_zarr(N5Store(tmp_path / "new.n5"), consolidated=False)
    written = tensorstore_array(tmp_path / "new.n5" / "s0")
    assert written.chunk_layout.read_chunk.shape == (60, 30, 10)
    np.testing.assert_array_equal(written.read().result().T, expected)


def tensorstore_array(path: Path) -> Any:
    place: Any = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{path}/"}}
    return tensorstore.open(place).result()


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


@pytest.mark.parametrize("said", ["by the group", "by s0"])
def test_levels_with_their_own_resolution(tmp_path: Path, said: str) -> None:
    """Levels of fibsem-tools are placed by the `pixelResolution` that each level states."""
    resolutions = {"s0": [4.0, 5.0, 40.0], "s1": [8.0, 10.0, 80.0]}
    for name, shape in (("s0", (3, 5, 7)), ("s1", (2, 3, 4))):
        resolution: Any = {"dimensions": resolutions[name], "unit": "nm"}
        n5zarr.create_array(
            tmp_path / "c.n5" / "em" / name, shape=shape, dtype="u1",
            attributes={"pixelResolution": resolution},
        )  # fmt: skip
    if said == "by the group":
        group: Any = {"scales": [[1, 1, 1], [2, 2, 2]]}
        group |= {"pixelResolution": {"unit": "nm", "dimensions": [4, 5, 40]}}
        (tmp_path / "c.n5" / "em" / "attributes.json").write_text(json.dumps(group))
    tree: Any = xr.open_datatree(tmp_path / "c.n5", engine="n5")["em/s1"]
    for found in (tree, xr.open_dataset(tmp_path / "c.n5" / "em" / "s1", engine="n5")):
        assert found["z"].values.tolist() == [20, 100]
        assert found["x"].values.tolist() == [2, 10, 18, 26]
        assert found["y"].attrs == {"units": "nm"}


def test_a_level_has_its_positions_where_no_name_tells_the_container(tmp_path: Path) -> None:
    """A level gets its positions from the group above without a name that ends with `.n5`."""
    group = tmp_path / "LADAF" / "25.08um_bm05"
    (group / "s2").mkdir(parents=True)
    documents = JAVA.parent / "attributes"
    shutil.copy(documents / "06-human-organ-atlas-group.json", group / "attributes.json")
    shutil.copy(documents / "07-human-organ-atlas-array-s2.json", group / "s2" / "attributes.json")
    found = xr.open_dataset(group / "s2", engine="n5")
    assert found.sizes == {"z": 475, "y": 730, "x": 538}
    np.testing.assert_allclose(found["z"][:2], [1.5 * 25.08, 5.5 * 25.08])
    assert found["z"].attrs == {"units": "um"}
    assert list(found) == ["s2"]


def test_a_convention_can_be_forced() -> None:
    path = METADATA / "cosem" / "s1"
    by_n5viewer = xr.open_dataset(path, engine="n5", convention="n5viewer")
    # `pixelResolution` is that of each level: twice that of s0 on s1, and not full resolution
    assert by_n5viewer["x"].values[:2].tolist() == [1.5, 7.5]
    assert by_n5viewer.n5.convention == "n5viewer"
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
    with pytest.warns(n5zarr.N5Warning, match=r"axes in em/attributes\.json ignored"):
        found = xr.open_dataset(tmp_path / "c.n5" / "em" / "s1")
    assert found["x"].attrs == {"units": "nm"}
    (tmp_path / "c.n5" / "em" / "attributes.json").unlink()
    with pytest.warns(n5zarr.N5Warning, match="omitted") as warned:
        tree = xr.open_datatree(tmp_path / "c.n5", engine="n5")
    assert sorted(tree["em"].children) == ["s1", "s2"]
    assert len(warned) == 1


@pytest.mark.each_of(11)
@pytest.mark.parametrize("axis_order", ["C", "F"])
@pytest.mark.parametrize("truth", TRUTH, ids=lambda line: line["path"])
def test_xarray_selects_computes_and_writes_in_every_convention(
    truth: dict[str, Any], axis_order: Any, tmp_path: Path
) -> None:
    how: Any = {"group": truth["path"], "axis_order": axis_order}
    name = truth["path"].rpartition("/")[2]
    plain = zarr.open_array(N5Store(METADATA, axis_order=axis_order), path=truth["path"])
    raw = np.asarray(plain[...])
    dataset = xr.open_dataset(METADATA, engine="n5", **how)
    array = dataset[name]
    for axis, dim in enumerate(array.dims):
        if array[dim].dtype.kind != "f":
            continue
        first, second = array[dim].values[:2]
        near = array.sel({dim: second + 1e-3 * (second - first)}, method="nearest")
        np.testing.assert_array_equal(near, raw.take(1, axis))
        between = array.sel({dim: slice(first, second)})
        np.testing.assert_array_equal(between, raw.take([0, 1], axis))
    np.testing.assert_array_equal(array + array, raw + raw)
    dim = array.dims[0]
    parts = [array.isel({dim: slice(0, 1)}), array.isel({dim: slice(1, None)})]
    joined = xr.concat(parts, dim)
    np.testing.assert_array_equal(joined, raw)
    np.testing.assert_array_equal(joined[dim], array[dim])
    np.testing.assert_array_equal(dataset.to_dataarray()[0], raw)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset))[name], raw)
    turned = array.isel({dim: [1, 0], array.dims[-1]: slice(None, None, -2)})
    np.testing.assert_array_equal(turned, raw[[1, 0]][..., ::-2])
    chunked = xr.open_dataset(METADATA, engine="n5", chunks={}, **how)
    sizes = [min(pair) for pair in zip(plain.chunks, plain.shape, strict=True)]
    assert [each[0] for each in chunked[name].chunks or ()] == sizes
    np.testing.assert_array_equal(chunked[name].chunk({dim: 1}).mean(dim), raw.mean(0))
    dataset.to_zarr(tmp_path / "a.zarr", consolidated=False)
    found = xr.open_zarr(tmp_path / "a.zarr", consolidated=False)
    np.testing.assert_array_equal(found[name], raw)
    assert found[name].dtype == raw.dtype
    if array[dim].dtype.kind == "f":
        np.testing.assert_array_equal(found[dim], dataset[dim])
    # more dimensions than were opened
    parts[0].expand_dims("more").to_dataset().to_zarr(tmp_path / "b.zarr", consolidated=False)
    array.attrs = {k: v for k, v in array.attrs.items() if not isinstance(v, dict)}
    array.to_netcdf(tmp_path / "c.nc", engine="h5netcdf")  # which has no objects as attributes
    with xr.open_dataset(tmp_path / "c.nc", engine="h5netcdf") as written:
        np.testing.assert_array_equal(written[name], raw)
        assert written[name].dtype == raw.dtype
    assert dataset.load()[name].dtype == raw.dtype


@pytest.mark.parametrize("truth", TRUTH, ids=lambda line: line["path"])
def test_pint_reads_the_units(truth: dict[str, Any]) -> None:
    pint = pytest.importorskip("pint_xarray")
    dataset = xr.open_dataset(METADATA, engine="n5", group=truth["path"]).pint.quantify()
    units = truth["unit"] if isinstance(truth["unit"], list) else [truth["unit"]] * 3
    for dim, unit in zip(truth["axes"], units, strict=True):
        if unit:
            assert dataset[dim].pint.units == pint.unit_registry.Unit(unit)


GOOD = {"axes": ["z", "y", "x"], "units": ["nm"] * 3, "scale": [5, 4, 3], "translate": [0, 0, 0]}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"transform": {**GOOD, "scale": [5, 4]}}, r"scale: expected 3 numbers, got \[5, 4\]"),
    ({"transform": {**GOOD, "scale": ["5", "4", "3"]}}, "scale: expected 3 numbers"),
    ({"transform": {**GOOD, "translate": [0]}}, "translate: expected 3 numbers"),
    ({"transform": {**GOOD, "axes": ["z", "y"]}}, "axes: expected 3 strings"),
    ({"transform": {**GOOD, "axes": ["z", 1, "x"]}}, "axes: expected 3 strings"),
    ({"transform": {**GOOD, "units": "nm"}}, "units: expected 3 strings"),
    ({"pixelResolution": {"unit": "um", "dimensions": ["1", 1, 1]}}, "pixelResolution: expected"),
    ({"pixelResolution": [1, 2, 3, 4]}, "pixelResolution: expected at most 3 numbers"),
    ({"pixelResolution": [1, 2, 3], "downsamplingFactors": "2"}, "downsamplingFactors: expected"),
    ({"pixelResolution": [1, 2, 3], "affineTransform": [1, 2]}, "affineTransform: expected"),
    ({"pixelResolution": [1, 2, 3], "affineTransform": [1, 1, 0, 0] * 3}, "mix axes"),
    ({"axes": ["x", "y", "z"], "units": ["nm"] * 4, "resolution": [1, 1, 1]}, "units: expected"),
    ({"units": ["nm"] * 3, "resolution": [1] * 4}, "resolution: expected 3 numbers"),
    ({"units": ["nm"] * 3, "resolution": [1, 1, 2], "offset": []}, "offset: expected 3 numbers"),
    ({"resolution": ["a", 1, 1]}, "resolution: expected 3 numbers"),
    ({"spatialTransform": {"transform": {"type": "warp"}}}, "spatialTransform: expected"),
    ({"pixelWidth": "0.2", "pixelUnit": "um", "numSlices": 5}, "pixelWidth: expected a number"),
    ({"pixelWidth": 0.2, "pixelUnit": "um"}, "expected the sizes of the axes after x and y"),
]


@pytest.mark.parametrize(("attributes", "message"), BAD, ids=str)
def test_senseless_axes_give_one_warning_and_no_coordinates(
    tmp_path: Path, attributes: dict[str, Any], message: str
) -> None:
    write(tmp_path / "c.n5", attributes)
    with pytest.warns(n5zarr.N5Warning, match=message) as warned:
        found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="a")
    assert len(warned) == 1
    assert "c.n5: a: " in str(warned[0].message)
    assert not found.coords
    np.testing.assert_array_equal(found["a"], np.arange(105).reshape(3, 5, 7))
    with pytest.warns(n5zarr.N5Warning, match=message):
        shown = xr.open_zarr(N5Store(tmp_path / "c.n5", coords=True), group="a")
    assert not shown.coords


def write(container: Path, attributes: dict[str, Any]) -> None:
    n5zarr.create_array(container / "a", data=np.arange(105, dtype="u1").reshape(3, 5, 7))
    document = json.loads((container / "a" / "attributes.json").read_text())
    (container / "a" / "attributes.json").write_text(json.dumps({**document, **attributes}))


@pytest.mark.parametrize(
    ("change", "message", "kept"),
    [
        ({"scale": [0, 4, 3]}, "axis 'z': expected a finite scale other than 0", "yx"),
        ({"scale": [5, 4, 1e999]}, "axis 'x'.*got inf", "zy"),
        ({"units": ["nm", "furlong", "nm"]}, "n5zarr knows, got 'furlong'", "zyx"),
    ],
)
def test_one_bad_axis_does_not_spoil_the_others(
    tmp_path: Path, change: dict[str, Any], message: str, kept: str
) -> None:
    write(tmp_path / "c.n5", {"transform": GOOD | change})
    with pytest.warns(n5zarr.N5Warning, match=message) as warned:
        found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="a")
    assert len(warned) == 1
    assert found["a"].dims == ("z", "y", "x")
    assert set(found.coords) == set(kept)
    assert found["y"].values.tolist() == [0, 4, 8, 12, 16]


@pytest.mark.parametrize(
    ("names", "dims", "n_warnings"),
    [
        (["", "", ""], ("dim_0", "dim_1", "dim_2"), 0),
        (["x", "x", "y"], ("dim_0", "x", "y"), 1),
        (["a/b", "y", "x"], ("dim_0", "y", "x"), 0),
        (["a", "y", "x"], ("a", "y", "x"), 0),
    ],
)
@pytest.mark.parametrize("chunks", [None, {}])
def test_names_of_axes_that_xarray_cannot_have(
    tmp_path: Path, names: list[str], dims: tuple[str, ...], n_warnings: int, chunks: Any
) -> None:
    write(tmp_path / "c.n5", {"transform": GOOD | {"axes": names}})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="a", chunks=chunks)
    assert len(warned) == n_warnings
    (variable,) = found.data_vars.values()
    assert variable.dims == dims
    assert variable.name == ("a_" if "a" in dims else "a")
    assert [float(found[dim][1]) for dim in dims] == [5, 4, 3]
    np.testing.assert_array_equal(variable, np.arange(105).reshape(3, 5, 7))


def test_positions_beside_a_dataset_come_before_its_metadata(tmp_path: Path) -> None:
    write(tmp_path / "c.n5", {"transform": GOOD})
    n5zarr.create_array(tmp_path / "c.n5" / "x", data=2.0 ** np.arange(7), axes="x")
    for group in ("", "a"):
        found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group=group)
        assert list(found) == ["a"]
        assert found["x"].values.tolist() == [1, 2, 4, 8, 16, 32, 64]
        assert found["y"].values.tolist() == [0, 4, 8, 12, 16]


def test_metadata_that_a_slice_would_make_wrong_is_not_an_attribute() -> None:
    for path in ("cosem/s1", "n5viewer/c0/s1", "neuroglancer/single", "paintera-single", "imagej"):
        found = xr.open_dataset(METADATA, engine="n5", group=path)
        (variable,) = found.data_vars.values()
        assert not variable.attrs.keys() & {
            "transform", "pixelResolution", "downsamplingFactors", "resolution", "offset", "units",
            "axes", "pixelWidth", "pixelUnit", "xOrigin",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("dimensions", "blocks", "expected"),
    [
        ([2**62], [1], (2**54,)),
        ([2**12 + 5], [1], (2**5,)),
        ([10**10, 10**10], [1, 1], None),  # 10^20 blocks
        ([7 * 2**6, 5 * 2**6], [7, 5], (5, 7)),  # 2^12: as stored
    ],
)
def test_dask_gets_no_more_chunks_than_it_can_hold(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dimensions: list[int],
    blocks: list[int],
    expected: Any,
) -> None:
    assert lazy_arrays._MANY <= 2**24  # of which dask holds all
    monkeypatch.setattr(lazy_arrays, "_MANY", 2**12)
    monkeypatch.setattr(lazy_arrays, "_FEWER", 2**8)
    dataset = tmp_path / "c.n5" / "a"
    dataset.mkdir(parents=True)
    document = {"dimensions": dimensions, "blockSize": blocks, "dataType": "uint8"}
    (dataset / "attributes.json").write_text(
        json.dumps(document | {"compression": {"type": "raw"}})
    )
    opened = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="a", chunks={})["a"]
    chunks = opened.chunks or ()
    sizes = tuple(each[0] for each in chunks)
    assert math.prod(map(len, chunks)) <= 2**12
    assert all(size % block == 0 for size, block in zip(sizes, blocks[::-1], strict=True))
    assert expected is None or sizes == expected
    if len(blocks) == 1:
        assert not opened[:3].values.any()


def test_axes_too_long_for_memory_get_no_coordinates(tmp_path: Path) -> None:
    n5zarr.create_array(
        tmp_path / "c.n5" / "a", shape=(10**9,) * 3, chunks=(64,) * 3, dtype="u1", axes="zyx",
        units=["nm"] * 3, resolution=[4, 4, 4],
    )  # fmt: skip

    def use() -> str:
        with pytest.warns(n5zarr.N5Warning, match="'[zyx]' gets no coordinate") as warned:
            found = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="a")
        assert len(warned) == 3
        assert not found.coords
        part = found.isel(x=slice(10**8, 10**8 + 101), y=slice(11), z=slice(11))
        placed = n5zarr.geometry(tmp_path / "c.n5", "a")
        elements = np.arange(10**8, 10**8 + 101)
        part = part.assign_coords(x=placed.scale[2] * elements + placed.translation[2]).load()
        assert part.sizes == {"z": 11, "y": 11, "x": 101}
        assert part.n5.voxel_size == {"x": 4}
        return repr(found) + found._repr_html_()

    use()  # and whatever is imported meanwhile is
    with traced() as memory:
        use()
    assert memory.peak < 5e6
