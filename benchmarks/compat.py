"""z5py's names over n5zarr, beside z5py: volumes, boxes and chunks.

One volume of uint16 in blocks of 64^3, and one in blocks of 16^3. All run in turn in one process;
a cell is the least time. Small chunks have the time of `N5Array` itself, too. z5py has one thread,
its default.

``uv run --group bench python -m benchmarks.compat [--edge N] [--rounds N]``
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from operator import getitem, setitem
from pathlib import Path
from typing import Any

import numpy as np
import z5py

from n5zarr.compat import z5py as ours

COMPRESSIONS = ("raw", "gzip", "zstd", "blosc")
LARGE, SMALL = (64, 64, 64), (16, 16, 16)


def least(calls: list[Callable[[], Any]], n: int, rounds: int) -> list[float]:
    """Return the least time of each call, which run in turn, ``n`` times each."""
    times = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(n):
                call()
            times[k] = min(times[k], (time.perf_counter() - start) / n)
    return times


def volume(edge: int) -> np.ndarray:
    """Make a volume that compresses as microscopy does."""
    steps = np.random.default_rng(1).integers(0, 3, (edge,) * 3, "u2")
    return np.asarray(np.cumsum(steps, axis=-1, dtype="u2") % 1000)


def datasets(folder: Path, values: np.ndarray, compression: str) -> list[list[Any]]:
    """Write the volume in large and small chunks, with z5py and over n5zarr."""
    files = [
        lib.File(str(folder / f"{k}{compression}.n5"), "w") for k, lib in enumerate((z5py, ours))
    ]
    options = {"data": values, "compression": compression}
    return [
        [file.create_dataset(str(chunks[0]), chunks=chunks, **options) for file in files]
        for chunks in (LARGE, SMALL)
    ]


def measure(values: np.ndarray, compression: str, rounds: int) -> None:
    """Print the rows of a compression."""
    large_chunk, small_chunk = (values[:n, :n, :n].copy() for n in (64, 16))
    box, one = (slice(13, 113),) * 3, (slice(0, 16),) * 3
    part = values[box].copy()
    with tempfile.TemporaryDirectory() as name:
        large, small = datasets(Path(name), values, compression)
        for dataset in (*large, *small):
            assert np.array_equal(dataset[...], values)
        array: Any = small[1]._array  # noqa: SLF001 - without z5py's names
        whole = (slice(None),) * 3
        rows: dict[str, tuple[list[Callable[[], Any]], int]] = {
            "read the volume": ([partial(getitem, d, whole) for d in large], 1),
            "write the volume": ([partial(setitem, d, whole, values) for d in large], 1),
            "read a box of 100^3": ([partial(getitem, d, box) for d in large], 3),
            "write a box of 100^3": ([partial(setitem, d, box, part) for d in large], 2),
            "read a chunk of 64^3": ([partial(d.read_chunk, (0, 0, 0)) for d in large], 5),
            "write a chunk of 64^3": (
                [partial(d.write_chunk, (0, 0, 0), large_chunk) for d in large],
                5,
            ),
            "read a box of 16^3": ([partial(getitem, d, one) for d in (*small, array)], 50),
            "read a chunk of 16^3": (
                [*(partial(d.read_chunk, (0, 0, 0)) for d in small), partial(getitem, array, one)],
                50,
            ),
            "write a box of 16^3": (
                [partial(setitem, d, one, small_chunk) for d in (*small, array)],
                20,
            ),
        }
        for what, (calls, n) in rows.items():
            theirs, mine, *own = least(calls, n, rounds)
            text = f"{compression:6} {what:22} z5py {theirs * 1e6:9.0f} us, {theirs / mine:5.2f} of"
            text += f" it: {mine * 1e6:9.0f} us"
            print(text + "".join(f"; N5Array {t * 1e6:6.0f} us" for t in own), flush=True)


def main() -> None:
    """Measure all compressions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edge", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    for compression in COMPRESSIONS:
        measure(volume(options.edge), compression, options.rounds)


if __name__ == "__main__":
    main()
