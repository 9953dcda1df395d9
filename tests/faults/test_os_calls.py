"""Operations survive failing calls of the operating system and power cuts after each.

``os_calls.py`` says what is checked. It runs in another process, into which the boundary is loaded.
``N5ZARR_STRESS=1`` does it at each call of each operation; else at a few.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.faults.boundary import HERE, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no LD_PRELOAD as on Linux")


@pytest.mark.long
def test_all_that_the_boundary_does(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    report = tmp_path / "report.xml"
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
    options.append(f"--junitxml={report}")
    command = [sys.executable, "-m", "pytest", *options, str(HERE / "os_calls.py")]
    done = subprocess.run(
        command, env=environment(tmp_path), cwd=HERE.parent.parent, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:]
    rows = ET.parse(report).iter("property")  # noqa: S314 - our own
    for row in rows:
        record_property(row.attrib["name"], row.attrib["value"])
