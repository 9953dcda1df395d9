"""Axes name and place the dimensions of datasets, and become coordinates."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numcodecs.vlen import VLenUTF8

from n5zarr.container import axes, coords_view
from n5zarr.container.axes import (
    GroupLayout,
    Placed,
    placed_by_shape,
    positions,
    read_layout,
    read_placed,
    read_placed_by_each,
)
from n5zarr.container.coords_view import Coordinate, CoordsView
from n5zarr.conventions.model import Axis, SetupView
from n5zarr.format.attributes import GroupAttributes
from n5zarr.zarr_view.dataset_view import DatasetView
from tests.unit.container.answers import DATASET, FULL_BLOCK, Answers, Doc, presented


def of(dimensions: Any = None, **members: Any) -> Doc:
    return DATASET | ({} if dimensions is None else {"dimensions": dimensions}) | members


def line(dim: str, n: int) -> Doc:
    document = {"dataType": "float64", "compression": {"type": "raw"}}
    return document | {"blockSize": [n], "dimensions": [n], "_ARRAY_DIMENSIONS": [dim]}


def with_resolution(*resolution: float) -> Doc:
    return {"pixelResolution": {"unit": "um", "dimensions": list(resolution)}}


NG: Doc = {"axes": ["x", "y"], "units": ["nm", "um"], "resolution": [4, 0.5]}
# the conventions of tensorstore, n5-viewer and xarray, and levels that only shapes relate
CONTAINER: Doc = {
    "attributes.json": {"n5": "4.0.0"},
    "ng/attributes.json": of(u=1, **NG),
    "v/attributes.json": {"u": 1},
    "v/s0/attributes.json": of([10, 6], **with_resolution(0.25, 1.5)),
    "v/s1/attributes.json": of(downsamplingFactors=[2, 2], **with_resolution(0.25, 1.5)),
    "x/attributes.json": {"coordinates": "t", "multiscales": 1},
    "x/data/attributes.json": of(_ARRAY_DIMENSIONS=["y", "x"]),
    "x/data/0/0": FULL_BLOCK,
    "x/x/attributes.json": line("x", 5),
    "x/y/attributes.json": line("y", 7),  # of another size than the data
    "b/s0/attributes.json": of([10, 6]),
    "b/s1/attributes.json": of(),
    "b/s2/attributes.json": of([3, 2], axes=["x", "y"]),
    "plain/attributes.json": of(),
}


def placed_at(path: str, values: Doc = CONTAINER, **options: Any) -> Placed:
    answers, nodes = Answers(**values), presented(**options).nodes
    view = answers(nodes.node(path))
    assert isinstance(view, DatasetView)
    return answers(read_placed(nodes, path, view))


def layout_of(path: str, values: Doc = CONTAINER, **options: Any) -> GroupLayout:
    answers, nodes = Answers(**values), presented().nodes
    group = answers(nodes.node(path))
    assert isinstance(group, GroupAttributes)
    return answers(read_layout(nodes, path, group, **options))


def steps_of(placed: Placed) -> dict[str, tuple[float, float, str | None]]:
    return {dim: (a.scale, a.translation, a.unit) for dim, a in placed.axes.items()}


# n5-viewer: scale = resolution * factors, translation = resolution * (factors - 1) / 2
@pytest.mark.parametrize(
    ("path", "dims", "steps", "attributes", "is_stated", "made_up"),
    [
        ("ng", "yx", {"y": (0.5, 0, "um"), "x": (4, 0, "nm")}, {"u": 1}, True, ""),
        ("v/s0", "yx", {"y": (1.5, 0, "um"), "x": (0.25, 0, "um")}, {}, True, ""),
        ("v/s1", "yx", {"y": (3, 0.75, "um"), "x": (0.5, 0.125, "um")}, {}, True, ""),
        ("x/data", "yx", {}, {}, False, ""),
        ("plain", ["dim_0", "dim_1"], {}, {}, False, ["dim_0", "dim_1"]),
        ("b/s1", ["dim_0", "dim_1"], {"dim_0": (2, 0, None), "dim_1": (2, 0, None)}, {}, False,
         ["dim_0", "dim_1"]),
    ],
)  # fmt: skip
def test_a_dataset_is_placed_by_its_convention(
    path: str, dims: Any, steps: Any, attributes: Any, made_up: Any, *, is_stated: bool
) -> None:
    placed = placed_at(path)
    assert (placed.dims, steps_of(placed)) == (tuple(dims), steps)
    assert (placed.attributes, placed.is_stated) == (attributes, is_stated)
    assert placed.made_up == {*made_up}
    assert placed.sizes == dict(zip(dims, placed.view.shape, strict=True))
    assert (placed.path, placed.problems) == (path, ())


def test_axes_in_n5_order_come_in_n5_order() -> None:
    placed = placed_at("v/s1", axis_order="F")
    assert (placed.dims, [*placed.axes]) == (("x", "y"), ["x", "y"])
    assert placed.sizes == {"x": 5, "y": 3}
    assert steps_of(placed)["x"] == (0.5, 0.125, "um")


@pytest.mark.parametrize(
    ("path", "members", "name"),
    [
        ("em/raw", {}, "raw"), ("", {}, "data"), ("em/x", {"axes": ["x", "y"]}, "x_"),
        ("em/x", {"axes": ["x"], "dimensions": [5], "blockSize": [3]}, "x"),
    ],
)  # fmt: skip
def test_a_variable_has_the_last_name_of_its_path(path: str, members: Doc, name: str) -> None:
    key = f"{path}/attributes.json".lstrip("/")
    assert placed_at(path, {key: of(**members)}).name == name


def test_attributes_that_are_no_lists_are_the_users() -> None:
    members = {"units": "nm", "_ARRAY_DIMENSIONS": 3, "u": [1]}
    assert placed_at("a", {"a/attributes.json": of(**members)}).attributes == {
        "units": "nm", "_ARRAY_DIMENSIONS": 3, "u": [1]
    }  # fmt: skip
    assert placed_at("a", {"a/attributes.json": of(units=["nm"], axes=["x"])}).attributes == {}


def test_positions_beside_a_dataset_are_its_coordinates_if_they_fit() -> None:
    placed = placed_at("x/data")
    assert {dim: c.path for dim, c in placed.coordinates.items()} == {"x": "x/x"}
    layout = layout_of("x")
    assert {n: [*p.coordinates] for n, p in layout.datasets.items()} == {
        "data": ["x"], "x": [], "y": []
    }  # fmt: skip
    values = {"g/a/attributes.json": of(**NG), "g/x/attributes.json": line("x", 5)}
    assert placed_at("g/a", values).coordinates["x"].path == "g/x"
    # under a name that n5zarr made up, nobody stores positions
    values = {"a/attributes.json": of(), "dim_0/attributes.json": line("dim_0", 3)}
    assert placed_at("a", values).coordinates == {}
    # an image that is named like an axis is none
    values = {"a/attributes.json": of(**NG), "x/attributes.json": of(**NG)}
    assert placed_at("a", values).coordinates == {}


def test_recorded_names_of_dimensions_come_before_those_of_attributes() -> None:
    record: Doc = {"zarr": {"dimension_names": ["i", None]}}
    placed = placed_at("a", {"a/attributes.json": of(axes=["x", "y"], **record)})
    assert (placed.dims, [*placed.made_up]) == (("dim_0", "i"), ["dim_0"])
    # positions are given to the axes of the names that are recorded
    placed = placed_at("a", {"a/attributes.json": of(**NG, **record)})
    assert placed.view.dimension_names == (None, "i")


def test_each_convention_is_tried_alone() -> None:
    answers, nodes = Answers(**CONTAINER), presented().nodes
    view = answers(nodes.node("v/s1"))
    assert isinstance(view, DatasetView)
    found = answers(read_placed_by_each(nodes, "v/s1", view, [None, "n5viewer", "cosem"]))
    assert {name: bool(p.axes) for name, p in found.items()} == {
        None: True, "n5viewer": True, "cosem": False
    }  # fmt: skip
    assert answers.asked.count(answers.asked[0]) == 1


def test_a_dataset_that_says_nothing_needs_no_other_document() -> None:
    answers, nodes = Answers(**CONTAINER), presented().nodes
    view = answers(nodes.node("plain"))
    assert isinstance(view, DatasetView)
    answers.asked.clear()
    without = Answers(**CONTAINER | {"attributes.json": {}})
    without(read_placed(nodes, "plain", view))
    assert [str(r) for r in without.asked] == [
        "Get(key='attributes.json', settled=False, part=None)"
    ]


def test_a_view_of_bigdataviewer_is_asked_for_where_the_path_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setup = SetupView(voxel_size=(0.5, 3.0, 7.0), unit="um", registration=None)
    asked: list[str] = []

    def find(path: str) -> Any:
        asked.append(path)
        yield []
        return setup

    class Known:
        def found(self) -> Any:
            return find

    monkeypatch.setattr(axes, "_FIND_VIEW", Known())
    image = of([5, 3, 2], blockSize=[3, 2, 2])
    values = {"setup0/timepoint0/s0/attributes.json": image, "a/attributes.json": of(**NG)}
    placed = placed_at("setup0/timepoint0/s0", values)
    assert steps_of(placed) == {"z": (7, 0, "um"), "y": (3, 0, "um"), "x": (0.5, 0, "um")}
    placed_at("a", values)
    layout = layout_of("setup0/timepoint0", values)
    assert steps_of(layout.datasets["s0"])["x"] == (0.5, 0, "um")
    assert asked == ["setup0/timepoint0/s0"] * 2
    # what is known need not be searched for
    answers, nodes = Answers(**values), presented().nodes
    view = answers(nodes.node("setup0/timepoint0/s0"))
    assert isinstance(view, DatasetView)
    answers(read_placed(nodes, "setup0/timepoint0/s0", view, setup=setup))
    assert len(asked) == 2
    # a rotation is an attribute
    affine = (0.0, 1.0, 0.0, 5.0, 2.0, 0.0, 0.0, 7.0, 0.0, 0.0, 3.0, 0.0)
    turned = replace(setup, registration=affine)
    placed = answers(read_placed(nodes, "setup0/timepoint0/s0", view, setup=turned))
    registration: Any = placed.attributes["registration"]
    rest: Any = np.reshape(registration, (3, 4))
    voxel = dict(zip("xyz", (2, 3, 5), strict=True))
    position = {d: a.scale * voxel[d] + a.translation for d, a in placed.axes.items()}
    world = np.reshape(affine, (3, 4)) @ [*voxel.values(), 1]
    np.testing.assert_allclose(rest @ [position["x"], position["y"], position["z"], 1], world)


# ---------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("path", "datasets", "groups", "agrees", "by_xarray"),
    [
        ("", ["ng", "plain"], ["b", "v", "x"], True, False),
        ("v", ["s0", "s1"], [], False, False),
        ("x", ["data", "x", "y"], [], False, False),
    ],
)
def test_a_group_is_laid_out(
    path: str, datasets: list[str], groups: list[str], *, agrees: bool, by_xarray: bool
) -> None:
    layout = layout_of(path)
    assert (list(layout.datasets), list(layout.groups)) == (datasets, groups)
    assert (layout.agrees, layout.is_written_by_xarray) == (agrees, by_xarray)
    assert layout.path == path


TWO: Doc = {"a/attributes.json": of(**NG), "b/attributes.json": of(**NG)}


@pytest.mark.parametrize(
    ("other", "agrees"),
    [
        (of(**NG), True), (of(**NG | {"resolution": [5, 0.5]}), False), (of([5, 4], **NG), False),
        (line("x", 5), True), (line("t", 5), True),
    ],
)  # fmt: skip
def test_datasets_agree_if_their_dimensions_do(other: Doc, *, agrees: bool) -> None:
    assert layout_of("", TWO | {"b/attributes.json": other}).agrees is agrees


def test_a_dataset_named_like_a_dimension_must_be_its_coordinate() -> None:
    values = {"a/attributes.json": of(**NG), "attributes.json": {"coordinates": "x"}}
    assert layout_of("", values | {"x/attributes.json": line("x", 5)}).is_written_by_xarray
    assert not layout_of("", values | {"x/attributes.json": line("t", 5)}).agrees
    # with the positions stored, others need not agree
    third = {"b/attributes.json": of(**NG | {"resolution": [5, 0.5]})}
    assert layout_of("", values | third | {"x/attributes.json": line("x", 5)}).agrees
    assert [*layout_of("", values | {"x/attributes.json": line("x", 5)}).axes] == ["y"]
    assert layout_of("", values).axes["x"] == (
        Axis(name="x", scale=4.0, unit="nm", type="space"), 5
    )  # fmt: skip


@pytest.mark.parametrize(
    ("group", "dataset", "expected"),
    [
        ({}, {}, False), ({"coordinates": "t"}, {}, True), ({"coordinates": ["t"]}, {}, False),
        ({}, {"coordinates": "t"}, True), ({}, {"coordinates": 1}, False),
        ({}, {"_ARRAY_DIMENSIONS": ["y", "x"]}, True),
    ],
)  # fmt: skip
def test_what_tells_that_xarray_wrote_a_group(group: Doc, dataset: Doc, *, expected: bool) -> None:
    values = {"attributes.json": group, "a/attributes.json": of(**dataset)}
    assert layout_of("", values).is_written_by_xarray is expected
    with_positions = values | {"x/attributes.json": line("x", 5)}
    named = {"a/attributes.json": of(**dataset, axes=["x", "y"])}
    assert layout_of("", with_positions | named).is_written_by_xarray


def test_only_some_children_of_a_group_are_read_beside_its_levels() -> None:
    values = CONTAINER | {"v/raw/attributes.json": of(), "v/big/attributes.json": of()}
    values |= {"v/attributes.json": {"multiscales": [{"datasets": [{"path": "big"}]}]}}
    assert [*layout_of("v", values, only=["raw"]).datasets] == ["big", "raw", "s0", "s1"]
    assert [*layout_of("v", values, only=[]).datasets] == ["big", "s0", "s1"]
    assert layout_of("v", convention="cosem").datasets["s1"].axes == {}


def test_broken_children_are_listed() -> None:
    layout = layout_of("", CONTAINER | {"bad/attributes.json": b"{"})
    assert [broken.error.kind for broken in layout.broken] == ["json"]


@pytest.mark.parametrize(
    ("path", "attributes", "left"),
    [
        ("v", {"multiscales": 1, "u": 1}, ["u"]),
        ("v", {"axes": 1, "units": 1, "resolution": 1, "downsamplingFactors": 1, "u": 1}, ["u"]),
        ("v", {"axes": 1, "units": 1, "resolution": 1, "downsamplingFactors": 1}, []),
        ("v", {"axes": 1, "units": 1, "u": 1}, ["axes", "units", "u"]),
        ("b", {"multiscales": 1, "u": 1}, ["multiscales", "u"]),
        ("setup1", {"downsamplingFactors": 1, "dataType": 1, "u": 1}, ["u"]),
        ("v", {"dataType": 1}, ["dataType"]),
    ],
)
def test_attributes_about_levels_are_left_out(path: str, attributes: Doc, left: list[str]) -> None:
    assert [
        *layout_of(path, CONTAINER | {f"{path}/attributes.json": attributes}).attributes
    ] == left


def test_the_finest_level_is_counted_in_elements_where_others_are() -> None:
    datasets = layout_of("b").datasets
    assert steps_of(datasets["s0"]) == {"dim_0": (1, 0, None), "dim_1": (1, 0, None)}
    assert steps_of(datasets["s1"])["dim_0"] == (2, 0, None)
    named = {"b/s0/attributes.json": of([10, 6], axes=["i", "j"])}
    assert steps_of(layout_of("b", CONTAINER | named).datasets["s0"]) == {
        "j": (1, 0, None), "i": (1, 0, None)
    }  # fmt: skip
    # neither a stated position nor another rank
    stated = {"b/s0/attributes.json": of([10, 6], **NG)}
    assert steps_of(layout_of("b", CONTAINER | stated).datasets["s0"])["x"] == (4, 0, "nm")
    other = {"b/s0/attributes.json": of([10], blockSize=[4])}
    assert layout_of("b", CONTAINER | other).datasets["s0"].axes == {}


def test_a_level_is_placed_by_the_ratio_of_its_shape() -> None:
    first, level = placed_at("ng", {"ng/attributes.json": of([10, 6], **NG)}), placed_at("plain")
    found = placed_by_shape(level, first)
    assert found is not None
    assert {dim: a.scale for dim, a in found.axes.items()} == {"y": 1, "x": 8}
    assert placed_by_shape(placed_at("plain", {"plain/attributes.json": of([4, 9])}), first) is None
    named = placed_at("ng", {"ng/attributes.json": of([3, 2], axes=["i", "j"])})
    of_named = placed_by_shape(named, placed_at("plain"))
    assert of_named is not None
    assert of_named.dims == ("j", "i")


def test_positions_are_scale_times_index_plus_translation() -> None:
    axis = Axis(name="x", scale=0.5, translation=3.0)
    assert positions(axis, 3).tolist() == [3.0, 3.5, 4.0]
    assert positions(axis, 2, start=7).tolist() == [6.5, 7.0]
    assert positions(Axis(name="x", scale=1e308), 3).tolist() == [0, 1e308, np.inf]


# ---------------------------------------------------------------------- coordinates as arrays


@pytest.mark.parametrize(
    ("axis", "size", "unit", "chunks"),
    [
        (Axis(name="x", unit="nm"), 5, "nm", [True, False]),
        (Axis(name="x"), 2**14, None, [True, False]),
        (Axis(name="x"), 2**14 + 1, None, [True, True]),
        (Axis(name="x"), 0, None, [False, False]),
        (Axis(name="x", unit="seconds"), 5, "second", [True, False]),
        (Axis(name="x", unit="days since 1970-01-01"), 5, None, [True, False]),
        (Axis(name="x", labels=("a", "b")), 2, None, [True, False]),
        (Axis(name="x", labels=()), 0, None, [False, False]),
    ],
)
def test_a_coordinate_is_an_array_of_positions(
    axis: Axis, size: int, unit: str | None, chunks: list[bool]
) -> None:
    own = Coordinate("x", axis, size)
    document: Any = own.document()
    assert (document["shape"], document["zarr_format"]) == ([size], 3)
    assert document["dimension_names"] == ["x"]
    assert document["attributes"] == ({"units": unit} if unit else {})
    (chunk,) = document["chunk_grid"]["configuration"]["chunk_shape"]
    assert [own.has_chunk((k,)) for k in (0, 1)] == chunks
    assert own.n_chunks == sum(chunks)
    assert not own.has_chunk((0, 0))
    if axis.labels is None:
        assert (document["data_type"], document["fill_value"], chunk) == ("float64", 0.0, 2**14)
        assert document["codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}]
        assert np.frombuffer(own.chunk(1, 3), "<f8").tolist() == [3, 4, 5]
        assert len(own.chunk(0)) == 8 * 2**14
        assert own.document(7)["chunk_grid"]["configuration"] == {"chunk_shape": [7]}  # type: ignore[index, call-overload]
    else:
        assert (document["data_type"], document["fill_value"], chunk) == ("string", "", size or 1)
        assert document["codecs"] == [{"name": "vlen-utf8"}]
        assert VLenUTF8().decode(own.chunk(0)).tolist() == [*axis.labels]


BY_XARRAY: Doc = {
    "attributes.json": {"coordinates": "t", "u": 1}, "data/attributes.json": of(**NG),
    "data/0/0": FULL_BLOCK, "x/attributes.json": line("x", 5), "sub/attributes.json": {},
}  # fmt: skip
OF_NG = ["ng/zarr.json", "ng/ng/zarr.json", "ng/ng/c/0/0", "ng/x/zarr.json", "ng/x/c/0",
         "ng/y/zarr.json", "ng/y/c/0"]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "path", "names", "keys"),
    [
        (CONTAINER, "", ["b", "ng", "plain", "v", "x", "zarr.json"], None),
        (CONTAINER, "ng", ["ng", "x", "y", "zarr.json"], OF_NG),
        (CONTAINER, "ng/ng", ["c", "zarr.json"], OF_NG[1:3]),
        (CONTAINER, "ng/ng/c", ["0"], OF_NG[2:3]),
        (CONTAINER, "ng/x", ["c", "zarr.json"], OF_NG[3:5]),
        (CONTAINER, "ng/x/c", ["0"], OF_NG[4:5]),
        (CONTAINER, "ng/t", [], []),
        (CONTAINER, "ng/x/d", [], []),
        (CONTAINER, "v", ["s0", "s1", "zarr.json"], None),
        (BY_XARRAY, "", ["data", "sub", "x", "y", "zarr.json"],
         ["zarr.json", "data/zarr.json", "data/c/0/0", "sub/zarr.json", "x/zarr.json",
          "y/zarr.json", "y/c/0"]),
        (BY_XARRAY, "data", ["c", "zarr.json"], ["data/zarr.json", "data/c/0/0"]),
        (BY_XARRAY, "data/c/0", ["0"], ["data/c/0/0"]),
        (BY_XARRAY, "sub", ["zarr.json"], ["sub/zarr.json"]),
        ({"c/attributes.json": of(**NG), "c/0/0": FULL_BLOCK}, "c/c", ["c", "zarr.json"],
         ["c/c/zarr.json", "c/c/c/0/0"]),
    ],
)  # fmt: skip
def test_the_keys_of_a_container_with_coordinates(
    values: Doc, path: str, names: list[str], keys: list[str] | None
) -> None:
    answers = Answers(**values | {"ng/0/0": FULL_BLOCK} if values is CONTAINER else values)
    view = CoordsView(presented())
    assert answers(view.names(path)) == names
    found = [key for flow in view.keys_below(path) for key in answers(flow)]
    assert keys is None or found == keys
    assert answers(view.is_empty(path)) is (not names)
    for key in found:
        assert answers(view.exists(key))
        assert answers(view.read(key)) is not None


@pytest.mark.parametrize(
    "key",
    [
        "ng/ng/c/1/1", "ng/ng/c/0/9", "ng/x/c/1", "ng/x/c/0/0", "ng/t/zarr.json", "ng/README",
        "ng/c/0/0", "ng/zarr.json/c/0", "nothing/zarr.json", "ng/.zgroup", "c/0",
    ],
)  # fmt: skip
def test_other_keys_have_no_value(key: str) -> None:
    answers, view = Answers(**CONTAINER), CoordsView(presented())
    assert not answers(view.exists(key))
    assert answers(view.read(key)) is None


def test_documents_of_groups_and_arrays_with_coordinates() -> None:
    answers, view = Answers(**BY_XARRAY), CoordsView(presented())

    def document(key: str) -> Any:
        return json.loads(bytes(answers(view.read(key)) or b""))

    assert document("zarr.json") == {
        "zarr_format": 3, "node_type": "group", "attributes": {"coordinates": "t", "u": 1}
    }  # fmt: skip
    array = document("data/zarr.json")
    assert (array["dimension_names"], array["attributes"]) == (["y", "x"], {})
    assert document("y/zarr.json")["attributes"] == {"units": "um"}
    # block (0, 0), and the positions of y: its resolution is 0.5
    assert bytes(answers(view.read("data/c/0/0")) or b"") == FULL_BLOCK[12:]
    positions_of_y = np.frombuffer(answers(view.read("y/c/0")) or b"", "<f8")
    assert positions_of_y[:3].tolist() == [0, 0.5, 1]
    found = answers(view.dataset_of("data", 3))
    assert found is not None
    assert (found[0], found[1].shape) == ("data", (3, 5))
    assert answers(view.dataset_of("y", 3)) is None
    alone = Answers(**CONTAINER)
    found = alone(CoordsView(presented()).dataset_of("ng/ng", 3, anew=True, as_blocks=True))
    assert found is not None
    assert found[0] == "ng"


def test_a_group_is_read_again_with_its_document() -> None:
    answers, view = Answers(**BY_XARRAY), CoordsView(presented())
    answers(view.read("zarr.json"))
    assert answers(view.read("new/zarr.json")) is None
    answers.values["new/attributes.json"] = json.dumps(of(**NG)).encode()
    assert answers(view.read("new/zarr.json")) is not None  # others may have created it
    answers.values["x/attributes.json"] = json.dumps(line("x", 7)).encode()
    before = answers(view.read("x/zarr.json"))
    answers(view.read("zarr.json"))
    assert answers(view.read("x/zarr.json")) != before


def test_what_contradicts_is_told_with_the_document() -> None:
    values = {"a/attributes.json": of(axes=["x", "y"], units=["nm"], resolution=[1, 2, 3])}
    answers = Answers(**values)
    answers(CoordsView(presented()).read("a/a/zarr.json"))
    assert any(w.startswith("a: ") and "resolution" in w for w in answers.warnings)


def test_an_axis_that_is_too_long_gets_no_coordinate(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 8 * coords_view.LONGEST_AXIS == 2**30  # bytes
    monkeypatch.setattr(coords_view, "LONGEST_AXIS", 4)
    answers = Answers(**CONTAINER)
    assert answers(CoordsView(presented()).names("ng")) == ["ng", "y", "zarr.json"]
    assert ["'x' gets no coordinate: its 5 positions" in w for w in answers.warnings] == [True]
    monkeypatch.setattr(coords_view, "LONGEST_AXIS", 5)
    assert answers(CoordsView(presented()).names("ng")) == ["ng", "x", "y", "zarr.json"]
    # one with stored positions needs none
    monkeypatch.setattr(coords_view, "LONGEST_AXIS", 1)
    answers = Answers(**BY_XARRAY)
    assert answers(CoordsView(presented()).names("")) == ["data", "sub", "x", "zarr.json"]
    assert ["'y'" in w for w in answers.warnings] == [True]
