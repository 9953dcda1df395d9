"""All ways of reading damaged payloads agree: on the numbers, or on an error."""

from __future__ import annotations

import itertools
import os
import struct
from typing import TYPE_CHECKING, Any

import numcodecs.blosc as library
import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Error, N5Store
from n5zarr.errors import N5BlockError
from n5zarr.fast import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHAPE = (31, 67)  # one block
N_OTHERS = 60  # mutants at places that a seed chooses
EACH = 1 if os.environ.get("N5ZARR_ALL") else 3  # each n-th mutant
PARTS: list[Any] = [np.s_[0], np.s_[13:17, 3:11], np.s_[30, 66]]
COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip"},
    {"type": "gzip", "level": 0},
    {"type": "gzip", "useZlib": True},
    {"type": "zstd"},
    {"type": "bzip2"},
    {"type": "xz"},
    {"type": "lz4"},
]
CNAMES = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
HEADER = 4 + 4 * len(SHAPE)
FLAGS = 2  # the byte of a blosc header


def values(dtype: str) -> np.ndarray[Any, Any]:
    """Return values of which some are compressed and some are not."""
    rng = np.random.default_rng(7)
    found = rng.integers(0, 5, SHAPE) * (rng.random(SHAPE) < 0.3)
    found[12:16] = rng.integers(0, 100, (4, SHAPE[1]))
    return found.astype(dtype)


