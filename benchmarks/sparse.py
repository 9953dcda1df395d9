"""What each function and command costs with few blocks in a huge volume, and with very many blocks.

Two kinds of datasets: ``huge`` has about 10^5 elements along each axis and 200 stored blocks of
64^3, all others of its 4 * 10^9 positions are empty; ``N`` has N stored blocks of 8^3, all that its
dimensions have room for. Each task runs in a process of its own: seconds are those of the CPU in
all of its threads, so that other work on the machine changes them little, MB the growth of the
process above what it has after its imports, requests those to a store that counts them. ``-`` means
that a task takes only local files, or that requests are not counted, as with more than 10^4 blocks.
Files are in the system's directory of temporary files. If that is on a disk, writing 10^5 files
takes mainly the time of its file system, which the row of ``shutil.copytree`` shows: with
``TMPDIR=/dev/shm`` they are in memory.

``uv run --group bench python -m benchmarks.sparse [--blocks N ...] [--only NAME] [--limit S]``
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr
import zarr
from zarr.storage import LocalStore, WrapperStore

import n5zarr
from n5zarr import N5Store

if TYPE_CHECKING:
    from collections.abc import Callable

DATASET = "v/s0"
HUGE = (100_003, 99_991, 100_019)
GRIDS = {  # number of blocks: grid of blocks, N5 order
    8: (2, 2, 2),
    10_000: (20, 20, 25),
    100_000: (40, 50, 50),
    1_000_000: (80, 100, 125),
}


REQUESTS = ("get", "getsize", "exists", "set", "delete", "list")  # beginnings of names of methods


class CountingStore(WrapperStore[LocalStore]):
    """A local store that counts the requests to it."""

    n_requests = 0

    def __getattribute__(self, name: str) -> Any:
        CountingStore.n_requests += name.partition("_")[0] in REQUESTS
        return super().__getattribute__(name)


# ---------------------------------------------------------------------------------- the datasets


def write_dataset(path: Path, dimensions: tuple[int, ...], block_size: int) -> None:
    (path / DATASET).mkdir(parents=True)
    (path / "attributes.json").write_text('{"n5": "4.0.0"}')
    document = {
        "dimensions": dimensions,
        "blockSize": [block_size] * 3,
        "dataType": "uint8",
        "compression": {"type": "gzip", "useZlib": False, "level": 6},
        "pixelResolution": {"unit": "nm", "dimensions": [4, 4, 40]},
    }
    (path / DATASET / "attributes.json").write_text(json.dumps(document))


def make(folder: Path, name: str) -> Path:
    """Make the container of one kind, with one dataset."""
    path = folder / f"{name}.n5"
    n = 64 if name == "huge" else 8
    header = struct.pack(">HHIII", 0, 3, n, n, n)
    values = bytes(1 + i % 200 for i in range(n**3))
    block = header + gzip.compress(values, 6, mtime=0)
    if name == "huge":
        dimensions: tuple[int, ...] = HUGE
        generator = random.Random(1)
        positions = [tuple(generator.randrange(d // n) for d in dimensions) for _ in range(200)]
    else:
        grid = GRIDS[int(name)]
        dimensions = tuple(n * g for g in grid)
        positions = list(product(*map(range, grid)))
    write_dataset(path, dimensions, n)
    made = set()
    for x, y, z in positions:
        parent = path / DATASET / str(x) / str(y)
        if parent not in made:
            parent.mkdir(parents=True, exist_ok=True)
            made.add(parent)
        descriptor = os.open(parent / str(z), os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, block)
        os.close(descriptor)
    return path


# ---------------------------------------------------------------------------------- the tasks


def engine(path: Any, **options: Any) -> xr.Dataset:
    return xr.open_dataset(path, engine="n5", group=DATASET, **options)


def shrink(array: Any) -> None:
    array.resize((array.shape[0] // 2, *array.shape[1:]))


def opened(path: Any, mode: Any = "r") -> Any:
    return n5zarr.open(path, mode, path=DATASET)


def delete(path: Path) -> None:
    del zarr.open_group(N5Store(path), mode="r+")[DATASET]


def plain(path: Any, mode: Any = "r") -> Any:
    return zarr.open_array(N5Store(path), path=DATASET, mode=mode)


def converted(path: Any, out: Path, **options: Any) -> Path:
    """A finished copy, made before the clock starts."""
    n5zarr.convert(path, out / "copy.zarr", **options)
    return out / "copy.zarr"


READ: dict[str, Callable[[Any], object]] = {
    "`n5zarr.open`, a box": lambda path: opened(path)[-64:, :64, :64],
    "`zarr.open`, a box": lambda path: plain(path)[-64:, :64, :64],
    "`nchunks_initialized` of `n5zarr.open`": lambda path: opened(path).nchunks_initialized,
    "`nbytes_stored()` of `n5zarr.open`": lambda path: opened(path).nbytes_stored(),
    "`info_complete()` of `n5zarr.open`": lambda path: str(opened(path).info_complete()),
    "`nchunks_initialized` of `zarr.open`": lambda path: plain(path).nchunks_initialized,
    "HTML of `n5zarr.open`": lambda path: opened(path)._repr_html_(),
    '`engine="n5"`': engine,
    '`engine="n5"`, `chunks="auto"`': lambda path: engine(path, chunks="auto"),
    "`open_datatree`": lambda path: xr.open_datatree(path, engine="n5"),
    "`pyramid_levels`": lambda path: n5zarr.pyramid_levels(path, "v"),
    "`open_level`": lambda path: n5zarr.open_level(path, path="v", level=0),
    "`geometry`": lambda path: n5zarr.geometry(path, DATASET),
    "`block_statistics`": lambda path: n5zarr.block_statistics(path, DATASET),
    "`block_statistics`, all blocks": lambda path: n5zarr.block_statistics(
        path, DATASET, n_blocks=None
    ),
    "`validate`": n5zarr.validate,
    "`validate(deep=True)`": lambda path: n5zarr.validate(path, deep=True),
    "`thumbnail`": n5zarr.thumbnail,
    "`plot`": n5zarr.plot,
    "`napari_layers`": n5zarr.napari_layers,
    "`remove_empty_blocks(dry_run=True)`": lambda path: n5zarr.remove_empty_blocks(
        path, DATASET, dry_run=True
    ),
}

WRITE: dict[str, Callable[[Any, Path], object]] = {
    "`convert` to Zarr": lambda path, out: n5zarr.convert(path, out / "a.zarr"),
    "`convert` to N5": lambda path, out: n5zarr.convert(path, out / "a.n5"),
    "`convert` to Zarr v2": lambda path, out: n5zarr.convert(path, out / "a.zarr", to="zarr2"),
    "`convert(ome=True)`": lambda path, out: n5zarr.convert(path, out / "a.zarr", ome=True),
    "`convert`, other compression": lambda path, out: n5zarr.convert(
        path, out / "a.zarr", compression="zstd"
    ),
    "`convert`, other chunks": lambda path, out: n5zarr.convert(path, out / "a.zarr", chunks=48),
    "`convert`, shards": lambda path, out: n5zarr.convert(path, out / "a.zarr", shards=256),
    "`convert(verify=True)`": lambda path, out: n5zarr.convert(path, out / "a.zarr", verify=True),
    "`convert(coords=True)`": lambda path, out: n5zarr.convert(path, out / "a.zarr", coords=True),
    "`download`": lambda path, out: n5zarr.download(path, out / "b"),
    "`download` of a box": lambda path, out: n5zarr.download(
        path, out / "b", paths=[DATASET], box=(slice(0, 16), slice(0, 16), slice(0, 16))
    ),
    "`virtualize` to JSON": lambda path, out: n5zarr.virtualize(path, out / "r.json"),
    "`virtualize` to Parquet": lambda path, out: n5zarr.virtualize(
        path, out / "r.parquet", format="parquet"
    ),
    "`virtualize` to Icechunk": lambda path, out: n5zarr.virtualize(
        path, out / "r.icechunk", format="icechunk"
    ),
}

CHANGE: dict[str, Callable[[Path], object]] = {  # of a copy of the container
    "Python's `shutil.copytree`": lambda path: shutil.copytree(path / "v", path / "again"),
    "`resize` to half, of `n5zarr.open`": lambda path: shrink(opened(path, "r+")),
    "`resize` to half, of `zarr.open`": lambda path: shrink(plain(path, "r+")),
    "`remove_empty_blocks`": lambda path: n5zarr.remove_empty_blocks(path, DATASET),
    "`repair_edges`": lambda path: n5zarr.repair_edges(path, DATASET, to="pad"),
    "`rechunk`": lambda path: n5zarr.rechunk(path, DATASET, chunks=32),
    "`build_pyramid`": lambda path: n5zarr.build_pyramid(path, "v", levels=2),
    "`set_geometry`": lambda path: n5zarr.set_geometry(path, DATASET, scale=[1, 2, 3]),
    "`set_attribute`": lambda path: n5zarr.set_attribute(path, DATASET, "a", 1),
    "`del group[...]`": delete,
}


COPIED: dict[str, Callable[[Path, Path], object]] = {  # of a container and its finished copy
    "`compare` with the copy in Zarr": n5zarr.compare,
    "`compare_arrays`": lambda path, copy: (
        n5zarr.compare_arrays(opened(path), zarr.open_array(copy, path=DATASET, mode="r")) is None
    ),
    "`convert(resume=True)` of the copy": lambda path, copy: n5zarr.convert(
        path, copy, resume=True
    ),
}

COMMANDS = {
    "`n5zarr tree --size`": ["tree", "--size", "{path}"],
    "`n5zarr info`": ["info", "{path}/v/s0"],
    "`n5zarr info --no-size`": ["info", "--no-size", "{path}/v/s0"],
    "`n5zarr info --stats`": ["info", "--stats", "{path}/v/s0"],
    "`n5zarr info --verify`": ["info", "--verify", "{path}/v/s0"],
    "`n5zarr thumbnail`": ["thumbnail", "{path}", "-o", "{out}/t.png"],
    "`n5zarr convert`": ["convert", "{path}", "{out}/a.zarr"],
    "`n5zarr convert --dry-run`": ["convert", "--dry-run", "{path}", "{out}/a.zarr"],
    "`n5zarr download`": ["download", "{path}", "{out}/b"],
    "`n5zarr virtualize`": ["virtualize", "{path}", "{out}/r.json"],
    "`n5zarr validate`": ["validate", "{path}"],
    "`n5zarr diff`": ["diff", "{path}", "{path}"],
    "`n5zarr rm-empty --dry-run`": ["rm-empty", "--dry-run", "{path}/v/s0"],
    "`n5zarr attrs`": ["attrs", "{path}/v/s0"],
}

COUNTED = {*READ, *WRITE}  # their location may be a store
COUNTABLE = 10_000  # blocks
TASKS = {**READ, **WRITE, **CHANGE, **COPIED, **COMMANDS}


def do(task: str, path: Path, out: Path, *, counted: bool) -> tuple[float, int]:
    """Run a task in this process; return its seconds and the number of its requests."""
    location: Any = CountingStore(LocalStore(path, read_only=True)) if counted else path
    prepared = converted(path, out) if task in COPIED else out
    CountingStore.n_requests = 0
    start = time.process_time()
    if task in READ:
        READ[task](location)
    elif task in WRITE:
        WRITE[task](location, out)
    elif task in CHANGE:
        CHANGE[task](path)
    else:
        COPIED[task](path, prepared)
    return time.process_time() - start, CountingStore.n_requests


def run(task: str, path: Path, out: Path, *, counted: bool) -> None:
    """Run a task in this process, and print seconds, growth in bytes, requests."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:  # so that imports are not counted as its own
        do(task, make(Path(folder), "8"), Path(folder), counted=counted)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, n_requests = do(task, path, out, counted=counted)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, 1024 * (after - before), n_requests]))


