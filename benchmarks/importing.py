"""Importing n5zarr, its opener and a first read, and commands, beside importing zarr alone.

Each program runs in fresh processes, in turn, with compiled modules as after an installation;
printed are the processor time of the median, its ratio to that of zarr, the median of the ratios of
neighbouring runs, and the number of modules of n5zarr that a program has loaded.

``uv run python -m benchmarks.importing [--rounds N]``
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

import n5zarr

SAMPLE = n5zarr.sample_path()
TREE = f"""from n5zarr.metadata.inspect import describe_each
list(describe_each({SAMPLE!r}, geometry=True))"""
INFO = f"from n5zarr.metadata.inspect import describe; describe({SAMPLE!r}, size=True)"
TAB = {"_N5ZARR_COMPLETE": "complete_bash", "COMP_WORDS": "n5zarr tree --", "COMP_CWORD": "2"}
COMPLETION = ("-m", "n5zarr")
PROGRAMS = {
    "import zarr": ("-c", "import zarr"),
    "import n5zarr": ("-c", "import n5zarr"),
    "n5zarr.open": ("-c", "import n5zarr; n5zarr.open"),
    "a first read": ("-c", f"import n5zarr; n5zarr.open({SAMPLE!r}, path='em/s0')[:5]"),
    "what tree calls": ("-c", TREE),
    "n5zarr tree": ("-m", "n5zarr", "tree", SAMPLE),
    "what info calls": ("-c", INFO),
    "n5zarr info": ("-m", "n5zarr", "info", SAMPLE),
    "n5zarr --version": ("-m", "n5zarr", "--version"),
    "n5zarr --help": ("-m", "n5zarr", "--help"),
    "n5zarr convert --help": ("-m", "n5zarr", "convert", "--help"),
    "n5zarr tree --TAB": COMPLETION,
}


def run(program: tuple[str, ...], cache: str, *options: str) -> tuple[float, str]:
    """Run a program in a fresh process; return its seconds of the processor, and its log."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # noqa: S603 - of this file
        [sys.executable, *options, *program],
        env=environment | {"PYTHONPYCACHEPREFIX": cache} | (TAB if program == COMPLETION else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds: int = parser.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as cache:
        logs = {name: run(program, cache, "-v")[1] for name, program in PROGRAMS.items()}
        for _ in range(rounds):
            for name, program in PROGRAMS.items():
                times[name].append(run(program, cache)[0])
    alone = times["import zarr"]
    print("| program | s | of import zarr | of its neighbour | modules of n5zarr |")
    print("|---|---|---|---|---|")
    for name, each in times.items():
        median = statistics.median(each)
        beside = statistics.median(a / b for a, b in zip(each, alone, strict=True))
        ratio = median / statistics.median(alone)
        n_modules = len(re.findall(r"^import 'n5zarr\b", logs[name], re.MULTILINE))
        print(f"| {name} | {median:.3f} | {ratio:.2f} | {beside:.2f} | {n_modules} |")


if __name__ == "__main__":
    main()
