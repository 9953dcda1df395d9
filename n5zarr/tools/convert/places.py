"""Open the source and the destination of a user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from zarr.abc.store import Store
from zarr.storage import StorePath

from n5zarr.container.options import check_option
from n5zarr.container.path_patterns import PathPatterns
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.format.path import join, normalize_path
from n5zarr.images.from_n5 import n5_tree, project_tree
from n5zarr.storage.opening import open_storage, unsharded
from n5zarr.storage.place import Place, place_of
from n5zarr.storage.requests import Get
from n5zarr.storage.url import is_url, local_path
from n5zarr.store.bdv_xml import xml_file
from n5zarr.store.location import open_container
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.checks import check_writable
from n5zarr.tools.convert.from_hdf5 import hdf5_tree
from n5zarr.tools.convert.from_tiff import tiff_tree
from n5zarr.tools.convert.from_zarr import zarr_tree
from n5zarr.tools.convert.target import Destination, ZarrDestination
from n5zarr.tools.convert.target_n5 import N5Destination

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.order import CTuple
    from n5zarr.images.source import SourceTree
    from n5zarr.storage.interface import Storage
    from n5zarr.storage.place import Location
    from n5zarr.storage.requests import Steps
    from n5zarr.zarr_view.keys import ZarrFormat

_HDF5 = (".h5", ".hdf5", ".hdf", ".he5", ".nwb", ".mat")

__all__ = ["Format", "open_destination", "open_shards", "open_source"]

type Format = Literal["zarr", "zarr2", "n5"]


def open_source(
    location: Location,
    zarr_format: ZarrFormat,
    storage_options: Mapping[str, object] | None,
    paths: PathPatterns = PathPatterns(),  # noqa: B008 - frozen
) -> SourceTree:
    """Open a source; N5 by default.

    In N5 and Zarr, only the nodes that ``paths`` select are read, and the groups that hold them.

    Raises
    ------
    FileNotFoundError
        The source does not exist.
    """
    xml = xml_file(location, storage_options)
    if xml is not None:
        return project_tree(xml, zarr_format, paths)
    file, inner = _file_in(location)
    if file and _is_tiff(file):
        return tiff_tree(file)
    if file and Path(file).suffix.lower() in _HDF5:
        return hdf5_tree(file, inner)
    found = _zarr_node(location, storage_options)
    if found is not None:
        return zarr_tree(*found, paths)
    return n5_tree(location, zarr_format, paths, storage_options=storage_options)


def open_shards(
    location: Location, sizes: CTuple, storage_options: Mapping[str, object] | None
) -> StorePath:
    """Return a location of N5 with the blocks inside of shards of Java at their own keys."""
    opened, path = open_container(location, storage_options=storage_options, read_only=True)
    return StorePath(unsharded(opened.storage, sizes).store, path)


def _file_in(location: Location) -> tuple[str, str]:
    """Split a local path at the file in it, and return the file and the rest."""
    if not isinstance(location, str | os.PathLike) or is_url(location):
        return "", ""
    path = Path(local_path(os.fspath(location))).expanduser().absolute()
    if _is_tiff(str(path)):
        return str(path), ""
    for above in (path, *path.parents):
        if above.is_file():
            return str(above), "/".join(path.parts[len(above.parts) :])
    return "", ""


def _is_tiff(file: str) -> bool:
    """Whether a file, or a pattern of files, is TIFF by its name."""
    return file.lower().endswith((".tif", ".tiff", ".btf", ".tf8"))


def _zarr_node(
    location: Location, storage_options: Mapping[str, object] | None
) -> tuple[StorePath, Storage] | None:
    """Return the place of a Zarr node, and its storage; None for other locations."""
    place = place_of(location, storage_options)
    if isinstance(place.location, N5Store):
        return None
    if isinstance(place.location, Store):
        storage = open_storage(place.location, storage_options=place.storage_options)
    elif any(name.endswith(".n5") for name in _names(os.fspath(place.location))):
        return None
    else:
        options = place.storage_options
        storage = open_storage(
            place.location, storage_options=options, backend=place.backend, read_only=True
        )
    if not storage.run(_has_document(place.path)):
        return None
    return StorePath(storage.store, normalize_path(place.path)), storage


def _has_document(path: str) -> Steps[bool]:
    """Whether a place has a Zarr node, and no N5 node."""
    names = ["attributes.json", *sorted(ZARR_DOCUMENTS)]
    n5, *zarr = yield [Get(join(path, name)) for name in names]
    return n5 is None and any(document is not None for document in zarr)


def open_destination(
    location: Location, to: Format | None, storage_options: Mapping[str, object] | None
) -> Destination:
    """Open a destination; nothing is written.

    Raises
    ------
    N5UnrepresentableError
        The format is unknown (``kind="option"``).
    N5UnsupportedError
        It is read-only (``kind="read-only"``).
    """
    check_option("to", to, (None, *get_args(Format.__value__)))
    found = _open_destination(location, to, storage_options)
    container = found.container if isinstance(found, N5Destination) else None
    check_writable(found.storage, container)
    return found


def _open_destination(
    location: Location, to: Format | None, storage_options: Mapping[str, object] | None
) -> Destination:
    if isinstance(location, N5Store):
        return N5Destination(location.storage, "", container=location)
    root, path, options, backend = _split(location, to, storage_options)
    form = to or _format(root, path)
    if form == "n5":
        opened, inner = open_container(location, storage_options=storage_options)
        return N5Destination(opened.storage, inner, container=opened)
    storage = open_storage(root, storage_options=options, backend=backend)
    return ZarrDestination(storage, path, zarr_format=2 if form == "zarr2" else 3)


def _split(
    location: Location, to: Format | None, storage_options: Mapping[str, object] | None
) -> Place:
    """Split a location into the root of a hierarchy of Zarr, and the node in it."""
    place = place_of(location, storage_options)
    if isinstance(place.location, Store):
        return place._replace(path=normalize_path(place.path))
    text = os.fspath(place.location)
    if not is_url(text):
        text = str(Path(local_path(text)).expanduser().absolute())
    names = _names(text)
    zarr = [n for n, name in enumerate(names, 1) if name.endswith(".zarr")]
    n5 = [n for n, name in enumerate(names, 1) if name.endswith(".n5")]
    ends = sorted([*zarr, *n5]) if to is None else [*zarr, *n5]
    n_root = ends[0] if ends else len(names)
    inner = normalize_path("/".join(names[n_root:]))
    return place._replace(location="/".join(names[:n_root]), path=join(inner, place.path))


def _names(place: str) -> list[str]:
    """Return the names in a URL or path, which Windows separates by backslashes."""
    return place.replace(os.sep, "/").split("/")


def _format(root: object, path: str) -> Format:
    """Return the format from the suffix of a root."""
    text = str(root).rstrip("/")
    got = ""
    for suffix, other, form in ((".n5", ".zarr", "n5"), (".zarr", ".n5", "zarr")):
        if text.endswith(suffix):
            if not any(name.endswith(other) for name in path.split("/")):
                return form  # type: ignore[return-value] # one of the literals
            got = f", got {path} in it"
    message = (
        f"{text}: expected a destination that ends in .n5 or .zarr{got}; or choose the format "
        "with to='n5', 'zarr' or 'zarr2' (--to)"
    )
    raise N5UnrepresentableError(message, kind="option")
