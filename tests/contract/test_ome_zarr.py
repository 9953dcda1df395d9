"""Conversions between N5 and OME-Zarr agree with validators and other readers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import tensorstore
import zarr
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.images.find import find_images
from tests.command import CliRunner
from tests.contract import bigstitcher
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS
from tests.contract.viewers import Seen, n5_universe, neuroglancer, validate_ome

JAVA = Path(__file__).parents[1] / "data" / "java"


def placed(path: Path) -> list[tuple[list[float], list[float]]]:
    """Return scale and translation of each level by ome-zarr-py; check the names of axes."""
    (node, *_) = Reader(parse_url(path))()
    found = []
    ndim = len(node.metadata["axes"])
    for steps in node.metadata["coordinateTransformations"]:
        by = {step["type"]: step[step["type"]] for step in steps}
        found.append((by["scale"], by.get("translation", [0.0] * ndim)))
    return found


def ome_of(path: Path) -> dict[str, Any]:
    """Read the metadata of a group of 0.5, or the attributes of one of 0.4."""
    if (path / ".zattrs").exists():
        found: dict[str, Any] = json.loads((path / ".zattrs").read_text())
    else:
        found = json.loads((path / "zarr.json").read_text())["attributes"]["ome"]
    return found


def names_of(array: Any) -> tuple[str, ...]:
    """Return the names of the axes, as Zarr v3 and xarray keep them."""
    is_v2 = array.metadata.zarr_format == 2
    return tuple(array.attrs["_ARRAY_DIMENSIONS"] if is_v2 else array.metadata.dimension_names)


VERSIONS = pytest.mark.parametrize("version", ["0.4", "0.5"])


def values(path: Path) -> np.ndarray[Any, Any]:
    """Read an N5 dataset with tensorstore, C order."""
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    found: np.ndarray[Any, Any] = tensorstore.open(spec).result().read().result().T
    return found


@VERSIONS
def test_the_sample_validates_and_readers_find_its_scales(tmp_path: Path, version: Any) -> None:
    out = tmp_path / "out.zarr"
    done = n5zarr.convert(n5zarr.sample_path(), out, ome=True, ome_version=version, verify=True)
    assert {array.way for array in done.arrays} == {"chunks"}
    for path in (out, out / "em", out / "labels"):
        validate_ome(path)
    assert ome_of(out / "OME")["series"] == ["em"]
    assert placed(out / "em") == [
        ([20.0, 8.0, 8.0], [0.0, 0.0, 0.0]),
        ([40.0, 16.0, 16.0], [10.0, 4.0, 4.0]),
        ([80.0, 32.0, 32.0], [30.0, 12.0, 12.0]),
    ]
    assert [axis["unit"] for axis in ome_of(out / "em")["multiscales"][0]["axes"]] == [
        "nanometer"
    ] * 3
    assert ome_of(out / "labels")["image-label"]["source"] == {"image": "../em"}
    root = zarr.open_group(out, mode="r")
    for name in ("em/s0", "em/s1", "em/s2", "labels/s0"):
        expected = values(Path(n5zarr.sample_path(), name))
        np.testing.assert_array_equal(root[name][...], expected)  # type: ignore[index]
    n5zarr.convert(out, tmp_path / "back.n5")
    old, new = (
        n5zarr.geometry(path, "em") for path in (n5zarr.sample_path(), tmp_path / "back.n5")
    )
    assert [level.scale for level in old.levels] == [level.scale for level in new.levels]


@pytest.mark.parametrize(
    "image", ["cosem", "cosem-forder", "n5viewer/c0", "ngff-0.4-n5order", "ngff-0.5-n5order",
              "ngff-0.3"],
)  # fmt: skip
def test_each_convention_is_placed_as_java_places_it(tmp_path: Path, image: str) -> None:
    """Images of each convention have the scales and translations of n5-universe's parsers."""
    lines = (JAVA / "metadata.expected.jsonl").read_text().splitlines()
    parsed = {entry["path"].strip("/"): entry for entry in map(json.loads, lines)}
    levels = sorted(p for p in parsed if p.startswith(f"{image}/s"))
    out = tmp_path / "out.zarr"
    n5zarr.convert(JAVA / "metadata.n5", out, ome=True, select=image)
    validate_ome(out)
    written = {entry.name for entry in out.iterdir()}
    assert written == {"OME", image.partition("/")[0], "zarr.json"}
    rows = [parsed[level]["spatialTransform"] for level in levels]
    expected = [
        ([m[2 - i][2 - i] for i in range(3)], [m[2 - i][3] for i in range(3)]) for m in rows
    ]
    assert placed(out / image) == expected
    full = {"nm": "nanometer", "um": "micrometer", "micrometer": "micrometer"}
    axes = ome_of(out / image)["multiscales"][0]["axes"]
    assert [a["unit"] for a in axes] == [full[parsed[levels[0]]["unit"]]] * 3


