"""Compressed blocks under the name raw are an error where that can be told."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lz4.frame
import numcodecs.blosc as blosc_library
import numcodecs.zstd as zstd_library
import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError
from n5zarr.fast import kernel

LZ4_FRAME: Any = lz4.frame  # no types
HEADER = 12  # bytes, of two dimensions
STREAMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd_library.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lz4": lambda data: n5zarr.encode_block(np.frombuffer(data, "u1"), compression={"type": "lz4"})[
        8:
    ],
    "lz4 frame": LZ4_FRAME.compress,
    "blosc": lambda data: blosc_library.compress(data, b"zstd", 5),
    "blosc copied": lambda data: blosc_library.compress(data, b"lz4", 0),
}
WAYS = ["kernel", "python", "F", "zarr", "portable", "n5", "v2"]


CASES = list(itertools.product(["longer", "shorter", "the same"], STREAMS))
CASES.remove(("shorter", "blosc copied"))


@pytest.fixture(params=["small", "large"])
def block(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Write a raw dataset of blocks that are read as a whole, or of which parts are."""
    shape, chunks = ((23, 19), (17, 11)) if request.param == "small" else ((530, 311), (512, 300))
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=shape, chunks=chunks, dtype="u2", compression=None
    )
    array[...] = 1
    return tmp_path / "c.n5" / "a" / "0" / "0"


def opened(root: Path, way: str) -> Any:
    if way in ("kernel", "python"):
        return n5zarr.open(root, path="a")
    if way == "F":
        return n5zarr.open(root, path="a", axis_order="F")
    codecs, zarr_format = ("zarr", 2) if way == "v2" else (way, 3)
    store = N5Store(root, codecs=codecs, zarr_format=zarr_format)  # type: ignore[arg-type]
    return zarr.open_array(store, path="a", mode="r")


def parts(array: Any) -> list[Any]:
    """Return parts of the first block."""
    n, m = array.chunks
    return [np.s_[:n, :m], np.s_[0, :m], np.s_[1, 1:3], np.s_[2:3, 0], np.s_[:n, 1]]


@pytest.mark.each_of(7)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("length", "stream"), CASES)
def test_a_stream_under_the_name_raw(
    block: Path, length: str, stream: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "can_do", kernel.can_do if way == "kernel" else lambda _: False)
    stored = block.read_bytes()
    n_bytes = len(stored) - HEADER
    data = np.random.default_rng(3).bytes(n_bytes + 100)
    payload = STREAMS[stream](bytes(n_bytes) if length == "shorter" else data)
    payload = payload[:n_bytes] if length == "the same" else payload
    block.write_bytes(stored[:HEADER] + payload)
    root = block.parents[2]
    array = opened(root, way)
    name = stream.partition(" ")[0]
    for where in parts(array):
        if length == "the same":
            elements = np.frombuffer(payload, ">u2").reshape(opened(root, "kernel").chunks)
            elements = elements.T if way == "F" else elements
            np.testing.assert_array_equal(array[where], elements[where])
        else:
            with pytest.raises(N5BlockError, match=rf"'raw', got a {name} stream") as caught:
                array[where]
            assert caught.value.kind == "payload"
            assert "a: block 0/0" in str(caught.value)
    is_error = length != "the same"
    with pytest.raises(N5BlockError, match="raw") if is_error else nullcontext():
        n5zarr.read_block(root, "a", (0, 0))


@pytest.mark.parametrize("way", WAYS)
def test_bytes_after_raw_elements_are_ignored(
    block: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "can_do", kernel.can_do if way == "kernel" else lambda _: False)
    stored = block.read_bytes()
    n_bytes = len(stored) - HEADER
    for start in (b"", b"\x1f\x8b\x09", b"\x1f\x8b\x08\xff", b"BZh9", b"LZ4blo", b"\2\1\x21\2"):
        elements = (start + stored[HEADER:])[:n_bytes]
        for tail in (b"\0", b"\1\2\3\4", gzip.compress(b"tail")):
            block.write_bytes(stored[:HEADER] + elements + tail)
            array = opened(block.parents[2], way)
            shape = array.chunks[::-1] if way == "F" else array.chunks
            expected = np.frombuffer(elements, ">u2").reshape(shape)
            expected = expected.T if way == "F" else expected
            for where in parts(array):
                np.testing.assert_array_equal(array[where], expected[where])


def test_a_part_of_a_block_is_written_only_where_the_rest_can_be_read(block: Path) -> None:
    stored = block.read_bytes()
    mislabelled = stored[:HEADER] + gzip.compress(np.random.default_rng(3).bytes(len(stored)))
    block.write_bytes(mislabelled)
    array: Any = n5zarr.open(block.parents[2], path="a", mode="r+")
    with pytest.raises(N5BlockError, match="gzip stream"):
        array[1, 1:3] = 5
    assert block.read_bytes() == mislabelled


def test_text_is_text_whatever_it_begins_with(tmp_path: Path) -> None:
    text = ["BZh91AY&SY", "LZ4Block", "a"]
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(3,), chunks=(3,), dtype="string", compression=None
    )
    for k in range(2):
        array[...] = np.array(text[k:] + text[:k], object)
        assert opened(tmp_path / "c.n5", "kernel")[...].tolist() == text[k:] + text[:k]
