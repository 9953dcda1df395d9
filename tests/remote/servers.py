"""Serve on loopback: static files, S3, and a proxy that records and damages traffic."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import logging
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, override
from urllib.parse import urlsplit

HOST = "127.0.0.1"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closes its connection."""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"


@contextlib.contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    with _Server((HOST, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()


class Files(SimpleHTTPRequestHandler):
    """Files, with lists of directories, on connections that are kept."""

    protocol_version = "HTTP/1.1"

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def whole(self) -> bytes | None:
        """Return the file that is asked for, or tell the client that there is none."""
        try:
            with open(self.translate_path(self.path), "rb") as opened:  # noqa: PTH123 - any name
                return opened.read()
        except OSError:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None

    def send(self, data: bytes, **headers: str) -> None:
        self.send_response(HTTPStatus.OK)
        for header in headers.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(data)


class _FilesWithoutLists(Files):
    status = HTTPStatus.NOT_FOUND

    @override
    def list_directory(self, path: Any) -> None:
        self.send_error(self.status)


class FilesWithoutLength(Files):
    """Files whose size the server does not say before it sends them."""

    @override
    def do_GET(self) -> None:
        if (data := self.whole()) is not None:
            data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
            self.send(data, **{"Transfer-Encoding": "chunked"})


class PackedFiles(Files):
    """Files that the server sends packed, whatever the client accepts."""

    @override
    def do_GET(self) -> None:
        if (data := self.whole()) is not None:
            packed = gzip.compress(data, 1)
            self.send(packed, **{"Content-Encoding": "gzip", "Content-Length": str(len(packed))})


class Answer(NamedTuple):
    """What a server answers, and says to answer: the bytes from start to stop of all."""

    status: int
    start: int
    stop: int
    size: int
    body: bytes


class LyingFiles(Files):
    """Files, and parts of them, of which the server sends others than it should."""

    lie: Callable[[Answer, bytes], Answer | None] = staticmethod(lambda answer, whole: None)

    @override
    def do_GET(self) -> None:
        if (whole := self.whole()) is None:
            return
        start, stop, n = 0, len(whole), len(whole)
        asked = self.headers.get("Range")
        if asked is not None:
            first, last = asked.removeprefix("bytes=").split("-")
            start = int(first) if first else max(0, n - int(last))
            stop = min(n, int(last) + 1) if first and last else n
        status = HTTPStatus.OK if asked is None else HTTPStatus.PARTIAL_CONTENT
        right = Answer(status, start, stop, n, whole[start:stop])
        told = self.lie(right, whole) or right
        self.send_response(told.status)
        if told.status == HTTPStatus.PARTIAL_CONTENT and told.size >= 0:
            self.send_header("Content-Range", f"bytes {told.start}-{told.stop - 1}/{told.size}")
        self.send_header("Content-Length", str(len(told.body)))
        self.send_header("Last-Modified", "Fri, 27 Nov 2026 10:00:00 GMT")
        self.end_headers()
        self.wfile.write(told.body if self.command == "GET" else b"")

    do_HEAD = do_GET  # noqa: N815 - as the base wants


class _FilesWithForbiddenLists(_FilesWithoutLists):
    status = HTTPStatus.FORBIDDEN


def static(directory: Path, *, lists: bool | HTTPStatus = True) -> Any:
    """Serve a directory, with or without lists of its members."""
    kinds: dict[Any, Any] = {True: Files, False: _FilesWithoutLists}
    handler = kinds.get(lists, _FilesWithForbiddenLists)
    return serving(partial(handler, directory=str(directory)))


def _one_at_a_time(app: Callable[..., Iterable[bytes]]) -> Callable[..., list[bytes]]:
    """Answer each request whole before the next, as S3 is atomic and moto is not.

    moto compares and writes in two steps, and closes the file of an object that is replaced while
    another request reads it.
    """
    answering = threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)  # nobody waits for a client that is slow to send
        with answering:
            return list(app(environ, start_response))

    return answer


@cache
def _s3_app() -> Any:
    """Make the application once in a process, and let botocore read its models once.

    Each of its sessions would read megabytes of JSON, which takes most of the time of a short test.
    """
    from botocore.loaders import JSONFileLoader  # noqa: PLC0415 - with moto only
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415 - takes a second
        DomainDispatcherApplication,
        create_backend_app,
    )

    loader: Any = JSONFileLoader()
    read = cache(loader.load_file)
    JSONFileLoader.load_file = lambda _, path: read(path)
    return _one_at_a_time(DomainDispatcherApplication(create_backend_app))


