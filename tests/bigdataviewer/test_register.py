"""Registrations in the XML of a project: read, added and replaced, and all other text kept."""

from __future__ import annotations

import difflib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.bigdataviewer import spimdata
from tests.contract import bigstitcher

MOVED = np.column_stack([np.eye(3), [12.5, -3, 1 / 3]])
TURNED = np.array([[0, -1, 0, 7], [1, 0, 0, 11], [0, 0, 1, 13.0]])


@pytest.fixture
def xml(tmp_path: Path) -> Path:
    path = tmp_path / "dataset.xml"
    text = bigstitcher.project_xml().replace("left green", "links grün <!-- --> &#8364;")
    path.write_bytes(text.replace("\n", "\r\n").encode())
    return path


def changed_lines(before: bytes, after: bytes) -> list[str]:
    lines = difflib.ndiff(before.decode().splitlines(), after.decode().splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_registrations_are_lists_of_transforms(xml: Path) -> None:
    found = n5zarr.read_registrations(xml)
    assert found.keys() == {(s, t) for s in bigstitcher.SETUPS for t in bigstitcher.TIMEPOINTS}
    for (number, _), transforms in found.items():
        expected = bigstitcher.affines(bigstitcher.SETUPS[number])
        assert [each.name for each in transforms] == ["a"] * len(expected)
        np.testing.assert_array_equal([each.matrix for each in transforms], expected)


def test_a_transform_is_applied_after_the_others(xml: Path) -> None:
    before, read = xml.read_bytes(), spimdata.read(xml)
    n5zarr.register(xml, {(7, 5): TURNED, 0: np.vstack([MOVED, [0, 0, 0, 1]])}, name="µ & <new>")
    after = spimdata.read(xml)
    for view in read.transforms:
        added = {(7, 5): TURNED}.get(view, MOVED if view[0] == 0 else np.eye(3, 4))
        expected = np.vstack([added, [0, 0, 0, 1]]) @ np.vstack([read.model(*view), [0, 0, 0, 1]])
        np.testing.assert_array_equal(after.model(*view), expected[:3])
    assert after.transforms[7, 5][0][0] == "µ & <new>"
    lines = changed_lines(before, xml.read_bytes())
    assert len(lines) == 5 * 4  # of each new element in five views; nothing is removed
    assert {line[0] for line in lines} == {"+"}
    assert after._replace(transforms={}) == read._replace(transforms={})


def test_transforms_are_replaced_and_what_was_read_restores_them(xml: Path) -> None:
    before = n5zarr.read_registrations(xml)
    n5zarr.register(xml, {3: [("second", MOVED), ("first", TURNED)]}, replace=True)
    found = spimdata.read(xml).transforms[3, 8]
    assert [name for name, _ in found] == ["second", "first"]
    np.testing.assert_array_equal([matrix for _, matrix in found], [MOVED, TURNED])
    missing = spimdata.read(xml).transforms[bigstitcher.MISSING]
    assert [name for name, _ in missing] == ["a", "a"]  # a view without data is left alone
    n5zarr.register(xml, before, replace=True)
    assert n5zarr.read_registrations(xml) == before


def test_transforms_that_are_not_understood_stay(xml: Path) -> None:
    text = xml.read_bytes().decode()
    start = text.index("<ViewTransform", text.index("<ViewRegistration "))
    end = text.index("</ViewTransform>", start)
    other = (
        "<!-- by hand --><ViewTransform type='affine' by=\"me > you\"><Name>\t2D</Name>"
        "<affine>1.0E0 0 0</affine><more/>"
    )
    before = (text[:start] + other + text[end:]).encode()
    xml.write_bytes(before)
    view = min(n5zarr.read_registrations(xml))
    n5zarr.register(xml, {view: MOVED, (0, 2): TURNED})
    lines = changed_lines(before, xml.read_bytes())
    assert len(lines) == 2 * 4
    assert {line[0] for line in lines} == {"+"}
    assert [each.name for each in n5zarr.read_registrations(xml)[view]][:2] == ["n5zarr", "\t2D"]


def test_the_registration_of_a_view_precedes_that_of_its_setup(xml: Path) -> None:
    for given in ({3: MOVED, (3, 8): TURNED}, {(3, 8): TURNED, 3: MOVED}):
        n5zarr.register(xml, given, replace=True)
        found = spimdata.read(xml)
        np.testing.assert_array_equal(found.model(3, 8), TURNED)
        np.testing.assert_array_equal(found.model(3, 0), MOVED)


def test_views_without_a_registration_get_one(tmp_path: Path) -> None:
    xml = tmp_path / "dataset.xml"
    text = bigstitcher.project_xml()
    start, end = text.index("  <ViewRegistrations>"), text.index("</ViewRegistrations>")
    for nothing in ("", "  <ViewRegistrations />\n"):
        xml.write_text(text[:start] + nothing + text[end + len("</ViewRegistrations>\n") :])
        n5zarr.register(xml, {(1, 2): MOVED})
        found = spimdata.read(xml).transforms
        assert found.keys() == {(1, 2)}
        np.testing.assert_array_equal(found[1, 2][0][1], MOVED)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({9: MOVED}, r"a setup, of 0-1, 3-4, 7, alone or with a time point, of 0, 2, 5, 8, got 9"),
        ({(0, 1): MOVED}, r"got \(0, 1\)"),
        ({(0, 0, 0): MOVED}, r"got \(0, 0, 0\)"),
        ([MOVED], "expected a mapping of setups"),
        ({0: np.eye(3)}, r"the shape \(3, 3\)"),
        ({0: np.ones((4, 4))}, r"with the last row"),
        ({0: np.full((3, 4), np.nan)}, "that can be inverted"),
        ({0: np.zeros((3, 4))}, "that can be inverted"),
        ({0: "identity"}, "expected a matrix of numbers"),
        ({0: [("a\0b", MOVED)]}, "characters that XML can hold"),
    ],
)
def test_mistakes_change_nothing(xml: Path, given: Any, message: str) -> None:
    before = xml.read_bytes()
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.register(xml, given)
    assert xml.read_bytes() == before


@pytest.mark.parametrize(
    "text", ["<SpimData/>", "<other/>", "no XML", '<!DOCTYPE a [<!ENTITY b "c">]><SpimData/>']
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    xml = tmp_path / "dataset.xml"
    xml.write_text(text)
    for call in (lambda: n5zarr.register(xml, {0: MOVED}), lambda: n5zarr.read_registrations(xml)):
        with pytest.raises(N5UnrepresentableError, match=r"expected BigDataViewer's XML"):
            call()
    assert xml.read_text() == text
    with pytest.raises(FileNotFoundError, match=r"none\.xml"):
        n5zarr.register(tmp_path / "none.xml", {0: MOVED})


def test_several_writers_lose_nothing(xml: Path) -> None:
    views = [(s, t) for s in bigstitcher.SETUPS for t in (0, 2)]
    threads = [
        threading.Thread(target=n5zarr.register, args=(xml, {view: MOVED})) for view in views
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = n5zarr.read_registrations(xml)
    assert {view for view, each in found.items() if each[0].name == "n5zarr"} == {*views}
