"""Projects become images of OME-Zarr in their places, with their names and settings."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.bigdataviewer.description import parse_settings
from n5zarr.bigdataviewer.images import _images, _names
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError, N5Warning
from tests.command import CliRunner
from tests.contract import bigstitcher
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS
from tests.contract.test_ome_06 import convert, groups, validate
from tests.contract.test_ome_zarr import VERSIONS, names_of, ome_of, placed
from tests.contract.viewers import validate_ome

SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<Settings><ViewerState/><SetupAssignments><ConverterSetups>
<ConverterSetup><id>1</id><min>90.0</min><max>1200.0</max><color>-65281</color><groupId>0</groupId>
</ConverterSetup></ConverterSetups></SetupAssignments></Settings>"""


@VERSIONS
def test_a_project_becomes_an_image_for_each_setup(tmp_path: Path, version: Any) -> None:
    xml = bigstitcher.write_project(tmp_path)
    (tmp_path / "dataset.settings.xml").write_text(SETTINGS)
    out = tmp_path / "out.zarr"
    with pytest.warns(N5Warning, match="left_green_turned: the registration turns"):
        done = n5zarr.convert(xml, out, ome=True, ome_version=version, verify=True)
    assert {array.way for array in done.arrays} == {"chunks"}
    validate_ome(out)
    described = ElementTree.fromstring((out / "OME/METADATA.ome.xml").read_bytes())  # noqa: S314
    series = [f"Image:{path}" for path in ome_of(out / "OME")["series"]]  # as napari-ome-zarr
    assert [image.get("ID") for image in described] == series
    pixels = described[0][0]
    assert [int(pixels.get(f"Size{letter}", "")) for letter in "XYZCT"] == [7, 5, 3, 1, 4]
    assert (pixels.get("PhysicalSizeZ"), pixels.get("PhysicalSizeZUnit")) == ("1.5", "µm")
    for number, setup in SETUPS.items():
        name = setup.name.replace(" ", "_")
        assert ome_of(out / name)["multiscales"][0]["name"] == setup.name
        for level, (scale, translation) in enumerate(placed(out / name)):
            written: Any = zarr.open_array(out / name / f"s{level}", mode="r")
            assert names_of(written) == ("t", "z", "y", "x")
            for i, timepoint in enumerate(TIMEPOINTS):
                there = (number, timepoint) != MISSING
                expected = bigstitcher.elements(number, timepoint, level) if there else 0
                np.testing.assert_array_equal(written[i], expected)
            if setup.angle:
                continue
            # the last element of a level, in elements of full resolution: the middle of its voxels
            by = bigstitcher.levels(setup)[level]
            last = np.array(written.shape[:0:-1]) - 1
            full = [i * f + (f - 1) / 2 for i, f in zip(last, by, strict=True)]
            expected = bigstitcher.world(setup, *full)
            got = np.array(scale[:0:-1]) * last + np.array(translation[:0:-1])
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    turned: Any = zarr.open_group(out / "left_green_turned", mode="r").attrs.asdict()
    rows = np.reshape(turned["registration"], (3, 4))
    scale, translation = placed(out / "left_green_turned")[0]
    along = np.array(scale[:0:-1]) * (6, 12, 2) + np.array(translation[:0:-1])
    expected = bigstitcher.world(SETUPS[7], 6, 12, 2)
    np.testing.assert_allclose(rows[:, :3] @ along + rows[:, 3], expected)
    (channel,) = ome_of(out / "right_green")["omero"]["channels"]
    assert channel["label"] == "GFP"
    assert channel["color"] == "FF00FF"
    assert channel["window"] == {"min": 0, "max": 65535, "start": 90.0, "end": 1200.0}
    assert "omero" not in ome_of(out / "left_green")


def test_time_points_that_move_are_images_of_their_own(tmp_path: Path) -> None:
    xml = bigstitcher.write_project(tmp_path, [1])
    text = xml.read_text()
    before, mark, after = text.rpartition('<ViewRegistration timepoint="8"')
    xml.write_text(before + mark + after.replace("5.5\n", "6.5\n").replace(" 5.5 ", " 6.5 ", 1))
    out = tmp_path / "out.zarr"
    n5zarr.convert(xml, out, ome=True)
    validate_ome(out)
    places = {t: placed(out / "right_green" / f"timepoint{t}")[0][1] for t in TIMEPOINTS}
    assert places[8] == pytest.approx([-0.6, 0.2, 1.3])
    assert places[0] == places[2] == places[5] == pytest.approx([-0.6, 0.2, 1.1])
    for t in TIMEPOINTS:
        written: Any = zarr.open_array(out / f"right_green/timepoint{t}/s0", mode="r")
        np.testing.assert_array_equal(written[...], bigstitcher.elements(1, t, 0))


