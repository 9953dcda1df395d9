"""Read the levels of the OME-Zarr images of a project, and the volume that is a view.

multiview-reconstruction ``AllenOMEZarrProperties`` and ``OMEZARREntry``: only the ratios of the
scales count, as the XML has the voxel size and the position. MoBIE ``N5OMEZarrImageLoader`` and
``ZarrAxes``: setups are channels, and an image without an axis ``z`` is one plane.

multiview-reconstruction 9 (branch zarrv3) ``AllenOMEZarrLoader.reorderToCanonicalAxes``: axes in
another order are brought into that of t, c, z, y, x, by their names and types, if each has its
place there; ``indicies`` count in this order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from n5zarr.bigdataviewer.loader import ViewImage
from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import MisfitError, items_of, mapping
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_c, to_n5
from n5zarr.images.ome_documents import UNNAMED_AXES, image_as_05

_DIGITS = 4  # to which Java rounds factors
_BY_TYPE = {"time": "t", "channel": "c"}


def level_paths(attributes: Mapping[str, JSON]) -> tuple[str, ...]:
    """Return the paths of the levels of the first image of a group, the finest first.

    Raises
    ------
    MisfitError
        The group has no image.
    """
    paths = [path_of(entry) for entry in entries_in(image_as_05(attributes))]
    if not paths or not all(paths):
        raise MisfitError("expected an image of OME-Zarr, got no multiscales with paths of levels")
    return tuple(path or "" for path in paths)


def axis_order(view: ViewImage, attributes: Mapping[str, JSON], ndim: int) -> tuple[int, ...]:
    """Return the axes of an array in the order t, c, z, y, x, as far as it has them.

    Axes of which one has another name, or two have the same, stay as they are; so do MoBIE's.

    Examples
    --------
    >>> from n5zarr.bigdataviewer.loader import ViewImage
    >>> attributes = {"multiscales": [{"axes": [{"name": name} for name in "cxyz"]}]}
    >>> axis_order(ViewImage(""), attributes, 4)
    (0, 3, 2, 1)
    """
    names = [_place_of(axis) for axis in _axes(attributes, ndim)]
    is_known = len({*names}) == ndim and {*names} <= {*UNNAMED_AXES}
    if view.channel is not None or not is_known:
        return tuple(range(ndim))
    return tuple(names.index(name) for name in UNNAMED_AXES if name in names)


def factors_of(
    attributes: Mapping[str, JSON],
    shapes: Sequence[tuple[int, ...] | None],
    n_space: int = 3,
    order: Sequence[int] = (),
) -> list[tuple[float, ...]]:
    """Return the downsampling factors of each level, N5 order, three dimensions.

    Parameters
    ----------
    attributes : mapping
        Attributes of the group of the image.
    shapes : sequence of tuple of int or None
        The shape of each level, its axes in the order of the view; None for a missing one. Their
        ratios are the factors if the levels state no scale.
    n_space : int, optional
        The number of axes of a volume or plane, from :func:`n_space_axes`.
    order : sequence of int, optional
        The axes of the array in the order of the view, from :func:`axis_order`.
    """
    scales = [
        _scale(mapping(entry), n_space, order) for entry in entries_in(image_as_05(attributes))
    ]
    first = scales[0]
    if first is not None and all(scale is not None for scale in scales):
        return [
            tuple(round(s / f, _DIGITS) for s, f in zip(scale or (), first, strict=True))
            for scale in scales
        ]
    finest = next(shape for shape in shapes if shape is not None)[-n_space:]
    ratios = [
        [float(round(f / n)) for f, n in zip(finest, (shape or finest)[-n_space:], strict=True)]
        for shape in shapes
    ]
    return [(*to_n5(each), *(1.0,) * (3 - n_space)) for each in ratios]


def n_space_axes(view: ViewImage, attributes: Mapping[str, JSON], ndim: int) -> int:
    """Return the number of axes of a view in an array: 3, or 2 of MoBIE's images without ``z``."""
    is_plane = view.channel is not None and "z" not in _axis_names(attributes, ndim)
    return 2 if is_plane else 3


