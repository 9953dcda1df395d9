"""``convert``: copy an NWB file to another format, HDF5, N5 or Zarr.

hdmf writes whole datasets at once. Large ones are handed to it as iterators over slabs, to keep
memory small and to report progress.
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
from n5zarr.hdmf.backend import NWBN5IO, not_warned_of_consolidation
from n5zarr.hdmf.chunking import Format, Meter, Progress, wrap
from n5zarr.hdmf.comparison import differences
from n5zarr.hdmf.copying import copied_tree
from n5zarr.hdmf.file_contents import (
    FileContents,
    read_specifications,
    shape_of,
    type_of,
    write_specifications,
)
from n5zarr.hdmf.hdf5 import unreadable
from n5zarr.hdmf.schema import dimension_names
from n5zarr.hdmf.slabs import is_array, n_bytes
from n5zarr.storage.url import is_url, local_path
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
    destination: str | os.PathLike[str],
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
    destination : path
        Written under another name beside it, and renamed when complete. A symbolic link is
        followed.
    to : {"hdf5", "n5", "zarr"}, optional
        By default chosen by the suffix of ``destination``: ``.nwb``, ``.h5``, ``.hdf5``, ``.n5`` or
        ``.zarr``.
    overwrite : bool, optional
        Whether to replace ``destination`` if it exists.
    verify : bool, optional
        Whether to read and compare both files: every group, dataset, link, attribute, data type,
        value and specification.
    progress : callable, optional
        Called with ``"convert"`` or ``"verify"``, the bytes done of the arrays that are read in
        slabs, and their total.

    Raises
    ------
    FileNotFoundError, FileExistsError
        The source does not exist, or the target does.
    N5UnrepresentableError
        The source is not an NWB file, or the format is unknown (``kind="option"``). The target is a
        folder without NWB file, contains the source, or is inside it (``kind="path"``). The target
        format cannot hold a value (``kind="member"``).
    N5UnsupportedError
        The source is Zarr v2 (``kind="version"``), or HDF5 that hdmf does not read completely; each
        note names one problem (``kind="member"``). Source or target is a URL (``kind="option"``).
    N5Error
        The copy differs from the source; each note is a difference. The copy is kept under the name
        in the message (``kind="differs"``).

    Warns
    -----
    N5Warning
        An ``ImageSeries`` names files relative to the source, and the target is in another folder.

    Notes
    -----
    Copies everything unchanged, from any version of the schema, including data that the schema does
    not describe. Copies targets of links into other files. gzip of HDF5 stays gzip in N5, without
    the shuffle filter, which N5 does not have.
    """
    target_name = os.fspath(destination)
    source, destination = _local(source), _local(destination).resolve()
    to = _format(to, target_name)
    _check_target(source, destination, target_name, overwrite=overwrite)
    unfinished = destination.with_name(
        f".{destination.name}.{uuid.uuid4().hex}.partial{_OWN_SUFFIX[to]}"
    )
    try:
        with not_warned_of_consolidation():
            _export(source, unfinished, to, Meter("convert", progress))
        lines = [*_compared(source, unfinished, to, Meter("verify", progress))] if verify else []
        if not lines:
            # somebody may have created it in the meantime
            _check_target(source, destination, target_name, overwrite=overwrite)
    except BaseException as err:
        _remove_after_failure(unfinished)
        # HDF5's own message has 300 characters
        if isinstance(err, OSError) and err.errno == errno.ENOSPC:
            raise OSError(err.errno, os.strerror(err.errno), target_name) from err
        raise
    if lines:
        message = (
            f"{target_name}: not written, as it would differ from {source}; see {unfinished}. "
            "verify=False (--no-verify) writes it anyway"
        )
        error = N5Error(message, kind="differs")
        for line in lines:
            error.add_note(line)
        raise error
    _put_in_place(unfinished, destination)


def _format(to: str | None, target: str) -> Format:
    suffix = Path(target).suffix
    if to is None and suffix.lower() not in _SUFFIXES:
        message = f"expected a suffix of {[*_SUFFIXES]}, or to= (--to), got {suffix!r}"
        raise N5UnrepresentableError(message, kind="option", where=target)
    for name in _CLASSES:
        if name == (to or _SUFFIXES[suffix.lower()]):
            return name
    message = f"to (--to): expected one of {[*_CLASSES]}, got {to!r}"
    raise N5UnrepresentableError(message, kind="option", where=target)


