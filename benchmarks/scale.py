"""What commands cost with ever more blocks: processor seconds, and the peak of the memory.

The datasets are those of ``benchmarks.sparse``: blocks of 8^3 uint8, gzip, all that the dimensions
have room for. Each command runs in a process of its own, interpreter and imports included; seconds
are those of the processor in all threads, MB the largest resident size, us those seconds for each
block. Files are in the system's directory of temporary files.

``TMPDIR=/dev/shm uv run --group bench python -m benchmarks.scale [--blocks N ...] [--only NAME]``
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DATASET = "v/s0"  # of benchmarks.sparse; imported, it would be counted in the memory of commands
MAKE = "import sys, pathlib, benchmarks.sparse as s; s.make(pathlib.Path(sys.argv[1]), sys.argv[2])"
SIZES = (10_000, 100_000, 1_000_000)
COMMANDS = {
    "tree": ["tree", "{path}"],
    "info": ["info", "{set}"],
    "info --stats": ["info", "--stats", "{set}"],
    "validate": ["validate", "{path}"],
    "rm-empty": ["rm-empty", "{set}"],
    "virtualize to Parquet": ["virtualize", "{path}", "{out}/r.parquet"],
    "virtualize to JSON": ["virtualize", "{path}", "{out}/r.json"],
    "convert to shards": ["convert", "{path}", "{out}/a.zarr", "--shards", "256,256,256"],
    "pyramid": ["pyramid", "{set}"],
}


def measure(words: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds and MB."""
    command = [sys.executable, "-m", "n5zarr", *words, "--quiet"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(words)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, nargs="*", choices=SIZES, default=SIZES[:2])
    parser.add_argument("--only", nargs="*", choices=COMMANDS, default=list(COMMANDS))
    options = parser.parse_args()
    cells: dict[str, list[str]] = {name: [] for name in options.only}
    for n in (8, *options.blocks):  # those of 8 only compile modules
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder, f"{n}.n5"), Path(folder, "out")
            subprocess.run([sys.executable, "-c", MAKE, folder, str(n)], check=True)  # noqa: S603
            for name in options.only:
                out.mkdir()
                words = [w.format(path=path, set=path / DATASET, out=out) for w in COMMANDS[name]]
                seconds, mb = measure(words)
                if n > 8:
                    cells[name].append(f"{seconds:.1f} | {mb:.0f} | {seconds / n * 1e6:.0f}")
                    print(f"{n} {name}: {cells[name][-1]}", file=sys.stderr, flush=True)
                shutil.rmtree(out)
    print("| command | " + " | ".join(f"{n}, s | MB | us" for n in options.blocks) + " |")
    print("|---" * (1 + 3 * len(options.blocks)) + "|")
    for name, each in cells.items():
        print(f"| {name} | " + " | ".join(each) + " |")


if __name__ == "__main__":
    main()
