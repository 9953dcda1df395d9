"""Opening, each time anew: one dataset, a group of many, and the tree of a container.

One dataset with axes, in a container two levels deep, is opened by each tool, in turn, many times;
printed is the median. The same array is there as N5 and, key by key, as Zarr v3. What is opened is
read and compared with the source. Then one box of a larger dataset is read by opening it anew each
time. Many nodes are then listed: from local files, and from a small S3 server of its own process
that answers after some time.

``uv run --group bench python -m benchmarks.opening [--rounds N] [--nodes N] [--latency MS]``
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorstore as ts
import xarray as xr
import z5py
import zarr
from zarr.storage import LocalStore
from zarr_n5 import N5WrapperStore

import n5zarr
from benchmarks.__main__ import COMPRESSIONS, Case, boxes, measure_reads, readers, volume, writers
from benchmarks.presentation import copy_keys
from benchmarks.s3_server import s3_server
from n5zarr import N5Store
from n5zarr.metadata.inspect import describe_each

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "em/s0"
IN_A_ROW = 20
READERS = ("n5zarr", "n5zarr, plain", "tensorstore", "z5py")


def write(folder: Path) -> np.ndarray:
    """Write one dataset as N5, and its keys as Zarr: alone, and with coordinates for xarray."""
    values = np.random.default_rng(5).integers(0, 255, (50, 60, 70), "u1")
    n5zarr.create_array(
        folder / "c.n5", path=PATH, shape=values.shape, chunks=(32,) * 3, dtype="u1",
        axes="zyx", units=["nm"] * 3, resolution=[4, 4, 4],
    )[...] = values  # fmt: skip
    asyncio.run(copy_keys(N5Store(folder / "c.n5"), folder / "c.zarr"))
    opened = xr.open_dataset(folder / "c.n5", engine="n5", group=PATH)
    opened.to_zarr(folder / "x.zarr", group="em", consolidated=False)
    time.sleep(0.1)  # a file that was just written is read under a lock
    return values


def openings(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the ways to open the dataset; each gives something that holds the values."""
    n5, plain, coords = (str(folder / name) for name in ("c.n5", "c.zarr", "x.zarr"))
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{n5}/{PATH}/"}}
    group: Any = n5zarr.open(n5)
    return {
        "n5zarr.open": lambda: n5zarr.open(n5, path=PATH),
        "a member of n5zarr.open": lambda: group[PATH],
        "zarr.open_array(N5Store)": lambda: zarr.open_array(N5Store(n5), path=PATH, mode="r"),
        "tensorstore": lambda: ts.open(spec).result(),
        "z5py": lambda: z5py.File(n5, "r")[PATH],
        "zarr-n5": lambda: zarr.open_array(
            N5WrapperStore(LocalStore(n5, read_only=True)), path=PATH
        ),
        "zarr.open_array, Zarr v3": lambda: zarr.open_array(plain, path=PATH, mode="r"),
        "xr.open_dataset(engine='n5')": lambda: xr.open_dataset(n5, engine="n5", group=PATH),
        "xr.open_zarr(N5Store(coords=True))": lambda: xr.open_zarr(
            N5Store(n5, coords=True), group=PATH, consolidated=False, chunks=None
        ),
        "xr.open_zarr, Zarr v3": lambda: xr.open_zarr(
            coords, group="em", consolidated=False, chunks=None
        ),
    }


def values_of(opened: Any) -> np.ndarray:
    if isinstance(opened, xr.Dataset):
        return opened["s0"].to_numpy()
    if isinstance(opened, ts.TensorStore):
        return np.asarray(opened.read(order="F").result().T)
    values = np.asarray(opened[...])
    # zarr-n5 shows the axes in N5 order
    return values.T if isinstance(getattr(opened, "store", None), N5WrapperStore) else values


