"""Documents of OME-Zarr follow the lists and rules of its specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pytest
from yaozarrs import v05
from yaozarrs._axis import ValidSpaceUnit, ValidTimeUnit

from n5zarr.conventions.model import Axis
from n5zarr.conventions.units import in_full, symbol
from n5zarr.errors import N5UnrepresentableError
from n5zarr.images.display import find_shown, is_label, omero
from n5zarr.images.image import Channel
from n5zarr.images.ome import align_axes, image_attributes
from n5zarr.images.source import ArraySource


@pytest.mark.parametrize("unit", [*get_args(ValidSpaceUnit), *get_args(ValidTimeUnit)])
def test_each_unit_of_ome_zarr_is_known_in_full_and_as_symbol(unit: str) -> None:
    assert in_full(unit) == unit
    assert in_full(f"{unit}s".replace("inchs", "inches").replace("foots", "feet")) == unit
    short, size = symbol(unit)
    if size == 1 and unit not in ("foot", "mile", "parsec", "yard"):
        assert in_full(short) == unit


def space(*names: str, **of_all: Any) -> list[Axis]:
    return [Axis(name=name, type="space", **of_all) for name in names]


def described(levels: Mapping[str, Sequence[Axis]]) -> dict[str, Any]:
    """Return the entry of ``multiscales`` of an image with such levels."""
    shape = (4,) * len(next(iter(levels.values())))
    arrays = {name: source(shape) for name in levels}
    ome: Any = image_attributes(align_axes(levels).image("a", "a", arrays, {}))["ome"]
    v05.Multiscale.model_validate(ome["multiscales"][0])
    document: dict[str, Any] = ome["multiscales"][0]
    return document


def source(shape: tuple[int, ...], **of_all: Any) -> ArraySource:
    return ArraySource("a", np.zeros(shape), np.dtype("u2"), shape, **of_all)


def test_levels_are_in_the_unit_of_the_finest() -> None:
    levels = {
        "s0": space("y", "x", unit="µm", scale=0.25),
        "s1": space("y", "x", unit="nm", scale=500.0, translation=125.0),
    }
    entries = described(levels)["datasets"]
    assert entries[1]["coordinateTransformations"] == [
        {"type": "scale", "scale": [0.5, 0.5]},
        {"type": "translation", "translation": [0.125, 0.125]},
    ]
    with pytest.raises(N5UnrepresentableError, match="s1: axis 'y': expected the unit of the fin"):
        align_axes(levels | {"s1": space("y", "x", unit="s")})
    with pytest.raises(N5UnrepresentableError, match="s1: expected the axes of the finest level"):
        align_axes(levels | {"s1": space("x", "y", unit="nm")})


@pytest.mark.parametrize(
    ("axes", "order"),
    [
        ([Axis(name="c", type="channel"), Axis(name="t", unit="ms"), *space("y", "x")], "tcyx"),
        ([*space("x", "y", "z"), Axis(name="t", type="time")], "txyz"),
        ([*space("z", "y"), Axis(name="angle"), *space("x")], "angle z y x"),
        ([Axis(name="a", unit="nm"), Axis(name="b", unit="inch")], "ab"),
    ],
)
def test_axes_are_time_then_others_then_space(axes: list[Axis], order: str) -> None:
    names = [axis["name"] for axis in described({"s0": axes})["axes"]]
    assert names == (order.split() if " " in order else list(order))
    assert [axes[i].name for i in align_axes({"s0": axes}).order] == names


TWO_OR_THREE = "expected two or three of the type space"


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (space("x"), "expected a list of 2 to 5 axes"),
        (space("w", "z", "y", "x"), TWO_OR_THREE),
        ([*space("y", "x"), Axis(name="t", unit="s"), Axis(name="u", unit="s")], TWO_OR_THREE),
        ([*space("y", "x"), Axis(name="c", type="channel"), Axis(name="angle")], TWO_OR_THREE),
        (space("x", "x"), "expected axes with distinct names"),
        ([], "expected a list of 2 to 5 axes"),
        ([Axis(name="c", type="channel", scale=-1), *space("y", "x")],
            "s0: expected scales below 0 along axes of space and time alone"),
    ],
)  # fmt: skip
def test_axes_without_an_image_in_ome_zarr_are_refused(axes: list[Axis], message: str) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        align_axes({"s0": axes})


def test_limits_come_from_the_nearest_that_has_some() -> None:
    fused = {"Bigstitcher-Spark": {"MinIntensity": 7.0, "MaxIntensity": 4095.0}}
    assert find_shown([{}, {"min": "a"}, fused]).limits == (7.0, 4095.0)
    assert find_shown([{"min": 3, "max": 90}, fused]).limits == (3.0, 90.0)
    assert find_shown([{"contrastLimits": [5, 5]}, {"contrastLimits": [5, 6]}]).limits == (5, 6)
    assert find_shown([{"contrastLimits": {"start": 1, "end": 2, "max": 9}}]).limits == (1, 2)
    assert find_shown([{"min": float("nan"), "max": 1}]) == Channel()


def test_omero_is_written_where_something_is_known() -> None:
    word, real, byte = np.dtype("u2"), np.dtype("f4"), np.dtype("i1")
    assert omero(Channel(), word, 1) is None
    assert omero(Channel(), real, 2) is None
    signed: Any = omero(Channel(), byte, 1)
    assert signed["channels"][0]["window"] == {"min": -128, "max": 127, "start": -128, "end": 127}
    of_real: Any = omero(Channel(limits=(0.25, 0.5)), real, 1)
    assert of_real["channels"][0]["window"] == {"min": 0.25, "max": 0.5, "start": 0.25, "end": 0.5}
    named: Any = omero(Channel(), word, 2, ["DAPI", "GFP"])
    assert [c["label"] for c in named["channels"]] == ["DAPI", "GFP"]
    own: Any = {"channels": [{"color": "00FF00", "window": dict.fromkeys(
        ("min", "max", "start", "end"), 0)}], "rdefs": {"model": "color"}}  # fmt: skip
    assert omero(Channel(), word, 1, own=own) == own
    assert omero(Channel(), word, 2, own=own) is None  # not of this image
    assert omero(Channel(), word, 1, own={"channels": [{"color": "00FF00"}]}) is None


def test_labels_say_so_in_many_ways() -> None:
    whole, real = np.dtype("u8"), np.dtype("f4")
    annotation = {"cellmap": {"annotation": {"class_name": "er", "annotation_type": {}}}}
    say_so: list[dict[str, Any]] = [
        {"isLabelMultiset": True}, {"painteraData": {"type": "label"}}, annotation,
        {"image-label": {}}, {"ome": {"image-label": {}}},
    ]  # fmt: skip
    for attributes in say_so:
        assert is_label("a", whole, [{}, attributes])
        assert not is_label("a", real, [{}, attributes])
    assert not is_label("a", whole, [{"painteraData": {"type": "raw"}}])
    assert is_label("seg/a", whole, [], ["seg/*"])
    assert not is_label("my_labels/a", whole, [])
