"""The keyword ``durability`` is checked, and files are synced accordingly."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.interface import Durability
from tests.contract.test_kernel import python_only

DURABILITIES: list[Durability] = ["atomic", "durable", "overwrite"]
SHAPE, CHUNKS = (5, 7, 11), (3, 5, 7)


def test_a_store_keeps_its_own(tmp_path: Path) -> None:
    store = N5Store(tmp_path / "c.n5", codecs="n5", durability="durable")
    make: Any = {"path": "d", "shape": SHAPE, "dtype": "u1"}
    with pytest.raises(N5UnrepresentableError, match="expected that of the store, 'durable'"):
        n5zarr.create_array(store, durability="atomic", **make)
    n5zarr.create_array(store, durability="durable", **make)
    opened: Any = n5zarr.open(store, path="d")
    assert opened.store.durability == "durable"


def inodes(root: Path) -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_ino for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("how", ["kernel", "Python", "zarr"])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("compression", ["raw", "gzip", "lz4"])
def test_blocks_are_replaced_or_overwritten(
    tmp_path: Path, compression: str, durability: Durability, how: str
) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(
        root, path="d", shape=SHAPE, chunks=CHUNKS, dtype="u2", durability=durability,
        compression={"type": compression}, attributes={"x": 1},
    )  # fmt: skip
    array: Any = n5zarr.open(root, "r+", path="d", durability=durability)
    if how == "zarr":
        array = zarr.open_array(N5Store(root, durability=durability), path="d", mode="r+")
    expected = np.random.default_rng(1).integers(1, 60_000, SHAPE, "u2")
    with python_only() if how == "Python" else nullcontext():
        array[:] = expected
        before = inodes(root)
        assert len(before) == 8 + 2
        for number, name in enumerate(before):  # so that no number of an inode is used again
            (tmp_path / str(number)).hardlink_to(root / name)
        expected[1:4, 2:6, 3:] = 5  # shorter and longer files than before
        array[1:4, 2:6, 3:] = expected[1:4, 2:6, 3:]
        array[...] = expected
        array.attrs["x"] = 2
        np.testing.assert_array_equal(array[...], expected)
    after = inodes(root)
    same = {name for name in before if before[name] == after[name]}
    blocks = set(before) - {"attributes.json", "d/attributes.json"}
    assert same == {"attributes.json"} | (blocks if durability == "overwrite" else set())
    array[...] = 0
    assert set(inodes(root)) == set(before) - blocks


def test_to_n5_passes_it_on(tmp_path: Path) -> None:
    data = xr.DataArray(np.arange(35, dtype="u2").reshape(5, 7), dims=("y", "x"))
    n5zarr.to_n5(data, tmp_path / "c.n5", group="d", durability="overwrite")
    block = tmp_path / "c.n5" / "d" / "0" / "0"
    inode = block.stat().st_ino
    n5zarr.to_n5(data + 1, tmp_path / "c.n5", group="d", mode="r+", region={"y": slice(0, 5)},
                 durability="overwrite")  # fmt: skip
    assert block.stat().st_ino == inode


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[tuple[str, str]]]:
    """Return the files that were synced, named and removed since the last call, in order."""
    events: list[tuple[str, str]] = []
    names: dict[int, str] = {}
    real = {name: getattr(os, name) for name in ("open", "fsync", "replace", "link", "remove")}

    def opened(path: Any, *arguments: Any) -> int:
        file: int = real["open"](path, *arguments)
        names[file] = str(path)
        return file

    def synced(file: int) -> None:
        real["fsync"](file)
        events.append(("sync", short(names[file])))

    def named(how: str) -> Any:
        def call(source: Any, *target: Any) -> None:
            real[how](source, *target)
            events.append((how, short(str((source, *target)[-1]))))

        return call

    def short(path: str) -> str:
        return "unfinished" if path.endswith(".partial") else path.removeprefix(str(tmp_path) + "/")

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", synced)
    for how in ("replace", "link", "remove"):
        monkeypatch.setattr(os, how, named(how))

    def take() -> list[tuple[str, str]]:
        found = [event for event in events if event != ("remove", "unfinished")]
        events.clear()
        return found

    return take


@pytest.mark.skipif(sys.platform == "win32", reason="directories cannot be synced")
def test_files_are_synced_before_their_names_and_then_directories(
    tmp_path: Path, done: Callable[[], list[tuple[str, str]]]
) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=SHAPE, chunks=CHUNKS, dtype="u2", durability="durable"
    )
    made = done()
    assert made.index(("link", "c.n5/d/attributes.json")) < made.index(("sync", "c.n5/d"))
    assert {("sync", "c.n5"), ("sync", "c.n5/d"), ("sync", str(tmp_path))} <= set(made)
    with python_only():
        array[:3, :5, :7] = 1
        created = done()
        assert created[:2] == [("sync", "unfinished"), ("link", "c.n5/d/0/0/0")]
        assert created[2:] == [("sync", f"c.n5/{name}") for name in ("d/0/0", "d/0", "d")]
        array[:2, :5, :7] = 2
        assert done() == [
            ("sync", "unfinished"), ("replace", "c.n5/d/0/0/0"), ("sync", "c.n5/d/0/0"),
        ]  # fmt: skip
        array[:, :5, :7] = 3  # two blocks in one directory
        *blocks, last = done()
        assert sorted(blocks) == [
            ("link", "c.n5/d/0/0/1"), ("replace", "c.n5/d/0/0/0"), *[("sync", "unfinished")] * 2,
        ]  # fmt: skip
        assert last == ("sync", "c.n5/d/0/0")
        array[:, :5, :7] = 0
        *blocks, last = done()
        assert sorted(blocks) == [("remove", "c.n5/d/0/0/0"), ("remove", "c.n5/d/0/0/1")]
        assert last == ("sync", "c.n5/d/0/0")
    array.attrs["x"] = 1
    assert done() == [("sync", "unfinished"), ("replace", "c.n5/d/attributes.json"),
                      ("sync", "c.n5/d")]  # fmt: skip
    array[:] = 1  # the kernel, where there is one, writes and syncs files unseen
    synced = {name for what, name in done() if what == "sync"}
    assert synced - {"unfinished"} == {
        "c.n5/d", "c.n5/d/0", "c.n5/d/1", *(f"c.n5/d/{x}/{y}" for x in (0, 1) for y in (0, 1)),
    }  # fmt: skip


def test_an_error_without_a_name_gets_that_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match=r"No space left on device: .*attributes\.json"):
        n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(3,), dtype="u1")
