"""``n5zarr.compare``: find the differences between two arrays, groups or containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import zarr
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr.arrays.opening import open_array
from n5zarr.container.axes import read_placed
from n5zarr.container.memory import Node
from n5zarr.container.node_names import Broken
from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY
from n5zarr.conventions.zarr_order import in_order_of_zarr
from n5zarr.errors import N5FormatError, N5UnrepresentableError
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import strict
from n5zarr.images.find import images_in
from n5zarr.images.from_n5 import n5_tree
from n5zarr.metadata.geometry import described
from n5zarr.shown.java_zarr import JavaZarrStore, in_own_store, zarr_documents
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.store.locating import Located, locate
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.diff.images import compare_images
from n5zarr.tools.diff.model import Comparison, Difference, Found
from n5zarr.tools.jobs.reports import Reported, recorded
from n5zarr.tools.jobs.run import Progress, RunOptions, Scheduler
from n5zarr.zarr_view.dataset_view import DatasetView

_PLAIN = "zarr"  # without metadata of images


@recorded("diff", "first", "second")
def compare(  # noqa: PLR0913 - what all long runs take, and what is compared
    first: Location | AnyArray | zarr.Group,
    second: Location | AnyArray | zarr.Group,
    *,
    attributes: bool = True,
    values: bool = True,
    tolerance: float = 0,
    images: bool | None = None,
    report: Reported = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two arrays, groups or containers, of N5 or Zarr, or their images.

    Compares names of nodes, shapes, data types, axes, attributes and values, but not format, chunks
    and compression. A missing block equals the fill value, NaN equals NaN. Of two N5, compares
    positions in any convention; between N5 and Zarr, their lists may have the order of either.
    Images: their levels, axes by name, positions within a thousandth of an element, and values.

    Parameters
    ----------
    first, second : path, URL, zarr store, zarr.Array or zarr.Group
        A container or Zarr hierarchy, a location in one, or the XML of a project.
    attributes : bool, optional
        Whether to compare attributes.
    values : bool, optional
        Whether to compare values.
    tolerance : float, optional
        Ignore absolute differences of numbers up to this value.
    images : bool, optional
        Compare images level by level, not nodes. Default: for N5 with OME-Zarr, and for projects.
    report : path, optional
        Write ``*.json``: differences, and each pair of arrays with its SHA-256.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    scheduler, n_workers, progress : optional
        See :func:`~n5zarr.tools.jobs.run.run_tasks`.

    Returns
    -------
    Comparison
        The differences.

    Raises
    ------
    FileNotFoundError, N5Error
        A node does not exist; a node or a block is broken or not supported.

    Examples
    --------
    >>> import n5zarr
    >>> sample = n5zarr.sample_path()
    >>> n5zarr.compare(f"{sample}/em", f"{sample}/em").is_equal
    True
    >>> [d.what for d in n5zarr.compare(f"{sample}/em/s0", f"{sample}/em/s1").differences]
    ['shape', 'axes', 'axes', 'attribute', 'attribute', 'attribute']
    """
    places = [place_of(x, storage_options, backend, one_of_two=True) for x in (first, second)]
    with asking_once():
        sides = map(_open_side, (first, second), places)  # only read if they are compared
        found = _images(places, wanted=images) or _nodes(sides, attributes=attributes)
    if not values:
        found.pairs.clear()
    return found.compared(RunOptions(scheduler, n_workers, progress), tolerance)


def _nodes(sides: Iterable[_Side], *, attributes: bool) -> Found:
    found = _Walk(with_attributes=attributes)
    found.differences += found.nodes("", *sides)
    return found


def _images(places: Sequence[Place], *, wanted: bool | None) -> Found | None:
    """Compare images if they are wanted, or if the kinds of the places suggest it; else None."""
    told = [next(filter(place.is_named, ("bdv", "n5", "zarr")), None) for place in places]
    if wanted is None and told[0] == told[1] in ("n5", "zarr"):  # nothing is requested
        return None
    located = [locate(place) for place in places]
    if wanted is None:
        kinds = [_kind_of(each) for each in located]
        are_projects = all(each.document is not None for each in located)
        wanted = _PLAIN not in kinds and (kinds[0] != kinds[1] or are_projects)
    if not wanted:
        return None
    try:
        return compare_images(*(images_in(n5_tree(each), warns=False) for each in located))
    except N5UnrepresentableError as err:
        err.add_note("images=False (--no-images) compares nodes instead of images")
        raise


