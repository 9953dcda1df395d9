"""Make the table of tests: run them, each recorded.

``uv run python -m tests.near`` runs all tests for their seconds, and those of ``LINED`` once more
for the lines that they run, which takes twice their time. ``--lines`` does only this. ``--age``
says how old the table is, and fails above a tenth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.near.recording import FOLDER, REPOSITORY, SECONDS_ONLY
from tests.near.table import TABLE, Table, recorded, seconds_of, table_of

MOST = 0.1
LINED = ("tests/unit", "tests/conformance", "tests/property", "tests/contract")


def main(given: list[str]) -> None:
    if given == ["--age"]:
        age = Table.read().age
        print(f"{age:.1%} of the functions are new since the table was made, or gone")  # noqa: T201
        sys.exit(f"run python -m tests.near: at most {MOST:.0%} may be" if age > MOST else 0)
    runs = {"lines": LINED} | ({} if given == ["--lines"] else {"seconds": ()})
    failed = False
    with tempfile.TemporaryDirectory() as top:
        for name, paths in runs.items():
            (folder := Path(top, name)).mkdir()
            environment = os.environ | {FOLDER: str(folder)}
            if name == "seconds":
                environment[SECONDS_ONLY] = "1"
            command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.near.recorded", *paths]
            failed |= (
                subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
                != 0
            )
        document = table_of(recorded(Path(top, "lines")))
        if "seconds" in runs:
            document["seconds"] = seconds_of(recorded(Path(top, "seconds")))
        else:
            document["seconds"] = Table.read().seconds | document["seconds"]
    # one line for each file: what changes in one is seen in it
    parts = [f"{json.dumps(key)}: " + _lines(value) for key, value in document.items()]
    TABLE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(f"{TABLE.stat().st_size / 1e6:.2f} MB, {len(document['seconds'])} files")  # noqa: T201
    sys.exit(failed)


def _lines(value: object) -> str:
    compact = (",", ":")
    if isinstance(value, dict):
        rows = [f"{json.dumps(k)}:{json.dumps(v, separators=compact)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    return json.dumps(value, separators=compact)


if __name__ == "__main__":
    main(sys.argv[1:])
