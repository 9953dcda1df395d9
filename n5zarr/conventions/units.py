"""Recognise and convert units of axes: those of OME-NGFF, from UDUNITS, and usual short forms.

Attributes that have one unit for all axes, and ``offset``, are read in the unit of the axes.
"""

from __future__ import annotations

from collections.abc import Mapping

from n5zarr.conventions.model import MisfitError, brief, numbers_at
from n5zarr.format.lenient_json import JSON

_PREFIXES = (
    ("yocto", "y", -24), ("zepto", "z", -21), ("atto", "a", -18), ("femto", "f", -15),
    ("pico", "p", -12), ("nano", "n", -9), ("micro", "u", -6), ("micro", "µ", -6),
    ("micro", "μ", -6), ("milli", "m", -3), ("centi", "c", -2), ("deci", "d", -1),
    ("", "", 0), ("deca", "da", 1), ("hecto", "h", 2), ("kilo", "k", 3), ("mega", "M", 6),
    ("giga", "G", 9), ("tera", "T", 12), ("peta", "P", 15), ("exa", "E", 18), ("zetta", "Z", 21),
    ("yotta", "Y", 24),
)  # fmt: skip
_BASES = (("meter", "m"), ("metre", "m"), ("second", "s"), ("hertz", "Hz"))
_SIZES = {  # base unit, and size in it
    **{
        unit: (symbol, float(f"1e{power}"))
        for long, short, power in _PREFIXES
        for base, symbol in _BASES
        for unit in (f"{long}{base}", f"{long}{base}s", f"{short}{symbol}")
    },
    **dict.fromkeys(("angstrom", "angstroms", "Å", "A"), ("m", 1e-10)),
    **dict.fromkeys(("micron", "microns"), ("m", 1e-6)),
    **dict.fromkeys(("inch", "inches", "in"), ("m", 0.0254)),
    **dict.fromkeys(("minute", "minutes", "min"), ("s", 60.0)),
    **dict.fromkeys(("hour", "hours", "h", "hr"), ("s", 3600.0)),
    **dict.fromkeys(("day", "days", "d"), ("s", 86400.0)),
    **{
        f"{short}sec": ("s", size)
        for short, size in zip(("", "m", "u"), (1.0, 1e-3, 1e-6), strict=True)
    },
}
_SYMBOLS = {  # of SI units, as Neuroglancer's si_units.ts has them, and in full, as NGFF has them
    unit: (
        f"{'u' if long == 'micro' else short}{symbol}",
        f"{long}{base.replace('metre', 'meter')}",
    )
    for long, short, _ in _PREFIXES
    for base, symbol in _BASES
    for unit in (f"{long}{base}", f"{long}{base}s", f"{short}{symbol}")
} | dict.fromkeys(("micron", "microns"), ("um", "micrometer"))
_FULL = {"sec": "second", "msec": "millisecond", "usec": "microsecond", "Å": "angstrom",
         "A": "angstrom", "in": "inch", "min": "minute", "h": "hour", "hr": "hour", "d": "day",
         "ft": "foot", "mi": "mile", "pc": "parsec", "yd": "yard", "angstroms": "angstrom",
         "inches": "inch", "minutes": "minute", "hours": "hour", "days": "day", "feet": "foot",
         "miles": "mile", "parsecs": "parsec", "yards": "yard"}  # fmt: skip
_LENGTHS = {
    "foot", "feet", "ft", "mile", "miles", "mi", "parsec", "parsecs", "pc", "yard", "yards", "yd",
}  # fmt: skip
_COUNTS = {
    "frame", "frames", "pixel", "pixels", "px", "voxel", "voxels", "vx", "pix", "slice", "slices",
}  # fmt: skip
_ANGLES = {"degree", "degrees", "deg", "rad", "radian", "radians"}
_OTHERS = _LENGTHS | _COUNTS | _ANGLES


def is_unit(text: str) -> bool:
    """Whether a text is a unit of space, time or frequency, or a count of elements.

    Examples
    --------
    >>> [is_unit(text) for text in ("nm", "micrometer", "Seconds", "pixel", "furlongs", "")]
    [True, True, True, True, False, False]
    """
    return any(name in _SIZES or name in _OTHERS for name in (text, text.lower()))


def is_count(text: str) -> bool:
    """Whether a text is a count of elements, which has no physical size.

    Examples
    --------
    >>> is_count("Pixel"), is_count("nm")
    (True, False)
    """
    return text.lower() in _COUNTS


def ratio(unit: str | None, other: str | None) -> float | None:
    """Compute the size of one ``unit`` in ``other`` units; None if it is unknown.

    Examples
    --------
    >>> ratio("um", "nanometer"), ratio("pixel", "pixel"), ratio("nm", "s")
    (1000.0, 1.0, None)
    """
    if unit == other:
        return 1.0
    sizes = [_SIZES.get(u or "") or _SIZES.get((u or "").lower()) for u in (unit, other)]
    if sizes[0] is None or sizes[1] is None or sizes[0][0] != sizes[1][0]:
        return None
    return float(f"{sizes[0][1] / sizes[1][1]:.12g}")


def in_full(unit: str) -> str:
    """Return the name of a unit in OME-NGFF's spelling; return an unknown unit unchanged.

    Examples
    --------
    >>> [in_full(unit) for unit in ("nm", "µm", "Micrometers", "min", "pixel")]
    ['nanometer', 'micrometer', 'micrometer', 'minute', 'pixel']
    """
    found = _SYMBOLS.get(unit) or _SYMBOLS.get(unit.lower())
    return found[1] if found else _FULL.get(unit, _FULL.get(unit.lower(), unit))


def symbol(unit: str | None) -> tuple[str, float]:
    """Return Neuroglancer's symbol of a unit, and the size of one ``unit`` in units of the symbol.

    Counts of elements, such as ``"pixel"``, give ``""``. An unknown unit is returned unchanged.

    Examples
    --------
    >>> [symbol(unit) for unit in ("nanometer", "angstrom", "pixel", None)]
    [('nm', 1.0), ('m', 1e-10), ('', 1.0), ('', 1.0)]
    """
    for name in (unit or "", (unit or "").lower()):
        if name in _SYMBOLS:
            return _SYMBOLS[name][0], 1.0
        if name in _SIZES:
            return _SIZES[name]
    return ("", 1.0) if not unit or unit.lower() in _OTHERS else (unit, 1.0)


def spelled(unit: str | None, *others: object) -> str | None:
    """Return a unit in the spelling of the first of ``others`` that is the same unit.

    Examples
    --------
    >>> spelled("nanometer", None, "um", "nm")
    'nm'
    """
    same = (text for text in others if isinstance(text, str) and text and ratio(unit, text) == 1.0)
    return next(same, unit) if unit else unit


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
        raise MisfitError(
            f"{within}offset_unit: expected a unit that {unit} can express, got {brief(own)}"
        )
    return tuple(value * factor for value in offset)
