"""Plans of conversions, as values: the source of each array, and the attributes of each group.

:mod:`~n5zarr.images.in_n5`, :mod:`~n5zarr.images.in_bdv` and
:mod:`~n5zarr.images.from_ome` make a :class:`Plan` from the attributes of a source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.lenient_json import JSON

__all__ = ["ArrayPlan", "Plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPlan:
    """An array to write, and the sources of its elements.

    Parameters
    ----------
    destination : str
        Path of the array, relative to the destination.
    sources : tuple of str or None
        Paths of the arrays to read, relative to the source: one; or, if ``is_stacked``, one for
        each index of the first axis of the destination, or None if there is nothing to read.
    is_stacked : bool, optional
        Whether the destination has an axis before those of the sources.
    order : tuple of int, optional
        Number of the source's axis for each axis of the destination; by default the same order.
    dimension_names : tuple of str or None
        Names of the dimensions of the destination.
    attributes : mapping
        Its attributes.
    """

    destination: str
    sources: tuple[str | None, ...]
    is_stacked: bool = False
    order: tuple[int, ...] | None = None
    dimension_names: tuple[str | None, ...] | None
    attributes: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The nodes to write.

    Parameters
    ----------
    arrays : tuple of ArrayPlan
        All arrays, also those that are no images.
    groups : mapping
        Attributes of all groups by path, relative to the destination; ``""`` is the topmost.
    notes : tuple of str, optional
        Messages for the user, one per line.
    """

    arrays: tuple[ArrayPlan, ...]
    groups: Mapping[str, Mapping[str, JSON]]
    notes: tuple[str, ...] = ()
