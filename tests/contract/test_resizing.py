"""During a resize each block is full-size or ends with the dataset, for every reader.

Blocks are decoded here by the specification alone, and as strictly as z5py does: a block of another
size than these two is an error. `tests/conformance/test_resized.py` asks the other programs.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store, encode_block
from n5zarr.container import resizing
from n5zarr.errors import N5Warning
from n5zarr.fast import kernel
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.requests import Ends, Update

SHAPE, BLOCK = (5, 7, 11), (2, 3, 4)  # C order: each axis ends with a truncated block
GZIP: dict[str, Any] = {"type": "gzip", "level": 6, "useZlib": False}
GROWN = {
    "one axis": (5, 7, 12), "into the next block": (5, 9, 11), "far": (11, 7, 11),
    "all axes": (6, 8, 13), "one grows, one shrinks": (7, 5, 11), "shrunk": (5, 7, 9),
    "shrunk by a block": (3, 7, 11), "shrunk in all axes": (1, 2, 3),
}  # fmt: skip


def source() -> np.ndarray:
    return np.random.default_rng(7).integers(1, 60_000, SHAPE, "u2")


def make(path: Path) -> Any:
    return n5zarr.create_array(path, path="d", data=source(), chunks=BLOCK, compression=GZIP)


def resized(array: np.ndarray, shape: tuple[int, ...], fill: int = 0) -> np.ndarray:
    """Return the part that both shapes have, and the fill value elsewhere."""
    common = tuple(slice(min(pair)) for pair in zip(array.shape, shape, strict=True))
    made = np.full(shape, fill, array.dtype)
    made[common] = array[common]
    return made


def decoded(folder: Path) -> np.ndarray:
    """Decode a dataset of gzip blocks; refuse blocks of sizes that not every reader expects."""
    document = json.loads((folder / "attributes.json").read_text())
    dimensions, full = document["dimensions"], document["blockSize"]
    dtype = np.dtype(document["dataType"]).newbyteorder(">")
    out = np.zeros(dimensions[::-1], document["dataType"])
    for position in product(*(range(-(-d // b)) for d, b in zip(dimensions, full, strict=True))):
        file = folder.joinpath(*map(str, position))
        if not file.exists():
            continue
        data, ndim = file.read_bytes(), len(full)
        mode, n, *sizes = struct.unpack_from(f">HH{ndim}I", data)
        corner = [p * b for p, b in zip(position, full, strict=True)]
        extent = [min(b, d - c) for b, d, c in zip(full, dimensions, corner, strict=True)]
        assert (mode, n) == (0, ndim)
        assert sizes in (full, extent), (position, sizes, extent)
        block = np.frombuffer(zlib.decompress(data[4 + 4 * ndim :], wbits=31), dtype)
        inside = tuple(slice(e) for e in extent[::-1])
        box = tuple(slice(c, c + e) for c, e in zip(corner[::-1], extent[::-1], strict=True))
        out[box] = block.reshape(sizes[::-1])[inside]
    return out


def by_zarr(zarr_format: Any) -> Callable[[Path, tuple[int, ...]], None]:
    def resize(path: Path, shape: tuple[int, ...]) -> None:
        store = N5Store(path, zarr_format=zarr_format)
        zarr.open_array(store, path="d", mode="r+").resize(shape)

    return resize


def by_n5zarr(path: Path, shape: tuple[int, ...]) -> None:
    n5zarr.open_array(path, path="d", mode="r+").resize(shape)


WAYS = {"n5zarr.open": by_n5zarr, "zarr, v3": by_zarr(3), "zarr, v2": by_zarr(2)}


@pytest.mark.each_of(5)
@pytest.mark.parametrize("shape", GROWN.values(), ids=GROWN)
@pytest.mark.parametrize("way", WAYS)
def test_elements_are_kept_by_resizing(tmp_path: Path, way: str, shape: tuple[int, ...]) -> None:
    make(tmp_path / "c.n5")
    WAYS[way](tmp_path / "c.n5", shape)
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), resized(source(), shape))


@pytest.mark.parametrize("axis", range(3))
def test_appended_elements_are_beside_the_others(tmp_path: Path, axis: int) -> None:
    array, added = make(tmp_path / "c.n5"), np.moveaxis(source(), axis, 0)[:3]
    array.append(np.moveaxis(added, 0, axis), axis=axis)
    expected = np.concatenate([source(), np.moveaxis(added, 0, axis)], axis)
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), expected)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 6, 11), 0), ((2, 7, 12), 0), ((2, 7), 0), ((5, 7, 1), 1), ((), 0)]
)
def test_what_does_not_fit_is_not_appended(
    tmp_path: Path, zarr_format: Any, shape: tuple[int, ...], axis: int
) -> None:
    make(tmp_path / "c.n5")
    store = N5Store(tmp_path / "c.n5", zarr_format=zarr_format)
    array: Any = n5zarr.open_array(store, path="d", mode="r+")
    before = (tmp_path / "c.n5/d/attributes.json").read_bytes()
    with pytest.raises(ValueError, match="is not compatible"):
        array.append(np.zeros(shape, "u2"), axis=axis)
    assert (tmp_path / "c.n5/d/attributes.json").read_bytes() == before
    array.append(np.zeros((0, *SHAPE[1:]), "u2"))
    assert array.shape == SHAPE
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), source())
    for wrong in (SHAPE[:2], (*SHAPE, 1), (-1, 7, 11), 5):
        with pytest.raises(ValueError, match=r"number of dimensions|non-negative"):
            array.resize(wrong)


@pytest.mark.parametrize("axis", [-1, 3])
def test_zarr_would_replace_all_elements(tmp_path: Path, axis: int) -> None:
    array = make(tmp_path / "c.n5")
    with pytest.raises(IndexError, match=f"axis: expected 0 to 2, got {axis}"):
        array.append(source() + 1, axis=axis)
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), source())


@pytest.fixture(params=["N5Array", "DescribedArray"])
def array(request: Any, tmp_path: Path) -> Any:
    """Return an array that the kernel writes, and one that zarr writes."""
    make(tmp_path / "c.n5")
    path = tmp_path / "c.n5"
    place = path if request.param == "N5Array" else N5Store(path, zarr_format=2)
    found = n5zarr.open_array(place, path="d", mode="r+")
    assert type(found).__name__ == request.param
    return found


def test_an_array_is_appended_to_itself(array: Any, tmp_path: Path) -> None:
    array.append(array, axis=1)
    expected = np.concatenate([source(), source()], 1)
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), expected)


def test_what_is_lost_is_said_once_and_here(array: Any) -> None:
    too_large = np.full((1, *SHAPE[1:]), 2**16)

    def change() -> None:
        array.append(too_large)
        array[2:3] = too_large
        array[[0, 1], [0, 1], [1, 1]] = too_large.ravel()[:2]

    with pytest.warns(N5Warning, match="wrap") as told:
        change()
    assert [each.filename for each in told] == [__file__] * 3


def test_an_interruption_leaves_the_shape_that_is_stored(
    array: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes when the document has been replaced, before the array knows."""
    replace = os.replace

    def interrupted(source: Any, target: Any) -> None:
        replace(source, target)
        if str(target).endswith("attributes.json"):
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        array.append(source())
    assert array.shape == n5zarr.open_array(tmp_path / "c.n5/d").shape == (10, 7, 11)
    array.resize(SHAPE)
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), source())


