"""n5zarr beside its peers on the same data: reading, writing, memory, and what happens per block.

All run in turn in this process, interleaved, and the median of several rounds counts; each result
is compared with the source array. tensorstore is asked for Fortran order, its fastest.

``uv run --group bench python -m benchmarks [--rounds N] [--edge N] [--quick] [--write FOLDER]``
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import shutil
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore as ts
import z5py
import zarr
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec
from zarr.storage import LocalStore, MemoryStore
from zarr_n5 import N5WrapperStore

import n5zarr
from benchmarks.presentation import PIPELINES
from n5zarr import N5Store

DTYPES = ("uint8", "uint16", "uint64")
BLOCKS = (128, 64, 32)
COMPRESSIONS: dict[str, dict[str, Any]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip", "level": 6},
    "zstd": {"type": "zstd", "level": 3},
    "blosc": {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1},
}
ZARR_CODECS: dict[str, Any] = {
    "raw": None,
    "gzip": GzipCodec(level=6),
    "zstd": ZstdCodec(level=3),
    "blosc": BloscCodec(cname="zstd", clevel=5, shuffle="shuffle"),
}
PEERS = ("tensorstore", "z5py", "zarr-n5")
READERS = ("n5zarr", "n5zarr, plain", *PEERS, "Zarr v3")
ZARR_PIPELINES = {
    "Zarr v3": PIPELINES["default"],
    "Zarr v3, fused": PIPELINES["fused"],
    "Zarr v3, zarrs": "zarrs.ZarrsCodecPipeline",
}
BOXES = {"boxes of 100³": (100, 4), "boxes of 16³": (16, 16)}  # edge, number
OTHER_DURABILITIES = ("overwrite", "durable")
OTHER_WAYS = tuple(f"n5zarr, {how}" for how in OTHER_DURABILITIES)
WRITERS = ("n5zarr", *OTHER_WAYS, "tensorstore", "z5py", "Zarr v3")
ENOUGH = 0.05  # seconds of a task in a row

type Reader = Callable[[tuple[Any, ...]], np.ndarray]  # of a box, or of positions along each axis


@dataclass(frozen=True)
class Case:
    """One dataset: what it holds and how it is kept."""

    dtype: str
    block: int
    compression: str


@dataclass(frozen=True)
class Row:
    """Seconds of one task with one dataset, by tool, and bytes on disk where it is written."""

    task: str
    case: Case
    seconds: dict[str, float]
    n_bytes: dict[str, int]

    def ratio(self, tool: str = "n5zarr") -> float:
        """How many times faster a way of n5zarr's is than the best peer."""
        return min(t for peer, t in self.seconds.items() if peer in PEERS) / self.seconds[tool]

    @property
    def ways(self) -> list[str]:
        """The ways of n5zarr's that were measured."""
        return [tool for tool in self.seconds if tool.startswith("n5zarr")]


def volume(dtype: str, edge: int) -> np.ndarray:
    """Make an image of smooth structures under noise, or labels of convex cells."""
    rng = np.random.default_rng(5)
    axes = np.ogrid[:edge, :edge, :edge]
    if dtype == "uint64":
        centres = rng.uniform(0, edge, (60, 3))
        best = np.full((edge,) * 3, np.inf)
        labels = np.zeros((edge,) * 3, "u8")
        for k, centre in enumerate(centres):
            distance = sum((axis - c) ** 2 for axis, c in zip(axes, centre, strict=True))
            nearer = distance < best
            labels[nearer] = 7919 * (k + 1)
            best = np.minimum(best, distance)
        return labels
    smooth = 120 + 60 * math.prod(np.sin(a / s) for a, s in zip(axes, (11, 13, 17), strict=True))
    noisy = smooth + rng.normal(0, 6, (edge,) * 3)
    return np.clip(noisy * (1 if dtype == "uint8" else 100), 0, np.iinfo(dtype).max).astype(dtype)


# ---------------------------------------------------------------------- tools


