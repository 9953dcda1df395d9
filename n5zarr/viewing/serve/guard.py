"""Refuse requests that no viewer sends, before other code handles them."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["LOOPBACK", "METHODS", "Guard", "host_name"]

METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine for itself."""

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
        host = host_name(headers.get(b"host", b"").decode("latin-1"))
        if self._hosts is not None and host not in self._hosts:
            return _refused(421, f"unknown host {host!r:.100}; --allow-host names others")
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


def _refused(status: int, text: str, **headers: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers={"Connection": "close", **headers})
