"""Make the state of Neuroglancer for images: layers, axes, contrast, position and zoom."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from n5zarr.conventions.model import mapping, numbers
from n5zarr.conventions.units import ratio, symbol
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.lenient_json import JSON
from n5zarr.images.contrast import contrast_limits
from n5zarr.images.image import Image, ImageAxis

_MOST_LAYERS = 100  # a URL has no room for more
_MOST_VISIBLE = 4  # images at first, beside one image of labels
_MOST_LISTED = 12  # layers in the bar at the top; others are in the list of layers
_TYPES = frozenset({"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "float32"})
_PANEL = 440, 260  # pixels of a quarter of a small window, or of a notebook
_MARGIN = 1.1
_TILT = (0.209, -0.253, 0.056, 0.943)  # 30 and 25 degrees, so that three sides are visible
# of the channels of a project, and of images over another one: colour-blind people can tell the
# first two, which add up to white
_SETUP_COLORS = ("00FF00", "FF00FF", "00FFFF", "FFFF00", "FF0000", "0000FF")
_TINTED = """#uicontrol vec3 color color
#uicontrol invlerp normalized
void main() {
  emitRGB(color * normalized());
}
"""

type ContrastLimits = Callable[[Image, int], tuple[float, float]]


class _Axis(NamedTuple):
    """An axis that all layers share: its voxel size in a unit, and extents of images in voxels."""

    name: str
    is_space: bool
    unit: str | None
    scale: float
    ranges: Mapping[int, tuple[float, float]]
    """Begin and end of each image, by the index of the image."""

    @property
    def low(self) -> float:
        return min(low for low, _ in self.ranges.values())

    @property
    def high(self) -> float:
        return max(high for _, high in self.ranges.values())


class _Setup(NamedTuple):
    """What an image is in a project of BigDataViewer: a setup, at some time points."""

    number: float
    timepoint: float
    channel: str

    @classmethod
    def of(cls, image: Image) -> _Setup | None:
        """Return the setup of an image; None if the image is of no project."""
        own = mapping(image.attributes.get("bdv"))
        number, times = numbers([own.get("setup")]), numbers(own.get("timepoints"))
        if not number or not times:
            return None
        return cls(number[0], times[0], str(mapping(own.get("names")).get("channel")))


def can_show(image: Image) -> bool:
    """Whether Neuroglancer knows the data type of an image."""
    return image.dtype.name in _TYPES


def check_shown(images: Sequence[Image], where: str) -> None:
    """Raise an error unless Neuroglancer can show one of the images.

    Raises
    ------
    N5UnrepresentableError
        There is no image (``kind="not-found"``), or none of a data type that Neuroglancer knows
        (``kind="data-type"``).
    """
    if not images:
        raise N5UnrepresentableError(
            "expected an image to show, got none", kind="not-found", where=where
        )
    if not any(map(can_show, images)):
        found = ", ".join(sorted({image.dtype.name for image in images}))
        raise N5UnrepresentableError(
            "Neuroglancer: expected integers of 8 to 32 bits, uint64 or float32, got only "
            f"{found}; n5zarr.plot and napari show it",
            kind="data-type",
            where=where,
        )


def fragment(state: Mapping[str, JSON]) -> str:
    """Return the part of a URL after ``#`` from which Neuroglancer reads a state."""
    return f"!{quote(json.dumps(state, separators=(',', ':'), ensure_ascii=False), safe=':/@=')}"


def neuroglancer_state(
    images: Sequence[Image],
    url: str,
    *,
    title: str = "",
    show_all: bool = False,
    limits: ContrastLimits = contrast_limits,
) -> dict[str, JSON]:
    """Make the state of Neuroglancer that shows images.

    A pyramid is one layer, or one layer for each channel. The first images and the first labels
    are visible, of a project all setups of the first channel at the first time point; some of the
    others are in the bar at the top, the rest in the list of layers. Zoom and position bring all
    visible images into view.

    Parameters
    ----------
    images : sequence of Image
        At least one; images of a data type that Neuroglancer does not know are left out.
    url : str
        Address of the images as OME-Zarr; the path of an image follows.
    title : str, optional
        Title of the viewer.
    show_all : bool, optional
        Whether all images are visible.
    limits : callable, optional
        Returns the values of a channel of an image to show darkest and brightest; by default
        :func:`~n5zarr.images.contrast.contrast_limits`, which reads the coarsest level if the
        container has no limits. It is called for visible images only, and for a few of the tiles of
        a project, which have the same limits; others of the same data type get these limits.

    Returns
    -------
    dict
        The JSON that Neuroglancer shows under *Edit JSON state*.
    """
    images = _in_order([image for image in images if can_show(image)])
    visible = _visible(images, show_all=show_all)
    layers = list(_layers(images, visible, url.rstrip("/"), limits))[:_MOST_LAYERS]
    for number, layer in enumerate(layers):
        if number >= _MOST_LISTED and not layer.get("visible", True):
            layer["archived"] = True
    state: dict[str, JSON] = {"title": title} if title else {}
    state |= _view(images, visible)
    return {
        **state,
        "layers": layers,
        "showScaleBar": True,
        "showAxisLines": True,
        **({"layerListPanel": {"visible": True}} if len(layers) > _MOST_LISTED else {}),
    }


