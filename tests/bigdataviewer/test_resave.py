"""Projects that ``convert`` writes anew: every value, name, place and point stays."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.bigdataviewer import spimdata
from tests.command import printed
from tests.contract import bigstitcher

NUMBERS = (0, 3, 7)  # with all kinds of documents, a missing view, and one that is turned


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the XML of a project with interest points, settings, and a function of points."""
    folder = tmp_path / "old"
    folder.mkdir()
    xml = bigstitcher.write_project(folder, NUMBERS)
    points = {7: (1.5, 2.25, -3.0), 11: (0.1, 0.2, 0.3)}
    bigstitcher.write_list(folder / "interestpoints.n5", "tpId_2_viewSetupId_3/beads", points)
    entry = (
        '<ViewInterestPointsFile timepoint="2" setup="3" label="beads" params="DOG">'
        "tpId_2_viewSetupId_3/beads</ViewInterestPointsFile>"
    )
    view, file = 'timepoint="0" setup="0"', "<file>a.tif</file>"
    function = f"<PointSpreadFunction {view}>{file}</PointSpreadFunction>"
    text = xml.read_text()
    for name, inner in (("ViewInterestPoints", entry), ("PointSpreadFunctions", function)):
        text = text.replace(f"<{name} />", f"<{name}>{inner}</{name}>")
    xml.write_text(text)
    folder.joinpath("psf").mkdir()
    folder.joinpath("psf", "a.tif").write_bytes(b"II*\0")
    folder.joinpath("dataset.settings.xml").write_text("<Settings/>")
    return xml


def tree(xml: Path) -> xr.DataTree:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", n5zarr.N5Warning)  # of the turned setup
        return n5zarr.open_bdv(xml).load()


def as_written(xml: Path) -> str:
    """Return the text of an XML of N5 with the loader's version of today."""
    return xml.read_text().replace('"bdv.n5" version="1.0"', '"bdv.n5" version="1.1"')


@pytest.mark.each_of(2)
@pytest.mark.parametrize("version", ["0.4", "0.5", "0.6"])
def test_there_and_back(project: Path, tmp_path: Path, version: Any) -> None:
    ome, back = tmp_path / "ome/a b.xml", tmp_path / "back/dataset.xml"
    done = n5zarr.convert(project, ome, to="ome-zarr", ome_version=version, verify=True)
    assert done.destination == str(ome)
    assert {array.way for array in done.arrays} == {"chunks"}
    n5zarr.convert(ome, back, to="n5", verify=True)
    assert back.read_text() == as_written(project)
    before = tree(project)
    for xml in (ome, back):
        xr.testing.assert_identical(tree(xml), before)
        found, expected = n5zarr.read_interest_points(xml), n5zarr.read_interest_points(project)
        for one, other in zip(found, expected, strict=True):
            pd.testing.assert_frame_equal(one, other)
        assert (xml.parent / "psf/a.tif").read_bytes() == b"II*\0"
        assert xml.with_suffix(".settings.xml").read_text() == "<Settings/>"
        text, old = xml.read_text(), project.read_text()
        for part in ("<ViewSetups>", "</ImageLoader>"):
            assert text.partition(part)[2] == old.partition(part)[2]


def test_java_finds_the_images(project: Path, tmp_path: Path) -> None:
    xml = tmp_path / "new/dataset.xml"
    n5zarr.convert(project, xml, to="ome-zarr")
    found = spimdata.read(xml)
    assert found.loader == "bdv.multimg.zarr"
    views = {(s, t) for s in NUMBERS for t in bigstitcher.TIMEPOINTS}
    assert found.images.keys() == views - {bigstitcher.MISSING}
    for (setup, timepoint), (path, indices) in found.images.items():
        # AllenOMEZarrProperties: a level is path/number; scales are relative to the first level
        group: Any = zarr.open_group(xml.parent / found.container / path, mode="r", zarr_format=2)
        (multiscale,) = group.attrs["multiscales"]
        scales = [each["coordinateTransformations"][0]["scale"] for each in multiscale["datasets"]]
        for level, factors in enumerate(bigstitcher.levels(bigstitcher.SETUPS[setup])):
            relative = np.round(np.divide(scales[level], scales[0])[:1:-1], 4)
            assert tuple(relative) == factors
            read = group[str(level)][tuple(reversed(indices))]
            np.testing.assert_array_equal(read, bigstitcher.elements(setup, timepoint, level))


