"""Elements: how what Zarr calls one value is kept in blocks.

The ten data types that both formats have are kept as they are. For the others N5 has no word, so
each is kept as the nearest type that every N5 reader opens, and the record beside N5's own keys
(:mod:`n5zarr.translate.record`) says what they are:

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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.data_type import DataType

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Element"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Element:
    """One kind of element.

    Parameters
    ----------
    dtype : numpy.dtype
        What Zarr's codecs decode to; ``StringDType`` for text, object for bytes of any length.
    fill_value : object
        A scalar of that dtype.
    """

    dtype: np.dtype[Any]
    fill_value: object = 0

    @classmethod
    def text(cls) -> Element:
        """Make the element of text of any length."""
        return cls(dtype=np.dtypes.StringDType(), fill_value="")

    @cached_property
    def stored(self) -> DataType:
        """The ``dataType`` of the dataset.

        Raises
        ------
        N5UnrepresentableError
            There is no way to keep the dtype (``kind="data-type"``).
        """
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
        message = f"dtype {self.dtype}: N5 has no way to keep it; convert first"
        raise N5UnrepresentableError(message, kind="data-type")

    @cached_property
    def n_parts(self) -> int | None:
        """Length of the additional fastest axis; None where there is none."""
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
        """Whether N5 has the type itself."""
        return self.dtype.kind in "iuf" and self.dtype.itemsize == self.stored.item_size

    @property
    def is_stored_as_is(self) -> bool:
        """Whether the elements of a block are these, whatever missing ones are."""
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
        """In which order ``bytes`` makes the elements that are stored."""
        return "big" if self.dtype.fields is None else "little"

    @property
    def _in_memory(self) -> np.dtype[Any]:
        """The dtype in which parts are cut: fields in little-endian, as they are stored."""
        return self.dtype.newbyteorder("=" if self.dtype.fields is None else "<")

    @cached_property
    def stored_fill(self) -> Any:  # noqa: ANN401 - a scalar or an array of parts
        """The fill value as it is stored, with parts along the last axis."""
        if self.dtype.kind == "T":
            return str(self.fill_value)
        if self.dtype.kind == "O":
            return self.fill_value
        scalar = np.zeros((), self.dtype)
        scalar[()] = self.fill_value  # keeps what a cast of the value would not, such as NaT
        return self.to_stored(scalar)

    @property
    def fill_is_zero(self) -> bool:
        """Whether what is missing reads as zero, empty text or empty bytes."""
        if self.dtype.kind in "TO":
            return not self.fill_value
        return not np.asarray(self.stored_fill).tobytes().strip(b"\0")

    def to_stored(self, array: np.ndarray) -> np.ndarray:
        """Turn an array as Zarr decodes it into the array that is stored.

        Parameters
        ----------
        array : numpy.ndarray
            Of :attr:`dtype` in any byte order, C order.

        Returns
        -------
        numpy.ndarray
            Of the stored data type, parts along the last axis; a view where that is possible.
        """
        match self.dtype.kind:
            case "T" | "O":
                return array
            case "f" if self.dtype.itemsize == 2:
                return _widen(array)
            case "S" | "V" | "U" | "c" | "b" | "M" | "m":
                contiguous = np.ascontiguousarray(array, self._in_memory)
                parts = contiguous.reshape(-1).view(self.stored.dtype.newbyteorder("="))
                shape = array.shape if self.n_parts is None else (*array.shape, self.n_parts)
                return parts.reshape(shape)
            case _:
                return array

    def from_stored(self, stored: np.ndarray) -> np.ndarray:
        """Turn an array that is stored into the array that Zarr encodes; see :meth:`to_stored`."""
        match self.dtype.kind:
            case "T":
                return stored.astype(self.dtype)
            case "O":
                return stored
            case "f" if self.dtype.itemsize == 2:
                return _narrow(stored)
            case "S" | "V" | "U" | "c" | "b" | "M" | "m":
                native = self.stored.dtype.newbyteorder("=")
                shape = stored.shape if self.n_parts is None else stored.shape[:-1]
                flat = np.ascontiguousarray(stored, native).reshape(-1)
                if self.dtype.kind == "b":
                    flat = (flat != 0).view("u1")  # other tools may write more than 0 and 1
                return flat.view(self._in_memory).reshape(shape)
            case _:
                return stored


def _widen(array: np.ndarray) -> np.ndarray:
    """Turn float16 into float32; NaN keep their payload, which a cast need not do."""
    half = array.astype("=f2", copy=False)
    bits = half.view("u2").astype("u4")
    single = half.astype("f4").view("u4")
    payload = (bits & 0x8000) << 16 | 0x7F800000 | (bits & 0x3FF) << 13
    return np.where(np.isnan(half), payload, single).astype("u4").view("f4")


def _narrow(stored: np.ndarray) -> np.ndarray:
    """Turn float32 into float16, the inverse of :func:`_widen`; others' numbers are rounded."""
    single = stored.astype("=f4", copy=False)
    bits = single.view("u4")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half = single.astype("f2").view("u2")
    # a payload in the lower bits only, which is not ours, must not become infinity
    payload = np.maximum((bits >> 13) & 0x3FF, 1)
    nan = (bits >> 16) & 0x8000 | 0x7C00 | payload
    return np.where(np.isnan(single), nan, half).astype("u2").view("f2")
