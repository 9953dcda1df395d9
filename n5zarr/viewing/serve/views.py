"""Read the keys of the served views: N5 as it is stored, Zarr, and OME-Zarr."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import time
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, override

from n5zarr._zarr_private import from_other_loop
from n5zarr.container.block_location import BlockLocation
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import check_key, join
from n5zarr.images.ome_keys import OmeZarrKeys
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.requests import Ends, Get, Paused, Stamp, Work, drive, read_key, request_each
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.keys import METADATA_NAMES, ChunkKey, MetadataKey, parse_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.storage.requests import Request, Steps
    from n5zarr.viewing.serve.location import ServedLocation
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["N5View", "OmeView", "ServedView", "ZarrView", "is_shown"]

_DOCUMENTS = {name for names in METADATA_NAMES.values() for name in names}
_BLOCK = re.compile(r"(?:.*/)?[0-9]+", re.ASCII | re.DOTALL)
_SETTLED = 1_000_000_000  # nanoseconds; a younger file may change without another time stamp
_LARGEST = 1 << 28  # bytes of a file that is not N5's: it is read as a whole
_SLOW = 0.002  # seconds; threads read files that take longer, on a network or a disk


def is_shown(key: str) -> bool:
    """Whether a key is served: it stays in the container, and no name in it is hidden.

    Hidden names begin with a dot, like files of editors, of version control and of macOS, and files
    that a writer has not finished.

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
    """One view of the served location: values of keys below its path."""

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
    """A view that reads most of its values from one file each."""

    def __init__(self, served: ServedLocation) -> None:
        self._store = served.store
        self._path = served.path
        self._seconds = 0.0  # moving average of the duration of a read in this thread

    async def _run[T](self, steps: Steps[T]) -> T:
        """Run a flow in this thread while it reads cached files, else in another thread.

        With another thread for each flow, the server would read two fifths fewer small blocks in a
        second, since threads wait for the interpreter after each system call.
        """
        storage = self._store.storage
        if not storage.supports_sync:  # zarr's event loop has its clients
            return await from_other_loop(self._store.run_async(steps))
        warn = self._store.container.warn
        start = time.perf_counter()

        def may_take_long(requests: Sequence[Request]) -> bool:
            return self._seconds >= _SLOW or any(
                isinstance(request, Work) or (isinstance(request, Get) and request.settled)
                for request in requests
            )

        try:
            done = drive(steps, partial(storage.answer, warn=warn), pauses_at=may_take_long)
        finally:  # a pause counts as fast, so that after some of them one read here is tried again
            taken = min(time.perf_counter() - start, 10 * _SLOW)  # one slow read tells little
            self._seconds += 0.05 * (taken - self._seconds)
        if isinstance(done, Paused):
            return await asyncio.to_thread(storage.run, steps, warn, done.requests)
        return done

    def _stamp_of(self, *keys: str) -> object | None:
        """Return the stamps of files; None if one is missing, has none, or may change unseen."""
        if not self._store.storage.has_stamps:
            return None
        stamps = tuple(self._store.run(request_each(map(Stamp, keys))))
        latest = time.time_ns() - _SETTLED
        return stamps if all(each is not None and each[1] < latest for each in stamps) else None


class N5View(_StoredView):
    """The documents and blocks of N5 as they are stored, and other files in groups."""

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
    """Documents and chunks of Zarr v3, of v2, or of both, that every reader of Zarr can decode."""

    def __init__(self, served: ServedLocation, formats: Sequence[ZarrFormat] = (3, 2)) -> None:
        super().__init__(served)
        v3 = N5Store(served.store.storage, codecs="portable", zarr_format=3, read_only=True)
        self._stores: dict[ZarrFormat, N5Store] = {each: v3.showing(each) for each in formats}

    @override
    async def read(self, key: str) -> BufferLike | None:
        full = join(self._path, key)
        for zarr_format, store in self._stores.items():
            parsed = parse_key(full, zarr_format)
            if isinstance(parsed, MetadataKey):
                # from a new store, since a store remembers all documents that it has read
                return _as_strict_json(await self._run(store.reopened().container.read(full)))
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
                block = store.run(_block(store, parsed))
                if block is not None:
                    return self._stamp_of(block, join(parsed.path, ATTRIBUTES_JSON))
        return None


def _block(store: N5Store, chunk: ChunkKey) -> Steps[str | None]:
    """Return the key of the block of a chunk; None if there is no such chunk."""
    location = BlockLocation.of(chunk, (yield from store.container.chunks.dataset(chunk.path)))
    return None if location is None or not location.in_grid else location.key


def _as_strict_json(document: BufferLike | None) -> BufferLike | None:
    """Write NaN and infinities in a document as text, since browsers refuse such documents."""
    if document is None:
        return None
    text = bytes(document)
    if b"NaN" not in text and b"Infinity" not in text:
        return document
    return json.dumps(json.loads(text, parse_constant=str)).encode()


class OmeView(ServedView):
    """The images as OME-Zarr 0.5; the first request finds them."""

    def __init__(self, served: ServedLocation) -> None:
        self._served = served
        self._keys: OmeZarrKeys | None = None
        self._lock = asyncio.Lock()  # only one thread finds the images

    @override
    async def read(self, key: str) -> BufferLike | None:
        async with self._lock:
            if self._keys is None:
                self._keys = await asyncio.to_thread(lambda: OmeZarrKeys(self._served.images()))
        data = await asyncio.to_thread(self._keys.read, key)
        return _as_strict_json(data) if key.endswith(".json") else data
