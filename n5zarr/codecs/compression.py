"""Define the interface of a codec: one compression of N5, its payloads, its codec in Zarr.

docs/design/recipes.md lists the steps to add a compression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from n5zarr.codecs.buffers import BufferLike, Scratch
from n5zarr.errors import N5BlockError
from n5zarr.format.lenient_json import JSON


class Codec[C](Protocol):
    """One compression; ``C`` is the dataclass of `n5zarr.format.compression` that describes it.

    Every codec defines `compress`, `decompress`, `numcodec` and `store`; they are
    abstract. The other methods have a default, right for a compression whose payload
    is a stream of Zarr's codec. Without a codec in Zarr the array is presented uncompressed:
    `numcodec` returns None, `passes` is False, `store` its data; `codecs/jpeg.py` is an example.

    `payload` means the bytes of a block after its header, `stream` the bytes that Zarr's codec
    reads and writes.

    Attributes
    ----------
    passes : bool
        Whether each stream of Zarr's codec is a valid payload, so that chunks are stored unchanged.
        Concerns writing only; :meth:`usable` tells whether a stored payload is such a stream.
    judges_ends : bool
        Whether :meth:`usable` reads the first and last 4096 bytes only.
    """

    passes: bool = True
    judges_ends: bool = False

    # ------------------------------------------------------------------ payloads

    @abstractmethod
    def compress(self, data: BufferLike, compression: C, item_size: int) -> BufferLike:
        """Compress the elements of a block into a payload.

        Parameters
        ----------
        data : bytes-like
            Elements, big-endian, first axis of N5 order fastest.
        compression : Compression
            Of the dataset.
        item_size : int
            Bytes per element, for shuffling.

        Returns
        -------
        bytes-like
            The payload. ``raw`` returns ``data`` itself.

        Raises
        ------
        N5UnsupportedError
            The compression can only be read (``kind="compression"``).
        N5MissingDependencyError
            An optional package is needed.
        """

    @abstractmethod
    def decompress(self, payload: memoryview, n_bytes: int, compression: C) -> BufferLike:
        """Decompress the first ``n_bytes`` bytes of a payload, or fewer if it has fewer.

        Raises N5BlockError if the payload is damaged. Never allocates much more than ``n_bytes``.
        Knows no size of elements: what it needs is in the payload or in ``compression``. Call it
        through :func:`n5zarr.codecs.compress.decompress`, which checks the number of bytes.
        """

    def measure(self, payload: memoryview, n_bytes: int, compression: C) -> tuple[int, int]:
        """Decode a payload as `decompress` does, and count the bytes that it ignores, too.

        Returns
        -------
        n_decoded, n_used : int
            Number of bytes to which the streams decode that hold the first ``n_bytes``, and number
            of bytes of the payload up to their end.
        """
        return len(self.decompress(payload, n_bytes, compression)), len(payload)

    def decompress_into(
        self, payload: memoryview, n_bytes: int, memory: Scratch
    ) -> memoryview | None:
        """Decompress a payload into reused memory.

        Return None if the codec does not support that, for any payload or for this one; then
        :meth:`decompress` decides whether the payload is damaged.
        """
        return None

    def framing(self, payload: memoryview, n_bytes: int) -> str | None:
        """Name the program that packs ``n_bytes`` bytes like this; None if all do so alike."""
        return None

    # ------------------------------------------------------------------ parameters

    def check_writable(self, compression: C) -> None:
        """Raise N5UnsupportedError if blocks can only be read (``kind="compression"``)."""
        return

    def within_limits(self, compression: C, item_size: int) -> C:
        """Bring parameters into the range that every N5 reader accepts, with the same meaning.

        A document may have zstd levels that the library clamps, and blosc's shuffle -1, which
        depends on ``item_size``, the bytes per element. tensorstore refuses both.
        """
        return compression

    def within_zarr_limits(self, compression: C) -> C:
        """Bring parameters that are within the limits of N5 into the range that Zarr accepts."""
        return compression

    # ------------------------------------------------------------------ the codec of Zarr

    @abstractmethod
    def numcodec(self, compression: C) -> dict[str, JSON] | None:
        """Return the configuration of numcodecs' codec, with ``id``.

        None for ``raw``, and for a compression without a codec in Zarr.
        """

    def zarr_codec(self, compression: C) -> tuple[str, Mapping[str, JSON]] | None:
        """Return name and configuration of the codec in a ``zarr.json``; None as in `numcodec`.

        For a compression that Zarr v3 does not specify, the name is that of numcodecs' codec.
        """
        configuration = self.numcodec(compression)
        if configuration is None:
            return None
        return f"numcodecs.{configuration.pop('id')}", configuration

    def from_zarr(self, codec: str, configuration: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Return the ``compression`` nearest to a codec of Zarr, one of those listed for it.

        `n5zarr.codecs.compress` lists them. ``codec`` is the name in a ``zarr.json`` without
        ``numcodecs.``, or numcodecs' ``id``. A compression without such a codec is never asked.
        """
        return {}

    # ------------------------------------------------------------------ payloads as streams

    def usable(self, payload: memoryview, n_bytes: int, compression: C) -> int | None:
        """Count the leading bytes of a payload that are a stream which decodes to ``n_bytes``.

        Raises N5BlockError for damage that shows without decompressing. None if the payload is no
        such stream: then the block has to be decoded to make the chunk.
        """
        return None

    def is_bounded(self, payload: memoryview, n_bytes: int, compression: C) -> bool | None:
        """Whether other decoders expand a stream to at most little more than ``n_bytes``.

        Does not decompress; None if only decompressing answers this.

        Parameters
        ----------
        payload : memoryview
            A stream that :meth:`usable` accepts.
        n_bytes : int
            Number of bytes that it should decode to.
        compression : Compression
            How it was compressed.
        """
        return True

    def decodes(self, payload: memoryview, n_bytes: int, compression: C) -> bool:
        """Whether a payload decodes to ``n_bytes`` and no more, by decompressing it."""
        try:
            return len(self.decompress(payload, n_bytes + 1, compression)) == n_bytes
        except N5BlockError:
            return False

    def seems_usable(
        self, start: memoryview, size: int, n_bytes: int, compression: C
    ) -> int | None:
        """Count as :meth:`usable` does, judged by the beginning of a payload.

        Parameters
        ----------
        start : memoryview
            The first 32 bytes of the payload, or all of a shorter one.
        size : int
            Length of the payload, in bytes.
        n_bytes : int
            Number of bytes that the payload must decode to.
        compression : Compression
            How it was compressed.

        Returns
        -------
        int or None
            None if the first bytes do not determine it. Later damage is not detected.
        """
        return None

    def detects_incomplete(self, compression: C) -> bool:
        """Whether :meth:`usable` notices that the end of a payload is missing.

        Examples
        --------
        >>> from n5zarr.codecs.compress import codec_of
        >>> from n5zarr.format.compression import Gzip
        >>> [codec_of(c).detects_incomplete(c) for c in (Gzip(), Gzip(use_zlib=True))]
        [True, False]
        """
        return False

    @abstractmethod
    def store(self, data: BufferLike, compression: C) -> BufferLike:
        """Return the stream that decodes to ``data`` and takes the least time to make."""
