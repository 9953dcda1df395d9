"""What n5zarr makes of zarr's public names does what zarr does, with and without faster classes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.buffer import cpu
from zarr.codecs import numcodecs as filters_v3
from zarr.core import array as of_arrays  # noqa: TID251 - results are compared with these
from zarr.core import chunk_utils, codec_pipeline, sync  # noqa: TID251
from zarr.errors import ZarrUserWarning
from zarr.storage import FsspecStore, LocalStore, LoggingStore, MemoryStore, WrapperStore, ZipStore

import n5zarr
from n5zarr import N5Store, _zarr, cores
from n5zarr.container import codec_chain
from n5zarr.errors import N5UnrepresentableError
from n5zarr.fast.chunk_updates import merged
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from tests.contract.stored import by_tensorstore
from tests.outputs import python

pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not")

# ------------------------------------------------------------------------- zarr's configuration

ROUND_TRIP = """
import sys
import numpy as np, zarr
where, values = sys.argv[1], np.arange(5 * 7 * 11, dtype="u2").reshape(5, 7, 11)
import n5zarr
from n5zarr import N5Store
made = zarr.create_array(
    N5Store(where), name="a/plain", shape=(5, 7, 11), chunks=(3, 4, 5), dtype=values.dtype
)
made[...] = values
made[1:3, 2:5] = values[1:3, 2:5] + 1  # parts of blocks
other = n5zarr.create_array(where, path="b", data=values, chunks=(3, 4, 5), compression="zstd")
assert type(n5zarr.open_array(where, path="b", mode="r")).__name__ == "N5Array"
assert np.array_equal(n5zarr.open(where)["b"][1:4, 3], values[1:4, 3])
n5zarr.convert(where + "/b", where.replace("c.n5", "out.zarr"))
print(zarr.config.get("codec_pipeline.path"), flush=True)
"""
# What zarr-python's pull request 4101 does to the configuration: the known keys only, with defaults
# in one mapping.
WITH_TYPED_CONFIG = """
import zarr
class Typed:
    kept = zarr.config
    defaults = kept.defaults[0]
    def get(self, key, default=...):
        given = () if default is ... else (default,)
        return self.kept.get(key, *given)
    def set(self, values=None, **more):
        for key in values or {}:
            self.kept.get(key)  # a KeyError if there is none
        return self.kept.set(values, **more)
zarr.config = Typed()
"""


@pytest.mark.parametrize("case", ["as it is", "ours is configured", "the configuration has types"])
def test_any_configuration_of_zarr(tmp_path: Path, case: str) -> None:
    name = "n5zarr.arrays.pipeline.N5CodecPipeline"
    given = {"ZARR_CODEC_PIPELINE__PATH": name} if case == "ours is configured" else {}
    before = WITH_TYPED_CONFIG if case == "the configuration has types" else ""
    command = [sys.executable, "-c", before + ROUND_TRIP, str(tmp_path / "c.n5")]
    environment = {**os.environ, **given}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [name]
    values = np.arange(5 * 7 * 11, dtype="u2").reshape(5, 7, 11)
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "c.n5/b"), values)
    values[1:3, 2:5] += 1
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "c.n5/a/plain"), values)
    assert (tmp_path / "out.zarr/zarr.json").exists()


# ------------------------------------------------------------------------------------- one chunk


@pytest.fixture(params=["as it is", "without faster classes"])
def zarrs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Let zarr lack the classes that n5zarr has no public names for."""
    if request.param != "as it is":
        monkeypatch.setattr(_zarr, "resolve_name", partial(getattr, zarr))  # has no such name
    codec_chain._codecs.cache_clear()
    yield request.param
    codec_chain._codecs.cache_clear()


def document(*codecs: dict[str, Any]) -> dict[str, Any]:
    return {
        "zarr_format": 3, "node_type": "array", "shape": [5, 7], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 7]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "attributes": {},
        "codecs": list(codecs),
    }  # fmt: skip


def sharded(*codecs: dict[str, Any]) -> dict[str, Any]:
    index = [codec("bytes", endian="little")]
    return codec("sharding_indexed", chunk_shape=[5, 7], codecs=codecs, index_codecs=index)


