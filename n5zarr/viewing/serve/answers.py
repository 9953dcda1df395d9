"""Answer conditional requests and requests for a part of a value, as HTTP rules (RFC 9110)."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

__all__ = ["Part", "entity_tag", "has_value", "requested_part", "tag_of_bytes"]

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)
_TAG = re.compile(r'(?:W/)?("[^"]*")')


class Part(NamedTuple):
    """The bytes ``start:stop`` of a value; an empty part is outside of the value."""

    start: int
    stop: int


def entity_tag(*names: object) -> str:
    """Make a strong entity tag from everything that distinguishes values of a key."""
    return tag_of_bytes(repr(names).encode())


def tag_of_bytes(data: bytes | memoryview) -> str:
    """Make a strong entity tag from the bytes of a value."""
    return f'"{blake2b(data, digest_size=12).hexdigest()}"'


def has_value(tag: str, if_none_match: str | None) -> bool:
    """Whether a client says that it has the value of a tag (RFC 9110, 13.1.2: a weak comparison).

    Examples
    --------
    >>> has_value('"a"', 'W/"b", "a"'), has_value('"a"', "*"), has_value('"a"', None)
    (True, True, False)
    """
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or tag in _TAG.findall(if_none_match)


def requested_part(n_bytes: int, wanted: str | None, if_range: str | None, tag: str) -> Part | None:
    """Return the part of a value that a request asks for (RFC 9110, 14.2).

    Parameters
    ----------
    n_bytes : int
        Size of the value.
    wanted : str or None
        The header ``Range``.
    if_range : str or None
        The header ``If-Range``: the client wants a part only of the value with this tag.
    tag : str
        The entity tag of the value.

    Returns
    -------
    Part or None
        None for the whole value: if there is no range, and if there are several ranges or other
        units, which a server may ignore. Empty if the range is outside of the value.

    Examples
    --------
    >>> requested_part(10, "bytes=2-4", None, '"a"'), requested_part(10, "bytes=-3", None, '"a"')
    (Part(start=2, stop=5), Part(start=7, stop=10))
    >>> requested_part(10, "bytes=10-", None, '"a"'), requested_part(10, "bytes=1-2,4-5", None, "")
    (Part(start=0, stop=0), None)
    """
    given = None if wanted is None else _RANGE.fullmatch(wanted.strip())
    if given is None or (if_range is not None and if_range.strip() != tag):
        return None
    first, last = given.groups()
    if not first and not last:
        return None
    if not first:
        start, stop = max(0, n_bytes - int(last)), n_bytes
    else:
        start, stop = int(first), min(int(last) + 1 if last else n_bytes, n_bytes)
        if last and int(last) < start:
            return None  # not a valid range
    return Part(start, stop) if start < stop else Part(0, 0)
