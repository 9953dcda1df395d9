"""Open the OME-Zarr images of a project: the levels of each view."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from n5zarr.conventions.bdv_ome import (
    axis_order,
    factors_of,
    leading_indices,
    level_paths,
    n_space_axes,
)
from n5zarr.conventions.model import MisfitError
from n5zarr.errors import option_error
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.confined import confined
from n5zarr.store.bdv_levels import NO_LEVELS, StoredLevels, factors_attribute
from n5zarr.store.zarr_datasets import open_zarr_array, read_node, zarr_dataset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import zarr
    from zarr.abc.store import Store

    from n5zarr.conventions.bdv_loader import ViewImage
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.bdv_levels import ViewId
    from n5zarr.store.made_datasets import MadeDataset

__all__ = ["OmeViews"]


class _Image(NamedTuple):
    """An image: attributes of its group, paths and arrays of its levels."""

    attributes: Mapping[str, JSON]
    paths: Sequence[str]
    arrays: Sequence[zarr.AsyncArray[Any] | None]


class OmeViews:
    """The views of a project whose images are OME-Zarr.

    Parameters
    ----------
    store : Store
        The store of the images, read only.
    name : str
        Where they are, for messages.
    images : mapping of (int, int) to ViewImage
        The image of each view, by setup and time point.
    sizes : mapping of int to tuple of int
        The size of each setup in the XML, N5 order.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        images: Mapping[ViewId, ViewImage],
        sizes: Mapping[int, tuple[int, ...]],
    ) -> None:
        self.store = store
        self.name = name
        self.images = dict(sorted(images.items()))
        self.sizes = sizes
        self._opened: dict[str, _Image | None] = {}  # views may share an image

    def __getstate__(self) -> tuple[Any, ...]:
        return self.store, self.name, self.images, self.sizes

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc] # with no memory

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OmeViews)
            and self.store == other.store
            and self.images == other.images
        )

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    @property
    def views(self) -> Sequence[ViewId]:
        """The views that may exist."""
        return tuple(self.images)

    def close(self) -> None:
        """Close the store of the images."""
        self.store.close()

    def confined(self) -> OmeViews:
        """Return the same views, without local files that links take out of the container."""
        return OmeViews(confined(self.store), self.name, self.images, self.sizes)

    async def levels(self, view: ViewId) -> StoredLevels:
        """Open the levels of a view; none if it does not exist."""
        view_image = self.images[view]
        path = normalize_path(view_image.path)
        try:
            if path not in self._opened:
                self._opened[path] = await self._open(path)
            image = self._opened[path]
            found = NO_LEVELS if image is None else self._levels(view_image, image)
            if 0 in found.stored and view_image.channel is None:
                _check_size(found.stored[0].dimensions, view[0], self.sizes.get(view[0], ()))
        except MisfitError as err:
            raise option_error(f"{join(self.name, path)}: {err}") from err
        return found

    async def _open(self, path: str) -> _Image | None:
        node = await read_node(self.store, path, self.name)
        attributes = None if node is None else node.attributes
        if attributes is None:
            return None
        paths = [join(path, below.strip("/")) for below in level_paths(attributes)]
        arrays = await asyncio.gather(
            *(open_zarr_array(self.store, each, self.name) for each in paths)
        )
        is_empty = all(array is None for array in arrays)
        return None if is_empty else _Image(attributes, paths, arrays)

    def _levels(self, view: ViewImage, image: _Image) -> StoredLevels:
        """Return the levels of a view in its image."""
        there = {n: array for n, array in enumerate(image.arrays) if array is not None}
        ndim = next(iter(there.values())).ndim
        order = axis_order(view, image.attributes, ndim)
        n_space = n_space_axes(view, image.attributes, ndim)
        ordered = {n: _in_order(array.shape, order) for n, array in there.items()}
        shapes = [ordered.get(n) for n in range(len(image.arrays))]
        factors = factors_of(image.attributes, shapes, n_space, order)
        levels: dict[int, MadeDataset] = {}
        for number, array in there.items():  # without levels that are not written yet
            leading = leading_indices(view, image.attributes, ordered[number])
            if leading is not None:
                levels[number] = zarr_dataset(
                    array,
                    join(self.name, image.paths[number]),
                    leading,
                    factors_attribute(factors[number]),
                    n_ones=3 - n_space,
                    order=order,
                )
        return StoredLevels(factors, levels)


def _in_order(shape: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
    """Return the extents of a level with the axes of the finest in order."""
    if len(shape) != len(order):
        raise MisfitError(f"expected levels of {len(order)} axes, got the shape {shape}")
    return tuple(shape[axis] for axis in order)


def _check_size(dimensions: Sequence[int], setup: int, size: Sequence[int]) -> None:
    """Raise if an image has another size than the XML says, such as with other axes."""
    if len(size) == 3 and tuple(dimensions) != tuple(size):
        raise MisfitError(
            f"expected an image of the size of setup {setup} in the XML, x, y, z = {[*size]}, got "
            f"{[*dimensions]}; correct the axes of the image, or the size in the XML"
        )
