"""BigStitcher's interest points survive a round trip, by a reader with the rules of Java."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pytest

import n5zarr
from n5zarr.bigdataviewer import write_points as interest_points
from tests.contract import bigstitcher as project

BEADS = {0: (1.5, 2.25, 1e-300), 2: (3.0, 4.0, 5.0), 5: (6.1, 7.2, 8.3)}
OTHERS = {11: (0.1, 0.2, 0.3), 13: (-4.0, 1 / 3, 99.0)}
PAIRS = [(0, 11, "2,1,a, b", -1), (5, 13, "2,1,a, b", 0), (0, 3, "0,4,beads", 2_000_000)]
LISTS = [(0, 0, "beads", "DOG <s>"), (0, 4, "beads", ""), (2, 1, "a, b", "")]
BACK = [(11, 0, "0,0,beads", -1), (13, 5, "0,0,beads", 0)]


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Write interest points as Java does, and XML that names all lists but one."""
    container = tmp_path / "interestpoints.n5"
    project.write_list(container, "tpId_0_viewSetupId_0/beads", BEADS, PAIRS)
    project.write_list(container, "tpId_2_viewSetupId_1/a, b", OTHERS, BACK, version=1)
    project.write_list(container, "tpId_0_viewSetupId_4/beads", {}, [])
    project.write_list(container, "tpId_0_viewSetupId_7/beads", OTHERS)
    entries = "".join(
        f'\n    <ViewInterestPointsFile timepoint="{t}" setup="{s}" label="{label}" '
        f'params="{escape(given)}">tpId_{t}_viewSetupId_{s}/{label}</ViewInterestPointsFile>'
        for t, s, label, given in LISTS
    )
    named = f"<!-- µ -->\r\n  <ViewInterestPoints>{entries}\n  </ViewInterestPoints>"
    xml = tmp_path / "dataset.xml"
    xml.write_bytes(project.project_xml(named).encode())
    return xml


def rows(table: pd.DataFrame) -> Iterable[tuple[Any, ...]]:
    return table.itertuples(index=False, name=None)


def test_interest_points_are_read_as_tables(points: Path) -> None:
    found = n5zarr.read_interest_points(points)
    beads = [(0, 0, "beads", number, *place) for number, place in BEADS.items()]
    others = [(2, 1, "a, b", number, *place) for number, place in OTHERS.items()]
    assert list(rows(found.points)) == beads + others
    assert list(found.points) == ["timepoint", "setup", "label", "id", "x", "y", "z"]
    assert list(rows(found.lists)) == LISTS
    assert list(rows(found.correspondences)) == [
        (0, 0, "beads", 0, 2, 1, "a, b", 11, -1),
        (0, 0, "beads", 5, 2, 1, "a, b", 13, 0),
        (0, 0, "beads", 0, 0, 4, "beads", 3, 2_000_000),
        (2, 1, "a, b", 11, 0, 0, "beads", 0, -1),
        (2, 1, "a, b", 13, 0, 0, "beads", 5, -1),  # version 1 has no consensus set
    ]
    every = n5zarr.read_interest_points(points.parent / "interestpoints.n5")
    assert every.lists["setup"].tolist() == [0, 4, 7, 1]
    assert len(n5zarr.read_interest_points(points, label="a, b").points) == len(OTHERS)
    nothing = n5zarr.read_interest_points(points, label="none")
    assert list(nothing.points) == list(found.points)
    assert list(nothing.correspondences) == list(found.correspondences)


def test_interest_points_go_there_and_back(points: Path, tmp_path: Path) -> None:
    found = n5zarr.read_interest_points(points)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "project.xml").write_text(project.project_xml())
    n5zarr.write_interest_points(copy / "project.xml", *found)
    again = n5zarr.read_interest_points(copy / "project.xml")
    for table, other in zip(found, again, strict=True):
        pd.testing.assert_frame_equal(table, other)
    container = copy / "interestpoints.n5"
    assert project.read_list(container, "tpId_0_viewSetupId_0/beads") == (BEADS, PAIRS)
    pairs = [(*pair[:3], -1) for pair in BACK]
    assert project.read_list(container, "tpId_2_viewSetupId_1/a, b") == (OTHERS, pairs)
    assert project.read_list(container, "tpId_0_viewSetupId_4/beads") == ({}, [])
    assert json.loads((container / "attributes.json").read_text())["n5"] == "4.0.0"
    # the XML that BigStitcher would have written, and the other elements as they were
    before = ElementTree.fromstring(project.project_xml())  # noqa: S314 - ours
    after = ElementTree.fromstring((copy / "project.xml").read_bytes())  # noqa: S314 - ours
    entries = after.find("ViewInterestPoints")
    assert entries is not None
    assert [(entry.attrib, entry.text) for entry in entries] == [
        (
            {"timepoint": str(t), "setup": str(s), "label": label, "params": parameters},
            f"tpId_{t}_viewSetupId_{s}/{label}",
        )
        for t, s, label, parameters in LISTS
    ]
    for kept, was in zip(after, before, strict=True):
        if kept.tag != "ViewInterestPoints":
            assert ElementTree.tostring(kept) == ElementTree.tostring(was)


