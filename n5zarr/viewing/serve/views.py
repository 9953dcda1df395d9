"""Read the keys of the served views: N5 as it is stored, Zarr, and OME-Zarr.

Conditional requests, and those for a part of a value, are answered as HTTP rules (RFC 9110).
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, override

from n5zarr._zarr import from_other_loop
from n5zarr.codecs.buffers import BufferLike
from n5zarr.container.block_location import BlockLocation
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import check_key, join
from n5zarr.format.raw_json import nonfinite_note, strict
from n5zarr.images.ome import DEFAULT_VERSION, OME_FORMATS, OmeVersion
from n5zarr.images.zarr_documents import OmeZarrKeys
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.local import may_take_long
from n5zarr.storage.requests import Ends, Paused, Stamp, Steps, drive, read_key
from n5zarr.store.n5_store import N5Store
from n5zarr.viewing.serve.location import ServedLocation
from n5zarr.zarr_view.keys import METADATA_NAMES, ChunkKey, MetadataKey, ZarrFormat, parse_key

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)
_TAG = re.compile(r'(?:W/)?("[^"]*")')


def _tag_of_bytes(data: bytes | memoryview) -> str:
    """Make a strong entity tag from the bytes of a value."""
    return f'"{blake2b(data, digest_size=12).hexdigest()}"'


def _has_value(tag: str, if_none_match: str | None) -> bool:
    """Whether a client says that it has the value of a tag (RFC 9110, 13.1.2: a weak comparison).

    Examples
    --------
    >>> _has_value('"a"', 'W/"b", "a"'), _has_value('"a"', "*"), _has_value('"a"', None)
    (True, True, False)
    """
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or tag in _TAG.findall(if_none_match)


def requested_part(
    n_bytes: int, wanted: str | None, if_range: str | None, tag: str
) -> range | None:
    """Return the part of a value that a request asks for (RFC 9110, 14.2).

    Parameters
    ----------
    n_bytes : int
        Size of the value.
    wanted : str or None
        The header ``Range``.
    if_range : str or None
        The header ``If-Range``: the client wants a part only of the value with this tag.
    tag : str
        The entity tag of the value.

    Returns
    -------
    range or None
        The numbers of its bytes, none if they are outside of the value. None for the whole value:
        if there is no range, and if there are several ranges or other units, which a server may
        ignore.

    Examples
    --------
    >>> requested_part(10, "bytes=2-4", None, '"a"'), requested_part(10, "bytes=-3", None, '"a"')
    (range(2, 5), range(7, 10))
    >>> requested_part(10, "bytes=10-", None, '"a"'), requested_part(10, "bytes=1-2,4-5", None, "")
    (range(0, 0), None)
    """
    given = None if wanted is None else _RANGE.fullmatch(wanted.strip())
    if given is None or (if_range is not None and if_range.strip() != tag):
        return None
    first, last = given.groups()
    if not first and not last:
        return None
    if not first:
        start, stop = max(0, n_bytes - int(last)), n_bytes
    else:
        start, stop = int(first), min(int(last) + 1 if last else n_bytes, n_bytes)
        if last and int(last) < start:
            return None  # not a valid range
    return range(start, stop) if start < stop else range(0)


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


class Answer(NamedTuple):
    """The value of a key.

    Parameters
    ----------
    tag : str
        Its entity tag.
    data : memoryview or None
        Its bytes; None if the client has them.
    """

    tag: str
    data: memoryview | None


class ServedView(ABC):
    """One view of the served location: values of keys below its path."""

    @abstractmethod
    async def read(self, key: str, known: str | None) -> Answer | None:
        """Read the value of a key, unless the client has it; None if it is missing.

        Parameters
        ----------
        key : str
            The key.
        known : str or None
            The header ``If-None-Match``: tags of values that the client has.

        Raises
        ------
        N5Error
            The node or block is broken or not supported.
        """


def _found(value: BufferLike | None, known: str | None) -> Answer | None:
    """Return a value that only its bytes tell from others of its key."""
    if value is None:
        return None
    data = memoryview(value).cast("B")
    tag = _tag_of_bytes(data)
    return Answer(tag, None if _has_value(tag, known) else data)


class _StoredView(ServedView):
    """A view that reads most of its values from one file each."""

    def __init__(self, served: ServedLocation) -> None:
        self._n5 = served.store
        self._path = served.path
        self._seconds = 0.0  # moving average of the duration of a read in this thread

    @override
    async def read(self, key: str, known: str | None) -> Answer | None:
        return await self._run(self._value(join(self._path, key), known))

    @abstractmethod
    def _value(self, key: str, known: str | None) -> Steps[Answer | None]:
        """Read the value of a key of the container; see :meth:`read`."""

    def _unless_known(
        self, key: str, known: str | None, value: Steps[BufferLike | None], files: Sequence[str]
    ) -> Steps[Answer | None]:
        """Read a value that depends on files, unless their stamps tell that the client has it."""
        requests = [Stamp(file) for file in files] if self._n5.storage.has_stamps else []
        stamps: Sequence[Any] = (yield requests) if requests else [None]
        latest = time.time_ns() - _SETTLED
        tag = ""
        if all(stamp is not None and stamp[1] < latest for stamp in stamps):
            tag = _tag_of_bytes(repr((type(self).__name__, key, stamps)).encode())
            if _has_value(tag, known):
                return Answer(tag, None)
        read = yield from value
        if read is None or not tag or (yield requests) != stamps:  # another value was read
            return _found(read, known)
        return Answer(tag, memoryview(read).cast("B"))

    async def _run[T](self, steps: Steps[T]) -> T:
        """Run a flow in this thread while it reads cached files, else in another thread.

        With another thread for each flow, the server would read two fifths fewer small blocks in a
        second, since threads wait for the interpreter after each system call.
        """
        storage = self._n5.storage
        if not storage.supports_sync:  # zarr's event loop has its clients
            return await from_other_loop(self._n5.run_async(steps))
        warn = self._n5.container.warn
        if self._seconds >= _SLOW:
            self._seconds *= 0.95  # so that after some of them one read here is tried again
            return await asyncio.to_thread(storage.run, steps, warn)
        start = time.perf_counter()
        try:
            done = drive(steps, storage.answer_with(warn), pauses_at=may_take_long)
        finally:
            taken = min(time.perf_counter() - start, 10 * _SLOW)  # one slow read tells little
            self._seconds += 0.05 * (taken - self._seconds)
        if isinstance(done, Paused):
            return await asyncio.to_thread(storage.run, steps, warn, done.requests)
        return done


class N5View(_StoredView):
    """The documents and blocks of N5 as they are stored, and other files in groups."""

    @override
    def _value(self, key: str, known: str | None) -> Steps[Answer | None]:
        return (yield from self._unless_known(key, known, self._file(key), [key]))

    def _file(self, key: str) -> Steps[BufferLike | None]:
        name = key.rpartition("/")[2]
        if name in _DOCUMENTS:
            return None
        if name == ATTRIBUTES_JSON or _BLOCK.fullmatch(key):
            return (yield from read_key(key))
        [ends] = yield [Ends(key, 1, 0)]
        if ends is not None and ends[0] > _LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), key)
        return (yield from self._n5.container.hierarchy.other_file(key))


class ZarrView(_StoredView):
    """Documents and chunks of Zarr v3, of v2, or of both, that every reader of Zarr can decode."""

    def __init__(self, served: ServedLocation, formats: Sequence[ZarrFormat] = (3, 2)) -> None:
        super().__init__(served)
        v3 = N5Store(served.store.storage, codecs="portable", zarr_format=3, read_only=True)
        self._stores: dict[ZarrFormat, N5Store] = {each: v3.showing(each) for each in formats}

    @override
    def _value(self, key: str, known: str | None) -> Steps[Answer | None]:
        for zarr_format, store in self._stores.items():
            parsed = parse_key(key, zarr_format)
            if isinstance(parsed, MetadataKey):
                # from a new store, since a store remembers all documents that it has read
                document = yield from store.reopened().container.read(key)
                return _found(self._strict(key, document), known)
            if isinstance(parsed, ChunkKey):
                try:
                    found = yield from self._chunk(store, parsed, key, known)
                except N5Error as err:
                    if err.kind != "changed":
                        raise
                    self._stores[zarr_format] = store.reopened()
                    found = yield from self._chunk(self._stores[zarr_format], parsed, key, known)
                if found is not None:
                    return found
        return None

    def _strict(self, key: str, document: BufferLike | None) -> BufferLike | None:
        """Write NaN and infinities in a document as text, since browsers refuse such documents."""
        text = bytes(document or b"")
        if b"NaN" not in text and b"Infinity" not in text:
            return document
        found = json.loads(text)
        self._n5.container.warn(nonfinite_note({key: found}))
        return json.dumps(strict(found)).encode()

    def _chunk(
        self, store: N5Store, chunk: ChunkKey, key: str, known: str | None
    ) -> Steps[Answer | None]:
        files = yield from _files_of(store, chunk)
        value = store.container.read(key, is_copied=True)
        return (yield from self._unless_known(key, known, value, files))


def _files_of(store: N5Store, chunk: ChunkKey) -> Steps[Sequence[str]]:
    """Return the keys of the block and the document of a chunk; none if files have no stamps."""
    if not store.storage.has_stamps:
        return []
    location = BlockLocation.of(chunk, (yield from store.container.chunks.dataset(chunk.path)))
    if location is None or not location.in_grid:
        return []
    return [location.key, join(chunk.path, ATTRIBUTES_JSON)]


class OmeView(ServedView):
    """The images as OME-Zarr; the first request finds them."""

    def __init__(self, served: ServedLocation, version: OmeVersion = DEFAULT_VERSION) -> None:
        self._served = served
        self._version = version
        self._keys: OmeZarrKeys | None = None
        self._lock = asyncio.Lock()  # only one thread finds the images

    @override
    async def read(self, key: str, known: str | None) -> Answer | None:
        async with self._lock:
            if self._keys is None:
                self._keys = await asyncio.to_thread(self._find)
        data: BufferLike | None = self._keys.documents.get(key)
        if data is None:  # other threads may encode chunks
            data = await asyncio.to_thread(self._keys.read, key)
        return _found(data, known)

    def _find(self) -> OmeZarrKeys:
        return OmeZarrKeys(self._served.images(OME_FORMATS[self._version]), self._version)


VIEWS: Mapping[str, Callable[[ServedLocation], ServedView]] = {
    "n5": N5View,
    "zarr": ZarrView,
    "zarr3": partial(ZarrView, formats=(3,)),
    "zarr2": partial(ZarrView, formats=(2,)),
    "ome": OmeView,
    "ome04": partial(OmeView, version="0.4"),
}
"""The views by the first name in their URLs."""
