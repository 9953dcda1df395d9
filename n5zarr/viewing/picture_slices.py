"""Choose and read the slices of an image for a picture, from the level that fits its size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from n5zarr.arrays.boxes import BoxSlices
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.conventions.units import ratio
from n5zarr.errors import N5UnrepresentableError, option_error
from n5zarr.images.image import Image, ImageLevel
from n5zarr.store.info import bytes_text
from n5zarr.viewing.arguments import items, whole_number

_MOST_ELEMENTS = 2**24  # of a slice to read at once
_MOST_BYTES = 2**30  # of the blocks of a picture: reading them takes seconds
_BLOCK_BYTES = 2**16  # opening the file of a block takes as long as reading so many


@dataclass(frozen=True, slots=True)
class Plane:
    """A slice through an image.

    Parameters
    ----------
    across : int
        Index of the axis that goes to the right.
    down : int
        Index of the axis that goes down.
    """

    across: int
    down: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Slices:
    """The slices of an image in a picture; planning them reads no data.

    Parameters
    ----------
    image : Image
        The image.
    level : int
        Index of the level.
    planes : tuple of Plane
        The slices: xy, zy and xz, without those that are one element thin.
    index : tuple of int
        Element of the level at which they cut each axis.
    sizes : tuple of float
        Distance of elements of the level along each axis, in ``unit`` where it is known.
    unit : str, optional
        Unit of the last axis.
    is_chosen : bool, optional
        Whether the user chose the level.
    """

    image: Image
    level: int
    planes: tuple[Plane, ...]
    index: tuple[int, ...]
    sizes: tuple[float, ...]
    unit: str | None
    is_chosen: bool = False

    def extent(self, axis: int) -> float:
        """Return the physical extent of an axis."""
        return self.sizes[axis] * self.image.levels[self.level].shape[axis]

    def grid(self) -> tuple[list[int], list[int]]:
        """Return the axis across of each column of slices, and the axis down of each row."""
        columns = list(dict.fromkeys(plane.across for plane in self.planes))
        rows = list(dict.fromkeys(plane.down for plane in self.planes))
        return columns, rows

    def box(self, plane: Plane, channel: int) -> BoxSlices:
        """Return the box of a slice."""
        at = list(self.index)
        if self.image.channel_axis is not None:
            at[self.image.channel_axis] = channel
        shape = self.image.levels[self.level].shape
        return tuple(
            slice(0, shape[axis]) if axis in (plane.across, plane.down) else slice(i, i + 1)
            for axis, i in enumerate(at)
        )

    def n_blocks(self, n_channels: int = 1) -> int:
        """Return the largest number of blocks that the slices can touch."""
        level = self.image.levels[self.level]
        grid = [-(-n // chunk) for n, chunk in zip(level.shape, level.chunks, strict=True)]
        return n_channels * sum(grid[plane.across] * grid[plane.down] for plane in self.planes)

    @property
    def block_bytes(self) -> int:
        """Cost of reading one of these blocks, as a number of bytes of its elements."""
        level = self.image.levels[self.level]
        n_elements = math.prod(map(min, level.chunks, level.shape))
        return max(n_elements * level.dtype.itemsize, _BLOCK_BYTES)

    def n_bytes(self, n_channels: int = 1) -> int:
        """Return the largest number of bytes of elements that these blocks can have."""
        return self.n_blocks(n_channels) * self.block_bytes


def plan_slices(
    image: Image,
    pixels: tuple[int, int],
    *,
    level: int | None = None,
    position: Sequence[int] | Mapping[str, int] | None = None,
    n_channels: int | None = None,
) -> Slices:
    """Choose slices, and the coarsest level whose elements are not larger than pixels.

    If the blocks of that level have too many bytes, choose a coarser one.

    Parameters
    ----------
    image : Image
        The image.
    pixels : tuple of int
        Largest width and height of all slices together, in pixels.
    level : int, optional
        Index of the level, 0 is the finest.
    position : sequence or mapping of int, optional
        Element of the finest level through which the slices go: for each spatial axis in C order,
        or by names of axes. Other axes are cut in the middle.
    n_channels : int, optional
        Number of channels to draw; all by default.

    Raises
    ------
    N5UnrepresentableError
        There is no such level, axis or element (``kind="option"``).
    """
    start = _start(image, position)
    planes = _planes(image)
    is_chosen = level is not None
    if level is None:
        shown = n_channels or (1 if image.is_labels else len(image.channels))
        level = _fitting(image, planes, pixels, shown)
    elif not -len(image.levels) <= whole_number("level", level) < len(image.levels):
        raise _refused(image, f"level: expected 0 to {len(image.levels) - 1}, got {level}")
    chosen, finest = image.levels[level], image.levels[0]
    index = tuple(
        _index_in(chosen, axis, finest.translation[axis] + start[axis] * finest.scale[axis])
        if image.axes[axis].type != "channel"
        else 0
        for axis in range(len(image.axes))
    )
    return Slices(
        image=image,
        level=level % len(image.levels),
        planes=planes,
        index=index,
        sizes=_sizes(image, chosen),
        unit=_unit(image),
        is_chosen=is_chosen,
    )


def list_stored(
    slices: Slices, channels: Sequence[int]
) -> dict[tuple[Plane, int], list[BoxSlices]]:
    """List the stored parts of the slices if all their blocks together may be too large to read.

    Parameters
    ----------
    slices : Slices
        The slices.
    channels : sequence of int
        Indices of the channels to draw.

    Returns
    -------
    dict
        For each slice and channel the boxes of its stored parts. Empty if all blocks of the slices
        can be read, and if too many blocks of a level that the user has chosen are stored.

    Raises
    ------
    N5UnrepresentableError
        The stored blocks have too many bytes, and the user has not chosen the level
        (``kind="option"``).
    """
    if slices.n_bytes(len(channels)) <= _MOST_BYTES:
        return {}
    found: dict[tuple[Plane, int], list[BoxSlices]] = {}
    room = _MOST_BYTES // slices.block_bytes
    for plane, channel in product(slices.planes, channels):
        box = slices.box(plane, channel)
        listing = stored_chunks(slices.image.levels[slices.level].values, box)
        if listing is None:  # any block may be stored
            break
        parts = list(islice(listing.parts_of(box), room + 1))
        room -= len(parts)
        if room < 0:
            break
        found[plane, channel] = parts
    else:
        return found
    if slices.is_chosen:
        return {}
    level = slices.image.levels[slices.level]
    n_channels = len(channels)
    raise _refused(
        slices.image,
        f"expected slices whose stored blocks have at most {bytes_text(_MOST_BYTES)}, got more; "
        f"all have {bytes_text(slices.n_bytes(n_channels))}, in {slices.n_blocks(n_channels)} "
        f"blocks of the coarsest level, of shape {level.shape}; n5zarr pyramid makes coarser ones, "
        f"level={slices.level} (--level {slices.level}) reads this one",
    )


def _unit(image: Image) -> str | None:
    """Return the unit of the last axis; ``"px"`` if no axis has a unit or a scale."""
    spatial = image.spatial()
    unit = image.axes[spatial[-1]].unit
    is_plain = all(image.levels[0].scale[axis] == 1 for axis in spatial)
    return unit or ("px" if is_plain else None)


def _index_in(level: ImageLevel, axis: int, where: float) -> int:
    """Return the element of a level at a physical position along an axis."""
    step = level.scale[axis] or 1.0
    found = round((where - level.translation[axis]) / step)
    return min(max(found, 0), max(level.shape[axis] - 1, 0))


def _planes(image: Image) -> tuple[Plane, ...]:
    """Return the planes xy, zy and xz; leave out those one element thin, unless all are."""
    spatial = image.spatial()
    x, y = spatial[-1], spatial[-2]
    planes = [Plane(x, y)]
    if len(spatial) > 2:
        z = spatial[-3]
        planes += [Plane(z, y), Plane(x, z)]
    shape = image.levels[0].shape
    wide = tuple(p for p in planes if shape[p.across] > 1 and shape[p.down] > 1)
    return wide or (planes[0],)


def _sizes(image: Image, level: ImageLevel) -> tuple[float, ...]:
    """Return the distance of elements along each axis, in the unit of the last axis if possible."""
    unit = image.axes[image.spatial()[-1]].unit
    return tuple(
        (abs(scale) or 1.0) * (ratio(axis.unit, unit) or 1.0)
        for axis, scale in zip(image.axes, level.scale, strict=True)
    )


def _fitting(
    image: Image, planes: tuple[Plane, ...], pixels: tuple[int, int], n_channels: int
) -> int:
    """Return the level to read for a picture of some size, see :func:`plan_slices`."""
    finest, *coarser = (
        Slices(image=image, level=i, planes=planes, index=(), sizes=_sizes(image, level), unit=None)
        for i, level in enumerate(image.levels)
    )
    pixel = pixel_size(finest, pixels)
    shown = {axis for plane in planes for axis in (plane.across, plane.down)}
    fitting = [
        each.level
        for each in (finest, *coarser)
        if all(
            size <= max(pixel, finest.sizes[axis]) * (1 + 1e-9)
            for axis, size in enumerate(each.sizes)
            if axis in shown
        )
    ]
    candidates = (finest, *coarser)[max(fitting, default=0) :]
    small = (each.level for each in candidates if each.n_bytes(n_channels) <= _MOST_BYTES)
    return next(small, candidates[-1].level)


def pixel_size(slices: Slices, pixels: tuple[int, int]) -> float:
    """Return the physical size of a pixel of a picture in which the slices just fit."""
    columns, rows = slices.grid()
    across = sum(map(slices.extent, columns)) / max(pixels[0], 1)
    down = sum(map(slices.extent, rows)) / max(pixels[1], 1)
    return max(across, down) or 1.0


def _start(image: Image, position: Sequence[int] | Mapping[str, int] | None) -> tuple[int, ...]:
    """Return the element of the finest level at which the slices cut each axis."""
    shape = image.levels[0].shape
    names = [axis.name for axis in image.axes]
    if position is None:
        given: Mapping[str, object] = {}
    elif isinstance(position, Mapping):
        given = position
    else:
        spatial = [names[axis] for axis in image.spatial()]
        each = items(position)
        if len(each) != len(spatial):
            raise _refused(
                image,
                f"position: expected a number for each of {', '.join(spatial)}, got {position!r}",
            )
        given = dict(zip(spatial, each, strict=True))
    start = [n // 2 for n in shape]
    for name, at in given.items():
        if name not in names:
            raise _refused(image, f"position: expected names of {', '.join(names)}, got {name!r}")
        axis = names.index(name)
        start[axis] = whole_number(f"position: {name}", at)
        if not 0 <= start[axis] < shape[axis]:
            raise _refused(
                image, f"position: expected 0 to {shape[axis] - 1} along {name}, got {at}"
            )
    return tuple(start)


def _refused(image: Image, message: str) -> N5UnrepresentableError:
    return option_error(f"{image.path or image.name}: {message}")


def read_plane(
    slices: Slices,
    plane: Plane,
    channel: int,
    most: tuple[int, int],
    stored: Sequence[BoxSlices] | None = None,
) -> npt.NDArray[Any]:
    """Read a slice; of a very large one, only evenly spaced rows and columns.

    Parameters
    ----------
    slices : Slices
        The slices.
    plane : Plane
        The slice to read.
    channel : int
        Index of the channel.
    most : tuple of int
        Number of rows and columns to read of a slice that does not fit into memory.
    stored : sequence of BoxSlices, optional
        Boxes of the stored parts of the slice; nothing else is read.

    Returns
    -------
    numpy.ndarray
        Of shape ``(height, width)``.
    """
    level = slices.image.levels[slices.level]
    box = slices.box(plane, channel)
    height, width = level.shape[plane.down], level.shape[plane.across]
    if 0 in level.shape:
        return np.zeros((height, width), level.dtype)
    if height * width <= _MOST_ELEMENTS:
        return _as_rows(read_on_host(level.values, box), plane)
    rows, columns = (
        np.unique(np.linspace(0, n - 1, min(n, wanted)).astype(np.intp))
        for n, wanted in zip((height, width), most, strict=True)
    )
    if stored is not None:
        return _read_parts(level, plane, rows, columns, stored)
    parts = []
    for strip in _strips(rows, level.chunks[plane.down], width):
        part = list(box)
        part[plane.down] = slice(int(strip[0]), int(strip[-1]) + 1)
        read = _as_rows(read_on_host(level.values, tuple(part)), plane)
        parts.append(read[(strip - strip[0])[:, None], columns])
    return np.concatenate(parts)


def _read_parts(
    level: ImageLevel,
    plane: Plane,
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    stored: Sequence[BoxSlices],
) -> npt.NDArray[Any]:
    """Read some rows and columns of the stored parts of a slice; fill in the others."""
    fill_value = 0 if level.array.fill_value is None else level.array.fill_value
    drawn = np.full((len(rows), len(columns)), fill_value, level.dtype)
    for part in stored:
        down, inner_rows = _samples_in(rows, part[plane.down])
        across, inner_columns = _samples_in(columns, part[plane.across])
        values = _as_rows(read_on_host(level.values, part), plane)
        drawn[down, across] = values[inner_rows[:, None], inner_columns]
    return drawn


def _samples_in(samples: npt.NDArray[np.intp], part: slice) -> tuple[slice, npt.NDArray[np.intp]]:
    """Return the samples of an axis that lie in a part of it, and their elements of the part.

    The next sample shows the first element of a part between two samples: without this, a picture
    would miss small blocks.

    Examples
    --------
    >>> _samples_in(np.array([0, 3, 6, 9]), slice(4, 10))
    (slice(2, 4, None), array([2, 5]))
    """
    low, high = (int(n) for n in np.searchsorted(samples, [part.start, part.stop]))
    if low < high:
        return slice(low, high), samples[low:high] - part.start
    low = min(low, len(samples) - 1)
    return slice(low, low + 1), np.zeros(1, np.intp)


def _as_rows(values: npt.NDArray[Any], plane: Plane) -> npt.NDArray[Any]:
    """Turn a slice so that its rows go down the picture, and its columns across it."""
    shape = values.shape[plane.down], values.shape[plane.across]
    return (
        values if plane.down < plane.across else values.swapaxes(plane.down, plane.across)
    ).reshape(shape)


def _strips(rows: npt.NDArray[np.intp], chunk: int, width: int) -> Iterator[npt.NDArray[np.intp]]:
    """Split rows at the borders of blocks, and further where a strip would not fit into memory."""
    step = min(chunk, max(1, _MOST_ELEMENTS // width))
    inner = rows // chunk * math.ceil(chunk / step) + rows % chunk // step
    yield from np.split(rows, np.flatnonzero(np.diff(inner)) + 1)
