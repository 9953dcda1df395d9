"""Present the blocks inside of shards of Java N5 4 at their own keys, as a store of plain N5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, override

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.storage import WrapperStore

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import block_path, is_block_name
from n5zarr.format.path import join
from n5zarr.storage.made_keys import MadeKeys
from n5zarr.storage.requests import Get, Steps
from n5zarr.storage.shards import BlockPlace, ShardedDataset, Shards

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from zarr.abc.buffer import Buffer, BufferPrototype

    from n5zarr.format.order import CTuple, N5Tuple
    from n5zarr.storage.interface import Storage

__all__ = ["UnshardedStore"]


class UnshardedStore(MadeKeys, WrapperStore["Store"]):
    """The keys of a container, with each block inside of a shard at its own key; read only.

    Documents and indices are read once: no program may write the shards meanwhile.

    Parameters
    ----------
    storage : Storage
        The storage of the container.
    sizes : tuple of int
        Extent of a shard in elements, C order; see :class:`~n5zarr.storage.shards.Shards`.
    """

    refusal = "shards_of_java: expected only reading; n5zarr.convert copies the dataset to plain N5"

    def __init__(self, storage: Storage, sizes: CTuple) -> None:
        super().__init__(storage.store)
        self.storage = storage
        self.sizes = sizes
        self._shards = Shards(str(storage), sizes)
        self._listed: dict[str, dict[tuple[int, ...], list[str]]] = {}

    def __str__(self) -> str:
        return str(self.storage)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UnshardedStore)
            and self._store == other._store
            and self.sizes == other.sizes
        )

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    def __getstate__(self) -> dict[str, Any]:
        return {"storage": self.storage, "sizes": self.sizes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["storage"], state["sizes"])  # type: ignore[misc] # with no memory

    @override
    def _with_store(self, store: Store) -> Self:
        return self  # it is always read only

    @property
    def _supports_sync_io(self) -> bool:
        return False  # zarr's synchronous methods would bypass this class

    async def _ask[T](self, steps: Steps[T]) -> T:
        return await self.storage.run_async(steps)  # the store of these keys gives its own warnings

    # ------------------------------------------------------------------ reading

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        directory, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON:
            made = await self._ask(self._shards.dataset(directory))
            if made is not None:
                start, stop = _bounds(byte_range, len(made.document))
                return prototype.buffer.from_bytes(made.document[start:stop])
        found = await self._ask(self._shards.find(key)) if is_block_name(name) else None
        if found is None:
            return await self._store.get(key, prototype, byte_range)
        data = await self._ask(self._read(*found, byte_range))
        return None if data is None else prototype.buffer.from_bytes(data)

    def _read(
        self, made: ShardedDataset, position: N5Tuple, byte_range: ByteRequest | None
    ) -> Steps[bytes | None]:
        """Read a block, or a part of it."""
        place: BlockPlace | None = yield from self._shards.place(made, position)
        if place is None:
            return None
        n_header = len(place.header)
        start, stop = _bounds(byte_range, n_header + place.length)
        begin = max(0, start - n_header)
        n_bytes = stop - n_header - begin
        if n_bytes <= 0:
            return place.header[start:stop]
        (data,) = yield [Get(place.key, part=(place.offset + begin, n_bytes))]
        return None if data is None else place.header[start:stop] + bytes(data)

    @override
    async def exists(self, key: str) -> bool:
        found = None
        if is_block_name(key.rpartition("/")[2]):
            found = await self._ask(self._shards.find(key))
        if found is None:
            return await self._store.exists(key)
        return await self._ask(self._shards.place(*found)) is not None

    @override
    async def getsize(self, key: str) -> int:
        directory, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON:
            made = await self._ask(self._shards.dataset(directory))
            if made is not None:
                return len(made.document)
        found = await self._ask(self._shards.find(key)) if is_block_name(name) else None
        if found is None:
            return await self._store.getsize(key)
        place = await self._ask(self._shards.place(*found))
        if place is None:
            raise FileNotFoundError(key)
        return len(place.header) + place.length

    # ------------------------------------------------------------------ listing

    @override
    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        path = prefix.strip("/")
        found = await self._grid(path)
        if found is None:
            async for name in self._store.list_dir(prefix):
                yield name
            return
        made, above = found
        for name in (await self._names(made)).get(above, []):
            yield name
        if not above:
            async for name in self._store.list_dir(prefix):
                if not is_block_name(name.strip("/")):
                    yield name

    async def _grid(self, path: str) -> tuple[ShardedDataset, tuple[int, ...]] | None:
        """Return the dataset of a directory in its grid, and the first numbers of its blocks."""
        names = path.split("/") if path else []
        for n in range(len(names) + 1):
            inside = names[len(names) - n :]
            if not all(map(is_block_name, inside)):
                return None
            made = await self._ask(self._shards.dataset("/".join(names[: len(names) - n])))
            if made is not None and n < made.dataset.ndim:
                return made, tuple(map(int, inside))
        return None

    async def _names(self, made: ShardedDataset) -> dict[tuple[int, ...], list[str]]:
        """Return the names in each directory of the grid of a dataset."""
        if made.path not in self._listed:
            names: dict[tuple[int, ...], set[int]] = {}
            for position in await self._ask(self._shards.positions(made)):
                for n, number in enumerate(position):
                    names.setdefault(tuple(position[:n]), set()).add(number)
            self._listed[made.path] = {at: [*map(str, sorted(n))] for at, n in names.items()}
        return self._listed[made.path]

    @override
    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        seen: set[str] = set()
        found = await self._grid(prefix.strip("/"))
        top = prefix if found is None else found[0].path
        async for key in self._store.list_prefix(top):
            made = await self._dataset_of(key)
            if made is None:
                keys = [key]
            elif made.path in seen:
                continue
            else:
                seen.add(made.path)
                positions = await self._ask(self._shards.positions(made))
                keys = [join(made.path, block_path(position)) for position in positions]
            for each in keys:
                if each.startswith(prefix):
                    yield each

    async def _dataset_of(self, key: str) -> ShardedDataset | None:
        """Return the dataset of a file of shards."""
        directory, _, name = key.rpartition("/")
        found = await self._grid(directory) if is_block_name(name) else None
        if found is None or len(found[1]) + 1 != found[0].dataset.ndim:
            return None
        return found[0]


def _bounds(byte_range: ByteRequest | None, n_bytes: int) -> tuple[int, int]:
    """Return where a range of bytes begins and ends in a value of ``n_bytes``."""
    match byte_range:
        case RangeByteRequest(start, end):
            return min(start, n_bytes), min(end, n_bytes)
        case OffsetByteRequest(offset):
            return min(offset, n_bytes), n_bytes
        case SuffixByteRequest(suffix):
            return max(0, n_bytes - suffix), n_bytes
        case _:
            return 0, n_bytes
