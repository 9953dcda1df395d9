"""The tests that pages name as proof exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PAGES = sorted(ROOT.glob("docs/*.md"))
TESTS = sorted({found for page in PAGES for found in NAMED.findall(page.read_text())})


def test_security_names_tests() -> None:
    text = (ROOT / "docs/safety.md").read_text().partition("\n## Security\n")[2]
    rows = re.findall(r"^\| (?!attack|-).*$", text.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 20
    assert all(NAMED.search(row) for row in rows)


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_a_named_test_exists(file: str, name: str) -> None:
    text = (ROOT / file).read_text()
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{file} has no {name}"
