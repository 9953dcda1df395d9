"""Make the web application: it serves a container by its keys, and pages about it."""

from __future__ import annotations

import asyncio
import errno
import logging
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, override

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount

from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.storage.place import place_of
from n5zarr.viewing.serve.answers import entity_tag, has_value, requested_part, tag_of_bytes
from n5zarr.viewing.serve.guard import METHODS, Guard
from n5zarr.viewing.serve.location import ServedLocation
from n5zarr.viewing.serve.pages import error_page, page_routes
from n5zarr.viewing.serve.views import N5View, OmeView, ServedView, ZarrView, is_shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from n5zarr.storage.place import Backend, Location

__all__ = ["make_app"]

_log = logging.getLogger(__name__)
_PIECE = 1 << 18  # bytes that uvicorn gets at once, and holds for a slow client
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
) -> Starlette:
    """Make the application that serves a location: its views by their keys, and pages at ``/``.

    This opens only the location; a request for a page or for a key of ``/ome/`` finds the images.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a group or dataset in one, or the XML of BigDataViewer or BigStitcher.
    labels : sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    hosts : collection of str, optional
        Names, without port, that requests may use for this server; any by default. An attacker can
        let the name of a web site point to this machine.

    Returns
    -------
    starlette.applications.Starlette
        The application; ``app.state.served`` is the :class:`ServedLocation`.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    """
    served = ServedLocation(place_of(location, storage_options, backend), labels=labels)
    views = {
        "n5": N5View(served),
        "zarr": ZarrView(served),
        "zarr3": ZarrView(served, (3,)),
        "zarr2": ZarrView(served, (2,)),
        "ome": OmeView(served),
    }
    held = HeldValues()
    mounts = [Mount(f"/{name}", _Keys(name, view, held)) for name, view in views.items()]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=METHODS,
        allow_headers=_ALLOWED,
        expose_headers=_EXPOSED,
        allow_private_network=True,
    )
    app = Starlette(
        routes=[*mounts, *page_routes(served)],
        middleware=[Middleware(Guard, hosts=hosts), cors],
        exception_handlers={N5Error: error_page, OSError: error_page},
    )
    app.state.served = served
    return app


class HeldValues:
    """Count the bytes of values that clients have not received yet, and bound them."""

    most = 1 << 28  # bytes; above, requests wait before their values are read
    at_once = 32  # values of a view that are being read

    def __init__(self) -> None:
        self._n_bytes = 0
        self._room = asyncio.Event()

    async def wait_for_room(self) -> None:
        """Wait until clients have received enough of the values in memory."""
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


class _ValueResponse(Response):
    """An answer whose body is sent one piece after the other, as fast as the client receives it."""

    def __init__(self, data: memoryview, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(None, status, {**headers, "Content-Length": str(len(data))})
        self.data = data

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **head})
        for start in range(0, len(self.data), _PIECE):
            piece = self.data[start : start + _PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class _Keys:
    """Answer requests for the keys of a view.

    Parameters
    ----------
    name : str
        Name of the view, which is a part of entity tags.
    view : ServedView
        The keys.
    held : HeldValues
        The values of all views that are being sent.
    """

    def __init__(self, name: str, view: ServedView, held: HeldValues) -> None:
        self._name = name
        self._view = view
        self._held = held
        self._reading = asyncio.Semaphore(held.at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope["path"].removeprefix(scope["root_path"]).removeprefix("/")
        if not is_shown(key):
            await _missing()(scope, receive, send)
            return
        with ExitStack() as sending:
            async with self._reading:
                await self._held.wait_for_room()
                answer = await self._answer(key, Headers(scope=scope))
                if isinstance(answer, _ValueResponse):
                    sending.enter_context(self._held.holding(len(answer.data)))
            await answer(scope, receive, send)

    async def _answer(self, key: str, request: Headers) -> Response:
        """Answer a request for a key, also if its value cannot be read."""
        try:
            return await self._value(key, request)
        except N5UnrepresentableError as err:  # no image as OME-Zarr, or no possible key
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

    async def _value(self, key: str, request: Headers) -> Response:
        """Answer with the value of a key, or the part of it that the client wants and lacks."""
        known = request.get("if-none-match")
        stamp = self._view.stamp(key)
        tag = "" if stamp is None else entity_tag(self._name, key, stamp)
        if tag and has_value(tag, known):
            return Response(status_code=304, headers=_headers(tag))
        value = await self._view.read(key)
        if value is None:
            return _missing()
        data = memoryview(value).cast("B")
        if stamp is None or self._view.stamp(key) != stamp:  # another value was read
            tag = tag_of_bytes(data)
            if has_value(tag, known):
                return Response(status_code=304, headers=_headers(tag))
        headers = _headers(tag)
        part = requested_part(len(data), request.get("range"), request.get("if-range"), tag)
        if part is not None and part.stop == part.start:
            headers["Content-Range"] = f"bytes */{len(data)}"
            return PlainTextResponse("no such range", 416, headers=headers)
        headers["Content-Type"] = _media_type(key)
        if part is None:
            return _ValueResponse(data, 200, headers)
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{len(data)}"
        return _ValueResponse(data[part.start : part.stop], 206, headers)


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Accept-Ranges": "bytes", "Cache-Control": "no-cache"}


def _media_type(key: str) -> str:
    """Return the type of a value: JSON for documents, else bytes that no browser displays."""
    name = key.rpartition("/")[2]
    is_document = name.endswith(".json") or name.startswith(".z")
    return "application/json" if is_document else "application/octet-stream"


def _missing() -> Response:
    return _text(404, "not found")


def _text(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers={"Cache-Control": "no-cache"})
