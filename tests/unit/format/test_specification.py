"""Each item of the N5 specification is named beside what implements it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "n5zarr"
CITED = re.compile(r'N5 spec, "File-system specification", items? ([^.:]*)')
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py")))


@pytest.mark.parametrize("item", range(1, 10))
def test_each_item_is_named_where_it_is_implemented(item: int) -> None:
    assert any(re.search(rf"\b{item}\b", items) for items in CITED.findall(TEXT))


def test_items_are_cited_in_one_form() -> None:
    cited = {items for items in CITED.findall(TEXT) for n in re.findall(r"\d+", items) if n > "9"}
    assert not cited
    assert not re.findall(r"N5 4\.0\.0, \"|\bSpec \d", TEXT)
