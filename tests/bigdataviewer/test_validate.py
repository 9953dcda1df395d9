"""``validate`` of a project names what keeps BigDataViewer and BigStitcher from opening it.

The rules are those of the sources that :mod:`n5zarr.bigdataviewer.rules` and
:mod:`n5zarr.bigdataviewer.validate` name. Each problem is one edit of a project that is right.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.cli.app import app
from tests.bigdataviewer.split_project import FORMATS
from tests.bigdataviewer.split_project import write_project as write_split_project
from tests.bigdataviewer.test_absent_images import project as write_project
from tests.command import CliRunner
from tests.contract import bigstitcher

SAMPLE = Path(n5zarr.sample_path()).parent / "bigstitcher"


def copied(folder: Path) -> Path:
    """Copy the sample project; return its XML."""
    shutil.copytree(SAMPLE, folder, dirs_exist_ok=True)
    return folder / "dataset.xml"


def found(xml: Path) -> list[tuple[str, str]]:
    """Return severity and text of what is wrong with a project; the container is intact."""
    findings = n5zarr.validate(xml).findings
    return [(each.severity, str(each)) for each in findings if each.kind == "project"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("is_split", [False, True])
def test_a_project_of_any_loader_has_no_problem(kind: str, is_split: bool, tmp_path: Path) -> None:
    assert found(write_project(tmp_path, kind, is_split=is_split)) == []


def test_a_project_of_bigstitcher_has_no_problem(tmp_path: Path) -> None:
    assert found(bigstitcher.write_project(tmp_path / "n5")) == []
    assert found(copied(tmp_path / "sample")) == []


def test_what_java_reads_in_another_form_has_no_problem(tmp_path: Path) -> None:
    """Java's ``split`` drops empty parts at the end; of a path, only ``type`` is read."""
    xml = copied(tmp_path)
    text = xml.read_text().replace("0,1</int", "0,1,</int")
    xml.write_text(text.replace('<n5 type="relative"', '<n5 by="me" type="relative"'))
    assert found(xml) == []


def test_a_missing_file_of_hdf5_is_named(tmp_path: Path) -> None:
    xml = write_project(tmp_path, "hdf5", is_split=False)
    next(tmp_path.rglob("*.h5")).unlink()
    ((severity, text),) = found(xml)
    assert severity == "error"
    assert ".h5" in text


@pytest.mark.parametrize("kind", ["n5", "ome-zarr"])
def test_what_is_written_has_no_problem(kind: Any, tmp_path: Path) -> None:
    views = {n: np.full((11, 67, 71), n, "uint16") for n in (0, 3)}
    n5zarr.write_bdv(views, tmp_path / "written.xml", format=kind)
    assert found(tmp_path / "written.xml") == []
    n5zarr.convert(copied(tmp_path / "sample"), tmp_path / "resaved.xml", to=kind)
    assert found(tmp_path / "resaved.xml") == []


