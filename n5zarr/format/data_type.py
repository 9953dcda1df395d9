"""The ``dataType`` of a dataset.

N5 4.0.0, "File-system specification", item 7, and ``DataType.java``: lower case names only,
elements big-endian. ``string`` and ``object`` have no fixed item size.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import numpy as np

__all__ = ["DataType"]


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