def test_the_version_of_zarr_is_kept_and_stated(project: Path, tmp_path: Path) -> None:
    """``XmlIoAllenOMEZarrLoader`` of BigStitcher for Zarr v3 opens Zarr v2 without the tag."""
    old, new = tmp_path / "old/a.xml", tmp_path / "new/a.xml"
    cases: Any = (
        (project, old, None, 2), (project, new, "0.5", 3), (new, tmp_path / "kept/a.xml", None, 3),
        (old, tmp_path / "also kept/a.xml", None, 2), (new, tmp_path / "back/a.xml", "0.4", 2),
        (old, tmp_path / "there/a.xml", "0.5", 3),
    )  # fmt: skip
    for source, xml, version, expected in cases:
        n5zarr.convert(source, xml, to="ome-zarr", ome_version=version)
        found = spimdata.read(xml)
        assert found.zarr_format == expected
        for (setup, timepoint), (path, indices) in found.images.items():
            options: Any = {"mode": "r", "zarr_format": expected}
            array: Any = zarr.open_array(xml.parent / found.container / path / "0", **options)
            expected_values = bigstitcher.elements(setup, timepoint, 0)
            np.testing.assert_array_equal(array[tuple(reversed(indices))], expected_values)


def test_a_project_whose_xml_contradicts_the_images_opens(project: Path, tmp_path: Path) -> None:
    """XML of earlier versions of n5zarr did not state Zarr v3."""
    xml = tmp_path / "new/dataset.xml"
    n5zarr.convert(project, xml, to="ome-zarr", ome_version="0.5")
    text = xml.read_text()
    for old, new in ((' zarr.version="ZarrV3"', ""), ("ZarrV3", "ZarrV2")):
        xml.write_text(text.replace(old, new))
        assert xml.read_text() != text
        xr.testing.assert_identical(tree(xml), tree(project))


def test_shards_and_chunks_may_change(project: Path, tmp_path: Path) -> None:
    xml = tmp_path / "new/dataset.xml"
    options: Any = {"chunks": (1, 1, 2, 3, 4), "shards": 16, "compression": "zstd"}
    n5zarr.convert(project, xml, to="ome-zarr", ome_version="0.5", **options)
    array: Any = zarr.open_array(xml.parent / "dataset.ome.zarr/s0-t2.zarr/0", mode="r")
    assert (array.chunks, array.shards is not None) == ((1, 1, 2, 3, 4), True)
    xr.testing.assert_equal(tree(xml), tree(project))


def test_in_the_same_folder_points_are_shared(project: Path) -> None:
    xml = project.with_name("other.xml")
    before = sorted(path.name for path in project.parent.iterdir())
    n5zarr.convert(project, xml, to="ome-zarr")
    new = {"other.xml", "other.ome.zarr", "other.settings.xml"}
    assert {path.name for path in project.parent.iterdir()} == {*before} | new
    assert len(n5zarr.read_interest_points(xml).points) == 2


def test_a_base_path_becomes_that_of_the_new_xml(project: Path, tmp_path: Path) -> None:
    text = project.read_text()
    base = f'<BasePath type="absolute">{project.parent}</BasePath>'
    elsewhere = tmp_path / "elsewhere.xml"
    elsewhere.write_text(text.replace('<BasePath type="relative">.</BasePath>', base))
    xml = tmp_path / "new/dataset.xml"
    n5zarr.convert(elsewhere, xml, to="n5")
    assert xml.read_text() == as_written(project)
    shutil.rmtree(project.parent)
    assert len(n5zarr.read_interest_points(xml).points) == 2
    assert len(tree(xml).leaves) == 2 * len(NUMBERS)


