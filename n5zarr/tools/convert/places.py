"""Open the source and the destination of a user."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args
from zipfile import BadZipFile, ZipFile

import zarr
from zarr.storage import StorePath, ZipStore
from zarr.types import AnyArray

from n5zarr.container.foreign import read_zarr_node
from n5zarr.container.options import check_option, require
from n5zarr.container.walk import PathPatterns
from n5zarr.errors import N5FormatError, option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS, Foreign, format_of_name, root_in_zip
from n5zarr.format.path import join, normalize_path
from n5zarr.images.from_n5 import n5_tree
from n5zarr.images.ome import DEFAULT_VERSION, OME_FORMATS, OmeVersion
from n5zarr.images.source import SourceTree
from n5zarr.rooms import ADDED, Door
from n5zarr.shown.java_zarr import JavaZarrStore, zarr_documents
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.storage.secrets import named
from n5zarr.store.locating import Located, locate, open_container
from n5zarr.store.location import named_root, split_place
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.checks import check_writable
from n5zarr.tools.convert.from_zarr import zarr_tree
from n5zarr.tools.convert.target import Destination, ZarrDestination
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.zarr_view.keys import ZarrFormat

type TargetFormat = Literal["zarr", "zarr2", "n5", "ome-zarr"]

_ZARR_FORMATS: Mapping[TargetFormat | None, ZarrFormat] = {"zarr": 3, "zarr2": 2}


type FileTree = Callable[[str, str], SourceTree | None]
"""Opens a file, and a path in it, as the source of a conversion; None if it is not one."""


def open_source(place: Place, zarr_format: ZarrFormat, paths: PathPatterns) -> SourceTree:
    """Open a source in any format, N5 if nothing tells another one.

    Names tell XML, TIFF, HDF5, archives, and N5 with ``.n5``; else documents tell N5 and Zarr. Of
    N5 and Zarr, only the nodes that ``paths`` select are read, and the groups that hold them.

    Raises
    ------
    FileNotFoundError
        The source does not exist.
    N5UnrepresentableError
        A document is not that of Zarr, or a file has another format (``kind="option"``).
    N5UnsupportedError
        This copy of n5zarr lacks the package that reads the file (``kind="option"``).
    """
    located = locate(place, formats=["bdv"])  # OME-Zarr is copied as Zarr
    if located.document is not None:
        return n5_tree(located, zarr_format, paths)
    if isinstance(place.location, Path) and not place.path:
        found = _file_tree(place.location.absolute())
        if isinstance(found, SourceTree):
            return found
        place = found or place
    if isinstance(place.location, N5Store) or place.is_named("n5"):
        return n5_tree(Located("n5", place), zarr_format, paths)
    storage = open_storage(replace(place, path=""), read_only=True)
    node = storage.run(read_zarr_node(place.path, str(storage)))
    if node is None:
        return n5_tree(place, zarr_format, paths)
    path = normalize_path(place.path)
    with zarr_documents(join(str(storage), path)):  # Java writes what zarr refuses
        opened = _open_zarr(StorePath(JavaZarrStore(storage.store), path), node)
        return zarr_tree(opened, storage, paths)


def _file_tree(path: Path) -> SourceTree | Place | None:
    """Open a file in another format, or return the place in an archive; None for a directory."""
    for above in (path, *path.parents):
        kind = format_of_name(above.name)
        inner = "/".join(path.parts[len(above.parts) :])
        if kind and kind in ADDED["source file"]:
            door: Door[FileTree] = Door("source file", kind)
            # a file names the room that it lacks
            read = door.needed() if above.is_file() else door.found()
            if read is not None and (tree := read(str(above), inner)) is not None:
                return tree
        if kind == "zip" and above.is_file():
            return _in_zip(above, inner)
    require(
        format_of_name(path.name) is not None or not path.is_file(),
        "expected a directory of N5 or Zarr, or a file whose name ends as those of HDF5 or TIFF, "
        "got another file; the cookbook, docs/cookbook.md#czi-lif-or-nd2-to-n5, has a recipe for "
        "all that BioIO reads",
        str(path),
    )
    return None


def _in_zip(path: Path, inner: str) -> Place:
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


def _open_zarr(place: StorePath, node: Foreign) -> AnyArray | zarr.Group:
    """Open a node of Zarr; what is known of it is not requested again."""
    if node.kind == "array":
        return zarr.open_array(place, mode="r", zarr_format=node.zarr_format)
    if node.kind == "group":
        return zarr.open_group(place, mode="r", zarr_format=node.zarr_format)
    return zarr.open(place, mode="r")


def open_destination(
    place: Place, to: TargetFormat | None, ome_version: OmeVersion | None = None
) -> Destination:
    """Open a destination; nothing is written.

    Parameters
    ----------
    place : Place
        Where to write.
    to : {"zarr", "zarr2", "n5", "ome-zarr"} or None
        The format; None chooses it by the suffix.
    ome_version : {"0.5", "0.4", "0.6"}, optional
        The version of OME-Zarr, which chooses the format of Zarr unless ``to`` does.

    Raises
    ------
    N5UnrepresentableError
        The format is unknown (``kind="option"``).
    N5UnsupportedError
        The destination is read-only (``kind="read-only"``).
    """
    check_option("to", to, (None, *get_args(TargetFormat.__value__)))
    check_option("ome_version", ome_version, (None, *OME_FORMATS))
    of_version = OME_FORMATS[ome_version or DEFAULT_VERSION]
    found = _open_destination(place, to, _ZARR_FORMATS.get(to, of_version))
    check_writable(found)
    return found


def _open_destination(
    place: Place, to: TargetFormat | None, zarr_format: ZarrFormat
) -> Destination:
    if isinstance(place.location, N5Store) and not place.path:
        return N5Destination(place.location.storage, "", container=place.location)
    root = _split(place, to)
    form = to or _format(root.location, root.path)
    if form == "n5":
        store, inner = open_container(place)
        return N5Destination(store.storage, inner, container=store)
    storage = open_storage(replace(root, path=""))
    return ZarrDestination(storage, root.path, zarr_format=zarr_format)


def _split(place: Place, to: TargetFormat | None) -> Place:
    """Split a location into the root of a hierarchy of Zarr, and the node in it."""
    found = named_root(place, "zarr", "n5")
    if to is not None:
        found = named_root(place, "zarr") or found
    found = found or split_place(place)
    return replace(found, path=normalize_path(found.path))


def _format(root: object, path: str) -> TargetFormat:
    """Return the format from the suffix of a root."""
    text = named(str(root)).rstrip("/")  # without the query, too
    form = format_of_name(text.replace(os.sep, "/").rpartition("/")[2])
    got = ""
    if form in ("n5", "zarr"):
        inner = {format_of_name(name) for name in path.split("/")}
        if inner.isdisjoint({"n5", "zarr"} - {form}):
            return form
        got = f", got {path} in it"
    if form == "zip":
        got = ", got an archive: write a folder and pack it, python -m zipfile -c OUT.zip FOLDER"
    raise option_error(
        f"{text}: expected a destination that ends in .n5 or .zarr{got}; or choose the format "
        "with to='n5', 'zarr', 'zarr2' or 'ome-zarr' (--to)"
    )
