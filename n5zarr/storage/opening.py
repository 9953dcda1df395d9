"""Choose and open the storage for a path, a URL or a zarr store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from n5zarr._zarr import LocalStore
from n5zarr.errors import option_error
from n5zarr.storage.confined import ConfinedStore
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.secrets import shown

if TYPE_CHECKING:
    from n5zarr.storage.cache import CacheOptions
    from n5zarr.storage.interface import Durability, Storage
    from n5zarr.storage.place import Place


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
        from n5zarr.storage.choosing import remote_storage  # noqa: PLC0415 - knows all services

        return remote_storage(
            replace(place, location=store),
            read_only=read_only,
            cache=cache,
            forbidden_is_missing=forbidden_is_missing,
        )
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
