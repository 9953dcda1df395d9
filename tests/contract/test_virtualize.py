"""References to the blocks of containers, read by programs that know nothing of N5."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import n5zarr

READER = Path(__file__).with_name("virtual_reader.py")
JAVA = Path(__file__).parents[1] / "data" / "java"
MANIFEST = json.loads((JAVA / "manifest.json").read_text())
ROOTS = sorted({dataset["root"] for dataset in MANIFEST["datasets"]})


def read(references: list[dict[str, Any]]) -> Any:
    """Read references in a process that cannot import n5zarr."""
    command = [sys.executable, "-W", "ignore", str(READER)]
    given = json.dumps(references)
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("suffix", [".json", ".parq", ".icechunk"])
def test_containers_of_java_tensorstore_and_zarr_2_read_to_their_checksums(
    suffix: str, tmp_path: Path
) -> None:
    references = []
    for root in ROOTS:
        out = tmp_path / f"{root}{suffix}"
        written = n5zarr.virtualize(JAVA / root, out, coords=False)
        references.append({"path": str(out), "container": written.container})
    found = dict(zip(ROOTS, read(references), strict=True))
    for dataset in MANIFEST["datasets"]:
        array = found[dataset["root"]][dataset["path"] or "data"]
        assert array["sha256"] == dataset["sha256"], dataset
        assert array["shape"] == dataset["dims"][::-1]
        assert array["dtype"] == dataset["dtype"]
