"""N5 beside Zarr from a server that is 20 ms away, and tensorstore beside both.

A small S3 server of its own process answers each GET after some time. The same array is there as
N5 and, key by key, as Zarr v3 with the same codecs; each is read through fsspec and through
obstore, whole, in boxes, in planes along each axis and at scattered points, in turn; every result
is compared with the source. Beside them stands what obstore and tensorstore need for the bytes of
the blocks alone, without decoding them.

``uv run --group bench python -m benchmarks.remote [--latency MS ...] [--rounds N] [--edge N]
[--only NAME ...]``
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore
import tensorstore as ts
import zarr
from obstore.store import S3Store
from zarr.storage import FsspecStore, ObjectStore

import n5zarr
from benchmarks.__main__ import (
    Case,
    Reader,
    boxes,
    measure,
    of_tensorstore,
    of_zarr,
    read_all,
    volume,
    writers,
)
from benchmarks.presentation import copy_keys
from benchmarks.s3_server import s3_server
from n5zarr import N5Store
from n5zarr.arrays.box import Box

if TYPE_CHECKING:
    from collections.abc import Callable

    from n5zarr.storage.place import Backend

COMPRESSIONS = ("raw", "gzip", "zstd")
EDGE_OF_BLOCK = 64
TOOLS = (
    "n5zarr", "n5zarr, plain", "n5zarr, plain, fsspec", "Zarr v3", "Zarr v3, obstore", "tensorstore"
)  # fmt: skip


def in_the_bucket(path: str, endpoint: str) -> dict[str, Any]:
    """Return what tensorstore calls a place on the server."""
    return {
        "driver": "s3", "bucket": "lab", "path": path, "endpoint": endpoint,
        "aws_region": "us-east-1", "aws_credentials": {"type": "anonymous"},
    }  # fmt: skip


def readers(options: dict[Backend, dict[str, Any]], *tools: str) -> dict[str, Reader]:
    fsspec, objects = options["fsspec"], options["obstore"]
    n5, v3 = "s3://lab/c.n5", "s3://lab/c.zarr"

    def plain(store: Any) -> Reader:
        return of_zarr(zarr.open_array(store, path="d", mode="r", zarr_format=3))

    def tensorstore(driver: str, path: str) -> Reader:
        kvstore = in_the_bucket(path, fsspec["endpoint_url"])
        return of_tensorstore({"driver": driver, "kvstore": kvstore})

    known: dict[str, Callable[[], Reader]] = {
        # through obstore
        "n5zarr": lambda: of_zarr(n5zarr.open(n5, path="d", storage_options=fsspec)),
        "n5zarr, plain": lambda: plain(N5Store(n5, storage_options=fsspec)),
        "n5zarr, plain, fsspec": lambda: plain(
            N5Store(n5, storage_options=fsspec, backend="fsspec")
        ),
        "Zarr v3": lambda: plain(FsspecStore.from_url(v3, storage_options=fsspec, read_only=True)),
        "Zarr v3, obstore": lambda: plain(
            ObjectStore(S3Store("lab", prefix="c.zarr", **objects), read_only=True)
        ),
        "tensorstore": lambda: tensorstore("n5", "c.n5/d/"),
        "Zarr v3, tensorstore": lambda: tensorstore("zarr3", "c.zarr/d/"),
    }
    return {tool: known[tool]() for tool in tools}


def fetchers(objects: dict[str, Any], edge: int) -> dict[str, Reader]:
    """Return functions that only fetch the stored bytes of the blocks of a box."""
    store = S3Store("lab", prefix="c.n5/d", **objects)
    kvstore: Any = ts.KvStore.open(in_the_bucket("c.n5/d/", objects["endpoint"])).result()
    shape = (EDGE_OF_BLOCK,) * 3
    pool = ThreadPoolExecutor(64)

    def keys(selection: tuple[Any, ...]) -> list[str]:
        if isinstance(selection[0], np.ndarray):
            places = set(zip(*(each // EDGE_OF_BLOCK for each in selection), strict=True))
        else:
            box = Box.of(selection, (edge,) * 3)
            places = set() if box is None else set(product(*box.places(shape)))
        return ["/".join(map(str, place[::-1])) for place in places]

    def obstore_alone(selection: tuple[Any, ...]) -> Any:
        return list(pool.map(lambda key: obstore.get(store, key).bytes(), keys(selection)))

    def tensorstore_alone(selection: tuple[Any, ...]) -> Any:
        found = [future.result() for future in [kvstore.read(key) for key in keys(selection)]]
        assert all(each.state == "value" for each in found)
        return found

    return {"obstore, bytes": obstore_alone, "tensorstore, bytes": tensorstore_alone}


def selections_of(edge: int) -> dict[str, list[tuple[Any, ...]]]:
    """Return what is read: the volume, boxes of 100^3, planes, and 20 points in each of 5 calls."""
    rng, at = np.random.default_rng(3), slice(edge // 3, edge // 3 + 1)
    planes = [tuple(at if i == axis else slice(None) for i in range(3)) for axis in range(3)]
    points = [tuple(rng.integers(0, edge, 20) for _ in range(3)) for _ in range(5)]
    return {
        "whole": [(slice(None),) * 3],
        "boxes": [*boxes(edge)],
        "planes": [*planes],
        "points": [*points],
    }


def compare(folder: Path, latency: float, edge: int, rounds: int, names: list[str]) -> None:
    """Print the speed of each tool, with a server of this latency in milliseconds."""
    wanted = {name: found for name, found in selections_of(edge).items() if name in names}
    source = volume("uint8", edge)
    with s3_server(folder, latency) as options:
        for compression in COMPRESSIONS:
            container = folder / "lab" / "c.n5"
            for name in (container, container.with_suffix(".zarr")):
                shutil.rmtree(name, ignore_errors=True)
            case = Case("uint8", EDGE_OF_BLOCK, compression)
            writers(case, source, "n5zarr")["n5zarr"](container)()
            asyncio.run(copy_keys(N5Store(container), container.with_suffix(".zarr")))
            tools = readers(options, *TOOLS)
            for task, selections in wanted.items():
                for tool, read in tools.items():
                    for selection in selections:
                        assert np.array_equal(read(selection), source[selection]), (tool, task)
                all_tools = tools | fetchers(options["obstore"], edge)
                tasks = {t: partial(read_all, read, selections) for t, read in all_tools.items()}
                seconds = measure(tasks, rounds)
                n_bytes = sum(source[selection].nbytes for selection in selections)
                speed = [f"{n_bytes / s / 1e6:.3g}" for s in seconds.values()]
                cells = " | ".join([f"{latency:g}", compression, task, *speed])
                print(f"| {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote")
    parser.add_argument("--latency", type=float, nargs="+", default=[1, 20, 100], help="ms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edge", type=int, default=384)
    names = list(selections_of(EDGE_OF_BLOCK))
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "lab").mkdir()
        tools = [f"{tool}, MB/s" for tool in (*TOOLS, "obstore, bytes", "tensorstore, bytes")]
        columns = ["latency, ms", "compression", "read", *tools]
        print(f"| {' | '.join(columns)} |")
        print(f"|{'---|' * len(columns)}")
        for latency in options.latency:
            compare(Path(folder), latency, options.edge, options.rounds, options.only)


if __name__ == "__main__":
    main()
