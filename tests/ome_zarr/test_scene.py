"""The scene of OME-Zarr 0.6 places its images: read, shown, converted and validated.

Expected: what the transforms say by the specification, applied by hand or by numpy.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5Warning
from n5zarr.images.find import find_images
from tests.command import CliRunner
from tests.contract import test_ome_06
from tests.contract.viewers import validate_ome
from tests.remote.servers import static

DATA = Path(__file__).parents[1] / "data" / "ome-0.6"
FULL, HALF = (1, 2, 0.5, 0.25), (1, 2, 1.25, 0.25 * 7 / 3)  # of the tiles that ome-zarr wrote
SHIFT = (0, 0, 0.375, 0.25 * (7 / 3 - 1) / 2)
BY = (1, 1, 2, 3)
# path of a level: scale, translation; by the transforms in tests/data/make_ome_0_6.py
PLACES: dict[str, dict[str, tuple[Any, Any]]] = {
    "ome-zarr": {
        "left/s0": (FULL, (0, 10, 20, 30)),
        "left/s1": (HALF, np.add(SHIFT, (0, 10, 20, 30))),
        "left/labels/cells/s0": (FULL[1:], (10, 20, 30)),
        "left/labels/cells/s1": (HALF[1:], np.add(SHIFT, (0, 10, 20, 30))[1:]),
        "row/middle/s0": (FULL, (0, 100, 0, 7)),
        "row/middle/s1": (HALF, np.add(SHIFT, (0, 100, 0, 7))),
        "right/s0": ((1, 2, 1, 0.75), (0, 0, -4, 0.5)),
        "right/s1": (np.multiply(HALF, BY), np.add(np.multiply(SHIFT, BY), (0, 0, -4, 0.5))),
    },
    "ngff-zarr": {
        "a/s0": ((0.5, 0.25), (10, 20)),
        "b/s0": ((0.5, 0.25), (1, 3 + 2)),
        "turned/s0": ((0.5, 0.25), (0, 0)),
    },
}  # fmt: skip
WRITERS = pytest.mark.parametrize("writer", PLACES)
AXES = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]


def check_places(
    path: Any, places: dict[str, tuple[Any, Any]], unit: str | None = "micrometer"
) -> None:
    for level, (scale, translation) in places.items():
        found = n5zarr.geometry(path, level)
        np.testing.assert_allclose(found.scale, scale, err_msg=level)
        np.testing.assert_allclose(found.translation, translation, err_msg=level)
        assert {*found.units[-2:]} == {unit}


def told(function: Any, *args: Any, **options: Any) -> list[str]:
    """Return the warnings of n5zarr during a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args, **options)
    return [str(each.message) for each in found if issubclass(each.category, N5Warning)]


# ------------------------------------------------------------------ scenes of other programs


@WRITERS
def test_a_scene_is_shown_in_place(writer: str) -> None:
    path = DATA / writer / "scene.zarr"
    omitted = "turned: its place in the scene (rotation) is omitted, as"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*turned: its place in the scene", N5Warning)
        check_places(path, PLACES[writer])
        assert n5zarr.validate(path, deep=True).findings == ()
        for level, (scale, at) in PLACES[writer].items():
            opened = xr.open_dataset(path, engine="n5", group=level)
            for axis, by, to in zip("zyx"[-2:], scale[-2:], at[-2:], strict=False):
                np.testing.assert_allclose(opened[axis][:2], [to, to + by])
    for command in ("tree", "validate"):
        done = CliRunner().invoke(app, [command, str(path)])
        assert done.exit_code == 0, done.output
    is_turned = writer == "ngff-zarr"
    assert [omitted in message for message in told(find_images, path)] == [True] * is_turned


@WRITERS
def test_a_scene_becomes_n5(tmp_path: Path, writer: str) -> None:
    path, out = DATA / writer / "scene.zarr", tmp_path / "out.n5"
    messages = told(n5zarr.convert, path, out, verify=True)
    assert len(messages) == (writer == "ngff-zarr")
    check_places(out, PLACES[writer])
    assert "scene" not in (out / "attributes.json").read_text()
    data: Any = zarr.open_array(path / "right/s0", mode="r") if writer == "ome-zarr" else None
    if data is not None:
        np.testing.assert_array_equal(n5zarr.open(out, path="right/s0")[...], data[...])  # type: ignore[index]