def codec(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


BIG, LITTLE = codec("bytes", endian="big"), codec("bytes", endian="little")
DELTA, DELTA_BIG = (codec("numcodecs.delta", dtype=f"{order}u2") for order in "<>")
TRANSPOSE, ZLIB = codec("transpose", order=[1, 0]), codec("numcodecs.zlib", level=2)
BLOSC = codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=2, blocksize=0)
CHAINS: dict[str, list[dict[str, Any]]] = {
    "gzip": [TRANSPOSE, BIG, codec("gzip", level=5)],
    "zstd": [TRANSPOSE, BIG, codec("zstd", level=1, checksum=False)],
    "blosc": [TRANSPOSE, BIG, BLOSC],
    "a compressor of numcodecs has no byte order": [BIG, ZLIB],
    "in shards": [sharded(BIG, ZLIB)],
    "delta": [DELTA, LITTLE],
    "delta in shards": [sharded(DELTA, LITTLE)],
}


@pytest.mark.usefixtures("zarrs")
@pytest.mark.parametrize("chain", CHAINS)
def test_chunks_are_those_of_an_array_of_zarr(chain: str) -> None:
    made = document(*CHAINS[chain])
    codecs = _zarr.ChunkCodecs(made)
    for values in (np.arange(35, dtype="u2").reshape(5, 7) * 300, np.zeros((5, 7), "u2")):
        store = MemoryStore()
        store.set_sync("zarr.json", cpu.Buffer.from_bytes(b"{}"))
        array: Any = zarr.Array(
            zarr.AsyncArray(
                metadata=cast("Any", made), store_path=zarr.storage.StorePath(store),
                config={"write_empty_chunks": True},
            )
        )  # fmt: skip
        array[...] = values
        expected: Any = store.get_sync("c/0/0", prototype=cpu.buffer_prototype)
        assert codecs.encode(values) == expected.to_bytes()
        np.testing.assert_array_equal(codecs.decode(expected.to_bytes()), values)


@pytest.mark.parametrize("codecs", [[DELTA_BIG, BIG], [sharded(DELTA_BIG, BIG)]])
@pytest.mark.usefixtures("zarrs")
def test_filters_that_zarr_misreads_are_refused(codecs: list[dict[str, Any]]) -> None:
    with pytest.raises(N5UnrepresentableError, match="filters: expected to decode"):
        _zarr.ChunkCodecs(document(*codecs))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.usefixtures("zarrs")
def test_filters_and_text(zarr_format: Literal[2, 3], tmp_path: Path) -> None:
    store = N5Store(tmp_path / "c.n5", zarr_format=zarr_format)
    of: Any = filters_v3 if zarr_format == 3 else numcodecs
    numbers = np.arange(7 * 11, dtype="i4").reshape(7, 11) * 3
    words = np.array([f"{k} {'ä' * (k % 5)}" for k in range(77)], object).reshape(7, 11)
    for name, values, given in (
        ("a", numbers, {"dtype": "<i4", "filters": [of.Delta(dtype="<i4")]}),
        ("b", words, {"dtype": str}),
    ):
        options: Any = {"shape": (7, 11), "chunks": (5, 3), "zarr_format": zarr_format, **given}
        array: Any = zarr.create_array(store, name=name, **options)
        array[...] = values
        array[1:6, 2:5] = values[:5, :3]
        expected = values.copy()
        expected[1:6, 2:5] = values[:5, :3]
        read = N5Store(tmp_path / "c.n5", zarr_format=zarr_format, read_only=True)
        opened: Any = zarr.open_array(read, path=name, mode="r", zarr_format=zarr_format)
        np.testing.assert_array_equal(opened[...].astype(values.dtype), expected)
        np.testing.assert_array_equal(opened[2:6, ::5].astype(values.dtype), expected[2:6, ::5])


