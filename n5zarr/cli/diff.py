"""The command ``diff``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import n5zarr
from n5zarr.cli.command import Result
from n5zarr.cli.options import options_of

if TYPE_CHECKING:
    from n5zarr.tools.diff.arrays import ArrayDifference
    from n5zarr.tools.diff.model import Comparison, Difference

_LONGEST = 60  # characters of a value in a line


@options_of(n5zarr.compare, first={"metavar": "A"}, second={"metavar": "B"}, tolerance={"min": 0})
def diff(**given: Any) -> Result:
    """Compare two arrays, groups or containers, of N5 or Zarr, or two projects by their XML.

    Print the differences: nodes, shapes, data types, axes, attributes, values. Ignore how they are
    stored. A missing block equals the fill value, and NaN equals NaN.

    N5 with OME-Zarr, and projects with anything else, are compared image by image and level by
    level: axes, units, positions and values, whatever the names of levels and the attributes.

    The exit status is 0 if they are equal, 1 if they differ, and 2 if a node cannot be read.
    """
    found = n5zarr.compare(**given)
    return Result(
        value={**asdict(found), "is_equal": found.is_equal},
        text=_lines(found),
        problems=found.problems,
        status=0 if found.is_equal else 1,
    )


def _lines(found: Comparison) -> Iterator[str]:
    for difference in found.differences:
        yield from _described(difference)
    yield str(found)


def _described(difference: Difference) -> Iterator[str]:
    """Yield the line of a difference, and one for each of the first elements that differ."""
    place = f"/{difference.path}"
    if difference.values is not None:
        yield f"{place}: {_values(difference.values)}"
        for element in difference.values.elements:
            where = ", ".join(map(str, element.position))
            yield f"  [{where}]: {element.first!r}, then {element.second!r}"
    elif difference.what == "missing":
        side = "B" if difference.first is None else "A"
        yield f"{place}: only in {side}: {difference.first or difference.second}"
    else:
        what = f"{difference.what.replace('-', ' ')} {difference.key}".rstrip()
        yield f"{place}: {what}: {_short(difference.first)}, then {_short(difference.second)}"


def _values(values: ArrayDifference) -> str:
    share = values.n_differing / values.n_elements
    most = "" if values.largest is None else f", by at most {values.largest:g}"
    return f"values: {values.n_differing} of {values.n_elements} differ ({share:.2g}){most}"


def _short(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
