"""Check the arguments that users pass to pictures and views."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING

from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["check_address", "items", "texts", "whole_number"]

_PORTS = 0, 65535


def whole_number(name: str, given: object, low: int | None = None, high: int | None = None) -> int:
    """Return a whole number; those of numpy are, too.

    Raises
    ------
    N5UnrepresentableError
        It is none, or outside the bounds (``kind="option"``).

    Examples
    --------
    >>> whole_number("size", "300", 32, 8192)
    Traceback (most recent call last):
        ...
    n5zarr.errors.N5UnrepresentableError: size: expected a whole number from 32 to 8192, got '300'
    """
    try:
        number = index(given)  # type: ignore[arg-type] # raises TypeError
    except TypeError:
        number = None
    is_inside = number is not None and (low is None or low <= number)
    if number is None or not is_inside or (high is not None and number > high):
        bounds = "" if low is None else f" of at least {low}"
        bounds = bounds if high is None else f" from {low} to {high}"
        raise _refused(f"{name}: expected a whole number{bounds}, got {given!r}")
    return number


def texts(name: str, given: str | Collection[str]) -> list[str]:
    """Return texts; one may be given alone.

    Raises
    ------
    N5UnrepresentableError
        Some are no texts (``kind="option"``).

    Examples
    --------
    >>> texts("labels", "seg*"), texts("labels", ())
    (['seg*'], [])
    """
    listed = items(given)
    each = [given] if listed is None else listed
    found = [text for text in each if isinstance(text, str)]
    if len(found) != len(each):
        raise _refused(f"{name}: expected a text or a sequence of texts, got {given!r}")
    return found


def items(given: object) -> list[object] | None:
    """Return the items of an argument; None for a text, or if it is no sequence."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else None


def check_address(host: object, port: object) -> None:
    """Raise unless a host and a port can be those of a server.

    Raises
    ------
    N5UnrepresentableError
        They cannot (``kind="option"``).
    """
    if not isinstance(host, str):
        raise _refused(f"host: expected an address such as '127.0.0.1', got {host!r}")
    whole_number("port", port, *_PORTS)


def _refused(message: str) -> N5UnrepresentableError:
    return N5UnrepresentableError(message, kind="option")
