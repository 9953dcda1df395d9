"""Base of zarr's stores whose values are made when they are read, so that nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, override

from zarr.abc.store import Store

from n5zarr.errors import N5UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

__all__ = ["MadeKeys"]


class MadeKeys(Store):
    """A store whose values are made when they are read; read only.

    Attributes
    ----------
    refusal : str
        Message for a write: what is expected, and the way out.
    """

    supports_writes = False
    supports_deletes = False
    refusal: ClassVar[str]

    @property
    @override
    def read_only(self) -> bool:
        return True

    @override
    def with_read_only(self, read_only: bool = False) -> Self:
        if not read_only:
            raise self._refused()
        return self

    @override
    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    @override
    async def set(self, key: str, value: Buffer) -> None:
        raise self._refused()

    @override
    async def delete(self, key: str) -> None:
        raise self._refused()

    @override
    async def delete_dir(self, prefix: str) -> None:
        raise self._refused()

    def _refused(self) -> N5UnsupportedError:
        return N5UnsupportedError(self.refusal, kind="read-only")
