"""Concurrent operations act as if one came after the other, each whole or not at all.

One object is what the documentation promises to change at once: a block, and the document of a
node. ``N5ZARR_STRESS=1`` lets processes make longer histories, for minutes.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache, partial
from itertools import product
from pathlib import Path
from threading import Barrier
from typing import Any, NamedTuple

import numpy as np
import pytest
import zarr
from zarr.errors import ContainsArrayError, ContainsGroupError

import n5zarr
from n5zarr import N5Store
from tests.contract.test_kernel import python_only
from tests.faults.histories import Operation, has_order, timed, unexplained
from tests.processes import CONTEXT
from tests.property import outside

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks of open files")

STRESS = bool(os.environ.get("N5ZARR_STRESS"))
N_WRITERS = 4
N_ROUNDS, N_OF_PROCESSES = (100, 100) if STRESS else (3, 0)  # by threads, and by processes
N_OPERATIONS = 12  # of a writer in a round
PATIENCE = 60  # seconds
FIRST = 7777  # the value of all elements at first, beside Java

SHAPE, CHUNKS = (151, 191), (83, 97)  # large enough to be torn
# each block has four parts
EDGES = ((0, 41, 83, 113, 151), (0, 47, 97, 139, 191))
DURABILITIES: list[Any] = ["atomic", "durable", "overwrite"]
COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"}, {"type": "gzip", "level": 1}, {"type": "xz", "preset": 0}
]  # fmt: skip


class Job(NamedTuple):
    """The work of one of several concurrent writers."""

    root: Path
    number: int
    seed: int
    durability: Any
    way: str
    is_fast: bool  # through the compiled kernel
    beside_java: bool = False


# ------------------------------------------------------------------ the search itself


def op(name: str, value: Any, called: int, returned: int) -> Operation:
    return Operation("x", name, value, called, returned)


def of_register(state: int, operation: Operation) -> int | None:
    value: int = operation.value
    return value if operation.name == "write" or value == state else None


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], True),
        ([op("write", 1, 0, 1), op("read", 1, 2, 3)], True),
        ([op("write", 1, 0, 1), op("read", 0, 2, 3)], False),  # too old
        ([op("write", 1, 0, 5), op("read", 0, 2, 3)], True),  # it had not happened yet
        ([op("write", 1, 0, 9), op("read", 1, 2, 3), op("read", 0, 4, 5)], False),  # back again
        ([op("write", 1, 0, 9), op("read", 0, 2, 3), op("read", 1, 4, 5)], True),
        ([op("write", 1, 0, 3), op("write", 2, 1, 4), op("read", 1, 5, 6)], True),
        ([op("read", 7, 0, 9)], False),  # nobody has written it
        ([op("write", 1, 0, 1), op("write", 2, 2, 3), op("read", 1, 4, 5)], False),  # lost
    ],
)
def test_the_search_tells_histories_that_have_an_order(history: Any, expected: bool) -> None:
    assert has_order(history, 0, of_register) is expected
    assert (unexplained(history, 0, of_register) == []) is expected


# ------------------------------------------------------------------ running


@pytest.fixture
def root(where: Path) -> Path:
    return where / "c.n5"


_counts = Counter[str]()  # of operations, by what they work on


@pytest.fixture(autouse=True)
def counted(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """Count the operations of a test."""
    _counts.clear()
    yield
    for what, n in _counts.items():
        record_property(f"histories of {what}", {"operations": n})


_shared: list[Any] = []  # of a process: the barrier of the pool


def at_once(work: Callable[[Job], list[Operation]], job: Job) -> list[Operation]:
    _shared[0].wait(PATIENCE)
    return work(job)


def alone(work: Callable[[Job], list[Operation]], job: Job) -> list[Operation]:
    with nullcontext() if job.is_fast else python_only():  # of this process
        return at_once(work, job)


def run(work: Callable[[Job], list[Operation]], jobs: list[Job], pool: Any) -> list[Operation]:
    """Let writers work at the same time; return the operations that they noted."""
    do = alone if isinstance(pool, ProcessPoolExecutor) else at_once
    with nullcontext() if jobs[0].is_fast else python_only():
        results = [pool.submit(do, work, job) for job in jobs]
        history = [operation for result in results for operation in result.result(PATIENCE)]
    _counts[work.__name__.removeprefix("use_")] += len(history)
    return history


def _join(barrier: Any) -> None:
    _shared[:] = [barrier]


def threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(N_WRITERS, initializer=_join, initargs=(Barrier(N_WRITERS),))


def processes() -> ProcessPoolExecutor:
    barrier = CONTEXT.Barrier(N_WRITERS)
    return ProcessPoolExecutor(
        N_WRITERS, mp_context=CONTEXT, initializer=_join, initargs=(barrier,)
    )


def rounds(
    root: Path, ways: list[str], durabilities: list[Any], n_of_processes: int = N_OF_PROCESSES
) -> Iterator[tuple[Any, list[Job]]]:
    """Yield, for each round, a pool and a job for each writer."""
    number = 0
    for workers, n_rounds in ((threads, N_ROUNDS), (processes, n_of_processes)):
        with workers() as pool:
            for _ in range(n_rounds):
                number += 1
                path = root.with_name(f"{number}.n5")
                yield pool, [
                    Job(
                        path, n, number * N_WRITERS + n,
                        durabilities[(number + n) % len(durabilities)],
                        ways[(number // 2 + n) % len(ways)],
                        is_fast=number % 2 == 0,
                    )
                    for n in range(N_WRITERS)
                ]  # fmt: skip


@cache
def shared(root: Path, durability: Any) -> N5Store:
    return N5Store(root, codecs="n5", durability=durability)


def opened(job: Job, path: str) -> Any:
    """Open a node with a store object of the writer's own, or one that threads share."""
    match job.way:
        case "own":
            return n5zarr.open(job.root, "r+", path=path, durability=job.durability)
        case "shared":
            return n5zarr.open(shared(job.root, job.durability), "r+", path=path)
        case "v2":
            store = N5Store(job.root, zarr_format=2, durability=job.durability)
        case _:
            store = N5Store(job.root, zarr_format=3, durability=job.durability)
    return zarr.open(store, path=path, mode="r+")