@VERSIONS
def test_all_conventions_validate(tmp_path: Path, version: Any) -> None:
    out = tmp_path / "out.zarr"
    n5zarr.convert(JAVA / "metadata.n5", out, ome=True, ome_version=version)
    validate_ome(out)
    shown = ome_of(out / "canonical" / "ds")["omero"]["channels"][0]
    assert (shown["color"], shown["window"]) == (
        "00FF00",  # ARGB -16711936
        {"min": 0, "max": 255, "start": 0.0, "end": 200.0},
    )
    channels = ome_of(out / "neuroglancer" / "channels")["omero"]["channels"]
    assert [channel["label"] for channel in channels] == ["DAPI", "GFP"]


@VERSIONS
def test_axes_of_imagej_are_put_in_order(tmp_path: Path, version: Any) -> None:
    """ImageJ's axes x, y, c, z, t are put into the order t, c, z, y, x of OME-Zarr."""
    data = np.arange(2 * 5 * 3 * 7 * 11, dtype="u2").reshape(2, 5, 3, 7, 11)  # t, z, c, y, x
    source = tmp_path / "in.n5"
    array = n5zarr.create_array(source / "img", data=data, chunks=(1, 2, 2, 4, 5))
    sizes = {"numChannels": 3, "numSlices": 5, "numFrames": 2}
    array.attrs.update({"pixelWidth": 0.25, "pixelHeight": 0.5, "pixelDepth": 1.5,
                        "pixelUnit": "µm", "xOrigin": 10.0, "fps": 0.0, **sizes})  # fmt: skip
    out = tmp_path / "out.zarr"
    done = n5zarr.convert(source, out, ome=True, ome_version=version, verify=True)
    validate_ome(out)
    assert done.arrays[0].chunks == (1, 2, 2, 4, 5)
    written: Any = zarr.open_array(out / "img" / "s0", mode="r")
    np.testing.assert_array_equal(written[...], data.transpose(0, 2, 1, 3, 4))
    assert names_of(written) == ("t", "c", "z", "y", "x")
    ((scale, translation),) = placed(out / "img")
    assert (scale[2:], translation[2:]) == ([1.5, 0.5, 0.25], [0.0, 0.0, 10.0])
    assert ome_of(out / "img")["multiscales"][0]["axes"][2]["unit"] == "micrometer"


@VERSIONS
def test_labels_are_listed_where_ome_zarr_wants_them(tmp_path: Path, version: Any) -> None:
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    data = np.arange(3 * 5 * 7, dtype="u4").reshape(3, 5, 7)
    for path, dtype in {
        "em/s0": "u1",
        "em/labels/cells": "u4",
        "em/labels/probability": "f4",
        "other/labels": "u8",
        "seg/a": "u2",
        "raw": "u2",
    }.items():
        n5zarr.create_array(source / path, data=data.astype(dtype), axes="zyx")
    n5zarr.create_array(source / "raw" / ".." / "table", data=np.arange(13.0))
    n5zarr.convert(source, out, ome=True, ome_version=version, labels="seg/*")
    for name in ("", "em", "em/labels", "em/labels/cells"):
        validate_ome(out / name)
    assert ome_of(out / "em" / "labels")["labels"] == ["cells"]
    assert ome_of(out / "em/labels/cells")["image-label"]["source"] == {"image": "../.."}
    assert "image-label" not in ome_of(out / "em/labels/probability")
    assert "image-label" in ome_of(out / "other/labels")
    assert "source" not in ome_of(out / "seg/a")["image-label"]  # of em, or of raw
    assert ome_of(out / "OME")["series"] == ["em", "em/labels/probability", "raw"]
    nodes = list(Reader(parse_url(out / "em"))())
    assert [Path(node.zarr.path).name for node in nodes] == ["em", "labels", "cells"]
    np.testing.assert_array_equal(zarr.open_array(out / "table", mode="r")[...], np.arange(13.0))


