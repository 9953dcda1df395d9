"""``n5zarr.compare``: find the differences between two arrays, groups or containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from n5zarr.format.path import join
from n5zarr.storage.asking_once import asking_once
from n5zarr.tools.diff.arrays import ArrayDifference, compare_each
from n5zarr.tools.diff.sides import Side, open_side
from n5zarr.tools.jobs.run import RunOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import zarr
    from zarr.types import AnyArray

    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location
    from n5zarr.tools.jobs.run import Progress, Scheduler

__all__ = ["Comparison", "Difference", "compare"]

type What = Literal["missing", "kind", "shape", "data-type", "axes", "attribute", "values"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between two nodes.

    Parameters
    ----------
    path : str
        Path of the node below the compared nodes; ``""`` for the nodes themselves.
    what : str
        ``"missing"``: the node exists on one side only. ``"kind"``: one is a group, the other an
        array. For arrays also ``"shape"``, ``"data-type"``, ``"axes"``, ``"values"``; for groups
        and arrays ``"attribute"``.
    key : str
        Java's path of the attribute, or the property of the axes that differs; otherwise empty.
    first, second : JSON
        The values on both sides; None if there is none. Shapes are in C order.
    values : ArrayDifference or None
        How the values differ.
    """

    path: str
    what: What
    key: str = ""
    first: JSON = None
    second: JSON = None
    values: ArrayDifference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of :func:`compare`.

    Parameters
    ----------
    n_groups, n_arrays : int
        Numbers of groups and arrays that exist on both sides.
    n_elements : int
        Number of elements whose values were compared.
    differences : tuple of Difference
        The differences; differences of values come last.
    problems : tuple of Exception
        Errors of nodes that could not be read, and so were not compared.
    """

    n_groups: int
    n_arrays: int
    n_elements: int
    differences: tuple[Difference, ...]
    problems: tuple[Exception, ...]

    @property
    def is_equal(self) -> bool:
        """Whether all nodes could be compared, and nothing differs."""
        return not self.differences and not self.problems


def compare(  # noqa: PLR0913 - what all long runs take, and what is compared
    first: Location | AnyArray | zarr.Group,
    second: Location | AnyArray | zarr.Group,
    *,
    attributes: bool = True,
    values: bool = True,
    tolerance: float = 0,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two arrays, groups or containers, of N5 or Zarr.

    Compares names of nodes, shapes, data types, axes, attributes and values, but not format, chunks
    and compression. A missing block equals the fill value, NaN equals NaN. Of two N5, compares
    positions in any convention; between N5 and Zarr, their lists may have the order of either.

    Parameters
    ----------
    first, second : path, URL, zarr store, zarr.Array or zarr.Group
        A container or Zarr hierarchy, or a location in one.
    attributes : bool, optional
        Whether to compare attributes.
    values : bool, optional
        Whether to compare values.
    tolerance : float, optional
        Ignore absolute differences of numbers up to this value.
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
    with asking_once():
        sides = [open_side(side, storage_options, backend) for side in (first, second)]
    walk = _Walk(with_attributes=attributes)
    differences = list(walk.nodes("", *sides))
    pairs = walk.pairs if values else []
    run = RunOptions(scheduler, n_workers, progress)
    found = compare_each([(a, b) for _, a, b in pairs], run, tolerance)
    differences += [
        Difference(path=path, what="values", values=difference)
        for (path, _, _), difference in zip(pairs, found, strict=True)
        if difference is not None
    ]
    return Comparison(
        n_groups=walk.n_groups,
        n_arrays=walk.n_arrays,
        n_elements=sum(a.size for _, a, _ in pairs),
        differences=tuple(differences),
        problems=tuple(walk.problems),
    )


class _Walk:
    """Compares documents, and collects the arrays whose values can be compared."""

    def __init__(self, *, with_attributes: bool) -> None:
        self._with_attributes = with_attributes
        self.n_groups = self.n_arrays = 0
        self.pairs: list[tuple[str, AnyArray, AnyArray]] = []
        self.problems: list[Exception] = []

    def nodes(self, path: str, a: Side, b: Side) -> Iterator[Difference]:
        """Yield the differences between two nodes, and all nodes below them."""
        if (a.array is None) != (b.array is None):
            yield Difference(path=path, what="kind", first=_kind(a), second=_kind(b))
            return
        if a.array is not None and b.array is not None:
            self.n_arrays += 1
            yield from self._arrays(path, a.array, b.array)
            yield from _axes(path, a.axes, b.axes)
        else:
            self.n_groups += 1
        if self._with_attributes:
            ways = [(a.own(), b.own())]
            if a.is_reversed != b.is_reversed:  # `convert` reverses lists, and zarr copies them
                ways.append((a.own(as_zarr=True), b.own(as_zarr=True)))
            yield from min((list(_attributes(path, *way)) for way in ways), key=len)
        for name in sorted({*a.children, *b.children}):
            yield from self._children(join(path, name), a.children.get(name), b.children.get(name))

    def _children(
        self, path: str, a: Side | Exception | None, b: Side | Exception | None
    ) -> Iterator[Difference]:
        errors = [child for child in (a, b) if isinstance(child, Exception)]
        self.problems += errors
        if isinstance(a, Side) and isinstance(b, Side):
            yield from self.nodes(path, a, b)
        elif a is None or b is None:
            yield Difference(path=path, what="missing", first=_kind(a), second=_kind(b))

    def _arrays(self, path: str, a: AnyArray, b: AnyArray) -> Iterator[Difference]:
        types = str(_native(a.dtype)), str(_native(b.dtype))
        if types[0] != types[1]:
            yield Difference(path=path, what="data-type", first=types[0], second=types[1])
        if a.shape == b.shape:
            self.pairs.append((path, a, b))
        else:
            yield Difference(path=path, what="shape", first=list(a.shape), second=list(b.shape))


def _kind(side: Side | Exception | None) -> str | None:
    if side is None:
        return None
    if isinstance(side, Exception):
        return "unreadable"
    return "group" if side.array is None else "array"


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a data type in native byte order; formats store different byte orders."""
    return np.dtype(dtype).newbyteorder("=")


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
        elif key not in a or key not in b or not _is_same(one, two):
            yield Difference(path=path, what="attribute", key=name, first=one, second=two)


def _is_same(a: JSON, b: JSON) -> bool:
    """Whether two values are equal: 1 and 1.0 are, 1 and true are not, NaN and NaN are."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return a == b or (a != a and b != b)  # noqa: PLR0124 - NaN
