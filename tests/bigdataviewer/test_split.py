"""Split projects of BigStitcher and Rhapso show boxes of other images, cut by the rules of Java."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr.bigdataviewer.project import XmlFile, read_project
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.images.find import find_images
from n5zarr.storage.place import place_of
from tests.bigdataviewer import split_project
from tests.bigdataviewer.loaders import read_with_tensorstore
from tests.bigdataviewer.split_project import BOXES, FORMATS, VIEWS, Box, part, write_project
from tests.command import printed

LEVELS = range(len(split_project.FACTORS))


def check(tree: xr.DataTree) -> None:
    """Compare all levels of all views, and their places, with those of Java."""
    for setup in BOXES:
        for level in LEVELS:
            node: Any = tree[f"setup{setup}/s{level}"]
            for timepoint in split_project.TIMEPOINTS:
                found = node["data"].sel(timepoint=timepoint).values
                is_there = (setup, timepoint) in VIEWS
                assert bool(node["present"].sel(timepoint=timepoint)) is is_there
                if is_there:
                    np.testing.assert_array_equal(found, part((setup, timepoint), level))
            for dim, first in split_project.first_position(setup, level).items():
                assert float(node[dim][0]) == pytest.approx(first)
                step = dict(zip("xyz", split_project.FACTORS[level], strict=True))[dim]
                distance = step * {"x": 0.5, "y": 0.5, "z": 2}[dim]
                assert np.diff(node[dim]) == pytest.approx(distance)
                assert node[dim].attrs["units"] == "um"


@pytest.mark.each_of(4)
@pytest.mark.parametrize("loader", ["split.viewerimgloader", "split.multiresolutionimgloader"])
@pytest.mark.parametrize("kind", FORMATS)
def test_views_are_boxes(kind: str, loader: str, tmp_path: Path) -> None:
    xml = write_project(tmp_path, kind, loader)
    with warnings.catch_warnings():
        warnings.simplefilter("error", N5Warning)
        tree = n5zarr.open_bdv(xml)
    assert set(tree.children) == {f"setup{n}" for n in BOXES}
    check(tree)
    check(xr.open_datatree(xml, engine="n5"))


@pytest.mark.parametrize("kind", FORMATS)
def test_stored_blocks_are_those_of_the_images(kind: str, tmp_path: Path) -> None:
    xml = write_project(tmp_path, kind)
    tree = json.loads(printed("tree", xml, "--json", "--size"))
    node = next(child for child in tree["children"] if child["name"] == "setup2")
    assert [child["name"] for child in node["children"]] == ["timepoint0"]
    (level,) = [c for c in node["children"][0]["children"] if c["name"] == "s0"]
    shape = part((2, 0), 0).shape
    assert level["dimensions_n5"] == [*shape[::-1]]
    assert level["block_size_n5"] == [*split_project.CHUNKS[::-1]]
    n_blocks = np.prod([-(-n // b) for n, b in zip(shape, split_project.CHUNKS, strict=True)])
    assert level["n_blocks_stored"] == n_blocks
    first, second = (
        c["children"][0]["children"][0]["n_bytes_stored"] for c in tree["children"][:2]
    )
    assert second - 2 * first in (0, 1)  # rounded: they need 2 and 4 of 5 chunks along x
    project = json.loads(printed("info", xml, "--json"))["project"]
    assert [s["setup"] for s in project["setups"]] == [*BOXES]
    assert project["missing_views"] == [{"setup": n, "timepoint": 2} for n in (2, 6)]


def test_blocks_that_are_missing_stay_so(tmp_path: Path) -> None:
    xml = write_project(tmp_path, "n5")
    block = tmp_path / "d.n5/setup3/timepoint0/s0/0/0/0"
    block.unlink()
    expected = split_project.image(3, 0, 0)
    expected[: split_project.CHUNKS[0], : split_project.CHUNKS[1], : split_project.CHUNKS[2]] = 0
    store: Any = read_project(XmlFile.at(place_of(xml))).place.location
    array: Any = zarr.open_group(n5zarr.N5Store(store), mode="r")["setup6/timepoint0/s0"]
    np.testing.assert_array_equal(array[...], expected)
    keys = [
        key for key in n5zarr.N5Store(store).as_mapping() if key.startswith("setup6/timepoint0/s0/")
    ]
    assert "setup6/timepoint0/s0/0.0.0" not in keys
    assert "setup6/timepoint0/s0/0.0.1" in keys
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.confined() is not store
    node: Any = n5zarr.open_bdv(xml)["setup6/s0/data"]
    np.testing.assert_array_equal(node[0], expected)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_project_that_is_split_again(kind: str, tmp_path: Path) -> None:
    again = {0: Box(1, (4, 6, 3), (10, 10, 7)), 5: Box(6, (7, 0, 0), (17, 10, 5))}
    images, kind_of_split = FORMATS[kind](tmp_path), "split.viewerimgloader"
    inner = split_project.split_loader(images, BOXES, split_project.OLD, kind_of_split)
    sizes = {n: split_project.size(box) for n, box in BOXES.items()}
    absent = [(2, 2), (6, 2)]
    old = split_project.setups_xml(sizes, absent)
    xml = tmp_path / "again.xml"
    loader = split_project.split_loader(inner, again, old, kind_of_split)
    xml.write_text(split_project.project_xml(loader, again, absent))
    tree: Any = n5zarr.open_bdv(xml)
    for new, box in again.items():
        for level in LEVELS:
            expected = split_project.java_part(part((box.old, 0), level), box, level)
            np.testing.assert_array_equal(tree[f"setup{new}/s{level}/data"][0], expected)


@pytest.mark.each_of(4)
@pytest.mark.parametrize("target", ["n5", "ome-zarr"])
@pytest.mark.parametrize("kind", FORMATS)
def test_resaved_projects_are_whole(kind: str, target: Any, tmp_path: Path) -> None:
    xml = write_project(tmp_path, kind)
    n5zarr.convert(xml, tmp_path / "new/d.xml", to=target)
    sequence = ElementTree.parse(tmp_path / "new/d.xml").getroot().find("SequenceDescription")  # noqa: S314
    assert sequence is not None
    (loader,) = sequence.iter("ImageLoader")
    assert loader.get("format") == {"n5": "bdv.n5", "ome-zarr": "bdv.multimg.zarr"}[target]
    for setup, timepoint in VIEWS:
        for level in LEVELS:
            if target == "n5":
                path = f"new/d.n5/setup{setup}/timepoint{timepoint}/s{level}"
                found = read_with_tensorstore("n5", tmp_path / path).T
            else:
                path = f"new/d.ome.zarr/s{setup}-t{timepoint}.zarr/{level}"
                found = read_with_tensorstore("zarr", tmp_path / path)[0, 0]
            np.testing.assert_array_equal(found, part((setup, timepoint), level))
    check(n5zarr.open_bdv(tmp_path / "new/d.xml"))


def test_viewers_and_ome_zarr(tmp_path: Path) -> None:
    xml = write_project(tmp_path, "ome")
    images = find_images(xml)
    assert [each.path for each in images] == [f"{n}" for n in BOXES]
    n5zarr.convert(xml, tmp_path / "o.zarr", ome=True)
    array: Any = zarr.open_group(tmp_path / "o.zarr")["1/s1"]
    np.testing.assert_array_equal(array[1], part((1, 2), 1))
    assert n5zarr.thumbnail(xml, all_images=True).size


def test_the_images_keep_their_voxel_size(tmp_path: Path) -> None:
    write_project(tmp_path, "n5")
    with warnings.catch_warnings():
        warnings.simplefilter("error", N5Warning)
        data = xr.open_dataset(tmp_path / "d.n5", engine="n5", group="setup3/timepoint0/s0")
        tree: Any = n5zarr.open_bdv(tmp_path / "d.n5")
    for node in (data, tree["setup3/s0"]):
        assert [float(node[dim][1]) for dim in "zyx"] == [2.0, 0.5, 0.5]
    assert set(tree.children) == {"setup0", "setup3"}
    # the XML from which it was split also has their registrations
    views = (
        "<ViewRegistration timepoint='0' setup='3'><ViewTransform type='affine'><affine>"
        "1 0 0 7 0 1 0 0 0 0 4 0</affine></ViewTransform></ViewRegistration>"
    )
    loader = "<ImageLoader format='bdv.n5'><n5 type='relative'>d.n5</n5></ImageLoader>"
    text = f"<SequenceDescription>{loader}{split_project.OLD}</SequenceDescription>"
    (tmp_path / "z.xml").write_text(
        f"<SpimData>{text}<ViewRegistrations>{views}</ViewRegistrations></SpimData>"
    )
    data = xr.open_dataset(tmp_path / "d.n5", engine="n5", group="setup3/timepoint0/s0")
    assert float(data["x"][0]) == 3.5


def test_a_box_outside_of_the_image_is_told(tmp_path: Path) -> None:
    xml = write_project(tmp_path, "n5")
    xml.write_text(xml.read_text().replace("<max>17 11 6</max>", "<max>19 11 6</max>"))
    with pytest.raises(N5UnrepresentableError, match=r"setup 2: .*setup 3.*19, 13, 7.*19, 11, 6"):
        n5zarr.open(xml, path="setup2/timepoint0/s0")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"<OldId>3</OldId>": ""}, "without NewId"),
        ({"<min>5 3 1</min>": "<min>5 3</min>"}, "three whole numbers"),
        ({"<min>5 3 1</min>": "<min>5 3 -1</min>"}, "three whole numbers"),
        ({"<min>5 3 1</min>": "<min>5 3 7</min>"}, "three whole numbers"),
        ({"SetupIds>": "Others>"}, "the format split.viewerimgloader around no SetupIdDefinition"),
        ({"'bdv.n5'": "'other'", "n5 ": "n6 ", "/n5>": "/n6>"}, "around the format other"),
        ({"n5 ": "n6 ", "/n5>": "/n6>"}, "around the format bdv.n5 without the element n5"),
    ],
)
def test_broken_loaders_are_told(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    xml = write_project(tmp_path, "n5")
    text = xml.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    xml.write_text(text)
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.open_bdv(xml)
    assert len(n5zarr.read_registrations(xml)) == len(BOXES) * len(split_project.TIMEPOINTS)


def test_the_xml_does_not_describe_the_images(tmp_path: Path) -> None:
    xml = write_project(tmp_path, "n5")
    said = r"boxes of them, .*split\.xml; open it itself"
    with pytest.raises(N5UnrepresentableError, match=said):
        n5zarr.open_bdv(tmp_path / "d.n5", xml=xml)


def test_other_xml_beside_a_container_is_told(tmp_path: Path) -> None:
    xml = write_project(tmp_path, "n5")
    xml.write_text(xml.read_text().replace("split.viewerimgloader", "tiff"))
    with pytest.warns(N5Warning, match=r"not those of BigDataViewer's XML .*the format tiff"):
        xr.open_dataset(tmp_path / "d.n5", engine="n5", group="setup3/timepoint0/s0")
