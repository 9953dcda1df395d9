"""Read colours, limits and labels of images from attributes, and write them as ``omero``.

What containers have: ``intensityLimits`` and ``color`` (n5-universe's canonical metadata), ``min``
and ``max`` (its generic metadata, and Paintera), ``contrastLimits``, ``Bigstitcher-Spark``
(BigStitcher's fused images), ``omero`` of OME-Zarr itself, and BigDataViewer's ``settings.xml``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from n5zarr.conventions.model import mapping, numbers, range_of
from n5zarr.format.lenient_json import JSON
from n5zarr.images.image import Channel, Image, default_color
from n5zarr.images.ome_documents import ome_part

_COLOR = re.compile("#?([0-9A-Fa-f]{6})([0-9A-Fa-f]{2})?")  # some write a hash, or an opacity


def find_shown(attributes: Iterable[Mapping[str, JSON]]) -> Channel:
    """Find display settings of an image: in its finest level, then in the groups above.

    Examples
    --------
    >>> find_shown([{"intensityLimits": {"min": 12, "max": 357}, "color": {"rgba": -16711936}}])
    Channel(name=None, color='00FF00', limits=(12.0, 357.0))
    """
    limits, color = None, None
    for each in attributes:
        limits = limits or _limits_in(each)
        rgba = mapping(each.get("color")).get("rgba")  # imglib2's ARGBType: alpha first
        color = color or (f"{rgba & 0xFFFFFF:06X}" if isinstance(rgba, int) else None)
    return Channel(limits=limits, color=color)


def _limits_in(attributes: Mapping[str, JSON]) -> tuple[float, float] | None:
    fused = mapping(attributes.get("Bigstitcher-Spark"))
    canonical = mapping(attributes.get("intensityLimits"))
    contrast = mapping(attributes.get("contrastLimits"))
    candidates: tuple[JSON, ...] = (
        [canonical.get("min"), canonical.get("max")],
        attributes.get("contrastLimits"),
        [contrast.get("start"), contrast.get("end")],
        [attributes.get("min"), attributes.get("max")],
        [fused.get("MinIntensity"), fused.get("MaxIntensity")],
    )
    return next(filter(None, map(range_of, candidates)), None)


def omero(
    shown: Channel,
    dtype: np.dtype[np.generic],
    n_channels: int,
    labels: Sequence[str] | None = None,
    own: JSON = None,
) -> dict[str, JSON] | None:
    """Make ``omero``: colour, name and window of each channel.

    Without limits, viewers choose their own from the image, but not with some limits; so ``omero``
    is omitted unless settings are known. The range of bytes is 0 to 255.

    Parameters
    ----------
    shown : Channel
        The settings in the source.
    dtype : numpy.dtype
        Data type of the image; its range is the window where no limits are known.
    n_channels : int
        Number of channels.
    labels : sequence of str, optional
        Names of the channels.
    own : JSON, optional
        ``omero`` of the source, which is kept if it has all channels.
    """
    kept = _complete(own, n_channels)
    if kept is not None:
        return kept
    is_byte = dtype.kind in "ui" and dtype.itemsize == 1
    if not (shown.limits or shown.color or labels or is_byte):
        return None
    lowest, highest = shown.limits or (0.0, 1.0)
    if dtype.kind in "ui":
        info = np.iinfo(dtype.name)
        lowest, highest = int(info.min), int(info.max)
    start, end = shown.limits or (lowest, highest)
    window: dict[str, JSON] = {"min": lowest, "max": highest, "start": start, "end": end}
    channels: list[JSON] = []
    names = labels if labels is not None and len(labels) == n_channels else ()
    for i in range(n_channels):
        channel: dict[str, JSON] = {
            "color": (shown.color if n_channels == 1 else None) or default_color(i, n_channels),
            "window": window,
            "active": True,
        }
        channels.append(channel | ({"label": names[i]} if names else {}))
    return {"channels": channels}


def _complete(own: JSON, n_channels: int) -> dict[str, JSON] | None:
    """Return ``omero`` if it has OME-Zarr's required members: colour and window of each channel."""
    channels = mapping(own).get("channels")
    if not isinstance(channels, list) or len(channels) != n_channels:
        return None
    for channel in map(mapping, channels):
        window = mapping(channel.get("window"))
        limits = [window.get(key) for key in ("min", "max", "start", "end")]
        if not isinstance(channel.get("color"), str) or numbers(limits, 4) is None:
            return None
    return dict(mapping(own))


def with_display(
    image: Image, shown: Channel, labels: Sequence[str] | None = None, own: JSON = None
) -> Image:
    """Return an image with its display settings; see :func:`omero`."""
    each = zip(image.axes, image.levels[0].shape, strict=True)
    n_channels = math.prod(n for axis, n in each if axis.type not in ("time", "space"))
    found = omero(shown, image.dtype, n_channels, labels, own)
    listed = mapping(found).get("channels")
    channels = image.channels
    if isinstance(listed, list) and len(listed) == len(channels):
        channels = tuple(_channel(mapping(each)) for each in listed)
    return replace(image, omero=found, channels=channels)


def _channel(given: Mapping[str, JSON]) -> Channel:
    """Read a channel; omit invalid colours and limits."""
    window, label = mapping(given.get("window")), given.get("label")
    color = _COLOR.fullmatch(str(given.get("color")))
    return Channel(
        name=None if label is None else str(label),
        color=color and color[1].upper(),
        limits=range_of([window.get("start"), window.get("end")]),
    )


def is_label(
    path: str,
    dtype: np.dtype[np.generic],
    attributes: Sequence[Mapping[str, JSON]],
    patterns: Sequence[str] = (),
) -> bool:
    """Whether the elements of an image are labels.

    They are labels if they are integers, and a pattern matches, or the path has a group ``labels``,
    or the dataset, its group or the group above has attributes of Paintera's labels, CellMap's
    annotations, or OME-Zarr's labels.

    Parameters
    ----------
    path : str
        Of the image.
    dtype : numpy.dtype
        Data type of its elements.
    attributes : sequence of mapping
        Of the finest level, and of the groups above it, the nearest first.
    patterns : sequence of str, optional
        Patterns of paths of labels, such as ``"seg/*"``.

    Examples
    --------
    >>> is_label("em/labels/nuclei", np.dtype("u4"), []), is_label("em", np.dtype("u4"), [])
    (True, False)
    """
    if dtype.kind not in "ui":
        return False
    if "labels" in path.split("/") or any(fnmatchcase(path, pattern) for pattern in patterns):
        return True
    return any(map(_says_label, attributes[:3]))


def _says_label(attributes: Mapping[str, JSON]) -> bool:
    return (
        attributes.get("isLabelMultiset") is True
        or mapping(attributes.get("painteraData")).get("type") == "label"
        or "annotation_type" in mapping(mapping(attributes.get("cellmap")).get("annotation"))
        or isinstance(ome_part(attributes, "image-label"), Mapping)
    )