def test_new_lists_are_added_and_what_exists_stays(points: Path) -> None:
    container = points.parent / "interestpoints.n5"
    text = points.read_bytes()
    places = {7: (1.0, 2.0, 3.0), 0: (4.0, 5.0, 6.0)}
    new = table(8, 3, "π <&>", places)
    n5zarr.write_interest_points(points, new)
    assert project.read_list(container, "tpId_8_viewSetupId_3/π <&>")[0] == places
    assert project.read_list(container, "tpId_0_viewSetupId_0/beads") == (BEADS, PAIRS)
    entry = (
        b'    <ViewInterestPointsFile timepoint="8" setup="3" label="&#960; &lt;&amp;&gt;" '
        b'params="">tpId_8_viewSetupId_3/&#960; &lt;&amp;&gt;</ViewInterestPointsFile>\n'
    )
    end = b"  </ViewInterestPoints>"
    assert points.read_bytes() == text.replace(end, entry + end)
    found = n5zarr.read_interest_points(points)
    assert found.points["label"].tolist()[-1] == "π <&>"
    # what exists is replaced only where that is wanted, with its correspondences
    with pytest.raises(FileExistsError, match=r"without overwrite=True, got \['tpId_8_view"):
        n5zarr.write_interest_points(points, new)
    n5zarr.write_interest_points(points, table(0, 0, "beads", OTHERS), overwrite=True)
    assert project.read_list(container, "tpId_0_viewSetupId_0/beads") == (OTHERS, [])


def table(t: int, s: int, label: str, places: dict[int, Any], **more: Any) -> pd.DataFrame:
    columns: dict[str, Any] = {"timepoint": t, "setup": s, "label": label, "id": list(places)}
    return pd.DataFrame(
        {**columns, **dict(zip("xyz", zip(*places.values(), strict=True), strict=True)), **more}
    )


def test_lists_of_several_blocks_and_more_columns(tmp_path: Path) -> None:
    n = 300_007
    rng = np.random.default_rng(5)
    places = rng.normal(size=(n, 3))
    columns: dict[str, Any] = {"timepoint": 0, "setup": 2, "label": "many", "id": np.arange(n)}
    many = pd.DataFrame({**columns, **dict(zip("xyz", places.T, strict=True))})
    bright = table(1, 2, "bright", BEADS, intensities=np.array([0.5, 0, 3], "f4"))
    container = tmp_path / "interestpoints.n5"
    n5zarr.write_interest_points(container, pd.concat([many, bright]))
    document, read = project.read_dataset(
        container / "tpId_0_viewSetupId_2/many/interestpoints/loc", "d"
    )
    assert document["dimensions"] == [3, n]
    np.testing.assert_array_equal(read, places)
    assert not (container / "tpId_0_viewSetupId_2/many/interestpoints/intensities").exists()
    found = n5zarr.read_interest_points(container, label="bright").points
    pd.testing.assert_frame_equal(found[list(bright)], bright)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": [1, 1, 2]}, "ids that are unique"),
        ({"id": [1, 2, 2**31]}, "ids that are unique and between -2147483648 and 2147483647"),
        ({"id": [1.0, 2.0, 3.0]}, r"numbers as integers, got .*id \(float64\)"),
        ({"label": ["a", None, "a"]}, "expected text in label in each row"),
        ({"note": ["a", "b", "c"]}, r"columns of numbers beside .*, got \['note'\]"),
    ],
    ids=["twice", "no int", "float", "no label", "text"],
)
def test_points_that_bigstitcher_cannot_read_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    container = tmp_path / "interestpoints.n5"
    with pytest.raises(n5zarr.N5Error, match=message):
        n5zarr.write_interest_points(container, table(0, 0, "a", BEADS).assign(**change))
    with pytest.raises(n5zarr.N5Error, match="columns timepoint, setup, label, id, x, y, numbers"):
        n5zarr.write_interest_points(container, table(0, 0, "a", BEADS).drop(columns="y"))
    names = ("timepoint", "setup", "id", "consensus_set")
    others = [f"corresponding_{name}" for name in ("timepoint", "setup", "id")]
    pair: dict[str, Any] = dict.fromkeys([*names, *others], 0)
    lone = pd.DataFrame([{**pair, "label": "b", "corresponding_label": "a"}])
    with pytest.raises(n5zarr.N5Error, match="tpId_0_viewSetupId_0/b: expected the points of"):
        n5zarr.write_interest_points(container, table(0, 0, "a", BEADS), lone)
    assert not container.exists()


