"""NWB from one format to another: HDF5, N5 and Zarr.

hdmf writes whole datasets at once. Large ones are given to it as iterators over parts of them, so
that memory stays small and progress can be told.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
import uuid
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import zarr
from hdmf_zarr import NWBZarrIO
from hdmf_zarr.backend_zarrv2 import is_zarr_v2_file
from pynwb import NWBHDF5IO

from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import local_path
from n5zarr.hdmf.backend import NWBN5IO, not_warned_of_consolidation
from n5zarr.hdmf.chunking import Format, Meter, Progress, wrapped
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
from n5zarr.hdmf.schema import dimension_names
from n5zarr.hdmf.slabs import is_array, n_bytes
from n5zarr.storage.url import is_url
from n5zarr.store.n5_store import N5Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hdmf.backends.io import HDMFIO

__all__ = ["convert"]

_SUFFIXES: dict[str, Format] = {
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".n5": "n5",
    ".nwb": "hdf5",
    ".zarr": "zarr",
}
_OWN_SUFFIX: dict[Format, str] = {"hdf5": ".nwb", "n5": ".n5", "zarr": ".zarr"}
_CLASSES: dict[Format, type[HDMFIO]] = {"hdf5": NWBHDF5IO, "n5": NWBN5IO, "zarr": NWBZarrIO}


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
        Is given ``"convert"`` or ``"verify"``, the bytes done of those arrays that are read by
        parts, and their sum.

    Raises
    ------
    FileNotFoundError, FileExistsError
        There is no source, or there is a target.
    N5UnrepresentableError
        The source is no NWB file, or no format is named (``kind="option"``). The target is a folder
        of other things, or is in the source or around it (``kind="path"``). The other format has no
        such value (``kind="member"``).
    N5UnsupportedError
        The source is Zarr v2 (``kind="version"``), or HDF5 with what hdmf does not read as it is;
        each note is a place (``kind="member"``). One of them is a URL (``kind="option"``).
    N5Error
        What was written differs from the source; each note is a difference. It is left under the
        name in the message (``kind="differs"``).

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
    to = _format(to, shown)
    _check_target(source, target, shown, overwrite=overwrite)
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial{_OWN_SUFFIX[to]}")
    try:
        with not_warned_of_consolidation():
            _export(source, unfinished, to, Meter("convert", progress))
        found = [*_compared(source, unfinished, to, Meter("verify", progress))] if verify else []
        if not found:
            _check_target(source, target, shown, overwrite=overwrite)  # it may be new
    except BaseException as err:
        _remove_after_failure(unfinished)
        if isinstance(err, OSError) and err.errno == errno.ENOSPC:  # HDF5 says it in 300 characters
            raise OSError(err.errno, os.strerror(err.errno), shown) from err
        raise
    if found:
        message = (
            f"{shown}: not written, as it would differ from {source}; see {unfinished}. "
            "verify=False (--no-verify) writes it all the same"
        )
        error = N5Error(message, kind="differs")
        for line in found:
            error.add_note(line)
        raise error
    _put_in_place(unfinished, target)


def _format(to: str | None, target: str) -> Format:
    suffix = Path(target).suffix
    if to is None and suffix.lower() not in _SUFFIXES:
        message = f"expected a suffix of {[*_SUFFIXES]}, or to= (--to), found {suffix!r}"
        raise N5UnrepresentableError(message, kind="option", where=target)
    for name in _CLASSES:
        if name == (to or _SUFFIXES[suffix.lower()]):
            return name
    message = f"to (--to): expected one of {[*_CLASSES]}, found {to!r}"
    raise N5UnrepresentableError(message, kind="option", where=target)


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
    if is_used and _class_for(target) is None:
        message = "expected what can be replaced, an NWB file, found a folder of other things"
        raise N5UnrepresentableError(message, kind="path", where=shown)


def _put_in_place(unfinished: Path, target: Path) -> None:
    replaced = unfinished.with_suffix(".replaced")
    try:
        if target.exists():
            target.rename(replaced)
        unfinished.rename(target)
    except BaseException:
        if replaced.exists() and not target.exists():
            replaced.rename(target)
        raise
    _remove(replaced)


def _remove_after_failure(path: Path) -> None:
    """Remove what was written, until zarr's threads have stopped writing."""
    if not path.exists():
        return
    now = quiet_since = time.monotonic()
    end = now + 10
    while now < min(quiet_since + 0.5, end):
        if path.exists():
            quiet_since = now
            with suppress(OSError):
                _remove(path)
        time.sleep(0.05)
        now = time.monotonic()


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
    reader = _class_for(path)
    if reader is None:
        message = f"expected an NWB file as HDF5, N5 or Zarr, found {_kind(path)}"
        raise N5UnrepresentableError(message, kind="option", where=name)
    if reader is NWBHDF5IO:
        with h5py.File(path) as file:  # before hdmf, which may fail on it
            _refuse(path, [*unreadable(file)])
    with reader(name, mode="r") as io:
        yield io


