"""The ``dataType`` of a dataset.

N5 4.0.0, "File-system specification", item 7, and ``DataType.java``: lower case names only,
elements big-endian. ``string`` and ``object`` have no fixed item size.

zarr-python 2 wrote numpy's name of whatever dtype it had, and the elements as numpy has them,
big-endian; besides N5's own it reads back what :func:`numpy_type` names.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cached_property

import numpy as np

__all__ = ["DataType", "numpy_type", "same_bytes"]

_NUMPY_NAME = re.compile(r"bool|float16|(datetime|timedelta)64\[\w+\]", re.ASCII)


class DataType(StrEnum):
    """What N5 can store as elements of a block."""

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    STRING = "string"
    OBJECT = "object"

    @cached_property
    def is_numeric(self) -> bool:
        """Whether elements are numbers of fixed size."""
        return self not in (DataType.STRING, DataType.OBJECT)

    @cached_property
    def dtype(self) -> np.dtype[np.generic]:
        """The numpy dtype of the stored elements, big-endian; bytes for string and object."""
        return np.dtype(self.value).newbyteorder(">") if self.is_numeric else np.dtype("u1")

    @property
    def item_size(self) -> int:
        """Bytes per element; 1 for string and object, which are counted in bytes."""
        return self.dtype.itemsize


def numpy_type(name: str) -> np.dtype[np.generic] | None:
    """Give the dtype that zarr-python 2 wrote under a name that N5 does not have.

    Parameters
    ----------
    name : str
        The ``dataType``.

    Returns
    -------
    numpy.dtype or None
        ``bool``, ``float16``, or ``datetime64`` and ``timedelta64`` with a unit; None for another
        name.

    Examples
    --------
    >>> numpy_type("datetime64[10s]"), numpy_type("float128")
    (dtype('<M8[10s]'), None)
    """
    if _NUMPY_NAME.fullmatch(name) is None:
        return None
    try:
        return np.dtype(name)
    except (TypeError, ValueError, OverflowError):  # no such unit
        return None


def same_bytes(dtype: np.dtype[np.generic]) -> DataType:
    """Give N5's data type whose elements are the bytes of one that :func:`numpy_type` gives.

    Examples
    --------
    >>> same_bytes(np.dtype("float16"))
    <DataType.UINT16: 'uint16'>
    """
    kinds = {"b": DataType.UINT8, "f": DataType.UINT16, "M": DataType.INT64, "m": DataType.INT64}
    return kinds[dtype.kind]
