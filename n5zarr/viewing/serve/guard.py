"""Refuse requests that no viewer sends, before other code handles them."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LOOPBACK", "METHODS", "Guard", "host_name"]

METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine for itself."""

_LONGEST = 4096  # bytes of a path: that of a file may not be longer on most systems


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without the port; of IPv6 its shortest form.

    Examples
    --------
    >>> host_name("LocalHost:8000"), host_name("[::1]:8000"), host_name("[0:0:0:0:0:0:0:1]")
    ('localhost', '[::1]', '[::1]')
    """
    host = host.strip().lower()
    name, _, port = host.rpartition(":")
    name = name if name and port.isdigit() else host
    with suppress(ValueError):  # no address
        if name.startswith("[") and name.endswith("]"):
            return f"[{IPv6Address(name[1:-1])}]"
    return name


class Guard:
    """Pass on requests to read, for known hosts, without a body and with a path of usual length.

    Parameters
    ----------
    app : ASGI application
        What answers the others.
    hosts : collection of str, optional
        Names that a ``Host`` header may have; any by default.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None = None) -> None:
        self._app = app
        self._hosts = None if hosts is None else {host_name(host) for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":  # starlette's own test client asks for a lifespan
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                # browsers never interpret stored data as a page or a script
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        await self._app(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        host = host_name(headers.get(b"host", b"").decode("latin-1"))
        if self._hosts is not None and host not in self._hosts:
            return _refused(421, f"unknown host {host!r:.100}; --allow-host names others")
        if scope["method"] not in METHODS:
            return _refused(405, "read only", Allow=", ".join(METHODS))
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            return _refused(413, "expected a request without a body")
        if len(scope.get("raw_path") or scope["path"]) > _LONGEST:
            return _refused(414, "path too long")
        is_preflight = b"access-control-request-method" in headers and b"origin" in headers
        if scope["method"] == "OPTIONS" and not is_preflight:
            return Response(status_code=204, headers={"Allow": ", ".join(METHODS)})
        return None


def _refused(status: int, text: str, **headers: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers={"Connection": "close", **headers})
