"""Plan the conversion of BigDataViewer or BigStitcher to OME-Zarr: an image for each setup.

The images are named after the setups. Time points of a setup are stacked to an axis ``t``, which
viewers open as a series, if they have the same size, type and position. If registrations or sizes
differ, each time point becomes an image, ``NAME/timepoint0`` and so on, as OME-Zarr has one
position for all time points. A registration that turns or shears, which OME-Zarr 0.5 cannot
express, is kept as the attribute ``registration``, the three rows of the matrix that maps the
positions ``[x, y, z, 1]`` to the world.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from n5zarr.container.axes import read_placed
from n5zarr.container.bdv_description import read_description
from n5zarr.conventions.model import Axis
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.order import present
from n5zarr.format.path import join
from n5zarr.store.bdv_views import described_views, find_views, moves
from n5zarr.tools.convert.ome import (
    image_attributes,
    make_multiscale,
    series_attributes,
)
from n5zarr.tools.convert.ome_display import Shown, omero
from n5zarr.tools.convert.plans import ArrayPlan, Plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from n5zarr.container.axes import Placed
    from n5zarr.conventions.bdv import Description
    from n5zarr.conventions.bdv_settings import SetupSettings
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.bdv_views import Levels, SetupLevel
    from n5zarr.store.n5_store import N5Store

__all__ = ["plan_bdv"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    """A setup, at one time point or at several.

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


def plan_bdv(
    opened: N5Store,
    group: str = "",
    *,
    only: Collection[str] | None = None,
    description: Description | None = None,
    settings: Mapping[int, SetupSettings] | None = None,
) -> Plan | None:
    """Plan the conversion of the setups in a group to OME-Zarr 0.5; None if it has no setups.

    Parameters
    ----------
    opened : N5Store
        The container, with axes in C order.
    group : str, optional
        The group of the setups.
    only : collection of str, optional
        Paths of the datasets to convert, relative to ``group``; all by default.
    description : Description, optional
        The XML; by default it is looked for in the group of the setups and beside the container.
    settings : mapping, optional
        Display settings of the setups, by number.

    Raises
    ------
    N5UnrepresentableError
        The datasets of a setup have no three dimensions, or the XML describes none of the chosen
        ones (``kind="option"``).
    FileNotFoundError
        The XML describes no view that the container holds.
    """
    views = find_views(opened, group)
    if not _wanted(views, group, only):
        return None
    if description is None:
        description = opened.run(read_description(group))
    if description is not None:
        views = described_views(opened, group, views, description)
    views = _wanted(views, group, only)
    if not views:
        message = f"{opened}: /{group}: the XML describes none of the chosen views"
        raise N5UnrepresentableError(message, kind="option")
    names = _names({s: _name_of(description, s) for s in views})
    arrays: list[ArrayPlan] = []
    groups: dict[str, Mapping[str, JSON]] = {}
    problems: dict[str, list[str]] = {}
    series: list[str] = []
    for setup, levels in views.items():
        for image in _images(setup, names[setup], levels, description):
            placed = _placed(opened, image, description)
            for problem in next(iter(placed.values())).problems:
                problems.setdefault(problem, []).append(image.path)
            attributes, planned = _plan_image(image, placed, group, description, settings or {})
            groups[image.path] = attributes
            series.append(image.path)
            arrays += planned
    groups |= series_attributes({}, series)
    groups = dict(sorted(groups.items()))
    notes = tuple(f"{', '.join(paths)}: {problem}" for problem, paths in problems.items())
    return Plan(arrays=tuple(arrays), groups=groups, notes=notes)


def _wanted(
    views: Mapping[int, Levels], group: str, only: Collection[str] | None
) -> dict[int, Levels]:
    """Return the views whose datasets are to be converted."""
    wanted: dict[int, Levels] = {}
    for setup, levels in views.items():
        for level, by_time in levels.items():
            taken = {t: v for t, v in by_time.items() if only is None or _below(v, group) in only}
            if taken:
                wanted.setdefault(setup, {})[level] = taken
    return wanted


def _below(view: SetupLevel, group: str) -> str:
    return view.path.removeprefix(group).strip("/")


def _name_of(description: Description | None, setup: int) -> str:
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
) -> Iterator[_Image]:
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
        yield _Image(
            path=path,
            name=name,
            setup=setup,
            timepoints=times,
            is_stacked=len(times) > 1,
            levels=levels,
        )
        return
    for t in own:
        yield _Image(
            path=join(path, f"timepoint{t}"),
            name=f"{name}, time point {t}",
            setup=setup,
            timepoints=(t,),
            is_stacked=False,
            levels={k: {t: by_time[t]} for k, by_time in levels.items() if t in by_time},
        )


def _placed(opened: N5Store, image: _Image, description: Description | None) -> dict[str, Placed]:
    """Read the axes of the levels of an image, the finest first."""
    placed = {}
    for level, by_time in image.levels.items():
        view = by_time[min(by_time)]
        steps = read_placed(
            opened.container.nodes, view.path, view.dataset, description=description
        )
        placed[level] = opened.run(steps)
    by_size = sorted(placed.items(), key=lambda entry: -math.prod(entry[1].view.shape))
    return dict(by_size)


def _plan_image(
    image: _Image,
    placed: Mapping[str, Placed],
    group: str,
    description: Description | None,
    settings: Mapping[int, SetupSettings],
) -> tuple[dict[str, JSON], list[ArrayPlan]]:
    """Return the attributes of the group of an image, and its arrays."""
    first = next(iter(placed.values()))
    time = [_time_axis(image.timepoints)] if image.is_stacked else []
    axes = {level: [*time, *_axes(p)] for level, p in placed.items()}
    multiscale = make_multiscale(image.name, axes)
    known = None if description is None else description.setups.get(image.setup)
    own: dict[str, JSON] = {"setup": image.setup, "timepoints": list(image.timepoints)}
    own |= {} if known is None else {"names": dict(known.names)}
    others: dict[str, JSON] = {"bdv": own}
    if "registration" in first.attributes:
        others["registration"] = first.attributes["registration"]
    shown = Shown()
    if image.setup in settings:
        shown = Shown(limits=settings[image.setup].limits, color=settings[image.setup].color)
    display = omero(shown, first.view.kind.dtype, 1)
    channel = None if known is None else known.names.get("channel")
    if display is not None and channel:
        display = omero(shown, first.view.kind.dtype, 1, [channel])
    arrays = [
        ArrayPlan(
            destination=join(image.path, level),
            sources=_sources(image, level, group),
            is_stacked=image.is_stacked,
            dimension_names=multiscale.names,
            attributes={},
        )
        for level in placed
    ]
    return image_attributes(others, multiscale, omero=display), arrays


def _axes(placed: Placed) -> tuple[Axis, ...]:
    geometry = placed.geometry
    return () if geometry is None else present(geometry.axes, placed.view.axis_order)


def _sources(image: _Image, level: str, group: str) -> tuple[str | None, ...]:
    """Return the datasets of a level, one for each time point; paths relative to the group."""
    by_time = image.levels[level]
    times: Sequence[int] = image.timepoints if image.is_stacked else sorted(by_time)
    views = [by_time.get(t) for t in times]
    return tuple(None if view is None else _below(view, group) for view in views)


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
