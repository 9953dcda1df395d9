"""``n5zarr.geometry``: names, units, scale and translation of a dataset or of all its levels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import zarr
from zarr.types import AnyArray

from n5zarr.container.axes import GroupLayout, Placed, read_layout, read_placed
from n5zarr.errors import ErrorsAt, N5Warning, option_error
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.order import AxisOrder
from n5zarr.metadata.levels import as_image, names_of_levels
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import check_group, existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView


@dataclass(frozen=True, kw_only=True)
class ArrayGeometry:
    """The positions of an array's elements: one value for each axis, in the order of the array.

    The centre of element ``i`` is at ``scale * i + translation``.

    Parameters
    ----------
    path : str
        Path of the dataset, below the root of the container.
    shape : tuple of int
        Extent in elements.
    names : tuple of str
        Names of the axes; ``dim_0`` and so on for axes without a name.
    units : tuple of str or None
        Units as written in the attributes.
    scale, translation : tuple of float
        Distance between elements and position of the first one, in ``units``; 1 and 0 for an axis
        without positions.
    convention : str or None
        Name of the convention that the attributes follow; None if there are no such attributes.
    levels : tuple of ArrayGeometry, optional
        All levels of a pyramid, the finest first, if the node is a group.
    """

    path: str
    shape: tuple[int, ...]
    names: tuple[str, ...]
    units: tuple[str | None, ...]
    scale: tuple[float, ...]
    translation: tuple[float, ...]
    convention: str | None
    levels: tuple[ArrayGeometry, ...] = ()


def geometry(
    location: Location | AnyArray | zarr.Group,
    path: str = "",
    *,
    axis_order: AxisOrder = "C",
    convention: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> ArrayGeometry:
    """Read names, units, scale and translation of the axes of a dataset.

    Parameters
    ----------
    location : path, URL, zarr store, zarr.Array or zarr.Group
        A container, a location in one, or an array or group of an :class:`~n5zarr.N5Store`.
    path : str, optional
        Node below ``location``: a dataset, or the group of a pyramid.
    axis_order : {"C", "F"}, optional
        Order of the axes, ``z, y, x`` or ``x, y, z``. Arrays and stores keep their own order.
    convention : str, optional
        The only convention to try.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    ArrayGeometry
        Geometry of the dataset; for a group, of its finest level, with ``levels``.

    Raises
    ------
    FileNotFoundError
        No node exists at this path.
    N5UnrepresentableError
        The group has no levels, or the array is not in an N5 container (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> found = n5zarr.geometry(n5zarr.sample_path(), "em")
    >>> found.names, found.units, found.scale
    (('z', 'y', 'x'), ('nm', 'nm', 'nm'), (20.0, 8.0, 8.0))
    >>> [level.scale for level in found.levels]
    [(20.0, 8.0, 8.0), (40.0, 16.0, 16.0), (80.0, 32.0, 32.0)]
    """
    with asking_once():
        store, inner = store_and_path(location, path, axis_order, storage_options, backend)
        placed = placed_datasets(store, inner, convention)
        warn_of_problems(store, placed)
    levels = tuple(map(described, placed))
    if levels[0].path == inner:
        return levels[0]
    return replace(levels[0], levels=levels)


def store_and_path(
    node: Location | AnyArray | zarr.Group,
    path: str,
    axis_order: AxisOrder,
    storage_options: Mapping[str, object] | None,
    backend: Backend | None,
) -> tuple[N5Store, str]:
    """Open the container of a location or an array, as Zarr v3; also return the path of the node.

    Raises
    ------
    N5UnrepresentableError
        The array is not in a container (``kind="option"``).
    """
    place = place_of(node, storage_options, backend)
    if isinstance(node, zarr.Array | zarr.Group):
        store = node.store
        if not isinstance(store, N5Store) or store.coords:
            raise option_error(
                f"location: expected an array or a group of an N5Store, got one of {store!r}"
            )
    store, inner = open_container(place, path, axis_order=axis_order)
    return store.showing(3), inner


def placed_datasets(store: N5Store, path: str, convention: str | None = None) -> list[Placed]:
    """Return a dataset, or the levels of a group, the finest first; see :func:`placed_levels`."""
    found = existing_node(store, path, "a dataset or a group of levels")
    if isinstance(found, DatasetView):
        return [store.run(read_placed(store.container.nodes, path, found, convention))]
    return placed_levels(store, path, convention)


def warn_of_problems(store: N5Store, placed: Sequence[Placed], *, stacklevel: int = 3) -> None:
    """Warn once of each problem for which axis metadata were ignored."""
    where: dict[str, list[str]] = {}
    for each in placed:
        for problem in each.problems:
            where.setdefault(problem, []).append(each.path or "/")
    for problem, paths in where.items():
        is_long = len(paths) > 3
        place = f"{paths[0]} and {len(paths) - 1} others" if is_long else ", ".join(paths)
        warnings.warn(f"{store}: {place}: {problem}", N5Warning, stacklevel=stacklevel)


def described(placed: Placed) -> ArrayGeometry:
    """Return the positions of a dataset's elements as plain values."""
    axes = [placed.axes.get(dim) for dim in placed.dims]
    return ArrayGeometry(
        path=placed.path,
        shape=placed.view.shape,
        names=placed.dims,
        units=tuple(None if axis is None else axis.unit for axis in axes),
        scale=tuple(1.0 if axis is None else axis.scale for axis in axes),
        translation=tuple(0.0 if axis is None else axis.translation for axis in axes),
        convention=None if placed.geometry is None else placed.geometry.convention,
    )


def placed_levels(store: N5Store, path: str, convention: str | None) -> list[Placed]:
    """Return the levels of a pyramid, the finest first.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        The group of the levels, or one of the levels.
    convention : str or None
        The only convention of axes to try.

    Raises
    ------
    FileNotFoundError
        No node exists at this path.
    N5UnrepresentableError
        The group has no levels; the message lists the groups in it. Or its datasets cannot be
        levels of one image (``kind="option"``).
    """
    group: object = existing_node(store, path, "a group of levels")
    if not isinstance(group, GroupAttributes):  # a level: use its group
        path = path.rpartition("/")[0]
        group = store.node(path)
    if not isinstance(group, GroupAttributes):  # a dataset at the root has none above it
        group = GroupAttributes(attributes={})
    layout = store.run(read_layout(store.container.nodes, path, group, convention))
    named = names_of_levels(layout.datasets, group.attributes)
    levels = {name: layout.datasets[name] for name in named or layout.datasets}
    if not levels:
        check_group(store, path)
    if not levels or (not named and not _may_be_levels(layout)):
        below = ", ".join(layout.groups) or "none"
        raise option_error(
            f"{store}: /{path}: expected datasets that are levels of one image, got "
            f"{', '.join(layout.datasets) or 'none'}; groups in it: {below}"
        )
    with ErrorsAt(str(store)):
        return list(as_image(levels, by_shape=bool(named)).values())


def _may_be_levels(layout: GroupLayout) -> bool:
    """Whether datasets with any names differ in size, and not in the names of their axes."""
    levels = [*layout.datasets.values()]
    if len({placed.view.ndim for placed in levels}) > 1:
        return False
    named = (
        [d for d in dims if d is not None] for dims in zip(*map(_given_names, levels), strict=True)
    )
    if any(len(set(names)) > 1 for names in named):
        return False
    return not layout.agrees or len({placed.view.shape for placed in levels}) > 1


def _given_names(placed: Placed) -> list[str | None]:
    """Return the names of the axes; None for each that n5zarr made up."""
    return [None if dim in placed.made_up else dim for dim in placed.dims]