@pytest.mark.each_of(2)
@pytest.mark.parametrize("version", ["0.4", "0.5", "0.6"])
@WRITERS
def test_a_scene_becomes_a_collection(tmp_path: Path, writer: str, version: Any) -> None:
    path, out = DATA / writer / "scene.zarr", tmp_path / "out.zarr"
    messages = told(n5zarr.convert, path, out, ome=True, ome_version=version, verify=True)
    assert len(messages) == (writer == "ngff-zarr")
    check_places(out, PLACES[writer])
    if version == "0.6":
        test_ome_06.check(out)
    else:
        validate_ome(out)
    assert n5zarr.validate(out).findings == ()
    names = {"ome-zarr": ["left", "right", "row/middle"], "ngff-zarr": ["a", "b", "turned"]}
    ome: Any = zarr.open_group(out / "OME", mode="r").attrs.asdict()
    assert ome.get("ome", ome)["series"] == names[writer]
    assert "scene" not in (out / (".zattrs" if version == "0.4" else "zarr.json")).read_text()


def test_a_plate_of_0_6_is_read_and_written(tmp_path: Path) -> None:
    path = DATA / "ngff-zarr" / "plate.zarr"
    assert n5zarr.validate(path, deep=True).findings == ()
    n5zarr.convert(path, tmp_path / "out.zarr", ome=True, ome_version="0.6", verify=True)
    test_ome_06.check(tmp_path / "out.zarr")
    n5zarr.convert(tmp_path / "out.zarr", tmp_path / "out.n5")
    check_places(tmp_path / "out.n5", {"A/1/0/s0": ((0.5, 0.25), (0, 0))})


def test_a_server_that_does_not_list_shows_a_scene() -> None:
    with static(DATA / "ome-zarr", lists=False) as server:
        location = f"{server}/scene.zarr"
        check_places(location, PLACES["ome-zarr"])
        found = find_images(location)
    assert [image.path for image in found] == ["left", "right", "row/middle", "left/labels/cells"]


# ------------------------------------------------------------------------ transforms


def step(kind: str, start: str, end: str, **members: Any) -> dict[str, Any]:
    """Make a transform between systems, ``PATH:NAME`` or ``NAME``."""
    ends = {}
    for key, text in (("input", start), ("output", end)):
        path, _, name = text.rpartition(":")
        ends[key] = {"name": name} | ({"path": path} if path else {})
    return {"type": kind, **members, **ends}


def move(start: str, end: str, *to: float) -> dict[str, Any]:
    return step("translation", start, end, translation=[*map(float, to)])


def tile(
    path: Path, systems: Any = (), steps: Any = (), version: str = "0.6", **metadata: Any
) -> None:
    """Write an image of one level, 0.5 by 0.25, from 1, 2."""
    group = zarr.open_group(path, mode="w", zarr_format=3)
    group.create_array("s0", data=np.ones((5, 7), "u1"), dimension_names=["y", "x"])
    placed = [
        {"type": "scale", "scale": [0.5, 0.25]},
        {"type": "translation", "translation": [1.0, 2.0]},
    ]
    level: dict[str, Any] = {"path": "s0", "coordinateTransformations": placed}
    image: dict[str, Any] = {"axes": AXES, "datasets": [level]}
    if version >= "0.6":
        ends = {"input": {"path": "s0"}, "output": {"name": "physical"}}
        sequence = {"type": "sequence", "transformations": placed, **ends}
        level["coordinateTransformations"] = [sequence]
        own = [{"name": "physical", "axes": metadata.get("axes", AXES)}, *systems]
        image = {"coordinateSystems": own, "datasets": [level]}
        image |= {"coordinateTransformations": [*steps]} if steps else {}
    group.attrs["ome"] = {"version": version, "multiscales": [image]}


def scene(path: Path, steps: Any, systems: Any = ("world",), axes: Any = AXES) -> Path:
    group = zarr.open_group(path, mode="a", zarr_format=3)
    own = [{"name": name, "axes": axes} for name in systems]
    found = {"coordinateTransformations": [*steps]} | ({"coordinateSystems": own} if own else {})
    group.attrs["ome"] = {"version": "0.6", "scene": found}
    return path


