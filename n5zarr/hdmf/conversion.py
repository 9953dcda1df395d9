"""Copy an NWB file to another format, HDF5, N5 or Zarr: ``convert``.

hdmf writes whole datasets at once. Large ones are handed to it as iterators over slabs, to keep
memory small and to report progress.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import zarr
from hdmf_zarr import NWBZarrIO
from hdmf_zarr.backend_zarrv2 import is_zarr_v2_file
from pynwb import NWBHDF5IO

from n5zarr._zarr import wait_for_loop
from n5zarr.container.options import require
from n5zarr.errors import (
    N5Error,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
    option_error,
)
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.hdmf.backend import NWBN5IO, not_warned_of_consolidation
from n5zarr.hdmf.chunking import Meter, dimension_names, wrap
from n5zarr.hdmf.comparison import differences
from n5zarr.hdmf.copying import copied_tree
from n5zarr.hdmf.file_contents import (
    FileContents,
    columns,
    is_array,
    n_bytes,
    read_specifications,
    type_of,
    write_specifications,
)
from n5zarr.hdmf.hdf5 import unreadable
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.run import Progress
from n5zarr.tools.nwb_places import SUFFIXES, FileFormat, check_free, places_of

if TYPE_CHECKING:
    from hdmf.backends.io import HDMFIO


_CLASSES: dict[FileFormat, type[HDMFIO]] = {"hdf5": NWBHDF5IO, "n5": NWBN5IO, "zarr": NWBZarrIO}


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    to: FileFormat | None = None,
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
    source, destination, to = places_of(source, destination, to, overwrite=overwrite)
    _check_target(source, destination, target_name, overwrite=overwrite)
    suffix = next(suffix for suffix, known in SUFFIXES.items() if known == to)
    unfinished = destination.with_name(f".{destination.name}.{uuid.uuid4().hex}.partial{suffix}")
    try:
        _export(source, unfinished, to, Meter("convert", progress))
        lines = [*_compared(source, unfinished, to, Meter("verify", progress))] if verify else []
        if not lines:  # somebody may have created it in the meantime
            _check_target(source, destination, target_name, overwrite=overwrite)
    except BaseException as err:
        wait_for_loop()  # zarr writes on after an interruption
        _remove(unfinished)
        if isinstance(err, OSError) and err.errno == errno.ENOSPC:  # HDF5's message is long
            raise OSError(err.errno, os.strerror(err.errno), target_name) from err
        raise
    if lines:
        message = (
            f"{target_name}: not written, as it would differ from {source}; see {unfinished}. "
            "verify=False (--no-verify) writes it anyway"
        )
        raise _with_notes(N5Error(message, kind="differs"), lines)
    _put_in_place(unfinished, destination)


def _with_notes[E: Exception](error: E, notes: Iterable[str]) -> E:
    for note in notes:
        error.add_note(note)
    return error


def _check_target(source: Path, target: Path, target_name: str, *, overwrite: bool) -> None:
    """Check that only an NWB file, a plain file or an empty folder would be replaced."""
    check_free(source, target, target_name, overwrite=overwrite)
    is_other = target.is_dir() and any(target.iterdir()) and _class_for(target) is None
    require(
        not is_other,
        "expected an NWB file, which can be replaced, got a folder with other files",
        target_name,
        kind="path",
    )


def _put_in_place(unfinished: Path, target: Path) -> None:
    """Rename the copy, and remove what was there; put that back if renaming fails."""
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


@contextmanager
def _reader(path: Path) -> Iterator[HDMFIO]:
    """Open a file of any of the three formats."""
    name = str(path)
    if is_zarr_v2_file(name):
        message = "Zarr v2, of hdmf-zarr before 0.14; NWBZarrV2IO.convert_to_v3 makes v3 of it"
        raise N5UnsupportedError(message, kind="version", where=name)
    reader = _class_for(path)
    if reader is None:
        raise option_error(
            f"expected an NWB file as HDF5, N5 or Zarr, got {_kind(path)}", where=name
        )
    if reader is NWBHDF5IO:
        with h5py.File(path) as file:  # before hdmf, which may fail without a reason
            problems = [*unreadable(file)]
        if problems:
            raise _not_copied(path, problems)
    with reader(name, mode="r") as io:
        yield io


def _class_for(path: Path) -> type[HDMFIO] | None:
    """Return the class that reads an NWB file; None for anything else."""
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


@not_warned_of_consolidation()
def _export(source: Path, target: Path, to: FileFormat, meter: Meter) -> None:
    """Copy the source into a new file."""
    with _reader(source) as reader:
        with _errors_become(N5UnsupportedError, "hdmf cannot read it", source):
            contents = FileContents(reader)
            names = None if to == "hdf5" else dict(dimension_names(reader.manager, contents.root))
            data_of = partial(wrap, reader.manager, to, meter)
            tree = copied_tree(contents, str(target), names=names, wrap=data_of)
        _warn_of_relative_paths(contents, target)
        specifications = read_specifications(reader)
        meter.add(0)
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            _errors_become(
                N5UnrepresentableError, f"{_CLASSES[to].__name__} cannot write it", source
            ),
            _CLASSES[to](str(target), mode="w", manager=reader.manager) as writer,
        ):
            try:
                if specifications is not None:  # before the rest, which then consolidates both
                    write_specifications(writer, specifications)
                writer.write_builder(tree, link_data=False)
            except BaseException:
                if target.is_file():  # HDF5 writes when it closes, and crashes on a full disk
                    os.truncate(target, 0)
                raise


@contextmanager
def _errors_become(error: type[N5Error], what: str, where: Path) -> Iterator[None]:
    """Turn errors of hdmf, h5py and zarr into one that names the file."""
    try:
        yield
    except (N5Error, OSError, MemoryError):
        raise
    except RecursionError as err:
        raise _not_copied(where, ["references or links that form a circle"]) from err
    except Exception as err:
        located = error(f"{what}: {type(err).__name__}: {err}", kind="member", where=str(where))
        raise _with_notes(located, getattr(err, "__notes__", ())) from err


def _not_copied(source: Path, problems: Iterable[str]) -> N5UnsupportedError:
    """Return the error of a file with content that hdmf would lose."""
    message = "has content that hdmf does not read unchanged, so that it would not be copied"
    return _with_notes(N5UnsupportedError(message, kind="member", where=str(source)), problems)


def _compared(source: Path, target: Path, to: FileFormat, meter: Meter) -> Iterator[str]:
    with _reader(source) as first, _CLASSES[to](str(target), mode="r") as second:
        datasets = (dataset for _, dataset in FileContents(first).datasets())
        meter.total = sum(n_bytes(each.data) for each in datasets if is_array(each))
        meter.add(0)
        yield from differences(first, second, report=meter.add)


def _warn_of_relative_paths(contents: FileContents, target: Path) -> None:
    """Warn of image files that are named relative to the source, if the target lies elsewhere."""
    for path, files in contents.datasets():
        is_beside = Path(files.source or contents.source).parent.resolve() == target.parent
        if files.name != "external_file" or is_beside or type_of(files) != "text":
            continue
        for text in columns(files)[()].flat:
            if "://" not in text and not Path(text).is_absolute():
                where = path.rpartition("/")[0]
                message = f"{where}: readers will search for {text!r} in the folder of the new file"
                warnings.warn(message, N5Warning, stacklevel=4)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
