"""Read and write OME-NGFF 0.3, 0.4 and 0.5 inside N5: ``multiscales`` of the group above.

n5-ij also writes ``axes`` and ``coordinateTransformations`` of a level into its own document.

n5-universe up to 2 wrote the lists in C order, like the specification of NGFF; since 3 they are in
N5 order. So the names decide: with ``x`` first they are in N5 order, with ``x`` last in C order.
0.3 has no transforms: levels are scaled by the ratio of their dimensions, without a translation,
and the unit is micrometres, as in n5-universe (``OmeNgffV03MetadataProcessor``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from n5zarr.conventions.levels import Steps, applied_after, entries_of, images_in
from n5zarr.conventions.model import (
    Axis,
    Convention,
    Geometry,
    MisfitError,
    Node,
    Written,
    axes_of,
    brief,
    mapping,
    numbers_at,
    texts,
)
from n5zarr.conventions.neuroglancer import one_unit, write_absolute
from n5zarr.conventions.units import in_full, spelled
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import to_n5

_TRANSFORMS = "coordinateTransformations"


def read(node: Node) -> Geometry | None:
    """Read the dataset's entry in ``multiscales`` of a group above, or its own transforms."""
    return read_listed(node) or _read_own(node)


def read_listed(node: Node, *, is_c_order: bool | None = None) -> Geometry | None:
    """Read the dataset's entry in ``multiscales`` of a group above; None if it is missing.

    Parameters
    ----------
    node : Node
        The dataset.
    is_c_order : bool, optional
        Whether the lists are in C order, as in Zarr; by default the names of the axes decide.
    """
    for image, entry in entries_of(node.path, node.ancestors):
        listed = image.get("axes")
        if isinstance(listed, list) and "spatialTransform" not in entry:  # which is canonical
            return _read(node, listed, image, entry, is_c_order=is_c_order)
    return None


def _read_own(node: Node) -> Geometry | None:
    """Read ``coordinateTransformations`` of the dataset; None if they are missing."""
    if not isinstance(node.attributes.get(_TRANSFORMS), list):
        return None
    listed = node.attributes.get("axes")
    if isinstance(listed, list) and all(isinstance(axis, Mapping) for axis in listed):
        return _read(node, listed, {}, node.attributes, is_c_order=None)
    names = node.names or [axis.name for axis in axes_of(node.ndim)]
    return _read(node, [*names], {}, node.attributes, is_c_order=False)


def _read(
    node: Node,
    listed: list[JSON],
    image: Mapping[str, JSON],
    entry: Mapping[str, JSON],
    *,
    is_c_order: bool | None,
) -> Geometry:
    within = "multiscales: " if image else ""
    if len(listed) != node.ndim:
        raise MisfitError(f"{within}axes: expected a list of {node.ndim} axes, got {brief(listed)}")
    old = bool(image) and all(isinstance(axis, str) for axis in listed)
    entries = [{"name": axis} if isinstance(axis, str) else mapping(axis) for axis in listed]
    names = [str(axis.get("name", "")) for axis in entries]
    units = [
        ("um" if name.lower() in ("x", "y", "z") else None) if old else axis.get("unit")
        for name, axis in zip(names, entries, strict=True)
    ]
    types = [axis.get("type", "") for axis in entries]
    in_c = is_c_order
    if in_c is None:
        in_c = bool(names) and names[-1].lower() == "x" and names[0].lower() != "x"
    scale, translation = _transform(entry, image, node, in_c=in_c)
    axes = axes_of(
        node.ndim,
        names=_ordered(names, in_c=in_c),
        scale=_ordered(scale, in_c=in_c),
        translation=_ordered(translation, in_c=in_c),
        units=_ordered([u if isinstance(u, str) else None for u in units], in_c=in_c),
    )
    given = _ordered([str(t) for t in types], in_c=in_c)
    listed_units = texts(node.attributes.get("units"), node.ndim) or ("",) * node.ndim
    axes = tuple(
        replace(a, type=t or a.type, unit=spelled(a.unit, node.attributes.get("unit"), text))
        for a, t, text in zip(axes, given, listed_units, strict=True)
    )
    return Geometry(axes=axes)


def _ordered[T](values: Sequence[T], *, in_c: bool) -> tuple[T, ...]:
    return to_n5(values) if in_c else tuple(values)


