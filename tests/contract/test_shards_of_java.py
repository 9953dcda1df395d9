"""Shards of Java N5 4 under a plain document are refused by readers and kept by writers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError, N5Error
from n5zarr.fast import remote_blocks
from n5zarr.storage import files as local_files
from n5zarr.storage.requests import Get, Steps, request_each
from tests.contract.stored import contents
from tests.remote import servers
from tests.shards import COMPRESS, follow_recipe, write_shards

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
    "start, header": {"header": (2, 1, 3), "location": "start"},
    "start, header, no checksum": {"header": (2, 1, 3), "location": "start", "checksum": False},
    "bare": {"bare": True},
    "bare at start": {"bare": True, "location": "start"},
}
COMPRESSIONS = [c for c in COMPRESS if c != "raw"]
CASES = [
    *(pytest.param("raw", form, id=f"raw, {form}") for form in FORMS),
    *(pytest.param(c, form, id=f"{c}, {form}") for c in COMPRESSIONS for form in ("end", "start")),
]


def expected() -> np.ndarray[Any, Any]:
    """Return the values, with 0 in the chunks that are missing."""
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


def opened(root: Path, **options: Any) -> Any:
    return n5zarr.open(root, mode="r+", path="a", **options)


def stored(root: Path, **options: Any) -> Any:
    return zarr.open_array(N5Store(root, **options), path="a", mode="r+")


def in_memory(root: Path) -> Any:
    values: Any = {key: zarr.buffer.cpu.Buffer.from_bytes(v) for key, v in contents(root).items()}
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
        "a/c/0/0/0", prototype=zarr.buffer.default_buffer_prototype()),
    "coords": lambda root: (
        zarr.open_array(N5Store(root / "a", coords=True), path="data", mode="r")[:]),
    "read_block": lambda root: n5zarr.read_block(root, "a", (1, 0, 0)),
    "convert": lambda root: n5zarr.convert(root, root.with_name("c.zarr")),
    "convert blocks": lambda root: n5zarr.convert(root, root.with_name("c.n5")),
    "convert values": lambda root: n5zarr.convert(root, root.with_name("d.n5"), chunks=5),
    "statistics": lambda root: n5zarr.block_statistics(root, "a"),
    "virtualize": lambda root: n5zarr.virtualize(root, root.with_name("v.json")),
    "compare": lambda root: n5zarr.compare(root, root.with_name("e.n5")),
    "pyramid": lambda root: n5zarr.build_pyramid(as_level(root), "g", levels=1, factors=[2, 2, 2]),
    "rechunk": lambda root: n5zarr.rechunk(root, chunks=3),
}  # fmt: skip


@pytest.mark.each_of(3)
@pytest.mark.parametrize(("compression", "form"), CASES)
def test_no_reader_takes_a_shard_for_a_block(
    tmp_path: Path, compression: str, form: str, way: str
) -> None:
    root = write(tmp_path, compression, form)
    for name in ("open", "a part", "F", "zarr", "n5", "portable", "v2"):
        said = r"java\.n5: a: block .* a shard of Java N5 4 with 6"
        with pytest.raises(N5Error, match=said) as err:
            READERS[name](root)
        assert (name, err.value.kind) == (name, "shard")


def at(root: Path, box: Any, **options: Any) -> None:
    opened(root, **options)[box] = 7


def remove(root: Path, key: str, **options: Any) -> None:
    N5Store(root, **options).delete_sync(key)


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
    "a mask": lambda root: opened(root).__setitem__(VALUES[0, 0, 1] == VALUES, 7),
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


@pytest.mark.each_of(23)
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("compression", "form"),
    [("raw", "end"), ("raw", "start"), ("gzip", "end"), ("zstd", "start"), ("blosc", "end"),
     ("bzip2", "end"), ("zlib", "end"), ("raw", "bare"), ("raw", "end, no checksum"),
     ("raw", "end, header"), ("gzip", "start, header"), ("zstd", "start, header, no checksum")],
)  # fmt: skip
@pytest.mark.parametrize("is_one", [False, True], ids=["6 chunks", "1 chunk"])
def test_no_writer_changes_a_shard(
    tmp_path: Path, name: str, compression: str, form: str, way: str, *, is_one: bool
) -> None:
    root = tmp_path / "java.n5"
    given = FORMS[form] | ({"header": (1, 1, 1)} if "header" in form and is_one else {})
    shard = CHUNK if is_one else SHARD
    write_shards(root / "a", VALUES, CHUNK, shard, compression=compression, **given)
    before = contents(root)
    with pytest.raises(N5BlockError, match=r"block \d/\d/\d: .* a shard of Java N5 4") as err:
        WRITERS[name](root)
    assert err.value.kind == "shard"
    assert before.items() <= contents(root).items()  # where there was no file, blocks may be new


@pytest.mark.each_of(3)
@pytest.mark.parametrize("compression", ["raw", "gzip", "zstd", "blosc", "zlib"])
@pytest.mark.parametrize("name", READERS)
def test_each_reader_and_tool_says_what_the_file_is(
    tmp_path: Path, name: str, compression: str
) -> None:
    root = write(tmp_path, compression)
    n5zarr.create_array(tmp_path / "e.n5", path="a", data=VALUES * 0 + 3, chunks=CHUNK[::-1])
    before = contents(root)
    with pytest.raises(N5Error, match=r": block .* with 6 chunks") as err:
        READERS[name](root)
    assert err.value.kind == "shard"
    assert before.items() <= contents(root).items()


@pytest.mark.each_of(7)
@pytest.mark.parametrize("form", ["end", "start", "bare", "bare at start", "end, no checksum"])
def test_a_shard_that_is_longer_than_a_block_may_be_is_named(
    tmp_path: Path, form: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file is looked at before it is read whole: here one of a few bytes is large."""
    assert way in ("kernel", "python")
    monkeypatch.setattr(local_files, "_LARGE", 30)
    root = tmp_path / "java.n5"
    values = np.ones((2, 13, 5 * 4000), "uint8")  # too long for the elements of one chunk
    write_shards(root / "a", values, (5, 13, 2), (5 * 4000, 13, 2), **FORMS[form])
    before = contents(root)
    for read in (
        lambda: opened(root)[...],
        lambda: zarr.open_array(N5Store(root), path="a", mode="r")[...],
        lambda: n5zarr.read_block(root, "a", (0, 0, 0)),
        lambda: n5zarr.convert(root, tmp_path / "copy.zarr", overwrite=True),
    ):
        with pytest.raises(N5BlockError, match="got a shard of Java N5 4 with 4000 chunks") as err:
            read()
        assert err.value.kind == "shard"
    for deep in (False, True):
        found = n5zarr.validate(root, deep=deep).findings
        assert {finding.kind for finding in found} == {"shard", "shard-size"}
    assert contents(root) == before


