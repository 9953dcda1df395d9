"""A small S3 server in a process of its own, which answers each request after some time.

It serves the files of a folder for reading: each folder in it is a bucket, of which ``lab`` can be
listed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from n5zarr.storage.place import Backend

BUCKET = "lab"
PAGE = 1000  # keys in one answer of S3


@contextmanager
def s3_server(folder: Path, latency: float) -> Iterator[dict[Backend, dict[str, Any]]]:
    """Serve a folder, with a latency in milliseconds; give the storage options of each backend."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    arguments = (str(folder), latency / 1000, theirs)
    server = context.Process(target=_serve, args=arguments, daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    try:
        yield {
            "fsspec": {"anon": True, "endpoint_url": url},
            "obstore": {
                "endpoint": url, "skip_signature": True, "region": "us-east-1",
                "client_options": {"allow_http": True},
            },
        }  # fmt: skip
    finally:
        server.terminate()
        server.join()


class _Folder:
    """The files of a folder, as S3 shows them.

    Parameters
    ----------
    root : str
        The folder.
    """

    def __init__(self, root: str) -> None:
        self.root = Path(root)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The keys of the bucket, in order, as they are at the first listing."""
        bucket = self.root / BUCKET
        files = (path for path in bucket.rglob("*") if path.is_file())
        found = {path.relative_to(bucket).as_posix(): path.stat().st_size for path in files}
        return dict(sorted(found.items()))

    def answer(self, target: str) -> bytes | None:
        """Return the answer to a GET; None if there is nothing."""
        url = urlsplit(target)
        query = {key: value[0] for key, value in parse_qs(url.query).items()}
        if "list-type" in query:
            return self.listed(query)
        file = self.root / unquote(url.path).strip("/")
        return file.read_bytes() if file.is_file() else None

    def listed(self, query: dict[str, str]) -> bytes:
        """Return one page of a listing."""
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        keys: dict[str, bool] = {}
        for key in self.sizes:
            if key.startswith(prefix):
                first, slash, _ = key[len(prefix) :].partition(query.get("delimiter", "\0"))
                keys[prefix + first + slash] = bool(slash)
        page = [key for key in keys if key > after][: PAGE + 1]
        body = "".join(
            f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
            if keys[key]
            else f"<Contents><Key>{escape(key)}</Key><Size>{self.sizes[key]}</Size>"
            '<ETag>"1"</ETag><LastModified>2026-11-21T00:00:00.000Z</LastModified></Contents>'
            for key in page[:PAGE]
        )
        more = len(page) > PAGE
        last = escape(page[PAGE - 1]) if more else ""
        token = f"<NextContinuationToken>{last}</NextContinuationToken>"
        return (
            f'<?xml version="1.0"?><ListBucketResult><Name>{BUCKET}</Name>'
            f"<KeyCount>{min(len(page), PAGE)}</KeyCount>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token if more else ''}{body}"
            "</ListBucketResult>"
        ).encode()


def _serve(root: str, latency: float, port: Any) -> None:
    """Answer GET, HEAD and lists of the files below a directory, as S3 does, after some time."""
    folder = _Folder(root)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            method, target, _ = line.decode().split()
            while (await reader.readline()).strip():
                pass
            await asyncio.sleep(latency)
            data = folder.answer(target)
            head = f"HTTP/1.1 {'404 Not Found' if data is None else '200 OK'}\r\n"
            head += f'Content-Length: {len(data or b"")}\r\nETag: "1"\r\n'
            head += "Last-Modified: Sat, 21 Nov 2026 00:00:00 GMT\r\n\r\n"
            writer.write(head.encode() + (b"" if method == "HEAD" else data or b""))
            await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
