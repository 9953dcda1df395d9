"""Recognise locations of containers: paths, URLs, zarr's stores, and objects of fsspec.

Imports no optional package: a caller can only pass objects of packages already imported.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from zarr import Array, Group
from zarr.abc.store import Store
from zarr.storage import FsspecStore, ObjectStore, StorePath

from n5zarr._zarr import LocalStore
from n5zarr.errors import option_error
from n5zarr.format.foreign import format_of_name
from n5zarr.format.path import join
from n5zarr.storage.confined import ConfinedStore
from n5zarr.storage.secrets import shown
from n5zarr.storage.url import Backend, is_url, local_path, split_query

if TYPE_CHECKING:
    from obstore.store import ObjectStore as ObstoreStore

__all__ = ["Backend", "Location", "Place", "place_of"]

type Location = (
    str
    | os.PathLike[str]
    | Store
    | StorePath
    | Array[Any]
    | Group
    | MutableMapping[str, bytes]
    | ObstoreStore
    | Place
)
"""The types that name a container or a node in it; the mappings are those of fsspec."""

_PIPELINE = "|n5:"
_PREFIX = "n5://"
_STEP = re.compile(r"\|([a-z0-9_-]+):")


@dataclass(frozen=True)
class Place:
    """A location in plain terms, which all functions below those of users take.

    Parameters
    ----------
    location : Path, str or Store
        A local path, a URL, or a store of zarr's.
    path : str
        The node below it.
    storage_options : mapping or None
        For the backend, with a URL.
    backend : {"fsspec", "obstore"} or None, optional
        The library that reads and writes a URL; None for the faster one that understands the
        options.
    """

    location: Path | str | Store
    path: str = ""
    storage_options: Mapping[str, object] | None = None
    backend: Backend | None = None

    @property
    def is_url(self) -> bool:
        """Whether the location is a URL."""
        return isinstance(self.location, str)

    @property
    def names(self) -> Sequence[str]:
        """The names in a path or a URL without its query; none of a store."""
        if isinstance(self.location, Path):
            return self.location.parts
        return split_query(self.location)[0].split("/") if isinstance(self.location, str) else ()

    @property
    def format(self) -> str | None:
        """The format that the last name tells; None if it tells none."""
        return format_of_name(self.names[-1]) if self.names else None

    def is_named(self, kind: str) -> bool:
        """Whether a name in the path or URL tells a format, such as ``.n5``."""
        return any(format_of_name(name) == kind for name in self.names)


def place_of(
    given: object,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    *,
    fs: object = None,
    one_of_two: bool = False,
) -> Place:
    """Parse a user's location of a container or of a node in it.

    Parameters
    ----------
    given : str, PathLike, Store, StorePath, Array, Group, UPath, FSMap or Place
        A path or URL, also with the prefix ``n5://``, or as a pipeline such as
        ``s3://bucket/a.n5|n5:em/s0`` or ``a.zip|zip:a.n5|n5:em/s0``; a store of zarr's, or a place
        in one; an open array or group; a store of obstore's; an object of ``universal_pathlib``; a
        mapping of fsspec's, such as ``s3fs.S3Map``; or a place, which is returned.
    storage_options : dict, optional
        For the backend, with a URL.
    backend : {"fsspec", "obstore"} or None, optional
        The library that reads and writes a URL; None for the faster one that understands the
        options.
    fs : fsspec.AbstractFileSystem, optional
        The file system of a path.
    one_of_two : bool, optional
        Whether options and backend are those of another location if this one is no URL.

    Raises
    ------
    N5UnrepresentableError
        The value has none of these types, or already has the options; there is no such backend, or
        the location is no URL (``kind="option"``).

    Examples
    --------
    >>> place_of("s3://bucket/a.n5|n5:em/s0")
    Place(location='s3://bucket/a.n5', path='em/s0', storage_options=None, backend=None)
    """
    known = get_args(Backend.__value__)
    if backend is not None and backend not in known:
        raise option_error(
            f"backend: expected one of {', '.join(map(repr, known))}, got {backend!r}"
        )
    if one_of_two and not _parsed(given, None).is_url:
        storage_options, backend = None, None
    given = given if fs is None else _as_mapping(given, fs, storage_options)
    place = _parsed(given, storage_options)
    if backend == place.backend or given is place:
        return place
    if not place.is_url:
        raise option_error(f"backend: expected only with a URL, got it with {shown(given)}")
    return replace(place, backend=backend)


def _parsed(given: object, storage_options: Mapping[str, object] | None) -> Place:
    match given:
        case Place():  # has its options already
            place = given
        case str():
            location, pipe, path = given.partition(_PIPELINE)
            location = location.removeprefix(_PREFIX) or "."
            location = _of_steps(location) if pipe else location
            found = location if is_url(location) else Path(local_path(location)).expanduser()
            place = Place(found, path.strip("/"), storage_options)
        case Array() | Group() | StorePath():
            place = _of_store_path(given, storage_options)
        case Store():
            place = Place(given, "", storage_options)
        case _:
            place = _of_other_package(given, storage_options)
    return place


def _of_other_package(given: object, storage_options: Mapping[str, object] | None) -> Place:
    match given:
        case _ if _is_of(given, "fsspec.mapping", "FSMap"):
            _refuse_options(given, storage_options)
            return _of_mapping(given)
        case _ if _is_of(given, "obstore.store", "ObjectStore"):
            _refuse_options(given, storage_options)
            store: Any = given
            folder = store.prefix if type(store).__name__ == "LocalStore" else None
            return Place(ObjectStore(store) if folder is None else Path(folder))
        case _ if _is_of(given, "upath", "UPath"):
            return _of_upath(given, storage_options)
        case os.PathLike():
            return Place(Path(given).expanduser(), "", storage_options)
        case _:
            raise option_error(
                "location: expected a path, a URL, a store of zarr's or obstore's or a mapping of "
                f"fsspec's, got {type(given).__name__}"
            )


def _is_of(value: object, module: str, name: str) -> bool:
    """Whether a value is of a class of a module that may not be installed."""
    return module in sys.modules and isinstance(value, getattr(sys.modules[module], name))


def _refuse_options(given: object, storage_options: Mapping[str, object] | None) -> None:
    if storage_options:
        raise option_error(
            f"storage_options: expected none with {shown(given)}, which has its own options"
        )


def _of_steps(pipeline: str) -> str:
    """Return the URL of the part before ``|n5:`` in a pipeline: itself, or a zip file in it."""
    steps = _STEP.split(pipeline)
    if len(steps) == 1:
        return pipeline
    if len(steps) != 3 or steps[1] != "zip":
        found = "|".join(steps[1::2])
        raise option_error(
            f"location: expected only '|zip:' before '|n5:', got '|{found}:' in {shown(pipeline)}"
        )
    place, _, inner = steps
    place = place if "://" in place else f"file://{Path(place).absolute()}"
    return f"zip://{inner.strip('/')}::{place}"


def _as_mapping(given: object, fs: Any, storage_options: Mapping[str, object] | None) -> Any:  # noqa: ANN401 - fsspec has no types
    """Return the mapping of a path in a file system of fsspec's."""
    if not isinstance(given, str | os.PathLike) or not hasattr(fs, "get_mapper"):
        raise option_error(
            f"fs: expected a file system of fsspec's and a path, got {shown(fs)} and {shown(given)}"
        )
    _refuse_options(fs, storage_options)
    return fs.get_mapper(os.fspath(given).removeprefix(_PREFIX))


