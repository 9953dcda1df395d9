"""Many boxes, steps, points, masks and lists of positions are read as numpy and zarr read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.box import Box
from n5zarr.arrays.open_dataset import dataset_of_array
from n5zarr.codecs.buffers import Scratch
from n5zarr.errors import N5BlockError
from n5zarr.fast import kernel
from tests.contract.test_kernel import COMPRESSIONS, name
from tests.memory import traced
from tests.remote.test_blocks import Watched

SHAPE, CHUNKS = (23, 31, 19), (5, 7, 11)


def written(path: Path, compression: Any) -> tuple[Any, np.ndarray]:
    """Write numbers, and one missing block; return the array and the numbers."""
    values = np.random.default_rng(1).integers(1, 2**16, SHAPE).astype("u2")
    values[5:10, 7:14, :11] = 0
    n5zarr.create_array(path, path="d", data=values, chunks=CHUNKS, compression=compression)
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
}  # fmt: skip


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
}  # fmt: skip


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
