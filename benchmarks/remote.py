"""N5 beside Zarr from a server that is 20 ms away, and tensorstore beside both.

A small S3 server of its own process answers each GET after some time. The same array is there as
N5 and, key by key, as Zarr v3 with the same codecs; each is read through fsspec and through
obstore, whole and in boxes, in turn; every result is compared with the source.

``uv run --group bench python -m benchmarks.remote [--latency MS ...] [--rounds N] [--edge N]``
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import tensorstore as ts
import zarr
from obstore.store import S3Store
from zarr.storage import FsspecStore, LocalStore, ObjectStore

from benchmarks.__main__ import Case, Reader, boxes, measure, read_all, volume, writers
from n5zarr import N5Store

COMPRESSIONS = ("raw", "gzip", "zstd")


def serve(directory: str, latency: float, port: Any) -> None:
    """Answer GET and HEAD for files below a directory, as S3 does."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            method, path, _ = line.decode().split()
            while (await reader.readline()).strip():
                pass
            await asyncio.sleep(latency)
            file = Path(directory, unquote(path.partition("?")[0]).lstrip("/"))
            data = file.read_bytes() if file.is_file() else b""
            status = "200 OK" if file.is_file() else "404 Not Found"
            head = f'HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\nETag: "1"\r\n'
            head += "Last-Modified: Sat, 21 Nov 2026 00:00:00 GMT\r\n\r\n"
            writer.write(head.encode() + (b"" if method == "HEAD" else data))
            await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def readers(url: str) -> dict[str, Any]:
    fsspec = {"anon": True, "endpoint_url": url}
    objects: dict[str, Any] = {
        "endpoint": url,
        "skip_signature": True,
        "region": "us-east-1",
        "client_options": {"allow_http": True},
    }
    stores = {
        "n5zarr, fsspec": N5Store("s3://lab/c.n5", storage_options=fsspec),
        "n5zarr, obstore": N5Store("s3://lab/c.n5", storage_options=objects, backend="obstore"),
        "Zarr v3, fsspec": FsspecStore.from_url(
            "s3://lab/c.zarr", storage_options=fsspec, read_only=True
        ),
        "Zarr v3, obstore": ObjectStore(S3Store("lab", prefix="c.zarr", **objects), read_only=True),
    }

    def read(store: Any) -> Reader:
        array: Any = zarr.open_array(store, path="d", mode="r", zarr_format=3)
        return lambda box: np.asarray(array[box])

    def tensorstore() -> Reader:
        kvstore = {
            "driver": "s3", "bucket": "lab", "path": "c.n5/d/", "endpoint": url,
            "aws_region": "us-east-1", "aws_credentials": {"type": "anonymous"},
        }  # fmt: skip
        opened = ts.open({"driver": "n5", "kvstore": kvstore}).result()
        return lambda box: np.asarray(opened[box[::-1]].read(order="F").result().T)

    return {name: read(store) for name, store in stores.items()} | {"tensorstore": tensorstore()}


def copy_keys(source: Path, to: Path) -> None:
    """Make a Zarr hierarchy of the keys that the container is shown with."""
    store = N5Store(source)
    plain = LocalStore(to)

    async def copy() -> None:
        async for key in store.list():
            value = await store.get(key, zarr.buffer.cpu.buffer_prototype)
            if value is not None:
                await plain.set(key, value)

    asyncio.run(copy())


def compare(folder: Path, latency: float, edge: int, rounds: int) -> None:
    """Print the speed of each tool, with a server of this latency in milliseconds."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    arguments = (str(folder), latency / 1000, theirs)
    server = context.Process(target=serve, args=arguments, daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    wanted: dict[str, list[tuple[slice, ...]]] = {
        "whole": [(slice(None),) * 3],
        "boxes": boxes(edge),
    }
    try:
        for compression in COMPRESSIONS:
            source = volume("uint8", edge)
            container = folder / "lab" / "c.n5"
            for name in (container, container.with_suffix(".zarr")):
                shutil.rmtree(name, ignore_errors=True)
            writers(Case("uint8", 64, compression), source)["n5zarr"](container)()
            copy_keys(container, container.with_suffix(".zarr"))
            tools = readers(url)
            for task, selections in wanted.items():
                for tool, read in tools.items():
                    for box in selections:
                        assert np.array_equal(read(box), source[box]), (tool, task)
                tasks = {t: partial(read_all, read, selections) for t, read in tools.items()}
                seconds = measure(tasks, rounds)
                n_bytes = sum(source[box].nbytes for box in selections)
                speed = [f"{n_bytes / s / 1e6:.0f}" for s in seconds.values()]
                cells = " | ".join([f"{latency:g}", compression, task, *speed])
                print(f"| {cells} |", flush=True)
    finally:
        server.terminate()
        server.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote")
    parser.add_argument("--latency", type=float, nargs="+", default=[1, 20, 100], help="ms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edge", type=int, default=384)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "lab").mkdir()
        tools = (
            "n5zarr, fsspec", "n5zarr, obstore", "Zarr v3, fsspec", "Zarr v3, obstore",
            "tensorstore",
        )  # fmt: skip
        columns = ["latency, ms", "compression", "read", *(f"{tool}, MB/s" for tool in tools)]
        print(f"| {' | '.join(columns)} |")
        print(f"|{'---|' * len(columns)}")
        for latency in options.latency:
            compare(Path(folder), latency, options.edge, options.rounds)


if __name__ == "__main__":
    main()
