"""Choose and open the storage for a path, a URL or a zarr store."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Protocol

from zarr.abc.store import Store

from n5zarr._zarr import LocalStore
from n5zarr.errors import option_error
from n5zarr.rooms import Door
from n5zarr.storage.cache import CacheOptions
from n5zarr.storage.confined import ConfinedStore
from n5zarr.storage.interface import Durability, Storage
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.place import Place
from n5zarr.storage.secrets import shown
from n5zarr.storage.url import Backend
from n5zarr.storage.zarr_store import ZarrStorage


class OpenUrl(Protocol):
    """Opens the store of a URL; also says which library was chosen, and why."""

    def __call__(
        self,
        place: Place,
        *,
        read_only: bool,
        forbidden_is_missing: bool,
        backend: Backend | None = None,
    ) -> tuple[Store, str]:
        """Open it."""


class Served(Protocol):
    """Returns a store for a server that raises Python's errors; other stores as they are."""

    def __call__(self, store: Store, *, forbidden_is_missing: bool = False) -> Store:
        """Return it; "forbidden" may mean that a key is missing."""


OPEN_URL: Door[OpenUrl] = Door("server", "URL")
_SERVED: Door[Served] = Door("server", "store")


def open_storage(
    place: Place,
    *,
    read_only: bool = False,
    cache: CacheOptions | None = None,
    forbidden_is_missing: bool = False,
    durability: Durability = "atomic",
) -> Storage:
    """Open the storage of a container.

    Parameters
    ----------
    place : Place
        The container; see :func:`~n5zarr.storage.place.place_of`.
    read_only : bool, optional
        Whether the store opened for a URL refuses to write.
    cache, forbidden_is_missing, durability : optional
        As for :class:`~n5zarr.N5Store`.

    Raises
    ------
    N5UnrepresentableError
        An option does not apply to such a location (``kind="option"``).
    """
    location = place.location
    if place.path:
        raise option_error(
            f"location: expected the root of a container, got its node {place.path!r}; open it "
            "with n5zarr.open"
        )
    if place.storage_options is not None and not place.is_url:
        raise option_error(
            f"storage_options: expected only with a URL, got it with {shown(location)}"
        )
    store = LocalStore(location) if isinstance(location, Path) else location
    if not isinstance(store, LocalStore) and durability != "atomic":
        raise option_error(
            f"durability: expected {durability!r} only with local files, got {shown(location)}"
        )
    if not isinstance(store, LocalStore) or forbidden_is_missing:
        return _zarr_storage(place, store, read_only, cache, forbidden_is_missing)
    if cache is not None:
        raise option_error(
            "cache: expected a remote container; the system caches local files itself"
        )
    return LocalFiles(
        Path(store.root),
        confined=isinstance(store, ConfinedStore),
        read_only=store.read_only,
        store_writes=store is location and not store.read_only,
        durability=durability,
    )


def _zarr_storage(
    place: Place,
    store: Store | str,
    read_only: bool,  # noqa: FBT001 - of the caller
    cache: CacheOptions | None,
    forbidden_is_missing: bool,  # noqa: FBT001 - the same
) -> ZarrStorage:
    """Open the storage of a URL, or of a zarr store, which the room of servers may improve."""
    if isinstance(store, str):
        open_url = partial(
            OPEN_URL.needed(),
            place,
            read_only=read_only,
            forbidden_is_missing=forbidden_is_missing,
        )
        return ZarrStorage(*open_url(), open_url, cache)
    served = _SERVED.needed() if forbidden_is_missing else _SERVED.found()
    if served is not None:
        store = served(store, forbidden_is_missing=forbidden_is_missing)
    return ZarrStorage(store, cache=cache)
