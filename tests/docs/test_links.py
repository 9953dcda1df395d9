"""What pages link and name exists: pages, their sections, modules, files, and tests as proof."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# pages of docs/design that are not about decisions
OTHERS = re.compile(r"README|proposing|recipes|releasing|results|tests-and-pages|the-way-of-.*")
DECISIONS = [p for p in sorted(ROOT.glob("docs/design/*.md")) if not OTHERS.fullmatch(p.stem)]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
MOST_WORDS = 45_000  # for users: what only developers need is in docs/design
PRESENT = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which names what is gone, too

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
MODULE = re.compile(r"\bn5zarr(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"(?<![\w/.])n5zarr/[\w/]*(?:\.(?:py|c)\b|/)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

CODEC_NAMES = {"n5zarr.block"}  # in a Zarr document, no module
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
TESTS = sorted({each for p in ROOT.glob("docs/*.md") for each in NAMED.findall(p.read_text())})


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


def test_the_pages_for_users_stay_readable() -> None:
    pages = set(ROOT.glob("docs/**/*.md")) - set(ROOT.glob("docs/design/*.md"))
    n_words = sum(len(page.read_text().split()) for page in pages)
    assert n_words <= MOST_WORDS, "say each fact once, and what developers need in docs/design"


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_a_page_of_decisions_says_what_it_covers_and_when_each_was_made(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert lines[2].startswith("This page covers ")
    decisions = [line for line in lines if line.startswith("#")][1:]
    assert decisions
    for heading in decisions:
        assert re.fullmatch(r"## .+ \(20\d\d-\d\d-\d\d\)", heading), heading


def test_no_decision_stands_twice() -> None:
    headings = [text for page in DECISIONS for text in HEADING.findall(page.read_text())]
    assert len(headings) == len({re.sub(r" \([\d-]+\)$", "", text) for text in headings})


def test_the_index_lists_each_page_of_decisions_once_with_its_title() -> None:
    index = (ROOT / "docs/design/README.md").read_text().partition("\n## Ways ")[0]
    listed = re.findall(r"^- \[(.*)\]\((.*)\): .", index, re.MULTILINE)
    assert sorted(listed) == sorted((HEADING.findall(p.read_text())[0], p.name) for p in DECISIONS)


def test_security_names_tests() -> None:
    text = (ROOT / "docs/safety.md").read_text().partition("\n## Security\n")[2]
    rows = re.findall(r"^\| (?!attack|-).*$", text.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 20
    assert all(NAMED.search(row) for row in rows)


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_a_named_test_exists(file: str, name: str) -> None:
    text = (ROOT / file).read_text()
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{file} has no {name}"
