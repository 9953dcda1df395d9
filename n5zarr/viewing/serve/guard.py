"""Refuse requests that no viewer sends, and bound what one client can hold of the server.

uvicorn has no limits of its own for the latter.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine for itself."""

_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(:[0-9]*)?")  # RFC 3986, 3.2
_LONGEST_PATH = 4096  # bytes: most systems have no longer paths of files
_ALLOW = {"Allow": ", ".join(METHODS)}


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without the port; of IPv6 its shortest form.

    Examples
    --------
    >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("0:0:0:0:0:0:0:1")
    ('localhost', '[::1]', '[::1]')
    """
    host = host.strip().lower()
    before, _, port = host.rpartition(":")
    name = before if before and port.isdigit() else host
    for each in (host, name):  # users also write an address without brackets
        with suppress(ValueError):  # not an address
            return f"[{IPv6Address(each.removeprefix('[').removesuffix(']'))}]"
    return name


class Guard:
    """Pass on only requests that read, name a known host, and have no body and no very long path.

    Parameters
    ----------
    app : ASGI application
        Answers the requests that are passed on.
    hosts : collection of str, optional
        Names that a ``Host`` header may have; any by default.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None = None) -> None:
        self._app = app
        self._hosts = None if hosts is None else {host_name(host) for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_request = scope["type"] == "http"  # starlette's own test client asks for a lifespan
        answer = (self._refusal(scope) if is_request else None) or self._app
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not passed on; None for the others."""
        headers = dict(scope["headers"])
        if refused := self._refusal_of_host(scope):
            return refused
        if scope["method"] not in METHODS:
            return _refused(405, "read only", **_ALLOW)
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            return _refused(413, "expected a request without a body")
        if len(scope.get("raw_path") or scope["path"]) > _LONGEST_PATH:
            return _refused(414, "path too long")
        is_preflight = b"access-control-request-method" in headers and b"origin" in headers
        if scope["method"] == "OPTIONS" and not is_preflight:
            return Response(status_code=204, headers=_ALLOW)
        return None

    def _refusal_of_host(self, scope: Scope) -> Response | None:
        """Return the answer to a request that does not name one known host (RFC 9112, 3.2)."""
        hosts = [value.strip() for name, value in scope["headers"] if name == b"host"]
        if scope.get("http_version") == "1.0":
            hosts = hosts or [b""]
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            return _refused(400, f"expected one Host header, with a host name, got {hosts!r:.99}")
        host = host_name(hosts[0].decode("latin-1"))
        if self._hosts is not None and host not in self._hosts:
            return _refused(421, f"unknown host {host!r:.100}; --allow-host names others")
        return None


def _refused(status: int, text: str, **headers: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers={"Connection": "close", **headers})


_MOST_WAITING = 16  # requests of one connection that wait for the one before
_LONGEST_HEAD = 1 << 16  # bytes of a request without its body
_MOST_CONNECTIONS = 1000
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


def most_connections() -> int:
    """Return the largest number of connections: half of the files that may be open."""
    if sys.platform == "win32":
        return _MOST_CONNECTIONS
    import resource  # noqa: PLC0415 - not on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = files == resource.RLIM_INFINITY
    return _MOST_CONNECTIONS if is_unlimited else min(_MOST_CONNECTIONS, files // 2)


class PatientProtocol(HttpToolsProtocol):
    """One connection, closed if its client neither completes a request nor receives an answer.

    It also closes the connection of a client that sends a head without end, or requests faster than
    it receives the answers.
    """

    patience = 20.0  # seconds between two checks

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - of any loop
        """Begin to watch a connection."""
        super().connection_made(transport)
        # without it, the system may hold back the end of a small answer for 40 ms
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._n_head = 0  # bytes of the request that has begun
        self._last_request: Any = None  # at the last check
        self._n_unsent = 0  # bytes that the client had not received at the last check
        self._next_check = self.loop.call_later(self.patience, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching a connection."""
        self._next_check.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request, unless its head is too long."""
        if self.transport.is_closing():
            return
        if self._is_idle():
            self._n_head += len(data)
            if self._n_head > _LONGEST_HEAD:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Answer a request, unless too many wait already."""
        self._n_head = 0
        if len(self.pipeline) >= _MOST_WAITING:
            self.transport.close()
        else:
            super().on_headers_complete()

    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        request: Any = self.cycle  # None before the first one
        return request is None or request.response_complete

    def _check(self) -> None:
        """Close the connection if its client has done nothing since the last check."""
        n_unsent = self.transport.get_write_buffer_size()
        receives_nothing = 0 < self._n_unsent <= n_unsent
        has_requested = self.cycle is not self._last_request
        if receives_nothing or (self._is_idle() and not has_requested and not n_unsent):
            self.transport.abort()
            return
        self._n_unsent, self._last_request = n_unsent, self.cycle
        self._next_check = self.loop.call_later(self.patience, self._check)
