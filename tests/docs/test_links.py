"""Targets of links on the pages exist: other pages, their sections, modules and files."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted(ROOT.glob("docs/design/20*-*.md"))
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
]
PRESENT = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which names what is gone, too

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
MODULE = re.compile(r"\bn5zarr(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"(?<![\w/.])n5zarr/[\w/]*(?:\.(?:py|c)\b|/)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

CODEC_NAMES = {"n5zarr.block"}  # in a Zarr document, no module


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """Return the names of a page's sections as GitHub makes them."""
    headings = (re.sub(r"[^\w\s-]", "", text.lower()) for text in HEADING.findall(page.read_text()))
    return {text.strip().replace(" ", "-") for text in headings}


def exists(dotted: str) -> bool:
    """Return whether a module, or an attribute of one, has this name."""
    place: object = import_module("n5zarr")
    module = "n5zarr"
    for part in dotted.split(".")[1:]:
        module += f".{part}"
        if hasattr(place, "__path__") and find_spec(module) is not None:
            place = import_module(module)
        elif hasattr(place, part):
            place = getattr(place, part)
        else:
            return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_pages_and_sections(page: Path) -> None:
    for target, section in LINK.findall(page.read_text()):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not section or section in anchors(linked), f"{target}#{section}"


@pytest.mark.parametrize("page", PRESENT, ids=name)
def test_modules_and_names_exist(page: Path) -> None:
    for dotted in set(MODULE.findall(page.read_text())) - CODEC_NAMES:
        assert exists(dotted), dotted


@pytest.mark.parametrize("page", PRESENT, ids=name)
def test_files_of_the_package_exist(page: Path) -> None:
    for path in FILE.findall(page.read_text()):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_a_record_has_a_date_and_says_why(record: Path) -> None:
    text = record.read_text()
    assert text.splitlines()[2] == record.name[:10]
    assert HEADING.findall(text)[1:] == ["Context", "Decision", "Consequences"]


def test_the_index_lists_each_record_once_with_its_title() -> None:
    listed = re.findall(
        r"^- (\S+) \[(.*)\]\((.*)\)$", (ROOT / "docs/design/README.md").read_text(), re.MULTILINE
    )
    expected = [(r.name[:10], HEADING.findall(r.read_text())[0], r.name) for r in RECORDS]
    assert sorted(listed) == sorted(expected)
