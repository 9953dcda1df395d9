"""Setups of a project become images, with their names and settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.bigdataviewer.description import parse_settings
from n5zarr.bigdataviewer.images import _images, _names
from n5zarr.errors import N5UnrepresentableError
from tests.contract import bigstitcher
from tests.contract.viewers import validate_ome

if TYPE_CHECKING:
    from pathlib import Path


def test_settings_that_cannot_be_parsed_are_left_out() -> None:
    assert parse_settings(b"<Settings") == {}
    assert parse_settings(b"<!DOCTYPE a><Settings/>") == {}
    xml = "".join(
        f"<ConverterSetup><id>{i}</id><min>{low}</min><max>9</max><color>{color}</color>"
        "</ConverterSetup>"
        for i, low, color in ((0, 9, -1), (1, "a", -1), (2, 0, ""), (3, -4, -16776961))
    )
    found = parse_settings(f"<S><ConverterSetups>{xml}</ConverterSetups></S>".encode())
    assert found == {3: ((-4.0, 9.0), "0000FF")}


def test_names_of_setups_become_different_names_of_groups() -> None:
    names = _names({0: "Tile 1, 488 nm", 1: "../x", 2: "OME", 3: "é", 4: "a/b", 5: "A_B", 6: "__"})
    assert len({name.lower() for name in names.values()}) == 7
    for name in names.values():
        assert not set(name) - set(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
        )
        assert name.strip("._")
        assert not name.startswith("__")
        assert name != "OME"


def test_one_recorded_time_point_among_several_is_a_series() -> None:
    view: Any = type("View", (), {"dataset": type("D", (), {"shape": (3, 5, 7), "data_type": 1})})
    description: Any = type(
        "Described", (), {"timepoints": (4, 6), "setups": {}, "registrations": {}}
    )
    (image,) = _images(0, "a", {"s0": {6: view}}, description)
    assert (image.timepoints, image.is_stacked) == ((4, 6), True)
    (image,) = _images(0, "a", {"s0": {6: view}}, None)
    assert (image.timepoints, image.is_stacked) == ((6,), False)


MIRROR = '<ViewTransform type="affine"><affine>-1 0 0 0 0 1 0 0 0 0 1 0</affine></ViewTransform>'


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_a_mirrored_view_is_reversed_at_the_same_positions(tmp_path: Path, version: Any) -> None:
    """The transform that is listed first is applied last: world positions change their sign."""
    xml = bigstitcher.write_project(tmp_path, [0])
    text, n = re.subn("(<ViewRegistration [^>]*>)", rf"\1{MIRROR}", xml.read_text())
    assert n == len(bigstitcher.TIMEPOINTS)
    xml.write_text(text)
    assert [f for f in n5zarr.validate(xml).findings if f.severity != "note"] == []
    out = tmp_path / "out.zarr"
    with pytest.warns(n5zarr.N5Warning, match="/left_green: in reverse order along x, at the same"):
        n5zarr.convert(xml, out, ome=True, ome_version=version, verify=True)
    assert n5zarr.validate(out, deep=True).findings == ()
    validate_ome(out / "left_green")
    group: Any = zarr.open_group(out, path="left_green", mode="r")
    image = group.attrs.asdict().get("ome", group.attrs.asdict())["multiscales"][0]
    setup = bigstitcher.SETUPS[0]
    for level, entry in enumerate(image["datasets"]):
        data = bigstitcher.elements(0, bigstitcher.TIMEPOINTS[0], level)
        np.testing.assert_array_equal(group[entry["path"]][0], data[..., ::-1])
        scale, translation = (step[step["type"]] for step in entry["coordinateTransformations"])
        for j in range(data.shape[-1]):
            by = bigstitcher.levels(setup)[level][0]
            i = by * (data.shape[-1] - 1 - j) + (by - 1) / 2
            x = bigstitcher.world(setup, i, 0, 0)[0]
            assert translation[-1] + scale[-1] * j == pytest.approx(-x)


def test_a_voxel_size_below_0_is_no_image_of_a_project(tmp_path: Path) -> None:
    xml = bigstitcher.write_project(tmp_path, [0])
    xml.write_text(xml.read_text().replace("<size>0.2 0.3 1.5</size>", "<size>-0.2 0.3 1.5</size>"))
    with pytest.raises(
        N5UnrepresentableError, match="voxelSize in the XML: expected numbers above"
    ):
        n5zarr.convert(xml, tmp_path / "new/dataset.xml", to="ome-zarr")
    assert not (tmp_path / "new").exists()
