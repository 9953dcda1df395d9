"""Appending frames along time: n5zarr, tensorstore, and zarr over N5 and over Zarr v3.

Each tool enlarges an array of (time, y, x) by a frame and writes it, frame after frame, in blocks
of one frame each, and in blocks of several, of which each is then written many times. z5py cannot
enlarge a dataset. Tools take turns; what is written is compared with the source by tensorstore.

``TMPDIR=/dev/shm uv run --group bench python -m benchmarks.appending [--rounds N] [--frames N]``
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorstore as ts
import zarr

import n5zarr
from benchmarks.__main__ import COMPRESSIONS, ZARR_CODECS, ZARR_PIPELINES, shuffled, timed
from n5zarr import N5Store

if TYPE_CHECKING:
    from collections.abc import Callable

FRAME = (131, 127)
BLOCKS = {"a frame": (1, 64, 64), "8 frames": (8, 64, 64)}


def of_n5zarr(path: Path, blocks: tuple[int, ...], name: str) -> Callable[[np.ndarray], object]:
    array = n5zarr.create_array(
        path, path="d", shape=(0, *FRAME), chunks=blocks, dtype="u2", compression=COMPRESSIONS[name]
    )
    return lambda frame: array.append(frame[None])


def of_zarr(store: Any, blocks: tuple[int, ...], name: str) -> Callable[[np.ndarray], object]:
    array: Any = zarr.create_array(
        store, name="d", shape=(0, *FRAME), chunks=blocks, dtype="u2", compressors=ZARR_CODECS[name]
    )
    return lambda frame: array.append(frame[None])


def of_tensorstore(
    path: Path, blocks: tuple[int, ...], name: str
) -> Callable[[np.ndarray], object]:
    metadata = {
        "dimensions": [*FRAME[::-1], 0], "blockSize": blocks[::-1], "dataType": "uint16",
        "compression": COMPRESSIONS[name],
    }  # fmt: skip
    spec = {"driver": "n5", "kvstore": f"file://{path}/d/", "metadata": metadata, "create": True}
    array = ts.open(spec).result()

    def append(frame: np.ndarray) -> None:
        nonlocal array
        n = array.shape[2]
        array = array.resize(exclusive_max=[None, None, n + 1], expand_only=True).result()
        array[:, :, n].write(frame.T).result()

    return append


def of_zarr_v3(path: Path, blocks: tuple[int, ...], name: str) -> Callable[[np.ndarray], object]:
    with zarr.config.set({"codec_pipeline.path": ZARR_PIPELINES["Zarr v3"]}):
        return of_zarr(path, blocks, name)


TOOLS: dict[str, Callable[..., Callable[[np.ndarray], object]]] = {
    "n5zarr": of_n5zarr,
    "n5zarr, plain": lambda path, *others: of_zarr(N5Store(path), *others),
    "tensorstore": of_tensorstore,
    "Zarr v3": of_zarr_v3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=64)
    options = parser.parse_args()
    frames = np.random.default_rng(1).integers(0, 40, (options.frames, *FRAME), "u2")
    print(f"| blocks | compression | {' | '.join(f'{tool}, ms a frame' for tool in TOOLS)} |")
    print("|---" * (2 + len(TOOLS)) + "|")
    for size, blocks in BLOCKS.items():
        for name in COMPRESSIONS:
            seconds: dict[str, list[float]] = {tool: [] for tool in TOOLS}
            for tool in shuffled(list(TOOLS), options.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder, "a")
                    append = TOOLS[tool](path, blocks, name)
                    taken = timed(lambda append=append: [append(frame) for frame in frames], 1)  # type: ignore[misc]
                    seconds[tool].append(taken / len(frames))
                    driver = "zarr3" if tool == "Zarr v3" else "n5"
                    spec = {"driver": driver, "kvstore": f"file://{path}/d/"}
                    found = ts.open(spec).result().read().result()
                    assert np.array_equal(found if driver == "zarr3" else found.T, frames), tool
                    shutil.rmtree(path)
            cells = [f"{1e3 * statistics.median(each):.2f}" for each in seconds.values()]
            print(f"| {size} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
