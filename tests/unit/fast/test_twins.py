"""The kernel and Python judge blocks alike, function by function.

The codecs work without the kernel, so what is odd about a block is said twice. Each test here
compares one function of ``_kernel.c``, named in its docstring, with what Python says of the same
bytes: blocks of other encoders, changed at random, and such as no encoder makes.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import time
from array import array as packed
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numcodecs.blosc as c_blosc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from n5zarr import N5Store
from n5zarr.arrays.box import Box
from n5zarr.arrays.open_dataset import OpenDataset, dataset_at
from n5zarr.codecs import blosc, gzip, shard, zstd
from n5zarr.codecs.block import decode_full
from n5zarr.codecs.buffers import REUSED, Scratch
from n5zarr.codecs.compress import codec_of
from n5zarr.errors import N5BlockError
from n5zarr.fast import kernel, many_files
from n5zarr.fast.python_writing import BlockWriter
from n5zarr.format.block import MAX_ARRAY_NDIM, BlockHeader, BlockMode
from n5zarr.format.compression import Compression, Gzip, Raw, Zstd
from n5zarr.format.grid import block_extent
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.storage import files, locks, writing
from tests.fuzz.mutate import EDGES, damaged
from tests.shards import join
from tests.unit.arrays.blocks import block_bytes, numbers, path_of, write_dataset

if sys.version_info >= (3, 14):
    from compression import zstd as zstandard
else:
    from backports import zstd as zstandard

pytestmark = pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")

COMPRESSIONS = ("raw", "gzip", "zlib", "zstd", "blosc")
SHAPE, CHUNKS = (7, 23, 20), (5, 16, 13)  # C order
NO_VALUE: Any = None
SKIPPABLE = b"\x50\x2a\x4d\x18\3\0\0\0abc"  # a frame of zstd
RANDOM = st.randoms(use_true_random=True)  # of a seed that hypothesis chooses


def judged(data: bytes, n: int = 0) -> list[bool]:
    """Return whether bytes are a frame, a blosc buffer of n bytes, split, the end of a shard."""
    return [bool(each) for each in kernel._kernel.judge(data, n)]


class Seen:
    """Compares what the kernel and Python say; a test needs some of each answer."""

    def __init__(self) -> None:
        self.n = {True: 0, False: 0}

    def __call__(self, by_kernel: bool, by_python: bool, what: object) -> None:
        assert by_kernel is by_python, what
        self.n[by_kernel] += 1

    def check(self, least: int) -> None:
        assert min(self.n.values()) >= least, self.n


def mutants(rng: random.Random, originals: Sequence[bytes], n: int) -> Iterator[bytes]:
    for _ in range(n):
        yield damaged(rng, rng.choice(originals), originals)


def test_numbers() -> None:
    known = {
        "MAX_NDIM": MAX_ARRAY_NDIM,
        "RECENT": files._RECENT,
        "NO_HEADER": len(writing._NO_HEADER),
        "LAST": shard.LAST,
        "ENTRY": shard._ENTRY,
        "ZSTD_BLOCK": zstd._BLOCK,
        "BLOSC_HEADER": blosc._HEADER.size,
        "MAX_SPLITS": blosc._MAX_SPLITS,
        "MIN_STREAM": blosc._MIN_STREAM,
        "COPIED": blosc._COPIED,
        "NOT_SPLIT": blosc._NOT_SPLIT,
        "SNAPPY": blosc._FORMATS.index("snappy"),
        "ZSTANDARD": blosc._FORMATS.index("zstd"),
    }
    taken = {"RAW", "GZIP", "ZLIB", "ZSTD", "BLOSC", "OTHER", "ATOMIC", "DURABLE", "OVERWRITE"}
    taken |= {"MEAN", "MODE", "GROUP", "MAX_CELL", "MAX_SORTED", "UNIQUE"}
    found = {each: getattr(kernel._kernel, each) for each in dir(kernel._kernel) if each.isupper()}
    assert known.items() <= found.items()
    assert found.keys() - known.keys() - taken == {"MAX_BYTES", "MAX_WINDOW"}
    assert found["MAX_BYTES"] >= REUSED  # which `can_do` compares
    assert zstd._window(memoryview(bytes([0, found["MAX_WINDOW"]])), 0, None) == zstd._WINDOW
    assert files.is_unfinished(f"0.{'a' * 2 * found['UNIQUE']}.partial")


# ---------------------------------------------------------------------- payloads


def is_one_frame(payload: bytes) -> bool:
    """Say in Python what ``is_one_frame`` of the kernel says."""
    if len(payload) < 9 or int.from_bytes(payload[:4], "little") != zstd._MAGIC:
        return False
    try:
        return zstd._frame(memoryview(payload), 4).end == len(payload)
    except N5BlockError:
        return False


@cache
def made_frames() -> list[bytes]:
    parameter = zstandard.CompressionParameter
    rng = np.random.default_rng(1)
    found: list[bytes] = []
    for n in (1, 200, 300, 70_000, 140_000):
        data = rng.integers(0, 9, n, "u1").tobytes()
        found += [zstandard.compress(data), bytes(zstd.ZstdCodec().store(data, Zstd()))]
        for has_size, has_sum in product((0, 1), repeat=2):
            options: Any = {parameter.content_size_flag: has_size, parameter.checksum_flag: has_sum}
            found.append(zstandard.compress(data, options=options))
    return [*found, found[0] * 2, found[0] + SKIPPABLE, SKIPPABLE]


def crafted_frame(rng: random.Random) -> bytes:
    """Make a frame of any header and of blocks about as large as they may be."""
    descriptor = rng.choice((0, 4, 0x20, 0x40, 0x60, 0x80, 0xC0, 0xE0, rng.randrange(256)))
    window = rng.choice((0, 1, 7, 8, 63, 71, 72, 80, 135, 136, 137, 144, 255))
    is_single = descriptor >> 5 & 1
    sizes = (0, 1, 255, 256, 1024, 1152, 1920, 2048, 2**17 - 1, 2**17, 2**17 + 1, 245_760)
    announced = rng.choice((*sizes, 2**18, 2**18 + 1, 2**64 - 1))
    n_announced = (is_single, 2, 4, 8)[descriptor >> 6]
    announced = (announced - 256 * (n_announced == 2)) % 256**n_announced
    frame: bytes = struct.pack("<IB", zstd._MAGIC, descriptor) + bytes([window][is_single:])
    frame += bytes((0, 1, 2, 4)[descriptor & 3]) + announced.to_bytes(n_announced, "little")
    n_blocks = rng.choice((1, 1, 2, 3))
    for k in range(n_blocks):
        kind, size = rng.choice((0, 1, 1, 1, 2, 3)), rng.choice(sizes) % 2**21
        frame += ((k == n_blocks - 1) | kind << 1 | size << 3).to_bytes(3, "little")
        frame += b"\xff" * (1 if kind == 1 else size)
    return frame + bytes(rng.choice((0, 0, 4, 4, 3)))


@given(rng=RANDOM)
def test_a_frame_of_zstd(rng: random.Random) -> None:
    """``is_one_frame``."""
    frames = made_frames()
    assert all(judged(each)[0] for each in frames[:-3])
    seen = Seen()
    for each in [*frames, *mutants(rng, frames, 150), *(crafted_frame(rng) for _ in range(150))]:
        seen(judged(each)[0], is_one_frame(each), each[:40].hex())
    seen.check(30)


@cache
def made_buffers() -> list[bytes]:
    rng = np.random.default_rng(1)
    found = []
    for name, item, size in product(c_blosc.list_compressors(), (1, 2, 8), (0, 256, 2048)):
        data = rng.integers(0, 3, 5000).astype(f"u{item}")
        found.append(c_blosc.compress(data, name.encode(), 5, 1, size))
    return [*found, c_blosc.compress(rng.bytes(300), b"lz4", 5, 1)]  # copied


def crafted_buffer(rng: random.Random, n: int) -> bytes:
    """Make the header of a blosc buffer of about n bytes, and some bytes after it."""
    flags = rng.choice((0, 1, 2, 3, 16, 18)) | rng.randrange(8) << 5
    item = rng.choice((0, 1, 2, 3, 8, 15, 16, 17, 255))
    size = rng.choice((0, 127, 128, 255, 256, 257, 16 * 128 - 1, 16 * 128, 17 * 128, 2**32 - 1))
    rest = bytes(rng.choice((0, 1, n)))
    n_packed = rng.choice((16 + n, 16 + len(rest), 15, 16, 0, 17 + len(rest), 2**32 - 1))
    n_said = rng.choice((n, n, n, n + 1))
    return struct.pack("<BBBBIII", rng.randrange(4), 1, flags, item, n_said, size, n_packed) + rest


@given(rng=RANDOM)
def test_a_buffer_of_blosc(rng: random.Random) -> None:
    """``fits_blosc``, the header as ``unblosc`` reads it, and ``is_split``."""
    buffers = made_buffers()
    seen = Seen()
    crafted = [crafted_buffer(rng, 4096) for _ in range(400)]
    for each in [*buffers, b"", *mutants(rng, buffers, 150), *crafted]:
        n_bytes = rng.choice((blosc.announced_lengths(memoryview(each))[0], 4096))
        _, fits, is_split, _ = judged(each, n_bytes)
        try:
            expected = blosc._end_of_buffer(memoryview(each), n_bytes) is not None
        except N5BlockError:
            expected = False
        seen(fits, expected, (each[:16].hex(), n_bytes))
        if len(each) >= 16:
            item, size = each[3], int.from_bytes(each[8:12], "little")
            n_streams = blosc._n_streams(each[2], item, size)
            assert n_streams == (item if is_split else 1), each[:16].hex()
    seen.check(30)


@given(rng=RANDOM)
def test_the_end_of_a_shard(rng: random.Random) -> None:
    """``may_be_shard``."""
    seen = Seen()
    for _ in range(600):
        size = rng.choice((20, 21, 36, 1000, 2**32 + 5, 2**47))
        near = (size - 16, size - 20, size - 17, size - 21, *EDGES, 2**63, 2**64 - 1)
        offset, length = rng.choice((0, *near)) % 2**64, rng.choice(near) % 2**64
        if rng.random() < 0.5:  # so that they end together at the index
            length = (rng.choice(near) - offset) % 2**64
        end = rng.choice((struct.pack(f"{rng.choice('<>')}QQ", offset, length), b"\xff" * 16))
        end = rng.randbytes(20) + end + rng.choice((b"", rng.randbytes(4), b"\xff" * 4))
        end = damaged(rng, end, [end]) if rng.random() < 0.2 else end
        seen(judged(end, size)[3], shard.is_likely(end[-20:], size), (end[-20:].hex(), size))
    seen.check(30)


# ---------------------------------------------------------------------- blocks


def open_dataset(root: Path) -> OpenDataset:
    store = N5Store(root)
    found = store.run(dataset_at(store, "d", 3))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OpenDataset]:
    """Return a dataset for each compression, of blocks of 2080 bytes, and for other headers."""
    found = {}
    for compression in COMPRESSIONS:
        root = tmp_path_factory.mktemp(compression)
        write_dataset(root, numbers("u2", SHAPE), compression, CHUNKS)
        found[compression] = open_dataset(root)
    one, five = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("five")
    write_dataset(one, numbers("u2", (37,)), "gzip", (23,))
    write_dataset(five, numbers("u2", (3, 2, 4, 2, 3)), "raw", (2, 1, 3, 1, 2))
    return found | {"of one axis": open_dataset(one), "of five axes": open_dataset(five)}


@cache
def odd_blocks(block: bytes, small: bytes) -> list[bytes]:
    """Return what other programs may write in the place of a block: other blocks, and shards."""
    found = [block + block[16:], block + b"more", block + bytes(15) + b"\x20", join([block])]
    found += [block + SKIPPABLE, block[:16] + small[16:], small[:16] + block[16:]]
    found.append(block_bytes(numbers(shape=(1, 2, 3))))
    for place, order, checksum in product(("start", "end"), "<>", (True, False)):
        for header in (None, (3,), (3, 1)):
            options: Any = {"location": place, "order": order, "checksum": checksum}
            found.append(join([block, None, block[:99]], header=header, **options))
    return found


def changed_blocks(
    rng: random.Random, dataset: OpenDataset, n: int
) -> Iterator[tuple[N5Tuple, Path, bytes]]:
    """Yield places in the grid, their files, and what may be there instead of the block."""
    root = dataset.store.root
    assert root is not None
    chunk_shape, ndim = dataset.view.chunk_shape, dataset.view.ndim
    full, small = (path_of(root, (k,) * ndim).read_bytes() for k in (0, 1))
    others = [*(full[:n] for n in (7, 17, 20, 21)), full, *odd_blocks(full, small)]
    of_another_mode = block_bytes(numbers("u2", chunk_shape), mode=1)
    for k in range(n):
        place = tuple(rng.randrange(2) for _ in range(ndim))
        path = path_of(root, place)
        own, other = path.read_bytes(), rng.choice(others)
        change = damaged(rng, rng.choice((own, own, other)), [own, *others])
        position = N5Tuple(place[::-1])
        # as long as a raw block, with the end of a shard
        last = block_bytes(np.zeros(to_c(dataset.extent(position)), "u2"))[:-16]
        last += struct.pack(">QQ", 0, 18)
        stored = (own, of_another_mode, other, last, change, change, change, change)[k % 8]
        yield position, path, stored


def header_of(stored: bytes) -> BlockHeader | None:
    try:
        return BlockHeader.from_bytes(stored)
    except N5BlockError:
        return None


def fits_header(stored: bytes, dataset: OpenDataset, position: N5Tuple) -> bool:
    """Say in Python what ``parse_header`` of the kernel says."""
    header, sizes = header_of(stored), (dataset.view.dataset.block_size, dataset.extent(position))
    is_default = header is not None and header.mode is BlockMode.DEFAULT
    return header is not None and is_default and header.block_shape in sizes


def is_raw_block(stored: bytes, dataset: OpenDataset) -> bool:
    attributes, header = dataset.view.dataset, header_of(stored)
    return header is not None and shard._is_raw_block(
        header, len(stored), attributes.data_type, attributes.compression
    )


def may_be_shard(stored: bytes) -> bool:
    return shard.is_likely(stored[-shard.LAST :], len(stored))


def decodes_at_once(payload: memoryview, n_bytes: int, compression: Compression) -> bool:
    """Whether a payload is one stream of n bytes; bytes may follow those of zlib and blosc."""
    if isinstance(compression, Gzip):
        at_once = partial(gzip._at_once, n_bytes=n_bytes, use_zlib=compression.use_zlib)
        is_longer = not compression.use_zlib and at_once(payload[:-1]) is not None
        return at_once(payload) is not None and not is_longer
    if isinstance(compression, Zstd) and not is_one_frame(bytes(payload)):
        return False
    try:
        return codec_of(compression).decompress_into(payload, n_bytes, Scratch()) is not None
    except N5BlockError:
        return False


def is_ordinary(stored: bytes, dataset: OpenDataset, position: N5Tuple) -> bool:
    """Say in Python what ``decode_stored`` of the kernel says."""
    compression = dataset.view.dataset.compression
    if not fits_header(stored, dataset, position):
        return False
    if isinstance(compression, Raw):
        return is_raw_block(stored, dataset)
    header = BlockHeader.from_bytes(stored)
    payload, n_bytes = memoryview(stored)[header.n_bytes :], 2 * header.n_payload_elements
    return not may_be_shard(stored) and decodes_at_once(payload, n_bytes, compression)


def elements_of(stored: bytes, dataset: OpenDataset, position: N5Tuple) -> np.ndarray:
    """Decode a block in Python, and bring it to its size in the dataset."""
    attributes = dataset.view.dataset
    block = decode_full(
        memoryview(stored), attributes.block_size, attributes.data_type, attributes.compression
    )
    return block[tuple(map(slice, to_c(dataset.extent(position))))]


def part_at(position: N5Tuple, dataset: OpenDataset) -> tuple[slice, ...]:
    """Return the place of a block in the array."""
    sizes = zip(to_c(position), dataset.view.chunk_shape, dataset.view.shape, strict=True)
    return tuple(slice(p * n, min(p * n + n, end)) for p, n, end in sizes)


@given(rng=RANDOM)
def test_a_header(datasets: dict[str, OpenDataset], rng: random.Random) -> None:
    """``parse_header``, of raw blocks that are as long as their header says."""
    dataset, seen = datasets["raw"], Seen()
    put = kernel.putting(dataset, (0, 0, 0), np.zeros(SHAPE, "u2"), 0)
    for position, _, block in changed_blocks(rng, dataset, 160):
        header = header_of(block)
        n_bytes = 2 * header.n_payload_elements if header is not None else 0
        stored = block[:16] + bytes(min(n_bytes, 10_000))
        is_taken = put(position, memoryview(stored), Scratch())
        seen(is_taken, fits_header(stored, dataset, position), (position, block[:16].hex()))
    seen.check(3)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@given(rng=RANDOM)
def test_a_block_as_it_is_stored(
    datasets: dict[str, OpenDataset], compression: str, rng: random.Random
) -> None:
    """``decode_stored``: which blocks it takes, and what they hold."""
    dataset, memory, seen = datasets[compression], Scratch(), Seen()
    for position, path, stored in changed_blocks(rng, dataset, 80):
        out = np.full(SHAPE, 0xAAAA, "u2")
        expected = out.copy()
        # behind a block that is cut off is the rest of it, which must not matter
        behind = memoryview(stored + path.read_bytes()[len(stored) :])
        put = kernel.putting(dataset, (0, 0, 0), out, 0)
        is_taken = put(position, behind[: len(stored)], memory)
        seen(is_taken, is_ordinary(stored, dataset, position), (position, stored.hex()))
        if is_taken:
            expected[part_at(position, dataset)] = elements_of(stored, dataset, position)
        np.testing.assert_array_equal(out, expected)
    seen.check(3)


def wanted_of_block(box: Box, position: N5Tuple, sizes: tuple[int, ...]) -> list[list[int]]:
    """Return, along each axis, the numbers of the elements of a box that are in a block."""
    part, step = box.within(position, sizes), box.step or (1,) * len(sizes)
    each = zip(box.start, box.stop, step, part.start, part.stop, strict=True)
    return [
        [k for k, at in enumerate(range(*axis)) if low <= at < high] for *axis, low, high in each
    ]


@given(rng=RANDOM)
def test_what_is_wanted_of_a_block(rng: random.Random) -> None:
    """``find_part``: of a block that is missing, which is filled, and of one that is there."""
    seen = Seen()
    for _ in range(60):
        axes = range(rng.randint(1, 3))
        sizes, shape, step = (tuple(rng.randint(1, 5) for _ in axes) for _ in range(3))
        start, dimensions = (tuple(rng.randint(0, most) for _ in axes) for most in (9, 16))
        box = Box.from_shape(start, shape, step)
        position = N5Tuple(tuple(rng.choice(each) for each in box.places(sizes)))
        wanted = wanted_of_block(box, position, sizes)
        inner = [
            [begin + k * by - place * n for k in ks]
            for begin, ks, by, place, n in zip(start, wanted, step, position, sizes, strict=True)
        ]
        extent = block_extent(N5Tuple(dimensions), N5Tuple(sizes), position)
        is_inside = all(ks[-1] < n for ks, n in zip(inner, extent, strict=True))
        block = numbers("u2", sizes[::-1])
        geometry = packed("q", (*sizes, *dimensions, *start, *step))
        for stored in (None, block_bytes(block)):
            out, expected = np.zeros(shape, "u2"), np.zeros(shape, "u2")
            is_taken = kernel._kernel.put_block(
                geometry, out, kernel._kernel.RAW, b"\0\1", sys.byteorder == "little", position,
                stored, bytearray(), None,
            )  # fmt: skip
            seen(is_taken, is_inside, (geometry, position))
            if is_inside:
                values = np.ones(sizes, "u2") if stored is None else block.T
                expected[np.ix_(*wanted)] = values[np.ix_(*inner)]
            np.testing.assert_array_equal(out, expected, str((geometry, position)))
    seen.check(10)


@given(rng=RANDOM)
def test_which_blocks_a_box_wants(rng: random.Random) -> None:
    """``find_part`` finds nothing in others."""
    for _ in range(20):
        axes = range(rng.randint(1, 3))
        sizes, shape, step = (tuple(rng.randint(1, 5) for _ in axes) for _ in range(3))
        start = tuple(rng.randint(0, 9) for _ in axes)
        box = Box.from_shape(start, shape, step)
        places = set(product(*box.places(sizes)))
        for _ in range(20):
            position = tuple(rng.randint(0, 30 // n) for n in sizes)
            arguments = (
                packed("q", (*sizes, *(50 for _ in axes), *start, *step)), np.zeros(shape, "u2"),
                kernel._kernel.RAW, b"\0\1", False, position, None, bytearray(), None,
            )  # fmt: skip
            if position in places:
                assert kernel._kernel.put_block(*arguments)
            else:
                with pytest.raises(ValueError, match="position"):
                    kernel._kernel.put_block(*arguments)


# ---------------------------------------------------------------------- files


def write_old(path: Path, stored: bytes) -> None:
    """Write a file whose time tells of later changes."""
    path.write_bytes(stored)
    os.utime(path, (1.7e9, 1.7e9))


@pytest.fixture(scope="module", params=[((3, 7, 11), (2, 5, 6)), ((7, 210, 201), (6, 203, 170))])
def raw_dataset(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> OpenDataset:
    """Return a dataset of small, or of large raw blocks, of which some rows are read at a time."""
    shape, chunks = request.param
    root = tmp_path_factory.mktemp("raw")
    write_dataset(root, numbers("u2", shape), "raw", chunks)
    return open_dataset(root)


@given(rng=RANDOM)
def test_parts_of_a_raw_file(raw_dataset: OpenDataset, rng: random.Random) -> None:
    """``read_raw``."""
    dataset, seen = raw_dataset, Seen()
    for position, path, stored in changed_blocks(rng, dataset, 24):
        before, block = path.read_bytes(), part_at(position, dataset)
        begins = [rng.randrange(each.start, each.stop) for each in block]
        ends = [rng.randint(k + 1, each.stop) for k, each in zip(begins, block, strict=True)]
        if rng.random() < 0.3:
            begins, ends = ([getattr(each, end) for each in block] for end in ("start", "stop"))
        out = np.full(np.subtract(ends, begins), 0xAAAA, "u2")
        write_old(path, stored)
        left = kernel.read_box(dataset, tuple(begins), out, 0)
        write_old(path, before)
        seen(not left, is_ordinary(stored, dataset, position), (position, stored[:40].hex()))
        if not left:
            found = np.zeros(dataset.view.shape, "u2")
            found[block] = elements_of(stored, dataset, position)
            np.testing.assert_array_equal(out, found[tuple(map(slice, begins, ends))])
    seen.check(3)


@pytest.mark.parametrize("milliseconds", [0, 9, 30, 990, 1010, 3000, 10**11])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_file_that_may_be_written_now(
    datasets: dict[str, OpenDataset], monkeypatch: pytest.MonkeyPatch, milliseconds: int, sign: int
) -> None:
    """``settle``: a file as new as the clock's ticks is read under a lock, left if it is locked."""
    dataset, locked = datasets["raw"], []
    path = Path(dataset.directory, "0/0/0")

    def reading(*arguments: Any) -> Any:
        locked.append(arguments)
        return locks.reading(*arguments)

    def is_left() -> bool:
        return kernel.read_box(dataset, (0, 0, 0), np.zeros(CHUNKS, "u2"), 0) == [(0, 0, 0)]

    monkeypatch.setattr(files, "reading", reading)
    for _ in range(100):  # until the time does not become recent, nor old, meanwhile
        begin, found = time.time_ns(), []
        written = begin + sign * milliseconds * 10**6
        os.utime(path, ns=(written, written))
        locked.clear()
        files.read(path)
        found = [bool(locked)]  # in Python
        found.append(
            many_files.read_ends(dataset.directory, [N5Tuple((0, 0, 0))], 20, 20) == [None]
        )
        assert not is_left()
        with locks.HeldFile(path, files.UPDATE) as held, locks.writing(held, path, pytest.fail):
            found.append(is_left())
        is_recent = {abs(now - written) < 20_000_000 for now in (begin, time.time_ns())}
        if len(is_recent) == 1:
            assert found == [*is_recent] * 3
            return
    pytest.fail("too slow a machine")


