"""Time the calls of programs for zarr 2 in both: over ``n5zarr.compat.zarr2``, and in zarr 2.

Run ``python -m benchmarks.old_programs PYTHON``, where PYTHON is an interpreter with zarr 2.
Small calls are also compared with those of n5zarr's own array.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numcodecs
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE, CHUNK, SMALL = 256, 64, 16
COMPRESSORS: dict[str, dict[str, Any]] = {
    "blosc": {},
    "gzip": {"compressor": numcodecs.GZip(1)},  # type: ignore[attr-defined, no-untyped-call]
    "raw": {"compressor": None},
}


def measure(module: str, folder: Path) -> dict[str, float]:
    """Return the seconds of each call, with the names of a module."""
    zarr: Any = import_module(module)
    z = np.linspace(0, 9, SIZE)
    values = (1000 * np.sin(z)[:, None, None] * np.cos(z)[:, None] + 300 * z + 3000).astype("u2")
    root = zarr.open(str(folder / f"{module}.n5"), "w")
    seconds: dict[str, float] = {}
    for name, options in COMPRESSORS.items():
        large = root.create_dataset(f"{name}/large", data=values, chunks=(CHUNK,) * 3, **options)
        small = root.create_dataset(
            f"{name}/small", data=values[:32, :64, :64], chunks=(SMALL,) * 3, **options
        )
        calls = calls_of(zarr, root, name, large, small, values)
        if module != "zarr":
            own = import_module("n5zarr").open_array(root.store, path=small.path)
            calls |= {
                name.replace(": ", ": own "): call
                for name, call in calls_of(zarr, root, name, own, own, values).items()
                if "small" in name
            }
        seconds |= {each: fastest(call) for each, call in calls.items()}
    return seconds


def calls_of(
    zarr: Any, root: Any, name: str, large: Any, small: Any, values: np.ndarray
) -> dict[str, Callable[[], object]]:
    """Return the calls by their names."""

    def write_volume() -> None:
        large[...] = values

    def write_chunk() -> None:
        large[64:128, 64:128, 64:128] = values[:64, :64, :64]

    return {
        f"{name}: read volume": lambda: large[...],
        f"{name}: read box": lambda: large[30:200, 50:180, 70:130],
        f"{name}: read chunk": lambda: large[64:128, 64:128, 64:128],
        f"{name}: write volume": write_volume,
        f"{name}: write chunk": write_chunk,
        f"{name}: small chunk": lambda: small[16:32, 16:32, 16:32],
        f"{name}: small box": lambda: small[3:9, 5:50, 7:30],
        f"{name}: open": lambda: zarr.open(root.store.path, "r")[small.path],
    }


def fastest(call: Callable[[], object]) -> float:
    """Return the seconds of the fastest of many calls."""
    call()
    best, until = 1e9, perf_counter() + 0.7
    while perf_counter() < until:
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best


def main() -> None:
    """Print a table, or, for the other interpreter, JSON."""
    if sys.argv[1] == "--json":
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(sys.argv[2], Path(folder))))
        return
    programs = [(sys.argv[1], "zarr"), (sys.executable, "n5zarr.compat.zarr2")]
    runs: list[list[dict[str, float]]] = [[], []]
    for _ in range(3):
        for (python, module), found in zip(programs, runs, strict=True):
            command = [python, "-W", "ignore", __file__, "--json", module]
            found.append(json.loads(subprocess.check_output(command)))  # noqa: S603 - of this file
    old, new = ({name: min(run[name] for run in each) for name in each[0]} for each in runs)
    print("call | zarr 2 | compat | speed beside zarr 2 | time beside n5zarr's own")
    print("---|---|---|---|---")
    for name, seconds in old.items():
        own = new.get(name.replace(": ", ": own "))
        print(
            f"{name} | {seconds * 1e6:.0f} us | {new[name] * 1e6:.0f} us | "
            f"{seconds / new[name]:.2f} | {f'{new[name] / own:.2f}' if own else ''}"
        )


if __name__ == "__main__":
    main()
