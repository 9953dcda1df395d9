"""N5 beside Zarr from a server that is 20 ms away, and tensorstore beside both.

A small S3 server of its own process answers each GET after some time. The same array is there as
N5 and, key by key, as Zarr v3 with the same codecs; each is read through fsspec and through
obstore, whole and in boxes, in turn; every result is compared with the source. Beside them stands
what obstore and tensorstore need for the bytes of the blocks alone, without decoding them.

``uv run --group bench python -m benchmarks.remote [--latency MS ...] [--rounds N] [--edge N]``
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
from benchmarks.__main__ import Case, Reader, boxes, measure, read_all, volume, writers
from benchmarks.presentation import copy_keys
from benchmarks.s3_server import s3_server
from n5zarr import N5Store
from n5zarr.arrays.box import Box

if TYPE_CHECKING:
    from n5zarr.storage.place import Backend

COMPRESSIONS = ("raw", "gzip", "zstd")
EDGE_OF_BLOCK = 64


def readers(options: dict[Backend, dict[str, Any]]) -> dict[str, Any]:
    fsspec, objects = options["fsspec"], options["obstore"]
    url = fsspec["endpoint_url"]
    stores = {
        "n5zarr": N5Store("s3://lab/c.n5", codecs="n5", storage_options=fsspec),  # through obstore
        "n5zarr, fsspec": N5Store("s3://lab/c.n5", storage_options=fsspec, backend="fsspec"),
        "Zarr v3, fsspec": FsspecStore.from_url(
            "s3://lab/c.zarr", storage_options=fsspec, read_only=True
        ),
        "Zarr v3, obstore": ObjectStore(S3Store("lab", prefix="c.zarr", **objects), read_only=True),
    }

    def read(store: Any) -> Reader:
        open_array = n5zarr.open_array if isinstance(store, N5Store) else zarr.open_array
        array: Any = open_array(store, path="d", mode="r")
        return lambda box: np.asarray(array[box])

    def tensorstore() -> Reader:
        kvstore = {
            "driver": "s3", "bucket": "lab", "path": "c.n5/d/", "endpoint": url,
            "aws_region": "us-east-1", "aws_credentials": {"type": "anonymous"},
        }  # fmt: skip
        opened = ts.open({"driver": "n5", "kvstore": kvstore}).result()
        return lambda box: np.asarray(opened[box[::-1]].read(order="F").result().T)

    return {name: read(store) for name, store in stores.items()} | {"tensorstore": tensorstore()}


def fetchers(objects: dict[str, Any], edge: int) -> dict[str, Reader]:
    """Return functions that only fetch the stored bytes of the blocks of a box."""
    store = S3Store("lab", prefix="c.n5/d", **objects)
    kvstore: Any = ts.KvStore.open(
        {
            "driver": "s3", "bucket": "lab", "path": "c.n5/d/", "endpoint": objects["endpoint"],
            "aws_region": "us-east-1", "aws_credentials": {"type": "anonymous"},
        }
    ).result()  # fmt: skip
    shape = (EDGE_OF_BLOCK,) * 3
    pool = ThreadPoolExecutor(64)

    def keys(box: tuple[slice, ...]) -> list[str]:
        places = Box.of(box, (edge,) * 3)
        assert places is not None
        return ["/".join(map(str, place[::-1])) for place in product(*places.places(shape))]

    def obstore_alone(box: tuple[slice, ...]) -> Any:
        return list(pool.map(lambda key: obstore.get(store, key).bytes(), keys(box)))

    def tensorstore_alone(box: tuple[slice, ...]) -> Any:
        found = [future.result() for future in [kvstore.read(key) for key in keys(box)]]
        assert all(each.state == "value" for each in found)
        return found

    return {"obstore, bytes": obstore_alone, "tensorstore, bytes": tensorstore_alone}


def compare(folder: Path, latency: float, edge: int, rounds: int) -> None:
    """Print the speed of each tool, with a server of this latency in milliseconds."""
    wanted: dict[str, list[tuple[slice, ...]]] = {
        "whole": [(slice(None),) * 3],
        "boxes": boxes(edge),
    }
    source = volume("uint8", edge)
    with s3_server(folder, latency) as options:
        for compression in COMPRESSIONS:
            container = folder / "lab" / "c.n5"
            for name in (container, container.with_suffix(".zarr")):
                shutil.rmtree(name, ignore_errors=True)
            writers(Case("uint8", EDGE_OF_BLOCK, compression), source)["n5zarr"](container)()
            asyncio.run(copy_keys(N5Store(container), container.with_suffix(".zarr")))
            tools = readers(options)
            for task, selections in wanted.items():
                for tool, read in tools.items():
                    for box in selections:
                        assert np.array_equal(read(box), source[box]), (tool, task)
                all_tools = tools | fetchers(options["obstore"], edge)
                tasks = {t: partial(read_all, read, selections) for t, read in all_tools.items()}
                seconds = measure(tasks, rounds)
                n_bytes = sum(source[box].nbytes for box in selections)
                speed = [f"{n_bytes / s / 1e6:.3g}" for s in seconds.values()]
                cells = " | ".join([f"{latency:g}", compression, task, *speed])
                print(f"| {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote")
    parser.add_argument("--latency", type=float, nargs="+", default=[1, 20, 100], help="ms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edge", type=int, default=384)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "lab").mkdir()
        tools = (
            "n5zarr", "n5zarr, fsspec", "Zarr v3, fsspec", "Zarr v3, obstore",
            "tensorstore", "obstore, bytes", "tensorstore, bytes",
        )  # fmt: skip
        columns = ["latency, ms", "compression", "read", *(f"{tool}, MB/s" for tool in tools)]
        print(f"| {' | '.join(columns)} |")
        print(f"|{'---|' * len(columns)}")
        for latency in options.latency:
            compare(Path(folder), latency, options.edge, options.rounds)


if __name__ == "__main__":
    main()
