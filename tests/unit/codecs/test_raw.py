"""`raw` payloads are the elements."""

from __future__ import annotations

import pytest

from n5zarr.codecs import compress as payloads
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Raw

DATA = bytes(range(12))


def test_the_payload_is_the_data() -> None:
    assert payloads.codec_of(Raw()).compress(DATA, Raw(), 2) is DATA


def test_bytes_after_the_needed_ones_are_ignored() -> None:
    assert bytes(payloads.decompress(memoryview(DATA + b"junk"), 12, Raw())) == DATA


def test_too_few_bytes_are_an_error_at_every_length() -> None:
    for length in range(12):
        with pytest.raises(N5BlockError) as caught:
            payloads.decompress(memoryview(DATA)[:length], 12, Raw())
        assert caught.value.kind == "payload"
        assert "expected 12 bytes" in str(caught.value)


@pytest.mark.parametrize(("length", "usable"), [(11, None), (12, 12), (13, 12), (0, None)])
def test_only_the_needed_bytes_are_usable(length: int, usable: int | None) -> None:
    assert payloads.codec_of(Raw()).usable(memoryview(bytes(length)), 12, Raw()) == usable