@pytest.mark.parametrize(
    ("group", "text", "error", "message"),
    [
        ("correspondences", '{"correspondences":"3.0.0"}', NotImplementedError, "1 or 2, got 3.0"),
        ("correspondences", '{"correspondences":"10.0.0"}', NotImplementedError, "1 or 2, got 10."),
        ("correspondences", '{"idMap":{"0,1":0}}', ValueError, "idMap: expected 'timepoint"),
        ("correspondences", '{"idMap":{"0,1,a":9}}', ValueError, r"third in idMap, .* \(4, 3\)"),
        ("correspondences", '{"idMap":{"0,4,b":NaN}}', ValueError, "idMap: expected"),
        ("correspondences", '{"idMap":{"0,4,b":1e400}}', ValueError, "idMap: expected"),
        ("interestpoints", '{"type":"tree"}', NotImplementedError, "type 'list', got 'tree'"),
    ],
)
def test_a_list_that_cannot_be_read_is_named(
    points: Path, group: str, text: str, error: type[Exception], message: str
) -> None:
    path = "tpId_0_viewSetupId_0/beads"
    (points.parent / "interestpoints.n5" / path / group / "attributes.json").write_text(text)
    with pytest.raises(error, match=message) as raised:
        n5zarr.read_interest_points(points)
    assert isinstance(raised.value, n5zarr.N5Error)
    assert path in str(raised.value)


def test_lists_that_are_not_there_are_named(points: Path) -> None:
    container = points.parent / "interestpoints.n5"
    group = container / "tpId_0_viewSetupId_0" / "beads"
    (group / "interestpoints" / "id" / "attributes.json").unlink()
    with pytest.raises(n5zarr.N5Error, match="expected id and loc with equal numbers"):
        n5zarr.read_interest_points(container)
    text = points.read_text()
    points.write_text(text.replace(">tpId_2", ">tpId_3"))
    with pytest.raises(n5zarr.N5Error, match="expected id and loc"):
        n5zarr.read_interest_points(points)
    points.write_text(text.replace(">tpId_0_viewSetupId_0", ">interestpoints/tpId_0"))
    with pytest.raises(n5zarr.N5Error, match="got text files"):
        n5zarr.read_interest_points(points)
    (points.parent / "empty.n5").mkdir()
    with pytest.raises(FileNotFoundError, match="empty"):
        n5zarr.read_interest_points(points.parent / "empty.n5")


def test_a_list_that_is_elsewhere_is_missing(points: Path) -> None:
    points.write_text(points.read_text().replace(">tpId_2", ">tpId_3"))
    with pytest.raises(FileNotFoundError, match="expected a list of interest points at tpId_3"):
        n5zarr.read_interest_points(points)


@pytest.mark.parametrize(
    "nothing",
    ["<ViewInterestPoints />", "<ViewInterestPoints></ViewInterestPoints>", "",
     "<!-- <ViewInterestPoints /> -->"],
)  # fmt: skip
def test_xml_gets_the_element_where_it_has_none(tmp_path: Path, nothing: str) -> None:
    xml = tmp_path / "dataset.xml"
    xml.write_text(project.project_xml(nothing))
    n5zarr.write_interest_points(xml, table(0, 0, "a", BEADS))
    root = ElementTree.fromstring(xml.read_text())  # noqa: S314 - ours
    assert [e.text for e in root.iterfind("ViewInterestPoints/*")] == ["tpId_0_viewSetupId_0/a"]


