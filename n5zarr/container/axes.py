"""Read the axes of datasets: names of dimensions, positions, and which datasets share them.

Reads the input of the conventions (attributes of the dataset, the groups above and levels beside
it, BigDataViewer's XML), and converts their output into what xarray and Zarr can hold: distinct
names of dimensions, and an :class:`~n5zarr.conventions.model.Axis` for each that has positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from n5zarr.container.node_names import Broken
from n5zarr.container.nodes import Nodes
from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY, distinct_names
from n5zarr.conventions.bdv import setup_of, view_of, write_setup
from n5zarr.conventions.find import find_geometry, other_attributes
from n5zarr.conventions.levels import (
    by_shapes,
    counted_axes,
    first_listed,
    listed_levels,
    renamed_axes,
    unlisted_level,
)
from n5zarr.conventions.model import LEVELS_KEYS, Axis, Geometry, Node, SetupView, level_of
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import from_presented, present
from n5zarr.format.path import join
from n5zarr.rooms import Door
from n5zarr.storage.requests import Steps
from n5zarr.zarr_view.dataset_view import DatasetView

_FIND_VIEW: Door[Callable[[str], Steps[SetupView | None]]] = Door("axes", "view")
_REPLACED = (AXES_KEY, XARRAY_KEY)  # attributes that dimensions and coordinates replace
_LEVELS = [f"s{k}" for k in range(10)]  # whose shapes are compared


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A dataset with its dimensions named and placed.

    Parameters
    ----------
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset.
    dims : tuple of str
        Distinct names of its dimensions, in the axis order of the view.
    axes : mapping of str to Axis
        Axes by name of the dimension, in the same order; only axes whose elements have positions.
    geometry : Geometry or None
        The axes as a convention describes them, in N5 order; None if no convention does.
    problems : tuple of str
        Messages about attributes that contradict each other or the dataset.
    coordinates : mapping of str to Placed
        One-dimensional datasets in the same group that are named like a dimension.
    made_up : frozenset of str
        The dimensions whose names n5zarr made up.
    """

    path: str
    view: DatasetView
    dims: tuple[str, ...]
    axes: Mapping[str, Axis]
    geometry: Geometry | None
    problems: tuple[str, ...]
    coordinates: Mapping[str, Placed]
    made_up: frozenset[str]

    @property
    def name(self) -> str:
        """Name of the variable: the last name of the path, with ``_`` if an axis has this name."""
        name = self.path.rpartition("/")[2] or "data"
        return f"{name}_" if name in self.dims and len(self.dims) > 1 else name

    @property
    def sizes(self) -> dict[str, int]:
        """Extent of each dimension."""
        return dict(zip(self.dims, self.view.shape, strict=True))

    @property
    def is_stated(self) -> bool:
        """Whether attributes give positions of the elements, and not only names of axes."""
        return self.geometry is not None and self.geometry.is_stated

    @property
    def attributes(self) -> dict[str, JSON]:
        """Attributes without those of the axes; with ``registration`` if it turns or shears."""
        rest = () if self.geometry is None else self.geometry.rest
        others = {
            key: value
            for key, value in other_attributes(self.view.attributes, self.geometry).items()
            if not (key in _REPLACED and isinstance(value, list))
            and (key != "units" or isinstance(value, str))
        }
        return others | ({"registration": [v for row in rest for v in row]} if rest else {})

    def is_coordinate_of(self, dim: str, size: int) -> bool:
        """Whether this dataset holds the positions along a dimension."""
        return self.sizes == {dim: size}


