"""zarr's own tests for stores and its state machines, over three kinds of wrapped stores.

The suite writes any bytes under any key. An N5 container holds Zarr documents and chunks only, and
there is no back door, so the tests that write something else are run with real ones: a group, or an
array of four bytes in one chunk. Each of them says what it replaces.
"""

# mypy: disable-error-code="override"
from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test
from zarr.abc.buffer import Buffer
from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.buffer import cpu
from zarr.storage import FsspecStore, LocalStore, MemoryStore
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.store import StoreTests
from zarr.testing.strategies import node_names

from n5zarr import N5Store
from tests.contract.stored import other_types

GROUP = b'{"zarr_format": 3, "node_type": "group", "attributes": {}}'
ARRAY = json.dumps(
    {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [40],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}],
        "attributes": {},
    }
).encode()
CHUNK = b"\x01\x02\x03\x04"

# the same by hand in N5, to get around the store
N5_ARRAY = (
    b'{"dataType":"uint8","compression":{"type":"raw"},"blockSize":[4],"dimensions":[40],"x":1}'
)
N5_HEADER = bytes.fromhex("0000 0001 00000004")

RANGES = [
    None, RangeByteRequest(1, 4), OffsetByteRequest(1), SuffixByteRequest(1),
    RangeByteRequest(10, 20),
]  # fmt: skip


def cut(data: bytes, wanted: ByteRequest | None) -> bytes:
    match wanted:
        case RangeByteRequest(start, end):
            return data[start:end]
        case OffsetByteRequest(offset):
            return data[offset:]
        case SuffixByteRequest(suffix):
            return data[-suffix:]
        case _:
            return data


def buffer(data: bytes) -> Buffer:
    return cpu.Buffer.from_bytes(data)


async def collect(keys: AsyncIterator[str]) -> list[str]:
    return sorted([key async for key in keys])