def _transform(
    entry: Mapping[str, JSON], image: Mapping[str, JSON], node: Node, *, in_c: bool
) -> Steps:
    """Apply the transforms of the dataset, then those of the image, in the order of the lists."""
    ones, zeros = (1.0,) * node.ndim, (0.0,) * node.ndim
    placed: Steps = ones, zeros
    if _TRANSFORMS not in entry and node.first_level is not None:
        if len(node.first_level) != node.ndim:
            raise MisfitError(
                f"multiscales: the first level: expected {node.ndim} axes, as this level has, got "
                f"{len(node.first_level)}"
            )
        ratios = zip(node.first_level, node.dimensions, strict=True)
        placed = _ordered([a / b if b else 1.0 for a, b in ratios], in_c=in_c), zeros
    for transform in (*_transforms_in(entry), *_transforms_in(image)):
        by = numbers_at(transform, "scale", node.ndim, f"{_TRANSFORMS}: ")
        to = numbers_at(transform, "translation", node.ndim, f"{_TRANSFORMS}: ")
        if by is None and to is None and transform.get("type") != "identity":
            raise MisfitError(
                f"{_TRANSFORMS}: expected scales and translations, got {brief(transform)}"
            )
        placed = applied_after(placed, (by or ones, to or zeros))
    return placed


def _transforms_in(holder: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    transforms = holder.get(_TRANSFORMS)
    if not isinstance(transforms, list | None):
        raise MisfitError(f"{_TRANSFORMS}: expected a list, got {brief(transforms)}")
    return [*map(mapping, transforms or ())]


def misread_images(group: Mapping[str, JSON]) -> str | None:
    """Say why n5-universe cannot read the images of a group; None if it can.

    ``OmeNgffMetadataParser.parseMetadata`` (n5-universe a4e759a4) takes the number of axes and the
    attributes of levels from the last image of the list, for all images. With more axes or levels
    than that, an image is an error, and none is read; with fewer axes, its transform is wrong.
    """
    images = [
        (str(image.get("name")), len(listed), len(levels))
        for image in images_in(group)
        if isinstance(listed := image.get("axes"), list)
        and isinstance(levels := image.get("datasets"), list)
    ]
    for name, n_axes, n_levels in images[:-1]:
        last, last_axes, last_levels = images[-1]
        if n_axes != last_axes:
            return f"{name} has {n_axes} axes, {last} has {last_axes}"
        if n_levels > last_levels:
            return f"{name} has {n_levels} levels, {last} after it has {last_levels}"
    return None


def has_other_rank(group: Mapping[str, JSON], ndim: int) -> bool:
    """Whether images of a group have another number of axes; see :func:`misread_images`."""
    listed = (image.get("axes") for image in images_in(group))
    return any(isinstance(axes, list) and len(axes) != ndim for axes in listed)


def write(axes: Sequence[Axis], path: str, _first: Sequence[Axis] | None = None) -> Written:
    """Describe an image of ``multiscales`` and one of its levels, in N5 order.

    Like n5-universe 3, with full names of units, like the specification of NGFF.
    """
    entries: list[JSON] = []
    for axis in axes:
        entry: dict[str, JSON] = {"name": axis.name}
        entry |= {"type": axis.type} if axis.type else {}
        entries.append(entry | ({"unit": in_full(axis.unit)} if axis.unit else {}))
    image: dict[str, JSON] = {"version": "0.4", "axes": entries}
    placed = ((axis.scale, axis.translation) for axis in axes)
    level: dict[str, JSON] = {"path": path, _TRANSFORMS: transforms_of(placed)}
    beside = write_absolute(axes)
    # n5-universe's generic parser reads the unit, and n5zarr its spelling
    return Written({}, image, level, beside | one_unit(axes) if beside else {})


def transforms_of(along: Iterable[tuple[float, float]]) -> list[JSON]:
    """Make the transforms of a level from scale and translation along each axis.

    Examples
    --------
    >>> transforms_of([(2.0, 0.0), (1.0, 0.0)]), transforms_of([(2.0, 5.0)])[1]
    ([{'type': 'scale', 'scale': [2.0, 1.0]}], {'type': 'translation', 'translation': [5.0]})
    """
    pairs = list(along)
    steps: list[JSON] = [{"type": "scale", "scale": [by for by, _ in pairs]}]
    if any(to for _, to in pairs):
        steps.append({"type": "translation", "translation": [to for _, to in pairs]})
    return steps


NGFF = Convention(
    name="ngff",
    read=read,
    write=write,
    per_axis=("axes",),
    lists=(_TRANSFORMS,),
    group_keys=("multiscales",),
    has_unit=True,
)
