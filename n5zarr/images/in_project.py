"""Describe each view of a project as an OME-Zarr image, as BigStitcher writes them.

multiview-reconstruction 8.0 ``N5ApiTools.setupBdvDatasetsOMEZARR``: an image with the axes t, c, z,
y, x for each view, with levels named 0, 1, .... Its scale is the voxel size: the XML has the
registrations. ``AllenOMEZarrProperties``: a level is named by its place in the list, and the first
one in it is full resolution; the list of the first time point is that of all. So levels without an
array, of a pyramid that is stored in part, are listed, too, if any time point has coarser ones.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.bdv import read
from n5zarr.conventions.bdv_write import view_image
from n5zarr.conventions.describe import describe_setup
from n5zarr.conventions.model import Axis, MisfitError, Node, downsampling_factors
from n5zarr.errors import option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.order import N5Tuple, present
from n5zarr.format.path import join
from n5zarr.images.in_bdv import images_of_setups, name_of, placed_levels, space_axes
from n5zarr.images.ome import align_axes
from n5zarr.images.stacked import stacked
from n5zarr.store.bdv_views import described_views, find_views, ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.conventions.bdv import Description
    from n5zarr.conventions.bdv_registrations import View
    from n5zarr.images.image import Image, Images
    from n5zarr.images.source import ArraySource, SourceTree
    from n5zarr.store.n5_store import N5Store

    type Level = tuple[ArraySource | None, Sequence[Axis]]

__all__ = ["image_of_view", "project_images", "with_setups"]

_BEFORE = (Axis(name="t", type="time"), Axis(name="c", type="channel"))


def project_images(tree: SourceTree) -> Images:
    """Describe the views of a project.

    Parameters
    ----------
    tree : SourceTree
        The arrays of a project, in N5 or presented as N5.

    Raises
    ------
    FileNotFoundError
        The XML describes no view that the container holds.
    N5UnrepresentableError
        A level is missing whose factors are unknown (``kind="option"``).
    """
    store, unregistered = _described(tree)
    views = described_views(store, tree.path, find_views(store, tree.path), unregistered)
    images, notes = [], []
    for setup, by_name in views.items():
        name = name_of(unregistered, setup)
        levels = {_number(level): by_time for level, by_time in by_name.items()}
        timepoints = sorted({t for by_time in levels.values() for t in by_time})
        placed = placed_levels(store, by_name, unregistered)
        axes = {_number(level): space_axes(each) for level, each in placed.items()}
        for number in range(max(axes)):
            if number not in axes:
                view = setup, timepoints[0]
                axes[number] = _axes_of_absent(tree, view, number, unregistered)
        for timepoint in timepoints:
            own: dict[int, Level] = {}
            for number, each in sorted(axes.items()):
                found = levels.get(number, {}).get(timepoint)
                own[number] = found and tree.arrays[found.below(tree.path)], each
            images.append(image_of_view((setup, timepoint), name, own))
            absent = [number for number, (array, _) in own.items() if array is None]
            if absent:
                notes.append(
                    f"setup{setup}/timepoint{timepoint}: levels without arrays, {ranges(absent)}, "
                    "are listed, so that the others keep their positions; BigStitcher opens no "
                    "image of a setup whose first one lacks level 0"
                )
    return images_of_setups(tree, images, tuple(notes))


def with_setups(tree: SourceTree) -> SourceTree:
    """Return a project in N5 in which each setup says what BigDataViewer asks of it.

    Programs that read the levels themselves, n5zarr among them, need no document of a setup.
    """
    store, unregistered = _described(tree)
    files = dict(tree.files)
    for levels in find_views(store, tree.path).values():
        first = next(iter(next(iter(levels.values())).values()))
        path = first.below(tree.path).partition("/")[0]
        axes = {
            _number(level): each.geometry.axes
            for level, each in placed_levels(store, levels, unregistered).items()
            if each.geometry is not None
        }
        group = tree.groups.get(path, {})
        described = describe_setup(group, axes, first.dataset.data_type.value)
        if described.keys() != group.keys():
            files[join(path, ATTRIBUTES_JSON)] = json.dumps(described).encode()
    return replace(tree, files=files)


def _described(tree: SourceTree) -> tuple[N5Store, Description]:
    """Return the container of a project, and its description without registrations."""
    assert tree.container is not None  # noqa: S101 - of a project
    assert tree.project is not None  # noqa: S101
    return tree.container, replace(tree.project.description, registrations={})


def _number(level: str) -> int:
    return int(level.removeprefix("s"))


def _axes_of_absent(
    tree: SourceTree, view: View, number: int, description: Description
) -> tuple[Axis, ...]:
    """Return the axes of a level that is not stored, C order, by the factors of its setup."""
    setup, timepoint = f"setup{view[0]}", f"timepoint{view[1]}"
    path = setup, timepoint, f"s{number}"
    above = [tree.groups.get(f"{setup}/{timepoint}", {}), tree.groups.get(setup, {})]
    node = Node(
        path=path,
        dimensions=N5Tuple((1, 1, 1)),  # unknown
        attributes={},
        ancestors=above,
        view=description.view(*view),
    )
    where = f"{tree.name}: {'/'.join(path)}"
    try:
        is_known = number == 0 or downsampling_factors(node) is not None
        geometry = read(node) if is_known else None
    except MisfitError as err:
        raise option_error(str(err), where=where) from err
    if geometry is None:
        message = (
            "expected this level, as coarser ones exist, or its factors, got neither; write "
            f"downsamplingFactors, of all levels, to the attributes of {setup}"
        )
        raise option_error(message, where=where)
    return present(geometry.axes, "C")


def image_of_view(view: View, name: str, levels: Mapping[int, Level]) -> Image:
    """Describe a view.

    Parameters
    ----------
    view : (int, int)
        Numbers of setup and time point.
    name : str
        Name of the setup.
    levels : mapping of int to (ArraySource or None, sequence of Axis)
        Arrays of three dimensions with their axes by number, C order, the finest first; None for a
        level that is listed without an array.
    """
    found = {str(n): array for n, (array, _) in levels.items() if array is not None}
    arrays = {level: stacked([stacked([array])]) for level, array in found.items()}
    axes = {str(n): (*_BEFORE, *each) for n, (_, each) in levels.items()}
    of_time = f"{name}, time point {view[1]}"
    bare = {level: replace(array, attributes={}) for level, array in arrays.items()}
    return align_axes(axes).image(view_image(*view), of_time, bare, {})