def may_replace(stored: bytes, dataset: OpenDataset, position: N5Tuple) -> bool:
    """Say in Python what ``may_replace`` of the kernel says."""
    if len(stored) < len(dataset.view.full_header):
        return len(stored) < shard.LAST
    header = header_of(stored)
    if (
        header is None
        or header.mode is not BlockMode.DEFAULT
        or len(header.block_shape) != dataset.view.ndim
    ):
        return False
    if BlockWriter(dataset, NO_VALUE)._is_outgrown(position, stored):
        return False
    is_block = len(stored) < shard.LAST or is_raw_block(stored, dataset)
    return is_block or not (shard.may_begin(stored) or may_be_shard(stored))


@pytest.mark.parametrize("kind", ["raw", "gzip", "of one axis", "of five axes"])
@given(rng=RANDOM)
def test_a_block_that_is_replaced(
    datasets: dict[str, OpenDataset], kind: str, rng: random.Random
) -> None:
    """``may_replace``; Python, which looks again at what is left, replaces the same, too."""
    dataset, seen = datasets[kind], Seen()
    values = numbers("u2", dataset.view.shape) + 1
    for position, path, stored in changed_blocks(rng, dataset, 24):
        before, part = path.read_bytes(), part_at(position, dataset)
        write_old(path, stored)
        start = tuple(each.start for each in part)
        left = kernel.write_box(dataset, start, values[part], 0, keep_empty=True)
        is_replaced = path.read_bytes() != stored
        write_old(path, before)
        expected = may_replace(stored, dataset, position)
        seen(is_replaced, expected, (position, stored[:40].hex(), stored[-20:].hex()))
        assert left == ([] if is_replaced else [position])
        if is_replaced:
            check = BlockWriter(dataset, NO_VALUE).check(position)
            check(len(stored), lambda at, n, stored=stored: stored[at : at + n])  # type: ignore[misc]
    seen.check(3)


