"""NWB from one format to another: HDF5, N5 and Zarr.

hdmf exports whole datasets at once. Large ones are given to it as iterators over parts of them, so
that memory stays small and progress can be told.
"""

from __future__ import annotations

import shutil
import uuid
import warnings
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import h5py
import zarr
from hdmf.backends.hdf5 import H5DataIO
from hdmf.container import Data
from hdmf.data_utils import GenericDataChunkIterator
from hdmf_zarr import NWBZarrIO, ZarrDataIO
from hdmf_zarr.backend_zarrv2 import is_zarr_v2_file
from pynwb import NWBHDF5IO
from pynwb.image import ImageSeries
from zarr.codecs import GzipCodec
from zarr.codecs.numcodecs import Shuffle, Zlib
from zarr.errors import ZarrUserWarning

from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.hdmf.backend import NWBN5IO
from n5zarr.hdmf.comparison import differences
from n5zarr.hdmf.parts import is_array, n_bytes, part_shape

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from hdmf.backends.io import HDMFIO
    from pynwb import NWBFile

__all__ = ["Format", "convert"]

type Format = Literal["hdf5", "n5", "zarr"]
type Progress = Callable[[str, int, int], None]

_SUFFIXES: dict[str, Format] = {
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".n5": "n5",
    ".nwb": "hdf5",
    ".zarr": "zarr",
}
_SUFFIX: dict[Format, str] = {"hdf5": ".nwb", "n5": ".n5", "zarr": ".zarr"}
_CLASSES: dict[Format, type[HDMFIO]] = {"hdf5": NWBHDF5IO, "n5": NWBN5IO, "zarr": NWBZarrIO}
_LARGE = 4 << 20
_HDF5_CHUNK = 2**32 - 1  # bytes that a chunk can have there


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: Format | None = None,
    overwrite: bool = False,
    verify: bool = True,
    progress: Progress | None = None,
) -> None:
    """Write an NWB file in another format.

    Parameters
    ----------
    source : path
        An NWB file as HDF5, N5 or Zarr v3.
    target : path
        Made under another name and renamed when it is whole.
    to : {"hdf5", "n5", "zarr"}, optional
        By default what the suffix of ``target`` says: ``.nwb``, ``.h5``, ``.hdf5``, ``.n5`` or
        ``.zarr``.
    overwrite : bool, optional
        Whether ``target`` is replaced if it exists.
    verify : bool, optional
        Whether both are then read and compared: every group, dataset, link, attribute, data type
        and value.
    progress : callable, optional
        Is given ``"convert"`` or ``"verify"``, the bytes of large arrays done, and their sum.

    Raises
    ------
    FileNotFoundError, FileExistsError
        There is no source, or there is a target.
    N5UnrepresentableError
        The source is no NWB file, or no format is named (``kind="option"``).
    N5UnsupportedError
        The source is Zarr v2 (``kind="version"``).
    N5Error
        What was written differs from the source; each note is a difference. It is left under the
        name in the message (``kind="payload"``).

    Warns
    -----
    N5Warning
        An ``ImageSeries`` has files in the folder of the source, and the target is in another one.

    Notes
    -----
    What the source links to in other files is copied. gzip of HDF5 stays gzip in N5, without the
    shuffling of bytes, which N5 does not know.
    """
    source, target = Path(source), Path(target)
    to = to or _SUFFIXES.get(target.suffix.lower())
    if to is None or to not in _CLASSES:
        message = f"expected to=, one of {[*_CLASSES]}, or a suffix of {', '.join(_SUFFIXES)}"
        raise N5UnrepresentableError(message, kind="option", where=str(target))
    if target.exists() and not overwrite:
        message = f"{target} exists; overwrite replaces it"
        raise FileExistsError(message)
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial{_SUFFIX[to]}")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Consolidated metadata", ZarrUserWarning)
            total = _export(source, unfinished, to, _Meter("convert", progress))
        meter = _Meter("verify", progress, total)
        found = [*_compared(source, unfinished, to, meter)] if verify else []
    except BaseException:
        _remove(unfinished)
        raise
    if found:
        message = f"{target}: not written, as it would differ from {source}; see {unfinished}"
        error = N5Error(message, kind="payload")
        for line in found:
            error.add_note(line)
        raise error
    _remove(target)
    unfinished.rename(target)


@contextmanager
def _reader(path: Path) -> Iterator[HDMFIO]:
    """Open a file in whichever format it is."""
    if not path.exists():
        message = f"{path} does not exist"
        raise FileNotFoundError(message)
    name = str(path)
    if is_zarr_v2_file(name):
        message = "Zarr v2, of hdmf-zarr before 0.14; NWBZarrV2IO.convert_to_v3 makes v3 of it"
        raise N5UnsupportedError(message, kind="version", where=name)
    for reader in _CLASSES.values():
        if reader.can_read(path=name):
            break
    else:
        message = "expected an NWB file as HDF5, N5 or Zarr"
        raise N5UnrepresentableError(message, kind="option", where=name)
    with reader(name, mode="r") as io:
        yield io


