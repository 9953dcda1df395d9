"""A call that is cancelled, is interrupted or fails has ended when it returns.

It writes no block later, nor does it read the caller's memory or fill the caller's ``out=``.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.buffer import cpu
from zarr.codecs import numcodecs
from zarr.storage import LocalStore, LoggingStore, ObjectStore

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.fast import kernel
from n5zarr.fast.python_blocks import BlockReader
from n5zarr.storage.writing import FileWriter
from tests.faults.test_reentrancy import on_timer

SHAPE, CHUNKS = (211, 61, 67), (3, 61, 67)
N_BLOCKS, FEW = 71, 3
SLOW: dict[str, Any] = {"compressors": numcodecs.BZ2(level=9)}  # milliseconds a block
SLOW_N5: dict[str, Any] = {"compression": {"type": "bzip2", "blockSize": 9}}
TEXT = np.dtypes.StringDType()

type Look = Callable[[], dict[str, tuple[int, int]]]


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """Let a call end with two blocks, whatever the number of cores, and n5zarr's pipeline read."""
    pipeline = "n5zarr.arrays.pipeline.N5CodecPipeline"
    with zarr.config.set({"codec_pipeline.max_workers": 2, "codec_pipeline.path": pipeline}):
        yield


def values(dtype: Any = "u2", shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Make values without 7, which stands for what the memory holds after a call."""
    numbers = np.random.default_rng(0).integers(1000, 60_000, shape, "u2")
    return numbers if dtype == "u2" else numbers.astype(dtype)


def looking(root: Path) -> Look:
    """Return a function that finds what is written below a directory, without documents."""

    def look() -> dict[str, tuple[int, int]]:
        found = {}
        for directory, _, names in root.walk():
            for path in (directory / name for name in names if not name.endswith(".json")):
                try:
                    status = path.stat()
                except FileNotFoundError:  # renamed meanwhile
                    continue
                found[str(path)] = status.st_ino, status.st_mtime_ns
        return found

    return look


def check_ended(look: Look, n_blocks: int = N_BLOCKS, n_before: int = 0) -> None:
    """Check that a call has ended early, and that nothing goes on."""
    at_end = look()
    assert n_before < len(at_end) < n_blocks
    time.sleep(0.15)
    assert look() == at_end


def check_values(array: Any, value: np.ndarray) -> None:
    """Check that each element is missing or was passed."""
    read = array[...]
    missing = "" if value.dtype == TEXT else np.zeros((), value.dtype)
    assert ((read == value) | (read == missing)).all()


# ------------------------------------------------------------------------------ asynchronous

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "box": (..., SLOW),
    "parts": ((slice(None), slice(1, 60), slice(2, 65)), SLOW),
    "steps": ((slice(None), slice(0, None, 2), slice(None)), SLOW),
    "filters": (..., SLOW | {"filters": numcodecs.Delta(dtype="<u2")}),
    "shards": (..., SLOW | {"chunks": (1, 61, 67), "shards": CHUNKS}),
    "struct": (..., SLOW | {"dtype": [("a", "u2"), ("b", "f4")]}),
    "text": (..., SLOW | {"dtype": TEXT}),
    "parts of text": ((slice(None), slice(1, 60)), SLOW | {"dtype": TEXT}),
}
PLACES: dict[str, Callable[[Path], N5Store]] = {
    "files": N5Store,
    "overwritten": lambda root: N5Store(root, durability="overwrite"),
    "wrapped": lambda root: N5Store(LoggingStore(LocalStore(root), log_level="CRITICAL")),
    "obstore": lambda root: N5Store(ObjectStore(_obstore(root))),
}
CASES = [*((kind, "files") for kind in KINDS), *(("box", place) for place in [*PLACES][1:])]


def _obstore(root: Path) -> Any:
    return pytest.importorskip("obstore.store").LocalStore(str(root))


def created(root: Path, kind: str, place: str = "files") -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """Create an array; return it, all values, those to write, and their selection."""
    selection, options = KINDS[kind]
    options = {"chunks": CHUNKS, "dtype": "u2"} | options
    value = values(options["dtype"])
    array = zarr.create_array(PLACES[place](root), name="x", shape=SHAPE, **options)
    return array, value, value[selection].copy(), selection


@pytest.mark.each_of(3)
@pytest.mark.parametrize("is_again", [False, True], ids=["once", "again"])
@pytest.mark.parametrize("fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize(("kind", "place"), CASES)
def test_a_cancelled_write_ends(
    kind: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fast: bool,
    is_again: bool,
) -> None:  # fmt: skip
    array, value, part, selection = created(tmp_path, kind, place)
    look = looking(tmp_path)
    if not fast:
        monkeypatch.setattr(kernel, "can_do", lambda _: False)

    async def cancel() -> None:
        task = asyncio.ensure_future(array.async_array.setitem(selection, part))
        while len(look()) < FEW and not task.done():
            await asyncio.sleep(0.001)
        task.cancel()
        while is_again and not task.done():
            await asyncio.sleep(0.001)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        part[...] = 7

    sync(cancel()) if place == "obstore" else asyncio.run(cancel())
    check_ended(look)
    check_values(array, value)


def test_the_end_of_an_event_loop_ends_a_write(tmp_path: Path) -> None:
    array, value, part, _ = created(tmp_path, "box")
    look = looking(tmp_path)

    async def leave() -> None:
        left.append(asyncio.ensure_future(array.async_array.setitem(..., part)))
        while len(look()) < FEW:
            await asyncio.sleep(0.001)

    left: list[asyncio.Task[None]] = []
    asyncio.run(leave())
    part[...] = 7
    assert left[0].cancelled()
    check_ended(look)
    check_values(array, value)


# ------------------------------------------------------------------------------ interruptions


@contextmanager
def interruptions(call: Callable[[], object], look: Look, *, is_again: bool) -> Iterator[None]:
    """Let a timer interrupt a call, as Ctrl-C does, after some blocks; once, or five times."""
    n_before, n_raised, last, is_looking = len(look()), 0, 0.0, False

    def handle(_: int, frame: FrameType | None) -> None:
        nonlocal n_raised, last, is_looking
        # a finalizer may have swallowed the last one; a user tries again
        if n_raised >= (5 if is_again else 1) and time.monotonic() < last + 10:
            return
        while frame is not None and frame.f_code is not call.__code__:
            if frame.f_globals.get("__name__", "").startswith("_pytest."):
                return  # its hook for what a finalizer raised; a user has none
            frame = frame.f_back
        if frame is None or is_looking:  # the timer does not wait for this function
            return
        is_looking = True
        is_begun = n_raised > 0 or len(look()) >= n_before + FEW
        is_looking = False
        if is_begun:
            n_raised, last = n_raised + 1, time.monotonic()
            raise KeyboardInterrupt

    with on_timer(handle):
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        with pytest.raises((KeyboardInterrupt, RuntimeError)) as raised:
            yield
    if isinstance(raised.value, RuntimeError):  # Python's, if a thread waits to be started
        assert str(raised.value) == "release unlocked lock"
        assert isinstance(raised.value.__context__, KeyboardInterrupt)


def _opened(root: Path, dtype: Any = "u2") -> Any:
    zarr.create_array(N5Store(root), name="x", shape=SHAPE, chunks=CHUNKS, dtype=dtype, **SLOW)
    return n5zarr.open_array(root, path="x", mode="r+")


def _of_n5(root: Path) -> Any:
    return n5zarr.create_array(
        root, path="x", shape=SHAPE, chunks=CHUNKS, dtype="u2", **SLOW_N5
    )  # fmt: skip


def _set(array: Any, name: str, selection: Any, value: Any) -> None:
    getattr(array, f"set_{name}_selection")(selection, value)


# an interruption between making a coroutine of zarr and running it, or a listing and its `with`
# (it is closed as its last reference goes), or inside a finalizer
IGNORED = pytest.mark.filterwarnings(
    "ignore:(?s)Exception ignored.*(KeyboardInterrupt|was never awaited|unclosed scandir iterator)"
    ":pytest.PytestUnraisableExceptionWarning"
)
ROWS = np.arange(0, SHAPE[0], 2)
SETTERS: dict[str, Callable[[Any, np.ndarray], object]] = {
    "box": lambda array, value: array.__setitem__(..., value),
    "lists": lambda array, value: _set(array, "orthogonal", (ROWS,), value[ROWS]),
    "mask": lambda array, value: _set(array, "mask", value > 0, value.ravel()),
    "chunks": lambda array, value: _set(array, "block", slice(None), value),
    "append": lambda array, value: array.append(value),
}


@IGNORED
@pytest.mark.each_of(3)
@pytest.mark.parametrize("is_again", [False, True], ids=["once", "again"])
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "u2") for name in SETTERS), ("box", TEXT), ("box", "u2,f4")]
)
def test_an_interrupted_write_ends(
    name: str, dtype: Any, tmp_path: Path, *, is_again: bool
) -> None:
    array = _of_n5(tmp_path) if dtype == "u2" else _opened(tmp_path, dtype)
    value, look = values(dtype), looking(tmp_path)
    part = value.copy()

    def call() -> None:
        SETTERS[name](array, part)

    with interruptions(call, look, is_again=is_again):
        call()
    part[...] = 7
    check_ended(look, 2 * N_BLOCKS)
    if name != "append":
        check_values(array, value)


def _to_n5(source: Path, target: Path, *, chunks: int | None) -> None:
    data = xr.DataArray(values(), dims=("z", "y", "x"), name="v")
    lazy = data if chunks is None else data.chunk(z=chunks)
    del source
    n5zarr.to_n5(lazy, target, chunks={"z": 3}, compression=SLOW_N5["compression"])


TOOLS: dict[str, Callable[[Path, Path], object]] = {
    "blocks": lambda source, target: n5zarr.convert(source, target, **SLOW_N5),
    "values": lambda source, target: n5zarr.convert(source, target, chunks=(5, 31, 33), **SLOW_N5),
    "to Zarr": lambda source, target: n5zarr.convert(
        source, target.with_suffix(".zarr"), chunks=(5, 31, 33)
    ),
    "pyramid": lambda source, _: n5zarr.build_pyramid(source / "x", factors=[1, 2, 2], levels=2),
    "numpy": lambda source, target: _to_n5(source, target, chunks=None),
    "dask": lambda source, target: _to_n5(source, target, chunks=30),
}


@IGNORED
@pytest.mark.each_of(3)
@pytest.mark.parametrize("is_again", [False, True], ids=["once", "again"])
@pytest.mark.parametrize("name", TOOLS)
def test_an_interrupted_tool_ends(name: str, tmp_path: Path, *, is_again: bool) -> None:
    source = n5zarr.create_array(
        tmp_path / "s.n5", path="x/s0", data=values(), chunks=CHUNKS, compression=None
    )
    assert source.shape == SHAPE
    look = looking(tmp_path)
    n_before = len(look())

    def call() -> None:
        TOOLS[name](tmp_path / "s.n5", tmp_path / "t.n5")

    with interruptions(call, look, is_again=is_again):
        call()
    check_ended(look, 10**6, n_before)


@IGNORED
def test_an_interrupted_append_leaves_the_old_shape(tmp_path: Path) -> None:
    data = xr.DataArray(values(), dims=("z", "y", "x"), name="v").chunk(z=30)
    where, options = tmp_path / "a.n5", {"chunks": {"z": 3}, **SLOW_N5}
    n5zarr.to_n5(data[:7], where, **options)
    look = looking(tmp_path)

    def call() -> None:
        n5zarr.to_n5(data, where, append_dim="z")

    with interruptions(call, look, is_again=True):
        call()
    check_ended(look, 10**6)
    assert np.array_equal(n5zarr.open_array(where, path="v")[...], values()[:7])


# ------------------------------------------------------------------------------ reading, errors


def slowly(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[None]:
    """Let a method take a millisecond; return a list that counts its calls."""
    method, calls = getattr(owner, name), list[None]()

    def slow(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        time.sleep(0.001)
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, slow)
    return calls


@pytest.mark.parametrize("is_again", [False, True], ids=["once", "again"])
@pytest.mark.parametrize("dtype", ["u2", "u2,f4"])
def test_a_cancelled_read_leaves_its_output(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_again: bool
) -> None:
    array = zarr.create_array(N5Store(tmp_path), name="x", data=values(dtype), chunks=CHUNKS)
    out = np.zeros(SHAPE, dtype)
    is_coded = dtype != "u2"
    owner, name = (N5Store, "get_sync") if is_coded else (BlockReader, "put_block")
    monkeypatch.setattr(kernel, "can_do", lambda _: False)
    calls = slowly(monkeypatch, owner, name)

    async def cancel() -> None:
        read = array.async_array.get_orthogonal_selection
        task = asyncio.ensure_future(read(..., out=cpu.NDBuffer.from_numpy_array(out)))
        while len(calls) < FEW:
            await asyncio.sleep(0.001)
        for _ in range(1 + is_again):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    out[...] = np.zeros((), dtype)
    time.sleep(0.1)
    assert FEW <= len(calls) < N_BLOCKS
    assert not out.view("u1").any()


def test_an_error_of_one_thread_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other threads may go on, but the call waits for them."""
    array, look, n = _of_n5(tmp_path), looking(tmp_path), 0
    write = FileWriter.write

    def fail(*args: Any, **kwargs: Any) -> None:
        nonlocal n
        n += 1
        if n == FEW:
            raise OSError("no space")
        write(*args, **kwargs)

    monkeypatch.setattr(FileWriter, "write", fail)
    monkeypatch.setattr(kernel, "can_do", lambda _: False)
    with pytest.raises(OSError, match="no space"):
        array[...] = values()
    check_ended(look)
