"""Every convention, against a truth made by hand from what the generator wrote into each node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from n5zarr.conventions import bdv
from n5zarr.conventions.find import CONVENTIONS, WRITTEN, describe_axes, find_geometry
from n5zarr.conventions.model import Node, axes_of
from n5zarr.conventions.units import is_unit, ratio
from n5zarr.describe import describe

JAVA = Path(__file__).parents[2] / "data" / "java"
CONTAINER = JAVA / "metadata.n5"


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


@pytest.mark.parametrize("truth", TRUTH, ids=lambda line: line["path"])
def test_every_node_is_where_it_was_written_to_be(truth: dict[str, Any]) -> None:
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


# n5-universe takes C-order lists of NGFF for N5 order, and so mislabels the axes
MISREAD = {"ngff-0.4-corder/s0", "ngff-0.4-corder/s1"}


@pytest.mark.parametrize(
    "path",
    [
        line["path"]
        for line in TRUTH
        if UNIVERSE.get(line["path"], {}).get("unit", "pixel") != "pixel"
        and line["path"] not in MISREAD
    ],
)
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


WRONG: list[dict[str, Any]] = [
    {},
    {"transform": 5},
    {"transform": {"axes": ["x"], "scale": [1], "translate": [0]}},
    {"pixelResolution": "big"},
    {"pixelResolution": [1, 2, 3, 4]},
    {"spatialTransform": {"transform": {"type": "affine", "affine": [1, 1, 0, 0] * 3}}},
    {"spatialTransform": {"transform": {"type": "warp"}}},
    {"resolution": [1, 2]},
    {"resolution": ["1", "2", "3"]},
    {"units": ["nm", "nm", "nm"]},
    {"pixelWidth": 1, "pixelUnit": "um", "numSlices": 1},
]


@pytest.mark.parametrize("attributes", WRONG, ids=str)
def test_what_is_misshapen_says_nothing(attributes: dict[str, Any]) -> None:
    assert geometry_of(node(attributes)) is None
    groups: Any = (
        {"multiscales": [5], "ome": 3, "scales": "x", "resolution": [1]},
        {"multiscales": {}},
    )
    assert geometry_of(node(attributes, ancestors=groups)) is None


def test_the_names_of_levels_stand_in_for_factors() -> None:
    geometry = geometry_of(node({"pixelResolution": {"unit": "nm", "dimensions": [4, 4, 40]}}))
    assert geometry is not None
    assert [axis.scale for axis in geometry.axes] == [8, 8, 80]
    assert [axis.translation for axis in geometry.axes] == [2, 2, 20]


def test_a_resolution_of_three_axes_is_that_of_the_first_three() -> None:
    geometry = geometry_of(node({"pixelResolution": [4, 4, 40]}, dimensions=(7, 5, 3, 2)))
    assert geometry is not None
    assert [(axis.name, axis.scale, axis.unit) for axis in geometry.axes] == [
        ("x", 8, "um"),
        ("y", 8, "um"),
        ("z", 80, "um"),
        ("c", 1, None),
    ]


def test_transforms_in_sequence_are_applied_one_after_the_other() -> None:
    spatial = {
        "transform": {
            "type": "sequence",
            "transformations": [
                {"type": "scale", "scale": [2, 3, 4]},
                {"type": "translation", "translation": [1, 1, 1]},
                {"type": "scale_offset", "scale": [10, 10, 10], "offset": [5, 0, 0]},
            ],
        },
        "unit": "mm",
    }
    geometry = geometry_of(node({"spatialTransform": spatial}))
    assert geometry is not None
    assert [axis.scale for axis in geometry.axes] == [20, 30, 40]
    assert [axis.translation for axis in geometry.axes] == [15, 10, 10]


def test_ngff_applies_the_transforms_of_the_image_after_those_of_the_dataset() -> None:
    axes = [{"name": "z"}, {"name": "y", "unit": "nm"}, {"name": "x", "type": "space"}]
    image = {
        "axes": axes,
        "datasets": [
            {
                "path": "a/s1",
                "coordinateTransformations": [
                    {"type": "scale", "scale": [4, 2, 1]},
                    {"type": "translation", "translation": [1, 2, 3]},
                ],
            }
        ],
        "coordinateTransformations": [{"type": "scale", "scale": [10, 10, 100]}],
    }
    geometry = geometry_of(node({}, ancestors=({}, {"ome": {"multiscales": [image]}})))
    assert geometry is not None
    assert [(a.name, a.scale, a.translation, a.unit) for a in geometry.axes] == [
        ("x", 100, 300, None),
        ("y", 20, 20, "nm"),
        ("z", 40, 10, None),
    ]


def test_a_convention_can_be_forced() -> None:
    attributes = json.loads((CONTAINER / "cosem" / "s1" / "attributes.json").read_text())
    both = node(attributes, path=("cosem", "s1"), dimensions=(4, 3, 2))
    conventions = {name: geometry_of(both, name) for name, _ in CONVENTIONS}
    # the redundant `pixelResolution` is for the other two, and is not followed unless forced
    said = {name for name, geometry in conventions.items() if geometry}
    assert said == {"cosem", "n5viewer", "neuroglancer"}
    found = geometry_of(both)
    assert found is not None
    assert found.convention == "cosem"


@pytest.mark.parametrize(
    "xml", [b"", b"<a>", b"<SpimData/>", b"<!DOCTYPE a []><SpimData/>", b"\x00"], ids=str
)
def test_any_other_xml_is_none_of_bigdataviewer(xml: bytes) -> None:
    assert bdv.parse_xml(xml) is None


@pytest.mark.parametrize(
    ("attributes", "groups", "problem"),
    [
        ({"transform": {"axes": ["x", "y", "z"], "scale": [10**400, 1, 1]}}, (), "transform.scale"),
        ({"pixelWidth": 0.0, "pixelUnit": "um", "numSlices": 3}, (), "axis 'x': expected"),
        (
            {"axes": ["x", "y", "z"], "coordinateArrays": {"z": ["a"]}},
            (),
            "coordinateArrays: z: expected 3 strings",
        ),
        (
            {"units": ["nm"] * 3, "resolution": [1, 1, 1]},
            ({"downsamplingFactors": [[1, 1, 1], [2, 2]]},),
            r"downsamplingFactors of the group\[1\]: expected 3 numbers",
        ),
        ({}, ({"resolution": [1, 1, 1], "offset": "far"},), "group of the levels: offset"),
        (
            {"pixelResolution": [1, 1, 1], "transform": {"axes": ["x"], "scale": [1]}},
            (),
            "transform.axes: expected 3 strings",
        ),
    ],
)
def test_what_cannot_be_meant_is_said(
    attributes: dict[str, Any], groups: Any, problem: str
) -> None:
    found = find_geometry(node(attributes, ancestors=groups))
    assert len(found.problems) == 1
    assert re.search(problem, found.problems[0])
    assert found.geometry is None or found.geometry.convention in ("names", "imagej")


def test_pixels_without_unit_stay_pixels() -> None:
    assert [is_unit(unit) for unit in ("um", "Micrometers", "µm", "px", "furlong")] == [
        True, True, True, True, False,
    ]  # fmt: skip
    assert ratio("mm", "um") == 1000
    assert ratio("min", "s") == 60
    assert ratio("um", "s") is None


@pytest.mark.parametrize("convention", WRITTEN)
@pytest.mark.parametrize("ndim", [1, 2, 3, 5])
def test_what_is_written_is_read(convention: str, ndim: int) -> None:
    axes = axes_of(
        ndim,
        scale=[0.25 * (k + 1) for k in range(ndim)],
        translation=[1.5 * k - 1 for k in range(ndim)],
        units=["um"] * min(ndim, 3) + [""] * (ndim - 3),
    )
    written = describe_axes(convention, axes, "s1")
    group = {"multiscales": [{**(written.image or {}), "datasets": [written.level]}]}
    names = [axis.name for axis in axes]
    found = geometry_of(
        node(
            {"axes": names, **written.attributes},
            dimensions=(7, 5, 3, 2, 4)[:ndim],
            ancestors=(group,),
        )
    )
    assert found.convention == convention
    n = 3 if convention == "n5viewer" else ndim  # which places space only
    assert found.axes[:n] == axes[:n]
