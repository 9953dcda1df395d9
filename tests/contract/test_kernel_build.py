"""The compiled kernel is built where a compiler is found, so that its tests run."""

from __future__ import annotations

import shutil
import sys
import sysconfig

import pytest

from n5zarr.arrays import kernel


def compiler() -> str | None:
    """Find a C compiler, the one of this Python first."""
    of_python = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return next(filter(None, map(shutil.which, (of_python, "cc", "gcc", "clang"))), None)


@pytest.mark.skipif(sys.platform == "win32", reason="the kernel is not made for Windows")
def test_it_is_built_where_there_is_a_compiler() -> None:
    if compiler() is None:
        pytest.skip("no C compiler")
    assert kernel.is_compiled(), (
        f"{compiler()} is a C compiler, but n5zarr.arrays._kernel is not built; build it with "
        "`uv sync --reinstall-package n5zarr`, and look at why with `bash .ci/kernel`"
    )
    assert kernel._kernel.__file__.endswith(sysconfig.get_config_var("EXT_SUFFIX"))
