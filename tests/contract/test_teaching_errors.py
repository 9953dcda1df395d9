"""Mistakes that users make are refused with the way out, or warned of."""

from __future__ import annotations

import shutil
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store, N5Warning
from n5zarr.errors import N5UnrepresentableError

SHAPE = 2, 3, 5
CLOSED = "http://127.0.0.1:9"  # nothing listens at port 9, "discard"


@pytest.fixture
def array(tmp_path: Path) -> Any:
    return n5zarr.create_array(tmp_path / "a.n5", path="a", data=np.zeros(SHAPE, "u2"))


def test_axes_have_distinct_names(tmp_path: Path, array: Any) -> None:
    with pytest.raises(
        N5UnrepresentableError, match=r"axes: .*\['z', 'y', 'y'\]|\('z', 'y', 'y'\)"
    ):
        n5zarr.create_array(tmp_path / "b.n5", path="b", shape=SHAPE, dtype="u1", axes=tuple("zyy"))
    with pytest.raises(N5UnrepresentableError, match="names: expected another name"):
        n5zarr.set_geometry(tmp_path / "a.n5", "a", names="xyx")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Duplicate dimension names", category=UserWarning)
        twice = xr.DataArray(np.zeros((3, 3)), dims=("y", "y"), name="b")
        with pytest.raises(N5UnrepresentableError, match="b: dims: expected another name"):
            n5zarr.to_n5(twice, tmp_path / "b.n5")
    assert not (tmp_path / "b.n5").exists()
    n5zarr.create_array(tmp_path / "c.n5", path="c", shape=SHAPE, dtype="u1", axes=("", "", "x"))


def test_members_of_transform_that_nobody_reads_are_named(tmp_path: Path, array: Any) -> None:
    where = tmp_path / "a.n5"
    members: dict[str, Any] = {"axes": ["z", "y", "x"], "scale": [2, 3, 5], "translate": [1, 1, 1]}
    n5zarr.set_attribute(where, "a", "transform", members)
    assert n5zarr.validate(where).findings == ()
    n5zarr.set_attribute(where, "a", "transform", members | {"translation": [7, 7, 7]})
    (finding,) = n5zarr.validate(where).findings
    assert finding.message.endswith("got also translation")
    with pytest.warns(N5Warning, match="got also translation"):
        assert n5zarr.geometry(where, "a").translation == (1, 1, 1)


@pytest.mark.parametrize("value", [1.5, np.full(SHAPE, 2.5)], ids=["number", "array"])
def test_lost_fractions_warn(tmp_path: Path, array: Any, value: Any) -> None:
    with pytest.warns(N5Warning, match="uint16, got fractions"):
        array[...] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array[...] = np.full(SHAPE, 3.0)
    assert (array[...] == 3).all()
    with pytest.warns(RuntimeWarning, match="invalid value") as found:
        array[0] = np.full(SHAPE[1:], np.nan)
    assert [each.category for each in found] == [RuntimeWarning]
    with pytest.warns(N5Warning, match="int8, got fractions"):
        n5zarr.create_array(tmp_path / "b.n5", data=np.full(SHAPE, 0.5), dtype="i1")