@pytest.mark.parametrize("shards", [None, (12, 10)])
def test_boxes_of_plain_zarr(zarrs: str, shards: Any, tmp_path: Path) -> None:
    values = np.arange(13 * 11, dtype="u2").reshape(13, 11)
    array: Any = zarr.create_array(tmp_path / "a.zarr", data=values, chunks=(3, 5), shards=shards)
    same: Any = _zarr.with_zarrs_pipeline(array)
    for box in (np.s_[...], np.s_[2:9, ::3], np.s_[4, [1, 7]]):
        np.testing.assert_array_equal(same[box], values[box])
    is_other = type(same.async_array.codec_pipeline) is not type(array.async_array.codec_pipeline)
    assert is_other == (zarrs == "as it is")


def test_the_faster_pipeline_of_zarr_needs_no_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_zarr, "on_own_loop", None)
    array: Any = zarr.create_array(MemoryStore(), shape=(7, 11), chunks=(3, 5), dtype="u2")
    pipeline = _zarr.zarrs_pipeline(array.metadata)
    values: Any = np.arange(15, dtype="u2").reshape(3, 5)
    spec = _zarr.chunk_spec(array, (3, 5))
    stored = _zarr.encode_chunk(pipeline, cpu.NDBuffer(values), spec)
    assert stored is not None
    decoded = _zarr.decode_chunk(pipeline, stored, spec)
    np.testing.assert_array_equal(decoded.as_numpy_array(), values)
    item = (array.async_array.store_path / "c/0/0", spec, np.s_[0:3, 0:5], np.s_[0:3, 0:5], True)
    _zarr.without_awaiting(pipeline, "write_sync")([item], cpu.NDBuffer(values), ())
    out = cpu.NDBuffer(np.zeros((3, 5), "u2"))
    assert _zarr.without_awaiting(pipeline, "read_sync")([item], out, ()) == (_zarr.PRESENT,)
    np.testing.assert_array_equal(out.as_numpy_array(), values)


def test_an_array_reads_through_the_pipeline_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    values, read = np.arange(77, dtype="u2").reshape(7, 11), list[object]()
    array: Any = zarr.create_array(MemoryStore(), data=values, chunks=(3, 5))
    on_one_thread = _zarr._on_one_thread

    def noted(*arguments: Any, **options: Any) -> object:
        read.append(options)
        return on_one_thread(*arguments, **options)

    monkeypatch.setattr(_zarr, "_on_one_thread", noted)
    same: Any = _zarr.with_zarrs_pipeline(array)
    np.testing.assert_array_equal(same[2:6, 3], values[2:6, 3])
    assert len(read) == 1
    np.testing.assert_array_equal(array[2:6, 3], values[2:6, 3])
    assert len(read) == 1


def test_chunks_of_a_grid_that_is_not_regular() -> None:
    values = np.arange(35, dtype="u2").reshape(5, 7)
    with zarr.config.set({"array.rectilinear_chunks": True}):
        array: Any = zarr.create_array(
            MemoryStore(), shape=(5, 7), chunks=[[2, 3], [7]], dtype="u2"
        )
        assert array.metadata.to_dict()["chunk_grid"]["name"] == "rectilinear"
        array[...] = values
        np.testing.assert_array_equal(_zarr.with_zarrs_pipeline(array)[1:4], values[1:4])


# -------------------------------------------------------------------------------- parts of chunks


