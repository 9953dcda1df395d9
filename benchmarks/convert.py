"""``n5zarr.convert`` beside tensorstore and a dask pipeline written by hand.

Each row is measured in turn in one process, interleaved, and the median of the rounds counts. The
written arrays are compared with the source once.

``uv run --group bench python -m benchmarks.convert [--rounds N] [--edge N] [--blocks] [--s3]``
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import tensorstore as ts
import zarr
from zarr.codecs import BytesCodec
from zarr.storage import FsspecStore

import n5zarr
from benchmarks.s3_server import BUCKET, s3_server

if TYPE_CHECKING:
    from collections.abc import Callable

COMPRESSIONS: dict[str, dict[str, Any]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip", "level": 6},
    "zstd": {"type": "zstd", "level": 3},
    "blosc": {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1},
}
CODECS: dict[str, list[dict[str, Any]]] = {
    "raw": [],
    "gzip": [{"name": "gzip", "configuration": {"level": 6}}],
    "zstd": [{"name": "zstd", "configuration": {"level": 3}}],
    "blosc": [
        {
            "name": "blosc",
            "configuration": {
                "cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0,
            },
        }
    ],
}  # fmt: skip
LAYOUTS: dict[str, dict[str, Any]] = {  # of blocks of 64^3
    "same chunks": {},
    "shards of 128^3": {"shards": 128},
    "chunks of 32 x 128 x 128": {"chunks": (32, 128, 128)},
    "chunks of 32^3 in shards of 128^3": {"chunks": 32, "shards": 128},
}
BLOCK = 64


def image(edge: int) -> np.ndarray:
    """A smooth image with noise, uint16, of edge x edge x edge."""
    z, y, x = np.ogrid[:edge, :edge, :edge]
    smooth = 1000 + 200 * np.sin(z / 9) + 300 * np.cos(y / 17) + 100 * np.sin(x / 23)
    noisy: np.ndarray = smooth.astype("u2") + np.random.default_rng(0).integers(
        0, 32, (edge,) * 3, "u2"
    )
    return noisy


def edges(size: Any) -> list[int]:
    return [size] * 3 if isinstance(size, int) else list(size)


def through_tensorstore(source: Path, out: Path, name: str, layout: dict[str, Any]) -> None:
    """Decode and encode through tensorstore, in Fortran order, its fastest."""
    chunks = edges(layout.get("chunks", BLOCK))
    codecs = [
        {"name": "transpose", "configuration": {"order": [2, 1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
        *CODECS[name],
    ]
    grid = chunks
    if "shards" in layout:
        grid = edges(layout["shards"])
        inner = {"chunk_shape": chunks[::-1], "codecs": codecs}
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
    kvstore = {"driver": "file", "path": f"{source}/"}
    read = ts.open({"driver": "n5", "kvstore": kvstore}).result()
    metadata = {
        "shape": list(read.shape),
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": grid[::-1]}},
        "codecs": codecs,
    }
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{out}/"}}
    written = ts.open({**spec, "metadata": metadata}, create=True).result()
    written.write(read).result()


def through_dask(source: Path, out: Path, name: str, layout: dict[str, Any]) -> None:
    """What a user writes by hand: dask over zarr arrays."""
    array = n5zarr.open_array(source)
    chunks = tuple(edges(layout.get("chunks", BLOCK)))
    shards = tuple(edges(layout["shards"])) if "shards" in layout else None
    target = zarr.create_array(
        out, shape=array.shape, dtype=array.dtype, chunks=chunks, shards=shards,
        serializer=BytesCodec(endian="big"), compressors=CODECS[name],
    )  # fmt: skip
    read = da.from_array(array, chunks=shards or (128,) * 3)  # type: ignore[no-untyped-call]
    read.store(target, lock=False)


def through_n5zarr(source: Path, out: Path, name: str, layout: dict[str, Any]) -> None:
    n5zarr.convert(source, out, **layout)


WAYS: dict[str, Callable[[Path, Path, str, dict[str, Any]], None]] = {
    "n5zarr": through_n5zarr,
    "tensorstore": through_tensorstore,
    "dask": through_dask,
}


def compare(folder: Path, edge: int, rounds: int, names: list[str]) -> None:
    """Print seconds of each way, and how many times as long as n5zarr the others take."""
    values = image(edge)
    print(f"uint16, {edge}^3, blocks of {BLOCK}^3; seconds, and times n5zarr's")
    for name in names:
        compression = COMPRESSIONS[name]
        source = folder / "in.n5"
        shutil.rmtree(source, ignore_errors=True)
        n5zarr.create_array(
            source, data=values, chunks=(BLOCK,) * 3, compression=compression, path="v"
        )
        for label, layout in LAYOUTS.items():
            times: dict[str, list[float]] = {way: [] for way in WAYS}
            for turn in range(rounds):
                for way, run in WAYS.items():
                    out = folder / "out.zarr"
                    shutil.rmtree(out, ignore_errors=True)
                    began = time.perf_counter()
                    run(source / "v", out, name, layout)
                    times[way].append(time.perf_counter() - began)
                    if not turn:
                        read: Any = zarr.open_array(out, mode="r")[...]
                        assert np.array_equal(read.T if way == "tensorstore" else read, values)
            medians = {way: statistics.median(each) for way, each in times.items()}
            ours = medians["n5zarr"]
            ratios = "  ".join(f"{way} {m:.3f} ({m / ours:.2f})" for way, m in medians.items())
            print(f"{name:5}  {label:34}  {ratios}", flush=True)


def count_blocks(folder: Path) -> None:
    """Print how the time grows with the number of blocks."""
    print("blocks of 8^3, uint8, raw: microseconds a block")
    for n_blocks in (100, 1000, 10_000, 100_000):
        edge = round(n_blocks ** (1 / 3)) + 1
        shape = (edge * 8, edge * 8, -(-n_blocks // edge**2) * 8)
        source = folder / "in.n5"
        shutil.rmtree(source, ignore_errors=True)
        n5zarr.create_array(
            source, path="v", data=np.ones(shape, "u1"), chunks=(8,) * 3, compression=None
        )
        n_real = int(np.prod([n // 8 for n in shape]))
        for label, layout in (("same chunks", {}), ("shards of 64^3", {"shards": 64})):
            out = folder / "out.zarr"
            shutil.rmtree(out, ignore_errors=True)
            began = time.perf_counter()
            n5zarr.convert(source / "v", out, **layout)  # type: ignore[arg-type]
            took = time.perf_counter() - began
            print(f"{n_real:7} blocks  {label:14}  {took / n_real * 1e6:7.1f}", flush=True)


def from_s3(folder: Path, n_datasets: int, latency: float) -> None:
    """Print the time of many small datasets from S3 to sharded Zarr, beside a loop by hand."""
    root = folder / BUCKET / "in.n5"
    values = np.arange(6 * 7 * 8, dtype="u2").reshape(6, 7, 8)
    n5zarr.create_array(root, path="g/d0", data=values, chunks=(4, 4, 4))
    for k in range(1, n_datasets):
        shutil.copytree(root / "g/d0", root / f"g/d{k}")
    with s3_server(folder, latency) as options:
        url, storage_options = f"s3://{BUCKET}/in.n5", options["fsspec"]
        began = time.perf_counter()
        n5zarr.convert(url, folder / "a.zarr", shards=(8, 8, 8), storage_options=storage_options)
        ours = time.perf_counter() - began
        print(f"{n_datasets} datasets, {latency} ms away: n5zarr convert {ours:.1f} s", flush=True)
        began = time.perf_counter()
        store = n5zarr.N5Store(url, storage_options=storage_options, read_only=True)
        n_by_hand = min(n_datasets, 500)
        group = zarr.open_group(store, path="g", mode="r")
        target = zarr.create_group(folder / "b.zarr")
        for k in range(n_by_hand):
            array: Any = group[f"d{k}"]
            made = target.create_array(
                f"d{k}", shape=array.shape, dtype=array.dtype, chunks=array.chunks,
                shards=(8, 8, 8),
            )  # fmt: skip
            made[...] = array[...]
        theirs = (time.perf_counter() - began) / n_by_hand * n_datasets
        print(f"a loop by hand, from {n_by_hand} of them: {theirs:.1f} s", flush=True)
    assert isinstance(store.store, FsspecStore)


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--edge", type=int, default=384)
    parser.add_argument("--compressions", nargs="+", default=list(COMPRESSIONS))
    parser.add_argument("--blocks", action="store_true", help="only the cost of a block")
    parser.add_argument("--s3", action="store_true", help="only many datasets on S3")
    parser.add_argument("--datasets", type=int, default=10_000)
    given = parser.parse_args()
    shared = Path("/dev/shm")  # noqa: S108 - memory, so that disks do not count
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        folder = Path(name)
        if given.blocks:
            count_blocks(folder)
        elif given.s3:
            from_s3(folder, given.datasets, 20)
        else:
            compare(folder, given.edge, given.rounds, given.compressions)


if __name__ == "__main__":
    main()
