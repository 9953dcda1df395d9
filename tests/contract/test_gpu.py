"""With zarr's buffers of a GPU, elements are decoded on the host and moved once.

The stand-in for cupy refuses every conversion that is not explicit, and counts the others. If there
are cupy and a GPU, all tests but those of counts run there, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.buffer import BufferPrototype, NDBuffer
from zarr.buffer import cpu, gpu

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError
from n5zarr.fast import kernel
from n5zarr.fast.pipeline import N5CodecPipeline
from tests.contract.test_many_boxes import PLACES as PLACES_OF_BOXES
from tests.gpu import CHUNKS, SHAPE, count, has_gpu, made, stand_in, ways

ON_HOST = {"buffer": "zarr.buffer.cpu.Buffer", "ndbuffer": "zarr.buffer.cpu.NDBuffer"}
PIPELINE = f"{N5CodecPipeline.__module__}.{N5CodecPipeline.__qualname__}"


@pytest.fixture
def pipeline() -> Iterator[None]:
    """Choose n5zarr's pipeline, whatever the environment says."""
    with zarr.config.set({"codec_pipeline.path": PIPELINE}):
        yield


@pytest.fixture
def counting(pipeline: None) -> Iterator[Any]:
    """Enable the stand-in for a GPU."""
    with stand_in() as cupy, zarr.config.enable_gpu():
        yield cupy


@pytest.fixture(params=["stand-in", *(["gpu"] if has_gpu() else [])])
def cupy(request: pytest.FixtureRequest, pipeline: None) -> Iterator[Any]:
    """Enable the stand-in for a GPU, and the GPU, if there is one."""
    if request.param == "gpu":
        with zarr.config.enable_gpu():
            yield import_module("cupy")
    else:
        with stand_in() as module, zarr.config.enable_gpu():
            yield module


@pytest.fixture
def values(tmp_path: Path) -> np.ndarray:
    return made(tmp_path, SHAPE, CHUNKS)


def check(cupy: Any, found: Any, expected: np.ndarray) -> None:
    """Check the elements of an array on the device."""
    assert type(found) is cupy.ndarray
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.get(), expected)


# ------------------------------------------------------------------------------------- counts


def test_plain_zarr_moves_stored_chunks_and_whole_chunks(
    tmp_path: Path, values: np.ndarray, counting: Any
) -> None:
    stored = sum(file.stat().st_size for file in (tmp_path / "d.zarr/c").rglob("*/*/*"))
    decoded = 5 * 5 * 2 * (5 * 7 * 11) * 2  # chunks, elements of each, bytes of each
    read = ways(tmp_path, values, counting)["plain Zarr, `zarr.open`"]
    assert count(counting, read) == (stored + decoded, stored)


@pytest.mark.parametrize("name", ["`n5zarr.open`", "`read_boxes`", "`N5Store`, `zarr.open`"])
def test_each_byte_is_moved_once(
    tmp_path: Path, values: np.ndarray, counting: Any, name: str, way: str
) -> None:
    read = ways(tmp_path, values, counting)[name]
    read()  # n5zarr may first learn about zarr's event loop
    assert count(counting, read) == (values.nbytes, 0)


def test_written_elements_are_moved_once(
    tmp_path: Path, values: np.ndarray, counting: Any, way: str
) -> None:
    write = ways(tmp_path, values, counting)["`n5zarr.open`, writing"]
    assert count(counting, write) == (0, values.nbytes)


@pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")
def test_the_device_copies_from_page_locked_memory(
    tmp_path: Path, values: np.ndarray, counting: Any
) -> None:
    array: Any = n5zarr.open_array(tmp_path / "d.n5", path="d")
    reads: list[Callable[[], Any]] = [
        lambda: array[...],
        lambda: array[3, 2:30:3],
        lambda: array.vindex[[1, 2], [3, 4], [5, 6]],
        lambda: array.oindex[[22, 1]],
        lambda: array.blocks[1],
        lambda: array.read_boxes([(1, 2, 3), (5, 6, 7)], (4, 5, 6)),
    ]
    for k, read in enumerate(reads, 1):
        read()
        assert counting.pinned_copies[0] == k
    np.testing.assert_array_equal(array[...].get(), values)


# ------------------------------------------------------------------------------------ reading

