"""The compiled kernel and the Python path agree on random damage, without a crash.

``.ci/kernel`` runs this file under the address and undefined behaviour sanitizers.
``N5ZARR_STRESS=1`` runs it for ten minutes, with other seeds each time.
"""

from __future__ import annotations

import os
import random
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.codecs.buffers import Scratch
from n5zarr.fast import kernel, many_files, python_blocks
from n5zarr.format.compression import parse_compression
from n5zarr.format.order import N5Tuple
from n5zarr.storage.files import read_ends
from tests.contract.stored import contents
from tests.contract.test_kernel import boxes_of, name, outcome, python_only
from tests.fuzz.mutate import damaged
from tests.fuzz.seeds import COMPRESSIONS as ALL_COMPRESSIONS

pytestmark = pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")

IS_LONG = bool(os.environ.get("N5ZARR_STRESS"))
SECONDS = 600 if IS_LONG else 16 if os.environ.get("N5ZARR_ALL") else 6
FIRST_SEED = random.SystemRandom().randrange(2**32) if IS_LONG else 0
# without those that have no code in the kernel
COMPRESSIONS = [each for each in ALL_COMPRESSIONS if each["type"] not in ("bzip2", "xz")]
SHARE = SECONDS / (len(COMPRESSIONS) + 2)


class Poisoned(Scratch):
    """Memory of the exact size and known content, so that elements left unwritten show."""

    def __init__(self, poison: int) -> None:
        super().__init__()
        self._poison = poison

    def bytes(self, n_bytes: int, purpose: str) -> memoryview:
        return memoryview(np.full(n_bytes, self._poison, "u1"))


@contextmanager
def poisoned(poison: int) -> Iterator[None]:
    """Let kernel and Python path work in memory that is full of a byte."""

    @contextmanager
    def lend() -> Iterator[Scratch]:
        yield Poisoned(poison)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "scratch", lend)
        patch.setattr(python_blocks, "scratch", lend)
        yield


def seeds(seconds: float) -> Iterator[tuple[int, random.Random]]:
    """Yield seeds from the first until the time is up; a few seeds at least."""
    end = time.monotonic() + seconds
    for seed, rng in enumerate(map(random.Random, count(FIRST_SEED)), FIRST_SEED):
        if seed >= FIRST_SEED + 3 and time.monotonic() > end:
            return
        yield seed, rng


def create(rng: random.Random, root: Path, compression: dict[str, Any]) -> Any:
    """Create a dataset of a few blocks, some of which are cut off at the border."""
    ndim = rng.randrange(1, 4)
    most = (3000, 60, 14)[ndim - 1]
    chunks = tuple(rng.randrange(1, most) for _ in range(ndim))
    shape = tuple(rng.randrange(1, 2 * n + 1) for n in chunks)
    dtype = np.dtype(rng.choice(("u1", "i2", "u4", "f8")))
    array = n5zarr.create_array(
        root, path="d", shape=shape, chunks=chunks, dtype=dtype, compression=compression
    )
    array[...] = values(rng, shape, dtype)
    return array


def values(rng: random.Random, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    numbers = np.random.default_rng(rng.randrange(2**32))
    return numbers.integers(0, rng.choice((3, 100)), shape).astype(dtype)


def restore(root: Path, stored: dict[str, bytes]) -> None:
    for key in contents(root).keys() - stored.keys():
        (root / key).unlink()
    for key, data in stored.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(data)


def written(array: Any, box: Any, value: Any, root: Path, key: str) -> Any:
    """Write, and return all files; after an error only the damaged one, as others may differ."""
    try:
        array[box] = value
    except n5zarr.N5Error as err:
        return type(err), err.kind, str(err), contents(root).get(key)
    return contents(root)


@pytest.mark.each_of(5)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=name)
def test_damaged_blocks(tmp_path: Path, compression: dict[str, Any]) -> None:
    for seed, rng in seeds(SHARE):
        root = tmp_path / f"{seed}.n5"
        array = create(rng, root, compression)
        stored = contents(root)
        blocks = sorted(key for key in stored if not key.endswith(".json"))
        for step in range(12):
            where = f"seed {seed}, step {step}, {compression}"
            key = rng.choice(blocks)
            change = {key: damaged(rng, stored[key], [stored[other] for other in blocks])}
            restore(root, stored | change)
            box = boxes_of(rng.randint, array.shape)
            with poisoned(0xAA):
                result = outcome(array, box)
            with poisoned(0x55), python_only():
                expected = outcome(array, box)
            if isinstance(expected, tuple) and compression["type"] == "blosc":
                # of a blosc buffer the kernel decodes what is wanted: other damage is not noticed
                with poisoned(0x55):
                    expected = outcome(array, box)
            assert result == expected, where
            if step % 4 == 0:
                value = values(rng, tuple(s.stop - s.start for s in box), array.dtype)
                with poisoned(0xAA):
                    result = written(array, box, value, root, key)
                restore(root, stored | change)
                with poisoned(0x55), python_only():
                    assert result == written(array, box, value, root, key), where


