"""Choose axis names, chunks and compression for the arrays of a copy; pass them on in slabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import zarr
from hdmf.backends.hdf5 import HDF5IO, H5DataIO
from hdmf.build import Builder, BuildManager, DatasetBuilder, GroupBuilder
from hdmf.data_utils import GenericDataChunkIterator
from hdmf.validate.validator import check_shape
from hdmf_zarr import ZarrDataIO
from zarr.abc.codec import Codec
from zarr.codecs import GzipCodec
from zarr.codecs.numcodecs import Shuffle, Zlib

from n5zarr.hdmf.file_contents import children, n_bytes, shape_of, slab_shape, stored
from n5zarr.tools.jobs.run import Progress
from n5zarr.tools.nwb_places import FileFormat

if TYPE_CHECKING:
    from hdmf.spec import BaseStorageSpec, DatasetSpec, GroupSpec


type _ZarrArray = zarr.Array[Any]

_LARGE = 4 << 20  # bytes
_NEW_CHUNK = 1 << 20  # bytes of a chunk for arrays without chunks
_MAX_HDF5_CHUNK = 2**32 - 1  # bytes
# types of columns; pynwb creates them in HDF5 so that they can grow
_COLUMNS = ("VectorData", "ElementIdentifiers")


class Meter:
    """Count the bytes of arrays that are done, and report progress.

    Parameters
    ----------
    stage : str
        ``"convert"`` or ``"verify"``.
    progress : callable or None
        Is called with the stage, the bytes done and the total.
    total : int, optional
        The total, as far as it is known.
    """

    def __init__(self, stage: str, progress: Progress | None, total: int = 0) -> None:
        self.total = total
        self._stage, self._progress, self._done = stage, progress, 0

    def add(self, count: int) -> None:
        """Count bytes as done."""
        self._done += count
        if self._progress is not None:
            self._progress(self._stage, min(self._done, self.total), self.total)


def wrap(
    manager: BuildManager, to: FileFormat, meter: Meter, builder: DatasetBuilder, data: object
) -> object:
    """Wrap the data of a copy, so that large arrays are read in slabs and keep their chunks.

    Parameters
    ----------
    manager : hdmf.build.BuildManager
        Of the file that is copied.
    to : {"hdf5", "n5", "zarr"}
        The format to write.
    meter : Meter
        Counts the bytes read in slabs.
    builder : hdmf.build.DatasetBuilder
        The dataset that is copied.
    data : array, list or scalar
        The data to write.

    Returns
    -------
    hdmf.data_utils.DataIO, or data
        The data with the storage settings of the copy; ``data`` itself if it needs none.
    """
    if isinstance(data, h5py.Dataset | zarr.Array) and _needs_slabs(data, to):
        meter.total += n_bytes(data)
        wrapper, settings = _settings(data, to)
        return wrapper(_Slabs(data, meter, settings.get("chunks")), **settings)
    source = stored(builder)
    if to != "hdf5" or not (shape := shape_of(source)) or isinstance(data, h5py.Dataset):
        return data
    if isinstance(source, h5py.Dataset):
        maxshape = source.maxshape if source.chunks else None
    else:
        maxshape = (None, *shape[1:]) if _is_column(manager, builder) else None
    return data if maxshape is None else H5DataIO(data, maxshape=maxshape, chunks=True)


def _needs_slabs(data: h5py.Dataset | _ZarrArray, to: FileFormat) -> bool:
    """Return whether an array is large, or would lose chunks, codecs or fill value in one piece."""
    if n_bytes(data) == 0 or (isinstance(data, h5py.Dataset) and to == "hdf5"):
        return False  # h5py copies it
    if n_bytes(data) >= _LARGE:
        return True
    if isinstance(data, h5py.Dataset):
        return data.chunks is not None or bool(data.fillvalue != 0)
    is_default = tuple(data.chunks) == tuple(data.shape) and not bool(data.fill_value)
    return to != "hdf5" or not is_default or _gzip_level(data) is not None


def _settings(data: h5py.Dataset | _ZarrArray, to: FileFormat) -> tuple[type, dict[str, Any]]:
    """Choose codecs, chunks and fill value closest to those of an array."""
    if to == "hdf5":
        return H5DataIO, _hdf5_settings(data)
    if isinstance(data, h5py.Dataset):
        settings = dict(ZarrDataIO.from_h5py_dataset(data).io_settings)
    else:
        names = ("compressors", "filters", "fill_value", "chunks", "shards")
        settings = {name: getattr(data, name) for name in names}
    settings = {name: value for name, value in settings.items() if value is not None}
    if "fill_value" in settings:
        settings["fillvalue"] = settings.pop("fill_value")
    if to == "n5" and "compressors" in settings:
        settings["compressors"] = [*_native(settings["compressors"])]
    return ZarrDataIO, settings


def _hdf5_settings(data: _ZarrArray) -> dict[str, Any]:
    """Choose settings of HDF5 for an array of Zarr: gzip, and room to grow along the first axis."""
    settings: dict[str, Any] = {"maxshape": (None, *data.shape[1:]), "fillvalue": data.fill_value}
    chunks = (data.chunks[0], *map(min, data.chunks[1:], data.shape[1:]))
    if prod(chunks) * data.dtype.itemsize <= _MAX_HDF5_CHUNK:
        settings["chunks"] = chunks
    if data.compressors:
        settings |= {"compression": "gzip", "shuffle": True}
        if (level := _gzip_level(data)) in range(10):  # -1 leaves the choice to zlib
            settings["compression_opts"] = level
    return settings


def _gzip_level(data: _ZarrArray) -> int | None:
    return next((c.level for c in data.compressors if isinstance(c, GzipCodec)), None)


def _native(compressors: Iterable[Codec]) -> Iterator[Codec]:
    """Replace HDF5's zlib by gzip, which N5 stores unchanged; zlib would be decoded twice."""
    for compressor in compressors:
        if isinstance(compressor, Zlib):
            yield GzipCodec(level=compressor.codec_config["level"])  # type: ignore[arg-type]
        elif not isinstance(compressor, Shuffle):
            yield compressor