def test_an_interrupted_run_goes_on(project: Path, tmp_path: Path) -> None:
    xml = tmp_path / "new/dataset.xml"

    class Stop(Exception):  # noqa: N818 - no error
        pass

    def stop(_: str, done: int, total: int) -> None:
        if done > total / 2:
            raise Stop

    with pytest.raises(Stop):
        n5zarr.convert(project, xml, to="ome-zarr", progress=stop, n_workers=1)
    assert not xml.exists()
    with pytest.raises(N5UnrepresentableError, match="resume"):
        n5zarr.convert(project, xml, to="ome-zarr")
    n5zarr.convert(project, xml, to="ome-zarr", resume=True)
    xr.testing.assert_identical(tree(xml), tree(project))
    before = xml.read_bytes()
    n5zarr.convert(project, xml, to="ome-zarr", resume=True)  # compares
    assert xml.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"expected to='n5' or to='ome-zarr'"),
        ({"to": "zarr"}, r"expected to='n5' or to='ome-zarr'"),
        ({"to": "n5", "select": "setup0/*"}, "select: expected only without the XML"),
        ({"to": "n5", "level": 0}, "level: expected only without the XML"),
        ({"to": "n5", "coords": True}, "coords: expected only without"),
        ({"to": "n5", "ome_version": "0.4"}, "ome_version: expected only with to='ome-zarr'"),
        ({"to": "ome-zarr", "ome_version": "0.3"}, "ome_version"),
    ],
)
def test_options_that_do_not_apply(
    project: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.convert(project, tmp_path / "new/dataset.xml", **options)
    assert not (tmp_path / "new").exists()


def test_sources_that_are_no_project(project: Path, tmp_path: Path) -> None:
    xml = tmp_path / "new/dataset.xml"
    with pytest.raises(N5UnrepresentableError, match=r"XML of a project as the source.*write_bdv"):
        n5zarr.convert(project.with_name("dataset.n5"), xml, to="n5")
    with pytest.raises(N5UnrepresentableError, match="another XML than that of the source"):
        n5zarr.convert(project, project, to="ome-zarr", overwrite=True)
    before = project.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        n5zarr.convert(project, project, to="ome-zarr")
    assert project.read_bytes() == before


def test_points_of_another_project_are_not_replaced(project: Path, tmp_path: Path) -> None:
    n5zarr.convert(project, tmp_path / "new/one.xml", to="n5")
    points = tmp_path / "new/interestpoints.n5/tpId_2_viewSetupId_3/beads/interestpoints"
    beads = points / "attributes.json"
    beads.write_text("{}")
    said = r"interestpoints\.n5: expected none of another"
    with pytest.raises(N5UnrepresentableError, match=said):
        n5zarr.convert(project, tmp_path / "new/two.xml", to="n5")
    assert beads.read_text() == "{}"
    assert not list(tmp_path.glob("new/two.*"))
    newer = tmp_path / "new/interestpoints.zarr"  # precedes the older ones
    newer.mkdir()
    newer.joinpath("zarr.json").write_text("{}")
    with pytest.raises(N5UnrepresentableError, match=r"interestpoints\.zarr: .* got zarr\.json"):
        n5zarr.convert(project, tmp_path / "new/two.xml", to="n5", overwrite=True)
    shutil.rmtree(newer)
    n5zarr.convert(project, tmp_path / "new/two.xml", to="n5", overwrite=True)
    assert beads.read_text() != "{}"


def test_links_to_the_source_are_found(project: Path, tmp_path: Path) -> None:
    before = project.read_bytes()
    (tmp_path / "folder").symlink_to(project.parent, target_is_directory=True)
    (tmp_path / "link.xml").symlink_to(project)
    for xml in (tmp_path / "folder/dataset.xml", tmp_path / "link.xml"):
        with pytest.raises(N5UnrepresentableError, match="another XML than that of the source"):
            n5zarr.convert(project, xml, to="ome-zarr", overwrite=True)
    assert project.read_bytes() == before


def test_an_xml_that_cannot_be_changed_is_found_before_the_copy(
    project: Path, tmp_path: Path
) -> None:
    text = project.read_text()
    project.write_bytes(text.replace("UTF-8", "UTF-16").encode("utf-16"))
    with pytest.raises(N5UnrepresentableError, match=r"old/dataset\.xml: expected XML in UTF-8"):
        n5zarr.convert(project, tmp_path / "new/dataset.xml", to="n5")
    assert not list(tmp_path.glob("new/*"))


def test_the_first_image_loader_counts(project: Path, tmp_path: Path) -> None:
    """Like ``getChild`` of JDOM, with which Java reads the XML."""
    other = '<ImageLoader format="bdv.n5"><n5 type="relative">none.n5</n5></ImageLoader>'
    project.write_text(project.read_text().replace("</ImageLoader>", f"</ImageLoader>{other}"))
    n5zarr.convert(project, tmp_path / "new/dataset.xml", to="ome-zarr")
    assert other in (tmp_path / "new/dataset.xml").read_text()
    xr.testing.assert_identical(tree(tmp_path / "new/dataset.xml"), tree(project))


def test_the_command(project: Path, tmp_path: Path) -> None:
    xml = tmp_path / "new/dataset.xml"
    text = printed("convert", project, xml, "--to", "ome-zarr")
    assert f"{xml}: 22 arrays" in text.replace("\n", "")
    xr.testing.assert_identical(tree(xml), tree(project))
    zarrs = tmp_path / "images.zarr"
    printed("convert", project, zarrs, "--to", "ome-zarr")  # the same as --ome
    group: Any = zarr.open_group(zarrs, mode="r", zarr_format=3)
    assert group["left_green"].attrs["ome"]["version"] == "0.5"
