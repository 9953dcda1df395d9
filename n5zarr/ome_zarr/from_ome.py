"""Give arrays and groups of OME-Zarr the names and attributes of N5.

Images become levels ``s0``, ``s1``, ..., with attributes of N5, see
:mod:`n5zarr.images.ome_documents`. Groups, ``labels`` among them, and other arrays keep their
paths.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.container.options import require
from n5zarr.conventions.model import MisfitError
from n5zarr.errors import ErrorsAt, N5Warning, option_error
from n5zarr.format.order import to_c
from n5zarr.format.path import join
from n5zarr.images.ome_documents import as_05, describe_image, image_in, level_paths, read_levels
from n5zarr.images.ome_draft import other_systems
from n5zarr.images.ome_rules import warn_of_levels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.ome_documents import OmeLevel
    from n5zarr.images.source import ArraySource, SourceTree

__all__ = ["from_ome"]


def from_ome(tree: SourceTree) -> SourceTree:
    """Return OME-Zarr with the names and attributes of N5; a source without images unchanged.

    Levels that are not among the arrays are omitted.

    Raises
    ------
    N5UnrepresentableError
        ``multiscales`` does not fit the arrays, or has other transforms than scales and
        translations, or the name of a level is taken (``kind="option"``).
    """
    with ErrorsAt(tree.name):
        levels_of_all: dict[str, tuple[str, ArraySource]] = {}  # new path and array by old path
        groups = dict(tree.groups)
        for group, attributes in tree.groups.items():
            image = image_in(attributes)
            levels = {} if image is None else _ome_levels(group, image, tree.arrays)
            if not levels:
                continue
            taken = {join(group, level.path) for level in levels.values()}
            above = f"{group}/" if group else ""
            is_alone = all(path in taken for path in tree.arrays if path.startswith(above))
            groups[group] = describe_image(attributes, group, levels, is_alone=is_alone)
            for level in levels.values():
                path = join(group, level.path)
                array = tree.arrays[path]
                own = level.written.on_dataset(array.attributes)
                placed = replace(
                    array,
                    dimension_names=to_c([axis.name for axis in level.axes]),
                    attributes={**array.attributes, **own},
                )
                levels_of_all[path] = join(group, level.name), placed
        if not levels_of_all:
            return tree
        others = {p: (p, array) for p, array in tree.arrays.items() if p not in levels_of_all}
        found: dict[str, ArraySource] = {}
        origins: dict[str, str] = {}
        for old, (new, array) in (levels_of_all | others).items():
            require(
                origins.setdefault(new, old) == old,
                f"{old}: expected a name that no level needs, got {new}, the path of "
                f"{origins[new]} in N5; rename it first",
            )
            found[new] = array
        return replace(tree, arrays=found, groups=dict(sorted(groups.items())))


def _ome_levels(
    group: str, image: Mapping[str, JSON], arrays: Mapping[str, ArraySource]
) -> dict[int, OmeLevel]:
    """Read the axes of the existing levels of an image, by number."""
    try:
        for system in other_systems(image):
            warnings.warn(
                f"{group or '/'}: the transform to {system!r} is omitted, as N5 has no place for "
                "it",
                N5Warning,
                stacklevel=3,
            )
        paths = {path: join(group, path) for path in level_paths(image)}
        levels = {path: arrays[full] for path, full in paths.items() if full in arrays}
        warn_of_levels(group or "/", as_05(image, 0), levels)
        return read_levels(image, {path: level.shape for path, level in levels.items()})
    except MisfitError as err:
        raise option_error(f"{group or '/'}: {err}") from err
