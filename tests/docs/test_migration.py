"""The calls on the pages of migration have the stated results in both libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.migration.compare import measure
from tests.docs.migration.model import Library, Row, Section
from tests.docs.migration.pages import LIBRARIES, pages

if TYPE_CHECKING:
    from tests.docs.migration.compare import Verdict

for name in ("tensorstore", "z5py", "zarr_n5"):
    pytest.importorskip(name, reason="peer: uv sync installs it")


WRONG = (
    (Row("1", "2"), "differs in"),
    (Row("1", "1", "a reason"), "differs in"),
    (Row("1 / 0", "1 / 0"), "old: "),
    (Row("1", "1", raises="new"), "new: "),
    (Row("1"), "says no reason"),
    (Row("Path('c.n5/em/mask/0/0/0').unlink()", "None"), "elements"),
    (Row("Path('c.n5/em/attributes.json').write_text('{}')", "2"), "attributes"),
    (Row("Path('c.n5/x').mkdir()", "None"), "nodes"),
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Verdict]]:
    return measure(LIBRARIES, tmp_path_factory.mktemp("migration"))


@pytest.mark.long
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.page)
def test_each_call_gives_what_its_row_says(found: dict[str, list[Verdict]], library: Any) -> None:
    wrong = {v.row.old: v.problems for v in found[library.page] if v.problems}
    assert wrong == {}


@pytest.mark.long
def test_the_pages_say_what_was_found(found: dict[str, list[Verdict]]) -> None:
    for file, text in pages(found).items():
        assert file.read_text(encoding="utf-8") == text, f"{file}: python -m tests.docs.migration"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    library = Library(
        "Python", "wrong", "", "", (Section("", more=tuple(row for row, _ in WRONG)),)
    )
    return measure([library], tmp_path_factory.mktemp("rows"))["wrong"]


@pytest.mark.parametrize(("n", "problem"), [(n, p) for n, (_, p) in enumerate(WRONG)])
def test_a_wrong_row_is_noticed(wrong: list[Verdict], n: int, problem: str) -> None:
    assert problem in " ".join(wrong[n].problems)
