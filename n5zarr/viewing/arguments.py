"""Check arguments that users pass to pictures, views and servers."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING

from n5zarr.errors import option_error

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["check_address", "items", "texts", "whole_number"]

_PORTS = 0, 65535


def whole_number(name: str, given: object, low: int | None = None, high: int | None = None) -> int:
    """Return an argument as a whole number; it may be one of numpy.

    Raises
    ------
    N5UnrepresentableError
        It is not a whole number, or outside the bounds (``kind="option"``).

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
        raise option_error(f"{name}: expected a whole number{bounds}, got {given!r}")
    return number


def texts(name: str, given: str | Collection[str]) -> list[str]:
    """Return an argument as a list of texts; it may be a single text.

    Raises
    ------
    N5UnrepresentableError
        It is neither a text nor a sequence of texts (``kind="option"``).

    Examples
    --------
    >>> texts("labels", "seg*"), texts("labels", ())
    (['seg*'], [])
    """
    listed = items(given)
    each = [given] if listed is None else listed
    found = [text for text in each if isinstance(text, str)]
    if len(found) != len(each):
        raise option_error(f"{name}: expected a text or a sequence of texts, got {given!r}")
    return found


def items(given: object) -> list[object] | None:
    """Return the items of a sequence; None for a text, and for anything else."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else None


def check_address(host: object, port: object) -> None:
    """Raise an error unless a server can have a host and a port.

    Raises
    ------
    N5UnrepresentableError
        The host is not text, or the port not a number from 0 to 65535 (``kind="option"``).
    """
    if not isinstance(host, str):
        raise option_error(f"host: expected an address such as '127.0.0.1', got {host!r}")
    whole_number("port", port, *_PORTS)
