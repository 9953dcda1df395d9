"""Limit uvicorn's connections: drop clients that are too slow, and refuse too many clients."""

from __future__ import annotations

import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["PatientProtocol", "most_connections"]

_PATIENCE = 20.0  # seconds in which a client sends a request, or takes some of an answer

_MOST_WAITING = 16  # requests of one connection that wait for the one before
_LONGEST_HEAD = 1 << 16  # bytes of a request without its body
_MOST = 1000
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 21\r\n"
    b"retry-after: 1\r\nconnection: close\r\n\r\ntoo many connections\n"
)
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


def most_connections() -> int:
    """Return the largest number of connections: half of the files that may be open."""
    if sys.platform == "win32":
        return _MOST
    import resource  # noqa: PLC0415 - not on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if files == resource.RLIM_INFINITY else min(_MOST, files // 2)


class PatientProtocol(HttpToolsProtocol):
    """One connection, which is closed if its client neither sends requests nor reads answers."""

    most = most_connections()
    patience = _PATIENCE

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - those of uvicorn
        super().__init__(*args, **options)
        self._n_head = 0  # bytes of the request that has begun
        self._has_asked = False  # since the last look
        self._left = 0  # bytes that wait for the client
        self._watch: Any = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - of any loop
        """Take a connection, or refuse it."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_BUSY)
            transport.close()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
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
        """Answer a request."""
        self._has_asked, self._n_head = True, 0
        if len(self.pipeline) >= _MOST_WAITING:
            self.transport.close()
        else:
            super().on_headers_complete()

    def _is_idle(self) -> bool:
        """Whether there is no request to be answered."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def _look_later(self) -> None:
        self._watch = self.loop.call_later(self.patience, self._look)

    def _look(self) -> None:
        """Close a connection whose client has done nothing since the last look."""
        left = self.transport.get_write_buffer_size()
        takes_nothing = 0 < self._left <= left
        asks_nothing = self._is_idle() and not self._has_asked and not left
        if takes_nothing or asks_nothing:
            self.transport.abort()
            return
        self._left, self._has_asked = left, False
        self._look_later()
