"""Make label sources of Paintera from arrays of integers: names, attributes and the largest label.

As paintera-conversion-helper 4c10b82 does (``DatasetConverterLabel``): a group with
``painteraData`` and ``maxId``, and the levels in its group ``data``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from n5zarr.arrays.boxes import BoxSlices, box_shape, boxes, least_box
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_boxes
from n5zarr.container.options import require
from n5zarr.container.walk import PathPatterns
from n5zarr.conventions.model import level_of
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_n5
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource, SourceTree, Values
from n5zarr.metadata.geometry import geometry
from n5zarr.paintera.label_multisets import largest_id
from n5zarr.tools.convert.target import Destination
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.run import RunOptions

_AT_ONCE = 2**22  # elements of a box that is searched for the largest label


def as_paintera(
    found: SourceTree,
    target: Destination,
    patterns: Sequence[str],
    options: RunOptions,
    *,
    is_read: bool,
) -> SourceTree:
    """Return a source with some of its arrays as label sources of Paintera.

    Parameters
    ----------
    found : SourceTree
        The source.
    target : Destination
        Where it is copied to.
    patterns : sequence of str
        Path patterns of the arrays; none leaves all as they are.
    options : RunOptions
        Where the arrays are searched for their largest label.
    is_read : bool
        Whether to search them.

    Raises
    ------
    N5UnrepresentableError
        No array matches, one is not of integers or is a coarser level, or the destination is not N5
        (``kind="option"``).
    """
    if not patterns:
        return found
    name = "paintera_labels (--paintera-labels)"
    require(isinstance(target, N5Destination), f"{name}: expected N5 as destination", str(target))
    wants = PathPatterns(patterns).wants
    chosen = {path: source for path, source in found.arrays.items() if not path or wants(path)}
    require(
        bool(chosen),
        f"{name}: expected patterns of arrays, such as {', '.join([*found.arrays][:3])}, got "
        f"{', '.join(patterns)}",
        found.name,
    )
    arrays = {path: source for path, source in found.arrays.items() if path not in chosen}
    groups = dict(found.groups)
    for path, source in chosen.items():
        base = _group_of(path, name, found)
        kind = source.native_dtype
        require(
            kind.kind in "iu" and not source.fill_value,
            f"{name}: expected integers with 0 as background, got {kind} with {source.fill_value}",
            source.name,
        )
        max_id = _largest(source, options) if is_read else 0
        groups[base] = {**groups.get(base, {}), "painteraData": {"type": "label"}, "maxId": max_id}
        data: dict[str, JSON] = {"multiScale": True, "isLabelMultiset": True, "maxId": max_id}
        groups[join(base, "data")] = data | _place(found, path, source)
        _check_free(join(base, "data/s0"), source, name, arrays)
        arrays[join(base, "data/s0")] = _as_multisets(source, max_id)
    # groups are no longer those of the container
    return replace(found, arrays=arrays, groups=groups, container=None)


def _group_of(path: str, name: str, found: SourceTree) -> str:
    """Return the path of a label source from that of an array, or of its finest level."""
    above, _, last = path.rpartition("/")
    level = level_of(last)
    require(
        level in (None, 0),
        f"{name}: expected the finest level s0, got {path}; level=0 (--level 0) copies s0 only, "
        "and n5zarr.build_pyramid makes the others",
        found.name,
    )
    if level is None:
        return path
    source, _, group = above.rpartition("/")
    return source if group == "data" else above


def _check_free(
    made: str, source: ArraySource, name: str, arrays: Mapping[str, ArraySource]
) -> None:
    """Raise if the copy of an array would take the place of another one, or lie inside of it."""
    taken = [p for p in arrays if f"{made}/".startswith(f"{p}/") or p.startswith(f"{made}/")]
    require(
        not taken,
        f"{name}: expected no other array at {made}, the place of the label source, got "
        f"{', '.join(taken)}; exclude one of them, or convert them one by one",
        source.name,
    )


def _as_multisets(source: ArraySource, max_id: int) -> ArraySource:
    """Return an array whose copy holds label multisets, unless it does itself."""
    if source.holds_multisets:
        return source
    attributes = {**source.attributes, "maxId": max_id}
    return replace(source, blocks=None, encoded=None, label_multiset=True, attributes=attributes)


def _place(found: SourceTree, path: str, source: ArraySource) -> dict[str, JSON]:
    """Return the attributes of the group ``data`` for resolution and offset, N5 order."""
    scale, translation = source.resolution, source.offset
    if found.container is not None:
        known = geometry(found.container, join(found.path, path), axis_order="C")
        scale, translation = known.scale, known.translation
    if scale is None:
        return {}
    offset = translation or [0.0] * len(scale)
    return {"resolution": [*to_n5(scale)], "offset": [*to_n5(offset)]}


class _Part(NamedTuple):
    """A box to be searched."""

    box: BoxSlices
    n_bytes: int = 0


def _largest_in(values: Values, part: _Part) -> int:
    return largest_id(read_on_host(values, part.box))


def _largest(source: ArraySource, options: RunOptions) -> int:
    """Search an array for its largest label."""
    sizes = source.shape, source.chunks, source.chunks
    step = box_shape(*sizes, _AT_ONCE)
    touched = stored_boxes(source.shape, (step, least_box(*sizes)), [source.values])
    parts = map(_Part, boxes(source.shape, step) if touched is None else touched)
    found = options.each(partial(_largest_in, source.values), parts, "largest label", 0)
    return max((largest for _, largest in found), default=0)
