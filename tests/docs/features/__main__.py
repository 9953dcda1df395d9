"""Run the lines of each feature in each library, and write the table of the README.

    uv run python -m tests.docs.features

Printed is what the libraries gave where the table does not say yes. zarr-python 2 gets an
environment of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.features.table import README, measure, reasons, with_table


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name))
    sys.stdout.write("".join(f"{line}\n" for line in reasons(found)))
    README.write_text(with_table(README.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
