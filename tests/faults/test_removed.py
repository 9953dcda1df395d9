"""Open arrays of a removed or renamed dataset raise an error that names it."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.abc.buffer import Buffer
from zarr.buffer import cpu
from zarr.storage import MemoryStore, WrapperStore, ZipStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5Error
from tests.contract.stored import contents
from tests.processes import CONTEXT

SHAPE, CHUNKS, GRID = (7, 11), (3, 5), (3, 3)


def make(root: Path) -> Path:
    array = n5zarr.create_array(root, path="g/a", shape=SHAPE, chunks=CHUNKS, dtype="u2")
    array[...] = 7
    return root


REMOVALS: dict[str, Callable[[Path], object]] = {
    "removed": lambda root: shutil.rmtree(root / "g" / "a"),
    "renamed": lambda root: (root / "g" / "a").rename(root / "g" / "b"),
    "without its container": shutil.rmtree,
    "without its document": lambda root: (root / "g" / "a" / "attributes.json").unlink(),
    "removed by n5zarr": lambda root: zarr.open_group(N5Store(root), path="g").__delitem__("a"),
}
WRITABLE: dict[str, Callable[[Any], Any]] = {
    "n5zarr.open": lambda root: n5zarr.open_array(root, path="g/a", mode="r+"),
    "member of a group": lambda root: n5zarr.open_group(root, mode="r+")["g/a"],
    "zarr": lambda root: zarr.open_array(N5Store(root), path="g/a"),
    "zarr, codecs n5": lambda root: zarr.open_array(N5Store(root, codecs="n5"), path="g/a"),
    "zarr v2": lambda root: zarr.open_array(N5Store(root, zarr_format=2), path="g/a"),
}


def of_engine(root: Path, **options: Any) -> Any:
    dataset = xr.open_dataset(root, engine="n5", group="g/a", cache=False, **options)
    return dataset["a"]


READABLE = WRITABLE | {
    "coords": lambda root: zarr.open_array(N5Store(root, coords=True), path="g/a/a", mode="r"),
    "engine": of_engine,
    "engine with dask": lambda root: of_engine(root, chunks={}),
}
BOXES: dict[str, Any] = {
    "all": np.s_[...],
    "a part of a block": np.s_[1:2, 1:3],
    "one": np.s_[6, 2],
}


@pytest.mark.each_of(3)
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("way", READABLE.values(), ids=READABLE)
@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_reading_raises(
    tmp_path: Path, remove: Callable[[Path], object], way: Callable[[Any], Any], box: Any
) -> None:
    array = way(make(tmp_path / "c.n5"))
    assert np.unique(np.asarray(array[box])) == [7]
    remove(tmp_path / "c.n5")
    for _ in range(2):
        with pytest.raises(N5Error, match=r"c\.n5: g/a: expected the dataset of an open") as caught:
            np.asarray(array[box])
        assert caught.value.kind == "changed"


@pytest.mark.each_of(2)
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("way", WRITABLE.values(), ids=WRITABLE)
@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_writing_raises_and_leaves_no_blocks(
    tmp_path: Path, remove: Callable[[Path], object], way: Callable[[Any], Any], box: Any
) -> None:
    array = way(make(tmp_path / "c.n5"))
    remove(tmp_path / "c.n5")
    before = contents(tmp_path)
    with pytest.raises(N5Error, match="g/a: expected the dataset of an open array") as caught:
        array[box] = 9
    assert caught.value.kind == "changed"
    assert before == contents(tmp_path)


def test_an_array_stays_lost_after_its_path_was_opened_again(tmp_path: Path) -> None:
    group = n5zarr.open_group(make(tmp_path / "c.n5"))
    array: Any = group["g/a"]
    REMOVALS["removed"](tmp_path / "c.n5")
    with pytest.raises(KeyError):
        group["g/a"]
    with pytest.raises(N5Error, match="got nothing: it has been removed or renamed"):
        array[...]


def test_a_dataset_that_is_created_again_is_read(tmp_path: Path) -> None:
    array: Any = n5zarr.open_array(make(tmp_path / "c.n5"), path="g/a")
    (tmp_path / "c.n5" / "g").rename(tmp_path / "h")
    with pytest.raises(N5Error, match="expected the dataset of an open array"):
        array[...]
    (tmp_path / "h").rename(tmp_path / "c.n5" / "g")
    assert np.unique(array[...]) == [7]


def read_pickled(pickled: bytes) -> str:
    try:
        return str(np.asarray(pickle.loads(pickled)[...]))
    except N5Error as err:
        return err.kind


def test_other_processes_raise(tmp_path: Path) -> None:
    """Pickled arrays raise in other processes, as in dask's workers."""
    root = make(tmp_path / "c.n5")
    pickled = [pickle.dumps(way(root)) for way in WRITABLE.values()]
    REMOVALS["renamed"](root)
    with ProcessPoolExecutor(1, CONTEXT) as workers:
        assert set(workers.map(read_pickled, pickled)) == {"changed"}