class N5StoreTests(StoreTests[N5Store, cpu.Buffer]):
    store_cls = N5Store
    buffer_cls = cpu.Buffer

    def wrapped(self, path: Path) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def store_kwargs(self, tmp_path: Path) -> dict[str, Any]:
        return {"location": self.wrapped(tmp_path)}

    @pytest.fixture
    async def store(self, open_kwargs: dict[str, Any]) -> N5Store:
        return await N5Store.open(**open_kwargs)

    async def set(self, store: N5Store, key: str, value: Buffer) -> None:
        """Write the content of a key of the suite into the wrapped store."""
        path, _, name = key.rpartition("/")
        if name == "zarr.json":
            document = N5_ARRAY if value.to_bytes() == ARRAY else b"{}"
            await self.put(store, f"{path}/attributes.json".lstrip("/"), document)
        else:
            path = path.removesuffix("c").strip("/")
            await self.put(store, f"{path}/attributes.json".lstrip("/"), N5_ARRAY)
            await self.put(store, f"{path}/{name}".lstrip("/"), N5_HEADER + value.to_bytes())

    async def put(self, store: N5Store, key: str, data: bytes) -> None:
        if isinstance(store.store, LocalStore):
            file = store.store.root / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        else:
            await store.store.set(key, buffer(data))

    async def get(self, store: N5Store, key: str) -> Buffer:
        """Read the payload of a block from the wrapped store."""
        found = await store.store.get(key.replace("c/", ""), cpu.buffer_prototype)
        assert found is not None
        assert found.to_bytes().startswith(N5_HEADER)
        return found[len(N5_HEADER) :]

    def test_store_repr(self, store: N5Store) -> None:
        assert repr(store) == f"N5Store({str(store)!r})"

    def test_store_supports_writes(self, store: N5Store) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: N5Store) -> None:
        assert store.supports_listing

    # ------------------------------------------------------------------ with real documents

    async def test_serializable_store(self, store: N5Store) -> None:
        """A store with a document is pickled; the suite's own test writes bytes under `foo`."""
        copy: N5Store = pickle.loads(pickle.dumps(store))
        # what is copied along with a store in memory is another place
        assert (copy == store) is not isinstance(store.store, MemoryStore)
        assert copy.read_only == store.read_only
        await copy.set("foo/zarr.json", buffer(ARRAY))
        await copy.set("foo/c/0", buffer(CHUNK))
        found = await copy.get("foo/c/0", cpu.buffer_prototype)
        assert found is not None
        assert found.to_bytes() == CHUNK

    async def test_with_read_only_store(self, open_kwargs: dict[str, Any]) -> None:
        """A read-only copy refuses writes; the suite's own test uses bytes under `foo`."""
        store = await N5Store.open(**open_kwargs, read_only=True)
        writer = store.with_read_only(read_only=False)
        assert not writer._is_open
        assert not writer.read_only
        await writer.set("foo/zarr.json", buffer(GROUP))
        await writer.delete("foo/zarr.json")
        for reader in (store, writer.with_read_only(read_only=True)):
            for attempt in (reader.set("zarr.json", buffer(GROUP)), reader.delete("zarr.json")):
                with pytest.raises(ValueError, match="read-only mode"):
                    await attempt

    @pytest.mark.parametrize("key", ["c/0", "foo/c/0", "foo/0/c/9"])
    @pytest.mark.parametrize("wanted", RANGES)
    async def test_get(self, store: N5Store, key: str, wanted: ByteRequest | None) -> None:
        """Chunks of an array are read; the suite's own test reads those of no array."""
        await self.set(store, key, buffer(CHUNK))
        found = await store.get(key, cpu.buffer_prototype, wanted)
        assert found is not None
        assert found.to_bytes() == cut(CHUNK, wanted)

    async def test_get_many(self, store: N5Store) -> None:
        """Many chunks are read; the suite's own test reads the keys `0` to `9`."""
        requests = []
        for i in range(10):
            await self.set(store, f"c/{i}", buffer(bytes([i]) * 4))
            requests.append((f"c/{i}", cpu.buffer_prototype, None))
        found = {key: value async for key, value in store._get_many(requests)}
        assert {key: value.to_bytes() for key, value in found.items() if value} == {
            f"c/{i}": bytes([i]) * 4 for i in range(10)
        }

    @pytest.mark.parametrize("key", ["c/0", "foo/c/0", "foo/0/c/9"])
    async def test_getsize(self, store: N5Store, key: str) -> None:
        """Sizes of chunks are right; the suite's own test writes chunks of no array."""
        await self.set(store, key, buffer(CHUNK))
        assert await store.getsize(key) == len(CHUNK)

    async def test_getsize_prefix(self, store: N5Store) -> None:
        """The size of a prefix within an array is that of what the container stores."""
        for key in ("a/zarr.json", "ab/zarr.json"):
            await store.set(key, buffer(ARRAY))
        await store._set_many([("a/c/0", buffer(CHUNK)), ("ab/c/1", buffer(CHUNK))])
        n_document = len(N5_ARRAY) - len(b',"x":1')
        assert await store.getsize_prefix("a") == n_document + len(N5_HEADER + CHUNK)
        assert await store.getsize_prefix("") == await store.store.getsize_prefix("")
        assert await store.getsize_prefix("missing") == 0

    @pytest.mark.parametrize("key", ["c/0", "foo/c/0", "foo/0/c/9"])
    async def test_set(self, store: N5Store, key: str) -> None:
        """Documents and chunks are set; the suite's own test writes text and chunks of no array."""
        path = key.partition("c/")[0]
        await store.set(f"{path}zarr.json", buffer(ARRAY))
        await store.set(key, buffer(CHUNK))
        assert (await self.get(store, key)).to_bytes() == CHUNK

    async def test_set_not_open(self, store_not_open: N5Store) -> None:
        """A store that is not open is written; the suite's own test uses a chunk of no array."""
        assert not store_not_open._is_open
        await store_not_open.set("zarr.json", buffer(ARRAY))
        await store_not_open.set("c/0", buffer(CHUNK))
        assert (await self.get(store_not_open, "c/0")).to_bytes() == CHUNK

    async def test_set_many(self, store: N5Store) -> None:
        """Many keys are set; the suite's own test writes text and chunks of no array."""
        await store._set_many([("foo/zarr.json", buffer(ARRAY)), ("bar/zarr.json", buffer(ARRAY))])
        chunks = {f"{path}/c/{i}": bytes([i]) * 4 for path in ("foo", "bar") for i in (0, 3)}
        await store._set_many([(key, buffer(data)) for key, data in chunks.items()])
        for key, data in chunks.items():
            assert (await self.get(store, key)).to_bytes() == data

    @pytest.mark.parametrize(
        "key_ranges",
        [
            [],
            [("zarr.json", RangeByteRequest(0, 2))],
            [("c/0", RangeByteRequest(0, 2)), ("zarr.json", None)],
            [
                ("c/0", RangeByteRequest(0, 2)),
                ("c/1", SuffixByteRequest(2)),
                ("c/2", OffsetByteRequest(2)),
            ],
        ],
    )
    async def test_get_partial_values(
        self, store: N5Store, key_ranges: list[tuple[str, ByteRequest | None]]
    ) -> None:
        """Parts of values are read; the suite's own test writes keys as their own values."""
        for i in range(3):
            await self.set(store, f"c/{i}", buffer(CHUNK))
        # an iterable may be consumed only once
        found = await store.get_partial_values(cpu.buffer_prototype, (kr for kr in key_ranges))
        assert len(found) == len(key_ranges)
        for (key, wanted), part in zip(key_ranges, found, strict=True):
            whole = await store.get(key, cpu.buffer_prototype)
            assert part is not None
            assert whole is not None
            assert part.to_bytes() == cut(whole.to_bytes(), wanted)

    async def test_exists(self, store: N5Store) -> None:
        """A document that was written exists; the suite's own test writes other text."""
        assert not await store.exists("foo")
        await store.set("foo/zarr.json", buffer(GROUP))
        assert await store.exists("foo/zarr.json")

    async def test_delete(self, store: N5Store) -> None:
        """A deleted document is gone; the suite's own test writes other text."""
        await store.set("foo/zarr.json", buffer(GROUP))
        assert await store.exists("foo/zarr.json")
        await store.delete("foo/zarr.json")
        assert not await store.exists("foo/zarr.json")

    async def test_delete_dir(self, store: N5Store) -> None:
        """A deleted directory is gone; the suite's own test writes text and chunks of no array."""
        for key in ("zarr.json", "foo-bar/zarr.json"):
            await store.set(key, buffer(GROUP))
        await store.set("foo/zarr.json", buffer(ARRAY))
        await store.set("foo/c/0", buffer(CHUNK))
        await store.delete_dir("foo")
        assert await store.exists("zarr.json")
        assert await store.exists("foo-bar/zarr.json")
        assert not await store.exists("foo/zarr.json")
        assert not await store.exists("foo/c/0")

    async def test_is_empty(self, store: N5Store) -> None:
        """A prefix with a node is not empty; the suite's own test writes bytes under `foo/bar`."""
        assert await store.is_empty("")
        await self.set(store, "foo/bar/zarr.json", buffer(GROUP))
        for prefix, empty in {
            "": False,
            "fo": True,
            "foo/": False,
            "foo": False,
            "x/": True,
        }.items():
            assert await store.is_empty(prefix) is empty, prefix

    async def test_clear(self, store: N5Store) -> None:
        """Clearing a store removes all; the suite's own test writes bytes under `key`."""
        await self.set(store, "foo/c/0", buffer(CHUNK))
        assert not await store.is_empty("")
        await store.clear()
        assert await store.is_empty("")
        assert await collect(store.list()) == []

    async def test_list(self, store: N5Store) -> None:
        """All keys are listed, with those of the root; the suite's own test has no root."""
        assert await collect(store.list()) == []
        await store.set("foo/zarr.json", buffer(ARRAY))
        await store._set_many([(f"foo/c/{i}", buffer(CHUNK)) for i in range(10)])
        expected = ["foo/zarr.json", "zarr.json", *(f"foo/c/{i}" for i in range(10))]
        assert await collect(store.list()) == sorted(expected)

    async def test_list_prefix(self, store: N5Store) -> None:
        """Keys of a prefix are listed; the suite's own test writes empty documents."""
        prefixes = ("", "a/", "a/b/", "a/b/c/")
        for prefix in prefixes:
            await store.set(f"{prefix}zarr.json", buffer(GROUP))
        for prefix in prefixes:
            expected = [f"{p}zarr.json" for p in prefixes if p.startswith(prefix)]
            assert await collect(store.list_prefix(prefix)) == sorted(expected)

    async def test_list_empty_path(self, store: N5Store) -> None:
        """All keys are listed under an empty path, with groups; the suite has no root."""
        for path in ("foo/bar", "foo/baz"):
            await store.set(f"{path}/zarr.json", buffer(ARRAY))
        await store.set("foo/bar/c/1", buffer(CHUNK))
        await store.set("foo/baz/c/0", buffer(CHUNK))
        bar = ["foo/bar/c/1", "foo/bar/zarr.json"]
        baz = ["foo/baz/c/0", "foo/baz/zarr.json"]
        everything = sorted([*bar, *baz, "foo/zarr.json", "zarr.json"])
        assert await collect(store.list()) == everything
        assert await collect(store.list_prefix("")) == everything
        assert await collect(store.list_prefix("foo/bar/")) == bar

    async def test_list_dir(self, store: N5Store) -> None:
        """Members of a directory are listed; the suite's own test writes text beside a file."""
        assert await collect(store.list_dir("")) == []
        assert await collect(store.list_dir("foo")) == []
        await store.set("foo/zarr.json", buffer(ARRAY))
        await store.set("foo/c/1", buffer(CHUNK))
        await store.set("group/first/zarr.json", buffer(GROUP))
        await store.set("group/second/zarr.json", buffer(ARRAY))
        expected = {
            "": ["foo", "group", "zarr.json"],
            "foo": ["c", "zarr.json"],
            "group": ["first", "second", "zarr.json"],
        }
        for root, names in expected.items():
            assert await collect(store.list_dir(root)) == names
            assert await collect(store.list_dir(f"{root}/")) == names

    async def test_set_if_not_exists(self, store: N5Store) -> None:
        """A key is set only if it is absent; the suite's own test writes bytes under `k`."""
        await self.set(store, "k/c/0", buffer(CHUNK))
        for key in ("k/c/0", "k/c/1"):
            await store.set_if_not_exists(key, buffer(b"1111"))
        found = [await store.get(key, cpu.buffer_prototype) for key in ("k/c/0", "k/c/1")]
        assert [value.to_bytes() for value in found if value] == [CHUNK, b"1111"]
        await store.set_if_not_exists("k/zarr.json", buffer(GROUP))
        document = await store.get("k/zarr.json", cpu.buffer_prototype)
        assert document is not None
        assert json.loads(document.to_bytes())["node_type"] == "array"

    # ------------------------------------------------------------------ synchronous, likewise

    @pytest.fixture
    def sync_store(self, store: N5Store) -> N5Store:
        if not store._supports_sync_io:
            pytest.skip("the wrapped store has no synchronous methods")
        store.set_sync("a/zarr.json", buffer(ARRAY))
        return store

    def test_get_sync(self, sync_store: N5Store) -> None:
        """A key is read synchronously; the suite's own test reads bytes under `sync_get`."""
        sync_store.set_sync("a/c/0", buffer(CHUNK))
        found = sync_store.get_sync("a/c/0")
        assert found is not None
        assert found.to_bytes() == CHUNK

    def test_get_sync_missing(self, sync_store: N5Store) -> None:
        """A missing key reads as None synchronously; the suite's own test needs FsspecStore too."""
        assert sync_store.get_sync("a/c/0") is None
        assert sync_store.get_sync("nonexistent") is None

    async def test_set_sync(self, sync_store: N5Store) -> None:
        """A key is set synchronously; the suite's own test writes bytes under `sync_set`."""
        sync_store.set_sync("a/c/0", buffer(CHUNK))
        assert (await self.get(sync_store, "a/c/0")).to_bytes() == CHUNK

    def test_delete_sync(self, sync_store: N5Store) -> None:
        """A key is deleted synchronously; the suite's own test uses bytes under `sync_delete`."""
        sync_store.set_sync("a/c/0", buffer(CHUNK))
        sync_store.delete_sync("a/c/0")
        assert sync_store.get_sync("a/c/0") is None
        sync_store.delete_sync("a/zarr.json")
        assert sync_store.get_sync("a/zarr.json") is None

    def test_delete_sync_missing(self, sync_store: N5Store) -> None:
        """Deleting a missing key is no error; the suite's own test needs FsspecStore too."""
        for key in ("a/c/0", "nonexistent_sync", "b/zarr.json"):
            sync_store.delete_sync(key)

    @pytest.mark.parametrize("direction", ["set_async_get_sync", "set_sync_get_async"])
    async def test_sync_async_set_get_parity(self, sync_store: N5Store, direction: str) -> None:
        """Synchronous and asynchronous calls agree; the suite's own test writes other bytes."""
        if direction == "set_async_get_sync":
            await sync_store.set("a/c/0", buffer(CHUNK))
            found = sync_store.get_sync("a/c/0")
        else:
            sync_store.set_sync("a/c/0", buffer(CHUNK))
            found = await sync_store.get("a/c/0", cpu.buffer_prototype)
        assert found is not None
        assert found.to_bytes() == CHUNK

    async def test_delete_sync_visible_to_async_get(self, sync_store: N5Store) -> None:
        """A synchronous deletion is visible to asynchronous reads."""
        await sync_store.set("a/c/0", buffer(CHUNK))
        sync_store.delete_sync("a/c/0")
        assert await sync_store.get("a/c/0", cpu.buffer_prototype) is None

    @pytest.mark.parametrize("byte_range", RANGES)
    async def test_get_sync_byte_range_parity(
        self, sync_store: N5Store, byte_range: ByteRequest | None
    ) -> None:
        """Byte ranges agree for synchronous and asynchronous reads."""
        await sync_store.set("a/c/0", buffer(CHUNK))
        found = sync_store.get_sync("a/c/0", byte_range=byte_range)
        same = await sync_store.get("a/c/0", cpu.buffer_prototype, byte_range)
        assert found is not None
        assert same is not None
        assert found.to_bytes() == same.to_bytes() == cut(CHUNK, byte_range)

    # ------------------------------------------------------------------ no back door


