"""The compiled kernel gives the same bytes as the Python path for any blocks."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import n5zarr
from n5zarr.errors import N5Error
from n5zarr.fast import kernel
from n5zarr.fast.native import addresses
from n5zarr.storage.threads import WORK
from tests.contract.stored import contents
from tests.programs import Programs
from tests.waiting import alarms, wait_until

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
DTYPES = [*map(np.dtype, ("u1", "i2", "u4", "f4", "i8", "f8"))]
DTYPES += [np.dtype("u2").newbyteorder(), np.dtype("f8").newbyteorder()]
SHAPES = [(17,), (7, 11), (5, 7, 11), (3, 5, 4, 7), (2, 3, 2, 5, 3)]


@contextmanager
def python_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "can_do", lambda dataset: False)
        yield


def name(compression: dict[str, Any]) -> str:
    return "-".join(map(str, compression.values()))


def boxes_of(integer: Callable[[int, int], int], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Choose a box that is not empty; ``integer`` draws a number of a range, ends included."""
    starts = [integer(0, n - 1) for n in shape]
    return tuple(
        slice(start, integer(start + 1, n)) for start, n in zip(starts, shape, strict=True)
    )


def boxes(draw: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    return boxes_of(lambda low, high: draw(st.integers(low, high)), shape)


def test_the_functions_of_the_libraries_are_found() -> None:
    assert all(addresses())


@pytest.mark.each_of(5)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
@given(data=st.data())
def test_it_writes_the_same_files_and_reads_the_same_numbers(
    tmp_path_factory: pytest.TempPathFactory, compression: dict[str, Any], data: st.DataObject
) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    dtype = data.draw(st.sampled_from(DTYPES))
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
    assert contents(theirs) == contents(ours)
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


def odd_dataset(
    factory: pytest.TempPathFactory, compression: dict[str, Any], data: st.DataObject
) -> tuple[Path, Path]:
    """Make a container with a dataset ``d``, one of whose blocks is damaged, odd, or missing.

    Returns
    -------
    tuple
        The container, and the path of this block.
    """
    root = factory.mktemp("odd") / "c.n5"
    values = np.arange(77, dtype="u2").reshape(7, 11) % 5
    options: Any = {"chunks": (4, 6), "compression": compression}
    n5zarr.create_array(root, path="d", data=values, **options)
    path = root / "d" / data.draw(st.sampled_from(["0/0", "1/0", "0/1", "1/1"]))
    block = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(block) - 1))
    match data.draw(st.sampled_from(["cut", "longer", "twice", "change", "header", "missing"])):
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
            return root, path
    path.write_bytes(block)
    return root, path


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
        with pytest.raises((IndexError, TypeError, ValueError)) as of_zarr:
            plain[bad]
        with pytest.raises(of_zarr.type):
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
    # errors
    (slice(2), np.ones((2, 2))),
    (slice(2), np.ones((2, 4, 1))),
    (slice(2), "text"),
    (slice(2), 300),
    (slice(2), None),
]


@pytest.mark.filterwarnings("ignore:expected whole numbers:n5zarr.N5Warning")
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
        except (IndexError, OverflowError, TypeError, ValueError) as err:
            return type(err)
        return which[...].tolist()

    with python_only() if way == "python" else nullcontext():
        assert outcome(array) == outcome(plain)


def test_an_error_of_writing_names_the_block_or_compression(tmp_path: Path) -> None:
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
def test_an_exception_of_a_signal_handler_ends_a_write(
    tmp_path: Path, compression: dict[str, Any], raised: Any
) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(4000, 2000), chunks=(100, 100), dtype="u2",
        compression=compression,
    )  # fmt: skip
    values = np.random.default_rng(1).integers(0, 200, (4000, 2000)).astype("u2")

    def ring(*_: Any) -> None:
        raise raised

    with alarms(ring, 0.1), pytest.raises(raised):
        array[...] = values
    n_blocks = len(list((tmp_path / "c.n5" / "d").rglob("[0-9]*/[0-9]*")))
    wait_until(lambda: not WORK.asked)
    # nothing went on behind one's back
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


