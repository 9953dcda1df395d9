"""Convert elements of Zarr's data types to those that N5 stores, and back.

Zarr has the ten numeric types of N5 too. Each other type is stored as the nearest one that every N5
reader opens, and the record (:mod:`n5zarr.zarr_view.record`) has the type of Zarr:

==================================  ====================================================
Zarr                                N5
==================================  ====================================================
bool                                uint8, 0 or 1
float16                             float32
complex64, complex128               float32, float64; real and imaginary part along an
                                    additional fastest axis of length 2
datetime64, timedelta64             int64
struct, raw bytes, fixed bytes      uint8; the bytes, fields in little-endian, along an
                                    additional fastest axis
fixed-length text                   uint32 code points along an additional fastest axis
text of any length                  string
bytes of any length                 object; the chunk as Zarr's ``vlen-bytes`` has it
==================================  ====================================================

If zarr-python 2 wrote a type such as ``dataType: "float16"``, it stays on disk
(:func:`~n5zarr.format.data_type.numpy_type`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON

if TYPE_CHECKING:
    import numpy.typing as npt


class Content(Enum):
    """The content of a dataset's blocks, which decides how they become chunks."""

    NUMBERS = "numbers"
    STRINGS = "strings"
    OBJECTS = "objects"
    LABELS = "labels"

    @classmethod
    def of(cls, dataset: DatasetAttributes) -> Content:
        """Return the content of the blocks of a dataset."""
        if dataset.data_type is DataType.STRING:
            return cls.STRINGS
        if dataset.data_type is DataType.OBJECT:
            return cls.OBJECTS
        return cls.LABELS if dataset.is_label_multiset else cls.NUMBERS


@dataclass(frozen=True, kw_only=True, eq=False)
class Element:
    """The elements of an array: their type in Zarr and in N5, and the fill value.

    Parameters
    ----------
    dtype : numpy.dtype
        The dtype that Zarr's codecs decode to; ``StringDType`` for text, object for bytes of any
        length.
    fill_value : object
        A scalar of that dtype.
    kept_as : DataType, optional
        The type in N5, if it is not the one in the table of the module.
    """

    dtype: np.dtype[np.generic]
    fill_value: object = 0
    kept_as: DataType | None = None

    @classmethod
    def text(cls) -> Element:
        """Return the element of text of any length."""
        # numpy's stubs declare it as a dtype of str, which is no numpy.generic
        return cls(dtype=cast("np.dtype[np.generic]", np.dtypes.StringDType()), fill_value="")

    @cached_property
    def stored(self) -> DataType:
        """The ``dataType`` of the dataset.

        Raises
        ------
        N5UnrepresentableError
            N5 cannot store the dtype (``kind="data-type"``).
        """
        if self.kept_as is not None:
            return self.kept_as
        kinds = {
            "b": DataType.UINT8,
            "c": DataType.FLOAT32 if self.dtype.itemsize == 8 else DataType.FLOAT64,
            "M": DataType.INT64,
            "m": DataType.INT64,
            "S": DataType.UINT8,
            "V": DataType.UINT8,
            "U": DataType.UINT32,
            "T": DataType.STRING,
            "O": DataType.OBJECT,
        }
        if self.dtype.kind in kinds and self.dtype.itemsize and self.dtype.name != "complex256":
            return kinds[self.dtype.kind]
        name = "float32" if self.dtype.name == "float16" else self.dtype.newbyteorder("=").name
        if name in DataType:
            return DataType(name)
        message = f"dtype: expected one that N5 can store, got {self.dtype}; convert first"
        raise N5UnrepresentableError(message, kind="data-type")

    @cached_property
    def n_parts(self) -> int | None:
        """Length of the additional fastest axis; None without such an axis."""
        match self.dtype.kind:
            case "c":
                return 2
            case "S" | "V":
                return self.dtype.itemsize
            case "U":
                return self.dtype.itemsize // 4
            case _:
                return None

    @property
    def is_native(self) -> bool:
        """Whether N5 has the same type."""
        return self.dtype.kind in "iuf" and self.is_stored_as_is

    @property
    def is_widened(self) -> bool:
        """Whether the stored numbers are wider than Zarr's: float32 for float16."""
        return self.dtype.kind == "f" and self.dtype.itemsize < self.stored.item_size

    @cached_property
    def is_stored_as_is(self) -> bool:
        """Whether Zarr and N5 have the same elements; the fill value does not matter."""
        own, stored = self.dtype.newbyteorder("="), self.stored.dtype.newbyteorder("=")
        return self.n_parts is None and own == stored

    @property
    def has_byte_order(self) -> bool:
        """Whether Zarr's ``bytes`` codec names a byte order."""
        if self.dtype.kind in "TO":
            return False
        return self.dtype.fields is not None or self.dtype.byteorder != "|"

    @property
    def byte_order(self) -> str:
        """The byte order with which Zarr's ``bytes`` codec makes the stored elements."""
        return "big" if self.dtype.fields is None else "little"

    @property
    def v2_dtype(self) -> JSON:
        """The ``dtype`` of a ``.zarray`` whose chunks hold the stored elements."""
        if self.dtype.kind in "TO":
            return "|O"
        if self.dtype.fields is not None:
            return _as_lists(self.dtype.newbyteorder("<").descr)
        return self.dtype.newbyteorder(">").str

    def matches_v2_dtype(self, v2_dtype: JSON) -> bool:
        """Whether a ``dtype`` of a ``.zarray`` is that of these elements, in any byte order."""
        if v2_dtype is None or self.dtype.kind in "TO":  # None is float64 to numpy
            return v2_dtype == self.v2_dtype
        try:
            dtype: np.dtype[np.generic] = np.dtype(_as_numpy(v2_dtype))
        except (TypeError, ValueError):
            return False
        return dtype.newbyteorder("=") == self.dtype.newbyteorder("=")

    @property
    def _in_memory(self) -> np.dtype[np.generic]:
        """The dtype of the stored bytes: fields in little-endian, others native."""
        return self.dtype.newbyteorder("=" if self.dtype.fields is None else "<")

    @cached_property
    def stored_fill(self) -> object:
        """The fill value as N5 stores it: a scalar, or an array of parts."""
        if self.dtype.kind == "T":
            return str(self.fill_value)
        if self.dtype.kind == "O":
            return self.fill_value
        scalar = np.zeros((), self.dtype)
        scalar[()] = self.fill_value  # an assignment keeps values that a cast changes, such as NaT
        return self.to_stored(scalar)

    @property
    def fill_is_zero(self) -> bool:
        """Whether the fill value is zero, empty text or empty bytes."""
        if self.dtype.kind in "TO":
            return not self.fill_value
        return not np.asarray(self.stored_fill).tobytes().strip(b"\0")

    def to_stored(self, array: np.ndarray) -> np.ndarray:
        """Convert an array of Zarr's elements into one of stored elements.

        Parameters
        ----------
        array : numpy.ndarray
            Of :attr:`dtype` in any byte order, C order.

        Returns
        -------
        numpy.ndarray
            Of the stored data type, parts along the last axis; a view where that is possible.
        """
        if self.dtype.kind in "TO" or self.is_stored_as_is:
            return array
        if self.is_widened:
            return _widen(array)
        contiguous = np.ascontiguousarray(array, self._in_memory)
        parts = contiguous.reshape(-1).view(self.stored.dtype.newbyteorder("="))
        return parts.reshape(array.shape if self.n_parts is None else (*array.shape, self.n_parts))

    def from_stored(self, stored: np.ndarray) -> np.ndarray:
        """Convert an array of stored elements into one of Zarr's; inverse of :meth:`to_stored`."""
        if self.dtype.kind == "T":
            return stored.astype(self.dtype)
        if self.dtype.kind == "O" or self.is_stored_as_is:
            return stored
        if self.is_widened:
            return _narrow(stored)
        flat = np.ascontiguousarray(stored, self.stored.dtype.newbyteorder("=")).reshape(-1)
        if self.dtype.kind == "b":
            flat = (flat != 0).view("u1")  # other tools may write values above 1
        shape = stored.shape if self.n_parts is None else stored.shape[:-1]
        return flat.view(self._in_memory).reshape(shape)


