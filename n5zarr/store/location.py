"""Find the root of a container from a location in it, and open it."""

from __future__ import annotations

import os
import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from urllib.parse import unquote

from zarr.abc.store import Store
from zarr.buffer import cpu

from n5zarr._zarr_private import sync
from n5zarr.container.options import check_option
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
)
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.storage.url import is_chain, is_url, local_path, store_of_url, tolerant
from n5zarr.store.n5_store import N5Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.order import AxisOrder
    from n5zarr.storage.interface import Durability

__all__ = ["located", "located_if_url", "open_container", "sample_path", "split_root"]

_URL_ROOT = re.compile(r"(.*?\.n5)(?:/+(.*))?", re.DOTALL)


def located[T](
    location: T, storage_options: Mapping[str, object] | None, backend: Backend
) -> T | Place:
    """Return a location together with the library that reads it; as it is, if that is fsspec.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        A location as users pass it.
    storage_options : dict or None
        Options of the library, for a URL.
    backend : {"fsspec", "obstore"}
        The library.

    Raises
    ------
    N5UnrepresentableError
        There is no such library, or the location is no URL (``kind="option"``).
    """
    if _checked(backend) == backend:
        return location
    is_text = isinstance(location, str | os.PathLike)
    place = place_of(location, storage_options) if is_text else None
    if place is None or not is_url(place.location):
        message = f"backend: expected only with a URL, got it with {location!r}"
        raise N5UnrepresentableError(message, kind="option")
    return place._replace(backend=backend)


def located_if_url[T](
    location: T, storage_options: Mapping[str, object] | None, backend: Backend
) -> T | Place:
    """Do as :func:`located` does for a URL, and check the library only for other locations.

    For functions that take two locations with one library.
    """
    return located(location, storage_options, backend if is_url(location) else _checked(backend))


def _checked(backend: Backend) -> Backend:
    check_option("backend", backend, get_args(Backend.__value__))
    return "fsspec"


def sample_path() -> str:
    """Return the path of the small container that comes with n5zarr.

    Returns
    -------
    str
        A local path. The container holds a multiscale image and labels with axes and units.
    """
    return str(Path(__file__).parents[1] / "data" / "sample.n5")


def split_root(location: str | os.PathLike[str]) -> tuple[str, str]:
    """Split a location into the root of its container and the path of a node in it.

    The root is the first path element that ends in ``.n5``. Without one, it is the topmost
    directory of an unbroken chain, from the location upwards, in which each has an
    ``attributes.json``. Without that, it is the location itself. No server is asked: a URL without
    ``.n5`` is taken as the root.

    Parameters
    ----------
    location : path or URL
        A container, or a location in one.

    Returns
    -------
    root, path : str
        ``path`` is ``""`` if the location is the root.

    Examples
    --------
    >>> split_root("s3://bucket/jrc_hela-2.n5/em/s0")
    ('s3://bucket/jrc_hela-2.n5', 'em/s0')
    """
    text = os.fspath(location)
    if "://" in text and not text.lower().startswith("file://"):
        address, query = _address(text)
        match = _URL_ROOT.fullmatch(address)
        if match is None:
            return text, ""
        return _with_query(match.group(1), match.group(2) or "", query)
    node = Path(local_path(text)).expanduser().absolute()
    if ".." in node.parts:
        node = node.resolve()
    names = node.parts
    ends = (n for n, name in enumerate(names, 1) if name.endswith(".n5") and Path(name).suffix)
    n_root = next(ends, None) or len(_documented_root(node).parts)
    return str(Path(*names[:n_root])), "/".join(names[n_root:])


def _documented_root(node: Path) -> Path:
    """Return the topmost directory of the unbroken chain with documents, upwards from a node."""
    documented = list(takewhile(_has_document, (node, *node.parents)))
    return documented[-1] if documented else node


def _has_document(directory: Path) -> bool:
    try:
        return (directory / ATTRIBUTES_JSON).is_file()
    except OSError:  # no permission to search it
        return False


