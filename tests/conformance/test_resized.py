"""Resized datasets are read by other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import n5zarr

tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")
z5py = pytest.importorskip("z5py", reason="peer: uv sync installs it")


def by_z5py(path: Path) -> np.ndarray:
    return np.asarray(z5py.File(str(path), "r")["d"][...])


def by_tensorstore(path: Path) -> np.ndarray:
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": f"{path}/d"}}
    return np.asarray(tensorstore.open(spec).result().read().result()).T


def by_n5zarr(path: Path) -> np.ndarray:
    return np.asarray(n5zarr.open_array(path, path="d")[...])


@st.composite
def histories(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], list[Any]]:
    """Draw a block size, a shape, and changes: a new shape, or an axis and a length to append."""
    ndim = draw(st.integers(1, 3))
    sides = st.tuples(*[st.integers(1, 13)] * ndim)
    appended = st.tuples(st.integers(0, ndim - 1), st.integers(1, 5))
    step = st.one_of(st.tuples(st.just("resize"), sides), st.tuples(st.just("append"), appended))
    steps = st.lists(step, min_size=1, max_size=5)
    return draw(st.tuples(*[st.integers(2, 5)] * ndim)), draw(sides), draw(steps)


@given(histories())
def test_other_programs_read_what_was_resized(
    tmp_path_factory: pytest.TempPathFactory, history: Any
) -> None:
    block, shape, steps = history
    path = tmp_path_factory.mktemp("c") / "c.n5"
    rng = np.random.default_rng(3)
    expected = rng.integers(1, 60_000, shape, "u2")
    array = n5zarr.create_array(
        path, path="d", shape=shape, chunks=block, dtype="u2", compression={"type": "raw"}
    )
    array[...] = expected
    for kind, argument in steps:
        if kind == "append":
            axis, n = argument
            added = rng.integers(
                1, 60_000, [*expected.shape[:axis], n, *expected.shape[axis + 1 :]], "u2"
            )
            array.append(added, axis=axis)
            expected = np.concatenate([expected, added], axis)
        else:
            array.resize(argument)
            common = tuple(slice(min(pair)) for pair in zip(expected.shape, argument, strict=True))
            # as in Zarr, what was outside of a smaller array is there again in a larger one
            found = by_n5zarr(path)
            np.testing.assert_array_equal(found[common], expected[common])
            expected = found
        for read in (by_z5py, by_tensorstore, by_n5zarr):
            np.testing.assert_array_equal(read(path), expected)