# ------------------------------------------------------------------ blocks and their parts


def parts_of(rows: range, columns: range) -> Iterator[tuple[tuple[int, int], int, Any]]:
    """Return block, number of the part in it, and place, for the parts of a box."""
    for y, x in product(rows, columns):
        where = (slice(EDGES[0][y], EDGES[0][y + 1]), slice(EDGES[1][x], EDGES[1][x + 1]))
        yield (y // 2, x // 2), y % 2 * 2 + x % 2, where


def use_blocks(job: Job) -> list[Operation]:
    """Write boxes of parts of blocks, remove blocks by writing zeros, and read boxes."""
    history, dice = list[Operation](), random.Random(job.seed)  # noqa: S311
    array = opened(job, "a")
    removed = 0.0 if job.beside_java else 0.2
    for number in range(N_OPERATIONS):
        y, x = dice.randrange(4), dice.randrange(4)
        rows, columns = range(y, dice.randint(y, 3) + 1), range(x, dice.randint(x, 3) + 1)
        if is_removed := dice.random() < removed:
            rows = columns = range(4)
        parts = list(parts_of(rows, columns))
        first, last = parts[0][2], parts[-1][2]
        box = tuple(slice(f.start, b.stop) for f, b in zip(first, last, strict=True))
        seen: dict[Any, list[tuple[int, int]]] = {}
        if is_removed or dice.random() < 0.5:
            name = "write"
            is_zero = is_removed or dice.random() < removed
            value = 0 if is_zero else 1 + job.number * N_OPERATIONS + number
            _, times = timed(partial(array.__setitem__, box, value))
            for block, part, _ in parts:
                seen.setdefault(block, []).append((part, value))
        else:
            name = "read"
            values, times = timed(partial(array.__getitem__, box))
            for block, part, where in parts:
                inside = tuple(
                    slice(w.start - b.start, w.stop - b.start)
                    for w, b in zip(where, box, strict=True)
                )
                (value,) = np.unique(values[inside]).tolist()  # a part is written as one
                seen.setdefault(block, []).append((part, value))
        history += [Operation(block, name, tuple(each), *times) for block, each in seen.items()]
    return history


def use_blocks_as_java(job: Job) -> list[Operation]:
    """Write whole blocks, as Java does: in place, under a lock on the file."""
    history, dice = list[Operation](), random.Random(job.seed)  # noqa: S311
    for number in range(N_OPERATIONS):
        block = dice.randrange(2), dice.randrange(2)
        value = 1 + job.number * N_OPERATIONS + number
        size = [min(c, n - at * c) for n, c, at in zip(SHAPE, CHUNKS, block, strict=True)]
        elements = np.full(size, value, "u2")
        _, times = timed(partial(outside.write_block, job.root / "a", block, elements))
        history.append(Operation(block, "write", tuple((p, value) for p in range(4)), *times))
    return history


def use_blocks_beside_java(job: Job) -> list[Operation]:
    return (use_blocks_as_java if job.number == 0 else use_blocks)(job)


def of_block(state: Any, operation: Operation) -> Any:
    """Write some parts of a block, or read them."""
    if operation.name == "read":
        return state if all(state[part] == value for part, value in operation.value) else None
    written = dict(operation.value)
    return tuple(written.get(part, value) for part, value in enumerate(state))


@pytest.mark.each_of(3)
@pytest.mark.parametrize("durability", [*DURABILITIES, "mixed"])
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda c: c["type"])
def test_blocks_and_their_parts(root: Path, compression: Any, durability: Any) -> None:
    how = {"path": "a", "shape": SHAPE, "chunks": CHUNKS, "dtype": "u2", "compression": compression}
    ways = DURABILITIES if durability == "mixed" else [durability]
    of_jobs = ["shared", "own", "shared", "v3", "v2"]
    for pool, jobs in rounds(root, of_jobs, ways, N_OF_PROCESSES or 2):
        array = n5zarr.create_array(jobs[0].root, **how)
        history = run(use_blocks, jobs, pool)
        assert unexplained(history, (0,) * 4, of_block) == []
        if durability == "overwrite" and isinstance(pool, ProcessPoolExecutor):
            # a process that locks as Java does loses nothing either, if no block is removed
            array[...] = FIRST
            beside = [job._replace(beside_java=True) for job in jobs]
            history = run(use_blocks_beside_java, beside, pool)
            assert unexplained(history, (FIRST,) * 4, of_block) == []


