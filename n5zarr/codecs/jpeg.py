"""``jpeg``: one grayscale JPEG image, read only, uint8 only.

N5: ``{"type":"jpeg","quality":100,"dataType":"uint8"}``. The image is as wide as the block; the
other axes are stacked below each other. Java's scheme for 16 and more bits splits bytes into planes
and is consistent only for some shapes; n5zarr does not read it.
"""

from __future__ import annotations

import io

from n5zarr.codecs.buffers import BufferLike, damaged
from n5zarr.codecs.compression import Codec
from n5zarr.errors import N5MissingDependencyError, N5UnsupportedError
from n5zarr.format.compression import Jpeg
from n5zarr.format.lenient_json import JSON

_END_MARK = b"\xff\xd9"


class JpegCodec(Codec[Jpeg]):
    """JPEG, which is decoded to raw chunks."""

    passes = False  # no chunk is a JPEG image

    def compress(self, data: BufferLike, compression: Jpeg, item_size: int) -> BufferLike:
        """Raise: the compression is lossy."""
        raise _read_only()

    def decompress(self, payload: memoryview, n_bytes: int, compression: Jpeg) -> BufferLike:
        """Decode the image into its pixels, row by row."""
        return memoryview(_pixels(payload, n_bytes))[:n_bytes]

    def measure(self, payload: memoryview, n_bytes: int, compression: Jpeg) -> tuple[int, int]:
        """Count the pixels, and the bytes up to the last end mark."""
        image, mark, _ = bytes(payload).rpartition(_END_MARK)
        return len(_pixels(payload, n_bytes)), len(image + mark) or len(payload)

    def store(self, data: BufferLike, compression: Jpeg) -> BufferLike:
        """Return the data; the array is presented uncompressed."""
        return data

    def check_writable(self, compression: Jpeg) -> None:
        """Raise: the compression is lossy."""
        raise _read_only()

    def numcodec(self, compression: Jpeg) -> dict[str, JSON] | None:
        """Return None: Zarr has no such codec, so chunks are uncompressed."""
        return None


def _pixels(payload: memoryview, n_bytes: int) -> bytes:
    """Decode the image, unless it is far larger than ``n_bytes``."""
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - optional
    except ImportError as err:
        raise N5MissingDependencyError("pillow", "jpeg compression", "jpeg") from err
    try:
        with Image.open(io.BytesIO(payload), formats=["JPEG"]) as image:
            width, height = image.size
            if image.mode != "L" or width * height > 2 * n_bytes:
                got = f"{width} x {height} pixels of mode {image.mode}"
                raise damaged(f"expected a grayscale JPEG of {n_bytes} pixels, got {got}")
            pixels: bytes = image.tobytes()
            return pixels
    except UnidentifiedImageError as err:
        raise damaged(f"expected a JPEG image, got {bytes(payload[:8])!r}...") from err
    except (OSError, SyntaxError, Image.DecompressionBombError) as err:
        raise damaged(f"expected a JPEG image: {err}") from err


def _read_only() -> N5UnsupportedError:
    message = "compression: jpeg can only be read, since it loses data; use another one"
    return N5UnsupportedError(message, kind="compression")