@pytest.mark.parametrize("write_empty", [False, True])
@pytest.mark.parametrize("stored", [None, 5])
@pytest.mark.parametrize(
    ("value", "selection", "out", "is_complete", "drop_axes"),
    [
        (np.arange(6, dtype="u2").reshape(2, 3), np.s_[1:3, 2:5], np.s_[0:2, 0:3], False, ()),
        (np.arange(15, dtype="u2").reshape(3, 5), np.s_[0:3, 0:5], np.s_[0:3, 0:5], True, ()),
        (np.full((3, 5), 7, "u2"), np.s_[0:3, 0:5], np.s_[0:3, 0:5], True, ()),
        (np.array(9, "u2"), np.s_[0:2, 0:5], np.s_[0:2, 0:5], False, ()),
        (np.array(7, "u2"), np.s_[0:3, 0:5], np.s_[0:3, 0:5], True, ()),
        (np.arange(3, dtype="u2"), np.s_[0:3, 1:2], np.s_[0:3], False, (1,)),
        (np.arange(4, dtype="u2"), ([0, 0, 2, 1], [1, 4, 0, 2]), np.s_[0:4], False, ()),
    ],
)
def test_parts_of_chunks_are_replaced_as_zarr_does(
    value: np.ndarray, selection: Any, out: Any, *, is_complete: bool, drop_axes: tuple[int, ...],
    stored: int | None, write_empty: bool,
) -> None:  # fmt: skip
    array: Any = zarr.create_array(
        MemoryStore(), shape=(7, 11), chunks=(3, 5), dtype="u2", fill_value=7,
        config={"write_empty_chunks": write_empty},
    )  # fmt: skip
    spec = _zarr.chunk_spec(array.async_array, array.chunks)
    old = None if stored is None else cpu.NDBuffer(np.full((3, 5), stored, "u2"))
    merge: Any = chunk_utils.merge_and_encode_chunk
    expected = merge(
        None if old is None else cpu.Buffer.from_bytes(b"any"), cpu.NDBuffer(value),
        chunk_spec=spec, chunk_selection=selection, out_selection=out, is_complete=is_complete,
        drop_axes=drop_axes, decode=lambda _, __: old,
        encode=lambda chunk, _: cpu.Buffer.from_bytes(chunk.as_numpy_array().tobytes()),
    )  # fmt: skip
    item = (None, spec, selection, out, is_complete)
    found = merged(item, cpu.NDBuffer(value), drop_axes, old)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.as_numpy_array().tobytes() == expected.to_bytes()
    assert old is None or (old.as_numpy_array() == stored).all()


def test_the_number_of_workers_is_that_of_zarr() -> None:
    for given in (None, 3, "4", 0, -2):
        with zarr.config.set({"codec_pipeline.max_workers": given}):
            assert _zarr.max_workers() == codec_pipeline._resolve_max_workers()
    with (
        zarr.config.set({"codec_pipeline.max_workers": "many"}),
        pytest.warns(ZarrUserWarning, match=r"codec_pipeline\.max_workers: expected a number"),
    ):
        assert _zarr.max_workers() == cores.usable_cores()


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/job/step", {"job/cpu.max": "300000 100000", "job/step/cpu.max": "max 100000"}, 3),
        ("0::/job/step", {"cpu.max": "500000 100000", "job/step/cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, 8),
        ("0::/", {}, 8),
        (
            "4:memory:/m\n2:cpu,cpuacct:/job",
            {"cpu/job/cpu.cfs_quota_us": "400000", "cpu/job/cpu.cfs_period_us": "100000"},
            4,
        ),
        ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ("0::/", {"cpu.max": "6400000 100000"}, 8),
    ],
)
def test_cores_are_those_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, files: dict[str, str], expected: int
) -> None:
    """Limits of cgroups, as Linux's cgroup-v2 and sched-bwc documents describe their files."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "self").write_text(f"{own}\n")
    monkeypatch.setattr(cores, "_CGROUPS", tmp_path)
    monkeypatch.setattr(cores, "_OWN_CGROUPS", tmp_path / "self")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(8)}, raising=False)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    cores._granted.cache_clear()
    assert cores.usable_cores() == expected
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "7")
    cores._granted.cache_clear()
    assert cores.usable_cores() == 7
    cores._granted.cache_clear()


# -------------------------------------------------------------------------------------- documents


def test_documents_have_the_spelling_of_zarr() -> None:
    array = n5zarr.open_array(n5zarr.sample_path(), path="em/s0", mode="r")
    written: Any = dict(array.metadata.to_dict()) | {"attributes": {"a": 1}}
    spelled = _zarr.spelled({**written, "chunk_key_encoding": {"name": "default"}})
    assert spelled == written | {"chunk_key_encoding": spelled["chunk_key_encoding"]}


def test_other_attributes_leave_the_metadata_alone() -> None:
    array: Any = zarr.create_array(MemoryStore(), shape=(5,), dtype="u2", attributes={"a": 1})
    before = array.metadata
    after = _zarr.with_attributes(before, {"b": 2})
    assert after.to_dict() == before.to_dict() | {"attributes": {"b": 2}}
    assert before.attributes == {"a": 1}


def test_classes_of_metadata() -> None:
    options: Any = {"shape": (5,), "dtype": "u2"}
    second: Any = zarr.create_array(MemoryStore(), zarr_format=2, **options)
    third: Any = zarr.create_array(MemoryStore(), zarr_format=3, **options)
    assert type(second.metadata) is _zarr.ArrayV2Metadata
    assert type(third.metadata) is _zarr.ArrayV3Metadata


# ------------------------------------------------------------------------------------ event loops


async def running() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def failing() -> None:
    raise LookupError("a")


def test_coroutines_run_on_the_loop_of_zarr() -> None:
    assert _zarr.sync(running()) is sync._get_loop()
    assert asyncio.run(_zarr.from_other_loop(running())) is sync._get_loop()
    assert _zarr.on_own_loop(running()) is not sync._get_loop()
    with pytest.raises(LookupError, match="a"):
        _zarr.sync(failing())
    with pytest.raises(LookupError, match="a"):
        asyncio.run(_zarr.from_other_loop(failing()))


@pytest.mark.filterwarnings("ignore:coroutine '.*' was never awaited")
def test_the_loop_of_zarr_does_not_wait_for_itself() -> None:
    async def nested() -> None:
        _zarr.sync(running())

    with pytest.raises(sync.SyncError, match="from within a running loop"):
        _zarr.sync(nested())


def test_zarrs_limit_of_time_is_obeyed() -> None:
    with zarr.config.set({"async.timeout": 0.01}), pytest.raises(TimeoutError):
        _zarr.sync(asyncio.sleep(0.3))


def test_threads_of_zarr_are_as_many_as_configured() -> None:
    code = """
