"""Describe axes in attributes: those of one convention, and additional ones for other readers.

n5-universe (Fiji, n5-viewer, Paintera) reads attributes of each level; Neuroglancer opens a pyramid
by attributes of its group; BigDataViewer by those of the setup. Each convention is written so that
all of them find the same scale, translation and unit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.conventions import bdv, cosem, n5viewer, neuroglancer, ngff
from n5zarr.conventions.levels import factors_in_json
from n5zarr.conventions.model import LEVELS_KEYS, Axis
from n5zarr.errors import option_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "WRITTEN",
    "Written",
    "choose_convention",
    "describe_axes",
    "describe_levels",
    "describe_setup",
    "without_levels",
]

WRITTEN = ("cosem", "n5viewer", "neuroglancer", "ngff")
"""The conventions that n5zarr writes."""


class Written(NamedTuple):
    """Attributes that describe the axes of a dataset in one convention.

    Parameters
    ----------
    attributes : dict
        Attributes of the dataset.
    image, level : dict or None
        Attributes of the group above: an image of ``multiscales``, and the dataset's entry in
        ``datasets``.
    beside : dict, optional
        Attributes of the dataset with the same meaning, for readers without this convention.
    """

    attributes: dict[str, JSON]
    image: dict[str, JSON] | None = None
    level: dict[str, JSON] | None = None
    beside: Mapping[str, JSON] = {}

    def on_dataset(self, others: Iterable[str]) -> dict[str, JSON]:
        """Return the attributes for a dataset that already has attributes of these names.

        ``beside`` is left out if one of its names is taken.
        """
        is_free = not {*others} & {*self.beside}
        return {**self.attributes, **(self.beside if is_free else {})}


def choose_convention(given: str, beside: Iterable[str | None]) -> str:
    """Choose the convention of a dataset: the given one; for ``"auto"`` that of the other levels.

    All levels of a pyramid need one convention, as n5-universe groups levels of the same class.

    Examples
    --------
    >>> choose_convention("auto", []), choose_convention("auto", ["names", "n5viewer"])
    ('cosem', 'n5viewer')
    """
    if given != "auto":
        return given
    return next((name for name in beside if name in WRITTEN), None) or "cosem"


def describe_axes(
    convention: str, axes: Sequence[Axis], path: str, first: Sequence[Axis] | None = None
) -> Written:
    """Make the attributes that describe axes in one convention.

    Parameters
    ----------
    convention : {"cosem", "n5viewer", "neuroglancer", "ngff"}
        One of :data:`WRITTEN`.
    axes : sequence of Axis
        The axes, in N5 order.
    path : str
        Path of the dataset, relative to its group.
    first : sequence of Axis, optional
        The axes of level ``s0`` beside the dataset, in N5 order.

    Raises
    ------
    N5UnrepresentableError
        The convention is unknown or read-only (``kind="option"``).
    """
    match convention:
        case "cosem":
            attributes = cosem.write(axes)
            level: dict[str, JSON] = {"path": path, **attributes}
            return Written(attributes, {}, level, neuroglancer.write_absolute(axes))
        case "n5viewer":
            return Written(n5viewer.write(axes, first))
        case "neuroglancer":
            return Written(neuroglancer.write(axes, first))
        case "ngff":
            # n5-universe's generic parser reads the unit, and n5zarr its spelling
            beside = neuroglancer.write_absolute(axes)
            beside |= neuroglancer.one_unit(axes) if beside else {}
            return Written({}, *ngff.write(axes, path), beside)
        case _:
            raise option_error(
                f"convention: expected one of {', '.join(WRITTEN)}, got {convention!r}"
            )


def describe_levels(
    group: Mapping[str, JSON], levels: Mapping[int, Sequence[Axis]]
) -> dict[str, JSON]:
    """Add the attributes with which Neuroglancer opens the levels of a group as a pyramid.

    Removes earlier ones if the levels are not multiples of ``s0``. If the group describes its
    levels with other attributes, only extends its list of factors.

    Parameters
    ----------
    group : mapping
        Attributes of the group.
    levels : mapping of int to sequence of Axis
        The axes of each level, N5 order; empty for levels without a valid description.
    """
    factors = _factors(levels)
    others = without_levels(group)
    if neuroglancer.KEYS & others.keys():
        return {**group, **_continued(group, factors or [])}
    written = neuroglancer.write_group(levels[0], factors) if factors else {}
    return {**group, **written} if written else others


def _continued(group: Mapping[str, JSON], factors: Sequence[Sequence[float]]) -> dict[str, JSON]:
    """Add the factors of new levels to the lists of a group that begin with those of the others."""
    wanted: list[JSON] = [factors_in_json(by) for by in factors]
    lists = {key: group.get(key) for key in ("downsamplingFactors", "scales")}
    return {
        key: wanted
        for key, value in lists.items()
        if isinstance(value, list) and value and value == wanted[: len(value)] != wanted
    }


def without_levels(group: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the attributes of a group without those that :func:`describe_levels` adds."""
    is_described = neuroglancer.KEYS & group.keys() == LEVELS_KEYS
    left_out = LEVELS_KEYS if is_described else ()
    return {key: value for key, value in group.items() if key not in left_out}


def describe_setup(
    group: Mapping[str, JSON], levels: Mapping[int, Sequence[Axis]], data_type: str
) -> dict[str, JSON]:
    """Add the factors and the type of the levels to the attributes of BigDataViewer's ``setupN``.

    Time points share the list of factors: an existing list is only extended.
    """
    factors = _factors(levels)
    if factors is None or len(factors[0]) != 3:
        return dict(group)
    described = {**bdv.write_setup(factors, data_type), **group}
    return {**described, **_continued(group, factors)}


def _factors(levels: Mapping[int, Sequence[Axis]]) -> list[tuple[float, ...]] | None:
    """Compute the factors of each level relative to ``s0``; None if they form no pyramid."""
    if not levels or [*sorted(levels)] != [*range(len(levels))]:
        return None
    first = levels[0]
    factors = []
    for _, axes in sorted(levels.items()):
        if [(a.name, a.unit) for a in axes] != [(a.name, a.unit) for a in first]:
            return None
        ratios = [a.scale / f.scale if f.scale else 0.0 for a, f in zip(axes, first, strict=True)]
        if not all(ratio > 0 and math.isfinite(ratio) for ratio in ratios):
            return None
        factors.append(tuple(float(f"{ratio:.12g}") for ratio in ratios))
    return factors