def test_without_the_libraries_functions(programs: Programs, tmp_path: Path) -> None:
    script = """
import n5zarr.fast.native as native
n_functions = len(native.addresses())
native.addresses = lambda: (0,) * n_functions
import n5zarr
from n5zarr.fast import kernel
from n5zarr.fast.array import N5Array
assert kernel._kernel is not None
for name in ("raw", "gzip", "zstd", "blosc"):
    how = {"chunks": (8, 9), "dtype": "u2", "compression": {"type": name}}
    array = n5zarr.create_array(sys.argv[1], path=name, shape=(50, 60), **how)
    values = np.arange(3000).reshape(50, 60).astype("u2")
    array[...] = values
    array[3:40, 5:] = values[3:40, 5:]
    assert (array[...] == values).all(), name
"""
    done = programs.run(script, str(tmp_path / "c.n5"))
    assert done.returncode == 0, done.stderr


def arguments(tmp_path: Path, **changes: Any) -> list[Any]:
    """Return the arguments of :mod:`n5zarr.fast.kernel` for a whole dataset, with changes."""
    (tmp_path / "c.n5" / "d").mkdir(parents=True, exist_ok=True)
    valid = {
        "directory": bytes(tmp_path / "c.n5" / "d"),
        "geometry": np.array([3, 4, 8, 6, 0, 0, 1, 1], "i8"),
        "array": np.ones((6, 8), "u2").T,
        "kind": 0,
        "fill": b"\0\0",
        "swap": int(sys.byteorder == "little"),  # blocks are big-endian
        "taken": np.zeros(2, "i8"),
        "stored": bytearray(64),
        "elements": bytearray(24),
        "decompress": lambda *_: None,
    }
    assert changes.keys() <= valid.keys()
    return list((valid | changes).values())


