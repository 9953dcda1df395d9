"""Apply HTTP's rules for validators, byte ranges and conditions to values (RFC 9110)."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

__all__ = ["Part", "entity_tag", "is_known", "part_of", "tag_of_bytes"]

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)
_TAG = re.compile(r'(?:W/)?("[^"]*")')


class Part(NamedTuple):
    """Which bytes of a value are sent: ``start:stop``; an empty part cannot be sent."""

    start: int
    stop: int


def entity_tag(*names: object) -> str:
    """Make a strong entity tag from everything that distinguishes values of a key."""
    return f'"{blake2b(repr(names).encode(), digest_size=12).hexdigest()}"'


def tag_of_bytes(data: memoryview) -> str:
    """Make a strong entity tag of the bytes themselves."""
    return f'"{blake2b(data, digest_size=12).hexdigest()}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether a client has the value of a tag: RFC 9110, 13.1.2, which compares weakly.

    Examples
    --------
    >>> is_known('"a"', 'W/"b", "a"'), is_known('"a"', "*"), is_known('"a"', None)
    (True, True, False)
    """
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or tag in _TAG.findall(if_none_match)


def part_of(n_bytes: int, wanted: str | None, if_range: str | None, tag: str) -> Part | None:
    """Return the part of a value that a request asks for: RFC 9110, 14.2.

    Parameters
    ----------
    n_bytes : int
        Size of the value.
    wanted : str or None
        The header ``Range``.
    if_range : str or None
        The header ``If-Range``: a part is sent only of the value that the client knows.
    tag : str
        The entity tag of the value.

    Returns
    -------
    Part or None
        None for the whole value: without a range, and for several ranges or other units, which a
        server may leave out of account. Empty if the range is outside of the value.

    Examples
    --------
    >>> part_of(10, "bytes=2-4", None, '"a"'), part_of(10, "bytes=-3", None, '"a"')
    (Part(start=2, stop=5), Part(start=7, stop=10))
    >>> part_of(10, "bytes=10-", None, '"a"'), part_of(10, "bytes=1-2,4-5", None, '"a"')
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
            return None  # no valid range
    return Part(start, stop) if start < stop else Part(0, 0)
