"""NWB from one format to another: HDF5, N5 and Zarr.

hdmf writes whole datasets at once. Large ones are given to it as iterators over parts of them, so
that memory stays small and progress can be told.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import h5py
import numpy as np
import zarr
from hdmf.backends.hdf5 import HDF5IO, H5DataIO
from hdmf.data_utils import GenericDataChunkIterator
from hdmf.query import HDMFDataset
from hdmf_zarr import NWBZarrIO, ZarrDataIO
from hdmf_zarr.backend_zarrv2 import is_zarr_v2_file
from pynwb import NWBHDF5IO
from zarr.codecs import GzipCodec
from zarr.codecs.numcodecs import Shuffle, Zlib

from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.format.path import local_path
from n5zarr.hdmf.backend import NWBN5IO, not_warned_of_consolidation
from n5zarr.hdmf.comparison import differences
from n5zarr.hdmf.content import (
    Content,
    read_specifications,
    shape_of,
    type_of,
    write_specifications,
)
from n5zarr.hdmf.copying import copied_tree
from n5zarr.hdmf.hdf5 import unreadable
from n5zarr.hdmf.parts import n_bytes, part_shape
from n5zarr.hdmf.schema import dimension_names, is_column
from n5zarr.remote import is_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hdmf.backends.io import HDMFIO
    from hdmf.build import BuildManager, DatasetBuilder, GroupBuilder

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
_OWN_SUFFIX: dict[Format, str] = {"hdf5": ".nwb", "n5": ".n5", "zarr": ".zarr"}
_CLASSES: dict[Format, type[HDMFIO]] = {"hdf5": NWBHDF5IO, "n5": NWBN5IO, "zarr": NWBZarrIO}
_LARGE = 4 << 20
_CHUNK = 1 << 20  # of what has no chunks
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
        Made under another name beside it and renamed when it is whole. A symbolic link is followed.
    to : {"hdf5", "n5", "zarr"}, optional
        By default what the suffix of ``target`` says: ``.nwb``, ``.h5``, ``.hdf5``, ``.n5`` or
        ``.zarr``.
    overwrite : bool, optional
        Whether ``target`` is replaced if it exists.
    verify : bool, optional
        Whether both are then read and compared: every group, dataset, link, attribute, data type,
        value and specification.
    progress : callable, optional
        Is given ``"convert"`` or ``"verify"``, the bytes of large arrays done, and their sum.

    Raises
    ------
    FileNotFoundError, FileExistsError
        There is no source, or there is a target.
    N5UnrepresentableError
        The source is no NWB file, or no format is named (``kind="option"``). The target is a folder
        of other things, or is in the source or around it (``kind="path"``).
    N5UnsupportedError
        The source is Zarr v2 (``kind="version"``), or HDF5 with what hdmf does not read as it is;
        each note is a place (``kind="member"``). One of them is a URL (``kind="option"``).
    N5Error
        What was written differs from the source; each note is a difference. It is left under the
        name in the message (``kind="payload"``).

    Warns
    -----
    N5Warning
        An ``ImageSeries`` has files in the folder of the source, and the target is in another one.

    Notes
    -----
    Everything is copied as it is, also what the schema does not know, and of whichever version of
    the schema. What the source links to in other files is copied. gzip of HDF5 stays gzip in N5,
    without the shuffling of bytes, which N5 does not know.
    """
    shown = os.fspath(target)
    source, target = _local(source), _local(target).resolve()
    to = to or _SUFFIXES.get(Path(shown).suffix.lower())
    if to is None or to not in _CLASSES:
        message = f"expected to= (--to), one of {[*_CLASSES]}, or a suffix of {[*_SUFFIXES]}"
        raise N5UnrepresentableError(message, kind="option", where=shown)
    _check_target(source, target, shown, overwrite=overwrite)
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial{_OWN_SUFFIX[to]}")
    try:
        with not_warned_of_consolidation():
            total = _export(source, unfinished, to, _Meter("convert", progress))
        meter = _Meter("verify", progress, total)
        found = [*_compared(source, unfinished, to, meter)] if verify else []
        if not found:
            _check_target(source, target, shown, overwrite=overwrite)  # it may be new
    except BaseException:
        _remove_after_failure(unfinished)
        raise
    if found:
        message = (
            f"{shown}: not written, as it would differ from {source}; see {unfinished}. "
            "verify=False (--no-verify) writes it all the same"
        )
        error = N5Error(message, kind="payload")
        for line in found:
            error.add_note(line)
        raise error
    _put_in_place(unfinished, target)


