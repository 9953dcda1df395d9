"""Sources as OME-Zarr, or from OME-Zarr: the same arrays under other paths, with other attributes.

Presents time points that become one array, and axes in another order, as arrays.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from zarr.storage import StorePath

from n5zarr._zarr_private import ArrayV3Metadata
from n5zarr.conventions.bdv import view_of
from n5zarr.conventions.model import first_of, mapping
from n5zarr.errors import ErrorsAt, N5UnrepresentableError, N5Warning
from n5zarr.format.path import join
from n5zarr.store.bdv_xml import read_settings
from n5zarr.tools.convert.ome_bdv import plan_bdv
from n5zarr.tools.convert.ome_plan import plan_ome
from n5zarr.tools.convert.ome_read import plan_from_ome
from n5zarr.tools.convert.ome_xml import METADATA_XML, SeriesImage, ome_xml
from n5zarr.tools.convert.stacked_store import StackedStore
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.boxes import StoredChunks
from n5zarr.tools.jobs.stored import stored_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt
    from zarr.types import AnyArray

    from n5zarr.tools.convert.plans import ArrayPlan, Plan
    from n5zarr.tools.convert.source import ArraySource, SourceTree, Values
    from n5zarr.tools.convert.target import Destination
    from n5zarr.tools.jobs.boxes import Box

__all__ = ["as_ome", "as_wanted", "from_ome"]


def as_wanted(
    tree: SourceTree, target: Destination, *, ome: bool, labels: Sequence[str] = ()
) -> SourceTree:
    """Present a source for the destination: as OME-Zarr, from OME-Zarr, or unchanged.

    Parameters
    ----------
    tree : SourceTree
        The source.
    target : Destination
        The destination: in N5, images of OME-Zarr get N5's attributes.
    ome : bool
        Whether OME-Zarr is written.
    labels : sequence of str, optional
        Patterns of paths of images whose elements are labels.

    Raises
    ------
    N5UnrepresentableError
        ``ome`` is for N5 as source (``kind="option"``).
    """
    if isinstance(target, N5Destination) and not ome:
        return from_ome(tree) if tree.container is None else tree
    if not ome:
        return tree
    return as_ome(tree, labels=labels)


def as_ome(tree: SourceTree, *, labels: Sequence[str] = ()) -> SourceTree:
    """Present an N5 source as OME-Zarr 0.5.

    Parameters
    ----------
    tree : SourceTree
        The source; nodes that it omits are omitted.
    labels : sequence of str, optional
        Patterns of paths of images whose elements are labels.

    Raises
    ------
    N5UnrepresentableError
        The source is not N5, or has no image that OME-Zarr can express (``kind="option"``).
    """
    if tree.container is None:
        message = f"{tree.name}: ome=True (--ome): expected N5 as the source of OME-Zarr"
        raise N5UnrepresentableError(message, kind="option")
    project = tree.project
    plan = None
    if any(view_of(tuple(path.split("/"))) for path in tree.arrays):
        plan = plan_bdv(
            tree.container,
            tree.path,
            only=tree.arrays.keys(),
            description=None if project is None else project.description,
            settings=None if project is None else read_settings(project),
        )
    if plan is None:
        plan = plan_ome(
            tree.container,
            tree.path,
            labels=labels,
            arrays=tree.arrays.keys(),
            groups=tree.groups.keys(),
        )
    for note in _once(plan.notes):
        warnings.warn(f"{tree.name}: {note}", N5Warning, stacklevel=4)
    return _described(_applied(tree, plan))


def _once(notes: Sequence[str]) -> Iterator[str]:
    """Join equal notes about several datasets into one."""
    where: dict[str, list[str]] = {}
    for note in notes:
        path, _, what = note.partition(": ")
        where.setdefault(what, []).append(path)
    for what, (first, *others) in where.items():
        more = f" and {len(others)} other{'s' * (len(others) > 1)}" if others else ""
        yield f"{first}{more}: {what}"


def from_ome(tree: SourceTree) -> SourceTree:
    """Present OME-Zarr with N5's attributes; return a source without images unchanged.

    Raises
    ------
    N5UnrepresentableError
        ``multiscales`` does not fit the arrays (``kind="option"``).
    """
    with ErrorsAt(tree.name):
        plan = plan_from_ome(tree.arrays, tree.groups)
    return tree if plan is None else _applied(tree, plan)


def _applied(tree: SourceTree, plan: Plan) -> SourceTree:
    arrays = {}
    for planned in plan.arrays:
        sources = [None if path is None else tree.arrays.get(path) for path in planned.sources]
        if any(sources):
            arrays[planned.destination] = _array(planned, sources)
    return replace(tree, arrays=arrays, groups=plan.groups)


def _described(tree: SourceTree) -> SourceTree:
    """Add the description of a collection of images, if OME can express it."""
    series = mapping(tree.groups.get("OME", {}).get("ome")).get("series")
    images = []
    for path in map(str, series if isinstance(series, list) else ()):
        ome = mapping(tree.groups[path].get("ome"))
        finest = first_of(first_of(ome.get("multiscales")).get("datasets"))
        level = tree.arrays[join(path, str(finest["path"]))]
        images.append(SeriesImage(path, ome, level.shape, level.native_dtype))
    xml = ome_xml(images) if images else None
    return tree if xml is None else replace(tree, files={METADATA_XML: xml})


def _array(planned: ArrayPlan, sources: Sequence[ArraySource | None]) -> ArraySource:
    first = next(source for source in sources if source is not None)
    found = first
    if planned.is_stacked:
        found = replace(
            first,
            values=_Stacked(tuple(None if s is None else s.values for s in sources), first.values),
            chunks=(1, *first.chunks),
            encoded=_stacked_chunks([None if s is None else s.encoded for s in sources]),
            blocks=None,
        )
    elif planned.order is not None:
        found = replace(
            first,
            values=_Reordered(first.values, planned.order),
            chunks=tuple(first.chunks[i] for i in planned.order),
            encoded=None,
            blocks=None,
        )
    return replace(found, attributes=planned.attributes, dimension_names=planned.dimension_names)


@dataclass(frozen=True, eq=False)
class _Reordered:
    """An array with its axes in another order."""

    values: Values
    order: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[i] for i in self.order)

    def __getitem__(self, box: Box) -> npt.NDArray[Any]:
        own: list[slice] = [slice(0)] * len(box)
        for part, axis in zip(box, self.order, strict=True):
            own[axis] = part
        return np.asarray(self.values[tuple(own)]).transpose(self.order)

    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks | None:
        order = list(self.order)
        own = None if within is None else [within[order.index(i)] for i in range(len(order))]
        found = stored_chunks(self.values, own)
        if found is None:
            return None
        unit = tuple(found.unit[axis] for axis in order)
        return StoredChunks(unit, (rows[:, order] for rows in found.rows))


@dataclass(frozen=True, eq=False)
class _Stacked:
    """Arrays of one shape along a new first axis; those that are missing are 0."""

    each: tuple[Values | None, ...]
    like: Values

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.each), *self.like.shape)

    def __getitem__(self, box: Box) -> npt.NDArray[Any]:
        chosen = self.each[box[0]]
        inner = box[1:]
        parts = [None if values is None else np.asarray(values[inner]) for values in chosen]
        some = next((part for part in parts if part is not None), None)
        if some is None:
            some = np.asarray(self.like[inner])
        empty = np.zeros_like(some)
        return np.stack([empty if part is None else part for part in parts])

    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks | None:
        chosen = range(len(self.each)) if within is None else range(len(self.each))[within[0]]
        found: list[tuple[int, StoredChunks]] = []
        for number in chosen:
            values = self.each[number]
            if values is not None:
                own = stored_chunks(values, within and within[1:])
                if own is None or own.unit != (found[0][1].unit if found else own.unit):
                    return None
                found.append((number, own))
        unit = (1, *(found[0][1].unit if found else self.like.shape))
        return StoredChunks(unit, (_below(n, rows) for n, own in found for rows in own.rows))


def _below(number: int, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Prepend a position along a new first axis."""
    return np.concatenate([np.full((len(rows), 1), number), rows], axis=1)


def _stacked_chunks(each: Sequence[AnyArray | None]) -> AnyArray | None:
    """Return an array whose chunks are those of arrays, so that they can be passed through."""
    first = next((array for array in each if array is not None), None)
    if first is None or first.metadata.zarr_format != 3:
        return None
    if len({_codecs(array) for array in each if array is not None}) > 1:
        return None
    document: Any = first.metadata.to_dict()
    grid = {"name": "regular", "configuration": {"chunk_shape": [1, *first.chunks]}}
    document |= {
        "shape": [len(each), *first.shape],
        "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "dimension_names": None,
        "attributes": {},
    }
    where = StorePath(StackedStore(tuple(each)))
    found: Any = zarr.AsyncArray(metadata=ArrayV3Metadata.from_dict(document), store_path=where)
    return zarr.Array(found)


def _codecs(array: AnyArray) -> str:
    metadata: Any = array.metadata.to_dict()
    return str((metadata["codecs"], metadata["data_type"], metadata["chunk_grid"]))