class TestOverLocalStore(N5StoreTests):
    def wrapped(self, path: Path) -> Store:
        (path / "c.n5").mkdir(exist_ok=True)  # as for a LocalStore, which reads what exists
        return LocalStore(path / "c.n5")


class TestOverMemoryStore(N5StoreTests):
    def wrapped(self, path: Path) -> Store:
        return MemoryStore({})

    @pytest.fixture
    def store_kwargs(self) -> dict[str, Any]:
        return {"location": MemoryStore()}


class TestOverFsspecStore(N5StoreTests):
    def wrapped(self, path: Path) -> Store:
        return FsspecStore.from_url(f"memory://{uuid.uuid4().hex}/c.n5")


# ---------------------------------------------------------------------- zarr's state machines

STORES: dict[str, Callable[[Path], Store]] = {
    "local": lambda path: LocalStore(path / f"{uuid.uuid4().hex}.n5"),
    "memory": lambda _: MemoryStore(),
    "fsspec": lambda _: FsspecStore.from_url(f"memory://{uuid.uuid4().hex}.n5"),
}
PATHS = st.lists(st.sampled_from(["a", "b", "c", "0"]), min_size=1, max_size=3).map("/".join)
CHUNKS = st.integers(0, 9).map(lambda i: f"c/{i}")
VALUES = st.binary(min_size=4, max_size=4)