def leading_indices(
    view: ViewImage, attributes: Mapping[str, JSON], shape: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the indices of a view along the axes before its own, C order; None if not there.

    Parameters
    ----------
    view : ViewImage
        The view in the XML.
    attributes : mapping
        Attributes of the group of the image.
    shape : sequence of int
        Of the array, its axes in the order of the view.

    Raises
    ------
    MisfitError
        The array has too few axes, or others, or the indices of the XML do not fit.

    Examples
    --------
    >>> from n5zarr.bigdataviewer.loader import ViewImage
    >>> leading_indices(ViewImage("", (1, 0)), {}, (2, 3, 5, 7, 11))
    (0, 1)
    >>> leading_indices(ViewImage("", channel=1, timepoint=0), {}, (2, 3, 5, 7, 11))
    (0, 1)
    """
    n_space = n_space_axes(view, attributes, len(shape))
    n = len(shape) - n_space
    if n < 0:
        raise MisfitError(f"expected an array with the axes z, y, x, got the shape {tuple(shape)}")
    if view.channel is not None:
        return _by_name(view, _axis_names(attributes, len(shape)), shape, n_space)
    chosen = to_c(view.indices) if view.indices and n else (0,) * n
    fits = len(chosen) == n and all(i < size for i, size in zip(chosen, shape[:n], strict=True))
    if not fits or (not view.indices and math.prod(shape[:n]) != 1):
        listed = " ".join(map(str, view.indices)) or "none"
        raise MisfitError(
            f"expected indicies in the XML that choose a volume of the shape {tuple(shape)}, the "
            f"axis next to z first, got {listed}"
        )
    return chosen


def _by_name(
    view: ViewImage, names: Sequence[object], shape: Sequence[int], n_space: int
) -> tuple[int, ...] | None:
    """Return the indices of a channel and time point; None if the image has no such ones."""
    space, others = tuple(names[-n_space:]), names[:-n_space]
    if space != UNNAMED_AXES[-n_space:] or not set(others) <= {"t", "c"}:
        raise MisfitError(f"expected the axes t, c, z, y, x or some of them, got {list(names)}")
    wanted = {"c": view.channel or 0, "t": view.timepoint or 0}
    sizes = {"c": 1, "t": 1} | dict(zip(map(str, names), shape, strict=True))
    if any(index >= sizes[name] for name, index in wanted.items()):
        return None
    return tuple(wanted[str(name)] for name in others)


def _axis_names(attributes: Mapping[str, JSON], ndim: int) -> list[object]:
    """Return the names of the axes."""
    axes = _axes(attributes, ndim)
    return [axis if isinstance(axis, str) else mapping(axis).get("name") for axis in axes]


def _axes(attributes: Mapping[str, JSON], ndim: int) -> Sequence[JSON]:
    """Return the axes: objects since 0.4, text in 0.3, five fixed ones before."""
    axes = image_as_05(attributes).get("axes")
    return axes if isinstance(axes, list) and len(axes) == ndim else UNNAMED_AXES[-ndim:]


def _place_of(axis: JSON) -> str:
    """Return which of the five axes this is: by type for t and c, else by name."""
    if isinstance(axis, str):
        return axis
    described = mapping(axis)
    return _BY_TYPE.get(str(described.get("type")), str(described.get("name")).lower())


def _scale(
    entry: Mapping[str, JSON], n_space: int, order: Sequence[int]
) -> tuple[float, ...] | None:
    """Return the scale of a level along x, y and z; None if it states none."""
    for each in items_of(entry.get("coordinateTransformations")):
        scale = mapping(each).get("scale")
        if isinstance(scale, list) and len(scale) >= n_space:
            ordered = [scale[axis] for axis in order] if len(scale) == len(order) else scale
            last = ordered[-n_space:]
            numbers = [n for n in last if isinstance(n, int | float) and 0 < n < math.inf]
            if len(numbers) == n_space:
                return (*to_n5(map(float, numbers)), *(1.0,) * (3 - n_space))
    return None
