"""Every convention is read as it was written by hand into the generator."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from n5zarr.conventions.describe import WRITTEN, ConventionName, describe_axes, remove_levels
from n5zarr.conventions.find import BY_NAME, find_geometry, other_attributes
from n5zarr.conventions.model import Node, axes_of
from n5zarr.conventions.units import is_unit, ratio
from n5zarr.errors import N5UnrepresentableError
from n5zarr.metadata.inspect import describe

JAVA = Path(__file__).parents[2] / "data" / "java"
CONTAINER = JAVA / "metadata.n5"
REAL = JAVA.parent / "attributes"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (JAVA / name).read_text().splitlines()]


TRUTH = lines("metadata.truth.jsonl")
UNIVERSE = {line["path"].lstrip("/"): line for line in lines("metadata.expected.jsonl")}


def found(path: str) -> Any:
    return describe(CONTAINER, path, size=False)["geometry"]


def test_the_truth_has_every_dataset() -> None:
    documents = {p: json.loads(p.read_text()) for p in CONTAINER.rglob("attributes.json")}
    datasets = {p.parent for p, document in documents.items() if "blockSize" in document}
    assert {str(p.relative_to(CONTAINER)) for p in datasets} == {line["path"] for line in TRUTH}


def check(truth: dict[str, Any]) -> None:
    """Check that a node is where it was written to be."""
    geometry = found(truth["path"])
    axes = geometry["axes_n5"]
    assert geometry["convention"] == truth["convention"]
    assert [axis["name"] for axis in axes] == truth["axes"]
    assert [axis["scale"] for axis in axes] == truth["scale"]
    assert [axis["translation"] for axis in axes] == truth["translation"]
    unit = truth["unit"]
    assert [axis["unit"] for axis in axes] == (unit if isinstance(unit, list) else [unit] * 3)
    labels = {axis["name"]: list(axis["labels"]) for axis in axes if axis["labels"]}
    assert labels == truth.get("labels", {})


# tests/bigdataviewer has those that an XML names
@pytest.mark.parametrize(
    "truth", [each for each in TRUTH if each["convention"] != "bdv"], ids=lambda line: line["path"]
)
def test_every_node_is_where_it_was_written_to_be(truth: dict[str, Any]) -> None:
    check(truth)


# n5-universe takes C-order lists of NGFF for N5 order, and so mislabels the axes
MISREAD = {"ngff-0.4-corder/s0", "ngff-0.4-corder/s1"}


@pytest.mark.parametrize(
    "path",
    [
        line["path"] for line in TRUTH
        if UNIVERSE.get(line["path"], {}).get("unit", "pixel") != "pixel"
        and line["path"] not in MISREAD
    ],
)  # fmt: skip
def test_n5_universe_says_the_same_where_it_understands_the_node(path: str) -> None:
    theirs = UNIVERSE[path]
    axes = found(path)["axes_n5"]
    rows = theirs["spatialTransform"]
    assert [axis["scale"] for axis in axes] == [rows[i][i] for i in range(3)]
    assert [axis["translation"] for axis in axes] == [row[3] for row in rows]
    assert {axis["unit"] for axis in axes} == {theirs["unit"]}


def geometry_of(dataset: Node, convention: str | None = None) -> Any:
    return find_geometry(dataset, convention).geometry


def node(attributes: dict[str, Any], **how: Any) -> Node:
    return Node(**({"path": ("a", "s1"), "dimensions": (7, 5, 3)} | how), attributes=attributes)


def nm(numbers: list[float]) -> Any:
    return {"unit": "nm", "dimensions": numbers}


FACTORS = [[1, 1, 1], [2, 3, 2]]
FULL, LEVEL = [4.0, 4.5, 40.0], [8.0, 13.5, 80.0]
AFFINE = [[1, 0, 0, 10], [0, 2, 0, 20], [0, 0, 1, 30]]
SEQUENCE = [
    {"type": "scale", "scale": [2, 3, 4]}, {"type": "translation", "translation": [1, 1, 1]},
    {"type": "scale_offset", "scale": [10, 10, 10], "offset": [5, 0, 0]},
]  # fmt: skip
OF_NGFF = {
    "axes": [{"name": "z"}, {"name": "y", "unit": "nm"}, {"name": "x", "type": "space"}],
    "datasets": [{"path": "a/s1", "coordinateTransformations": [
        {"type": "scale", "scale": [4, 2, 1]}, {"type": "translation", "translation": [1, 2, 3]},
    ]}],
    "coordinateTransformations": [{"type": "scale", "scale": [10, 10, 100]}],
}  # fmt: skip
MOVED = {"pixelResolution": nm(FULL), "affineTransform": AFFINE}
LISTED = {"axes": ["x", "z", "y"], "scales": FACTORS, "pixelResolution": FULL}
OF_FOUR = {"pixelResolution": nm([4.0, 4.0, 40.0, 1.0]), "scales": [[1] * 4, [2, 2, 2, 1]]}
OF_TWO = {"resolution": [4.0, 40.0], "units": ["nm", "nm"], "scales": [[1, 1], [2, 2]]}
FUNLIB = {"voxel_size": [40, 5, 4], "offset": [30, 20, 10]}
# attributes, how else the node is made, and name, scale, translation and unit of each axis
PLACES: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[Any, ...]]]] = {
    "the name of a level instead of factors": (
        {"pixelResolution": nm([4, 4, 40])}, {},
        [("x", 8, 2, "nm"), ("y", 8, 2, "nm"), ("z", 80, 20, "nm")],
    ),
    "a resolution of the first three of four axes": (
        {"pixelResolution": [4, 4, 40]}, {"dimensions": (7, 5, 3, 2)},
        [("x", 8, 2, "um"), ("y", 8, 2, "um"), ("z", 80, 20, "um"), ("c", 1, 0, None)],
    ),
    "transforms one after the other": (
        {"spatialTransform": {"transform": {"type": "sequence", "transformations": SEQUENCE},
                              "unit": "mm"}}, {},
        [("x", 20, 15, "mm"), ("y", 30, 10, "mm"), ("z", 40, 10, "mm")],
    ),
    "an affine along the axes, x first, translations last": (
        {"spatialTransform": {"transform": {"type": "affine", "affine": [2, 0, 0, 7, 0, 3, 0, 8,
                                                                         0, 0, 5, 9]},
                              "unit": "mm"}}, {},
        [("x", 2, 7, "mm"), ("y", 3, 8, "mm"), ("z", 5, 9, "mm")],
    ),
    "NGFF: transforms of the image after those of the dataset": (
        {}, {"ancestors": ({}, {"ome": {"multiscales": [OF_NGFF]}})},
        [("x", 100, 300, None), ("y", 20, 20, "nm"), ("z", 40, 10, None)],
    ),
    "four axes, three of which have a resolution": (
        {"pixelResolution": nm([8.0, 8.0, 80.0])},
        {"dimensions": (7, 5, 3, 2), "ancestors": (OF_FOUR,)},
        [("x", 8, 2, "nm"), ("y", 8, 2, "nm"), ("z", 80, 20, "nm"), ("c", 1, 0, None)],
    ),
    "two axes": (
        {"pixelResolution": nm([8.0, 80.0])}, {"dimensions": (7, 5), "ancestors": (OF_TWO,)},
        [("x", 8, 2, "nm"), ("y", 80, 20, "nm")],
    ),
    "names and a list on the group": (
        {}, {"ancestors": (LISTED,)},
        [("x", 8, 2, "um"), ("z", 13.5, 4.5, "um"), ("y", 80, 20, "um")],
    ),
    "names and a list on the group, and its own resolution": (
        {"pixelResolution": LEVEL}, {"ancestors": (LISTED,)},
        [("x", 8, 2, "um"), ("z", 13.5, 4.5, "um"), ("y", 80, 20, "um")],
    ),
    **{
        f"COSEM, {key} {order}": (
            {"transform": {"axes": names, "scale": [1, 2, 3], "translate": [4, 5, 6], key: order}},
            {}, rows,
        )
        for key in ("order", "ordering")  # the latter as in n5-universe
        for order, names, rows in (
            ("F", ["x", "y", "z"], [("x", 1, 4, None), ("y", 2, 5, None), ("z", 3, 6, None)]),
            ("C", ["z", "y", "x"], [("x", 3, 6, None), ("y", 2, 5, None), ("z", 1, 4, None)]),
        )
    },
    "funlib, in C order": (
        {"axis_names": ["z", "y", "x"], "units": ["nm", "um", ""], "voxel_size": [40, 5, 4],
         "offset": [3, 2, 1]}, {},
        [("x", 4, 1, None), ("y", 5, 2, "um"), ("z", 40, 3, "nm")],
    ),
    "funlib without names": (
        {"voxel_size": [40, 5, 4]}, {},
        [("x", 4, 0, None), ("y", 5, 0, None), ("z", 40, 0, None)],
    ),
    "funlib, a level from the corner of s0": (
        {"voxel_size": [80, 15, 16], "offset": [30, 20, 10]}, {"first_attributes": FUNLIB},
        [("x", 16, 16, None), ("y", 15, 25, None), ("z", 80, 50, None)],
    ),
    "funlib, a level with its own corner": (
        {"voxel_size": [80, 15, 16], "offset": [50, 25, 16]}, {"first_attributes": FUNLIB},
        [("x", 16, 16, None), ("y", 15, 25, None), ("z", 80, 50, None)],
    ),
    "n5-viewer: an affine of the group, of two axes": (
        {}, {"path": ("c0", "s0"), "dimensions": (7, 5),
             "ancestors": ({**MOVED, "pixelResolution": nm(FULL[:2])},)},
        [("x", 4, 10, "nm"), ("y", 9, 20, "nm")],
    ),
    **{
        f"n5-viewer: levels have the full resolution, {group}, {s0}": (
            {"pixelResolution": nm(FULL), "downsamplingFactors": FACTORS[1]},
            {"ancestors": (group,), "first_attributes": s0},
            [("x", 8, 2, "nm"), ("y", 13.5, 4.5, "nm"), ("z", 80, 20, "nm")],
        )
        for group, s0 in (
            ({}, {"pixelResolution": nm(FULL)}),
            ({"pixelResolution": nm(FULL)}, {"pixelResolution": nm(FULL)}),
            ({"pixelResolution": nm(FULL), "scales": FACTORS}, {}),
            # full resolution happens to be a multiple of what stands on s0
            ({}, {"pixelResolution": nm([2.0, 1.5, 20.0])}),
            ({"pixelResolution": nm([1.0, 1.0, 1.0])}, {}),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("attributes", "how", "rows"), PLACES.values(), ids=PLACES)
def test_axes_are_where_attributes_place_them(attributes: Any, how: Any, rows: Any) -> None:
    axes = geometry_of(node(attributes, **how)).axes
    assert [(a.name, a.scale, a.translation, a.unit) for a in axes] == rows


WRONG: list[dict[str, Any]] = [
    {},
    {"transform": 5},
    {"transform": {"axes": ["x"], "scale": [1], "translate": [0]}},
    {"pixelResolution": "big"},
    {"pixelResolution": [1, 2, 3, 4]},
    {"spatialTransform": {"transform": {"type": "affine", "affine": [1, 1, 0, 0] * 3}}},
    {"spatialTransform": {"transform": {"type": "affine", "affine": [1, 0, 0] * 3}}},
    {"spatialTransform": {"transform": {"type": "scale", "scale": [1, 2]}}},
    {"spatialTransform": {"transform": {
        "type": "sequence",
        "transformations": [{"type": "scale", "scale": [1, 2, 3]}, {"type": "warp"}],
    }}},
    {"spatialTransform": {"transform": {"type": "warp"}}},
    {"resolution": [1, 2, 3, 4]},
    {"resolution": [1, "2"]},
    {"resolution": []},
    {"resolution": ["1", "2", "3"]},
    {"units": ["nm", "nm", "nm"]},
    {"pixelWidth": 1, "pixelUnit": "um", "numSlices": 1},
]  # fmt: skip


@pytest.mark.parametrize("attributes", WRONG, ids=str)
def test_misshapen_attributes_are_ignored(attributes: dict[str, Any]) -> None:
    assert geometry_of(node(attributes)) is None
    groups: Any = (
        {"multiscales": [5], "ome": 3, "scales": "x", "resolution": [1]},
        {"multiscales": {}},
    )
    assert geometry_of(node(attributes, ancestors=groups)) is None


def test_a_convention_can_be_forced() -> None:
    attributes = json.loads((CONTAINER / "cosem" / "s1" / "attributes.json").read_text())
    both = node(attributes, path=("cosem", "s1"), dimensions=(4, 3, 2))
    conventions = {name: geometry_of(both, name) for name in BY_NAME}
    # the redundant `pixelResolution` is for the other two, and is not followed unless forced
    said = {name for name, geometry in conventions.items() if geometry}
    assert said == {"cosem", "n5viewer", "neuroglancer"}
    assert geometry_of(both).convention == "cosem"


@pytest.mark.parametrize(
    ("attributes", "groups", "problem", "left"),
    [
        ({"transform": {"axes": ["x", "y", "z"], "scale": [10**400, 1, 1]}}, (),
         "transform.scale", None),
        ({"pixelWidth": 0.0, "pixelUnit": "um", "numSlices": 3}, (),
         "axis 'x': expected", "imagej"),
        ({"axes": ["x", "y", "z"], "coordinateArrays": {"z": ["a"]}}, (),
         "coordinateArrays: z: expected 3 strings", "names"),
        ({"units": ["nm"] * 3, "resolution": [1, 1, 1]},
         ({"downsamplingFactors": [[1, 1, 1], [2, 2]]},),
         r"downsamplingFactors of the group\[1\]: expected 3 numbers", None),
        ({}, ({"resolution": [1, 1, 1], "offset": "far"},), "group of the levels: offset", None),
        ({"pixelResolution": [1, 1, 1], "transform": {"axes": ["x"], "scale": [1]}}, (),
         "transform.axes: expected 3 strings", None),
        ({"pixelWidth": 10**400, "pixelUnit": "um", "numSlices": 2}, (),
         "pixelWidth: expected a number, got 1000", None),
    ],
)  # fmt: skip
def test_senseless_attributes_are_one_problem(
    attributes: dict[str, Any], groups: Any, problem: str, left: str | None
) -> None:
    found = find_geometry(node(attributes, ancestors=groups))
    assert len(found.problems) == 1
    assert re.search(problem, found.problems[0])
    # the convention of those axes that the problem does not concern
    assert (found.geometry and found.geometry.convention) == left


def test_pixels_without_unit_stay_pixels() -> None:
    assert [is_unit(unit) for unit in ("um", "Micrometers", "µm", "px", "furlong")] == [
        True, True, True, True, False,
    ]  # fmt: skip
    assert ratio("um", "s") is None


@pytest.mark.parametrize(
    ("unit", "size", "base"),
    [("mm", 1e-3, "m"), ("microns", 1e-6, "m"), ("Å", 1e-10, "m"), ("inch", 0.0254, "m"),
     ("usec", 1e-6, "s"), ("min", 60, "s"), ("hr", 3600, "s"), ("days", 86400, "s")],
)  # fmt: skip
def test_sizes_of_units_are_those_of_udunits(unit: str, size: float, base: str) -> None:
    assert ratio(unit, base) == size


def test_users_choose_among_all_conventions_that_are_written() -> None:
    assert get_args(ConventionName.__value__) == ("auto", *WRITTEN)


@pytest.mark.parametrize("convention", WRITTEN)
@pytest.mark.parametrize("ndim", [1, 2, 3, 5])
def test_written_axes_are_read_back(convention: str, ndim: int) -> None:
    axes = axes_of(
        ndim,
        scale=[0.25 * (k + 1) for k in range(ndim)],
        translation=[1.5 * k - 1 for k in range(ndim)],
        units=["um"] * min(ndim, 3) + [""] * (ndim - 3),
    )
    written = describe_axes(convention, axes, "s1")
    group = {"multiscales": [{**(written.image or {}), "datasets": [written.level]}]}
    names = [axis.name for axis in axes]
    own, dimensions = {"axes": names, **written.on_dataset(())}, (7, 5, 3, 2, 4)[:ndim]
    found = geometry_of(node(own, dimensions=dimensions, ancestors=(group,)))
    assert found.convention == convention
    n = 3 if convention == "n5viewer" else ndim  # which places space only
    assert found.axes[:n] == axes[:n]


@pytest.mark.parametrize(
    ("own", "group", "s0"),
    [
        # as cellmap-schemas has it, with names and units, and what can be left out of it
        ({"pixelResolution": nm(LEVEL)},
         {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "scales": FACTORS,
          "pixelResolution": nm(FULL)}, {"pixelResolution": nm(FULL)}),
        ({"pixelResolution": nm(LEVEL)}, {"scales": FACTORS, "pixelResolution": nm(FULL)}, {}),
        ({"pixelResolution": nm(LEVEL)}, {"scales": FACTORS, "pixelResolution": FULL}, {}),
        ({"pixelResolution": LEVEL}, {"scales": FACTORS, "pixelResolution": nm(FULL)}, {}),
        ({"pixelResolution": LEVEL},
         {"downsamplingFactors": FACTORS, "resolution": FULL, "units": ["nm"] * 3}, {}),
        ({"pixelResolution": nm(LEVEL)}, {"downsamplingFactors": FACTORS, "resolution": FULL}, {}),
        ({"resolution": LEVEL, "units": ["nm"] * 3, "axes": ["x", "y", "z"]},
         {"downsamplingFactors": FACTORS, "resolution": FULL}, {}),
        ({"pixelResolution": nm(LEVEL), "downsamplingFactors": FACTORS[1]},
         {"pixelResolution": nm(FULL)}, {}),
        # where the group does not say it, the first level does
        ({"pixelResolution": nm(LEVEL)}, {"scales": FACTORS}, {"pixelResolution": nm(FULL)}),
        ({"pixelResolution": nm(LEVEL)}, {"downsamplingFactors": FACTORS}, {"resolution": FULL}),
    ],
    ids=str,
)  # fmt: skip
def test_a_level_with_its_own_resolution_is_not_scaled_again(own: Any, group: Any, s0: Any) -> None:
    level = node(own, ancestors=(group, {}), first_attributes=s0)
    listed = isinstance(own.get("pixelResolution"), list)  # Neuroglancer knows no such
    for convention in (None,) if listed else (None, "neuroglancer"):
        axes = geometry_of(level, convention).axes
        assert [axis.scale for axis in axes] == [8, 13.5, 80]
        assert [axis.translation for axis in axes] == [2, 4.5, 20]
        assert {axis.unit for axis in axes} == {"nm"}


def test_a_pyramid_that_begins_at_s3() -> None:
    document = json.loads((REAL / "02-openorganelle-fibsem-array-s3.json").read_text())
    said = document.pop("transform")
    group = {"pixelResolution": nm([4.0, 4.0, 3.24]), "scales": [[2**k] * 3 for k in range(4)]}
    level = node(document, path=("em", "s3"), dimensions=(1550, 125, 1500), ancestors=(group,))
    axes = geometry_of(level).axes
    assert [axis.scale for axis in axes] == said["scale"][::-1]
    assert [axis.translation for axis in axes] == pytest.approx(said["translate"][::-1])


@pytest.mark.parametrize("k", range(6))
def test_a_transform_that_stands_on_the_group_only(k: int) -> None:
    group = json.loads((REAL / "01-openorganelle-jrc_hela2-group.json").read_text())
    said = group["multiscales"][0]["datasets"][k]["transform"]
    own = {"pixelResolution": nm(said["scale"][::-1])}
    above = json.loads(json.dumps(group).replace('"path": "s', '"path": "em/s'))
    groups: Any
    for groups in ((group, {}), ({}, above)):
        found = geometry_of(node(own, path=("em", f"s{k}"), ancestors=groups))
        assert found.convention == "cosem"
        assert [axis.name for axis in found.axes] == ["x", "y", "z"]
        assert [axis.scale for axis in found.axes] == said["scale"][::-1]
        assert [axis.translation for axis in found.axes] == said["translate"][::-1]
    assert geometry_of(node({}, path=("s9",), ancestors=(group,))).convention == "neuroglancer"


@pytest.mark.parametrize("own", [{}, {"pixelResolution": nm(LEVEL)}], ids=str)
def test_render_says_where_in_its_stack_a_pyramid_begins(own: Any) -> None:
    group = {
        "axes": ["x", "y", "z"], "ordering": "F", "units": ["nm"] * 3, "scales": FACTORS,
        "pixelResolution": nm(FULL), "translate": [-10, 20, 1],
    }  # fmt: skip
    for name, first, scale in (("s0", [-40, 90, 40], FULL), ("s1", [-38, 94.5, 60], LEVEL)):
        given = own if name == "s1" else {}
        found = geometry_of(node(given, path=("stack", name), ancestors=(group,)))
        assert found.convention == "render"
        assert [axis.translation for axis in found.axes] == first
        assert [axis.scale for axis in found.axes] == scale
        assert {axis.unit for axis in found.axes} == {"nm"}
    # a dataset alone has it itself
    alone = geometry_of(node({**group, "scales": FACTORS[:1]}, path=("mask",)))
    assert [axis.translation for axis in alone.axes] == [-40, 90, 40]
    assert set(other_attributes({**group, "note": [1, 2, 3]}, alone)) == {"ordering", "note"}
    # where levels have a transform, it is absolute
    transform = {"axes": ["x", "y", "z"], "scale": [1, 1, 1], "ordering": "F"}
    assert geometry_of(node({"transform": transform}, ancestors=(group,))).convention == "cosem"
    without = {key: value for key, value in group.items() if key != "scales"}
    assert geometry_of(node({}, ancestors=(without,))).convention == "neuroglancer"


@pytest.mark.parametrize("more", [{}, {"units": ["nm", "um", "mm"]}, {"unit": "nm"}], ids=str)
def test_lists_of_gunpowder_are_those_of_the_last_axes_in_c_order(more: dict[str, Any]) -> None:
    """Shorter lists are those of the last axes of the array, as of affinities.

    gunpowder at v1.4.0, ``ZarrSource``: it takes as many axes of space as ``resolution`` has, from
    the end; in N5 the lists are reversed.
    """
    own = {"resolution": [4, 5, 40], "offset": [8, 0, 100], **more}
    found = geometry_of(node(own, path=("affs",), dimensions=(11, 7, 5, 3)))
    assert [(a.scale, a.translation) for a in found.axes] == [(4, 8), (5, 0), (40, 100), (1, 0)]
    units = more.get("units", [more.get("unit")] * 3)
    assert [a.unit for a in found.axes] == [*units, None]
    left = other_attributes({**own, "note": [1, 2]}, found)
    assert {key: left[key] for key in left if key != "unit"} == {"note": [1, 2]}
    del own["offset"]
    found = geometry_of(node(own, path=("affs",), dimensions=(11, 7, 5, 3)))
    assert [a.translation for a in found.axes] == [0] * 4


def test_shorter_lists_of_levels() -> None:
    """A level whose list is the factors times that of ``s0`` has its own, as with all axes."""
    first: dict[str, Any] = {"resolution": [4, 5]}
    for own, by in (([8, 15], [2, 3, 1]), ([4, 5], [2, 3])):
        level = node(
            {"resolution": own, "downsamplingFactors": by}, path=("g", "s1"), dimensions=(5, 3, 3),
            ancestors=({"resolution": [4, 5]},) if own == [8, 15] else (),
            first_level=(11, 7, 3), first_attributes=first,
        )  # fmt: skip
        found = geometry_of(level)
        assert [(a.scale, a.translation) for a in found.axes] == [(8, 2), (15, 5), (1, 0)]


@pytest.mark.parametrize(
    ("axes", "names"),
    [
        ("cxyt", ("c", "x", "y", "t")),  # N5 order
        ("zyxc", ("z", "y", "x", "c")),
        ("xyz", None), ("xxyz", None), ("XYZC", None), ("xyzq", None), ("x, y", None),
    ],
)  # fmt: skip
def test_axes_of_ilastik_are_letters_in_n5_order(axes: str, names: Any) -> None:
    """ilastik at 25d4d67, ``OpStreamingH5N5Reader``: it reverses the text for the shape in C order.

    It changes upper case, too; but tifffile writes such text in C order.
    """
    found = geometry_of(node({"axes": axes}, path=("data",), dimensions=(2, 3, 5, 7)))
    assert (found and tuple(a.name for a in found.axes)) == names
    if names:
        assert {a.type for a in found.axes if a.name in "ct"} <= {"channel", "time"}
        assert other_attributes({"axes": axes, "x": 1}, found) == {"x": 1}
        scaled = {"axes": axes, "resolution": [1, 2, 3, 4]}
        found = geometry_of(node(scaled, path=("data",), dimensions=(2, 3, 5, 7)))
        assert [(a.name, a.scale) for a in found.axes] == [*zip(names, [1, 2, 3, 4], strict=True)]


def test_what_funlib_states_is_not_shown_as_attributes() -> None:
    given: Any = {"axis_names": ["z", "y", "x"], "units": ["nm", "um", ""], **FUNLIB}
    found = geometry_of(node(given, path=("raw",)))
    assert found.convention == "funlib"
    assert other_attributes({**given, "note": 1}, found) == {"note": 1}


@pytest.mark.parametrize("n", [2, 3])
def test_channels_of_funlib_have_no_size(n: int) -> None:
    given: dict[str, Any] = {
        "axis_names": ["c^", "y", "x"], "units": ["px", "nm", "um"][-n:],
        "voxel_size": [9, 5, 4][-n:], "offset": [9, 2, 1][-n:],
    }  # fmt: skip
    found = geometry_of(node(given))
    assert [(a.name, a.type, a.scale, a.translation, a.unit) for a in found.axes] == [
        ("x", "space", 4, 1, "um"), ("y", "space", 5, 2, "nm"), ("c", "channel", 1, 0, None),
    ]  # fmt: skip
    assert found.is_placed == (True, True, False)
    assert other_attributes(given, found) == {}
    if n == 2:  # channels come first
        del given["axis_names"]
        assert [a.scale for a in geometry_of(node(given)).axes] == [4, 5, 1]


@pytest.mark.parametrize("size", ["voxel_size", "resolution"])
@pytest.mark.parametrize("names", [["sample^", "channel^", "t", "y", "x"], None])
def test_types_of_funlib_say_which_axes_have_a_size(size: str, names: list[str] | None) -> None:
    """The values are funlib.persistence's, ``tests/fixtures/metadatas/default.json``.

    Its ``test_metadata.py`` has ``resolution`` as the name of ``voxel_size``, too.
    """
    given: dict[str, Any] = {
        "offset": [100, 200, 400], size: [1, 2, 3], "units": ["nm", "nm", "nm"],
        "types": ["sample", "channel", "time", "space", "space"],
        **({} if names is None else {"axis_names": names}),
    }  # fmt: skip
    found = geometry_of(node(given, dimensions=(100, 100, 100, 2, 10)))
    assert [(a.type, a.scale, a.translation, a.unit) for a in found.axes] == [
        ("space", 3, 400, "nm"), ("space", 2, 200, "nm"), ("time", 1, 100, "nm"),
        ("channel", 1, 0, None), ("", 1, 0, None),
    ]  # fmt: skip
    if names is not None:
        assert [a.name for a in found.axes] == ["x", "y", "t", "channel", "sample"]
    assert found.convention == "funlib"
    assert other_attributes(given, found) == {}


def test_channels_of_funlib_may_come_last() -> None:
    """``MetaData.interleave_physical`` of funlib.persistence: by types, wherever the axis is."""
    for how in ({"types": ["space", "space", "channel"]}, {"axis_names": ["y", "x", "c^"]}):
        found = geometry_of(node({"voxel_size": [5, 4], "offset": [2, 1], **how}))
        assert [(a.scale, a.translation) for a in found.axes] == [(1, 0), (4, 1), (5, 2)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"voxel_size": [1, 2, 3, 4]}, {"voxel_size": ["1", "2", "3"]},
        {"voxel_size": [1, 2, 3], "offset": [1, 2]}, {"voxel_size": [1, 2, 3], "offset": 5},
        {"voxel_size": [1, 2], "axis_names": ["z", "y", "x"]},
        {"voxel_size": [1, 2, 3], "units": ["nm"]},
    ],
    ids=str,
)  # fmt: skip
def test_senseless_attributes_of_funlib_are_a_problem(wrong: Any) -> None:
    found = find_geometry(node(wrong))
    assert found.geometry is None
    assert re.search(r"(voxel_size|offset|units): expected \d values", found.problems[0])
    assert geometry_of(node({"voxel_size": "large"})) is None


def test_fused_volumes_begin_at_their_bounding_box() -> None:
    """``SparkAffineFusion`` adds ``Boundingbox_min`` to positions in the grid of the output.

    It has divided z of the world by ``AnisotropyFactor``, as ``CreateFusionContainer`` the box.
    Levels have ``downsamplingFactors`` to full resolution (``setupMultiResolutionPyramid``).
    """
    fusion: dict[str, Any] = {
        "InputXML": "file:/data/dataset.xml", "NumTimepoints": 1, "NumChannels": 2,
        "Boundingbox_min": [-20, 5, 7], "Boundingbox_max": [100, 90, 50],
        "PreserveAnisotropy": True, "AnisotropyFactor": 2.5, "DataType": "uint16",
        "BlockSize": [128, 128, 128], "FusionFormat": "N5",
    }  # fmt: skip
    above: Any = ({}, {"Bigstitcher-Spark": fusion})
    for name, by, scale, starts in (
        ("s0", [1, 1, 1], [1, 1, 2.5], [-20, 5, 17.5]),
        ("s1", [2, 2, 1], [2, 2, 2.5], [-19.5, 5.5, 17.5]),
    ):
        level = node({"downsamplingFactors": by}, path=("ch1tp0", name), ancestors=above)
        axes = geometry_of(level).axes
        assert [axis.scale for axis in axes] == scale
        assert [axis.translation for axis in axes] == starts
        assert {axis.unit for axis in axes} == {None}
    isotropic = {k: v for k, v in fusion.items() if k != "AnisotropyFactor"}
    above = ({}, {"Bigstitcher-Spark": {**isotropic, "PreserveAnisotropy": False}})
    level = node({}, path=("ch1tp0", "s0"), ancestors=above)
    assert [axis.translation for axis in geometry_of(level).axes] == [-20, 5, 7]
    own = node({"resolution": [3, 2, 1]}, path=("ch1tp0", "s0"), ancestors=above)
    assert [axis.scale for axis in geometry_of(own).axes] == [3, 2, 1]
    for_bdv = node({}, path=("setup0", "timepoint0", "s0"), ancestors=above)
    assert geometry_of(for_bdv).convention == "bdv"
    assert geometry_of(node({}, path=("s0",), ancestors=above[1:])) is None
    for wrong in ({"Boundingbox_min": [1]}, {"AnisotropyFactor": "2"}):
        above = ({}, {"Bigstitcher-Spark": fusion | wrong})
        found = find_geometry(node({}, path=("ch1tp0", "s0"), ancestors=above))
        assert f"Bigstitcher-Spark/{next(iter(wrong))}: expected" in found.problems[0]


def test_a_convention_that_is_only_read_is_not_written() -> None:
    with pytest.raises(N5UnrepresentableError, match=r"expected one of cosem, .*, got 'paintera'"):
        describe_axes("paintera", [], "s0")


def test_levels_are_removed_from_the_images_that_list_them() -> None:
    """What is no image stays as it is, and an image without any level left goes."""
    odd: list[Any] = [5, {"datasets": "s1"}]
    attributes: dict[str, Any] = {
        "name": "em",
        "multiscales": [*odd, {"datasets": [{"path": "s1"}]},
                        {"datasets": [{"path": "s0"}, {"path": "s1"}]}],
    }  # fmt: skip
    kept = remove_levels(attributes, ["s1"])
    assert kept == {"name": "em", "multiscales": [*odd, {"datasets": [{"path": "s0"}]}]}
    gone = remove_levels({"multiscales": [{"datasets": [{"path": "s1"}]}]}, ["s1"])
    assert gone == {}


X_Y = {"pixelWidth": 0.25, "pixelHeight": 0.5, "pixelDepth": 1.5}


def counts(c: int | None = None, z: int | None = None, t: int | None = None) -> dict[str, Any]:
    given = {"numChannels": c, "numSlices": z, "numFrames": t}
    return {key: count for key, count in given.items() if count is not None}


@pytest.mark.parametrize(
    ("dimensions", "sizes", "names"),
    [
        ((7, 5), counts(1, 1, 1), "xy"),
        ((7, 5), {}, "xy"),
        # n5-ij leaves out singletons
        ((7, 5, 3), counts(3, 1, 1), "xyc"),
        ((7, 5, 3), counts(1, 3, 1), "xyz"),
        ((7, 5, 3), counts(z=1, t=3), "xyt"),
        ((7, 5, 3), counts(z=3), "xyz"),
        ((7, 5, 2, 3), counts(2, 3, 1), "xycz"),
        ((7, 5, 2, 3), counts(z=3, t=1), "xycz"),
        ((7, 5, 3, 11), counts(1, 3, 11), "xyzt"),
        ((7, 5, 1, 3), counts(1, 3, 1), "xycz"),
        ((7, 5, 4), counts(1, 3, 1), "xyz"),  # resized
        # VirtualCell has five axes, and counts the time points of the whole simulation
        ((7, 5, 2, 3, 11), counts(2, 3, 11), "xyczt"),
        ((7, 5, 1, 3, 1), counts(1, 3, 1), "xyczt"),
        ((7, 5, 2, 1, 11), counts(2, 1, 101), "xyczt"),
        ((7, 5, 2, 3, 11), {}, "xyczt"),
        # which axis is which, nothing says
        ((7, 5, 3), {}, None),
        ((7, 5, 1), counts(1, 1, 1), None),
        ((7, 5, 3), counts(2, 3, 1), None),
        ((7, 5, 3, 2), counts(z=3, t=1), None),
        ((7, 5, 2, 3, 11, 13), counts(2, 3, 11), None),
    ],
)
def test_axes_of_imagej_are_those_of_their_sizes(
    dimensions: tuple[int, ...], sizes: dict[str, Any], names: str | None
) -> None:
    found = find_geometry(node({**X_Y, **sizes, "unit": "um"}, dimensions=dimensions))
    if names is None:
        assert found.geometry is None
        (problem,) = found.problems
        assert "numChannels, numSlices, numFrames: expected the sizes" in problem
        return
    assert found.geometry is not None
    assert found.problems == ()
    scale = {"x": 0.25, "y": 0.5, "z": 1.5}
    assert [(axis.name, axis.scale, axis.unit) for axis in found.geometry.axes] == [
        (name, scale.get(name, 1), "um" if name in scale else None) for name in names
    ]


@pytest.mark.parametrize(
    ("key", "unit"), [("pixelUnit", "micron"), ("unit", "uM"), ("unit", "\u00b5m")]
)
def test_imagej_has_one_unit_of_space_and_seconds(key: str, unit: str) -> None:
    """n5-ij's ``N5ImagePlusMetadata.buildAxes`` has ``sec``; ``fps`` is the speed of showing."""
    own: dict[str, Any] = {**X_Y, key: unit, "zOrigin": 4.0, "frameInterval": 0.25, "fps": 7.0}
    found = geometry_of(node({**own, **counts(1, 5, 3)}, dimensions=(11, 7, 5, 3)))
    assert [(a.name, a.scale, a.translation, a.unit) for a in found.axes] == [
        ("x", 0.25, 0, unit), ("y", 0.5, 0, unit), ("z", 1.5, 4, unit), ("t", 0.25, 0, "sec"),
    ]  # fmt: skip
    assert other_attributes({**own, "title": "a"}, found) == {"title": "a"}
    still = geometry_of(node({**own, "frameInterval": 0.0, **counts(1, 1, 3)}))
    assert (still.axes[2].scale, still.axes[2].unit) == (1, None)