def _kind_of(located: Located) -> str:
    """Return the format at a location; N5 unless it is found to be Zarr without images."""
    if located.kind == "n5":
        try:
            existing_node(*located.open(writes=False))
        except N5FormatError as err:
            if err.kind != "foreign":
                raise
            return _PLAIN
    return located.kind


# ---------------------------------------------------------------------- sides


@dataclass(frozen=True, kw_only=True)
class _Side:
    """A group or an array, with its attributes and contents.

    Parameters
    ----------
    attributes : mapping
        The users' attributes.
    array : zarr.Array or None
        The array; None for a group.
    children : mapping
        The nodes of a group by name: sides, and errors of nodes that cannot be read.
    axes : mapping
        The known properties of the axes of an array, each a list in C order: ``names``, None if it
        has none, and in N5 ``units``, ``scale`` and ``translation``.
    is_reversed : bool
        Whether attributes list axes in another order than the array, as those of N5 do.
    """

    attributes: Mapping[str, JSON]
    array: AnyArray | None = None
    children: Mapping[str, _Side | Exception] = field(default_factory=dict)
    axes: Mapping[str, JSON] = field(default_factory=dict)
    is_reversed: bool = False

    @property
    def ndim(self) -> int:
        """Number of dimensions; of a group, the largest one below."""
        if self.array is not None:
            return self.array.ndim
        below = (side.ndim for side in self.children.values() if isinstance(side, _Side))
        return max(below, default=0)

    def own(self, *, as_zarr: bool = False) -> Mapping[str, JSON]:
        """Return the attributes without the names of axes, and with positions as Zarr has them."""
        own = self.attributes
        if as_zarr and self.is_reversed:
            own = in_order_of_zarr(own, self.ndim)
        return own if self.array is None else _without_names(own, self.ndim)


def _open_side(location: Location, place: Place) -> _Side:
    """Read the documents of a node and all nodes below it, but no blocks.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        The node.
    place : Place
        The same.

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    N5Error
        The node itself is broken or not supported, or a document of Zarr is (``kind="option"``).
    """
    if isinstance(location, zarr.Array | zarr.Group) and not isinstance(location.store, N5Store):
        return _side_of_zarr(location)
    # Zarr is compared as it is, not as N5
    store, path = locate(place, formats=["bdv"]).open(writes=False)
    try:
        return _side_of_n5(store, path, existing_node(store, path))
    except N5FormatError as err:
        if err.kind != "foreign":
            raise
    node = StorePath(JavaZarrStore(store.storage.store), path)
    with zarr_documents(join(str(store.storage), path)):
        return _side_of_zarr(zarr.open(node, mode="r"))


def _side_of_n5(store: N5Store, path: str, node: Node) -> _Side:
    is_reversed = store.axis_order == "C"
    if not isinstance(node, DatasetView):
        children: dict[str, _Side | Exception] = {
            name: child.error
            if isinstance(child, Broken)
            else _side_of_n5(store, join(path, name), child)
            for name, child in store.run(store.container.nodes.children(path))
        }
        return _Side(attributes=node.attributes, children=children, is_reversed=is_reversed)
    place = described(store.run(read_placed(store.container.nodes, path, node)))
    axes: dict[str, JSON] = {
        "names": _not_made_up(place.names),
        "units": list(place.units),
        "scale": list(place.scale),
        "translation": list(place.translation),
    }
    array = open_array(store, path=path)
    attributes = array.attrs.asdict()
    return _Side(attributes=attributes, array=array, axes=axes, is_reversed=is_reversed)