def run_command(words: list[str], limit: float) -> tuple[float, float]:
    """Run a command; return its seconds and its memory in MB, both above ``--version``'s."""
    program = [sys.executable, "-m", "n5zarr"]
    measured = []
    for arguments in (["--version"], words):
        start = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            [*program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = start + limit
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() > deadline:
                process.kill()
                os.wait4(process.pid, 0)
                raise TimeoutError
            time.sleep(0.01)
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            raise RuntimeError(words)
        measured.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    (s0, m0), (s1, m1) = measured
    return max(0.0, s1 - s0), max(0.0, m1 - m0)


def run_function(
    task: str, path: Path, out: Path, limit: float, *, may_count: bool
) -> tuple[float, float, str]:
    command = [sys.executable, "-m", "benchmarks.sparse", "--task", task]
    command += ["--path", str(path), "--out", str(out)]
    seconds = n_bytes = 0.0
    requests = "-"
    for counted in (False, True)[: 1 + (may_count and task in COUNTED)]:
        extra = ["--counted"] if counted else []
        if counted:
            shutil.rmtree(out)
            out.mkdir()
        try:
            done = subprocess.run(  # noqa: S603
                command + extra, check=True, capture_output=True, text=True, timeout=limit
            )
        except subprocess.CalledProcessError as err:
            message = err.stderr.strip().splitlines()[-1:]
            print(f"{task}: {message}", file=sys.stderr)
            if counted:  # takes no store of a user
                break
            raise
        except subprocess.TimeoutExpired:
            if counted:
                requests = "?"
                break
            raise TimeoutError from None
        found = json.loads(done.stdout.splitlines()[-1])
        if counted:
            requests = str(found[2])
        else:
            seconds, n_bytes = found[:2]
    return seconds, n_bytes / 2**20, requests


def measure(task: str, path: Path, scratch: Path, limit: float) -> str:
    """Run a task on a container; return its cells of the table."""
    out = scratch / "out"
    out.mkdir()
    may_count = path.stem == "huge" or int(path.stem) <= COUNTABLE
    try:
        if task in CHANGE:
            shutil.copytree(path, scratch / "copy.n5", copy_function=os.link)
            path = scratch / "copy.n5"
        if task in COMMANDS:
            words = [w.format(path=path, out=out) for w in COMMANDS[task]]
            seconds, mb = run_command(words, limit)
            requests = "-"
        else:
            seconds, mb, requests = run_function(task, path, out, limit, may_count=may_count)
    except TimeoutError:
        return f"> {limit:.0f} | | "
    except (RuntimeError, subprocess.CalledProcessError):
        return "error | | "
    finally:
        for each in (out, scratch / "copy.n5"):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(each)
    return f"{seconds:.2f} | {mb:.0f} | {requests}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, nargs="*", choices=GRIDS, default=[10_000, 100_000])
    parser.add_argument("--only", action="append", help="tasks with this in their name")
    parser.add_argument("--limit", type=float, default=60, help="seconds of the wall")
    for name in ("--task", "--path", "--out"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--counted", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        run(options.task, Path(options.path), Path(options.out), counted=options.counted)
        return
    chosen = [t for t in TASKS if not options.only or any(o in t for o in options.only)]
    names = ["huge", *map(str, options.blocks)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [make(Path(folder), name) for name in names]
        print("| task | " + " | ".join(f"{n}, s | MB | requests" for n in names) + " |")
        print("|---" * (1 + 3 * len(names)) + "|", flush=True)
        for task in chosen:
            cells = [measure(task, path, Path(folder), options.limit) for path in paths]
            print(f"| {task} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
