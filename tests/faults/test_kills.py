"""Writers that are killed at any moment leave whole units, and lose only the current step.

``N5ZARR_KILLS=50`` kills so many writers of each kind; else it is one of each way to write. Those
of conversions and pyramids are in ``tests/contract``.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError
from n5zarr.storage.interface import Durability
from tests.contract.test_kernel import python_only
from tests.processes import CONTEXT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")

N_KILLS = int(os.environ.get("N5ZARR_KILLS", "2"))
PATIENCE = 100  # seconds
SHAPE, BLOCKS = (17, 23, 29), (7, 11, 13)
SMALLER = (11, 19, 17)  # cuts blocks along each axis
N_NODES = 5  # that a writer keeps
VALUES = np.random.default_rng(5).integers(1, 250, (5, 7), "u1")


class Way(NamedTuple):
    """The options of a writer."""

    root: Path
    durability: Durability
    compression: str
    is_fast: bool  # through the compiled kernel
    by_zarr: bool  # through an array of zarr.open

    @classmethod
    def of(cls, root: Path, seed: int) -> Way:
        numbers = random.Random(seed)  # noqa: S311 - a choice
        durabilities: list[Durability] = ["atomic", "durable", "overwrite"]
        return cls(
            root, durabilities[seed % 3], numbers.choice(["raw", "gzip", "zstd"]),
            numbers.random() < 0.6, numbers.random() < 0.3,
        )  # fmt: skip

    def store(self) -> N5Store:
        return N5Store(self.root, durability=self.durability)

    def array(self) -> Any:
        if self.by_zarr:
            return zarr.open_array(self.store(), path="a", mode="r+")
        return n5zarr.open(self.store(), "r+", path="a")


class Kind(NamedTuple):
    """A kind of step that is repeated, and the check after it."""

    step: Callable[[Way, int], None]  # does the n-th step
    # checks what is there when so many steps have ended, and one more may have begun
    check: Callable[[Way, int], None]


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    for position in np.ndindex(*(-(-n // b) for n, b in zip(shape, BLOCKS, strict=True))):
        corners = [p * b for p, b in zip(position, BLOCKS, strict=True)]
        sizes = zip(corners, BLOCKS, shape, strict=True)
        yield tuple(slice(at, min(at + b, n)) for at, b, n in sizes)


def _check_blocks(way: Way, before: np.ndarray, after: np.ndarray) -> None:
    """Check that each block is old or new, or an error where it was overwritten in place."""
    array: Any = n5zarr.open(way.root, path="a")
    for box in _blocks(before.shape):
        try:
            found = array[box]
        except N5BlockError:
            assert way.durability == "overwrite"
            continue
        old, new = before[box], after[box]
        assert np.array_equal(found, old) or np.array_equal(found, new), (box, old, new, found)


# ------------------------------------------------------------------------------------- blocks


def _whole(step: int) -> np.ndarray:
    return np.full(SHAPE, step, "u2")


def _write(way: Way, step: int) -> None:
    way.array()[...] = _whole(step + 1)


def _check_written(way: Way, n_done: int) -> None:
    _check_blocks(way, _whole(n_done), _whole(n_done + 1))


def _box(step: int) -> tuple[slice, ...]:
    numbers = random.Random(step)  # noqa: S311 - of a test
    starts = [numbers.randrange(n - 1) for n in SHAPE]
    sizes = zip(starts, SHAPE, strict=True)
    return tuple(slice(at, numbers.randint(at + 1, n)) for at, n in sizes)


def _parts(n_steps: int) -> np.ndarray:
    values = np.zeros(SHAPE, "u2")
    for step in range(n_steps):
        values[_box(step)] = step + 1
    return values


def _write_part(way: Way, step: int) -> None:
    way.array()[_box(step)] = step + 1


def _check_parts(way: Way, n_done: int) -> None:
    _check_blocks(way, _parts(n_done), _parts(n_done + 1))


# ------------------------------------------------------------------------------------ resizes


def _resize(way: Way, step: int) -> None:
    """Write all, shrink, write all, grow."""
    if step % 2 == 0:
        array = way.array()
        array[...] = np.full(array.shape, step + 1, "u2")
    else:
        way.array().resize(SMALLER if step % 4 == 1 else SHAPE)


def _check_resized(way: Way, n_done: int) -> None:
    shapes = [SMALLER if n % 4 in (2, 3) else SHAPE for n in (n_done, n_done + 1)]
    array: Any = n5zarr.open(way.root, path="a")
    assert array.shape in shapes
    last = n_done - 1 + n_done % 2  # the value that was written last, after so many steps
    allowed = {last, n_done + 1} if n_done % 2 == 0 else {last}
    if n_done == 0:
        allowed = {0, 1}
    common = tuple(map(min, zip(*shapes, SMALLER, strict=True)))
    for box in _blocks(common):
        try:
            found = set(np.unique(array[box]).tolist())
        except N5BlockError:
            assert way.durability == "overwrite"
            continue
        assert len(found) == 1, (n_done, box, found)
        assert found <= allowed, (n_done, box, found, allowed)


# --------------------------------------------------------------------------------- attributes


def _set_attributes(way: Way, step: int) -> None:
    """Set one attribute of several, through zarr or not, and append to a list."""
    n5zarr.set_attribute(way.store(), "a", f"log[{step}]", step)
    if step % 2:
        way.array().attrs[f"k{step % 7}"] = step
    else:
        n5zarr.set_attribute(way.store(), "", f"k{step % 7}", step)


def _latest(n_steps: int, path: str) -> dict[str, int]:
    return {f"k{step % 7}": step for step in range(n_steps) if (step % 2 == 1) == (path == "a")}


def _check_attributes(way: Way, n_done: int) -> None:
    for path in ("a", ""):
        node: Any = zarr.open(N5Store(way.root), path=path, mode="r")
        found = dict(node.attrs)
        if path == "a":
            assert found.pop("log", []) in (list(range(n_done)), list(range(n_done + 1)))
        assert found in (_latest(n_done, path), _latest(n_done + 1, path))
    assert n5zarr.open_array(way.root, path="a").shape == SHAPE


# ---------------------------------------------------------------------- creations, deletions


def _create(way: Way, step: int) -> None:
    """Create a group with an array in it, and delete the oldest one."""
    group = zarr.create_group(way.store(), path=f"g{step}", attributes={"step": step})
    data, attributes = VALUES + step % 5, {"k": step}
    n5zarr.create_array(
        way.store(), path=f"g{step}/n", data=data, chunks=(3, 4), attributes=attributes
    )
    assert group.attrs["step"] == step
    root: Any = zarr.open_group(way.store(), mode="r+")
    if step >= N_NODES:
        del root[f"g{step - N_NODES}"]


def _check_created(way: Way, n_done: int) -> None:
    root: Any = zarr.open_group(N5Store(way.root), mode="r")
    found = {int(name[1:]) for name in root if name != "a"}
    kept = set(range(max(0, n_done - N_NODES), n_done))
    assert kept - {n_done - N_NODES} <= found <= kept | {n_done}
    for step in sorted(found):
        group = root[f"g{step}"]
        is_whole = n_done - N_NODES < step < n_done
        assert not is_whole or group.attrs["step"] == step
        if "n" in group and isinstance(group["n"], zarr.Array):
            values, expected = np.asarray(group["n"][...]), VALUES + step % 5
            if step == n_done:  # being created: each block is there, or not yet
                values = np.where(values == 0, expected, values)
            np.testing.assert_array_equal(values, expected)  # also of one that is being deleted
            assert group["n"].attrs["k"] == step
        else:
            assert not is_whole


KINDS = {
    "writes": Kind(_write, _check_written),
    "partial writes": Kind(_write_part, _check_parts),
    "resizes": Kind(_resize, _check_resized),
    "attribute updates": Kind(_set_attributes, _check_attributes),
    "creations and deletions": Kind(_create, _check_created),
}


def go_on(kind: str, way: Way, ends: Connection) -> None:
    """Do one step after the other, and report how many have ended."""
    with nullcontext() if way.is_fast else python_only():
        for step in range(10**6):
            KINDS[kind].step(way, step)
            ends.send(step + 1)


def killed(kind: str, way: Way, after: float) -> int:
    """Kill a writer some seconds after its first step; return how many steps have ended."""
    told, ends = CONTEXT.Pipe(duplex=False)
    writer = CONTEXT.Process(target=go_on, args=(kind, way, ends))
    writer.start()
    ends.close()
    assert told.poll(PATIENCE)
    n_done = told.recv()
    writer.join(after)
    assert writer.exitcode is None  # killed while it works, at any moment
    writer.kill()
    writer.join(PATIENCE)
    try:
        while told.poll():
            n_done = told.recv()
    except EOFError:
        pass
    return int(n_done)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_killed_writer_leaves_old_or_new(
    kind: str, where: Path, record_property: Callable[[str, object], None]
) -> None:
    outcomes: Counter[str] = Counter(kills=0, steps=0)
    outcomes["files left"] = 0
    moments = random.Random(11)  # noqa: S311 - the machine decides, too
    for seed in range(N_KILLS):
        way = Way.of(where / f"{seed}.n5", seed)
        n5zarr.create_array(
            way.root, path="a", shape=SHAPE, chunks=BLOCKS, dtype="u2", compression=way.compression
        )
        n_done = killed(kind, way, moments.uniform(0, 0.06))
        KINDS[kind].check(way, n_done)
        outcomes += Counter(kills=1, steps=n_done)
        outcomes["files left"] += check_clean(way, kind)
        KINDS[kind].check(way, n_done)
    record_property(f"kills of {kind}", dict(outcomes))
    assert outcomes["kills"] == N_KILLS


def check_clean(way: Way, kind: str) -> int:
    """Remove temporary files as ``validate --clean`` does; check that nothing else is found."""
    found = n5zarr.validate(way.root).findings
    expected = {"unfinished-file", "missing-blocks"}  # others are written later, in order
    if way.durability == "overwrite":
        expected |= {"header", "payload"}
    if kind == "creations and deletions":  # of a dataset that is half removed
        expected |= {"orphan-block"}
    if kind == "resizes":  # blocks keep their size where an array shrinks
        expected |= {"misplaced-block", "outside-grid", "short-block"}
    assert {each.kind for each in found} <= expected
    cleaned = n5zarr.clean_leftovers(way.root, found, min_age=0)
    assert not list(way.root.rglob("*.partial"))
    after = {each.kind for each in n5zarr.validate(way.root).findings}
    assert after <= expected - {"unfinished-file"}
    return len(cleaned.removed)