def some_number(rng: random.Random) -> int:
    near = rng.choice((0, 1, 4, 6, 8, 64, 2**18, 2**30, 2**31, 2**32, 2**62, 2**63 - 1))
    return max(-(2**63), min(2**63 - 1, rng.choice((1, 1, 1, -1)) * near + rng.randrange(-2, 3)))


def random_arguments(rng: random.Random, root: Path, target: Any) -> list[Any]:
    """Return arguments that fit the dataset of a random kind, up to two of them changed."""
    kind = rng.randrange(5)
    geometry = np.array([3, 4, 8, 6, 0, 0, 1, 1], "i8")
    sizes = {"stored": 300, "elements": 24, "fill": 2, "taken": 2}
    array = target.T
    for _ in range(rng.randrange(3)):
        match rng.randrange(4):
            case 0:
                geometry[rng.randrange(len(geometry))] = some_number(rng)
            case 1:
                geometry = np.resize(geometry, rng.randrange(1, 10))
            case 2:
                purpose = rng.choice(sorted(sizes))
                sizes[purpose] = max(0, sizes[purpose] + rng.choice((-300, -24, -1, 1, 9)))
            case _:
                array = rng.choice((array[::-1], array[..., :3], array[:1], array[None]))
    return [
        bytes(root / str(kind)),
        geometry,
        array,
        rng.choice((kind, kind, kind, 5, 6, -1)),
        bytes(sizes["fill"]),
        rng.randrange(-1, 3),
        np.full(sizes["taken"], rng.choice((0, 0, 1, some_number(rng))), "i8"),
        bytearray(sizes["stored"]),
        bytearray(sizes["elements"]),
        lambda *_: None,
    ]


def random_options(rng: random.Random) -> tuple[Any, ...]:
    level, block = rng.choice((3, -1, 99, 2**31 - 1)), some_number(rng)
    unique = rng.choice(("0123456789abcdef", "0123456789abcde", "../../../../../x"))
    durability = rng.choice((0, 1, 2, 2, 3))
    return lambda _: None, rng.randrange(2), durability, level, 1, block, "lz4", unique


def random_boxes(rng: random.Random) -> tuple[Any, ...]:
    """Return starts, places, members and ends of two boxes in one block, and memory for a block."""
    numbers = [np.array(each, "i8") for each in ([0, 0, 1, 2], [0, 0], [0, 1], [2])]
    for _ in range(rng.randrange(3)):
        k = rng.randrange(4)
        if rng.random() < 0.7 and len(numbers[k]):
            numbers[k][rng.randrange(len(numbers[k]))] = some_number(rng)
        else:
            numbers[k] = np.resize(numbers[k], rng.randrange(6))
    return (*numbers, bytearray(rng.choice((24, 24, 24, 23, 0))))


