"""Make environments with packages that cannot be installed beside those of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


installs_projects = pytest.mark.skipif(
    "N5ZARR_PROJECTS" not in os.environ,
    reason="installs several other projects; N5ZARR_PROJECTS=1 chooses it",
)


def environment(folder: Path, *packages: str) -> str:
    """Make an environment of this Python with other packages, and return its interpreter."""
    uv = _uv()
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    fresh = ("--refresh-package", "n5zarr")  # uv keeps what it built of older Python code
    for command in (
        ["venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)],
        ["pip", "install", "--quiet", *fresh, "--python", str(python), *packages],
    ):
        done = subprocess.run([uv, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot be installed here: {', '.join(packages)}: {done.stderr[-500:]}")
    return str(python)


def install_alone(python: str, package: str) -> None:
    """Install a package without what it requires, as files of its own, which may be patched."""
    options = ["--quiet", "--no-deps", "--link-mode=copy", "--python", python]
    done = subprocess.run(
        [_uv(), "pip", "install", *options, package], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot be installed here: {package}: {done.stderr[-500:]}")


def _uv() -> str:
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed, which makes an environment with other packages")
    return uv


def run(python: str, *arguments: str) -> None:
    done = subprocess.run([python, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
