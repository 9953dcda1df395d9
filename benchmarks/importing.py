"""Importing n5zarr with store and opener, beside importing zarr alone.

Each import runs in a fresh process, in turn; printed are processor times and their ratio, of the
fastest runs and of the medians.

``uv run python -m benchmarks.importing [--rounds N]``
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

PROGRAMS = {
    "zarr": "import zarr",
    "n5zarr": "import n5zarr; n5zarr.N5Store, n5zarr.open",
}


def processor_time(program: str) -> float:
    """Run a program in a fresh process; return its seconds of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - of this file
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds: int = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            times[name].append(processor_time(program))
    for label, of in (("fastest", min), ("median", statistics.median)):
        zarr, n5zarr = (of(times[name]) for name in PROGRAMS)
        print(f"{label}: zarr {zarr:.3f} s, n5zarr {n5zarr:.3f} s, ratio {n5zarr / zarr:.2f}")


if __name__ == "__main__":
    main()
