"""The statements of the page on machine learning about worker processes are true.

``N5ZARR_TORCH=1 uv run --with torch pytest tests/docs/test_loaders.py`` also runs its script for
torch, which is too large to be installed for one test.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
from multiprocessing import get_all_start_methods, get_context
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr

PAGE = Path(__file__).parents[2] / "docs" / "machine-learning.md"


METHODS = [method for method in ("fork", "spawn") if method in get_all_start_methods()]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_worker_reads_what_its_parent_has_opened(method: Any) -> None:
    array = n5zarr.open_array(n5zarr.sample_path(), path="em/s0")
    expected = array[...]
    with get_context(method).Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(getitem, (array, ...)), expected)


def test_a_pickled_array_is_small() -> None:
    array = n5zarr.open_array(n5zarr.sample_path(), path="em/s0")
    sent = pickle.dumps(array)
    assert len(sent) < 4096 < array.nbytes
    np.testing.assert_array_equal(pickle.loads(sent)[...], array[...])


if os.environ.get("N5ZARR_TORCH"):

    def test_loaders_of_torch(tmp_path: Path) -> None:
        shutil.copytree(n5zarr.sample_path(), tmp_path / "sample.n5")
        text = PAGE.read_text()
        scripts = re.findall(
            r"^```py(?:thon)?\n(# (\w+\.py)\n.*?)^```", text, re.MULTILINE | re.DOTALL
        )
        for script, name in scripts:
            (tmp_path / name).write_text(script)
        (said,) = re.findall(
            r"^```py\n.*?^```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL
        )
        command = [sys.executable, "training.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == said