# value, and how many rows of five elements a selection has
SELECTIONS: dict[str, tuple[Any, Any, int]] = {
    "box": ("", np.s_[1, :2], 2),
    "steps": ("", np.s_[1, ::2], 2),
    "lists": ("oindex", np.s_[1, [2, 0]], 2),
    "lists, plainly": ("", np.s_[1, [2, 0]], 2),
    "mask of an axis": ("oindex", np.s_[1, [True, False, True]], 2),
    "chunks": ("blocks", np.s_[1, 0, 0], 2),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_values_fit_or_repeat_or_nothing_is_written(tmp_path: Path, name: str) -> None:
    """As numpy does it; zarr crops larger values, and fails after some chunks."""
    how, selection, n_rows = SELECTIONS[name]
    old = np.arange(30, dtype="u2").reshape(SHAPE)
    array = n5zarr.create_array(tmp_path / "a.n5", path="a", data=old, chunks=(1, 2, 3))
    target: Any = getattr(array, how) if how else array
    shape: tuple[int, ...] = (n_rows, 5)
    place = selection
    if how == "blocks":
        shape, place = (1, n_rows, 3), np.s_[1:2, :2, :3]
    *above, n = shape
    for wrong in ((*above, n - 1), (*above, n + 1), (shape[0] + 1, *shape[1:]), (2, *shape)):
        with pytest.raises(ValueError, match="expected a value of shape"):
            target[selection] = np.ones(wrong)
        np.testing.assert_array_equal(array[...], old, err_msg=str(wrong))
    for right in (shape, (1, *shape), shape[-1:], (*shape[:-1], 1), (1,) * len(shape)):
        value, expected = np.random.default_rng(3).integers(50, 99, right), old.copy()
        expected[place] = value
        for given in (value, value.tolist()):
            array[...] = old
            target[selection] = given
            np.testing.assert_array_equal(array[...], expected, err_msg=str(right))


def test_points_take_values_that_fit(array: Any) -> None:
    mask = np.arange(30).reshape(SHAPE) % 7 == 2
    for wrong in (mask.sum() - 1, mask.sum() + 1):
        with pytest.raises(ValueError, match="expected a value of shape"):
            array[mask] = np.ones(wrong)
        with pytest.raises(ValueError, match="expected a value of shape"):
            array.vindex[np.nonzero(mask)] = np.ones(wrong)
    assert not array[...].any()
    array[mask] = np.arange(1, mask.sum() + 1)
    np.testing.assert_array_equal(array[...][mask], np.arange(1, mask.sum() + 1))


# what numpy assigns to a box of 2 by 3 by 5, and what it refuses
@pytest.mark.parametrize("selection", [..., np.s_[1:2, 1:, 2:5], np.s_[1, :, 1:3], np.s_[:, ::2]])
@pytest.mark.parametrize(
    "value", [(), (5,), (1, 1), (3, 5), (2, 1, 5), (2, 3, 5), (2, 4, 5), (3,), (9, 9, 9)]
)
def test_values_have_the_shape_of_the_box(array: Any, selection: Any, value: Any) -> None:
    """Values repeat as in numpy, or nothing is written: zarr cuts what is larger."""
    given = np.arange(1, 1 + np.prod(value, dtype=int), dtype="u2").reshape(value)
    expected = np.zeros(SHAPE, "u2")
    try:
        expected[selection] = given
    except ValueError:
        with pytest.raises(ValueError, match=r"expected a value of shape .*, got "):
            array[selection] = given
    else:
        array[selection] = given
    np.testing.assert_array_equal(array[...], expected)


def test_chunks_of_one_number_are_for_all_axes(tmp_path: Path) -> None:
    """As in zarr, also where the number is numpy's."""
    for k, chunks in enumerate((4, np.int64(4))):
        given: dict[str, Any] = {"shape": SHAPE, "dtype": "u1", "chunks": chunks}
        made = n5zarr.create_array(tmp_path / "b.n5", path=f"{k}", **given)
        assert made.chunks == zarr.create_array({}, **given).chunks


def test_zarr_in_a_folder_is_converted_alone(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "folder/r1.zarr", data=np.ones(SHAPE))
    with pytest.raises(n5zarr.N5Error) as caught:
        n5zarr.convert(tmp_path / "folder", tmp_path / "out.n5")
    (note,) = caught.value.__notes__
    named = note.removeprefix("convert ").partition(" copies it")[0]
    n5zarr.convert(named, tmp_path / "out.n5")


def test_misspelt_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="'axisorder'; did you mean 'axis_order'"):
        N5Store(tmp_path, axisorder="F")
    with pytest.raises(N5UnrepresentableError, match="'levl'; did you mean 'level'"):
        n5zarr.create_array(
            tmp_path / "b.n5", shape=SHAPE, dtype="u1", compression={"type": "gzip", "levl": 1}
        )
    options = {"anonymous": True, "endpoint_url": CLOSED}
    with pytest.raises(N5UnrepresentableError, match="'anonymous'; did you mean 'anon'"):
        n5zarr.open("s3://bucket/a.n5", storage_options=options)


def test_objects_need_a_type(tmp_path: Path) -> None:
    with pytest.raises(N5UnrepresentableError, match=r"dtype: expected numbers, bool.*astype"):
        n5zarr.create_array(tmp_path / "b.n5", data=np.array([1, "a"], dtype=object))


@pytest.mark.parametrize(
    ("url", "options"),
    [(f"{CLOSED}/a.n5", {}), ("s3://b/a.n5", {"anon": True, "endpoint_url": CLOSED})],
    ids=["web", "S3"],
)
def test_a_server_that_is_not_reached_is_named(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConnectionError, match=r"no server is reached at 127\.0\.0\.1:9; check"):
        n5zarr.open(url, storage_options=options)


def test_ozx_is_an_archive(tmp_path: Path, array: Any) -> None:
    """RFC 9 of OME-Zarr: one zip file, named .ozx."""
    n5zarr.create_array(tmp_path / "b.n5", path="em/s0", data=np.arange(30).reshape(SHAPE))
    n5zarr.convert(tmp_path / "b.n5", tmp_path / "b.zarr", ome=True)
    made = shutil.make_archive(str(tmp_path / "b"), "zip", tmp_path / "b.zarr")
    assert zipfile.is_zipfile(made)
    shutil.move(made, tmp_path / "b.ome.ozx")
    n5zarr.convert(tmp_path / "b.ome.ozx", tmp_path / "c.n5")
    found: Any = n5zarr.open(tmp_path / "c.n5", path="em/s0")
    np.testing.assert_array_equal(found[...], np.arange(30).reshape(SHAPE))
