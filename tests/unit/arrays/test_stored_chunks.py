"""Which chunks are stored, in whatever format; and how elements reach other memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from obstore.store import MemoryStore
from zarr.buffer import cpu
from zarr.codecs import BytesCodec, ZstdCodec
from zarr.storage import LocalStore, ObjectStore, WrapperStore

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays import described
from n5zarr.arrays import stored_chunks as module
from n5zarr.arrays.boxes import StoredChunks
from n5zarr.arrays.described import html_of
from n5zarr.arrays.encoder import Encoder, join_shard, nearest_compression, shard_index
from n5zarr.arrays.placing import fill, host_batch, host_buffer, read_on_host
from n5zarr.arrays.stored_chunks import each_key, stored_boxes, stored_chunks
from n5zarr.format.compression import Raw, Zstd
from tests.unit.arrays.blocks import CHUNKS, SHAPE, numbers, places, write_dataset

STORED = [(0, 0, 0), (1, 2, 1), (2, 0, 2)]


def of_n5(root: Path, **options: Any) -> Any:
    missing = tuple(place for place in places() if place not in STORED)
    write_dataset(root, numbers(), missing=missing)
    return n5zarr.open_array(root / "d", **options)


def of_zarr(store: Any, **options: Any) -> Any:
    array: Any = zarr.create_array(
        store, name="g/d", shape=SHAPE, chunks=CHUNKS, dtype="u2", **options
    )
    for place in STORED:
        part = tuple(slice(p * n, (p + 1) * n) for p, n in zip(place, CHUNKS, strict=True))
        array[part] = 5
    return array


MAKERS: dict[str, Any] = {
    "N5": of_n5,
    "N5 by zarr": lambda root: (of_n5(root), zarr.open_array(N5Store(root), path="d", mode="r"))[1],
    "memory": lambda _: of_zarr({}),
    "local": lambda root: of_zarr(LocalStore(root)),
    "dots": lambda root: of_zarr(LocalStore(root), zarr_format=2),
    "slashes": lambda root: of_zarr(
        LocalStore(root), zarr_format=2,
        chunk_key_encoding={"name": "v2", "separator": "/"},
    ),
    "obstore": lambda _: of_zarr(ObjectStore(MemoryStore())),
    "wrapped": lambda root: of_zarr(WrapperStore(LocalStore(root))),
}  # fmt: skip


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n_keys", [1, 4096])
def test_chunks_that_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, n_keys: int
) -> None:
    monkeypatch.setattr(module, "_KEYS", n_keys)
    array = make(tmp_path)
    found = stored_chunks(array)
    assert found is not None
    assert found.unit == CHUNKS
    rows = [tuple(row) for some in found.rows for row in some.tolist()]
    assert sorted(rows) == STORED
    again = stored_chunks(array, (slice(3, 6), slice(8, 11), slice(2, 3)))
    assert again is not None
    assert (1, 2, 1) in [tuple(row) for some in again.rows for row in some.tolist()]


def test_chunks_in_the_order_of_dimensions(tmp_path: Path) -> None:
    found = stored_chunks(of_n5(tmp_path, axis_order="F"), (slice(2, 4), slice(8, 11), slice(3, 6)))
    assert found is not None
    assert found.unit == CHUNKS[::-1]
    assert [row.tolist() for row in found.rows] == [[[1, 2, 1]]]


@pytest.mark.parametrize("kind", ["local", "obstore", "no list", "empty lists"])
def test_arrays_without_chunks(tmp_path: Path, kind: str) -> None:
    """A server without lists looks like an array without chunks: it is not taken for one."""

    class NoList(LocalStore):
        supports_listing = False

    class EmptyLists(WrapperStore[LocalStore]):
        async def list_prefix(self, prefix: str) -> Any:
            for key in list[str]():
                yield key

    store: Any = {"local": LocalStore(tmp_path), "obstore": ObjectStore(MemoryStore()),
                  "no list": NoList(tmp_path), "empty lists": EmptyLists(LocalStore(tmp_path)),
                 }[kind]  # fmt: skip
    array = zarr.create_array(store, shape=(5,), chunks=(2,), dtype="u2")
    if kind in ("no list", "empty lists"):
        array[:] = 3
    found = stored_chunks(array)
    if kind in ("no list", "empty lists"):
        assert found is None
    else:
        assert found is not None
        assert list(found.rows) == []


def test_errors_of_storage_are_raised(tmp_path: Path) -> None:
    class Broken(LocalStore):
        error: Exception = RuntimeError("broken")

        async def list_prefix(self, prefix: str) -> Any:
            if prefix:
                raise self.error
            yield prefix

    array = of_zarr(store := Broken(tmp_path))
    with pytest.raises(RuntimeError, match="broken"):
        stored_chunks(array)
    store.error = NotImplementedError()
    assert stored_chunks(array) is None


def test_other_objects(tmp_path: Path) -> None:
    class Own:
        def stored_chunks(self, within: Any) -> Any:
            return StoredChunks((2,), [np.array([[1]])] if within is None else [])

    found = stored_chunks(Own())
    assert found is not None
    assert [row.tolist() for row in found.rows] == [[[1]]]
    found = stored_chunks(Own(), (slice(0, 1),))
    assert found is not None
    assert list(found.rows) == []
    assert stored_chunks(np.ones(3)) is None
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("d", SHAPE, "u2", chunks=CHUNKS)
        assert [*stored_chunks(data).rows] == []  # type: ignore[union-attr]
        for place in STORED:
            data[tuple(p * n for p, n in zip(place, CHUNKS, strict=True))] = 7
        found = stored_chunks(data)
        assert found is not None
        assert sorted(map(tuple, np.concatenate(list(found.rows)).tolist())) == STORED
        assert stored_chunks(file.create_dataset("e", SHAPE, "u2")) is None
        assert (
            stored_chunks(file.create_dataset("f", (4,), "u2", chunks=(2,), fill_time="never"))
            is None
        )


def test_boxes_that_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array, other = of_n5(tmp_path), of_zarr({})
    assert stored_boxes(SHAPE, [CHUNKS], [array]) is None  # few
    monkeypatch.setattr(module, "FEW", 26)
    found = stored_boxes(SHAPE, [CHUNKS], [array, other])
    assert found is not None
    assert list(found.positions()) == STORED
    assert stored_boxes(SHAPE, [CHUNKS], [array, np.ones(SHAPE)]) is None
    monkeypatch.setattr(module, "FEW", 27)
    assert stored_boxes(SHAPE, [CHUNKS], [array, other]) is None


def test_keys_of_an_array(tmp_path: Path) -> None:
    array = of_zarr(LocalStore(tmp_path))
    store: Any = array.store
    keys = {key for some in each_key(store, "g/d") for key in some}
    names = {"c/" + "/".join(map(str, place)) for place in STORED}
    assert keys == names | {"zarr.json"}
    assert {f"g/d/{key}" for key in keys} <= {key for some in each_key(store, "") for key in some}


# ------------------------------------------------------------------ memory


def test_items_and_buffers_of_the_host() -> None:
    values = cpu.NDBuffer(np.arange(5))
    for copy in (False, True):
        assert host_buffer(values, copy=copy) is values
    out = cpu.NDBuffer(np.zeros(5, int))
    fill(out, values)
    np.testing.assert_array_equal(out.as_numpy_array(), np.arange(5))
    assert host_batch([]) == ()
    array = zarr.create_array({}, data=np.arange(7))
    np.testing.assert_array_equal(read_on_host(array), np.arange(7))
    np.testing.assert_array_equal(read_on_host(array, slice(2, 4)), [2, 3])
    np.testing.assert_array_equal(read_on_host([1, 2, 3], slice(2)), [1, 2])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (None, "<pre>&#x27;a&lt;b&#x27;</pre>"),
        (lambda _: None, "<pre>&#x27;a&lt;b&#x27;</pre>"),
        (lambda given: f"<b>{given}</b>", "<b>a<b</b>"),
        (lambda given: given.missing, "<pre>&#x27;a&lt;b&#x27;</pre>"),
    ],
    ids=["no room", "no html", "html", "error"],
)
def test_html(monkeypatch: pytest.MonkeyPatch, make: Any, expected: str) -> None:
    door = SimpleNamespace(found=lambda: make)
    monkeypatch.setattr(described, "_MAKE_HTML", door)
    node: Any = "a<b"
    assert html_of(node) == expected


# ------------------------------------------------------------------ encoders


def test_the_index_of_a_shard() -> None:
    """Offset and size of each chunk, little endian, and a CRC-32C: that of Zarr's example."""
    assert shard_index([None, None]) is None
    assert join_shard([None]) is None
    index = shard_index([3, None, 5])
    assert index is not None
    found = np.frombuffer(index[:-4], "<u8").reshape(3, 2)
    assert found.tolist() == [[0, 3], [2**64 - 1, 2**64 - 1], [3, 5]]
    assert join_shard([b"abc", None, b"defgh"]) == b"abcdefgh" + index


