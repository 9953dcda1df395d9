"""Map the ``dataType`` of a dataset to numpy dtypes.

N5 spec, "File-system specification", item 4 (the names) and item 9 (elements are big-endian).

Java: ``DataType.java`` takes lower-case names only, and has ``string`` too, which the specification
does not list. Elements of ``string`` and ``object`` have no fixed size.

For types that N5 does not have, zarr-python 2 wrote numpy's name of the dtype, such as
``"float16"``, with big-endian elements: :func:`numpy_type` reads these names.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cached_property

import numpy as np

_NUMPY_NAME = re.compile(r"bool|float16|(datetime|timedelta)64\[\w+\]", re.ASCII)


class DataType(StrEnum):
    """The element types of N5.

    N5 spec, "File-system specification", item 4.
    """

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
        """The numpy dtype of the stored elements, big-endian; uint8 for string and object.

        N5 spec, "File-system specification", item 9.
        """
        return np.dtype(self.value).newbyteorder(">") if self.is_numeric else np.dtype("u1")

    @property
    def item_size(self) -> int:
        """Bytes per element; 1 for string and object, which are counted in bytes."""
        return self.dtype.itemsize


def numpy_type(name: str) -> np.dtype[np.generic] | None:
    """Return the dtype of a ``dataType`` that zarr-python 2 writes and N5 does not have.

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
    """Return the data type of N5 with the same bytes as a dtype of :func:`numpy_type`.

    Examples
    --------
    >>> same_bytes(np.dtype("float16"))
    <DataType.UINT16: 'uint16'>
    """
    kinds = {"b": DataType.UINT8, "f": DataType.UINT16, "M": DataType.INT64, "m": DataType.INT64}
    return kinds[dtype.kind]
