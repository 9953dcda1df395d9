"""The fast path reads and writes the same as zarr's own pipelines for any selection."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

import n5zarr
from n5zarr import N5Store
from n5zarr.fast import batches, kernel
from n5zarr.fast.pipeline import N5CodecPipeline
from tests.contract.stored import by_tensorstore

FEWER = settings(max_examples=settings().max_examples // 5)  # there are many presentations
SHAPE, BLOCK = (13, 17, 11), (5, 7, 4)  # blocks truncated along every axis
COMPRESSIONS = ["raw", "gzip", "zstd", "blosc", "xz"]


def pipeline_of(array: Any) -> Any:
    return array.async_array.codec_pipeline


def values() -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(1, 2**16, SHAPE).astype("u2")


@pytest.fixture(scope="module", params=["kernel", "python"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Choose the kernel or Python; the pipeline is on, whatever the environment says."""
    name = f"{N5CodecPipeline.__module__}.{N5CodecPipeline.__qualname__}"
    with pytest.MonkeyPatch.context() as patch, zarr.config.set({"codec_pipeline.path": name}):
        if request.param == "python":
            patch.setattr(kernel, "can_do", lambda dataset: False)
        elif kernel._kernel is None:
            pytest.skip("no compiled kernel")
        yield str(request.param)


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fast") / "c.n5"
    for name in COMPRESSIONS:
        n5zarr.create_array(root, path=name, data=values(), chunks=BLOCK, compression=name)
    (root / "raw" / "1" / "1" / "1").unlink()
    for name, options in (("big", {"compression": None}), ("single", {"fill_value": 3})):
        chunks = {"big": (80, 64, 60), "single": (5, 4, 3)}[name]
        n5zarr.create_array(root, path=name, data=expected(name), chunks=chunks, **options)
    return root


@cache
def expected(name: str) -> np.ndarray[Any, Any]:
    found = make_expected(name)
    found.flags.writeable = False
    return found


def make_expected(name: str) -> np.ndarray[Any, Any]:
    if name == "big":
        return np.random.default_rng(2).integers(0, 2**16, (90, 80, 70)).astype("u2")
    if name == "single":  # one element at the end of every axis
        return np.arange(5, 5 + 6 * 13 * 7).reshape(6, 13, 7).astype("u2")
    found = values()
    if name == "raw":
        found[5:10, 7:14, 4:8] = 0
    return found


def test_arrays_have_it_and_keep_it(container: Path, way: str) -> None:
    array = n5zarr.open(container, path="gzip")
    assert isinstance(pipeline_of(array), N5CodecPipeline)
    assert isinstance(pipeline_of(pickle.loads(pickle.dumps(array))), N5CodecPipeline)
    made = n5zarr.create_array(container, path=f"made {way}", shape=(3,), dtype="u1")
    assert isinstance(pipeline_of(made), N5CodecPipeline)
    for how in PRESENTATIONS.values():
        child = zarr.open_group(N5Store(container, **how), mode="r")["gzip"]
        assert isinstance(pipeline_of(child), N5CodecPipeline)
    assert not isinstance(pipeline_of(zarr.zeros((3,))), N5CodecPipeline)


def index(n: int) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.integers(-n, n - 1),
        st.builds(slice, st.integers(0, n), st.integers(0, n), st.integers(1, 4)),
        st.builds(slice, st.integers(-n, -1)),
        st.just(slice(None)),
    )


def integers(n: int) -> st.SearchStrategy[Any]:
    """Return integers of an axis: sorted, unsorted, repeated or negative."""
    found = st.lists(st.integers(-n, n - 1), min_size=1, max_size=6)
    return st.one_of(found, found.map(sorted)).map(np.array)


def mask(n: int) -> st.SearchStrategy[Any]:
    return st.lists(st.booleans(), min_size=n, max_size=n).map(np.array)


class Selection(NamedTuple):
    """The same selection in the terms of zarr and of numpy."""

    get: str
    set: str
    zarrs: Any
    numpys: Any
    shape: tuple[int, ...]  # of what is selected

    def is_unique(self, whole: tuple[int, ...]) -> bool:
        """Return whether no element is selected twice."""
        chosen = np.arange(math.prod(whole)).reshape(whole)[self.numpys]
        return bool(np.unique(chosen).size == chosen.size)