def _local(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if is_url(text):
        message = "expected a local path; NWBN5IO reads and writes containers on servers"
        raise N5UnsupportedError(message, kind="option", where=text)
    return Path(os.path.abspath(Path(local_path(text)).expanduser()))  # noqa: PTH100 - keeps links


def _check_target(source: Path, target: Path, shown: str, *, overwrite: bool) -> None:
    """Check that nothing but an NWB file, or a plain file, would be replaced."""
    real = source.resolve()
    if real in target.parents or target in real.parents:
        message = f"expected a place beside {source}, not in it or around it"
        raise N5UnrepresentableError(message, kind="path", where=shown)
    if not target.exists():
        return
    if not overwrite:
        message = f"{shown} exists; overwrite=True (--overwrite) replaces it"
        raise FileExistsError(message)
    is_used = target.is_dir() and any(target.iterdir())
    if is_used and not any(c.can_read(path=str(target)) for c in _CLASSES.values()):
        message = "expected what can be replaced, an NWB file, found a folder of other things"
        raise N5UnrepresentableError(message, kind="path", where=shown)


def _put_in_place(unfinished: Path, target: Path) -> None:
    replaced = unfinished.with_suffix(".replaced")
    if target.exists():
        target.rename(replaced)
    try:
        unfinished.rename(target)
    except OSError:
        if replaced.exists():
            replaced.rename(target)
        raise
    _remove(replaced)


def _remove_after_failure(path: Path) -> None:
    """Remove what was written, as soon as zarr's threads have stopped writing."""
    for _ in range(50):
        with suppress(OSError):
            _remove(path)
        if not path.exists():
            return
        time.sleep(0.1)


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
        content = _content(source, reader)
        if source.resolve().parent != target.parent:
            _warn_of_relative_paths(content.root)
        manager = reader.manager
        names = None if to == "hdf5" else dict(dimension_names(manager, content.root))
        wrap = partial(_wrapped, manager, to, meter)
        tree = copied_tree(content, str(target), names=names, wrap=wrap)
        specifications = read_specifications(reader)
        meter.add(0)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _CLASSES[to](str(target), mode="w", manager=manager) as writer:
            writer.write_builder(tree, link_data=False)
            if specifications is not None:
                write_specifications(writer, specifications)
            if to != "hdf5":
                zarr.consolidate_metadata(writer.path)  # the specifications, too
    return meter.total


def _content(source: Path, reader: HDMFIO) -> Content:
    """Read what is in a file, if hdmf reads all of it."""
    found = [*unreadable(reader._file)] if isinstance(reader, NWBHDF5IO) else []  # noqa: SLF001
    content = None
    try:
        content = None if found else Content(reader)
    except RecursionError:
        found = ["references or links that lead in a circle"]
    except OSError:
        raise
    except Exception as err:
        message = f"hdmf cannot read it: {type(err).__name__}: {err}"
        raise N5UnsupportedError(message, kind="member", where=str(source)) from err
    if content is None:
        message = "has what hdmf does not read as it is, so that it would not be copied"
        error = N5UnsupportedError(message, kind="member", where=str(source))
        for line in found:
            error.add_note(line)
        raise error
    return content


def _compared(source: Path, target: Path, to: Format, meter: _Meter) -> Iterator[str]:
    meter.add(0)
    with _reader(source) as first, _CLASSES[to](str(target), mode="r") as second:
        yield from differences(first, second, report=meter.add)


def _warn_of_relative_paths(group: GroupBuilder) -> None:
    for inner in group.groups.values():
        _warn_of_relative_paths(inner)
    films = group.datasets.get("external_file")
    if films is None or type_of(films) != "text":
        return
    for name in np.ravel(np.asarray(films.data[()] if shape_of(films.data) else films.data)):
        text = name.decode() if isinstance(name, bytes) else str(name)
        if "://" not in text and not Path(text).is_absolute():
            message = f"{group.name}: {text!r} is looked for in the folder of the new file"
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


def _wrapped(
    manager: BuildManager, to: Format, meter: _Meter, builder: DatasetBuilder, data: Any
) -> Any:
    """Wrap a large array, so that it is read by parts, and compressed as it is."""
    if isinstance(data, h5py.Dataset | zarr.Array) and _is_for_parts(data, to):
        meter.total += n_bytes(data)
        wrapper, settings = _settings(data, to)
        limit = _HDF5_CHUNK if to == "hdf5" else None
        return wrapper(_Parts(data, meter, limit), **settings)
    if to != "hdf5" or not shape_of(data) or isinstance(data, h5py.Dataset):
        return data
    stored = builder.data.dataset if isinstance(builder.data, HDMFDataset) else builder.data
    if isinstance(stored, h5py.Dataset):
        growing = stored.maxshape if stored.chunks else None
    else:
        growing = (None, *shape_of(data)[1:]) if is_column(manager, builder) else None
    return data if growing is None else H5DataIO(data, maxshape=growing, chunks=True)


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
    if to == "hdf5":
        growing = {"maxshape": (None, *data.shape[1:])}  # as arrays of Zarr may
        packed = {"compression": "gzip", "shuffle": True} if data.compressors else {}
        return H5DataIO, growing | packed
    if isinstance(data, h5py.Dataset):
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
        chunks = data.chunks
        if not chunks or (limit and prod(chunks) * data.dtype.itemsize > limit):
            chunks = HDF5IO.compute_default_chunk_shape(data.shape, data.dtype, _CHUNK)
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


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
