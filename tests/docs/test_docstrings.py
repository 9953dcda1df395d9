"""Docstrings are in numpy's style: each entry of a section has an indented description."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[2] / "n5zarr"
SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Attributes")


def without_description(docstring: str) -> Iterator[str]:
    """Yield the lines of entries that no indented line follows."""
    lines = docstring.splitlines()
    section = ""
    for k, line in enumerate(lines):
        following = lines[k + 1] if k + 1 < len(lines) else ""
        if following and set(following) == {"-"}:
            section = line
        is_entry = section in SECTIONS and line[:1] not in ("", " ", "-") and line != section
        if is_entry and not following.startswith("    "):
            yield line


def test_the_rule_finds_a_description_that_is_not_indented() -> None:
    good = "Do.\n\nParameters\n----------\na : int\n    Number.\n\nReturns\n-------\nint\n    It.\n"
    assert not [*without_description(good)]
    bad = good.replace("    Number.", "Number.\n    More.").replace("    It.", "It.")
    assert [*without_description(bad)] == ["a : int", "int", "It."]


def test_each_entry_of_a_docstring_has_its_description() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for line in without_description(ast.get_docstring(node) or "")
    ]
    assert found == []
