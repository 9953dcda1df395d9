"""Datasets as variables: their axes, where their elements lie, and which of them belong together.

What conventions need is read from a container here, and what they say is brought into a form that
xarray and Zarr can show: distinct names of dimensions, and an :class:`~n5zarr.conventions.Axis` for
each that has positions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from n5zarr.container.nodes import Broken
from n5zarr.conventions.bdv import parse_xml, view_of
from n5zarr.conventions.find import find_geometry, other_attributes
from n5zarr.conventions.model import Node
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.order import present
from n5zarr.format.path import join
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from n5zarr.container.nodes import Hierarchy
    from n5zarr.conventions.bdv import Description
    from n5zarr.conventions.model import Axis, Geometry, View
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.requests import Steps

__all__ = [
    "Container",
    "Layout",
    "Placed",
    "find_xml",
    "positions",
    "read_layout",
    "read_placed",
]

# of the axes: shown as dimensions and coordinates
_SHOWN_ELSEWHERE = ("axes", "_ARRAY_DIMENSIONS")


class Container(Protocol):
    """What is needed of an :class:`~n5zarr.N5Store`."""

    @property
    def hierarchy(self) -> Hierarchy:
        """The logic of nodes and children."""
        ...

    async def run[T](self, steps: Steps[T]) -> T:
        """Run one of its generators."""
        ...


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A dataset as a variable.

    Parameters
    ----------
    path : str
        Of the dataset.
    shown : Presentation
        The dataset.
    dims : tuple of str
        Distinct names of its dimensions, in the order that is shown, as all that follow.
    axes : mapping of str to Axis
        Of the dimensions whose elements have positions.
    geometry : Geometry or None
        What the convention says, in N5 order.
    problems : tuple of str
        What was written of the axes that cannot be meant.
    coordinates : mapping of str to Placed
        One-dimensional datasets beside it that are named like a dimension.
    """

    path: str
    shown: DatasetView
    dims: tuple[str, ...]
    axes: Mapping[str, Axis]
    geometry: Geometry | None
    problems: tuple[str, ...]
    coordinates: Mapping[str, Placed]

    @property
    def name(self) -> str:
        """Name of the variable: the last element of the path, unless an axis has that name."""
        name = self.path.rpartition("/")[2] or "data"
        return f"{name}_" if name in self.dims and len(self.dims) > 1 else name

    @property
    def sizes(self) -> dict[str, int]:
        """Extent of each dimension."""
        return dict(zip(self.dims, self.shown.shape, strict=True))

    @property
    def attributes(self) -> dict[str, JSON]:
        """The attributes that say nothing of the axes, and what of their place these cannot say."""
        rest = () if self.geometry is None else self.geometry.rest
        others = {
            key: value
            for key, value in other_attributes(self.shown.attributes, self.geometry).items()
            if not (key in _SHOWN_ELSEWHERE and isinstance(value, list))
            and (key != "units" or isinstance(value, str))
        }
        return others | ({"registration": [v for row in rest for v in row]} if rest else {})

    def is_coordinate_of(self, dim: str, size: int) -> bool:
        """Whether it gives the positions along a dimension."""
        return self.sizes == {dim: size}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A group: which of its datasets share their axes.

    Parameters
    ----------
    path : str
        Of the group.
    attributes : mapping
        Without what they say of the axes of the datasets.
    datasets : mapping of str to Placed
        By name, all of them.
    groups : mapping of str to GroupAttributes
        By name, the groups in it.
    broken : tuple of Broken
        What cannot be shown.
    """

    path: str
    attributes: Mapping[str, JSON]
    datasets: Mapping[str, Placed]
    groups: Mapping[str, GroupAttributes]
    broken: tuple[Broken, ...]

    @property
    def agrees(self) -> bool:
        """Whether equally named dimensions have equal sizes and positions, in all datasets."""
        sizes: dict[str, int] = {}
        axes: dict[str, Axis] = {}
        for placed in self.datasets.values():
            for dim, size in placed.sizes.items():
                if sizes.setdefault(dim, size) != size:
                    return False
            for dim, axis in placed.axes.items():
                if dim not in self.datasets and axes.setdefault(dim, axis) != axis:
                    return False
        # of one name, only the coordinate of a dimension can be beside it
        return all(name not in sizes or p.dims == (name,) for name, p in self.datasets.items())

    @property
    def axes(self) -> dict[str, tuple[Axis, int]]:
        """Positions, and their number, along each dimension that no dataset gives them for."""
        return {
            dim: (axis, placed.sizes[dim])
            for placed in self.datasets.values()
            for dim, axis in placed.axes.items()
            if dim not in self.datasets
        }


def positions(axis: Axis, size: int, *, start: int = 0) -> npt.NDArray[np.float64]:
    """Compute where the elements of an axis lie; there is no other place that does.

    Parameters
    ----------
    axis : Axis
        The axis.
    size : int
        How many elements.
    start : int, optional
        The first of them.
    """
    return np.arange(start, start + size, dtype=np.float64) * axis.scale + axis.translation


async def read_placed(
    container: Container,
    path: str,
    shown: DatasetView,
    convention: str | None = None,
    description: Description | None = None,
) -> Placed:
    """Read the axes of a dataset.

    Parameters
    ----------
    container : Container
        Where it lies.
    path : str
        Of the dataset.
    shown : Presentation
        The dataset.
    convention : str, optional
        The only one to try.
    description : Description, optional
        BigDataViewer's XML, where it is known; else it is looked for.
    """
    above = await container.run(container.hierarchy.above(path))
    group = path.rpartition("/")[0]
    first = join(group, "s0")
    beside = await container.run(container.hierarchy.datasets([first] if path else []))
    view = _view(container, path, description)
    placed = _place(path, shown, above, beside.get(first), convention, view)
    if not path:
        return placed
    wanted = [join(group, dim) for dim in placed.dims if join(group, dim) != path]
    found = await container.run(container.hierarchy.datasets(wanted))
    named = {p: _place(p, s, above, None, convention) for p, s in found.items()}
    coordinates = {
        c.name: c for c in named.values() if c.is_coordinate_of(c.name, placed.sizes[c.name])
    }
    return replace(placed, coordinates=coordinates)


async def read_layout(
    container: Container, path: str, group: GroupAttributes, convention: str | None = None
) -> Layout:
    """Read what lies directly in a group, and which datasets belong together.

    Parameters
    ----------
    container : Container
        Where it lies.
    path : str
        Of the group.
    group : GroupAttributes
        The group.
    convention : str, optional
        The only one to try.
    """
    children = await container.run(container.hierarchy.children(path))
    above = [group.attributes, *await container.run(container.hierarchy.above(path))]
    arrays = {name: child for name, child in children if isinstance(child, DatasetView)}
    paths = {name: join(path, name) for name in arrays}
    datasets = {
        name: _place(
            paths[name], shown, above, arrays.get("s0"), convention, _view(container, paths[name])
        )
        for name, shown in arrays.items()
    }
    alone = {name: placed for name, placed in datasets.items() if placed.dims == (name,)}
    for name, one in datasets.items():
        beside = {d: alone[d] for d in one.dims if d in alone and d != name}
        fitting = {d: c for d, c in beside.items() if c.is_coordinate_of(d, one.sizes[d])}
        datasets[name] = replace(one, coordinates=fitting)
    placed = any(d.geometry and d.geometry.convention != "names" for d in datasets.values())
    return Layout(
        path=path,
        attributes=_without_levels(group.attributes) if placed else dict(group.attributes),
        datasets=datasets,
        groups={n: child for n, child in children if isinstance(child, GroupAttributes)},
        broken=tuple(child for _, child in children if isinstance(child, Broken)),
    )


def _without_levels(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    """Leave out the list of the levels, which the nodes of a tree say."""
    return {key: value for key, value in attributes.items() if key != "multiscales"}


def _place(
    path: str,
    shown: DatasetView,
    above: Sequence[Mapping[str, JSON]],
    first: DatasetView | None,
    convention: str | None,
    view: View | None = None,
) -> Placed:
    names = tuple(path.split("/")) if path else ()
    node = Node(
        path=names,
        dimensions=present(shown.shape, shown.axis_order),
        attributes=shown.dataset.attributes,
        ancestors=above,
        first_level=None if first is None else first.dataset.dimensions,
        first_attributes={} if first is None else first.dataset.attributes,
        view=view,
        given_names=_given_names(shown),
    )
    geometry, problems = find_geometry(node, convention)
    axes = () if geometry is None else present(geometry.axes, shown.axis_order)
    placed = () if geometry is None else present(geometry.is_placed, shown.axis_order)
    names_given: Sequence[str | None] = [axis.name for axis in axes]
    if geometry is None or geometry.convention == "names":
        # the record knows better, unless an attribute names axes that Zarr was given no names for
        names_given = shown.dimension_names or names_given or (None,) * shown.ndim
    dims = _distinct(names_given)
    return Placed(
        path=path,
        shown=shown,
        dims=dims,
        axes={
            dim: axis for dim, axis, is_placed in zip(dims, axes, placed, strict=False) if is_placed
        },
        geometry=geometry,
        problems=problems,
        coordinates={},
    )


def _given_names(shown: DatasetView) -> tuple[str, ...] | None:
    """Give the recorded names of the dimensions in N5 order; None where none are recorded."""
    if shown.record.dimension_names is None or shown.dimension_names is None:
        return None
    return present(tuple(name or "" for name in shown.dimension_names), shown.axis_order)


def _distinct(names: Sequence[str | None]) -> tuple[str, ...]:
    """Name every dimension, each differently and so that it can be a path element.

    Examples
    --------
    >>> _distinct(["x", None, "x", "a/b"])
    ('x', 'dim_1', 'dim_2', 'dim_3')
    """
    found: list[str] = []
    for i, name in enumerate(names):
        usable = name not in (None, "", ".", "..", *found) and "/" not in str(name)
        found.append(name if name and usable else f"dim_{i}")
    return tuple(found)


def _view(container: Container, path: str, description: Description | None = None) -> View | None:
    """Find what the XML says of the view that a level belongs to."""
    names = tuple(path.split("/"))
    numbers = view_of(names)
    root: Path | None = getattr(container, "root", None)
    if numbers is not None and description is None and root is not None:
        description = find_xml(root.joinpath(*names[:-3]), root)
    return None if numbers is None or description is None else description.view(*numbers)


def find_xml(container: Path, root: Path) -> Description | None:
    """Find BigDataViewer's XML: beside the setups, or above them up to beside the container.

    Parameters
    ----------
    container : Path
        The directory of the setups.
    root : Path
        That of the container.
    """
    for folder in (container, *container.parents):
        for xml in sorted(folder.glob("*.xml")):
            try:
                found = parse_xml(xml.read_bytes())
            except OSError:  # a directory, a broken link, not ours to read
                continue
            if found is not None and (folder / found.location).resolve() == container.resolve():
                return found
        if folder == root.parent:
            break
    return None
