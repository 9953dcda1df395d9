"""A store that presents the chunks of several arrays as one array with an additional first axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.images.derived_store import DerivedStore
from n5zarr.zarr_view.keys import ChunkNames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest, Store
    from zarr.types import AnyArray

__all__ = ["StackedStore"]

_NAMES = ChunkNames("c", "/")


class StackedStore(DerivedStore):
    """The chunks of arrays of one shape, chunk by chunk; for reading.

    Parameters
    ----------
    arrays : tuple of zarr.Array or None
        The arrays by index along the new axis, or None if all chunks are missing.
    """

    def __init__(self, arrays: tuple[AnyArray | None, ...]) -> None:
        super().__init__()
        self._arrays = arrays

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StackedStore) and self._arrays == other._arrays

    __hash__ = None  # type: ignore[assignment] # as those of zarr

    def _find(self, key: str) -> tuple[Store, str] | None:
        """Return the store and the key of a chunk in it."""
        position = _NAMES.coords(key)
        if not position or position[0] >= len(self._arrays):
            return None
        array = self._arrays[position[0]]
        if array is None:
            return None
        names = ChunkNames.of(array.metadata.to_dict())
        return array.store, names.key(array.path, position[1:])

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Read a chunk."""
        found = self._find(key)
        return None if found is None else await found[0].get(found[1], prototype, byte_range)

    async def exists(self, key: str) -> bool:
        """Whether a chunk is stored."""
        found = self._find(key)
        return found is not None and await found[0].exists(found[1])

    async def list(self) -> AsyncIterator[str]:
        """Yield the keys of all chunks."""
        for index, array in enumerate(self._arrays):
            if array is None:
                continue
            names = ChunkNames.of(array.metadata.to_dict())
            prefix = f"{array.path}/" if array.path else ""
            async for key in array.store.list_prefix(prefix):
                position = names.coords(key.removeprefix(prefix))
                if position is not None:
                    yield _NAMES.key("", (index, *position))

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names below a prefix."""
        inner = f"{prefix}/" if prefix else ""
        seen: set[str] = set()
        async for key in self.list_prefix(inner):
            name = key.removeprefix(inner).partition("/")[0]
            if name not in seen:
                seen.add(name)
                yield name