def spec(path: Path, case: Case, shape: tuple[int, ...] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{path}/d"}}
    if shape is not None:
        found["metadata"] = {
            "dataType": case.dtype,
            "dimensions": shape[::-1],
            "blockSize": [case.block] * 3,
            "compression": COMPRESSIONS[case.compression],
        }
        found["create"] = True
    return found


def zarr_spec(path: Path) -> dict[str, Any]:
    kvstore = {"driver": "file", "path": f"{path.with_suffix('.zarr')}/d/"}
    return {"driver": "zarr3", "kvstore": kvstore}


def picked(array: Any, selection: tuple[Any, ...]) -> Any:
    """Select a box, or the elements at positions along each axis."""
    return (array if isinstance(selection[0], slice) else array.vindex)[selection]


def of_zarr(array: Any) -> Reader:
    return lambda selection: np.asarray(picked(array, selection))


def of_tensorstore(spec: dict[str, Any]) -> Reader:
    array = ts.open(spec).result()
    if spec["driver"] != "n5":
        return lambda selection: picked(array, selection).read().result()
    return lambda selection: picked(array, selection[::-1]).read(order="F").result().T


def readers(path: Path, case: Case, *tools: str) -> dict[str, Reader]:
    def z5() -> Reader:
        array = z5py.File(str(path), "r")["d"]
        array.n_threads = 2
        return lambda box: np.asarray(array[box])

    def zarr_n5() -> Reader:
        array: Any = zarr.open_array(N5WrapperStore(LocalStore(path, read_only=True)), path="d")
        return lambda box: np.asarray(array[box[::-1]]).T

    def zarr_v3(pipeline: str) -> Reader:
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            return of_zarr(zarr.open_array(path.with_suffix(".zarr"), path="d", mode="r"))

    known: dict[str, Callable[[], Reader]] = {
        "n5zarr": lambda: of_zarr(n5zarr.open(path, path="d")),
        "n5zarr, plain": lambda: of_zarr(zarr.open_array(N5Store(path), path="d", mode="r")),
        "tensorstore": lambda: of_tensorstore(spec(path, case)),
        "z5py": z5,
        "zarr-n5": zarr_n5,
        **{tool: partial(zarr_v3, pipeline) for tool, pipeline in ZARR_PIPELINES.items()},
        "Zarr v3, tensorstore": lambda: of_tensorstore(zarr_spec(path)),
    }
    return {tool: known[tool]() for tool in tools}


def z5_options(case: Case) -> dict[str, Any]:
    how = COMPRESSIONS[case.compression]
    match how["type"]:
        case "gzip" | "zstd":
            return {"level": how["level"]}
        case "blosc":
            return {"codec": how["cname"], "clevel": how["clevel"], "shuffle": how["shuffle"]}
        case _:
            return {}


def writers(
    case: Case, source: np.ndarray, *tools: str
) -> dict[str, Callable[[Path], Callable[[], Any]]]:
    """Make, for each tool, what makes an empty dataset and gives back what fills it."""

    def ours(path: Path, durability: Any = "atomic") -> Callable[[], Any]:
        array = n5zarr.create_array(
            path, path="d", shape=source.shape, chunks=(case.block,) * 3, dtype=case.dtype,
            compression=COMPRESSIONS[case.compression], durability=durability,
        )  # fmt: skip
        return lambda: array.__setitem__(..., source)

    def tensorstore(path: Path) -> Callable[[], Any]:
        array = ts.open(spec(path, case, source.shape)).result()
        return lambda: array.write(source.T).result()

    def z5(path: Path) -> Callable[[], Any]:
        array = z5py.File(str(path), "w").create_dataset(
            "d", shape=source.shape, dtype=case.dtype, chunks=(case.block,) * 3, n_threads=2,
            compression=case.compression, **z5_options(case),
        )  # fmt: skip
        return lambda: array.__setitem__(slice(None), source)

    def zarr_code(store: Any) -> Callable[[], Any]:
        array: Any = zarr.create_array(
            store, name="d", shape=source.shape, chunks=(case.block,) * 3, dtype=case.dtype,
            compressors=ZARR_CODECS[case.compression], overwrite=True,
        )  # fmt: skip
        return lambda: array.__setitem__(..., source)

    def zarr_v3(path: Path, pipeline: str) -> Callable[[], Any]:
        """Make the same array as Zarr v3, with the codecs that the N5 one is shown with."""
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            return zarr_code(path.with_suffix(".zarr"))

    def zarr_tensorstore(path: Path) -> Callable[[], Any]:
        zarr_v3(path, ZARR_PIPELINES["Zarr v3"])
        array = ts.open(zarr_spec(path)).result()
        return lambda: array.write(source).result()

    known: dict[str, Callable[[Path], Callable[[], Any]]] = {
        "n5zarr": ours,
        **{f"n5zarr, {how}": partial(ours, durability=how) for how in OTHER_DURABILITIES},
        "n5zarr, plain": lambda path: zarr_code(N5Store(path)),
        "tensorstore": tensorstore,
        "z5py": z5,
        **{tool: partial(zarr_v3, pipeline=named) for tool, named in ZARR_PIPELINES.items()},
        "Zarr v3, tensorstore": zarr_tensorstore,
    }
    return {tool: known[tool] for tool in tools}


def filled(make: Callable[[Path], Callable[[], Any]], path: Path) -> float:
    """Fill a new dataset in place of another, and give the seconds of filling it."""
    for each in (path, path.with_suffix(".zarr")):
        shutil.rmtree(each, ignore_errors=True)
    return timed(make(path), 1)


def check_written(tool: str, path: Path, case: Case, source: np.ndarray) -> None:
    """Compare what a tool has written, as another reads it, with its source."""
    # tensorstore refuses z5py's blosc, for a member that it does not know
    reader = "z5py" if tool == "z5py" else "tensorstore"
    reader = "Zarr v3" if tool.startswith("Zarr v3") else reader
    assert np.array_equal(readers(path, case, reader)[reader]((slice(None),) * 3), source), tool


# ---------------------------------------------------------------------- tasks


def measure(tasks: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Run each in turn, in changing order, and give the median of seconds.

    Short tasks run several times in a row, as ``timeit`` does: a program reads one box after the
    other, and what another tool leaves behind, such as threads that end, delays the first.
    """
    seconds: dict[str, list[float]] = {tool: [] for tool in tasks}
    in_a_row = {tool: max(1, round(ENOUGH / timed(task, 1))) for tool, task in tasks.items()}
    for tool in shuffled(list(tasks), rounds):
        seconds[tool].append(timed(tasks[tool], in_a_row[tool]))
    return {tool: statistics.median(found) for tool, found in seconds.items()}


def timed(task: Callable[[], Any], n: int) -> float:
    """Give the seconds of a task that runs ``n`` times in a row."""
    start = time.perf_counter()
    for _ in range(n):
        task()
    return (time.perf_counter() - start) / n


def shuffled[Item](items: list[Item], rounds: int) -> Iterator[Item]:
    """Yield all items in each round, in another order each time."""
    rng = random.Random(5)
    for _ in range(rounds):
        yield from rng.sample(items, len(items))


def boxes(edge: int, wanted: str = "boxes of 100³") -> list[tuple[slice, ...]]:
    rng = np.random.default_rng(1)
    size, n = BOXES[wanted]
    size = min(size, edge // 2)
    corners = rng.integers(0, edge - size, (n, 3))
    return [tuple(slice(int(c), int(c) + size) for c in corner) for corner in corners]


def read_tasks(case: Case, source: np.ndarray, path: Path, rounds: int) -> list[Row]:
    edge = source.shape[0]
    full: list[tuple[slice, ...]] = [(slice(None),) * 3]
    at = slice(edge // 3, edge // 3 + 1)
    planes = {
        f"plane {name}": [tuple(at if i == axis else slice(None) for i in range(3))]
        for axis, name in enumerate("zyx")
    }
    rows: list[Row] = []
    wanted: dict[str, list[tuple[slice, ...]]] = {
        "read": full,
        **{name: boxes(edge, name) for name in BOXES},
        **planes,
    }
    for task, selections in wanted.items():
        found = readers(path, case, *READERS)
        rows.append(Row(task, case, measure_reads(found, selections, source, rounds), {}))
    return rows


def measure_reads(
    tools: Mapping[str, Reader],
    selections: Sequence[tuple[Any, ...]],
    source: np.ndarray,
    rounds: int,
) -> dict[str, float]:
    """Compare what each tool reads with the source, and measure them."""
    for tool, read in tools.items():
        for selection in selections:
            assert np.array_equal(read(selection), source[selection]), (tool, selection)
    tasks = {tool: partial(read_all, read, selections) for tool, read in tools.items()}
    return measure(tasks, rounds)


def read_all(read: Reader, selections: Sequence[tuple[Any, ...]]) -> None:
    for selection in selections:
        read(selection)


def write_tasks(case: Case, source: np.ndarray, folder: Path, rounds: int) -> list[Row]:
    tools = writers(case, source, *WRITERS)
    seconds: dict[str, list[float]] = {tool: [] for tool in tools}
    partial: dict[str, list[float]] = {tool: [] for tool in tools}
    n_bytes = {}
    part = boxes(source.shape[0])[0]
    for tool, make in shuffled(list(tools.items()), rounds):
        path = folder / f"{tool}.n5"
        seconds[tool].append(filled(make, path))
        made = path.with_suffix(".zarr") if tool == "Zarr v3" else path
        n_bytes[tool] = sum(p.stat().st_size for p in made.rglob("*") if p.is_file())
        partial[tool].append(write_part(tool, path, case, source, part))
    for tool in seconds:
        check_written(tool, folder / f"{tool}.n5", case, source)
        for suffix in (".n5", ".zarr"):
            shutil.rmtree((folder / tool).with_suffix(suffix), ignore_errors=True)
    medians = ({t: statistics.median(s) for t, s in of.items()} for of in (seconds, partial))
    return [
        Row(task, case, median, n_bytes if task == "write" else {})
        for task, median in zip(("write", "write a box"), medians, strict=True)
    ]


def write_part(
    tool: str, path: Path, case: Case, source: np.ndarray, box: tuple[slice, ...]
) -> float:
    value = np.ascontiguousarray(source[box])
    array: Any
    if tool == "tensorstore":
        array = ts.open(spec(path, case)).result()
        start = time.perf_counter()
        array[box[::-1]].write(value.T).result()
    elif tool == "z5py":
        array = z5py.File(str(path), "a")["d"]
        array.n_threads = 2
        start = time.perf_counter()
        array[box] = value
    elif tool == "Zarr v3":
        array = zarr.open_array(path.with_suffix(".zarr"), path="d", mode="r+")
        start = time.perf_counter()
        array[box] = value
    else:
        durability: Any = tool.partition(", ")[2] or "atomic"
        array = n5zarr.open(path, path="d", mode="r+", durability=durability)
        start = time.perf_counter()
        array[box] = value
    return time.perf_counter() - start


def peak_memory(path: Path, source: np.ndarray) -> float:
    """Give the most that is allocated during a full read, over the size of the output."""
    array: Any = n5zarr.open(path, path="d")
    array[...]
    tracemalloc.start()
    found = array[...]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / source.nbytes if found is not None else 0.0


def per_block(folder: Path) -> list[tuple[int, float, float]]:
    """Give microseconds to open, and to read one block, of datasets of ever more blocks."""
    found = []
    for n in (10, 10**3, 10**5, 10**6):
        path = folder / f"{n}.n5"
        array: Any = n5zarr.create_array(path, path="d", shape=(n * 64,), chunks=(64,), dtype="u1")
        array[:64] = 1
        seconds = measure(
            {
                "open": partial(n5zarr.open, path, path="d"),
                "block": partial(array.__getitem__, slice(0, 64)),
            },
            51,
        )
        found.append((n, 1e6 * seconds["open"], 1e6 * seconds["block"]))
    return found


class CountingStore(MemoryStore):
    """Counts what is asked of it."""

    calls: list[str]

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append("get")
        return await super().get(key, *args, **kwargs)

    def get_sync(self, key: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append("get")
        return super().get_sync(key, *args, **kwargs)

    async def set(self, key: str, value: Any, *args: Any, **kwargs: Any) -> None:
        self.calls.append("set")
        await super().set(key, value, *args, **kwargs)

    def set_sync(self, key: str, value: Any) -> None:
        self.calls.append("set")
        super().set_sync(key, value)

    def list_dir(self, prefix: str) -> Any:
        self.calls.append("list")
        return super().list_dir(prefix)

    def list_prefix(self, prefix: str) -> Any:
        self.calls.append("list")
        return super().list_prefix(prefix)


def calls_per_operation() -> list[tuple[str, str]]:
    """Count what is asked of a store that is not a local file system."""
    store = CountingStore()
    store.calls = []
    array: Any = n5zarr.create_array(
        store, path="d", shape=(256,) * 3, chunks=(64,) * 3, dtype="u1"
    )
    array[...] = 1
    found = []
    store.calls.clear()

    def note(operation: str) -> None:
        counts = {call: store.calls.count(call) for call in sorted(set(store.calls))}
        found.append((operation, ", ".join(f"{n} {call}" for call, n in counts.items())))
        store.calls.clear()

    array = n5zarr.open(store, path="d", mode="r+")
    note("open an array")
    array[:64, :64, :64]
    note("read one block")
    array[:128, :128, :128]
    note("read eight blocks")
    array[:64, :64, :64] = 2
    note("write one block")
    array[:100, :64, :64] = 3
    note("write one block and a part of another")
    return found


def bytes_of_a_selection(folder: Path) -> list[tuple[str, int]]:
    """Count what is read of one block of 256^3 bytes, where the system counts it."""
    counter = Path("/proc/self/io")
    if not counter.exists():
        return []

    def read() -> int:
        return int(counter.read_text(encoding="ascii").split()[1])

    found = []
    for name in ("raw", "zstd"):
        array: Any = n5zarr.create_array(
            folder / "one.n5", path=name, shape=(256,) * 3, chunks=(256,) * 3, dtype="u1",
            compression=COMPRESSIONS[name],
        )  # fmt: skip
        array[...] = np.random.default_rng(1).integers(0, 256, array.shape)
        for at, box in (("one element", (7, 7, 7)), ("one plane", (7,)), ("all", ())):
            array[box]
            before, nothing = read(), read()
            array[box]
            found.append((f"{name}, {at}", read() - nothing - (nothing - before)))
    return found


# ---------------------------------------------------------------------- report


def markdown(head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def table(rows: list[Row]) -> str:
    tools = list(dict.fromkeys(tool for row in rows for tool in row.seconds))
    lines = [
        f"| task | dtype | block | compression | {' | '.join(f'{t}, ms' for t in tools)} |",
        f"|---|---|---|---|{'---|' * len(tools)}",
    ]
    for row in rows:
        ms = (f"{1000 * row.seconds[t]:.1f}" if t in row.seconds else "" for t in tools)
        c = row.case
        cells = " | ".join(ms)
        lines.append(f"| {row.task} | {c.dtype} | {c.block} | {c.compression} | {cells} |")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """Make a table of the ratios to the best peer, for each way of n5zarr's."""
    lines = []
    blocks = dict.fromkeys(row.case.block for row in rows)
    for task, block in itertools.product(dict.fromkeys(r.task for r in rows), blocks):
        found = [r for r in rows if (r.task, r.case.block) == (task, block)]
        for way in found[0].ways if found else ():
            ratios = [row.ratio(way) for row in found]
            mean = math.exp(statistics.mean(map(math.log, ratios)))
            lines.append((task, block, way, f"{min(ratios):.2f}", f"{mean:.2f}"))
    return markdown(("task", "blocks", "way", "least ratio", "geometric mean"), lines)


def sections(rows: list[Row]) -> Iterator[str]:
    """Say what reading and writing take."""
    for title, is_write in (("Reading", False), ("Writing", True)):
        if part := [row for row in rows if row.task.startswith("write") == is_write]:
            yield from (f"## {title}", summary(part), table(part))


def plot(rows: list[Row], path: Path) -> None:
    tasks = list(dict.fromkeys(row.task for row in rows))
    figure = Figure(figsize=(9, 1 + 0.9 * len(tasks)), layout="constrained")
    axes = figure.subplots()
    for k, block in enumerate(dict.fromkeys(row.case.block for row in rows)):
        at = [
            (row.ratio(), tasks.index(row.task) + 0.25 * (k - 1))
            for row in rows
            if row.case.block == block
        ]
        if at:
            ratios, places = zip(*at, strict=True)
            axes.scatter(ratios, places, s=18, label=f"blocks of {block}³")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
    axes.set_yticks(range(len(tasks)), tasks)
    axes.invert_yaxis()
    axes.set_xlabel("times as fast as the best of tensorstore, z5py and zarr-n5")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edge", type=int, default=256)
    parser.add_argument("--blocks", type=int, nargs="+", default=BLOCKS, help="edges of blocks")
    parser.add_argument("--quick", action="store_true", help="one dtype, no small blocks")
    parser.add_argument("--only", choices=["read", "write"], help="one kind of task")
    parser.add_argument("--write", type=Path, help="folder for results.md and results.png")
    options = parser.parse_args()
    rows: list[Row] = []
    cases = itertools.product(
        ("uint8",) if options.quick else DTYPES,
        (64,) if options.quick else options.blocks,
        COMPRESSIONS,
    )
    memory = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for case in itertools.starmap(Case, cases):
            source = volume(case.dtype, options.edge)
            path = folder / "source.n5"
            shutil.rmtree(path, ignore_errors=True)
            for make in writers(case, source, "n5zarr", "Zarr v3").values():
                make(path)()
            found = []
            if options.only != "write":
                found += read_tasks(case, source, path, options.rounds)
            if options.only != "read":
                found += write_tasks(case, source, folder, options.rounds)
            rows += found
            memory[case] = peak_memory(path, source)
            print(case, *(f"{row.task} {row.ratio():.2f}" for row in found), sep="  ", flush=True)
        blocks = per_block(folder)
        n_read = bytes_of_a_selection(folder)
    text = "\n\n".join(
        [
            *sections(rows),
            "## Memory and requests",
            f"Peak memory of a full read: at most {max(memory.values()):.2f} times the output.",
            markdown(
                ("blocks", "open, µs", "read one block, µs"),
                [(str(n), f"{a:.0f}", f"{b:.0f}") for n, a, b in blocks],
            ),
            markdown(("of one block of 256³ bytes", "bytes read"), n_read),
            markdown(("operation", "calls of the store"), calls_per_operation()),
        ]
    )
    print(text)
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        command = f"python -m benchmarks --rounds {options.rounds} --write benchmarks"
        head = (
            f"# Benchmarks\n\nWritten by `{command}` on {datetime.now(UTC):%Y-%m-%d}; see "
            "[performance](../docs/performance.md).\nRatios are those of the best peer's time; "
            "*n5zarr* is `n5zarr.open`, *n5zarr, plain* is `zarr.open_array(N5Store(path))`.\n\n"
            "![Each dot is one dataset: how many times as fast as the best peer n5zarr reads or "
            "writes it, by task and block size; most are between 1 and 4](results.png)"
        )
        (options.write / "results.md").write_text(f"{head}\n\n{text}\n")
        plot(rows, options.write / "results.png")


if __name__ == "__main__":
    main()
