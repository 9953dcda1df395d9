"""What the codec modules share: types, the error of a damaged payload, bounded stream reading.

Each codec module has four functions, found by name:

``compress(data, compression, item_size)``
    Bytes to payload, with the parameters of the compression.
``decompress(payload, n_bytes, compression)``
    Payload to its first ``n_bytes`` bytes, or fewer when there are no more; a damaged payload is an
    :class:`~n5zarr.errors.N5BlockError`. Never holds much more than ``n_bytes``.
``usable(payload, n_bytes)``
    How many leading bytes of the payload are a stream that Zarr's codec of the same compression
    decodes to ``n_bytes`` bytes, as far as can be told without decompressing; None where it is not.
``store(data)``
    The cheapest stream that Zarr's codec decodes to the data.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np

from n5zarr.errors import N5BlockError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "REUSED",
    "BufferLike",
    "Decompressor",
    "Scratch",
    "check_drained",
    "damaged",
    "max_unpacked",
    "read_streams",
    "scratch",
]

REUSED = 2**26  # bytes; larger blocks get memory of their own, which no thread keeps
_PIECE = 2**16  # bytes of surplus that are read at once

type BufferLike = bytes | bytearray | memoryview


class Decompressor(Protocol):
    """What :class:`bz2.BZ2Decompressor` and :class:`lzma.LZMADecompressor` have in common."""

    @property
    def eof(self) -> bool: ...  # noqa: D102
    @property
    def unused_data(self) -> bytes: ...  # noqa: D102
    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes: ...  # noqa: D102


class Scratch:
    """Memory for blocks that are handled one after the other: fresh memory costs page faults."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def bytes(self, n_bytes: int, purpose: str) -> memoryview:
        """Give the memory for a purpose; what the last call for it gave is overwritten."""
        buffer = self._buffers.get(purpose)
        if buffer is None or buffer.nbytes < n_bytes:
            buffer = self._buffers[purpose] = np.empty(n_bytes, "u1")
        return memoryview(buffer)[:n_bytes]


_of_thread = threading.local()


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Lend the memory of this thread until the end of the context.

    Nobody else gets it meanwhile: a signal handler or a finalizer that runs on the same thread in
    between works in memory of its own.
    """
    lent: Scratch = _of_thread.__dict__.pop("scratch", None) or Scratch()
    try:
        yield lent
    finally:
        _of_thread.scratch = lent


def damaged(what: str) -> N5BlockError:
    """Make the error for a payload that cannot be decoded."""
    return N5BlockError(f"block payload: {what}", kind="payload")


def max_unpacked(n_bytes: int) -> int:
    """Say how much a payload of ``n_bytes`` may decode to where it cannot be decoded in part."""
    return 2 * n_bytes + 2**20


def check_drained(n_bytes: int, n_surplus: int) -> None:
    """Stop reading what nobody needs."""
    if n_surplus > max_unpacked(n_bytes):
        raise damaged(f"expected {n_bytes} bytes, got more than {n_bytes + n_surplus}")


def read_streams(new: Callable[[], Decompressor], payload: memoryview, n_bytes: int) -> bytes:
    """Read from concatenated streams until there are ``n_bytes``, and to the end of the last one.

    Parameters
    ----------
    new : callable
        Makes a decompressor for one stream.
    payload : memoryview
        The streams; anything after the needed ones is ignored, as in Java.
    n_bytes : int
        How many bytes are needed, at least 1.

    Returns
    -------
    bytes
        At most ``n_bytes``.

    Raises
    ------
    N5BlockError
        The last stream needed is cut off, or its check does not match (``kind="payload"``), whether
        or not it holds more than is needed.
    """
    parts: list[bytes] = []
    missing = n_bytes
    rest = bytes(payload)
    while True:
        stream = new()
        part = stream.decompress(rest, missing)
        parts.append(part)
        missing -= len(part)
        # the check stands at the end of a stream, so the surplus is read too, and dropped
        n_surplus = 0
        while not stream.eof:
            surplus = stream.decompress(b"", _PIECE)
            if not surplus and not stream.eof:
                raise damaged(f"the stream is cut off after {n_bytes - missing} of {n_bytes} bytes")
            n_surplus += len(surplus)
            check_drained(n_bytes, n_surplus)
        rest = stream.unused_data
        if missing == 0 or not rest:
            return b"".join(parts)
