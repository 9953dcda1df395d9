"""The compiled kernel does what the Python path does, to the byte, whatever the blocks hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import n5zarr
from n5zarr.arrays import kernel
from n5zarr.arrays.array import N5Array
from n5zarr.arrays.native import addresses
from n5zarr.arrays.pipeline import N5CodecPipeline
from n5zarr.errors import N5Error

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")

COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 6},
    {"type": "gzip", "useZlib": True, "level": 1},
    {"type": "zstd", "level": 3},
    {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    {"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2},
    {"type": "lz4"},
    {"type": "bzip2"},
    {"type": "xz"},
]
DTYPES = ["u1", "i2", ">u2", "u4", "f4", "i8", ">f8", "f8"]
SHAPES = [(17,), (7, 11), (5, 7, 11), (3, 5, 4, 7), (2, 3, 2, 5, 3)]


@contextmanager
def python_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "can_do", lambda dataset: False)
        yield


def name(compression: dict[str, Any]) -> str:
    return "-".join(map(str, compression.values()))


def boxes(draw: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    found = []
    for n in shape:
        start = draw(st.integers(0, n - 1))
        found.append(slice(start, draw(st.integers(start + 1, n))))
    return tuple(found)


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_the_functions_of_the_libraries_are_found() -> None:
    assert all(addresses())


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
@given(data=st.data())
def test_it_writes_the_same_files_and_reads_the_same_numbers(
    tmp_path_factory: pytest.TempPathFactory, compression: dict[str, Any], data: st.DataObject
) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    axis_order: Any = data.draw(st.sampled_from("CF"))
    values: list[Any] = [0, 1, *([np.nan, -0.0] if dtype.kind == "f" else [])]
    fill_value = data.draw(st.sampled_from(values))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    steps = []
    for _ in range(data.draw(st.integers(1, 3))):
        box = boxes(data.draw, shape)
        value = rng.integers(0, 3, [s.stop - s.start for s in box]).astype(dtype)
        empty = data.draw(st.sampled_from([value, np.full_like(value, fill_value)]))
        strided = np.asfortranarray(empty)[::-1] if data.draw(st.booleans()) else empty
        steps.append((box, strided))
    keep = data.draw(st.booleans())

    def written() -> Any:
        root = tmp_path_factory.mktemp("kernel") / "c.n5"
        made: Any = n5zarr.create_array(
            root, path="d", shape=shape, chunks=chunks, dtype=dtype, fill_value=fill_value,
            compression=compression, axis_order=axis_order,
        ).with_config({"write_empty_chunks": keep})  # fmt: skip
        for box, value in steps:
            made[box] = value
        return root

    theirs = written()
    with python_only():
        ours = written()
    assert files(theirs) == files(ours)
    box = boxes(data.draw, shape)
    array: Any = n5zarr.open(theirs, path="d", axis_order=axis_order)
    found = array[box]
    with python_only():
        expected = array[box]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    assert found.flags.c_contiguous


def outcome(array: Any, box: Any) -> Any:
    try:
        return array[box].tobytes()
    except N5Error as err:
        return type(err), err.kind, str(err)


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
@given(data=st.data())
def test_blocks_that_are_damaged_or_odd(
    tmp_path_factory: pytest.TempPathFactory, compression: dict[str, Any], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("odd") / "c.n5"
    made: Any = n5zarr.create_array(
        root, path="d", shape=(7, 11), chunks=(4, 6), dtype="u2", compression=compression
    )
    made[...] = np.arange(77).reshape(7, 11) % 5
    path = root / "d" / data.draw(st.sampled_from(["0/0", "1/0", "0/1", "1/1"]))
    block = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(block) - 1))
    match data.draw(st.sampled_from(["cut", "longer", "twice", "change", "header", "directory"])):
        case "cut":
            block = block[:at]
        case "longer":
            block += data.draw(st.binary(min_size=1, max_size=9))
        case "twice":
            block += block[12:]
        case "change":
            block[at] = data.draw(st.integers(0, 255))
        case "header":
            block[data.draw(st.integers(0, 11))] = data.draw(st.integers(0, 8))
        case _:
            path.unlink()
            path.mkdir()
    if path.is_file():
        path.write_bytes(block)
    array = n5zarr.open(root, path="d")
    box = boxes(data.draw, (7, 11))
    found = outcome(array, box)
    with python_only():
        assert found == outcome(array, box)


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
def test_many_threads(tmp_path: Path, compression: dict[str, Any]) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(60, 70), chunks=(6, 7), dtype="i4",
        compression=compression,
    )  # fmt: skip
    values = np.random.default_rng(3).integers(-9, 9, (60, 70)).astype("i4")

    def fill(row: int) -> None:
        array[row : row + 6] = values[row : row + 6]

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(fill, range(0, 60, 6)))
        for found in threads.map(lambda _: array[...], range(16)):
            np.testing.assert_array_equal(found, values)
    assert not list(tmp_path.rglob("*.partial"))


def test_selections_are_those_of_zarr(tmp_path: Path) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(5, 7), chunks=(2, 3), dtype="f4"
    )
    values = np.arange(35, dtype="f4").reshape(5, 7)
    array[...] = values
    plain: Any = zarr.array(values, chunks=(2, 3), store=zarr.storage.MemoryStore())
    for selection in [
        (), ..., 3, -1, (2, 3), (-2, -3), (..., 2), (1, ...), slice(None), slice(-3, None),
        (slice(1, 1), 2), (slice(2, 99), slice(-99, 2)), (slice(None, None, 2), 1),
        (np.int8(-1), 1), (slice(np.int64(1), None), ...), (slice(3, 1), slice(None)),
    ]:  # fmt: skip
        found, expected = array[selection], plain[selection]
        assert type(found) is type(expected), selection
        assert found.shape == expected.shape, selection
        np.testing.assert_array_equal(found, expected)
        for method in ("get_basic_selection", "get_orthogonal_selection"):
            parts = selection if isinstance(selection, tuple) else (selection,)
            if method == "get_basic_selection" or Ellipsis not in parts:
                found = getattr(array, method)(selection)
                expected = getattr(plain, method)(selection)
                assert type(found) is type(expected), (method, selection)
                np.testing.assert_array_equal(found, expected)
    for bad in [7, (0, 0, 0), (5,), (0, -8), "x", 1.5, (..., ...), (None, 1)]:
        with pytest.raises(Exception) as zarrs:  # noqa: PT011 - whatever it is
            plain[bad]
        with pytest.raises(zarrs.type):
            array[bad]


VALUES: list[tuple[Any, Any]] = [
    ((), 3),
    ((), np.float64(2.7)),
    ((), np.int64(7)),
    (slice(2), [[1, 2, 3, 4]] * 2),
    ((1,), np.arange(4)),
    ((slice(None), 2), np.arange(3) + 0.5),
    ((1, 2), 9),
    (..., np.arange(12, dtype=">u2").reshape(3, 4)),
    (..., np.ones((3, 4), bool)),
    (0, True),
    (..., np.ma.masked_array(np.ones((3, 4)), mask=False)),
    ((slice(0, 2), 1), np.array([[5], [6]])[:, 0]),
    (..., np.array(4)),
    (slice(2), np.arange(4).reshape(1, 4)),
    (slice(2), np.arange(4)),
    (slice(2), np.ones((3, 4))),
    # errors
    (slice(2), [1, 2, 3]),
    (slice(2), np.ones((2, 2))),
    (slice(2), np.ones((2, 4, 1))),
    (slice(2), "text"),
    (slice(2), 300),
    (slice(2), None),
]


@pytest.mark.parametrize("way", ["kernel", "python"])
@pytest.mark.parametrize(("selection", "value"), VALUES)
def test_values_are_those_of_zarr(tmp_path: Path, way: str, selection: Any, value: Any) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(3, 4), chunks=(2, 3), dtype="u1"
    )
    plain: Any = zarr.zeros((3, 4), chunks=(2, 3), dtype="u1", store={})

    def outcome(which: Any) -> Any:
        try:
            which[selection] = value
        except Exception as err:
            return type(err)
        return which[...].tolist()

    with python_only() if way == "python" else nullcontext():
        assert outcome(array) == outcome(plain)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    array: Any = n5zarr.create_array(root, path="d", shape=(6,), chunks=(2,), dtype="u1")
    array[...] = 1
    (root / "d" / "1").unlink()
    (root / "d" / "1").mkdir()
    with pytest.raises(OSError, match="d/1"):
        array[...] = 2
    (root / "d" / "1").rmdir()
    with pytest.raises(N5Error, match="snappy"):
        n5zarr.create_array(
            root, path="s", shape=(6,), dtype="u1", compression={"type": "blosc", "cname": "snappy"}
        )[...] = 1


@pytest.mark.parametrize("fill_value", [0, 1, np.nan])
def test_it_is_used_whatever_is_missing(
    tmp_path: Path, fill_value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(6, 7), chunks=(2, 3), dtype="f4", fill_value=fill_value
    )
    assert isinstance(made, N5Array)
    with monkeypatch.context() as patch:
        patch.setattr(N5CodecPipeline, "read", None)
        patch.setattr(N5CodecPipeline, "write", None)
        made[:3, 1:] = 5
        for array in (made, n5zarr.open(tmp_path / "c.n5", path="d"), made.with_config({})):
            opened: Any = array
            np.testing.assert_array_equal(opened[0], [fill_value, 5, 5, 5, 5, 5, 5])
            np.testing.assert_array_equal(opened[3:], np.full((3, 7), fill_value))
    kept: Any = made.with_config({"write_empty_chunks": True})
    assert isinstance(kept, N5Array)
    assert isinstance(kept.async_array.codec_pipeline, N5CodecPipeline)
    made[...] = fill_value
    assert not list((tmp_path / "c.n5" / "d").rglob("[0-9]/[0-9]"))
    kept[...] = fill_value
    assert len(list((tmp_path / "c.n5" / "d").rglob("[0-9]/[0-9]"))) == 9


@pytest.mark.parametrize("n", [2**63 - 1, 2**62, 2**40 + 5])
def test_dimensions_at_the_end_of_what_integers_hold(tmp_path: Path, n: int) -> None:
    root = tmp_path / "c.n5"
    (root / "d").mkdir(parents=True)
    document = {
        "dimensions": [n, n], "blockSize": [64, 48], "dataType": "uint8",
        "compression": {"type": "raw"},
    }  # fmt: skip
    (root / "d" / "attributes.json").write_text(json.dumps(document))
    array: Any = n5zarr.open(root, path="d", mode="r+")
    values = np.arange(1, 70 * 70 + 1).reshape(70, 70).astype("u1")
    assert not array[n - 70 :, n - 70 :].any()
    array[n - 70 :, n - 70 :] = values
    np.testing.assert_array_equal(array[n - 70 :, n - 70 :], values)
    with python_only():
        np.testing.assert_array_equal(array[n - 70 :, n - 70 :], values)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("compression", [{"type": "bzip2"}, {"type": "zstd", "level": 19}])
@pytest.mark.parametrize("raised", [KeyboardInterrupt, TimeoutError])
def test_what_a_signal_raises_ends_it(
    tmp_path: Path, compression: dict[str, Any], raised: Any
) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(4000, 2000), chunks=(100, 100), dtype="u2",
        compression=compression,
    )  # fmt: skip
    values = np.random.default_rng(1).integers(0, 200, (4000, 2000)).astype("u2")

    def ring(*_: Any) -> None:
        raise raised

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(raised):
            array[...] = values
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    n_blocks = len(list((tmp_path / "c.n5" / "d").rglob("[0-9]*/[0-9]*")))
    time.sleep(0.2)  # nothing goes on behind one's back
    assert len(list((tmp_path / "c.n5" / "d").rglob("[0-9]*/[0-9]*"))) == n_blocks < 800


def test_of_several_damaged_blocks_the_first_is_named(tmp_path: Path) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(4, 6), chunks=(2, 2), dtype="u1"
    )
    array[...] = 1
    for name in ("0/1", "2/0"):  # x first; (1, 0) and (0, 2) as shown
        (tmp_path / "c.n5" / "d" / name).write_bytes(b"no")
    with pytest.raises(N5Error, match="block 2/0"):
        array[...]


def test_a_dataset_whose_directory_is_not_there(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "dimensions": [90, 80], "blockSize": [10, 10], "dataType": "uint8",
        "compression": {"type": "raw"},
    }  # fmt: skip
    array: Any = n5zarr.open(tmp_path / "c.n5", path="d", mode="r+", assume_metadata=document)
    assert not array[...].any()
    array[...] = 3
    assert array[...].sum() == 3 * 7200


def test_without_the_libraries_functions(tmp_path: Path) -> None:
    """A package that is built otherwise costs speed only."""
    script = """
import sys, numpy as np
import n5zarr.arrays.native as native
native.addresses = lambda: (0,) * 13
import n5zarr
from n5zarr.arrays import kernel
from n5zarr.arrays.array import N5Array
assert kernel._kernel is not None
for name in ("raw", "gzip", "zstd", "blosc"):
    how = {"chunks": (8, 9), "dtype": "u2", "compression": {"type": name}}
    array = n5zarr.create_array(sys.argv[1], path=name, shape=(50, 60), **how)
    values = np.arange(3000).reshape(50, 60).astype("u2")
    array[...] = values
    array[3:40, 5:] = values[3:40, 5:]
    assert (array[...] == values).all(), name
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(n5zarr.__file__).parents[1])}
    subprocess.run(  # the script above
        [sys.executable, "-c", script, str(tmp_path / "c.n5")], check=True, env=environment
    )