# ------------------------------------------------------------------ the document of a node


def use_document(job: Job) -> list[Operation]:
    """Set, remove and read attributes, and resize, through nodes that stay open, and anew."""
    history, dice = list[Operation](), random.Random(job.seed)  # noqa: S311
    array = opened(job, "a")
    for number in range(N_OPERATIONS):
        key = dice.choice(["shared", "also shared", f"own {job.number}"])
        value = job.number * N_OPERATIONS + number  # of nobody else
        what: str
        args: dict[str, Any]
        match dice.randrange(7):
            case 0:
                what, args = "set", {key: value}
                _, times = timed(partial(array.attrs.__setitem__, key, value))
            case 1:
                what, args = "set", {"shared": value, "also shared": value}
                array, times = timed(partial(array.update_attributes, args))
            case 2:
                what, args = "set", {key: value}
                _, times = timed(partial(n5zarr.set_attribute, job.root, "a", key, value))
            case 3 if key in array.attrs:
                what, args = "remove", {key: None}
                _, times = timed(partial(array.attrs.__delitem__, key))
            case 4:
                was_there, times = timed(partial(n5zarr.remove_attribute, job.root, "a", key))
                what, args = "remove one" if was_there else "miss", {key: None}
            case 5:
                what, args = "resize", {"shape": 100 + value}
                _, times = timed(partial(array.resize, (100 + value,)))
            case _:
                again, times = timed(partial(opened, job, "a"))
                what, args = "read", {**again.attrs, "shape": again.shape[0]}
        history += noted(what, args, times, in_two=what == "read" and job.way == "v2")
    return history


def noted(
    what: str, args: dict[str, Any], times: tuple[int, int], *, in_two: bool
) -> Iterator[Operation]:
    """Yield an operation; zarr reads `.zarray` and `.zattrs` one after the other, in any order."""
    parts = [args]
    if in_two:
        parts = [{"shape": args["shape"]}, {k: v for k, v in args.items() if k != "shape"}]
    for part in parts:
        yield Operation("a", f"{what} a part" if in_two else what, frozenset(part.items()), *times)


def of_document(state: frozenset[Any], operation: Operation) -> frozenset[Any] | None:
    """Change attributes and the shape, which are in one document, or read all of it."""
    now, args = dict(state), dict(operation.value)
    match operation.name:
        case "read" | "read a part":
            if operation.name == "read a part":  # the other one comes from another moment
                args |= {k: v for k, v in now.items() if (k == "shape") != ("shape" in args)}
            return state if now == args else None
        case "set" | "resize":
            return frozenset((now | args).items())
        case "miss":
            return None if args.keys() & now.keys() else state
        case "remove one" if not args.keys() & now.keys():
            return None
        case _:
            return frozenset((k, v) for k, v in now.items() if k not in args)


def test_attributes_and_shape_of_an_array(root: Path) -> None:
    for pool, jobs in rounds(root, ["own", "v3", "v2"], ["atomic"]):
        before = {"own 0": "before", "shared": "before"}
        n5zarr.create_array(
            jobs[0].root, path="a", shape=(99,), chunks=(5,), dtype="u2", attributes=before
        )
        history = run(use_document, jobs, pool)
        state = frozenset((before | {"shape": 99}).items())
        assert unexplained(history, state, of_document) == []


# ------------------------------------------------------------------ arrays that grow


