"""Arrays read and write selections as numpy does, wherever their blocks are."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from obstore.store import LocalStore, MemoryStore
from zarr.abc.buffer import BufferPrototype
from zarr.storage import ObjectStore

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.box import Box, check_inside
from n5zarr.arrays.open_dataset import dataset_of_array
from n5zarr.arrays.placing import memory_of, warn_of_loss
from n5zarr.errors import N5Warning
from n5zarr.fast import kernel
from n5zarr.fast.array import N5Array
from n5zarr.fast.values import elements_for
from tests.unit.arrays.blocks import (
    SELECTIONS,
    SHAPE,
    block_bytes,
    numbers,
    part_of,
    path_of,
    write_block,
    write_dataset,
)  # fmt: skip


@pytest.fixture(params=["kernel", "python", "obstore", "zarr's"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Open the dataset in different ways."""
    if request.param == "python":
        monkeypatch.setattr(kernel, "can_do", lambda _: False)
    elif not kernel.is_compiled():
        pytest.skip("no compiled kernel")

    def opened(**options: Any) -> Any:
        location: Any = tmp_path
        if request.param == "obstore":
            location = ObjectStore(LocalStore(str(tmp_path)))
        elif request.param == "zarr's":
            location = zarr.storage.LocalStore(tmp_path, read_only=False)
        array = n5zarr.open_array(location, "r+", path="d", **options)
        assert isinstance(array, N5Array)
        return array

    return opened


@pytest.mark.parametrize("compression", ["raw", "zstd"])
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_boxes(tmp_path: Path, opened: Any, compression: str, selection: Any) -> None:
    """Of a dataset with a missing block, and one of another mode, which the kernel leaves."""
    values = write_dataset(tmp_path, numbers(), compression, missing=((1, 0, 1),))
    odd = block_bytes(values[part_of((0, 1, 0))], compression, mode=1)
    write_block(tmp_path, (0, 1, 0), odd)
    array, expected = opened(), values[selection]
    for found in (array[selection], array.get_basic_selection(selection)):
        np.testing.assert_array_equal(found, expected)
        assert np.shape(found) == expected.shape
    turned = tuple(selection) if len(selection) == 3 and ... not in selection else None
    if turned is not None:
        np.testing.assert_array_equal(opened(axis_order="F")[turned[::-1]], expected.T)
        np.testing.assert_array_equal(array.oindex[selection], expected)
    new = (numbers("u2", expected.shape) + 300).astype("u2")
    array[selection] = new
    values[selection] = new
    np.testing.assert_array_equal(opened()[...], values)
    array.set_basic_selection(selection, 8)
    values[selection] = 8
    np.testing.assert_array_equal(opened()[...], values)


def test_lists_points_masks_and_chunks(tmp_path: Path, opened: Any) -> None:
    values = write_dataset(tmp_path, numbers(), "gzip", missing=((1, 0, 1),))
    write_block(tmp_path, (0, 1, 0), block_bytes(values[part_of((0, 1, 0))], "gzip", mode=1))
    array = opened()
    for change in (False, True):
        if change:
            write_block(tmp_path, (0, 1, 0), block_bytes(values[part_of((0, 1, 0))], "gzip"))
        array = opened()
        rows = array.oindex[[0, 5, 6], 3:9, [4, 1]]
        np.testing.assert_array_equal(rows, values[np.ix_([0, 5, 6], range(3, 9), [4, 1])])
        np.testing.assert_array_equal(array.oindex[2, [1, 10], 1:], values[2, [1, 10], 1:])
        np.testing.assert_array_equal(array.oindex[1:3, [1, 10]], values[1:3, [1, 10]])
        points = ([[1, 6], [0, 3]], [[10, 0], [5, 4]], 2)
        np.testing.assert_array_equal(array.vindex[points], values[points])
        mask = values % 5 == 1
        np.testing.assert_array_equal(array.get_mask_selection(mask), values[mask])
        np.testing.assert_array_equal(array.blocks[1, :, 2], values[3:6, :, 4:])
        np.testing.assert_array_equal(array.blocks[1:], values[3:])
    array.oindex[[0, 5], 3:9, [4, 1]] = 5
    values[np.ix_([0, 5], range(3, 9), [4, 1])] = 5
    array.vindex[[1, 2], [10, 3], [0, 4]] = [7, 8]
    values[[1, 2], [10, 3], [0, 4]] = [7, 8]
    mask = np.zeros(SHAPE, bool)
    mask[3, 4, 1] = mask[6, 10, 4] = True
    array.set_mask_selection(mask, [11, 12])
    values[mask] = [11, 12]
    array.blocks[2, 0, 0] = 13
    values[6:, :4, :2] = 13
    np.testing.assert_array_equal(opened()[...], values)


