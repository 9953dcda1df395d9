"""Find the container in a zip archive on a local disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from zarr.storage import ZipStore

from n5zarr.errors import N5FormatError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS, format_of_name, root_in_zip
from n5zarr.format.path import join
from n5zarr.storage.place import Place
from n5zarr.store import locating

if TYPE_CHECKING:
    from n5zarr.store.locating import Located

__all__ = ["locate", "place_in_zip"]


def locate(place: Place, path: str = "") -> Located | None:
    """Look into an archive of N5 or Zarr; None if the location is in none."""
    if not isinstance(place.location, Path):
        return None
    file = place.location.absolute()
    for above in (file, *file.parents):
        if format_of_name(above.name) == "zip" and above.is_file():
            inner = "/".join(file.parts[len(above.parts) :])
            return locating.locate(place_in_zip(above, join(inner, place.path)), path)
    return None


def place_in_zip(path: Path, inner: str) -> Place:
    """Return the place of a node in an archive, whose hierarchy may be in a directory of it.

    Raises
    ------
    N5FormatError
        The file is no archive, or holds neither N5 nor Zarr (``kind="foreign"``).
    """
    try:
        with ZipFile(path) as archive:
            root = root_in_zip(archive.namelist(), {ATTRIBUTES_JSON, *ZARR_DOCUMENTS})
    except BadZipFile as err:
        raise N5FormatError(f"{path}: expected a zip archive, got {err}", kind="foreign") from err
    if root is None:
        message = f"{path}: expected an archive of N5 or Zarr, got one without any of their files"
        raise N5FormatError(message, kind="foreign")
    return Place(ZipStore(path, mode="r"), join(root, inner))
