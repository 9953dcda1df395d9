"""Object stores through obstore: names, reading, and updates that lose nothing."""

from __future__ import annotations

import asyncio
import logging
import random
from inspect import iscoroutinefunction
from itertools import count
from typing import TYPE_CHECKING, Any, override
from uuid import uuid4

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.storage import ObjectStore

from n5zarr.errors import N5Error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from obstore import Attributes, GetOptions, GetResult, ObjectMeta, PutMode, UpdateVersion
    from obstore.store import ObjectStore as ObstoreStore
    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest


from n5zarr.storage.ranges import Sent, bounds, check_sent
from n5zarr.storage.secrets import secrets_of_store, without_secrets
from n5zarr.storage.url import says_missing

_log = logging.getLogger(__name__)

KINDS = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}
"""The classes of obstore for services, and the schemes of their URLs."""
_NO_CONDITIONS = "501 Not Implemented"
_ATTEMPTS = 50  # to update an object that no other writer changes meanwhile
_UPDATES = "n5zarrupdates"  # metadata of objects; Azure allows only letters and digits
_N_UPDATES = 32  # number of last updates that the metadata of an object list


def name_of_objects(store: ObjectStore[Any]) -> str:
    """Return the URL of an object store, without user, password and query."""
    inner: Any = store.store
    scheme = KINDS.get(type(inner).__name__)
    if scheme is None:
        return without_secrets(getattr(inner, "url", "") or f"object_store://{inner}")
    bucket = inner.config.get("bucket") or inner.config.get("container_name")
    url = "/".join(filter(None, (f"{scheme}://{bucket}", inner.prefix)))
    return without_secrets(url, secrets_of_store(store))


class CheckedObjectStore[T: "ObstoreStore"](ObjectStore[T]):
    """zarr's ObjectStore that checks the length of answers, and shows no secret."""

    @override
    def __str__(self) -> str:
        return name_of_objects(self)

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


def can_wait(store: ObjectStore[ObstoreStore]) -> bool:
    """Whether obstore reads from any thread: credentials that are awaited need an event loop."""
    provider = getattr(store.store, "credential_provider", None)
    return not any(map(iscoroutinefunction, (provider, getattr(provider, "__call__", None))))  # noqa: B004


def value_of_object(store: ObjectStore[ObstoreStore], key: str) -> memoryview:
    """Read an object, and wait for it."""
    import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

    response = obstore.get(store.store, key)
    data = memoryview(response.bytes())
    _check_response(response, data)
    return data


async def update_object(
    store: ObjectStore[ObstoreStore],
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
