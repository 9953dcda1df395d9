"""Say which attributes of axes no convention can use, for a dataset that none of them places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.conventions.listed import entries_in, entries_of, images_in, path_of
from n5zarr.conventions.model import Node, brief, level_of, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["ignored"]

_SCALES = "resolution, pixelResolution, voxel_size or downsamplingFactors"


def ignored(node: Node) -> list[str]:
    """Return a message for each attribute that would place a dataset if it were complete or valid.

    Parameters
    ----------
    node : Node
        A dataset without positions.

    Returns
    -------
    list of str
        Empty if nothing seems to be about positions.
    """
    return [*_on_dataset(node), *_on_group(node)]


def _on_dataset(node: Node) -> Iterator[str]:
    own = node.attributes
    if numbers(own.get("offset"), node.ndim) is not None:
        yield f"offset: expected {_SCALES} beside it, got none"
    if own.get("voxel_size") is not None and not isinstance(own["voxel_size"], list):
        yield f"voxel_size: expected a list of numbers, got {brief(own['voxel_size'])}"
    transforms = own.get("coordinateTransformations")
    if transforms is not None and not isinstance(transforms, list):
        yield f"coordinateTransformations: expected a list, got {brief(transforms)}"


def _on_group(node: Node) -> Iterator[str]:
    group = node.ancestors[0] if node.ancestors else {}
    size = group.get("voxel_size")
    if node.level is not None and size is not None:  # others in the group may have other axes
        expected = f"at most {node.ndim} numbers"
        yield f"voxel_size of the group: expected a list of {expected}, got {brief(size)}"
    found = [*entries_of(node.path, node.ancestors)]
    for image, _ in found:
        axes = image.get("axes")
        if axes is not None and not isinstance(axes, list):
            yield f"multiscales: axes: expected a list of {node.ndim} axes, got {brief(axes)}"
    listed = [str(path_of(entry)) for image in images_in(group) for entry in entries_in(image)]
    # a level beside listed ones has been added later
    are_others = all(level_of(path) is None for path in listed)
    if node.level is not None and not found and listed and are_others:
        got = ", ".join(listed[:8])
        yield f"multiscales of the group: expected an entry for {node.path[-1]}, got {got}"
