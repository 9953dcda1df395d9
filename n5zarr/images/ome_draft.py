"""Write and read the draft 0.6rc0 of OME-Zarr: coordinate systems, and transforms between them.

Source: ome/ngff-spec, 0.6rc0 (277f209d), "coordinateSystems", "coordinateTransformations" and
"multiscales". The levels of an image lead to one coordinate system, the intrinsic one, by a scale
or a scale and a translation. Further transforms lead from there to other systems: here the affine
of a view that BigStitcher has registered, to ``world``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import MisfitError, brief, first_of, items_of, mapping, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "DRAFT",
    "REGISTRATION",
    "as_06",
    "from_06",
    "intrinsic_of",
    "is_06",
    "is_registration",
    "level_transforms",
    "other_systems",
]

DRAFT = "0.6rc0"
REGISTRATION = "registration"
"""Member of an image, as an attribute of its group in N5 and older versions: three rows of four
numbers, which map positions ``[x, y, z, 1]`` to world coordinates."""

_INTRINSIC = "intrinsic"
_WORLD = "world"
_TRANSFORMS = "coordinateTransformations"
_SPACE = ("x", "y", "z")  # the axes of a registration
_N_ROW = 4  # numbers in a row of it


def is_06(image: Mapping[str, JSON]) -> bool:
    """Whether an image of ``multiscales`` has coordinate systems, as since 0.6."""
    return isinstance(image.get("coordinateSystems"), list)


def as_06(image: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return an image of 0.5 in the form of the draft.

    Parameters
    ----------
    image : mapping
        With ``axes`` and ``datasets``, and perhaps ``registration``.

    Raises
    ------
    MisfitError
        A scale is not above 0.

    Examples
    --------
    >>> axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    >>> steps = [{"type": "scale", "scale": [2.0, 1.0]}]
    >>> level = {"path": "s0", "coordinateTransformations": steps}
    >>> found = as_06({"name": "em", "axes": axes, "datasets": [level]})
    >>> [system["name"] for system in found["coordinateSystems"]]
    ['intrinsic']
    >>> found["datasets"][0]["coordinateTransformations"]  # doctest: +NORMALIZE_WHITESPACE
    [{'type': 'scale', 'scale': [2.0, 1.0],
      'input': {'path': 's0'}, 'output': {'name': 'intrinsic'}}]
    """
    axes = image.get("axes")
    left_out = {"axes", "datasets", "version", REGISTRATION}
    others = {key: value for key, value in image.items() if key not in left_out}
    systems: list[JSON] = [{"name": _INTRINSIC, "axes": axes}]
    datasets: list[JSON] = [
        {
            **mapping(entry),
            _TRANSFORMS: level_transforms(
                path_of(entry) or "", items_of(mapping(entry).get(_TRANSFORMS)), _INTRINSIC
            ),
        }
        for entry in entries_in(image)
    ]
    found: dict[str, JSON] = {**others, "coordinateSystems": systems, "datasets": datasets}
    names = [str(mapping(axis).get("name")) for axis in items_of(axes)]
    rows = numbers(image.get(REGISTRATION)) or ()
    if is_registration(image.get(REGISTRATION), names):
        systems.append({"name": _WORLD, "axes": axes})
        ends: dict[str, JSON] = {"input": {"name": _INTRINSIC}, "output": {"name": _WORLD}}
        affine = _matrix(rows, names)
        found[_TRANSFORMS] = [{"type": "affine", "affine": affine, **ends}]
    return found


def is_registration(value: JSON, names: Sequence[str]) -> bool:
    """Whether a value is a registration, of an image whose axes have these names."""
    rows = numbers(value, len(_SPACE) * _N_ROW)
    return rows is not None and all(map(math.isfinite, rows)) and set(_SPACE) <= set(names)


def level_transforms(path: str, steps: Sequence[JSON], system: str) -> list[JSON]:
    """Return the transform of a level from scales and translations, as a list of one.

    Parameters
    ----------
    path : str
        Path of the level below the group of the image.
    steps : sequence of JSON
        A scale, and perhaps a translation.
    system : str
        The coordinate system to which they lead.

    Raises
    ------
    MisfitError
        A scale is not above 0.
    """
    for step in steps:
        scale = numbers(mapping(step).get("scale")) or ()
        if not all(n > 0 for n in scale):
            raise MisfitError(f"{path}: scale: expected numbers above 0, got {brief([*scale])}")
    ends: dict[str, JSON] = {"input": {"path": path}, "output": {"name": system}}
    if len(steps) == 1:
        return [{**mapping(steps[0]), **ends}]
    return [{"type": "sequence", "transformations": [*steps], **ends}]


