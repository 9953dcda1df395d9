"""Many boxes, steps, points, masks and lists of positions are read as numpy and zarr read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.box import Box, Groups
from n5zarr.arrays.open_dataset import dataset_of_array
from n5zarr.codecs.buffers import Scratch
from n5zarr.errors import N5BlockError, N5UnrepresentableError
from n5zarr.fast import kernel
from tests.contract.test_kernel import COMPRESSIONS, name
from tests.memory import traced
from tests.remote.test_blocks import Watched

if TYPE_CHECKING:
    from pathlib import Path

SHAPE, CHUNKS = (23, 31, 19), (5, 7, 11)


def written(path: Path, compression: Any) -> tuple[Any, np.ndarray]:
    """Write numbers, and one missing block; return the array and the numbers."""
    values = np.random.default_rng(1).integers(1, 2**16, SHAPE).astype("u2")
    values[5:10, 7:14, :11] = 0
    array = n5zarr.create_array(
        path, path="d", shape=SHAPE, chunks=CHUNKS, dtype="u2", compression=compression
    )
    array[...] = values
    assert not (path / "d/0/1/1").exists()
    return n5zarr.open_array(path, path="d"), values


@pytest.fixture(params=COMPRESSIONS, ids=name, scope="module")
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, np.ndarray]:
    return written(tmp_path_factory.mktemp("boxes"), request.param)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, np.ndarray]:
    """Return what no compression changes."""
    return written(tmp_path_factory.mktemp("raw"), "raw")


def cut(values: np.ndarray, starts: Any, shape: tuple[int, ...]) -> np.ndarray:
    boxes = [tuple(map(slice, start, np.add(start, shape))) for start in starts]
    return np.array([values[box] for box in boxes]).reshape(len(starts), *shape)


@pytest.mark.each_of(7)
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 6, 10), (5, 7, 11), (13, 2, 17), SHAPE])
def test_boxes(both: tuple[Any, np.ndarray], shape: tuple[int, ...], way: str) -> None:
    array, values = both
    rng = np.random.default_rng(2)
    starts = rng.integers(0, np.subtract(SHAPE, shape) + 1, (29, 3))
    expected = cut(values, starts, shape)
    np.testing.assert_array_equal(n5zarr.read_boxes(array, starts, shape), expected)
    out = np.empty((29, *shape), "u2")
    assert array.read_boxes(starts.tolist(), shape, out) is out
    np.testing.assert_array_equal(out, expected)


PLACES: dict[str, Any] = {
    "axes in N5's order": lambda path, values: n5zarr.create_array(
        path, path="d", data=values, chunks=CHUNKS, axis_order="F"
    ),
    "big-endian": lambda path, values: n5zarr.create_array(
        path, path="d", data=values.astype(">u2"), chunks=CHUNKS
    ),
    "opened by zarr": lambda path, values: zarr.create_array(
        N5Store(path), name="d", data=values, chunks=CHUNKS
    ),
    "Zarr v2": lambda path, values: zarr.create_array(
        N5Store(path), name="d", data=values, chunks=CHUNKS, zarr_format=2
    ),
    "in memory": lambda _, values: n5zarr.create_array(
        zarr.storage.MemoryStore(), path="d", data=values, chunks=CHUNKS
    ),
    "Zarr with shards": lambda path, values: zarr.create_array(
        path, name="d", data=values, chunks=CHUNKS, shards=(10, 14, 22)
    ),
    "text": lambda path, values: n5zarr.create_array(
        path, path="d", data=values.astype("T"), chunks=CHUNKS
    ),
}


@pytest.mark.parametrize("made", PLACES.values(), ids=PLACES.keys())
def test_boxes_of_any_array(tmp_path: Path, made: Any) -> None:
    values = np.random.default_rng(3).integers(1, 2**16, SHAPE).astype("u2")
    array = made(tmp_path / "c", values)
    starts = [(0, 0, 0), (18, 25, 8), (3, 5, 7), (3, 5, 7)]
    found = n5zarr.read_boxes(array, starts, (5, 6, 11))
    np.testing.assert_array_equal(found, cut(values.astype(found.dtype), starts, (5, 6, 11)))


@pytest.mark.parametrize("codecs", ["n5", "zarr"])
def test_chunks_of_several_sizes(tmp_path: Path, codecs: Any) -> None:
    values = np.random.default_rng(3).integers(1, 2**16, SHAPE).astype("u2")
    n5zarr.create_array(tmp_path, path="d", data=values, chunks=CHUNKS)
    starts = [(0, 0, 0), (18, 25, 8), (3, 5, 7)]
    with zarr.config.set({"array.rectilinear_chunks": True}):
        store = N5Store(tmp_path, chunk_grid="rectilinear", codecs=codecs)
        array: Any = n5zarr.open_array(store, path="d", mode="r")
        found = n5zarr.read_boxes(array, starts, (5, 6, 11))
        np.testing.assert_array_equal(found, cut(values, starts, (5, 6, 11)))
        np.testing.assert_array_equal(
            array.vindex[[1, 22], [3, 4], [5, 18]], values[[1, 22], [3, 4], [5, 18]]
        )
        np.testing.assert_array_equal(array.oindex[[3, 22]], values[[3, 22]])
        np.testing.assert_array_equal(array[values > 60000], values[values > 60000])
        np.testing.assert_array_equal(array.blocks[-1, 1], values[20:, 7:14])
        np.testing.assert_array_equal(array[::3, 1::2], values[::3, 1::2])


def test_each_block_is_requested_once() -> None:
    values = np.random.default_rng(4).integers(1, 2**16, SHAPE).astype("u2")
    store = Watched()
    n5zarr.create_array(store, path="d", data=values, chunks=CHUNKS)
    array: Any = n5zarr.open_array(store, path="d", mode="r")
    store.asked.clear()
    starts = [(0, 0, 0), (1, 2, 3), (2, 1, 0), (3, 4, 5)]
    np.testing.assert_array_equal(
        array.read_boxes(starts, (3, 4, 7)), cut(values, starts, (3, 4, 7))
    )
    # along x they reach over element 11, along y over 7, along z over 5
    blocks = [key for key, _ in store.asked if not key.endswith("attributes.json")]
    assert sorted(blocks) == sorted(
        f"d/{x}/{y}/{z}" for x in (0, 1) for y in (0, 1) for z in (0, 1)
    )


def test_reading_takes_the_memory_of_the_result_and_few_blocks(tmp_path: Path, way: str) -> None:
    values = np.random.default_rng(4).integers(0, 9, (160, 130, 170)).astype("u1")
    array: Any = n5zarr.create_array(
        tmp_path, path="d", data=values, chunks=(32, 26, 34), compression="zstd"
    )
    starts = np.random.default_rng(5).integers(0, 97, (40, 3))
    array.read_boxes(starts[:1], (33, 27, 35))  # modules are loaded
    with zarr.config.set({"codec_pipeline.max_workers": 4}), traced() as memory:
        found = array.read_boxes(starts, (33, 27, 35))
    np.testing.assert_array_equal(found, cut(values, starts, (33, 27, 35)))
    n_in_flight = {"kernel": 3 * 4, "python": 64}[way]  # blocks: threads, and the store's limit
    assert memory.peak < found.nbytes + n_in_flight * 32 * 26 * 34 + 2**19


def test_no_boxes_and_empty_boxes(raw: tuple[Any, np.ndarray]) -> None:
    array, _ = raw
    assert n5zarr.read_boxes(array, [], (2, 3, 4)).shape == (0, 2, 3, 4)
    assert n5zarr.read_boxes(array, [(1, 2, 3)], (2, 0, 4)).shape == (1, 2, 0, 4)


@pytest.mark.parametrize(
    ("starts", "shape", "out", "message"),
    [
        ([(0, 0, -1)], (1, 1, 1), None, r"box 0 from \[0, 0, -1\]"),
        ([(0, 0, 0), (22, 0, 0)], (2, 1, 1), None, r"box 1 from \[22, 0, 0\]"),
        ([(0, 0)], (1, 1, 1), None, r"starts: expected integers of the shape \(boxes, 3\)"),
        ([(0.0, 0.0, 0.5)], (1, 1, 1), None, "starts: expected integers"),
        ([(0, 0, 0)], (1, 1), None, "shape: expected 3 numbers"),
        ([(0, 0, 0)], (1, 1, -1), None, "shape: expected 3 numbers"),
        ([(0, 0, 0)], (1, 1, 1.5), None, "starts, shape: expected integers"),
        ([(0, 0, 0)], 1, None, "starts, shape: expected integers"),
        ([(0, 0, 0), (0, 0)], (1, 1, 1), None, "starts, shape: expected integers"),
        ([[]], (1, 1, 1), None, "starts: expected integers of the shape"),
        ([(0, 0, 2**64 - 1)], (1, 1, 1), None, "starts: expected"),
        ([(0, 0, 0)], (1, 1, 1), [[[[0]]]], "out: expected a numpy array, got list"),
        ([(0, 0, 0)], (1, 1, 1), np.empty((2, 1, 1, 1), "u2"), "out: expected"),
        ([(0, 0, 0)], (1, 1, 1), np.empty((1, 1, 1, 1), "i2"), "out: expected"),
    ],
)
def test_wrong_boxes_are_refused(
    raw: tuple[Any, np.ndarray], starts: Any, shape: Any, out: Any, message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message) as caught:
        n5zarr.read_boxes(raw[0], starts, shape, out)
    assert caught.value.kind == "option"


def test_what_is_no_array_of_zarr_is_refused() -> None:
    with pytest.raises(N5UnrepresentableError, match="array: expected an array of zarr"):
        n5zarr.read_boxes(np.zeros((2, 3)), [(0, 0)], (1, 1))  # type: ignore[arg-type]


def test_an_array_without_axes(tmp_path: Path) -> None:
    array = zarr.create_array(N5Store(tmp_path), name="d", shape=(), dtype="u2")
    array[()] = 7
    for each in (array, n5zarr.open_array(tmp_path, path="d")):
        assert n5zarr.read_boxes(each, np.zeros((3, 0), int), ()).tolist() == [7, 7, 7]


def test_nothing_is_written_after_an_error() -> None:
    values = np.random.default_rng(1).integers(1, 2**16, (400, 4)).astype("u2")
    store = Watched()
    n5zarr.create_array(store, path="d", data=values, chunks=(1, 4), compression="gzip")
    damaged = store._store_dict["d/0/3"].to_bytes()[:-3]
    store._store_dict["d/0/3"] = zarr.buffer.cpu.Buffer.from_bytes(damaged)
    array: Any = n5zarr.open_array(N5Store(store, concurrency=4), path="d", mode="r")
    out = np.zeros((400, 1, 4), "u2")
    store.asked.clear()
    with pytest.raises(N5BlockError, match="block 0/3"):
        n5zarr.read_boxes(array, [(k, 0) for k in range(400)], (1, 4), out)
    before, n_asked = out.copy(), len(store.asked)
    zarr.open_group(store)  # the event loop has run meanwhile
    np.testing.assert_array_equal(out, before)
    assert n_asked < 200


def test_boxes_in_opposite_corners_read_no_more_than_they_want(tmp_path: Path) -> None:
    """Chunks of several sizes, and chunks in one shard, are read for themselves."""
    with zarr.config.set({"array.rectilinear_chunks": True}):
        grid = zarr.create_array(
            zarr.storage.MemoryStore(), shape=(4000, 4000), dtype="u1", fill_value=3,
            chunks=[[1000, 3000], [500, 3500]],
        )  # fmt: skip
        sharded = zarr.create_array(
            tmp_path, shape=(4000, 4000), dtype="u1", chunks=(8, 8), shards=(4000, 4000)
        )
        sharded[:2, :2] = sharded[3990:3992, 3990:3992] = 3
        for array in (grid, sharded):
            with traced() as memory:
                found = n5zarr.read_boxes(array, [[0, 0], [3990, 3990]], (2, 2))
            assert (found == 3).all()
            assert memory.peak < 14_000_000  # the index of the shard has 4 MB; the array 16


def test_a_damaged_block_and_its_box_are_named(tmp_path: Path, way: str) -> None:
    values = np.random.default_rng(1).integers(1, 2**16, SHAPE).astype("u2")
    n5zarr.create_array(tmp_path, path="d", data=values, chunks=CHUNKS, compression="gzip")
    block = tmp_path / "d/1/2/3"
    block.write_bytes(block.read_bytes()[:-9])
    array: Any = n5zarr.open_array(tmp_path, path="d")
    starts = [(0, 0, 0), (15, 14, 11), (3, 5, 7)]
    with pytest.raises(N5BlockError, match="d: block 1/2/3") as caught:
        array.read_boxes(starts, (4, 5, 6))
    assert caught.value.__notes__ == ["for box 1, from [15, 14, 11]"]
    np.testing.assert_array_equal(array.read_boxes(starts[::2], (4, 5, 6))[0], values[:4, :5, :6])


# ---------------------------------------------------------------------- selections


def steps(n: int) -> st.SearchStrategy[slice | int]:
    ends = st.none() | st.integers(-n - 2, n + 2)
    return st.builds(slice, ends, ends, st.none() | st.integers(1, n + 3)) | st.integers(-n, n - 1)


@pytest.mark.each_of(4)
@given(selection=st.tuples(*map(steps, SHAPE)))
def test_steps_are_read(both: tuple[Any, np.ndarray], selection: Any) -> None:
    array, values = both
    np.testing.assert_array_equal(array[selection], values[selection])


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")  # zarr walks the grid
def test_steps_far_apart_visit_only_their_blocks(tmp_path: Path) -> None:
    n = 2**40 + 5
    array: Any = n5zarr.create_array(tmp_path, path="d", shape=(n, n), chunks=(5, 7), dtype="u1")
    array[2**39, 2**38 + 3] = 77
    found = array[:: 2**37, 3 :: 2**36]
    assert found.shape == (9, 17)
    assert np.argwhere(found).tolist() == [[4, 4]]
    assert found[4, 4] == 77


@pytest.mark.parametrize("step", [2**62, 2**63, 2**70])
def test_steps_may_be_of_any_size(raw: tuple[Any, np.ndarray], step: int) -> None:
    array, values = raw
    np.testing.assert_array_equal(array[3::step, ::step, 2], values[3:4, :1, 2])


@pytest.mark.parametrize("selection", [np.s_[5, ::2, ::2], np.s_[::40, 3, ::7], np.s_[::3, ::3, 1]])
def test_steps_read_the_rows_of_a_raw_block_that_they_need(
    tmp_path: Path, selection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(6).integers(0, 256, (97, 89, 83)).astype("u1")
    array: Any = n5zarr.create_array(
        tmp_path, path="d", data=values, chunks=(97, 89, 83), compression="raw"
    )
    taken: list[int] = []
    own = Scratch.bytes

    def noted(self: Scratch, n_bytes: int, purpose: str) -> memoryview:
        taken.append(n_bytes)
        return own(self, n_bytes, purpose)

    monkeypatch.setattr(Scratch, "bytes", noted)
    np.testing.assert_array_equal(array[selection], values[selection])
    assert 0 < sum(taken) < 2**18 + 1000 < values.nbytes  # a group of rows, and its header


@given(data=st.data())
def test_steps_are_written(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    compression = data.draw(st.sampled_from(COMPRESSIONS))
    array: Any = n5zarr.create_array(
        tmp_path_factory.mktemp("steps"), path="d", shape=SHAPE, chunks=CHUNKS, dtype="u2",
        compression=compression,
    )  # fmt: skip
    expected = np.zeros(SHAPE, "u2")
    for k in range(1, 4):
        selection = data.draw(st.tuples(*map(steps, SHAPE)))
        expected[selection] = array[selection] = np.uint16(k * 1001)
        np.testing.assert_array_equal(array[...], expected)


@pytest.mark.each_of(4)
@given(data=st.data())
def test_points(both: tuple[Any, np.ndarray], data: st.DataObject) -> None:
    array, values = both
    shape = data.draw(st.sampled_from([(1,), (9,), (4, 3)]))
    coords = tuple(data.draw(arrays("i8", shape, elements=st.integers(-n, n - 1))) for n in SHAPE)
    for found in (array.vindex[coords], array.get_coordinate_selection(coords)):
        np.testing.assert_array_equal(found, values[coords])


def test_points_are_broadcast(both: tuple[Any, np.ndarray]) -> None:
    array, values = both
    np.testing.assert_array_equal(
        array.vindex[[[1], [22]], [0, 30, -1], 5],
        values[np.array([[1], [22]]), np.array([0, 30, -1]), 5],
    )


@pytest.mark.each_of(4)
@pytest.mark.parametrize("density", [0.001, 0.3, 1])
def test_masks(both: tuple[Any, np.ndarray], density: float) -> None:
    array, values = both
    mask = np.random.default_rng(5).random(SHAPE) < density
    for found in (array[mask], array.vindex[mask], array.get_mask_selection(mask)):
        np.testing.assert_array_equal(found, values[mask])
    assert array.vindex[np.zeros(SHAPE, bool)].shape == (0,)


LISTS: list[tuple[Any, ...]] = [
    ([3, 1, 22, -2, 3], slice(None), 5),
    (slice(2, 21), [0], slice(3, None)),
    (4, slice(5, 6), [18, 0, 7]),
    ([1, 5], [2, 2, 30], [3, 4]),
    (slice(None), [4, -1], np.arange(19) % 3 == 0),
    (np.ones(23, bool), 5, slice(None, 4)),
    (slice(None, None, 3), [4, 5], slice(None)),
]


@pytest.mark.each_of(4)
@pytest.mark.parametrize("selection", LISTS, ids=repr)
def test_lists_of_positions(both: tuple[Any, np.ndarray], selection: Any) -> None:
    array, values = both
    parts = [
        np.arange(n)[[part] if isinstance(part, int) else part]
        for part, n in zip(selection, SHAPE, strict=True)
    ]
    dropped = tuple(k for k, part in enumerate(selection) if isinstance(part, int))
    expected = values[np.ix_(*parts)].squeeze(dropped)
    for found in (array.oindex[selection], array.get_orthogonal_selection(selection)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.each_of(4)
@pytest.mark.parametrize("selection", [1, -1, (slice(1, 3), 0, -1), (4, slice(3, None), 1), ...])
def test_chunks(both: tuple[Any, np.ndarray], selection: Any, tmp_path: Path) -> None:
    array, values = both
    plain = zarr.create_array(tmp_path, data=values, chunks=CHUNKS)
    np.testing.assert_array_equal(array.blocks[selection], plain.blocks[selection])


WRONG: dict[str, Any] = {
    "a point behind the end": lambda array: array.vindex[[23], [0], [0]],
    "points of two numbers": lambda array: array.vindex[[1, 2], [1, 2, 3], [0]],
    "points of fractions": lambda array: array.vindex[[1.5], [1], [0]],
    "a mask of another shape": lambda array: array.vindex[np.ones((2, 3, 4), bool)],
    "a list behind the end": lambda array: array.oindex[[0, 23]],
    "a list of fractions": lambda array: array.oindex[[0.5]],
    "a chunk behind the end": lambda array: array.blocks[5],
    "chunks with a step": lambda array: array.blocks[::2],
    "a negative step": lambda array: array[::-1],
    "a step of 0": lambda array: array[::0],
    "an axis too many": lambda array: array[::2, 1, 1, 1],
    "a chunk before the begin": lambda array: array.blocks[-9:3],
    "points of ranges": lambda array: array.get_coordinate_selection((range(3),) * 3),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_selections_raise_what_zarr_raises(
    raw: tuple[Any, np.ndarray], wrong: Any, tmp_path: Path
) -> None:
    plain = zarr.create_array(tmp_path, shape=SHAPE, chunks=CHUNKS, dtype="u2")
    with pytest.raises((IndexError, ValueError), match=r"\w") as expected:
        wrong(plain)
    with pytest.raises(type(expected.value)) as caught:
        wrong(raw[0])
    assert str(caught.value) == str(expected.value)


# ---------------------------------------------------------------------- groups


@given(
    block_size=st.tuples(*[st.integers(1, 9)] * 2), shape=st.tuples(*[st.integers(1, 20)] * 2),
    starts=st.lists(st.tuples(st.integers(0, 50), st.integers(2**62, 2**62 + 50)), min_size=1),
)  # fmt: skip
def test_groups_are_the_blocks_that_each_box_touches(
    block_size: tuple[int, int], shape: tuple[int, int], starts: list[tuple[int, int]]
) -> None:
    groups = Groups.of(np.array(starts, "i8"), shape, block_size)
    found = {
        (*place, int(box)) for k, place in enumerate(groups.places.tolist())
        for box in groups.of_block(k)
    }  # fmt: skip
    expected = {
        (y, x, box)
        for box, start in enumerate(starts)
        for y in range(start[0] // block_size[0], (start[0] + shape[0] - 1) // block_size[0] + 1)
        for x in range(start[1] // block_size[1], (start[1] + shape[1] - 1) // block_size[1] + 1)
    }
    assert found == expected
    assert len(groups.members) == len(expected)
    assert len({tuple(place) for place in groups.places.tolist()}) == len(groups.places)


@pytest.mark.parametrize(
    ("step", "n", "places"),
    [
        (1, 5 * 2**29, range(6)),  # from element 3 on, over the end of block 4
        (7, 2**28, range(4)),  # up to 7 * 2**28 - 4, in the middle of block 3
        (2**29, 5, range(5)),
        (2**30, 2, [0, 2]),
    ],
)
def test_a_durable_write_finds_its_directories_by_block(
    tmp_path: Path, step: int, n: int, places: Any
) -> None:
    """Counting the elements of such an axis would take minutes."""
    array = n5zarr.create_array(tmp_path, path="d", shape=(4, 2**40), chunks=(2, 2**29), dtype="u1")
    dataset = dataset_of_array(array)
    assert dataset is not None
    found = kernel._directories(dataset, Box.from_shape((0, 3), (4, n), (1, step)))
    assert found == {f"{tmp_path}/d/", *(f"{tmp_path}/d/{place}" for place in places)}


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
def test_the_kernel_reads_all_of_it(both: tuple[Any, np.ndarray], caplog: Any) -> None:
    array, _ = both
    caplog.set_level("DEBUG", "n5zarr.fast")
    array[::2, 1::3]
    array.vindex[[1, 2], [3, 4], [5, 6]]
    array.oindex[[3, 1, 2]]
    array.read_boxes([(1, 2, 3), (2, 3, 4)], (6, 5, 4))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 4
    assert all(" 0 left to Python" in message for message in told), json.dumps(told)
