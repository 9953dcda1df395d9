"""A batch of chunks is read as a box only if each chunk is at its place in the box."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from n5zarr.arrays.box import BatchBox
from n5zarr.arrays.open_dataset import chunk_coords
from n5zarr.fast.kernel import box_of_batch, is_compiled

SHAPE, CHUNKS = (13, 17, 11), (5, 7, 4)
needs_kernel = pytest.mark.skipif(not is_compiled(), reason="no compiled kernel")


class Path(NamedTuple):
    path: str


def batch_of(selection: tuple[Any, ...], separator: str = "/") -> list[Any]:
    """Return the batch that zarr makes of a selection of slices and integers."""
    items: list[Any] = []
    places = []
    for part, n, size in zip(selection, SHAPE, CHUNKS, strict=True):
        begin, end = (part, part + 1) if isinstance(part, int) else part.indices(n)[:2]
        axis = []
        for place in range(begin // size, (end - 1) // size + 1):
            first, after = max(begin, place * size), min(end, (place + 1) * size)
            inner: Any = slice(first - place * size, after - place * size, 1)
            outer: Any = slice(first - begin, after - begin)
            if isinstance(part, int):
                inner, outer = part - place * size, None
            axis.append((place, inner, outer))
        places.append(axis)
    for index in np.ndindex(*map(len, places)):
        chosen = [axis[k] for axis, k in zip(places, index, strict=True)]
        key = "a/c/" + separator.join(str(place) for place, _, _ in chosen)
        inner = tuple(part for _, part, _ in chosen)
        outer = tuple(part for _, _, part in chosen if part is not None)
        items.append((Path(key), None, inner, outer, True))
    return items


def parts() -> st.SearchStrategy[tuple[Any, ...]]:
    def part(n: int) -> st.SearchStrategy[Any]:
        bounds = st.tuples(st.integers(0, n - 1), st.integers(1, n)).filter(lambda b: b[0] < b[1])
        return st.integers(0, n - 1) | bounds.map(lambda b: slice(*b))

    return st.tuples(*map(part, SHAPE))


@needs_kernel
@given(selection=parts(), separator=st.sampled_from("/."))
def test_a_box_is_recognised(selection: tuple[Any, ...], separator: str) -> None:
    whole = np.arange(math.prod(SHAPE)).reshape(SHAPE)
    expected = whole[selection]
    box = box_of_batch(batch_of(selection, separator), CHUNKS)
    assert box is not None
    corner = tuple(map(slice, box.start, map(sum, zip(box.start, box.shape, strict=True))))
    output = np.empty(expected.shape, int)
    part = box.within(output)
    assert part is not None
    part[...] = whole[corner]
    np.testing.assert_array_equal(output, expected)


def shift(part: slice) -> slice:
    return slice(part.start + 1, part.stop + 1)


CHANGES: dict[str, Any] = {
    "key": lambda key, inner, outer: (key + "1", inner, outer),
    "zero": lambda key, inner, outer: (key[:-1] + "0" + key[-1], inner, outer),
    "huge": lambda key, inner, outer: (key[:-1] + "9" * 40, inner, outer),
    "large": lambda key, inner, outer: (key[:-1] + "9" * 18, inner, outer),
    "separator": lambda key, inner, outer: (key[:-2] + "." + key[-1], inner, outer),
    "array": lambda key, inner, outer: (key.replace("a", "b"), inner, outer),
    "deeper": lambda key, inner, outer: ("a/" + key, inner, outer),
    "no key": lambda key, inner, outer: ("", inner, outer),
    "no number": lambda key, inner, outer: (key[:-1], inner, outer),
    "not a number": lambda key, inner, outer: (key[:-1] + "x" + key[-1], inner, outer),
    "other digit": lambda key, inner, outer: (key[:-1] + "\u0661", inner, outer),
    "beyond": lambda key, inner, outer: (
        key,
        (slice(inner[0].start, inner[0].stop + CHUNKS[0]), *inner[1:]),
        (slice(outer[0].start, outer[0].stop + CHUNKS[0]), *outer[1:]),
    ),
    "negative": lambda key, inner, outer: (key, (slice(-2, -1), *inner[1:]), outer),
    "too many": lambda key, inner, outer: (key, (slice(0, 2**70), *inner[1:]), outer),
    "boolean": lambda key, inner, outer: (key, (slice(False, True), *inner[1:]), outer),
    "another axis": lambda key, inner, outer: (key, inner, (*outer, outer[0])),
    "step": lambda key, inner, outer: (key, (slice(1, 3, 2), *inner[1:]), outer),
    "begin": lambda key, inner, outer: (
        key,
        (slice(inner[0].start + 1, inner[0].stop), *inner[1:]),
        outer,
    ),
    "list": lambda key, inner, outer: (key, (np.arange(2), *inner[1:]), outer),
    "no tuple": lambda key, inner, outer: (key, inner[0], outer),
    "output": lambda key, inner, outer: (key, inner, (shift(outer[0]), *outer[1:])),
    "axis": lambda key, inner, outer: (key, inner, outer[1:]),
    "integer": lambda key, inner, outer: (key, (inner[0].start, *inner[1:]), outer),
    "open": lambda key, inner, outer: (key, (slice(None), *inner[1:]), outer),
}  # fmt: skip


@needs_kernel
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("which", [0, 1, 7, -1])
def test_one_chunk_that_differs_is_noticed(change: Any, which: int) -> None:
    batch = batch_of((slice(3, 12), slice(2, 16), slice(1, 9)))
    assert box_of_batch(batch, CHUNKS) is not None
    path, spec, inner, outer, complete = batch[which]
    key, inner, outer = change(path.path, inner, outer)
    batch[which] = Path(key), spec, inner, outer, complete
    assert box_of_batch(batch, CHUNKS) is None


@needs_kernel
def test_chunks_that_are_missing_repeated_or_in_another_order_are_no_box() -> None:
    batch = batch_of((slice(3, 12), slice(2, 16), slice(1, 9)))
    for other in (
        batch[:-1],
        batch[1:],
        batch[::-1],
        [*batch, batch[-1]],
        [*batch[:3], batch[4], batch[3], *batch[5:]],
        [*batch[:4], batch[3], *batch[5:]],
    ):
        assert box_of_batch(other, CHUNKS) is None


@needs_kernel
def test_an_integer_selects_from_one_chunk_along_its_axis() -> None:
    items: list[Any] = [(Path(f"a/c/{k}"), None, (0,), (), True) for k in range(2)]
    assert box_of_batch(items[:1], (1,)) == BatchBox((0,), (1,), (None,))
    assert box_of_batch(items, (1,)) is None


@needs_kernel
@pytest.mark.parametrize("name", ["", "\u00e9/", "\udce9/"], ids=["root", "accent", "bytes"])
def test_names_of_arrays_may_be_any(name: str) -> None:
    items: list[Any] = [
        (
            Path(f"{name}{k}.0"),
            None,
            (slice(0, 3), slice(1, 2)),
            (slice(3 * k, 3 * k + 3), slice(0, 1)),
        )
        for k in range(2)
    ]
    assert box_of_batch(items, (3, 5)) == BatchBox((0, 1), (6, 1), (slice(0, 6), slice(0, 1)))


@needs_kernel
@pytest.mark.parametrize(
    ("batch", "sizes"), [((), (5,)), ((1,), ()), ((1,), (0,)), ((1,), (2**70,)), ((1,), (1,) * 65)]
)
def test_chunks_without_a_valid_shape_are_refused(batch: Any, sizes: Any) -> None:
    with pytest.raises(ValueError, match="expected chunks"):
        box_of_batch(batch, sizes)


@needs_kernel
@pytest.mark.parametrize("item", [None, (), (Path("a/c/0"), None, (slice(0, 1),))])
def test_items_of_other_types_are_no_box(item: Any) -> None:
    assert box_of_batch([item], (5,)) is None


@needs_kernel
def test_a_chunk_without_a_path_is_an_error() -> None:
    item: Any = ("a/c/0", None, (slice(0, 1),), (slice(0, 1),))
    with pytest.raises(AttributeError, match="path"):
        box_of_batch([item], (5,))


def test_a_box_selects_its_part_of_an_output_of_the_same_rank() -> None:
    box = BatchBox((1, 2), (3, 1), (slice(0, 3), None))
    part = box.within(np.arange(3))
    assert part is not None
    assert part.shape == (3, 1)
    assert box.within(np.arange(2)) is None  # values to be broadcast, or an error
    assert box.within(np.zeros((3, 1))) is None


@pytest.mark.parametrize("key", ["em/s0/c/2/10/0", "em/s0/2.10.0", "em.n5/s.0/c.2.10.0"])
def test_coordinates_of_a_key(key: str) -> None:
    assert chunk_coords(key, 3) == (2, 10, 0)
