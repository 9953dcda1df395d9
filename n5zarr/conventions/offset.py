"""Read ``offset`` in the unit of the axes, and units in the keys that have one for all axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.conventions.model import MisfitError, brief, numbers_at
from n5zarr.conventions.units import ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.lenient_json import JSON

__all__ = ["offset_at", "unit_in"]


def unit_in(attributes: Mapping[str, JSON]) -> str | None:
    """Read the unit that all axes of space share: ``unit``, or ``units`` or ``offset_unit``.

    ``units`` must be one of length: xarray writes the unit of the elements under this key.
    """
    units = attributes.get("units")
    is_length = isinstance(units, str) and ratio(units, "m") is not None
    found = (attributes.get("unit"), units if is_length else None, attributes.get("offset_unit"))
    return next((unit for unit in found if isinstance(unit, str) and unit), None)


def offset_at(
    attributes: Mapping[str, JSON], length: int, unit: str | None, within: str = ""
) -> tuple[float, ...] | None:
    """Read ``offset`` in the unit of the axes; ``offset_unit`` may be another one.

    Raises
    ------
    MisfitError
        The offset is no list of ``length`` numbers, or its unit cannot be converted.
    """
    offset, own = numbers_at(attributes, "offset", length, within), attributes.get("offset_unit")
    if offset is None or not isinstance(own, str) or unit is None:
        return offset
    factor = ratio(own, unit)
    if factor is None:
        message = f"{within}offset_unit: expected a unit that {unit} can express, got {brief(own)}"
        raise MisfitError(message)
    return tuple(value * factor for value in offset)
