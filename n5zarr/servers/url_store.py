"""``UrlStore``: zarr's store over fsspec, adapted to N5.

zarr's :class:`~zarr.storage.FsspecStore` reports a failed request as a missing key, requests wrong
URLs from HTTP servers for keys with spaces or percent signs, and lists a whole tree to check
whether a directory is empty. :class:`UrlStore` corrects this.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from errno import EIO
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Self, override
from urllib.parse import quote, unquote, urlsplit

import zarr
from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest
from zarr.storage import FsspecStore

from n5zarr.errors import N5UnsupportedError
from n5zarr.format.path import join
from n5zarr.servers.errors import cause_to_show
from n5zarr.servers.file_systems import (
    is_any,
    lacks_bucket,
    limits,
    made_anew,
    read_members_in_turn,
)
from n5zarr.servers.ranges import bounds, check_sent, header_of, part_in_s3, sent_by, taken
from n5zarr.storage.forks import FORKS
from n5zarr.storage.requests import Entry
from n5zarr.storage.secrets import secrets_of_store, without_secrets
from n5zarr.storage.services import PAGE, ListingPage, Service

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from fsspec.asyn import AsyncFileSystem

# arguments with which file systems read an object in one request, without asking for its size
_ONE_REQUEST = {"s3": {"max_concurrency": 1}, "gs": {"concurrency": 1}}
_FLAT = {"s3", "s3a", "gs", "gcs"}  # protocols; those whose whole listing is one of the service
_NO_LISTS = {403, 404, 405, 410, 501}  # status codes of servers that do not list
_PAUSE = 2**-9  # seconds
_MOST_BRIEF = 4  # connections at once; of more than six, Python's own server drops some
_brief: dict[str, threading.Semaphore] = {}  # of the servers that need a connection for each
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_brief.clear)


class UrlStore(FsspecStore, Service):
    """FsspecStore that raises on failed requests and accepts any key."""

    keeps_connections: bool | None = None  # of a web server; None until the first answer

    def __init__(self, fs: AsyncFileSystem, **options: Any) -> None:  # noqa: ANN401 - as zarr's
        super().__init__(fs, **options)
        if "zip" in fs.protocol:  # fsspec < 2026.9 raises it for names that are not in the file
            self.allowed_exceptions = (*self.allowed_exceptions, KeyError)
        read_members_in_turn(fs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        read_members_in_turn(self.fs)

    @property
    def fs(self) -> AsyncFileSystem:
        """The file system; in a forked process a new one, with connections of its own."""
        fs: AsyncFileSystem = vars(self)["fs"]
        if getattr(fs, "_pid", 0) == os.getpid():
            return fs
        with FORKS.lock:
            if vars(self)["fs"] is fs:
                self.fs = made_anew(fs)
                FORKS.abandon(fs)
        return self.fs

    @fs.setter
    def fs(self, fs: AsyncFileSystem) -> None:
        vars(self)["fs"] = fs

    @classmethod
    def of(cls, store: FsspecStore) -> Self:
        """Make one from zarr's store for the same location."""
        return cls(
            store.fs,
            read_only=store.read_only,
            path=store.path,
            allowed_exceptions=store.allowed_exceptions,
        )

    @property
    def is_http(self) -> bool:
        """Whether the store is a web server: keys are URLs, and listings are pages of links."""
        return self.path.startswith(("http://", "https://")) and hasattr(self.fs, "set_session")

    @property
    def is_flat(self) -> bool:
        """Whether this is an object store: it has keys only, and lists them by their prefix."""
        return is_any(self.fs, _FLAT)

    def __str__(self) -> str:
        name = self.path if self.is_http else str(self.fs.unstrip_protocol(self.path))
        return without_secrets(name, secrets_of_store(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({type(self.fs).__name__}, {self})>"

    def _url_key(self, key: str) -> str:
        return quote(key, safe="/") if self.is_http else key

    def _turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for other requests of this process, if the server needs a connection for each."""
        return nullcontext() if self.keeps_connections is not False else self._waiting()

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[None]:
        """Wait until few requests of this process are under way to the server.

        Servers that need a connection for each, as Python's own, often let few wait to be
        connected. The system drops the others, and tries again after one, three and seven seconds.
        """
        server = urlsplit(self.path).netloc
        turns = _brief.setdefault(server, threading.Semaphore(_MOST_BRIEF))
        while not turns.acquire(blocking=False):  # of any loop
            await asyncio.sleep(_PAUSE)
        try:
            yield
        finally:
            turns.release()

    @property
    def has_to_learn(self) -> bool:
        """Whether nothing is known of the connections of a web server."""
        return self.keeps_connections is None and self.path.startswith("http://") and self.is_http

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        async with self._turn():
            return await self._value(key, prototype, byte_range)

    async def _value(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        try:
            data = await self._read(self.full_key(key), byte_range)
        except self.allowed_exceptions:
            return None
        except Exception as err:
            if byte_range is None or "not satisfiable" not in str(err).lower():
                raise
            data = b""  # servers say so of a range behind the end
        return prototype.buffer.from_bytes(data)

    async def _read(self, name: str, asked: ByteRequest | None) -> bytes:
        """Read a value or a part of it, and check that it is what was asked for."""
        data: bytes
        start, stop = bounds(asked, 2**63)
        if start == stop:
            return b""
        if self.is_http:
            return await self._read_from_web(name, asked)
        fs = self.fs
        if asked is None:
            options = next((o for p, o in _ONE_REQUEST.items() if p in fs.protocol), {})
            data = await fs._cat_file(name, **options)
            return data
        if "s3" in fs.protocol and hasattr(fs, "_call_s3"):
            return await part_in_s3(fs, name, asked)
        if "gs" in fs.protocol and hasattr(fs, "_call"):
            head = {"Range": header_of(asked)}
            headers, data = await fs._call("GET", fs.url(name), headers=head)
            check_sent(data, asked, sent_by(headers.get("Content-Range")))
        else:  # an archive, memory, another service
            data = await fs._cat_file(name, **limits(asked))
            check_sent(data, asked, None)
        return data

    async def _read_from_web(
        self, name: str, asked: ByteRequest | None, session: ClientSession | None = None
    ) -> bytes:
        """Read from a web server: fsspec does not show the headers of its answer."""
        options = dict(self.fs.kwargs)
        if asked is not None:
            more = {"Range": header_of(asked), "Accept-Encoding": "identity"}
            options["headers"] = {**(options.get("headers") or {}), **more}
        session = session or await self.fs.set_session()
        async with session.get(self.fs.encode_url(name), **options) as response:
            self.keeps_connections = response.version is None or response.version >= (1, 1)
            data: bytes = await response.read()
            if response.status == HTTPStatus.NOT_FOUND:
                raise FileNotFoundError(name)
            response.raise_for_status()
            return taken(data, asked, response.status, response.headers.get("Content-Range"))

    @override
    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        await super().set(self._url_key(key), value, byte_range)

    @override
    async def delete(self, key: str) -> None:
        self._check_writable()
        # not `_rm`, which would expand "*" and "?" in the key
        with suppress(*self.allowed_exceptions):
            await self.fs._rm_file(self.full_key(key))

    @override
    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        directory = self.full_key(prefix.strip("/")).rstrip("/")
        try:
            names = await self.fs._find(directory, withdirs=False)
        except self.allowed_exceptions:
            return
        # keep the root itself: it may be a bucket
        below = [name for name in names if not directory or name.startswith(f"{directory}/")]
        limit = asyncio.Semaphore(zarr.config.get("async.concurrency") or 64)

        async def remove(name: str) -> None:
            async with limit:
                with suppress(*self.allowed_exceptions):
                    await self.fs._rm_file(name)

        await asyncio.gather(*map(remove, below))

    @override
    async def clear(self) -> None:
        await self.delete_dir("")

    @override
    async def exists(self, key: str) -> bool:
        if self.is_http:  # fsspec would report every error as a missing key
            session = await self.fs.set_session()
            url = self.fs.encode_url(self.full_key(key))
            async with self._turn(), session.get(url, **self.fs.kwargs) as response:
                if response.status not in (404, 410):
                    response.raise_for_status()
                return bool(response.ok)
        try:
            info = await self.fs._info(self.full_key(key))
        except self.allowed_exceptions:
            return False
        return bool(info.get("type", "file") != "directory")

    @override
    async def getsize(self, key: str) -> int:
        async with self._turn():
            return await super().getsize(self._url_key(key))

    @property
    @override
    def lists_all(self) -> bool:
        return not self.is_http  # the page of a web server may link to a part only

    @override
    def where(self, key: str) -> tuple[object, str]:
        is_tolerant = getattr(self, "forbidden_is_missing", False)
        return (id(self.fs), type(self), is_tolerant), self.full_key(key)

    @override
    async def _all(self, path: str) -> list[Entry] | None:
        """List a directory; None if it is missing, or empty on a web server.

        Raises
        ------
        N5UnsupportedError
            The server does not list directories (``kind="listing"``).
        """
        directory = self.full_key(path).rstrip("/")
        try:
            # without the slash, a web server would need two requests
            page = f"{directory}/" if self.is_http else directory
            self._forget_listing(page)
            async with self._turn():
                listed = await self.fs._ls(page, detail=True)
        except Exception as err:
            status = 404 if isinstance(err, FileNotFoundError) else getattr(err, "status", None)
            if self.is_http and status in _NO_LISTS:
                secrets = secrets_of_store(self)
                text = without_secrets(
                    f"listing: the server does not list {directory}/ ({err}); open groups and "
                    "datasets by their paths",
                    secrets,
                )
                raise N5UnsupportedError(text, kind="listing") from cause_to_show(err, secrets)
            if lacks_bucket(err):
                raise OSError(EIO, f"404, NoSuchBucket: {err}") from err
            if isinstance(err, self.allowed_exceptions):
                return None
            raise
        names: dict[str, bool] = {}
        directory = unquote(directory) if self.is_http else directory
        for entry in listed:
            name = str(entry["name"])
            if self.is_http:  # links on a page may lead to places in the page itself
                name = unquote(name.partition("?")[0].partition("#")[0])
            name = name.removeprefix(f"{directory}/" if directory else "")
            is_dir = entry.get("type") == "directory" or name.endswith("/")
            name = str(PurePosixPath(name.rstrip("/")))
            # Java leaves empty objects `path/` on object stores: the directory itself
            if name not in (".", "..") and "/" not in name:
                names[name] = names.get(name, False) or is_dir
        found = [Entry(name, names[name]) for name in sorted(names)]
        return found or (None if self.is_http or not listed else [])

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        if self.is_http:  # fsspec would leave out what the server does not list
            folders = [prefix.rpartition("/")[0]]
            for folder in folders:
                for entry in (await self.entries(folder)) or ():
                    key = join(folder, entry.name)
                    if entry.is_dir:
                        folders.append(key)
                    elif key.startswith(prefix):
                        yield key
            return
        async for key in super().list_prefix(prefix):
            yield key

    @override
    async def _some(self, path: str) -> list[Entry] | None:
        """List some entries below a path, with as little listing as fsspec allows."""
        directory = self.full_key(path).rstrip("/")
        list_some = getattr(self.fs, "_lsdir", None)
        if list_some is not None and "s3" in self.fs.protocol:
            try:
                listed = await list_some(directory, refresh=True, max_items=PAGE, delimiter="")
            except self.allowed_exceptions as err:
                if lacks_bucket(err):
                    raise OSError(EIO, f"404, NoSuchBucket: {err}") from err
                return None
            keys = [str(entry["name"]).removeprefix(f"{directory}/") for entry in listed]
            names = {key.partition("/")[0] for key in keys}
            return [Entry(name, None) for name in names if name] if keys else None
        try:
            return await self._all(path)
        except N5UnsupportedError:  # without listing, only nodes with a document can exist
            return None

    @override
    def _keys_below(self, path: str) -> AsyncIterator[ListingPage] | None:
        return self._keys_by_prefix(path) if self.is_flat else None

    async def _keys_by_prefix(self, path: str) -> AsyncIterator[ListingPage]:
        """List all keys below a directory of an object store, relative to it, some at a time."""
        directory = self.full_key(path).rstrip("/")
        prefix = f"{directory}/" if directory else ""
        try:
            async for found in self._pages_below(directory):
                listed = [(str(e["name"]), e.get("size")) for e in found if e.get("type") == "file"]
                sizes = [size for _, size in listed if size is not None]
                keys = [name.removeprefix(prefix) for name, _ in listed]
                yield keys, sizes if len(sizes) == len(keys) else None
        except self.allowed_exceptions:
            return

    async def _pages_below(self, directory: str) -> AsyncIterator[Sequence[dict[str, Any]]]:
        """List all objects below a directory, as fsspec describes them."""
        iterate = getattr(self.fs, "_iterdir", None)
        if iterate is None or "s3" not in self.fs.protocol:
            self._forget_listing(directory)
            yield [*(await self.fs._find(directory, detail=True)).values()]
            return
        # s3fs would hold all of them, and remember the listing
        from botocore.exceptions import (  # noqa: PLC0415 - of s3fs
            ClientError,
        )
        from s3fs.errors import translate_boto_error  # noqa: PLC0415

        bucket, key, _ = self.fs.split_path(directory)
        page: list[dict[str, Any]] = []
        try:
            async for entry in iterate(bucket, delimiter="", prefix=f"{key}/" if key else ""):
                page.append(entry)
                if len(page) == PAGE:
                    yield page
                    page = []
        except ClientError as err:
            raise translate_boto_error(err) from err
        yield page

    def _forget_listing(self, directory: str) -> None:
        """Make the file system list a directory again, since other programs write, too.

        File systems from users may cache listings.
        """
        for fs in (self.fs, getattr(self.fs, "sync_fs", None)):
            if fs is not None:
                fs.invalidate_cache(directory)

    def full_key(self, path: str) -> str:
        """Return the key or URL with which the file system is asked for a key of this store."""
        root = self.path.rstrip("/")
        key = self._url_key(path)
        return f"{root}/{key}" if root and key else root or key