@pytest.mark.parametrize(
    ("document", "names", "scale", "units"),
    [
        ("37-n5-ij-imagej-5d.json", "xyczt", (0.08850000022125, 0.08850000022125, 1, 1, 1 / 7),
         ("\u00b5m", "\u00b5m", None, "\u00b5m", "sec")),
        ("38-vcell-imagej.json", "xyczt", (0.5, 0.25, 1, 1.5, 1), ("uM", "uM", None, "uM", None)),
    ],
)  # fmt: skip
def test_documents_of_imagej(document: str, names: str, scale: Any, units: Any) -> None:
    own = json.loads((REAL / document).read_text())
    found = find_geometry(node(own, path=("x",), dimensions=tuple(own["dimensions"])))
    assert found.problems == ()
    assert found.geometry is not None
    assert [axis.name for axis in found.geometry.axes] == [*names]
    assert [axis.scale for axis in found.geometry.axes] == pytest.approx(scale, rel=1e-15)
    assert tuple(axis.unit for axis in found.geometry.axes) == units


OTHER = [[1, 0, 0, -1], [0, 1, 0, -2], [0, 0, 1, -3]]
RESOLUTION = {"pixelResolution": nm(FULL), "scales": FACTORS}
OF_AFFINE = [(8, 12), (27, 29), (80, 50)]  # scale and translation: the affine, after the factors
OF_OTHER = [(8, 1), (13.5, 2.5), (80, 17)]


