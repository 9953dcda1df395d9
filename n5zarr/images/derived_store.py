"""The base of stores that derive their keys from other data, on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zarr.abc.store import Store

from n5zarr.errors import N5UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

__all__ = ["DerivedStore"]


class DerivedStore(Store):
    """A store to read from; subclasses define `get`, `exists`, `list` and `list_dir`."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self) -> None:
        super().__init__(read_only=True)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Read parts of values."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield the keys that begin with a prefix."""
        async for key in self.list():
            if key.startswith(prefix):
                yield key

    async def set(self, key: str, value: Buffer) -> None:
        """Refuse to write."""
        raise self._refusal()

    async def delete(self, key: str) -> None:
        """Refuse to remove."""
        raise self._refusal()

    def _refusal(self) -> N5UnsupportedError:
        message = f"{type(self).__name__}: expected only reading, got a write to a read-only store"
        return N5UnsupportedError(message, kind="read-only")
