"""Shards of Java N5 4 under a plain document: refused by each reader, and kept by each writer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays import kernel
from n5zarr.errors import N5BlockError, N5Error
from tests.shards import COMPRESS, join, write_shards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VALUES = np.arange(5 * 11 * 7, dtype="uint16").reshape(5, 11, 7) + 1000
CHUNK, SHARD = (2, 3, 2), (4, 3, 6)  # N5 order
GONE = {(0, 0, 1), (3, 1, 0), (2, 3, 2), (3, 3, 2)}
FORMS: dict[str, dict[str, Any]] = {
    "end": {},
    "start": {"location": "start"},
    "end, no checksum": {"checksum": False},
    "start, no checksum": {"location": "start", "checksum": False},
    "end, little-endian": {"order": "<"},
    "start, little-endian": {"location": "start", "order": "<"},
    "end, header": {"header": (2, 1, 3)},
    "bare": {"bare": True},
    "bare at start": {"bare": True, "location": "start"},
}
COMPRESSIONS = [c for c in COMPRESS if c != "raw"]
CASES = [
    *(pytest.param("raw", form, id=f"raw, {form}") for form in FORMS),
    *(pytest.param(c, form, id=f"{c}, {form}") for c in COMPRESSIONS for form in ("end", "start")),
]


def expected() -> np.ndarray[Any, Any]:
    """The values, with 0 in the chunks that are missing."""
    values = VALUES.copy()
    for position in GONE:
        box = (slice(p * c, (p + 1) * c) for p, c in zip(position, CHUNK, strict=True))
        values[tuple(box)[::-1]] = 0
    return values


def write(tmp_path: Path, compression: str = "raw", form: str = "end", **options: Any) -> Path:
    root = tmp_path / "java.n5"
    given = {"missing": GONE, **FORMS[form], **options}
    write_shards(root / "a", VALUES, CHUNK, SHARD, compression=compression, **given)
    return root


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.fixture(params=["kernel", "python"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(kernel, "can_do", lambda dataset: False)
        yield request.param


def opened(root: Path, mode: str = "r+", **options: Any) -> Any:
    return n5zarr.open(root, mode=mode, path="a", **options)


def stored(root: Path, **options: Any) -> Any:
    return zarr.open_array(N5Store(root, **options), path="a", mode="r+")


def in_memory(root: Path) -> Any:
    values: Any = {key: zarr.buffer.cpu.Buffer.from_bytes(v) for key, v in files(root).items()}
    return zarr.open_array(N5Store(zarr.storage.MemoryStore(values)), path="a", mode="r+")


def as_level(root: Path) -> Path:
    (root / "g").mkdir()
    shutil.copytree(root / "a", root / "g" / "s0")
    return root


READERS: dict[str, Callable[[Path], Any]] = {
    "open": lambda root: opened(root)[:],
    "a part": lambda root: opened(root)[1, :, 3],
    "F": lambda root: opened(root, axis_order="F")[:],
    "zarr": lambda root: stored(root)[:],
    "n5": lambda root: stored(root, codecs="n5")[:],
    "portable": lambda root: stored(root, codecs="portable")[:],
    "v2": lambda root: stored(root, zarr_format=2)[:],
    "memory": lambda root: in_memory(root)[:],
    "mapping": lambda root: N5Store(root).as_mapping()["a/0.0.0"],
    "key": lambda root: N5Store(root).get_sync(
        "a/c/0/0/0", prototype=zarr.buffer.default_buffer_prototype()
    ),
    "coords": lambda root: zarr.open_array(N5Store(root / "a", coords=True), path="data", mode="r")[:],
    "read_block": lambda root: n5zarr.read_block(root, "a", (1, 0, 0)),
    "convert": lambda root: n5zarr.convert(root, root.with_name("c.zarr")),
    "convert blocks": lambda root: n5zarr.convert(root, root.with_name("c.n5")),
    "convert values": lambda root: n5zarr.convert(root, root.with_name("d.n5"), chunks=5),
    "statistics": lambda root: n5zarr.block_statistics(root, "a"),
    "virtualize": lambda root: n5zarr.virtualize(root, root.with_name("v.json")),
    "compare": lambda root: n5zarr.compare(root, root.with_name("e.n5")),
    "pyramid": lambda root: n5zarr.build_pyramid(as_level(root), "g", levels=1, factors=[2, 2, 2]),
    "rechunk": lambda root: n5zarr.rechunk(root, chunks=3),
}


@pytest.mark.parametrize(("compression", "form"), CASES)
def test_no_reader_takes_a_shard_for_a_block(
    tmp_path: Path, compression: str, form: str, way: str
) -> None:
    root = write(tmp_path, compression, form)
    for name in ("open", "a part", "F", "zarr", "n5", "portable", "v2"):
        with pytest.raises(N5Error, match=r"java\.n5: a: block .* a shard of Java N5 4 with 6") as err:
            READERS[name](root)
        assert (name, err.value.kind) == (name, "shard")


def at(root: Path, box: Any, **options: Any) -> None:
    opened(root, **options)[box] = 7


def remove(root: Path, key: str, **options: Any) -> None:
    zarr.core.sync.sync(N5Store(root, **options).delete(key))


WHOLE, PART = np.s_[:2, :3, :2], np.s_[1, 1:2, 1:2]
WRITERS: dict[str, Callable[[Path], Any]] = {
    "a whole block": lambda root: at(root, WHOLE),
    "a part": lambda root: at(root, PART),
    "many blocks": lambda root: at(root, np.s_[:]),
    "zeros": lambda root: opened(root).__setitem__(WHOLE, 0),
    "durable": lambda root: at(root, WHOLE, durability="durable"),
    "in place": lambda root: at(root, WHOLE, durability="overwrite"),
    "a part in place": lambda root: at(root, PART, durability="overwrite"),
    "F": lambda root: opened(root, axis_order="F").__setitem__(np.s_[:2, :3, :2], 7),
    "a mask": lambda root: opened(root).__setitem__(VALUES == VALUES[0, 0, 1], 7),
    "zarr": lambda root: stored(root).__setitem__(WHOLE, 7),
    "zarr, a part": lambda root: stored(root).__setitem__(PART, 7),
    "zarr, zeros": lambda root: stored(root).__setitem__(WHOLE, 0),
    "n5": lambda root: stored(root, codecs="n5").__setitem__(WHOLE, 7),
    "n5, a part": lambda root: stored(root, codecs="n5").__setitem__(PART, 7),
    "v2": lambda root: stored(root, zarr_format=2).__setitem__(WHOLE, 7),
    "remove a chunk": lambda root: remove(root, "a/c/0/0/0"),
    "write_block": lambda root: n5zarr.write_block(root, "a", (0, 0, 0), VALUES[:2, :3, :2]),
    "memory, a part": lambda root: in_memory(root).__setitem__(PART, 7),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("compression", "form"),
    [("raw", "end"), ("raw", "start"), ("gzip", "end"), ("zstd", "start"), ("blosc", "end"),
     ("bzip2", "end"), ("zlib", "end"), ("raw", "bare"), ("raw", "end, no checksum"),
     ("raw", "end, header")],
)  # fmt: skip
@pytest.mark.parametrize("is_one", [False, True], ids=["6 chunks", "1 chunk"])
def test_no_writer_changes_a_shard(
    tmp_path: Path, name: str, compression: str, form: str, way: str, *, is_one: bool
) -> None:
    root = tmp_path / "java.n5"
    given = FORMS[form] | ({"header": (1, 1, 1)} if "header" in form and is_one else {})
    shard = CHUNK if is_one else SHARD
    write_shards(root / "a", VALUES, CHUNK, shard, compression=compression, **given)
    before = files(root)
    with pytest.raises(N5BlockError, match=r"block 0/0/0: .* a shard of Java N5 4") as err:
        WRITERS[name](root)
    assert err.value.kind == "shard"
    assert before.items() <= files(root).items()  # where there was no file, blocks may be new


@pytest.mark.parametrize("compression", ["raw", "gzip", "zstd", "blosc", "zlib"])
@pytest.mark.parametrize("name", READERS)
def test_each_reader_and_tool_says_what_the_file_is(
    tmp_path: Path, name: str, compression: str
) -> None:
    root = write(tmp_path, compression)
    n5zarr.create_array(
        tmp_path / "e.n5", path="a", shape=VALUES.shape, chunks=CHUNK[::-1], dtype="uint16"
    )[:] = 3
    before = files(root)
    with pytest.raises(N5Error, match=r": block .* with 6 chunks") as err:
        READERS[name](root)
    assert err.value.kind == "shard"
    assert before.items() <= files(root).items()


def test_a_part_of_a_large_block_on_a_server(tmp_path: Path) -> None:
    """Only rows of such a block are read, so that its length is looked at separately."""
    values = np.arange(2 * 1031 * 521, dtype="uint32").reshape(2 * 1031, 521)
    write_shards(tmp_path / "java.n5" / "a", values, (521, 1031), (521, 2062))
    with pytest.raises(N5BlockError, match="a shard of Java N5 4 with 2 chunks"):
        in_memory(tmp_path / "java.n5")[3]
    n5zarr.create_array(tmp_path / "b.n5", path="a", shape=(2062, 521), chunks=(1031, 521),
                        dtype="uint32", compression="raw")[:] = values  # fmt: skip
    np.testing.assert_array_equal(in_memory(tmp_path / "b.n5")[3], values[3])
