"""Convert JSON values to integers and booleans as Java's N5 does.

Java: where a number or a boolean is expected, Gson takes one in quotes, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from n5zarr.format.lenient_json import JSON

__all__ = ["as_boolean", "as_integer"]

_QUOTED_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)


def as_integer(value: JSON, low: int, high: int) -> int:
    """Convert a value to an integer as Java does: accept 4, 4.0 and "4", but not "4.0".

    Deviation: Java truncates 4.5 to 4, and numbers out of range to their last bits.

    Raises
    ------
    ValueError
        The value is not an integer, or not one from ``low`` to ``high``.
    """
    if type(value) is int and low <= value <= high:
        return value
    number: JSON = value
    if isinstance(value, str) and _QUOTED_INTEGER.fullmatch(value):
        number = int(value)
    is_integral = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    if isinstance(number, bool) or not is_integral or not low <= cast("float", number) <= high:
        raise ValueError(f"expected an integer from {low} to {high}, got {value!r:.80}")
    return int(cast("float", number))


def as_boolean(value: JSON) -> bool:
    """Convert a value to a boolean as Java does: accept true and "TRUE".

    Deviation: Java takes any other string as false.

    Raises
    ------
    ValueError
        The value is not a boolean.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f"expected true or false, got {value!r:.80}")