def test_elements_beyond_a_truncated_block_are_the_fill_value(tmp_path: Path) -> None:
    array = zarr.create_array(
        N5Store(tmp_path / "c.n5"), name="d", shape=SHAPE, chunks=BLOCK, dtype="u2", fill_value=9,
        compressors=zarr.codecs.GzipCodec(level=6),
    )  # fmt: skip
    array[...] = source()
    array.resize((5, 7, 12))
    expected = resized(source(), (5, 7, 12), fill=9)
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), expected)
    np.testing.assert_array_equal(np.asarray(n5zarr.open_array(tmp_path / "c.n5/d")), expected)


def test_parts_of_elements_stay_together() -> None:
    store, values = MemoryStore(), np.arange(1, 12) * (1 + 2j)
    array = zarr.create_array(N5Store(store), name="d", shape=(11,), chunks=(4,), dtype="c16")
    array[:] = values
    array.resize((14,))
    again = zarr.open_array(N5Store(store), path="d", mode="r")
    np.testing.assert_array_equal(np.asarray(again), [*values, 0, 0, 0])
    block = n5zarr.read_block(store, "d", (0, 2))
    assert block is not None
    assert block.header.block_shape == (2, 4)


def test_blocks_that_no_new_end_cuts_are_not_touched(tmp_path: Path) -> None:
    array = make(tmp_path / "c.n5")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "c.n5/d").rglob("*/*/*")}
    array.resize((5, 7, 13))  # only the last blocks of x end elsewhere
    changed = {
        f.relative_to(tmp_path / "c.n5/d") for f in before if f.stat().st_mtime_ns > before[f]
    }
    assert {str(f) for f in changed} == {f"2/{y}/{z}" for y in range(3) for z in range(3)}