def test_time_points_of_other_codecs_are_encoded_anew(tmp_path: Path) -> None:
    xml = bigstitcher.write_project(tmp_path, [1])
    for timepoint in TIMEPOINTS:  # in whole blocks, which are not encoded anew otherwise
        path = tmp_path / "dataset.n5/setup1" / f"timepoint{timepoint}" / "s0"
        shutil.rmtree(path)
        data = bigstitcher.elements(1, timepoint, 0)
        codec = "gzip" if timepoint < TIMEPOINTS[-1] else "zstd"
        n5zarr.create_array(path, data=data, chunks=data.shape, compression={"type": codec})
    n5zarr.convert(xml, tmp_path / "out.zarr", ome=True)
    written: Any = zarr.open_array(tmp_path / "out.zarr/right_green/s0", mode="r")
    for i, timepoint in enumerate(TIMEPOINTS):
        np.testing.assert_array_equal(written[i], bigstitcher.elements(1, timepoint, 0))


def test_the_command_says_what_it_does(tmp_path: Path) -> None:
    xml = bigstitcher.write_project(tmp_path, [0, 3])
    shutil.rmtree(tmp_path / "dataset.n5" / "setup3")
    out = tmp_path / "out.zarr"
    done = CliRunner().invoke(app, ["convert", str(xml), str(out), "--ome", "--shards", "4,8,8,64"])
    assert done.exit_code == 0, done.output
    assert "left_green/s0" in done.output
    validate_ome(out)


def test_registrations_become_affines_to_the_world_and_come_back(tmp_path: Path) -> None:
    xml = bigstitcher.write_project(tmp_path)
    out, old = tmp_path / "out.zarr", tmp_path / "old.zarr"
    with pytest.warns(N5Warning, match="left_green_turned: the registration turns"):
        convert(xml, out)
    with pytest.warns(N5Warning, match="the registration turns"):
        n5zarr.convert(xml, old, ome=True)
    found = dict(groups(out))
    for attributes in found.values():
        validate(attributes)
    (image,) = found["left_green_turned"]["ome"]["multiscales"]
    assert "registration" not in found["left_green_turned"]
    assert [system["name"] for system in image["coordinateSystems"]] == ["intrinsic", "world"]
    (step,) = image["coordinateTransformations"]
    assert (step["type"], step["input"], step["output"]) == (
        "affine", {"name": "intrinsic"}, {"name": "world"},
    )  # fmt: skip
    # an element, time first, by the transforms of its level and the affine: t, z, y, x
    for level in image["datasets"]:
        (own,) = level["coordinateTransformations"]
        by = {each["type"]: each[each["type"]] for each in own.get("transformations", [own])}
        scale, to = np.array(by["scale"]), np.array(by.get("translation", [0.0] * 4))
        x, y, z = 1, 2, 1
        point = scale * [1, z, y, x] + to
        got = np.array(step["affine"]) @ [*point, 1]
        number = int(level["path"].removeprefix("s"))
        by_full = bigstitcher.levels(SETUPS[7])[number]
        full = [i * f + (f - 1) / 2 for i, f in zip((x, y, z), by_full, strict=True)]
        np.testing.assert_allclose(got[:0:-1], bigstitcher.world(SETUPS[7], *full), rtol=1e-12)
        assert got[0] == point[0]
    assert all(
        "coordinateTransformations" not in image
        for path, attributes in found.items()
        if path != "left_green_turned"
        for image in attributes["ome"].get("multiscales", [])
    )
    expected = zarr.open_group(old / "left_green_turned", mode="r").attrs["registration"]
    n5zarr.convert(out, tmp_path / "back.n5")
    kept = n5zarr.get_attribute(tmp_path / "back.n5", "left_green_turned", "registration")
    assert kept == expected
    again = tmp_path / "again.zarr"
    convert(tmp_path / "back.n5", again)
    (other,) = dict(groups(again))["left_green_turned"]["ome"]["multiscales"]
    assert {**other, "name": image["name"]} == image


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


@VERSIONS
def test_a_mirrored_view_is_reversed_at_the_same_positions(tmp_path: Path, version: Any) -> None:
    """The transform that is listed first is applied last: world positions change their sign."""
    xml = bigstitcher.write_project(tmp_path, [0])
    text, n = re.subn("(<ViewRegistration [^>]*>)", rf"\1{MIRROR}", xml.read_text())
    assert n == len(TIMEPOINTS)
    xml.write_text(text)
    assert [f for f in n5zarr.validate(xml).findings if f.severity != "note"] == []
    out = tmp_path / "out.zarr"
    with pytest.warns(N5Warning, match="/left_green: in reverse order along x, at the same"):
        n5zarr.convert(xml, out, ome=True, ome_version=version, verify=True)
    assert n5zarr.validate(out, deep=True).findings == ()
    validate_ome(out / "left_green")
    group: Any = zarr.open_group(out, path="left_green", mode="r")
    image = group.attrs.asdict().get("ome", group.attrs.asdict())["multiscales"][0]
    setup = SETUPS[0]
    for level, entry in enumerate(image["datasets"]):
        data = bigstitcher.elements(0, TIMEPOINTS[0], level)
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
    said = "voxelSize in the XML: expected numbers above"
    with pytest.raises(N5UnrepresentableError, match=said):
        n5zarr.convert(xml, tmp_path / "new/dataset.xml", to="ome-zarr")
    assert not (tmp_path / "new").exists()
