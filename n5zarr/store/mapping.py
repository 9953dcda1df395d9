"""A zarr store as a ``MutableMapping[str, bytes]``, for tools that need a mapping."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from zarr.buffer import cpu

from n5zarr._zarr import sync

if TYPE_CHECKING:
    from zarr.abc.store import Store

__all__ = ["StoreMapping"]


class StoreMapping(MutableMapping[str, bytes]):
    """The keys and values of a zarr store as a mapping.

    Parameters
    ----------
    store : zarr.abc.store.Store
        The store. Each access reads or writes it; nothing is cached.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getitem__(self, key: str) -> bytes:
        value = sync(self.store.get(key, cpu.buffer_prototype))
        if value is None:
            raise KeyError(key)
        return value.to_bytes()

    def __setitem__(self, key: str, value: bytes) -> None:
        sync(self.store.set(key, cpu.Buffer.from_bytes(value)))

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        sync(self.store.delete(key))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and sync(self.store.exists(key))

    def __iter__(self) -> Iterator[str]:
        return iter(sync(self._keys()))

    def __len__(self) -> int:
        return len(sync(self._keys()))

    async def _keys(self) -> list[str]:
        return [key async for key in self.store.list()]

    def __repr__(self) -> str:
        return f"StoreMapping({self.store!r})"