@dataclass(frozen=True, kw_only=True)
class GroupLayout:
    """The children of a group, and whether its datasets share their axes.

    Parameters
    ----------
    path : str
        Path of the group.
    attributes : mapping
        Attributes of the group, without those that describe the axes of its datasets.
    datasets : mapping of str to Placed
        All datasets, by name.
    groups : mapping of str to GroupAttributes
        All groups, by name.
    broken : tuple of Broken
        Children that cannot be read.
    """

    path: str
    attributes: Mapping[str, JSON]
    datasets: Mapping[str, Placed]
    groups: Mapping[str, GroupAttributes]
    broken: tuple[Broken, ...]

    @property
    def agrees(self) -> bool:
        """Whether dimensions of the same name have the same size and positions in all datasets."""
        sizes: dict[str, int] = {}
        axes: dict[str, Axis] = {}
        for placed in self.datasets.values():
            for dim, size in placed.sizes.items():
                if sizes.setdefault(dim, size) != size:
                    return False
            for dim, axis in placed.axes.items():
                if dim not in self.datasets and axes.setdefault(dim, axis) != axis:
                    return False
        # a dataset named like a dimension must be its coordinate
        return all(name not in sizes or p.dims == (name,) for name, p in self.datasets.items())

    @property
    def is_written_by_xarray(self) -> bool:
        """Whether xarray has written the group as one Dataset.

        It writes ``coordinates`` into the attributes, ``_ARRAY_DIMENSIONS`` (Zarr v2), or the
        positions along a dimension beside the data.
        """
        attributes = [p.view.attributes for p in self.datasets.values()]
        return self.agrees and (
            isinstance(self.attributes.get("coordinates"), str)
            or any(isinstance(own.get("coordinates"), str) for own in attributes)
            or any(XARRAY_KEY in p.view.dataset.attributes for p in self.datasets.values())
            or any(placed.coordinates for placed in self.datasets.values())
        )

    @property
    def axes(self) -> dict[str, tuple[Axis, int]]:
        """Axis and size of each dimension for which no dataset holds the positions."""
        return {
            dim: (axis, placed.sizes[dim])
            for placed in self.datasets.values()
            for dim, axis in placed.axes.items()
            if dim not in self.datasets
        }


def positions(axis: Axis, size: int, *, start: int = 0) -> npt.NDArray[np.float64]:
    """Return the positions of the elements along an axis (the single implementation).

    Parameters
    ----------
    axis : Axis
        The axis.
    size : int
        Number of elements.
    start : int, optional
        Index of the first element.

    Returns
    -------
    numpy.ndarray
        float64, ``scale * index + translation`` in the unit of the axis.
    """
    with np.errstate(over="ignore"):  # a scale of 1e308 gives infinity
        return np.arange(start, start + size, dtype=np.float64) * axis.scale + axis.translation


def read_placed(
    nodes: Nodes,
    path: str,
    view: DatasetView,
    convention: str | None = None,
    setup: SetupView | None = None,
) -> Steps[Placed]:
    """Read the axes of a dataset.

    Parameters
    ----------
    nodes : Nodes
        The container.
    path : str
        Of the dataset.
    view : DatasetView
        The dataset.
    convention : str, optional
        Name of the only convention to try; all are tried by default.
    setup : SetupView, optional
        What a document beside the container says of a view; by default it is searched for.
    """
    above, beside, bdv_view = yield from _read_around(nodes, path, view, setup)
    placed = _place(path, view, above, beside, convention, bdv_view)
    if not path:
        return placed
    group = path.rpartition("/")[0]
    # nobody can have stored positions under a name that was made up
    named = [join(group, dim) for dim in placed.dims if dim not in placed.made_up]
    datasets = yield from nodes.datasets([each for each in named if each != path])
    others = [_place(p, v, above, {}, convention) for p, v in datasets.items()]
    coordinates = {  # excludes images named like an axis, which are renamed
        c.name: c for c in others if c.is_coordinate_of(c.name, placed.sizes.get(c.name, 0))
    }
    return replace(placed, coordinates=coordinates)


def read_placed_by_each[C: str | None](
    nodes: Nodes, path: str, view: DatasetView, conventions: Sequence[C]
) -> Steps[dict[C, Placed]]:
    """Read the axes of a dataset once for each of some conventions, without coordinates.

    See :func:`read_placed`; the documents around the dataset are read once. None stands for all
    conventions.
    """
    above, beside, bdv_view = yield from _read_around(nodes, path, view)
    return {name: _place(path, view, above, beside, name, bdv_view) for name in conventions}


