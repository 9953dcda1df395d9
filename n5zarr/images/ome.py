"""Make the attributes of OME-Zarr 0.5 from the axes of the levels of an image.

Source: https://ngff.openmicroscopy.org/0.5/, "multiscales", "labels" and "bioformats2raw.layout".
Documents only, all in OME-Zarr's C order; index 0 is the centre of the first element, in OME-Zarr
and in the conventions of N5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from posixpath import relpath
from typing import TYPE_CHECKING

from n5zarr.conventions.units import in_full, is_count, ratio
from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON

__all__ = [
    "OME_KEYS",
    "VERSION",
    "Multiscale",
    "image_attributes",
    "label_source",
    "labels_attributes",
    "make_multiscale",
    "series_attributes",
]

VERSION = "0.5"

OME_KEYS = frozenset({"ome", "multiscales", "omero", "image-label", "labels"})
"""Attributes of groups in OME-Zarr 0.4 and 0.5, which a new description replaces."""

_ORDER = {"time": 0, "space": 2}  # channel, or any other axis, between them


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiscale:
    """The levels of an image as OME-Zarr describes them.

    Parameters
    ----------
    names : tuple of str
        Names of the axes, which are ``dimension_names`` of the arrays, too.
    order : tuple of int
        Number of the source's axis, in C order, for each axis.
    types : tuple of str
        ``"time"``, ``"channel"``, ``"space"``, or ``""`` for each axis.
    document : dict
        The entry of ``multiscales``.
    """

    names: tuple[str, ...]
    order: tuple[int, ...]
    types: tuple[str, ...]
    document: dict[str, JSON]

    @property
    def is_reordered(self) -> bool:
        """Whether the axes of the source are in another order."""
        return self.order != tuple(range(len(self.order)))

    def channel_of(self, shape: Sequence[int]) -> int:
        """Return the number of channels of an array, from its shape in the order of the source."""
        sizes = [
            shape[i]
            for i, kind in zip(self.order, self.types, strict=True)
            if kind not in ("time", "space")
        ]
        return math.prod(sizes)


def make_multiscale(name: str, levels: Mapping[str, Sequence[Axis]]) -> Multiscale:
    """Describe the levels of an image.

    The axes are ordered as OME-Zarr wants them: time, channel, space; those of space stay in the
    order of the source. Units are in full. Counts of elements, such as ``"pixel"``, are no units.

    Parameters
    ----------
    name : str
        Name of the image.
    levels : mapping of str to sequence of Axis
        Axes by path relative to the group, C order, the finest level first.

    Raises
    ------
    N5UnrepresentableError
        OME-Zarr has no such images: fewer than two axes of space or more than three, more than one
        of time or of another type, or levels that differ in them (``kind="option"``).

    Examples
    --------
    >>> from n5zarr.conventions.model import Axis
    >>> y, x = Axis(name="y", type="space", unit="um"), Axis(name="x", type="space", scale=0.5)
    >>> found = make_multiscale("em", {"s0": [y, x]})
    >>> found.names, found.document["datasets"][0]["coordinateTransformations"]
    (('y', 'x'), [{'type': 'scale', 'scale': [1.0, 0.5]}])
    """
    given = [(path, tuple(axes)) for path, axes in levels.items()]
    first = given[0][1]
    kinds = [_type_of(axis) for axis in first]
    _check(first, kinds)
    order = tuple(sorted(range(len(first)), key=lambda i: _ORDER.get(kinds[i], 1)))
    axes: list[JSON] = []
    for i in order:
        axis: dict[str, JSON] = {"name": first[i].name}
        axis |= {"type": kinds[i]} if kinds[i] else {}
        unit = _unit_of(first[i])
        axes.append(axis | ({"unit": unit} if unit and kinds[i] != "channel" else {}))
    datasets: list[JSON] = []
    for path, each in given:
        placed = _in_units_of(path, each, first)
        datasets.append(
            {"path": path, "coordinateTransformations": _transforms([placed[i] for i in order])}
        )
    return Multiscale(
        names=tuple(first[i].name for i in order),
        order=order,
        types=tuple(kinds[i] for i in order),
        document={"name": name, "axes": axes, "datasets": datasets},
    )


def _type_of(axis: Axis) -> str:
    """Return the type of an axis: as given, or from its unit."""
    if axis.type in ("space", "time", "channel"):
        return axis.type
    if axis.labels is not None:
        return "channel"
    of_unit = {"m": "space", "s": "time"}
    return next((kind for base, kind in of_unit.items() if ratio(axis.unit, base)), "")


def _check(axes: Sequence[Axis], kinds: Sequence[str]) -> None:
    n_space, n_time = kinds.count("space"), kinds.count("time")
    names = [axis.name for axis in axes]
    n_others = len(kinds) - n_space - n_time
    if n_space in (2, 3) and max(n_time, n_others) <= 1 and len({*names}) == len(names):
        return
    each = [f"{n} ({kind or 'other'})" for n, kind in zip(names, kinds, strict=True)]
    message = (
        "OME-Zarr: expected two or three axes of space, at most one of time and one other, each "
        f"with a distinct name, got {', '.join(each) or 'none'}; n5zarr.set_geometry names axes"
    )
    raise N5UnrepresentableError(message, kind="option")


def _unit_of(axis: Axis) -> str | None:
    return None if not axis.unit or is_count(axis.unit) else in_full(axis.unit)


def _in_units_of(path: str, axes: Sequence[Axis], first: Sequence[Axis]) -> list[Axis]:
    """Return the axes of a level in the units of the finest level: OME-Zarr has one for all."""
    if [axis.name for axis in axes] != [axis.name for axis in first]:
        message = (
            f"{path}: expected the axes of the finest level, {[a.name for a in first]}, got "
            f"{[a.name for a in axes]}"
        )
        raise N5UnrepresentableError(message, kind="option")
    converted = []
    for axis, finest in zip(axes, first, strict=True):
        by = ratio(_unit_of(axis), _unit_of(finest))
        if by is None:
            message = (
                f"{path}: axis {axis.name!r}: expected the unit of the finest level, "
                f"{finest.unit!r}, got {axis.unit!r}; n5zarr.set_geometry writes both"
            )
            raise N5UnrepresentableError(message, kind="option")
        scaled = (axis.scale, axis.translation)
        scale, translation = scaled if by == 1 else (v * by for v in scaled)
        converted.append(replace(axis, scale=scale, translation=translation))
    return converted


def _transforms(axes: Sequence[Axis]) -> list[JSON]:
    steps: list[JSON] = [{"type": "scale", "scale": [float(axis.scale) for axis in axes]}]
    if any(axis.translation for axis in axes):
        to: JSON = [float(axis.translation) for axis in axes]
        steps.append({"type": "translation", "translation": to})
    return steps


def image_attributes(
    others: Mapping[str, JSON],
    multiscale: Multiscale,
    *,
    omero: Mapping[str, JSON] | None = None,
    label: Mapping[str, JSON] | None = None,
) -> dict[str, JSON]:
    """Make the attributes of the group of an image.

    Parameters
    ----------
    others : mapping
        All other attributes of the group; those of another version of OME-Zarr are left out.
    multiscale : Multiscale
        The levels.
    omero : mapping, optional
        The display settings of the channels.
    label : mapping, optional
        ``image-label``, if the elements are labels.
    """
    ome: dict[str, JSON] = {"version": VERSION, "multiscales": [multiscale.document]}
    ome |= {} if omero is None else {"omero": dict(omero)}
    ome |= {} if label is None else {"image-label": dict(label)}
    return {**_without_ome(others), "ome": ome}


def _without_ome(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in attributes.items() if key not in OME_KEYS}


def label_source(label: str, image: str | None) -> dict[str, JSON]:
    """Make ``image-label`` of a label image, which names the image of the labels.

    Examples
    --------
    >>> label_source("em/labels/nuclei", "em"), label_source("seg", None)
    ({'source': {'image': '../..'}}, {})
    """
    return {} if image is None else {"source": {"image": relpath(image or ".", label or ".")}}


def labels_attributes(others: Mapping[str, JSON], names: Iterable[str]) -> dict[str, JSON]:
    """Make the attributes of a group ``labels``: the paths of the label images in it."""
    listed: JSON = sorted(names)
    return {**_without_ome(others), "ome": {"version": VERSION, "labels": listed}}


def series_attributes(
    others: Mapping[str, JSON], images: Sequence[str]
) -> dict[str, dict[str, JSON]]:
    """Make the attributes of the root and of the group ``OME`` of a container of several images.

    Parameters
    ----------
    others : mapping
        All other attributes of the root.
    images : sequence of str
        Paths of the images, labels not among them.

    Returns
    -------
    dict
        Attributes by path of the group.
    """
    root: dict[str, JSON] = {"version": VERSION, "bioformats2raw.layout": 3}
    return {
        "": {**_without_ome(others), "ome": root},
        "OME": {"ome": {"version": VERSION, "series": [*images]}},
    }
