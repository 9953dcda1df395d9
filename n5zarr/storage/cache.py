"""A cache of documents and blocks, for remote containers.

zarr's ``experimental.CacheStore`` does not remember missing keys, so it would request the missing
blocks of sparse data again and again (N5 spec, "File-system specification", item 6). It also knows
the age of a value, but not whether the array was opened since.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, override

from zarr.buffer import cpu
from zarr.storage import ObjectStore, WrapperStore

from n5zarr.errors import option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.storage.objects import received
from n5zarr.storage.url import says_missing

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ObjectStore as ObstoreStore
    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest, Store

__all__ = ["CacheOptions", "CachingStore"]

_log = logging.getLogger(__name__)

_OVERHEAD = 200  # bytes that an entry takes besides key and value, approximately


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """Define how much of a remote container stays in memory, and when it is read again.

    A store with a cache can write only with ``recheck=True``: writing a part of a block first reads
    the block, and an outdated block would undo what others wrote.

    Parameters
    ----------
    bytes : int, optional
        Maximum number of bytes to keep; the least recently used values are dropped first. The
        cache also remembers missing blocks.
    recheck : {"open", True, False} or float, optional
        When to read a cached value again, like tensorstore's ``recheck_cached_metadata`` and
        ``recheck_cached_data``. ``"open"``: documents whenever a node is opened, and blocks if
        they were read before the dataset was last opened. A number: values that are older than
        this number of seconds. True: always; with obstore, unchanged values are not sent again.
        False: never.

    Raises
    ------
    N5UnrepresentableError
        An option has an invalid value (``kind="option"``).
    """

    bytes: int = 2**28
    recheck: Literal["open"] | float | bool = "open"

    def __post_init__(self) -> None:
        is_number = isinstance(self.recheck, int | float) and self.recheck >= 0
        if not (self.recheck == "open" or is_number):
            raise option_error(
                f"recheck: expected 'open', True, False or seconds, got {self.recheck!r}"
            )
        if self.bytes < 0:
            raise option_error(f"bytes: expected a number of bytes, got {self.bytes}")

    @property
    def writes(self) -> bool:
        """Whether a store with this cache may write."""
        return self.recheck is True


class _Kept(NamedTuple):
    """The answer of the store for one key."""

    value: bytes | None  # None if the key is missing
    at: float  # time of reading, in seconds of the monotonic clock
    e_tag: str | None


class CachingStore(WrapperStore["Store"]):
    """A store that keeps the values it reads from another store.

    Parameters
    ----------
    store : zarr.abc.store.Store
        The store of the container, later ``inner``.
    options : CacheOptions
        Size of the cache, and lifetime of the values.
    """

    def __init__(self, store: Store, options: CacheOptions) -> None:
        super().__init__(store)
        self.inner = store
        self.options = options
        self._forget_all()

    def _forget_all(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._n_bytes = 0
        self._opened: dict[str, float] = {}
        self._n_changes = 0

    def begin_anew(self) -> None:
        """Forget all in a forked process if a thread of its parent was changing the cache."""
        if self._lock.locked():
            self._forget_all()

    def __str__(self) -> str:
        return str(self.inner)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CachingStore)
            and self.inner == other.inner
            and self.options == other.options
        )

    __hash__ = None  # type: ignore[assignment] # as zarr's own stores

    @override
    def _with_store(self, store: Store) -> Self:
        return type(self)(store, self.options)

    @property
    def _supports_sync_io(self) -> bool:
        return False  # zarr's synchronous methods would bypass the cache

    def __reduce__(self) -> tuple[type[Self], tuple[Store, CacheOptions]]:
        return type(self), (self.inner, self.options)

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if byte_range is not None:
            return await self.inner.get(key, prototype, byte_range)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
            n_changes = self._n_changes
        if kept is None or not self._is_fresh(key, kept):
            kept = await self._fetch(key, kept)
            self._keep_value(key, kept, n_changes)
        else:
            _log.debug("%s: answered from memory", key)
        return None if kept.value is None else prototype.buffer.from_bytes(kept.value)

    def _is_fresh(self, key: str, kept: _Kept) -> bool:
        """Whether a kept value is still valid, without reading it again.

        With ``recheck="open"``, a block is valid if it was read since the last opening of its
        dataset or of a group above it.
        """
        match self.options.recheck:
            case bool(always):
                return not always
            case "open":
                directory = key.rpartition("/")[0]
                if key in (ATTRIBUTES_JSON, f"{directory}/{ATTRIBUTES_JSON}"):
                    return False
                store = self._opened.get("", 0.0)
                while directory:
                    store = max(store, self._opened.get(directory, 0.0))
                    directory = directory.rpartition("/")[0]
                return kept.at >= store
            case seconds:
                return time.monotonic() - kept.at <= seconds

    async def _fetch(self, key: str, kept: _Kept | None) -> _Kept:
        now = time.monotonic()
        if isinstance(self.inner, ObjectStore):
            return await _fetch_object(self.inner, key, kept, now)
        value = await self.inner.get(key, cpu.buffer_prototype)
        return _Kept(None if value is None else value.to_bytes(), now, None)

    def _keep_value(self, key: str, kept: _Kept, n_changes: int) -> None:
        """Keep a value unless it is too large or was written since it was requested.

        Drops the least recently used values until all fit.
        """
        directory, _, name = key.rpartition("/")
        with self._lock:
            if name == ATTRIBUTES_JSON and kept.value is not None:
                self._opened[directory] = kept.at
            self._drop(key)
            if n_changes != self._n_changes:  # written since: the value may be outdated
                return
            if _size(key, kept) > self.options.bytes:
                return
            self._kept[key] = kept
            self._n_bytes += _size(key, kept)
            while self._n_bytes > self.options.bytes:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        kept = self._kept.pop(key, None)
        self._n_bytes -= 0 if kept is None else _size(key, kept)

    def forget(self, prefix: str) -> None:
        """Forget a key, or all keys below a prefix."""
        with self._lock:
            self._n_changes += 1
            for key in list(self._kept):
                if not prefix or key == prefix or key.startswith(f"{prefix}/"):
                    self._drop(key)

    @override
    async def exists(self, key: str) -> bool:
        return await self.get(key, cpu.buffer_prototype) is not None

    @override
    async def set(self, key: str, value: Buffer) -> None:
        try:
            await self.inner.set(key, value)
        finally:
            self.forget(key)

    @override
    async def delete(self, key: str) -> None:
        try:
            await self.inner.delete(key)
        finally:
            self.forget(key)

    @override
    async def delete_dir(self, prefix: str) -> None:
        try:
            await self.inner.delete_dir(prefix)
        finally:
            self.forget(prefix.strip("/"))


def _size(key: str, kept: _Kept) -> int:
    return _OVERHEAD + len(key) + len(kept.value or b"")


async def _fetch_object(
    store: ObjectStore[ObstoreStore], key: str, kept: _Kept | None, now: float
) -> _Kept:
    """Read from an object store, which sends only values that have changed."""
    import obstore.exceptions  # noqa: PLC0415 - optional, and installed: the store is one of its

    options: GetOptions = {}
    if kept is not None and kept.e_tag is not None:
        options = {"if_none_match": kept.e_tag}
    try:
        response = await obstore.get_async(store.store, key, options=options)
        return _Kept(bytes(await received(response)), now, response.meta["e_tag"])
    except obstore.exceptions.NotModifiedError:
        return _Kept(kept.value if kept else None, now, kept.e_tag if kept else None)
    except Exception as err:
        if says_missing(store, err):
            return _Kept(None, now, None)
        raise