class _Slabs(GenericDataChunkIterator):  # type: ignore[misc] # hdmf has no types
    """Iterate over an array on disk, in slabs of whole chunks or shards."""

    def __init__(
        self, data: h5py.Dataset | _ZarrArray, meter: Meter, chunks: tuple[int, ...] | None
    ) -> None:
        self._data, self._meter = data, meter
        chunks = chunks or HDF5IO.compute_default_chunk_shape(data.shape, data.dtype, _NEW_CHUNK)
        chunks = tuple(min(c, n) for c, n in zip(chunks, data.shape, strict=True))
        whole = getattr(data, "shards", None) or chunks
        super().__init__(chunk_shape=chunks, buffer_shape=slab_shape(data, whole))

    def _get_data(self, selection: tuple[slice, ...]) -> np.ndarray:
        slab = np.asarray(self._data[selection])
        self._meter.add(slab.nbytes)
        return slab

    def _get_maxshape(self) -> tuple[int, ...]:
        return tuple(self._data.shape)

    def _get_dtype(self) -> np.dtype:
        return self._data.dtype


# ---------------------------------------------------------------------- the schema


def dimension_names(
    manager: BuildManager, group: GroupBuilder, path: str = "", spec: GroupSpec | None = None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names that the schema gives to the axes of datasets.

    Parameters
    ----------
    manager : hdmf.build.BuildManager
        With the namespaces of the file.
    group : hdmf.build.GroupBuilder
        The root of the file, or a group in it.
    path : str, optional
        Of the group; empty for the root.
    spec : hdmf.spec.GroupSpec, optional
        What the group above says of a group without a type.

    Yields
    ------
    path : str
        Of a dataset.
    names : tuple of str
        In C order.
    """
    spec = _type_spec(manager, group) or spec
    for name, child in children(group).items():
        if isinstance(child, GroupBuilder):
            described = spec and spec.get_group(name)
            yield from dimension_names(manager, child, f"{path}/{name}", described)
        elif isinstance(child, DatasetBuilder):
            # the group may describe its dataset in more detail than the type does
            for described in (spec and spec.get_dataset(name), _type_spec(manager, child)):
                axis_names = described and _matching(shape_of(stored(child)), described)
                if axis_names:
                    yield f"{path}/{name}", axis_names
                    break


def _is_column(manager: BuildManager, builder: DatasetBuilder) -> bool:
    """Return whether a dataset is a column of a table, which may grow."""
    if _type_spec(manager, builder) is None:
        return False
    return any(manager.is_sub_data_type(builder, name) for name in _COLUMNS)


def _type_spec(manager: BuildManager, builder: Builder) -> BaseStorageSpec | None:
    """Return the specification of a builder's type; None if it has no type or an unknown one."""
    namespace, name = manager.get_builder_ns(builder), manager.get_builder_dt(builder)
    try:
        return manager.namespace_catalog.get_spec(namespace, name) if name else None
    except (KeyError, ValueError):
        return None


def _matching(shape: tuple[int, ...], spec: DatasetSpec) -> tuple[str, ...] | None:
    """Return the names of the most specific shape in a specification that fits."""
    if not spec.shape or not spec.dims:
        return None
    is_choice = isinstance(spec.shape[0], list | tuple)
    shapes, names = (spec.shape, spec.dims) if is_choice else ([spec.shape], [spec.dims])
    fitting = [
        (allowed.count(None), i)
        for i, allowed in enumerate(map(list, shapes))
        if check_shape(tuple(allowed), shape)
    ]
    return tuple(names[min(fitting)[1]]) if fitting else None
