"""Common uses of zarr, dask and zarr's store API work, and nothing warns."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.abc.buffer import Buffer
from zarr.buffer import cpu
from zarr.codecs import Crc32cCodec, GzipCodec
from zarr.storage import LocalStore, MemoryStore, ZipStore
from zarr.types import AnyArray

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr._zarr import sync
from n5zarr.fast.array import N5Array
from n5zarr.zarr_view.dataset_view import Codecs
from tests.contract.stored import in_memory

PROTOTYPE = cpu.buffer_prototype
SHAPE = (7, 11, 13)
CODECS: tuple[Codecs, ...] = ("zarr", "n5", "portable")


def read(node: zarr.Group | AnyArray) -> np.ndarray:
    assert isinstance(node, zarr.Array)
    return np.asarray(node[...])


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 2**16, SHAPE, "uint16")


@pytest.fixture
def container(tmp_path: Path, values: np.ndarray) -> Path:
    """Return a container with one dataset, `a/b`, of truncated blocks, one of them missing."""
    dataset = tmp_path / "c.n5" / "a" / "b"
    dataset.mkdir(parents=True)
    (dataset / "attributes.json").write_text(
        '{"dimensions":[13,11,7],"blockSize":[5,4,3],"dataType":"uint16",'
        '"compression":{"type":"gzip"},"axes":["x","y","z"],"note":[1]}'
    )
    for z, y, x in np.ndindex(3, 3, 3):
        if (z, y, x) == (1, 1, 1):
            values[3:6, 4:8, 5:10] = 0
            continue
        block = values[z * 3 : z * 3 + 3, y * 4 : y * 4 + 4, x * 5 : x * 5 + 5]
        file = dataset / f"{x}/{y}/{z}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(n5zarr.encode_block(block, compression={"type": "gzip"}))
    return tmp_path / "c.n5"


@pytest.mark.parametrize("opened", [zarr.open, zarr.open_group])
def test_groups_open_and_list(container: Path, opened: Any) -> None:
    group = opened(N5Store(container))
    assert isinstance(group, zarr.Group)
    assert list(group) == ["a"]
    assert [name for name, _ in group.members(max_depth=None)] == ["a", "a/b"]
    assert str(group.tree()).strip() == "/\n└── a\n    └── b (7, 11, 13) uint16"
    assert "a/b" in group
    assert "a/c" not in group
    assert "a/b/0" not in group
    assert "a/b/0/0" not in group
    array = group["a/b"]
    assert isinstance(array, zarr.Array)
    assert array.attrs.asdict() == {"note": [1]}
    assert array.metadata.zarr_format == 3
    assert array.metadata.dimension_names == ("z", "y", "x")
    assert "UInt16" in str(array.info)


def test_dask_reads_whole_and_in_parts(container: Path, values: np.ndarray) -> None:
    da = pytest.importorskip("dask.array", reason="the extra xarray installs it")
    for codecs in CODECS:
        array = zarr.open_array(N5Store(container, codecs=codecs), path="a/b")
        lazy = da.from_zarr(array)
        assert lazy.chunks[2] == (5, 5, 3)
        np.testing.assert_array_equal(lazy[1:, :, ::3].compute(), values[1:, :, ::3])
        assert int(lazy.sum().compute(scheduler="threads")) == int(values.sum())


def test_open_gives_the_fast_view_from_anywhere_in_a_container(
    container: Path, values: np.ndarray
) -> None:
    for array in (
        n5zarr.open(container, path="a/b"),
        n5zarr.open(container / "a" / "b"),
        n5zarr.open(str(container / "a"), path="/b/"),
        n5zarr.open(f"file://{container}/a/b"),
        n5zarr.open(LocalStore(container), path="a/b"),
    ):
        assert isinstance(array, N5Array)
        assert isinstance(array.async_array.serializer, n5zarr.N5BlockCodec)
        np.testing.assert_array_equal(array[...], values)
        assert array.read_only
    group = n5zarr.open(container)
    assert isinstance(group, zarr.Group)
    turned = n5zarr.open(container, path="a/b", axis_order="F")
    np.testing.assert_array_equal(read(turned), values.transpose())


@pytest.mark.each_of(5)
@pytest.mark.parametrize("wrapped", ["local", "memory"])
@pytest.mark.parametrize("codecs", CODECS)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_get_exists_and_list_agree(
    container: Path, wrapped: str, codecs: Any, zarr_format: Any
) -> None:
    """``exists``, ``get`` and ``list`` agree for every key that could be one."""
    inner = LocalStore(container) if wrapped == "local" else in_memory(container)
    store = N5Store(inner, codecs=codecs, zarr_format=zarr_format)
    chunks = ["c/0/0/0", "c/1/1/1", "c/2/2/2", "c/3/0/0", "c/00/0/0", "c/0/0", "c", "0/0/0"]
    chunks += ["0.0.0", "1.1.1", "2.2.2", "3.0.0", "0.0"]
    names = ["zarr.json", ".zarray", ".zgroup", ".zattrs", "attributes.json", ".zmetadata", *chunks]
    nodes = ["", "a", "a/b", "a/b/0", "a/b/0/0", "nothing"]
    candidates = {f"{node}/{name}".lstrip("/") for node in nodes for name in names}

    async def check() -> set[str]:
        listed = {key async for key in store.list()}
        for key in candidates | listed:
            value = await store.get(key, PROTOTYPE)
            assert (value is not None) == await store.exists(key) == (key in listed), key
            in_sync = store.get_sync(key)
            assert (in_sync is None) == (value is None), key
            if value is not None:
                assert in_sync is not None
                assert in_sync.to_bytes() == value.to_bytes()
                assert await store.getsize(key) == len(value)
        return listed

    listed = asyncio.run(check())
    documents = {"zarr.json", "a/zarr.json", "a/b/zarr.json"}
    if zarr_format == 2:
        documents = {".zgroup", "a/.zgroup", "a/b/.zarray", "a/b/.zattrs"}
    assert documents <= listed
    assert len(listed) == len(documents) + 26


@pytest.mark.parametrize("is_local", [True, False])
def test_a_store_is_no_path(container: Path, is_local: bool) -> None:
    """A store is no path-like object, as xarray and dask would open the path as plain Zarr."""
    store = N5Store(container if is_local else in_memory(container))
    assert not isinstance(store, os.PathLike)
    assert not issubclass(N5Store, os.PathLike)
    with pytest.raises(TypeError, match=r"os\.PathLike"):
        os.fspath(store)  # type: ignore[call-overload]
    assert hasattr(store, "root") == is_local


@pytest.mark.parametrize("is_local", [True, False])
async def test_files_of_others_are_read_as_they_are(container: Path, is_local: bool) -> None:
    (container / "README.md").write_bytes(b"read me")
    (container / "plain.zarr").mkdir()
    (container / "plain.zarr" / ".zarray").write_bytes(b"{}")
    (container / "plain.zarr" / "0.1").write_bytes(b"a chunk")
    store = N5Store(container if is_local else in_memory(container))

    async def read_raw(key: str) -> bytes | None:
        value = await store.get(key, PROTOTYPE)
        assert await store.exists(key) == (value is not None)
        return None if value is None else value.to_bytes()

    assert await read_raw("README.md") == b"read me"
    assert await read_raw("plain.zarr/0.1") == b"a chunk"
    # but what N5 has is shown as Zarr only, and no document of Zarr but ours
    for key in ("a/b/attributes.json", "a/b/0/0/0"):
        assert (container / key).is_file()
        assert await read_raw(key) is None
    with pytest.raises(n5zarr.N5Error, match=r"plain\.zarr: expected N5, got a Zarr v2 array"):
        await store.get("plain.zarr/zarr.json", PROTOTYPE)
    assert await read_raw("a") is None
    with pytest.warns(
        n5zarr.N5Warning, match=r"omitted from the listing: plain\.zarr: expected N5"
    ):
        assert not [key async for key in store.list() if "README" in key or "plain" in key]
    assert [name async for name in store.list_dir("")] == ["a", "zarr.json"]


def test_options_outside_their_vocabulary_are_refused(container: Path) -> None:
    wrong: list[dict[str, Any]] = [{"codecs": "blosc"}, {"zarr_format": 4}, {"axis_order": "A"}]
    for options in wrong:
        with pytest.raises(n5zarr.N5Error, match="expected one of") as err:
            N5Store(container, **options)
        assert err.value.kind == "option"


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "a\\b", "a\0b", "a/./b"], ids=["up", "inner", "\\", "nul", "dot"]
)
def test_no_key_leaves_the_container(container: Path, path: str) -> None:
    store = N5Store(container)
    for key in (f"{path}/zarr.json", f"{path}/c/0/0/0", f"/{container}/zarr.json"):
        with pytest.raises(n5zarr.N5Error) as err:
            store.get_sync(key)
        assert err.value.kind == "path"
    with pytest.raises(n5zarr.N5Error) as err:
        n5zarr.read_block(container, path, (0, 0, 0))
    assert err.value.kind == "path"


def test_links_are_followed_but_loops_are_not(container: Path) -> None:
    (container / "linked").symlink_to(container / "a")
    (container / "a" / "up").symlink_to(container)
    group = zarr.open_group(N5Store(container))
    found = [name for name, _ in group.members(max_depth=None)]
    assert sorted(found) == ["a", "a/b", "linked", "linked/b"]


def test_a_link_to_itself_and_a_name_with_a_backslash_do_not_hide_the_others(
    container: Path,
) -> None:
    (container / "self").symlink_to(container / "self")
    (container / "a" / "odd\\name").mkdir()
    (container / "a" / "odd\\name" / "attributes.json").write_text("{}")
    with pytest.warns(n5zarr.N5Warning, match="holds? no backslash"):
        found = [name for name, _ in zarr.open_group(N5Store(container)).members(max_depth=None)]
    assert sorted(found) == ["a", "a/b"]


@pytest.mark.parametrize("name", [".hidden", "..x", "new\nline", "sp ace %20#é", "c", "0"])
def test_names_are_taken_as_they_are(container: Path, values: np.ndarray, name: str) -> None:
    shutil.copytree(container / "a" / "b", container / name)
    plain = container / name.lstrip(".")
    if not plain.exists():  # what another reading of the name would find
        shutil.copytree(container / "a" / "b" / "0", plain / "0")
    np.testing.assert_array_equal(read(n5zarr.open(container / name)), values)
    np.testing.assert_array_equal(read(n5zarr.open(container, path=name)), values)
    np.testing.assert_array_equal(read(zarr.open(N5Store(container), path=name)), values)


def test_local_locations_may_go_up_or_be_urls(
    container: Path, values: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = container.with_name("we ird%20.n5")
    shutil.copytree(container, odd)
    monkeypatch.chdir(odd / "a")
    for location in ("../a/b", "../../c.n5/a/b", (odd / "a" / "b").as_uri(), odd / "a" / "b"):
        np.testing.assert_array_equal(read(n5zarr.open(location)), values)
    assert N5Store(odd.as_uri()) == N5Store(odd)


def test_axes_of_xarray_follow_the_order_of_axes_in_both_formats(
    container: Path, values: np.ndarray
) -> None:
    document = container / "a" / "b" / "attributes.json"
    document.write_text(
        document.read_text().replace(
            '"axes":["x","y","z"]', '"_ARRAY_DIMENSIONS":["z","y","x"],"n5":1'
        )
    )
    for axis_order, dims in (("C", ("z", "y", "x")), ("F", ("x", "y", "z"))):
        for zarr_format in (2, 3):
            store = N5Store(container, axis_order=axis_order, zarr_format=zarr_format)  # type: ignore[arg-type]
            found = xr.open_zarr(store, group="a", consolidated=False)["b"]
            assert found.dims == dims
            np.testing.assert_array_equal(found.transpose("z", "y", "x"), values)


def test_a_broken_child_is_left_out_with_one_warning(container: Path) -> None:
    for name, text in {
        "bad": "{",
        "odd": '{"dimensions":[3],"dataType":"u8","compressionType":"raw"}',
    }.items():
        (container / "a" / name).mkdir()
        (container / "a" / name / "attributes.json").write_text(text)
    group = zarr.open_group(N5Store(container))["a"]
    assert isinstance(group, zarr.Group)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [name for name, _ in group.members()] == ["b"]
        assert [name for name, _ in group.members()] == ["b"]
    messages = sorted(str(w.message) for w in caught)
    assert len(messages) == 2
    assert "a/bad/attributes.json: not JSON" in messages[0]
    assert "a/odd/attributes.json: dataType: expected one of uint8" in messages[1]
    with pytest.raises(n5zarr.N5Error, match=r"a/odd/attributes\.json: dataType"):
        group["odd"]


def test_a_rewritten_document_is_seen_by_the_same_store(container: Path) -> None:
    store = N5Store(container)
    array = zarr.open_array(store, path="a/b")
    document = container / "a" / "b" / "attributes.json"
    document.write_text(document.read_text().replace("[13,11,7]", "[13,11,6]"))
    assert array.shape == (7, 11, 13)  # zarr's own copy
    assert zarr.open_array(store, path="a/b").shape == (6, 11, 13)


class Counting(MemoryStore):
    """A store that counts its requests."""

    def __init__(self, contents: dict[str, Buffer]) -> None:
        super().__init__(contents)
        self.gets: list[str] = []
        self.lists: list[str] = []

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Buffer | None:
        self.gets.append(key)
        return await super().get(key, *args, **kwargs)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        self.lists.append(prefix)
        async for name in super().list_dir(prefix):
            yield name


def test_reading_a_box_asks_for_its_document_and_its_blocks_and_lists_nothing(
    container: Path,
) -> None:
    inner = Counting(dict(in_memory(container)._store_dict))
    array = zarr.open_array(N5Store(inner), path="a/b", mode="r")
    assert inner.gets == ["a/b/attributes.json"]
    inner.gets.clear()
    array[:3, :4, :10]
    assert sorted(inner.gets) == ["a/b/0/0/0", "a/b/1/0/0"]
    assert inner.lists == []


def test_an_array_is_not_overwritten_with_itself(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    made: Any = n5zarr.create_array(root, path="a", shape=(5, 7), chunks=(2, 3), dtype="u2")
    made[:] = 3
    sources: tuple[Any, ...] = (
        n5zarr.open(root, path="a"),
        zarr.open_array(N5Store(root, codecs="portable", axis_order="F"), path="a", mode="r"),
        zarr.open_array(N5Store(root, read_only=True, zarr_format=2), path="a", mode="r"),
    )
    for source in sources:
        with pytest.raises(ValueError, match="paths overlap"):
            zarr.from_array(N5Store(root), name="a", data=source, overwrite=True)
    assert np.unique(made[:]).tolist() == [3]


def test_stores_are_equal_where_they_hold_one_container(tmp_path: Path) -> None:
    one = N5Store(tmp_path / "c.n5")
    assert one == N5Store(tmp_path / "x" / ".." / "c.n5", codecs="n5", zarr_format=2)
    assert one != N5Store(tmp_path / "d.n5")
    shared: dict[str, Any] = {}
    memory_store = N5Store(MemoryStore(shared))
    assert memory_store == N5Store(MemoryStore(shared, read_only=True), axis_order="F")
    assert memory_store != N5Store(MemoryStore({}))  # equal bytes, and another place
    url = N5Store("memory://bucket/c.n5")
    assert url == N5Store("memory://bucket/c.n5", cache=CacheOptions(), forbidden_is_missing=True)
    assert url != N5Store("memory://bucket/d.n5")


@pytest.mark.each_of(3)
@pytest.mark.parametrize("axis_order", ["C", "F"])
@pytest.mark.parametrize("compression", [{"type": "gzip"}, {"type": "raw"}, {"type": "blosc"}])
def test_nothing_outside_carries_the_own_codec(
    tmp_path: Path, axis_order: Any, compression: Any
) -> None:
    root = tmp_path / "c.n5"
    values = np.arange(35, dtype="u2").reshape(5, 7)
    options: Any = {"compression": compression, "axis_order": axis_order}
    n5zarr.create_array(
        root, path="g/a", shape=(5, 7), chunks=(2, 3), dtype="u2", **options
    )[:] = values  # fmt: skip
    array: Any = n5zarr.open(root, path="g/a", axis_order=axis_order)
    group: Any = n5zarr.open(root, axis_order=axis_order)
    sources = [
        array,
        group["g/a"],
        group["g"]["a"],
        group.get("g/a"),
        group.get_array("g/a"),
        group.get_group("g")["a"],
        dict(group.members(max_depth=None))["g/a"],
        dict(group["g"].arrays())["a"],
        next(group["g"].array_values()),
        dict(group.groups())["g"]["a"],
        group.require_group("g").require_array("a", shape=(5, 7), dtype="u2"),
        pickle.loads(pickle.dumps(array)),
        array.with_config({"write_empty_chunks": True}),
    ]
    for number, source in enumerate(sources):
        assert isinstance(source, N5Array), number
        assert np.array_equal(source[:], values)
        copies = tmp_path / f"{number}"
        zarr.from_array(str(copies / "a.zarr"), data=source)
        zarr.zeros_like(source, store=str(copies / "b.zarr"))
        zarr.open_like(source, path=str(copies / "c.zarr"))
        zarr.create_group(str(copies / "d.zarr")).empty_like(name="e", data=source)
        for document in copies.rglob("zarr.json"):
            assert "n5zarr" not in document.read_text(), document
        assert np.array_equal(zarr.open_array(str(copies / "a.zarr"))[:], values)
    assert group == zarr.open_group(N5Store(root, codecs="n5", axis_order=axis_order))


def test_a_store_promises_what_the_wrapped_one_can(tmp_path: Path) -> None:
    store = N5Store(ZipStore(tmp_path / "c.n5.zip", mode="w"))
    assert (store.supports_writes, store.supports_deletes) == (True, False)
    assert N5Store(tmp_path / "c.n5").supports_deletes
    group = zarr.create_group(store)
    group.create_array("a", shape=(5,), dtype="u2")[:] = 7
    with pytest.raises(zarr.errors.ContainsArrayError):
        group.create_array("a", shape=(5,), dtype="u2", overwrite=True)
    with pytest.raises(NotImplementedError):
        asyncio.run(store.delete_dir("a"))
    np.testing.assert_array_equal(zarr.open_array(store, path="a", mode="r")[:], [7] * 5)


def test_an_ordinary_array_may_have_whole_blocks_as_chunks() -> None:
    """A part of it is decoded from whole blocks, and a missing one is the fill value."""
    data: dict[str, Any] = {}
    array: Any = zarr.create_array(
        MemoryStore(data), shape=(7, 5), chunks=(3, 2), dtype="u2",
        serializer=n5zarr.N5BlockCodec(), compressors=None, fill_value=4,
    )  # fmt: skip
    array[:3, :2] = np.arange(6).reshape(3, 2) + 1
    assert data["c/0/0"].to_bytes()[:12] == bytes.fromhex("0000 0002 00000002 00000003")
    assert array[1:5, 1:4].tolist() == [[4, 4, 4], [6, 4, 4], [4, 4, 4], [4, 4, 4]]


def test_a_chunk_that_its_codecs_cannot_decode_is_not_stored(tmp_path: Path) -> None:
    """A checksum of zarr's is checked before the chunk becomes a block."""
    store = N5Store(tmp_path / "c.n5", codecs="zarr")
    array: Any = zarr.create_array(
        store, name="a", shape=(7, 5), chunks=(3, 2), dtype="u2",
        compressors=[GzipCodec(), Crc32cCodec()],
    )  # fmt: skip
    array[...] = 3
    block = (tmp_path / "c.n5/a/0/0").read_bytes()
    chunk = sync(store.get("a/c/0/0", PROTOTYPE))
    assert chunk is not None
    wrong = bytearray(chunk.to_bytes())
    wrong[-1] ^= 1
    with pytest.raises(n5zarr.N5Error, match=r"crc32c.*: zarr's error: "):
        sync(store.set("a/c/0/0", cpu.Buffer.from_bytes(bytes(wrong))))
    assert (tmp_path / "c.n5/a/0/0").read_bytes() == block
    sync(store.set("a/c/0/0", chunk))
    assert (tmp_path / "c.n5/a/0/0").read_bytes() == block
