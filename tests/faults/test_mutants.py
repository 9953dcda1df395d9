"""Each byte that describes a payload is changed: all ways of reading agree, and with an oracle."""

from __future__ import annotations

import itertools
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError
from n5zarr.fast import kernel
from tests.contract.test_kernel import name
from tests.fuzz.blocks import WAYS, Blocks
from tests.fuzz.seeds import COMPRESSIONS, make_larger

SHAPE = (31, 67)  # one block
N_OTHERS = 60  # mutants at places that a seed chooses
EACH = 1 if os.environ.get("N5ZARR_ALL") else 3  # each n-th mutant
HEADER = 12  # bytes, of two dimensions
PART = 4 * WAYS.index("part")


def mutants(block: bytes, n_head: int) -> Iterator[bytes]:
    """Yield blocks with each byte of the description changed, some others, and other lengths."""
    rng = np.random.default_rng(len(block))
    n = len(block) - HEADER
    flips = [1 << k | 1 << m for k in range(8) for m in range(k + 1)]  # of one bit, or of two
    head = [*itertools.product(range(min(n_head, 4)), flips)]
    head += itertools.product(range(4, min(n_head, n)), (1, 2, 4, 8, 16, 32, 64, 128))
    others = zip(rng.integers(0, n, N_OTHERS), rng.integers(1, 256, N_OTHERS), strict=True)
    for position, flipped in [*head, *others]:
        mutant = bytearray(block)
        mutant[HEADER + int(position)] ^= int(flipped)
        yield bytes(mutant)
    for cut in {*range(20), *rng.integers(0, n, 10).tolist(), n - 1, n - 4, n - 9}:
        yield block[: HEADER + max(cut, 0)]
    for tail in (b"\0", b"\0" * 700, b"tail", block[HEADER:], block[HEADER:] * 2, block):
        yield block + tail
    yield block[:HEADER] + block[HEADER : HEADER + n // 2] + bytes(n - n // 2)  # half written


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Blocks:
    return Blocks(tmp_path_factory.mktemp("mutants"), make_larger)


@pytest.mark.each_of(5)
@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
@pytest.mark.parametrize("k", range(len(COMPRESSIONS)), ids=[*map(name, COMPRESSIONS)])
def test_every_way_agrees(blocks: Blocks, k: int) -> None:
    """The kernel, Python and a part of a block agree with an independent decoder."""
    seed = blocks.seeds[k]
    position, block = next(iter(seed.blocks.items()))
    kind = COMPRESSIONS[k]["type"]
    n_head = 0 if kind == "raw" else 20
    if kind == "blosc":
        n_all, size = struct.unpack_from("<II", block, HEADER + 4)
        n_head = 16 + 4 * -(-n_all // size)
    n_refused = 0
    for number, data in enumerate([block, *[*mutants(block, n_head)][::EACH]]):
        case = blocks._case(seed, position, data, random.Random(number))  # noqa: S311 - a part
        assert blocks.run(case, PART) == [], number
        assert number or case.target[-1] is not None
        n_refused += case.target[-1] is None
    assert n_refused


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
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=SHAPE, chunks=SHAPE, dtype="u2",
        compression={"type": "blosc", "cname": "lz4", "shuffle": 0},
    )  # fmt: skip
    array[...] = 1
    path = tmp_path / "c.n5" / "a" / "0" / "0"
    header = path.read_bytes()[:HEADER]
    path.write_bytes(header + crafted(n, 1280, {}))
    assert not array[...].any()
    path.write_bytes(header + crafted(n, size, starts))
    for where in (..., 0, np.s_[13:17, 3:11], np.s_[30, 66]):
        with pytest.raises(N5BlockError, match="blosc"):
            array[where]
    plain: Any = zarr.open_array(N5Store(tmp_path / "c.n5"), path="a", mode="r")
    with pytest.raises((N5BlockError, RuntimeError), match="blosc"):
        plain[...]
