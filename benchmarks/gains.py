"""What a user gains: the same tasks on N5 and on Zarr, by n5zarr and by all others, in one run.

Images of uint8 and uint16 in blocks of 64^3 and 32^3, raw, gzip, zstd and blosc, are there as N5,
written by tensorstore, and as Zarr v3 with the same chunks, written by zarr: no file is n5zarr's.
They are read whole, in boxes of 100^3 and at 1000 points, and written whole, in files; those of
uint8 in blocks of 64^3 are also read from an S3 server of its own process, which answers each
request after 20 ms. All run in turn; each result is compared with the source. Speeds are geometric
means over the images, as multiples of zarr's with Zarr v3 and its default pipeline, on the server
through fsspec.

``TMPDIR=/dev/shm uv run --group bench python -m benchmarks.gains [--quick] [--write]``

``--write`` writes ``benchmarks/gains.md``, the plots, and the numbers in the README and
``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import remote
from benchmarks.__main__ import (
    COMPRESSIONS,
    Case,
    Row,
    boxes,
    check_written,
    filled,
    measure_reads,
    readers,
    shuffled,
    table,
    volume,
    writers,
)
from benchmarks.gains_report import (
    COMMAND,
    FILES,
    SERVER,
    WRITING,
    Found,
    fastest_first,
    summary,
    write,
)
from benchmarks.s3_server import s3_server

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).with_name("gains.md")
BASE = "Zarr v3"
READS = ("reading a volume", "reading boxes of 100³", "reading 1000 points")
LATENCY = 20


def selections(edge: int) -> dict[str, list[tuple[Any, ...]]]:
    rng = np.random.default_rng(3)
    points = tuple(rng.integers(0, edge, 1000) for _ in range(3))
    return dict(zip(READS, ([(slice(None),) * 3], boxes(edge), [points]), strict=True))


def stored(path: Path, case: Case, source: np.ndarray) -> None:
    """Write the N5 and the Zarr that all read."""
    for tool, make in writers(case, source, "tensorstore", BASE).items():
        make(path)()
        check_written(tool, path, case, source)
    (path / "attributes.json").write_text('{"n5": "2.5.0"}')  # z5py looks for a version


def in_files(folder: Path, case: Case, source: np.ndarray, rounds: int) -> list[Row]:
    path = folder / "source.n5"
    stored(path, case, source)
    tools, rows = readers(path, case, *FILES), []
    for task, wanted in selections(source.shape[0]).items():
        # z5py has only boxes
        able = {tool: read for tool, read in tools.items() if tool != "z5py" or task != READS[-1]}
        rows.append(Row(task, case, measure_reads(able, wanted, source, rounds), {}))
    seconds: dict[str, list[float]] = {tool: [] for tool in FILES}
    for tool, make in shuffled(list(writers(case, source, *FILES).items()), max(1, rounds - 1)):
        seconds[tool].append(filled(make, path))
        check_written(tool, path, case, source)
    return [*rows, Row(WRITING, case, {t: statistics.median(s) for t, s in seconds.items()}, {})]


def from_a_server(folder: Path, case: Case, source: np.ndarray, rounds: int) -> list[Row]:
    stored(folder / "lab" / "c.n5", case, source)
    with s3_server(folder, LATENCY) as options:
        tools = remote.readers(options, *SERVER)
        return [
            Row(task, case, measure_reads(tools, wanted, source, rounds), {})
            for task, wanted in selections(source.shape[0]).items()
        ]


def gains(rows: Sequence[Row], names: dict[str, str]) -> dict[str, dict[str, float]]:
    """Give the gain of each way, by name, in each task that it can do."""
    found = {}
    for task in dict.fromkeys(row.task for row in rows):
        seconds = [row.seconds for row in rows if row.task == task]
        found[task] = fastest_first(
            {
                name: statistics.geometric_mean(each[BASE] / each[tool] for each in seconds)
                for tool, name in names.items()
                if tool in seconds[0]
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gains")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--edge", type=int, default=256)
    parser.add_argument(
        "--quick", action="store_true", help="uint8 in blocks of 64^3, raw and gzip"
    )
    parser.add_argument("--write", action="store_true", help="write what was measured")
    options = parser.parse_args()
    if options.write and options.quick:
        parser.error("the pages say what all images take: --write without --quick")
    cases = [Case(*each) for each in itertools.product(("uint8", "uint16"), (64, 32), COMPRESSIONS)]
    far = [case for case in cases if (case.dtype, case.block) == ("uint8", 64)]
    if options.quick:
        cases = far = far[:2]
    rows: dict[str, list[Row]] = {"files": [], "server": []}
    for place, measured, wanted in (("files", in_files, cases), ("server", from_a_server, far)):
        for case in wanted:
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "lab").mkdir()
                source = volume(case.dtype, options.edge)
                new = measured(Path(folder), case, source, options.rounds)
            rows[place] += new
            seconds = {row.task: row.seconds for row in new}
            ratios = (f"{t} {s[BASE] / s['n5zarr, plain']:.2f}" for t, s in seconds.items())
            print(case, place, *ratios, sep="  ", flush=True)
    found = Found(
        datetime.now(UTC).date().isoformat(),
        LATENCY,
        gains(rows["files"], FILES),
        gains(rows["server"], SERVER),
    )
    text = "\n".join([summary(found), table(rows["files"]), "", table(rows["server"])])
    print(text)
    if options.write:
        head = f"# What a user gains\n\nWritten by `{COMMAND}` on {found.date}."
        PAGE.write_text(f"{head}\n\n{text}\n", encoding="utf-8")
        write(found)


if __name__ == "__main__":
    main()
