"""Open the levels of a project's views, in OME-Zarr or HDF5, as datasets of N5 made when read.

HDF5: bigdataviewer-core ``bdv.img.hdf5.Util`` and ``Hdf5ImageLoader``: ``t00000/s00/0/cells``,
factors in ``s00/resolutions``. Files of partitions are linked from the first file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol, override

import numpy as np
import zarr
from zarr.abc.store import Store

from n5zarr.bigdataviewer.loader import ViewImage
from n5zarr.bigdataviewer.registrations import View
from n5zarr.bigdataviewer.zarr_levels import (
    axis_order,
    factors_of,
    leading_indices,
    level_paths,
    n_space_axes,
)
from n5zarr.conventions.levels import factors_in_json
from n5zarr.conventions.model import MisfitError
from n5zarr.errors import N5FormatError, N5UnsupportedError, option_error
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import CTuple, N5Tuple, to_n5
from n5zarr.format.path import join, normalize_path
from n5zarr.shown.made_datasets import MadeDataset
from n5zarr.shown.zarr_datasets import open_zarr_array, read_node, zarr_dataset
from n5zarr.storage.confined import confined
from n5zarr.tools.hdf5_file import Hdf5File


class StoredLevels(NamedTuple):
    """The levels of a view.

    Parameters
    ----------
    factors : sequence of sequence of float
        Downsampling factors of each level of its image, N5 order, also of those without an array.
    stored : mapping of int to MadeDataset
        The levels that have an array, by number.
    """

    factors: Sequence[Sequence[float]]
    stored: Mapping[int, MadeDataset]


NO_LEVELS = StoredLevels((), {})
"""Those of a view that does not exist."""


class ViewLevels(Protocol):
    """The views of a project, which open their levels when these are needed."""

    @property
    def views(self) -> Sequence[View]:
        """The views that may exist."""

    async def levels(self, view: View) -> StoredLevels:
        """Open the levels of a view; none if it does not exist."""

    def confined(self) -> ViewLevels:
        """Return the same views, without local files that links take out of the container."""

    def close(self) -> None:
        """Close what is open; reading opens it again."""


class _Image(NamedTuple):
    """An image: attributes of its group, paths and arrays of its levels."""

    attributes: Mapping[str, JSON]
    paths: Sequence[str]
    arrays: Sequence[zarr.AsyncArray[Any] | None]


@dataclass(repr=False)
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

    store: Store
    name: str = field(compare=False)
    images: Mapping[View, ViewImage]
    sizes: Mapping[int, tuple[int, ...]] = field(compare=False)
    _opened: dict[str, _Image | None] = field(  # views may share an image
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[Any, ...]:  # without memory
        return OmeViews, (self.store, self.name, self.images, self.sizes)

    def __str__(self) -> str:
        return self.name

    @property
    def views(self) -> Sequence[View]:
        """The views that may exist."""
        return tuple(self.images)

    def close(self) -> None:
        """Close the store of the images."""
        self.store.close()

    def confined(self) -> OmeViews:
        """Return the same views, without local files that links take out of the container."""
        return OmeViews(confined(self.store), self.name, self.images, self.sizes)

    async def levels(self, view: View) -> StoredLevels:
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
                    {"downsamplingFactors": factors_in_json(factors[number])},
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


_TYPES = {kind.value for kind in DataType if kind.is_numeric}


@dataclass(frozen=True, kw_only=True)
class _Hdf5Level(MadeDataset):
    """A level in a dataset of HDF5."""

    file: Hdf5File
    path: str

    @override
    async def values(self, box: tuple[slice, ...]) -> np.ndarray:
        return await asyncio.to_thread(self._read, box)

    def _read(self, box: tuple[slice, ...]) -> np.ndarray:
        with self.file.opened() as file:
            values = np.asarray(file[self.path][box])
        # Java stores uint16 as int16 with the same bits
        is_unsigned = self.data_type is DataType.UINT16
        return values.view(values.dtype.str.replace("i", "u")) if is_unsigned else values

    @override
    async def positions(self) -> list[N5Tuple]:
        return await asyncio.to_thread(self._positions)

    def _positions(self) -> list[N5Tuple]:
        with self.file.opened() as file:
            dataset = file[self.path]
            if dataset.chunks is None or dataset.fillvalue != 0:  # N5 reads missing blocks as 0
                return sorted(N5Tuple(p) for p in product(*map(range, self.grid)))
            found: list[N5Tuple] = []

            def add(chunk: Any) -> None:  # noqa: ANN401 - h5py has no types
                each = zip(chunk.chunk_offset, dataset.chunks, strict=True)
                found.append(to_n5(CTuple(tuple(int(at) // n for at, n in each))))

            dataset.id.chunk_iter(add)
        return sorted(found)

    @override
    async def n_bytes_stored(self) -> int:
        return await asyncio.to_thread(self._size)

    def _size(self) -> int:
        with self.file.opened() as file:
            return int(file[self.path].id.get_storage_size())


@dataclass(frozen=True)
class Hdf5Views:
    """The views of a project in HDF5.

    Parameters
    ----------
    file : Hdf5File
        The local file.
    views : tuple of (int, int)
        The views that may exist, by setup and time point.
    is_confined : bool, optional
        Whether elements of files outside of the directory are left out.
    """

    file: Hdf5File
    views: tuple[View, ...]
    is_confined: bool = False

    def __str__(self) -> str:
        return str(self.file)

    def close(self) -> None:
        """Close the file; reading opens it again."""
        self.file.close()

    def confined(self) -> Hdf5Views:
        """Return the same views, without elements of files outside of the directory.

        Links of HDF5 lead to partitions, which are beside the file, but also to any other file.
        """
        return replace(self, is_confined=True)

    async def levels(self, view: View) -> StoredLevels:
        """Open the levels of a view; none if it does not exist."""
        return await asyncio.to_thread(self._open, view)

    def _open(self, view: View) -> StoredLevels:
        setup, timepoint = view
        with self.file.opened() as file:
            group = self._node(file, f"s{setup:02}")
            if group is None or not self._holds(group):
                return NO_LEVELS
            stated = group.attrs.get("dataType")
            levels: dict[int, MadeDataset] = {}
            factors = self._factors(file, f"s{setup:02}/resolutions")
            for number, by in enumerate(factors):
                path = f"t{timepoint:05}/s{setup:02}/{number}/cells"
                dataset = self._node(file, path)
                if dataset is not None and self._holds(dataset):
                    levels[number] = self._level(path, dataset, tuple(by), stated)
        return StoredLevels(factors, levels)

    def _node(self, file: Any, path: str) -> Any:  # noqa: ANN401 - h5py has no types
        """Return a node; None if it does not exist, or its partition."""
        try:
            return file.get(path)
        except (RuntimeError, OSError) as err:
            message = f"{self.file}: {path}: expected a dataset, got a link that leads nowhere"
            raise N5FormatError(f"{message}: {err}", kind="file") from err

    def _factors(self, file: Any, path: str) -> list[list[float]]:  # noqa: ANN401 - h5py has no types
        """Read the factors of the levels, x first."""
        node = self._node(file, path)
        shape = getattr(node, "shape", None)
        if shape is None or len(shape) != 2 or shape[1] != 3:
            message = f"{self.file}: {path}: expected three factors for each level, got {node}"
            raise N5FormatError(message, kind="member")
        factors: list[list[float]] = np.asarray(node, float).tolist()
        return factors

    def _holds(self, node: Any) -> bool:  # noqa: ANN401 - h5py has no types
        """Whether a node, and its elements, may be shown."""
        if not self.is_confined:
            return True
        if getattr(node, "external", None) or getattr(node, "is_virtual", False):
            return False  # elements in any other files
        return (
            Path(node.file.filename).resolve().is_relative_to(Path(self.file.path).resolve().parent)
        )

    def _level(self, path: str, dataset: Any, by: tuple[float, ...], stated: object) -> MadeDataset:  # noqa: ANN401 - h5py has no types
        if not hasattr(dataset, "dtype"):
            message = f"{self.file}: {path}: expected a dataset, got a group"
            raise N5FormatError(message, kind="member")
        stored = dataset.dtype.name
        name = stated.decode() if isinstance(stated, bytes) else stated
        # Java stores uint16 as int16, and states no type in older files
        kind = "uint16" if stored == "int16" and name in (None, "uint16") else stored
        fits = name in (None, kind) and kind in _TYPES
        if dataset.ndim != 3 or not fits:
            raise N5UnsupportedError(
                f"{self.file}: {path}: expected three axes and elements of a type of N5, got "
                f"the shape {dataset.shape}, {dataset.dtype} (dataType: {name})",
                kind="data-type",
            )
        dimensions = to_n5(CTuple(dataset.shape))
        chunks = dataset.chunks
        size = automatic_block_size(dimensions) if chunks is None else to_n5(CTuple(chunks))
        return _Hdf5Level(
            dimensions=dimensions,
            block_size=N5Tuple(size),
            data_type=DataType(kind),
            attributes={"downsamplingFactors": factors_in_json(by)},
            file=self.file,
            path=path,
        )
