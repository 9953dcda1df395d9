"""Search inputs that reach code which no other reaches: ``python -m tests.fuzz.guided``.

It needs atheris, Google's fuzzer for Python, which has packages for Python 3.12 and 3.13:
``uv run --with atheris python -m tests.fuzz.guided --seconds 600``. Python's lines are counted, in
n5zarr alone; the kernel is run too, but not counted. Inputs that reach new code are written to
the folder ``--found``; ``--keep 50``, afterwards, adds so many of them to the corpus. Those that do
what they must not are added at once.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

atheris: Any = import_module("atheris") if find_spec("atheris") else None  # only needed here

with nullcontext() if atheris is None else atheris.instrument_imports(["n5zarr"]):
    from tests.fuzz.blocks import WAYS, Blocks
    from tests.fuzz.judge import CORPUS, Case, keep
    from tests.fuzz.mutate import mutated

HEAD = 4  # bytes: which dataset, which of its blocks, and the way


class Guided:
    """Blocks as atheris makes them: a dataset, a position, a way, and the bytes."""

    def __init__(self, directory: Path) -> None:
        self.blocks = Blocks(directory)
        self.n_wrong = 0

    def case(self, data: bytes) -> tuple[Case, int]:
        """Return a case, and its way: the first bytes name dataset, position and way."""
        head = data[:HEAD].ljust(HEAD, b"\0")
        seeds = self.blocks.seeds
        seed = seeds[int.from_bytes(head[:2]) % len(seeds)]
        position = tuple(seed.blocks)[head[2] % len(seed.blocks)]
        target = (seed, position, random.Random(head[3]))
        case = Case(f"{seed}, block {position}", data[HEAD:], target)
        return case, 4 * (head[3] % len(WAYS))

    def first(self) -> list[bytes]:
        """Return the blocks as they are, each with another way."""
        return [
            n.to_bytes(2) + bytes([0, n % 256]) + next(iter(seed.blocks.values()))
            for n, seed in enumerate(self.blocks.seeds)
        ]

    def mutate(self, data: bytes, most: int, seed: int) -> bytes:
        """Mutate as the blind fuzzer does, or as atheris does, or read in another way."""
        rng = random.Random(seed)
        head, block = data[:HEAD].ljust(HEAD, b"\0"), data[HEAD:]
        choice = rng.random()
        if choice < 0.1:
            head = head[:3] + rng.randbytes(1)
        elif choice < 0.5 and len(block) > 40:
            others = (rng.choice(self.blocks.others),)
            block = mutated(rng, block, others) if len(block) < 2**14 else block[: 2**13]
        else:
            block = atheris.Mutate(block, max(1, most - HEAD))
        return (head + block)[:most]

    def run(self, data: bytes) -> None:
        """Read a block; keep it if something is wrong."""
        case, number = self.case(data)
        for what in self.blocks.run(case, number):
            self.n_wrong += 1
            print(f"{case.name}: {what}", flush=True)
            keep("blocks", case, number, f"guided: {what}"[:200])


def keep_found(guided: Guided, folder: Path, most: int) -> None:
    """Add some of the inputs that reached new code to the corpus."""
    new = [file for file in folder.iterdir() if not file.name.startswith("first")]
    found = sorted(new, key=lambda file: file.stat().st_size)
    for file in found[:: max(1, len(found) // most)][:most]:
        keep("blocks", *guided.case(file.read_bytes()), "reaches code that no other reached")
    print(f"{len(found)} inputs reach new code, up to {most} are in {CORPUS}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--found", type=Path, default=Path(".fuzz/guided"))
    parser.add_argument("--keep", type=int, default=0, help="add so many to the corpus, and end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz") as directory:
        guided = Guided(Path(directory))
        if options.keep:
            keep_found(guided, options.found, options.keep)
            return
        options.found.mkdir(parents=True, exist_ok=True)
        for n, data in enumerate(guided.first()):
            (options.found / f"first{n}").write_bytes(data)
        arguments = [
            sys.argv[0], f"-max_total_time={options.seconds}", "-max_len=65536", "-timeout=120",
            "-rss_limit_mb=4096", f"-artifact_prefix={options.found}/", str(options.found),
        ]  # fmt: skip
        settings: dict[str, Any] = {"custom_mutator": guided.mutate}
        atheris.Setup(arguments, guided.run, **settings)
        atheris.Fuzz()  # which ends the process


if __name__ == "__main__":
    main()
