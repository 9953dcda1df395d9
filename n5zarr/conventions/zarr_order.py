"""Convert lists of positions in attributes between N5's order of axes and Zarr's, C order.

The same programs write ``resolution``, ``offset``, ``axes`` and ``units`` as x, y, z in N5, and as
z, y, x in Zarr: gunpowder's ``N5Write`` reverses them, its ``ZarrWrite`` does not. Others have one
order in both: Funlib's ``voxel_size``, or ``resolution`` beside ``types``, with all beside it (C
order), COSEM's ``transform``, and what Java writes: ``pixelResolution``, ``scales`` and
``downsamplingFactors`` beside it, and all of n5-zarr 2, which calls the dimensions of Zarr
``dim_2``, ``dim_1``, ``dim_0``; x first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from n5zarr.conventions.axis_names import AXES_KEY, letters_of
from n5zarr.conventions.funlib import is_of_funlib
from n5zarr.conventions.model import numbers, texts
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c, transposition

_FACTORS = "downsamplingFactors"


def in_order_of_zarr(
    attributes: Mapping[str, JSON], ndim: int, names: Sequence[str | None] | None = None
) -> dict[str, JSON]:
    """Convert the attributes of a node of N5 for Zarr.

    Parameters
    ----------
    attributes : mapping
        Of a dataset, or of a group.
    ndim : int
        Number of dimensions of the dataset, or of those in the group.
    names : sequence of str or None, optional
        The names of these dimensions, C order. Lists stay beside those that Java's n5-zarr writes,
        as it writes attributes as in N5.

    Examples
    --------
    >>> in_order_of_zarr({"resolution": [4, 4, 40], "offset": [8, 0, 100], "of": "x"}, 3)
    {'resolution': [40, 4, 4], 'offset': [100, 0, 8], 'of': 'x'}
    """
    if ndim > 1 and list(names or ()) == [f"dim_{n}" for n in transposition(ndim)]:
        return dict(attributes)  # n5-zarr at b1fb6dd: `ZarrV3DatasetAttributes`
    return {key: _converted(key, value, attributes, ndim) for key, value in attributes.items()}


def in_order_of_n5(
    attributes: Mapping[str, JSON], ndim: int, names: Sequence[str | None] | None = None
) -> dict[str, JSON]:
    """Convert the attributes of a node of Zarr for N5; the inverse of :func:`in_order_of_zarr`.

    Lists beside ``axes`` in N5's order stay: a program has copied them from N5 as they are.

    Parameters
    ----------
    attributes, ndim, names
        As for :func:`in_order_of_zarr`.

    Examples
    --------
    >>> in_order_of_n5({"axes": ["z", "y", "x"], "resolution": [40, 4, 4]}, 3)
    {'axes': ['x', 'y', 'z'], 'resolution': [4, 4, 40]}
    >>> in_order_of_n5({"axes": ["x", "y", "z"], "resolution": [4, 4, 40]}, 3)
    {'axes': ['x', 'y', 'z'], 'resolution': [4, 4, 40]}
    """
    axes = texts(attributes.get(AXES_KEY), ndim)
    if axes is not None and axes != to_c(axes):
        known = tuple(name or "" for name in names or ())
        is_of_n5 = known == to_c(axes) if known in (axes, to_c(axes)) else axes[0] == "x"
        if is_of_n5:
            return dict(attributes)
    return in_order_of_zarr(attributes, ndim, names)


def _converted(key: str, value: JSON, beside: Mapping[str, JSON], ndim: int) -> JSON:
    """Reverse a value if it is a list with a member for each axis, or ilastik's text of axes."""
    if key == AXES_KEY and letters_of(value, ndim):
        return str(value)[::-1]
    if not isinstance(value, list) or is_of_funlib(beside, ndim):
        return value
    fits = {
        "resolution": _has_numbers(value, ndim),
        "offset": _has_numbers(value, ndim),
        AXES_KEY: texts(value, ndim) is not None,
        "units": len(value) <= ndim and texts(value, len(value)) is not None,
        _FACTORS: numbers(beside.get("resolution")) and "pixelResolution" not in beside,
    }
    if not fits.get(key):
        return value
    if key == _FACTORS and not _has_numbers(value, ndim):  # of each level
        return [[*to_c(b)] if isinstance(b, list) and _has_numbers(b, ndim) else b for b in value]
    return [*to_c(value)]


def _has_numbers(value: JSON, ndim: int) -> bool:
    """Whether a value is a list of numbers for all axes, or those of space."""
    found = numbers(value)
    return found is not None and len(found) <= ndim
