"""Make the web application: it serves a container by its keys, and pages about it."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, override

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount

from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.viewing.serve.guard import METHODS, Guard
from n5zarr.viewing.serve.location import ServedLocation
from n5zarr.viewing.serve.pages import error_page, page_routes
from n5zarr.viewing.serve.views import VIEWS, Answer, ServedView, is_shown, requested_part

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


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
    backend: Backend | None = None,
    hosts: Collection[str] | None = None,
) -> Starlette:
    """Make the application that serves a location: its views by their keys, and pages at ``/``.

    This opens only the location; a request for a page or for a key of ``/ome/`` finds the images.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, a group or dataset in one, OME-Zarr, or the XML of BigDataViewer or
        BigStitcher.
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
    keys = _Keys(served)
    cors = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=METHODS,
        allow_headers=_ALLOWED,
        expose_headers=_EXPOSED,
        allow_private_network=True,
    )
    app = Starlette(
        routes=[*(Mount(f"/{name}", keys) for name in VIEWS), *page_routes(served)],
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
    """Answer requests for the keys of the views; a view is made when it is first needed.

    Parameters
    ----------
    served : ServedLocation
        The location.
    """

    def __init__(self, served: ServedLocation) -> None:
        self._served = served
        self._views: dict[str, tuple[ServedView, asyncio.Semaphore]] = {}
        self._held = HeldValues()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope["path"].removeprefix(scope["root_path"]).removeprefix("/")
        name = scope["root_path"].rpartition("/")[2]
        if not is_shown(key):
            await _missing()(scope, receive, send)
            return
        if name not in self._views:
            reading = asyncio.Semaphore(self._held.at_once)
            self._views[name] = VIEWS[name](self._served), reading
        view, reading = self._views[name]
        with ExitStack() as sending:
            async with reading:
                await self._held.wait_for_room()
                answer = await _answer(view, key, scope)
                if isinstance(answer, _ValueResponse):
                    sending.enter_context(self._held.holding(len(answer.data)))
            await answer(scope, receive, send)


async def _answer(view: ServedView, key: str, scope: Scope) -> Response:
    """Answer a request for a key, also if its value cannot be read."""
    request = Headers(scope=scope)
    try:
        found = await view.read(key, request.get("if-none-match"))
    except N5UnrepresentableError as err:  # no image as OME-Zarr, or no possible key
        return _text(404, str(err))
    except N5Error as err:
        return _text(500, str(err))
    except OSError as err:
        if err.errno in _NO_FILE:
            return _missing()
        return _failure(scope["path"], key, err, err.strerror)
    except Exception as err:  # of the client of a server, which may name a URL with secrets
        return _failure(scope["path"], key, err)
    return _missing() if found is None else _response(found, key, request)


def _failure(path: str, key: str, err: Exception, reason: str | None = None) -> Response:
    _log.warning("%s cannot be read: %s", path, type(err).__name__)
    _log.debug("why", exc_info=err)
    return _text(500, f"{key}: {reason or type(err).__name__}")


def _response(found: Answer, key: str, request: Headers) -> Response:
    """Answer with a value, or the part of it that the client wants."""
    tag, data = found
    headers = {"ETag": tag, "Accept-Ranges": "bytes", "Cache-Control": "no-cache"}
    if data is None:
        return Response(status_code=304, headers=headers)
    part = requested_part(len(data), request.get("range"), request.get("if-range"), tag)
    if part is not None and not part:
        headers["Content-Range"] = f"bytes */{len(data)}"
        return PlainTextResponse("no such range", 416, headers=headers)
    name = key.rpartition("/")[2]
    is_document = name.endswith(".json") or name.startswith(".z")
    # other values are bytes that no browser displays
    headers["Content-Type"] = "application/json" if is_document else "application/octet-stream"
    if part is None:
        return _ValueResponse(data, 200, headers)
    headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{len(data)}"
    return _ValueResponse(data[part.start : part.stop], 206, headers)


def _missing() -> Response:
    return _text(404, "not found")


def _text(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers={"Cache-Control": "no-cache"})