OPTIONS: tuple[Any, ...] = (lambda data: data, True, 0, 0, 0, 0, "lz4", "0123456789abcdef")
SHARED = np.zeros(64, "u1")
UNALIGNED = np.zeros(17, "u1")[1:].view("i8")
MISTAKES: dict[str, dict[str, Any]] = {
    "geometry: too short": {"geometry": np.array([3, 4, 8, 6, 0, 0, 8], "i8")},
    "geometry: empty": {"geometry": np.zeros(0, "i8")},
    "geometry: too long": {"geometry": np.array([3, 4, 8, 6, 0, 0, 1, 1, 1], "i8")},
    "geometry: of bytes": {"geometry": bytes(64)},
    "geometry: int32": {"geometry": np.array([3, 4, 8, 6, 0, 0, 1, 1] * 2, "i4")},
    "geometry: float64": {"geometry": np.array([3, 4, 8, 6, 0, 0, 1, 1], "f8")},
    "geometry: other byte order": {
        "geometry": np.array([3, 4, 8, 6, 0, 0, 1, 1], np.dtype("i8").newbyteorder())
    },
    "geometry: two dimensions": {"geometry": np.array([[3, 4, 8, 6], [0, 0, 1, 1]], "i8")},
    "geometry: strided": {"geometry": np.repeat(np.array([3, 4, 8, 6, 0, 0, 1, 1], "i8"), 2)[::2]},
    "block size 0": {"geometry": np.array([0, 4, 8, 6, 0, 0, 1, 1], "i8")},
    "block size -1": {"geometry": np.array([3, -1, 8, 6, 0, 0, 1, 1], "i8")},
    "block size -2**63": {"geometry": np.array([-(2**63), 4, 8, 6, 0, 0, 1, 1], "i8")},
    "block size 2**63 - 1": {"geometry": np.array([2**63 - 1, 4, 8, 6, 0, 0, 1, 1], "i8")},
    "block of 2**64 elements": {"geometry": np.array([2**32, 2**32, 8, 6, 0, 0, 1, 1], "i8")},
    "block of 2**31 bytes": {"geometry": np.array([2**15, 2**15, 8, 6, 0, 0, 1, 1], "i8")},
    "dimension -1": {"geometry": np.array([3, 4, -1, 6, 0, 0, 1, 1], "i8")},
    "dimension -2**63": {"geometry": np.array([3, 4, 8, -(2**63), 0, 0, 1, 1], "i8")},
    "begin -1": {"geometry": np.array([3, 4, 8, 6, -1, 0, 1, 1], "i8")},
    "begin 2**63 - 1": {"geometry": np.array([3, 4, 8, 6, 2**63 - 1, 0, 1, 1], "i8")},
    "begin -2**63": {"geometry": np.array([3, 4, 8, 6, -(2**63), 0, 1, 1], "i8")},
    "step 0": {"geometry": np.array([3, 4, 8, 6, 0, 0, 0, 1], "i8")},
    "step -1": {"geometry": np.array([3, 4, 8, 6, 0, 0, 1, -1], "i8")},
    "step -2**63": {"geometry": np.array([3, 4, 8, 6, 0, 0, -(2**63), 1], "i8")},
    "step 2**62": {"geometry": np.array([3, 4, 8, 6, 0, 0, 2**62, 1], "i8")},
    "step 2**63 - 1": {"geometry": np.array([3, 4, 8, 6, 0, 0, 1, 2**63 - 1], "i8")},
    "array: one dimension": {"array": np.ones(48, "u2")},
    "array: three dimensions": {"array": np.ones((8, 6, 1), "u2")},
    "array: no dimension": {"array": np.ones((), "u2")},
    "array: empty": {"array": np.ones((8, 0), "u2")},
    "array: other items": {"array": np.ones((8, 6), "u4")},
    "array: items of 16 bytes": {"array": np.ones((8, 6), "c16"), "fill": bytes(16)},
    "array: complex items of 8 bytes": {"array": np.ones((8, 6), "c8"), "fill": bytes(8)},
    "array: records": {"array": np.ones((8, 6), "u1,u1")},
    "array: items of no bytes": {"array": np.ones((8, 6), "V0"), "fill": b""},
    "array: other byte order": {"array": np.ones((8, 6), np.dtype("u2").newbyteorder())},
    "array: without strides": {
        "array": (ctypes.c_uint16 * 48)(),
        "geometry": np.array([3, 48, 0, 48], "i8"),
    },
    "kind -1": {"kind": -1},
    "kind 6": {"kind": 6},
    "fill: too short": {"fill": b"\0"},
    "fill: too long": {"fill": bytes(9)},
    "fill: empty": {"fill": b""},
    "taken: empty": {"taken": np.zeros(0, "i8")},
    "taken: one number": {"taken": np.zeros(1, "i8")},
    "taken: three numbers": {"taken": np.zeros(3, "i8")},
    "taken: int32": {"taken": np.zeros(4, "i4")},
    "taken: bytes": {"taken": bytearray(16)},
    "taken: not aligned": {"taken": UNALIGNED},
    "taken: -1": {"taken": np.array([-1, 0], "i8")},
    "taken: -2**63": {"taken": np.array([-(2**63), 0], "i8")},
    "stored: empty": {"stored": bytearray()},
    "stored: a byte too short": {"stored": bytearray(12 + 24 - 1)},
    "stored: of uint16": {"stored": np.zeros(64, "u2")},
    "stored: in elements": {"stored": SHARED, "elements": SHARED[40:]},
    "stored: in the array": {"array": SHARED[:60].view("u2")[:1, None], "stored": SHARED,
                             "geometry": np.array([3, 4, 8, 6, 0, 0, 1, 1], "i8")},
}  # fmt: skip
WHERE_DECODED: dict[str, dict[str, Any]] = {
    "elements: empty": {"elements": bytearray()},
    "elements: a byte too short": {"elements": bytearray(23)},
    "elements: of uint16": {"elements": np.zeros(24, "u2")},
}


@pytest.mark.parametrize("function", ["read", "write"])
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_arguments_that_do_not_fit(tmp_path: Path, function: str, mistake: dict[str, Any]) -> None:
    call = arguments(tmp_path, **mistake)
    options = [OPTIONS] if function == "write" else []
    with pytest.raises(ValueError, match=r"expected|not C-contiguous"):
        getattr(kernel._kernel, f"{function}_box")(*call, *options)
    assert not list((tmp_path / "c.n5" / "d").glob("[0-9]*"))


