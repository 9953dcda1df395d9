"""Arrays that zarr writes come back in a new store, and N5's types in every other reader."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tensorstore
import z5py
import zarr
import zarr.codecs as zc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from zarr.codecs import numcodecs as znc
from zarr.dtype import VariableLengthBytes
from zarr.storage import MemoryStore

from n5zarr import N5Store
from tests.fuzz.oracle import read_files
from tests.memory import MEMORY
from tests.property import outside

# zarr's own warnings, of data types without a specification and of sharding
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:The data type .* does not have a Zarr V3 specification"
        ":zarr.errors.UnstableSpecificationWarning"
    ),
    pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec disables"),
]

get_codec: Any = numcodecs.get_codec

NATIVE = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
NATIVE += ["float32", "float64"]
OTHERS = ["bool", "float16", "complex64", "complex128", "datetime64[ms]", "timedelta64[7D]"]
OTHERS += ["S5", "U3", "V4"]
STRUCTS: list[Any] = [
    [("a", "<i4"), ("b", "<f8")],
    [("id", "<u2"), ("in", [("x", "<f4"), ("name", "<U3")])],
]
TEXT = [np.dtypes.StringDType(), VariableLengthBytes()]

COMPRESSORS: dict[str, Any] = {
    "auto": "auto",
    "none": None,
    "gzip": zc.GzipCodec(level=3),
    "zstd": zc.ZstdCodec(level=5),
    "zstd with checksum": zc.ZstdCodec(level=5, checksum=True),
    "blosc": zc.BloscCodec(cname="lz4", clevel=4, shuffle="shuffle"),
    "zlib": znc.Zlib(level=2),
    "bz2": znc.BZ2(level=3),
    "lzma": znc.LZMA(preset=1),
    "crc32c": zc.Crc32cCodec(),
}


@st.composite
def geometry(draw: st.DrawFn, max_dims: int = 3) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = draw(npst.array_shapes(min_dims=0, max_dims=max_dims, min_side=0, max_side=11))
    chunks = tuple(draw(st.integers(1, 6)) for _ in shape)
    return shape, chunks


def scalars(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype.kind == "T":
        return st.text(st.characters(codec="utf-8"), max_size=5)
    if dtype.kind == "O":
        return st.binary(max_size=5)
    if dtype.kind == "V" and dtype.fields is None:
        return st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize).map(np.void)
    return npst.arrays(dtype, ()).map(lambda a: plain(a)[()])


def plain(scalar: np.ndarray) -> np.ndarray:
    """Replace every NaN by the usual one, as zarr writes all as ``"NaN"``."""
    if scalar.dtype.kind == "V":
        scalar = scalar.copy()
        for name in scalar.dtype.names or ():
            scalar[name] = plain(scalar[name])
        return scalar
    if scalar.dtype.kind == "c":
        parts = scalar.reshape(1).view(scalar.real.dtype)
        return plain(parts).view(scalar.dtype).reshape(())
    if scalar.dtype.kind == "f":
        return np.where(np.isnan(scalar), np.nan, scalar).astype(scalar.dtype)
    return scalar


@st.composite
def contents(draw: st.DrawFn, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    if dtype.kind == "V" and dtype.fields is None:
        return draw(npst.arrays("u1", (*shape, dtype.itemsize))).view(dtype).reshape(shape)
    if dtype.kind not in "TO":
        return draw(npst.arrays(dtype, shape))
    n = math.prod(shape)
    values = draw(st.lists(scalars(dtype), min_size=n, max_size=n))
    array = np.empty(n, object)
    array[:] = values
    return array.reshape(shape) if dtype.kind == "O" else array.astype(dtype).reshape(shape)


def same(first: Any, second: Any) -> bool:
    """Return whether two arrays hold the same bits, whatever their byte order."""
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        return False
    if first.dtype.kind in "TO":
        return bool(first.tolist() == second.tolist())
    return bool(first.astype(second.dtype).tobytes() == second.tobytes())


def metadata(array: zarr.Array[Any]) -> dict[str, Any]:
    """Return the metadata that must come back; in v2 fill values 0 and null are equal."""
    shown = array.metadata.to_dict()
    text = json.dumps(shown, default=str)
    for plain in ('"endian": "big"', '"endian": "little"'):
        text = text.replace(plain, '"endian": "any"')
    found: dict[str, Any] = json.loads(text)
    if found["zarr_format"] == 2:
        default = array.metadata.dtype.default_scalar()
        if found["fill_value"] is None or same(array.fill_value, default):
            found["fill_value"] = "default"
    return found


def reopened(path: str, **how: Any) -> zarr.Array[Any]:
    return zarr.open_array(N5Store(path, **how), path="g/a", mode="r")


def written(
    store: N5Store, values: np.ndarray, create: dict[str, Any]
) -> tuple[zarr.Array[Any], np.ndarray]:
    """Write an array, and the same one to memory as plain Zarr, for the comparison.

    That is what was written, but for what zarr itself takes as equal to the fill value (-0j), and
    for scalars, which it takes through Python.
    """
    plain_array = zarr.create_array(MemoryStore(), **create)
    plain_array[...] = values
    array = zarr.create_array(store, **create)
    array[...] = values
    return array, np.asarray(plain_array[...])


EXAMPLES = settings(
    max_examples=settings().max_examples // 4,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)


@pytest.mark.each_of(5)
@EXAMPLES
@given(st.data(), geometry(), st.sampled_from([3, 2]), st.sampled_from(["C", "F"]))
@pytest.mark.parametrize("dtype", [*NATIVE, *OTHERS, *STRUCTS, *TEXT], ids=str)
def test_every_dtype_comes_back(
    dtype: Any,
    data: st.DataObject,
    geometry: tuple[tuple[int, ...], tuple[int, ...]],
    zarr_format: Any,
    axis_order: Any,
) -> None:
    shape, chunks = geometry
    native = np.dtype(object) if isinstance(dtype, VariableLengthBytes) else np.dtype(dtype)
    if native.kind == "O" and not shape:
        shape, chunks = (1,), (1,)  # zarr cannot write such a scalar anywhere
    values = data.draw(contents(native, shape))
    fill = data.draw(st.one_of(st.none(), scalars(native)))
    codecs = data.draw(st.sampled_from(["zarr", "n5", "portable"]))
    empty = data.draw(st.booleans())
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        how = {"zarr_format": zarr_format, "axis_order": axis_order, "codecs": codecs}
        create = {"name": "g/a", "shape": shape, "chunks": chunks, "dtype": dtype}
        create |= {"fill_value": fill, "attributes": {"x": [1.5, None]}}
        create |= {"zarr_format": zarr_format, "config": {"write_empty_chunks": empty}}
        array, expected = written(N5Store(f"{folder}/c.n5", **how), values, create)
        assert same(array[...], expected)
        found = reopened(f"{folder}/c.n5", **how)
        assert same(found[...], expected)
        shown, wanted = metadata(found), metadata(array)
        if codecs != "zarr" or axis_order == "F":  # other codecs are shown on purpose
            for key in ("codecs", "compressor", "filters", "order"):
                shown.pop(key, None), wanted.pop(key, None)
        assert shown == wanted
        other = reopened(f"{folder}/c.n5", axis_order=axis_order)
        assert same(other[...], expected)


ORDERED = ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "U5"]
ORDERED += ["M8[s]", "M8[10us]", "m8[7D]"]
IN_EVERY_ORDER = [np.dtype(order + name) for order in "<>" for name in ORDERED]
IN_EVERY_ORDER += [np.dtype(name) for name in ("u1", "i1", "?", "S3", "V4")]
IN_EVERY_ORDER += [
    np.dtype([("a", ">u2"), ("b", "<f4"), ("s", "S2")]),
    np.dtype([("a", ">u2"), ("b", ">f8")]),
    np.dtype([("a", "<u2"), ("in", [("x", ">i4"), ("name", ">U3")])]),
]
ALL_CODECS = ["zarr", "n5", "portable"]


@pytest.mark.each_of(7)
@EXAMPLES
@given(
    st.data(), geometry(2), st.sampled_from(ALL_CODECS), st.sampled_from(ALL_CODECS), st.booleans()
)
@pytest.mark.parametrize("dtype", IN_EVERY_ORDER, ids=str)
def test_v2_comes_back_in_its_byte_order(
    dtype: np.dtype[Any],
    data: st.DataObject,
    geometry: tuple[tuple[int, ...], tuple[int, ...]],
    codecs: Any,
    read_with: Any,
    filtered: bool,
) -> None:
    shape, chunks = geometry
    values = data.draw(contents(dtype, shape))
    name = data.draw(st.sampled_from(["gzip", "zlib", "zstd", "blosc", "bz2", "lzma", None]))
    compressor = None if name is None else get_codec({"id": name})
    shuffle = get_codec({"id": "shuffle", "elementsize": dtype.itemsize})
    create = {"name": "g/a", "shape": shape, "chunks": chunks, "dtype": dtype, "zarr_format": 2}
    create |= {"compressors": compressor, "fill_value": data.draw(scalars(dtype))}
    create |= {"filters": [shuffle] if filtered and shape else None}
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        where = f"{folder}/c.n5"
        live, expected = written(N5Store(where, zarr_format=2, codecs=codecs), values, create)
        found = reopened(where, zarr_format=2, codecs=read_with)
        for array in (live, found):
            assert array.dtype == dtype
            assert not shape or np.asarray(array[...]).dtype == dtype  # numpy's scalars have none
            assert same(array[...], expected)
        shown, wanted = metadata(found), metadata(live)
        if read_with != "zarr" or codecs != "zarr":  # other codecs are shown on purpose
            for key in ("compressor", "filters"):
                shown.pop(key), wanted.pop(key)
        assert shown == wanted
        found = zarr.open_array(N5Store(where, zarr_format=2, codecs=read_with), path="g/a")
        found[...] = expected  # and is written in it
        assert same(reopened(where, zarr_format=2)[...], expected)
        assert same(reopened(where, zarr_format=3)[...], expected)


@pytest.mark.each_of(9)
@EXAMPLES
@given(st.data(), geometry(), st.sampled_from(NATIVE))
@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("extra", ["", "big-endian", "transpose", "shuffle", "sharded"])
def test_every_chain_of_codecs_comes_back(
    extra: str,
    compressor: str,
    data: st.DataObject,
    geometry: tuple[tuple[int, ...], tuple[int, ...]],
    dtype: str,
) -> None:
    shape, chunks = geometry
    values = data.draw(npst.arrays(dtype, shape))
    fill = data.draw(st.one_of(st.just(0), scalars(np.dtype(dtype))))
    how: dict[str, Any] = {"compressors": COMPRESSORS[compressor], "chunks": chunks}
    if extra == "big-endian" and np.dtype(dtype).itemsize > 1:
        how["serializer"] = zc.BytesCodec(endian="big")
    elif extra == "transpose" and shape:
        how["filters"] = [zc.TransposeCodec(order=data.draw(st.permutations(range(len(shape)))))]
    elif extra == "shuffle" and compressor not in ("auto", "none"):
        how["compressors"] = [
            znc.Shuffle(elementsize=np.dtype(dtype).itemsize),
            COMPRESSORS[compressor],
        ]
    elif extra == "sharded" and shape:
        how["shards"] = tuple(2 * c for c in chunks)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        create = {"name": "g/a", "shape": shape, "dtype": dtype, "fill_value": fill, **how}
        array, expected = written(N5Store(f"{folder}/c.n5"), values, create)
        found = reopened(f"{folder}/c.n5")
        assert same(found[...], expected)
        assert metadata(found) == metadata(array)
        assert found.compressors == array.compressors
        assert found.shards == array.shards
        assert same(reopened(f"{folder}/c.n5", codecs="n5")[...], expected)


# ---------------------------------------------------------------------- other readers


@EXAMPLES
@given(st.data(), geometry(), st.sampled_from(sorted(COMPRESSORS)))
@pytest.mark.parametrize("dtype", NATIVE)
def test_native_types_are_read_by_tensorstore_z5py_and_a_plain_decoder(
    dtype: str,
    data: st.DataObject,
    geometry: tuple[tuple[int, ...], tuple[int, ...]],
    compressor: str,
) -> None:
    shape, chunks = geometry
    values = data.draw(npst.arrays(dtype, shape))
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        array = zarr.create_array(
            N5Store(f"{folder}/c.n5"), name="g/a", shape=shape, chunks=chunks, dtype=dtype,
            compressors=COMPRESSORS[compressor],
        )  # fmt: skip
        array[...] = values
        expected = np.asarray(array[...]).reshape(shape or (1,))
        dataset = Path(folder, "c.n5", "g", "a")
        assert same(read_files(dataset), expected)
        for coords in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunks, strict=True))):
            if shape and dataset.joinpath(*map(str, coords[::-1])).exists():  # truncated at the end
                ends = zip(shape, chunks, coords, strict=True)
                extent = tuple(min(c, n - at * c) for n, c, at in ends)
                assert outside.block_shape(dataset, coords) == extent
        spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(dataset)}}
        assert same(tensorstore.open(spec).result().read().result().T, expected)
        if expected.size:  # z5py reads no empty selection
            # z5py's own zstd and blosc are those of numcodecs
            assert same(z5py.File(f"{folder}/c.n5", "r")["g/a"][...], expected)
