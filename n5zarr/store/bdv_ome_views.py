"""Open the OME-Zarr images of a project: the levels of each view."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, override

import numpy as np
import zarr
from zarr.buffer import cpu
from zarr.storage import StorePath

from n5zarr.conventions.bdv_ome import factors_of, leading_indices, level_paths, n_space_axes
from n5zarr.conventions.model import MisfitError
from n5zarr.errors import N5UnsupportedError, option_error
from n5zarr.format.data_type import DataType
from n5zarr.format.order import CTuple, N5Tuple, to_c, to_n5
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.confined import confined
from n5zarr.store.bdv_levels import Level
from n5zarr.zarr_view.keys import ChunkNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zarr.abc.store import Store

    from n5zarr.conventions.bdv_loader import ViewImage
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.bdv_levels import ViewId

__all__ = ["OmeViews"]

_AT_A_TIME = 32  # requests for sizes


@dataclass(frozen=True, kw_only=True)
class _OmeLevel(Level):
    """A level in an array of Zarr, at indices along the axes before those of the view."""

    array: zarr.AsyncArray[Any]
    leading: tuple[int, ...]

    @property
    def n_space(self) -> int:
        """The number of axes of the view: 3, or 2 of a plane."""
        return self.array.ndim - len(self.leading)

    @override
    async def values(self, box: tuple[slice, ...]) -> np.ndarray:
        inner = box[-self.n_space :]  # a plane has one element along z
        values = np.asarray(await self.array.getitem((*self.leading, *inner)))
        return values.reshape((1,) * (3 - self.n_space) + values.shape)

    @override
    async def positions(self) -> list[N5Tuple]:
        """List the blocks whose chunk, or the shard around it, is stored."""
        if self.array.metadata.fill_value not in (None, 0):  # N5 reads missing blocks as 0
            return sorted(N5Tuple(p) for p in product(*map(range, self.grid)))
        stored = _in_space(self.array.shards or self.array.chunks, self.n_space)
        chunks = _in_space(self.array.chunks, self.n_space)
        by = [s // c for s, c in zip(stored, chunks, strict=True)]
        found: list[N5Tuple] = []
        for _, coords in await self._stored():
            each = zip(coords, by, to_c(self.grid), strict=True)
            inside = [range(c * n, min((c + 1) * n, end)) for c, n, end in each]
            found += [to_n5(CTuple(position)) for position in product(*inside)]
        return sorted(found)

    @override
    async def n_bytes_stored(self) -> int:
        limit = asyncio.Semaphore(_AT_A_TIME)

        async def size(key: str) -> int:
            async with limit:
                return await self.array.store_path.store.getsize(key)

        return sum(await asyncio.gather(*(size(key) for key, _ in await self._stored())))

    async def _stored(self) -> list[tuple[str, tuple[int, ...]]]:
        """List the keys of stored chunks or shards of the volume, with their grid positions."""
        stored = self.array.shards or self.array.chunks
        within = tuple(i // n for i, n in zip(self.leading, stored, strict=False))
        names = ChunkNames.of(self.array.metadata.to_dict())
        prefix = f"{self.array.path}/" if self.array.path else ""
        volume = prefix  # as views may share an array, with the keys of many others
        if within and names.separator == "/":
            volume = f"{names.key(self.array.path, within)}/"
        found = []
        async for key in self.array.store_path.store.list_prefix(volume):
            coords = names.coords(key.removeprefix(prefix))
            n = len(within)
            if coords and len(coords) == len(stored) and coords[:n] == within:
                found.append((key, (0,) * (3 - self.n_space) + coords[n:]))
        return found


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

    async def levels(self, view: ViewId) -> Mapping[int, Level]:
        """Open the levels of a view, by number; none if it does not exist."""
        view_image = self.images[view]
        path = normalize_path(view_image.path)
        try:
            if path not in self._opened:
                self._opened[path] = await self._open(path)
            image = self._opened[path]
            return {} if image is None else self._levels(view_image, image)
        except MisfitError as err:
            raise option_error(f"{join(self.name, path)}: {err}") from err

    async def _open(self, path: str) -> _Image | None:
        attributes = await self._attributes(path)
        if attributes is None:
            return None
        paths = [join(path, below.strip("/")) for below in level_paths(attributes)]
        arrays = await asyncio.gather(*map(self._array, paths))
        is_empty = all(array is None for array in arrays)
        return None if is_empty else _Image(attributes, paths, arrays)

    def _levels(self, view: ViewImage, image: _Image) -> dict[int, Level]:
        """Return the levels of a view in its image."""
        shapes = [None if array is None else array.shape for array in image.arrays]
        ndim = next(len(shape) for shape in shapes if shape is not None)
        n_space = n_space_axes(view, image.attributes, ndim)
        factors = factors_of(image.attributes, shapes, n_space)
        levels: dict[int, Level] = {}
        for number, array in enumerate(image.arrays):
            if array is not None:  # a level that is not written yet
                leading = leading_indices(view, image.attributes, array.shape)
                if leading is not None:
                    kind = _data_type(array, join(self.name, image.paths[number]))
                    levels[number] = _OmeLevel(
                        dimensions=to_n5(_in_space(array.shape, n_space)),
                        block_size=to_n5(_in_space(array.chunks, n_space)),
                        data_type=kind,
                        factors=factors[number],
                        array=array,
                        leading=leading,
                    )
        return levels

    async def _attributes(self, path: str) -> Mapping[str, JSON] | None:
        """Return the attributes of a group of Zarr v3 or v2; None if there is no document."""
        for name in ("zarr.json", ".zattrs"):
            value = await self.store.get(join(path, name), cpu.buffer_prototype)
            if value is None:
                continue
            try:
                document = json.loads(value.to_bytes())
                found = document.get("attributes", {}) if name == "zarr.json" else document
                return dict(found)
            except (ValueError, TypeError, AttributeError) as err:
                message = f"{join(self.name, path, name)}: expected the document of a group"
                raise option_error(f"{message}, got {err}") from err
        return None

    async def _array(self, path: str) -> zarr.AsyncArray[Any] | None:
        try:
            return await zarr.AsyncArray.open(StorePath(self.store, path), zarr_format=None)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as err:
            message = f"{join(self.name, path)}: expected an array of Zarr, got {err}"
            raise option_error(message) from err


def _in_space(extents: tuple[int, ...], n_space: int) -> CTuple:
    """Return extents along z, y and x; 1 along a ``z`` that the array does not have."""
    return CTuple((1,) * (3 - n_space) + tuple(extents[-n_space:]))


def _data_type(array: zarr.AsyncArray[Any], where: str) -> DataType:
    try:
        return DataType(str(array.dtype.name))
    except ValueError:
        message = f"{where}: expected integers or floats of a type of N5, got {array.dtype}"
        raise N5UnsupportedError(message, kind="data-type") from None