MANY: dict[str, Any] = {
    "starts": np.array([0, 0, 1, 2], "i8"), "places": np.array([0, 0], "i8"),
    "members": np.array([0, 1], "i8"), "ends": np.array([2], "i8"), "whole": bytearray(24),
}  # fmt: skip


@pytest.mark.parametrize(
    "mistake",
    [
        {"starts": np.array([0, 0, 1], "i8")},
        {"starts": np.array([0, 0], "i8")},
        {"starts": np.zeros((2, 2), "i8")},
        {"places": np.array([0, 0, 0], "i8")},
        {"places": np.zeros(0, "i8")},
        {"members": np.array([0, 1], "i4")},
        {"ends": np.array([2, 2], "i8")},
        {"ends": b""},
        {"whole": bytearray(23)},
        {"whole": bytes(24)},
    ],
    ids=str,
)
def test_groups_that_do_not_fit(tmp_path: Path, mistake: dict[str, Any]) -> None:
    call = arguments(tmp_path, array=np.ones((3, 2, 2), "u2"))
    with pytest.raises((ValueError, BufferError), match=r"expected|not C-contiguous|writable"):
        kernel._kernel.read_boxes(*call, tuple((MANY | mistake).values()))


def test_a_file_that_is_too_large_stays_out_of_the_memory_of_a_block(tmp_path: Path) -> None:
    call = arguments(tmp_path, array=np.ones((3, 2, 2), "u2"), elements=bytearray(64))
    memory = bytearray(64)
    block = tmp_path / "c.n5/d/0/0"
    block.parent.mkdir()
    block.write_bytes(bytes([0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]) + bytes([7]) * 40)
    groups = tuple((MANY | {"whole": memoryview(memory)[:24]}).values())
    assert kernel._kernel.read_boxes(*call, groups) == [(0, 0)]
    assert not any(memory[24:])


