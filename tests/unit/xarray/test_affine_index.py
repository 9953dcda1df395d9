"""Lazy coordinates behave as ordinary ones, which have the expected values."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from n5zarr.xarray.affine_index import AffineIndex

if TYPE_CHECKING:
    from collections.abc import Callable

SCALES = st.floats(1e-3, 1e3).flatmap(lambda v: st.sampled_from([v, -v]))
PLACES = st.floats(-1e4, 1e4)


def both(n: int, scale: float, translation: float) -> tuple[xr.DataArray, xr.DataArray]:
    values = scale * np.arange(n) + translation
    ordinary = xr.DataArray(np.arange(n), dims="x", coords={"x": ("x", values, {"units": "nm"})})
    index = AffineIndex.along("x", n, scale, translation)
    lazy = xr.DataArray(np.arange(n), dims="x", coords=xr.Coordinates.from_xindex(index))
    lazy["x"].attrs["units"] = "nm"
    return ordinary, lazy


def assert_same(lazy: xr.DataArray, ordinary: xr.DataArray) -> None:
    np.testing.assert_array_equal(lazy.values, ordinary.values)
    np.testing.assert_array_equal(lazy["x"].values, ordinary["x"].values)
    assert lazy.dims == ordinary.dims


@given(n=st.integers(0, 50), scale=SCALES, translation=PLACES)
def test_positions_have_the_same_bits(n: int, scale: float, translation: float) -> None:
    ordinary, lazy = both(n, scale, translation)
    assert_same(lazy, ordinary)
    assert isinstance(lazy.xindexes["x"], AffineIndex)


@given(
    n=st.integers(1, 50), scale=SCALES, translation=PLACES,
    start=st.integers(-60, 60) | st.none(), stop=st.integers(-60, 60) | st.none(),
    step=st.integers(1, 7) | st.integers(-7, -1) | st.none(),
)  # fmt: skip
def test_slices_by_index(
    n: int, scale: float, translation: float, start: Any, stop: Any, step: Any
) -> None:
    ordinary, lazy = both(n, scale, translation)
    wanted = slice(start, stop, step)
    part = lazy.isel(x=wanted)
    assert_same(part, ordinary.isel(x=wanted))
    assert isinstance(part.xindexes["x"], AffineIndex)
    assert_same(part.isel(x=slice(1, None, 2)), ordinary.isel(x=wanted).isel(x=slice(1, None, 2)))


@given(
    n=st.integers(1, 50), scale=SCALES, translation=PLACES, data=st.data(),
    how=st.sampled_from(["on", "between", "open"]),
)  # fmt: skip
def test_slices_by_position(
    n: int, scale: float, translation: float, data: st.DataObject, how: str
) -> None:
    ordinary, lazy = both(n, scale, translation)
    values = ordinary["x"].values
    i, j = (data.draw(st.integers(0, n - 1)) for _ in range(2))
    first, last = float(values[min(i, j)]), float(values[max(i, j)])
    if how == "between":
        first, last = first - scale * 0.3, last + scale * 0.3
    wanted = slice(None if how == "open" else first, last)
    if len(np.unique(values)) == n:
        assert_same(lazy.sel(x=wanted), ordinary.sel(x=wanted))


@given(n=st.integers(1, 50), scale=SCALES, translation=PLACES, data=st.data())
def test_labels(n: int, scale: float, translation: float, data: st.DataObject) -> None:
    ordinary, lazy = both(n, scale, translation)
    values = ordinary["x"].values
    chosen = [data.draw(st.integers(0, n - 1)) for _ in range(3)]
    assert int(lazy.sel(x=values[chosen[0]])) == int(ordinary.sel(x=values[chosen[0]]))
    assert_same(lazy.sel(x=values[chosen]), ordinary.sel(x=values[chosen]))
    near = values[chosen] + 0.3 * scale
    assert_same(lazy.sel(x=near, method="nearest"), ordinary.sel(x=near, method="nearest"))
    points = xr.DataArray(near, dims="points")
    found = lazy.sel(x=points, method="nearest")
    assert found.dims == ("points",)
    np.testing.assert_array_equal(found, ordinary.sel(x=points, method="nearest"))


def test_a_missing_position_is_a_key_error() -> None:
    _, lazy = both(5, 2.0, 1.0)
    with pytest.raises(KeyError):
        lazy.sel(x=2.0)
    with pytest.raises(KeyError):
        lazy.sel(x=2.0, method="nearest", tolerance=0.5)
    assert int(lazy.sel(x=1.2, method="nearest", tolerance=0.5)) == 0


@given(n=st.integers(1, 50), scale=SCALES, translation=PLACES, data=st.data())
@pytest.mark.parametrize("method", ["nearest", "pad", "backfill"])
def test_every_method_selects_as_pandas_does(
    n: int, scale: float, translation: float, data: st.DataObject, method: Any
) -> None:
    ordinary, lazy = both(n, scale, translation)
    places = st.lists(st.integers(-1, n) | st.floats(-1, n), max_size=4)
    labels = scale * np.array(data.draw(places), float) + translation
    try:
        expected = ordinary.sel(x=labels, method=method)
    except KeyError:
        with pytest.raises(KeyError):
            lazy.sel(x=labels, method=method)
    else:
        assert_same(lazy.sel(x=labels, method=method), expected)


def test_an_empty_axis_has_empty_parts() -> None:
    ordinary, lazy = both(0, 2.0, 1.0)
    assert_same(lazy.sel(x=slice(0, 3)), ordinary.sel(x=slice(0, 3)))
    with pytest.raises(KeyError):
        lazy.sel(x=1.0)


@given(
    n=st.integers(1, 20), scale=SCALES, translation=PLACES,
    ends=st.tuples(*[st.floats(-3, 24) | st.none()] * 2),
    step=st.integers(-4, -1) | st.integers(1, 4),
)  # fmt: skip
def test_a_slice_of_positions_with_a_step(
    n: int, scale: float, translation: float, ends: tuple[float | None, float | None], step: int
) -> None:
    ordinary, lazy = both(n, scale, translation)
    start, stop = (None if end is None else scale * end + translation for end in ends)
    wanted = slice(start, stop, step)
    assert_same(lazy.sel(x=wanted), ordinary.sel(x=wanted))


@pytest.mark.parametrize("scale", [0.1, -0.1])
def test_parts_with_steps_align(scale: float) -> None:
    _, lazy = both(30, scale, 3.0)
    found, _ = xr.align(lazy.isel(x=slice(1, None, 2)), lazy.isel(x=slice(1, None, 3)))
    assert found.values.tolist() == [1, 7, 13, 19, 25]
    turned, _ = xr.align(lazy[::-1], lazy.isel(x=slice(2, 5)))
    np.testing.assert_array_equal(turned["x"], lazy["x"].values[turned.values])
    assert sorted(turned.values.tolist()) == [2, 3, 4]


def slices(n: int) -> st.SearchStrategy[slice]:
    return st.tuples(st.integers(0, n), st.integers(0, n)).map(lambda t: slice(min(t), max(t)))


@given(a=slices(20), b=slices(20), join=st.sampled_from(["inner", "left", "right", "outer"]))
def test_parts_of_one_axis_align(a: slice, b: slice, join: Any) -> None:
    ordinary, lazy = both(20, 0.1, 3.0)
    empty = a.start == a.stop or b.start == b.stop
    if join == "outer" and not empty and max(a.start, b.start) > min(a.stop, b.stop):
        with pytest.raises(ValueError, match="gap"):
            xr.align(lazy.isel(x=a), lazy.isel(x=b), join=join)
        return
    expected = xr.align(ordinary.isel(x=a), ordinary.isel(x=b), join=join)
    found = xr.align(lazy.isel(x=a), lazy.isel(x=b), join=join)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


OPERATIONS: dict[str, Callable[[xr.DataArray], xr.DataArray]] = {
    "add": lambda a: a + a.isel(x=slice(2, 5)),
    "concat": lambda a: xr.concat([a.isel(x=slice(0, 3)), a.isel(x=slice(3, None))], "x"),
    "concat-far": lambda a: xr.concat([a.isel(x=slice(0, 3)), a.isel(x=slice(5, 7))], "x"),
    "reindex": lambda a: a.reindex_like(a.isel(x=slice(2, 5))),
    "rename": lambda a: a.rename(x="y").isel(y=slice(1, 3)).rename(y="x"),
    "expand": lambda a: a.expand_dims("q").isel(q=0),
    "array": lambda a: a.isel(x=[3, 1, 1]),
    "negative": lambda a: a.isel(x=np.array([-1, -2])),
    "copy": copy.deepcopy,
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
    "sortby": lambda a: a.sortby("x", ascending=False),
    "where": lambda a: a.where(a["x"] > 3.2, drop=True),
    "series": lambda a: xr.DataArray.from_series(a.to_series()),
    "coarsen": lambda a: a.coarsen(x=2).mean(),
    "interp": lambda a: a.astype(float).isel(x=slice(0, 4)),
    "mask": lambda a: a.sel(x=a["x"] > 3.25),
    "loc": lambda a: a.loc[a["x"].values < 3.25],
    "groups": lambda a: a.groupby(xr.DataArray([2, 0, 1, 0, 2, 1, 0, 2], dims="x", name="g")).map(
        lambda part: part * 2
    ),
    "positions-concat": lambda a: xr.concat(
        [a.isel(x=slice(1, None, 2)), a.isel(x=slice(0, None, 2))],
        "x",
        positions=[[1, 3, 5, 7], [0, 2, 4, 6]],
    ),
    "array-concat": lambda a: xr.concat([a.isel(x=[0, 2]), a.isel(x=slice(4, 6))], "x"),
    "half-way": lambda a: a.assign_coords(x=a["x"]).sel(
        x=[3.0 + 0.05, 3.15, 3.25], method="nearest"
    ),
    "scalar": lambda a: a.isel(x=slice(3, 4)).squeeze().expand_dims("x"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_give_what_ordinary_coordinates_give(name: str) -> None:
    ordinary, lazy = both(8, 0.1, 3.0)
    assert_same(OPERATIONS[name](lazy), OPERATIONS[name](ordinary))


@pytest.mark.parametrize("scale", [4.0, -4.0])
def test_half_way_is_where_pandas_has_it(scale: float) -> None:
    ordinary, lazy = both(8, scale, 3.0)
    middles = ordinary["x"].values[:-1] + scale / 2
    assert_same(lazy.sel(x=middles, method="nearest"), ordinary.sel(x=middles, method="nearest"))


def test_points_keep_their_own_coordinate() -> None:
    ordinary, lazy = both(8, 4.0, 3.0)
    points = xr.DataArray([3.0, 11.0], dims="p", coords={"p": [10, 20]})
    expected, found = ordinary.sel(x=points), lazy.sel(x=points)
    assert found["p"].values.tolist() == [10, 20]
    assert set(found.xindexes) == set(expected.xindexes)
    assert set(lazy.isel(x=xr.DataArray([1, 2], dims="p")).xindexes) == set()


def test_different_grids_are_not_joined() -> None:
    _, lazy = both(8, 0.1, 3.0)
    _, other = both(8, 0.2, 3.0)
    with pytest.raises(ValueError, match="lazy_coords=False"):
        lazy + other
    assert not lazy.xindexes["x"].equals(other.xindexes["x"])


def test_axes_of_any_length_need_no_memory() -> None:
    index = AffineIndex.along("x", 10**15, 4.0, 0.5)
    coords = xr.Dataset(coords=xr.Coordinates.from_xindex(index))
    part = coords.sel(x=slice(4e12, 4e12 + 9)).isel(x=slice(None, None, 2))
    assert part["x"].values.tolist() == [4e12 + 0.5, 4e12 + 8.5]
    assert "AffineIndex" in repr(coords)


def test_a_transform_has_its_inverse() -> None:
    """xarray's transforms map elements to positions and back, also between elements."""
    transform = AffineIndex.along("x", 8, 0.5, 3.0).transform
    found = transform.forward({"x": np.array([0, 2.5, 7])})["x"]
    assert found.tolist() == [3, 4.25, 6.5]
    assert transform.reverse({"x": found})["x"].tolist() == [0, 2.5, 7]