# ---------------------------------------------------------------------- crashes, other writers


class StopError(Exception):
    """An error that stands for the end of the process."""


class Stopping(LocalFiles):
    """Local files that raise an error after some writes."""

    n_left = 0

    def _write(self, request: Any, warn: Any) -> object:
        if self.n_left == 0:
            raise StopError
        self.n_left -= 1
        return super()._write(request, warn)


def stopping(path: Path, n_left: int) -> N5Store:
    store = N5Store(path, zarr_format=3)
    storage = store.storage = Stopping(path)
    storage.n_left = n_left
    return store


@pytest.mark.each_of(2)
@pytest.mark.parametrize("shape", [(6, 9, 13), (3, 5, 12)], ids=["grown", "one shrunk"])
def test_a_crash_at_any_write_leaves_the_old_array_or_the_new_one(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    outcomes = []
    for n in range(40):
        path = tmp_path / f"{n}.n5"
        make(path)
        array = zarr.open_array(stopping(path, n), path="d", mode="r+")
        try:
            zarr.Array(array.async_array).resize(shape)
            is_done = True
        except StopError:
            is_done = False
        found = decoded(path / "d")
        if found.shape == shape:
            np.testing.assert_array_equal(found, resized(source(), shape))
        else:  # zarr removes first what will be outside
            kept = tuple(slice(min(pair)) for pair in zip(SHAPE, shape, strict=True))
            np.testing.assert_array_equal(found[kept], source()[kept])
        outcomes.append((found.shape, is_done))
    assert outcomes[0] == (SHAPE, False)
    assert outcomes[-1] == (shape, True)


def test_blocks_that_others_write_during_a_resize_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "c.n5")
    file, expected = tmp_path / "c.n5/d/2/0/0", resized(source(), (5, 7, 12))
    answer = LocalFiles.answer

    def write(value: int) -> None:
        """Write a block, truncated to the old extent."""
        block = np.full((2, 3, 3), value, "u2")
        file.write_bytes(encode_block(block, compression=GZIP))
        expected[:2, :3, 8:11] = value

    def beside(self: LocalFiles, request: Any, warn: Any) -> object:
        is_document = isinstance(request, Update) and request.key.endswith("attributes.json")
        if isinstance(request, Update) and request.key == "d/2/0/0":
            write(2)  # between its header and its update
        answered = None if is_document else answer(self, request, warn)
        if is_document:
            write(3)  # between the last block and the document
            answered = answer(self, request, warn)
        return answered

    monkeypatch.setattr(LocalFiles, "answer", beside)
    n5zarr.open_array(tmp_path / "c.n5", path="d", mode="r+").resize((5, 7, 12))
    monkeypatch.undo()
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5/d"), expected)


@pytest.mark.parametrize("is_fast", [True, False], ids=["kernel", "Python"])
def test_what_others_write_beyond_the_known_shape_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_fast: bool
) -> None:
    array, expected = make(tmp_path / "c.n5"), np.full((6, 8, 12), 2, "u2")
    can_do = kernel.can_do

    def grow(dataset: Any) -> bool:
        """Resize and write after the first writer has read the shape."""
        monkeypatch.undo()
        other = n5zarr.open_array(tmp_path / "c.n5", path="d", mode="r+")
        other.resize(expected.shape)
        other[...] = 2
        return is_fast and can_do(dataset)

    monkeypatch.setattr(kernel, "can_do", grow)
    array[...] = expected[:5, :7, :11] = 3
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5" / "d"), expected)