@pytest.mark.parametrize("backend", [None, "fsspec"])
def test_servers_that_know_no_ranges(tmp_path: Path, backend: Any) -> None:
    """The server of Python sends whole files, whatever part it is asked for."""
    root = write(tmp_path)
    with servers.static(root.parent) as url:
        with pytest.raises(N5BlockError, match="a shard of Java N5 4") as err:
            n5zarr.open_array(f"{url}/java.n5", path="a", backend=backend)[...]
        assert err.value.kind == "shard"


def test_a_part_of_a_large_block_on_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a shard on a server is refused, and a part of a large raw block is read."""
    values = np.arange(2 * 1031 * 521, dtype="uint32").reshape(2 * 1031, 521)
    write_shards(tmp_path / "java.n5" / "a", values, (521, 1031), (521, 2062))
    with pytest.raises(N5BlockError, match="a shard of Java N5 4 with 2 chunks"):
        in_memory(tmp_path / "java.n5")[3]
    n5zarr.create_array(tmp_path / "b.n5", path="a", shape=(2062, 521), chunks=(1031, 521),
                        dtype="uint32", compression="raw")[:] = values  # fmt: skip
    np.testing.assert_array_equal(in_memory(tmp_path / "b.n5")[3], values[3])

    def failing(requests: Any) -> Steps[Any]:
        if isinstance(requests[0], Get):
            raise OSError("the part is not there")
        return (yield from request_each(requests))  # for the header

    monkeypatch.setattr(remote_blocks, "request_each", failing)  # then all is read
    np.testing.assert_array_equal(in_memory(tmp_path / "b.n5")[3], values[3])


START = {'"index_location": "end"': '"index_location": "start"'}
LITTLE = {'"endian": "big"': '"endian": "little"'}
NO_CHECKSUM = {'        {"name": "crc32c"},\n': ""}
BARE = {
    'document["codecs"]': '[{"name": "transpose", "configuration": {"order": x_fastest[:-1]}}, '
    '{"name": "bytes", "configuration": {"endian": "big"}}]'
}
CHANGES: dict[str, dict[str, str]] = {
    "end": {}, "start": START, "end, no checksum": NO_CHECKSUM,
    "start, no checksum": START | NO_CHECKSUM, "end, little-endian": LITTLE,
    "start, little-endian": START | LITTLE, "end, header": {}, "bare": BARE,
    "bare at start": BARE | START,
}  # fmt: skip
READ = [
    *(pytest.param("raw", form, id=f"raw, {form}") for form in CHANGES),
    *(pytest.param(c, form, id=f"{c}, {form}") for c in COMPRESSIONS for form in ("end", "start")),
]


def by_recipe(root: Path, changes: dict[str, str]) -> Any:
    return follow_recipe(root / "a", SHARD[::-1], root.with_name("plain.n5"), changes)


@pytest.mark.each_of(4)
@pytest.mark.parametrize(("compression", "form"), READ)
def test_the_recipe_gives_the_values(tmp_path: Path, compression: str, form: str) -> None:
    root = write(tmp_path, compression, form)
    array = by_recipe(root, CHANGES[form])
    np.testing.assert_array_equal(array[...].T, expected())
    np.testing.assert_array_equal(array[2:5, 4:9, 3], expected()[3, 4:9, 2:5].T)
    out = tmp_path / "plain.n5"
    np.testing.assert_array_equal(opened(out)[...], expected())
    assert opened(out).chunks == CHUNK[::-1]
    assert n5zarr.validate(out).by_severity["error"] == 0


@pytest.mark.parametrize("compression", ["gzip", "zstd", "blosc", "bzip2", "xz"])
def test_the_document_may_hide_the_compression(tmp_path: Path, compression: str) -> None:
    root = write(tmp_path, compression, document="raw")
    with pytest.raises(N5BlockError, match="a shard of Java N5 4 with 6 chunks"):
        opened(root)[...]
    with pytest.raises(N5BlockError, match=f"^a block in a shard: .* got a {compression} stream"):
        by_recipe(root, {})
    shutil.rmtree(tmp_path / "plain.n5")
    block = {"compression": {"type": compression}, "axis_order": "F"}
    told = {'document["codecs"]': repr([{"name": "n5zarr.block", "configuration": block}])}
    np.testing.assert_array_equal(by_recipe(root, told)[...].T, expected())


def test_the_recipe_keeps_attributes(tmp_path: Path) -> None:
    root = write(tmp_path, "gzip")
    n5zarr.set_attribute(root, "a", "resolution", [4, 4, 40])
    by_recipe(root, {})
    assert n5zarr.get_attribute(tmp_path / "plain.n5", "a", "resolution") == [4, 4, 40]


def test_the_recipe_reads_only_the_blocks_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path)
    array = by_recipe(root, {})
    asked: list[Any] = []
    get = zarr.storage.LocalStore.get

    async def noted(self: Any, key: str, *rest: Any, **options: Any) -> Any:
        found = await get(self, key, *rest, **options)
        asked.append((key, 0 if found is None else len(found)))
        return found

    monkeypatch.setattr(zarr.storage.LocalStore, "get", noted)
    monkeypatch.setattr(zarr.storage.LocalStore, "_supports_sync_io", False, raising=False)
    assert array[2, 1, 1] == VALUES[1, 1, 2]
    block = 16 + 2 * CHUNK[0] * CHUNK[1] * CHUNK[2]
    assert sorted(asked) == [("a/0/0/0", block), ("a/0/0/0", 6 * 16 + 4)]


def test_a_block_among_shards_is_an_error(tmp_path: Path) -> None:
    root = write(tmp_path)
    n5zarr.create_array(root, path="b", data=VALUES, chunks=CHUNK[::-1])
    shutil.copy(root / "b/1/2/0", root / "a/1/2/0")
    with pytest.raises(ValueError, match="shard is too short to hold its index"):
        by_recipe(root, {})


def test_validate_names_the_size(tmp_path: Path) -> None:
    root = write(tmp_path, "gzip", "start")
    found = n5zarr.validate(root)
    assert not found.ok
    assert found.by_kind == {"shard": 8, "shard-size": 1}
    (size,) = (each for each in found.findings if each.kind == "shard-size")
    assert size.severity == "error"
    assert "shards of 6,3,4 elements (z, y, x), 3,1,2 chunks of 2,3,2 elements" in size.message
    assert 'the recipe "Read shards of Java N5 4"' in size.message
    assert all("index at the start" in f.message for f in found.findings if f.kind == "shard")
    before = contents(root)
    n5zarr.quarantine_blocks(root, found.findings)
    assert contents(root) == before


def test_validate_lists_all_sizes_that_fit(tmp_path: Path) -> None:
    values = np.ones((8, 10), "uint8")
    missing = {(x, y) for x in range(5) for y in range(4)} - {(0, 0)}
    write_shards(tmp_path / "a", values, (2, 2), (4, 4), missing=missing)
    (size,) = (f for f in n5zarr.validate(tmp_path).findings if f.kind == "shard-size")
    assert "these sizes of shards (z, y, x) fit the files: 8,2 or 4,4 or 2,8" in size.message


def test_validate_names_a_shard_with_one_chunk(tmp_path: Path) -> None:
    write_shards(tmp_path / "a", VALUES, CHUNK, CHUNK)
    found = n5zarr.validate(tmp_path)
    assert {(each.kind, each.severity) for each in found.findings} == {("shard", "warning")}
    np.testing.assert_array_equal(opened(tmp_path)[...], VALUES)


@pytest.mark.parametrize("is_one", [False, True], ids=["6 chunks", "1 chunk"])
def test_tools_leave_shards_as_they_are(tmp_path: Path, *, is_one: bool) -> None:
    values = VALUES.copy()
    values[:2, :3, :2] = 0
    write_shards(tmp_path / "a", values, CHUNK, CHUNK if is_one else SHARD, location="end")
    before = contents(tmp_path)
    assert len(n5zarr.remove_empty_blocks(tmp_path).problems) == len(before) - 2
    repaired = n5zarr.repair_edges(tmp_path, to="pad")
    assert repaired.n_rewritten == 0
    assert contents(tmp_path) == before
    array: Any = n5zarr.open(tmp_path, path="a", mode="r+")
    array.resize((7, 13, 9))
    array.resize(VALUES.shape)
    del before["a/attributes.json"]
    assert before.items() <= contents(tmp_path).items()
