"""Images of OME-Zarr of all versions are shown as N5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from n5zarr.errors import N5UnrepresentableError
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.ome_zarr.from_ome import from_ome
from tests.unit.images.test_ome import source


def tree(arrays: Mapping[str, ArraySource], groups: Mapping[str, Any]) -> SourceTree:
    return SourceTree("a.zarr", arrays, groups)


def transforms(array: Any) -> Any:
    return array.attributes["transform"]


def test_images_without_axes_have_those_of_0_2() -> None:
    """Images of 0.1 and 0.2 have the axes t, c, z, y, x; levels are scaled by their sizes.

    As n5-universe (a4e759a4) does for 0.3: ``OmeNgffV03MetadataProcessor.inferRelativeResolution``.
    """
    arrays = {"0": source((2, 3, 5, 7, 11)), "1": source((2, 3, 5, 4, 6)), "table": source((13,))}
    image: Any = {"version": "0.2", "datasets": [{"path": "0"}, {"path": "1"}]}
    found = from_ome(tree(arrays, {"": {"multiscales": [image]}, "labels": {}})).arrays
    shapes = {name: array.shape for name, array in found.items()}
    assert shapes == {"s0": (2, 3, 5, 7, 11), "s1": (2, 3, 5, 4, 6), "table": (13,)}
    assert transforms(found["s1"])["axes"] == ["t", "c", "z", "y", "x"]
    assert transforms(found["s1"])["scale"] == [1, 1, 1, 7 / 4, 11 / 6]
    assert transforms(found["s1"])["units"] == ["", "", "um", "um", "um"]


def test_coordinate_systems_of_0_6_are_read() -> None:
    axes = [{"name": n, "type": "space", "unit": "micrometer"} for n in "zyx"]
    steps = [{"type": "scale", "scale": [3, 0.5, 0.25]},
             {"type": "translation", "translation": [1, 2, 4]}]  # fmt: skip
    sequence = {"type": "sequence", "input": "0", "output": "physical", "transformations": steps}
    image: Any = {
        "name": "a",
        "coordinateSystems": [{"name": "physical", "axes": axes}],
        "datasets": [{"path": "0", "coordinateTransformations": [sequence]}],
    }
    groups = {"": {}, "a": {"ome": {"version": "0.6", "multiscales": [image]}}}
    found = from_ome(tree({"a/0": source((5, 7, 11))}, groups)).arrays
    assert list(found) == ["a/s0"]
    assert transforms(found["a/s0"]) == {
        "axes": ["z", "y", "x"], "scale": [3, 0.5, 0.25], "translate": [1, 2, 4],
        "units": ["micrometer"] * 3,
    }  # fmt: skip


def test_an_array_in_the_way_of_a_level_is_an_error() -> None:
    arrays = {"0": source((5, 7)), "s0": source((3,))}
    axes = [{"name": n, "type": "space"} for n in "yx"]
    image: Any = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": []}]}
    with pytest.raises(N5UnrepresentableError, match="s0: expected a name that no level needs"):
        from_ome(tree(arrays, {"": {"multiscales": [image]}}))
    others = tree({"a": source((5, 7))}, {"": {"multiscales": [image]}})
    assert from_ome(others) is others
