"""Levels that state no scale are placed by the finest level: by factors, or by shapes.

n5-universe at a4e759a4: ``N5GenericSingleScaleMetadataParser`` for factors, and
``OmeNgffV03MetadataProcessor.inferRelativeResolution`` for shapes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from n5zarr.conventions.find import find_geometry, other_attributes, problems_of_level
from n5zarr.conventions.levels import first_listed, ratios
from n5zarr.conventions.model import Node

REAL = Path(__file__).parents[2] / "data" / "attributes"
S0 = (13, 11, 7)


# of ilastik
TAGS = [{"key": key, "typeFlags": flags, "resolution": 0, "description": ""}
        for key, flags in zip("tzyxc", (8, 2, 2, 2, 1), strict=True)]  # fmt: skip


def tags_with(tags: list[dict[str, Any]], *resolutions: float) -> list[dict[str, Any]]:
    return [{**tag, "resolution": r} for tag, r in zip(tags, resolutions, strict=True)]


def level(attributes: Any, dimensions: Any = (7, 6, 7), **how: Any) -> Node:
    given: dict[str, Any] = {"path": ("ch0tp0", "s1"), "first_level": S0[: len(dimensions)]} | how
    return Node(dimensions=dimensions, attributes=attributes, **given)


def dataset(attributes: Any, dimensions: Any, *path: str, **how: Any) -> Node:
    return Node(path=path, dimensions=dimensions, attributes=attributes, **how)


def geometry_of(node: Node) -> Any:
    return find_geometry(node).geometry


def placed(node: Node) -> list[tuple[str, float, float, str | None]]:
    found = find_geometry(node)
    assert not found.problems
    assert found.geometry is not None
    return [(a.name, a.scale, a.translation, a.unit) for a in found.geometry.axes]


BY = {"downsamplingFactors": [2, 3, 1]}
FINEST = {"resolution": [4, 5, 40], "offset": [1, 2, 3]}
BDV = json.loads((REAL / "19-bdv-s0-array.json").read_text())
KEYS = "unit", "units", "offset_unit"
ROWS = [("x", 2, 0.5, None), ("y", 3, 1, None), ("z", 1, 0, None)]
IN_NM = [("x", 4, 1, "nm"), ("y", 5, 2, "nm"), ("z", 40, 3, "nm")]
WITHOUT = [(name, size, start, None) for name, size, start, _ in IN_NM]
OF_GROUP = [("x", 8, 1, "nm"), ("y", 15, 2, "nm"), ("z", 40, 3, "nm")]
BY_SHAPES = [("", 13 / 7, 0, None), ("", 11 / 6, 0, None), ("", 1, 0, None)]
# a dataset, and name, scale, translation and unit of each axis
PLACED: dict[str, tuple[Node, list[tuple[Any, ...]]]] = {
    "factors count elements of the finest level": (level(BY), ROWS),
    "factors of both": (level(BY, first_attributes={"downsamplingFactors": [1, 1, 1]}), ROWS),
    "factors of 1": (
        dataset(BDV, (256, 256, 256), "fused", "s0"), [(name, 1, 0, None) for name in "xyz"]),
    "factors of the axis after space": (
        level({"downsamplingFactors": [2, 3, 1, 1]}, (7, 6, 7, 3), first_level=(13, 11, 7, 3)),
        [*ROWS, ("c", 1, 0, None)]),
    "no factors of the axes after space": (
        level(BY, (7, 6, 7, 3, 2)), [*ROWS, ("c", 1, 0, None), ("t", 1, 0, None)]),
    "an offset instead of the shift; elements have no unit": (
        level({**BY, "offset": [5, 0, 2], "unit": "um"}),
        [("x", 2, 5, None), ("y", 3, 0, None), ("z", 1, 2, None)]),
    **{f"an offset in the {key} is converted to that of the finest level": (
        level({**BY, "offset": [5, 0, 2], key: "um"},
              first_attributes={"resolution": [4, 5, 40], "unit": "nm"}),
        [("x", 8, 5000, "nm"), ("y", 15, 0, "nm"), ("z", 40, 2000, "nm")]) for key in KEYS},
    **{f"a list of the group, {key}": (
        level({}, ancestors=[{key: [[1, 1, 1], [2, 3, 1]]}]), ROWS)
       for key in ("downsamplingFactors", "scales")},
    **{f"a listed level after {first}": (level({}, path=("b2r", own), first_name=first), BY_SHAPES)
       for own, first in (("1", "0"), ("scale1", "scale0"))},
    **{f"a unit in {key}": (level({**FINEST, key: "nm"}), IN_NM) for key in KEYS},
    **{f"a unit in {key} of the group": (level(BY, ancestors=[{**FINEST, key: "nm"}]), OF_GROUP)
       for key in KEYS},
    "the unit of the elements": (level({**FINEST, "units": "K"}), WITHOUT),
    "an offset in another unit": (
        level({**FINEST, "unit": "nm", "offset_unit": "um"}),
        [("x", 4, 1000, "nm"), ("y", 5, 2000, "nm"), ("z", 40, 3000, "nm")]),
    "a unit beside voxel_size": (
        level({"voxel_size": [40, 5, 4], "units": "nm"}),
        [("x", 4, 0, "nm"), ("y", 5, 0, "nm"), ("z", 40, 0, "nm")]),
    "Paintera's offset beside Neuroglancer's units": (
        level(BY, ancestors=[{**FINEST, "units": ["nm"] * 3}]), OF_GROUP),
    "axistags with resolutions and units": (
        dataset({"axistags": {"axes": tags_with(TAGS[1:], 4.5, 0.5, 0.25, 0)},
                 "axis_units": json.dumps(dict.fromkeys("xyz", "um"))}, (2, 5, 3, 7), "data"),
        [("c", 1, 0, None), ("x", 0.25, 0, "um"), ("y", 0.5, 0, "um"), ("z", 4.5, 0, "um")]),
    # a transposed copy has the old tags
    "other names than those of axistags": (
        dataset({"axistags": json.dumps({"axes": tags_with(TAGS[2:4], 0.5, 0.25)}),
                 "axes": ["y", "x"]}, (5, 3), "data"),
        [("y", 0.5, 0, None), ("x", 0.25, 0, None)]),
}  # fmt: skip


@pytest.mark.parametrize(("node", "rows"), PLACED.values(), ids=PLACED)
def test_axes_of_levels_are_where_attributes_place_them(node: Node, rows: Any) -> None:
    assert placed(node) == rows


def test_names_that_axistags_do_not_have_stay_names() -> None:
    tags = {"axistags": json.dumps({"axes": tags_with(TAGS[2:4], 0.5, 0.25)})}
    assert geometry_of(dataset({**tags, "axes": ["a", "b"]}, (5, 3), "data")).convention == "names"


def test_a_unit_beside_the_resolution_of_n5_viewer() -> None:
    assert placed(level({"pixelResolution": [4, 5, 40], "unit": "nm"}))[0][3] == "nm"


def test_each_level_has_the_factors_to_full_resolution() -> None:
    finest = {"downsamplingFactors": [2, 2, 3], "offset": [7, 8, 9]}
    for own, expected in (
        ({"downsamplingFactors": [4, 6, 3]}, [("x", 4, 1.5), ("y", 6, 2.5), ("z", 3, 1)]),
        ({}, [("x", 26 / 7, 7), ("y", 22 / 6, 8), ("z", 3, 9)]),
    ):
        found = placed(level(own, first_attributes=finest))
        assert [(name, start) for name, _, start, _ in found] == [(n, s) for n, _, s in expected]
        assert [by for _, by, _, _ in found] == pytest.approx([by for _, by, _ in expected])


@pytest.mark.parametrize("by", ["2", [2, 2], [2, 2, 1, 1], [0, 1, 1], {}], ids=str)
def test_a_level_whose_factors_are_invalid_has_the_ratio_of_the_shapes(by: Any) -> None:
    own = {"downsamplingFactors": by}
    if by == [2, 2]:  # of the axes of space
        assert [scale for _, scale, _, _ in placed(level(own))] == [2, 2, 1]
        return
    geometry = geometry_of(level(own))
    assert geometry.convention == "shapes"
    assert [axis.scale for axis in geometry.axes] == [13 / 7, 11 / 6, 1]
    assert len(find_geometry(level(own)).problems) == 1
    assert find_geometry(level(own), "factors").geometry is None


FIRST = {
    "cosem": {"transform": {"axes": ["z", "y", "x"], "scale": [40, 5, 4], "translate": [3, 2, 1]}},
    "n5viewer": {"pixelResolution": [4, 5, 40]},
    "neuroglancer": {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4, 5, 40]},
    "paintera": {"resolution": [4, 5, 40], "offset": [1, 2, 3]},
    "imagej": {"pixelWidth": 4, "pixelHeight": 5, "pixelDepth": 40, "pixelUnit": "um",
               "numSlices": 7},
}  # fmt: skip


@pytest.mark.parametrize("convention", FIRST)
def test_a_level_has_the_scale_of_the_finest_one_times_its_factors(convention: str) -> None:
    first = dataset(FIRST[convention], S0, "em", "s0")
    assert geometry_of(first).convention == convention
    (x, _, x0, u), (y, _, y0, v), (z, _, z0, w) = placed(first)
    by_factors = level({"downsamplingFactors": [2, 3, 1]}, first_attributes=FIRST[convention])
    assert placed(by_factors) == [(x, 8, x0 + 2, u), (y, 15, y0 + 5, v), (z, 40, z0, w)]
    by_shapes = level({}, first_attributes=FIRST[convention])
    found = placed(by_shapes)
    assert [(name, offset) for name, _, offset, _ in found] == [(x, x0), (y, y0), (z, z0)]
    assert [scale for _, scale, _, _ in found] == pytest.approx([4 * 13 / 7, 5 * 11 / 6, 40])


def test_shapes_alone_name_no_axes_and_keep_attributes() -> None:
    own: dict[str, Any] = {"offset": [1, 2, 3], "note": "x"}
    geometry = geometry_of(level(own))
    assert geometry.convention == "shapes"
    assert not geometry.is_stated
    assert [(a.name, a.scale, a.translation) for a in geometry.axes] == [
        ("", 13 / 7, 0), ("", 11 / 6, 0), ("", 1, 0)]  # fmt: skip
    assert other_attributes(own, geometry) == own


@pytest.mark.parametrize(
    "how",
    [
        {"path": ("ch0tp0", "raw")},  # beside the levels
        {"path": ("ch0tp0", "s0")},
        {"is_like_first": False},
        {"dimensions": (5, 9, 7)},  # no whole factor
        {"dimensions": (7, 6)},
        {"dimensions": S0},
        {"dimensions": (7, 22, 7)},  # longer
        {"first_level": None},
    ],
    ids=str,
)
def test_a_dataset_that_is_no_level_gets_no_scale(how: dict[str, Any]) -> None:
    dimensions = how.pop("dimensions", (7, 6, 7))
    how = {"first_level": S0, **how}
    assert find_geometry(level({}, dimensions, **how)).geometry is None


def test_names_alone_stay_names() -> None:
    geometry = geometry_of(level({"axes": ["a", "b", "c"]}))
    assert geometry.is_placed == (False, False, False)


def test_levels_of_programs_with_rules_of_their_own_keep_them() -> None:
    by = {"downsamplingFactors": [2, 2, 1]}
    bdv = level(by, path=("setup0", "timepoint0", "s1"))
    found = geometry_of(bdv)
    assert found.convention == "bdv"
    # Paintera's levels have no shift, and a resolution of 1 by default
    for group, x in (({"multiScale": True}, 2), ({"resolution": [4, 4, 40]}, 8)):
        found = geometry_of(level(by, ancestors=[group]))
        assert found.convention == "paintera"
        assert (found.axes[0].scale, found.axes[0].translation) == (x, 0)


@pytest.mark.parametrize(
    ("first", "shape", "found"),
    [
        ((12, 7, 5), (6, 4, 5), (2, 7 / 4, 1)),  # rounded up
        ((12, 7, 5), (6, 3, 5), (2, 7 / 3, 1)),  # rounded down
        ((1000, 101), (15, 4), (1000 / 15, 101 / 4)),  # of a level of a level
        ((100,), (37,), None),
        ((5, 5), (5, 5), None),
        ((5, 5), (5,), None),
        ((5, 0), (3, 0), None),
    ],
)
def test_ratios_of_shapes(first: Any, shape: Any, found: Any) -> None:
    assert ratios(first, shape) == found


AXES = [{"type": "space", "name": name, "unit": "micron"} for name in "xyz"]
STEPS: list[dict[str, Any]] = [
    {"type": "scale", "scale": [0.2, 0.13, 0.4]},
    {"type": "translation", "translation": [1, 2, 3]},
]
THERE = [("x", 0.2, 1, "micron"), ("y", 0.13, 2, "micron"), ("z", 0.4, 3, "micron")]


def test_axes_and_transforms_in_the_dataset_itself() -> None:
    own: dict[str, Any] = {"path": "own/s0", "axes": AXES, "coordinateTransformations": STEPS}
    node = dataset(own, S0, "own", "s0")
    assert placed(node) == THERE
    assert other_attributes(own, find_geometry(node).geometry) == {"path": "own/s0"}
    # in C order where x is last, as in `multiscales`; in N5 order where nothing names axes
    turned = {
        "axes": AXES[::-1],
        "coordinateTransformations": [{k: v[::-1] if isinstance(v, list) else v
                                       for k, v in step.items()} for step in STEPS],
    }  # fmt: skip
    assert placed(dataset(turned, S0, "own")) == THERE
    bare = {"coordinateTransformations": STEPS}
    assert placed(dataset(bare, S0, "own")) == [
        (name, scale, offset, None) for name, scale, offset, _ in THERE
    ]


@pytest.mark.parametrize("path", ["s0", "./s0", "/s0", "s0/", "x/../s0"])
@pytest.mark.parametrize("convention", ["ngff", "ome", "cosem", "canonical"])
def test_paths_in_multiscales_in_any_spelling(path: str, convention: str) -> None:
    step: dict[str, Any] = {"type": "scale", "scale": [2, 3, 4]}
    entries: dict[str, dict[str, Any]] = {
        "cosem": {"transform": {"axes": ["z", "y", "x"], "scale": [4, 3, 2]}},
        "canonical": {"spatialTransform": {"transform": step}},
    }
    entry = entries.get(convention, {"coordinateTransformations": [step]})
    image = {"axes": AXES, "datasets": [{"path": path, **entry}]}
    groups: dict[str, dict[str, Any]] = {
        "ome": {"ome": {"multiscales": [image]}},
        "canonical": {"multiscales": image},
    }
    group = groups.get(convention, {"multiscales": [image]})
    node = dataset({}, S0, "g", "s0", ancestors=[group])
    assert [scale for _, scale, _, _ in placed(node)] == [2, 3, 4]


def test_voxel_size_of_the_group_is_that_of_full_resolution() -> None:
    """The voxel size of the group is that of full resolution; levels share the corner."""
    group = {"voxel_size": [40, 5, 4], "offset": [80, 10, 12]}
    for ancestors, first in (([group], {}), ([{}], group)):
        how: dict[str, Any] = {"ancestors": ancestors, "first_attributes": first}
        s0 = level(first, S0, path=("em", "s0"), **how)
        assert placed(s0) == [("x", 4, 12, None), ("y", 5, 10, None), ("z", 40, 80, None)]
        s1 = level({"downsamplingFactors": [2, 3, 1]}, **how)
        assert placed(s1) == [("x", 8, 14, None), ("y", 15, 15, None), ("z", 40, 80, None)]
        bare = level({}, (7, 11, 7), **how)
        x = 4 * 13 / 7
        assert placed(bare) == [("x", x, 12 + (x - 4) / 2, None), ("y", 5, 10, None),
                                ("z", 40, 80, None)]  # fmt: skip
    # a dataset in the group that is no level, and one of another rank
    assert placed(level({}, S0, path=("em", "raw"), ancestors=[group]))[0] == ("x", 4, 12, None)
    assert find_geometry(level({}, (13, 11), path=("em", "y"), ancestors=[group])).geometry is None


@pytest.mark.parametrize(
    ("own", "group", "problem"),
    [
        ({"downsamplingFactors": [0, 1, 1]}, {}, "downsamplingFactors: expected 3 numbers above 0"),
        ({"downsamplingFactors": []}, {}, "downsamplingFactors: expected 3 numbers above 0"),
        ({"resolution": [1, 1, 1], "offset": [1, 1, 1], "unit": "nm", "offset_unit": "s"}, {},
         'offset_unit: expected a unit that nm can express, got "s"'),
        ({"transform": {"scale": [1, 1, 1]}}, {}, "expected axes and scale, got no axes"),
        ({"coordinateTransformations": [{"type": "affine", "affine": [1]}]}, {},
         "coordinateTransformations: expected scales and translations"),
        ({"coordinateTransformations": [{"type": "scale", "scale": [1]}]}, {},
         "coordinateTransformations: scale: expected 3 numbers"),
        ({}, {"multiscales": [{"axes": AXES, "datasets": [{"path": "s1",
              "coordinateTransformations": {"scale": [1, 1, 1]}}]}]},
         "coordinateTransformations: expected a list"),
        ({}, {"multiscales": [{"axes": AXES, "datasets": [{"path": "scale0"}, {"path": "b"}]}]},
         "multiscales of the group: expected an entry for s1, got scale0, b"),
        ({"offset": [1, 2, 3]}, {}, "offset: expected resolution, pixelResolution, voxel_size or"),
        ({"voxel_size": "4 nm"}, {}, 'voxel_size: expected a list of numbers, got "4 nm"'),
        ({}, {"voxel_size": [1, 2, 3, 4, 5]},
         "voxel_size of the group: expected a list of at most 3 numbers, got [1, 2, 3, 4, 5]"),
        ({}, {"voxel_size": "4 nm"}, "voxel_size of the group: expected a list of at most 3"),
        ({"coordinateTransformations": "none"}, {},
         'coordinateTransformations: expected a list, got "none"'),
        ({}, {"multiscales": [{"axes": 5, "datasets": [{"path": "s1"}]}]},
         "multiscales: axes: expected a list of 3 axes, got 5"),
        ({"axistags": "{"}, {}, "axistags: expected JSON"),
        ({"axistags": "[" * 10_000}, {}, "axistags: expected JSON"),
        ({"axistags": '{"axes": [{"key": "z", "typeFlags": NaN}, {"key": "y"}, {"key": "x"}]}'},
         {}, "axistags: expected numbers as typeFlags and resolution"),
        ({"axistags": "[]"}, {}, "axistags: expected a JSON object"),
        ({"axistags": '{"axes": [{"key": "x"}]}'}, {}, "axistags: expected 3 axes with keys"),
        ({"axistags": '{"axes": [{"key": "z", "resolution": "?"}, {"key": "y"}, {"key": "x"}]}'},
         {}, "axistags: expected numbers as typeFlags and resolution"),
    ],
    ids=str,
)  # fmt: skip
def test_an_attribute_that_is_not_understood_is_one_problem(
    own: Any, group: Any, problem: str
) -> None:
    found = find_geometry(level(own, (5, 9, 7), ancestors=[group]))
    assert found.geometry is None
    (message,) = found.problems
    assert problem in message


def test_attributes_without_positions_are_no_problem() -> None:
    image = {"axes": AXES, "datasets": [{"path": "s0"}]}
    for node in (
        level({"note": 1}, (5, 9, 7)),
        level({}, (5, 9, 7), path=("g", "mask"), ancestors=[{"multiscales": [image]}]),
        level({}, (5, 9, 7), ancestors=[{"multiscales": [{"version": "0.2"}]}]),
        level({"offset": 5, "voxel_size": None}, (5, 9, 7)),
        level({}, (9, 7), path=("g", "mask"), ancestors=[{"voxel_size": [1, 2, 3]}]),
    ):
        assert find_geometry(node) == (None, ())


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        (["0", "1"], "0"), (["./s0", "1"], "s0"), (["..", "1"], None), (["a\\b", "1"], None),
        (["\0", "1"], None), (["other/0", "1"], None), ([5, "1"], None), (["0"], None),
    ],
)  # fmt: skip
def test_the_finest_level_is_a_node_beside_the_others(paths: list[Any], name: str | None) -> None:
    group: dict[str, Any] = {"multiscales": [{"datasets": [{"path": path} for path in paths]}]}
    assert first_listed(("g", "1"), [group]) == name


def test_axistags_name_axes_in_c_order() -> None:
    own: dict[str, Any] = {"axistags": json.dumps({"axes": TAGS}), "drange": [0, 1]}
    node = dataset(own, (2, 5, 3, 7, 11), "exported_data")
    geometry = geometry_of(node)
    assert [axis.name for axis in geometry.axes] == ["c", "x", "y", "z", "t"]
    assert [axis.type for axis in geometry.axes] == ["channel", *["space"] * 3, "time"]
    assert geometry.is_placed == (False,) * 5
    assert other_attributes(own, geometry) == {"drange": [0, 1]}


def test_a_level_of_funlib_without_factors_has_no_size() -> None:
    """The size is that of full resolution, and 12 elements are no multiple of 5."""
    size: dict[str, Any] = {"voxel_size": [4, 4, 4]}
    found = find_geometry(level({}, (5, 7, 3), ancestors=[size], first_level=(12, 14, 6)))
    assert found.geometry is None
    (message,) = found.problems
    assert "voxel_size of full resolution: expected factors of s1, got none" in message


GROUPS: dict[str, dict[str, Any]] = {
    "n5viewer": {"pixelResolution": {"unit": "nm", "dimensions": [4, 5, 40]}},
    "n5viewer, moved": {
        "pixelResolution": {"unit": "nm", "dimensions": [4, 5, 40]},
        "affineTransform": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
    },
    "neuroglancer": {"resolution": [4, 5, 40], "units": ["nm"] * 3, "axes": ["x", "y", "z"]},
    "paintera": {"resolution": [4, 5, 40], "multiScale": True},
    "funlib": {"voxel_size": [40, 5, 4]},
}
COARSE = {1: (17, 11, 7), 2: (9, 5, 4), 3: (5, 3, 2), 5: (2, 1, 1)}  # of halves, rounded


def coarse(number: int, group: Any, shapes: Any, **how: Any) -> Node:
    return level(
        {}, shapes[number], path=("im", f"s{number}"), first_level=None, ancestors=[group],
        levels=shapes, **how,
    )  # fmt: skip


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("numbers", [(1, 2, 3), (2, 3), (1, 3), (2,), (2, 5)])
def test_levels_without_s0_and_factors_are_placed_by_their_names(group: Any, numbers: Any) -> None:
    shapes = {number: COARSE[number] for number in numbers}
    messages = set()
    for number in numbers:
        found = find_geometry(coarse(number, group, shapes))
        assert found.geometry is not None
        by = 2**number
        assert [axis.scale for axis in found.geometry.axes] == [by * 4, by * 5, by * 40]
        shift = 0 if found.geometry.convention == "paintera" else (by - 1) / 2
        assert [a.translation for a in found.geometry.axes] == [shift * r for r in (4, 5, 40)]
        messages |= {*found.problems}
    (message,) = messages  # the same for all levels
    assert "expected them, or s0, got neither" in message


@pytest.mark.parametrize(
    "shapes",
    [
        {1: (17, 11, 7), 2: (9, 6, 7)},  # z is not halved
        {1: (27, 27, 27), 2: (9, 9, 9)},
        {1: (9, 5, 4), 2: (17, 11, 7)},  # larger
        {1: (17, 11, 7), 2: (9, 5)},
        {2: (17, 11, 7), 3: (9, 5, 4), 4: (9, 5, 4)},
    ],
)
def test_levels_whose_shapes_contradict_their_names_have_no_place(shapes: Any) -> None:
    group = GROUPS["neuroglancer"]
    found = [find_geometry(coarse(k, group, shapes)) for k in shapes if len(shapes[k]) == 3]
    assert {each.geometry for each in found} == {None}
    assert all("or levels each half of the one before" in each.problems[0] for each in found)
    assert len({each.problems for each in found}) == 1


def test_datasets_of_one_shape_are_no_levels() -> None:
    shapes = {1: (17, 11, 7), 2: (17, 11, 7)}
    assert [s for _, s, _, _ in placed(coarse(2, GROUPS["neuroglancer"], shapes))] == [4, 5, 40]


@pytest.mark.parametrize("names", [None, ["x", "y", "c", "z"]])
def test_channels_of_levels_without_s0_have_no_factor(names: Any) -> None:
    order = [0, 1, 2, 3] if names is None else [0, 1, 3, 2]  # of x, y, z, c
    group: Any = {"pixelResolution": {"unit": "nm", "dimensions": [4, 5, 40]}}
    if names:
        group = {"axes": names, "units": ["nm", "nm", "", "nm"], "resolution": [4, 5, 1, 40]}
    shapes = {k: tuple((*COARSE[k], 3)[i] for i in order) for k in (1, 2)}
    for number, by in ((1, 2), (2, 4)):
        found = geometry_of(coarse(number, group, shapes))
        wanted = {"x": by * 4, "y": by * 5, "z": by * 40, "c": 1}
        assert {axis.name: axis.scale for axis in found.axes} == wanted


@pytest.mark.parametrize(
    ("own", "group"),
    [
        ({"downsamplingFactors": [2, 2, 2]}, {"resolution": [4, 5, 40]}),
        ({}, {"resolution": [4, 5, 40], "downsamplingFactors": [[1, 1, 1], [2, 2, 2]]}),
        ({"pixelResolution": [4, 5, 40]}, {}),  # as n5-universe reads it
        ({"resolution": [8, 10, 80], "units": ["um"] * 3}, {}),  # its own
    ],
)
def test_levels_without_s0_that_state_their_size_are_no_problem(own: Any, group: Any) -> None:
    node = coarse(1, group, {1: (17, 11, 7), 2: (9, 5, 4)})
    found = placed(Node(path=node.path, dimensions=node.dimensions, attributes=own,
                        ancestors=node.ancestors, levels=node.levels))  # fmt: skip
    assert [scale for _, scale, _, _ in found] == [8, 10, 80]


NM, UM = ["nm"] * 2, ["um"] * 2


def of_convention(convention: str, *, by: int, k: int) -> tuple[Any, list[Any]]:
    """Return the attributes of level ``k`` of two axes, and of its group, with a factor of a level.

    Voxels of full resolution are 4 x 3 nm.
    """
    f = by**k
    scale: Any = [4.0 * f, 3.0 * f]
    own: Any = {"downsamplingFactors": [f, f]}
    step = {"type": "scale", "scale": scale}
    transform = {"axes": ["y", "x"], "scale": scale[::-1], "units": NM}
    axes = [{"name": name, "unit": "nanometer"} for name in "xy"]
    entries: list[Any] = [
        {"path": f"s{n}", "coordinateTransformations": [{"type": "scale", "scale": [4.0 * by**n,
                                                                                  3.0 * by**n]}]}
        for n in (0, 1)
    ]  # fmt: skip
    listed = {"downsamplingFactors": [[1, 1], [by, by]]}
    found: dict[str, Any] = {
        "cosem": ({"transform": transform}, [{}]),
        "n5viewer": ({"pixelResolution": {"dimensions": [4, 3], "unit": "nm"}, **own}, [{}]),
        "canonical": ({"spatialTransform": {"transform": step, "unit": "nm"}}, [{}]),
        "ngff": ({}, [{"multiscales": [{"axes": axes, "datasets": entries}]}]),
        "funlib": ({"voxel_size": scale[::-1], "units": NM}, [{}]),
        "neuroglancer": ({}, [{"axes": ["x", "y"], "units": NM, "resolution": [4, 3], **listed}]),
        "paintera": (own, [{"resolution": [4, 3], "multiScale": True}]),
        "factors": (own if k else {}, [{}]),
    }  # fmt: skip
    return found[convention]  # type: ignore[no-any-return]


CONVENTIONS = [
    "cosem", "n5viewer", "canonical", "ngff", "funlib", "neuroglancer", "paintera", "factors",
]  # fmt: skip


def in_pyramid(
    attributes: Any, dimensions: Any, first: Any, first_attributes: Any = (), **how: Any
) -> Node:
    given: dict[str, Any] = {"path": ("em", "s1"), "first_level": first} | how
    given["first_attributes"] = dict(first_attributes)
    return Node(dimensions=dimensions, attributes=attributes, **given)


def problems(node: Node, convention: str = "cosem") -> list[str]:
    found = find_geometry(node)
    assert found.geometry is not None
    assert (found.geometry.convention, found.problems) == (convention, ())
    return [*problems_of_level(found.geometry)]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_scale_that_contradicts_the_shapes_is_told(convention: str) -> None:
    (own, above), (first, _) = (of_convention(convention, by=2, k=k) for k in (1, 0))
    how: dict[str, Any] = {"ancestors": above}
    if convention == "ngff":
        how["first_name"] = "s0"
    assert problems(in_pyramid(own, (49, 24), (97, 47), first, **how), convention) == []
    for dimensions in ((24, 11), (97, 47), (49, 47)):
        (problem,) = problems(in_pyramid(own, dimensions, (97, 47), first, **how), convention)
        expected = f"of s0 times the ratio of the shapes, (97, 47) and {dimensions}, got"
        assert expected in problem, problem


def cosem(scale: Any, translate: Any = (0, 0), units: Any = NM) -> Any:
    """Describe two axes in N5 order."""
    members = {"scale": scale, "translate": translate, "units": units, "axes": ["x", "y"]}
    return {"transform": {key: [*value][::-1] for key, value in members.items()}}


@pytest.mark.parametrize(
    ("own", "dimensions"),
    [
        (cosem([8, 6]), (48, 23)),  # rounded down
        (cosem([8, 6]), (49, 24)),  # or up
        (cosem([8, 6], [2, 1.5]), (49, 24)),  # at the centre of two elements
        (cosem([16, 6], [6, 1.5]), (25, 24)),
        (cosem([16.002, 3.0009]), (24, 47)),  # of another program, not rounded
        (cosem([4 * 1.6**3, 3], [0, 0]), (25, 47)),  # of 97, 61, 39, 25: each rounded up
        (cosem([0.008, 0.006], [0.002, 0.0015], UM), (48, 23)),
        (cosem([8, 6], [200, 90]), (11, 5)),  # a part that begins elsewhere
        (cosem([4, 3]), (61, 43)),  # no level: another section
        (cosem([-8, 6], [384, 0]), (48, 23)),  # mirrored otherwise: nothing to compare
        (cosem([8, 6], units=["pixel"] * 2), (7, 5)),  # not comparable
    ],
)
def test_levels_that_are_right_have_no_problem(own: Any, dimensions: Any) -> None:
    assert problems(in_pyramid(own, dimensions, (97, 47), cosem([4, 3]))) == []


def test_a_level_of_another_type_is_told() -> None:
    how: dict[str, Any] = {"first_attributes": cosem([4, 3]), "is_like_first": False}
    (problem,) = problems(in_pyramid(cosem([8, 6]), (49, 24), (97, 47), **how))
    assert problem == "dataType: expected that of s0, as this is another level of it"
    # a mask beside it
    assert problems(in_pyramid(cosem([4, 3]), (97, 47), (97, 47), **how)) == []


def test_units_for_unit_are_told() -> None:
    own, above = of_convention("ngff", by=2, k=0)
    above[0]["multiscales"][0]["axes"] = [{"name": name, "units": "nm"} for name in "xy"]
    found = problems(dataset(own, (97, 47), "em", "s0", ancestors=above), "ngff")
    assert [problem.partition(": {")[0] for problem in found] == [
        "multiscales: axes: expected unit, got units"
    ] * 2
