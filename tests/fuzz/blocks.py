"""Read mutated blocks in every way, and check the results."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.buffer import cpu
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Error, N5Store
from n5zarr.arrays.open_dataset import dataset_of_array, fill_value_of
from n5zarr.codecs.buffers import Scratch
from n5zarr.fast import kernel
from n5zarr.format.order import N5Tuple
from tests.fuzz.judge import OF_ZARR, Case, judged, said
from tests.fuzz.mutate import mutated
from tests.fuzz.oracle import Expected, expected_block, expected_chunk, extent_of
from tests.fuzz.seeds import Seed, make_seeds

__all__ = ["WAYS", "Blocks"]

type Box = tuple[slice, ...]
type Position = tuple[int, ...]


# ---------------------------------------------------------------------- ways to read


@cache
def by_n5zarr(seed: Seed, axis_order: Any = "C") -> Any:
    return n5zarr.open_array(seed.root, path=seed.path, axis_order=axis_order)


@cache
def by_zarr(seed: Seed, zarr_format: Any = 3, codecs: Any = "zarr", pipeline: Any = None) -> Any:
    with zarr.config.set({"codec_pipeline.path": pipeline} if pipeline else {}):
        store = N5Store(seed.root, zarr_format=zarr_format, codecs=codecs)
        return zarr.open_array(store, path=seed.path, mode="r")


by_pipeline_of_zarr = partial(by_zarr, pipeline="zarr.core.codec_pipeline.BatchedCodecPipeline")


def by_engine(seed: Seed) -> Any:
    import xarray as xr  # noqa: PLC0415 - takes long

    dataset = xr.open_dataset(seed.root, engine="n5", group=seed.path, chunks=None, cache=False)
    (name,) = dataset.data_vars
    return dataset[name].variable


@cache
def memory() -> MemoryStore:
    return MemoryStore()


@contextmanager
def python_only() -> Iterator[None]:
    """Disable the compiled kernel, so that the Python path does all."""
    kept, kernel.can_do = kernel.can_do, lambda dataset: False
    try:
        yield
    finally:
        kernel.can_do = kept


def read(opening: Callable[[Seed], Any], seed: Seed, position: Position, box: Box) -> np.ndarray:
    array = opening(seed)
    return np.asarray(array[box[: array.ndim]])  # parts of an element are no axis of the array


def read_by_python(seed: Seed, position: Position, box: Box) -> np.ndarray:
    with python_only():
        return read(by_n5zarr, seed, position, box)


def read_in_other_order(seed: Seed, position: Position, box: Box) -> np.ndarray:
    array = by_n5zarr(seed, "F")
    return np.asarray(array[box[: array.ndim][::-1]]).T


def read_from_memory(seed: Seed, position: Position, box: Box) -> np.ndarray:
    """Read from a store that has no files, whose blocks are read ahead of their decoding."""

    async def put() -> None:
        await memory().clear()
        for file in (seed.root / "attributes.json", seed.directory / "attributes.json"):
            key = str(file.relative_to(seed.root))
            await memory().set(key, cpu.Buffer.from_bytes(file.read_bytes()))
        key = str(seed.file(position).relative_to(seed.root))
        await memory().set(key, cpu.Buffer.from_bytes(seed.file(position).read_bytes()))

    asyncio.run(put())
    array: Any = n5zarr.open_array(memory(), path=seed.path)
    return np.asarray(array[box[: array.ndim]])


def read_from_bytes(seed: Seed, position: Position, box: Box) -> np.ndarray | None:
    """Decode the bytes of a block with the kernel; None if it leaves the block to Python."""
    dataset = dataset_of_array(by_n5zarr(seed))
    if dataset is None or not kernel.can_do(dataset):
        return None
    array = by_n5zarr(seed)
    out = np.empty([each.stop - each.start for each in box], array.dtype)
    start = tuple(each.start for each in box)
    put = kernel.putting(dataset, start, out, fill_value_of(array.async_array.metadata))
    stored = memoryview(seed.file(position).read_bytes())
    return out if put(N5Tuple(position), stored, Scratch()) else None


ARRAYS: dict[str, Callable[[Seed, Position, Box], np.ndarray]] = {
    "n5zarr.open": partial(read, by_n5zarr),
    "n5zarr.open, Python": read_by_python,
    "n5zarr.open, axis_order F": read_in_other_order,
    "zarr.open, v3": partial(read, by_zarr),
    "zarr.open, v2": partial(read, partial(by_zarr, zarr_format=2)),
    "zarr.open, codecs n5": partial(read, partial(by_zarr, codecs="n5")),
    "zarr.open, portable": partial(read, partial(by_zarr, codecs="portable")),
    "xarray": partial(read, by_engine),
    "zarr's pipeline, v3": partial(read, by_pipeline_of_zarr),
    "zarr's pipeline, v2": partial(read, partial(by_pipeline_of_zarr, zarr_format=2)),
    "zarr's pipeline, codecs n5": partial(read, partial(by_pipeline_of_zarr, codecs="n5")),
    "in memory": read_from_memory,
}
ALWAYS = ("n5zarr.open", "n5zarr.open, Python")
WAYS = (*(name for name in ARRAYS if name not in ALWAYS), "part", "read_block", "validate")
"""One of these in rotation, for one block of four; the kernel and the Python path read each."""


# ---------------------------------------------------------------------- judgement


class Blocks:
    """The blocks of all seeds, in containers of this process."""

    def __init__(
        self, directory: Path, make: Callable[[Path], Iterable[Seed]] = make_seeds
    ) -> None:
        self.seeds = [*make(directory)]
        self.others = [block for seed in self.seeds for block in seed.blocks.values()]

    def case(self, seed: str) -> Case:
        """Make the mutation of a seed of random numbers."""
        rng = random.Random(seed)
        dataset = rng.choice(self.seeds)
        position = rng.choice(tuple(dataset.blocks))
        own = tuple(dataset.blocks.values())
        others = own if rng.random() < 0.5 else (rng.choice(self.others),)
        data = mutated(rng, dataset.blocks[position], others)
        return self._case(dataset, position, data, rng)

    def kept(self, name: str, data: bytes) -> Case:
        """Make the case of a kept input; see :meth:`name`."""
        seeds = {str(seed): seed for seed in self.seeds}
        path, _, position = name.partition(", block ")
        place = tuple(int(n) for n in position.strip("(),").split(",") if n.strip())
        return self._case(seeds[path], place, data, random.Random(0))

    def _case(self, seed: Seed, position: Position, data: bytes, rng: random.Random) -> Case:
        """Compute the expected elements in advance, as their time is not the reader's."""
        expected = None
        if seed.decodable and not _is_of_any_mode(seed):
            extent = extent_of(seed.dataset, position)
            expected = expected_chunk(data, seed.dataset, extent, seed.fill)
        shown = None if expected is None else seed.shown(expected)
        return Case(f"{seed}, block {position}", data, (seed, position, rng, shown))

    def run(self, case: Case, number: int) -> list[str]:
        """Read a block in the ways that the number selects; return the problems."""
        seed, position, *_ = case.target
        file = seed.file(position)
        _write(file, case.data)
        try:
            way = WAYS[number // 4 % len(WAYS)] if number % 4 == 0 else ""
            if _is_of_any_mode(seed):
                return _read_block(seed, position, case.data)
            return _read_arrays(case, way)
        finally:
            _write(file, seed.blocks[position])

    def allowed(self, case: Case) -> int:
        """Return the bytes of memory for a read: four blocks, decoded or stored, and 64 MB."""
        seed: Seed = case.target[0]
        size = seed.dataset.nominal_bytes
        found = expected_block(case.data, seed.dataset) if seed.decodable else None
        if found is not None:  # as large as the header says
            size = max(size, found.values.nbytes)
        return 4 * max(size, len(case.data)) + 64 * 10**6


_times = count(10**9)


def _write(file: Path, data: bytes) -> None:
    """Write a file that looks old, as readers wait for one that is being written."""
    file.write_bytes(data)
    time = next(_times)
    os.utime(file, (time, time))


def _place(seed: Seed, position: Position) -> Box:
    """Return the box of a block, C order."""
    extent = extent_of(seed.dataset, position)
    starts = (p * size for p, size in zip(position, seed.dataset.block_size, strict=True))
    return tuple(slice(start, start + n) for start, n in zip(starts, extent, strict=True))[::-1]


def _is_of_any_mode(seed: Seed) -> bool:
    """Return whether the blocks are of other modes than parts of an array."""
    return seed.dataset.data_type == "object" or seed.path.startswith("varlen")


def _read_arrays(case: Case, way: str) -> list[str]:
    seed, position, rng, expected = case.target
    place = _place(seed, position)
    where = "/".join(map(str, position))
    names = (str(seed.root), seed.path, f"block {where}")
    wrong, outcomes = [], {}
    for name in (*ALWAYS, *({way} & ARRAYS.keys())):
        found = said(ARRAYS[name], seed, position, place)
        outcomes[name] = found
        at = names[1:] if name == "in memory" else names
        others = OF_ZARR if name.startswith("zarr's") else ()
        wrong += judged(name, found, at, others)
        if seed.decodable:
            wrong += _compared(name, found, expected)
    wrong += _agree(*(outcomes[name] for name in ALWAYS))
    wrong += _of_bytes(seed, position, place, outcomes[ALWAYS[0]])
    if way == "part":
        sizes = (each.stop - each.start for each in place)
        box = tuple(slice(*sorted(rng.sample(range(n + 1), 2))) for n in sizes)
        wrong += _parts(case, names, box, outcomes[ALWAYS[0]])
    elif way == "read_block":
        wrong += _read_block(seed, position, case.data)
    elif way == "validate":
        wrong += _validated(seed, position, outcomes[ALWAYS[0]])
    return wrong


def _compared(name: str, found: object, expected: Expected | None) -> list[str]:
    """Compare a result with the content of the block."""
    if isinstance(found, np.ndarray):
        if expected is None:
            return [f"{name}: shown, though it cannot be decoded"]
        if not expected.known.all():
            return [f"{name}: shown, though a part cannot be decoded"]
        if not _same(found, expected.values):
            return [f"{name}: other numbers than the block holds"]
    elif isinstance(found, N5Error) and expected and expected.plain and expected.known.all():
        return [f"{name}: refused, though it is as it should be: {found}"]
    return []


def _same(found: np.ndarray, expected: np.ndarray) -> bool:
    if found.shape != expected.shape:
        return False
    if expected.dtype == bool:  # zarr takes the bytes as they are: each but 0 is true
        found, expected = (values.view("u1") != 0 for values in (found, expected))
    if expected.dtype == object:
        return bool((found == expected).all())
    return found.astype(expected.dtype, copy=False).tobytes() == expected.tobytes()


def _agree(first: object, second: object) -> list[str]:
    """Compare the kernel with the Python path."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        same = first.tobytes() == second.tobytes() or (
            first.dtype.kind in "OT" and (first == second).all()
        )
        return [] if same else ["the kernel and Python read different numbers"]
    if type(first) is type(second) and str(first) == str(second):
        return []
    return [f"the kernel and Python differ: {first!r:.300} and {second!r:.300}"]


def _of_bytes(seed: Seed, position: Position, place: Box, whole: object) -> list[str]:
    """Compare what the kernel decodes from bytes with what it reads from the file."""
    found = said(read_from_bytes, seed, position, place)
    if isinstance(found, Exception):
        return [f"the kernel, from bytes: {found!r:.300}"]
    return [] if found is None else _agree(found, whole)


def _parts(case: Case, names: tuple[str, ...], box: Box, whole: object) -> list[str]:
    """Compare a part of a block with the whole; in blosc, damage elsewhere is ignored."""
    seed, position, _, expected = case.target
    place = tuple(
        slice(p.start + b.start, p.start + b.stop)
        for p, b in zip(_place(seed, position), box, strict=True)
    )
    found = said(ARRAYS["n5zarr.open"], seed, position, place)
    wrong = judged("part", found, names)
    if not isinstance(found, np.ndarray) or found.size == 0:
        return wrong
    box = box[: found.ndim]
    if isinstance(whole, np.ndarray):
        return wrong + (
            [] if _same(found, whole[box].astype(found.dtype)) else ["part: not that of the whole"]
        )
    if not seed.decodable:
        return wrong
    if expected is None or not expected.known[box].all():
        return [*wrong, "part: shown, though it cannot be decoded"]
    return wrong + ([] if _same(found, expected.values[box]) else ["part: other numbers"])


def _read_block(seed: Seed, position: Position, data: bytes) -> list[str]:
    """Read a block of any mode, as it is stored."""
    where = "/".join(map(str, position))
    block = said(n5zarr.read_block, seed.root, seed.path, position)
    wrong = judged("read_block", block, (str(seed.root), seed.path, f"block {where}"))
    if not isinstance(block, n5zarr.Block) or not seed.decodable or seed.dataset.labels:
        return wrong
    expected = expected_block(data, seed.dataset)
    found = block.data
    if isinstance(found, bytes):
        found = np.frombuffer(found, "u1")
    if isinstance(found, list):
        found = np.array([*found, None], object)[:-1]
    return wrong + _compared("read_block", found, expected)


def _validated(seed: Seed, position: Position, whole: object) -> list[str]:
    """Check that a block is damaged if readers refuse it, and only then."""
    found = said(partial(n5zarr.validate, deep=True), seed.root)
    if not isinstance(found, n5zarr.Validation):
        return [f"validate: {found!r:.300}"]
    here = [finding for finding in found.findings if finding.block == position]
    if isinstance(whole, N5Error) and not here:
        return [f"validate: nothing, though it is refused: {whole}"]
    if isinstance(whole, np.ndarray) and any(f.kind in ("header", "payload") for f in here):
        return [f"validate: {here[0].message}, though it is read"]
    return []
