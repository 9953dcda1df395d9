"""Check what users pass to pictures, views and servers, and recognise N5 for other programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from operator import index

from n5zarr.errors import N5Error, N5UnrepresentableError, option_error
from n5zarr.storage.place import Location, place_of
from n5zarr.store.locating import locate


def whole_number(name: str, given: object, low: int | None = None, high: int | None = None) -> int:
    """Return an argument as a whole number; it may be one of numpy.

    Raises
    ------
    N5UnrepresentableError
        The argument is not a whole number, or outside the bounds (``kind="option"``).

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
        The argument is neither a text nor a sequence of texts (``kind="option"``).

    Examples
    --------
    >>> texts("labels", "seg*"), texts("labels", ())
    (['seg*'], [])
    """
    each = items(given)
    found = [text for text in each if isinstance(text, str)]
    if len(found) != len(each):
        raise option_error(f"{name}: expected a text or a sequence of texts, got {given!r}")
    return found


def items(given: object) -> list[object]:
    """Return the items of a sequence; a text, and anything else, is the only item."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def is_n5(location: Location, storage_options: Mapping[str, object] | None = None) -> bool:
    """Whether other programs can leave a location to n5zarr.

    Local paths and XML files are looked at; of other URLs, the name decides. What is N5 but broken
    is N5: its error says more than that of a program which knows no N5.

    Parameters
    ----------
    location : path, URL or zarr store
        Any location.
    storage_options : dict, optional
        Options of fsspec, for a URL.
    """
    try:
        place = place_of(location, storage_options)
        if place.is_url and place.format != "bdv":
            return "|n5:" in str(location) or place.is_named("n5")
        found = locate(place)
        if found.kind != "n5":
            return found.kind == "bdv"
        store, path = found.open(writes=False)
        return store.node(path) is not None
    except (N5UnrepresentableError, OSError):  # another program's XML; nothing
        return False
    except N5Error as err:
        return err.kind != "foreign"
