"""Fuzz the readers: ``uv run python -m tests.fuzz --blocks 1000000 --documents 100000``.

The inputs are made of a seed and a number, so that a run goes on where another has ended: with its
``--seed``, and with ``--first`` as it printed ``next``. Inputs that do what they must not are
saved, with what they did, and the command ends with 1. ``--replay`` tries those that were kept.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.blocks import Blocks
from tests.fuzz.documents import Documents
from tests.fuzz.judge import kept
from tests.fuzz.keys import Keys
from tests.fuzz.watch import Harness, Report, Violation, examine, limit_memory, run

HARNESSES: dict[str, Callable[[Path], Harness]] = {
    "blocks": Blocks,
    "documents": Documents,
    "keys": Keys,
}


def save(folder: Path, kind: str, seed: str, found: Violation) -> None:
    """Write the input, and beside it the result."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{kind}-{seed}-{found.number}"
    stem.with_suffix(".bin").write_bytes(found.data)
    with stem.with_suffix(".txt").open("a") as notes:
        notes.write(f"{found.name}\n{found.what}\n")


def fuzz(kind: str, n: int, options: argparse.Namespace) -> Report:
    """Try ``n`` inputs of a kind, and print the findings."""
    total, told = Report(next=options.first), time.monotonic()
    numbers = range(options.first, options.first + n)
    for report in run(
        HARNESSES[kind], options.seed, numbers, seconds=options.seconds, n_workers=options.workers
    ):
        for found in report.violations:
            print(f"{kind} {options.seed}/{found.number}: {found.name}: {found.what}", flush=True)
            save(options.folder, kind, options.seed, found)
        total.add(report)
        if time.monotonic() > told + 60:
            told = time.monotonic()
            print(json.dumps({"kind": kind, "seed": options.seed, **total.rows()}), flush=True)
    print(json.dumps({"kind": kind, "seed": options.seed, **total.rows()}), flush=True)
    return total


def replay() -> Report:
    """Try the kept inputs again, in this process."""
    total = Report()
    with tempfile.TemporaryDirectory(prefix="fuzz") as directory:
        made = {}
        for kind, make in HARNESSES.items():
            (Path(directory) / kind).mkdir()
            made[kind] = make(Path(directory) / kind)
            for each in kept(kind).values():  # what is imported now is no matter of an input
                made[kind].run(made[kind].kept(each.name, each.data), each.way)
        limit_memory()
        for kind, harness in made.items():
            for stem, each in kept(kind).items():
                report = Report()
                examine(harness, harness.kept(each.name, each.data), each.way, report)
                for found in report.violations:
                    print(f"{kind}/{stem}: {each.why}: {found.what}")
                total.add(report)
    print(json.dumps(total.rows()))
    return total


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    for kind in HARNESSES:
        parser.add_argument(f"--{kind}", type=int, default=0, help=f"how many {kind}")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(2**32)))
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seconds", type=float, default=86400, help="for each kind, at most")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--folder", type=Path, default=Path(".fuzz/found"))
    parser.add_argument("--replay", action="store_true", help="try the inputs that were kept")
    options = parser.parse_args()
    if options.replay:
        return int(bool(replay().violations))
    found = [
        fuzz(kind, getattr(options, kind), options) for kind in HARNESSES if getattr(options, kind)
    ]
    return int(any(report.violations for report in found))


if __name__ == "__main__":
    sys.exit(main())