@pytest.mark.parametrize(
    ("own", "channel", "root", "places"),
    [
        ({}, {**RESOLUTION, "affineTransform": AFFINE}, {}, OF_AFFINE),
        ({}, {}, {**RESOLUTION, "affineTransform": AFFINE}, OF_AFFINE),
        ({}, {"affineTransform": AFFINE}, RESOLUTION, OF_AFFINE),
        ({}, RESOLUTION, {"affineTransform": AFFINE}, OF_AFFINE),
        # the nearest counts
        ({}, {"affineTransform": OTHER}, {**RESOLUTION, "affineTransform": AFFINE}, OF_OTHER),
        ({"affineTransform": OTHER}, {**RESOLUTION, "affineTransform": AFFINE}, {}, OF_OTHER),
        ({**RESOLUTION, "affineTransform": OTHER, "downsamplingFactors": FACTORS[1]},
         {"affineTransform": AFFINE}, RESOLUTION, OF_OTHER),
    ],
)  # fmt: skip
def test_an_affine_transform_of_a_group_is_a_default(
    own: Any, channel: Any, root: Any, places: Any
) -> None:
    """n5-viewer ``N5ExportMetadataReader.getAttribute`` (00e0c19f): the channel's, else the root's.

    ``N5MultiscaleSource`` (290b0360) applies it after the resolution.
    """
    found = find_geometry(node(own, path=("c0", "s1"), ancestors=(channel, root)))
    assert found.problems == ()
    assert found.geometry is not None
    assert found.geometry.convention == "n5viewer"
    assert [(axis.scale, axis.translation) for axis in found.geometry.axes] == places
    assert {axis.unit for axis in found.geometry.axes} == {"nm"}