def _export(source: Path, target: Path, to: Format, meter: _Meter) -> int:
    """Write everything, and return how many bytes large arrays have."""
    with _reader(source) as reader:
        file = reader.read()
        if source.resolve().parent != target.resolve().parent:
            _warn_of_relative_paths(file)
        _by_parts(file, to, meter)
        meter.add(0)
        with _CLASSES[to](str(target), mode="w") as writer:
            writer.export(src_io=reader, nwbfile=file, write_args={"link_data": False})
    return meter.total


def _compared(source: Path, target: Path, to: Format, meter: _Meter) -> Iterator[str]:
    meter.add(0)
    with _reader(source) as first, _CLASSES[to](str(target), mode="r") as second:
        yield from differences(first, second, report=meter.add)


def _warn_of_relative_paths(file: NWBFile) -> None:
    for series in file.objects.values():
        names = series.external_file if isinstance(series, ImageSeries) else None
        for name in () if names is None else names[:]:
            if "://" not in name and not Path(name).is_absolute():
                message = f"{series.name}: {name!r} is looked for in the folder of the new file"
                warnings.warn(message, N5Warning, stacklevel=2)


class _Meter:
    """Counts the bytes of large arrays."""

    def __init__(self, stage: str, progress: Progress | None, total: int = 0) -> None:
        self.total = total
        self._stage, self._progress, self._done = stage, progress, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._stage, min(self._done, self.total), self.total)


def _by_parts(file: NWBFile, to: Format, meter: _Meter) -> None:
    """Wrap large arrays, so that they are read by parts, and compressed as they are."""
    for container in file.objects.values():
        is_data = isinstance(container, Data)
        fields = {"": container.data} if is_data else dict(container.fields)
        for name, data in fields.items():
            if not isinstance(data, h5py.Dataset | zarr.Array) or not is_array(data):
                continue
            if 0 in data.shape or not _is_for_parts(data, to):
                continue
            meter.total += n_bytes(data)
            wrapper, settings = _settings(data, to)
            container.set_data_io(
                *([] if is_data else [name]),
                wrapper,
                settings,
                partial(_Parts, meter=meter, limit=_HDF5_CHUNK if to == "hdf5" else None),
            )


def _is_for_parts(data: Any, to: Format) -> bool:
    if to != "hdf5":
        return n_bytes(data) >= _LARGE
    if isinstance(data, h5py.Dataset):
        return False  # HDF5 copies its own
    # as a whole it would lose its chunks
    return n_bytes(data) >= _LARGE or any(
        c < n for c, n in zip(data.chunks, data.shape, strict=True)
    )


def _settings(data: Any, to: Format) -> tuple[type, dict[str, Any]]:
    """Choose codecs next to those that an array has."""
    is_zarr = isinstance(data, zarr.Array)
    if to == "hdf5":
        is_compressed = is_zarr and bool(data.compressors)
        return H5DataIO, {"compression": "gzip", "shuffle": True} if is_compressed else {}
    if not is_zarr:
        found = dict(ZarrDataIO.from_h5py_dataset(data).io_settings)
        found.pop("chunks", None)  # are the iterator's
    else:
        found = {name: getattr(data, name) for name in ("compressors", "filters", "fill_value")}
        found["shards"] = data.shards
    found = {name: value for name, value in found.items() if value is not None}
    if "fill_value" in found:
        found["fillvalue"] = found.pop("fill_value")
    if to == "n5" and "compressors" in found:
        found["compressors"] = [*_native(found["compressors"])]
    return ZarrDataIO, found


def _native(compressors: Iterable[Any]) -> Iterator[Any]:
    """Take N5's gzip for HDF5's, which would be stored as gzip anyway, but decoded twice."""
    for compressor in compressors:
        if isinstance(compressor, Zlib):
            yield GzipCodec(level=compressor.codec_config["level"])  # type: ignore[arg-type]
        elif not isinstance(compressor, Shuffle):
            yield compressor


class _Parts(GenericDataChunkIterator):  # type: ignore[misc] # hdmf has no types
    """Iterates over an array on disk."""

    def __init__(self, data: Any, meter: _Meter, limit: int | None) -> None:
        self._data, self._meter = data, meter
        if not data.chunks or (limit and prod(data.chunks) * data.dtype.itemsize > limit):
            super().__init__(chunk_mb=1.0, buffer_gb=0.064)
            return
        chunks = tuple(min(c, n) for c, n in zip(data.chunks, data.shape, strict=True))
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


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
