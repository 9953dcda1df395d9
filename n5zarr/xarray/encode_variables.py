"""Encode variables for new N5 datasets, or in the form in which an existing dataset stores them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from n5zarr.container.options import require
from n5zarr.errors import option_error
from n5zarr.format.compression import Compression
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.order import CTuple
from n5zarr.format.raw_json import from_numpy
from n5zarr.store.block_codec import N5BlockCodec
from n5zarr.zarr_view.compressors import compressors_to_write

if TYPE_CHECKING:
    """Extent of a block by dimension. Any: type checkers refuse str for Hashable here."""

type Chunks = Mapping[Any, int] | Literal["auto"] | None

# keys of a variable's encoding that decoding sets and encoding needs
_CF_ENCODING = (
    "units", "calendar", "dtype", "scale_factor", "add_offset", "_FillValue", "missing_value",
    "coordinates", "grid_mapping", "_Unsigned",
)  # fmt: skip

_NATIVE = {np.dtype(t.value) for t in DataType if t.is_numeric}

# numbers, text, bytes, dates, durations, structs: one kind is never stored as another
_KINDS = ("biufc", "OUT", "S", "M", "m", "V")


def encode_new(variable: xr.Variable, compression: Compression, chunks: Chunks) -> xr.Variable:
    """Set block size, compression and fill value 0 for a new dataset.

    Parameters
    ----------
    variable : Variable
        The decoded variable.
    compression : Compression
        Of the blocks.
    chunks : mapping, "auto" or None
        See :func:`~n5zarr.xarray.write.to_n5`.
    """
    new = variable.to_base_variable()
    new.attrs = from_numpy(variable.attrs)
    block = _block_shape(new, chunks)
    encoding = {key: value for key, value in new.encoding.items() if key in _CF_ENCODING}
    if new.dtype.kind == "f":
        encoding.setdefault("_FillValue", None)  # do not use NaN as fill value
    dtype = np.dtype(encoding.get("dtype", new.dtype))
    if dtype.kind in "iufcmM":
        encoding["fill_value"] = 0
    elif dtype.kind == "b":
        encoding["fill_value"] = False
    is_native = new.dtype in _NATIVE and not encoding.keys() - {"_FillValue", "fill_value"}
    if is_native and new.ndim:
        encoding["serializer"] = N5BlockCodec(compression, "C")
        encoding["compressors"] = None
    else:
        encoding["compressors"] = compressors_to_write(compression, 3)
    new.encoding = {**encoding, "chunks": block} if new.ndim else encoding
    return in_whole_blocks(new, block, (0,) * new.ndim)


def _block_shape(variable: xr.Variable, chunks: Chunks) -> CTuple:
    if chunks is None:
        source = variable.encoding.get("chunks")
        if source is not None and len(source) == variable.ndim:
            return CTuple(tuple(map(index, source)))
    automatic = automatic_block_size(variable.shape)
    if isinstance(chunks, str | None):
        return CTuple(automatic)
    sizes = [chunks.get(dim, n) for dim, n in zip(variable.dims, automatic, strict=True)]
    return CTuple(tuple(map(index, sizes)))


def encode_existing(
    name: Hashable, variable: xr.Variable, decoded: xr.Variable, stored: xr.Variable, where: str
) -> xr.Variable:
    """Encode a variable in the encoding of an existing dataset.

    Parameters
    ----------
    name : str
        Of the variable.
    variable : Variable
        The data to write, with the dimensions of the dataset in its order.
    decoded, stored : Variable
        The dataset as xarray decodes it, and with its stored elements.
    where : str
        The container and the group, for messages.

    Raises
    ------
    N5UnrepresentableError
        The dataset cannot store these elements (``kind="option"``). Elements of dask arrays are
        compared when they are computed.
    """
    require(
        _kind(variable.dtype) == _kind(decoded.dtype),  # before anything is encoded
        f"{name!r}: expected elements of {decoded.dtype}, got {variable.dtype}",
        where,
    )
    given = variable.copy(deep=False)
    given.encoding = {key: value for key, value in decoded.encoding.items() if key in _CF_ENCODING}
    if decoded.dtype == stored.dtype:
        given.encoding.pop("dtype", None)  # it would round numbers and cut text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # dates in other units: _check_times compares them
            encoded = xr.conventions.encode_cf_variable(given, name=name)
            if given.dtype.kind in "mM":
                _check_times(given, encoded, stored)
    except (ValueError, TypeError, OverflowError) as err:
        raise option_error(
            f"{name!r}: expected values that can be stored as {stored.dtype} "
            f"{stored.attrs.get('units', '')!r}, like in the container: {err}",
            where=where,
        ) from err
    if given.dtype.kind in "mM":
        return encoded
    return _cast(encoded, given, stored, f"{where}: {name}")


def _kind(dtype: np.dtype) -> str:
    return next(kinds for kinds in _KINDS if dtype.kind in kinds)


def _check_times(times: xr.Variable, encoded: xr.Variable, stored: xr.Variable) -> None:
    """Reject times that the units and data type of a dataset cannot express."""
    cast = xr.Variable(encoded.dims, encoded.values.astype(stored.dtype), stored.attrs)
    decoded = xr.conventions.decode_cf_variable("times", cast, decode_timedelta=True)
    if not np.array_equal(decoded.values, times.values, equal_nan=True):
        raise ValueError("they would read as other times")


def _cast(encoded: xr.Variable, given: xr.Variable, stored: xr.Variable, where: str) -> xr.Variable:
    """Cast to the stored data type, and raise if decoding would give other elements."""
    packing = [stored.attrs.get(key) for key in ("scale_factor", "add_offset", "_FillValue")]
    if encoded.dtype == stored.dtype and not any(value is not None for value in packing):
        return encoded
    if encoded.dtype.kind in "OUTS":
        require(
            stored.dtype.kind in "OT" or np.can_cast(encoded.dtype, stored.dtype, "safe"),
            f"expected elements of {stored.dtype}, got {encoded.dtype}: convert them",
            where,
        )
        return encoded
    cast = partial(_cast_elements, dtype=stored.dtype, attributes=stored.attrs, where=where)
    if encoded.chunks is None:
        elements: object = cast(encoded.values, given.values)
    else:
        import dask.array as da  # noqa: PLC0415 - the data are dask's

        elements = da.map_blocks(cast, encoded.data, given.data, dtype=stored.dtype)  # type: ignore[no-untyped-call]
    return xr.Variable(encoded.dims, elements, encoded.attrs, encoded.encoding)


def _cast_elements(
    encoded: np.ndarray,
    given: np.ndarray,
    *,
    dtype: np.dtype,
    attributes: Mapping[str, object],
    where: str,
) -> np.ndarray:
    """Cast; raise if decoding changes elements beyond the rounding of packed numbers."""
    with np.errstate(all="ignore"):
        cast = encoded.astype(dtype)
        dims = [f"d{axis}" for axis in range(cast.ndim)]
        variable = xr.Variable(dims, cast, attributes)
        decoded = xr.conventions.decode_cf_variable(where, variable).values
        is_same = _is_same(decoded, given, attributes)
    require(is_same, f"expected elements that {dtype} can hold: convert them first", where)
    return cast


def _is_same(decoded: np.ndarray, given: np.ndarray, attributes: Mapping[str, object]) -> bool:
    if given.dtype.kind == "b" or decoded.dtype.kind == "b":
        return np.array_equal(decoded.astype("u1"), given.astype("u1"))
    scale_factor = attributes.get("scale_factor")
    if scale_factor is None and attributes.get("add_offset") is None:
        if not np.array_equal(decoded, given, equal_nan=given.dtype.kind in "fc"):
            return False
        # numpy compares integers with floats as floats, which rounds large integers
        is_wide = given.dtype.kind in "iu" and decoded.dtype.kind == "f"
        return not is_wide or np.array_equal(decoded.astype(given.dtype), given)
    half = 0.500001 * abs(float(np.asarray(scale_factor or 1)))
    return np.array_equal(np.isnan(decoded), np.isnan(given)) and bool(
        np.all((np.abs(decoded - given) <= half) | np.isnan(given))
    )


def in_whole_blocks(
    variable: xr.Variable, block: Sequence[int], start: Sequence[int]
) -> xr.Variable:
    """Merge dask's chunks so that no two share a block.

    Parameters
    ----------
    variable : Variable
        A variable of dask, or of numpy, which is returned unchanged.
    block : sequence of int
        Extent of a block in elements, in the order of the dimensions.
    start : sequence of int
        First element of the variable in the dataset.
    """
    if variable.chunks is None:
        return variable
    aligned = {}
    for dim, chunks, size, first in zip(variable.dims, variable.chunks, block, start, strict=True):
        ends = first + np.cumsum(chunks)[:-1]
        if (ends % size).any():
            step = max(1, round(max(chunks) / size)) * size
            stop = first + sum(chunks)
            edges = [first, *range((first // step + 1) * step, stop, step), stop]
            aligned[dim] = tuple(np.diff(edges).tolist())
    return variable.chunk(aligned) if aligned else variable