def _side_of_zarr(node: AnyArray | zarr.Group) -> _Side:
    attributes = node.attrs.asdict()
    if isinstance(node, zarr.Group):
        children: dict[str, _Side | Exception] = {n: _side_of_zarr(c) for n, c in node.members()}
        return _Side(attributes=attributes, children=children)
    # Zarr v2 has names of axes in an attribute of xarray
    names: Any = node.metadata.to_dict().get("dimension_names") or attributes.get(XARRAY_KEY)
    return _Side(
        attributes=attributes,
        array=zarr.Array(in_own_store(node.async_array)),
        axes={"names": _not_made_up(names) if isinstance(names, list | tuple) else None},
    )


def _not_made_up(names: Iterable[str | None]) -> JSON:
    """Return names without ``dim_0``, ``dim_1``, ..., as axes without names are called."""
    given = [None if name == f"dim_{n}" else name or None for n, name in enumerate(names)]
    return list(given) if any(given) else None


def _without_names(attributes: Mapping[str, Any], ndim: int) -> Mapping[str, Any]:
    """Leave out attributes that hold the names of axes: Zarr v3 has no such attributes."""
    return {
        key: value
        for key, value in attributes.items()
        if key not in (AXES_KEY, XARRAY_KEY)
        or not isinstance(value, list | tuple)
        or len(value) != ndim
    }


# ---------------------------------------------------------------------- differences


@dataclass
class _Walk(Found):
    """Compares documents, and collects the arrays whose values can be compared."""

    with_attributes: bool = True

    def nodes(self, path: str, a: _Side, b: _Side) -> Iterator[Difference]:
        """Yield the differences between two nodes, and all nodes below them."""
        if (a.array is None) != (b.array is None):
            yield Difference(path=path, what="kind", first=_kind(a), second=_kind(b))
            return
        if a.array is not None and b.array is not None:
            yield from self.arrays(path, a.array, b.array)
            yield from _axes(path, a.axes, b.axes)
        else:
            self.n_groups += 1
        if self.with_attributes:
            ways = [(a.own(), b.own())]
            if a.is_reversed != b.is_reversed:  # `convert` reverses lists, and zarr copies them
                ways.append((a.own(as_zarr=True), b.own(as_zarr=True)))
            yield from min((list(_attributes(path, *way)) for way in ways), key=len)
        for name in sorted({*a.children, *b.children}):
            yield from self._children(join(path, name), a.children.get(name), b.children.get(name))

    def _children(
        self, path: str, a: _Side | Exception | None, b: _Side | Exception | None
    ) -> Iterator[Difference]:
        errors = [child for child in (a, b) if isinstance(child, Exception)]
        self.problems += errors
        if isinstance(a, _Side) and isinstance(b, _Side):
            yield from self.nodes(path, a, b)
        elif a is None or b is None:
            yield Difference(path=path, what="missing", first=_kind(a), second=_kind(b))


def _kind(side: _Side | Exception | None) -> str | None:
    if side is None:
        return None
    if isinstance(side, Exception):
        return "unreadable"
    return "group" if side.array is None else "array"


def _axes(path: str, a: Mapping[str, JSON], b: Mapping[str, JSON]) -> Iterator[Difference]:
    """Yield the differences of axes; between N5 and Zarr only those that both sides describe."""
    for key in a if a.keys() == b.keys() else sorted(a.keys() & b.keys()):
        is_said = a.keys() == b.keys() or None not in (a[key], b[key])
        if is_said and a[key] != b[key]:
            yield Difference(path=path, what="axes", key=key, first=a[key], second=b[key])


def _attributes(
    path: str, a: Mapping[str, JSON], b: Mapping[str, JSON], above: str = ""
) -> Iterator[Difference]:
    """Yield the differences between attributes; objects are compared member by member."""
    for key in sorted({*a, *b}):
        one, two = a.get(key), b.get(key)
        name = above + key.replace("/", "\\/")
        if isinstance(one, dict) and isinstance(two, dict):
            yield from _attributes(path, one, two, f"{name}/")
        elif key not in a or key not in b or not _is_same(strict(one), strict(two)):
            yield Difference(path=path, what="attribute", key=name, first=one, second=two)


def _is_same(a: JSON, b: JSON) -> bool:
    """Whether two values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return a == b
