"""The kernel decodes blocks from bytes as it does from files, and as Python does."""

from __future__ import annotations

import gc
import shutil
import signal
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import LocalStore
from zarr.storage import FsspecStore, ObjectStore

import n5zarr
from n5zarr.arrays.open_dataset import OpenDataset, dataset_of_array
from n5zarr.codecs.buffers import Scratch
from n5zarr.errors import N5Error
from n5zarr.fast import kernel
from n5zarr.fast.array import N5Array
from n5zarr.fast.pipeline import N5CodecPipeline
from n5zarr.fast.python_blocks import BlockReader
from n5zarr.servers import object_store
from tests.contract.test_kernel import (
    COMPRESSIONS,
    DTYPES,
    SHAPES,
    boxes,
    name,
    odd_dataset,
    python_only,
)
from tests.contract.test_kernel import outcome as outcome_of_files
from tests.waiting import alarms, wait_until

pytestmark = pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")


def served(root: Path) -> Any:
    """Return a store of a directory that is not local for n5zarr."""
    return ObjectStore(LocalStore(root))


def outcome(array: Any, box: Any) -> Any:
    try:
        found = array[box]
    except N5Error as err:
        return type(err), err.kind, str(err).partition("d: block")[2]
    return found.tobytes(), found.dtype, found.shape


def dataset_of(array: Any) -> OpenDataset:
    dataset = dataset_of_array(array)
    assert dataset is not None
    return dataset


@pytest.mark.each_of(5)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
@given(data=st.data())
def test_the_same_numbers_from_files_and_from_bytes(
    tmp_path_factory: pytest.TempPathFactory, compression: dict[str, Any], data: st.DataObject
) -> None:
    shape, dtype = data.draw(st.sampled_from(SHAPES)), data.draw(st.sampled_from(DTYPES))
    root = tmp_path_factory.mktemp("bytes") / "c.n5"
    axis_order: Any = data.draw(st.sampled_from("CF"))
    made: Any = n5zarr.create_array(
        root, path="d", shape=shape, chunks=tuple(data.draw(st.integers(1, n)) for n in shape),
        dtype=dtype, fill_value=3, compression=compression, axis_order=axis_order,
    )  # fmt: skip
    values = np.random.default_rng(1).integers(0, 9, shape).astype(dtype)
    box = boxes(data.draw, shape)
    made[box] = values[box]  # the blocks beside it are missing
    expected = np.full(shape, 3, dtype)
    expected[box] = values[box]
    wanted = boxes(data.draw, shape)
    steps = tuple(slice(s.start, s.stop, data.draw(st.integers(1, 4))) for s in wanted)
    order: Any = data.draw(st.sampled_from("CF"))
    kind = data.draw(st.sampled_from(["own", "pipeline", "event loop"]))
    store = FsspecStore.from_url(f"file://{root}") if kind == "event loop" else served(root)
    array: Any = n5zarr.open_array(store, path="d", axis_order=axis_order)
    assert isinstance(array, N5Array)
    array = array.with_config({"order": order})
    array = zarr.Array(array.async_array) if kind == "pipeline" else array
    for selection in (wanted, steps, tuple(s.start for s in wanted)):
        np.testing.assert_array_equal(array[selection], expected[selection])
        assert array[selection].dtype == array.dtype


@pytest.mark.each_of(5)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
@given(data=st.data())
def test_blocks_that_are_damaged_or_odd(
    tmp_path_factory: pytest.TempPathFactory, compression: dict[str, Any], data: st.DataObject
) -> None:
    """From files and from bytes, by the kernel and in Python."""
    root, path = odd_dataset(tmp_path_factory, compression, data)
    if not path.exists() and data.draw(st.booleans()):
        path.mkdir()
    local, box = n5zarr.open_array(root, path="d"), boxes(data.draw, (7, 11))
    step = data.draw(st.integers(1, 3))
    for selection in (box, tuple(slice(s.start, s.stop, step) for s in box)):
        found = outcome_of_files(local, selection)
        with python_only():
            assert outcome_of_files(local, selection) == found
        if path.is_dir():
            continue
        expected, array = outcome(local, selection), n5zarr.open_array(served(root), path="d")
        assert outcome(array, selection) == expected
        with python_only():
            assert outcome(array, selection) == expected


