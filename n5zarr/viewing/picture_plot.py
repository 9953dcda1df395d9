"""``n5zarr.plot``: draw orthogonal slices of an image with matplotlib, with physical axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.types import AnyArray

from n5zarr.conventions.units import ratio
from n5zarr.errors import import_optional
from n5zarr.images.find import find_images
from n5zarr.storage.place import Backend, Location
from n5zarr.viewing.arguments import texts
from n5zarr.viewing.picture import label_colours, length_unit
from n5zarr.viewing.picture_slices import Plane, Slices, plan_slices
from n5zarr.viewing.thumbnail import ShownChannel, chosen_channels, colours_of, read_slices

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_PIXELS = 800  # largest width and height of all slices together
_INCHES = 7.0
_MOST_LABELS = 12  # in the legend
_NARROWEST = 0.15  # of the longest axis: a thin slice needs room for its numbers


def plot(  # noqa: PLR0913 - the options of a picture
    location: Location | AnyArray | zarr.Group,
    *,
    level: int | None = None,
    position: Sequence[int] | Mapping[str, int] | None = None,
    channel: int | str | Sequence[int | str] | None = None,
    labels: str | Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Figure:
    """Draw an image with matplotlib: slices xy, zy and xz with their axes in physical units.

    x goes to the right and y down, as in viewers. Beside the slices is a colour bar, or the names
    of the channels, or the colours of labels if there are few.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        A container, a group or dataset in one, an open array or group, OME-Zarr, or the XML of
        BigDataViewer or BigStitcher. The first image in it is drawn.
    level, position, channel, labels, storage_options, backend : optional
        As for :func:`n5zarr.thumbnail`.

    Returns
    -------
    matplotlib.figure.Figure
        A pyplot figure. A notebook shows it once.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5MissingDependencyError
        matplotlib is not installed.
    N5UnrepresentableError
        There is no image, or no such level, channel or position; or the blocks of the slices have
        more than 1 GiB and ``level`` is not given (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> figure = n5zarr.plot(n5zarr.sample_path())
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel(), figure.axes[0].get_title()
    ('x / µm', 'y / µm', 'z = 0.4 µm')
    """
    pyplot = _pyplot()
    names = texts("labels", labels)
    found = find_images(location, labels=names, storage_options=storage_options, backend=backend)
    pixels, indices = (_PIXELS, _PIXELS), chosen_channels(found[0], channel)
    slices = plan_slices(found[0], pixels, level=level, position=position, n_channels=len(indices))
    channels, values = read_slices(slices, indices, [pixels] * len(slices.planes))
    figure: Figure = pyplot.figure(FigureClass=_figure_class(), layout="compressed")
    _lay_out(figure, slices)
    drawn = [
        _draw(axes, slices, plane, channels, each)
        for axes, plane, each in zip(figure.axes, slices.planes, values, strict=True)
    ]
    _explain(figure, slices, channels, values, drawn[0])
    figure.suptitle(_title(slices))
    return figure


def _lay_out(figure: Figure, slices: Slices) -> None:
    """Add matplotlib's axes for each slice, with sizes in proportion to the physical extents."""
    columns, rows = slices.grid()
    longest = max(map(slices.extent, [*columns, *rows]))
    wide, high = (
        [max(slices.extent(axis) / longest, _NARROWEST) for axis in axes]
        for axes in (columns, rows)
    )
    inches = _INCHES / max(sum(wide), sum(high))
    figure.set_size_inches(sum(wide) * inches + 1.5, sum(high) * inches + 0.5)
    grid = figure.add_gridspec(len(rows), len(columns), width_ratios=wide, height_ratios=high)
    for plane in slices.planes:
        figure.add_subplot(grid[rows.index(plane.down), columns.index(plane.across)])


def _draw(
    axes: Any,  # noqa: ANN401 - of matplotlib
    slices: Slices,
    plane: Plane,
    channels: Sequence[ShownChannel],
    values: Sequence[npt.NDArray[Any]],
) -> Any:  # noqa: ANN401 - of matplotlib
    """Draw a slice into matplotlib's axes."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - optional

    factor, unit = _unit(slices)
    shape = slices.image.levels[slices.level].shape
    left, right, top, bottom = (
        factor * _position(slices, axis, element)
        for axis in (plane.across, plane.down)
        for element in (-0.5, shape[axis] - 0.5)  # the outer borders, not the centres
    )
    options: Any = {"extent": (left, right, bottom, top), "interpolation": "nearest"}
    if slices.image.is_labels or len(channels) > 1:
        drawn = axes.imshow(colours_of(slices.image, channels, values), **options)
    else:
        low, high = channels[0].limits
        shown = values[0].astype(np.uint8) if values[0].dtype.kind == "b" else values[0]
        colours = LinearSegmentedColormap.from_list("", ["black", f"#{channels[0].color}"])
        drawn = axes.imshow(shown, cmap=colours, vmin=low, vmax=high, **options)
    names = [axis.name for axis in slices.image.axes]
    axes.set(
        xlabel=_with_unit(names[plane.across], unit),
        ylabel=_with_unit(names[plane.down], unit),
        title=", ".join(
            f"{names[axis]} = {factor * _position(slices, axis, cut):.4g} {unit}".rstrip()
            for axis, cut in enumerate(slices.index)
            if axis in slices.image.spatial() and axis not in (plane.across, plane.down)
        ),
    )
    return drawn


def _explain(
    figure: Figure,
    slices: Slices,
    channels: Sequence[ShownChannel],
    values: Sequence[Sequence[npt.NDArray[Any]]],
    drawn: Any,  # noqa: ANN401 - of matplotlib
) -> None:
    """Add a colour bar, or a legend of channels or labels."""
    from matplotlib.patches import Patch  # noqa: PLC0415 - optional

    image = slices.image
    if image.is_labels:
        found = np.unique(np.concatenate([np.unique(each[0]) for each in values]))
        if found.size > _MOST_LABELS:
            return
        colours = label_colours(found[None])[0] / 255
        patches = [Patch(color=tuple(c), label=str(n)) for n, c in zip(found, colours, strict=True)]
    elif len(channels) > 1:
        patches = [
            Patch(color=f"#{c.color}", label=image.channels[c.index].name or f"channel {c.index}")
            for c in channels
        ]
    else:
        figure.colorbar(drawn, ax=figure.axes, shrink=0.6)
        return
    figure.legend(handles=patches, loc="outside right center")


def _title(slices: Slices) -> str:
    level = slices.image.levels[slices.level]
    others = [
        f"{axis.name} = {slices.index[i]}"
        for i, axis in enumerate(slices.image.axes)
        if axis.type not in ("space", "channel")
    ]
    return "  ".join([level.path, str(level.shape), str(level.dtype), *others])


def _unit(slices: Slices) -> tuple[float, str]:
    """Choose the unit at the axes: return how many one unit of the slices is, and its symbol."""
    extent = max(
        slices.extent(axis) for plane in slices.planes for axis in (plane.across, plane.down)
    )
    factor, symbol = length_unit(extent, slices.unit)
    return factor, symbol.replace("um", "µm")


def _with_unit(name: str, unit: str) -> str:
    return f"{name} / {unit}" if unit else name


def _position(slices: Slices, axis: int, element: float) -> float:
    """Return the position of an element of the level along an axis, in the unit of the slices."""
    first = slices.image.levels[slices.level].translation[axis]
    factor = ratio(slices.image.axes[axis].unit, slices.unit) or 1.0
    return first * factor + element * slices.sizes[axis]


def _pyplot() -> Any:  # noqa: ANN401 - a package that may not be there
    return import_optional("matplotlib.pyplot", "n5zarr.plot", "plot")


def _figure_class() -> type[Figure]:
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    class SlicesFigure(Figure):
        """A figure that a notebook shows once, also where it is the value of a cell.

        There, pictures are shown for values, and for all open figures of pyplot.
        """

        def _ipython_display_(self) -> None:
            plt = _pyplot()
            if "inline" in plt.get_backend():
                plt.close(self)
            raise NotImplementedError  # IPython then shows it as any figure

    return SlicesFigure
