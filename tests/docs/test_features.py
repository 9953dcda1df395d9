"""The README's table states the results of each library for the lines of each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.features.rows import ERROR, FEATURES, Case, Feature
from tests.docs.features.table import README, Found, cell, measure, with_table

if TYPE_CHECKING:
    from pathlib import Path

for name in ("tensorstore", "z5py", "zarr_n5"):
    pytest.importorskip(name, reason="peer: uv sync installs it")

RIGHT, OTHER = Found([1, 2], (), ""), Found([1, 3], (), "")
FAILED = Found(None, ("ValueError", "Exception"), "cannot")


@pytest.mark.long
def test_the_readme_says_what_was_found(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8")
    found = with_table(text, measure(tmp_path))
    assert rows(found) == rows(text), "python -m tests.docs.features"


def rows(page: str) -> list[str]:
    """Leave out the versions, which may be newer than those of the page."""
    return [line for line in page.splitlines() if line.startswith("|")]


def test_the_table_stays_short() -> None:
    assert len(FEATURES) <= 15


@pytest.mark.parametrize(
    ("expected", "results", "said"),
    [
        ((1, 2), [RIGHT, RIGHT], "yes"),
        ((1, 2), [RIGHT, FAILED], "not b"),
        ((1, 2), [OTHER, RIGHT], "not a†"),
        ((1, 2), [FAILED, FAILED], "no"),
        ((1, 2), [OTHER, OTHER], "no†"),
        ((1, 2), [OTHER, FAILED], "no"),
        (ERROR, [FAILED, FAILED], "yes"),
        (ERROR, [FAILED, RIGHT], "not b†"),
    ],
)
def test_a_cell_says_what_is_missing(expected: Any, results: list[Found], said: str) -> None:
    feature = Feature("", (Case("a", "", expected), Case("b", "", expected)))
    assert cell(feature, results) == said


@pytest.mark.parametrize("error", ["FixtureError", "NameError", "SyntaxError"])
def test_a_mistake_in_the_lines_is_no_result(error: str) -> None:
    with pytest.raises(AssertionError):
        cell(Feature("", (Case("", "", ERROR),)), [Found(None, (error, "Exception"), "")])