def _visible(images: Sequence[Image], *, show_all: bool) -> list[int]:
    if show_all:
        return list(range(len(images)))
    setups = _setups(images)
    if setups:
        first = min(setups.values())
        return [i for i, s in setups.items() if s[1:] == first[1:]]
    plain = [i for i, image in enumerate(images) if not image.is_labels]
    labels = [i for i, image in enumerate(images) if image.is_labels]
    return plain[:_MOST_VISIBLE] + labels[:1]


def _layers(
    images: Sequence[Image], visible: Sequence[int], url: str, limits: ContrastLimits
) -> Iterator[dict[str, JSON]]:
    setups = _setups(images)
    colors = _colors(setups) or _colors_over(images, visible)
    known = _limits_of_tiles([images[i] for i in visible if i in setups], limits)
    n_plain = sum(len(images[i].channels) for i in visible if not images[i].is_labels)
    all_names = [image.name for image in images]
    for i, image in enumerate(images):
        is_visible = i in visible
        name = image.name if all_names.count(image.name) == 1 else image.path or image.name
        path = quote(image.path, safe="/~")
        shared: dict[str, JSON] = {
            "type": "segmentation" if image.is_labels else "image",
            "source": f"{url}/{path}{'/' if path else ''}|zarr3:",
            **({} if is_visible else {"visible": False}),
        }
        if image.is_labels:
            yield {**shared, "name": name}
            continue
        for number, channel in enumerate(image.channels):
            key = image.dtype.name, number
            if channel.limits is None and is_visible and i not in setups:
                known[key] = limits(image, number)
            found = channel.limits or known.get(key)
            label = channel.name or f"channel {number}"
            yield {
                **shared,
                "name": f"{name} {label}" if len(image.channels) > 1 else name,
                "opacity": 1,
                **({"blend": "additive"} if n_plain > 1 or colors else {}),
                **_local_axis(image, number),
                **_shader(image, channel.color or colors.get(i) or image.color(number), found),
            }


def _setups(images: Sequence[Image]) -> dict[int, _Setup]:
    """Return the setups of a project by the index of their image; none of other images."""
    found = {i: setup for i, image in enumerate(images) if (setup := _Setup.of(image))}
    return found if len(found) == len(images) else {}


def _in_order(images: Sequence[Image]) -> list[Image]:
    """Sort the setups of a project by channel, as later ones may find no room."""
    setups = _setups(images)
    if not setups:
        return list(images)
    firsts: dict[str, _Setup] = {}
    for setup in sorted(setups.values()):
        firsts.setdefault(setup.channel, setup)
    order = sorted(
        setups, key=lambda i: (setups[i].timepoint, firsts[setups[i].channel], setups[i])
    )
    return [images[i] for i in order]


def _colors(setups: Mapping[int, _Setup]) -> dict[int, str]:
    """Choose a colour for each channel of a project; none if there is only one channel."""
    channels = [*dict.fromkeys(setup.channel for setup in setups.values())]
    if len(channels) < 2:
        return {}
    of = {c: _SETUP_COLORS[n % len(_SETUP_COLORS)] for n, c in enumerate(channels)}
    return {i: of[setup.channel] for i, setup in setups.items()}


def _colors_over(images: Sequence[Image], visible: Sequence[int]) -> dict[int, str]:
    """Choose a colour for each image over the first, of integers: white on white shows neither."""
    plain = [i for i in visible if not images[i].is_labels and len(images[i].channels) == 1]
    plain.sort(key=lambda i: images[i].dtype.kind == "f")  # a prediction is over its image
    axes = _axes([images[i] for i in plain])
    over: list[int] = []
    for k, i in enumerate(plain[1:], 1):
        both = [(axis.ranges[0], axis.ranges[k]) for axis in axes if {0, k} <= axis.ranges.keys()]
        if both and all(max(a[0], b[0]) < min(a[1], b[1]) for a, b in both):
            over.append(i)
    return {i: _SETUP_COLORS[n % len(_SETUP_COLORS)] for n, i in enumerate(over)}


