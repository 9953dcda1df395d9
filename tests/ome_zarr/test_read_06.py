"""OME-Zarr 0.6 is read, and gets levels; so is its last draft."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.errors import N5UnrepresentableError, N5Warning
from tests.contract.test_ome_06 import SCHEMAS, check, convert, groups
from tests.ome_zarr.test_pyramid import mean


def test_a_pyramid_is_valid(tmp_path: Path) -> None:
    data = np.arange(11 * 71 * 83, dtype="u2").reshape(11, 71, 83)
    n5zarr.create_array(
        tmp_path / "in.n5", path="em/s0", data=data, axes="zyx", units=["nm"] * 3,
        resolution=[40, 8, 8], offset=[0, 20, 3],
    )  # fmt: skip
    convert(tmp_path / "in.n5", tmp_path / "out.zarr")
    n5zarr.build_pyramid(tmp_path / "out.zarr" / "em", levels=2)
    attributes = dict(groups(tmp_path / "out.zarr"))["em"]
    check(tmp_path / "out.zarr")
    (image,) = attributes["ome"]["multiscales"]
    step = image["datasets"][1]["coordinateTransformations"][0]
    assert step["transformations"] == [
        {"type": "scale", "scale": [40.0, 16.0, 16.0]},
        {"type": "translation", "translation": [0.0, 24.0, 7.0]},
    ]
    array = zarr.open_array(tmp_path / "out.zarr" / "em" / "s1", mode="r")
    np.testing.assert_array_equal(array[...], mean(data, [1, 2, 2]))
    assert n5zarr.validate(tmp_path / "out.zarr").findings == ()


def test_the_intrinsic_system_need_not_be_the_first(tmp_path: Path) -> None:
    """As in an example of the specification: ``physical`` comes first."""
    document = json.loads((SCHEMAS / "multiscales_transformations.json").read_text())
    group = zarr.create_group(tmp_path / "in.zarr")
    group.create_array("s0", data=np.ones((5, 7), "u1"), dimension_names=["y", "x"])
    image = document["attributes"]["ome"]["multiscales"][0]
    image["coordinateSystems"][0]["axes"][0]["unit"] = "millimeter"
    group.attrs.update(document["attributes"])
    assert n5zarr.geometry(tmp_path / "in.zarr", "s0").units == ("micrometer", "micrometer")
    with pytest.warns(N5Warning, match="/: the transform to 'physical' is omitted$"):
        n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5")
    assert n5zarr.geometry(tmp_path / "out.n5", "s0").scale == (1.0, 1.0)


@pytest.mark.parametrize("output", [{"name": "none"}, {}], ids=["unknown", "missing"])
def test_levels_without_a_known_system_are_an_error(tmp_path: Path, output: Any) -> None:
    document = json.loads((SCHEMAS / "multiscales_transformations.json").read_text())
    group = zarr.create_group(tmp_path / "in.zarr")
    group.create_array("s0", data=np.ones((5, 7), "u1"))
    image = document["attributes"]["ome"]["multiscales"][0]
    image["datasets"][0]["coordinateTransformations"][0]["output"] = output
    image["coordinateSystems"] = image["coordinateSystems"] if output else []
    group.attrs.update(document["attributes"])
    with pytest.raises(N5UnrepresentableError, match="expected one of coordinateSystems as the"):
        n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5")
    with pytest.raises(N5UnrepresentableError, match="expected one of coordinateSystems as the"):
        n5zarr.thumbnail(tmp_path / "in.zarr")
    assert not n5zarr.validate(tmp_path / "in.zarr").ok