def _local(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if is_url(text):
        message = "expected a local path; NWBN5IO reads and writes containers on servers"
        raise N5UnsupportedError(message, kind="option", where=text)
    return Path(os.path.abspath(Path(local_path(text)).expanduser()))  # noqa: PTH100 - keeps links


def _check_target(source: Path, target: Path, target_name: str, *, overwrite: bool) -> None:
    """Check that only an NWB file, a plain file or an empty folder would be replaced."""
    real = source.resolve()
    if real in target.parents or target in real.parents:
        message = f"expected a location beside {source}, not in it or around it"
        raise N5UnrepresentableError(message, kind="path", where=target_name)
    if not target.exists():
        return
    if not overwrite:
        message = f"{target_name} exists; overwrite=True (--overwrite) replaces it"
        raise FileExistsError(message)
    is_used = target.is_dir() and any(target.iterdir())
    if is_used and _class_for(target) is None:
        message = "expected an NWB file, which can be replaced, got a folder with other files"
        raise N5UnrepresentableError(message, kind="path", where=target_name)


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
    """Remove the written files, repeatedly until zarr's threads have stopped writing."""
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
    """Open a file of any of the three formats."""
    if not path.exists():
        message = f"{path} does not exist"
        raise FileNotFoundError(message)
    name = str(path)
    if is_zarr_v2_file(name):
        message = "Zarr v2, of hdmf-zarr before 0.14; NWBZarrV2IO.convert_to_v3 makes v3 of it"
        raise N5UnsupportedError(message, kind="version", where=name)
    reader = _class_for(path)
    if reader is None:
        message = f"expected an NWB file as HDF5, N5 or Zarr, got {_kind(path)}"
        raise N5UnrepresentableError(message, kind="option", where=name)
    if reader is NWBHDF5IO:
        with h5py.File(path) as file:  # before hdmf, which may fail without a reason
            _refuse(path, [*unreadable(file)])
    with reader(name, mode="r") as io:
        yield io


def _class_for(path: Path) -> type[HDMFIO] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pynwb warns of HDF5 that is not NWB
        reader = next((c for c in _CLASSES.values() if c.can_read(path=str(path))), None)
    if reader is NWBZarrIO and "nwb_version" not in zarr.open(path, mode="r").attrs:
        return None  # can_read is true for any Zarr
    return reader


def _kind(path: Path) -> str:
    """Name the kind of a file that is not NWB; raise the error of a damaged N5 container."""
    if path.is_file():
        return "HDF5 without an NWB version" if h5py.is_hdf5(path) else "another file"
    if (path / ATTRIBUTES_JSON).is_file():
        zarr.open_group(N5Store(path), mode="r")
        return "N5 without an NWB version"
    return "Zarr without an NWB version" if (path / "zarr.json").is_file() else "another folder"


def _export(source: Path, target: Path, to: Format, meter: Meter) -> None:
    """Copy the source into a new file."""
    with _reader(source) as reader:
        contents = _contents(source, reader)
        _warn_of_relative_paths(contents, target)
        manager = reader.manager
        names = None if to == "hdf5" else dict(dimension_names(manager, contents.root))
        wrap_data = partial(wrap, manager, to, meter)
        with _or(N5UnsupportedError, "hdmf cannot read it", source):
            tree = copied_tree(contents, str(target), names=names, wrap=wrap_data)
        specifications = read_specifications(reader)
        meter.add(0)
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            _or(N5UnrepresentableError, f"{_CLASSES[to].__name__} cannot write it", source),
            _CLASSES[to](str(target), mode="w", manager=manager) as writer,
            _emptied_after_failure(target),
        ):
            if specifications is not None:  # before the rest, which then consolidates both
                write_specifications(writer, specifications)
            writer.write_builder(tree, link_data=False)


@contextmanager
def _emptied_after_failure(path: Path) -> Iterator[None]:
    """Empty the file after a failure: HDF5 writes when it closes, and crashes on a full disk."""
    try:
        yield
    except BaseException:
        if path.is_file():
            os.truncate(path, 0)
        raise


@contextmanager
def _or(error: type[N5Error], what: str, where: Path) -> Iterator[None]:
    """Turn errors of hdmf, h5py and zarr into one that names the file."""
    try:
        yield
    except (N5Error, OSError, MemoryError, RecursionError):
        raise
    except Exception as err:
        located = error(f"{what}: {type(err).__name__}: {err}", kind="member", where=str(where))
        for note in getattr(err, "__notes__", ()):
            located.add_note(note)
        raise located from err


def _contents(source: Path, reader: HDMFIO) -> FileContents:
    try:
        with _or(N5UnsupportedError, "hdmf cannot read it", source):
            return FileContents(reader)
    except RecursionError:
        _refuse(source, ["references or links that form a circle"])
        raise


def _refuse(source: Path, lines: list[str]) -> None:
    if lines:
        message = "has content that hdmf does not read unchanged, so that it would not be copied"
        error = N5UnsupportedError(message, kind="member", where=str(source))
        for line in lines:
            error.add_note(line)
        raise error


def _compared(source: Path, target: Path, to: Format, meter: Meter) -> Iterator[str]:
    with _reader(source) as first, _CLASSES[to](str(target), mode="r") as second:
        datasets = (dataset.data for _, dataset in FileContents(first).datasets())
        meter.total = sum(n_bytes(data) for data in datasets if is_array(data))
        meter.add(0)
        yield from differences(first, second, report=meter.add)


def _warn_of_relative_paths(contents: FileContents, target: Path) -> None:
    """Warn of image files that are named relative to the source, if the target lies elsewhere."""
    for path, files in contents.datasets():
        is_beside = Path(files.source or contents.source).parent.resolve() == target.parent
        if files.name != "external_file" or is_beside or type_of(files) != "text":
            continue
        for name in np.ravel(np.asarray(files.data[()] if shape_of(files.data) else files.data)):
            text = name.decode() if isinstance(name, bytes) else str(name)
            if "://" not in text and not Path(text).is_absolute():
                where = path.rpartition("/")[0]
                message = f"{where}: readers will search for {text!r} in the folder of the new file"
                warnings.warn(message, N5Warning, stacklevel=4)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
