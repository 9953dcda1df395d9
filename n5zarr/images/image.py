"""Define the model of an image: its levels, axes, channels, colours, limits and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.arrays.placing import read_on_host
from n5zarr.errors import N5UnrepresentableError, option_error
from n5zarr.format.grid import join_blocks
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource, SourceTree, Values

if TYPE_CHECKING:
    import dask.array


_CHANNEL_COLORS = ("FF0000", "00FF00", "0000FF", "FF00FF", "00FFFF", "FFFF00")  # red first


def default_color(channel: int, n_shown: int) -> str:
    """Return the colour of a channel that has none: white if it is alone, else a distinct one."""
    return "FFFFFF" if n_shown == 1 else _CHANNEL_COLORS[channel % len(_CHANNEL_COLORS)]


_MOST_CHUNKS = 2**17  # of an array of dask: a tenth of a second for each computation
_MOST_NAMES = 8  # in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageAxis:
    """An axis of an image.

    Parameters
    ----------
    name : str
        Name, unique in its image.
    type : str
        ``"space"``, ``"time"``, ``"channel"``, or ``""`` for any other.
    unit : str, optional
        Unit in full, such as ``"nanometer"``; None if it is unknown.
    """

    name: str
    type: str = ""
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """The display settings of a channel.

    Parameters
    ----------
    name : str, optional
        Its name.
    color : str, optional
        Six hexadecimal digits, red first.
    limits : tuple of float, optional
        Values that are shown darkest and brightest.
    """

    name: str | None = None
    color: str | None = None
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageLevel:
    """One resolution of an image.

    Parameters
    ----------
    path : str
        Path of the array below the location that was opened, as a conversion would name it.
    array : ArraySource
        The elements, C order, with the axes of the image, read when they are asked for.
    scale : tuple of float
        Distance of neighbouring elements along each axis, in the unit of the axis.
    translation : tuple of float
        Position of the centre of the first element.
    """

    path: str
    array: ArraySource
    scale: tuple[float, ...]
    translation: tuple[float, ...]

    @property
    def values(self) -> Values:
        """The elements, by boxes; see :meth:`lazy`."""
        return self.array.values

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent in elements."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self.array.native_dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """Extent in elements of the best unit to read."""
        return tuple(self.array.chunks)

    @property
    def n_elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    def lazy(self) -> dask.array.Array:
        """Return the elements as an array of dask, a chunk of it for each of the level.

        Of very many chunks, some are taken together: dask goes through all of them whenever
        something is computed.

        Raises
        ------
        ImportError
            dask is not installed.
        """
        import dask.array  # noqa: PLC0415 - only for programs that want such arrays

        make: Any = dask.array.from_array
        meta = np.empty((0,) * len(self.shape), self.dtype)
        chunks = join_blocks(self.shape, self.chunks, most=_MOST_CHUNKS)
        readable = _Readable(self.values, self.dtype)
        made: dask.array.Array = make(readable, chunks, meta=meta, fancy=False)
        return made


@dataclass(frozen=True, eq=False)
class _Readable:
    """The interface that dask requires of an array."""

    values: Values
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, index: tuple[int | slice, ...]) -> np.ndarray[Any, Any]:
        """Read a selection, which dask may have merged with others: with integers and steps."""
        box: list[slice] = []
        within: list[int | slice] = []
        for part, n in zip(index, self.shape, strict=True):
            if isinstance(part, slice):
                chosen = range(n)[part]
                ends = sorted([chosen[0], chosen[-1]]) if chosen else [0, -1]
                box.append(slice(ends[0], ends[1] + 1))
                within.append(slice(None, None, part.step))
            else:
                box.append(slice(part, part + 1))
                within.append(0)
        found: np.ndarray[Any, Any] = read_on_host(self.values, tuple(box))[tuple(within)]
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Image:
    """An image: an array, or a pyramid of them.

    Parameters
    ----------
    path : str
        Path of its group below the location that was opened; of an image that is one dataset, the
        path of that.
    name : str
        A name to show.
    axes : tuple of ImageAxis
        The axes, in the order of the arrays: time, channel, space, as OME-Zarr wants them.
    levels : tuple of ImageLevel
        The levels, the finest first.
    channels : tuple of Channel
        The channels; one if there is no axis of channels.
    is_labels : bool
        Whether the elements are labels.
    image_of : str, optional
        Of labels, the path of the image that they belong to, if it is known.
    omero : mapping, optional
        The display settings as OME-Zarr has them, if any are known.
    attributes : mapping, optional
        All other attributes of its group.
    absent : mapping of str to (tuple of float, tuple of float), optional
        Scale and translation of levels without an array, by path, which OME-Zarr lists, too.
    mirrored : tuple of str, optional
        Axes along which positions in the container descend: the elements are in reverse order.
    """

    path: str
    name: str
    axes: tuple[ImageAxis, ...]
    levels: tuple[ImageLevel, ...]
    channels: tuple[Channel, ...]
    is_labels: bool = False
    image_of: str | None = None
    omero: Mapping[str, JSON] | None = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    absent: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(default_factory=dict)
    mirrored: tuple[str, ...] = ()

    @property
    def places(self) -> Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]:
        """Scale and translation of all levels by path, the finest first."""
        own = {level.path: (level.scale, level.translation) for level in self.levels}
        if not self.absent:
            return own
        both = own | {**self.absent}
        return dict(sorted(both.items(), key=lambda entry: math.prod(entry[1][0])))

    @property
    def channel_axis(self) -> int | None:
        """The axis of the channels, or None."""
        kinds = [axis.type for axis in self.axes]
        return kinds.index("channel") if "channel" in kinds else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self.levels[0].dtype

    def color(self, channel: int) -> str:
        """Return the colour of a channel: that of the container, or else a distinct one."""
        return self.channels[channel].color or default_color(channel, len(self.channels))

    def spatial(self) -> tuple[int, ...]:
        """Return the numbers of the axes of space."""
        return tuple(i for i, axis in enumerate(self.axes) if axis.type == "space")


def select_images(images: Sequence[Image], paths: Sequence[str]) -> list[Image]:
    """Return the images that paths name: of an image, of one of its levels, or of a group of them.

    Parameters
    ----------
    images : sequence of Image
        All there are.
    paths : sequence of str
        The paths; none of them stands for all images.

    Raises
    ------
    N5UnrepresentableError
        No image has one of the paths (``kind="not-found"``).

    Examples
    --------
    >>> import n5zarr
    >>> from n5zarr.images.find import find_images
    >>> images = find_images(n5zarr.sample_path())
    >>> [image.path for image in select_images(images, ["em/s1"])]
    ['em']
    """
    if not paths:
        return list(images)
    chosen: dict[str, Image] = {}
    for path in (wanted.strip("/") for wanted in paths):
        found = [image for image in images if is_at(image, path)]
        if not found:
            shown = ", ".join(image.path or "/" for image in images[:_MOST_NAMES])
            more = f" and {len(images) - _MOST_NAMES} more" if len(images) > _MOST_NAMES else ""
            raise N5UnrepresentableError(
                f"{path!r}: expected the path of an image, got none; there are {shown}{more}",
                kind="not-found",
            )
        chosen |= {image.path: image for image in found}
    return list(chosen.values())


def is_at(image: Image, path: str) -> bool:
    """Whether a path is that of an image, of one of its levels, or of a group that it is in."""
    is_in_it = not path or image.path == path or image.path.startswith(f"{path}/")
    return is_in_it or any(level.path == path for level in image.levels)


@dataclass(frozen=True, kw_only=True, eq=False)
class Images:
    """The images at a location, and the arrays and groups beside them.

    Parameters
    ----------
    source : SourceTree
        All arrays and groups at the location, as the container has them.
    images : tuple of Image
        The images.
    arrays : mapping
        Arrays that are no levels of an image, by path.
    groups : mapping
        Attributes of the groups that are no images, by path.
    lists : mapping
        What OME-Zarr says of groups that are no images, by path: lists of images and of labels.
    notes : tuple of str
        Messages for the user about what OME-Zarr cannot express.
    """

    source: SourceTree
    images: tuple[Image, ...]
    arrays: Mapping[str, ArraySource]
    groups: Mapping[str, Mapping[str, JSON]]
    lists: Mapping[str, Mapping[str, JSON]]
    notes: tuple[str, ...]

    def with_elements(self) -> list[Image]:
        """Return the images with elements by path, the labels last.

        Raises
        ------
        N5UnrepresentableError
            None has elements (``kind="option"``).
        """
        shown = [image for image in self.images if image.levels[0].n_elements]
        if not shown:
            first = self.images[0]
            raise option_error(
                f"expected elements, got an image of shape {first.levels[0].shape}",
                where=join(self.source.name, first.path),
            )
        return sorted(shown, key=lambda image: (image.is_labels, image.path))