def medians(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Open in turn, some times in a row; give the median seconds of each way."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds // IN_A_ROW):
        for name, way in ways.items():
            for _ in range(IN_A_ROW):
                start = time.perf_counter()
                way()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def open_and_read(folder: Path, rounds: int) -> None:
    """Print the time of reading one box of 100^3 from blocks of 32^3, opening it each time."""
    print("\n| opened, and a box read | us of tensorstore | n5zarr.open | zarr.open_array | z5py |")
    print("|---|---|---|---|---|")
    for dtype in ("uint8", "uint16", "uint64"):
        source = volume(dtype, 192)
        for compression in COMPRESSIONS:
            case, path = Case(dtype, 32, compression), folder / f"{dtype} {compression}.n5"
            writers(case, source, "n5zarr")["n5zarr"](path)()
            time.sleep(0.1)  # a file that was just written is read under a lock
            anew = {tool: partial(opened_anew, path, case, tool) for tool in READERS}
            ours, plain, theirs, z5 = measure_reads(anew, boxes(192)[:1], source, rounds).values()
            ratios = " | ".join(f"{theirs / seconds:.2f}" for seconds in (ours, plain, z5))
            print(f"| {dtype}, {compression} | {1e6 * theirs:.0f} | {ratios} |", flush=True)


def opened_anew(path: Path, case: Case, tool: str, box: tuple[Any, ...]) -> np.ndarray:
    return readers(path, case, tool)[tool](box)


def write_many(root: Path, n: int) -> None:
    """Write a container of many small datasets, without blocks."""
    (root / "many").mkdir(parents=True)
    (root / "attributes.json").write_text('{"n5":"4.0.0"}')
    (root / "many" / "attributes.json").write_text("{}")
    for i in range(n):
        (root / "many" / f"d{i:05}").mkdir()
        (root / "many" / f"d{i:05}" / "attributes.json").write_text(
            '{"dataType":"uint8","compression":{"type":"gzip"},"blockSize":[32,32,32],'
            '"dimensions":[70,60,50],"axes":["x","y","z"],"resolution":[4,4,4],'
            f'"units":["nm","nm","nm"],"number":{i}}}'
        )


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def n_described(store: Any, n: int) -> tuple[int, float]:
    """Walk through a container; give the number of nodes, and when the first two were known."""
    start = time.perf_counter()
    first, numbers = 0.0, 0
    for i, node in enumerate(describe_each(store)):
        if i == 2:
            first = time.perf_counter() - start
        numbers += node.description["kind"] == "array"
    assert numbers == n
    return numbers, first


def many(folder: Path, n: int, latency: float) -> None:
    root = folder / "lab" / "k.n5"
    write_many(root, n)
    print(f"\n| {n} datasets | seconds | first line after |")
    print("|---|---|---|")
    seconds, (_, first) = timed(lambda: n_described(root, n))
    print(f"| `n5zarr tree`, local | {seconds:.2f} | {first:.3f} |")
    group: Any = n5zarr.open(root, path="many")
    seconds, members = timed(group.members)
    assert len(members) == n
    print(f"| `members()` of `n5zarr.open`, local | {seconds:.2f} | |")
    plain: Any = zarr.open(N5Store(root), path="many", mode="r")
    seconds, members = timed(plain.members)
    assert len(members) == n
    print(f"| `members()` of `zarr.open(N5Store)`, local | {seconds:.2f} | |")
    with s3_server(folder, latency) as options:
        for backend in options:
            store = N5Store(
                "s3://lab/k.n5", storage_options=options[backend], backend=backend, codecs="n5"
            )
            seconds, (_, first) = timed(partial(n_described, store, n))
            where = f"S3 {latency:g} ms away, {backend}"
            print(f"| `n5zarr tree`, {where} | {seconds:.1f} | {first:.2f} |", flush=True)


def thousand(folder: Path) -> None:
    root = folder / "t.n5"
    write_many(root, 1000)
    seconds, found = timed(lambda: len(xr.open_dataset(root, engine="n5", group="many")))
    assert found == 1000
    print(f"\nxr.open_dataset of a group of 1000 datasets: {seconds:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opening")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=20, help="milliseconds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp())
    try:
        source = write(folder)
        ways = openings(folder)
        for name, way in ways.items():
            np.testing.assert_array_equal(values_of(way()), source, err_msg=name)
        medians(ways, IN_A_ROW)
        seconds = medians(ways, options.rounds)
        print("| opened by | us | of zarr.open_array on Zarr v3 |")
        print("|---|---|---|")
        for name, value in seconds.items():
            ratio = value / seconds["zarr.open_array, Zarr v3"]
            print(f"| {name} | {1e6 * value:.0f} | {ratio:.2f} |")
        open_and_read(folder, options.rounds // IN_A_ROW)
        thousand(folder)
        many(folder, options.nodes, options.latency)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
