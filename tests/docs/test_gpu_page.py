"""The scripts on GPUs of the page on machine learning run: with cupy, or with its stand-in.

``N5ZARR_TORCH=1 uv run --with torch pytest tests/docs/test_gpu_page.py`` also runs that
of torch, which is too large to be installed for one test.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import n5zarr
from tests.gpu import STAND_IN, has_gpu, print_moved
from tests.outputs import python

PAGE = Path(__file__).parents[2] / "docs" / "machine-learning.md"
GPUS = PAGE.read_text().partition("\n## GPUs\n")[2]
SCRIPTS = re.findall(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```", GPUS, re.MULTILINE | re.DOTALL)
LARGE = [each for each in SCRIPTS if re.search("^import torch$", each[0], re.MULTILINE)]
OTHERS = [each for each in SCRIPTS if each not in LARGE]


def run(script: str, folder: Path) -> str:
    shutil.copytree(n5zarr.sample_path(), folder / "sample.n5")
    found = [] if has_gpu() else [str(STAND_IN)]
    path = os.pathsep.join([*found, *filter(None, [os.environ.get("PYTHONPATH")])])
    return python("-W", "error", "-c", script, cwd=folder, env={"PYTHONPATH": path})


@pytest.mark.parametrize(
    ("script", "said"),
    [*OTHERS[:2], *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS[2:])],
)
def test_scripts_with_cupy(tmp_path: Path, script: str, said: str) -> None:
    assert run(script, tmp_path) == said


@pytest.mark.skipif(not os.environ.get("N5ZARR_TORCH"), reason="torch takes 5 GB; N5ZARR_TORCH=1")
@pytest.mark.parametrize(("script", "said"), LARGE)
def test_scripts_with_torch(tmp_path: Path, script: str, said: str) -> None:
    assert run(script, tmp_path) == said


def test_the_table_is_what_the_command_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_moved(tmp_path)
    assert capsys.readouterr().out in GPUS