MASK = np.random.default_rng(3).random(SHAPE) < 0.01
POINTS = ([[1], [22]], [3, 30], [0, 18])
SELECTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "all": (lambda a: a[...], lambda v: v),
    "a box": (lambda a: a[2:9, 5:23, 3:17], lambda v: v[2:9, 5:23, 3:17]),
    "steps": (lambda a: a[::3, 1::5, 18], lambda v: v[::3, 1::5, 18]),
    "an element": (lambda a: a[3, 4, 5], lambda v: v[3, 4, 5, None].reshape(())),
    "basic": (lambda a: a.get_basic_selection((slice(2, 9),)), lambda v: v[2:9]),
    "lists": (lambda a: a.oindex[[22, 0], :, [1, 5, 4]], lambda v: v[[22, 0]][:, :, [1, 5, 4]]),
    "a mask of an axis": (
        lambda a: a.oindex[np.arange(23) % 5 == 1], lambda v: v[np.arange(23) % 5 == 1]
    ),
    "points": (lambda a: a.vindex[[1, 22], [3, 0], 5], lambda v: v[[1, 22], [3, 0], 5]),
    "points of two axes": (lambda a: a.vindex[POINTS], lambda v: v[POINTS]),
    "many points": (lambda a: a.vindex[np.indices(SHAPE)[0], np.indices(SHAPE)[1], 5],
                    lambda v: v[np.indices(SHAPE)[0], np.indices(SHAPE)[1], 5]),
    "a mask": (lambda a: a[MASK], lambda v: v[MASK]),
    "a full mask": (lambda a: a.get_mask_selection(MASK | True), lambda v: v.ravel()),
    "chunks": (lambda a: a.blocks[1:3, -1], lambda v: v[5:15, 28:]),
    "nothing": (lambda a: a[4:4, 2:5], lambda v: v[4:4, 2:5]),
    "a new prototype": (
        lambda a: a.get_orthogonal_selection(slice(3, 9), prototype=gpu.buffer_prototype),
        lambda v: v[3:9],
    ),
}  # fmt: skip


@pytest.mark.each_of(4)
@pytest.mark.parametrize("name", SELECTIONS)
def test_selections(tmp_path: Path, values: np.ndarray, cupy: Any, name: str, way: str) -> None:
    (tmp_path / "d.n5/d/0/1/1").unlink()  # the fill value, 0
    values[5:10, 7:14, :11] = 0
    read, expected = SELECTIONS[name]
    array = n5zarr.open_array(tmp_path / "d.n5", path="d")
    check(cupy, read(array), expected(values))
    if hasattr(cupy, "moved"):  # the stand-in counts: only the result is moved
        assert count(cupy, lambda: read(array)) == (expected(values).nbytes, 0)


def test_a_scalar_stays_on_the_host(tmp_path: Path, values: np.ndarray, counting: Any) -> None:
    array = n5zarr.open_array(tmp_path / "d.n5", path="d")
    found: Any = None

    def read() -> None:
        nonlocal found
        found = array.get_basic_selection((3, 4, 5))

    assert count(counting, read) == (0, 0)
    assert type(found) is np.uint16  # as zarr's
    assert found == values[3, 4, 5]


@pytest.mark.parametrize("fill_value", [0, 7])
def test_missing_blocks(tmp_path: Path, cupy: Any, fill_value: int, way: str) -> None:
    array = n5zarr.create_array(
        tmp_path / "m.n5", path="d", shape=(7, 11), chunks=(3, 5), dtype="f4", fill_value=fill_value
    )
    check(cupy, array[1:], np.full((6, 11), fill_value, "f4"))


