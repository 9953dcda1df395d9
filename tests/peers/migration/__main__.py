"""Run the rows of migration in both libraries, and write the tables of ``docs/migration``.

    uv run python -m tests.peers.migration

zarr-python 2 gets an environment of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.peers.environments import environment
from tests.peers.migration.compare import measure
from tests.peers.migration.pages import LIBRARIES, pages


def main() -> int:
    """Print what is wrong with rows; the pages are written if nothing is."""
    n_wrong, found = 0, {}
    with tempfile.TemporaryDirectory() as name:
        for library in LIBRARIES:
            folder = Path(name) / library.page
            python = sys.executable
            if library.packages:
                python = environment(Path(name) / "env", *library.packages)
            found[library.page] = measure(library, python, folder)
            for verdict in found[library.page]:
                for problem in verdict.problems:
                    n_wrong += 1
                    sys.stdout.write(f"{library.name}: {verdict.row.old}: {problem}\n")
    if not n_wrong:
        for file, text in pages(found).items():
            file.write_text(text, encoding="utf-8")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