class N5StoreMachine(ZarrStoreStateMachine):
    """A state machine for stores, with keys of a container in place of arbitrary bytes."""

    model: dict[str, Any]

    def kind(self, path: str) -> str | None:
        document = self.model.get(f"{path}/zarr.json".lstrip("/"))
        return None if document is None else json.loads(document.to_bytes())["node_type"]

    def add(self, path: str, document: bytes) -> None:
        parents = ["/".join(path.split("/")[:i]) for i in range(path.count("/") + 1)]
        assume(self.kind(path) is None and all(self.kind(p) != "array" for p in parents))
        for parent in parents:  # as zarr does
            key = f"{parent}/zarr.json".lstrip("/")
            if key not in self.model:
                self.model[key] = buffer(GROUP)
                self.store.set(key, self.model[key])
        self.model[f"{path}/zarr.json"] = buffer(document)
        self.store.set(f"{path}/zarr.json", buffer(document))

    @rule(path=PATHS)
    def add_group(self, path: str) -> None:
        self.add(path, GROUP)

    @rule(path=PATHS)
    def add_array(self, path: str) -> None:
        self.add(path, ARRAY)

    @precondition(lambda self: ARRAY in {v.to_bytes() for v in self.model.values()})
    @rule(data=st.data(), chunk=CHUNKS, value=VALUES)
    def set(self, data: st.DataObject, chunk: str, value: bytes) -> None:
        arrays = sorted(k for k, v in self.model.items() if v.to_bytes() == ARRAY)
        key = data.draw(st.sampled_from(arrays)).replace("zarr.json", chunk)
        self.model[key] = buffer(value)
        self.store.set(key, self.model[key])

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Delete a chunk or a leaf; a node with members would stay a group."""
        key = data.draw(st.sampled_from(sorted(self.model)))
        directory, is_document, _ = key.rpartition("zarr.json")
        below = [k for k in self.model if k != key and k.startswith(directory)]
        assume(not is_document or not below)
        self.store.delete(key)
        del self.model[key]

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        self.compare(key)

    @rule(path=PATHS, chunk=CHUNKS)
    def get_invalid_zarr_keys(self, path: str, chunk: str) -> None:
        for key in (path, f"{path}/{chunk}", f"{path}/zarr.json"):
            if key not in self.model:
                assert self.store.get(key, self.prototype) is None

    @rule(path=PATHS, chunk=CHUNKS)
    def exists(self, path: str, chunk: str) -> None:
        for key in (path, f"{path}/{chunk}", f"{path}/zarr.json"):
            assert self.store.exists(key) == (key in self.model)

    @invariant()
    def check_vals_equal(self) -> None:
        for key in self.model:
            self.compare(key)

    def compare(self, key: str) -> None:
        found = self.store.get(key, self.prototype)
        assert found is not None
        if key.endswith("zarr.json"):
            assert json.loads(found.to_bytes()) == json.loads(self.model[key].to_bytes())
        else:
            assert found == self.model[key]

    def get_partial_values(self) -> None:
        """Disable this rule: documents are not spelled as they were written."""

    def getsize_prefix(self) -> None:
        """Disable this rule: the size is that of stored bytes, not of shown ones."""


NODE_NAMES = node_names.filter(lambda name: name != "attributes.json")


class Hierarchies(ZarrHierarchyStateMachine):
    """Hierarchies without one name that hypothesis finds in the sources and N5 cannot have."""

    @rule(name=NODE_NAMES, data=st.data())
    def add_group(self, name: str, data: st.DataObject) -> None:
        super().add_group(name, data)

    @rule(name=NODE_NAMES, data=st.data())
    def add_array(self, data: st.DataObject, name: str) -> None:
        super().add_array(data, name)


def run(machine: Callable[[Store], Any], make: Callable[[Path], Store], path: Path) -> None:
    limits = settings(
        max_examples=settings().max_examples // 2,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    factory: Any = lambda: machine(N5Store(make(path)))  # noqa: E731 - typed as a class
    run_state_machine_as_test(factory, settings=limits)


@pytest.mark.each_of(3)
@other_types
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_hierarchies_of_groups_and_arrays_of_all_dtypes(
    make: Callable[[Path], Store], tmp_path: Path
) -> None:
    run(Hierarchies, make, tmp_path)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_documents_and_chunks(make: Callable[[Path], Store], tmp_path: Path) -> None:
    run(N5StoreMachine, make, tmp_path)