def mutants(block: bytes, n_head: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Yield payloads with each byte of the description changed, some others, and lengths.

    The byte of the payload that was changed comes with it, or its length.
    """
    rng = np.random.default_rng(seed)
    n = len(block) - HEADER
    flips = [1 << k | 1 << m for k in range(8) for m in range(k + 1)]  # of one bit, or of two
    head = [*itertools.product(range(min(n_head, 4)), flips)]
    head += itertools.product(range(4, min(n_head, n)), (1, 2, 4, 8, 16, 32, 64, 128))
    others = zip(rng.integers(0, n, N_OTHERS), rng.integers(1, 256, N_OTHERS), strict=True)
    for position, flipped in [*head, *others]:
        mutant = bytearray(block)
        mutant[HEADER + int(position)] ^= int(flipped)
        yield int(position), bytes(mutant)
    for cut in {*range(20), *rng.integers(0, n, 10).tolist(), n - 1, n - 4, n - 9}:
        yield n, block[: HEADER + max(cut, 0)]
    for tail in (b"\0", b"\0" * 700, b"tail", block[HEADER:], block[HEADER:] * 2, block):
        yield n, block + tail
    yield n, block[:HEADER] + block[HEADER : HEADER + n // 2] + bytes(n - n // 2)  # half written


def outcome(array: Any, where: Any = ...) -> np.ndarray[Any, Any] | None:
    try:
        return np.asarray(array[where])
    except N5Error:
        return None


def check(root: Path, dtype: str, compression: dict[str, Any], block: bytes, n_head: int) -> None:
    """Compare, for every mutant, the kernel, Python, and parts with the whole."""
    path = root / "c.n5" / "a" / "0" / "0"
    array: Any = n5zarr.open(root / "c.n5", path="a")
    original = values(dtype)
    path.write_bytes(block)
    np.testing.assert_array_equal(array[...], original)
    n_raised = 0
    chosen = itertools.islice(mutants(block, n_head, seed=len(block)), 0, None, EACH)
    for k, (position, mutant) in enumerate(chosen):
        path.write_bytes(mutant)
        whole = outcome(array)
        parts = [outcome(array, where) for where in PARTS]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "can_do", lambda dataset: False)
            by_python = outcome(array)
        assert (whole is None) == (by_python is None), (k, mutant[HEADER:][:40])
        n_raised += whole is None
        for where, part in zip((..., *PARTS), (by_python, *parts), strict=True):
            if whole is not None:
                np.testing.assert_array_equal(part, whole[where], f"{k} {where}")
            elif part is not None:
                # of blosc only what is asked for is decoded, and the damage is elsewhere, or how
                # streams are compressed, of which one is not
                assert compression["type"] == "blosc", (k, where)
                assert position >= n_head or position == FLAGS, (k, position)
                np.testing.assert_array_equal(part, original[where], f"{k} {where}")
    assert n_raised


def crafted(n: int, size: int, starts: dict[int, int]) -> bytes:
    """Make a blosc buffer of 2-byte items without compression, by c-blosc's README_HEADER.

    ``starts`` has blocks whose entry of the table is that of another one.
    """
    n_blocks = -(-n // size)
    table, streams = [], b""
    for k in range(n_blocks):
        table.append(16 + 4 * n_blocks + len(streams))
        n_streams, n_block = (2, size) if k < n_blocks - 1 else (1, n - k * size)
        stream = bytes(n_block // n_streams)
        streams += (struct.pack("<I", len(stream)) + stream) * n_streams
    table = [table[starts.get(k, k)] for k in range(n_blocks)]
    body = struct.pack(f"<{n_blocks}I", *table) + streams
    return struct.pack("<BBBBIII", 2, 1, 0x20, 2, n, size, 16 + len(body)) + body


@pytest.mark.parametrize(
    ("size", "starts"),
    [
        pytest.param(1281, {}, id="blocks that two streams cannot fill"),
        pytest.param(1280, {3: 0}, id="the last block, a shorter one, at the place of the first"),
    ],
)
def test_a_blosc_buffer_that_c_blosc_does_not_write(
    tmp_path: Path, size: int, starts: dict[int, int]
) -> None:
    """A blosc buffer with missing streams is an error, where numcodecs returns its own memory."""
    n = 2 * SHAPE[0] * SHAPE[1]
    block = made(tmp_path, "u2", {"type": "blosc", "cname": "lz4", "shuffle": 0})[:HEADER]
    path = tmp_path / "c.n5" / "a" / "0" / "0"
    array: Any = n5zarr.open(tmp_path / "c.n5", path="a")
    path.write_bytes(block + crafted(n, 1280, {}))
    assert not array[...].any()
    path.write_bytes(block + crafted(n, size, starts))
    for where in (..., *PARTS):
        with pytest.raises(N5BlockError, match="blosc"):
            array[where]
    plain: Any = zarr.open_array(N5Store(tmp_path / "c.n5"), path="a", mode="r")
    with pytest.raises((N5BlockError, RuntimeError), match="blosc"):
        plain[...]


def made(root: Path, dtype: str, compression: dict[str, Any]) -> bytes:
    array: Any = n5zarr.create_array(
        root / "c.n5", path="a", shape=SHAPE, chunks=SHAPE, dtype=dtype, compression=compression
    )
    array[...] = values(dtype)
    return (root / "c.n5" / "a" / "0" / "0").read_bytes()


@pytest.mark.each_of(5)
@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda c: "-".join(map(str, c.values())))
def test_every_way_agrees(tmp_path: Path, compression: dict[str, Any]) -> None:
    block = made(tmp_path, "u2", compression)
    check(tmp_path, "u2", compression, block, n_head=20 if compression["type"] != "raw" else 0)


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
@pytest.mark.each_of(11)
@pytest.mark.parametrize(("shuffle", "dtype"), [(0, "u2"), (1, "u1"), (1, "f4"), (2, "i8")])
@pytest.mark.parametrize("cname", CNAMES)
def test_every_way_agrees_on_blosc(tmp_path: Path, cname: str, shuffle: int, dtype: str) -> None:
    compression = {"type": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle}
    block = made(tmp_path, dtype, compression)
    payload = values(dtype).astype(values(dtype).dtype.newbyteorder(">")).tobytes()
    item = values(dtype).itemsize
    for block_size in (0, 640 * item):  # one blosc block, and several
        packed = library.compress(payload, cname.encode(), 5, shuffle, block_size, item)
        n_blocks = -(-len(payload) // int.from_bytes(packed[8:12], "little"))
        n_head = 16 + 4 * n_blocks
        check(tmp_path, dtype, compression, block[:HEADER] + packed, n_head)
