"""Read names of axes in attributes: tensorstore's ``axes`` and xarray's ``_ARRAY_DIMENSIONS``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, to_n5
from n5zarr.format.path import is_name

AXES_KEY = "axes"
XARRAY_KEY = "_ARRAY_DIMENSIONS"
"""The attribute with which xarray names the axes of arrays of Zarr v2."""


def derived_names(attributes: Mapping[str, JSON], ndim: int) -> tuple[str, tuple[str, ...]] | None:
    """Read the names of the axes from xarray's attribute (C order) or tensorstore's (N5 order).

    Parameters
    ----------
    attributes : mapping
        The users' attributes.
    ndim : int
        Number of dimensions of the Zarr array.

    Returns
    -------
    key, names : str, tuple of str, or None
        The attribute, and the names in N5 order; ``""`` for an axis without name.
    """
    for key in (XARRAY_KEY, AXES_KEY):
        names = _axis_names(attributes.get(key), ndim)
        if names:
            return key, to_n5(names) if key == XARRAY_KEY else tuple(names)
    return None


def letters_of(value: JSON, ndim: int) -> tuple[str, ...] | None:
    """Read ilastik's ``axes``, a text with one letter for each axis, N5 order; None for others.

    lazyflow ``OpStreamingH5N5Reader``; the letters are those of vigra's axes that images have.

    Examples
    --------
    >>> letters_of("cxyt", 4), letters_of("cxy", 4), letters_of("xxyz", 4)
    (('c', 'x', 'y', 't'), None, None)
    """
    is_text = isinstance(value, str) and len(value) == ndim == len({*value} & {*"txyzc"})
    return tuple(value) if is_text else None  # type: ignore[arg-type] # a text


def in_axis_order(attributes: Mapping[str, JSON], axis_order: AxisOrder) -> dict[str, JSON]:
    """Convert xarray's names, in C order on disk, into the order that ``axis_order`` selects."""
    names = attributes.get(XARRAY_KEY)
    if axis_order == "C" or not isinstance(names, list | tuple):
        return dict(attributes)
    return {**attributes, XARRAY_KEY: list(to_n5(names))}


def with_names(
    attributes: Mapping[str, JSON], names: Sequence[str | None] | None
) -> dict[str, JSON]:
    """Add xarray's attribute to those of an array if all axes have names, in the same order."""
    shown: dict[str, JSON] = {XARRAY_KEY: list(names)} if names and all(names) else {}
    return {**shown, **attributes}


def check_distinct(option: str, names: Sequence[str | None]) -> None:
    """Raise for names that a user gives to two axes, whose positions could not be told apart.

    Raises
    ------
    N5UnrepresentableError
        A name occurs twice (``kind="option"``).
    """
    given = [name for name in names if name]
    if len(set(given)) < len(given):
        raise option_error(f"{option}: expected another name for each axis, got {list(names)}")


def distinct_names(names: Sequence[str | None]) -> tuple[str, ...]:
    """Replace names that are missing, repeated, or unusable in a path by ``dim_<number>``.

    Examples
    --------
    >>> distinct_names(["x", None, "x", "a/b"])
    ('x', 'dim_1', 'dim_2', 'dim_3')
    """
    distinct: list[str] = []
    for i, name in enumerate(names):
        is_usable = name is not None and name not in distinct and is_name(name)
        distinct.append(name if name is not None and is_usable else f"dim_{i}")
    return tuple(distinct)


def _axis_names(value: JSON, ndim: int) -> list[str]:
    """Parse one name per dimension; return an empty list if non-empty names repeat."""
    names = [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
    given = [name for name in names if name]
    fits = isinstance(value, list) and len(names) == len(value) == ndim
    return names if fits and given and len(set(given)) == len(given) else []