def placed(path: Path, **expected: tuple[Any, ...]) -> list[str]:
    """Check y, x of the first element of tiles, shown and converted; return the warnings."""
    where = {f"{name}/s0": at for name, at in expected.items()}
    shutil.rmtree(path.parent / "out.n5", ignore_errors=True)
    messages = told(n5zarr.convert, path, path.parent / "out.n5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", N5Warning)
        for location in (path, path.parent / "out.n5"):
            for level, at in where.items():
                found = n5zarr.geometry(location, level)
                assert (found.translation, found.scale) == (at, (0.5, 0.25)), (location, level)
    return messages


def test_tiles_have_places_by_any_way(tmp_path: Path) -> None:
    """Chains, either direction, other forms of paths, several outputs, an affine that moves."""
    path = tmp_path / "in.zarr"
    for name in "abcdef":
        tile(path / name)
    affine = [[1.0, 0, 40], [0, 1, 50]]
    steps = [
        move("a:physical", "stage", 10, 20), move("world", "stage", -100, -200),
        move("b:physical", "a:physical", 1, 1), move("./c/:physical", "b:physical", 1, 1),
        move("d:physical", "world", 3, 4), move("d:physical", "atlas", 5, 6),
        step("affine", "e:physical", "world", affine=affine),
        step("identity", "f:physical", "d:physical"),
    ]  # fmt: skip
    scene(path, steps, ["world", "stage", "atlas"])
    assert placed(
        path, a=(111, 222), b=(112, 223), c=(113, 224), d=(4, 6), e=(41, 52), f=(4, 6)
    ) == []  # fmt: skip
    assert n5zarr.validate(path).findings == ()


def test_without_a_system_of_its_own_a_scene_is_in_that_of_an_image(tmp_path: Path) -> None:
    path = tmp_path / "in.zarr"
    tile(path / "volume")
    tile(path / "crop")
    scene(path, [move("crop:physical", "volume:physical", 7, 8)], systems=[])
    assert placed(path, volume=(1, 2), crop=(8, 10)) == []


def test_a_system_that_is_not_declared_has_the_axes_of_the_images_in_it(tmp_path: Path) -> None:
    path = tmp_path / "in.zarr"
    for name in "ab":
        tile(path / name)
    scene(path, [move("a:physical", "world", 7, 8), move("b:physical", "world", 3, 4)], systems=[])
    assert placed(path, a=(8, 10), b=(4, 6)) == []
    assert n5zarr.validate(path).findings != ()


def test_systems_of_images_are_ways_too(tmp_path: Path) -> None:
    """Transforms in elements, which the images relate to their own units."""
    path = tmp_path / "in.zarr"
    array = {"name": "array", "axes": [{"name": name, "type": "space"} for name in "yx"]}
    to_array = step("scale", "physical", "array", scale=[2.0, 4.0])
    for name in "ab":
        tile(path / name, [array], [to_array])
    scene(path, [move("b:physical", "world", 10, 20), move("a:array", "b:array", 2, 2)])
    assert placed(path, b=(11, 22), a=(12, 22.5)) == []


def test_units_are_those_of_the_scene(tmp_path: Path) -> None:
    path = tmp_path / "in.zarr"
    tile(path / "a")
    axes = [axis | {"unit": "millimeter"} for axis in AXES]
    scene(path, [step("scale", "a:physical", "world", scale=[0.001, 0.001])], axes=axes)
    check_places(path, {"a/s0": ((0.0005, 0.00025), (0.001, 0.002))}, "millimeter")
    for unitless, unit in (([1.0, 1.0], "micrometer"), ([2.0, 2.0], None)):
        axes = [{"name": name, "type": "space"} for name in "yx"]
        scene(path, [step("scale", "a:physical", "world", scale=unitless)], axes=axes)
        assert n5zarr.geometry(path, "a/s0").units == (unit, unit)


def test_nested_scenes_place_their_own_images(tmp_path: Path) -> None:
    path = tmp_path / "in.zarr"
    for name in ("day/a", "day/b", "c"):
        tile(path / name)
    scene(path, [move("c:physical", "world", 5, 5), move("day/a:physical", "world", 100, 100)])
    scene(path / "day", [move(f"{name}:physical", "world", 10, 20) for name in "ab"])
    assert placed(path, **{"c": (6, 7), "day/a": (11, 22), "day/b": (11, 22)}) == []
    n5zarr.convert(path / "day", tmp_path / "day.n5")
    assert n5zarr.geometry(tmp_path / "day.n5", "b/s0").translation == (11, 22)