def _address(url: str) -> tuple[str, str]:
    """Split a URL into its address and its query; the query is sent with every request."""
    is_http = url.lower().startswith(("http://", "https://"))
    address, mark, query = url.partition("?") if is_http else (url, "", "")
    return address, mark + query


def _with_query(root: str, inner: str, query: str) -> tuple[str, str]:
    """Return the URL of a container with its query, and the unquoted path of a node in it."""
    inner = inner.strip("/")
    is_http = root.lower().startswith(("http://", "https://"))
    return root + query, unquote(inner) if is_http else inner


def _split_by_documents(
    url: str, storage_options: Mapping[str, object] | None, backend: Backend
) -> tuple[str, str]:
    """Split a URL without ``.n5``: request documents upwards until one is missing."""
    address, query = _address(url)
    scheme, separator, place = address.partition("://")
    names = place.rstrip("/").split("/")
    n_root = len(names)
    for n in range(len(names), 0, -1):
        above = scheme + separator + "/".join(names[:n])
        if not sync(_has_document_at(above + query, storage_options, backend)):
            break
        n_root = n
    root = scheme + separator + "/".join(names[:n_root])
    return _with_query(root, "/".join(names[n_root:]), query)


def _needs_documents(root: str) -> bool:
    """Whether only documents reveal the root: a URL without ``.n5``, and no archive or chain."""
    if not is_url(root) or is_chain(root) or root.lower().startswith("zip:"):
        return False
    return _URL_ROOT.fullmatch(_address(root)[0]) is None


async def _has_document_at(
    url: str, storage_options: Mapping[str, object] | None, backend: Backend
) -> bool:
    """Whether a document exists at a URL; a forbidden one is not part of the container."""
    store = store_of_url(url, storage_options, read_only=True, backend=backend)
    data = await tolerant(store).get(ATTRIBUTES_JSON, cpu.buffer_prototype)
    # some web servers answer any request with an HTML page
    return data is not None and not data.to_bytes().lstrip().startswith(b"<")


def open_container(
    store: Location,
    path: str = "",
    *,
    axis_order: AxisOrder = "C",
    storage_options: Mapping[str, object] | None = None,
    durability: Durability | None = None,
    read_only: bool = False,
) -> tuple[N5Store, str]:
    """Open the container of a location with n5zarr's own codec.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or a path or URL of a location in one.
    path : str, optional
        Node below ``store``.
    axis_order : {"C", "F"}, optional
        The order of the axes; ``"C"`` reverses N5's. An :class:`N5Store` keeps its own.
    storage_options : dict, optional
        Options of fsspec, for a URL.
    durability : {"atomic", "durable", "overwrite"}, optional
        The way to write local files; ``"atomic"`` by default. An :class:`N5Store` keeps its own.
    read_only : bool, optional
        Whether to refuse writing; a given :class:`N5Store` is not changed.

    Returns
    -------
    N5Store, str
        The container, and the path of the node in it. A given :class:`N5Store` is returned
        unchanged or, if its ``zarr_format`` is None, as Zarr v3, so that all nodes are visible.

    Raises
    ------
    N5UnrepresentableError
        The given :class:`N5Store` has another durability (``kind="option"``).
    """
    location, below, storage_options, backend = place_of(store, storage_options)
    path = join(normalize_path(below), normalize_path(path))
    if isinstance(location, N5Store):
        if durability not in (None, location.durability):
            message = f"durability: expected that of the store, {location.durability!r}, or none"
            raise N5UnrepresentableError(f"{message}, got {durability!r}", kind="option")
        return location.showing(location.zarr_format or 3), path
    root: str | Store = location if isinstance(location, Store) else ""
    inner = ""
    if not isinstance(location, Store):
        root, inner = (os.fspath(location), "") if below else split_root(location)
        if not below and _needs_documents(root):
            root, inner = _split_by_documents(root, storage_options, backend)
    opened = N5Store(
        root,
        codecs="n5",
        zarr_format=3,
        axis_order=axis_order,
        storage_options=storage_options,
        backend=backend,
        durability="atomic" if durability is None else durability,
        read_only=read_only,
    )
    return opened, join(normalize_path(inner), path)
