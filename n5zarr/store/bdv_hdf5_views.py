"""Open the images of a project in BigDataViewer's HDF5: the levels of each view.

bigdataviewer-core ``bdv.img.hdf5.Util`` and ``Hdf5ImageLoader``: ``t00000/s00/0/cells``, factors in
``s00/resolutions``. Files of partitions are linked from the first file.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

import numpy as np

from n5zarr.errors import N5FormatError, N5UnsupportedError
from n5zarr.format.data_type import DataType
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.order import CTuple, N5Tuple, to_n5
from n5zarr.store.bdv_levels import NO_LEVELS, StoredLevels, factors_attribute
from n5zarr.store.made_datasets import MadeDataset

if TYPE_CHECKING:
    from n5zarr.storage.hdf5_file import Hdf5File
    from n5zarr.store.bdv_levels import ViewId

__all__ = ["Hdf5Views"]

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
    views: tuple[ViewId, ...]
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

    async def levels(self, view: ViewId) -> StoredLevels:
        """Open the levels of a view; none if it does not exist."""
        return await asyncio.to_thread(self._open, view)

    def _open(self, view: ViewId) -> StoredLevels:
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
            attributes=factors_attribute(by),
            file=self.file,
            path=path,
        )