@pytest.mark.parametrize(
    "wrong",
    [
        {"starts": np.array([0, 0, -1, 2], "i8")},
        {"starts": np.array([0, 0, 2**63 - 1, 2], "i8")},
        {"starts": np.array([0, 0, 6, 2], "i8"), "places": np.array([2, 0], "i8")},
        {"places": np.array([-1, 0], "i8")},
        {"places": np.array([2**62, 0], "i8")},
        {"members": np.array([0, 2], "i8")},
        {"members": np.array([0, -1], "i8")},
        {"ends": np.array([3], "i8")},
        {"ends": np.array([2**63 - 1], "i8")},
    ],
    ids=str,
)
def test_groups_with_wrong_numbers_are_left_to_python(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    """The third of these is a box that reaches over the end of the dataset."""
    array = np.full((3, 2, 2), 77, "u2")
    call = arguments(tmp_path, array=array)
    assert kernel._kernel.read_boxes(*call, tuple((MANY | wrong).values())) == [(0, 0)]
    right = kernel._kernel.read_boxes(*arguments(tmp_path, array=array), tuple(MANY.values()))
    assert right == []
    assert not array[:, :, 0].any()  # the block is missing
    assert array[:, :, 1].tolist() == [[0, 0], [0, 0], [77, 77]]  # it has x = 1 and 2 only


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("mistake", WHERE_DECODED.values(), ids=WHERE_DECODED.keys())
def test_memory_that_is_too_small(tmp_path: Path, kind: int, mistake: dict[str, Any]) -> None:
    call = arguments(tmp_path, kind=kind, **mistake)
    with pytest.raises(ValueError, match="elements: expected"):
        kernel._kernel.write_box(*call, OPTIONS)
    if kind:
        with pytest.raises(ValueError, match="elements: expected"):
            kernel._kernel.read_box(*call)


@pytest.mark.parametrize("kind", range(6))
def test_memory_of_the_size_that_is_needed(tmp_path: Path, kind: int) -> None:
    n_header, n_bytes = 12, 24
    written = arguments(
        tmp_path, kind=kind, stored=bytearray(n_header + n_bytes + 16), elements=bytearray(n_bytes)
    )
    kernel._kernel.write_box(*written, OPTIONS)
    array = np.zeros((6, 8), "u2").T
    read = arguments(tmp_path, kind=kind, array=array, stored=bytearray(n_header + n_bytes))
    kernel._kernel.read_box(*read)
    with pytest.raises(ValueError, match="stored: expected at least 52 bytes, got 51"):
        kernel._kernel.write_box(*arguments(tmp_path, stored=bytearray(51)), OPTIONS)
    with pytest.raises(ValueError, match="stored: expected at least 36 bytes, got 35"):
        kernel._kernel.read_box(*arguments(tmp_path, stored=bytearray(35)))


@pytest.mark.parametrize("unique", ["", "0123456789abcde", "0123456789abcdef0", "../../../../../x"])
def test_names_of_unfinished_files(tmp_path: Path, unique: str) -> None:
    with pytest.raises(ValueError, match="unique: expected 16 hexadecimal digits"):
        kernel._kernel.write_box(*arguments(tmp_path), (*OPTIONS[:-1], unique))


@pytest.mark.parametrize("durability", [-1, 3])
def test_durabilities_that_do_not_exist(tmp_path: Path, durability: int) -> None:
    with pytest.raises(ValueError, match="durability: expected 0 to 2"):
        kernel._kernel.write_box(*arguments(tmp_path), (*OPTIONS[:2], durability, *OPTIONS[3:]))


@pytest.mark.parametrize(
    "options",
    [
        (99, 1, 0, "lz4"),
        (-1, 1, 0, "lz4"),
        (5, 7, 0, "lz4"),
        (5, 1, -1, "lz4"),
        (5, 1, 2**62, "lz4"),
        (5, 1, 0, "no such"),
    ],
)
def test_blosc_parameters_out_of_range_are_left_to_python(
    tmp_path: Path, options: tuple[Any, ...]
) -> None:
    *first, _, _, _, _, unique = OPTIONS
    left = kernel._kernel.write_box(*arguments(tmp_path, kind=4), (*first, *options, unique))
    assert len(left) == 6


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

array = n5zarr.open_array(sys.argv[1], path="d")

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def read_in_threads(n):
    for _ in range(n):
        with ThreadPoolExecutor(1) as threads:
            threads.submit(array.__getitem__, 700).result()

read_in_threads(50)
before = resident()
read_in_threads(400)
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory is read from /proc")
def test_decoders_are_kept_for_the_next_thread(programs: Programs, tmp_path: Path) -> None:
    # in a process of its own: what other tests have left may be freed, or grow, at any time
    values = np.random.default_rng(1).integers(0, 200, 200_000).astype("u2")
    n5zarr.create_array(tmp_path, path="d", data=values, chunks=(50_000,), compression="zstd")
    grown = int(programs.run(THREADS, str(tmp_path)).stdout)
    assert grown < 2**24  # 400 decoders have about 36 MB


def test_blocks_outside_of_the_dataset_are_left_to_python(tmp_path: Path) -> None:
    geometry = np.array([3, 4, 0, 6, 0, 0, 1, 1], "i8")
    array = np.ones((8, 6), "u2")
    assert len(kernel._kernel.read_box(*arguments(tmp_path, geometry=geometry, array=array))) == 6
    assert (array == 1).all()


@pytest.mark.parametrize("n", [23, 25, 47, 48, 2000])
def test_a_codec_that_gives_another_size(tmp_path: Path, n: int) -> None:
    """The kernel leaves a block to Python if its codec returns another number of bytes."""
    call = arguments(tmp_path, kind=5, decompress=lambda *_: bytes(n))
    (tmp_path / "c.n5" / "d" / "2").mkdir(parents=True)
    header = np.array([2, 3, 4], ">u4").tobytes()
    (tmp_path / "c.n5" / "d" / "2" / "1").write_bytes(header + b"payload")
    assert kernel._kernel.read_box(*call) == [(2, 1)]


@pytest.mark.parametrize("kept", ["payload", "elements"])
def test_memory_that_a_codec_keeps_stays_alive(tmp_path: Path, kept: str) -> None:
    views: list[memoryview] = []

    def keep(data: memoryview, *_: Any) -> bytes:
        views.append(data)
        return bytes(24)

    write = (keep if kept == "elements" else bytes, *OPTIONS[1:])
    kernel._kernel.write_box(*arguments(tmp_path, kind=5), write)
    kernel._kernel.read_box(*arguments(tmp_path, kind=5, decompress=keep))
    assert all(len(bytes(view)) >= 8 for view in views)
    assert len(views) >= 2


def zstd_frame(start: str, *sizes: int) -> bytes:
    """Make a frame of raw blocks of zeros."""
    blocks = [
        (size << 3 | (k == len(sizes) - 1)).to_bytes(3, "little") + bytes(size)
        for k, size in enumerate(sizes)
    ]
    return bytes.fromhex("28b52ffd" + start) + b"".join(blocks)


@pytest.mark.parametrize(
    ("payload", "is_read"),
    [
        (zstd_frame("00 00", 1000, 200), True),  # a window of 1 KiB
        (zstd_frame("00 01", 1152, 48), True),  # and an eighth
        (zstd_frame("00 00", 1025, 175), False),
        (zstd_frame("00 88", 1200), True),  # 128 MiB
        (zstd_frame("00 89", 1200), False),
        (zstd_frame("40 89 b003", 1200), True),  # that announces 1200 bytes: it is no stream
        (zstd_frame("40 00 b003", 1200), False),
        (zstd_frame("60 b003", 1200), True),  # one segment
        (zstd_frame("a0 b0040000", 1200), True),
        (zstd_frame("e0 b004000000000000", 1100, 100), True),
        (zstd_frame("e0 b004000000000000", 1201), False),
        (zstd_frame("60 b003", 1200) + b"more", False),  # left to Python, which reads it
        (zstd_frame("20 c8", 200) * 6, False),  # as are these
        (zstd_frame("60 b003", 1200)[:-1], False),
    ],
)
def test_the_frames_of_zstd_that_it_decodes(tmp_path: Path, payload: bytes, is_read: bool) -> None:
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="d", shape=(1200,), dtype="u1", compression={"type": "zstd"}
    )
    array[...] = 7
    block = tmp_path / "c.n5" / "d" / "0"
    block.write_bytes(block.read_bytes()[:8] + payload)
    left: list[Any] = []
    read_box = kernel._kernel.read_box

    def seen(*arguments: Any) -> Any:
        left.append(read_box(*arguments))
        return left[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel._kernel, "read_box", seen)
        found = outcome(array, ...)
    assert left == [[] if is_read else [(0,)]]
    with python_only():
        assert outcome(array, ...) == found
    assert isinstance(found, bytes) or not is_read


@pytest.mark.parametrize(
    "addresses", [(), (0,) * 12, (0,) * 14, ("x",) * 13, (0,) * 12 + (2**64,), (0,) * 12 + (None,)]
)
def test_addresses_that_do_not_fit_change_nothing(
    tmp_path: Path, addresses: tuple[Any, ...]
) -> None:
    with pytest.raises((TypeError, OverflowError)):
        kernel._kernel.use(*addresses)
    assert kernel._kernel.read_box(*arguments(tmp_path, kind=3)) == []


@pytest.mark.parametrize("date", [-(2**62), -(2**40), 0, 2**40, 2**62])
def test_files_of_any_date(tmp_path: Path, date: int) -> None:
    array: Any = n5zarr.create_array(tmp_path / "c.n5", path="d", shape=(6,), dtype="u2")
    array[...] = 7
    block = tmp_path / "c.n5" / "d" / "0"
    try:
        os.utime(block, (date, date))
    except (OSError, OverflowError):
        pytest.skip("this file system has no such date")
    assert array[...].tolist() == [7] * 6