def _limits_of_tiles(
    tiles: Sequence[Image], limits: ContrastLimits
) -> dict[tuple[str, int], tuple[float, float]]:
    """Return limits that all tiles share, by data type: the widest of those of a few tiles."""
    wanted = [tile for tile in tiles if tile.channels[0].limits is None]
    known: dict[tuple[str, int], tuple[float, float]] = {}
    for tile in wanted[:: -(-len(wanted) // _MOST_VISIBLE) or 1]:
        key, found = (tile.dtype.name, 0), limits(tile, 0)
        low, high = known.get(key, found)
        known[key] = min(low, found[0]), max(high, found[1])
    return known


def _local_axis(image: Image, channel: int) -> dict[str, JSON]:
    """Choose a channel for a layer: the name of an axis of this layer only ends with a prime."""
    if image.channel_axis is None:
        return {}
    name = f"{image.axes[image.channel_axis].name}'"
    return {"localDimensions": {name: [1, ""]}, "localPosition": [channel]}


def _shader(image: Image, color: str, limits: tuple[float, float] | None) -> dict[str, JSON]:
    controls: dict[str, JSON] = {}
    if limits is not None:
        is_whole = image.dtype.kind in "ui"
        low, high = limits if not is_whole else (math.floor(limits[0]), math.ceil(limits[1]))
        controls["normalized"] = {"range": [low, high]}
    is_tinted = color.upper() != "FFFFFF"
    if is_tinted:
        controls["color"] = f"#{color}"
    return ({"shader": _TINTED} if is_tinted else {}) | {"shaderControls": controls}


def _view(images: Sequence[Image], visible: Sequence[int]) -> dict[str, JSON]:
    """Return axes, position and zoom for the visible images."""
    shown = [images[i] for i in visible]
    axes = sorted(_axes(shown), key=lambda axis: (not axis.is_space, axis.name))
    space = [axis for axis in axes if axis.is_space]
    sizes = [symbol(axis.unit)[1] * axis.scale for axis in axes]
    state: dict[str, JSON] = {
        "dimensions": {
            axis.name: [size, symbol(axis.unit)[0]] for axis, size in zip(axes, sizes, strict=True)
        },
        "displayDimensions": [axis.name for axis in space][:3],
        "position": _position(axes),
        "layout": "4panel" if len(space) > 2 else "xy",
    }
    if space:
        finest = min(axis.scale for axis in space)
        extents = [(axis.high - axis.low) * axis.scale / finest for axis in space]
        width, height = _PANEL if len(space) > 2 else (2 * _PANEL[0], 2 * _PANEL[1])
        x, y, z = (*extents, 0.0, 0.0)[:3]
        state["crossSectionScale"] = _MARGIN * max(max(x, z) / width, max(y, z) / height)
        state["projectionScale"] = math.hypot(x, y, z)
        state["projectionOrientation"] = list(_TILT)
        state["hideCrossSectionBackground3D"] = True
    return state


def _axes(images: Sequence[Image]) -> list[_Axis]:
    """Return all axes but channels, each in voxels of the first image that has it."""
    found: dict[str, tuple[ImageAxis, float]] = {}
    ranges: dict[str, dict[int, tuple[float, float]]] = {}
    for i, image in enumerate(images):
        level = image.levels[0]
        for d, axis in enumerate(image.axes):
            if axis.type == "channel":
                continue
            first, scale = found.setdefault(axis.name, (axis, level.scale[d]))
            factor = (ratio(axis.unit, first.unit) or 1.0) / scale
            # Neuroglancer's positions are those of corners, OME-Zarr's those of centres
            low = (level.translation[d] - level.scale[d] / 2) * factor
            high = low + level.shape[d] * level.scale[d] * factor
            ranges.setdefault(axis.name, {})[i] = (low, high)
    return [
        _Axis(name, axis.type == "space", axis.unit, scale, ranges[name])
        for name, (axis, scale) in found.items()
    ]


def _position(axes: Sequence[_Axis]) -> list[JSON]:
    """Return the centre of all images if it is inside one of them, else that of the first."""
    centre = [(axis.low + axis.high) / 2 for axis in axes]
    indices = sorted({i for axis in axes for i in axis.ranges})
    is_inside = any(
        all(
            low <= at <= high
            for axis, at in zip(axes, centre, strict=True)
            for low, high in [axis.ranges.get(i, (-math.inf, math.inf))]
        )
        for i in indices
    )
    if not is_inside:
        firsts = [next(iter(axis.ranges.values())) for axis in axes]
        centre = [(low + high) / 2 for low, high in firsts]
    return [
        # the centre of an element, not the border between two; of other axes than space the first
        math.floor(at - axis.low) + axis.low + 0.5 if axis.is_space else axis.low + 0.5
        for axis, at in zip(axes, centre, strict=True)
    ]
