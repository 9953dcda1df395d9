"""Read the images of a container as layers of napari, which finds this by ``napari.yaml``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from n5zarr.conventions.model import numbers
from n5zarr.errors import N5Warning, import_optional
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.images.contrast import contrast_limits
from n5zarr.images.find import open_images
from n5zarr.images.image import Image
from n5zarr.images.source import SourceTree
from n5zarr.storage.place import Backend, Location
from n5zarr.store.location import sample_path
from n5zarr.viewing.arguments import is_n5

type LayerData = tuple[Any, dict[str, Any], Literal["image", "labels"]]
"""napari's layer data tuple: arrays, arguments of the layer, and its type."""

_MOST_LAYERS = 16  # of one image; more channels, such as those of a spectrum, get a slider
_TURNED = ".*the registration turns or shears"


def get_reader(path: str | Sequence[str]) -> Callable[[str], list[LayerData]] | None:
    """Return the reader of a path for napari; None if the path is not N5.

    Parameters
    ----------
    path : str or sequence of str
        A path or URL, as for :func:`napari_layers`; a stack of several paths is not N5.
    """
    return napari_layers if isinstance(path, str) and is_n5(path) else None


def napari_layers(
    location: Location,
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> list[LayerData]:
    """Create lazy napari layers for the images at a location in a container.

    Reads only documents and, if the container has no contrast limits for an image, some blocks of
    its coarsest level: napari would read more for this.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a group or dataset in one, or the XML of BigDataViewer or BigStitcher.
    labels : sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    list of tuple
        For each image, its levels as dask arrays, the finest first, or the array if there is only
        one; the arguments for a layer, in the order of the array; and ``"image"`` or ``"labels"``.
        Each channel of an image becomes a separate layer.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        There is no image: no dataset of numbers with two or three spatial axes
        (``kind="option"``).
    N5MissingDependencyError
        dask is not installed.

    Examples
    --------
    >>> import n5zarr
    >>> for data, options, kind in n5zarr.napari_layers(n5zarr.sample_path()):
    ...     print(kind, options["name"], options["scale"], options["units"])
    image sample.n5: em (20.0, 8.0, 8.0) ('nanometer', 'nanometer', 'nanometer')
    labels sample.n5: labels (20.0, 8.0, 8.0) ('nanometer', 'nanometer', 'nanometer')
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _TURNED, N5Warning)  # napari can turn a layer
        found = open_images(
            location, labels=labels, storage_options=storage_options, backend=backend
        )
    images = found.with_elements()
    is_one = sum(not image.is_labels for image in images) == 1
    return [_layer(found.source, image, is_one=is_one) for image in images]


def sample_layers() -> list[LayerData]:
    """Return the layers of the sample container."""
    return napari_layers(sample_path())


def _layer(tree: SourceTree, image: Image, *, is_one: bool) -> LayerData:
    """Make the layer of an image; ``is_one`` says that no other image would hide it."""
    channel = image.channel_axis
    if image.is_labels or (channel is not None and len(image.channels) > _MOST_LAYERS):
        channel = None
    kept = [i for i in range(len(image.axes)) if i != channel]
    names = tuple(image.axes[i].name for i in kept)
    order, affine = _registered(image.attributes.get("registration"), names)
    axes = [kept[i] for i in order]  # axes of the array, in napari's order
    levels = _lazy(image, axes if channel is None else [*axes[:channel], channel, *axes[channel:]])
    options: dict[str, Any] = {
        "name": _name(tree, image),
        "multiscale": len(levels) > 1,
        "scale": tuple(image.levels[0].scale[i] for i in axes),
        "translate": tuple(image.levels[0].translation[i] for i in axes),
        "units": tuple(_unit(image.axes[i].unit) for i in kept),
        "axis_labels": names,
        "metadata": {
            "container": str(tree.document or tree.container),
            "path": join(tree.path, image.path),
            "attributes": dict(image.attributes),
        },
    }
    options |= {} if affine is None else {"affine": affine}
    data = levels if len(levels) > 1 else levels[0]
    if image.is_labels:
        return data, options, "labels"
    options |= _channel_options(image, channel, options["name"])
    if not is_one or channel is not None:
        options["blending"] = "additive"  # so that no layer hides another
    return data, options, "image"


def _lazy(image: Image, axes: Sequence[int]) -> list[Any]:
    """Return the levels of an image as dask arrays with another order of axes."""
    import_optional("dask.array", "the reader for napari", "napari")
    levels: list[Any] = [level.lazy() for level in image.levels]
    return [level.transpose(tuple(axes)) for level in levels]


def _name(tree: SourceTree, image: Image) -> str:
    """Return the name of a layer, which no other layer has: container and path."""
    if tree.document is not None:
        return f"{str(tree.document).rpartition('/')[2]}: {image.path or image.name}"
    container = Path(str(tree.container)).name
    path = join(tree.path, image.path)
    return f"{container}: {path}" if path else container


def _unit(unit: str | None) -> str:
    """Return a unit if pint, which napari asks, knows it; otherwise ``"pixel"``."""
    try:
        import pint  # noqa: PLC0415 - napari needs it, and asks it
    except ModuleNotFoundError:
        return unit or "pixel"
    known: Any = pint.application_registry
    # pint would evaluate more than a name
    return unit if unit and unit.isidentifier() and unit in known else "pixel"


def _channel_options(image: Image, channel: int | None, name: str) -> dict[str, Any]:
    """Return names, colours and contrast limits of channels, or of one layer with all of them."""
    shown = image.channels if channel is not None else image.channels[:1]
    limits = [contrast_limits(image, i) for i in range(len(shown))]
    colors = ["gray" if c.color in (None, "FFFFFF") else f"#{c.color}" for c in shown]
    if channel is None:
        return {"contrast_limits": limits[0], "colormap": colors[0]}
    names = [f"{name} {c.name or f'channel {i}'}" for i, c in enumerate(shown)]
    found = {"channel_axis": channel, "contrast_limits": limits, "name": names}
    return found | ({"colormap": colors} if any(c.color for c in shown) else {})


def _registered(
    registration: JSON, names: Sequence[str]
) -> tuple[Sequence[int], np.ndarray[Any, np.dtype[np.float64]] | None]:
    """Return the order of the axes of a layer, and its matrix to the world if it is registered.

    napari cuts planes along the axes of the array. In a turned view, other axes of the array are
    nearest to z, y and x of the world, so they come in this order.

    Parameters
    ----------
    registration : JSON
        The three rows that map ``[x, y, z, 1]`` to the world, as kept by a conversion to OME-Zarr.
    names : sequence of str
        Names of the axes of the image, without the axis of channels.

    Returns
    -------
    order : sequence of int
        Index of the axis of the image for each axis of the layer.
    affine : numpy.ndarray or None
        The homogeneous matrix for the axes in this order.
    """
    spatial = [i for i, name in enumerate(names) if name in ("x", "y", "z")]
    order = [*range(len(names))]
    given = numbers(registration, 12)  # any attribute may have that name
    if given is None or len(spatial) != 3:
        return order, None
    rows = np.array(given).reshape(3, 4)
    place = ["xyz".index(names[i]) for i in spatial]
    linear = rows[np.ix_(place, place)]
    nearest = max(permutations(range(3)), key=lambda p: abs(np.prod(linear[range(3), p])))
    affine = np.eye(len(names) + 1)
    affine[np.ix_(spatial, spatial)] = linear[:, nearest]
    affine[spatial, -1] = rows[place, 3]
    for i, near in zip(spatial, nearest, strict=True):
        order[i] = spatial[near]
    return order, affine
