"""The compiled kernel is built where a compiler is found, so that its tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from ctypes.util import find_library
from pathlib import Path

import pytest

from n5zarr.fast import kernel


def compiler() -> str | None:
    """Find a C compiler, the one of this Python first."""
    of_python = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return next(filter(None, map(shutil.which, (of_python, "cc", "gcc", "clang"))), None)


@pytest.mark.skipif(sys.platform == "win32", reason="the kernel is not made for Windows")
def test_it_is_built_where_there_is_a_compiler() -> None:
    if compiler() is None:
        pytest.skip("no C compiler")
    assert kernel.is_compiled(), (
        f"{compiler()} is a C compiler, but n5zarr.fast._kernel is not built; build it with "
        "`uv sync --reinstall-package n5zarr`, and look at why with `bash .ci/kernel`"
    )
    assert kernel._kernel.__file__.endswith(sysconfig.get_config_var("EXT_SUFFIX"))


@pytest.mark.skipif(sys.platform != "linux", reason="no LD_PRELOAD as on Linux")
def test_another_version_of_zstd_in_the_program_is_used_alone(tmp_path: Path) -> None:
    """Debian's Python 3.15 has zstd itself; states of two versions would mix, and crash."""
    library = find_library("zstd")
    if library is None:
        pytest.skip("the system has no libzstd")
    code = """
import sys
import numpy as np
import n5zarr
values = np.random.default_rng(0).integers(0, 99, (40, 50, 60), dtype="u2")
array = n5zarr.create_array(sys.argv[1], data=values, chunks=(16, 16, 16), compression="zstd")
for _ in range(9):
    array[...] = values
    assert (array[...] == values).all()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.n5")],
        env={**os.environ, "LD_PRELOAD": library},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
