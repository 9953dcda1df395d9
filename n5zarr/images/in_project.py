"""Describe each view of a project as an OME-Zarr image, as BigStitcher writes them.

multiview-reconstruction 8.0 ``N5ApiTools.setupBdvDatasetsOMEZARR``: an image with the axes t, c, z,
y, x for each view, with levels named 0, 1, .... Its scale is the voxel size: the XML has the
registrations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from n5zarr.conventions.bdv_write import view_image
from n5zarr.conventions.model import Axis
from n5zarr.images.in_bdv import images_of_setups, name_of, placed_levels, space_axes
from n5zarr.images.ome import align_axes
from n5zarr.images.stacked import stacked
from n5zarr.store.bdv_views import described_views, find_views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.conventions.bdv_registrations import View
    from n5zarr.images.image import Image, Images
    from n5zarr.images.source import ArraySource, SourceTree

    type Level = tuple[ArraySource, Sequence[Axis]]

__all__ = ["image_of_view", "project_images"]

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
    """
    store, project = tree.container, tree.project
    assert store is not None  # noqa: S101 - of a project
    assert project is not None  # noqa: S101
    unregistered = replace(project.description, registrations={})
    views = described_views(store, tree.path, find_views(store, tree.path), unregistered)
    images = []
    for setup, levels in views.items():
        name = name_of(unregistered, setup)
        placed = placed_levels(store, levels, unregistered)
        for timepoint in sorted({t for by_time in levels.values() for t in by_time}):
            own = [
                (tree.arrays[by_time[timepoint].below(tree.path)], space_axes(placed[level]))
                for level in placed
                if timepoint in (by_time := levels[level])
            ]
            images.append(image_of_view((setup, timepoint), name, own))
    return images_of_setups(tree, images)


def image_of_view(view: View, name: str, levels: Sequence[Level]) -> Image:
    """Describe a view.

    Parameters
    ----------
    view : (int, int)
        Numbers of setup and time point.
    name : str
        Name of the setup.
    levels : sequence of (ArraySource, sequence of Axis)
        Arrays of three dimensions with their axes, C order, the finest first.
    """
    arrays = {str(n): stacked([stacked([array])]) for n, (array, _) in enumerate(levels)}
    axes = {str(n): (*_BEFORE, *each) for n, (_, each) in enumerate(levels)}
    of_time = f"{name}, time point {view[1]}"
    bare = {level: replace(array, attributes={}) for level, array in arrays.items()}
    return align_axes(axes).image(view_image(*view), of_time, bare, {})
