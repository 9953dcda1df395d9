"""Make environments with packages that cannot be installed beside those of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outputs import output

installs_projects = pytest.mark.skipif(
    "N5ZARR_PROJECTS" not in os.environ,
    reason="installs several other projects; N5ZARR_PROJECTS=1 chooses it",
)


def environment(folder: Path, *packages: str) -> str:
    """Make an environment of this Python with other packages, and return its interpreter."""
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    fresh = ("--refresh-package", "n5zarr")  # uv keeps what it built of older Python code
    _uv("venv", "--quiet", "--no-project", "--python", sys.executable, str(folder))
    _uv("pip", "install", "--quiet", *fresh, "--python", python, *packages)
    return python


def install_alone(python: str, package: str) -> None:
    """Install a package without what it requires, as files of its own, which may be patched."""
    _uv("pip", "install", "--quiet", "--no-deps", "--link-mode=copy", "--python", python, package)


def _uv(*command: str) -> None:
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed, which makes an environment with other packages")
    done = subprocess.run([uv, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot be installed here: {' '.join(command)}: {done.stderr[-500:]}")


def run(python: str, *arguments: object) -> None:
    output(python, *arguments)
