"""`jpeg` blocks are one grayscale image, and can only be read."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.codecs.single_block import decode_block, encode_block
from n5zarr.errors import N5BlockError, N5UnsupportedError
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Jpeg
from n5zarr.format.order import N5Tuple

WIDTH, HEIGHT = 23, 35  # a block of x=23, y=5, z=7
PIXELS = (np.add.outer(np.arange(HEIGHT) * 3, np.arange(WIDTH) * 2) + 40).astype("u1")


def jpeg(pixels: np.ndarray, mode: str = "L") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(stream, "JPEG", quality=100)
    return stream.getvalue()


def test_a_grayscale_image_is_read_within_the_loss_of_quality_100() -> None:
    read = np.frombuffer(decompress(memoryview(jpeg(PIXELS)), PIXELS.size, Jpeg()), "u1")
    assert np.abs(read.astype(int) - PIXELS.ravel()).max() <= 2


def test_the_image_is_as_wide_as_the_block() -> None:
    header = BlockHeader(mode=BlockMode.DEFAULT, block_shape=N5Tuple((WIDTH, 5, 7)))
    block = header.to_bytes() + jpeg(PIXELS)
    array = decode_block(block, data_type="uint8", compression={"type": "jpeg"})
    assert array.shape == (7, 5, WIDTH)
    assert np.abs(array.astype(int) - PIXELS.reshape(7, 5, WIDTH)).max() <= 2


@pytest.mark.parametrize("mode", ["RGB", "CMYK"])
def test_a_colour_image_is_an_error(mode: str) -> None:
    with pytest.raises(N5BlockError, match=f"got 23 x 35 pixels of mode {mode}") as caught:
        decompress(memoryview(jpeg(PIXELS, mode)), PIXELS.size, Jpeg())
    assert caught.value.kind == "payload"


def test_an_image_of_too_few_pixels_is_an_error() -> None:
    with pytest.raises(N5BlockError, match="expected 1000 bytes, got 805"):
        decompress(memoryview(jpeg(PIXELS)), 1000, Jpeg())


def test_an_image_of_far_too_many_pixels_is_an_error() -> None:
    with pytest.raises(N5BlockError, match="expected a grayscale JPEG of 100 pixels, got 23 x 35"):
        decompress(memoryview(jpeg(PIXELS)), 100, Jpeg())


def test_an_image_of_another_format_is_an_error() -> None:
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, "PNG")
    with pytest.raises(N5BlockError, match="expected a JPEG image, got"):
        decompress(memoryview(stream.getvalue()), PIXELS.size, Jpeg())


def test_an_image_cut_anywhere_gives_an_error_or_the_same_pixels() -> None:
    image = jpeg(PIXELS)
    whole = bytes(decompress(memoryview(image), PIXELS.size, Jpeg()))
    for length in range(1, len(image)):
        try:
            cut = bytes(decompress(memoryview(image)[:length], PIXELS.size, Jpeg()))
        except N5BlockError:
            continue
        assert cut == whole, f"{length} of {len(image)} bytes"


def test_writing_is_refused_because_it_loses_data() -> None:
    with pytest.raises(N5UnsupportedError, match="it loses data; use another") as caught:
        encode_block(PIXELS, compression={"type": "jpeg"})
    assert caught.value.kind == "compression"


def test_no_image_is_usable() -> None:
    assert codec_of(Jpeg()).usable(memoryview(jpeg(PIXELS)), PIXELS.size, Jpeg()) is None
