"""Give arrays and groups of OME-Zarr the names and attributes of N5.

Images become levels ``s0``, ``s1``, ..., with attributes of N5, see
:mod:`n5zarr.images.ome_documents`. Groups, ``labels`` among them, and other arrays keep their
paths. Each further image of a group becomes a group in it, ``image2`` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from n5zarr.container.options import require
from n5zarr.conventions.model import MisfitError
from n5zarr.errors import ErrorsAt, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c
from n5zarr.format.path import join
from n5zarr.images.ome_documents import (
    OmeLevel,
    as_05,
    describe_image,
    images_of,
    level_paths,
    read_levels,
)
from n5zarr.images.ome_rules import warn_of_levels
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.ome_zarr.scene import in_scenes


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
        levels_of_all: dict[str, tuple[str, ArraySource]] = {}  # old path and array by new path
        placed_groups = in_scenes(tree).groups
        groups = dict(placed_groups)
        for group, attributes in placed_groups.items():
            for name, image in images_of(attributes).items():
                levels = _ome_levels(group, image, tree.arrays)
                if not levels:
                    continue
                at = join(group, name)
                require(
                    not name or not {at} & (tree.groups.keys() | tree.arrays.keys()),
                    f"{at}: expected a free name for an image of {group or '/'}; rename the node",
                )
                own_arrays = {join(group, level.path) for level in levels.values()}
                above = f"{group}/" if group else ""
                is_alone = all(p in own_arrays for p in tree.arrays if p.startswith(above))
                own = {"multiscales": [dict(image)]} if name else attributes
                groups[at] = describe_image(own, at, levels, is_alone=is_alone or bool(name))
                for level in levels.values():
                    path = join(group, level.path)
                    array = tree.arrays[path]
                    placed = replace(
                        array,
                        dimension_names=to_c([axis.name for axis in level.axes]),
                        attributes={
                            **array.attributes,
                            **level.written.on_dataset(array.attributes),
                        },
                    )
                    levels_of_all[join(at, level.name)] = path, placed
        if not levels_of_all:
            return tree
        taken = {old for old, _ in levels_of_all.values()}
        others = {path: array for path, array in tree.arrays.items() if path not in taken}
        if clashes := sorted(others.keys() & levels_of_all.keys()):
            raise option_error(
                f"{clashes[0]}: expected a name that no level needs, got that of "
                f"{levels_of_all[clashes[0]][0]} in N5; rename it first"
            )
        return replace(
            tree,
            arrays={new: array for new, (_, array) in levels_of_all.items()} | others,
            groups=dict(sorted(groups.items())),
        )


def _ome_levels(
    group: str, image: Mapping[str, JSON], arrays: Mapping[str, ArraySource]
) -> dict[int, OmeLevel]:
    """Read the axes of the existing levels of an image, by number."""
    try:
        paths = {path: join(group, path) for path in level_paths(image)}
        levels = {path: arrays[full] for path, full in paths.items() if full in arrays}
        warn_of_levels(group or "/", as_05(image, 0), levels)
        return read_levels(image, {path: level.shape for path, level in levels.items()})
    except MisfitError as err:
        raise option_error(f"{group or '/'}: {err}") from err