def _as_lists(value: JSON) -> JSON:
    """Turn tuples, as in numpy's fields of a dtype, into lists, as in JSON."""
    return [_as_lists(item) for item in value] if isinstance(value, list | tuple) else value


def _as_numpy(dtype: JSON) -> npt.DTypeLike:
    """Turn the lists of a ``dtype`` in JSON into numpy's tuples; numpy checks them."""
    if not isinstance(dtype, list):
        return cast("npt.DTypeLike", dtype)
    return cast(
        "npt.DTypeLike", [(name, _as_numpy(inner), *shape) for name, inner, *shape in dtype]
    )


def _widen(array: np.ndarray) -> np.ndarray:
    """Convert float16 to float32; NaN keep their payload, which a cast does not guarantee."""
    half = array.astype("=f2", copy=False)
    bits = half.view("u2").astype("u4")
    with np.errstate(invalid="ignore"):  # processors of ARM report signalling NaN
        single = half.astype("f4").view("u4")
    payload = (bits & 0x8000) << 16 | 0x7F800000 | (bits & 0x3FF) << 13
    return np.where(np.isnan(half), payload, single).astype("u4").view("f4")


def _narrow(stored: np.ndarray) -> np.ndarray:
    """Convert float32 to float16, the inverse of :func:`_widen`; other numbers are rounded."""
    single = stored.astype("=f4", copy=False)
    bits = single.view("u4")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half = single.astype("f2").view("u2")
    # without the `maximum`, NaN whose payload is in the lower bits only would become infinity
    payload = np.maximum((bits >> 13) & 0x3FF, 1)
    nan = (bits >> 16) & 0x8000 | 0x7C00 | payload
    return np.where(np.isnan(single), nan, half).astype("u2").view("f2")
