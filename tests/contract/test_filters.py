"""Arrays with filters have the same values in N5 as in plain Zarr."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.abc.store import Store
from zarr.codecs import BytesCodec
from zarr.codecs import numcodecs as codecs
from zarr.storage import MemoryStore

from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError

pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not")

FILTERS: dict[str, Callable[[Any, str], list[Any]]] = {
    "delta": lambda of, dtype: [of.Delta(dtype=dtype)],
    "delta of another type": lambda of, dtype: [of.Delta(dtype=dtype, astype="<i8")],
    "scale": lambda of, dtype: [of.FixedScaleOffset(offset=0, scale=2, dtype=dtype, astype="<u2")],
    "quantize": lambda of, dtype: [of.Quantize(digits=1, dtype=dtype)],
    "bit round": lambda of, _: [of.BitRound(keepbits=5)],
    "type": lambda of, dtype: [of.AsType(encode_dtype="<i8", decode_dtype=dtype)],
    "two": lambda of, dtype: [of.Delta(dtype=dtype), of.Delta(dtype=dtype)],
}
ROUNDS = ("quantize", "bit round")
# with which plain Zarr v3 reads other numbers than it wrote
UNREADABLE = {("delta", ">i4"), ("delta", ">f8"), ("two", ">i4"), ("two", ">f8")}
UNREADABLE |= {("quantize", ">f8")}
CASES = [
    (zarr_format, name, dtype)
    for name in FILTERS
    for dtype in ("<u2", "<i4", ">i4", "<f4", "<f8", ">f8")
    for zarr_format in (2, 3)
    if ("f" in dtype or name not in ROUNDS) and not (name == "bit round" and ">" in dtype)
]


def through(
    store: Store, name: str, values: np.ndarray, zarr_format: Literal[2, 3], dtype: str
) -> np.ndarray:
    of = codecs if zarr_format == 3 else numcodecs
    array: Any = zarr.create_array(
        store, name="a", shape=values.shape, chunks=(5, 3), dtype=dtype,
        filters=FILTERS[name](of, dtype), zarr_format=zarr_format,
    )  # fmt: skip
    array[...] = values
    opened: Any = zarr.open_array(store, path="a", mode="r", zarr_format=zarr_format)
    return np.asarray(opened[...])


@pytest.mark.each_of(5)
@pytest.mark.parametrize(("zarr_format", "name", "dtype"), CASES)
def test_filters(tmp_path: Path, zarr_format: Literal[2, 3], name: str, dtype: str) -> None:
    values = (np.arange(7 * 11).reshape(7, 11) * 3 % 101).astype(dtype)
    if name in ROUNDS:
        values += np.asarray(0.25, dtype)
    store = N5Store(tmp_path / "c.n5", zarr_format=zarr_format)
    if zarr_format == 3 and (name, dtype) in UNREADABLE:
        assert not np.array_equal(through(MemoryStore(), name, values, 3, dtype), values)
        with pytest.raises(N5UnrepresentableError, match="filters: expected to decode to the"):
            through(store, name, values, 3, dtype)
        return
    expected = through(MemoryStore(), name, values, zarr_format, dtype)
    if name not in ROUNDS:
        np.testing.assert_array_equal(expected, values)
    np.testing.assert_array_equal(through(store, name, values, zarr_format, dtype), expected)
    # and so do others
    blocks: Any = zarr.open_array(N5Store(store.root, codecs="n5"), path="a", mode="r")
    np.testing.assert_array_equal(blocks[...], expected)


@pytest.mark.parametrize("chunks", [(5, 3), (2, 2)])
def test_filters_in_shards(tmp_path: Path, chunks: tuple[int, int]) -> None:
    values = np.arange(7 * 11, dtype="i4").reshape(7, 11)
    shards = (chunks[0] * 2, chunks[1] * 2)
    array: Any = zarr.create_array(
        N5Store(tmp_path / "c.n5"), shape=(7, 11), chunks=chunks, shards=shards, dtype="i4",
        filters=[codecs.Delta(dtype="<i4")],
    )  # fmt: skip
    array[...] = values
    for shown in ("zarr", "n5"):
        opened: Any = zarr.open_array(N5Store(tmp_path / "c.n5", codecs=shown), mode="r")
        np.testing.assert_array_equal(opened[...], values)


def test_big_endian_filters_in_shards_are_refused(tmp_path: Path) -> None:
    values = np.arange(7 * 11, dtype="u2").reshape(7, 11) * 300
    options: Any = {
        "shape": (7, 11), "chunks": (2, 3), "shards": (6, 9), "dtype": "u2", "name": "a",
        "filters": [codecs.Delta(dtype=">u2")], "serializer": BytesCodec(endian="big"),
    }  # fmt: skip
    plain: Any = zarr.create_array(MemoryStore(), **options)
    plain[...] = values
    assert not np.array_equal(plain[...], values)  # zarr itself misreads them
    with pytest.raises(N5UnrepresentableError, match="filters: expected"):
        zarr.create_array(N5Store(tmp_path / "c.n5"), **options)[...] = values
