"""Write and read the images of OME-Zarr 0.6: coordinate systems, and transforms between them.

Source: https://ngff.openmicroscopy.org/0.6/, "coordinateSystems", "coordinateTransformations" and
"multiscales". The levels of an image lead to one coordinate system, the intrinsic one, by a scale
or a scale and a translation. Further transforms lead from there to other systems: here the affine
of a view that BigStitcher has registered, to ``world``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import MisfitError, brief, items_of, mapping, numbers
from n5zarr.format.lenient_json import JSON

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
    """Return an image of 0.5 in the form of 0.6.

    Parameters
    ----------
    image : mapping
        With ``axes`` and ``datasets``, and perhaps ``registration``.

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
    rows = numbers(image.get(REGISTRATION))
    if rows is not None:
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
    """
    ends: dict[str, JSON] = {"input": {"path": path}, "output": {"name": system}}
    if len(steps) == 1:
        return [{**mapping(steps[0]), **ends}]
    return [{"type": "sequence", "transformations": [*steps], **ends}]


def intrinsic_of(image: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the coordinate system of the levels of an image.

    Raises
    ------
    MisfitError
        The levels name none, or several.
    """
    steps = (s for e in entries_in(image) for s in items_of(mapping(e).get(_TRANSFORMS)))
    outputs = [_name_at(step, "output") for step in steps]
    for system in map(mapping, items_of(image.get("coordinateSystems"))):
        if isinstance(system.get("name"), str) and {*map(str, outputs)} == {system["name"]}:
            return system
    raise MisfitError(
        f"multiscales: {_TRANSFORMS}: expected one of coordinateSystems as the output of all "
        f"levels, got {brief(outputs)}"
    )


def from_06(image: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return an image of 0.6 in the form of 0.5, with ``registration`` if it has one.

    Raises
    ------
    MisfitError
        The levels lead to no coordinate system, or to several.
    """
    left_out = {"coordinateSystems", _TRANSFORMS}  # those of the image lead to other systems
    found = {key: value for key, value in image.items() if key not in left_out}
    found["axes"] = intrinsic_of(image).get("axes")
    rows = _registration(image)
    return found if rows is None else {**found, REGISTRATION: [*rows]}


def other_systems(image: Mapping[str, JSON]) -> list[str]:
    """Return the coordinate systems to which N5 has no way: neither intrinsic nor registered."""
    if not is_06(image):
        return []
    name, rows = intrinsic_of(image).get("name"), _registration(image)
    steps = [
        step
        for step in map(mapping, items_of(image.get(_TRANSFORMS)))
        if step.get("type") != "identity" and not (rows and _rows_of(step, image) == rows)
    ]
    ends = [(_name_at(step, "output"), _name_at(step, "input")) for step in steps]
    return [str(start if end == name else end) for end, start in ends]  # the other is intrinsic


def _name_at(step: JSON, end: str) -> JSON:
    """Return the name of the coordinate system at an end of a transform."""
    system = mapping(step).get(end)
    return system if isinstance(system, str) else mapping(system).get("name")  # text in drafts


def _registration(image: Mapping[str, JSON]) -> tuple[float, ...] | None:
    """Return the rows of the affine to ``world``; None if there is none."""
    steps = items_of(image.get(_TRANSFORMS))
    to_world = (_rows_of(step, image) for step in steps if _name_at(step, "output") == _WORLD)
    return next(filter(None, to_world), None)


def _rows_of(step: JSON, image: Mapping[str, JSON]) -> tuple[float, ...] | None:
    """Return the rows for x, y and z of an affine that moves no other axis; else None."""
    axes = items_of(intrinsic_of(image).get("axes"))
    names = [str(mapping(axis).get("name")) for axis in axes]
    rows = [numbers(row, len(names) + 1) or () for row in items_of(mapping(step).get("affine"))]
    if len(rows) != len(names) or not all(rows) or not set(_SPACE) <= set(names):
        return None
    chosen = [names.index(axis) for axis in _SPACE]
    found = tuple(rows[i][j] for i in chosen for j in [*chosen, len(names)])
    return found if _matrix(found, names) == [[*row] for row in rows] else None


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