# name: pattern, replacement (of the first match), severity, text of the only problem
EDITS: dict[str, tuple[str, str, str, str]] = {
    "root": ("SpimData", "Data", "error", "the root element Data, not SpimData"),
    "cut": ("(?s)</ViewRegistrations>.*", "", "error", "XML that is not well-formed"),
    "version": ('version="0.2"', 'version="0.1"', "warning", "version: expected 0.2, .* got '0.1'"),
    "no registrations": ("(?s)<ViewRegistrations>.*</ViewRegistrations>", "", "error",
        "ViewRegistrations: exp"),
    "no time points": ("(?s)<Timepoints.*</Timepoints>", "", "error",
        "Timepoints: expected an element"),
    "pattern": ("0,1</int", "0,b</int", "error", "Timepoints: expected 1 to 100000 .*0,b"),
    "digits": ("0,1</int", "0,0_1</int", "error", "Timepoints: expected 1 to 100000 .*0_1"),
    "type of time points": ('type="pattern"', 'type="all"', "error",
        "Timepoints: type: expected list, .* 'all'"),
    "id": ("<id>3</id>", "<id> 3 </id>", "error", "ViewSetup 3: id: expected a whole number wit"),
    "id of a channel": ("<Channel>\\s*<id>1", "<Channel><id>\n1", "error",
        "Attributes channel: Channel 1: id: exp"),
    "size": ("61 53 11", "\n61 53 11", "error", r"ViewSetup 0: size: .*got '\\n61 53 11'"),
    "size of the image": ("61 53 11", "61 53 12", "warning",
        (r"setup 0 at 0, setup 0 at 1: s0: expected the size \[61, 53, 12\] divided by .*"
        r"got \[61, 53, 11\]")),
    "no size": ("<size>61 53 11</size>", "", "warning", "ViewSetup 0: size: expected an elem"),
    "voxel size": ("0.5 0.5 2.0", "0,5 0,5 2,0", "error",
        "ViewSetup 0: voxelSize: size: expected three numbers"),
    "no voxel size": ("(?s)<voxelSize>.*?</voxelSize>", "", "warning",
        "ViewSetup 0: voxelSize: expected an element, got none"),
    "no unit": ("<unit>um</unit>", "", "warning", "voxelSize: unit: expected an element"),
    "channel": ("<channel>0<", "<channel>7<", "warning",
        "Attributes channel: expected channel 7, as ViewSetups have it, got none"),
    "no channels": ('(?s)<Attributes name="channel">.*?</Attributes>', "", "error",
        "Attributes channel: expected channel 0-1, .* got none"),
    "the same tile": ("<tile>1<", "<tile>0<", "warning",
        "ViewSetup 0, ViewSetup 1: expected another angle, channel, illumination, tile for each"),
    "location": (r"(<Tile>\s*<id>0</id>)", r"\1<location>1 2</location>", "error",
        "Attributes tile: Tile 0: location: expected three numbers"),
    "format": ('"bdv.n5"', '"bdv.n6"', "error",
        "ImageLoader bdv.n6: format: expected a format such as bdv.n5, .*, got 'bdv.n6'"),
    "no format": (' format="bdv.n5"', "", "error",
        "ImageLoader: format: expected a format .* got none"),
    "format of others": ('"bdv.n5"', '"catmaid"', "note",
        "expected images that n5zarr reads, .* got 'catmaid'"),
    "no container": ("<n5 .*</n5>", "", "error", "got the format bdv.n5 without the element n5"),
    "other container": (">dataset.n5<", ">data.n5<", "error", "its images: .*data.n5"),
    "path of a container": (">dataset.n5<", "> dataset.n5<", "error",
        "n5: expected type='relative' with a part of a URI .*> dataset.n5<"),
    "type of a path": ('<n5 type="relative"', "<n5", "error",
        "n5: expected type='relative' .* got '<n5>"),
    "missing view": ('<MissingView timepoint="1" setup="7"', '<MissingView timepoint="1" setup="a"',
        "error", "MissingView setup a timepoint 1: setup: expected a whole number"),
    "present view is missing": ('(<MissingView )', r'\1timepoint="0" setup="2" />\n\1', "warning",
        "setup 2 at 0: listed in MissingViews, but has an image"),
    "unknown view is missing": ('(<MissingView )', r'\1timepoint="0" setup="9" />\n\1', "note",
        "setup 9 at 0: MissingViews: expected views of the project"),
    "no registration": ('(?s)<ViewRegistration timepoint="1" setup="2">.*?</ViewRegistration>', "",
        "error", "setup 2 at 1: expected a ViewRegistration"),
    "two registrations": ('(<ViewRegistration timepoint="1" setup="2")', r'\1 />\1', "warning",
        "ViewRegistration setup 2 timepoint 1, .* expected another timepoint, setup for each"),
    "affine": (r"<affine>1.0 ", "<affine>", "error",
        "ViewRegistration setup 0 timepoint 0: ViewTransform .*: affine: expected twelve numbers"),
    "no number": (r"<affine>1.0 ", "<affine>NaN ", "error",
        "affine: expected twelve numbers that are finite, .*got 'NaN"),
    "flat": (r"<affine>1.0 ", "<affine>0.0 ", "error",
        "setup 0 at 0: expected transforms that can be inverted"),
    "type of a transform": ('type="affine"', 'type="rigid"', "error",
        "ViewTransform .*: type: expected affine or generic, got 'rigid'"),
    "points of no view": ('(<ViewInterestPointsFile timepoint="0" setup=")0', r"\g<1>9", "warning",
        "setup 9 at 0: ViewInterestPoints: expected views of the project"),
    "no points": ("tpId_0_viewSetupId_0/beads<", "tpId_0_viewSetupId_0/nuclei<", "warning",
        "interestpoints.n5: expected 8 lists .* got no tpId_0_viewSetupId_0/nuclei"),
    "text files": ("tpId_0_viewSetupId_0/beads<", "interestpoints/tpId_0.beads<", "warning",
        "text files"),
    "bounding box": ("<BoundingBoxes.*",
        ('<BoundingBoxes><BoundingBoxDefinition name="a"><min>0 0 0</min><max>1 1</max></B'
        "oundingBoxDefinition></BoundingBoxes>"),
        "error", "BoundingBoxDefinition a: max: expected three whole numbers"),
    "stitching": ("<StitchingResults.*",
        ('<StitchingResults><PairwiseResult view_setup_a="0" view_setup_b="9" tp_a="0" tp_'
        'b="0"><shift>1 2 3</shift><correlation>1</correlation></PairwiseResult></Stitchi'
        "ngResults>"),
        "warning", "setup 9 at 0: StitchingResults: expected views"),
}  # fmt: skip


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the XML of a copy, which each test of an edit writes anew."""
    return copied(tmp_path_factory.mktemp("sample"))


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_problem_of_the_xml_is_named(edit: tuple[str, str, str, str], sample: Path) -> None:
    pattern, replacement, severity, text = edit
    n_edits = 0 if pattern == "SpimData" else 1  # 0: of the start and the end
    text_of_sample = (SAMPLE / "dataset.xml").read_text()
    changed, n = re.subn(pattern, replacement, text_of_sample, count=n_edits)
    assert n == 2 - n_edits
    sample.write_text(changed)
    problems = found(sample)
    assert {each for each, _ in problems} == {severity}, problems
    assert any(re.search(text, said) for _, said in problems), problems
    assert len(problems) == 1 or edit is EDITS["missing view"], problems


def test_setups_of_the_same_number(tmp_path: Path) -> None:
    xml = copied(tmp_path)
    xml.write_text(xml.read_text().replace("<id>3</id>", "<id>2</id>", 1))
    assert "ViewSetup 2, ViewSetup 2: expected another id for each" in str(found(xml))


def edit_document(folder: Path, path: str, **members: object) -> None:
    file = folder / "dataset.n5" / path / "attributes.json"
    document = json.loads(file.read_text()) | members
    kept = {key: value for key, value in document.items() if value is not None}
    file.write_text(json.dumps(kept))


# name: change of the folder, severity, text
DAMAGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "image": (lambda d: shutil.rmtree(d / "dataset.n5/setup2/timepoint1"), "error",
        "setup 2 at 1: expected an image, got none; restore it, or list it in MissingViews"),
    "level": (lambda d: shutil.rmtree(d / "dataset.n5/setup2/timepoint1/s1"), "error",
        "setup 2 at 1: expected 2 levels, got no s1"),
    "full resolution": (lambda d: shutil.rmtree(d / "dataset.n5/setup2/timepoint1/s0"), "error",
        "setup 2 at 1: expected 2 levels, got no s0"),
    "container": (lambda d: shutil.rmtree(d / "dataset.n5"), "error", "its images: .*dataset.n5"),
    "points": (lambda d: shutil.rmtree(d / "interestpoints.n5"), "warning",
        "expected 8 lists of interest points, got no tpId_0_viewSetupId_0/beads and 7 more"),
    "type of a setup": (lambda d: edit_document(d, "setup1", dataType=None), "error",
        "setup1: expected a type of numbers, .* got {'dataType': None"),
    "other type of a setup": (lambda d: edit_document(d, "setup1", dataType="uint8"), "error",
        "setup 1 at 0, setup 1 at 1: s0: expected three dimensions of uint8, .* got uint16"),
    "order of levels": (
        lambda d: edit_document(d, "setup1", downsamplingFactors=[[2, 2, 1], [1, 1, 1]]), "warning",
        r"s0: expected the size \[61, 53, 11\] divided by \[2.0, 2.0, 1.0\], got \[61, 53, 11\]"),
    "factors": (lambda d: edit_document(d, "setup1", downsamplingFactors=None), "error",
        "setup1: expected a type of numbers, and three factors of each level, got .*None}"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_problem_of_the_images_is_named(
    damage: tuple[Callable[[Path], object], str, str], tmp_path: Path
) -> None:
    xml = copied(tmp_path)
    change, severity, text = damage
    change(tmp_path)
    problems = found(xml)
    assert any(each == severity and re.search(text, said) for each, said in problems), problems
    assert {each for each, _ in problems} == {severity}


def test_blocks_fit_into_an_array_of_java(tmp_path: Path) -> None:
    xml = copied(tmp_path)
    edit_document(tmp_path, "setup1/timepoint0/s0", dimensions=[9000] * 3, blockSize=[2000] * 3)
    assert any("expected blocks of at most 2147483647" in text for _, text in found(xml))


def test_problems_of_a_split_project(tmp_path: Path) -> None:
    xml = write_split_project(tmp_path, "n5")
    text = xml.read_text()
    xml.write_text(text.replace("<NewId>6<", "<NewId>5<").replace("<OldId>3<", "<OldId>4<", 1))
    said = "\n".join(text for _, text in found(xml))
    assert "expected a SetupIdDefinition of each ViewSetup, got none of 6" in said
    assert "OldId: expected ViewSetups of the images, got 4" in said
    xml.write_text(text.replace("17 11 6", "19 11 6"))
    assert "expected a box in the image of setup 3" in "\n".join(text for _, text in found(xml))


def test_the_command_prints_a_line_for_each_problem(tmp_path: Path) -> None:
    xml = copied(tmp_path)
    text = xml.read_text().replace("61 53 11", "61 53")
    xml.write_text(text.replace("<channel>0<", "<channel>9<"))
    run = CliRunner().invoke(app, ["validate", str(xml)])
    assert run.exit_code == 1
    assert "error    project  dataset.xml: ViewSetup 0, " in run.output
    assert "1 error, 1 warning: 24 groups, 30 datasets" in run.output.replace("\n", " ")


def test_a_part_of_a_project_is_checked_without_its_xml(tmp_path: Path) -> None:
    xml = copied(tmp_path)
    xml.write_text(xml.read_text().replace("<unit>um</unit>", ""))
    assert n5zarr.validate(xml, "setup1").ok
    assert n5zarr.validate(f"{xml}/setup1").ok
    with pytest.raises(FileNotFoundError, match=r"no\.xml"):
        n5zarr.validate(tmp_path / "no.xml")