type _Around = tuple[Sequence[Mapping[str, JSON]], Mapping[str, DatasetView], SetupView | None]


def _read_around(
    nodes: Nodes, path: str, view: DatasetView, setup: SetupView | None = None
) -> Steps[_Around]:
    """Read other inputs of the axes: the groups above, other levels, what says more."""
    above = yield from nodes.above(path)
    group, _, name = path.rpartition("/")
    beside = {name: view}
    says_something = view.dataset.attributes or any(above) or level_of(name) is not None
    if path and says_something:  # else no convention needs another level
        wanted = {_name_of_first(path, above), unlisted_level(above) or name} - {name}
        is_of_group = level_of(name) and any(each.keys() - {"n5"} for each in above)
        for names in (wanted, {*_LEVELS} - {name}):  # the latter if there is no s0
            found = yield from nodes.datasets([join(group, each) for each in sorted(names)])
            beside |= {p.rpartition("/")[2]: v for p, v in found.items()}
            if not is_of_group or "s0" not in wanted - beside.keys():
                break
    return above, beside, setup or (yield from _setup_view(path))


def _setup_view(path: str) -> Steps[SetupView | None]:
    """Read what a document beside the container says of a view; None of other datasets."""
    is_of_setup = view_of(tuple(path.split("/"))) is not None
    find = _FIND_VIEW.found() if is_of_setup else None
    return None if find is None else (yield from find(path))


def _name_of_first(path: str, above: Sequence[Mapping[str, JSON]]) -> str:
    """Return the name of the finest level beside a dataset: the listed one, or ``s0``."""
    return first_listed(path.split("/"), above) or "s0"


def read_layout(
    nodes: Nodes,
    path: str,
    group: GroupAttributes,
    convention: str | None = None,
    only: Collection[str] | None = None,
) -> Steps[GroupLayout]:
    """Read the children of a group with the axes of its datasets.

    Parameters
    ----------
    nodes : Nodes
        The container.
    path : str
        Of the group.
    group : GroupAttributes
        The group.
    convention : str, optional
        Name of the only convention to try; all are tried by default.
    only : collection of str, optional
        Names of the children to read, beside the levels; all by default.
    """
    listed = listed_levels(group.attributes)

    def is_wanted(name: str) -> bool:
        return only is None or name in only or name in listed or level_of(name) is not None

    children = yield from nodes.children(path, is_wanted)
    above = [group.attributes, *(yield from nodes.above(path))]
    views = {name: child for name, child in children if isinstance(child, DatasetView)}
    datasets: dict[str, Placed] = {}
    for name, view in views.items():
        inner = join(path, name)
        setup = yield from _setup_view(inner)
        datasets[name] = _place(inner, view, above, views, convention, setup)
    datasets |= _first_of_counted(datasets, above)
    named_like_dim = {name: placed for name, placed in datasets.items() if placed.dims == (name,)}
    for name, placed in datasets.items():
        candidates = {d: named_like_dim[d] for d in placed.dims if d in named_like_dim}
        fitting = {
            d: c
            for d, c in candidates.items()
            if d != name and c.is_coordinate_of(d, placed.sizes[d])
        }
        datasets[name] = replace(placed, coordinates=fitting)
    is_stated = any(placed.is_stated for placed in datasets.values())
    return GroupLayout(
        path=path,
        attributes=_own_attributes(path, group.attributes, has_geometry=is_stated),
        datasets=datasets,
        groups={n: child for n, child in children if isinstance(child, GroupAttributes)},
        broken=tuple(child for _, child in children if isinstance(child, Broken)),
    )