@contextlib.contextmanager
def s3() -> Iterator[str]:
    """Serve S3 from memory."""
    from werkzeug.serving import make_server  # noqa: PLC0415 - with moto only

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(HOST, 0, _s3_app(), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://{HOST}:{server.server_port}"
    server.shutdown()
    thread.join()


class Proxy:
    """A proxy that passes requests on, records them, and damages some answers."""

    def __init__(self, url: str) -> None:
        self.upstream = url
        self.url = ""
        self.requests: list[tuple[str, str]] = []
        self.fault: Callable[[str, str], str | None] = lambda method, path: None
        self.refused: Callable[[Any], bool] = lambda headers: False
        self.code = ""  # what a spoiled answer of S3 says
        self.latency = 0.0
        self.is_held, self.released = threading.Event(), threading.Event()  # of a fault "late"

    def counts(self) -> dict[str, int]:
        """Return the number of requests since the last call: GET, PUT, HEAD, LIST."""
        counts = Counter(
            "LIST" if method == "GET" and ("list-type" in path or "delimiter" in path) else method
            for method, path in self.requests
        )
        self.requests.clear()
        return dict(counts)

    @contextlib.contextmanager
    def running(self) -> Iterator[Proxy]:
        with serving(partial(_Passing, self)) as url:
            self.url = url
            yield self


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, proxy: Proxy, *args: Any) -> None:
        self.proxy = proxy
        self.upstream: http.client.HTTPConnection | None = None
        super().__init__(*args)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def _pass(self) -> None:
        proxy = self.proxy
        proxy.requests.append((self.command, self.path))
        body = self._body()
        if proxy.latency:
            time.sleep(proxy.latency)  # the benchmarks measure a server that is far away
        fault = proxy.fault(self.command, self.path)
        if proxy.refused(self.headers):
            fault = "501"
        if fault in ("500", "501", "503", "403", "404", "410"):
            self._say(int(fault))
        elif fault == "reset":
            self._reset()
        elif fault == "hang":
            self._hang()
        else:
            self._pass_on(body, fault)

    def _pass_on(self, body: bytes, fault: str | None) -> None:
        """Send the request on, and apply a fault to the answer; "twice" asks twice."""
        headers = {k: v for k, v in self.headers.items() if k.lower() != "transfer-encoding"}
        if "content-length" not in map(str.lower, headers) and body:
            headers["Content-Length"] = str(len(body))
        answer, data = self._ask(body, headers)
        if fault == "twice":
            answer, data = self._ask(body, headers)
        if fault == "late":
            self.proxy.is_held.set()
            self.proxy.released.wait(60)
        if fault == "lost":
            self._reset()
        elif fault == "lost, 500":
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self._answer(answer, data, fault)

    def _ask(self, body: bytes, headers: dict[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
        if self.upstream is None:
            self.upstream = http.client.HTTPConnection(urlsplit(self.proxy.upstream).netloc)
        self.upstream.request(self.command, self.path, body, headers)
        answer = self.upstream.getresponse()
        return answer, answer.read()

    def _hang(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.settimeout(30)
            self.connection.recv(1)  # until the client gives up
        self.close_connection = True

    def _reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()

    def _say(self, status: int) -> None:
        said = f"<Error><Code>{self.proxy.code}</Code></Error>".encode() if self.proxy.code else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else said)

    @override
    def finish(self) -> None:
        super().finish()
        if self.upstream is not None:
            self.upstream.close()

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:  # the server would wait for the rest for ever
            raise ConnectionAbortedError
        return body

    def _answer(self, answer: http.client.HTTPResponse, data: bytes, fault: str | None) -> None:
        self.send_response(answer.status)
        hidden = ("transfer-encoding", "content-length", "connection", "date", "server")
        for name, value in answer.getheaders():
            if name.lower() not in hidden:
                self.send_header(name, value)
        length = int(answer.getheader("Content-Length") or len(data))
        if fault == "shorter":  # than it is: the client takes the rest for the next answer
            length = max(0, len(data) - 7)
        self.send_header("Content-Length", str(length + 7 if fault == "longer" else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
        if fault in ("cut", "longer", "shorter"):
            self.close_connection = True

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815 - as the base wants
