"""Find the levels that ``multiscales`` of groups list: images, their entries, and paths."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from n5zarr.conventions.model import mapping
from n5zarr.format.path import is_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from n5zarr.format.lenient_json import JSON

__all__ = [
    "entries_in",
    "entries_of",
    "first_listed",
    "images_in",
    "listed_levels",
    "path_of",
]


def images_in(group: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """Return the images of a group: those of OME-NGFF 0.5's ``ome``, then of ``multiscales``.

    ``multiscales`` of the canonical convention is an object: a single image.
    """
    if not group:  # as most are, of which trees read very many
        return []
    found = (holder.get("multiscales") for holder in (mapping(group.get("ome")), group))
    return [mapping(m) for each in found for m in (each if isinstance(each, list) else [each])]


def entries_of(
    path: Sequence[str], ancestors: Sequence[Mapping[str, JSON]]
) -> Iterator[tuple[Mapping[str, JSON], Mapping[str, JSON]]]:
    """Find a dataset in ``multiscales`` of the groups above it, the nearest first.

    Yields
    ------
    image, entry : mapping
        An image, and the entry of the dataset in it.
    """
    for depth, group in enumerate(ancestors, 1):
        wanted = "/".join(path[-depth:])
        for image in images_in(group):
            for entry in entries_in(image):
                if path_of(entry) == wanted:
                    yield image, mapping(entry)
                    break


def first_listed(path: Sequence[str], ancestors: Sequence[Mapping[str, JSON]]) -> str | None:
    """Return the name of the finest level of the image that lists a dataset.

    None if no image lists it, or if the finest level is not in the same group, or its name that of
    no node.
    """
    for image, entry in entries_of(path, ancestors):
        first, own = path_of(entries_in(image)[0]), path_of(entry)
        if first is not None and own is not None:
            group, name = posixpath.split(first)
            return name if group == posixpath.dirname(own) and is_name(name) else None
    return None


def listed_levels(group: Mapping[str, JSON]) -> list[str]:
    """Return the paths of the levels of the first image in ``multiscales`` of a group."""
    listed = next(filter(None, map(entries_in, images_in(group))), [])
    return [path for path in map(path_of, listed) if path is not None]


def path_of(entry: JSON) -> str | None:
    """Return the path in an entry of ``multiscales``, as n5-universe's ``canonicalPath``.

    Examples
    --------
    >>> [path_of({"path": path}) for path in ("s0", "./s0", "/s0", "s0/", "a//s0", 5)]
    ['s0', 's0', 's0', 's0', 'a/s0', None]
    """
    path = mapping(entry).get("path")
    found = posixpath.normpath(path.lstrip("/")) if isinstance(path, str) else None
    return "" if found == "." else found


def entries_in(image: Mapping[str, JSON]) -> list[JSON]:
    """Return the entries of an image; an empty list if it has none."""
    levels = image.get("datasets")
    return levels if isinstance(levels, list) else []
