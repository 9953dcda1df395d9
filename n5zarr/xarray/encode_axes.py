"""Coordinates in the words of a convention, and what of them is understood again.

Nothing is believed to be written before it has been read as a reader will: a coordinate is said by
attributes if what they give is the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.conventions.find import Written, describe_axes, find_geometry
from n5zarr.conventions.model import Axis, Node, axes_of
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.order import CTuple, to_n5
from n5zarr.xarray.accessor import Origin
from n5zarr.xarray.backend import coordinate

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    import xarray as xr

    from n5zarr.conventions.model import Geometry

__all__ = ["Words", "in_words", "with_level", "without_levels"]


@dataclass(frozen=True)
class Words:
    """How a convention puts the axes of a variable, and of which dimensions that says all."""

    words: Written | None
    dims: frozenset[Hashable]


def in_words(
    convention: str,
    ds: xr.Dataset,
    array: xr.DataArray,
    path: str,
    above: Sequence[Mapping[str, Any]],
) -> Words:
    """Write the axes of a variable, and read them again to see what was understood."""
    names = [str(dim) for dim in array.dims][::-1]
    silent = frozenset(dim for dim in array.dims if dim not in ds.coords)
    given = {dim: _axis(ds, dim) for dim in array.dims}
    words = None
    if any(given.values()):
        found = [given[dim] or Axis(name=str(dim)) for dim in array.dims][::-1]
        words = describe_axes(convention, _typed(names, found), path.rpartition("/")[2])
        taken = {*array.attrs, *(("units",) if array.dtype.kind in "mM" else ())}
        listed = above[0].get("multiscales")
        if taken & words.attributes.keys() or (
            convention == "ngff" and not isinstance(listed, list | None)
        ):
            words = None  # the unit of the values, for one
    unwanted: list[Hashable] = []
    for attempt in (words, None) if words is not None else (None,):
        words, read = attempt, _read_again(array, names, path, above, attempt)
        placed = dict.fromkeys(array.dims, None) | _placed(array, read)
        unwanted = [dim for dim in silent if placed[dim] is not None]
        understood = read is not None and (read.convention, [a.name for a in read.axes]) == (
            convention,
            names,
        )
        if not unwanted and (understood or attempt is None):
            break
    else:
        message = (
            f"{path}: expected coordinates along {', '.join(map(str, unwanted))}: without, it "
            "would have positions from the attributes that it or a group above it has"
        )
        raise N5UnrepresentableError(message, kind="option")
    said = {
        dim
        for dim, axis in placed.items()
        if axis is not None and dim in ds.coords and _is_said(ds, dim, axis)
    }
    return Words(words, frozenset(silent | said))


def _typed(names: Sequence[str], axes: Sequence[Axis]) -> tuple[Axis, ...]:
    return axes_of(
        len(names),
        names=names,
        scale=[axis.scale for axis in axes],
        translation=[axis.translation for axis in axes],
        units=[axis.unit for axis in axes],
    )


def _read_again(
    array: xr.DataArray,
    names: Sequence[str],
    path: str,
    above: Sequence[Mapping[str, Any]],
    words: Written | None,
) -> Geometry | None:
    """Read what would be written."""
    attributes: dict[str, Any] = {"axes": list(names), **array.attrs}
    groups = list(above)
    if words is not None:
        attributes |= words.attributes
        if words.level is not None:
            group, _, name = path.rpartition("/")
            groups[0] = with_level(groups[0], group, name, words)
    node = Node(
        path=tuple(path.split("/")),
        dimensions=to_n5(CTuple(array.shape)),
        attributes=attributes,
        ancestors=groups,
    )
    return find_geometry(node).geometry


def _placed(array: xr.DataArray, read: Geometry | None) -> dict[Hashable, Axis | None]:
    if read is None or len(read.axes) != array.ndim:
        return {}
    axes = zip(array.dims, read.axes[::-1], read.is_placed[::-1], strict=True)
    return {dim: axis if is_placed else None for dim, axis, is_placed in axes}


def _is_said(ds: xr.Dataset, dim: Hashable, axis: Axis) -> bool:
    """Whether a coordinate is, to the last bit, what is read of its axis."""
    wanted = ds.coords[dim].variable.to_base_variable()
    got = coordinate(dim, axis, ds.sizes[dim])
    if got.dtype != wanted.dtype or not got.identical(wanted):  # type: ignore[no-untyped-call]
        return False
    # of one position along time or channels the distance to the next is not known
    return ds.sizes[dim] != 1 or axis.type == "space" or _known_scale(ds.coords[dim]) is not None


def _known_scale(coord: xr.DataArray) -> float | None:
    source = coord.encoding.get("source")
    return source.scale if isinstance(source, Origin) else None


def _axis(ds: xr.Dataset, dim: Hashable) -> Axis | None:
    """Find scale and translation of an evenly spaced coordinate; None for any other."""
    if dim not in ds.coords or ds.coords[dim].dims != (dim,):
        return None
    coord = ds.coords[dim]
    unit = coord.attrs.get("units")
    if coord.dtype.kind not in "iuf" or not coord.size or not isinstance(unit, str | None):
        return None
    values = np.asarray(coord.values, np.float64)
    first = float(values[0])
    scales = list(_scales(values)) if len(values) > 1 else [_known_scale(coord) or 1.0]
    best = min(scales, key=lambda scale: _n_wrong(scale, first, values))
    near = np.abs(best * np.arange(len(values)) + first - values) <= 1e-9 * abs(best)
    if not best or not np.isfinite(values).all() or not near.all():
        return None
    return Axis(name=str(dim), scale=best, translation=first, unit=unit)


def _n_wrong(scale: float, first: float, values: np.ndarray[Any, Any]) -> int:
    return int(np.count_nonzero(scale * np.arange(len(values)) + first != values))


def _scales(values: np.ndarray[Any, Any]) -> Iterable[float]:
    """Give what may have been the distance of the elements before positions were rounded."""
    for found in ((values[-1] - values[0]) / (len(values) - 1), values[1] - values[0]):
        yield float(found)
        for digits in (15, 14, 13, 12, 9, 6):
            yield float(f"{found:.{digits}g}")


def without_levels(attributes: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Forget what ``multiscales`` says of datasets that are going to be made."""
    listed = attributes.get("multiscales")
    if not isinstance(listed, list):
        return dict(attributes)
    images = []
    for image in listed:
        if isinstance(image, dict) and isinstance(image.get("datasets"), list):
            kept = [
                entry
                for entry in image["datasets"]
                if not (isinstance(entry, dict) and entry.get("path") in names)
            ]
            if kept or not image["datasets"]:
                images.append({**image, "datasets": kept})
        else:
            images.append(image)
    others = {key: value for key, value in attributes.items() if key != "multiscales"}
    return {**others, "multiscales": images} if images else others


