"""``n5zarr.set_geometry``: write names, units, scale and translation of the axes of datasets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import zarr
from zarr.buffer import cpu
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.container.axes import Placed
from n5zarr.container.options import require
from n5zarr.conventions.axis_names import AXES_KEY, check_distinct
from n5zarr.conventions.describe import (
    choose_convention,
    describe_axes,
    describe_levels,
    set_level,
    shares_transforms,
)
from n5zarr.conventions.find import find_geometry, other_attributes
from n5zarr.conventions.model import LEVELS_KEYS, Axis, Node, axes_of
from n5zarr.errors import (
    ErrorsAt,
    N5Error,
    option_error,
)
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, from_presented
from n5zarr.format.path import join
from n5zarr.metadata.geometry import (
    ArrayGeometry,
    described,
    geometry,
    placed_datasets,
    store_and_path,
)
from n5zarr.metadata.levels import (
    axes_of_levels,
    describe_group,
    has_own,
    is_level,
    levels_in,
    warn_of_misread,
)
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location
from n5zarr.store.location import check_writable_store
from n5zarr.store.n5_store import N5Store


def set_geometry(  # noqa: PLR0913 - one keyword for each property
    location: Location | AnyArray | zarr.Group,
    path: str = "",
    *,
    names: Sequence[str] | None = None,
    units: Sequence[str | None] | None = None,
    scale: Sequence[float] | None = None,
    translation: Sequence[float] | None = None,
    convention: str = "auto",
    axis_order: AxisOrder = "C",
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> ArrayGeometry:
    """Write names, units, scale and translation of the axes of a dataset, or of a pyramid.

    Values that you do not pass stay. Attributes of other conventions, which would contradict, are
    removed from the datasets and from ``multiscales`` of the group; all other attributes stay.

    Parameters
    ----------
    location, path, axis_order, storage_options, backend : optional
        As for :func:`n5zarr.geometry`. For a group, all levels are written.
    names : sequence of str, optional
        Names of the axes, in the order of the array.
    units : sequence of str or None, optional
        One for each axis.
    scale, translation : sequence of float, optional
        Distance between elements and position of the first one, in ``units``; for a group, of the
        finest level. Those of the other levels follow: in their present ratio if all have
        positions, otherwise in the ratio of the shapes, with each element at the centre of the
        elements that it combines.
    convention : ConventionName, optional
        Convention of the attributes; ``"auto"``: the present one, or ``"cosem"``.

    Returns
    -------
    ArrayGeometry
        The new geometry, as :func:`n5zarr.geometry` reads it.

    Raises
    ------
    FileNotFoundError
        No node exists at this path.
    N5UnrepresentableError
        The convention cannot express the values, or attributes of a group above contradict them
        (``kind="option"``); nothing is written.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5", "em")
    >>> array = n5zarr.create_array(where, shape=(5, 7), dtype="u1", axes="yx")
    >>> found = n5zarr.set_geometry(array, scale=[0.5, 0.25], units=["um", "um"])
    >>> found.names, found.scale, array.store.node("em").dataset.attributes["resolution"]
    (('y', 'x'), (0.5, 0.25), [0.25, 0.5])
    """
    store, inner = store_and_path(location, path, axis_order, storage_options, backend)
    check_writable_store(store)
    with asking_once():
        placed = placed_datasets(store, inner)
    levels = [described(level) for level in placed]
    are_placed = all(level.geometry is not None and level.geometry.is_stated for level in placed)
    first = levels[0]
    finest = replace(
        first,
        names=_names(names, first.names),
        units=_one_each("units", units, first.units),
        scale=_one_each("scale", _floats("scale", scale), first.scale),
        translation=_one_each(
            "translation", _floats("translation", translation), first.translation
        ),
    )
    plan = _plan(store, first, convention)
    with ErrorsAt(f"{store}: {inner or '/'}"):
        plan.add_levels(placed, _levels_of(finest, levels, are_placed=are_placed))
        plan.check()
    plan.write(store)
    return geometry(store, inner)


def _names(names: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    each = _one_each("names", names, known)
    if names is not None:
        check_distinct("names", each)
    return each


def _plan(store: N5Store, first: ArrayGeometry, convention: str) -> _Plan:
    """Choose the convention that describes a dataset, and read the nodes beside it."""
    group, _, name = first.path.rpartition("/")
    beside = levels_in(store, group) if is_level(name) else {}
    known = [first, *(described(level) for level in beside.values())]
    chosen = choose_convention(convention, [level.convention for level in known])
    return _Plan(chosen, list(store.run(store.container.nodes.above(first.path))), beside)


def _one_each[T](name: str, given: Sequence[T] | None, known: tuple[T, ...]) -> tuple[T, ...]:
    """Return the given values, one for each axis, or by default the known ones."""
    if given is None:
        return known
    is_listed = isinstance(given, Sequence)
    if not is_listed or len(given) != len(known):
        got = len(given) if is_listed else repr(given)
        raise option_error(f"{name}: expected {len(known)} values, one for each axis, got {got}")
    return tuple(given)


def _floats(name: str, values: Sequence[float] | None) -> list[float] | None:
    try:
        return None if values is None else list(map(float, values))
    except (TypeError, ValueError) as err:
        raise option_error(f"{name}: expected a number for each axis, got {values!r}") from err


def _levels_of(
    finest: ArrayGeometry, known: Sequence[ArrayGeometry], *, are_placed: bool
) -> list[ArrayGeometry]:
    """Place the levels of an image beside its finest one.

    Raises
    ------
    N5UnrepresentableError
        The levels have different axes or units (``kind="option"``).
    """
    first = known[0]
    levels, by, coarser = [], [1.0] * len(first.shape), first.shape
    for level in known:
        # ratios of neighbouring levels are near integers, those to the finest level need not be
        ratios = zip(coarser, level.shape, strict=True)
        by = [
            f * max(math.floor(n / max(m, 1) + 0.5), 1)
            for f, (n, m) in zip(by, ratios, strict=True)
        ]
        coarser = level.shape
        shifts = [(factor - 1) / 2 for factor in by]
        if {level.names, first.names} != {first.names} and None not in (
            level.convention,
            first.convention,
        ):
            raise _differs(level, "names", level.names, first.names)
        if are_placed and level.units != first.units:
            raise _differs(level, "units", level.units, first.units)
        if are_placed:
            by = [s / fine for s, fine in zip(level.scale, first.scale, strict=True)]
            starts = zip(level.translation, first.translation, first.scale, strict=True)
            shifts = [(t - fine) / scale for t, fine, scale in starts]
        scale = [s * f for s, f in zip(finest.scale, by, strict=True)]
        starts = zip(finest.translation, shifts, finest.scale, strict=True)
        placed = replace(
            finest,
            path=level.path,
            shape=level.shape,
            scale=tuple(scale),
            translation=tuple(t + shift * s for t, shift, s in starts),
        )
        levels.append(placed)
    return levels


def _differs(level: ArrayGeometry, what: str, got: object, expected: object) -> N5Error:
    message = f"{level.path}: expected the {what} of the finest level, {expected}, got {got}"
    return option_error(f"{message}; set those of each level first")


def _check_no_coordinates(placed: Placed, wanted: ArrayGeometry) -> None:
    """Raise if arrays beside a dataset hold the positions of its elements."""
    known = described(placed)
    if placed.coordinates and (known.scale, known.translation) != (
        wanted.scale,
        wanted.translation,
    ):
        names = ", ".join(sorted(c.path for c in placed.coordinates.values()))
        raise option_error(
            f"{placed.path}: expected no coordinates beside it, got {names}: remove them first"
        )


@dataclass(frozen=True)
class _New:
    """The new document of a dataset: the requested axes and the attributes for them."""

    wanted: ArrayGeometry
    placed: Placed
    axes: tuple[Axis, ...]
    attributes: dict[str, JSON]


class _Plan:
    """The documents of datasets, and of the group above them, to be checked and then written.

    Parameters
    ----------
    convention : str
        Convention of the new attributes.
    above : list of mapping
        Attributes of the groups above, the nearest first.
    beside : mapping of str to Placed
        The levels of the group, by name; empty for a dataset that is no level.
    """

    def __init__(
        self, convention: str, above: list[Mapping[str, JSON]], beside: Mapping[str, Placed]
    ) -> None:
        self.convention = convention
        self.above = above
        self.group = dict(above[0]) if above else {}
        self.levels = axes_of_levels(beside, self.group)
        self.are_own = all(map(has_own, beside.values()))
        self.new: list[_New] = []

    def add_levels(self, placed: Sequence[Placed], wanted: Sequence[ArrayGeometry]) -> None:
        """Describe the axes of all levels of an image, or of one dataset."""
        name = placed[0].path.rpartition("/")[2]
        require(
            len(placed) != 1 or not shares_transforms(self.group, name),
            f"{name}: expected the group, as its levels share a transform; set all levels",
        )
        for level, new in zip(placed, wanted, strict=True):
            _check_no_coordinates(level, new)
            self._add(level, new)
        if self.group.keys() >= LEVELS_KEYS and self.are_own:
            self.group = describe_levels(self.group, self.levels)

    def _add(self, placed: Placed, wanted: ArrayGeometry) -> None:
        """Describe the axes of a dataset."""
        view = placed.view
        axes = axes_of(
            len(wanted.shape),
            names=from_presented(wanted.names, view.axis_order),
            scale=from_presented(wanted.scale, view.axis_order),
            translation=from_presented(wanted.translation, view.axis_order),
            units=from_presented(wanted.units, view.axis_order),
        )
        group, _, name = wanted.path.rpartition("/")
        if is_level(name):
            self.levels[int(name[1:])] = axes
        first = self.levels.get(0) if is_level(name) and name != "s0" else None
        written = describe_axes(self.convention, axes, name, first)
        self.group = set_level(self.group, group, name, written)
        kept = other_attributes(view.attributes, placed.geometry)
        self.new.append(_New(wanted, placed, axes, {**kept, **written.on_dataset(kept)}))

    def check(self) -> None:
        """Raise unless readers get the requested axes from the new documents."""
        first = self.new[0]
        for new in self.new:
            dimensions = from_presented(new.wanted.shape, new.placed.view.axis_order)
            names: list[JSON] = [axis.name for axis in new.axes]
            node = Node(
                path=tuple(new.wanted.path.split("/")),
                dimensions=dimensions,
                attributes={**new.attributes, AXES_KEY: names},
                ancestors=[self.group, *self.above[1:]] if self.above else [],
                first_level=from_presented(first.wanted.shape, first.placed.view.axis_order),
                first_attributes=first.attributes,
            )
            found = find_geometry(node).geometry
            is_said = found is not None and found.convention == self.convention
            if found is None or not is_said or not all(map(_is_same, found.axes, new.axes)):
                got = "nothing" if found is None else f"{_said(found.axes)} by {found.convention}"
                message = (
                    f"expected attributes of {self.convention} to express {_said(new.axes)}, got "
                    f"{got}; another convention may express it"
                )
                raise option_error(f"{new.wanted.path}: {message}")

    def write(self, store: N5Store) -> None:
        """Write the documents; keep changes that other programs have made meanwhile."""
        for new in self.new:
            names: JSON = list(new.wanted.names)
            path = new.wanted.path
            _write(store, path, attributes=new.attributes, dimension_names=names)
        group, _, name = self.new[0].wanted.path.rpartition("/")
        if self.above and self.group != self.above[0]:
            _write(store, group, attributes=self.group)
            if self.convention == "ngff":
                warn_of_misread(store, group, self.group)
        if is_level(name):
            describe_group(store, group)


def _write(store: N5Store, path: str, **members: JSON) -> None:
    key = join(path, "zarr.json")
    document = json.loads(bytes(store.run(store.container.read(key)) or b"{}"))
    data = json.dumps({**document, **members}).encode()
    sync(store.set(key, cpu.Buffer.from_bytes(data)))


def _is_same(found: Axis, wanted: Axis) -> bool:
    pairs = [(found.scale, wanted.scale), (found.translation, wanted.translation)]
    is_close = all(math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) for a, b in pairs)
    units = [axis.unit or "pixel" for axis in (found, wanted)]  # n5-viewer always has a unit
    return is_close and found.name == wanted.name and units[0] == units[1]


def _said(axes: Sequence[Axis]) -> str:
    """Describe axes in a message, in N5 order."""
    each = [
        f"{a.name} {a.scale:g}{' ' + a.unit if a.unit else ''} + {a.translation:g}" for a in axes
    ]
    return f"[{', '.join(each)}]"