def test_an_affine_transform_of_a_group_moves_the_axes_of_space_only() -> None:
    axes = geometry_of(
        node({}, path=("c0", "s0"), dimensions=(7, 5, 3, 2), ancestors=(MOVED,))
    ).axes
    assert [(axis.scale, axis.translation) for axis in axes] == [(4, 10), (9, 20), (40, 30), (1, 0)]


@pytest.mark.parametrize(
    ("own", "group", "convention", "problem"),
    [
        # n5-universe reads that of the dataset alone
        ({"pixelResolution": nm(FULL)}, {"affineTransform": AFFINE}, "n5viewer", "not applied"),
        ({}, {"scales": FACTORS, "affineTransform": AFFINE}, "factors", "not applied"),
        ({}, {"affineTransform": AFFINE}, None, "not applied"),
        ({"affineTransform": AFFINE}, {}, None, "not applied"),
        ({}, json.loads((REAL / "39-n5viewer-root-group.json").read_text()), None, "mix axes"),
        ({}, {**RESOLUTION, "affineTransform": "x"}, None, "mix axes"),
    ],
)  # fmt: skip
def test_an_affine_transform_that_is_not_applied_is_a_problem(
    own: Any, group: Any, convention: str | None, problem: str
) -> None:
    found = find_geometry(node(own, ancestors=(group,)))
    assert (found.geometry and found.geometry.convention) == convention
    assert len(found.problems) == 1
    assert "affineTransform: expected" in found.problems[0]
    assert problem in found.problems[0]


def test_a_dataset_of_another_program_has_no_affine_transform_of_n5_viewer() -> None:
    group = {**RESOLUTION, "affineTransform": AFFINE}
    for own in (
        {"transform": {"axes": ["x", "y", "z"], "scale": [1, 2, 3], "order": "F"}},
        {"resolution": [1, 2, 3], "units": ["um"] * 3, "axes": ["x", "y", "z"]},
    ):
        found = find_geometry(node(own, path=("c0", "s0"), ancestors=(group,)))
        assert found.problems == ()
        assert found.geometry is not None
        assert [axis.scale for axis in found.geometry.axes] == [1, 2, 3]
        assert {axis.translation for axis in found.geometry.axes} == {0}
