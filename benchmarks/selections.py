"""Many boxes, steps, points, masks and lists of positions, beside tensorstore and zarr.

One volume of uint8 in blocks of 64^3, as N5 for n5zarr and tensorstore, and as Zarr v3 with the
same compression for zarr. tensorstore has all its reads in flight at once. All read in turn in one
process; each result is compared with the source. A cell is the least time of each of the others, as
a multiple of n5zarr's least time: above 1, n5zarr is faster. The third number for boxes is a loop
over n5zarr's array, the fourth a batch of ``n5zarr.Crops``.

``uv run --group bench python -m benchmarks.selections [--edge N] [--rounds N]``
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import tensorstore as ts
import zarr

import n5zarr
from benchmarks.__main__ import COMPRESSIONS, ZARR_CODECS

N_BOXES, N_POINTS, N_LISTED = 64, 20_000, 20

type Read = Callable[[], Any]


def volume(edge: int) -> np.ndarray:
    """Make labels with noise, which compress as microscopy does."""
    random = np.random.default_rng(1)
    coarse = random.integers(0, 120, (-(-edge // 8),) * 3, "u1")
    fine = np.repeat(np.repeat(np.repeat(coarse, 8, 0), 8, 1), 8, 2)[:edge, :edge, :edge]
    noisy: np.ndarray = fine + random.integers(0, 8, fine.shape, "u1")
    return noisy


def tasks(
    values: np.ndarray, array: Any, store: Any, plain: Any
) -> Iterator[tuple[str, np.ndarray, Read, dict[str, Read]]]:
    """Yield the name of a task, its result, n5zarr's way, and the others'."""
    random, edge = np.random.default_rng(2), values.shape[0]
    for n in (64, 16):
        starts = random.integers(0, edge - n + 1, (N_BOXES, 3))
        boxes = [tuple(slice(a, a + n) for a in start) for start in starts.tolist()]
        axes = n5zarr.geometry(array).names
        crops = n5zarr.Crops({"d": (array, (n,) * 3)}, starts + (n - 1) / 2, axes=axes)
        yield (
            f"{N_BOXES} boxes of {n}³",
            np.stack([values[box] for box in boxes]),
            partial(array.read_boxes, starts, (n,) * 3),
            {
                "tensorstore": partial(at_once, store, boxes),
                "zarr": partial(in_a_loop, plain, boxes),
                "a loop over n5zarr": partial(in_a_loop, array, boxes),
                "n5zarr.Crops": partial(batch_of, crops),
            },
        )
    points = tuple(random.integers(0, edge, N_POINTS) for _ in range(3))
    mask = random.random(values.shape) < N_POINTS / values.size
    listed = np.sort(random.choice(edge, N_LISTED, replace=False))
    steps = (slice(None, None, 7), slice(None, None, 5), slice(None, None, 3))
    for name, how, selection, expected in (
        ("`a[::7, ::5, ::3]`", "", steps, values[steps]),
        (f"`vindex`, {N_POINTS} points", "vindex", points, values[points]),
        (f"a mask of {N_POINTS} points", "vindex", mask, values[mask]),
        (f"`oindex`, {N_LISTED} planes", "oindex", listed, values[listed]),
        (
            f"`oindex`, {N_LISTED} x {N_LISTED} rows", "oindex", (listed, listed),
            values[np.ix_(listed, listed)],
        ),
    ):  # fmt: skip
        one, two, three = (getattr(each, how) if how else each for each in (array, store, plain))
        others = {"tensorstore": partial(result, two, selection)}
        yield (
            name,
            expected,
            partial(getitem, one, selection),
            others | {"zarr": partial(getitem, three, selection)},
        )


def result(store: Any, selection: Any) -> np.ndarray:
    found: np.ndarray = store[selection].read().result()
    return found


def at_once(store: Any, boxes: list[tuple[slice, ...]]) -> np.ndarray:
    reads = [store[box].read() for box in boxes]
    return np.stack([read.result() for read in reads])


def in_a_loop(array: Any, boxes: list[tuple[slice, ...]]) -> np.ndarray:
    return np.stack([array[box] for box in boxes])


def batch_of(crops: n5zarr.Crops) -> Any:
    return [sample["d"] for sample in crops.__getitems__(range(len(crops)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edge", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    values = volume(options.edge)
    cells: dict[str, list[str]] = {}
    for compression in COMPRESSIONS:
        folder = Path(tempfile.mkdtemp())
        try:
            chunks = (64,) * 3
            n5zarr.create_array(
                folder / "a.n5", path="d", data=values, chunks=chunks,
                compression=COMPRESSIONS[compression],
            )  # fmt: skip
            zarr.create_array(
                folder / "a.zarr", data=values, chunks=chunks, compressors=ZARR_CODECS[compression]
            )
            array = n5zarr.open_array(folder / "a.n5", path="d")
            spec = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{folder}/a.n5/d/"}}
            store = ts.open(spec).result().T  # z, y, x
            plain = zarr.open_array(folder / "a.zarr", mode="r")
            for name, expected, ours, others in tasks(values, array, store, plain):
                ways = {"n5zarr": ours, **others}
                least = dict.fromkeys(ways, float("inf"))
                for _ in range(options.rounds):
                    for who, read in ways.items():
                        begin = time.perf_counter()
                        found = read()
                        least[who] = min(least[who], time.perf_counter() - begin)
                        assert np.array_equal(found, expected), (who, name)
                times = [f"{least[who] / least['n5zarr']:.2f}" for who in others]
                cells.setdefault(name, []).append(" / ".join(times))
        finally:
            shutil.rmtree(folder)
    print("| tensorstore / zarr | " + " | ".join(COMPRESSIONS) + " |")
    print("|---|" + "---|" * len(COMPRESSIONS))
    for name, row in cells.items():
        print(f"| {name} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
