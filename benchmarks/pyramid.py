"""``build_pyramid`` against reading s0 once and writing the levels, and against tensorstore.

Each row is one round after another on the same data, the median of several; the result is compared
with tensorstore's. The second table is of volumes of 10^2 to 10^4 blocks.

``uv run --group bench python -m benchmarks.pyramid [--rounds N] [--edge N] [--dtypes ...]``
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorstore as ts

import n5zarr
from benchmarks.__main__ import COMPRESSIONS, volume

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = 4
BLOCK = 64
SLAB = 2 * BLOCK  # what is read and written at a time


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def tiled(dtype: str, edge: int) -> np.ndarray:
    """Make a volume of copies of a smaller one, which is as hard to compress."""
    part = volume(dtype, min(edge, 256))
    return np.tile(part, (-(-edge // 256),) * 3)[:edge, :edge, :edge]


def write(where: Path, data: np.ndarray, compression: dict[str, Any]) -> None:
    array: Any = n5zarr.create_array(
        where,
        shape=data.shape,
        dtype=data.dtype,
        chunks=(BLOCK,) * 3,
        compression=compression,
        axes="zyx",
        units=["nm"] * 3,
        resolution=[8, 8, 8],
    )
    for z in range(0, len(data), SLAB):
        array[z : z + SLAB] = data[z : z + SLAB]


def read(where: Path) -> None:
    array: Any = n5zarr.open(where)
    for z in range(0, array.shape[0], SLAB):
        np.asarray(array[z : z + SLAB])


def by_tensorstore(group: Path, method: Any) -> None:
    """Each level by ``downsample`` from the one before."""
    for k in range(1, LEVELS + 1):
        source: Any = opened(group / f"s{k - 1}")
        coarser = ts.downsample(source, [2] * 3, method)
        spec = source.spec().to_json()
        metadata = {key: spec["metadata"][key] for key in ("blockSize", "compression", "dataType")}
        metadata["dimensions"] = coarser.shape
        kvstore = {"driver": "file", "path": str(group / f"s{k}")}
        target = ts.open(
            {"driver": "n5", "kvstore": kvstore, "metadata": metadata}, create=True
        ).result()
        for z in range(0, coarser.shape[2], SLAB):
            box = (slice(None), slice(None), slice(z, min(z + SLAB, coarser.shape[2])))
            target[box].write(coarser[box]).result()


def opened(path: Path) -> Any:
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    return ts.open(spec).result()


def without_levels(group: Path) -> None:
    for level in group.glob("s[1-9]*"):
        shutil.rmtree(level)


def one_case(folder: Path, dtype: str, compression: str, edge: int, rounds: int) -> list[float]:
    """Measure reading and writing, building, and tensorstore; seconds."""
    group, other = folder / "c.n5" / "em", folder / "levels.n5"
    write(group / "s0", tiled(dtype, edge), COMPRESSIONS[compression])
    method: Any = "mode" if dtype == "uint64" else "mean"
    measured: list[list[float]] = []
    for number in range(rounds + 1):
        without_levels(group)
        n_theirs = seconds(lambda: by_tensorstore(group, method))
        wanted: list[Any] = [opened(group / f"s{k}").read().result() for k in range(1, LEVELS + 1)]
        without_levels(group)
        ours = seconds(lambda: n5zarr.build_pyramid(group, levels=LEVELS, method=method))
        levels = [np.asarray(n5zarr.open_array(group / f"s{k + 1}")[...]) for k in range(LEVELS)]
        for level, theirs in zip(levels, wanted, strict=True):
            assert np.array_equal(level.T, theirs)
        n_read = seconds(partial(read, group / "s0"))
        n_write = 0.0
        for k, level in enumerate(levels):
            n_write += seconds(partial(write, other / f"s{k}", level, COMPRESSIONS[compression]))
        shutil.rmtree(other)
        if number:  # the first round warms up
            measured.append([n_read, n_write, ours, n_theirs])
    shutil.rmtree(folder / "c.n5")
    return [statistics.median(column) for column in zip(*measured, strict=True)]


def growth(folder: Path) -> None:
    """Print the time for volumes of 10^2 to 10^4 blocks, and for an empty grid of 10^5."""
    print("\n| blocks | seconds | µs per block |\n|---|---|---|")
    part = volume("uint8", 64)
    for blocks in ((4, 5, 5), (10, 10, 10), (20, 20, 25)):
        where = folder / "c.n5" / "em"
        shape = tuple(32 * n for n in blocks)
        array: Any = n5zarr.create_array(
            where / "s0", shape=shape, dtype="u1", chunks=(32,) * 3, compression="raw"
        )
        data = np.tile(part, tuple(-(-n // 64) for n in shape))[tuple(map(slice, shape))]
        array[...] = data
        n5zarr.build_pyramid(where, levels=3)
        took = seconds(lambda: n5zarr.build_pyramid(where, levels=3, overwrite=True))  # noqa: B023
        n = int(np.prod(blocks))
        print(f"| {n} | {took:.3f} | {took / n * 1e6:.0f} |")
        shutil.rmtree(folder / "c.n5")
    where = folder / "sparse.n5" / "em"
    array = n5zarr.create_array(where / "s0", shape=(3200,) * 3, dtype="u1", chunks=(64,) * 3)
    for k in range(10):
        array[320 * k : 320 * k + 3, 1000:1003, 300 * k : 300 * k + 3] = 7
    took = seconds(lambda: n5zarr.build_pyramid(where))
    print(f"| 10 of {50**3} | {took:.3f} | |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edge", type=int, default=512)
    parser.add_argument("--dtypes", nargs="+", default=["uint8", "uint16", "uint64"])
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        print("| | read s0 | write levels | build_pyramid | ratio | tensorstore |")
        print("|---|---|---|---|---|---|")
        for dtype in given.dtypes:
            for compression in COMPRESSIONS:
                if dtype == "uint64" and compression == "raw":
                    continue
                times = one_case(folder, dtype, compression, given.edge, given.rounds)
                n_read, n_write, ours, theirs = times
                print(
                    f"| {dtype} {compression} | {n_read:.3f} | {n_write:.3f} | {ours:.3f} | "
                    f"{ours / (n_read + n_write):.2f} | {theirs:.3f} |",
                    flush=True,
                )
        growth(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
