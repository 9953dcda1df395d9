"""Check that a server sends the bytes that it was asked for, however they were requested.

fsspec looks at no length and no range, obstore at the range, but not at the length.
"""

from __future__ import annotations

import re
from errno import EIO
from http import HTTPStatus
from typing import Any, NamedTuple

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest

from n5zarr.codecs.buffers import BufferLike

_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d+)-(\d+)/(\d+|\*)\s*", re.IGNORECASE)


class Sent(NamedTuple):
    """The part of a value that a server says to send.

    Parameters
    ----------
    start, stop : int
        Its first byte, and the one after the last.
    size : int or None
        Number of bytes of the whole value; None if the server does not tell.
    """

    start: int
    stop: int
    size: int | None


def sent_by(content_range: str | None) -> Sent | None:
    """Parse the header ``Content-Range`` of an answer; None if there is no such part.

    Examples
    --------
    >>> sent_by("bytes 3-6/10"), sent_by("bytes 3-6/*"), sent_by("items 3-6/10")
    (Sent(start=3, stop=7, size=10), Sent(start=3, stop=7, size=None), None)
    """
    found = _CONTENT_RANGE.fullmatch(content_range or "")
    if found is None:
        return None
    first, last, size = found.groups()
    stop = int(last) + 1
    return Sent(int(first), stop, None if size == "*" else int(size))


def bounds(asked: ByteRequest | None, size: int) -> tuple[int, int]:
    """Return the first byte of a requested part of a value, and the one after its last.

    Examples
    --------
    >>> bounds(RangeByteRequest(3, 12), 10), bounds(SuffixByteRequest(4), 10), bounds(None, 10)
    ((3, 10), (6, 10), (0, 10))
    """
    match asked:
        case RangeByteRequest(start, end):
            return min(start, size), min(end, size)
        case OffsetByteRequest(offset):
            return min(offset, size), size
        case SuffixByteRequest(suffix):
            return max(0, size - suffix), size
        case _:
            return 0, size


def header_of(asked: ByteRequest) -> str:
    """Return the header ``Range`` of a request.

    Examples
    --------
    >>> header_of(RangeByteRequest(3, 7)), header_of(SuffixByteRequest(4))
    ('bytes=3-6', 'bytes=-4')
    """
    match asked:
        case RangeByteRequest(start, end):
            return f"bytes={start}-{end - 1}"
        case OffsetByteRequest(offset):
            return f"bytes={offset}-"
        case _:
            return f"bytes=-{asked.suffix}"


def check_sent(data: BufferLike, asked: ByteRequest | None, sent: Sent | None) -> None:
    """Raise unless an answer has the bytes that were asked for.

    Parameters
    ----------
    data : bytes-like
        What the server sent.
    asked : ByteRequest or None
        What it was asked for; None for the whole value.
    sent : Sent or None
        What it says to send; None if the library does not tell: then only the length counts.

    Raises
    ------
    OSError
        The server sent other bytes than asked, more, or fewer.
    """
    n = memoryview(data).nbytes
    if sent is None:
        start, stop = bounds(asked, 2**63)
        is_right = n <= stop - start
        found = f"{n} bytes"
    else:
        # of an unknown size only a part with both bounds can be checked
        start, stop = bounds(asked, 2**63 if sent.size is None else sent.size)
        is_right = (start, stop) == sent[:2] and n == stop - start
        found = f"{n} bytes, as {sent.start} to {sent.stop} of {sent.size}"
    if not is_right:
        message = f"expected the bytes {start} to {stop}, but the server sends {found}"
        raise OSError(EIO, message)


def taken(data: bytes, asked: ByteRequest | None, status: int, content_range: str | None) -> bytes:
    """Return the bytes that were asked for, from the answer of a server.

    Parameters
    ----------
    data : bytes
        The answer.
    asked : ByteRequest or None
        As for :func:`check_sent`.
    status : int
        That of the answer: a server that knows no ranges sends the whole value, which is no part.
    content_range : str or None
        The header ``Content-Range``.

    Raises
    ------
    OSError
        The answer has other bytes than asked for.
    """
    if status != HTTPStatus.PARTIAL_CONTENT:
        start, stop = bounds(asked, len(data))
        return data[start:stop]
    sent = sent_by(content_range)
    if sent is None:
        message = f"expected a part of the value, but its Content-Range is {content_range!r}"
        raise OSError(EIO, message)
    check_sent(data, asked, sent)
    return data


async def part_in_s3(fs: Any, name: str, asked: ByteRequest) -> bytes:  # noqa: ANN401 - fsspec has no types
    """Read a part of an object as s3fs does, which does not show the headers of answers."""
    from s3fs.core import _error_wrapper, version_id_kw  # noqa: PLC0415 - optional

    bucket, key, version = fs.split_path(name)

    async def call() -> bytes:
        answer = await fs._call_s3(  # noqa: SLF001 - as s3fs itself
            "get_object", Bucket=bucket, Key=key, Range=header_of(asked), **version_id_kw(version)
        )
        try:
            data = await answer["Body"].read()
        finally:
            answer["Body"].close()
        status = answer["ResponseMetadata"]["HTTPStatusCode"]
        return taken(data, asked, status, answer.get("ContentRange"))

    found: bytes = await _error_wrapper(call, retries=fs.retries)
    return found
