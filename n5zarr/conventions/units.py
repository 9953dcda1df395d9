"""Recognise and convert units of axes: those of OME-NGFF, from UDUNITS, and usual short forms."""

from __future__ import annotations

__all__ = ["is_unit", "ratio"]

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
_OTHERS = {
    *(
        "foot",
        "feet",
        "ft",
        "mile",
        "miles",
        "mi",
        "parsec",
        "parsecs",
        "pc",
        "yard",
        "yards",
        "yd",
    ),
    *(
        "frame",
        "frames",
        "pixel",
        "pixels",
        "px",
        "voxel",
        "voxels",
        "vx",
        "pix",
        "slice",
        "slices",
    ),
    *("degree", "degrees", "deg", "rad", "radian", "radians"),
}


def is_unit(text: str) -> bool:
    """Whether a text is a unit of space, time or frequency, or a count of elements.

    Examples
    --------
    >>> [is_unit(text) for text in ("nm", "micrometer", "Seconds", "pixel", "furlongs", "")]
    [True, True, True, True, False, False]
    """
    return any(name in _SIZES or name in _OTHERS for name in (text, text.lower()))


def ratio(unit: str | None, other: str | None) -> float | None:
    """Compute how many ``other`` units one ``unit`` is; None if that is not known.

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
