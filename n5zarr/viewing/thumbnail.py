"""``n5zarr.thumbnail``: draw orthogonal slices of an image as a small picture with a scale bar."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy.typing as npt
import zarr
from zarr.types import AnyArray

from n5zarr.errors import option_error
from n5zarr.images.contrast import contrast_limits
from n5zarr.images.find import find_images
from n5zarr.images.image import Image, default_color
from n5zarr.storage.place import Backend, Location
from n5zarr.viewing.arguments import items, texts, whole_number
from n5zarr.viewing.picture import (
    BAR_HEIGHT,
    GAP,
    Colours,
    arrange,
    blend,
    contact_sheet,
    label_colours,
    resize,
    scale_bar_text,
    with_scale_bar,
)
from n5zarr.viewing.picture_slices import Slices, list_stored, pixel_size, plan_slices, read_plane

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


SIZES = 32, 8192
"""Smallest and largest size of a picture in pixels."""

type ChosenChannels = int | str | Sequence[int | str] | None


def thumbnail_png(image: Image, *, size: int = 256, level: int | None = None) -> bytes:
    """Draw an image as PNG.

    Parameters
    ----------
    image : Image
        The image.
    size : int, optional
        Largest width and height in pixels.
    level : int, optional
        Index of the level; the one that fits by default.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    N5MissingDependencyError
        Pillow is not installed.
    """
    buffer = io.BytesIO()
    draw(image, size=size, level=level).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def draw(
    image: Image,
    *,
    size: int,
    level: int | None = None,
    position: Sequence[int] | Mapping[str, int] | None = None,
    channel: ChosenChannels = None,
) -> Picture:
    """Draw an image; see :func:`thumbnail`."""
    indices = chosen_channels(image, channel)
    slices = slices_that_fit(image, size, level=level, position=position, n_channels=len(indices))
    pixel = pixel_size(slices, _room(size))
    sizes = [
        [max(1, round(slices.extent(axis) / pixel)) for axis in (plane.down, plane.across)]
        for plane in slices.planes
    ]
    channels, values = read_slices(slices, indices, [(2 * h, 2 * w) for h, w in sizes])
    columns, rows = slices.grid()
    parts: list[list[Colours | None]] = [[None] * len(columns) for _ in rows]
    for plane, (height, width), each in zip(slices.planes, sizes, values, strict=True):
        drawn = colours_of(image, channels, each)
        row, column = rows.index(plane.down), columns.index(plane.across)
        parts[row][column] = resize(drawn, height, width, smooth=not image.is_labels)
    sheet = arrange(parts)
    length, text = scale_bar_text(pixel * sheet.shape[1] / 3, slices.unit)
    return with_scale_bar(sheet, length / pixel, text, size)


def slices_that_fit(
    image: Image,
    size: int,
    *,
    level: int | None = None,
    position: Sequence[int] | Mapping[str, int] | None = None,
    n_channels: int | None = None,
) -> Slices:
    """Choose the slices and the level that :func:`draw` reads."""
    return plan_slices(image, _room(size), level=level, position=position, n_channels=n_channels)


def _room(size: int) -> tuple[int, int]:
    """Return the width and height that a picture has for its slices, in pixels."""
    return max(size - GAP, 1), max(size - GAP - BAR_HEIGHT, 1)


@dataclass(frozen=True, slots=True)
class ShownChannel:
    """How a channel is drawn.

    Parameters
    ----------
    index : int
        Index of the channel.
    limits : tuple of float
        Values to show darkest and brightest.
    color : str
        Six hexadecimal digits, red first.
    """

    index: int
    limits: tuple[float, float]
    color: str


def read_slices(
    slices: Slices, indices: Sequence[int], most: Sequence[tuple[int, int]]
) -> tuple[list[ShownChannel], list[list[npt.NDArray[Any]]]]:
    """Read slices, and choose contrast and colour of their channels.

    Parameters
    ----------
    slices : Slices
        The slices.
    indices : sequence of int
        Indices of the channels, from :func:`chosen_channels`.
    most : sequence of tuple of int
        For each slice, the number of rows and columns to read if it does not fit into memory.

    Returns
    -------
    list of ShownChannel, list of list of numpy.ndarray
        The channels, and for each slice the values of each channel.

    Raises
    ------
    N5UnrepresentableError
        Too much would be read (``kind="option"``).
    """
    image = slices.image
    stored = list_stored(slices, indices)
    values = [
        [read_plane(slices, plane, i, limit, stored.get((plane, i))) for i in indices]
        for plane, limit in zip(slices.planes, most, strict=True)
    ]
    channels = [
        ShownChannel(
            i,
            (0.0, 1.0) if image.is_labels else contrast_limits(image, i, [v[k] for v in values]),
            image.channels[i].color or default_color(i, len(indices)),
        )
        for k, i in enumerate(indices)
    ]
    return channels, values


def chosen_channels(image: Image, wanted: ChosenChannels) -> Sequence[int]:
    """Return the indices of the wanted channels; only the first one of labels.

    Raises
    ------
    N5UnrepresentableError
        There is no such channel (``kind="option"``).
    """
    count = len(image.channels)
    names = {channel.name: i for i, channel in enumerate(image.channels) if channel.name}
    known = {**{str(i): i for i in range(count)}, **names}
    each = items(wanted)
    indices = [*range(count)] if wanted is None else [_channel(one, known, count) for one in each]
    chosen = [i for i in indices if i is not None]
    if not chosen or len(chosen) < len(indices):
        got = each[indices.index(None)] if None in indices else each
        raise option_error(
            f"{image.path or image.name}: channel: expected one of {', '.join(known)}, got {got!r}"
        )
    return chosen[:1] if image.is_labels else chosen


def _channel(wanted: object, known: Mapping[str, int], count: int) -> int | None:
    """Return the index of a channel, given by its index or name; a name may be a number."""
    if isinstance(wanted, SupportsIndex) and 0 <= index(wanted) < count:
        return index(wanted)
    return known.get(str(wanted))


def colours_of(
    image: Image, channels: Sequence[ShownChannel], values: Sequence[npt.NDArray[Any]]
) -> Colours:
    """Draw the channels of a slice with one pixel for each element."""
    if image.is_labels:
        return label_colours(values[0])
    return blend(values, [c.limits for c in channels], [c.color for c in channels])


def draw_images(
    images: Image | Sequence[Image],
    *,
    size: int,
    level: int | None = None,
    position: Sequence[int] | Mapping[str, int] | None = None,
    channel: ChosenChannels = None,
) -> Picture:
    """Draw one image, or several with their names side by side; see :func:`thumbnail`."""
    drawn = partial(draw, size=size, position=position, channel=channel)
    if isinstance(images, Image):
        return drawn(images, level=level)
    coarsest = [len(image.levels) - 1 for image in images]
    levels: list[int | None] = [None] * len(images)
    if level is not None:
        wanted = whole_number("level", level, 0, max(coarsest))
        levels = [min(wanted, most) for most in coarsest]
    pictures = [
        (image.path or image.name, drawn(image, level=each))
        for image, each in zip(images, levels, strict=True)
    ]
    return contact_sheet(pictures)


def thumbnail(  # noqa: PLR0913 - the options of a picture
    location: Location | AnyArray | zarr.Group,
    *,
    size: int = 512,
    level: int | None = None,
    position: Sequence[int] | Mapping[str, int] | None = None,
    channel: int | str | Sequence[int | str] | None = None,
    labels: str | Sequence[str] = (),
    all_images: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Picture:
    """Draw an image: slices xy, zy and xz in physical proportions, with a scale bar.

    x goes to the right and y down, as in viewers: the slice zy is beside xy, and xz below it.
    Reads only the slices, from the pyramid level that fits the size.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        A container, a group or dataset in one, an open array or group, OME-Zarr, or the XML of
        BigDataViewer or BigStitcher. The first image in it is drawn.
    size : int, optional
        Largest width and height in pixels, from 32 to 8192.
    level : int, optional
        Index of the level of the pyramid, 0 is the finest. With ``all_images``, images with fewer
        levels use their coarsest one.
    position : sequence or mapping of int, optional
        Position of the slices, as an element of the finest level: for each spatial axis in C order,
        or by names of axes, such as ``{"z": 20, "t": 3}``. By default the middle of each axis.
    channel : int, str or sequence of them, optional
        Numbers or names of the channels; by default all.
    labels : str or sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.
    all_images : bool, optional
        Whether to draw all images side by side, with their names.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    PIL.Image.Image
        The picture. A notebook shows it; ``save("name.png")`` writes it.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5MissingDependencyError
        Pillow is not installed.
    N5UnrepresentableError
        There is no image, or no such size, level, channel or position; or the blocks of the slices
        have more than 1 GiB and ``level`` is not given (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> n5zarr.thumbnail(n5zarr.sample_path(), size=200).size
    (200, 195)
    """
    size = whole_number("size", size, *SIZES)
    names = texts("labels", labels)
    found = find_images(location, labels=names, storage_options=storage_options, backend=backend)
    chosen = found if all_images else found[0]
    return draw_images(chosen, size=size, level=level, position=position, channel=channel)
