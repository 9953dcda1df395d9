"""Define the model of all conventions: the axes of a dataset, with scale, translation and unit.

Coordinates are those of pixel centres: ``physical = scale * index + translation``, where index 0 is
the centre of the first element.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from n5zarr.conventions.axis_names import AXES_KEY, derived_names, letters_of
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple

LEVELS_KEYS = frozenset({"axes", "units", "resolution", "downsamplingFactors"})
"""The attributes that n5zarr writes to a group of levels for Neuroglancer."""

_LEVEL = re.compile(r"s([0-9]{1,3})")
_DEFAULT_NAMES = ("x", "y", "z", "c", "t")
_TYPES = {"x": "space", "y": "space", "z": "space", "c": "channel", "t": "time"}


class MisfitError(ValueError):
    """Invalid attributes of a convention; the message says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a dataset.

    Parameters
    ----------
    name : str
        ``""`` for an axis without name.
    scale, translation : float
        Distance between elements and position of the first one, in ``unit``.
    unit : str, optional
        The unit as written; None if there is none.
    type : str, optional
        ``"space"``, ``"time"``, ``"channel"`` or ``""``.
    labels : tuple of str, optional
        Names of the elements, for an axis that has names instead of positions.
    """

    name: str
    scale: float = 1.0
    translation: float = 0.0
    unit: str | None = None
    type: str = ""
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The axes of a dataset in N5 order, and the convention that describes them.

    Parameters
    ----------
    axes : tuple of Axis
        The axes, in N5 order.
    convention : str, optional
        Name of the convention; `find` adds it.
    rest : tuple of tuple of float, optional
        Rotation and shear, which positions along axes cannot express: the rows of the matrix that
        maps the positions, followed by 1, to the world. N5 order.
    names_only : bool, optional
        Whether there are names of axes, and no positions.
    node : Node, optional
        The dataset, if its attributes have been read.
    """

    axes: tuple[Axis, ...]
    convention: str = ""
    rest: tuple[tuple[float, ...], ...] = ()
    names_only: bool = False
    node: Node | None = field(default=None, compare=False, repr=False)

    @property
    def is_stated(self) -> bool:
        """Whether attributes give positions: neither names alone nor the shapes of levels do."""
        return not self.names_only and self.convention != "shapes"

    @property
    def is_placed(self) -> tuple[bool, ...]:
        """Whether an axis has positions, and not only a name; for each axis.

        If any axis has a unit, an axis without unit that starts at 0 in steps of 1 has no
        positions: it is a channel, most often.
        """
        if self.names_only:
            return (False,) * len(self.axes)
        if not any(axis.unit for axis in self.axes):
            return (True,) * len(self.axes)
        return tuple(
            bool(a.unit or a.labels) or (a.scale, a.translation) != (1, 0) for a in self.axes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupView:
    """A setup at a time point, as BigDataViewer's XML describes it.

    Parameters
    ----------
    voxel_size : tuple of float or None
        In the order x, y, z; the values are not checked.
    unit : str or None
        Unit of the voxel size and of world coordinates.
    registration : tuple of float or None
        The three rows of the matrix that maps elements of full resolution to the world; empty if
        the XML has one that cannot be parsed.
    """

    voxel_size: tuple[float, ...] | None
    unit: str | None
    registration: tuple[float, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The input of a convention: a dataset and the groups above it.

    Parameters
    ----------
    path : tuple of str
        Names from the root to the dataset.
    dimensions : tuple of int
        Extent in elements, N5 order.
    attributes : mapping
        Attributes of the dataset.
    ancestors : sequence of mapping, optional
        Attributes of the groups above, the nearest first.
    first_level : tuple of int, optional
        Dimensions of the finest level beside the dataset, or of the dataset, if there is one.
    first_attributes : mapping, optional
        Attributes of the finest level.
    first_name : str, optional
        Name of the finest level, if ``multiscales`` lists it and the dataset; else it is ``s0``.
    is_like_first : bool, optional
        Whether the finest level has the same data type.
    levels : mapping of int to tuple of int, optional
        Dimensions of the levels ``s0``, ``s1``, ... that are known, by number.
    view : SetupView, optional
        Setup and time point of the dataset in BigDataViewer's XML.
    given_names : tuple of str, optional
        Names of the dimensions, N5 order, if another source than the attributes has them.
    """

    path: tuple[str, ...]
    dimensions: N5Tuple
    attributes: Mapping[str, JSON]
    ancestors: Sequence[Mapping[str, JSON]] = ()
    first_level: N5Tuple | None = None
    first_attributes: Mapping[str, JSON] = field(default_factory=dict)
    first_name: str | None = None
    is_like_first: bool = True
    levels: Mapping[int, N5Tuple] = field(default_factory=dict)
    view: SetupView | None = None
    given_names: tuple[str, ...] | None = None

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.dimensions)

    @property
    def level(self) -> int | None:
        """The level in the pyramid, from the name ``s<level>``."""
        return level_of(self.path[-1]) if self.path else None

    @property
    def first(self) -> Node | None:
        """The finest level, if the dataset is another level of the same image."""
        name = self.first_name or ("s0" if self.level is not None else None)
        if name is None or self.first_level is None or self.path[-1] == name:
            return None
        path, dimensions = (*self.path[:-1], name), self.first_level
        return replace(
            self, path=path, dimensions=dimensions, attributes=self.first_attributes,
            given_names=None,
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the axes, in N5 order: those given, or those in the attributes."""
        if self.given_names is not None:
            return self.given_names
        names = derived_names(self.attributes, self.ndim)
        letters = letters_of(self.attributes.get(AXES_KEY), self.ndim)
        return letters if names is None else names[1]


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
        Attributes of the dataset with the same meaning, for readers without this convention: those
        of ``neuroglancer.write_absolute``.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Convention:
    """One way to write axes in attributes, defined in a module of its name.

    Parameters
    ----------
    name : str
        As users pass it.
    read : callable
        Read a node; None if its attributes follow other conventions. Raises :class:`MisfitError`
        if an attribute exists, but is wrong.
    write : callable, optional
        Describe a dataset: by its axes in N5 order, its path relative to its group, and the axes of
        ``s0`` beside it, if there are any. None if n5zarr only reads the convention.
    per_axis, lists, objects : collection of str, optional
        Attributes of a dataset that are about its axes, and are left out of those for users, who
        may slice it: lists with a value for each axis, other lists, and JSON objects. Other values
        under these names are users'. `zarr_order` converts lists that Zarr has in another order.
    own_keys : collection of str, optional
        Those left out whatever their values, if the dataset follows this convention.
    placing_keys : collection of str, optional
        Those that give a dataset its scale, whatever its group has.
    group_keys : collection of str, optional
        Attributes of a group that place its datasets.
    has_unit : bool, optional
        Whether ``unit`` of a dataset repeats that of the axes.
    is_by_factors : bool, optional
        Whether factors place a new level, as the group or an XML places ``s0``.
    problems : callable, optional
        Say what is wrong with a dataset that follows the convention, such as
        ``problems_of_factors`` of `levels`, if lists of factors may place its levels.
    """

    name: str
    read: Callable[[Node], Geometry | None]
    write: Callable[[Sequence[Axis], str, Sequence[Axis] | None], Written] | None = None
    per_axis: Collection[str] = ()
    lists: Collection[str] = ()
    objects: Collection[str] = ()
    own_keys: Collection[str] = ()
    placing_keys: Collection[str] = ()
    group_keys: Collection[str] = ()
    has_unit: bool = False
    is_by_factors: bool = False
    problems: Callable[[Node], Iterable[str]] = lambda _: ()


def level_of(name: str) -> int | None:
    """Parse the level of a dataset from its name; None for one that is no level.

    Examples
    --------
    >>> level_of("s2"), level_of("raw"), level_of("s20201105")
    (2, None, None)
    """
    match = _LEVEL.fullmatch(name)
    return match and int(match.group(1))


def numbers(value: JSON, length: int | None = None) -> tuple[float, ...] | None:
    """Read a list of numbers, of ``length`` if it is given; None for any other value."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        return None
    given = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool)]
    try:
        return tuple(map(float, given)) if len(given) == len(value) else None
    except OverflowError:  # an integer of hundreds of digits
        return None


def texts(value: JSON, length: int) -> tuple[str, ...] | None:
    """Read a list of strings of ``length``; None for any other value."""
    if not isinstance(value, list) or len(value) != length:
        return None
    given = [v for v in value if isinstance(v, str)]
    return tuple(given) if len(given) == length else None


def range_of(value: JSON) -> tuple[float, float] | None:
    """Read a list of two finite numbers, the first one smaller; None for any other value."""
    low, high = numbers(value, 2) or (0.0, 0.0)
    return (low, high) if -math.inf < low < high < math.inf else None


def brief(value: object) -> str:
    """Shorten a value of a document for a message."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."


def n_listed(attributes: Mapping[str, JSON], key: str, ndim: int) -> int:
    """Return how many axes a list of a dataset describes: the first ones in N5 order, or all.

    gunpowder and CNNectome write lists for the axes of space alone; names are those of all axes.
    """
    n = 0 if key == AXES_KEY else len(items_of(attributes.get(key)))
    return min(n or ndim, ndim)


def numbers_at(
    attributes: Mapping[str, JSON], key: str, length: int, within: str = ""
) -> tuple[float, ...] | None:
    """Read a list of numbers of a given length; None if the key is absent.

    Parameters
    ----------
    attributes : mapping
        The object that may have the key.
    key : str
        Name of the key.
    length : int
        Required number of numbers.
    within : str, optional
        Name of the object, for the message.

    Raises
    ------
    MisfitError
        The key has any other value.
    """
    return _given(
        attributes, key, numbers(attributes.get(key), length), f"{length} numbers", within
    )


def texts_at(
    attributes: Mapping[str, JSON], key: str, length: int, within: str = ""
) -> tuple[str, ...] | None:
    """Read a list of strings of a given length; see :func:`numbers_at`."""
    return _given(attributes, key, texts(attributes.get(key), length), f"{length} strings", within)


def _given[T](
    attributes: Mapping[str, JSON], key: str, read: T | None, expected: str, within: str
) -> T | None:
    """Return a parsed attribute; raise if the attribute is present but invalid."""
    if read is None and attributes.get(key) is not None:
        raise MisfitError(f"{within}{key}: expected {expected}, got {brief(attributes[key])}")
    return read


def mapping(value: JSON) -> Mapping[str, JSON]:
    """Return a JSON object unchanged, and an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def items_of(value: JSON) -> list[JSON]:
    """Return a JSON list unchanged, and an empty one for any other value."""
    return value if isinstance(value, list) else []


def first_of(value: JSON) -> Mapping[str, JSON]:
    """Return the first object of a JSON list, and an empty one for any other value."""
    return mapping(value[0]) if isinstance(value, list) and value else {}


def is_of_levels(group: Mapping[str, JSON]) -> bool:
    """Whether attributes of a group are about its levels only, which ``multiscales`` lists."""
    return isinstance(group.get("multiscales"), list) and group.keys() >= LEVELS_KEYS


def resolution_in(attributes: Mapping[str, JSON]) -> tuple[float, ...] | None:
    """Read ``pixelResolution``, an object or a bare list; None if it has no numbers."""
    value = attributes.get("pixelResolution")
    return numbers(value) or numbers(mapping(value).get("dimensions")) or None


def centre_shifts(scale: Sequence[float], by: Sequence[float]) -> tuple[float, ...]:
    """Return the centre of the first element of a level: half of (factor - 1) elements of ``s0``.

    Examples
    --------
    >>> centre_shifts((0.25, 1.5), (2, 1))
    (0.125, 0.0)
    """
    return tuple(s * (f - 1) / 2 for s, f in zip(scale, by, strict=True))


def axes_of(
    ndim: int,
    *,
    names: Sequence[str] | None = None,
    scale: Sequence[float] = (),
    translation: Sequence[float] = (),
    units: Sequence[str | None] | str | None = None,
) -> tuple[Axis, ...]:
    """Make axes from lists, with default names; shorter lists apply to the first axes.

    Examples
    --------
    >>> [axis.name for axis in axes_of(6)]
    ['x', 'y', 'z', 'c', 't', 'd5']
    """
    given = names or [*_DEFAULT_NAMES, *(f"d{i}" for i in range(5, ndim))][:ndim]
    n_scaled = len(scale) if scale else ndim
    of_each = [units] * ndim if isinstance(units, str | None) else [*units, *[None] * ndim]
    axes = []
    for i, name in enumerate(given):
        axes.append(
            Axis(
                name=name,
                type=_TYPES.get(name.lower(), ""),
                scale=scale[i] if i < len(scale) else 1.0,
                translation=translation[i] if i < len(translation) else 0.0,
                unit=of_each[i] or None if i < n_scaled else None,
            )
        )
    return tuple(axes)
