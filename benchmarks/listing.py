"""What listing a group of many children costs, of N5 and of the same tree as plain Zarr v3.

Half of the children are groups, half are arrays. Each task runs in a process of its own, so that
its memory is known; seconds are those of the processor, of all threads.

``uv run --group bench python -m benchmarks.listing [--children N] [--rounds N]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zarr
from zarr.storage import LocalStore

import n5zarr
from n5zarr import N5Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DATASET = {
    "dimensions": [7, 5],
    "blockSize": [3, 2],
    "dataType": "uint8",
    "compression": {"type": "raw"},
}


async def count(found: AsyncIterator[str]) -> int:
    n = 0
    async for _ in found:
        n += 1
    return n


def group(path: str) -> Any:
    store = N5Store(path, read_only=True) if path.endswith("n5") else LocalStore(path)
    return zarr.open_group(store, mode="r")


TASKS: dict[str, Callable[[str], int]] = {
    "`list`": lambda path: asyncio.run(count(group(path).store.list())),
    "`list_prefix`": lambda path: asyncio.run(count(group(path).store.list_prefix(""))),
    "`list_dir`": lambda path: asyncio.run(count(group(path).store.list_dir(""))),
    "`members()`": lambda path: len(group(path).members()),
    "`keys()`": lambda path: sum(1 for _ in group(path)),
    "`tree()`": lambda path: len(str(group(path).tree())),
    "`members()` of `n5zarr.open`": lambda path: len(n5zarr.open_group(path).members()),
    "`keys()` of `n5zarr.open`": lambda path: sum(1 for _ in n5zarr.open_group(path)),
    "`tree()` of `n5zarr.open`": lambda path: len(str(n5zarr.open_group(path).tree())),
}
PLAIN = {name: name.partition(" of ")[0] for name in TASKS}  # what plain Zarr does in its place


def make(folder: Path, n: int) -> None:
    """Make the same tree twice, as N5 and as Zarr v3."""
    ours, plain = folder / "a.n5", folder / "a.zarr"
    zarr.create_array(plain, name="t", shape=(5, 7), chunks=(2, 3), dtype="u1", compressors=None)
    array, root = ((plain / name / "zarr.json").read_bytes() for name in ("t", ""))
    ours.mkdir()
    (ours / "attributes.json").write_text('{"n5": "4.0.0"}')
    documents = [(b'{"a": 1}', root), (json.dumps(DATASET).encode(), array)]
    for i in range(n):
        for place, name, document in zip(
            (ours, plain), ("attributes.json", "zarr.json"), documents[i % 2], strict=True
        ):
            (place / f"n{i:06d}").mkdir()
            (place / f"n{i:06d}" / name).write_bytes(document)


def measure(task: str, path: str) -> tuple[float, float]:
    """Run a task in a process of its own; give seconds of the processor, and MB."""
    command = [sys.executable, "-m", "benchmarks.listing", "--task", task, "--path", path]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    seconds, n_bytes = json.loads(done.stdout.splitlines()[-1])
    return seconds, n_bytes / 2**20


def run(task: str, path: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    assert TASKS[task](path) > 1
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, 1024 * (after - before)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--children", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        run(options.task, options.path)
        return
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), options.children)
        print(f"| {options.children} children | N5, s | Zarr, s | ratio | N5, MB | Zarr, MB |")
        print("|---|---|---|---|---|---|")
        for task in TASKS:
            ours, plain = [], []
            for _ in range(options.rounds):
                ours.append(measure(task, f"{folder}/a.n5"))
                plain.append(measure(PLAIN[task], f"{folder}/a.zarr"))
            (a, a_mb), (b, b_mb) = (
                [statistics.median(values) for values in zip(*found, strict=True)]
                for found in (ours, plain)
            )
            print(f"| {task} | {a:.2f} | {b:.2f} | {a / b:.2f} | {a_mb:.0f} | {b_mb:.0f} |")


if __name__ == "__main__":
    main()
