"""Small blocks of gzip are compressed without Python, at the levels of the codec."""

from __future__ import annotations

import struct
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import deflate
import numpy as np
import pytest

import n5zarr
from n5zarr.codecs.gzip import GzipCodec
from n5zarr.fast import kernel

pytestmark = pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")


@pytest.mark.parametrize("use_zlib", [False, True])
@pytest.mark.parametrize(("level", "of_library"), [(-1, 6), (0, 0), (1, 1), (6, 6), (9, 12)])
def test_small_blocks_do_not_need_the_codec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int, of_library: int, use_zlib: bool
) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError("the codec compresses")

    monkeypatch.setattr(GzipCodec, "compress", refuse)
    compression: Any = {"type": "gzip", "level": level, "useZlib": use_zlib}
    array = n5zarr.create_array(
        tmp_path / "a.n5",
        path="d",
        shape=(13, 11),
        chunks=(5, 7),
        dtype="u2",
        compression=compression,
    )
    values = (np.arange(143) % 9).astype("u2").reshape(13, 11)
    array[...] = values
    for y, x in product(range(3), range(2)):
        part = values[5 * y : 5 * y + 5, 7 * x : 7 * x + 7]
        packed = (tmp_path / f"a.n5/d/{x}/{y}").read_bytes()
        assert packed[:12] == struct.pack(">HHII", 0, 2, *part.shape[::-1])
        elements = part.astype(">u2").tobytes()
        assert zlib.decompress(packed[12:], 15 if use_zlib else 31) == elements
        by_library = deflate.zlib_compress if use_zlib else deflate.gzip_compress
        assert packed[12:] == by_library(elements, of_library)


def test_the_codec_chooses_how_larger_blocks_are_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[int]()
    compress = GzipCodec.compress

    def noted(codec: GzipCodec, data: Any, **others: Any) -> Any:
        sizes.append(memoryview(data).nbytes)
        return compress(codec, data, **others)

    monkeypatch.setattr(GzipCodec, "compress", noted)
    array = n5zarr.create_array(
        tmp_path / "a.n5", path="d", shape=(131, 127), chunks=(131, 127), dtype="u1",
        compression={"type": "gzip"},
    )  # fmt: skip
    array[...] = np.random.default_rng(7).integers(0, 255, (131, 127), "u1")
    assert sizes == [131 * 127]
