"""``raw``: the payload is the elements themselves.

Java ignores bytes after the elements, such as a checksum. Deviation: a payload whose length differs
from that in the header and that begins like a compressed stream is an error: a codec that the
document does not name compressed it. A payload of the right length is read as the elements.
"""

from __future__ import annotations

import re

from n5zarr.codecs.blosc import announced_lengths
from n5zarr.codecs.buffers import BufferLike, damaged
from n5zarr.codecs.compression import Codec
from n5zarr.format.compression import Raw
from n5zarr.format.lenient_json import JSON

_BEGINNINGS = {
    "gzip": rb"\x1f\x8b\x08[\x00-\x1f]",
    "zstd": rb"\x28\xb5\x2f\xfd",
    "bzip2": rb"BZh[1-9]1AY&SY",
    "xz": rb"\xfd7zXZ\0",
    "lz4": rb"LZ4Block|\x04\x22\x4d\x18",
}
_BEGINNING = re.compile(b"|".join(b"(?P<%b>%b)" % (k.encode(), v) for k, v in _BEGINNINGS.items()))


class RawCodec(Codec[Raw]):
    """No compression: payload and stream are the elements."""

    judges_ends = True  # only the length and the beginning matter

    def compress(self, data: BufferLike, compression: Raw, item_size: int) -> BufferLike:
        """Return the data."""
        return data

    def decompress(self, payload: memoryview, n_bytes: int, compression: Raw) -> BufferLike:
        """Return the first ``n_bytes``."""
        _check(payload, n_bytes)
        return payload[:n_bytes]

    def measure(self, payload: memoryview, n_bytes: int, compression: Raw) -> tuple[int, int]:
        """Return the length of the payload."""
        _check(payload, n_bytes)
        return len(payload), len(payload)

    def usable(self, payload: memoryview, n_bytes: int, compression: Raw) -> int | None:
        """Return ``n_bytes`` unless the payload is shorter."""
        _check(payload, n_bytes)
        return n_bytes if len(payload) >= n_bytes else None

    def seems_usable(
        self, start: memoryview, size: int, n_bytes: int, compression: Raw
    ) -> int | None:
        """Return ``n_bytes`` if the payload has that length."""
        return n_bytes if size == n_bytes else None

    def store(self, data: BufferLike, compression: Raw) -> BufferLike:
        """Return the data."""
        return data

    def numcodec(self, compression: Raw) -> dict[str, JSON] | None:
        """Return None: Zarr has no codec for it."""
        return None

    def detects_incomplete(self, compression: Raw) -> bool:
        """Return True: the length of the payload is known."""
        return True


def _check(payload: memoryview, n_bytes: int) -> None:
    """Raise if the length of the payload is not ``n_bytes`` because it is compressed."""
    name = None if len(payload) == n_bytes else _stream(payload, n_bytes)
    if name is not None:
        raise damaged(
            f"expected {n_bytes} bytes, as compression is 'raw', got a {name} stream of "
            f"{len(payload)}; another program wrote or mislabelled it: correct the compression in "
            "attributes.json, or read the block with the program that wrote it"
        )


def _stream(payload: memoryview, n_bytes: int) -> str | None:
    """Return the name of the payload's compression; None if it does not look compressed."""
    beginning = _BEGINNING.match(payload)
    if beginning:
        return beginning.lastgroup
    before, after = announced_lengths(payload)  # blosc has no magic, but its header has lengths
    return "blosc" if after == len(payload) and before >= n_bytes else None
