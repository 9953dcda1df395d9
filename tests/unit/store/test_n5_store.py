"""Each method of a store reaches the container, and each option its place."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.memory import MemoryFileSystem
from zarr.abc.store import RangeByteRequest
from zarr.buffer import cpu
from zarr.storage import FsspecStore, LocalStore, MemoryStore

from n5zarr import CacheOptions, N5FSStore, N5Store
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.store.shown_store import check_stored
from tests.refusals import refused
from tests.unit.store.made import EDGE, FULL, SIMPLE, block, document, memory, on_disk, values_of
from tests.unit.store.test_blocks import Shown

run: Any = asyncio.run
KEY = "g/a/c/1/2"  # of the block 2/1


def buffer(data: bytes) -> cpu.Buffer:
    return cpu.Buffer.from_bytes(data)


def text(value: Any) -> bytes:
    assert value is not None
    return bytes(value.to_bytes())


async def listing(keys: Any) -> list[str]:
    return [key async for key in keys]


@pytest.fixture(params=[2, 3])
def store(request: pytest.FixtureRequest) -> N5Store:
    return N5Store(memory(), zarr_format=request.param)


def chunk_key(store: N5Store) -> str:
    return KEY if store.zarr_format == 3 else "g/a/1.2"


def test_a_key_is_read_with_and_without_a_loop(store: N5Store) -> None:
    key = chunk_key(store)
    whole = text(run(store.get(key)))
    values = [int.from_bytes(whole[i : i + 2], "big") for i in range(0, 12, 2)]
    assert values == [7, 0, 0, 8, 0, 0]
    assert text(run(store.get(key, cpu.buffer_prototype))) == whole
    part = RangeByteRequest(1, 4)
    assert text(run(store.get(key, None, part))) == whole[1:4]
    assert text(store.get_sync(key)) == whole
    assert text(store.get_sync(key, byte_range=part)) == whole[1:4]
    found = run(
        store.get_partial_values(cpu.buffer_prototype, [(key, part), (key, None), ("x", None)])
    )
    assert [each and text(each) for each in found] == [whole[1:4], whole, None]
    assert [run(store.exists(k)) for k in (key, "x", "g/a")] == [True, False, False]
    assert run(store.get("x")) is None
    assert store.get_sync("x") is None


class OtherBuffer(cpu.Buffer):
    """A buffer of a prototype that is not the default."""


def test_a_value_has_the_type_of_the_prototype() -> None:
    prototype = cpu.buffer_prototype._replace(buffer=OtherBuffer)
    store = N5Store(memory())
    assert type(run(store.get(KEY, prototype))) is OtherBuffer
    assert type(store.get_sync(KEY, prototype=prototype)) is OtherBuffer
    assert type(run(store.get(KEY))) is cpu.Buffer


@pytest.mark.parametrize("way", ["set", "set_sync", "set_if_not_exists"])
def test_a_chunk_is_written_as_a_block(way: str, store: N5Store) -> None:
    key, full = chunk_key(store), block(FULL)[12:]
    done = getattr(store, way)(key, buffer(full))
    if done is not None:
        run(done)
    kept = values_of(store.store)["g/a/2/1"]
    assert kept == block(EDGE if way == "set_if_not_exists" else [[1], [4]])  # ends with the array
    new = key.replace("2", "0").replace("1", "0")
    del store.store._store_dict["g/a/0/0"]  # type: ignore[attr-defined]
    done = getattr(store, way)(new, buffer(full))
    if done is not None:
        run(done)
    assert values_of(store.store)["g/a/0/0"] == block(FULL)


def test_what_zarr_does_not_write_is_refused(store: N5Store) -> None:
    with pytest.raises(N5UnrepresentableError, match="expected a Zarr"):
        run(store.set("other.txt", buffer(b"1")))
    with pytest.raises(TypeError, match="must be a Buffer"):
        store.set_sync(chunk_key(store), b"1")  # type: ignore[arg-type]


def test_keys_are_removed(store: N5Store) -> None:
    run(store.delete(chunk_key(store)))
    assert sorted(values_of(store.store)) == sorted(SIMPLE.keys() - {"g/a/2/1"})
    other = chunk_key(store).replace("2", "0").replace("1", "0")
    store.delete_sync(other)
    assert "g/a/0/0" not in values_of(store.store)
    run(store.delete_dir("/g//a/"))
    assert sorted(values_of(store.store)) == ["attributes.json", "h/attributes.json"]
    run(store.clear())
    assert values_of(store.store) == {}
    with pytest.raises(N5Error, match="path"):
        run(store.delete_dir("../a"))


def test_keys_are_listed() -> None:
    store = N5Store(memory(), zarr_format=3)
    chunks = ["g/a/c/0/0", "g/a/c/1/2"]
    documents = ["g/a/zarr.json", "g/zarr.json", "h/zarr.json", "zarr.json"]
    assert sorted(run(listing(store.list()))) == sorted(chunks + documents)
    assert sorted(run(listing(store.list_prefix("/g//a/")))) == sorted([*chunks, documents[0]])
    assert run(listing(store.list_dir("/g/"))) == ["a", "zarr.json"]
    assert run(listing(store.list_dir(""))) == ["g", "h", "zarr.json"]
    assert [run(store.is_empty(path)) for path in ("", "/g/", "x")] == [False, False, True]


def test_sizes_are_those_of_n5(tmp_path: Path) -> None:
    size = sum(len(value) for key, value in SIMPLE.items() if key.startswith("g/"))
    for where in (memory(), on_disk(tmp_path / "c.n5")):
        assert run(N5Store(where).getsize_prefix("/g//")) == size


def test_a_read_only_store_writes_nothing() -> None:
    store = N5Store(memory(), read_only=True)
    value = buffer(b"1")
    for act in (
        lambda: run(store.set(KEY, value)), lambda: store.set_sync(KEY, value),
        lambda: run(store.set_if_not_exists(KEY, value)), lambda: run(store.delete(KEY)),
        lambda: store.delete_sync(KEY), lambda: run(store.delete_dir("g")),
        lambda: run(store.clear()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{store}: .*read-only"):
            act()
    assert values_of(store.store) == SIMPLE
    assert store.read_only
    assert N5Store(memory(), mode="r").read_only
    assert N5Store(memory(read_only=True)).read_only
    assert not any(N5Store(memory(), mode=mode).read_only for mode in WRITING)


WRITING: Any = ("r+", "a", "w", "w-", None)
OPTIONS: dict[str, Any] = {
    "codecs": "n5", "zarr_format": 3, "axis_order": "F", "durability": "durable",
    "read_only": True,
}  # fmt: skip


def test_options_are_shown_and_kept(tmp_path: Path) -> None:
    on_disk(tmp_path / "c.n5")
    store = N5Store(tmp_path / "c.n5", **OPTIONS)
    pickled = pickle.loads(pickle.dumps(store))
    for each in (store, store.reopened(), store.with_read_only(True), pickled):
        assert {name: getattr(each, name) for name in OPTIONS} == OPTIONS
        assert (each, each.root, each.chunk_grid) == (store, tmp_path / "c.n5", "regular")
    assert not store.with_read_only(False).read_only
    shown = "codecs='n5', zarr_format=3, axis_order='F', durability='durable', read_only=True"
    assert repr(store) == f"N5Store({str(tmp_path / 'c.n5')!r}, {shown})"
    assert str(store) == str(tmp_path / "c.n5")
    assert repr(N5Store(tmp_path / "c.n5")) == f"N5Store({str(tmp_path / 'c.n5')!r})"
    info = store.info
    assert {name: info[name] for name in OPTIONS} == OPTIONS
    assert (info["store_type"], info["n5"], info["coords"]) == ("LocalStore", "4.0.0", False)
    showing = store.showing(None)
    assert (showing.zarr_format, showing.codecs, showing.read_only) == (None, "n5", True)
    assert store.showing(3) is store


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"codec": "n5"}, TypeError, r"N5Store\(\) got an unexpected .*'codec'; did you mean 'cod"),
        ({"mode": "x"}, N5UnrepresentableError, "mode: expected one of None, 'r', .*, got 'x'"),
        ({"codecs": "x"}, N5UnrepresentableError, "codecs: expected one of 'zarr', "),
        ({"durability": "atom"}, N5UnrepresentableError, "durability: expected one of 'atomic', "),
        ({"durability": None}, N5UnrepresentableError, "durability: expected one of 'atomic', "),
        ({"durability": "overwrite"}, N5UnrepresentableError, "only with local files"),
        ({"concurrency": 0}, N5UnrepresentableError, "concurrency: expected an integer"),
        ({"backend": "x"}, N5UnrepresentableError, "backend: expected one of"),
        ({"backend": "fsspec"}, N5UnrepresentableError, "backend: expected only with a URL"),
        ({"storage_options": {"a": 1}}, N5UnrepresentableError, "storage_options: expected only"),
        ({"coords": True, "zarr_format": 2}, N5UnsupportedError, "coords=True: expected Zarr v3"),
        ({"chunk_grid": "rectilinear"}, N5UnsupportedError, "expected zarr to allow this"),
        ({"fs": 1}, N5UnrepresentableError, "fs: expected a file system"),
    ],
)
def test_wrong_options_are_refused(options: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        N5Store(memory(), **options)


def test_a_view_of_a_container_is_no_container() -> None:
    with refused(N5UnrepresentableError, "option", "which is a Zarr view of one"):
        N5Store(N5Store(memory()))
    storage = N5Store(memory()).storage
    assert N5Store(storage).storage is storage


def test_options_of_a_url_reach_its_store() -> None:
    url = "http://127.0.0.1:9/c.n5"
    for options in (
        {"client_kwargs": {"trust_env": True}},
        {"storage_options": {"client_kwargs": {"trust_env": True}}},
    ):
        store: Any = N5Store(url, backend="fsspec", **options)
        assert "trust_env" in repr(pickle.dumps(store.storage.store))
        assert store.storage.backend.startswith("fsspec")
    known = {"block_size": 5, "client_kwargs": {"trust_env": True}}
    both: Any = N5Store(url, backend="fsspec", storage_options=known, block_size=7)
    kept = repr(pickle.dumps(both.storage.store))
    assert "trust_env" in kept
    assert both.storage.store.fs.storage_options["block_size"] == 7


def test_a_file_system_and_a_cache(tmp_path: Path) -> None:
    on_disk(tmp_path / "c.n5")
    store: Any = N5Store(tmp_path / "c.n5", fs=fsspec.filesystem("file"))
    assert store.root == tmp_path / "c.n5"
    cached = N5Store(memory(), cache=CacheOptions())
    assert cached.storage.has_cache
    assert not N5Store(memory()).storage.has_cache
    with pytest.raises(AttributeError, match="expected local files, got a container without"):
        _ = cached.root


def test_forbidden_is_missing_where_it_is_asked_for() -> None:
    class Forbidding(MemoryFileSystem):  # type: ignore[misc] # has no types
        def cat_file(self, *_: Any, **__: Any) -> Any:
            raise PermissionError

    inner = FsspecStore(AsyncFileSystemWrapper(Forbidding(), asynchronous=True), path="/c.n5")
    assert run(N5Store(inner, forbidden_is_missing=True).get("x/y.txt")) is None
    with pytest.raises(PermissionError):
        run(N5Store(inner).get("x/y.txt"))


@pytest.mark.parametrize(
    ("variable", "given", "expected"), [(None, None, 64), ("7", None, 7), ("7", 3, 3), (None, 1, 1)]
)
def test_the_number_of_requests_at_a_time(
    monkeypatch: pytest.MonkeyPatch, variable: Any, given: Any, expected: int
) -> None:
    monkeypatch.delenv("N5ZARR_CONCURRENCY", raising=False)
    if variable is not None:
        monkeypatch.setenv("N5ZARR_CONCURRENCY", variable)
    assert N5Store(memory(), concurrency=given).concurrency == expected


@pytest.fixture
def _rectilinear() -> Iterator[None]:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield


@pytest.mark.usefixtures("_rectilinear")
@pytest.mark.parametrize("options", [{"coords": True}, {"chunk_grid": "rectilinear"}])
def test_some_views_are_read_only(options: Any) -> None:
    store = N5Store(memory(), **options)
    for each in (store, store.with_read_only(True), store.reopened()):
        assert (each.read_only, each.zarr_format) == (True, 3)
        assert (each.coords, each.chunk_grid) == (
            "coords" in options, options.get("chunk_grid", "regular"),
        )  # fmt: skip
    with refused(N5UnsupportedError, "read-only", r"expected a read-only store"):
        store.with_read_only(False)


@pytest.mark.parametrize("own", [2, 3])
def test_an_array_that_was_just_created_is_shown_in_the_other_format(own: Any) -> None:
    """The document with which it was created is of one format only."""
    store = N5Store(memory(), zarr_format=own)
    made = zarr.create_array(
        store, name="a", shape=(5,), chunks=(2,), dtype=">u2", compressors=None, zarr_format=own
    )
    made[:] = range(5)
    other: Any = zarr.open_array(store.showing(5 - own), path="a", mode="r")
    assert other.metadata.zarr_format == 5 - own
    assert (other.dtype.itemsize, other[...].tolist()) == (2, [0, 1, 2, 3, 4])


def test_coordinates_are_keys() -> None:
    axes: dict[str, Any] = {"axes": ["x", "y"], "units": ["nm", "nm"], "resolution": [4, 5]}
    store = N5Store(memory({"a/attributes.json": document(**axes)}), coords=True)
    plain = N5Store(memory({"a/attributes.json": document(**axes)}), zarr_format=3)
    assert run(store.exists("a/x/zarr.json")) or run(store.exists("x/zarr.json"))
    assert not run(plain.exists("a/x/zarr.json"))
    names = run(listing(store.list_dir("")))
    assert {"x", "y"} & {*names, *run(listing(store.list_dir("a")))}
    assert any("x/" in key for key in run(listing(store.list())))
    assert not store.supports_consolidated_metadata
    assert plain.supports_consolidated_metadata


def test_equal_stores_have_the_same_container(tmp_path: Path) -> None:
    inner = memory()
    assert N5Store(inner) == N5Store(inner, codecs="n5", read_only=True)
    assert N5Store(inner) != N5Store(memory({"x": b"1"}))
    assert N5Store(inner) != inner
    assert N5Store(tmp_path / "a.n5") == N5Store(LocalStore(tmp_path / "a.n5"))
    assert N5Store(tmp_path / "a.n5") != N5Store(tmp_path / "b.n5")
    with pytest.raises(TypeError, match="unhashable"):
        hash(N5Store(inner))


def test_a_document_is_assumed() -> None:
    values = {"attributes.json": b"{}", "g/a/2/1": block(EDGE)}
    store = N5Store(memory(values), zarr_format=3)
    assert json.loads(text(run(store.get("g/a/zarr.json"))))["node_type"] == "group"
    assumed = store.assuming("/g//a", json.loads(document()))
    assert zarr.open_array(assumed, path="g/a", mode="r")[2, 6] == 7
    found: Any = assumed.run(assumed.dataset_of("g/a", 3))
    assert (found[0], found[1].dataset.dimensions) == ("g/a", (7, 5))


def test_a_copy_remembers_open_arrays_and_a_reopened_store_does_not() -> None:
    store = N5Store(memory())
    zarr.create_array(store, name="new", shape=(5,), dtype="u1", zarr_format=3)
    created = store.container.memory.created
    assert "new" in created
    for each in (store.with_read_only(True), store.showing(3)):
        assert each.container.memory.created is created
    assert store.reopened().container.memory.created == {}


def test_a_mapping_has_the_keys_of_zarr_v2() -> None:
    mapping = N5Store(memory(), codecs="n5", zarr_format=3).as_mapping()
    assert {".zgroup", "g/a/.zarray", "g/a/1.2", "g/a/0.0"} <= {*mapping}
    assert json.loads(mapping["g/a/.zarray"])["compressor"]["id"] == "n5zarr_block"


def test_abilities_are_those_of_the_wrapped_store(tmp_path: Path) -> None:
    class Limited(MemoryStore):
        supports_listing = supports_deletes = supports_writes = False

    for inner, expected in [(memory(), True), (Limited(), False)]:
        store = N5Store(inner)
        found = (store.supports_listing, store.supports_deletes, store.supports_writes)
        assert found == (expected,) * 3
        assert store.store is inner
    assert N5Store(tmp_path)._supports_sync_io
    assert not N5Store("memory://c.n5")._supports_sync_io


def test_a_store_is_opened_and_closed(tmp_path: Path) -> None:
    store = run(N5Store.open(memory()))
    assert (store._is_open, store.store._is_open) == (True, True)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        run(N5Store.open(tmp_path / "c.n5", read_only=True))
    assert run(N5Store.open(tmp_path / "c.n5"))._is_open
    closed: list[int] = []
    store.storage.close = lambda: closed.append(1)
    store.close()
    assert (store._is_open, closed) == (False, [1])


def test_the_store_of_zarr_python_2() -> None:
    store = N5FSStore(memory(), dimension_separator="/", check=True, create=True, auto_mkdir=False)
    assert (store.read_only, isinstance(store, N5Store)) == (False, True)
    assert N5FSStore(memory(), mode="r", codecs="n5").read_only
    for arguments, options, match in [
        (("r",), {}, "expected the mode by its name, mode='r'"),
        ((True,), {}, "normalize_keys: expected one of False, got True"),
        ((), {"dimension_separator": "-"}, "dimension_separator: expected one of None, '.', '/'"),
        ((), {"mode": "x"}, "mode: expected one of"),
        ((), {"fs": 1}, "fs: expected a file system"),
    ]:  # fmt: skip
        with pytest.raises(N5UnrepresentableError, match=match):
            N5FSStore("a.n5", *arguments, **options)  # type: ignore[arg-type]


def test_stored_blocks_are_those_of_n5() -> None:
    check_stored(memory(), "here", "way")
    with pytest.raises(N5UnsupportedError, match=r"^here: expected stored blocks .*; way$"):
        check_stored(Shown(), "here", "way")
