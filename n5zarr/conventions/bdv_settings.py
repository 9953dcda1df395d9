"""Read BigDataViewer's display settings of setups: limits and colours in ``NAME.settings.xml``.

bigdataviewer-core ``SetupAssignments.toXml``: an element ``ConverterSetup`` for each setup, with
``id``, ``min``, ``max`` and ``color``, the number of an ``ARGBType``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.conventions.xml_text import parsed_xml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree import ElementTree

__all__ = ["SetupSettings", "parse_settings"]


class SetupSettings(NamedTuple):
    """The display settings of a setup.

    Parameters
    ----------
    limits : tuple of float
        Values of the darkest and the brightest shade.
    color : str
        Six hexadecimal digits, red first.
    """

    limits: tuple[float, float]
    color: str


def parse_settings(xml: bytes) -> Mapping[int, SetupSettings]:
    """Parse the settings of BigDataViewer; skip invalid entries.

    Examples
    --------
    >>> parse_settings(b'''<Settings><SetupAssignments><ConverterSetups><ConverterSetup>
    ... <id>3</id><min>90.0</min><max>1200.0</max><color>-65281</color>
    ... </ConverterSetup></ConverterSetups></SetupAssignments></Settings>''')
    {3: SetupSettings(limits=(90.0, 1200.0), color='FF00FF')}
    """
    root = parsed_xml(xml)
    if isinstance(root, str):
        return {}
    found = {}
    for element in root.iterfind(".//ConverterSetups/ConverterSetup"):
        entry = _parse(element)
        if entry is not None:
            found[entry[0]] = entry[1]
    return found


def _parse(element: ElementTree.Element) -> tuple[int, SetupSettings] | None:
    texts = [element.findtext(tag) or "" for tag in ("id", "min", "max", "color")]
    try:
        number, low, high, color = int(texts[0]), float(texts[1]), float(texts[2]), int(texts[3])
    except ValueError:
        return None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return None
    return number, SetupSettings((low, high), f"{color & 0xFFFFFF:06X}")