def arguments(**changes: Any) -> list[Any]:
    """Return the arguments of :func:`kernel.putting` for a dataset of 8 by 6, with changes."""
    block = np.array([2, 3, 4], ">u4").tobytes() + np.arange(12, dtype=">u2").tobytes()
    valid = {
        "geometry": np.array([3, 4, 8, 6, 0, 0, 1, 1], "i8"),
        "array": np.full((6, 8), 7, "u2").T,
        "kind": 0,
        "fill": b"\0\5",
        "swap": int(sys.byteorder == "little"),
        "position": (1, 0),
        "stored": block,
        "elements": bytearray(24),
        "decompress": lambda *_: None,
    }
    assert changes.keys() <= valid.keys()
    return list((valid | changes).values())


SHARED = np.arange(64, dtype="u1")
READ_ONLY = SHARED.view()
READ_ONLY.flags.writeable = False


MISTAKES: dict[str, dict[str, Any]] = {
    "stored: others may change it": {"stored": bytearray(36)},
    "stored: of uint16": {"stored": np.zeros(18, "u2")},
    "stored: strided": {"stored": memoryview(bytes(72))[::2]},
    "stored: in elements": {"stored": READ_ONLY, "elements": SHARED[40:]},
    "stored: in the array": {
        "stored": READ_ONLY,
        "array": SHARED[8:].view("u2").reshape(4, 7)[:, :6].T,
        "geometry": np.array([3, 4, 6, 4, 0, 0, 1, 1], "i8"),
    },
    "elements: too short": {"kind": 3, "elements": bytearray(23)},
    "elements: of uint16": {"elements": np.zeros(24, "u2")},
    "kind 6": {"kind": 6},
    "kind -1": {"kind": -1},
    "fill: too short": {"fill": b"\0"},
    "geometry: too short": {"geometry": np.zeros(7, "i8")},
    "block of 2**31 bytes": {"geometry": np.array([2**15, 2**15, 8, 6, 0, 0, 1, 1], "i8")},
    "position: too short": {"position": (1,)},
    "position: too long": {"position": (1, 0, 0)},
    "position -1": {"position": (-1, 0)},
    "position: outside of the box": {"position": (3, 0)},
    "position 2**62": {"position": (2**62, 0)},
    "position: its first element is the last number": {
        "position": (2**63 - 1, 0),
        "geometry": np.array([1, 4, 80, 6, 0, 0, 7, 1], "i8"),
    },
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_arguments_that_do_not_fit(mistake: dict[str, Any]) -> None:
    with pytest.raises((ValueError, BufferError), match=r"expected|contiguous"):
        kernel._kernel.put_block(*arguments(**mistake))


@pytest.mark.parametrize(
    "mistake",
    [
        {"stored": "text"},
        {"stored": 5},
        {"elements": bytes(24)},
        {"position": [1, 0]},
        {"position": ("1", 0)},
        {"position": (2**70, 0)},
    ],
    ids=str,
)
def test_arguments_of_other_types(mistake: dict[str, Any]) -> None:
    with pytest.raises((TypeError, BufferError, OverflowError)):
        kernel._kernel.put_block(*arguments(**mistake))


def test_an_array_that_is_read_only() -> None:
    array = np.zeros((6, 8), "u2").T
    array.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        kernel._kernel.put_block(*arguments(array=array))


@pytest.mark.parametrize("raised", [KeyError, KeyboardInterrupt])
def test_an_exception_of_the_codec_is_raised(raised: Any) -> None:
    def fail(*_: Any) -> None:
        raise raised

    with pytest.raises(raised):
        kernel._kernel.put_block(*arguments(kind=5, decompress=fail))


def n5zarr_position(*place: int) -> Any:
    return place


@pytest.mark.parametrize("compression", ["raw", "gzip", "zstd", "blosc"])
def test_other_threads_run_while_it_decodes(tmp_path: Path, compression: str) -> None:
    values = np.random.default_rng(1).integers(0, 99, (131, 127, 61)).astype("u4")
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", data=values, chunks=values.shape, compression=compression
    )
    stored = memoryview((tmp_path / "c.n5/d/0/0/0").read_bytes())
    out = np.zeros(values.shape, "u4")
    put = kernel.putting(dataset_of(array), (0, 0, 0), out, 0)
    counted, is_done = 0, False

    def count() -> None:
        nonlocal counted
        while not is_done:
            counted += 1
            time.sleep(0)  # releases the lock

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # so that the other thread runs only while the lock is released
    thread = threading.Thread(target=count)
    thread.start()
    try:
        wait_until(lambda: counted > 3)
        before = after = counted
        for _ in range(100):  # as a busy machine may not run the other thread in time
            assert put(n5zarr_position(0, 0, 0), stored, Scratch())
            after = counted
            if after > before:
                break
    finally:
        is_done = True
        sys.setswitchinterval(interval)
        thread.join()
    np.testing.assert_array_equal(out, values)
    assert after > before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_signal_handlers_that_read_meanwhile(tmp_path: Path, compression: str) -> None:
    values = np.random.default_rng(1).integers(0, 200, (211, 307)).astype("u2")
    n5zarr.create_array(
        tmp_path / "c.n5", path="d", data=values, chunks=(13, 17), compression=compression
    )
    array: Any = n5zarr.open_array(served(tmp_path / "c.n5"), path="d")
    n_read = 0

    def read(*_: Any) -> None:
        nonlocal n_read
        np.testing.assert_array_equal(array[3:50, 7:60], values[3:50, 7:60])
        n_read += 1

    with alarms(read, 0.01, 0.05):
        for _ in range(40):
            np.testing.assert_array_equal(array[...], values)
            if n_read > 3:
                break
    assert n_read


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_an_exception_of_a_signal_handler_ends_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(77, dtype="u2").reshape(7, 11)
    n5zarr.create_array(tmp_path / "c.n5", path="d", data=values, chunks=(2, 3))
    array: Any = n5zarr.open_array(served(tmp_path / "c.n5"), path="d")
    released = threading.Event()
    own = object_store.value_of_object

    def value(store: Any, key: str) -> Any:
        assert released.wait(30)
        return own(store, key)

    def ring(*_: Any) -> None:
        raise TimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(object_store, "value_of_object", value)
        with alarms(ring, 0.1), pytest.raises(TimeoutError):
            array[...]
        released.set()
    np.testing.assert_array_equal(array[...], values)


def test_boxes_from_servers_need_neither_zarrs_pipeline_nor_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(77, dtype="u2").reshape(7, 11)
    n5zarr.create_array(tmp_path / "c.n5", path="d", data=values, chunks=(2, 3))
    shutil.rmtree(tmp_path / "c.n5/d/1")
    expected = values.copy()
    expected[:, 3:6] = 0
    array: Any = n5zarr.open_array(served(tmp_path / "c.n5"), path="d")
    with monkeypatch.context() as patch:
        patch.setattr(N5CodecPipeline, "read", None)
        patch.setattr(BlockReader, "put_block", None)
        np.testing.assert_array_equal(array[...], expected)
        np.testing.assert_array_equal(array[3], expected[3])
        np.testing.assert_array_equal(array[1::2, ::4], expected[1::2, ::4])
        np.testing.assert_array_equal(array[:, 3:6], 0)


def test_a_result_is_freed_with_its_last_reference(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="d", data=np.arange(77, dtype="u2"), chunks=(3,))
    array: Any = n5zarr.open_array(served(tmp_path / "c.n5"), path="d")
    gc.disable()
    try:
        found = weakref.ref(array[...])
        wait_until(lambda: found() is None)  # the threads end a moment later
    finally:
        gc.enable()