def test_which_way_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Boxes do not reach zarr; odd blocks in boxes with steps do."""
    values = write_dataset(tmp_path, numbers(), "gzip")
    array: Any = n5zarr.open_array(tmp_path / "d", "r+")
    caplog.set_level(logging.DEBUG, "n5zarr.fast.array")
    for selection in SELECTIONS.values():
        array[selection] = array[selection]
    assert array.oindex[[0, 5], 3:9, [4, 1]].shape == (2, 6, 2)
    assert not caplog.messages
    write_block(tmp_path, (0, 0, 0), block_bytes(values[part_of((0, 0, 0))], "gzip", mode=1))
    np.testing.assert_array_equal(array[...], values)
    assert not caplog.messages
    np.testing.assert_array_equal(array[::2], values[::2])
    if kernel.is_compiled():
        assert "does not read all its blocks" in caplog.text
    caplog.clear()
    larger = np.pad(values[6:, 8:, 4:], ((0, 2), (0, 1), (0, 1)))
    write_block(tmp_path, (2, 2, 2), block_bytes(larger, "gzip"))
    write_block(tmp_path, (0, 0, 0), block_bytes(values[:2, :4, :2], "gzip"))
    values[2, :4, :2] = 0
    np.testing.assert_array_equal(array[...], values)
    assert "1 blocks do not have the size" in caplog.text


def test_results_have_the_configured_order(tmp_path: Path) -> None:
    values = write_dataset(tmp_path, numbers(), "gzip")
    array: Any = n5zarr.open_array(tmp_path / "d").with_config({"order": "F"})
    assert type(array) is N5Array
    found: Any
    for found in (array[1:, 2:], array.oindex[np.array([1, 3]), 2:]):
        assert found.flags.f_contiguous
    np.testing.assert_array_equal(array[1:, 2:], values[1:, 2:])


def test_zarrs_own_buffers(tmp_path: Path, opened: Any) -> None:
    values = write_dataset(tmp_path, numbers(), "gzip")
    out = zarr.buffer.cpu.NDBuffer(np.zeros((7, 2, 5), "u2"))
    opened().get_basic_selection((slice(None), slice(3, 5)), out=out)
    np.testing.assert_array_equal(out.as_numpy_array(), values[:, 3:5])
    memory = memory_of(prototype=zarr.buffer.cpu.buffer_prototype)
    assert memory.is_known
    assert memory is memory_of() is memory_of(out)

    class Own(zarr.buffer.cpu.NDBuffer):
        pass

    assert not memory_of(Own(np.zeros(3))).is_known
    prototype = BufferPrototype(zarr.buffer.cpu.Buffer, Own)
    assert not memory_of(prototype=prototype).is_known
    found = opened().get_basic_selection((slice(2, 4),), prototype=prototype)
    np.testing.assert_array_equal(found, values[2:4])
    assert memory.buffer_of(np.zeros(3)) is None
    assert memory.on_host(5) == 5


def test_a_dataset_is_asked_for_by_its_array(tmp_path: Path) -> None:
    """Of arrays that the fast path handles."""
    write_dataset(tmp_path, numbers())
    array: Any = n5zarr.open_array(tmp_path / "d")
    told: list[str] = []
    found = dataset_of_array(array, tell=told.append)
    assert found is not None
    assert (found.path, found.view.shape, told) == ("d", SHAPE, [])
    assert str(found.directory) == f"{tmp_path}/d/"
    assert dataset_of_array(array, to_write=True, tell=told.append) is None
    strict = array.with_config({"read_missing_chunks": False})
    assert dataset_of_array(strict, tell=told.append) is None
    other = zarr.create_array({}, shape=(3,), dtype="u2")
    assert dataset_of_array(other, tell=told.append) is None
    memory = ObjectStore(MemoryStore())
    remote = n5zarr.create_array(memory, path="d", shape=(5,), chunks=(2,), dtype="u2")
    assert dataset_of_array(remote, tell=told.append) is None
    assert dataset_of_array(remote, tell=told.append, is_anywhere=True) is not None
    reasons = ["read only", "are errors", "not in local files", "not in local files"]
    for reason, text in zip(reasons, told, strict=True):
        assert reason in text


BOX = Box((0, 2, 1), (3, 7, 2), (2,))
VALUES: dict[str, Any] = {
    "whole": np.arange(15, dtype="u2").reshape(3, 5), "other type": np.arange(15.0).reshape(3, 5),
    "row": np.arange(5), "column": np.arange(3)[:, None], "number": 7, "of numpy": np.float32(3),
    "zero axes": np.array(9), "in Fortran's order": np.asfortranarray(np.ones((3, 5))),
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values_for_a_box(value: Any) -> None:
    found = elements_for(value, BOX, np.dtype("u2"))
    assert found is not None
    assert found.dtype == np.dtype("u2")
    np.testing.assert_array_equal(found, np.broadcast_to(value, (3, 5))[..., None])


@pytest.mark.parametrize("value", ["a", b"a", None, np.ones((3, 5), "c8"),
                                   np.ma.ones((3, 5)), np.array("a")], ids=repr)  # fmt: skip
def test_values_that_zarr_handles(value: Any) -> None:
    assert elements_for(value, BOX, np.dtype("u2")) is None


@pytest.mark.parametrize(
    ("shape", "is_reversed"), [((5, 3), True), ((3, 4), False), ((3, 5, 1), False)]
)
def test_values_of_another_shape(shape: tuple[int, ...], *, is_reversed: bool) -> None:
    with pytest.raises(ValueError, match=r"expected a value of shape \(3, 5\)") as err:
        elements_for(np.ones(shape), BOX, np.dtype("u2"))
    assert ("reverse" in str(err.value)) == is_reversed


def warned(match: str) -> Any:
    return (
        pytest.warns(N5Warning, match=match) if match else warnings.catch_warnings(action="error")
    )


# value, data type, and what is lost: as numpy's own ``astype`` shows
LOSSES: list[tuple[Any, str, str]] = [
    (2.5, "u2", "fractions"), (np.full(3, -0.5), "u2", "fractions"),
    (np.float32(0.5), "i8", "fractions"),
    ([1, 2.5], "i1", "fractions"), (np.full(3, -1.0), "u2", "wrap"), ([3, 256], "u1", "wrap"),
    (np.int64(-129), "i1", "wrap"), (np.array([-1]), "u8", "wrap"), (2.0**63, "i8", "wrap"),
    (np.array([2**63], "u8"), "i8", "wrap"), (np.array([65536.0, np.nan]), "u2", "wrap"),
    (np.array([0, 255.9]), "u1", "fractions"), ([7, 255], "u1", ""), (np.int64(-128), "i1", ""),
    (np.array([-128.0, 127]), "i1", ""), (np.float64(2**63 - 1024), "i8", ""), (np.nan, "u2", ""),
    (np.full(3, 2.5), "f4", ""), (np.zeros(0), "u1", ""), ("a", "u1", ""), (None, "u1", ""),
    (np.array([True]), "u1", ""), (np.array([70000], "i4"), "f4", ""), (300, "u1", ""),
    ([], "u1", ""), (np.array([70000], "u4"), "i8", ""),
]  # fmt: skip


@pytest.mark.parametrize(("value", "dtype", "lost"), LOSSES, ids=repr)
def test_numbers_that_integers_do_not_hold(value: Any, dtype: str, lost: str) -> None:
    with warned(lost) as found:
        warn_of_loss(value, np.dtype(dtype))
    assert [each.filename for each in found or ()] == [__file__] * bool(lost)


@pytest.mark.parametrize(
    ("selection", "axis"),
    [
        (np.s_[7:9], 0), (np.s_[9:12], 0), (np.s_[:, 11:12], 1), (np.s_[0, 100:101, 3], 1),
        (np.s_[:, :, 13:14:2], 2),
        *((each, None) for each in [
            np.s_[6:9], np.s_[7:], np.s_[9:9], np.s_[5:2], np.s_[-9:-8], np.s_[:0],
            np.s_[..., 20:30],
            np.s_[[9]], np.s_[0, 1, 2], np.s_[:, :, :],
        ]),
    ],
)  # fmt: skip
def test_slices_behind_the_end(selection: Any, axis: int | None) -> None:
    outside = "" if axis is None else f"axis {axis}: expected elements of 0:{(7, 11, 13)[axis]}"
    with warned(outside):
        check_inside(selection, (7, 11, 13))


@pytest.mark.parametrize(("selection", "axis"), [(7, 0), (np.s_[0, 11], 1), (np.s_[-8, :], 0)])
def test_an_index_outside_is_refused(selection: Any, axis: int) -> None:
    with pytest.raises(IndexError, match=f"axis {axis}: expected .* the reverse of N5's"):
        check_inside(selection, (7, 11, 13))
    check_inside(np.s_[6, -11, 12], (7, 11, 13))


def test_a_block_that_another_program_enlarges(tmp_path: Path, opened: Any) -> None:
    """A write to a part of a block at the end keeps what is beyond the known end."""
    write_dataset(tmp_path, numbers())
    array = opened()
    array[0, 0, 0]
    large = np.full((8, 12, 6), 77, "u2")
    write_dataset(tmp_path, large)
    array[5:7, 9:11, 3:5] = 5
    large[5:7, 9:11, 3:5] = 5
    np.testing.assert_array_equal(opened()[...], large)


def test_background_removes_blocks(tmp_path: Path, opened: Any) -> None:
    values = write_dataset(tmp_path, numbers())
    array = opened()
    array[3:6, 4:8, 2:4] = 0
    array[0:3, 0:4, 1:2] = 0
    array[0:3, 0:4, 0:1] = np.zeros((3, 4, 1))
    for place in ((1, 1, 1), (0, 0, 0)):
        assert not path_of(tmp_path, place).exists()
        values[part_of(place)] = 0
    np.testing.assert_array_equal(opened()[...], values)
    kept = array.with_config({"write_empty_chunks": True})
    kept[3:6, 4:8, 2:4] = 0
    assert path_of(tmp_path, (1, 1, 1)).exists()


def test_an_array_names_the_standard_codecs(tmp_path: Path) -> None:
    write_dataset(tmp_path, numbers(), "gzip")
    array: Any = n5zarr.open_array(tmp_path / "d")
    assert [type(c).__name__ for c in array.metadata.codecs] == ["BytesCodec", "GzipCodec"]
    assert type(array.serializer).__name__ == "BytesCodec"
    assert [type(c).__name__ for c in array.compressors] == ["GzipCodec"]
    store = N5Store(tmp_path, codecs="zarr")
    np.testing.assert_array_equal(zarr.open_array(store, path="d")[...], numbers())