def _of_mapping(mapping: Any) -> Place:  # noqa: ANN401 - fsspec has no types
    protocols = mapping.fs.protocol
    protocols = {protocols} if isinstance(protocols, str) else set(protocols)
    if "dir" in protocols:  # a folder of another file system
        inner = "/".join(filter(None, (mapping.fs.path.rstrip("/"), mapping.root)))
        return _of_mapping(mapping.fs.fs.get_mapper(inner))
    if {"file", "local"} & protocols:
        return Place(Path(mapping.root))
    return Place(FsspecStore.from_mapper(mapping))


def _of_upath(path: Any, storage_options: Mapping[str, object] | None) -> Place:  # noqa: ANN401 - may not be installed
    if path.protocol in ("", "file", "local"):
        return Place(Path(path.path).expanduser(), "", storage_options)
    if {"fo", "target_options"} & path.storage_options.keys():  # an archive, a cache
        _refuse_options(path, storage_options)
        return _of_mapping(path.fs.get_mapper(path.path))
    return Place(str(path), "", {**path.storage_options, **(storage_options or {})})


def _of_store_path(
    place: StorePath | Array[Any] | Group, storage_options: Mapping[str, object] | None
) -> Place:
    """Return a place in a store of zarr's: as a path of local files, else as store and path."""
    _refuse_options(place, storage_options)
    if isinstance(place.store, LocalStore) and not isinstance(place.store, ConfinedStore):
        return Place(Path(place.store.root, place.path))
    if isinstance(place.store, FsspecStore):
        store = place.store
        inner = FsspecStore(
            store.fs,
            read_only=store.read_only,
            path=join(store.path, place.path),
            allowed_exceptions=store.allowed_exceptions,
        )
        return Place(inner)
    return Place(place.store, place.path)
