"""Run the rows of migration in both libraries, and write the tables of ``docs/migration``.

    uv run python -m tests.docs.migration

zarr-python 2 gets an environment of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.migration.compare import measure
from tests.docs.migration.pages import LIBRARIES, pages


def main() -> int:
    """Print the problems of rows; write the pages if there are none."""
    with tempfile.TemporaryDirectory() as name:
        found = measure(LIBRARIES, Path(name))
    n_wrong = 0
    for verdicts in found.values():
        for verdict in verdicts:
            for problem in verdict.problems:
                n_wrong += 1
                sys.stdout.write(f"{verdict.row.old}: {problem}\n")
    if not n_wrong:
        for file, text in pages(found).items():
            file.write_text(text, encoding="utf-8")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
