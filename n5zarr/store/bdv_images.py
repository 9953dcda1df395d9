"""Present the images of a BigDataViewer project as N5: ``setupN/timepointM/sK``.

Everything that reads a project in N5 then reads one in another format, with the same result.
Documents are made of those of the images; a chunk becomes a raw block when it is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, override

from zarr.buffer import cpu

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import block_path, parse_block_path
from n5zarr.format.path import join
from n5zarr.storage.made_keys import MadeKeys
from n5zarr.store.buffers import as_buffer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

    from n5zarr.format.order import N5Tuple
    from n5zarr.store.bdv_levels import Level, ViewId, ViewLevels

__all__ = ["BdvImages"]

_NUMBER = "(0|[1-9][0-9]{0,8})"
_SETUP = re.compile(f"setup{_NUMBER}/")
_VIEW = re.compile(f"{_SETUP.pattern}timepoint{_NUMBER}")
_LEVEL = re.compile(f"{_VIEW.pattern}/s{_NUMBER}(?=/|$)")
_ROOT = b'{"n5": "2.0.0"}'


class BdvImages(MadeKeys):
    """The views of a project as a container of N5, read only.

    Documents are read once: no program may write the images meanwhile.

    Parameters
    ----------
    source : ViewLevels
        The views.
    """

    supports_listing = True
    refusal = "expected only reading of a project whose images are not N5; n5zarr.convert copies it"

    def __init__(self, source: ViewLevels) -> None:
        super().__init__(read_only=True)
        self.source = source
        self._levels: dict[ViewId, Mapping[int, Level]] = {}
        self._positions: dict[str, list[N5Tuple]] = {}
        self._timepoints: dict[int, dict[int, None]] = {}  # of each setup
        for setup, timepoint in source.views:
            self._timepoints.setdefault(setup, {})[timepoint] = None

    def __str__(self) -> str:
        return str(self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BdvImages) and self.source == other.source

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    def __getstate__(self) -> ViewLevels:
        return self.source

    def __setstate__(self, source: ViewLevels) -> None:
        self.__init__(source)  # type: ignore[misc] # with no memory

    @override
    def close(self) -> None:
        super().close()
        self.source.close()

    def confined(self) -> BdvImages:
        """Return the same views, without local files that links take out of the container."""
        return BdvImages(self.source.confined())

    # ------------------------------------------------------------------ images

    async def _view(self, view: ViewId) -> Mapping[int, Level]:
        """Return the levels of a view by number; none if its image does not exist."""
        setup, timepoint = view
        if view not in self._levels:
            exists = timepoint in self._timepoints.get(setup, {})
            self._levels[view] = await self.source.levels(view) if exists else {}
        return self._levels[view]

    async def _find(self, key: str) -> tuple[Level, N5Tuple] | None:
        """Return the level and the grid position of the key of a block."""
        match = _LEVEL.match(key)
        if match is None:
            return None
        level = (await self._view((int(match[1]), int(match[2])))).get(int(match[3]))
        if level is None:
            return None
        position = parse_block_path(key.removeprefix(f"{match[0]}/"), level.grid)
        return None if position is None else (level, position)

    async def _document(self, directory: str) -> bytes | None:
        match = _LEVEL.fullmatch(directory)
        if match is None:
            return None if directory else _ROOT
        level = (await self._view((int(match[1]), int(match[2])))).get(int(match[3]))
        return None if level is None else level.document

    async def _stored(self, path: str, level: Level) -> list[N5Tuple]:
        if path not in self._positions:
            self._positions[path] = await level.positions()
        return self._positions[path]

    # ------------------------------------------------------------------ reading

    @override
    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        directory, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON:
            data = await self._document(directory)
        else:
            found = await self._find(key)
            data = None if found is None else await found[0].block(found[1])
        return as_buffer(data, prototype or cpu.buffer_prototype, byte_range)

    @override
    async def exists(self, key: str) -> bool:
        directory, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON:
            return await self._document(directory) is not None
        return await self._find(key) is not None

    @override
    async def getsize(self, key: str) -> int:
        directory, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON:
            document = await self._document(directory)
            if document is not None:
                return len(document)
        found = await self._find(key)
        if found is None:
            raise FileNotFoundError(key)
        return found[0].n_bytes(found[1])

    @override
    async def getsize_prefix(self, prefix: str) -> int:
        """Return the bytes of the documents, and of the stored chunks and shards."""
        total = 0
        async for _, level in self._levels_at(f"{prefix.strip('/')}/".lstrip("/")):
            total += len(level.document) + await level.n_bytes_stored()
        return total

    # ------------------------------------------------------------------ listing

    async def _levels_at(self, prefix: str) -> AsyncIterator[tuple[str, Level]]:
        """Yield the levels that have keys with a prefix, with their paths."""
        for setup, timepoint in self._views_at(prefix):
            above = f"setup{setup}/timepoint{timepoint}/"
            if above.startswith(prefix) or prefix.startswith(above):
                for number, level in (await self._view((setup, timepoint))).items():
                    path = f"{above}s{number}"
                    if f"{path}/".startswith(prefix) or prefix.startswith(f"{path}/"):
                        yield path, level

    def _views_at(self, prefix: str) -> Iterator[ViewId]:
        """Yield the views that may have keys with a prefix; looks only at those of its setup."""
        match = _SETUP.match(prefix)
        setups = self._timepoints if match is None else {int(match[1])} & self._timepoints.keys()
        for setup in setups:
            for timepoint in self._timepoints[setup]:
                yield setup, timepoint

    @override
    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        path = prefix.strip("/")
        for name in await self._names_in(path):
            yield name

    async def _names_in(self, path: str) -> Sequence[str]:
        """List a directory."""
        if not path:
            return [ATTRIBUTES_JSON, *(f"setup{setup}" for setup in self._timepoints)]
        if "/" not in path:
            match = _SETUP.fullmatch(f"{path}/")
            timepoints = () if match is None else self._timepoints.get(int(match[1]), ())
            return [f"timepoint{timepoint}" for timepoint in timepoints]
        if (match := _VIEW.fullmatch(path)) is not None:
            return [f"s{n}" for n in await self._view((int(match[1]), int(match[2])))]
        names: dict[str, None] = {}
        async for level_path, level in self._levels_at(f"{path}/"):
            if path == level_path:
                names[ATTRIBUTES_JSON] = None
            for position in await self._stored(level_path, level):
                key = join(level_path, block_path(position))
                if key.startswith(f"{path}/"):
                    names[key.removeprefix(f"{path}/").partition("/")[0]] = None
        return list(names)

    @override
    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        if ATTRIBUTES_JSON.startswith(prefix):
            yield ATTRIBUTES_JSON
        async for path, level in self._levels_at(prefix):
            keys = [block_path(position) for position in await self._stored(path, level)]
            for key in (join(path, name) for name in [ATTRIBUTES_JSON, *keys]):
                if key.startswith(prefix):
                    yield key
