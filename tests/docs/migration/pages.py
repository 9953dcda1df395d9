"""Write the tables of ``docs/migration`` from the rows and their results."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.docs.migration.from_tensorstore import TENSORSTORE
from tests.docs.migration.from_z5py import Z5PY
from tests.docs.migration.from_zarr2 import ZARR2
from tests.docs.migration.from_zarr_n5 import ZARR_N5

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.docs.migration.compare import Verdict
    from tests.docs.migration.model import Library, Section

LIBRARIES = (ZARR2, Z5PY, TENSORSTORE, ZARR_N5)
FOLDER = Path(__file__).parents[3] / "docs" / "migration"
MARK = "<!-- made by `python -m tests.docs.migration` -->"
END = "<!-- end -->"


def code(lines: str) -> str:
    """Return lines of code as the content of a cell."""
    return "<br>".join(f"`{line}`" for line in lines.replace("|", "\\|").splitlines() if line)


def common(old: list[str], new: list[str]) -> list[str]:
    """Return the lines with which both begin."""
    return [
        line for line, _ in takewhile(lambda two: two[0] == two[1], zip(old, new, strict=False))
    ]


def before(library: Library, section: Section) -> list[str]:
    """Return the lines before each call; those of one library have its name above."""
    old, new = section.before_old.splitlines(), section.before_new.splitlines()
    first = common(old, new)
    old, new = old[len(first) :], new[len(first) :]
    last = common(old[::-1], new[::-1])[::-1]
    own = {library.name: old[: len(old) - len(last)], "n5zarr": new[: len(new) - len(last)]}
    between = [line for name, lines in own.items() if lines for line in (f"# {name}", *lines)]
    lines = [*first, *between, *(["# both"] if between and last else []), *last]
    return ["Before each call:", "", "```text", *lines, "```", ""] if lines else []


def is_same(verdict: Verdict) -> bool:
    """Return whether a line stays as it is, but for the module of a name."""
    row = verdict.row
    stays = row.old == row.new.replace("n5zarr.", "zarr.")
    return stays and not verdict.differing and "\n" not in row.old


def table(library: Library, section: Section, verdicts: Sequence[Verdict]) -> str:
    listed = [v for v in verdicts if v.row.listed]
    same = [code(v.row.new) for v in listed if is_same(v)]
    cells = [
        (code(v.row.old), "<br>".join(filter(None, (code(v.row.new), v.text))))
        for v in listed
        if not is_same(v)
    ]
    lines = [f"### {section.title}", "", *before(library, section)]
    lines += [f"The same: {', '.join(same)}.", ""] if same else []
    lines += [f"{library.name} | n5zarr", "---|---"]
    return "\n".join([*lines, *(" | ".join(row) for row in cells), ""])


def tables(library: Library, verdicts: Sequence[Verdict]) -> str:
    rest, parts = list(verdicts), []
    for section in library.sections:
        n = len(section.rows)
        parts.append(table(library, section, rest[:n]))
        rest = rest[n:]
    return "\n".join(parts)


def counts(found: Mapping[str, Sequence[Verdict]]) -> str:
    """Return the table of counts, one row for each library."""
    lines = [
        "| from | calls | equal | differ, with the reason | no counterpart |",
        "|---|---|---|---|---|",
    ]
    for library in LIBRARIES:
        verdicts = found[library.page]
        none = sum(not v.row.new for v in verdicts)
        differ = sum(bool(v.differing) for v in verdicts)
        numbers = (len(verdicts), len(verdicts) - none - differ, differ, none)
        name = f"[{library.name}]({library.page}.md)"
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
    return "\n".join([*lines, ""])


def with_tables(page: str, made: str, mark: str = MARK) -> str:
    """Replace the text between the marks of a page."""
    pattern = re.compile(f"(?<={re.escape(mark)}\n).*?(?={re.escape(END)})", re.DOTALL)
    text, n = pattern.subn(lambda _: f"\n{made}\n", page)
    assert n == 1, page[:80]
    return text


def pages(found: Mapping[str, Sequence[Verdict]]) -> dict[Path, str]:
    made = {library.page: tables(library, found[library.page]) for library in LIBRARIES}
    made["README"] = counts(found)
    files = {FOLDER / f"{name}.md": text for name, text in made.items()}
    return {
        file: with_tables(file.read_text(encoding="utf-8"), text) for file, text in files.items()
    }
