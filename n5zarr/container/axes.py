"""Read the axes of datasets: names of dimensions, positions, and which datasets share them.

Reads the input of the conventions (attributes of the dataset, of the groups above it and of the
level ``s0`` beside it, BigDataViewer's XML), and converts their output into a form that xarray and
Zarr can hold: distinct names of dimensions, and an :class:`~n5zarr.conventions.model.Axis` for each
dimension that has positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.container.node_names import Broken
from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY
from n5zarr.conventions.bdv import parse_xml, setup_of, view_of, write_setup
from n5zarr.conventions.find import find_geometry, other_attributes
from n5zarr.conventions.model import LEVELS_KEYS, Node
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.order import from_presented, present
from n5zarr.format.path import is_name, join
from n5zarr.storage.requests import FileThatNames, Steps
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from n5zarr.container.nodes import Nodes
    from n5zarr.conventions.bdv import Description
    from n5zarr.conventions.model import Axis, Geometry, View
    from n5zarr.format.lenient_json import JSON

__all__ = [
    "Layout",
    "Placed",
    "positions",
    "read_description",
    "read_layout",
    "read_placed",
    "read_placed_by_each",
]

# attributes that dimensions and coordinates replace
_REPLACED = (AXES_KEY, XARRAY_KEY)


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
class Layout:
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
    description: Description | None = None,
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
    description : Description, optional
        BigDataViewer's XML; by default :func:`read_description` searches for it.
    """
    above, first, bdv_view = yield from _around(nodes, path, view, description)
    placed = _place(path, view, above, first, convention, bdv_view)
    if not path:
        return placed
    group = path.rpartition("/")[0]
    # nobody can have stored positions under a name that was made up
    named = [join(group, dim) for dim in placed.dims if dim not in placed.made_up]
    datasets = yield from nodes.datasets([each for each in named if each != path])
    beside = {p: _place(p, v, above, None, convention) for p, v in datasets.items()}
    coordinates = {  # excludes images named like an axis, which are renamed
        c.name: c
        for c in beside.values()
        if c.is_coordinate_of(c.name, placed.sizes.get(c.name, 0))
    }
    return replace(placed, coordinates=coordinates)


def read_placed_by_each(
    nodes: Nodes, path: str, view: DatasetView, conventions: Sequence[str]
) -> Steps[dict[str, Placed]]:
    """Read the axes of a dataset once for each of some conventions, without coordinates.

    See :func:`read_placed`; the documents around the dataset are read once.
    """
    above, first, bdv_view = yield from _around(nodes, path, view)
    return {name: _place(path, view, above, first, name, bdv_view) for name in conventions}


type _Around = tuple[Sequence[Mapping[str, JSON]], DatasetView | None, View | None]


def _around(
    nodes: Nodes, path: str, view: DatasetView, description: Description | None = None
) -> Steps[_Around]:
    """Read other inputs of the axes: the groups above, the level ``s0``, BigDataViewer's XML."""
    above = yield from nodes.above(path)
    first = join(path.rpartition("/")[0], "s0")
    beside = {path: view}
    if path and path != first and (view.dataset.attributes or any(above)):
        beside |= yield from nodes.datasets([first])  # else no convention says anything
    return above, beside.get(first), (yield from _bdv_view(path, description))


def read_layout(
    nodes: Nodes,
    path: str,
    group: GroupAttributes,
    convention: str | None = None,
    only: Collection[str] | None = None,
) -> Steps[Layout]:
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
        Names of the children to read, beside the level ``s0``; all by default.
    """
    children = yield from nodes.children(path, None if only is None else {*only, "s0"})
    above = [group.attributes, *(yield from nodes.above(path))]
    views = {name: child for name, child in children if isinstance(child, DatasetView)}
    datasets: dict[str, Placed] = {}
    for name, view in views.items():
        inner = join(path, name)
        bdv_view = yield from _bdv_view(inner)
        datasets[name] = _place(inner, view, above, views.get("s0"), convention, bdv_view)
    named_like_dim = {name: placed for name, placed in datasets.items() if placed.dims == (name,)}
    for name, placed in datasets.items():
        candidates = {d: named_like_dim[d] for d in placed.dims if d in named_like_dim}
        fitting = {
            d: c
            for d, c in candidates.items()
            if d != name and c.is_coordinate_of(d, placed.sizes[d])
        }
        datasets[name] = replace(placed, coordinates=fitting)
    has_geometry = any(d.geometry and d.geometry.convention != "names" for d in datasets.values())
    return Layout(
        path=path,
        attributes=_own_attributes(path, group.attributes, has_geometry=has_geometry),
        datasets=datasets,
        groups={n: child for n, child in children if isinstance(child, GroupAttributes)},
        broken=tuple(child for _, child in children if isinstance(child, Broken)),
    )


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
    first: DatasetView | None,
    convention: str | None,
    bdv_view: View | None = None,
) -> Placed:
    """Name and place the dimensions of a dataset, from attributes already read."""
    names = tuple(path.split("/")) if path else ()
    node = Node(
        path=names,
        dimensions=from_presented(view.shape, view.axis_order),
        attributes=view.dataset.attributes,
        ancestors=above,
        first_level=None if first is None else first.dataset.dimensions,
        first_attributes={} if first is None else first.dataset.attributes,
        view=bdv_view,
        given_names=_given_names(view),
    )
    geometry, problems = find_geometry(node, convention)
    axes = () if geometry is None else present(geometry.axes, view.axis_order)
    placed = () if geometry is None else present(geometry.is_placed, view.axis_order)
    names_given: Sequence[str | None] = [axis.name for axis in axes]
    if geometry is None or geometry.convention == "names":
        # the names that Zarr wrote take precedence over those of an attribute
        names_given = view.dimension_names or names_given or (None,) * view.ndim
    dims = _distinct(names_given)
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


def _given_names(view: DatasetView) -> tuple[str, ...] | None:
    """Return the recorded names of the dimensions, N5 order; None if none are recorded."""
    if view.record.dimension_names is None or view.dimension_names is None:
        return None
    return from_presented((name or "" for name in view.dimension_names), view.axis_order)


def _distinct(names: Sequence[str | None]) -> tuple[str, ...]:
    """Replace names that are missing, repeated, or unusable in a path by ``dim_<number>``.

    Examples
    --------
    >>> _distinct(["x", None, "x", "a/b"])
    ('x', 'dim_1', 'dim_2', 'dim_3')
    """
    distinct: list[str] = []
    for i, name in enumerate(names):
        is_usable = name is not None and name not in distinct and is_name(name)
        distinct.append(name if name is not None and is_usable else f"dim_{i}")
    return tuple(distinct)


def _bdv_view(path: str, description: Description | None = None) -> Steps[View | None]:
    """Read setup and time point of a level from BigDataViewer's XML; None for other datasets."""
    names = tuple(path.split("/"))
    numbers = view_of(names)
    if numbers is None:
        return None
    if description is None:
        description = yield from read_description("/".join(names[:-3]))
    return None if description is None else description.view(*numbers)


def read_description(path: str) -> Steps[Description | None]:
    """Read BigDataViewer's XML: in the group of the setups, or in a directory above it.

    The search ends in the directory that holds the container.

    Parameters
    ----------
    path : str
        Path of the group of the setups.
    """

    def location(data: bytes) -> str | None:
        description = parse_xml(data)
        return None if description is None else join(*description.loader[:2])

    (xml,) = yield [FileThatNames(path, "*.xml", location)]
    return None if xml is None else parse_xml(xml)