def test_the_list_of_images_has_the_places_where_they_are_written(tmp_path: Path) -> None:
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    for path in ("em/s0", "em/labels/s0"):  # of floats, which are no labels
        n5zarr.create_array(source / path, data=np.zeros((3, 5), "f4"), axes="yx")
    n5zarr.convert(source, out, ome=True)
    assert ome_of(out / "OME")["series"] == ["em", "em/labels/labels"]
    validate_ome(out / "em/labels/labels")


def test_an_image_called_labels_in_an_image_goes_one_group_deeper(tmp_path: Path) -> None:
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    data = np.arange(3 * 5, dtype="u4").reshape(3, 5)
    for path in ("em/s0", "em/labels/s0"):
        n5zarr.create_array(source / path, data=data, axes="yx")
    n5zarr.convert(source, out, ome=True)
    validate_ome(out / "em")
    assert ome_of(out / "em" / "labels") == {"version": "0.5", "labels": ["labels"]}
    np.testing.assert_array_equal(zarr.open_array(out / "em/labels/labels/s0", mode="r")[...], data)


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


AXES = [
    {"name": "c", "type": "channel"},
    *({"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"),
]
STEPS: list[dict[str, list[float]]] = [
    {"scale": [1, 1.5, 0.25, 0.5], "translation": [0, 30, 20, 10]},
    {"scale": [1, 3, 0.5, 1], "translation": [0, 30.75, 20.125, 10.25]},
]


CHANNELS = [
    {"label": c, "color": "00FF00", "window": {"min": 0, "max": 65535, "start": 3, "end": 700}}
    for c in "ab"
]


def write_image(group: zarr.Group, axes: slice = slice(None), **others: Any) -> list[Any]:
    """Write an image as the specifications of 0.4 and 0.5 describe; return its levels."""
    shapes = [(2, 5, 7, 11)[axes], (2, 3, 4, 6)[axes]]
    is_new = group.metadata.zarr_format == 3
    rng = np.random.default_rng(7)
    levels = [rng.integers(0, 999, shape).astype("u2") for shape in shapes]
    datasets = []
    for k, (level, steps) in enumerate(zip(levels, STEPS, strict=True)):
        names = [axis["name"] for axis in AXES[axes]] if is_new else None
        chunks = (1, 2, 3, 4)[axes]
        group.create_array(str(k), data=level, chunks=chunks, dimension_names=names)
        own = [{"type": kind, kind: numbers[axes]} for kind, numbers in steps.items()]
        datasets.append({"path": str(k), "coordinateTransformations": own})
    image: dict[str, Any] = {"axes": AXES[axes], "datasets": datasets, "name": "an image"}
    set_ome(group, multiscales=[image], **others)
    return levels


def set_ome(group: zarr.Group, **attributes: Any) -> None:
    if group.metadata.zarr_format == 3:
        group.attrs["ome"] = {"version": "0.5", **attributes}
        return
    for image in attributes.get("multiscales", []):
        image["version"] = "0.4"
    group.attrs.update(attributes)


@pytest.mark.parametrize("zarr_format", [2, 3], ids=["0.4", "0.5"])
def test_ome_zarr_becomes_n5(tmp_path: Path, zarr_format: Any) -> None:
    """A collection of two OME-Zarr series becomes N5, with the labels of the second."""
    source, out = tmp_path / "in.zarr", tmp_path / "out.n5"
    root = zarr.create_group(source, zarr_format=zarr_format)
    set_ome(root, **{"bioformats2raw.layout": 3})
    omero = {"channels": CHANNELS}
    images = [write_image(root.create_group(str(i)), omero=omero) for i in range(2)]
    set_ome(root.create_group("1/labels"), labels=["cells"])
    label = {"image-label": {"source": {"image": "../../"}}}
    labels = write_image(root.create_group("1/labels/cells"), slice(1, None), **label)
    validate_ome(source)
    n5zarr.convert(source, out, verify=True)
    expected = {
        "s0": Seen((0.5, 0.25, 1.5), (10, 20, 30), "micrometer"),
        "s1": Seen((1, 0.5, 3), (10.25, 20.125, 30.75), "micrometer"),
    }
    for i, levels in enumerate(images):
        for k, level in enumerate(levels):
            np.testing.assert_array_equal(values(out / str(i) / f"s{k}"), level)
        seen = n5_universe(out / str(i))
        assert {name: (s.scale[:3], s.translation[:3], s.unit) for name, s in seen.items()} == {
            name: (s.scale, s.translation, s.unit) for name, s in expected.items()
        }
        document = json.loads((out / str(i) / "attributes.json").read_text())
        assert document["omero"] == omero
        assert not {"0", "1"} & {path.name for path in (out / str(i)).iterdir()}
    assert n5_universe(out / "1" / "labels" / "cells") == expected
    assert "image-label" in json.loads((out / "1/labels/cells/attributes.json").read_text())
    for name, level in zip(("s0", "s1"), labels, strict=True):
        np.testing.assert_array_equal(values(out / "1" / "labels" / "cells" / name), level)
    space = neuroglancer(out, out / "0")
    assert (space.names, space.factors) == (list("xyzc"), [[1, 1, 1, 1], [2, 2, 2, 1]])
    back = tmp_path / "back.zarr"
    n5zarr.convert(out, back, ome=True)
    validate_ome(back / "1")
    for i in range(2):
        assert placed(back / str(i)) == [(s["scale"], s["translation"]) for s in STEPS]
        assert ome_of(back / str(i))["omero"] == omero


def test_a_transform_that_n5_cannot_express_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "in.zarr"
    write_image(zarr.create_group(source))
    document = json.loads((source / "zarr.json").read_text())
    entry = document["attributes"]["ome"]["multiscales"][0]["datasets"][1]
    entry["coordinateTransformations"] = [{"type": "affine", "affine": [[1]]}]
    (source / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(N5UnrepresentableError, match="expected scales and translations, got aff"):
        n5zarr.convert(source, tmp_path / "out.n5")
    assert not (tmp_path / "out.n5").exists()


def test_a_dataset_that_is_no_image_is_refused_or_kept_as_an_array(tmp_path: Path) -> None:
    source = tmp_path / "in.n5"
    n5zarr.create_array(source / "trace", data=np.arange(7.0))
    with pytest.raises(N5UnrepresentableError, match=r"expected an image .*, got none"):
        n5zarr.convert(source, tmp_path / "out.zarr", ome=True)
    n5zarr.create_array(source / "volume", data=np.zeros((2, 3, 5, 7, 11, 13), "u1"))
    n5zarr.create_array(source / "image", data=np.zeros((3, 5), "u1"), axes="yx")
    with pytest.warns(N5Warning, match="volume: kept as an array, .* expected two or three axes"):
        n5zarr.convert(source, tmp_path / "out.zarr", ome=True)
    root = zarr.open_group(tmp_path / "out.zarr", mode="r")
    assert sorted(root) == ["OME", "image", "trace", "volume"]
    assert isinstance(root["volume"], zarr.Array)
    with pytest.raises(N5UnrepresentableError, match="expected Zarr as destination, got N5"):
        n5zarr.convert(source, tmp_path / "out2.n5", ome=True)


def test_a_group_whose_levels_do_not_fit_is_no_image(tmp_path: Path) -> None:
    """A group whose levels do not fit is no image, but its datasets are images."""
    source = tmp_path / "in.n5"
    shutil.copytree(JAVA / "metadata.n5" / "ngff-0.5-n5order", source / "g")
    n5zarr.create_array(source / "g" / "s1", data=np.zeros((4, 2, 3, 4), "u1"), overwrite=True)
    with (
        pytest.warns(N5Warning, match="/g: multiscales omitted, as the datasets are not"),
        pytest.warns(N5Warning, match="/g/s1: multiscales: axes: expected a list of 4"),
    ):
        n5zarr.convert(source, tmp_path / "out.zarr", ome=True)
    root = zarr.open_group(tmp_path / "out.zarr", mode="r")
    assert "ome" not in root["g"].attrs
    assert ome_of(tmp_path / "out.zarr" / "OME")["series"] == ["g/s0", "g/s1"]
    for name, scale in {"g/s0": [1.5, 0.25, 0.25], "g/s1": [1.0] * 4}.items():
        assert placed(tmp_path / "out.zarr" / name)[0][0] == scale
    with pytest.warns(N5Warning):
        assert [image.path for image in find_images(source)] == ["g/s0", "g/s1"]


def test_the_command_says_what_it_does(tmp_path: Path) -> None:
    xml = bigstitcher.write_project(tmp_path, [0, 3])
    shutil.rmtree(tmp_path / "dataset.n5" / "setup3")
    out = tmp_path / "out.zarr"
    done = CliRunner().invoke(app, ["convert", str(xml), str(out), "--ome", "--shards", "4,8,8,64"])
    assert done.exit_code == 0, done.output
    assert "left_green/s0" in done.output
    validate_ome(out)


def test_labels_with_fewer_levels_than_their_image_are_told(tmp_path: Path) -> None:
    """OME-Zarr requires as many."""
    for path, shape in (
        ("em/s0", (10, 14, 22)), ("em/s1", (5, 7, 11)), ("em/labels/seg/s0", (10, 14, 22)),
    ):  # fmt: skip
        n5zarr.create_array(tmp_path / "c.n5", path=path, data=np.ones(shape, "u1"))
    with pytest.warns(
        n5zarr.N5Warning, match="/em/labels/seg: OME-Zarr expects labels to have the 2 levels"
    ):
        n5zarr.convert(tmp_path / "c.n5", tmp_path / "c.zarr", ome=True)
    written = json.loads((tmp_path / "c.zarr/em/labels/seg/zarr.json").read_bytes())
    assert len(written["attributes"]["ome"]["multiscales"][0]["datasets"]) == 1


# -------------------------------------------------------------------------------------------- 0.4


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_documents_of_0_4_are_those_of_its_specification(tmp_path: Path) -> None:
    """https://ngff.openmicroscopy.org/0.4/: Zarr v2, "/" between chunks, attributes in .zattrs."""
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    for name, shape in (("s0", (14, 22, 26)), ("s1", (7, 11, 13))):
        data = np.arange(np.prod(shape), dtype="u2").reshape(shape)
        n5zarr.create_array(source / "em" / name, data=data, chunks=(3, 5, 7))
    n5zarr.set_geometry(source, "em", names="zyx", scale=(3, 0.5, 0.25), units=["um"] * 3)
    n5zarr.set_attribute(source, "em", "min", 3)
    n5zarr.set_attribute(source, "em", "max", 700)
    cells = np.ones((14, 22, 26), "u4")
    n5zarr.create_array(source / "em/labels/cells/s0", data=cells, chunks=(3, 5, 7), axes="zyx")
    with pytest.warns(N5Warning, match="expects labels to have the 2 levels"):
        n5zarr.convert(source, out, ome=True, to="zarr2")
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert not {name for name in files if name.endswith("zarr.json")}
    groups = ["", "OME/", "em/", "em/labels/", "em/labels/cells/"]
    assert {f"{group}.zgroup" for group in groups} <= files
    assert "em/s0/4/4/3" in files  # the last chunk of 14 x 22 x 26
    array = document(out / "em/s0/.zarray")
    assert (array["zarr_format"], array["dimension_separator"], array["dtype"]) == (2, "/", ">u2")
    assert array["fill_value"] == 0  # without one, zarr-python 2 does not fill missing chunks
    assert document(out / "em/s0/.zattrs")["_ARRAY_DIMENSIONS"] == ["z", "y", "x"]
    assert document(out / ".zattrs") == {"bioformats2raw.layout": 3}
    assert document(out / "OME/.zattrs") == {"series": ["em"]}
    assert document(out / "em/labels/.zattrs") == {"labels": ["cells"]}
    label = document(out / "em/labels/cells/.zattrs")["image-label"]
    assert label == {"version": "0.4", "source": {"image": "../.."}}
    found = document(out / "em/.zattrs")
    assert found.keys() == {"multiscales", "omero", "min", "max", "_ARRAY_DIMENSIONS"}
    assert found["_ARRAY_DIMENSIONS"] == ["z", "y", "x"]
    window = {"min": 0, "max": 65535, "start": 3.0, "end": 700.0}
    channel = {"color": "FFFFFF", "window": window, "active": True}
    assert found["omero"] == {"version": "0.4", "channels": [channel]}
    (image,) = found["multiscales"]
    assert (image["version"], image["name"]) == ("0.4", "em")
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    assert image["axes"] == axes
    assert image["datasets"] == [
        {
            "path": "s0",
            "coordinateTransformations": [{"type": "scale", "scale": [3, 0.5, 0.25]}],
        },
        {
            "path": "s1",
            "coordinateTransformations": [
                {"type": "scale", "scale": [6, 1, 0.5]},
                {"type": "translation", "translation": [1.5, 0.25, 0.125]},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("options", "zarr_format"),
    [
        ({}, 3),
        ({"to": "zarr"}, 3),
        ({"to": "zarr2"}, 2),
        ({"ome_version": "0.4"}, 2),
        ({"ome_version": "0.5"}, 3),
        ({"ome_version": "0.4", "to": "zarr2"}, 2),
        ({"ome_version": "0.5", "to": "zarr"}, 3),
    ],
    ids=str,
)
def test_the_version_and_the_format_choose_each_other(
    tmp_path: Path, options: dict[str, Any], zarr_format: int
) -> None:
    n5zarr.convert(n5zarr.sample_path(), tmp_path / "out.zarr", ome=True, level=2, **options)
    assert (tmp_path / "out.zarr" / "zarr.json").exists() == (zarr_format == 3)
    assert (tmp_path / "out.zarr" / ".zgroup").exists() == (zarr_format == 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ome_version": "0.4", "to": "zarr"}, r"expected '0.5' for Zarr v3, got '0.4'; without"),
        ({"ome_version": "0.5", "to": "zarr2"}, r"expected '0.4' for Zarr v2, got '0.5'; without"),
        (
            {"ome_version": "0.3"},
            r"ome_version: expected one of None, '0.4', '0.5', '0.6rc0', got '0.3'",
        ),
        ({"ome_version": "0.4", "ome": False}, r"ome_version .*: expected only with ome=True"),
        ({"ome_version": "0.4", "shards": 64}, r"shards .*: expected Zarr v3 as destination"),
        ({"ome_version": "0.4", "coords": True}, r"coords=True .*: expected Zarr v3 .*without ome"),
        ({"ome_version": "0.4", "to": "n5"}, r"ome=True .*: expected Zarr as destination, got N5"),
    ],
    ids=str,
)
def test_options_that_contradict_a_version_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.convert(n5zarr.sample_path(), tmp_path / "out.zarr", **{"ome": True, **options})
    assert not list(tmp_path.iterdir())


@VERSIONS
def test_what_goes_to_ome_zarr_and_back_is_the_same(tmp_path: Path, version: Any) -> None:
    """Of either version, N5 has the same levels, and the other version no remains of the first."""
    out, back, again = tmp_path / "out.zarr", tmp_path / "back.n5", tmp_path / "again.zarr"
    n5zarr.convert(n5zarr.sample_path(), out, ome=True, ome_version=version)
    n5zarr.convert(out, back)
    for name in ("em/s0", "em/s2", "labels/s0"):
        np.testing.assert_array_equal(values(back / name), values(Path(n5zarr.sample_path(), name)))
    old, new = (n5zarr.geometry(path, "em") for path in (n5zarr.sample_path(), back))
    assert [(level.scale, level.translation) for level in new.levels] == [
        (level.scale, level.translation) for level in old.levels
    ]
    attributes = json.loads((back / "em/attributes.json").read_text())
    assert "_ARRAY_DIMENSIONS" not in attributes
    other = "0.5" if version == "0.4" else "0.4"
    n5zarr.convert(back, again, ome=True, ome_version=other)  # type: ignore[arg-type]
    validate_ome(again)
    assert ("bioformats2raw.layout" in zarr.open_group(again).attrs) == (other == "0.4")


def test_the_command_writes_0_4(tmp_path: Path) -> None:
    runs = {"a": ["--to", "zarr2"], "b": ["--ome-version", "0.4"]}
    for name, options in runs.items():
        command = ["convert", n5zarr.sample_path(), str(tmp_path / f"{name}.zarr"), "--ome"]
        done = CliRunner().invoke(app, [*command, *options])
        assert done.exit_code == 0, done.output
        validate_ome(tmp_path / f"{name}.zarr")
        assert ome_of(tmp_path / f"{name}.zarr" / "em")["multiscales"][0]["version"] == "0.4"
