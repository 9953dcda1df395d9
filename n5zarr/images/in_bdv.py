"""Find the images of BigDataViewer and BigStitcher: one for each setup.

The images are named after the setups. Time points of a setup are stacked to an axis ``t``, which
viewers open as a series, if they have the same size, type and position. If registrations or sizes
differ, each time point becomes an image, ``NAME/timepoint0`` and so on, as OME-Zarr has one
position for all time points. A registration that turns or shears, which OME-Zarr cannot express up
to 0.5, is kept as the attribute ``registration``, the three rows of the matrix that maps the
positions ``[x, y, z, 1]`` to the world.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from n5zarr.container.axes import read_placed
from n5zarr.container.bdv_description import read_description
from n5zarr.container.options import require
from n5zarr.conventions.model import Axis
from n5zarr.format.order import present
from n5zarr.format.path import join
from n5zarr.images.display import Shown, with_display
from n5zarr.images.image import Images
from n5zarr.images.ome import align_axes, series_metadata
from n5zarr.images.stacked import stacked
from n5zarr.store.bdv_views import described_views, find_views, moves
from n5zarr.store.bdv_xml import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.container.axes import Placed
    from n5zarr.conventions.bdv import Description, SetupSettings
    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.image import Image
    from n5zarr.images.source import ArraySource, SourceTree
    from n5zarr.store.bdv_views import Levels
    from n5zarr.store.n5_store import N5Store

__all__ = ["find_in_bdv", "images_of_setups", "name_of", "placed_levels", "space_axes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Views:
    """The datasets of an image: a setup, at one time point or at several.

    Parameters
    ----------
    path : str
        Where it is written.
    name : str
        Name of the setup, and of the time point if it is one of several images.
    setup : int
        Number of the setup.
    timepoints : tuple of int
        Numbers of the time points.
    is_stacked : bool
        Whether the time points are an axis.
    levels : mapping
        The datasets by level and time point.
    """

    path: str
    name: str
    setup: int
    timepoints: tuple[int, ...]
    is_stacked: bool
    levels: Levels


def find_in_bdv(tree: SourceTree, store: N5Store) -> Images | None:
    """Find the images of the setups in a group; None if it has no setups.

    Parameters
    ----------
    tree : SourceTree
        The arrays of the group; others are omitted. Without a project, the XML is looked for in the
        group and beside the container.
    store : N5Store
        Their container, with axes in C order.

    Raises
    ------
    N5UnrepresentableError
        The datasets of a setup have no three dimensions, or the XML describes none of the chosen
        ones (``kind="option"``).
    FileNotFoundError
        The XML describes no view that the container holds.
    """
    group, project = tree.path, tree.project
    views = find_views(store, group)
    if not _wanted(views, tree):
        return None
    description = store.run(read_description(group)) if project is None else project.description
    settings = {} if project is None else read_settings(project)
    if description is not None:
        views = described_views(store, group, views, description)
    views = _wanted(views, tree)
    require(views, f"{store}: /{group}: the XML describes none of the chosen views")
    names = _names({s: name_of(description, s) for s in views})
    images: list[Image] = []
    problems: dict[str, list[str]] = {}
    for setup, levels in views.items():
        for each in _images(setup, names[setup], levels, description):
            placed = placed_levels(store, each.levels, description)
            for problem in next(iter(placed.values())).problems:
                problems.setdefault(problem, []).append(each.path)
            images.append(_describe(tree, each, placed, description, settings.get(setup)))
    notes = tuple(f"{', '.join(paths)}: {problem}" for problem, paths in problems.items())
    return images_of_setups(tree, images, notes)


def images_of_setups(
    tree: SourceTree, images: Sequence[Image], notes: tuple[str, ...] = ()
) -> Images:
    """Return the images of a project, without the arrays beside them."""
    return Images(
        source=tree,
        images=tuple(images),
        arrays={},
        groups={},
        lists=series_metadata([image.path for image in images]),
        notes=notes,
    )


def _wanted(views: Mapping[int, Levels], tree: SourceTree) -> dict[int, Levels]:
    """Return the views whose datasets are among the arrays of the source."""
    wanted: dict[int, Levels] = {}
    for setup, levels in views.items():
        for level, by_time in levels.items():
            taken = {t: v for t, v in by_time.items() if v.below(tree.path) in tree.arrays}
            if taken:
                wanted.setdefault(setup, {})[level] = taken
    return wanted


def name_of(description: Description | None, setup: int) -> str:
    """Return the name of a setup; its number if the XML has none."""
    known = None if description is None else description.setups.get(setup)
    return f"setup{setup}" if known is None else known.name.strip() or f"setup{setup}"


def _names(names: Mapping[int, str]) -> dict[int, str]:
    """Return distinct names of groups, in characters that all file systems and URLs support.

    Examples
    --------
    >>> _names({0: "left green", 1: "GFP", 2: "gfp", 3: ".."})
    {0: 'left_green', 1: 'GFP-setup1', 2: 'gfp-setup2', 3: 'setup3'}
    """
    safe = {s: re.sub(r"[^\w.-]|[^\x00-\x7f]", "_", name) for s, name in names.items()}
    safe = {s: f"setup{s}" if re.match(r"\.+\Z|_*\Z|__|OME\Z", n) else n for s, n in safe.items()}
    alike = [name.lower() for name in safe.values()]  # some file systems ignore case
    return {s: f"{n}-setup{s}" if alike.count(n.lower()) > 1 else n for s, n in safe.items()}


def _images(
    setup: int, path: str, levels: Levels, description: Description | None
) -> Iterator[_Views]:
    """Yield the images of a setup."""
    name = name_of(description, setup)
    own = sorted({t for by_time in levels.values() for t in by_time})
    known = None if description is None else description.timepoints
    times = tuple(known or own)
    kinds = [
        {(view.dataset.shape, view.dataset.data_type) for view in by_time.values()}
        for by_time in levels.values()
    ]
    is_still = all(len(kind) == 1 for kind in kinds) and not moves(description, setup, own)
    if is_still or len(own) == 1:
        yield _Views(
            path=path,
            name=name,
            setup=setup,
            timepoints=times,
            is_stacked=len(times) > 1,
            levels=levels,
        )
        return
    for t in own:
        yield _Views(
            path=join(path, f"timepoint{t}"),
            name=f"{name}, time point {t}",
            setup=setup,
            timepoints=(t,),
            is_stacked=False,
            levels={k: {t: by_time[t]} for k, by_time in levels.items() if t in by_time},
        )


def placed_levels(
    store: N5Store, levels: Levels, description: Description | None
) -> dict[str, Placed]:
    """Read the axes of the levels of a setup, the finest first, at the first time point of each."""
    placed = {}
    for level, by_time in levels.items():
        view = by_time[min(by_time)]
        steps = read_placed(store.container.nodes, view.path, view.dataset, description=description)
        placed[level] = store.run(steps)
    by_size = sorted(placed.items(), key=lambda entry: -math.prod(entry[1].view.shape))
    return dict(by_size)


def _describe(
    tree: SourceTree,
    views: _Views,
    placed: Mapping[str, Placed],
    description: Description | None,
    settings: SetupSettings | None,
) -> Image:
    """Describe an image, with the axes of its levels and BigDataViewer's display settings."""
    first = next(iter(placed.values()))
    time = [_time_axis(views.timepoints)] if views.is_stacked else []
    aligned = align_axes({level: [*time, *space_axes(p)] for level, p in placed.items()})
    known = None if description is None else description.setups.get(views.setup)
    own: dict[str, JSON] = {"setup": views.setup, "timepoints": list(views.timepoints)}
    own |= {} if known is None else {"names": dict(known.names)}
    others: dict[str, JSON] = {"bdv": own}
    if "registration" in first.attributes:
        others["registration"] = first.attributes["registration"]
    arrays = {level: replace(_array(tree, views, level), attributes={}) for level in placed}
    image = aligned.image(views.path, views.name, arrays, others)
    shown = Shown() if settings is None else Shown(limits=settings.limits, color=settings.color)
    image = with_display(image, shown)
    channel = None if known is None else known.names.get("channel")
    # a name alone would make viewers show the whole range of values
    return with_display(image, shown, [channel]) if image.omero and channel else image


def _array(tree: SourceTree, views: _Views, level: str) -> ArraySource:
    """Return the array of a level, of all time points of the image."""
    by_time = views.levels[level]
    if not views.is_stacked:
        return tree.arrays[by_time[min(by_time)].below(tree.path)]
    each = [by_time.get(t) for t in views.timepoints]
    return stacked([v and tree.arrays[v.below(tree.path)] for v in each])


def space_axes(placed: Placed) -> tuple[Axis, ...]:
    """Return the axes of a level in C order."""
    geometry = placed.geometry
    return () if geometry is None else present(geometry.axes, placed.view.axis_order)


def _time_axis(timepoints: Sequence[int]) -> Axis:
    """Make the axis of time, in numbers of time points if these are evenly spaced.

    Examples
    --------
    >>> axis = _time_axis([3, 5, 7])
    >>> axis.scale, axis.translation
    (2.0, 3.0)
    """
    steps = {b - a for a, b in pairwise(timepoints)}
    if len(steps) != 1:
        return Axis(name="t", type="time")
    return Axis(name="t", type="time", scale=float(steps.pop()), translation=float(timepoints[0]))
