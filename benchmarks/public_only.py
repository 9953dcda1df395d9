"""With ``N5ZARR_PUBLIC_ONLY=1``, against the same work with zarr's private names.

An image volume is written as N5. Two processes, one in each mode, take turns with each task; what
they read is compared with the source. Seconds are processor time of all threads, which other
programs disturb least; printed is the median of the ratios of neighbouring rounds.

``uv run python -m benchmarks.public_only [--rounds N] [--edge N]``
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numcodecs
import numpy as np
import zarr

import n5zarr
from benchmarks.presentation import BLOCK, volume, write_n5
from n5zarr import N5Store
from n5zarr._zarr import PUBLIC_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable

ENOUGH = 0.05  # seconds of a task in a row
PART = slice(BLOCK // 4, -BLOCK // 4)  # begins and ends inside of blocks


def tasks(folder: Path, values: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return what each process does; what is made lies in its own folder."""
    n5, own = folder / "c.n5", folder / ("public" if PUBLIC_ONLY else "private")
    array: Any = n5zarr.open(n5, path="d")
    plain: Any = zarr.open_array(N5Store(n5), path="d", mode="r")
    made: Any = n5zarr.create_array(
        own / "made.n5", path="d", shape=values.shape, chunks=(BLOCK,) * 3, dtype=values.dtype
    )
    made_plain: Any = zarr.open_array(N5Store(own / "made.n5"), path="d", mode="r+")
    made[...] = values
    small = (slice(BLOCK + 1, BLOCK + 17),) * 3
    large = (slice(BLOCK // 2, BLOCK // 2 + 100),) * 3
    boxes: tuple[Any, ...] = (small, large, ...)
    for box in boxes:
        np.testing.assert_array_equal(array[box], values[box])
        np.testing.assert_array_equal(plain[box], values[box])
    n5zarr.create_array(
        own / "axes.n5", path="d", shape=values.shape, dtype="u1", axes="zyx", units=["nm"] * 3
    )
    n5zarr.convert(n5, own / "source.zarr", chunks=(48,) * 3)
    registry: Any = numcodecs
    delta = registry.get_codec({"id": "delta", "dtype": "u1"})
    filtered: Any = zarr.create_array(
        N5Store(own / "filtered.n5"), shape=(BLOCK * 2,) * 3, chunks=(BLOCK,) * 3, dtype="u1",
        filters=[delta], zarr_format=2,
    )  # fmt: skip
    filtered[...] = values[: BLOCK * 2, : BLOCK * 2, : BLOCK * 2]
    return {
        "`n5zarr.open`": lambda: n5zarr.open(n5, path="d"),
        "`n5zarr.open`, with axes": lambda: n5zarr.open(own / "axes.n5", path="d"),
        "`zarr.open_array`": lambda: zarr.open_array(N5Store(n5), path="d", mode="r"),
        "`n5zarr.open`: a box of 16³": lambda: array[small],
        "`n5zarr.open`: a box of 100³": lambda: array[large],
        "`n5zarr.open`: all": lambda: array[...],
        "`n5zarr.open`: each 7th element": lambda: array[::7, ::7, ::7],
        "`zarr.open_array`: a box of 16³": lambda: plain[small],
        "`zarr.open_array`: a box of 100³": lambda: plain[large],
        "`zarr.open_array`: all": lambda: plain[...],
        "`n5zarr.create_array`: write whole blocks": lambda: made.__setitem__(..., values),
        "`n5zarr.create_array`: write parts": partial(
            made.__setitem__, (PART,) * 3, values[PART, PART, PART]
        ),
        "`zarr.open_array`: write whole blocks": lambda: made_plain.__setitem__(..., values),
        "`zarr.open_array`: write parts": partial(
            made_plain.__setitem__, (PART,) * 3, values[PART, PART, PART]
        ),
        "`convert` to Zarr": lambda: n5zarr.convert(n5, own / "same.zarr", overwrite=True),
        "`convert` to Zarr, other chunks": lambda: n5zarr.convert(
            n5, own / "other.zarr", chunks=(48,) * 3, overwrite=True
        ),
        "`convert` to N5, other compression": lambda: n5zarr.convert(
            n5, own / "other.n5", compression="zstd", overwrite=True
        ),
        "`convert` from Zarr to N5": lambda: n5zarr.convert(
            own / "source.zarr", own / "from_zarr.n5", overwrite=True
        ),
        "`zarr.open_array`: read with filters": lambda: filtered[...],
        "`zarr.open_array`: write parts with filters": lambda: filtered.__setitem__(
            (slice(1, 100),) * 3, 5
        ),
        "`build_pyramid`": lambda: n5zarr.build_pyramid(
            n5, "d", to=f"{own}/levels.n5/p", overwrite=True
        ),
    }


def work(folder: Path) -> None:
    """Do the tasks whose names come in, and answer with seconds."""
    known = tasks(folder, np.load(folder / "values.npy"))
    in_a_row: dict[str, int] = {}
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        name = json.loads(line)
        if name not in in_a_row:
            in_a_row[name] = max(1, round(ENOUGH / max(seconds(known[name], 1), 1e-6)))
        print(seconds(known[name], in_a_row[name]), flush=True)


def seconds(task: Callable[[], object], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        task()
    return (time.process_time() - start) / times


class Worker:
    """A process in one of both modes."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "benchmarks.public_only", "--work", str(folder)],
            env={**os.environ, "N5ZARR_PUBLIC_ONLY": mode},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names = self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def do(self, name: str) -> float:
        assert self.process.stdin is not None
        print(json.dumps(name), file=self.process.stdin, flush=True)
        return float(self.answer())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public_only")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--edge", type=int, default=250)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work)
        return
    folder = Path(tempfile.mkdtemp())
    try:
        values = volume(options.edge, "uint8")
        np.save(folder / "values.npy", values)
        write_n5(folder / "c.n5" / "d", values, {"type": "gzip"})
        private, public = Worker(folder, "0"), Worker(folder, "1")
        print("| task | ms | with public names, times as long |")
        print("|---|---|---|")
        for name in private.names:
            times = [(private.do(name), public.do(name)) for _ in range(options.rounds + 1)][1:]
            ratio = statistics.median(other / one for one, other in times)
            print(f"| {name} | {1e3 * statistics.median(t for t, _ in times):.3g} | {ratio:.2g} |")
        for each in (private, public):
            each.process.communicate()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
