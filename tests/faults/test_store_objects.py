"""Several store objects and programs on one container see each other's changes.

Each test is the shortest form of a failure of ``tests/property/test_states.py`` or
``tests/faults/test_histories.py``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.buffer import cpu
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5Error
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.requests import Update
from tests.contract.test_kernel import python_only
from tests.property import outside

SHAPE, CHUNKS = (5, 7), (2, 3)


@pytest.mark.parametrize("first", [".zattrs", ".zarray"])
def test_an_array_of_v2_is_made_again_after_others_removed_it(tmp_path: Path, first: str) -> None:
    """An array of v2 is made again after its removal, whichever document is written first."""
    store = N5Store(tmp_path / "c.n5", zarr_format=2)
    n5zarr.create_array(store, path="a", shape=SHAPE, chunks=CHUNKS, dtype="u2")
    documents: dict[str, Any] = {
        ".zarray": sync(store.get("a/.zarray")),
        ".zattrs": cpu.Buffer.from_bytes(b'{"x": 1}'),
    }
    shutil.rmtree(tmp_path / "c.n5" / "a")
    assert not sync(store.exists("a/.zarray"))  # as zarr asks
    for name in sorted(documents, key=lambda each: each != first):
        store.set_sync(f"a/{name}", documents[name])
    array = n5zarr.open_array(tmp_path / "c.n5", path="a")
    assert array.shape == SHAPE
    assert dict(array.attrs) == {"x": 1}


@pytest.mark.parametrize("how", [{"codecs": "n5"}, {}, {"zarr_format": 2}], ids=str)
def test_the_fill_value_is_that_of_the_array_that_is_there(tmp_path: Path, how: Any) -> None:
    """The fill value is that of the present array, and not of one that was replaced."""
    store = N5Store(tmp_path / "c.n5", **how)
    what: Any = {"path": "a", "shape": SHAPE, "chunks": CHUNKS, "dtype": "u2"}
    n5zarr.create_array(store, fill_value=3, **what)
    n5zarr.create_array(tmp_path / "c.n5", overwrite=True, **what)
    for each in (store, N5Store(tmp_path / "c.n5")):
        array: Any = zarr.open_array(each, path="a", mode="r+")
        np.testing.assert_array_equal(array[...], np.zeros(SHAPE))


def test_numbers_in_place_of_booleans_are_noticed(tmp_path: Path) -> None:
    """Numbers in the place of booleans are noticed, though both are stored as uint8."""
    store = N5Store(tmp_path / "c.n5")
    n5zarr.create_array(store, path="a", shape=SHAPE, chunks=CHUNKS, dtype=bool)
    other = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=SHAPE, chunks=CHUNKS, dtype="u1", overwrite=True
    )
    other[...] = 5
    with pytest.raises(N5Error, match="elements and blocks with which") as caught:
        zarr.open_array(store, path="a", mode="r+")
    assert caught.value.kind == "changed"
    assert zarr.open_array(N5Store(tmp_path / "c.n5"), path="a", mode="r").dtype == "u1"


@pytest.mark.parametrize("how", [{"codecs": "n5"}, {}, {"zarr_format": 2}], ids=str)
def test_a_document_that_changes_within_a_tick_of_the_clock_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    """A document that changes within a tick of the clock is read again."""
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="a", shape=SHAPE, chunks=CHUNKS, dtype="u2")
    path, store = root / "a" / "attributes.json", N5Store(root, **how)
    now = time.time_ns()
    clock = count(now)
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))  # however busy the machine is
    os.utime(path, ns=(now, now))
    array: Any = n5zarr.open(store, "r+", path="a") if "codecs" in how else None
    array = array or zarr.open_array(store, path="a", mode="r+")
    assert array[...].max() == 0
    outside.write_file(path, path.read_bytes().replace(b"uint16", b"uint32"))
    os.utime(path, ns=(now, now))
    with pytest.raises(N5Error, match="has replaced the dataset") as caught:
        array[...]
    assert caught.value.kind == "changed"


@pytest.mark.parametrize("how", [{"codecs": "n5"}, {}, {"zarr_format": 2}], ids=str)
def test_a_document_that_is_replaced_right_after_it_was_written_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="a", shape=SHAPE, chunks=CHUNKS, dtype="u2")
    path, own, numbers = root / "a" / "attributes.json", LocalFiles.answer, count()
    array: Any = zarr.open_array(N5Store(root, **how), path="a", mode="r+")

    def answer(self: LocalFiles, request: Any, warn: Any) -> object:
        answered = own(self, request, warn)
        if isinstance(request, Update) and request.key == "a/attributes.json":
            # at once, as the other document is written meanwhile
            new = path.with_name(f"new{next(numbers)}")
            outside.write_file(new, path.read_bytes().replace(b"uint16", b"uint32"))
            os.utime(new, (1, 1))  # no recent file, whose stamp would be unique
            new.replace(path)
        return answered

    monkeypatch.setattr(LocalFiles, "answer", answer)
    # v2 writes two documents at once: if `.zarray` comes second, it meets the other dataset
    with suppress(N5Error) if "zarr_format" in how else nullcontext():
        array.attrs["x"] = 1
    with pytest.raises(N5Error, match="has replaced the dataset") as caught:
        array[...]
    assert caught.value.kind == "changed"


def test_a_dataset_that_is_removed_after_its_document_was_written_is_gone(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    n5zarr.create_array(root, path="a", shape=SHAPE, chunks=CHUNKS, dtype="u2")
    array: Any = zarr.open_array(N5Store(root), path="a", mode="r+")
    array.attrs["x"] = 1
    shutil.rmtree(root / "a")
    with pytest.raises(N5Error) as caught:
        array[...]
    assert caught.value.kind == "changed"


# ------------------------------------------------------------------ removing


@pytest.fixture
def removing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Call the functions of a list whenever a tree has lost its first file, its document."""
    called: list[Any] = []
    rmtree = shutil.rmtree

    def stop_halfway(path: str) -> None:
        Path(path, "attributes.json").unlink(missing_ok=True)
        for function in called:
            function()
        rmtree(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", stop_halfway)
        yield called


def test_nobody_sees_half_of_a_node_that_is_removed(tmp_path: Path, removing: list[Any]) -> None:
    root = tmp_path / "c.n5"
    group = zarr.create_group(N5Store(root)).create_group("g")
    for name in "ab":
        array = n5zarr.create_array(root, path=f"g/{name}", shape=SHAPE, chunks=CHUNKS, dtype="u2")
        array[...] = 3
    listed = []

    def look() -> None:
        with pytest.raises(FileNotFoundError):
            n5zarr.open(root, path="g/a")
        listed.append([name for name, _ in n5zarr.open_group(root, path="g").members()])

    removing.append(look)
    del group["a"]
    assert listed == [["b"]]
    assert sorted(path.name for path in (root / "g").iterdir()) == ["attributes.json", "b"]


def test_remains_of_a_node_whose_removal_was_killed_are_removed(
    tmp_path: Path, removing: list[Any]
) -> None:
    root = tmp_path / "c.n5"
    group = zarr.create_group(N5Store(root))
    n5zarr.create_array(root, path="a", shape=SHAPE, chunks=CHUNKS, dtype="u2")[...] = 3

    def stop() -> None:
        raise InterruptedError

    removing.append(stop)
    with pytest.raises(InterruptedError):
        del group["a"]
    removing.clear()
    assert list(n5zarr.open_group(root).members()) == []
    result = n5zarr.validate(root)
    (left,) = result.findings
    assert (left.kind, left.repair) == ("unfinished-file", "clean")
    assert n5zarr.clean_leftovers(root, result.findings).kept.keys() == {left.file}
    n5zarr.clean_leftovers(root, result.findings, min_age=0)
    assert [path.name for path in root.iterdir()] == ["attributes.json"]


# ------------------------------------------------------------------ growing


@pytest.mark.parametrize("is_fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("value", [1, 0], ids=["written", "removed"])
@pytest.mark.parametrize("where", [np.s_[0:1], np.s_[...]], ids=["part", "whole"])
@pytest.mark.parametrize("how", [{"codecs": "n5"}, {"zarr_format": 2}], ids=str)
@pytest.mark.parametrize(
    ("compression", "durability"), [("raw", "overwrite"), ("zstd", "atomic"), ("gzip", "durable")]
)
def test_a_block_that_grows_while_it_is_written_loses_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    compression: str,
    how: Any,
    where: Any,
    value: int,
    durability: Any,
    is_fast: bool,
) -> None:
    """A block that others enlarge while a writer updates it loses no elements."""
    root = tmp_path / "c.n5"
    made = n5zarr.create_array(
        root, path="a", shape=(2,), chunks=(13,), dtype="u2", compression=compression
    )
    made[...] = 4
    store = N5Store(root, durability=durability, **how)
    array: Any = n5zarr.open(store, "r+", path="a") if "codecs" in how else None
    array = array or zarr.open_array(store, path="a", mode="r+")
    dataset_of, grown = N5Store.dataset_of, np.array([4, 4, 9, 9, 9, 9, 9], "u2")
    n_called = 0

    def dataset_of_before(self: N5Store, *args: Any, **options: Any) -> Any:
        nonlocal n_called
        found = yield from dataset_of(self, *args, **options)
        if not n_called:
            outside.merge_document(root / "a", {"dimensions": [7]})
            outside.write_block(root / "a", (0,), grown)
        n_called += 1
        return found

    monkeypatch.setattr(N5Store, "dataset_of", dataset_of_before)
    with nullcontext() if is_fast else python_only():
        array[where] = value
    expected = grown.copy()
    expected[:2][where] = value
    assert n_called
    np.testing.assert_array_equal(n5zarr.open_array(root, path="a")[...], expected)


def test_a_node_is_forgotten_when_others_have_removed_its_group(tmp_path: Path) -> None:
    store = N5Store(tmp_path / "c.n5")
    n5zarr.create_array(store, path="g/a", shape=SHAPE, chunks=CHUNKS, dtype="u2")
    shutil.rmtree(tmp_path / "c.n5" / "g")
    zarr.create_group(store, path="g", overwrite=True)
    other = N5Store(tmp_path / "c.n5")
    n5zarr.create_array(other, path="g/a", shape=SHAPE, chunks=(5, 2), dtype="i4")
    assert zarr.open_array(store, path="g/a", mode="r+").chunks == (5, 2)


def test_an_old_group_object_updates_several_attributes(tmp_path: Path) -> None:
    """An old group object updates several attributes, though zarr writes them one by one."""
    store = N5Store(tmp_path / "c.n5")
    held = zarr.create_group(store)
    zarr.open_group(N5Store(tmp_path / "c.n5"), mode="r+").attrs.update({"y": 0, "n": 7, "z": 1})
    assert dict(zarr.open_group(store, mode="r+").attrs) == {"y": 0, "n": 7, "z": 1}
    held.attrs.update({"y": 0, "n": 7})
    found = zarr.open_group(N5Store(tmp_path / "c.n5"), mode="r")
    assert dict(found.attrs) == {"y": 0, "n": 7}


@pytest.mark.parametrize("how", [{"codecs": "n5"}, {}, {"zarr_format": 2}], ids=str)
def test_an_array_that_was_open_before_it_shrank_and_grew_reads_what_others_wrote(how: Any) -> None:
    """An array that shrank and grew while it was open shows the elements that others wrote."""
    root = MemoryStore()
    store = N5Store(root, **how)
    n5zarr.create_array(store, path="a", shape=(7, 3), chunks=(3, 2), dtype="u2")
    held: Any = zarr.open_array(store, path="a", mode="r+")
    n5zarr.open_array(root, "r+", path="a").resize((3, 4))
    assert zarr.open_array(store, path="a", mode="r+").shape == (3, 4)
    n5zarr.open_array(root, "r+", path="a").append(np.full((2, 4), 5, "u2"))
    assert held[3:5, 0].tolist() == [5, 5]


# ------------------------------------------------------------------ listing


def replace_it(root: Path, other: str) -> None:
    """Replace ``g/a``, or remove it, as another program does."""
    shutil.rmtree(root / "g" / "a")
    if other == "array":
        n5zarr.create_array(root, path="g/a", data=np.ones(SHAPE, "f4"), chunks=CHUNKS)
    elif other != "nothing":
        outside.write_file(root / "g" / "a" / "attributes.json", other.encode())


OTHERS = ["array", "nothing", "{}", "{", '{"dimensions": [3]}']
OBJECTS = '{"dimensions":[3],"blockSize":[3],"dataType":"object","compression":{"type":"raw"}}'


@pytest.mark.parametrize("other", [*OTHERS, OBJECTS])
@pytest.mark.parametrize("how", [{"codecs": "n5"}, {}, {"zarr_format": 2}], ids=str)
@pytest.mark.filterwarnings("ignore:.*(is not recognized|omitted|was expected).*")
def test_a_node_that_is_replaced_between_listing_and_opening_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any, other: str
) -> None:
    root = tmp_path / "c.n5"
    store = N5Store(root, **how)
    zarr.create_group(store, path="g", zarr_format=how.get("zarr_format", 3))
    for path in ("g/a", "g/b"):
        n5zarr.create_array(store, path=path, shape=SHAPE, chunks=CHUNKS, dtype="u2")
    list_dir = N5Store.list_dir

    async def list_then_replace(self: N5Store, prefix: str) -> AsyncIterator[str]:
        names = [name async for name in list_dir(self, prefix)]
        if "a" in names:
            await asyncio.to_thread(replace_it, root, other)
        for name in names:
            yield name

    group = zarr.open_group(store, path="g", mode="r")
    with monkeypatch.context() as patched:
        patched.setattr(N5Store, "list_dir", list_then_replace)
        found = dict(group.members(max_depth=None))
    at_rest = dict(group.members())
    assert "b" in found
    assert found.keys() == at_rest.keys()
    assert [type(found[name]) for name in found] == [type(at_rest[name]) for name in found]
    if "a" not in found and other != "nothing":  # whoever opens it by its name is told why
        with pytest.raises(N5Error, match="g/a"):
            zarr.open_array(store, path="g/a", mode="a", shape=SHAPE, dtype="u1")
