"""`jpeg` blocks are one grayscale image, and can only be read."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from n5zarr.codecs.single_block import decode_block, encode_block
from n5zarr.errors import N5BlockError, N5UnsupportedError
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Jpeg
from n5zarr.format.order import N5Tuple
from tests.refusals import refused
from tests.unit.codecs.streams import unpacked, usable

WIDTH, HEIGHT = 23, 35  # a block of x=23, y=5, z=7
PIXELS = (np.add.outer(np.arange(HEIGHT) * 3, np.arange(WIDTH) * 2) + 40).astype("u1")


def jpeg(pixels: np.ndarray, mode: str = "L", form: str = "JPEG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(stream, form, quality=100)
    return stream.getvalue()


def test_a_grayscale_image_is_read_within_the_loss_of_quality_100() -> None:
    read = np.frombuffer(unpacked(jpeg(PIXELS), Jpeg(), PIXELS.size), "u1")
    assert np.abs(read.astype(int) - PIXELS.ravel()).max() <= 2


def test_the_image_is_as_wide_as_the_block() -> None:
    header = BlockHeader(mode=BlockMode.DEFAULT, block_shape=N5Tuple((WIDTH, 5, 7)))
    block = header.to_bytes() + jpeg(PIXELS)
    array = decode_block(block, data_type="uint8", compression={"type": "jpeg"})
    assert array.shape == (7, 5, WIDTH)
    assert np.abs(array.astype(int) - PIXELS.reshape(7, 5, WIDTH)).max() <= 2


NO_GRAYSCALE = {
    **{mode: (jpeg(PIXELS, mode), PIXELS.size, f"got 23 x 35 pixels of mode {mode}")
       for mode in ("RGB", "CMYK")},
    "too-few-pixels": (jpeg(PIXELS), 1000, "expected 1000 bytes, got 805"),
    "far-too-many": (jpeg(PIXELS), 100, "expected a grayscale JPEG of 100 pixels, got 23 x 35"),
    "another-format": (jpeg(PIXELS, form="PNG"), PIXELS.size, "expected a JPEG image, got"),
}  # fmt: skip


@pytest.mark.parametrize(("image", "n", "message"), NO_GRAYSCALE.values(), ids=NO_GRAYSCALE)
def test_another_image_is_an_error(image: bytes, n: int, message: str) -> None:
    with refused(N5BlockError, "payload", message):
        unpacked(image, Jpeg(), n)


def test_an_image_cut_anywhere_gives_an_error_or_the_same_pixels() -> None:
    image = jpeg(PIXELS)
    whole = unpacked(image, Jpeg(), PIXELS.size)
    for length in range(1, len(image)):
        try:
            cut = unpacked(image[:length], Jpeg(), PIXELS.size)
            assert cut == whole, f"{length} of {len(image)} bytes"
        except N5BlockError:
            continue


def test_writing_is_refused_because_it_loses_data() -> None:
    with refused(N5UnsupportedError, "compression", "it loses data; use another"):
        encode_block(PIXELS, compression={"type": "jpeg"})


def test_no_image_is_usable() -> None:
    assert usable(jpeg(PIXELS), Jpeg(), PIXELS.size) is None