def with_level(
    attributes: Mapping[str, Any], group: str, name: str, words: Written
) -> dict[str, Any]:
    """Put a level into ``multiscales``, beside the others of its image."""
    listed = attributes.get("multiscales")
    is_level = name[:1] == "s" and name[1:].isdigit()
    image = dict(words.image or {})
    level: dict[str, Any] = dict(words.level or {})
    no_list = not isinstance(listed, list | None)  # an object is the canonical convention's
    if not level or no_list or (not is_level and not image):
        return dict(attributes)
    image_name = group.rpartition("/")[2] if is_level else name
    images = list(listed or [])
    named = (i for i, other in enumerate(images) if _is_image(other, image_name, level))
    at = next(named, len(images))
    if at == len(images):
        images.append({"name": image_name, **image, "datasets": []})
    order = _axes_of_image(images[at])
    if order is not None and "axes" in image and order != image["axes"]:
        axes: Any = image["axes"]
        if order != axes[::-1]:  # another image in the same group
            images.append({"name": f"{image_name}/{name}", **image, "datasets": []})
            at = len(images) - 1
        else:
            level = _reversed(level)
    entries = [*images[at].get("datasets", []), level]
    entries.sort(key=lambda entry: _number(entry.get("path", "")))
    images[at] = {**image, **images[at], "datasets": entries}
    return {**attributes, "multiscales": images}


def _is_image(image: object, name: str, level: Mapping[str, Any]) -> bool:
    """Whether an entry of ``multiscales`` is the image of this name, in the same convention."""
    if not isinstance(image, dict) or image.get("name") != name:
        return False
    entries = image.get("datasets")
    return isinstance(entries, list) and all(
        isinstance(entry, dict) and entry.keys() == level.keys() for entry in entries
    )


def _axes_of_image(image: Mapping[str, Any]) -> list[Any] | None:
    axes = image.get("axes")
    return axes if isinstance(axes, list) else None


def _reversed(level: Mapping[str, Any]) -> dict[str, Any]:
    """Write the lists of a level in the other order."""
    steps = [
        {key: value[::-1] if isinstance(value, list) else value for key, value in step.items()}
        for step in level["coordinateTransformations"]
    ]
    return {**level, "coordinateTransformations": steps}


def _number(path: str) -> tuple[int, str]:
    return (int(path[1:]), "") if path[1:].isdigit() else (-1, path)
