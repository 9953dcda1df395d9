"""Read the version of a container: the attribute ``n5`` of its root.

N5 spec, "File-system specification", item 3.

Java: ``N5Reader.Version``. A container can be read when its major version is at most the reader's.
The first digits in the value count; a value without digits, and a root without the attribute, are
version 0.0.0, which can be read.

Deviation: Java fails on numbers and on fewer than three components. Here ``4``, ``"4"`` and
``"4.1"`` are 4.0.0, 4.0.0 and 4.1.0.
"""

from __future__ import annotations

import re

from n5zarr.errors import N5UnsupportedError
from n5zarr.format.lenient_json import JSON

VERSION_KEY = "n5"
"""N5 spec, "File-system specification", item 3: the attribute of the root."""

SUPPORTED_VERSION = (4, 0, 0)
_VERSION = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?", re.ASCII)


def parse_version(value: JSON) -> tuple[int, int, int]:
    """Parse the value of the version attribute into major, minor and patch.

    Examples
    --------
    >>> parse_version("4.0.0-SNAPSHOT"), parse_version("v2.1"), parse_version(None)
    ((4, 0, 0), (2, 1, 0), (0, 0, 0))
    """
    match = _VERSION.search(str(value)) if isinstance(value, str | int | float) else None
    major, minor, patch = (int(g or 0) for g in match.groups()) if match else (0, 0, 0)
    return major, minor, patch


def is_version(value: JSON) -> bool:
    """Whether a value is a version that N5 writes: a string, three components, major at most 4.

    Examples
    --------
    >>> is_version("2.5.1"), is_version("9.9.9"), is_version("mine"), is_version(4)
    (True, False, False, False)
    """
    is_full = isinstance(value, str) and (match := _VERSION.match(value)) and match.group(3)
    return bool(is_full) and parse_version(value) <= (SUPPORTED_VERSION[0], 10**9, 0)


def check_version(value: JSON) -> None:
    """Raise if a container of this version cannot be read.

    Parameters
    ----------
    value : JSON
        The value of ``n5`` in the root's ``attributes.json``; None if absent.

    Raises
    ------
    N5UnsupportedError
        The major version is above 4 (``kind="version"``).
    """
    if parse_version(value)[0] > SUPPORTED_VERSION[0]:
        message = (
            f"n5: expected a version up to {SUPPORTED_VERSION[0]}.x, got "
            f"{value!r}; a later N5 wrote the container, and its format may differ"
        )
        raise N5UnsupportedError(message, kind="version")