ENCODED: dict[str, tuple[dict[str, Any], bool]] = {
    "plain": ({"compressors": None}, True),
    "zstd": ({"compressors": ZstdCodec(level=3)}, True),
    "checksum": ({"compressors": ZstdCodec(level=3, checksum=True)}, False),
    "two": ({"compressors": [ZstdCodec(), ZstdCodec()]}, False),
    "filter": ({"filters": zarr.codecs.TransposeCodec(order=(1, 0))}, False),
    "text": ({"dtype": "str", "compressors": None}, False),
    "v2": ({"zarr_format": 2, "compressors": None}, True),
    "v2, turned": ({"zarr_format": 2, "compressors": None, "order": "F"}, False),
    "big": ({"serializer": BytesCodec(endian="big")}, True),
}


@pytest.mark.filterwarnings("ignore:The `order` keyword")
@pytest.mark.parametrize(("options", "is_able"), ENCODED.values(), ids=ENCODED)
def test_arrays_that_are_encoded(options: dict[str, Any], *, is_able: bool) -> None:
    given = {"dtype": "u2"} | options
    array: Any = zarr.create_array(store := {}, shape=(7, 5), chunks=(3, 2), **given)
    encoder = Encoder.of(array)
    assert (encoder is not None) == is_able
    if encoder is None:
        return
    values = np.arange(1, 36, dtype="u2").reshape(7, 5)
    box = (slice(3, 7), slice(2, 5))
    separator, prefix = (".", "") if array.metadata.zarr_format == 2 else ("/", "c/")
    for position, data in encoder.units(box, values[box]):
        store[prefix + separator.join(map(str, position))] = cpu.Buffer.from_bytes(bytes(data))
    expected = values.copy()
    expected[:3] = expected[:, :2] = 0
    np.testing.assert_array_equal(array[...], expected)


def test_the_nearest_compression() -> None:
    assert nearest_compression(ZstdCodec(level=7)) == Zstd(level=7)
    array = zarr.create_array({}, shape=(3,), dtype="u1", compressors=None)
    encoder = Encoder.of(array)
    assert encoder is not None
    assert isinstance(encoder.compression, Raw)
    scalar = zarr.create_array({}, shape=(), dtype="u1")
    assert Encoder.of(scalar) is None
