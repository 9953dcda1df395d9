"""The units that axes have: those of OME-NGFF, which are UDUNITS', and how people shorten them."""

from __future__ import annotations

__all__ = ["is_unit"]

_PREFIXES = (
    ("yocto", "y"), ("zepto", "z"), ("atto", "a"), ("femto", "f"), ("pico", "p"), ("nano", "n"),
    ("micro", "u"), ("micro", "µ"), ("micro", "μ"), ("milli", "m"), ("centi", "c"),
    ("deci", "d"), ("", ""), ("deca", "da"), ("hecto", "h"), ("kilo", "k"), ("mega", "M"),
    ("giga", "G"), ("tera", "T"), ("peta", "P"), ("exa", "E"), ("zetta", "Z"), ("yotta", "Y"),
)  # fmt: skip
_BASES = (("meter", "m"), ("metre", "m"), ("second", "s"), ("hertz", "Hz"))
_OTHERS = (
    *("angstrom", "Å", "A", "foot", "ft", "inch", "in", "mile", "mi", "parsec", "pc", "yard", "yd"),
    *("micron", "minute", "min", "hour", "h", "hr", "day", "d", "sec", "msec", "usec", "nsec"),
    *("frame", "pixel", "px", "voxel", "vx", "pix", "slice", "degree", "deg", "rad", "radian"),
)
_UNITS = frozenset(
    unit
    for long, short in _PREFIXES
    for base, symbol in _BASES
    for unit in (f"{long}{base}".lower(), f"{long}{base}s".lower(), f"{short}{symbol}")
) | frozenset(unit for other in _OTHERS for unit in (other, f"{other}s"))


def is_unit(text: str) -> bool:
    """Whether a text is a unit of space, time or frequency, or a count of elements.

    Examples
    --------
    >>> [is_unit(text) for text in ("nm", "micrometer", "Seconds", "pixel", "furlongs", "")]
    [True, True, True, True, False, False]
    """
    return text in _UNITS or text.lower() in _UNITS
