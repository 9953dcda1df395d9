"""The web application: serve an open container by its keys, and pages about it."""

from __future__ import annotations

import asyncio
import errno
import logging
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount

from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.storage.place import place_of
from n5zarr.viewing.serve.answers import entity_tag, is_known, part_of, tag_of_bytes
from n5zarr.viewing.serve.guard import METHODS, Guard
from n5zarr.viewing.serve.opened import Opened
from n5zarr.viewing.serve.page import page_routes
from n5zarr.viewing.serve.views import N5View, OmeView, ServedView, ZarrView, is_shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from starlette.routing import BaseRoute
    from starlette.types import Receive, Scope, Send

    from n5zarr.storage.place import Backend, Location

__all__ = ["make_app"]

_log = logging.getLogger(__name__)
_PIECE = 1 << 18  # bytes that are handed over at once, and that a slow client leaves there
_NO_FILE = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EINVAL}
_EXPOSED = ("Accept-Ranges", "Content-Length", "Content-Range", "ETag")
_ALLOWED = ("Range", "If-Match", "If-None-Match", "If-Range", "Cache-Control", "Content-Type")


def make_app(
    location: Location,
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
    hosts: Collection[str] | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """Make the application for a location: its views, and a page at ``/``.

    Nothing is read but the location itself; the images are found when ``/ome/`` is first asked for.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a group or dataset in one, or the XML of BigDataViewer or BigStitcher.
    labels : sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    hosts : collection of str, optional
        The names by which requests may call this server, without the port; any by default. Behind
        other names may be a web site that an attacker lets point to this machine.
    routes : sequence of starlette.routing.BaseRoute, optional
        More routes, which come first.

    Returns
    -------
    starlette.applications.Starlette
        The application, an ASGI app; ``app.state.opened`` is what it shows.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    """
    opened = Opened(place_of(location, storage_options, backend), labels=labels)
    views = {
        "n5": N5View(opened),
        "zarr": ZarrView(opened),
        "zarr3": ZarrView(opened, (3,)),
        "zarr2": ZarrView(opened, (2,)),
        "ome": OmeView(opened),
    }
    sending = Sending()
    mounts = [Mount(f"/{name}", _Keys(name, view, sending)) for name, view in views.items()]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=METHODS,
        allow_headers=_ALLOWED,
        expose_headers=_EXPOSED,
        allow_private_network=True,
    )
    app = Starlette(
        routes=[*routes, *mounts, *page_routes(location, opened)],
        middleware=[Middleware(Guard, hosts=hosts), cors],
    )
    app.state.opened = opened
    return app


class Sending:
    """The values that are held for clients; bounds the memory that slow ones take."""

    most = 1 << 28  # bytes; above, requests wait before their values are read
    at_once = 32  # values of a view that are being read

    def __init__(self) -> None:
        self._n_bytes = 0
        self._room = asyncio.Event()

    async def room(self) -> None:
        """Wait until clients have received enough of the answers in memory."""
        while self._n_bytes >= self.most:
            self._room.clear()
            await self._room.wait()

    @contextmanager
    def holding(self, n_bytes: int) -> Iterator[None]:
        """Count a value while it is sent."""
        self._n_bytes += n_bytes
        try:
            yield
        finally:
            self._n_bytes -= n_bytes
            self._room.set()


class _Keys:
    """Answer requests for the keys of a view.

    Parameters
    ----------
    name : str
        Name of the view, which is a part of entity tags.
    view : ServedView
        The keys.
    sending : Sending
        What is being sent, of all views.
    """

    def __init__(self, name: str, view: ServedView, sending: Sending) -> None:
        self._name = name
        self._view = view
        self._sending = sending
        self._reading = asyncio.Semaphore(sending.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope["path"].removeprefix(scope["root_path"]).removeprefix("/")
        if not is_shown(key):
            await _missing()(scope, receive, send)
            return
        with ExitStack() as held:
            async with self._reading:
                await self._sending.room()
                answer = await self._answer(key, Headers(scope=scope))
                if not isinstance(answer, Response):
                    held.enter_context(self._sending.holding(len(answer[2])))
            if isinstance(answer, Response):
                await answer(scope, receive, send)
            else:
                await _send(send, *answer)

    async def _answer(
        self, key: str, asked: Headers
    ) -> Response | tuple[int, dict[str, str], memoryview]:
        """Answer a request for a key."""
        try:
            return await self._value(key, asked)
        except N5UnrepresentableError as err:  # of OME-Zarr: there is no image; of a path: no key
            return _text(404, str(err))
        except N5Error as err:
            return _text(500, str(err))
        except OSError as err:
            if err.errno in _NO_FILE:
                return _missing()
            return self._failure(key, err, err.strerror)
        except Exception as err:  # of the client of a server, which may name a URL with secrets
            return self._failure(key, err)

    def _failure(self, key: str, err: Exception, reason: str | None = None) -> Response:
        _log.warning("%s/%s cannot be read: %s", self._name, key, type(err).__name__)
        _log.debug("why", exc_info=err)
        return _text(500, f"{key}: {reason or type(err).__name__}")

    async def _value(
        self, key: str, asked: Headers
    ) -> Response | tuple[int, dict[str, str], memoryview]:
        known = asked.get("if-none-match")
        stamp = self._view.stamp(key)
        tag = "" if stamp is None else entity_tag(self._name, key, stamp)
        if tag and is_known(tag, known):
            return Response(status_code=304, headers=_headers(tag))
        value = await self._view.read(key)
        if value is None:
            return _missing()
        data = memoryview(value).cast("B")
        if stamp is None or self._view.stamp(key) != stamp:  # another one was read
            tag = tag_of_bytes(data)
            if is_known(tag, known):
                return Response(status_code=304, headers=_headers(tag))
        headers = _headers(tag) | {"Content-Type": _media_type(key)}
        part = part_of(len(data), asked.get("range"), asked.get("if-range"), tag)
        if part is None:
            return 200, headers | {"Content-Length": str(len(data))}, data
        if part.stop == part.start:
            nothing = {"Content-Range": f"bytes */{len(data)}"}
            return PlainTextResponse("no such range", 416, headers=_headers(tag) | nothing)
        where = f"bytes {part.start}-{part.stop - 1}/{len(data)}"
        size = {"Content-Range": where, "Content-Length": str(part.stop - part.start)}
        return 206, headers | size, data[part.start : part.stop]


async def _send(send: Send, status: int, headers: Mapping[str, str], body: memoryview) -> None:
    """Send an answer, a piece after the other as the client takes them."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    for start in range(0, len(body), _PIECE):
        piece = body[start : start + _PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Accept-Ranges": "bytes", "Cache-Control": "no-cache"}


def _media_type(key: str) -> str:
    """Return the type of a value: a document of N5 or Zarr, or bytes that no browser shows."""
    name = key.rpartition("/")[2]
    is_document = name.endswith(".json") or name.startswith(".z")
    return "application/json" if is_document else "application/octet-stream"


def _missing() -> Response:
    return _text(404, "not found")


def _text(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers={"Cache-Control": "no-cache"})
