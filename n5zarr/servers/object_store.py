"""``CheckedObjectStore``: zarr's store over obstore, adapted to N5; updates that lose nothing."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from itertools import count
from typing import TYPE_CHECKING, Any, override
from uuid import uuid4

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.storage import ObjectStore

from n5zarr.codecs.buffers import BufferLike
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.path import join
from n5zarr.servers.errors import says_missing
from n5zarr.servers.ranges import Sent, bounds, check_sent
from n5zarr.storage.cache import Kept
from n5zarr.storage.requests import Entry, Update
from n5zarr.storage.secrets import is_secret, without_secrets
from n5zarr.storage.services import PAGE, ListingPage, Service, changed
from n5zarr.storage.store_locations import KINDS, name_of_objects

if TYPE_CHECKING:
    from obstore import Attributes, GetOptions, GetResult, ObjectMeta, PutMode, UpdateVersion
    from obstore.store import ObjectStore as ObstoreStore


_log = logging.getLogger(__name__)

_NO_CONDITIONS = "501 Not Implemented"
_ATTEMPTS = 50  # to update an object that no other writer changes meanwhile
_UPDATES = "n5zarrupdates"  # metadata of objects; Azure allows only letters and digits
_N_UPDATES = 32  # number of last updates that the metadata of an object list


class CheckedObjectStore[T: "ObstoreStore"](ObjectStore[T], Service):
    """zarr's ObjectStore that checks lengths of answers, loses no update, and shows no secret."""

    @override
    def __str__(self) -> str:
        return name_of_objects(self)

    @property
    def _kind(self) -> str:
        return type(self.store).__name__

    @property
    @override
    def is_conditional(self) -> bool:
        return self._kind in KINDS  # files and memory have no conditions

    @property
    @override
    def get_waiting(self) -> Callable[[str], BufferLike | None] | None:
        return (lambda key: value_of_object(self, key)) if can_wait(self) else None

    @override
    def where(self, key: str) -> tuple[object, str]:
        inner: Any = self.store
        if self._kind not in KINDS:
            return super().where(key)
        server = frozenset(
            (name, without_secrets(str(value)))
            for name, value in inner.config.items()
            if not is_secret(name)
        )
        is_tolerant = getattr(self, "forbidden_is_missing", False)
        return (is_tolerant, self._kind, server), join(inner.prefix or "", key)

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        try:
            response = await obstore.get_async(self.store, key, options=options_for(byte_range))
            data = await received(response, byte_range)
        except FileNotFoundError:
            return None
        except obstore.exceptions.NotSupportedError:
            if not isinstance(byte_range, SuffixByteRequest):
                raise
            size = await self.getsize(key)  # Azure has no suffixes
            return await self.get(key, prototype, RangeByteRequest(*bounds(byte_range, size)))
        return prototype.buffer.from_bytes(data)

    @override
    async def fetch(
        self, key: str, kept: Kept[bytes | None] | None, now: float
    ) -> Kept[bytes | None]:
        """Read a value, which the service sends only if it has changed."""
        import obstore.exceptions  # noqa: PLC0415 - optional, and installed: the store is one of its

        e_tag = kept and kept.e_tag
        options: GetOptions = {"if_none_match": e_tag} if e_tag else {}
        try:
            response = await obstore.get_async(self.store, key, options=options)
            return Kept(bytes(await received(response)), now, response.meta["e_tag"])
        except obstore.exceptions.NotModifiedError:
            return Kept(kept and kept.answer, now, e_tag)
        except Exception as err:
            if says_missing(self, err):
                return Kept(None, now)
            raise

    @override
    async def update(self, request: Update) -> bytes | None:
        return await update_object(self, request.key, partial(changed, request))

    @override
    async def _start(self, key: str, n_bytes: int) -> tuple[bytes, int] | None:
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        try:
            asked = RangeByteRequest(0, n_bytes)
            options = options_for(asked)
            response = await obstore.get_async(self.store, key, options=options)
            return bytes(await received(response, asked)), response.meta["size"]
        except Exception as err:
            if says_missing(self, err):
                return None
            meta = await obstore.head_async(self.store, key)
            if meta["size"] == 0:  # an empty object has no range
                return b"", 0
            raise

    @override
    async def _all(self, path: str) -> list[Entry] | None:
        """List a directory, with one request for each thousand names."""
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        inner = self.store
        if self._kind == "HTTPStore":
            message = (
                f"listing: obstore lists {inner} only if it is a WebDAV server; groups and "
                "datasets can be opened by their paths, and backend='fsspec' reads pages of links"
            )
            raise N5UnsupportedError(message, kind="listing")
        listed = await obstore.list_with_delimiter_async(inner, prefix=path or None)
        directories = {_name_in(prefix, path): True for prefix in listed["common_prefixes"]}
        files = {_name_in(meta["path"], path): False for meta in listed["objects"]}
        both = files | directories
        if not both:
            return None
        return [Entry(name, both[name]) for name in sorted(both) if name and "/" not in name]

    @override
    async def _some(self, path: str) -> list[Entry] | None:
        """List some entries below a path, with one request in most cases."""
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        if self._kind == "HTTPStore":
            return None
        found = None
        async for batch in obstore.list(self.store, prefix=path or None):
            names = {_name_in(meta["path"], path).partition("/")[0] for meta in batch}
            found = [Entry(name, None) for name in names if name] if names else found
            if found:
                break
        return found

    @override
    async def sizes_below(self, path: str) -> dict[str, int | None]:
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        pages = obstore.list(self.store, prefix=path or None)
        return {meta["path"]: meta["size"] async for page in pages for meta in page}

    @override
    def _keys_below(self, path: str) -> AsyncIterator[ListingPage] | None:
        return self._objects_below(path) if self._kind in KINDS else None

    async def _objects_below(self, path: str) -> AsyncIterator[ListingPage]:
        import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

        prefix = f"{path}/" if path else ""
        before: dict[str, int] = {}  # the last key, which may be the marker of a directory
        async for batch in obstore.list(self.store, prefix=path or None, chunk_size=PAGE):
            found = before
            for meta in batch:
                key, last = meta["path"].removeprefix(prefix), next(reversed(found), None)
                # obstore lists Java's `0/` as `0`, right before what is in the directory
                if last is not None and not found[last] and key.startswith(f"{last}/"):
                    del found[last]
                if meta["path"] != path:
                    found[key] = meta["size"]
            before = dict([found.popitem()]) if found else {}
            yield [*found], [*found.values()]
        yield [*before], [*before.values()]


