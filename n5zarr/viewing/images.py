"""Find the images of a container, in any convention.

Images, their levels, axes and channels are those that a conversion to OME-Zarr would write: so
viewers, pictures and plugins of other programs all show the same.
"""

from __future__ import annotations

import math
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.conventions.model import first_of, mapping, numbers
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.grid import join_blocks
from n5zarr.format.path import join
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import place_of
from n5zarr.tools.convert.ome_display import CHANNEL_COLORS
from n5zarr.tools.convert.ome_tree import as_ome
from n5zarr.tools.convert.places import open_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import dask.array
    import zarr
    from zarr.types import AnyArray

    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location
    from n5zarr.tools.convert.source import ArraySource, SourceTree, Values

_MOST_CHUNKS = 2**17  # of an array of dask: a tenth of a second for each computation

__all__ = [
    "Channel",
    "Image",
    "ImageAxis",
    "ImageLevel",
    "find_images",
    "images_of",
    "is_at",
    "open_tree",
    "select_images",
]


_MOST_NAMES = 8  # in a message
_COLOR = re.compile("#?([0-9A-Fa-f]{6})([0-9A-Fa-f]{2})?")  # some write a hash, or an opacity


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
    values : Values
        The elements, C order, read when they are asked for; see :meth:`lazy`.
    dtype : numpy.dtype
        Data type of the elements.
    chunks : tuple of int
        Extent in elements of the best unit to read.
    scale : tuple of float
        Distance of neighbouring elements along each axis, in the unit of the axis.
    translation : tuple of float
        Position of the centre of the first element.
    fill_value : object, optional
        Value of the elements of missing blocks; 0 by default.
    """

    path: str
    values: Values
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    scale: tuple[float, ...]
    translation: tuple[float, ...]
    fill_value: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent in elements."""
        return tuple(self.values.shape)

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
        found: np.ndarray[Any, Any] = np.asarray(self.values[tuple(box)])[tuple(within)]
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
    """

    path: str
    name: str
    axes: tuple[ImageAxis, ...]
    levels: tuple[ImageLevel, ...]
    channels: tuple[Channel, ...]
    is_labels: bool = False
    image_of: str | None = None

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
        default = (
            "FFFFFF" if len(self.channels) == 1 else CHANNEL_COLORS[channel % len(CHANNEL_COLORS)]
        )
        return self.channels[channel].color or default

    def spatial(self) -> tuple[int, ...]:
        """Return the numbers of the axes of space."""
        return tuple(i for i, axis in enumerate(self.axes) if axis.type == "space")


def find_images(
    location: Location | AnyArray | zarr.Group,
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
) -> list[Image]:
    """Find the images at a location in a container; nothing but documents is read.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        A container, a group or dataset in one, also one that is open, or the XML of BigDataViewer
        or BigStitcher.
    labels : sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    list of Image
        The images by path, the labels last.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        There is no image: no dataset of numbers with two or three axes of space and with elements
        (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> em = find_images(n5zarr.sample_path())[0]
    >>> em.path, [axis.name for axis in em.axes], [level.shape for level in em.levels]
    ('em', ['z', 'y', 'x'], [(40, 96, 128), (20, 48, 64), (10, 24, 32)])
    """
    return images_of(
        open_tree(location, labels=labels, storage_options=storage_options, backend=backend)
    )


def select_images(images: Sequence[Image], paths: Sequence[str]) -> list[Image]:
    """Return the images that paths name: of an image, of one of its levels, or of a group of them.

    Parameters
    ----------
    images : sequence of Image
        All there are.
    paths : sequence of str
        What is wanted; nothing stands for all.

    Raises
    ------
    N5UnrepresentableError
        No image has one of the paths (``kind="not-found"``).

    Examples
    --------
    >>> import n5zarr
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
            message = f"{path!r}: expected the path of an image, got none; there are {shown}{more}"
            raise N5UnrepresentableError(message, kind="not-found")
        chosen |= {image.path: image for image in found}
    return list(chosen.values())


def is_at(image: Image, path: str) -> bool:
    """Whether a path is that of an image, of one of its levels, or of a group that it is in."""
    is_in_it = not path or image.path == path or image.path.startswith(f"{path}/")
    return is_in_it or any(level.path == path for level in image.levels)


def open_tree(
    location: Location | AnyArray | zarr.Group,
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
) -> SourceTree:
    """Open a location as the tree of arrays and groups that OME-Zarr would have."""
    place = place_of(location, storage_options, backend)
    with asking_once():
        tree = open_source(place, 3)
        if tree.container is None:
            message = f"{tree.name}: expected N5, got another format; n5zarr convert makes N5 of it"
            raise N5UnrepresentableError(message, kind="option")
        return as_ome(tree, labels=labels)


def images_of(tree: SourceTree) -> list[Image]:
    """Read the images of a tree in the form of OME-Zarr; omit those without elements.

    Raises
    ------
    N5UnrepresentableError
        None has elements (``kind="option"``).
    """
    images = [
        _image(tree, path, mapping(attributes.get("ome")))
        for path, attributes in tree.groups.items()
        if first_of(mapping(attributes.get("ome")).get("multiscales"))
    ]
    shown = [image for image in images if image.levels[0].n_elements]
    if not shown:
        first = images[0]
        message = f"expected elements, got an image of shape {first.levels[0].shape}"
        raise N5UnrepresentableError(message, kind="option", where=join(tree.name, first.path))
    return sorted(shown, key=lambda image: (image.is_labels, image.path))


def _image(tree: SourceTree, path: str, ome: Mapping[str, JSON]) -> Image:
    multiscale = first_of(ome.get("multiscales"))
    listed, given = multiscale.get("datasets"), multiscale.get("axes")
    axes = [mapping(axis) for axis in given] if isinstance(given, list) else []
    datasets = [mapping(each) for each in listed] if isinstance(listed, list) else []
    label = ome.get("image-label")
    levels = [
        _level(join(path, str(each["path"])), tree.arrays[join(path, str(each["path"]))], each)
        for each in datasets
    ]
    source = mapping(mapping(label).get("source")).get("image")
    return Image(
        path=path,
        name=str(multiscale.get("name") or path or "image"),
        axes=tuple(_axis(axis) for axis in axes),
        levels=tuple(levels),
        channels=_channels(ome, axes, levels[0]),
        is_labels=label is not None,
        image_of=None if source is None else _path_of(path, str(source)),
    )


def _path_of(labels: str, relative: str) -> str:
    found = posixpath.normpath(posixpath.join(labels, relative))
    return "" if found == "." else found


def _axis(axis: Mapping[str, JSON]) -> ImageAxis:
    unit = axis.get("unit")
    return ImageAxis(
        name=str(axis.get("name")),
        type=str(axis.get("type") or ""),
        unit=None if unit is None else str(unit),
    )


def _level(path: str, array: ArraySource, dataset: Mapping[str, JSON]) -> ImageLevel:
    given = dataset.get("coordinateTransformations")
    steps = [mapping(step) for step in given] if isinstance(given, list) else []
    ndim = len(array.shape)
    scale, translation = (1.0,) * ndim, (0.0,) * ndim
    for step in steps:
        scale = numbers(step.get("scale"), ndim) or scale
        translation = numbers(step.get("translation"), ndim) or translation
    return ImageLevel(
        path=path,
        values=array.values,
        dtype=array.native_dtype,
        chunks=tuple(array.chunks),
        scale=scale,
        translation=translation,
        fill_value=array.fill_value,
    )


def _channels(
    ome: Mapping[str, JSON], axes: Sequence[Mapping[str, JSON]], level: ImageLevel
) -> tuple[Channel, ...]:
    sizes = [n for n, axis in zip(level.shape, axes, strict=True) if axis.get("type") == "channel"]
    n_channels = sizes[0] if sizes else 1
    listed = mapping(ome.get("omero")).get("channels")
    if not isinstance(listed, list) or len(listed) != n_channels:
        return (Channel(),) * n_channels
    return tuple(_channel(mapping(each)) for each in listed)


def _channel(given: Mapping[str, JSON]) -> Channel:
    """Read a channel; omit invalid colours and limits."""
    window, label = mapping(given.get("window")), given.get("label")
    color = _COLOR.fullmatch(str(given.get("color")))
    low, high = numbers([window.get("start"), window.get("end")], 2) or (0.0, 0.0)
    is_range = math.isfinite(low) and math.isfinite(high) and low < high
    return Channel(
        name=None if label is None else str(label),
        color=color and color[1].upper(),
        limits=(low, high) if is_range else None,
    )