def use_growing(job: Job) -> list[Operation]:
    """Let one writer grow the last block, while all write and read its elements."""
    history, dice = list[Operation](), random.Random(job.seed)  # noqa: S311
    for number in range(N_OPERATIONS):
        array = opened(job, "a")
        length = array.shape[0]
        if job.number == 0:
            length += 1
            array.resize((length,))
        at, value = dice.randrange(length), 1 + job.number * N_OPERATIONS + number
        _, times = timed(partial(array.__setitem__, at, value))
        history.append(Operation(at, "write", value, *times))
        at = dice.randrange(length)
        found, times = timed(partial(array.__getitem__, at))
        history.append(Operation(at, "read", int(found), *times))
    return history


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda c: c["type"])
def test_elements_of_an_array_that_grows(root: Path, compression: Any) -> None:
    for pool, jobs in rounds(root, ["own", "v3", "v2"], DURABILITIES):
        n5zarr.create_array(
            jobs[0].root, path="a", shape=(2,), chunks=(17,), dtype="u2", compression=compression
        )
        assert unexplained(run(use_growing, jobs, pool), 0, of_register) == []


# ------------------------------------------------------------------ nodes


def use_nodes(job: Job) -> list[Operation]:
    """Make and remove arrays beside those of others; list and open those of all."""
    history, dice = list[Operation](), random.Random(job.seed)  # noqa: S311
    group = opened(job, "g")
    own = [f"{job.number}{letter}" for letter in "ab"]
    each = [f"{number}{letter}" for number in range(N_WRITERS) for letter in "ab"]
    there = set[str]()
    for number in range(1, N_OPERATIONS):
        name = dice.choice(own)
        match dice.randrange(4):
            case 0 | 1 if name not in there:
                there.add(name)
                how = {"shape": (number,), "chunks": (5,), "dtype": "u2"}
                _, times = timed(partial(group.create_array, name, **how))
                # a directory is a group until it has a document
                history += [Operation(name, what, number, *times) for what in ("group", "array")]
            case 0 | 1:
                there.remove(name)
                _, times = timed(partial(group.__delitem__, name))
                history.append(Operation(name, "remove", None, *times))
            case 2:
                members, times = timed(partial(list_members, job))
                history += [Operation(n, "see", seen(members.get(n)), *times) for n in each]
            case _:
                name = dice.choice(each)
                try:
                    found, times = timed(partial(open_if_there, job, f"g/{name}"))
                except ContainsArrayError:
                    continue  # by zarr, which looks twice: it was made in between
                history.append(Operation(name, "see", seen(found), *times))
    return history


def list_members(job: Job) -> dict[str, Any]:
    return dict(n5zarr.open_group(job.root, path="g").members())


def open_if_there(job: Job, path: str) -> Any:
    try:
        return n5zarr.open(job.root, "r+", path=path)  # zarr.open reads the document twice
    except FileNotFoundError:
        return None


def seen(found: Any) -> int | str:
    """Return the observed state of a node: an array by its length."""
    if found is None:
        return "nothing"
    return int(found.shape[0]) if isinstance(found, zarr.Array) else "group"


def of_node(state: Any, operation: Operation) -> Any:
    """Make a node, first a group and then an array, remove it at once, or look at it."""
    match operation.name:
        case "group":
            return "group" if state == "nothing" else None
        case "array":
            return int(operation.value) if state == "group" else None
        case "remove":
            return "nothing" if isinstance(state, int) else None
        case _:
            return state if state == operation.value else None


def test_nodes_are_made_and_removed(root: Path) -> None:
    for pool, jobs in rounds(root, ["own", "v3", "v2"], ["atomic"]):
        zarr.create_group(N5Store(jobs[0].root), path="g")
        assert unexplained(run(use_nodes, jobs, pool), "nothing", of_node) == []


CHUNKS_OF = [(2,), (3,), (5,), (7,)]  # by writer


def make_the_same(job: Job) -> list[Operation]:
    """Make an array where others make another one; note whether that was refused."""
    made = partial(
        n5zarr.create_array, job.root, path="a", shape=(11 + job.number,),
        chunks=CHUNKS_OF[job.number], dtype="u2", attributes={f"by {job.number}": job.number},
    )  # fmt: skip
    try:
        _, times = timed(made)
    except (ContainsArrayError, ContainsGroupError):  # a group, where there is no document yet
        return []
    return [Operation("a", "make", job.number, *times)]


def test_of_those_who_make_one_node_at_once_one_wins(root: Path) -> None:
    """If several make one node at once, the dataset is that of one that has succeeded."""
    for pool, jobs in rounds(root, ["own"], ["atomic"]):
        zarr.create_group(N5Store(jobs[0].root))
        makers = {operation.value for operation in run(make_the_same, jobs, pool)}
        array = n5zarr.open_array(jobs[0].root, path="a")
        (winner,) = [n for n, chunks in enumerate(CHUNKS_OF) if chunks == array.chunks]
        assert winner in makers
        assert array.shape == (11 + winner,)
        assert dict(array.attrs) == {f"by {n}": n for n in makers}