def test_xml_that_cannot_be_added_to_stays(tmp_path: Path) -> None:
    wide = project.project_xml().replace("UTF-8", "UTF-16").encode("utf-16")
    (tmp_path / "dataset.xml").write_bytes(wide)
    with pytest.raises(n5zarr.N5Error, match="expected XML in UTF-8"):
        n5zarr.write_interest_points(tmp_path / "dataset.xml", table(0, 0, "a", BEADS))
    assert (tmp_path / "dataset.xml").read_bytes() == wide
    assert not (tmp_path / "interestpoints.n5").exists()


def test_points_of_images_that_are_not_n5(tmp_path: Path) -> None:
    xml = tmp_path / "dataset.xml"
    xml.write_text(project.project_xml().replace("n5>", "hdf5>").replace("<n5", "<hdf5"))
    n5zarr.write_interest_points(xml, table(0, 0, "a", BEADS))
    assert len(n5zarr.read_interest_points(xml).points) == len(BEADS)
    xml.write_text("<other/>")
    with pytest.raises(n5zarr.N5Error, match="XML of a BigStitcher project"):
        n5zarr.read_interest_points(xml)


PAIR: dict[str, Any] = {
    "timepoint": 0, "setup": 0, "label": "a", "id": 0, "corresponding_timepoint": 0,
    "corresponding_setup": 1, "corresponding_label": "b", "corresponding_id": 1,
    "consensus_set": -1,
}  # fmt: skip