def intrinsic_of(image: Mapping[str, JSON]) -> str:
    """Return the name of the coordinate system of the levels of an image.

    Raises
    ------
    MisfitError
        The levels name none, or several.
    """
    names: list[str] = []
    for entry in entries_in(image):
        for step in items_of(mapping(entry).get(_TRANSFORMS)):
            output = mapping(step).get("output")  # text in earlier drafts
            name = output if isinstance(output, str) else mapping(output).get("name")
            names += [name] if isinstance(name, str) else []
    systems = [mapping(system).get("name") for system in items_of(image.get("coordinateSystems"))]
    known = list(dict.fromkeys(names)) or [str(name) for name in systems[:1]]
    if len(known) != 1 or known[0] not in systems:
        raise MisfitError(
            f"multiscales: {_TRANSFORMS}: expected one of coordinateSystems as the output of all "
            f"levels, got {brief([*known])}"
        )
    return known[0]


def from_06(image: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return an image of the draft in the form of 0.5, with ``registration`` if it has one.

    Raises
    ------
    MisfitError
        The levels lead to no coordinate system, or to several.
    """
    name = intrinsic_of(image)
    systems = items_of(image.get("coordinateSystems"))
    system = first_of([each for each in systems if mapping(each).get("name") == name])
    left_out = {"coordinateSystems", _TRANSFORMS}  # those of the image lead to other systems
    found = {key: value for key, value in image.items() if key not in left_out}
    found["axes"] = system.get("axes")
    rows = _registration(image, name)
    return found if rows is None else {**found, REGISTRATION: [*rows]}


def other_systems(image: Mapping[str, JSON]) -> list[str]:
    """Return the coordinate systems to which N5 has no way: neither intrinsic nor registered."""
    if not is_06(image):
        return []
    name = intrinsic_of(image)
    rows = _registration(image, name)
    found: list[str] = []
    for step in map(mapping, items_of(image.get(_TRANSFORMS))):
        if rows is None or _rows_of(step, image, name) != rows:
            ends = [mapping(step.get(end)) for end in ("output", "input")]  # one is intrinsic
            others = [e for e in ends if e and (e.get("name"), e.get("path") or "") != (name, "")]
            found += [str(other.get("name")) for other in others[:1]]
    return found


def _registration(image: Mapping[str, JSON], name: str) -> tuple[float, ...] | None:
    """Return the rows of the affine to ``world``; None if there is none."""
    for step in items_of(image.get(_TRANSFORMS)):
        output = mapping(mapping(step).get("output")).get("name")
        rows = _rows_of(step, image, name) if output == _WORLD else None
        if rows is not None:
            return rows
    return None


def _rows_of(step: JSON, image: Mapping[str, JSON], name: str) -> tuple[float, ...] | None:
    """Return the rows for x, y and z of an affine that moves no other axis; else None."""
    systems = items_of(image.get("coordinateSystems"))
    system = first_of([each for each in systems if mapping(each).get("name") == name])
    names = [str(mapping(axis).get("name")) for axis in items_of(system.get("axes"))]
    rows = [numbers(row) for row in items_of(mapping(step).get("affine"))]
    if len(rows) != len(names) or not set(_SPACE) <= set(names):
        return None
    if any(row is None or len(row) != len(names) + 1 for row in rows):
        return None
    chosen = [names.index(axis) for axis in _SPACE]
    found = tuple((rows[i] or ())[j] for i in chosen for j in [*chosen, len(names)])
    return found if _matrix(found, names) == [[*(row or ())] for row in rows] else None


def _matrix(rows: Sequence[float], names: Sequence[str]) -> JSON:
    """Return the affine for all axes of an image, in their order, from the rows for x, y and z."""
    columns = [*_SPACE, ""]
    return [
        [
            rows[_N_ROW * _SPACE.index(to) + columns.index(by)]
            if to in _SPACE and by in columns
            else float(to == by)
            for by in [*names, ""]
        ]
        for to in names
    ]
