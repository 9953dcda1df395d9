"""Open the OME-Zarr images of a project: the levels of each view."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from n5zarr.conventions.bdv_ome import factors_of, leading_indices, level_paths, n_space_axes
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
    """

    def __init__(self, store: Store, name: str, images: Mapping[ViewId, ViewImage]) -> None:
        self.store = store
        self.name = name
        self.images = dict(sorted(images.items()))
        self._opened: dict[str, _Image | None] = {}  # views may share an image

    def __getstate__(self) -> tuple[Any, ...]:
        return self.store, self.name, self.images

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
        return OmeViews(confined(self.store), self.name, self.images)

    async def levels(self, view: ViewId) -> StoredLevels:
        """Open the levels of a view; none if it does not exist."""
        view_image = self.images[view]
        path = normalize_path(view_image.path)
        try:
            if path not in self._opened:
                self._opened[path] = await self._open(path)
            image = self._opened[path]
            return NO_LEVELS if image is None else self._levels(view_image, image)
        except MisfitError as err:
            raise option_error(f"{join(self.name, path)}: {err}") from err

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
        shapes = [None if array is None else array.shape for array in image.arrays]
        ndim = next(len(shape) for shape in shapes if shape is not None)
        n_space = n_space_axes(view, image.attributes, ndim)
        factors = factors_of(image.attributes, shapes, n_space)
        levels: dict[int, MadeDataset] = {}
        for number, array in enumerate(image.arrays):
            if array is not None:  # a level that is not written yet
                leading = leading_indices(view, image.attributes, array.shape)
                if leading is not None:
                    where = join(self.name, image.paths[number])
                    stated = factors_attribute(factors[number])
                    levels[number] = zarr_dataset(array, where, leading, stated, n_ones=3 - n_space)
        return StoredLevels(factors, levels)
