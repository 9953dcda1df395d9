"""What a process prints that has to succeed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def output(*command: object, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command, with more variables in its environment; return its output."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**os.environ, **(env or {})},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(
    *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run this Python, with more variables in its environment; return its output."""
    return output(sys.executable, *arguments, env=env, cwd=cwd)
