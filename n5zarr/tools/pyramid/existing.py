"""List and remove the levels that a group has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.container.foreign import INCOMPLETE_JSON
from n5zarr.conventions.multiscales import remove_levels
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import join
from n5zarr.storage.requests import Remove, RemoveTree, list_each, request_each
from n5zarr.store.levels import describe_group, is_level
from n5zarr.tools.jobs.nodes import check_no_links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.store.n5_store import N5Store

__all__ = ["coarser_levels", "remove_datasets", "unlist"]


def coarser_levels(store: N5Store, group: str) -> list[str]:
    """List the existing levels beside ``s0``, complete or not."""
    (entries,) = store.run(list_each([group]))
    found = [e.name for e in entries if is_level(e.name) and e.is_dir is not False]
    names = sorted({*found} - {"s0"}, key=lambda name: int(name[1:]))
    # a run that was killed while it wrote its first file leaves a directory without others
    inside = store.run(list_each([join(group, name) for name in names]))
    return [name for name, files in zip(names, inside, strict=True) if files]


def remove_datasets(store: N5Store, group: str, names: Sequence[str]) -> None:
    """Remove levels, documents first, so that none reads as wrong numbers."""
    if not names:
        return
    paths = [join(group, name) for name in names]
    check_no_links(store.storage, paths)
    # and the marks: no run may continue a half-removed level
    files = [join(path, file) for path in paths for file in (ATTRIBUTES_JSON, INCOMPLETE_JSON)]
    store.run(request_each(map(Remove, files)))
    unlist(store, group, names)
    store.run(request_each(map(RemoveTree, paths)))


def unlist(store: N5Store, group: str, names: Sequence[str]) -> None:
    """Remove levels without documents from the attributes of their group."""
    store.run(
        store.container.update_group(group, lambda attributes: remove_levels(attributes, names))
    )
    describe_group(store, group)
