"""Choose and open the storage for a path, a URL or a zarr store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from n5zarr._zarr import LocalStore
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.confined import ConfinedFiles, ConfinedStore
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.secrets import shown

if TYPE_CHECKING:
    from n5zarr.storage.cache import CacheOptions
    from n5zarr.storage.interface import Durability, Storage
    from n5zarr.storage.place import Place

__all__ = ["open_storage"]


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
    cache, forbidden_is_missing : optional
        As for :class:`~n5zarr.N5Store`.
    durability : {"atomic", "durable", "overwrite"}, optional
        The way to write local files.

    Raises
    ------
    N5UnrepresentableError
        An option does not apply to such a location (``kind="option"``).
    """
    if place.path:
        message = f"location: expected the root of a container, got its node {place.path!r}; open"
        raise N5UnrepresentableError(f"{message} it with n5zarr.open", kind="option")
    location = place.location
    if place.storage_options is not None and not place.is_url:
        message = f"storage_options: expected only with a URL, got it with {shown(location)}"
        raise N5UnrepresentableError(message, kind="option")
    store = LocalStore(location) if isinstance(location, Path) else location
    if not isinstance(store, LocalStore) and durability != "atomic":
        message = (
            f"durability: expected {durability!r} only with local files, got {shown(location)}"
        )
        raise N5UnrepresentableError(message, kind="option")
    if not isinstance(store, LocalStore) or forbidden_is_missing:
        from n5zarr.storage.choosing import remote_storage  # noqa: PLC0415 - knows all services

        return remote_storage(
            replace(place, location=store),
            read_only=read_only,
            cache=cache,
            forbidden_is_missing=forbidden_is_missing,
        )
    if cache is not None:
        message = "cache: expected a remote container; the system caches local files itself"
        raise N5UnrepresentableError(message, kind="option")
    files = ConfinedFiles if isinstance(store, ConfinedStore) else LocalFiles
    return files(
        Path(store.root),
        read_only=store.read_only,
        store_writes=store is location and not store.read_only,
        durability=durability,
    )