@pytest.mark.each_of(3)
@pytest.mark.parametrize(
    "change",
    [
        {"id": pd.array([0, None, 2], "Int64")},
        {"timepoint": pd.array([0, None, 0], "Int64")},
        {"timepoint": -1},
        {"setup": 10**10},
        *({name: 1.0} for name in ("", "..", "id/x", "loc/x", "a/b", "attributes.json", "../../x")),
        {"bright": np.ones(3, np.longdouble)},
        {"bright": pd.array([0, None, 2], "Int64")},
        {"x": pd.array([0, None, 2], "Float64")},
        {"x": ["1", "2", "3"]},
        *({"label": name} for name in ("l" * 300, "a\nb", "/a", "a/", "a//b", "a/interestpoints")),
        *({"label": name} for name in ("trail ", "a\\b", "x\ry", "\ud800", "..")),
    ],
    ids=repr,
)
def test_a_refused_table_leaves_the_old_list(tmp_path: Path, change: dict[str, Any]) -> None:
    container = tmp_path / "interestpoints.n5"
    n5zarr.write_interest_points(container, table(0, 0, "a", BEADS))
    new = table(0, 0, "a", dict(enumerate(BEADS.values(), 20))).assign(**change)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(n5zarr.N5Error, match="expected"):
        n5zarr.write_interest_points(container, new, overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before
    assert project.read_list(container, "tpId_0_viewSetupId_0/a")[0] == BEADS


@pytest.mark.parametrize(
    "change",
    [
        {"consensus_set": pd.array([None], "Int64")},
        {"consensus_set": np.array([2**63 + 5], "u8")}, {"corresponding_id": 2**40},
        {"corresponding_setup": 10**10}, {"corresponding_setup": -1},
        {"corresponding_label": "\ud800"},
    ],
    ids=repr,
)  # fmt: skip
def test_pairs_that_java_cannot_read_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    container = tmp_path / "interestpoints.n5"
    pairs = pd.DataFrame([PAIR]).assign(**change)
    with pytest.raises(n5zarr.N5Error, match="correspondences: expected"):
        n5zarr.write_interest_points(container, table(0, 0, "a", BEADS), pairs)
    assert not container.exists()


def test_lists_are_given_once_and_may_have_no_parameters(points: Path) -> None:
    lists = pd.DataFrame({"timepoint": 8, "setup": 0, "label": ["n", "o"]})
    lists = lists.assign(parameters=[None, float("nan")])
    n5zarr.write_interest_points(points, table(8, 0, "n", BEADS), lists=lists)
    found = n5zarr.read_interest_points(points).lists
    assert found[found["timepoint"] == 8]["parameters"].tolist() == ["", ""]
    with pytest.raises(n5zarr.N5Error, match="expected each list once"):
        n5zarr.write_interest_points(
            points, table(8, 0, "n", BEADS), lists=pd.concat([lists, lists]), overwrite=True
        )
    twice = table(0, 0, "n", BEADS)
    twice.columns = pd.Index([*twice.columns[:-1], "x"])
    with pytest.raises(n5zarr.N5Error, match="expected each column once, got x"):
        n5zarr.write_interest_points(points, twice, overwrite=True)


def test_entries_of_the_xml_without_a_place_of_their_own(points: Path) -> None:
    text = points.read_text()
    points.write_text(text.replace(">tpId_2_viewSetupId_1/a, b<", ">tpId_0_viewSetupId_0/beads<"))
    with pytest.raises(n5zarr.N5Error, match=r"dataset\.xml: .*its own path"):
        n5zarr.write_interest_points(points, table(0, 0, "beads", OTHERS), overwrite=True)
    points.write_text(text.replace(">tpId_2_viewSetupId_1/a, b<", "><"))
    n5zarr.write_interest_points(points, table(2, 1, "a, b", BEADS), overwrite=True)
    container = points.parent / "interestpoints.n5"
    assert project.read_list(container, "tpId_2_viewSetupId_1/a, b") == (BEADS, [])
    assert len(n5zarr.read_interest_points(points, label="a, b").points) == len(BEADS)


def test_a_killed_writer_leaves_no_wrong_pairs(
    points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = interest_points._write_points

    def killed(*given: Any) -> None:
        write(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(interest_points, "_write_points", killed)
    with pytest.raises(KeyboardInterrupt):
        n5zarr.write_interest_points(points, table(0, 0, "beads", OTHERS), overwrite=True)
    found = n5zarr.read_interest_points(points)
    assert found.points.query("setup == 0")["id"].tolist() == [*OTHERS]
    assert 0 not in found.correspondences["setup"].tolist()


def test_the_xml_stays_a_link_with_its_mode(points: Path) -> None:
    link = points.with_name("link.xml")
    link.symlink_to(points.name)
    points.chmod(0o640)
    n5zarr.write_interest_points(link, table(8, 0, "new", BEADS))
    assert link.is_symlink()
    assert points.stat().st_mode & 0o777 == 0o640
    assert 'label="new"' in points.read_text()


def test_errors_name_the_file_that_holds_no_points(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    for name, found in (("none.n5", "does not exist"), ("a.h5", "HDF5")):
        with pytest.raises(FileNotFoundError, match=rf"{name}.*{found}") as raised:
            n5zarr.read_interest_points(tmp_path / name)
        assert "got none" not in str(raised.value)
    (tmp_path / "other.xml").write_text("<a/>")
    with pytest.raises(n5zarr.N5Error, match=r"other\.xml: .*SpimData"):
        n5zarr.read_interest_points(tmp_path / "other.xml")


def test_attributes_of_points_that_cannot_be_meant(points: Path) -> None:
    """A view that is no number, and a map that is no object."""
    pairs = points.parent / "interestpoints.n5/tpId_0_viewSetupId_0/beads/correspondences"
    file = pairs / "attributes.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"idMap": [1]}))
    with pytest.raises(n5zarr.N5Error, match=r"beads.*idMap: expected an object, got \[1\]"):
        n5zarr.read_interest_points(points)
    del document["idMap"]
    file.write_text(json.dumps(document))
    assert not len(n5zarr.read_interest_points(points, label="beads").correspondences)
    text = points.read_text()
    points.write_text(text.replace('timepoint="0" setup="4"', 'timepoint="" setup="4"'))
    with pytest.raises(n5zarr.N5Error, match=r"dataset\.xml: .*expected integers as timepoint"):
        n5zarr.read_interest_points(points)


def test_groups_of_other_names_hold_no_lists(points: Path) -> None:
    """Only groups of a time point and a setup do."""
    container = points.parent / "interestpoints.n5"
    shutil.copytree(container / "tpId_0_viewSetupId_0", container / "backup")
    before = n5zarr.read_interest_points(points, label="beads").points
    assert len(n5zarr.read_interest_points(container).lists) == 4
    (container / "tpId_0_viewSetupId_0").rename(container / "tpId_a_viewSetupId_0")
    assert len(n5zarr.read_interest_points(container).lists) == 3
    assert len(before) == len(BEADS)
