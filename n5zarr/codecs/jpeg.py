"""``jpeg``: one grayscale JPEG image, read only, uint8 only.

N5: ``{"type":"jpeg","quality":100,"dataType":"uint8"}``. The image is as wide as the block, all
other axes stand below each other. Java's scheme for 16 and more bits splits bytes into planes and
is consistent only for some shapes; it is not read here.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from n5zarr.codecs.buffers import damaged
from n5zarr.errors import N5MissingDependencyError, N5UnsupportedError

if TYPE_CHECKING:
    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.compression import Jpeg


def compress(data: BufferLike, compression: Jpeg, item_size: int) -> BufferLike:
    """Refuse: lossy."""
    message = "compression type 'jpeg': reading only, it loses data; use another compression"
    raise N5UnsupportedError(message, kind="compression")


def decompress(payload: memoryview, n_bytes: int, compression: Jpeg) -> BufferLike:
    """Decode the image into its pixels, row by row."""
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
            return memoryview(image.tobytes())[:n_bytes]
    except UnidentifiedImageError as err:
        raise damaged(f"expected a JPEG image, got {bytes(payload[:8])!r}...") from err
    except (OSError, SyntaxError, Image.DecompressionBombError) as err:
        raise damaged(f"expected a JPEG image: {err}") from err


def usable(payload: memoryview, n_bytes: int) -> int | None:
    """Never: Zarr has no such codec."""
    return None


def store(data: BufferLike) -> BufferLike:
    """Return the data; the array is presented uncompressed."""
    return data
