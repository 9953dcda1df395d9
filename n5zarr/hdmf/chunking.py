"""How the arrays of a copy are chunked and compressed, and handed over by parts."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Literal

import h5py
import zarr
from hdmf.backends.hdf5 import HDF5IO, H5DataIO
from hdmf.data_utils import GenericDataChunkIterator
from hdmf.query import HDMFDataset
from hdmf_zarr import ZarrDataIO
from zarr.codecs import GzipCodec
from zarr.codecs.numcodecs import Shuffle, Zlib

from n5zarr.hdmf.content import shape_of
from n5zarr.hdmf.schema import is_column
from n5zarr.hdmf.slabs import n_bytes, part_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hdmf.build import BuildManager, DatasetBuilder

__all__ = ["Format", "Meter", "Progress", "wrapped"]

type Format = Literal["hdf5", "n5", "zarr"]
type Progress = Callable[[str, int, int], None]

_LARGE = 4 << 20
_CHUNK = 1 << 20  # of what has no chunks
_HDF5_CHUNK = 2**32 - 1  # bytes that a chunk can have there


class Meter:
    """Tells how many bytes of arrays are done.

    Parameters
    ----------
    stage : str
        What is being done.
    progress : callable or None
        Is given the stage, the bytes done and their sum.
    total : int, optional
        The sum, as far as it is known.
    """

    def __init__(self, stage: str, progress: Progress | None, total: int = 0) -> None:
        self.total = total
        self._stage, self._progress, self._done = stage, progress, 0

    def add(self, count: int) -> None:
        """Count bytes."""
        self._done += count
        if self._progress is not None:
            self._progress(self._stage, min(self._done, self.total), self.total)


def wrapped(
    manager: BuildManager, to: Format, meter: Meter, builder: DatasetBuilder, data: Any
) -> Any:
    """Wrap the data of a copy, so that large arrays are read by parts, and stay as they are.

    Parameters
    ----------
    manager : hdmf.build.BuildManager
        Of the file that is copied.
    to : {"hdf5", "n5", "zarr"}
        What is written.
    meter : Meter
        Is told of what is read by parts.
    builder : hdmf.build.DatasetBuilder
        The dataset that is copied.
    data : array, list or scalar
        Its data, as they are written.

    Returns
    -------
    hdmf.data_utils.DataIO, or data
    """
    if isinstance(data, h5py.Dataset | zarr.Array) and _is_for_parts(data, to):
        meter.total += n_bytes(data)
        wrapper, settings = _settings(data, to)
        return wrapper(_Parts(data, meter, settings.get("chunks")), **settings)
    if to != "hdf5" or not shape_of(data) or isinstance(data, h5py.Dataset):
        return data
    stored = builder.data.dataset if isinstance(builder.data, HDMFDataset) else builder.data
    if isinstance(stored, h5py.Dataset):
        growing = stored.maxshape if stored.chunks else None
    else:
        growing = (None, *shape_of(data)[1:]) if is_column(manager, builder) else None
    return data if growing is None else H5DataIO(data, maxshape=growing, chunks=True)


def _is_for_parts(data: Any, to: Format) -> bool:
    """Whether an array is large, or as a whole would lose chunks, codecs or a fill value."""
    if n_bytes(data) == 0 or (isinstance(data, h5py.Dataset) and to == "hdf5"):
        return False  # HDF5 copies its own
    if n_bytes(data) >= _LARGE:
        return True
    if isinstance(data, h5py.Dataset):
        return data.chunks is not None or bool(data.fillvalue != 0)
    is_default = tuple(data.chunks) == tuple(data.shape) and not bool(data.fill_value)
    return to != "hdf5" or not is_default or _gzip_level(data) is not None


def _settings(data: Any, to: Format) -> tuple[type, dict[str, Any]]:
    """Choose codecs, chunks and a fill value next to those that an array has."""
    if to == "hdf5":
        return H5DataIO, _hdf5_settings(data)
    if isinstance(data, h5py.Dataset):
        found = dict(ZarrDataIO.from_h5py_dataset(data).io_settings)
    else:
        names = ("compressors", "filters", "fill_value", "chunks", "shards")
        found = {name: getattr(data, name) for name in names}
    found = {name: value for name, value in found.items() if value is not None}
    if "fill_value" in found:
        found["fillvalue"] = found.pop("fill_value")
    if to == "n5" and "compressors" in found:
        found["compressors"] = [*_native(found["compressors"])]
    return ZarrDataIO, found


def _hdf5_settings(data: zarr.Array[Any]) -> dict[str, Any]:
    """Choose what HDF5 has: chunks that grow along the first axis, as those of Zarr may; gzip."""
    settings: dict[str, Any] = {"maxshape": (None, *data.shape[1:])}
    settings["fillvalue"] = data.fill_value
    chunks = (data.chunks[0], *map(min, data.chunks[1:], data.shape[1:]))
    if prod(chunks) * data.dtype.itemsize <= _HDF5_CHUNK:
        settings["chunks"] = chunks
    if data.compressors:
        settings |= {"compression": "gzip", "shuffle": True}
        if (level := _gzip_level(data)) in range(10):  # not -1, zlib's own choice
            settings["compression_opts"] = level
    return settings


def _gzip_level(data: zarr.Array[Any]) -> int | None:
    return next((c.level for c in data.compressors if isinstance(c, GzipCodec)), None)


def _native(compressors: Iterable[Any]) -> Iterator[Any]:
    """Take N5's gzip for HDF5's, which would be stored as gzip anyway, but decoded twice."""
    for compressor in compressors:
        if isinstance(compressor, Zlib):
            yield GzipCodec(level=compressor.codec_config["level"])  # type: ignore[arg-type]
        elif not isinstance(compressor, Shuffle):
            yield compressor


class _Parts(GenericDataChunkIterator):  # type: ignore[misc] # hdmf has no types
    """Iterates over an array on disk, by parts of whole chunks or shards."""

    def __init__(self, data: Any, meter: Meter, chunks: tuple[int, ...] | None) -> None:
        self._data, self._meter = data, meter
        chunks = chunks or HDF5IO.compute_default_chunk_shape(data.shape, data.dtype, _CHUNK)
        chunks = tuple(min(c, n) for c, n in zip(chunks, data.shape, strict=True))
        whole = getattr(data, "shards", None) or chunks
        super().__init__(chunk_shape=chunks, buffer_shape=part_shape(data, whole))

    def _get_data(self, selection: tuple[slice, ...]) -> Any:
        part = self._data[selection]
        self._meter.add(part.nbytes)
        return part

    def _get_maxshape(self) -> tuple[int, ...]:
        return tuple(self._data.shape)

    def _get_dtype(self) -> Any:
        return self._data.dtype
