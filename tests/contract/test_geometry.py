"""``geometry`` and ``set_geometry`` read and write axes of arrays without xarray."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.conventions.describe import WRITTEN
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from tests.contract.stored import contents


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else tmp_path / "c.n5"


def test_the_geometry_of_an_array(place: Any) -> None:
    array = n5zarr.create_array(
        place, path="em/s0", shape=(5, 7, 11), dtype="u1", axes="zyx", units=["um", "nm", "nm"],
        resolution=[40, 8, 4], offset=[400, 80, 0],
    )  # fmt: skip
    found = n5zarr.geometry(array)
    assert (found.path, found.shape, found.names) == ("em/s0", (5, 7, 11), ("z", "y", "x"))
    assert found.units == ("um", "nm", "nm")
    assert (found.scale, found.translation) == ((40.0, 8.0, 4.0), (400.0, 80.0, 0.0))
    assert n5zarr.geometry(place, "em/s0") == found
    assert n5zarr.geometry(zarr.open_group(N5Store(place), path="em"), "s0") == found
    swapped = n5zarr.geometry(place, "em/s0", axis_order="F")
    assert (swapped.shape, swapped.names) == ((11, 7, 5), ("x", "y", "z"))
    assert (swapped.scale, swapped.translation) == ((4.0, 8.0, 40.0), (0.0, 80.0, 400.0))


def test_the_geometry_of_what_says_nothing(place: Any) -> None:
    n5zarr.create_array(place, path="x", shape=(5, 7), dtype="u1")
    found = n5zarr.geometry(place, "x")
    assert (found.names, found.units) == (("dim_0", "dim_1"), (None, None))
    assert (found.scale, found.translation, found.convention) == ((1, 1), (0, 0), None)


def test_the_geometry_of_levels_of_cosem(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    for k in (1, 0, 2):
        scale = [5.24 * 2**k, 4.0 * 2**k, 4.0 * 2**k]
        offset = [s / 2 - f / 2 for s, f in zip(scale, [5.24, 4, 4], strict=True)]
        transform: Any = {
            "axes": ["z", "y", "x"], "units": ["nm"] * 3, "scale": scale, "translate": offset,
        }  # fmt: skip
        n5zarr.create_array(
            root, path=f"em/s{k}", shape=(20 >> k, 28 >> k, 44 >> k), dtype="u1",
            attributes={"transform": transform},
        )  # fmt: skip
    found = n5zarr.geometry(root, "em")
    assert found.convention == "cosem"
    assert [level.path for level in found.levels] == ["em/s0", "em/s1", "em/s2"]
    scales = [level.scale for level in found.levels]
    assert scales == [(5.24, 4, 4), (10.48, 8, 8), (20.96, 16, 16)]
    assert found.levels[2].translation == pytest.approx((7.86, 6, 6))
    assert (found.path, found.scale) == ("em/s0", (5.24, 4, 4))


def test_a_node_without_geometry_is_refused(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a/x", shape=(5, 7), dtype="u1")
    with pytest.raises(FileNotFoundError):
        n5zarr.geometry(tmp_path / "c.n5", "nothing")
    with pytest.raises(N5UnrepresentableError, match="expected datasets that are levels"):
        n5zarr.geometry(tmp_path / "c.n5")
    plain = zarr.create_array(MemoryStore(), shape=(3,), dtype="u1")
    with pytest.raises(N5UnrepresentableError, match="expected an array or a group of an N5Store"):
        n5zarr.geometry(plain)


# in each convention, what a dataset of shape (z, y, x) has; N5 order but for COSEM
TRANSFORM = {
    "axes": ["z", "y", "x"], "scale": [40.0, 8.0, 4.0], "translate": [400.0, 80.0, 0.5],
    "units": ["nm"] * 3,
}  # fmt: skip
# what Neuroglancer and n5-universe's generic parser read beside those
BESIDE: dict[str, Any] = {
    "units": ["nm"] * 3, "resolution": [4.0, 8.0, 40.0], "offset": [0.5, 80.0, 400.0],
}  # fmt: skip
OF_DATASET: dict[str, dict[str, Any]] = {
    "cosem": {"transform": TRANSFORM, **BESIDE},
    "n5viewer": {
        "pixelResolution": {"unit": "nm", "dimensions": [4.0, 8.0, 40.0]},
        "downsamplingFactors": [1.0, 1.0, 1.0],
        "affineTransform": [[1, 0, 0, 0.5], [0, 1, 0, 80], [0, 0, 1, 400]],
    },
    "neuroglancer": {**BESIDE, "unit": "nm"},
    "ngff": {**BESIDE, "unit": "nm"},
}
# by which Neuroglancer opens the levels as a pyramid
LEVELS: dict[str, Any] = {
    "axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4.0, 8.0, 40.0],
    "downsamplingFactors": [[1, 1, 1]],
}  # fmt: skip
OF_GROUP: dict[str, dict[str, Any]] = {
    "cosem": {
        "multiscales": [{"name": "em", "datasets": [{"path": "s0", "transform": TRANSFORM}]}]
    },
    "ngff": {
        "multiscales": [{
            "name": "em", "version": "0.4",
            "axes": [{"name": n, "type": "space", "unit": "nanometer"} for n in "xyz"],
            "datasets": [{"path": "s0", "coordinateTransformations": [
                {"type": "scale", "scale": [4.0, 8.0, 40.0]},
                {"type": "translation", "translation": [0.5, 80.0, 400.0]},
            ]}],
        }]
    },
}  # fmt: skip
PLACED: dict[str, Any] = {
    "units": ["nm"] * 3, "scale": np.array([40, 8, 4]), "translation": [400, 80, 0.5],
}  # fmt: skip


def attributes_of(root: Path, path: str) -> dict[str, Any]:
    attributes: dict[str, Any] = json.loads((root / path / "attributes.json").read_text())
    dataset = ("dataType", "compression", "blockSize", "dimensions", "axes", "n5")
    keys = dataset if "dimensions" in attributes else ("n5",)
    return {key: value for key, value in attributes.items() if key not in keys}


def test_all_conventions_that_are_written_are_known_here() -> None:
    assert [*OF_DATASET] == [*WRITTEN]


@pytest.mark.each_of(3)
@pytest.mark.parametrize("before", [None, *OF_DATASET])
@pytest.mark.parametrize("convention", OF_DATASET)
def test_geometry_is_written_in_each_convention(
    tmp_path: Path, convention: str, before: str | None
) -> None:
    root = tmp_path / "c.n5"
    array = n5zarr.create_array(
        root, path="em/s0", shape=(5, 7, 11), dtype="u1", attributes={"mine": [1, 2.5]}
    )
    zarr.open_group(N5Store(root), path="em").attrs["theirs"] = 2
    if before is not None:
        n5zarr.set_geometry(root, "em/s0", names="zyx", scale=[9, 9, 9], convention=before)
    found = n5zarr.set_geometry(array, names="zyx", convention=convention, **PLACED)
    assert (found.names, found.units, found.convention) == (tuple("zyx"), ("nm",) * 3, convention)
    assert (found.scale, found.translation) == ((40, 8, 4), (400, 80, 0.5))
    assert found == n5zarr.geometry(root, "em/s0")
    own = OF_DATASET[convention]
    assert attributes_of(root, "em/s0") == {"mine": [1, 2.5], **own}
    assert attributes_of(root, "em") == {"theirs": 2, **LEVELS, **OF_GROUP.get(convention, {})}
    ds = xr.open_dataset(root, engine="n5", group="em/s0")
    assert [float(ds[name][1] - ds[name][0]) for name in "zyx"] == [40, 8, 4]
    assert [float(ds[name][0]) for name in "zyx"] == [400, 80, 0.5]


@pytest.mark.parametrize("by", ["array", "store"])
def test_geometry_is_written_through_a_store_of_zarr_v2(tmp_path: Path, by: str) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(5, 7), dtype="u1")
    store = N5Store(tmp_path / "c.n5", zarr_format=2)
    array = zarr.open_array(store, path="a", zarr_format=2, mode="r+")
    given: Any = (array,) if by == "array" else (store, "a")
    found = n5zarr.set_geometry(*given, names="yx", scale=[0.5, 0.25], units=["um", "um"])
    assert found == n5zarr.geometry(tmp_path / "c.n5", "a") == n5zarr.geometry(*given)
    assert (found.names, found.scale, found.units) == (("y", "x"), (0.5, 0.25), ("um", "um"))


def test_values_that_are_not_given_stay(place: Any) -> None:
    array = n5zarr.create_array(
        place, path="a", shape=(5, 7), dtype="u1", axes="yx", units=["um", "nm"], resolution=[2, 3]
    )
    found = n5zarr.set_geometry(array, translation=[10, 20])
    assert (found.names, found.units) == (("y", "x"), ("um", "nm"))
    assert (found.scale, found.translation) == ((2, 3), (10, 20))
    assert n5zarr.set_geometry(place, "a", units=[None, "mm"]).units == (None, "mm")
    swapped = n5zarr.set_geometry(place, "a", axis_order="F", scale=[5, 4])
    assert swapped.names == ("x", "y")
    assert n5zarr.geometry(array).scale == (4, 5)


@pytest.mark.parametrize("convention", OF_DATASET)
def test_all_levels_of_a_pyramid_follow(tmp_path: Path, convention: str) -> None:
    root = tmp_path / "c.n5"
    for level, shape in enumerate([(20, 28, 44), (20, 14, 22), (10, 7, 11)]):
        n5zarr.create_array(root, path=f"em/s{level}", shape=shape, dtype="u1", axes="zyx")
    n5zarr.set_geometry(root, "em", convention=convention, **PLACED)
    found = n5zarr.geometry(root, "em")
    assert found.convention == convention
    assert [level.scale for level in found.levels] == [(40, 8, 4), (40, 16, 8), (80, 32, 16)]
    starts = [level.translation for level in found.levels]
    assert starts == [(400, 80, 0.5), (400, 84, 2.5), (420, 92, 6.5)]
    # levels that have places keep them, in elements of the finest
    n5zarr.set_geometry(root, "em", scale=[20, 4, 2], translation=[0, 0, 0])
    found = n5zarr.geometry(root, "em")
    assert found.convention == convention
    assert [level.scale for level in found.levels] == [(20, 4, 2), (20, 8, 4), (40, 16, 8)]
    assert [level.translation for level in found.levels] == [(0, 0, 0), (0, 2, 1), (10, 6, 3)]


def test_a_refused_geometry_changes_no_document(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="em/s0", shape=(5, 7), dtype="u1", axes="yx")
    n5zarr.create_array(root, path="em/s1", shape=(3, 4), dtype="u1", axes="yx")
    before = contents(root)
    for options, message in [
        ({"units": ["um", "s"], "convention": "n5viewer"}, "expected attributes of n5viewer"),
        ({"scale": [1, 2, 3]}, "scale: expected 2 values, one for each axis, got 3"),
        ({"convention": "paintera"}, "convention: expected one of cosem"),
        ({"names": ["y", "y"]}, "names: expected another name"),
        ({"scale": [0, 1]}, "expected attributes of cosem"),
    ]:
        with pytest.raises(N5UnrepresentableError, match=message):
            n5zarr.set_geometry(root, "em", **options)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        n5zarr.set_geometry(root, "nothing", scale=[1, 2])
    assert contents(root) == before
    # render's attributes of the group take precedence
    group = zarr.open_group(N5Store(root), path="em")
    resolution: Any = {"unit": "um", "dimensions": [3.0, 3.0]}
    group.attrs.update(pixelResolution=resolution, scales=[[1, 1], [2, 2]], translate=[7, 5])
    before = contents(root)
    with pytest.raises(N5UnrepresentableError, match=r"got .* by render"):
        n5zarr.set_geometry(root, "em/s1", convention="ngff", scale=[1, 2], units=["nm", "nm"])
    assert contents(root) == before


def test_a_dataset_at_the_root_has_no_group(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, shape=(5, 7), dtype="u1")
    assert n5zarr.set_geometry(root, names="yx", scale=[2, 3]).scale == (2, 3)
    with pytest.raises(N5UnrepresentableError, match="expected attributes of ngff"):
        n5zarr.set_geometry(root, convention="ngff", scale=[2, 3])


@pytest.mark.parametrize(
    ("sizes", "factors"),
    [
        ([1000, 500, 250, 125, 62, 31, 15], [1, 2, 4, 8, 16, 32, 64]),
        ([101, 51, 26, 13, 7, 4], [1, 2, 4, 8, 16, 32]),
        ([5, 3, 2, 1, 1], [1, 2, 4, 8, 8]),
        ([100, 34, 12, 4], [1, 3, 9, 27]),
    ],
)
def test_factors_follow_from_the_shapes(
    tmp_path: Path, sizes: list[int], factors: list[int]
) -> None:
    root = tmp_path / "c.n5"
    for level, size in enumerate(sizes):
        n5zarr.create_array(root, path=f"g/s{level}", shape=(7, size), dtype="u1", chunks=(7, 64))
    found = n5zarr.set_geometry(root, "g", names="yx", scale=[3, 2])
    assert [level.scale for level in found.levels] == [(3, 2 * f) for f in factors]
    assert [level.translation for level in found.levels] == [(0, f - 1) for f in factors]


def test_levels_that_differ_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    how: Any = {"dtype": "u1", "axes": "x"}
    for path, shape, unit, size in [("s0", 16, "nm", 4), ("s1", 8, "um", 0.008)]:
        place: Any = {"units": [unit], "resolution": [size]}
        n5zarr.create_array(root, path=f"a/{path}", shape=(shape,), **how, **place)
    with pytest.raises(N5UnrepresentableError, match="a/s1: expected the units of the finest"):
        n5zarr.set_geometry(root, "a", translation=[0])
    for path, size, axes in [("s0", 16, "xy"), ("s1", 8, "yx")]:
        n5zarr.create_array(root, path=f"b/{path}", shape=(size, size), dtype="u1", axes=axes)
    with pytest.raises(N5UnrepresentableError, match="b/s1: expected the names of the finest"):
        n5zarr.set_geometry(root, "b", scale=[1, 1])
    # one level without positions: the shapes decide
    n5zarr.create_array(root, path="c/s0", shape=(16,), **how)
    n5zarr.create_array(root, path="c/s1", shape=(8,), units=["nm"], resolution=[80], **how)
    found = n5zarr.set_geometry(root, "c", scale=[40], units=["nm"])
    assert [level.scale for level in found.levels] == [(40,), (80,)]


@pytest.mark.parametrize("order", ["xyz", "zyx"])
def test_members_of_an_image_stay(tmp_path: Path, order: str) -> None:
    root = tmp_path / "c.n5"
    for level, shape in enumerate([(8,) * 3, (4,) * 3]):
        n5zarr.create_array(root, path=f"g/s{level}", shape=shape, dtype="u1", axes="zyx")
    n5zarr.set_geometry(root, "g", scale=[4, 2, 1], convention="ngff")
    group = zarr.open_group(N5Store(root), path="g")
    attributes: Any = group.attrs.asdict()
    image = attributes["multiscales"][0]
    image |= {"name": "mine", "type": "gaussian", "metadata": {"k": 1}, "version": "0.5"}
    image["axes"] = [{"name": n, "type": "space", "unit": "nm"} for n in order]
    for level in image["datasets"]:
        level["note"] = level["path"]
        for step in level["coordinateTransformations"]:
            kind = step["type"]
            step[kind] = step[kind] if order == "xyz" else step[kind][::-1]
    group.attrs["multiscales"] = [image, {"name": "other", "datasets": [{"path": "elsewhere"}]}]
    found = n5zarr.set_geometry(root, "g", units=["um"] * 3, scale=[8, 6, 5])
    assert [level.scale for level in found.levels] == [(8, 6, 5), (16, 12, 10)]
    assert found.units == ("um",) * 3
    attributes = zarr.open_group(N5Store(root), path="g").attrs.asdict()
    first, second = attributes["multiscales"]
    assert second == {"name": "other", "datasets": [{"path": "elsewhere"}]}
    kept = {k: v for k, v in first.items() if k not in ("axes", "datasets")}
    assert kept == {"name": "mine", "type": "gaussian", "metadata": {"k": 1}, "version": "0.5"}
    assert [axis["name"] for axis in first["axes"]] == list(order)
    assert [level["note"] for level in first["datasets"]] == ["s0", "s1"]
    # a transform of all levels cannot be changed for one
    shared: Any = [{"type": "scale", "scale": [2, 2, 2]}]
    group.attrs["multiscales"] = [{**image, "coordinateTransformations": shared}]
    with pytest.raises(N5UnrepresentableError, match="share a transform"):
        n5zarr.set_geometry(root, "g/s0", scale=[1, 1, 1])


def test_names_of_an_array_of_v2_are_those_of_xarray(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    xr.Dataset({"a": (("y", "x"), np.ones((2, 3)))}).to_zarr(N5Store(root), zarr_format=2)
    n5zarr.set_geometry(root, "a", names=["v", "u"], scale=[2, 3])
    assert xr.open_zarr(N5Store(root))["a"].dims == ("v", "u")
    assert xr.open_dataset(root, engine="n5")["a"].dims == ("v", "u")
    stored = json.loads((root / "a/attributes.json").read_text())
    assert stored["_ARRAY_DIMENSIONS"] == ["v", "u"]


def test_coordinates_beside_an_array_are_not_contradicted(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    given = xr.Dataset({"a": (("y", "x"), np.ones((2, 3)))}, {"x": [1, 5, 6]})
    given.to_zarr(N5Store(root), consolidated=False)
    with pytest.raises(N5UnrepresentableError, match="expected no coordinates beside it, got x"):
        n5zarr.set_geometry(root, "a", scale=[2, 3])


def test_an_image_named_like_an_axis_holds_no_positions(tmp_path: Path) -> None:
    how: Any = {"shape": (3, 5), "dtype": "u1", "axes": "yx", "resolution": [4, 2]}
    for name in ("a", "y"):
        n5zarr.create_array(tmp_path / "c.n5" / name, **how)
        found = n5zarr.geometry(tmp_path / "c.n5", name)
        assert (found.names, found.scale) == (("y", "x"), (4, 2))
    assert n5zarr.geometry(tmp_path / "c.n5", "a").scale == (4, 2)
    opened = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="a")
    assert opened.y.values.tolist() == [0, 4, 8]


def test_arguments_of_other_kinds_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="a", shape=(2, 3), dtype="u1")
    set_geometry: Any = n5zarr.set_geometry
    for options in ({"scale": 3}, {"scale": [None, 1]}, {"scale": "ab"}, {"names": 5}):
        with pytest.raises(N5UnrepresentableError, match=r"for each axis, got"):
            set_geometry(root, "a", **options)
    with pytest.raises(N5UnsupportedError, match="read-only"):
        n5zarr.set_geometry(N5Store(root, read_only=True), "a", scale=[1, 2])
