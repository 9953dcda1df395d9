"""Opening datasets of ever longer axes with ``lazy_coords=True``, and cropping a box from them.

Time is the median of nine; memory is the peak of what Python allocates meanwhile.

``uv run python -m benchmarks.lazy_coords``
"""

from __future__ import annotations

import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

import xarray as xr

import n5zarr

ROUNDS = 9


def work(path: Path, extent: int, *, lazy: bool) -> None:
    found = xr.open_dataset(path, engine="n5", lazy_coords=lazy)
    middle = 4.0 * (extent // 2)
    box = (middle, middle + 400)
    found.n5.crop(z=box, y=box, x=box).load()


def main() -> None:
    print("| elements an axis | coordinates | ms | peak MB |")
    print("|---|---|---|---|")
    for extent in (10**3, 10**6, 10**9):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "long.n5", "a")
            n5zarr.create_array(
                path, shape=(extent,) * 3, chunks=(64,) * 3, dtype="u1", axes="zyx",
                units=["nm"] * 3, resolution=[4, 4, 4],
            )  # fmt: skip
            for lazy in (True, False) if extent <= 10**6 else (True,):
                times = []
                for _ in range(ROUNDS):
                    start = time.perf_counter()
                    work(path, extent, lazy=lazy)
                    times.append(time.perf_counter() - start)
                tracemalloc.start()
                work(path, extent, lazy=lazy)
                peak = tracemalloc.get_traced_memory()[1] / 1e6
                tracemalloc.stop()
                kind = "lazy" if lazy else "ordinary"
                ms = 1000 * statistics.median(times)
                print(f"| {extent:.0e} | {kind} | {ms:.1f} | {peak:.2f} |".replace("e+0", "e"))


if __name__ == "__main__":
    main()
