"""Write the tables of ``docs/migration`` from the rows and their results."""

from __future__ import annotations

import re
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


def table(library: Library, section: Section, verdicts: Sequence[Verdict]) -> str:
    """Return the section of a page with its rows."""
    cells = [(code(v.row.old), code(v.row.new) or "-", v.text) for v in verdicts]
    lines = [f"### {section.title}", ""]
    for name, before in ((library.name, section.before_old), ("n5zarr", section.before_new)):
        if before:
            lines += [
                f"Before each call of {name}:",
                "",
                "```text",
                *before.splitlines(),
                "```",
                "",
            ]
    lines += [f"| {library.name} | n5zarr | result |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells), ""])


def tables(library: Library, verdicts: Sequence[Verdict]) -> str:
    """Return all tables of a page."""
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
    """Return each page with its tables up to date."""
    made = {library.page: tables(library, found[library.page]) for library in LIBRARIES}
    made["README"] = counts(found)
    files = {FOLDER / f"{name}.md": text for name, text in made.items()}
    return {
        file: with_tables(file.read_text(encoding="utf-8"), text) for file, text in files.items()
    }
