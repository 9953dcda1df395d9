"""Shared code of codecs: types, reused memory, the error of a damaged payload, reading streams."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np

from n5zarr.errors import N5BlockError

REUSED = 2**26  # bytes; larger blocks get new memory, which no thread keeps
_FIRST, _PIECE = 2**9, 2**16  # bytes of input or surplus output per call of a decompressor

type BufferLike = bytes | bytearray | memoryview


class Decompressor(Protocol):
    """The common interface of :class:`bz2.BZ2Decompressor` and :class:`lzma.LZMADecompressor`."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream has been reached."""

    @property
    def needs_input(self) -> bool:
        """Whether the decompressor needs more data to continue."""

    @property
    def unused_data(self) -> bytes:
        """The data after the end of the stream."""

    def decompress(self, data: BufferLike, max_length: int = -1, /) -> bytes:
        """Decompress at most ``max_length`` bytes of ``data`` and the rest of earlier data."""


class Streams(NamedTuple):
    """What :func:`read_streams` found.

    Parameters
    ----------
    data : bytes
        The first bytes of the streams.
    n_decoded : int
        Number of bytes to which the streams decode, at least the length of ``data``.
    end : int
        Number of bytes of the payload up to the end of the last stream used.
    """

    data: bytes
    n_decoded: int
    end: int


class Scratch:
    """Memory that is reused for block after block: new memory costs page faults."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def bytes(self, n_bytes: int, purpose: str) -> memoryview:
        """Return the memory for a purpose; the next call for the same purpose reuses it."""
        buffer = self._buffers.get(purpose)
        if buffer is None or buffer.nbytes < n_bytes:
            buffer = self._buffers[purpose] = np.empty(n_bytes, "u1")
        return memoryview(buffer)[:n_bytes]

    def filled(
        self,
        decompress: Callable[[BufferLike, memoryview], object],
        stream: memoryview,
        n_bytes: int,
    ) -> memoryview | None:
        """Decompress a stream into this memory; None if the library refuses the stream."""
        out = self.bytes(n_bytes, "decompressed")
        try:
            decompress(stream, out)
        except (RuntimeError, ValueError):
            return None
        return out


_thread_memory = threading.local()


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Lend the memory of this thread until the end of the context.

    A signal handler or finalizer that runs on the same thread meanwhile gets other memory.
    """
    memory: Scratch = _thread_memory.__dict__.pop("scratch", None) or Scratch()
    try:
        yield memory
    finally:
        _thread_memory.scratch = memory


def damaged(what: str) -> N5BlockError:
    """Make the error for a payload that cannot be decoded."""
    return N5BlockError(f"block payload: {what}", kind="payload")


def max_unpacked(n_bytes: int) -> int:
    """Return the largest decoded size, in bytes, of a payload that is decoded as a whole."""
    return 2 * n_bytes + 2**20


def check_drained(n_bytes: int, n_surplus: int) -> None:
    """Raise if a stream holds far more than ``n_bytes``."""
    if n_surplus > max_unpacked(n_bytes):
        raise damaged(f"expected {n_bytes} bytes, got more than {n_bytes + n_surplus}")


def read_streams(
    new: Callable[[], Decompressor],
    payload: memoryview,
    n_bytes: int,
    goes_on: Callable[[memoryview], bool] = bool,
) -> Streams:
    """Read concatenated streams until they yield ``n_bytes``, and to the end of the last one used.

    Takes time in proportion to the payload and the result, whatever the number of streams.

    Parameters
    ----------
    new : callable
        Makes a decompressor for one stream.
    payload : memoryview
        The streams; bytes after the last one used are ignored, as in Java.
    n_bytes : int
        Number of bytes to read, at least 1.
    goes_on : callable, optional
        Returns whether the bytes after a stream begin another stream.

    Returns
    -------
    Streams
        With at most ``n_bytes`` of data.

    Raises
    ------
    N5BlockError
        The last stream used is cut off, or its checksum does not match (``kind="payload"``), even
        if the stream holds more than ``n_bytes``.
    """
    parts: list[bytes] = []
    missing, position = n_bytes, 0
    while True:
        stream, size, n_surplus = new(), _FIRST, 0
        while not stream.eof:
            # a decompressor copies the input that it does not use: begin with small pieces
            is_hungry = stream.needs_input
            piece = payload[position : position + size] if is_hungry else payload[:0]
            position, size = position + len(piece), min(2 * size, _PIECE)
            part = stream.decompress(piece, missing or _PIECE)
            if is_hungry and not part and not piece and not stream.eof:
                got = f"a stream cut off after {n_bytes - missing}"
                raise damaged(f"expected {n_bytes} bytes, got {got}")
            if missing:
                parts.append(part)
                missing -= len(part)
            else:  # the checksum is at the end of a stream, so the surplus is read too, and dropped
                n_surplus += len(part)
                check_drained(n_bytes, n_surplus)
        position -= len(stream.unused_data)
        if not goes_on(payload[position:]) or missing == 0:
            data = b"".join(parts)
            return Streams(data, len(data) + n_surplus, position)