def _name_in(full: str, path: str) -> str:
    """Return the name of an entry from its full path; ``""`` for the marker of the directory."""
    inner = full.strip("/")
    return "" if inner == path else inner.removeprefix(f"{path}/" if path else "").strip("/")


def options_for(asked: ByteRequest | None) -> GetOptions:
    """Return the options with which obstore reads a part of a value."""
    match asked:
        case RangeByteRequest(start, end):
            return {"range": (start, end)}
        case OffsetByteRequest(offset):
            return {"range": {"offset": offset}}
        case SuffixByteRequest(suffix):
            return {"range": {"suffix": suffix}}
        case _:
            return {}


async def received(response: GetResult, asked: ByteRequest | None = None) -> memoryview:
    """Return what an answer has; raise unless it is all that it says, and what was asked for."""
    data = memoryview(await response.bytes_async())
    _check_response(response, data, asked)
    return data


def _check_response(
    response: GetResult, data: memoryview, asked: ByteRequest | None = None
) -> None:
    check_sent(data, asked, Sent(*response.range, response.meta["size"]))


def can_wait(store: ObjectStore[Any]) -> bool:
    """Whether obstore reads from any thread: credentials that are awaited need an event loop."""
    provider = getattr(store.store, "credential_provider", None)
    return not any(map(iscoroutinefunction, (provider, getattr(provider, "__call__", None))))  # noqa: B004


