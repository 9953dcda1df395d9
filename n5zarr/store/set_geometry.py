"""``n5zarr.set_geometry``: write names, units, scale and translation of the axes of datasets."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zarr.buffer import cpu

from n5zarr._zarr_private import sync
from n5zarr.conventions.axis_names import AXES_KEY
from n5zarr.conventions.find import WRITTEN, describe_axes, find_geometry, other_attributes
from n5zarr.conventions.model import Axis, Node, axes_of
from n5zarr.conventions.multiscales import add_level, remove_levels
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.order import from_presented
from n5zarr.format.path import join
from n5zarr.store.geometry import (
    ArrayGeometry,
    described,
    geometry,
    placed_datasets,
    store_and_path,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import zarr
    from zarr.types import AnyArray

    from n5zarr.container.axes import Placed
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder
    from n5zarr.storage.place import Location
    from n5zarr.store.n5_store import N5Store

__all__ = ["set_geometry"]


def set_geometry(  # noqa: PLR0913 - one keyword for each property
    node: Location | AnyArray | zarr.Group,
    path: str = "",
    *,
    names: Sequence[str] | None = None,
    units: Sequence[str | None] | None = None,
    scale: Sequence[float] | None = None,
    translation: Sequence[float] | None = None,
    convention: str | None = None,
    axis_order: AxisOrder = "C",
    storage_options: Mapping[str, object] | None = None,
) -> ArrayGeometry:
    """Write names, units, scale and translation of the axes of a dataset, or of a pyramid.

    What is not given stays. Attributes of other conventions, which would contradict, are removed;
    all other attributes stay.

    Parameters
    ----------
    node, path, axis_order, storage_options : optional
        As for :func:`n5zarr.geometry`. In a group, all levels are written.
    names : sequence of str, optional
        Names of the axes, in the order of the array.
    units : sequence of str or None, optional
        One for each axis.
    scale, translation : sequence of float, optional
        Distance of elements and position of the first one, in ``units``; of the finest level in a
        group. Those of the others follow: by their own ratio where they have one, else by that of
        the shapes, each element in the middle of those that it stands for.
    convention : {"cosem", "n5viewer", "neuroglancer", "ngff"}, optional
        How the attributes are written; by default as they are, or as ``"neuroglancer"``.

    Returns
    -------
    ArrayGeometry
        What :func:`n5zarr.geometry` reads now.

    Raises
    ------
    FileNotFoundError
        There is nothing at this path.
    N5UnrepresentableError
        The convention cannot express it, or attributes of a group above say something else
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
    opened, inner = store_and_path(
        node, path, axis_order=axis_order, storage_options=storage_options
    )
    placed = placed_datasets(opened, inner)
    levels = [described(level) for level in placed]
    first = levels[0]
    finest = replace(
        first,
        names=_one_each("names", names, first.names),
        units=_one_each("units", units, first.units),
        scale=_one_each("scale", _floats(scale), first.scale),
        translation=_one_each("translation", _floats(translation), first.translation),
    )
    if convention is None:
        convention = first.convention if first.convention in WRITTEN else "neuroglancer"
    above = opened.ask(opened.container.nodes.above(first.path))
    plan = _Plan(convention, list(above))
    for level, found in zip(placed, levels, strict=True):
        plan.add(level, _level_of(finest, first, found))
    plan.check(str(opened))
    plan.write(opened)
    return geometry(opened, inner)


def _one_each[T](name: str, given: Sequence[T] | None, known: tuple[T, ...]) -> tuple[T, ...]:
    """Return what is given for each axis, or else what is known."""
    if given is None:
        return known
    if len(given) != len(known):
        message = f"{name}: expected {len(known)}, one for each axis, got {len(given)}"
        raise N5UnrepresentableError(message, kind="option")
    return tuple(given)


def _floats(values: Sequence[float] | None) -> list[float] | None:
    return None if values is None else list(map(float, values))


