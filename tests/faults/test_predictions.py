"""A prediction by four workers that is killed at any moment goes on, and writes no block again.

``N5ZARR_KILLS=20`` kills so many times; else it is twice.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore

import n5zarr
from tests.memory import MEMORY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")

N_KILLS = int(os.environ.get("N5ZARR_KILLS", "2"))
PATIENCE = 100  # seconds
SHAPE, BLOCKS = (61, 83, 97), (7, 11, 13)
PREDICT = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
import n5zarr

def predict(box):
    image = n5zarr.open_array("image.n5/raw")[box]
    time.sleep(0.002)
    target = n5zarr.open_array("predicted.n5/raw", "r+").with_config({"write_empty_chunks": True})
    target[box] = (image > 200) * image

if __name__ == "__main__":
    boxes = n5zarr.stored_blocks("predicted.n5/raw", missing=True, slices=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["n5zarr.arrays.opening", "n5zarr.fast.array"])
    with ProcessPoolExecutor(4, context) as pool:
        list(pool.map(predict, boxes))
"""


def blocks(root: Path) -> dict[Path, tuple[int, int]]:
    """Return when each block was written, and the number of its file."""
    files = [path for path in root.rglob("*") if path.is_file() and path.name.isdigit()]
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


def killed(root: Path, after: float) -> bool:
    """Run the program, and kill it and its workers so many seconds after a block, or it ends."""
    n_before = len(blocks(root))
    with subprocess.Popen([sys.executable, "predict.py"], cwd=root, start_new_session=True) as run:
        while run.poll() is None and len(blocks(root)) == n_before:
            time.sleep(0.002)
        try:
            run.wait(after)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
        return run.wait() == -signal.SIGKILL


def test_a_killed_prediction_goes_on(record_property: Callable[[str, object], None]) -> None:
    moment = random.Random(7)  # noqa: S311 - the machine decides, too
    values = np.random.default_rng(3).integers(1, 256, SHAPE, "u1")
    values[:14] = 150  # blocks that become 0
    expected = (values > 200) * values
    done_before = list[int]()
    while len(done_before) < N_KILLS:
        with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
            root = Path(directory)
            (root / "predict.py").write_text(PREDICT)
            n5zarr.create_array(root / "image.n5/raw", data=values, chunks=(20, 30, 40))
            how: Any = {"shape": SHAPE, "chunks": BLOCKS, "dtype": "u1"}
            n5zarr.create_array(root / "predicted.n5/raw", **how)
            predicted, before = root / "predicted.n5", dict[Path, tuple[int, int]]()
            while killed(root, moment.uniform(0, 0.5) if len(done_before) < N_KILLS else PATIENCE):
                found = blocks(predicted)
                assert len([*n5zarr.stored_blocks(predicted, "raw")]) == len(found) > len(before)
                assert found.items() >= before.items()  # no block is written again
                done_before.append(len(found))
                before = found
            assert blocks(predicted).items() >= before.items()
            checked = n5zarr.validate(predicted, expect_complete=True)
            assert {each.kind for each in checked.findings} <= {"unfinished-file"}
            spec = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{predicted}/raw"}}
            np.testing.assert_array_equal(
                tensorstore.open(spec).result().read().result().T, expected
            )
    record_property("blocks before kills", done_before)
