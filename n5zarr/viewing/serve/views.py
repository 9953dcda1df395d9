"""Answer the keys that are served: those of N5 as stored, of Zarr, and of OME-Zarr."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, override

from zarr.buffer import cpu

from n5zarr._zarr_private import from_other_loop
from n5zarr.container.block_location import BlockLocation
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import check_key, join
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.requests import Ends, Get, Stamp, Work, read_key
from n5zarr.store.n5_store import N5Store
from n5zarr.viewing.ome_store import OmeStore
from n5zarr.zarr_view.keys import METADATA_NAMES, ChunkKey, MetadataKey, parse_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.storage.interface import Storage
    from n5zarr.storage.requests import Request, Steps
    from n5zarr.viewing.serve.opened import Opened
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["N5View", "OmeView", "ServedView", "ZarrView", "is_shown"]

_DOCUMENTS = {name for names in METADATA_NAMES.values() for name in names}
_BLOCK = re.compile(r"(?:.*/)?[0-9]+", re.ASCII | re.DOTALL)
_SETTLED = 1_000_000_000  # nanoseconds after which the time of a file tells its next change
_LARGEST = 1 << 28  # bytes of a file that belongs neither to N5 nor to Zarr; it is read at once
_SLOW = 0.002  # seconds: files that take longer, on a network or a disk, are read by threads


def is_shown(key: str) -> bool:
    """Whether a key is served: it stays in the container, and has no hidden name.

    Hidden names begin with a dot, as those of editors, of version control and of macOS; writers
    put unfinished files beside those that they write.

    Examples
    --------
    >>> [is_shown(key) for key in ("em/s0/0/1", "em/../../secret", "em/.git/config", "a/.zarray")]
    [True, False, False, True]
    """
    try:
        *above, name = check_key(key).split("/")
    except N5UnrepresentableError:
        return False
    if is_unfinished(name) or (name.startswith(".") and name not in _DOCUMENTS):
        return False
    return not any(each.startswith(".") for each in above)


class ServedView(ABC):
    """One view of the opened location, by keys below its path."""

    @abstractmethod
    async def read(self, key: str) -> BufferLike | None:
        """Read the value of a key; None if it is missing.

        Raises
        ------
        N5Error
            The node or block is broken or not supported.
        """

    def stamp(self, _key: str) -> object | None:
        """Return a stamp that changes with the value of a key; None if only the bytes show it."""
        return None


class _StoredView(ServedView):
    """A view whose values are mostly one file each."""

    def __init__(self, opened: Opened) -> None:
        self._store = opened.store
        self._path = opened.path
        self._seconds = 0.0  # duration of a read in this thread, a moving average

    async def _run[T](self, steps: Steps[T]) -> T:
        """Run a flow here while it reads cached files, and in a thread if it computes or waits.

        With a thread for each, two fifths fewer small blocks are read in a second, and some take
        seconds: threads wait for the interpreter again after each call of the system.
        """
        storage = self._store.storage
        if not storage.supports_sync:
            return await from_other_loop(self._store.run(steps))  # clients belong to that one
        warn = self._store.container.warn
        start = time.perf_counter()
        try:
            requests = next(steps)
            while self._seconds < _SLOW and not any(map(_may_take_long, requests)):
                requests = _answered(storage, steps, requests, warn)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:  # after some reads in threads, one here tells whether files are slow still
            taken = min(time.perf_counter() - start, 10 * _SLOW)  # one alone tells little
            self._seconds += 0.05 * (taken - self._seconds)
        return await asyncio.to_thread(storage.run, steps, warn, requests)

    def _stamp_of(self, *keys: str) -> object | None:
        """Return the stamps of files, unless one may be changed again at the same time of it."""
        if not self._store.storage.has_stamps:
            return None
        stamps = self._store.run_sync(_stamps(keys))
        latest = time.time_ns() - _SETTLED
        return stamps if all(each is not None and each[1] < latest for each in stamps) else None


def _may_take_long(request: object) -> bool:
    return isinstance(request, Work) or (isinstance(request, Get) and request.settled)


def _answered(
    storage: Storage, steps: Steps[Any], requests: Sequence[Request], warn: Callable[[str], None]
) -> Sequence[Request]:
    """Answer requests of a flow, and return its next ones."""
    try:
        answers = [storage.answer(request, warn) for request in requests]
    except Exception as err:  # the flow may handle it
        return steps.throw(err)
    return steps.send(answers)


def _stamps(keys: tuple[str, ...]) -> Steps[tuple[tuple[int, ...] | None, ...]]:
    return tuple((yield [Stamp(key) for key in keys]))


class N5View(_StoredView):
    """The stored documents and blocks of N5, and other files in groups."""

    @override
    async def read(self, key: str) -> BufferLike | None:
        return await self._run(self._value(join(self._path, key)))

    def _value(self, key: str) -> Steps[BufferLike | None]:
        name = key.rpartition("/")[2]
        if name in _DOCUMENTS:
            return None
        if name == ATTRIBUTES_JSON or _BLOCK.fullmatch(key):
            return (yield from read_key(key))
        [ends] = yield [Ends(key, 1, 0)]
        if ends is not None and ends[0] > _LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), key)
        return (yield from self._store.container.hierarchy.other_file(key))

    @override
    def stamp(self, key: str) -> object | None:
        return self._stamp_of(join(self._path, key))


class ZarrView(_StoredView):
    """The documents and chunks of Zarr v3, of v2 or of both, which any reader of Zarr decodes."""

    def __init__(self, opened: Opened, formats: Sequence[ZarrFormat] = (3, 2)) -> None:
        super().__init__(opened)
        v3 = N5Store(opened.store.storage, codecs="portable", zarr_format=3, read_only=True)
        self._stores: dict[ZarrFormat, N5Store] = {each: v3.showing(each) for each in formats}

    @override
    async def read(self, key: str) -> BufferLike | None:
        full = join(self._path, key)
        for zarr_format, store in self._stores.items():
            parsed = parse_key(full, zarr_format)
            if isinstance(parsed, MetadataKey):
                # of a store of its own: a store remembers each document that it was asked for
                return _strict(await self._run(store.reopened().container.read(full)))
            if isinstance(parsed, ChunkKey):
                value = await self._run(store.container.read(full, is_copied=True))
                if value is not None:
                    return value
        return None

    @override
    def stamp(self, key: str) -> object | None:
        full = join(self._path, key)
        for zarr_format, store in self._stores.items():
            parsed = parse_key(full, zarr_format)
            if isinstance(parsed, ChunkKey) and self._store.storage.has_stamps:
                block = store.run_sync(_block(store, parsed))
                if block is not None:
                    return self._stamp_of(block, join(parsed.path, ATTRIBUTES_JSON))
        return None


def _block(store: N5Store, chunk: ChunkKey) -> Steps[str | None]:
    """Return the key of the block of a chunk; None if there is no such chunk."""
    location = BlockLocation.of(chunk, (yield from store.container.chunks.dataset(chunk.path)))
    return None if location is None or not location.in_grid else location.key


def _strict(document: BufferLike | None) -> BufferLike | None:
    """Return a document with NaN and infinities as text: browsers refuse all of it for one."""
    if document is None:
        return None
    text = bytes(document)
    if b"NaN" not in text and b"Infinity" not in text:
        return document
    return json.dumps(json.loads(text, parse_constant=str)).encode()


class OmeView(ServedView):
    """The images as OME-Zarr 0.5; found when they are first asked for."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._store: OmeStore | None = None
        self._lock = asyncio.Lock()  # one thread finds the images, the others stay free

    @override
    async def read(self, key: str) -> BufferLike | None:
        async with self._lock:
            if self._store is None:
                self._store = await asyncio.to_thread(self._made)
        value = await self._store.get(key, cpu.buffer_prototype)
        data = None if value is None else memoryview(value.as_numpy_array())
        return _strict(data) if key.endswith(".json") else data

    def _made(self) -> OmeStore:
        return OmeStore(self._opened.tree())
