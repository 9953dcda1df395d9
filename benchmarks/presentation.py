"""Reading N5 through the default presentation, against reading the same chunks as plain Zarr v3.

For each dtype and compression an image volume is written as N5, and every key of its ``N5Store`` is
copied into a plain directory: the same array with the same codecs and the same compressed bytes as
Zarr. Both are read whole with zarr, in turn, many times: with n5zarr's pipeline, which importing
n5zarr makes zarr's default, and with zarr's own two. Printed is the median of the ratios of
neighbouring reads, which is steadier on a busy machine than the ratio of two times.

``uv run python -m benchmarks.presentation [--rounds N] [--edge N]``
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from zarr.buffer import cpu

from n5zarr import N5Store, encode_block

if TYPE_CHECKING:
    from zarr.abc.store import Store

BLOCK = 64
COMPRESSIONS: dict[str, dict[str, Any]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip"},
    "zstd": {"type": "zstd"},
    "blosc": {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1},
}
PIPELINES = {
    "n5zarr": "n5zarr.fast.pipeline.N5CodecPipeline",
    "default": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
}


def volume(edge: int, dtype: str) -> np.ndarray:
    """Make something like an electron micrograph: smooth structures under noise."""
    rng = np.random.default_rng(5)
    z, y, x = np.ogrid[:edge, :edge, :edge]
    smooth = 120 + 60 * np.sin(x / 17) * np.sin(y / 13) * np.sin(z / 11)
    noisy = smooth + rng.normal(0, 6, smooth.shape)
    return np.clip(noisy * (1 if dtype == "uint8" else 100), 0, np.iinfo(dtype).max).astype(dtype)


def write_n5(path: Path, array: np.ndarray, compression: dict[str, Any]) -> None:
    path.mkdir(parents=True)
    zarr_dtype, dimensions = array.dtype.name, list(array.shape[::-1])
    document = {
        "dimensions": dimensions,
        "blockSize": [BLOCK] * 3,
        "dataType": zarr_dtype,
        "compression": compression,
    }
    (path / "attributes.json").write_text(repr(document).replace("'", '"'))
    for z, y, x in np.ndindex(*(-(-n // BLOCK) for n in array.shape)):
        box = tuple(slice(i * BLOCK, (i + 1) * BLOCK) for i in (z, y, x))
        file = path / f"{x}/{y}/{z}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encode_block(array[box], compression=compression))


async def copy_keys(store: N5Store, target: Path) -> None:
    async for key in store.list():
        value = await store.get(key, cpu.buffer_prototype)
        (target / key).parent.mkdir(parents=True, exist_ok=True)
        (target / key).write_bytes(b"" if value is None else value.to_bytes())


def seconds(store: Store | str, expected: np.ndarray | None = None) -> float:
    array = zarr.open_array(store, mode="r")
    start = time.perf_counter()
    values = array[...]
    elapsed = time.perf_counter() - start
    if expected is not None:
        np.testing.assert_array_equal(values, expected)
    return elapsed


def ratio(n5: Path, plain: Path, rounds: int) -> tuple[float, float]:
    """Give the median ratio of neighbouring reads, and the median seconds of N5."""
    ratios, times = [], []
    for i in range(rounds):
        # who goes first changes, so that neither gains from what the other left behind
        if i % 2:
            ours, theirs = seconds(N5Store(n5)), seconds(str(plain))
        else:
            theirs, ours = seconds(str(plain)), seconds(N5Store(n5))
        ratios.append(ours / theirs)
        times.append(ours)
    return statistics.median(ratios), statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument(
        "--edge", type=int, default=256, help="256: full blocks; 250: truncated ones"
    )
    options = parser.parse_args()
    print(f"{options.edge}^3 voxels in {BLOCK}^3 blocks, median of {options.rounds} rounds")
    print(f"{'dtype':8}{'compression':13}{'pipeline':10}{'N5 / Zarr':>10}{'MB/s':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("uint8", "uint16"):
            array = volume(options.edge, dtype)
            for name, compression in COMPRESSIONS.items():
                n5 = Path(folder, f"{dtype}-{name}.n5")
                plain = n5.with_suffix(".zarr")
                write_n5(n5, array, compression)
                asyncio.run(copy_keys(N5Store(n5), plain))
                for pipeline, path in PIPELINES.items():
                    with zarr.config.set({"codec_pipeline.path": path}):
                        seconds(N5Store(n5), array)
                        seconds(str(plain), array)
                        median, elapsed = ratio(n5, plain, options.rounds)
                    speed = array.nbytes / elapsed / 1e6
                    print(f"{dtype:8}{name:13}{pipeline:10}{median:10.3f}{speed:8.0f}")


if __name__ == "__main__":
    main()