def _first_of_counted(
    datasets: Mapping[str, Placed], above: Sequence[Mapping[str, JSON]]
) -> dict[str, Placed]:
    """Place finest levels without a position whose elements other levels count."""
    found: dict[str, Placed] = {}
    # what levels state comes before what their shapes say
    for placed in sorted(datasets.values(), key=lambda each: not each.is_stated):
        counts = None if placed.geometry is None else counted_axes(placed.geometry)
        first = datasets.get(_name_of_first(placed.path, above))
        if counts is None or first is None or first.view.ndim != placed.view.ndim:
            continue
        if (own := first.geometry) is None or own.names_only:
            names = None if own is None else [axis.name for axis in own.axes]
            axes = replace(counts, axes=renamed_axes(counts.axes, names))
            new = _with_axes(first.path, first.view, axes, first.problems)
            found.setdefault(first.path.rpartition("/")[2], new)
    return found


def _own_attributes(
    path: str, attributes: Mapping[str, JSON], *, has_geometry: bool
) -> dict[str, JSON]:
    """Return attributes of a group without those that describe its levels."""
    left_out: set[str] = {"multiscales"} if has_geometry else set()
    if has_geometry and attributes.keys() >= LEVELS_KEYS:
        left_out |= LEVELS_KEYS
    if setup_of(path.rpartition("/")[2]) is not None:
        left_out |= write_setup([], "").keys()
    return {key: value for key, value in attributes.items() if key not in left_out}


def _place(
    path: str,
    view: DatasetView,
    above: Sequence[Mapping[str, JSON]],
    beside: Mapping[str, DatasetView],
    convention: str | None,
    bdv_view: SetupView | None = None,
) -> Placed:
    """Name and place the dimensions of a dataset, from documents that have been read."""
    names = tuple(path.split("/")) if path else ()
    first = beside.get(_name_of_first(path, above))
    node = Node(
        path=names,
        dimensions=from_presented(view.shape, view.axis_order),
        attributes=view.dataset.attributes,
        ancestors=above,
        first_level=None if first is None else first.dataset.dimensions,
        first_attributes={} if first is None else first.dataset.attributes,
        first_name=first_listed(names, above),
        is_like_first=first is None or first.dataset.data_type == view.dataset.data_type,
        levels={k: beside[n].dataset.dimensions for k, n in enumerate(_LEVELS) if n in beside},
        view=bdv_view,
        given_names=_given_names(view),
    )
    return _with_axes(path, view, *find_geometry(node, convention))


def _with_axes(
    path: str, view: DatasetView, geometry: Geometry | None, problems: tuple[str, ...]
) -> Placed:
    """Name and place the dimensions of a dataset by the axes of a convention."""
    axes = () if geometry is None else present(geometry.axes, view.axis_order)
    placed = () if geometry is None else present(geometry.is_placed, view.axis_order)
    names_given: Sequence[str | None] = [axis.name for axis in axes]
    if geometry is None or geometry.names_only:
        # the names that Zarr wrote take precedence over those of an attribute
        names_given = view.dimension_names or names_given or (None,) * view.ndim
    dims = distinct_names(names_given)
    named = zip(dims, names_given, strict=True)
    return Placed(
        path=path,
        view=view,
        dims=dims,
        axes={
            dim: axis for dim, axis, is_placed in zip(dims, axes, placed, strict=False) if is_placed
        },
        geometry=geometry,
        problems=problems,
        coordinates={},
        made_up=frozenset(dim for dim, name in named if dim != name),
    )


def placed_by_shape(placed: Placed, other: Placed) -> Placed | None:
    """Place a level by the ratio of its shape to that of another one; None if it is no level."""
    names = None if placed.geometry is None else [axis.name for axis in placed.geometry.axes]
    geometry = by_shapes(
        from_presented(placed.view.shape, placed.view.axis_order),
        from_presented(other.view.shape, other.view.axis_order),
        None if other.geometry is None else other.geometry.axes,
        names,
    )
    if geometry is None:
        return None
    return _with_axes(placed.path, placed.view, geometry, placed.problems)


def _given_names(view: DatasetView) -> tuple[str, ...] | None:
    """Return the recorded names of the dimensions, N5 order; None if none are recorded."""
    if view.record.dimension_names is None or view.dimension_names is None:
        return None
    return from_presented((name or "" for name in view.dimension_names), view.axis_order)