@given(mode=st.integers(0, 0o7777))
def test_the_mode_of_a_file_that_is_replaced(datasets: dict[str, OpenDataset], mode: int) -> None:
    """``keep_mode``."""
    dataset, values = datasets["raw"], numbers("u2", CHUNKS)
    path = Path(dataset.directory, "0/0/0")
    path.chmod(mode)
    if not kernel.write_box(dataset, (0, 0, 0), values, 0, keep_empty=True):
        found = path.stat().st_mode
        path.chmod(mode)
        with writing.FileWriter("atomic", pytest.fail) as writer:
            writer.write(str(path), block_bytes(values))
        assert found == path.stat().st_mode
    else:
        assert mode & 0o600 != 0o600  # this user may not change it
    path.chmod(0o600)


def test_the_owner_of_a_file_that_is_replaced(datasets: dict[str, OpenDataset]) -> None:
    """``keep_mode``: the file of another user is left to Python, which keeps its owner."""
    path = Path(datasets["raw"].directory, "0/0/0")
    try:
        os.chown(path, 65534, 65534)
    except PermissionError:
        pytest.skip("this user may not give files away")
    values = numbers("u2", CHUNKS)
    assert kernel.write_box(datasets["raw"], (0, 0, 0), values, 0, keep_empty=True) == [(0, 0, 0)]
    with writing.FileWriter("atomic", pytest.fail) as writer:
        writer.write(str(path), block_bytes(values))
    assert path.stat().st_uid == 65534
    os.chown(path, os.getuid(), os.getgid())