def _level_of(
    finest: ArrayGeometry, known_finest: ArrayGeometry, known: ArrayGeometry
) -> ArrayGeometry:
    """Place a level beside the finest one, as it was, or by the ratio of the shapes."""
    if known.convention in (None, "names"):
        shapes = zip(known_finest.shape, known.shape, strict=True)
        by = [float(round(fine / max(n, 1))) or 1.0 for fine, n in shapes]
        shifts = [(factor - 1) / 2 for factor in by]
    else:
        pairs = zip(known.scale, known_finest.scale, strict=True)
        by = [scale / fine for scale, fine in pairs]
        starts = zip(known.translation, known_finest.translation, strict=True)
        shifts = [
            (t - fine) / scale for (t, fine), scale in zip(starts, known_finest.scale, strict=True)
        ]
    return replace(
        finest,
        path=known.path,
        shape=known.shape,
        scale=tuple(s * f for s, f in zip(finest.scale, by, strict=True)),
        translation=tuple(
            t + shift * s
            for t, shift, s in zip(finest.translation, shifts, finest.scale, strict=True)
        ),
    )


@dataclass(frozen=True)
class _New:
    """The new document of a dataset: what is wanted, and how it is said."""

    wanted: ArrayGeometry
    placed: Placed
    axes: tuple[Axis, ...]
    attributes: dict[str, JSON]


class _Plan:
    """The documents of datasets, and of the group above them, to be checked and then written.

    Parameters
    ----------
    convention : str
        How the axes are described.
    above : list of mapping
        Attributes of the groups above, the nearest first.
    """

    def __init__(self, convention: str, above: list[Mapping[str, JSON]]) -> None:
        self.convention = convention
        self.above = above
        self.group = dict(above[0]) if above else {}
        self.new: list[_New] = []

    def add(self, placed: Placed, wanted: ArrayGeometry) -> None:
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
        written = describe_axes(self.convention, axes, name)
        self.group = add_level(remove_levels(self.group, [name]), group, name, written)
        kept = other_attributes(view.attributes, placed.geometry)
        self.new.append(_New(wanted, placed, axes, {**kept, **written.attributes}))

    def check(self, where: str) -> None:
        """Raise unless readers find what is wanted in the new documents."""
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
            if found is None or not all(map(_is_same, found.axes, new.axes)):
                got = "nothing" if found is None else f"{_said(found.axes)} by {found.convention}"
                message = (
                    f"expected attributes of {self.convention} that say {_said(new.axes)}, got "
                    f"{got}; another convention may express it"
                )
                place = f"{where}: {new.wanted.path or '/'}"
                raise N5UnrepresentableError(message, kind="option", where=place)

    def write(self, opened: N5Store) -> None:
        """Write the documents; what others have changed in them meanwhile stays."""
        for new in self.new:
            names: JSON = list(new.wanted.names)
            _write(opened, new.wanted.path, attributes=new.attributes, dimension_names=names)
        if self.above and self.group != self.above[0]:
            group = self.new[0].wanted.path.rpartition("/")[0]
            _write(opened, group, attributes=self.group)


def _write(opened: N5Store, path: str, **members: JSON) -> None:
    key = join(path, "zarr.json")
    document = json.loads(bytes(opened.ask(opened.container.read(key)) or b"{}"))
    data = json.dumps({**document, **members}).encode()
    sync(opened.set(key, cpu.Buffer.from_bytes(data)))


def _is_same(found: Axis, wanted: Axis) -> bool:
    pairs = [(found.scale, wanted.scale), (found.translation, wanted.translation)]
    is_close = all(math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) for a, b in pairs)
    units = [axis.unit or "pixel" for axis in (found, wanted)]  # n5-viewer always has one
    return is_close and found.name == wanted.name and units[0] == units[1]


def _said(axes: Sequence[Axis]) -> str:
    """Describe axes in a message, in N5 order."""
    each = [
        f"{a.name} {a.scale:g}{' ' + a.unit if a.unit else ''} + {a.translation:g}" for a in axes
    ]
    return f"[{', '.join(each)}]"
