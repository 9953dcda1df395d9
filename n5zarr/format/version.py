"""The version attribute ``n5`` of the root and what it means for compatibility.

N5 4.0.0, "File-system specification", item 2, and ``N5Reader.Version``: a container can be read
when its major version is not above the reader's. Only the leading digits count; anything else, and
a root without the attribute, is version 0.0.0, which opens.

Deviation: Java crashes on numbers and on fewer than three components; here ``4``, ``"4"`` and
``"4.1"`` mean what they say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from n5zarr.errors import N5UnsupportedError

if TYPE_CHECKING:
    from n5zarr.format.lenient_json import JSON

__all__ = ["SUPPORTED_VERSION", "VERSION_KEY", "check_version", "is_version", "parse_version"]

VERSION_KEY = "n5"
SUPPORTED_VERSION = (4, 0, 0)
_VERSION = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?", re.ASCII)


def parse_version(value: JSON) -> tuple[int, int, int]:
    """Read the value of the version attribute.

    Examples
    --------
    >>> parse_version("4.0.0-SNAPSHOT"), parse_version("v2.1"), parse_version(None)
    ((4, 0, 0), (2, 1, 0), (0, 0, 0))
    """
    found = _VERSION.search(str(value)) if isinstance(value, str | int | float) else None
    major, minor, patch = (int(g or 0) for g in found.groups()) if found else (0, 0, 0)
    return major, minor, patch


def is_version(value: JSON) -> bool:
    """Whether a value is a version that N5 writes, up to the supported one.

    Examples
    --------
    >>> is_version("2.5.1"), is_version("9.9.9"), is_version("mine"), is_version(4)
    (True, False, False, False)
    """
    is_full = isinstance(value, str) and (found := _VERSION.match(value)) and found.group(3)
    return bool(is_full) and parse_version(value) <= (SUPPORTED_VERSION[0], 10**9, 0)


def check_version(value: JSON) -> None:
    """Raise if a container of this version cannot be read.

    Parameters
    ----------
    value : JSON
        What the root's ``attributes.json`` has under ``n5``; None when it has nothing.

    Raises
    ------
    N5UnsupportedError
        The major version is above 4 (``kind="version"``).
    """
    if parse_version(value)[0] > SUPPORTED_VERSION[0]:
        message = (
            f"n5: expected a version up to {SUPPORTED_VERSION[0]}.x, got "
            f"{value!r}; the container was written by a later N5 whose format may differ"
        )
        raise N5UnsupportedError(message, kind="version")
