"""Find the root of a container from a location in it, and open it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from zarr.abc.store import Store

from n5zarr.container.options import check_option
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import format_of_name
from n5zarr.format.path import join
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place
from n5zarr.storage.requests import read_key
from n5zarr.storage.url import is_chain, split_query
from n5zarr.store.n5_store import N5Store
from n5zarr.store.shown_store import ShownStore

_SAMPLES = {"n5": ("sample.n5",), "bigstitcher": ("bigstitcher", "dataset.xml")}


def sample_path(name: Literal["n5", "bigstitcher"] = "n5") -> str:
    """Return the path of small data that come with n5zarr.

    Parameters
    ----------
    name : {"n5", "bigstitcher"}, optional
        ``"n5"``: a container with a multiscale image and labels, with axes and units.
        ``"bigstitcher"``: the XML of a BigStitcher project with two channels of four tiles at two
        time points, one missing view, and interest points.

    Returns
    -------
    str
        A local path.

    Raises
    ------
    N5UnrepresentableError
        There are no data of this name (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> tree = n5zarr.open_bdv(n5zarr.sample_path("bigstitcher"))
    >>> tree["setup3/s0/data"].sizes
    Frozen({'timepoint': 2, 'z': 11, 'y': 53, 'x': 61})
    """
    check_option("name", name, tuple(_SAMPLES))
    return str(Path(__file__).parents[1].joinpath("data", *_SAMPLES[name]))


def root_of(place: Place) -> Place:
    """Split a place into the root of its container and the path of a node in it.

    The root is the first path element that ends in ``.n5``. Without one, it is the topmost
    directory of an unbroken chain, from the place upwards, in which each has an
    ``attributes.json``. Without that, it is the place itself, as it is if it is a store, or says
    itself which node it means.

    Parameters
    ----------
    place : Place
        A container, or a location in one.

    Examples
    --------
    >>> from n5zarr.storage.place import place_of
    >>> root = root_of(place_of("s3://bucket/jrc_hela-2.n5/em/s0"))
    >>> root.location, root.path
    ('s3://bucket/jrc_hela-2.n5', 'em/s0')
    """
    if place.path or isinstance(place.location, Store):
        return place
    named = named_root(place, "n5")
    if named is not None:
        return named
    if isinstance(place.location, str):
        names = _names(place.location)
        if is_chain(place.location) or names[0].lower() == "zip:":
            return place
        upwards = range(len(names), 2, -1)  # down to the host or bucket
        found = takewhile(lambda n: _has_document_at(split_place(place, n)), upwards)
        return split_place(place, min(found, default=None))
    return split_at_topmost(place, [ATTRIBUTES_JSON])


def split_at_topmost(place: Place, names: Collection[str], *, or_above: bool = False) -> Place:
    """Split a local path at the topmost directory that, as all between, has a file of some names.

    Parameters
    ----------
    place : Place
        A location; without such directories, or not in local files, its node is the root.
    names : collection of str
        The names, of which each directory has one.
    or_above : bool, optional
        Whether the lowest directory need not have one.
    """
    if not isinstance(place.location, Path):
        return split_place(place)
    node = Path(*_names(place.location))

    def holds_any(directory: Path) -> bool:
        try:
            return any((directory / name).is_file() for name in names)
        except OSError:  # no permission to search it
            return False

    start = node.parent if or_above and not holds_any(node) else node
    found = takewhile(holds_any, (start, *start.parents))
    return split_place(place, min((len(each.parts) for each in found), default=None))


def named_root(place: Place, *forms: str) -> Place | None:
    """Split a path or URL at its first name that ends as those of a format; None if none does."""
    if isinstance(place.location, Store):
        return None
    each = enumerate(_names(place.location), 1)
    n_root = next((n for n, name in each if format_of_name(name) in forms), None)
    return None if n_root is None else split_place(place, n_root)


def split_place(place: Place, n_names: int | None = None) -> Place:
    """Split a path or URL into a root of so many names, by default all, and the node in it."""
    if isinstance(place.location, Store):
        return place
    names = _names(place.location)
    n_root = len(names) if n_names is None else n_names
    inner = "/".join(names[n_root:]).strip("/")
    if isinstance(place.location, Path):
        return replace(place, location=Path(*names[:n_root]), path=join(inner, place.path))
    inner = unquote(inner) if names[0].lower() in ("http:", "https:") else inner
    url = "/".join(names[:n_root]) + split_query(place.location)[1]
    return replace(place, location=url, path=join(inner, place.path))


def _names(location: Path | str) -> Sequence[str]:
    """Return the names of an absolute path, or of a URL without its query."""
    if isinstance(location, str):
        return split_query(location)[0].rstrip("/").split("/")
    path = location.absolute()
    return (path.resolve() if ".." in path.parts else path).parts


def _has_document_at(place: Place) -> bool:
    """Whether a document exists at a URL; a forbidden one is not part of the container."""
    try:
        storage = open_storage(replace(place, path=""), read_only=True)
        data = storage.run(read_key(ATTRIBUTES_JSON))
    except PermissionError:
        return False
    # some web servers answer any request with an HTML page
    return data is not None and not bytes(data).lstrip().startswith(b"<")


def check_writable_store(store: N5Store, where: str = "") -> None:
    """Raise if a store is read-only.

    Parameters
    ----------
    store : N5Store
        The store.
    where : str, optional
        The container and the node, for the message; by default the container.

    Raises
    ------
    N5UnsupportedError
        The store is read-only (``kind="read-only"``).
    """
    if store.read_only:
        shown = store.storage.store
        message = "expected a writable store, got a read-only one; n5zarr.convert copies it"
        if isinstance(shown, ShownStore):
            message = shown.refusal
        raise N5UnsupportedError(message, kind="read-only", where=where or str(store))