# ---------------------------------------------------------------------- storage without stamps


class Counting(WrapperStore[MemoryStore]):
    """A store that counts the requests for values."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.asked: list[str] = []

    async def get(self, key: str, *args: Any, **options: Any) -> Buffer | None:
        self.asked.append(key)
        return await super().get(key, *args, **options)


@pytest.fixture
def memory(tmp_path: Path) -> Counting:
    root = make(tmp_path / "c.n5")
    return Counting(
        MemoryStore({k: cpu.Buffer.from_bytes(data) for k, data in contents(root).items()})
    )


def clear(store: Counting, prefix: str) -> None:
    for key in [key for key in store._store._store_dict if key.startswith(prefix)]:
        del store._store._store_dict[key]


@pytest.mark.parametrize("way", WRITABLE.values(), ids=WRITABLE)
def test_reading_from_other_storage_raises(memory: Counting, way: Callable[[Any], Any]) -> None:
    array = way(memory)
    assert np.unique(array[...]) == [7]
    clear(memory, "g/a/")
    for box in BOXES.values():
        with pytest.raises(N5Error, match="g/a: expected the dataset of an open array") as caught:
            array[box]
        assert caught.value.kind == "changed"


@pytest.mark.parametrize("way", WRITABLE.values(), ids=WRITABLE)
def test_only_boxes_without_a_block_cost_a_request(
    memory: Counting, way: Callable[[Any], Any]
) -> None:
    array = way(memory)
    memory.asked.clear()
    assert np.unique(array[...]) == [7]
    assert len(memory.asked) == 9
    clear(memory, "g/a/0/0")
    memory.asked.clear()
    assert array[:, :10].tolist() == [[0] * 5 + [7] * 5] * 3 + [[7] * 10] * 4
    assert len(memory.asked) == 6
    memory.asked.clear()
    assert np.unique(array[:2, :2]) == [0]
    assert memory.asked == ["g/a/0/0", "g/a/attributes.json"]


def test_arrays_with_filters_raise_too(memory: Counting) -> None:
    options: dict[str, Any] = {"shape": SHAPE, "chunks": CHUNKS, "dtype": "u2"}
    delta = zarr.codecs.numcodecs.Delta(dtype="u2")
    array: Any = zarr.create_array(N5Store(memory), name="d", filters=delta, **options)
    array[...] = 5
    assert np.unique(array[...]) == [5]
    clear(memory, "d/")
    with pytest.raises(N5Error, match="d: expected the dataset of an open array"):
        array[...]


def test_an_archive_without_blocks_is_read(tmp_path: Path) -> None:
    """An archive with a dataset without blocks is read as fill values."""
    with ZipStore(tmp_path / "c.zip", mode="w") as archive:
        n5zarr.create_array(archive, path="a", shape=SHAPE, chunks=CHUNKS, dtype="u2")
    array: Any = n5zarr.open_array(ZipStore(tmp_path / "c.zip", mode="r"), path="a", mode="r")
    assert not array[...].any()


CHANGES: dict[str, Callable[[Any], object]] = {
    "attribute": lambda array: array.attrs.__setitem__("q", 1),
    "attributes": lambda array: array.update_attributes({"q": 1}),
    "append": lambda array: array.append(np.ones((1, SHAPE[1]), "u2")),
    "resize": lambda array: array.resize((5, 11)),
}


@pytest.mark.each_of(3)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("way", WRITABLE.values(), ids=WRITABLE)
@pytest.mark.parametrize("instead", ["nothing", "an empty group", "other elements"])
def test_metadata_of_what_was_removed_or_replaced_is_not_written(
    tmp_path: Path, instead: str, way: Callable[[Any], Any], change: Callable[[Any], object]
) -> None:
    root = make(tmp_path / "c.n5")
    array = way(root)
    shutil.rmtree(root / "g" / "a")
    if instead == "an empty group":
        (root / "g" / "a").mkdir()
    elif instead == "other elements":
        other = n5zarr.create_array(root, path="g/a", shape=SHAPE, chunks=CHUNKS, dtype="u4")
        other[...] = 9
    before = contents(root)
    for _ in range(2):
        with pytest.raises(N5Error) as err:
            change(array)
        assert err.value.kind == "changed"
    assert contents(root) == before
    with pytest.raises(N5Error) as err:
        array[...]
    assert err.value.kind == "changed"


def test_a_dataset_that_another_program_removed_can_be_created_anew(tmp_path: Path) -> None:
    root = make(tmp_path / "c.n5")
    store = N5Store(root)
    zarr.open_array(store, path="g/a")
    for overwrite in (False, True):
        shutil.rmtree(root / "g" / "a")
        made = zarr.create_array(
            store, name="g/a", shape=SHAPE, chunks=CHUNKS, dtype="u2", overwrite=overwrite
        )
        made[...] = 5
        assert np.unique(np.asarray(zarr.open_array(store, path="g/a")[...])) == [5]
