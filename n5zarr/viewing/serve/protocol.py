"""Bound what one client can hold of the server, where uvicorn has no limit of its own."""

from __future__ import annotations

import socket
import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["PatientProtocol", "most_connections"]

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
