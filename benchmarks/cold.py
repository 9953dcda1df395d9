"""One call of each tool, in turn, into new memory: what a program meets that reads now and then.

``python -m benchmarks`` repeats short calls in a row, so that threads, caches and memory of a tool
are warm. Here each tool makes one call, then another tool makes its own. The images have 384^3
elements and are written by tensorstore; each first result is compared with the source. A cell is
the time of the best peer over n5zarr's: above 1, n5zarr is faster.

The same run measures what the machine itself needs: its floors, and the processor time that reading
takes above that of ``floor.c``, which opens, reads, decodes and copies, and checks nothing.

``uv run --group bench python -m benchmarks.cold [--edge N] [--rounds N] [--only NAME] [--write]``
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import mmap
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from zarr.registry import register_pipeline

import n5zarr
from benchmarks.__main__ import (
    COMPRESSIONS,
    PEERS,
    Case,
    Row,
    boxes,
    check_written,
    markdown,
    of_zarr,
    read_all,
    readers,
    shuffled,
    table,
    timed,
    volume,
    writers,
)
from n5zarr import N5Store
from n5zarr.fast.default import default_pipeline
from n5zarr.fast.native import FUNCTIONS, addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAGE = Path(__file__).with_suffix(".md")
TOOLS = ("n5zarr", "n5zarr, plain", *PEERS)
TASKS = ("volume", "boxes of 100³", "boxes of 16³", "planes")
REST = 0.02  # seconds, for threads that another tool leaves behind
MIB = 2**20


def selections(edge: int) -> dict[str, list[tuple[Any, ...]]]:
    at = slice(edge // 3, edge // 3 + 1)
    planes = [tuple(at if i == axis else slice(None) for i in range(3)) for axis in range(3)]
    large, small = (boxes(edge, name) for name in TASKS[1:3])
    return dict(zip(TASKS, ([(slice(None),) * 3], large, small, planes), strict=True))


def stored(path: Path, case: Case, source: np.ndarray) -> None:
    writers(case, source, "tensorstore")["tensorstore"](path)()
    check_written("tensorstore", path, case, source)
    (path / "attributes.json").write_text('{"n5": "2.5.0"}')  # z5py looks for a version


def measured(path: Path, case: Case, source: np.ndarray, rounds: int) -> Iterator[Row]:
    found = readers(path, case, *TOOLS)
    for task, wanted in selections(source.shape[0]).items():
        for tool, read in found.items():
            for selection in wanted:
                assert np.array_equal(read(selection), source[selection]), (tool, selection)
        seconds: dict[str, list[float]] = {tool: [] for tool in found}
        for tool, read in shuffled(list(found.items()), rounds):
            gc.collect()
            time.sleep(REST)
            seconds[tool].append(timed(partial(read_all, read, wanted), 1))
        yield Row(task, case, {t: statistics.median(s) for t, s in seconds.items()}, {})


def summary(rows: Sequence[Row]) -> str:
    lines = []
    for task in (*TASKS, "all"):
        found = [row for row in rows if task in ("all", row.task)]
        for way in found[0].ways:
            ratios = [row.ratio(way) for row in found]
            n_below = sum(ratio < 1 for ratio in ratios)
            mean = f"{statistics.geometric_mean(ratios):.2f}"
            lines.append((task, way, mean, f"{min(ratios):.2f}", f"{n_below} of {len(ratios)}"))
    head = ("task", "way", "geometric mean", "least", "cells below 1")
    return markdown(head, lines)


# ---------------------------------------------------------------------- floors


def least(task: Callable[[], Any], n: int = 7) -> float:
    return min(timed(task, 1) for _ in range(n))


def touch(n_bytes: int, advice: int) -> float:
    """Write to each page of new memory, and give the seconds."""
    with mmap.mmap(-1, n_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(advice)
        array = np.frombuffer(memory, "u1")
        seconds = timed(partial(array.__setitem__, slice(None, None, mmap.PAGESIZE), 1), 1)
        del array
    return seconds


def to_and_fro(n: int) -> None:
    """Pass a word to a sleeping thread, and back."""
    there: SimpleQueue[object] = SimpleQueue()
    back: SimpleQueue[object] = SimpleQueue()

    def answer() -> None:
        for _ in range(n):
            back.put(there.get())

    thread = threading.Thread(target=answer)
    thread.start()
    for k in range(n):
        there.put(k)
        back.get()
    thread.join()


def open_read_close(path: Path, n: int) -> None:
    for _ in range(n):
        file = os.open(path, os.O_RDONLY)
        os.read(file, 4096)
        os.close(file)


def machine(folder: Path) -> str:
    """Measure what each program on this machine has to take."""
    one, other = np.ones(64 * MIB, "u1"), np.ones(64 * MIB, "u1")
    file = folder / "page"
    file.write_bytes(bytes(4096))

    def speed(advice: int, idle: float = 0) -> float:
        found = []
        for _ in range(5):
            time.sleep(idle)  # some virtual machines give free memory back to their host
            found.append(touch(64 * MIB, advice))
        return 64 * MIB / statistics.median(found) / 1e9

    found = (
        ("copying memory, GB/s", 64 * MIB / least(partial(np.copyto, one, other)) / 1e9, ".1f"),
        ("first touch of pages of 4 KiB, GB/s", speed(mmap.MADV_NOHUGEPAGE), ".1f"),
        ("first touch of huge pages, GB/s", speed(mmap.MADV_HUGEPAGE), ".1f"),
        ("the same, of memory that was free for 3 s", speed(mmap.MADV_HUGEPAGE, 3), ".1f"),
        ("waking a thread, us", 1e6 * least(partial(to_and_fro, 1000)) / 2000, ".1f"),
        ("open, read, close of 4 KiB, us", 1e6 * least(partial(open_read_close, file, 1000)) / 1000,
         ".1f"),
    )  # fmt: skip
    return markdown(("floor", "measured"), [(name, format(n, how)) for name, n, how in found])


def floor_of(folder: Path) -> Any:
    """Compile ``floor.c``."""
    made = folder / "floor.so"
    source = Path(__file__).with_name("floor.c")
    compiler = shutil.which("cc") or "gcc"
    subprocess.run([compiler, "-O3", "-shared", "-fPIC", "-o", made, source], check=True)  # noqa: S603 - ours
    function = ctypes.CDLL(str(made)).read_cube
    function.restype = ctypes.c_int64
    return function


def bare_reading(function: Any, path: Path, case: Case, edge: int) -> np.ndarray:
    """Read a cube by ``floor.c``, on one thread."""
    at = dict(zip(itertools.chain(*FUNCTIONS.values()), addresses(), strict=True))
    gunzip, unzstd = at["libdeflate_gzip_decompress_ex"], at["ZSTD_decompressDCtx"]
    make = {
        "gzip": at["libdeflate_alloc_decompressor"], "zstd": at["ZSTD_createDCtx"],
    }.get(case.compression)  # fmt: skip
    dtype = np.dtype(case.dtype)
    n_bytes = dtype.itemsize * case.block**3
    stored_dtype = dtype.newbyteorder(">")
    out = np.empty((edge,) * 3, stored_dtype)
    packed, elements = np.empty(n_bytes + 4096, "u1"), np.empty(n_bytes, "u1")
    decoder = ctypes.CFUNCTYPE(ctypes.c_void_p)(make)() if make else None
    directory = os.open(path / "d", os.O_RDONLY)
    sizes = (edge // case.block, case.block, dtype.itemsize)
    memory = (each.ctypes.data for each in (out, packed, elements))
    functions = (gunzip * (case.compression == "gzip"), unzstd * (case.compression == "zstd"))
    wrong = function(
        directory,
        *map(ctypes.c_int64, sizes),
        *map(ctypes.c_void_p, (*memory, *functions, decoder)),
    )
    os.close(directory)
    assert wrong == 0
    return out


def processor_times(folder: Path, edge: int, rounds: int) -> str:
    """Compare the processor time of reading a volume of uint16 with that of the bare reading."""
    function, lines = floor_of(folder), []
    for block, compression in ((64, "raw"), (64, "gzip"), (64, "zstd"), (32, "raw"), (16, "raw")):
        case, path = Case("uint16", block, compression), folder / f"{block}-{compression}.n5"
        source = volume("uint16", edge)
        stored(path, case, source)
        array: Any = n5zarr.open(path, path="d")
        tasks: dict[str, Callable[[], Any]] = {
            "n5zarr": partial(array.__getitem__, ...),
            "floor": partial(bare_reading, function, path, case, edge),
        }
        assert all(np.array_equal(task(), source) for task in tasks.values())
        spent: dict[str, list[float]] = {name: [] for name in tasks}
        for name, task in shuffled(list(tasks.items()), 5 * rounds):
            before = time.process_time()
            task()
            spent[name].append(time.process_time() - before)
        ours, floor = (1000 * statistics.median(spent[name]) for name in tasks)
        each = (f"{1000 * ms / (edge // block) ** 3:.0f}" for ms in (ours, floor))
        cells = (f"{ours:.1f}", f"{floor:.1f}", *each, f"{ours / floor:.2f}")
        lines.append((f"{block}³ {compression}", *cells))
    head = ("blocks", "n5zarr, ms", "floor, ms", "n5zarr, us a block", "floor, us a block", "ratio")
    return markdown(head, lines)


class Nothing(default_pipeline()):  # type: ignore[misc]
    """Returns at once: what is left is what zarr itself takes for a selection."""

    async def read(self, batch_info: Any, out: Any, drop_axes: Any = ()) -> Any:
        return tuple({"status": "present"} for _ in batch_info)


register_pipeline(Nothing)


def zarrs_floor(folder: Path, edge: int, rounds: int) -> str:
    """Compare what plain zarr takes above n5zarr's own calls with what zarr takes for nothing."""
    lines = []
    for block, compression in itertools.product((64, 32), ("raw", "zstd")):
        case, path = Case("uint8", block, compression), folder / f"zarrs-{block}-{compression}.n5"
        source = volume("uint8", edge)
        stored(path, case, source)
        found = readers(path, case, "n5zarr", "n5zarr, plain", "tensorstore")
        with zarr.config.set({"codec_pipeline.path": f"{__name__}.Nothing"}):
            found["zarr, nothing"] = of_zarr(zarr.open_array(N5Store(path), path="d", mode="r"))
        for task, wanted in selections(edge).items():
            spent: dict[str, list[float]] = {tool: [] for tool in found}
            for tool, read in shuffled(list(found.items()), 3 * rounds):
                spent[tool].append(timed(partial(read_all, read, wanted), 1))
            ms = {tool: 1000 * statistics.median(each) for tool, each in spent.items()}
            own, plain, other, nothing = ms.values()
            cells = (f"{each:.2f}" for each in (own, nothing, plain))
            ratio = f"{plain / (own + nothing):.2f}", f"{other / plain:.2f}"
            most = f"{other / (own + nothing):.2f}"
            lines.append((task, f"{block}³ {compression}", *cells, *ratio, most))
    head = (
        "task", "blocks", "own, ms", "zarr for nothing, ms", "plain, ms", "plain of both",
        "tensorstore over plain", "tensorstore over both",
    )  # fmt: skip
    return markdown(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold")
    parser.add_argument("--edge", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["tools", "floors"], help="one part")
    parser.add_argument("--write", action="store_true", help="write cold.md")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("the page has both parts: --write without --only")
    parts, rows = [], []
    if options.only != "tools":
        with tempfile.TemporaryDirectory() as folder:
            times = processor_times(Path(folder), 192, options.rounds)
            zarrs = zarrs_floor(Path(folder), options.edge, options.rounds)
            parts += ["## Floors", machine(Path(folder)), times, zarrs]
            print("\n\n".join(parts), flush=True)
    if options.only != "floors":
        for each in itertools.product(("uint8", "uint16"), (64, 32), COMPRESSIONS):
            case = Case(*each)
            with tempfile.TemporaryDirectory() as folder:
                source, path = volume(case.dtype, options.edge), Path(folder) / "source.n5"
                stored(path, case, source)
                new = list(measured(path, case, source, options.rounds))
            rows += new
            ratios = (f"{r.task} {r.ratio():.2f}, {r.ratio('n5zarr, plain'):.2f}" for r in new)
            print(case, *ratios, sep="  ", flush=True)
        parts += ["## One call of each tool", summary(rows), table(rows)]
        print("\n\n".join(parts[-2:]))
    if options.write:
        command = f"python -m benchmarks.cold --rounds {options.rounds} --write"
        head = f"# Cold calls\n\nWritten by `{command}` on {datetime.now(UTC):%Y-%m-%d}."
        PAGE.write_text("\n\n".join([head, *parts]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