def test_random_arguments(tmp_path: Path) -> None:
    """Random arguments give grid positions or ValueError, and write only into the array."""
    n_done = 0
    for kind, k in enumerate((0, 1, 3, 4, 5)):  # raw, gzip, zlib, zstd and blosc
        compression = COMPRESSIONS[k]
        known = kernel._kind(parse_compression(compression))
        assert getattr(kernel._kernel, known) == kind
        n5zarr.create_array(
            tmp_path, path=str(kind), shape=(6, 8), chunks=(4, 3), dtype="u2",
            compression=compression,
        )[...] = np.arange(48).reshape(6, 8)  # fmt: skip
    for seed, rng in seeds(SHARE):
        around = np.full((10, 12), 77, rng.choice(("u2", "u2", "u2", "u1", "u4", "f8")))
        target = around[2:8, 2:10]
        call = random_arguments(rng, tmp_path, target)
        function = kernel._kernel.read_box
        if rng.random() < 0.3:
            function = kernel._kernel.write_box
            call.append(random_options(rng))
        elif rng.random() < 0.5:
            function = kernel._kernel.read_boxes
            two = target[:2, :6].reshape(2, 2, 3).transpose(2, 0, 1)  # boxes of 3 x 2, last axis
            call[2] = rng.choice((two, two, two, call[2]))
            call.append(random_boxes(rng))
        try:
            left = function(*call)
        except ValueError:
            pass
        else:
            n_done += 1
            assert len(left) <= target.size, f"seed {seed}"
        target[...] = 77
        assert (around == 77).all(), f"seed {seed}"
    assert n_done


def random_file(rng: random.Random, file: Path) -> None:
    """Write a file, old or new, which may end like a shard; or something else in its place."""
    match rng.randrange(12):
        case 0:
            return
        case 1:
            file.mkdir()
        case 2:
            os.mkfifo(file)
        case 3:
            file.symlink_to(rng.choice((file.name, "nowhere", ".")))
        case way:
            size = rng.choice((0, 19, 20, 21, 36, 60, 61, rng.randrange(300)))
            end = struct.pack(">QQI", 0, rng.choice((1, size, 2**64 - 1)), 1) if way == 4 else b""
            file.write_bytes(rng.randbytes(size) + end)
            if way > 5:
                os.utime(file, (rng.choice((-1, 0, 1e9, 1e10)),) * 2)


def change_one(rng: random.Random, call: list[Any]) -> None:
    """Change an argument of `read_ends`: a number, the folder, or the length of memory."""
    k = rng.randrange(len(call))
    match call[k]:
        case int():
            call[k] = max(-(2**31), min(2**31 - 1, some_number(rng)))
        case np.ndarray() if k == 2 and len(call[k]):
            call[k][rng.randrange(len(call[k]))] = some_number(rng)
        case bytes():
            call[k] += b"/nothing"
        case memory:
            call[k] = memory[: rng.randrange(len(memory) + 1)]


def test_random_ends(tmp_path: Path) -> None:
    """Ends are those of each file, or left to Python; random arguments change no other memory."""
    n_there = n_refused = 0
    for seed, rng in seeds(SHARE):
        folder = tmp_path / str(seed)
        folder.mkdir()
        n, ndim, first, last = (rng.randrange(*each) for each in ((7,), (1, 3), (20, 50), (20, 50)))
        (folder / "0").mkdir()
        names = [f"{'0/' * (ndim - 1)}{k}" for k in range(1, n + 1)]
        for name_ in names:
            random_file(rng, folder / name_)
        places = np.array([[0] * (ndim - 1) + [k] for k in range(1, n + 1)], "i8").reshape(-1)
        around, sizes = bytearray(b"?" * (8 + n * (first + last) + 8)), np.full(n + 2, 77)
        call: list[Any] = [
            bytes(folder), ndim, places, first, last, memoryview(around)[8:-8], sizes[1:-1],
        ]  # fmt: skip
        is_changed = rng.random() < 0.5
        if is_changed:
            change_one(rng, call)
        try:
            kernel._kernel.read_ends(*call)
        except ValueError:
            assert is_changed, f"seed {seed}"
            n_refused += 1
        else:
            kernel._kernel.stamps(b"\0".join(bytes(folder / each) for each in names), sizes[1:-1])
        assert around[:8] == around[-8:] == b"?" * 8, f"seed {seed}"
        assert sizes[0] == sizes[-1] == 77, f"seed {seed}"
        found = many_files.read_ends(
            f"{folder}/", [N5Tuple((0,) * (ndim - 1) + (k,)) for k in range(1, n + 1)], first, last
        ) if n else []  # fmt: skip
        there = [(f, str(folder / each)) for f, each in zip(found, names, strict=True) if f]
        n_there += len(there)
        assert all(f == read_ends(file, first, last) for f, file in there), f"seed {seed}"
    assert n_there
    assert n_refused