OF_BOXES = ("axes in N5's order", "big-endian", "in memory", "Zarr v2")
PLACES: dict[str, Callable[[Path, np.ndarray], Any]] = {
    **{name: PLACES_OF_BOXES[name] for name in OF_BOXES},
    "zarr's codecs": lambda path, v: n5zarr.create_array(
        N5Store(path, codecs="portable"), path="d", data=v, chunks=CHUNKS
    ),
    "label multisets": lambda path, v: n5zarr.create_array(
        path, path="d", data=v.astype("u8"), chunks=CHUNKS, label_multiset=True
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_any_array_of_a_container(tmp_path: Path, counting: Any, name: str) -> None:
    values = np.random.default_rng(1).integers(1, 6, SHAPE).astype("u2")
    with zarr.config.set(ON_HOST):
        array = PLACES[name](tmp_path / "c.n5", values)
    native = array.dtype.newbyteorder("=")
    found: list[Any] = []
    n_bytes = count(counting, lambda: found.append(array[2:19, :, 3:]))
    check(counting, found[0], values[2:19, :, 3:].astype(native))
    assert n_bytes == (found[0].nbytes, 0)
    opened: Any = array if name == "in memory" else n5zarr.open_array(array.store, path="d")
    check(counting, opened.vindex[POINTS], values[POINTS].astype(native))
    check(
        counting,
        n5zarr.read_boxes(array, [(1, 2, 3)], (9, 8, 7)),
        values[1:10, 2:10, 3:10][None].astype(native),
    )


def test_results_go_into_a_buffer_of_the_device(
    tmp_path: Path, values: np.ndarray, cupy: Any, way: str
) -> None:
    array: Any = n5zarr.open_array(tmp_path / "d.n5", path="d")

    def out(*shape: int) -> NDBuffer:
        return gpu.NDBuffer.create(shape=shape, dtype="u2", fill_value=9)

    box = out(7, 31, 19)
    assert array.get_basic_selection(slice(2, 9), out=box) is box.as_ndarray_like()
    check(cupy, box.as_ndarray_like(), values[2:9])
    array.get_orthogonal_selection(([22, 0],), out=(rows := out(2, 31, 19)))
    check(cupy, rows.as_ndarray_like(), values[[22, 0]])
    points = ([[1], [22]], [3, 30], 5)
    found = array.get_coordinate_selection(points, out=(flat := out(4)))
    check(cupy, flat.as_ndarray_like(), values[points].ravel())
    check(cupy, found, values[points])
    array.get_mask_selection(MASK, out=(some := out(int(MASK.sum()))))
    check(cupy, some.as_ndarray_like(), values[MASK])
    array.get_block_selection((1, 0, 1), out=(block := out(5, 7, 8)))
    check(cupy, block.as_ndarray_like(), values[5:10, :7, 11:])
    array.get_basic_selection((3, 4, 5), out=(one := out()))
    check(cupy, one.as_ndarray_like(), values[3, 4, 5, None].reshape(()))
    with pytest.raises(ValueError, match="shape of out argument doesn't match"):
        array.get_basic_selection(slice(2, 9), out=out(6, 31, 19))


def test_a_prototype_decides(tmp_path: Path, values: np.ndarray, counting: Any) -> None:
    array: Any = n5zarr.open_array(tmp_path / "d.n5", path="d")
    host = array.get_basic_selection(slice(2, 9), prototype=cpu.buffer_prototype)
    assert type(host) is np.ndarray
    out = np.empty((7, 31, 19), "u2")
    array.get_basic_selection(slice(2, 9), out=cpu.NDBuffer.from_numpy_array(out))
    np.testing.assert_array_equal(out, values[2:9])
    assert counting.moved["calls"] == 0
    np.testing.assert_array_equal(host, values[2:9])
    with zarr.config.set({"ndbuffer": "zarr.buffer.cpu.NDBuffer"}):
        found = array.get_basic_selection(slice(2, 9), prototype=gpu.buffer_prototype)
    check(counting, found, values[2:9])


class Marked(np.ndarray):
    """An array of a class of its own."""


class MarkedOnHost(cpu.NDBuffer):
    """A buffer of the host in which zarr makes arrays of a class of its own."""

    @classmethod
    def create(cls, *, shape: Any, dtype: Any, order: Any = "C", fill_value: Any = None) -> Any:
        elements: Any = np.empty(tuple(shape), dtype, order).view(Marked)
        made = cls(elements)
        if fill_value is not None:
            made.fill(fill_value)
        return made

    @classmethod
    def empty(cls, shape: Any, dtype: Any, order: Any = "C") -> Any:
        return cls.create(shape=shape, dtype=dtype, order=order)


class MarkedElsewhere(NDBuffer):
    """A buffer that is not the host's, with as little as zarr's interface demands."""

    @classmethod
    def create(cls, *, shape: Any, dtype: Any, order: Any = "C", fill_value: Any = None) -> Any:
        raise AssertionError("expected `from_numpy_array`")

    @classmethod
    def from_numpy_array(cls, array_like: Any) -> Any:
        elements: Any = np.array(array_like).view(Marked)
        return cls(elements)

    def as_numpy_array(self) -> np.ndarray:
        return np.array(self._data)

    def __getitem__(self, key: Any) -> Any:
        return type(self)(self._data[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value.as_ndarray_like()


@pytest.mark.parametrize("kind", [MarkedOnHost, MarkedElsewhere])
@pytest.mark.usefixtures("pipeline")
def test_other_classes_of_buffers(tmp_path: Path, values: np.ndarray, kind: Any, way: str) -> None:
    array: Any = n5zarr.open_array(tmp_path / "d.n5", path="d")
    prototype = BufferPrototype(cpu.Buffer, kind)
    for found, expected in (
        (array.get_basic_selection(slice(2, 9), prototype=prototype), values[2:9]),
        (array.get_orthogonal_selection(([4, 2],), prototype=prototype), values[[4, 2]]),
    ):
        assert type(found) is Marked
        np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------------------------- many boxes


def test_many_boxes(tmp_path: Path, values: np.ndarray, cupy: Any, way: str) -> None:
    array: Any = n5zarr.open_array(tmp_path / "d.n5", path="d")
    starts = [(0, 0, 0), (18, 25, 8), (3, 5, 7)]
    expected = np.stack([values[x : x + 5, y : y + 6, z : z + 11] for x, y, z in starts])
    check(cupy, array.read_boxes(starts, (5, 6, 11)), expected)
    out = cupy.zeros((3, 5, 6, 11), "u2")
    assert array.read_boxes(starts, (5, 6, 11), out) is out
    check(cupy, out, expected)
    host = np.empty((3, 5, 6, 11), "u2")
    assert array.read_boxes(starts, (5, 6, 11), host) is host
    np.testing.assert_array_equal(host, expected)
    check(cupy, array.read_boxes([], (5, 6, 11)), expected[:0])
    with pytest.raises(N5UnrepresentableError, match=r"out: expected an array of uint16 and shape"):
        array.read_boxes(starts, (5, 6, 11), cupy.zeros((3, 5, 6, 11), "u4"))
    with (
        zarr.config.set({"ndbuffer": "zarr.buffer.cpu.NDBuffer"}),
        pytest.raises(N5UnrepresentableError, match=r"got ndarray; call zarr\.config\.enable_gpu"),
    ):
        array.read_boxes(starts, (5, 6, 11), out)


# ------------------------------------------------------------------------------------- writing

WRITING: dict[str, Callable[[Any, Callable[[Any], Any], np.ndarray], None]] = {
    "all": lambda a, to, v: a.__setitem__(..., to(v)),
    "a box": lambda a, to, v: a.__setitem__((slice(2, 9), 4), to(v[2:9, 4])),
    "steps": lambda a, to, v: a.__setitem__(slice(1, None, 3), to(v[1::3])),
    "basic": lambda a, to, v: a.set_basic_selection(slice(2, 9), to(v[2:9])),
    "another dtype": lambda a, to, v: a.__setitem__(slice(2, 9), to(v[2:9].astype("f8"))),
    "lists": lambda a, to, v: a.oindex.__setitem__([22, 1], to(v[[22, 1]])),
    "points": lambda a, to, v: a.vindex.__setitem__(([1, 22], [3, 30], [0, 18]), to(v[0, 0, :2])),
    "points of two axes": lambda a, to, v: a.vindex.__setitem__(
        ([[1], [22]], [3, 30], [[0, 18], [1, 2]]), to(v[0, :2, :2])
    ),
    "a mask": lambda a, to, v: a.__setitem__(MASK, to(v[MASK])),
    "chunks": lambda a, to, v: a.blocks.__setitem__((1, 0, 1), to(v[5:10, :7, 11:])),
    "an element": lambda a, to, v: a.__setitem__((3, 4, 5), to(np.array(v[3, 4, 5]))),
    "a number": lambda a, _, __: a.__setitem__(slice(2, 9), 3),
}  # fmt: skip


@pytest.mark.each_of(5)
@pytest.mark.parametrize("name", WRITING)
def test_the_same_bytes_are_written(
    tmp_path: Path, values: np.ndarray, cupy: Any, name: str, way: str
) -> None:
    del values
    new = np.random.default_rng(5).integers(0, 99, SHAPE).astype("u2")

    def written(place: str, to: Callable[[Any], Any]) -> dict[str, bytes]:
        array = n5zarr.create_array(
            tmp_path / place, path="d", shape=SHAPE, chunks=CHUNKS, dtype="u2", compression="zstd"
        )
        WRITING[name](array, to, new)
        root = tmp_path / place / "d"
        return {str(f.relative_to(root)): f.read_bytes() for f in root.rglob("*/*/*")}

    with zarr.config.set(ON_HOST):
        expected = written("host", np.asarray)
    assert expected
    assert written("device", cupy.asarray) == expected
    assert written("from the host", np.asarray) == expected


def test_an_array_is_created_with_elements_of_the_device(tmp_path: Path, counting: Any) -> None:
    values = np.arange(7 * 11, dtype="i4").reshape(7, 11)
    data = counting.asarray(values)

    def create(path: str, **options: Any) -> None:
        n5zarr.create_array(tmp_path / path, path="d", chunks=(3, 5), **options)

    # zarr moves its documents to the device and back
    documents = count(counting, lambda: create("f.n5", shape=(7, 11), dtype="i4"))
    there, back = count(counting, lambda: create("e.n5", data=data))
    assert (there, back - values.nbytes) == documents
    check(counting, n5zarr.open_array(tmp_path / "e.n5", path="d")[...], values)


# ------------------------------------------------------------------------ what computes on the host


def test_without_page_locked_memory_left_elements_are_read(
    tmp_path: Path, values: np.ndarray, counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("cudaErrorMemoryAllocation: out of memory")

    monkeypatch.setattr(sys.modules["cupyx"], "empty_pinned", refuse)
    array: Any = n5zarr.open_array(tmp_path / "d.n5", path="d")
    check(counting, array[2:9], values[2:9])
    check(counting, array.read_boxes([(1, 2, 3)], (4, 5, 6)), values[None, 1:5, 2:7, 3:9])


@pytest.mark.usefixtures("counting")
def test_strings_are_refused_for_a_gpu(tmp_path: Path) -> None:
    words = np.array(["a", "bc", "d"], object)
    with zarr.config.set(ON_HOST):
        array = n5zarr.create_array(
            tmp_path / "s.n5", path="d", data=words, dtype="string", chunks=(2,)
        )
    with pytest.raises(N5UnrepresentableError, match=r"expected numbers .*cpu\.buffer_prototype"):
        n5zarr.read_boxes(array, [(0,)], (2,))
    found = array.get_basic_selection(prototype=cpu.buffer_prototype)
    np.testing.assert_array_equal(found, words)


def test_functions_that_compute_do_so_on_the_host(
    tmp_path: Path, values: np.ndarray, cupy: Any, way: str
) -> None:
    n5 = tmp_path / "d.n5"
    n5zarr.convert(tmp_path / "d.zarr", tmp_path / "made.n5")
    n5zarr.convert(n5, tmp_path / "made.zarr", chunks=(9, 9, 9))
    for made_there in (tmp_path / "made.n5", tmp_path / "made.zarr/d"):
        place: Any = N5Store(made_there) if made_there.suffix == ".n5" else made_there
        check(cupy, zarr.open_array(place, mode="r")[...], values)
    array = n5zarr.open_array(n5, path="d")
    assert n5zarr.compare_arrays(array, zarr.open_array(tmp_path / "d.zarr", mode="r")) is None
    assert n5zarr.thumbnail(array).size
    n5zarr.build_pyramid(n5, "d", to="e", levels=1, factors=(2, 2, 2), method="stride")
    check(cupy, n5zarr.open_array(n5, path="e/s1")[...], values[::2, ::2, ::2])


def test_views_of_a_project_are_read_onto_the_host(tmp_path: Path, pipeline: None) -> None:
    xr = pytest.importorskip("xarray")
    image = np.random.default_rng(2).integers(0, 99, (2, 7, 11, 5)).astype("u2")
    data = xr.DataArray(image, dims=("setup", "z", "y", "x"), name="image")
    n5zarr.write_bdv(data, tmp_path / "dataset.xml")
    with stand_in(), zarr.config.enable_gpu():
        views = n5zarr.open_bdv(tmp_path / "dataset.xml", chunks=None)["s0"]["data"]
        np.testing.assert_array_equal(views.squeeze().values, image)