def _class_for(path: Path) -> type[HDMFIO] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pynwb's, of other HDF5
        found = next((c for c in _CLASSES.values() if c.can_read(path=str(path))), None)
    if found is NWBZarrIO and "nwb_version" not in zarr.open(path, mode="r").attrs:
        return None  # it reads any Zarr
    return found


def _kind(path: Path) -> str:
    """Name what is no NWB file; N5 that is damaged says so itself."""
    if path.is_file():
        return "HDF5 without an NWB version" if h5py.is_hdf5(path) else "another file"
    if (path / ATTRIBUTES_JSON).is_file():
        zarr.open_group(N5Store(path), mode="r")
        return "N5 without an NWB version"
    return "Zarr without an NWB version" if (path / "zarr.json").is_file() else "another folder"


def _export(source: Path, target: Path, to: Format, meter: Meter) -> None:
    """Write everything."""
    with _reader(source) as reader:
        content = _content(source, reader)
        _warn_of_relative_paths(content, target)
        manager = reader.manager
        names = None if to == "hdf5" else dict(dimension_names(manager, content.root))
        wrap = partial(wrapped, manager, to, meter)
        with _or(N5UnsupportedError, "hdmf cannot read it", source):
            tree = copied_tree(content, str(target), names=names, wrap=wrap)
        specifications = read_specifications(reader)
        meter.add(0)
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            _or(N5UnrepresentableError, f"{_CLASSES[to].__name__} cannot write it", source),
            _CLASSES[to](str(target), mode="w", manager=manager) as writer,
            _emptied_after_failure(target),
        ):
            if specifications is not None:  # first, as then all is consolidated at once
                write_specifications(writer, specifications)
            writer.write_builder(tree, link_data=False)


@contextmanager
def _emptied_after_failure(path: Path) -> Iterator[None]:
    """Make place on a full disk for what HDF5 writes when it closes a file; else it crashes."""
    try:
        yield
    except BaseException:
        if path.is_file():
            os.truncate(path, 0)
        raise


@contextmanager
def _or(error: type[N5Error], what: str, where: Path) -> Iterator[None]:
    """Say of which file it is that hdmf, h5py or zarr complain."""
    try:
        yield
    except (N5Error, OSError, MemoryError, RecursionError):
        raise
    except Exception as err:
        found = error(f"{what}: {type(err).__name__}: {err}", kind="member", where=str(where))
        for note in getattr(err, "__notes__", ()):
            found.add_note(note)
        raise found from err


def _content(source: Path, reader: HDMFIO) -> Content:
    try:
        with _or(N5UnsupportedError, "hdmf cannot read it", source):
            return Content(reader)
    except RecursionError:
        _refuse(source, ["references or links that lead in a circle"])
        raise


def _refuse(source: Path, found: list[str]) -> None:
    if found:
        message = "has what hdmf does not read as it is, so that it would not be copied"
        error = N5UnsupportedError(message, kind="member", where=str(source))
        for line in found:
            error.add_note(line)
        raise error


def _compared(source: Path, target: Path, to: Format, meter: Meter) -> Iterator[str]:
    with _reader(source) as first, _CLASSES[to](str(target), mode="r") as second:
        datasets = (dataset.data for _, dataset in Content(first).datasets())
        meter.total = sum(n_bytes(data) for data in datasets if is_array(data))
        meter.add(0)
        yield from differences(first, second, report=meter.add)


def _warn_of_relative_paths(content: Content, target: Path) -> None:
    for path, films in content.datasets():
        is_beside = Path(films.source or content.source).parent.resolve() == target.parent
        if films.name != "external_file" or is_beside or type_of(films) != "text":
            continue
        for name in np.ravel(np.asarray(films.data[()] if shape_of(films.data) else films.data)):
            text = name.decode() if isinstance(name, bytes) else str(name)
            if "://" not in text and not Path(text).is_absolute():
                where = path.rpartition("/")[0]
                message = f"{where}: {text!r} is looked for in the folder of the new file"
                warnings.warn(message, N5Warning, stacklevel=4)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