def value_of_object(store: ObjectStore[Any], key: str) -> memoryview:
    """Read an object, and wait for it."""
    import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

    response = obstore.get(store.store, key)
    data = memoryview(response.bytes())
    _check_response(response, data)
    return data


async def update_object(
    store: ObjectStore[Any],
    key: str,
    change: Callable[[bytes | None], Awaitable[bytes | None]],
) -> bytes | None:
    """Update an object; start again if another writer replaces it meanwhile.

    The network may lose the answer to a put. Then the client sends the put again, and the service
    refuses it, as if another writer had been first. So the metadata of an object list its last
    updates: an update that is in the list is not repeated.

    If the service has no conditional writes, the last writer wins. No service has conditional
    removal: an object that another writer puts at that moment is removed.

    Parameters
    ----------
    store : zarr.storage.ObjectStore
        The store of the object.
    key : str
        Name of the object, which need not exist.
    change : callable
        Awaitable; takes the bytes of the object, or None if it is missing, and returns the new
        bytes, or None to remove the object.

    Returns
    -------
    bytes or None
        The new bytes of the object, or None if it was removed.

    Raises
    ------
    N5Error
        The service says that others replace the object, but it stays the same (``kind="changed"``).
    """
    import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

    mine, last, n_refused = uuid4().hex, object(), 0
    for attempt in count():
        old, mode, updates = await _read_version(store, key)
        if mine in updates:
            return old
        n_refused = n_refused + 1 if old == last else 0  # who waits for many others goes on
        if n_refused == _ATTEMPTS:
            break
        new, last = await change(old), old
        if new == old:
            return new
        if new is None:
            await obstore.delete_async(store.store, key)
            return None
        if await _put_version(store, key, new, mode, [*updates, mine]):
            return new
        _log.debug("%s/%s: another writer was first; trying again", name_of_objects(store), key)
        await asyncio.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311
    message = (
        f"{key}: expected to update the object, but the service refused it at each of {_ATTEMPTS} "
        "attempts, although no other writer replaced the object; try again"
    )
    raise N5Error(message, kind="changed")


async def _read_version(
    store: ObjectStore[ObstoreStore], key: str
) -> tuple[bytes | None, PutMode, list[str]]:
    """Read an object, the condition for a put that replaces only this version, and its updates."""
    import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

    try:
        response = await obstore.get_async(store.store, key)
        data = bytes(await received(response))
        updates = str(response.attributes.get(_UPDATES, "")).split()
        return data, _version_of(response.meta), updates
    except Exception as err:
        if not says_missing(store, err):
            raise
        return None, "create", []


async def _put_version(
    store: ObjectStore[ObstoreStore], key: str, new: bytes, mode: PutMode, updates: list[str]
) -> bool:
    """Replace one version of an object; False if another writer seems to have been first.

    A put that fails may have succeeded: then the object lists the last of ``updates``.
    """
    import obstore.exceptions  # noqa: PLC0415 - optional, and installed: the store is one of its

    exceptions = obstore.exceptions
    is_service = type(store.store).__name__ in KINDS  # files have no metadata
    named: Attributes | None = {_UPDATES: " ".join(updates[-_N_UPDATES:])} if is_service else None
    try:
        await obstore.put_async(store.store, key, new, mode=mode, attributes=named)
    except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
        return False
    except (exceptions.GenericError, exceptions.NotSupportedError, NotImplementedError) as err:
        # compare the words, not only "501": messages also contain times
        if isinstance(err, exceptions.GenericError) and _NO_CONDITIONS not in str(err):
            try:
                is_made = updates[-1] in (await _read_version(store, key))[2]
            except Exception:
                raise err from None  # the first error says what is wrong
            if is_made:
                return True
            raise
        await obstore.put_async(store.store, key, new)  # no conditional writes here
    return True


def _version_of(meta: ObjectMeta) -> UpdateVersion:
    """Return the identifiers of an object's version, without those that the service lacks."""
    version: UpdateVersion = {}
    if meta["e_tag"] is not None:
        version["e_tag"] = meta["e_tag"]
    if meta["version"] is not None:
        version["version"] = meta["version"]
    return version
