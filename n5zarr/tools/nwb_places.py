"""Check the places of an NWB file and its copy without hdmf, which takes seconds to import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from n5zarr.container.options import require
from n5zarr.errors import N5UnsupportedError, option_error
from n5zarr.storage.not_found import NotFoundError, local_root_message
from n5zarr.storage.secrets import named
from n5zarr.storage.url import is_url, local_path

type FileFormat = Literal["hdf5", "n5", "zarr"]

SUFFIXES: dict[str, FileFormat] = {
    ".nwb": "hdf5",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".n5": "n5",
    ".zarr": "zarr",
}


def places_of(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    to: FileFormat | None,
    *,
    overwrite: bool,
) -> tuple[Path, Path, FileFormat]:
    """Return the places of a file and its copy, and the format of that, once these are possible.

    Raises
    ------
    FileNotFoundError, FileExistsError, N5UnrepresentableError, N5UnsupportedError
        As :func:`n5zarr.hdmf.convert`.
    """
    name = os.fspath(destination)
    read, target, to = _local(source), _local(destination).resolve(), _format(to, name)
    if not read.exists():
        given = Path(local_path(os.fspath(source))).expanduser()
        raise NotFoundError(local_root_message(given))
    check_free(read, target, name, overwrite=overwrite)
    return read, target, to


def check_free(source: Path, target: Path, name: str, *, overwrite: bool) -> None:
    """Check that a copy would be in a folder beside its source, and replaces nothing unasked."""
    real = source.resolve()
    require(
        real not in target.parents and target not in real.parents,
        f"expected a location beside {source}, not in it or around it",
        name,
        kind="path",
    )
    above = next(each for each in target.parents if each.exists())
    require(
        above.is_dir(), f"expected a place in a folder, got the file {above}", name, kind="path"
    )
    if target.exists() and not overwrite:
        raise FileExistsError(f"{name} exists; overwrite=True (--overwrite) replaces it")


def _format(to: FileFormat | None, target: str) -> FileFormat:
    """Return the format to write; by default that of the suffix."""
    suffix, formats = Path(target).suffix, dict.fromkeys(SUFFIXES.values())
    name = SUFFIXES.get(suffix.lower()) if to is None else to
    if name in formats:
        return name
    message = (
        f"expected a suffix of {[*SUFFIXES]}, or to= (--to), got {suffix!r}"
        if to is None
        else f"to (--to): expected one of {[*formats]}, got {to!r}"
    )
    raise option_error(message, where=target)


def _local(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if is_url(text):
        message = "expected a local path; NWBN5IO reads and writes containers on servers"
        raise N5UnsupportedError(message, kind="option", where=named(text))
    return Path(os.path.abspath(Path(local_path(text)).expanduser()))  # noqa: PTH100 - keeps links
