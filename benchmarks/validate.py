"""Checking, listing and counting containers of ever more blocks and datasets.

Each container is in local files; times are of one run each after the first, in seconds.

``uv run python -m benchmarks.validate [--most N]``
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import n5zarr
from n5zarr.metadata.inspect import describe, describe_each

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK = 16  # elements along each of three axes
COMPRESSIONS: dict[str, Any] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip", "level": 6},
    "zstd": {"type": "zstd", "level": 3},
    "blosc": {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1},
}


def seconds(task: Callable[[], Any]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def write_blocks(path: Path, n_blocks: int, compression: Any) -> int:
    """Write a dataset of noise with blocks that are truncated at its end; give their number."""
    edge = next(n for n in range(n_blocks) if n**3 >= n_blocks)
    extent = edge * BLOCK - 7
    array: Any = n5zarr.create_array(
        path, path="em/s0", shape=(extent,) * 3, chunks=(BLOCK,) * 3, dtype="uint16",
        compression=compression,
    )  # fmt: skip
    rng = np.random.default_rng(5)
    for z in range(0, extent, BLOCK):
        part = array[z : z + BLOCK].shape
        array[z : z + BLOCK] = rng.integers(0, 500, part, dtype="u2")
    return edge**3


def write_datasets(path: Path, n: int) -> None:
    """Write a group of datasets without blocks."""
    document = json.dumps(
        {
            "dimensions": [5, 7],
            "blockSize": [3, 4],
            "dataType": "uint8",
            "compression": {"type": "raw"},
        }
    )
    for i in range(n):
        folder = path / "g" / f"cell_{i}"
        folder.mkdir(parents=True)
        (folder / "attributes.json").write_text(document)
    (path / "attributes.json").write_text('{"n5":"4.0.0"}')


def checked(path: Path, **options: Any) -> None:
    assert n5zarr.validate(path, **options).ok


def walked(path: Path, **options: Any) -> None:
    for _ in describe_each(path, geometry=True, **options):
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=100_000)
    most = parser.parse_args().most
    print("| blocks | compression | `validate` | `--deep` | `info --size` | `info --stats` |")
    print("|---|---|---|---|---|---|")
    for compression, how in COMPRESSIONS.items():
        for n in (1000, 10_000, 100_000) if compression == "gzip" else (100_000,):
            if n > most:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "a.n5")
                n_blocks = write_blocks(path, n, how)
                checked(path)
                tasks = (
                    partial(checked, path),
                    partial(checked, path, deep=True),
                    partial(describe, path, "em/s0"),
                    partial(n5zarr.block_statistics, path, "em/s0"),
                )
                times = " | ".join(f"{seconds(task):.1f}" for task in tasks)
                print(f"| {n_blocks} | {compression} | {times} |", flush=True)
    print("\n| datasets | `tree` | `tree --limit 0` | `info` | `validate` |")
    print("|---|---|---|---|---|")
    for n in (1000, 10_000, 100_000):
        if n > most:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.n5")
            write_datasets(path, n)
            listings = (
                partial(walked, path, total=200),
                partial(walked, path),
                partial(describe, path, "g", limit=1000),
                partial(checked, path),
            )
            times = " | ".join(f"{seconds(task):.2f}" for task in listings)
            print(f"| {n} | {times} |", flush=True)


if __name__ == "__main__":
    main()