def orthogonal(
    data: st.DataObject, shape: tuple[int, ...], kinds: Any, names: tuple[str, str]
) -> Selection:
    parts = tuple(data.draw(kinds(n)) for n in shape)
    chosen = [np.atleast_1d(np.arange(n)[part]) for part, n in zip(parts, shape, strict=True)]
    kept = (len(c) for c, part in zip(chosen, parts, strict=True) if not isinstance(part, int))
    return Selection(*names, parts, np.ix_(*chosen), tuple(kept))


def blocks(data: st.DataObject, shape: tuple[int, ...], chunks: tuple[int, ...]) -> Selection:
    grid = [-(-n // size) for n, size in zip(shape, chunks, strict=True)]
    first = [data.draw(st.integers(0, n - 1)) for n in grid]
    after = [data.draw(st.integers(i + 1, n)) for i, n in zip(first, grid, strict=True)]
    bounds = zip(first, after, chunks, shape, strict=True)
    box = tuple(slice(i * size, min(j * size, n)) for i, j, size, n in bounds)
    names = ("get_block_selection", "set_block_selection")
    chosen = tuple(part.stop - part.start for part in box)
    return Selection(*names, tuple(map(slice, first, after)), box, chosen)


def coordinates(data: st.DataObject, shape: tuple[int, ...]) -> Selection:
    n = data.draw(st.integers(1, 6))
    lists = [st.lists(st.integers(-m, m - 1), min_size=n, max_size=n).map(np.array) for m in shape]
    points = tuple(data.draw(found) for found in lists)
    if n % 2 == 0 and data.draw(st.booleans()):
        points = tuple(p.reshape(2, -1) for p in points)
    names = ("get_coordinate_selection", "set_coordinate_selection")
    return Selection(*names, points, points, points[0].shape)


def selections(
    data: st.DataObject, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> Iterator[Selection]:
    """Return one selection of every kind that zarr has."""
    basic = ("get_basic_selection", "set_basic_selection")
    yield orthogonal(data, shape, index, basic)
    names = ("get_orthogonal_selection", "set_orthogonal_selection")
    yield orthogonal(data, shape, lambda n: index(n) | integers(n) | mask(n), names)
    yield orthogonal(data, shape, mask, names)
    axis = data.draw(st.integers(0, len(shape) - 1))
    one = [slice(None)] * len(shape)
    one[axis] = data.draw(integers(shape[axis]) | mask(shape[axis]))
    n = len(np.arange(shape[axis])[one[axis]])
    kept = (*shape[:axis], n, *shape[axis + 1 :])
    yield Selection("__getitem__", "__setitem__", tuple(one), tuple(one), kept)
    yield blocks(data, shape, chunks)
    points = coordinates(data, shape)
    yield points
    where = np.zeros(shape, bool)
    where[points.numpys] = True
    names = ("get_mask_selection", "set_mask_selection")
    yield Selection(*names, where, where, (int(where.sum()),))


PRESENTATIONS: dict[str, dict[str, Any]] = {
    "fast": {}, "fast F": {"axis_order": "F"}, "plain": {"codecs": "zarr"},
    "plain F": {"codecs": "zarr", "axis_order": "F"},
    "plain v2": {"codecs": "zarr", "zarr_format": 2}, "portable": {"codecs": "portable"},
    "n5": {"codecs": "n5"},
}  # fmt: skip


def presented(root: Path, name: str, how: dict[str, Any]) -> Any:
    if "codecs" in how:
        return zarr.open_array(N5Store(root, **how), path=name, mode="r+")
    return n5zarr.open(root, path=name, mode="r+", **how)


@pytest.mark.each_of(4)
@pytest.mark.parametrize("how", PRESENTATIONS.values(), ids=PRESENTATIONS)
@pytest.mark.parametrize("name", ["raw", "zstd", "single", "big"])
@given(data=st.data())
@FEWER
def test_every_selection(
    container: Path, name: str, how: dict[str, Any], data: st.DataObject
) -> None:
    array = presented(container, name, how)
    whole = expected(name) if how.get("axis_order", "C") == "C" else expected(name).T
    for selection in selections(data, whole.shape, array.chunks):
        found = getattr(array, selection.get)(selection.zarrs)
        wanted = whole[selection.numpys].reshape(selection.shape)
        np.testing.assert_array_equal(found, wanted, str(selection[:3]))


def n_bytes_read() -> int:
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(lines[0].removeprefix("rchar: "))


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux counts what is read")
@pytest.mark.parametrize(("z", "most"), [
    (0, 2), (7, 2), (79, 2), (slice(80), 1.01), (slice(3, 77), 1.1),
])  # fmt: skip
def test_only_what_is_needed_of_a_large_raw_block_is_read(
    container: Path, way: str, z: Any, most: float
) -> None:
    array: Any = n5zarr.open(container, path="big")
    box = (z, slice(64), slice(60))
    n_bytes = array[box].nbytes
    before, nothing = n_bytes_read(), n_bytes_read()
    array[box]
    read = n_bytes_read() - nothing - (nothing - before)
    assert n_bytes <= read < most * n_bytes, way


@pytest.mark.parametrize("name", ["smaller-block", "larger-block", "mode1-exact", "trailing-bytes"])
def test_blocks_of_other_sizes(name: str) -> None:
    java = Path(__file__).parents[1] / "data" / "java" / "blocks.n5"
    fast: Any = n5zarr.open(java, path=name)
    plain: Any = zarr.open_array(N5Store(java), path=name, mode="r")
    np.testing.assert_array_equal(fast[...], plain[...])
    np.testing.assert_array_equal(fast[1:, ::2], plain[1:, ::2])
    points = tuple(axis.ravel() for axis in np.indices(plain.shape))
    np.testing.assert_array_equal(plain.vindex[points], np.asarray(plain[...]).ravel())


@pytest.mark.parametrize("how", [{}, {"axis_order": "F"}])
def test_an_array_that_was_made_smaller_meanwhile(tmp_path: Path, how: Any) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(8, 7), chunks=(4, 5), dtype="u1", **how)
    store = N5Store(tmp_path / "c.n5", codecs="n5", **how)
    stale: Any = n5zarr.open(store, path="a", mode="r+")
    stale[...] = 7
    one: Any = n5zarr.open(store, path="a", mode="r+")
    one.resize((6, 7))
    one[...] = 9
    expected = np.zeros((8, 7), "u1")
    expected[:6] = 9
    boxes: list[Any] = [np.s_[:8, :7], np.s_[5:8, 2], np.s_[7, 6], np.s_[4::3, :7]]
    for where in boxes:
        np.testing.assert_array_equal(stale[where], expected[where])
    np.testing.assert_array_equal(stale.oindex[[4, 7], [0, 6]], expected[np.ix_([4, 7], [0, 6])])


def test_points_of_an_array_that_was_made_smaller_meanwhile(tmp_path: Path) -> None:
    made = n5zarr.create_array(tmp_path, path="a", shape=(8, 7), chunks=(4, 5), dtype="u1")
    made[...] = 7
    stale: Any = zarr.open_array(N5Store(tmp_path), path="a", mode="r")
    points = ([7, 0, 5, 6], [6, 1, 5, 0])
    assert stale.vindex[points].tolist() == [7, 7, 7, 7]
    made.resize((6, 7))
    made[...] = 9
    assert stale.vindex[points].tolist() == [0, 9, 9, 0]


@pytest.mark.parametrize("name", ["raw", "zstd", "xz", "single"])
def test_whatever_is_selected_the_kernel_reads_small_blocks(
    container: Path, way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "python":
        return
    monkeypatch.setattr(batches, "read_blocks", None)
    array: Any = zarr.open_array(N5Store(container), path=name, mode="r")
    values, some = expected(name), np.random.default_rng(3)
    points = tuple(some.integers(-n, n, (5, 7)) for n in values.shape)
    np.testing.assert_array_equal(array.vindex[points], values[points])
    mask = some.random(values.shape) < 0.01
    np.testing.assert_array_equal(array.vindex[mask], values[mask])
    np.testing.assert_array_equal(array[::4, 1::3, ::2], values[::4, 1::3, ::2])
    np.testing.assert_array_equal(array.oindex[[4, 0], 3], values[[4, 0], 3])


# ---------------------------------------------------------------------- writing


@pytest.mark.each_of(7)
@pytest.mark.parametrize("how", PRESENTATIONS.values(), ids=PRESENTATIONS)
@pytest.mark.parametrize("name", ["raw", "gzip"])
@given(data=st.data())
@FEWER
def test_every_way_of_assigning(
    tmp_path_factory: pytest.TempPathFactory, name: str, how: dict[str, Any], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("set") / "c.n5"
    single = data.draw(st.booleans())  # one element at the end of every axis, or more
    made: Any = n5zarr.create_array(
        root, path="a", shape=(6, 13, 7) if single else (7, 11, 5), chunks=(5, 4, 3), dtype="u2",
        compression={"type": name},
    )  # fmt: skip
    if data.draw(st.booleans()):
        made[...] = 9
    array = presented(root, "a", how)
    model = np.array(array[...])
    for k, selection in enumerate(selections(data, model.shape, array.chunks)):
        value: Any = 1 + k
        if selection.is_unique(model.shape) and data.draw(st.booleans()):
            value = (np.arange(math.prod(selection.shape)) + 10 * k).reshape(selection.shape)
            value = value.astype("u2")
        getattr(array, selection.set)(selection.zarrs, value)
        shape = model[selection.numpys].shape
        model[selection.numpys] = np.broadcast_to(value, selection.shape).reshape(shape)
        np.testing.assert_array_equal(array[...], model, str(selection[1:3]))
    theirs = by_tensorstore(root / "a")
    np.testing.assert_array_equal(theirs if how.get("axis_order", "C") == "C" else theirs.T, model)


@pytest.mark.each_of(11)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("dtype", ["u2", ">u2", "i2", "u4", "f2", "u1", ">f8", "bool", "c16"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("how", PRESENTATIONS.values(), ids=PRESENTATIONS)
def test_an_output_of_another_dtype_or_order(
    container: Path, how: dict[str, Any], dtype: str, order: Any
) -> None:
    values = expected("zstd") if how.get("axis_order", "C") == "C" else expected("zstd").T
    array = presented(container, "zstd", how)
    out = np.full(values.shape, 7, dtype, order=order)
    array.get_basic_selection(out=zarr.buffer.cpu.NDBuffer(out))
    np.testing.assert_array_equal(out, values.astype(dtype))


# ---------------------------------------------------------------------- arrays that zarr creates

LITTLE: dict[str, dict[str, Any]] = {
    "v3": {"compressors": ZstdCodec(level=1)},
    "v3, raw": {"compressors": None},
    "v3, gzip and a checksum": {"compressors": [GzipCodec(level=1), Crc32cCodec()]},
    "v3, transposed": {"filters": [TransposeCodec(order=(2, 0, 1))]},
    "v2": {"zarr_format": 2},
    "v2, little": {"zarr_format": 2, "dtype": "<u2", "order": "F"},
}


@pytest.mark.parametrize("options", LITTLE.values(), ids=LITTLE)
def test_the_store_that_created_an_array_reads_blocks_too(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    zarr_format = options.get("zarr_format", 3)
    store = N5Store(tmp_path / "c.n5", zarr_format=zarr_format)
    given = {"dtype": "u2", "shape": SHAPE, "chunks": BLOCK} | options
    array: Any = zarr.create_array(store, name="a", **given)

    def fail(self: N5CodecPipeline) -> Any:
        raise AssertionError

    monkeypatch.setattr(N5CodecPipeline, "zarr_pipeline", property(fail))
    model = values()
    array[...] = model
    array[2:7, ::3, 4] = model[2:7, ::3, 4] = 5
    np.testing.assert_array_equal(array[...], model)
    np.testing.assert_array_equal(array.oindex[[1, 11], 3:9, [0, 10]], model[[1, 11]][:, 3:9, ::10])
    monkeypatch.undo()
    reopened = zarr.open_array(N5Store(tmp_path / "c.n5"), path="a", mode="r")
    np.testing.assert_array_equal(reopened[...], model)
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "c.n5" / "a"), model)


@pytest.mark.parametrize("dtype", ["i4", "bool", "c8", "f2", "M8[s]"])
@pytest.mark.parametrize("is_created", [True, False])
def test_elements_that_another_writer_has_appended_stay(
    tmp_path: Path, dtype: str, *, is_created: bool
) -> None:
    path = tmp_path / "c.n5"
    made: Any = zarr.create_array(N5Store(path), name="a", shape=(6,), chunks=(4,), dtype=dtype)
    array = made if is_created else zarr.open_array(N5Store(path), path="a", mode="r+")
    other: Any = zarr.open_array(N5Store(path), path="a", mode="r+")
    one = np.ones(2, "i8").astype(dtype)
    other.resize((8,))
    other[6:8] = one
    array[4:6] = one  # all that it knows of the last chunk
    found: Any = zarr.open_array(N5Store(path), path="a", mode="r")
    np.testing.assert_array_equal(found[4:8], np.concatenate([one, one]))


def test_one_element_written_as_an_array_of_one(tmp_path: Path) -> None:
    array: Any = zarr.create_array(N5Store(tmp_path), name="a", shape=(6,), chunks=(1,), dtype="u2")
    array[-6] = np.array([91])
    assert array[...].tolist() == [91, 0, 0, 0, 0, 0]