def test_damaged_blocks_stay_and_are_reported_by_reading(tmp_path: Path) -> None:
    array = make(tmp_path / "c.n5")
    file = tmp_path / "c.n5/d/2/0/0"
    file.write_bytes(damaged := file.read_bytes()[:-5])
    array.resize((5, 7, 12))
    assert file.read_bytes() == damaged
    with pytest.raises(n5zarr.errors.N5BlockError, match="2/0/0"):
        array[...]


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("limit", ["MOST_BLOCKS", "MOST_BYTES"])
def test_many_blocks_stay_and_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    array = make(tmp_path / "c.n5")  # 9 blocks end with x; a block has 48 bytes
    monkeypatch.setattr(resizing, limit, {"MOST_BLOCKS": 8, "MOST_BYTES": 9 * 48 - 1}[limit])
    files = {file: file.read_bytes() for file in (tmp_path / "c.n5/d").rglob("*/*/*")}
    with pytest.warns(N5Warning, match="more than 8 blocks at the old end"):
        array.resize((5, 7, 12))
    assert {file: file.read_bytes() for file in files} == files
    np.testing.assert_array_equal(
        np.asarray(n5zarr.open_array(tmp_path / "c.n5/d")), resized(source(), (5, 7, 12))
    )
    array.resize(SHAPE)
    n5zarr.repair_edges(tmp_path / "c.n5", "d", to="pad")  # as the warning says
    array.resize((5, 7, 12))
    np.testing.assert_array_equal(decoded(tmp_path / "c.n5/d"), resized(source(), (5, 7, 12)))


def test_a_sparse_array_costs_what_it_holds(tmp_path: Path, asked: list[Any]) -> None:
    n = 2**40 + 1
    array = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(n, 5), chunks=(2, 3), dtype="u1", compression=GZIP
    )
    array[7, 4] = 3
    asked.clear()
    array.resize((n + 6, 6))
    assert [r.key for r in asked if isinstance(r, Ends)] == ["d/1/3"] * 2
    block = n5zarr.read_block(tmp_path / "c.n5", "d", (1, 3))
    assert block is not None
    assert block.header.block_shape == (3, 2)
    assert math.prod(block.header.block_shape) == len(block.data)
    assert array[7, 4] == 3


def test_filled_elements_stay_when_another_program_drops_the_fill_value(tmp_path: Path) -> None:
    array: Any = zarr.create_array(
        N5Store(tmp_path / "a.n5"), name="d", shape=(3, 5), chunks=(2, 3), dtype="i2", fill_value=1
    )
    array[:2, 3:] = 7
    array.resize((3, 11))
    document = tmp_path / "a.n5" / "d" / "attributes.json"
    members = json.loads(document.read_text())
    assert members.pop("zarr")["fill_value"] == 1
    document.write_text(json.dumps(members))
    expected = np.zeros((3, 11), "i2")
    expected[:2, 3:6] = 7, 7, 1
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "a.n5", path="d"), expected)


def test_blocks_of_jpeg_stay_as_no_program_writes_them(tmp_path: Path) -> None:
    """Only the document changes."""
    values = np.arange(7 * 5, dtype="u1").reshape(7, 5)
    n5zarr.create_array(tmp_path / "c.n5", path="d", data=values, chunks=(3, 4))
    file = tmp_path / "c.n5/d/attributes.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"compression": {"type": "jpeg"}}))
    blocks = {p: p.read_bytes() for p in (tmp_path / "c.n5/d").rglob("*") if p.name.isdigit()
              and p.is_file()}  # fmt: skip
    store = N5Store(tmp_path / "c.n5", codecs="zarr")
    zarr.open_array(store, path="d", mode="r+").resize((7, 11))
    assert json.loads(file.read_text())["dimensions"] == [11, 7]
    assert {p: p.read_bytes() for p in blocks} == blocks


def test_a_block_without_a_header_stays(tmp_path: Path) -> None:
    """A file too short for a header is no block to fill up."""
    array = make(tmp_path / "c.n5")
    file = tmp_path / "c.n5/d/2/0/0"
    file.write_bytes(b"\0\0\0")
    array.resize((5, 7, 12))
    assert file.read_bytes() == b"\0\0\0"
