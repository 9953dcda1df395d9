"""Find the images of BigDataViewer and BigStitcher: one for each setup, or for each view.

The images are named after the setups. Time points of a setup are stacked to an axis ``t``, which
viewers open as a series, if they have the same size, type and position. If registrations or sizes
differ, each time point becomes an image, ``NAME/timepoint0`` and so on, as OME-Zarr has one
position for all time points. A registration that turns or shears, which OME-Zarr cannot express up
to 0.5, is kept as the attribute ``registration``, the three rows of the matrix that maps the
positions ``[x, y, z, 1]`` to the world.

A project is written as BigStitcher does, multiview-reconstruction 8.0
``N5ApiTools.setupBdvDatasetsOMEZARR``: an image with the axes t, c, z, y, x for each view, with
levels named 0, 1, .... Its scale is the voxel size: the XML has the registrations.
``AllenOMEZarrProperties``: a level is named by its place in the list, and the first one in it is
full resolution; the list of the first time point is that of all. So levels without an array, of a
pyramid that is stored in part, are listed, too, if any time point has coarser ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from n5zarr.bigdataviewer.description import Description, SetupSettings
from n5zarr.bigdataviewer.finding import read_description
from n5zarr.bigdataviewer.project import project_of, read_settings
from n5zarr.bigdataviewer.registrations import View
from n5zarr.bigdataviewer.views import Levels, described_views, find_views, moves
from n5zarr.bigdataviewer.writing_xml import view_image
from n5zarr.container.axes import Placed
from n5zarr.container.options import require
from n5zarr.conventions.bdv import read
from n5zarr.conventions.describe import describe_setup
from n5zarr.conventions.find import problems_of_level
from n5zarr.conventions.levels import downsampling_factors
from n5zarr.conventions.model import Axis, MisfitError, Node
from n5zarr.errors import option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple, present
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.images.display import with_display
from n5zarr.images.image import Channel, Image, Images
from n5zarr.images.ome import align_axes, series_metadata
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.images.stacked import stacked
from n5zarr.store.info import ranges
from n5zarr.store.n5_store import N5Store

type _ArrayAndAxes = tuple[ArraySource | None, Sequence[Axis]]

_BEFORE = (Axis(name="t", type="time"), Axis(name="c", type="channel"))


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
    group, project = tree.path, project_of(tree.document)
    views = find_views(store, group)
    if not _wanted(views, tree):
        return None
    description = store.run(read_description(group)) if project is None else project.description
    settings = {} if project is None else read_settings(project)
    if description is not None:
        views = described_views(store, group, views, description)
    views = _wanted(views, tree)
    require(views, f"{store}: /{group}: the XML describes none of the chosen views")
    names = _names({s: _name_of(description, s) for s in views})
    images: list[Image] = []
    problems: dict[str, list[str]] = {}
    for setup, levels in views.items():
        for each in _images(setup, names[setup], levels, description):
            placed = _placed_levels(store, each.levels, description)
            for problem in chain(
                next(iter(placed.values())).problems,
                *(problems_of_level(level.geometry) for level in placed.values()),
            ):
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


def _name_of(description: Description | None, setup: int) -> str:
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
    name = _name_of(description, setup)
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


def _placed_levels(
    store: N5Store, levels: Levels, description: Description | None
) -> dict[str, Placed]:
    """Read the axes of the levels of a setup, the finest first, at the first time point of each."""
    placed = {}
    for level, by_time in levels.items():
        view = by_time[min(by_time)]
        placed[level] = view.placed(store, description)
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
    aligned = align_axes({level: [*time, *_space_axes(p)] for level, p in placed.items()})
    known = None if description is None else description.setups.get(views.setup)
    own: dict[str, JSON] = {"setup": views.setup, "timepoints": list(views.timepoints)}
    own |= {} if known is None else {"names": dict(known.names)}
    others: dict[str, JSON] = {"bdv": own}
    if "registration" in first.attributes:
        others["registration"] = first.attributes["registration"]
    arrays = {level: replace(_array(tree, views, level), attributes={}) for level in placed}
    image = aligned.image(views.path, views.name, arrays, others)
    shown = Channel() if settings is None else Channel(limits=settings.limits, color=settings.color)
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


def _space_axes(placed: Placed) -> tuple[Axis, ...]:
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
    store, unregistered = _container_of(tree)
    views = described_views(store, tree.path, find_views(store, tree.path), unregistered)
    images, notes = [], []
    for setup, by_name in views.items():
        name = _name_of(unregistered, setup)
        levels = {_number(level): by_time for level, by_time in by_name.items()}
        timepoints = sorted({t for by_time in levels.values() for t in by_time})
        placed = _placed_levels(store, by_name, unregistered)
        axes = {_number(level): _space_axes(each) for level, each in placed.items()}
        for number in range(max(axes)):
            if number not in axes:
                view = setup, timepoints[0]
                axes[number] = _axes_of_absent(tree, view, number, unregistered)
        for timepoint in timepoints:
            own: dict[int, _ArrayAndAxes] = {}
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
    store, unregistered = _container_of(tree)
    files = dict(tree.files)
    for levels in find_views(store, tree.path).values():
        first = next(iter(next(iter(levels.values())).values()))
        path = first.below(tree.path).partition("/")[0]
        axes = {
            _number(level): each.geometry.axes
            for level, each in _placed_levels(store, levels, unregistered).items()
            if each.geometry is not None
        }
        group = tree.groups.get(path, {})
        described = describe_setup(group, axes, first.dataset.data_type.value)
        if described.keys() != group.keys():
            files[join(path, ATTRIBUTES_JSON)] = RawObject(described).to_bytes()
    return replace(tree, files=files)


def _container_of(tree: SourceTree) -> tuple[N5Store, Description]:
    """Return the container of a project, and its description without registrations."""
    assert tree.container is not None  # noqa: S101 - of a project
    project = project_of(tree.document)
    assert project is not None  # noqa: S101
    return tree.container, replace(project.description, registrations={})


def _number(level: str) -> int:
    return int(level.removeprefix("s"))


def _axes_of_absent(
    tree: SourceTree, view: View, number: int, description: Description
) -> tuple[Axis, ...]:
    """Return the axes of a level that is not stored, C order, by the factors of its setup."""
    setup, timepoint = f"setup{view[0]}", f"timepoint{view[1]}"
    path = setup, timepoint, f"s{number}"
    node = Node(
        path=path,
        dimensions=N5Tuple((1, 1, 1)),  # unknown
        attributes={},
        ancestors=[tree.groups.get(f"{setup}/{timepoint}", {}), tree.groups.get(setup, {})],
        view=description.view(*view),
    )
    where = f"{tree.name}: {'/'.join(path)}"
    try:
        is_known = number == 0 or downsampling_factors(node) is not None
        geometry = read(node) if is_known else None
    except MisfitError as err:
        raise option_error(str(err), where=where) from err
    if geometry is None:
        raise option_error(
            "expected this level, as coarser ones exist, or its factors, got neither; write "
            f"downsamplingFactors, of all levels, to the attributes of {setup}",
            where=where,
        )
    return present(geometry.axes, "C")


def image_of_view(view: View, name: str, levels: Mapping[int, _ArrayAndAxes]) -> Image:
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
    bare = {
        level: replace(stacked([stacked([array])]), attributes={}) for level, array in found.items()
    }
    axes = {str(n): (*_BEFORE, *each) for n, (_, each) in levels.items()}
    image = align_axes(axes).image(view_image(*view), f"{name}, time point {view[1]}", bare, {})
    require(not image.mirrored, f"{image.path}: voxelSize in the XML: expected numbers above 0")
    return image
