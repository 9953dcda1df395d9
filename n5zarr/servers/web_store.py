"""``WebStore``: a web server whose files obstore reads, and whose pages of links fsspec lists."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self, override

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest
from zarr.storage import FsspecStore

from n5zarr.servers.object_store import CheckedObjectStore, received
from n5zarr.servers.url_store import UrlStore
from n5zarr.storage.forks import FORKS

if TYPE_CHECKING:
    from obstore.store import HTTPStore

_log = logging.getLogger(__name__)
# what obstore says of answers that fsspec can use: whole ones, and such without some headers
_PACKED = "Content-Encoding"
_NOT_UNDERSTOOD = (
    "Range request not supported",
    "Header missing",
    "Failed to parse value for CONTENT_RANGE",  # of an unknown size
    "Invalid last modified",
    _PACKED,
)


class WebStore(UrlStore):
    """A UrlStore of a web server that reads values through obstore, which is faster."""

    objects: CheckedObjectStore[HTTPStore] | None = None

    @classmethod
    def of_both(cls, urls: UrlStore, objects: HTTPStore) -> Self:
        """Make one from the stores of both libraries for one server."""
        made = cls.of(urls)
        made.objects = CheckedObjectStore(objects, read_only=True)
        return made

    @override
    @classmethod
    def of(cls, store: FsspecStore) -> Self:
        made = super().of(store)
        made.objects = store.objects if isinstance(store, WebStore) else None
        return made

    @override
    async def _value(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if self.has_to_learn and byte_range is None:
            with _left_to_obstore():
                data = await self._learn(self.full_key(key))
                return None if data is None else prototype.buffer.from_bytes(data)
        objects = None if FORKS.has_lost_obstore else self.objects
        if objects is None:
            return await super()._value(key, prototype, byte_range)
        try:
            if byte_range is not None:
                return await objects.get(key, prototype, byte_range)
            return prototype.buffer.from_bytes(await _whole(objects.store, key))
        except FileNotFoundError:
            return None
        except Exception as err:
            self._give_up(err)
            return await super()._value(key, prototype, byte_range)

    def _give_up(self, err: Exception) -> None:
        """Leave reading to fsspec if obstore does not understand an answer; else raise."""
        if not any(words in str(err) for words in _NOT_UNDERSTOOD):
            raise err
        if self.objects is not None:  # other requests were sent at the same time
            reason = str(err).partition("\n")[0]
            _log.debug("%s: fsspec reads it from now on: %s", self, reason)
        self.objects = None

    async def _learn(self, name: str) -> bytes | None:
        """Read a file, or None, and see whether the server keeps connections."""
        # by a client of its own: that of fsspec belongs to the event loop that was the first
        client = self.fs.get_client(loop=asyncio.get_running_loop(), **self.fs.client_kwargs)
        async with await client as session:
            with suppress(FileNotFoundError):
                return await self._read_from_web(name, None, session)
        return None


@contextmanager
def _left_to_obstore() -> Iterator[None]:
    """Suppress an error: obstore repeats the request, or raises its own, but tries ten times."""
    try:
        yield
    except Exception as err:
        if type(err).__name__.startswith("ClientConnector"):  # aiohttp's; nothing is reached
            raise


async def _whole(store: HTTPStore, key: str) -> memoryview:
    """Read a file; raise an error that it is packed, as web servers may do, unless asked not to."""
    import obstore  # noqa: PLC0415 - optional, and installed: the store is one of its

    response = await obstore.get_async(store, key)
    encoding = response.attributes.get(_PACKED, "identity")
    if encoding != "identity":
        raise ValueError(f"{key}: {_PACKED}: {encoding}")
    return await received(response)
