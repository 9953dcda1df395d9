"""Blocks that exist, and those that are missing, of arrays whose files tests write or count."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from obstore.store import MemoryStore
from zarr.buffer import cpu
from zarr.storage import LocalStore, ObjectStore

import n5zarr
from n5zarr import N5Store
from n5zarr.container import block_listing
from n5zarr.errors import N5BlockError, N5UnrepresentableError, N5UnsupportedError
from tests.shards import write_shards
from tests.unit.arrays.blocks import CHUNKS, SHAPE, numbers, places, write_dataset

STORED = [(0, 0, 0), (1, 2, 1), (2, 0, 2), (2, 1, 0)]


def box(place: Iterable[int]) -> tuple[slice, ...]:
    """Return the elements of a block, by the indices of numpy."""
    each = zip(place, CHUNKS, SHAPE, strict=True)
    return tuple(slice(p * n, min((p + 1) * n, end)) for p, n, end in each)


def n5(root: Path) -> Path:
    write_dataset(root, numbers(), missing=tuple(p for p in places() if p not in STORED))
    return root / "d"


def of_zarr(store: Any, places: Iterable[tuple[int, ...]] = STORED, **options: Any) -> Any:
    made: Any = zarr.create_array(
        store, name="g/d", shape=SHAPE, dtype="u2", **({"chunks": CHUNKS} | options)
    )
    for place in places:
        made[box(place)] = 5
    return made


def in_memory(root: Path) -> N5Store:
    """Copy a container into a store that lists keys by their prefix, as object stores do."""
    files = [file for file in n5(root).parent.rglob("*") if file.is_file()]
    names = [file.relative_to(root).as_posix() for file in files]
    values = [cpu.Buffer.from_bytes(file.read_bytes()) for file in files]
    return N5Store(zarr.storage.MemoryStore(dict(zip(names, values, strict=True))))


ARRAYS: dict[str, Callable[[Path], Any]] = {
    "location": n5,
    "text": lambda root: str(n5(root)),
    "N5": lambda root: n5zarr.open_array(n5(root)),
    "N5 by zarr": lambda root: (n5(root), zarr.open_array(N5Store(root), path="d", mode="r"))[1],
    "N5 in memory": lambda root: n5zarr.open_array(in_memory(root), path="d"),
    "Zarr": lambda root: of_zarr(LocalStore(root)),
    "Zarr v2": lambda root: of_zarr(LocalStore(root), zarr_format=2),
    "shards": lambda _: of_zarr({}, chunks=(1, 2, 1), shards=CHUNKS),
    "objects": lambda _: of_zarr(ObjectStore(MemoryStore())),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_blocks_that_exist_and_those_that_are_missing(make: Any, tmp_path: Path) -> None:
    array = make(tmp_path)
    assert sorted(n5zarr.stored_blocks(array)) == STORED
    boxes = [*n5zarr.stored_blocks(array, slices=True)]
    assert sorted(boxes, key=str) == sorted(map(box, STORED), key=str)
    others = [place for place in np.ndindex(3, 3, 3) if place not in STORED]
    assert [*n5zarr.stored_blocks(array, missing=True)] == others
    assert [*n5zarr.stored_blocks(array, missing=True, slices=True)] == [*map(box, others)]
    if isinstance(array, zarr.Array):
        for place in STORED:
            np.testing.assert_array_equal(array.blocks[place], array[box(place)])
            assert np.any(array.blocks[place])


def test_axes_in_the_order_of_dimensions(tmp_path: Path) -> None:
    n5(tmp_path)
    found = sorted(n5zarr.stored_blocks(tmp_path, "d", axis_order="F"))
    assert found == sorted(place[::-1] for place in STORED)


@pytest.mark.parametrize("module", [n5zarr, zarr], ids=["N5", "Zarr"])
@pytest.mark.parametrize(
    ("shape", "where", "stored", "missing"),
    [((), (), [()], []), ((7,), (5,), [(1,)], [(0,), (2,)]), ((0, 5), (), [], [])],
)
def test_other_numbers_of_axes(
    module: Any, shape: Any, where: Any, stored: Any, missing: Any, tmp_path: Path
) -> None:
    how = {"shape": shape, "chunks": (3, 4)[: len(shape)], "dtype": "complex64"}  # of two parts
    array = module.create_array(tmp_path / "a.n5", **how)
    assert [*n5zarr.stored_blocks(array)] == []
    assert [*n5zarr.stored_blocks(array, missing=True)] == sorted(stored + missing)
    array[where] = 1
    assert [*n5zarr.stored_blocks(array)] == stored
    assert [*n5zarr.stored_blocks(array, missing=True)] == missing


def test_blocks_come_while_others_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_listing, "_DIRECTORIES", (1, 1))
    n5(tmp_path)
    found = n5zarr.stored_blocks(tmp_path / "d")
    assert next(found) == STORED[0]
    shutil.rmtree(tmp_path / "d/1")  # x: it is not listed yet
    assert [*found] == [(2, 1, 0), (2, 0, 2)]


def rectilinear(_: Path) -> Any:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        return zarr.create_array({}, shape=(5, 7), chunks=[[2, 3], [1, 6]], dtype="u1")


def shards_of_java(root: Path) -> Path:
    write_shards(root / "j.n5/d", np.ones((9, 8, 7), "u2"), (2, 2, 3), (4, 4, 6))
    return root / "j.n5/d"


def unlisted(root: Path) -> Any:
    class NoLists(LocalStore):
        supports_listing = False

    return of_zarr(NoLists(root))


@pytest.mark.parametrize(
    ("make", "error", "kind"),
    [
        (lambda root: n5(root).parent, N5UnrepresentableError, "option"),
        (lambda root: n5(root) / "e", FileNotFoundError, None),
        (shards_of_java, N5BlockError, "shard"),
        (unlisted, N5UnsupportedError, "listing"),
        (rectilinear, N5UnsupportedError, "listing"),
    ],
)
def test_what_has_no_list_of_blocks(make: Any, error: Any, kind: str, tmp_path: Path) -> None:
    with pytest.raises(error) as caught:
        n5zarr.stored_blocks(make(tmp_path))
    assert getattr(caught.value, "kind", None) == kind
