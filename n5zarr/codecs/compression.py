"""Define what a codec provides: one compression of N5, its payloads, and its codec in Zarr.

To add a compression: a dataclass in `n5zarr.format.compression`, a module here with a class derived
from :class:`Codec`, and an entry in `n5zarr.codecs.compress`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.codecs.buffers import BufferLike, Scratch
    from n5zarr.format.lenient_json import JSON

__all__ = ["Codec"]


class Codec[C](Protocol):
    """One compression; ``C`` is the dataclass of `n5zarr.format.compression` that describes it.

    Methods with a body are defaults. `payload` means the bytes of a block after its header,
    `stream` the bytes that the codec of Zarr reads and writes.
    """

    # ------------------------------------------------------------------ payloads

    def compress(self, data: BufferLike, compression: C, item_size: int) -> BufferLike:
        """Compress the elements of a block into a payload; see :func:`compress.compress`."""

    def decompress(self, payload: memoryview, n_bytes: int, compression: C) -> BufferLike:
        """Decompress the first ``n_bytes`` bytes of a payload, or fewer if it has fewer.

        Raises N5BlockError if the payload is damaged. Never allocates much more than ``n_bytes``.
        """

    def decompress_into(
        self, payload: memoryview, n_bytes: int, memory: Scratch
    ) -> memoryview | None:
        """Decompress a payload into memory that is used again.

        Return None if the codec cannot do that at all, or not with this payload; then
        :meth:`decompress` decides whether the payload is damaged.
        """
        return None

    # ------------------------------------------------------------------ parameters

    def check_writable(self, compression: C) -> None:
        """Raise N5UnsupportedError if blocks can only be read."""
        return

    def within_limits(self, compression: C, item_size: int) -> C:
        """Bring parameters into the range that every N5 reader accepts; the meaning stays."""
        return compression

    def within_zarr_limits(self, compression: C) -> C:
        """Bring parameters that are within the limits of N5 into the range that Zarr accepts."""
        return compression

    # ------------------------------------------------------------------ the codec of Zarr

    def numcodec(self, compression: C) -> dict[str, JSON] | None:
        """Return the configuration of numcodecs' codec, with ``id``; None for no compression."""

    def zarr_codec(self, compression: C) -> tuple[str, Mapping[str, JSON]] | None:
        """Return name and configuration of the codec in a ``zarr.json``; None for no compression.

        By default the codec is numcodecs' own, for compressions that Zarr v3 does not specify.
        """
        configuration = self.numcodec(compression)
        if configuration is None:
            return None
        return f"numcodecs.{configuration.pop('id')}", configuration

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
        """Return the ``compression`` nearest to a codec of Zarr; None if this is not its codec.

        ``codec`` is the name in a ``zarr.json`` without ``numcodecs.``, or numcodecs' ``id``.
        """
        return None

    # ------------------------------------------------------------------ payloads as streams

    def passes(self, compression: C) -> bool:
        """Whether each stream of Zarr's codec is a payload, so that a chunk is stored as it is."""
        return True

    def usable(self, payload: memoryview, n_bytes: int, compression: C) -> int | None:
        """Count the leading bytes of a payload that are a stream which decodes to ``n_bytes``.

        Judged without decompressing. None if the payload is no such stream.
        """
        return None

    def detects_incomplete(self, compression: C) -> bool:
        """Whether :meth:`usable` notices that the end of a payload is missing."""
        return False

    def store(self, data: BufferLike, compression: C) -> BufferLike:
        """Return the stream that decodes to ``data`` and takes the least time to make."""