BAD: dict[str, tuple[list[Any], str]] = {
    "rotation": ([step("rotation", "a:physical", "world", rotation=[[0, -1], [1, 0]])], "rotation"),
    "affine": ([step("affine", "a:physical", "world", affine=[[1, 1, 0], [0, 1, 0]])], "affine"),
    "mirrored": ([step("scale", "a:physical", "world", scale=[-1.0, 1.0])], "scale"),
    "of no size": ([step("scale", "a:physical", "world", scale=[0.0, 1.0])], "scale"),
    "three axes": ([move("a:physical", "world", 1, 2, 3)], "translation"),
    "in an array": ([step("affine", "a:physical", "world", path="affine")], "affine"),
    "axes": ([step("mapAxis", "a:physical", "world", mapAxis=[1, 0])], "mapAxis"),
    "sequence": ([step("sequence", "a:physical", "world", transformations=[{"type": "rotation"}])],
        "sequence"),
    "chain": ([move("a:physical", "stage", 1, 2), step("rotation", "stage", "world", rotation=[])],
        "translation"),
    "unknown system": ([move("a:none", "world", 1, 2)], "translation"),
}  # fmt: skip


def without_places(path: Path, case: str) -> None:
    """Write tiles two of which have no place, for the same reason."""
    steps, _ = BAD[case]
    for name in "abc":
        tile(path / name)
    others = [
        json.loads(json.dumps(each).replace('"path": "a"', '"path": "b"')) for each in steps[:1]
    ]
    scene(path, [*steps, *others, move("c:physical", "world", 5, 5)], ["world", "stage"])


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_place_is_told_once(tmp_path: Path, case: str) -> None:
    without_places(tmp_path / "in.zarr", case)
    (message,) = placed(tmp_path / "in.zarr", a=(1, 2), b=(1, 2), c=(6, 7))
    assert f"a and 1 other: its place in the scene ({BAD[case][1]}) is omitted" in message


@pytest.mark.parametrize("version", ["0.5", "0.6"])
def test_what_is_no_place_in_a_collection_is_told_once(tmp_path: Path, version: Any) -> None:
    without_places(tmp_path / "in.zarr", "rotation")
    out = tmp_path / "out.zarr"
    options: Any = {"ome": True, "ome_version": version}
    assert len(told(n5zarr.convert, tmp_path / "in.zarr", out, **options)) == 1
    assert "scene" not in (out / "zarr.json").read_text()


def test_axes_and_versions_that_differ_are_told(tmp_path: Path) -> None:
    path = tmp_path / "in.zarr"
    tile(path / "a", axes=[*reversed(AXES)])
    tile(path / "b", version="0.5")
    scene(path, [move("a:physical", "world", 1, 1), move("b:physical", "world", 1, 1)])
    (message,) = told(n5zarr.convert, path, tmp_path / "out.n5")
    assert "a and 1 other: its place in the scene (translation) is omitted" in message
    assert n5zarr.geometry(tmp_path / "out.n5", "b/s0").translation == (1, 2)


def test_a_plain_attribute_is_no_scene(tmp_path: Path) -> None:
    steps = {"coordinateTransformations": [move("a:physical", "world", 1, 1)]}
    group = zarr.open_group(tmp_path / "in.zarr", attributes={"scene": steps})
    group.create_array("a", data=np.ones((5, 7), "u1"))
    n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5")
    assert "scene" in (tmp_path / "out.n5/attributes.json").read_text()


def test_systems_that_are_not_there_are_found(tmp_path: Path) -> None:
    path = tmp_path / "in.zarr"
    tile(path / "a")
    steps = [
        move("a:none", "world", 1, 2), move("a:physical", "nowhere", 1, 2),
        move("gone:physical", "world", 1, 2), move("../in.zarr/a:physical", "world", 1, 2),
    ]  # fmt: skip
    scene(path, steps)
    found = {each.message for each in n5zarr.validate(path).findings if each.severity == "error"}
    assert found == {
        f"scene: expected a coordinate system of {where}, got {name!r}"
        for where, name in (
            ("a", "none"), ("the scene", "nowhere"), ("gone", "physical"),
            ("../in.zarr/a", "physical"),
        )
    } | {"expected a node at 'gone', which is listed, got none"}  # fmt: skip
    assert told(n5zarr.convert, path, tmp_path / "out.n5")
