"""Levels in the ``multiscales`` of a group: add, change or remove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from n5zarr.conventions.levels import entries_in, path_of
from n5zarr.conventions.model import items_of, level_of, mapping
from n5zarr.format.order import to_c

if TYPE_CHECKING:
    from n5zarr.conventions.describe import Written
    from n5zarr.format.lenient_json import JSON

__all__ = ["add_level", "remove_levels", "set_level", "shares_transforms"]


def remove_levels(attributes: Mapping[str, JSON], names: Sequence[str]) -> dict[str, JSON]:
    """Remove the entries of ``multiscales`` that describe datasets about to be created.

    Parameters
    ----------
    attributes : mapping
        Of the group.
    names : sequence of str
        Of the datasets.
    """
    multiscales = attributes.get("multiscales")
    if not isinstance(multiscales, list):
        return dict(attributes)
    images: list[JSON] = []
    for image in multiscales:
        if not isinstance(image, Mapping) or (levels := _levels(image)) is None:
            images.append(image)
            continue
        kept = [entry for entry in levels if path_of(entry) not in names]
        if kept or not levels:
            images.append({**image, "datasets": kept})
    others = {key: value for key, value in attributes.items() if key != "multiscales"}
    return {**others, "multiscales": images} if images else others


def add_level(
    attributes: Mapping[str, JSON], group: str, name: str, written: Written
) -> dict[str, JSON]:
    """Add a dataset to ``multiscales``, beside the other levels of its image.

    Parameters
    ----------
    attributes : mapping
        Of the group.
    group : str
        Its path; the last name is that of the image.
    name : str
        Of the dataset; ``s0``, ``s1``, ... are levels of one image, others separate images.
    written : Written
        The image and the level as the convention writes them.

    Returns
    -------
    dict
        The new attributes of the group; unchanged if the convention has no ``multiscales``.
    """
    ome = _ome_object(attributes, written)
    if ome is not None:
        return {**attributes, "ome": add_level(ome, group, name, _without_version(written))}
    multiscales = attributes.get("multiscales")
    is_level = level_of(name) is not None
    image, level = written.image or {}, written.level
    # an object instead of the list belongs to the canonical convention
    if not level or not isinstance(multiscales, list | None) or not (is_level or image):
        return dict(attributes)
    image_name = group.rpartition("/")[2] if is_level else name
    images = list(multiscales or [])
    position = _find_image(images, image_name, level, is_level=is_level)
    if position == len(images):
        images.append({"name": image_name, **image, "datasets": []})
    existing = mapping(images[position])
    order, new_order = existing.get("axes"), image.get("axes")
    if isinstance(order, list) and isinstance(new_order, list) and order != new_order:
        if order == [*to_c(new_order)]:
            level = _in_c_order(level)
        else:  # other axes: another image in the same group
            existing = {"name": f"{image_name}/{name}", **image, "datasets": []}
            images.append(existing)
            position = len(images) - 1
    levels = sorted([*entries_in(existing), level], key=_level_number)
    images[position] = {**image, **existing, "datasets": levels}
    return {**attributes, "multiscales": images}


def set_level(
    attributes: Mapping[str, JSON], group: str, name: str, written: Written
) -> dict[str, JSON]:
    """Replace the entry of a dataset in ``multiscales``, and keep the rest of its image.

    If no image of this convention has the dataset, add it like :func:`add_level`, and remove it
    from images of other conventions.
    """
    ome = _ome_object(attributes, written)
    if ome is not None:
        return {**attributes, "ome": set_level(ome, group, name, _without_version(written))}
    images = items_of(attributes.get("multiscales"))
    level, axes = written.level or {}, (written.image or {}).get("axes")
    transform = next((key for key in level if key != "path"), "")
    for position, image in enumerate(images):
        old, levels = mapping(image), list(entries_in(mapping(image)))
        found = [i for i, e in enumerate(levels) if path_of(e) == name and transform in mapping(e)]
        if not found:
            continue
        new = dict(level)
        if isinstance(axes, list) and _names_of(old.get("axes")) == _names_of([*to_c(axes)]):
            new, axes = _in_c_order(new), [*to_c(axes)]
        levels[found[0]] = {**mapping(levels[found[0]]), **new}
        described: dict[str, JSON] = {} if axes is None else {"axes": axes}
        # transforms of the image would be applied to those of its levels
        kept = {k: v for k, v in old.items() if k != "coordinateTransformations"}
        changed = list(images)
        changed[position] = {**kept, **described, "datasets": levels}
        return {**attributes, "multiscales": changed}
    return add_level(remove_levels(attributes, [name]), group, name, written)


def shares_transforms(attributes: Mapping[str, JSON], name: str) -> bool:
    """Whether a dataset belongs to an image of several levels that has transforms for all."""
    for image in map(mapping, items_of(attributes.get("multiscales"))):
        paths = [*map(path_of, entries_in(image))]
        if name in paths and len(paths) > 1 and image.get("coordinateTransformations"):
            return True
    return False


def _ome_object(attributes: Mapping[str, JSON], written: Written) -> Mapping[str, JSON] | None:
    """Return the object that holds ``multiscales`` in OME-NGFF 0.5, if the group has it."""
    ome = mapping(attributes.get("ome"))
    is_ngff = "coordinateTransformations" in (written.level or {})
    return ome if is_ngff and isinstance(ome.get("multiscales"), list) else None


def _without_version(written: Written) -> Written:
    """Remove the version of the image, which 0.5 stores once, above."""
    image = {key: value for key, value in (written.image or {}).items() if key != "version"}
    return written._replace(image=image)


def _names_of(axes: JSON) -> list[JSON]:
    return [mapping(axis).get("name") for axis in items_of(axes)]


def _find_image(
    images: Sequence[JSON], name: str, level: Mapping[str, JSON], *, is_level: bool
) -> int:
    """Return the position of the image of the same convention with this name, or with other levels.

    Return the number of images if there is no such image.
    """
    for position, image in enumerate(images):
        levels = _levels(mapping(image))
        if levels is None:
            continue
        has_levels = is_level and any(level_of(str(path_of(entry))) is not None for entry in levels)
        if not has_levels and mapping(image).get("name") != name:
            continue
        if all(isinstance(entry, Mapping) and entry.keys() == level.keys() for entry in levels):
            return position
    return len(images)


def _levels(image: Mapping[str, JSON]) -> list[JSON] | None:
    levels = image.get("datasets")
    return levels if isinstance(levels, list) else None


def _in_c_order(level: Mapping[str, JSON]) -> dict[str, JSON]:
    """Reverse the lists of a level's transforms, for an image whose axes are in C order."""
    steps: list[JSON] = [
        {key: [*to_c(v)] if isinstance(v, list) else v for key, v in mapping(step).items()}
        for step in items_of(level["coordinateTransformations"])
    ]
    return {**level, "coordinateTransformations": steps}


def _level_number(entry: JSON) -> tuple[int, str]:
    path = path_of(entry) or ""
    return (int(path[1:]), "") if path[1:].isdigit() else (-1, path)
