"""Parse Zarr's data types into elements, with zarr's own classes, and write them for v2 and v3."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from zarr.dtype import parse_dtype
from zarr.errors import UnstableSpecificationWarning

from n5zarr._zarr import REFUSALS
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.element import Element
from n5zarr.zarr_view.keys import ZarrFormat

if TYPE_CHECKING:
    from n5zarr._zarr import ZDType

_OBJECT_CODECS = ("vlen-utf8", "vlen-bytes")


def element_of_v3(data_type: JSON, fill_value: JSON) -> Element:
    """Make the element of a ``zarr.json``.

    Parameters
    ----------
    data_type, fill_value : JSON
        Members of the document; a fill value of None is the default.

    Raises
    ------
    N5UnrepresentableError
        zarr does not know the data type, or the fill value does not have this type.
    """
    return _element(_parse(data_type, 3), fill_value, 3)


def element_of_v2(document: Mapping[str, Any]) -> Element:
    """Make the element of a ``.zarray``; see :func:`element_of_v3`."""
    return _element(_v2_type(document), document.get("fill_value"), 2)


def v3_form(document: Mapping[str, Any]) -> tuple[JSON, JSON]:
    """Convert data type and fill value of a ``.zarray`` into their v3 form."""
    zdtype = _v2_type(document)
    return _form(zdtype, _scalar(zdtype, document.get("fill_value"), 2))


def v2_fill(data_type: JSON, fill_value: JSON, v2_dtype: JSON) -> JSON:
    """Convert the fill value of a ``zarr.json`` into that of a ``.zarray`` with a given dtype."""
    zdtype = _parse(data_type, 3)
    scalar = _scalar(zdtype, fill_value, 3)
    if zdtype.to_native_dtype().kind not in "TO":
        zdtype = _v2_type({"dtype": v2_dtype})
        scalar = np.asarray(scalar).astype(zdtype.to_native_dtype())[()]
    fill = zdtype.to_json_scalar(scalar, zarr_format=2)
    # null reads as the default, while xarray masks elements that equal any other fill value
    default = zdtype.to_json_scalar(zdtype.default_scalar(), zarr_format=2)
    is_default = repr(fill) == repr(default)  # -0.0 is not 0.0
    return None if is_default else fill


def default_fill(data_type: JSON) -> JSON:
    """Return the default fill value of a data type, in the form of a ``zarr.json``."""
    zdtype = _parse(data_type, 3)
    try:
        return _form(zdtype, zdtype.default_scalar())[1]
    except REFUSALS as err:  # zarr has no default for fields without a name and for objects
        message = f"data type: expected one with a default fill value, got {data_type!r:.80}"
        raise N5UnrepresentableError(message, kind="data-type") from err


def type_of_numpy(dtype: np.dtype) -> tuple[JSON, JSON]:
    """Return the data type and the fill value 0 of a ``zarr.json`` for a numpy dtype."""
    return _form(_parse(dtype, 3), np.zeros((), dtype)[()])


def _form(zdtype: ZDType, scalar: object) -> tuple[JSON, JSON]:
    """Return a data type and a scalar of it as members of a ``zarr.json``."""
    if zdtype.to_native_dtype().kind in "SVO":
        # an array presented as v2 needs no specification in v3
        with warnings.catch_warnings(action="ignore", category=UnstableSpecificationWarning):
            data_type = zdtype.to_json(zarr_format=3)
    else:
        data_type = zdtype.to_json(zarr_format=3)
    # the cast is sound: both are JSON, but zarr's alias for it has other members
    return cast("tuple[JSON, JSON]", (data_type, zdtype.to_json_scalar(scalar, zarr_format=3)))


def _parse(data_type: object, zarr_format: ZarrFormat) -> ZDType:
    try:
        zdtype = parse_dtype(data_type, zarr_format=zarr_format)  # type: ignore[arg-type]
        # numpy refuses duplicate field names, and texts that are too long
        zdtype.to_native_dtype(), zdtype.default_scalar()
    except REFUSALS as err:
        message = f"data type: expected one that zarr knows, got {data_type!r:.80}"
        raise N5UnrepresentableError(message, kind="data-type") from err
    return zdtype


def _v2_type(document: Mapping[str, Any]) -> ZDType:
    dtype = document["dtype"]
    filters = document.get("filters") or ()
    object_codec = next((f["id"] for f in filters if f.get("id") in _OBJECT_CODECS), None)
    return _parse({"name": dtype, "object_codec_id": object_codec}, 2)


def _scalar(zdtype: ZDType, fill_value: JSON, zarr_format: ZarrFormat) -> object:
    if fill_value is None:  # v2: for null, zarr uses the default, 0 for numbers
        return zdtype.default_scalar()
    try:
        scalar: object = zdtype.from_json_scalar(fill_value, zarr_format=zarr_format)
        if np.ndim(cast("Any", scalar)):  # a list of truth values
            raise TypeError
    except REFUSALS as err:
        message = f"fill_value: expected one of {zdtype.to_native_dtype()}, got {fill_value!r:.80}"
        raise N5UnrepresentableError(message, kind="data-type") from err
    return scalar


def _element(zdtype: ZDType, fill_value: JSON, zarr_format: ZarrFormat) -> Element:
    native = zdtype.to_native_dtype()
    return Element(
        dtype=native if native.kind in "TOSV" else native.newbyteorder("="),
        fill_value=_scalar(zdtype, fill_value, zarr_format),
    )
