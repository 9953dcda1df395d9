"""Blocks over HTTP from n5zarr, and the same files from starlette's static files.

Each server runs in a process of its own, the clients in another; all under the same uvicorn. Each
client asks for one block after the other, on a connection that stays open; status and size of every
answer are checked. The servers take turns, so that what else the machine does hits all.

``uv run --group bench python -m benchmarks.serve [--seconds N] [--clients N] [--rounds N]``
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import random
import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

import n5zarr
from n5zarr.viewing.serve.run import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

EDGES = (32, 64)  # of blocks: 32 KiB and 256 KiB
N_BLOCKS = 5  # along each axis
HEADER = 16  # bytes of a block before its payload
CONTEXT = multiprocessing.get_context("spawn")


class Load(NamedTuple):
    """What the clients of a server saw."""

    n_answers: int
    n_errors: int
    slowest: float  # seconds, of 99 in 100
    seconds: float
    memory: tuple[int, int]  # of the server, bytes, before and after

    @property
    def rate(self) -> float:
        return self.n_answers / self.seconds


def make_container(folder: Path, edge: int) -> list[str]:
    """Write a container of full blocks; return their paths in it."""
    shape, chunks = (N_BLOCKS * edge,) * 3, (edge,) * 3
    array: Any = n5zarr.create_array(
        folder, path="d", shape=shape, chunks=chunks, dtype="u1", compression="raw"
    )
    array[...] = np.random.default_rng(1).integers(0, 256, shape, "u1")
    return ["/".join(map(str, p)) for p in itertools.product(range(N_BLOCKS), repeat=3)]


def serve(kind: str, folder: str, pipe: Connection) -> None:
    """Serve a folder, and say where; runs in a process of its own."""
    static = Starlette(routes=[Mount("/", StaticFiles(directory=folder))])
    with Server(static) if kind == "static" else n5zarr.serve(folder) as server:
        pipe.send(server.port)
        pipe.recv()


@contextmanager
def server(kind: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Run a server; give its port and the number of its process."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=serve, args=(kind, str(folder), theirs), daemon=True)
    process.start()
    try:
        yield ours.recv(), process.pid or 0
    finally:
        ours.send("end")
        process.join()


def memory_of(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 where the system does not tell."""
    file = Path(f"/proc/{pid}/statm")
    return int(file.read_text(encoding="ascii").split()[1]) * 4096 if file.exists() else 0


async def client(port: int, targets: list[bytes], size: int, until: float) -> list[float]:
    """Ask for blocks until it is time; return how long each took, negative for a wrong answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = []
    while (start := time.perf_counter()) < until:
        request = b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % random.choice(targets)
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        n_bytes = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(n_bytes)
        is_right = head.startswith(b"http/1.1 200") and len(body) == size
        found.append((time.perf_counter() - start) * (1 if is_right else -1))
    writer.close()
    return found


async def load(
    port: int, pid: int, targets: list[bytes], size: int, options: argparse.Namespace
) -> Load:
    """Let all clients read at once."""

    async def all_clients(seconds: float) -> list[float | BaseException]:
        until = time.perf_counter() + seconds
        clients = [client(port, targets, size, until) for _ in range(options.clients)]
        done = await asyncio.gather(*clients, return_exceptions=True)
        return [t for each in done for t in (each if isinstance(each, list) else [each])]

    await all_clients(1)  # memory that is taken once
    before, start = memory_of(pid), time.perf_counter()
    found = await all_clients(options.seconds)
    seconds = time.perf_counter() - start
    right = sorted(t for t in found if isinstance(t, float) and t > 0)
    slowest = right[int(0.99 * len(right))]
    return Load(len(right), len(found) - len(right), slowest, seconds, (before, memory_of(pid)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    print("| block, KiB | what is read | answers/s | MB/s | of static files | 99 % within, ms |"
          " errors | memory, MiB |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for edge in EDGES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "c.n5")
            names = make_container(folder, edge)
            size = edge**3
            kinds = {  # prefix of the paths, and bytes of an answer
                "static": ("/d/", size + HEADER),
                "/n5": ("/n5/d/", size + HEADER),
                "/zarr": ("/zarr/d/c/", size),
            }
            found: dict[str, list[Load]] = {kind: [] for kind in kinds}
            for _ in range(options.rounds):
                for kind, (prefix, n_bytes) in kinds.items():
                    targets = [f"{prefix}{name}".encode() for name in names]
                    with server(kind, folder) as (port, pid):
                        work = load(port, pid, targets, n_bytes, options)
                        found[kind].append(asyncio.run(work))
            rates = {
                kind: statistics.median(one.rate for one in each) for kind, each in found.items()
            }
            for kind, each in found.items():
                cells = (
                    size // 1024,
                    "static files" if kind == "static" else kind,
                    f"{rates[kind]:.0f}",
                    f"{rates[kind] * kinds[kind][1] / 1e6:.0f}",
                    f"{rates[kind] / rates['static']:.2f}",
                    f"{1000 * statistics.median(one.slowest for one in each):.0f}",
                    sum(one.n_errors for one in each),
                    " → ".join(
                        f"{max(m) / 2**20:.0f}" for m in zip(*(o.memory for o in each), strict=True)
                    ),
                )
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