import asyncio, threading, zarr
from n5zarr._zarr import sync
async def names():
    def name():
        import time
        time.sleep(0.05)
        return threading.current_thread().name
    return {n for n in await asyncio.gather(*(asyncio.to_thread(name) for _ in range(8)))}
with zarr.config.set({"threading.max_workers": 2}):
    print(len(sync(names())))
"""
    assert python("-c", code) == "2\n"


# ----------------------------------------------------------------------------------------- stores


def test_the_class_of_local_files_is_that_of_zarr() -> None:
    code = """
import zarr.storage
theirs = zarr.storage.LocalStore
class Other(theirs): pass
zarr.storage.LocalStore = Other
from n5zarr._zarr import LocalStore
print(LocalStore is theirs)
"""
    assert python("-c", code) == "True\n"


def test_a_wrapper_tells_whether_its_synchronous_methods_work() -> None:
    remote = FsspecStore.from_url("memory://a-b")
    for store, works in ((MemoryStore(), True), (remote, False)):
        wrapper: Any = WrapperStore(store)
        assert wrapper._supports_sync_io is works
        assert open_storage(Place(WrapperStore(wrapper))).supports_sync is works


def test_stores_of_the_same_data_are_those_of_zarr(tmp_path: Path) -> None:
    one, other = LocalStore(tmp_path / "a-b"), LocalStore(tmp_path / "c")
    memory = MemoryStore({"a": cpu.Buffer.from_bytes(b"1")})
    archive = ZipStore(tmp_path / "a.zip", mode="w")
    pairs: list[tuple[Any, Any]] = [
        (one, one.with_read_only(read_only=True)), (one, other),
        (memory, memory.with_read_only(read_only=True)), (memory, MemoryStore()), (memory, one),
        (memory, MemoryStore({"a": cpu.Buffer.from_bytes(b"1")})),
        (archive, ZipStore(tmp_path / "a.zip")), (archive, ZipStore(tmp_path / "b.zip")),
    ]  # fmt: skip
    for pair in pairs:
        assert _zarr.same_data(*pair) == of_arrays._stores_share_data(*pair)


def test_the_store_in_a_wrapper(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path), MemoryStore(), ZipStore(tmp_path / "a.zip", mode="w")):
        for wrapper in (WrapperStore, LoggingStore):
            made: Any = wrapper(store)
            assert _zarr.wrapped(made) is store
