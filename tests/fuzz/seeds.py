"""Make datasets whose blocks are mutated: of Java and other programs, and larger ones.

Each is in a container of its own, of few blocks.
"""

from __future__ import annotations

import io
import itertools
import json
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import n5zarr
from tests.fuzz.oracle import Dataset, Expected

__all__ = ["COMPRESSIONS", "Seed", "make_larger", "make_seeds"]

JAVA = Path(__file__).parents[1] / "data" / "java"
FOLDERS = (
    "compressions", "dtypes", "tensorstore", "zarr2", "blocks", "v0", "v1", "strings", "varlen",
    "labels",
)  # fmt: skip
MOST_BLOCKS = 12

COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 1},
    {"type": "gzip", "level": 0},
    {"type": "gzip", "useZlib": True, "level": 1},
    {"type": "bzip2"},
    {"type": "xz", "preset": 0},
    {"type": "zstd", "level": 1},
    {"type": "blosc", "cname": "blosclz", "clevel": 5, "shuffle": 1, "blocksize": 0},
    {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 2, "blocksize": 512},
    {"type": "blosc", "cname": "lz4", "clevel": 0, "shuffle": 0, "blocksize": 512},
    {"type": "blosc", "cname": "zlib", "clevel": 1, "shuffle": 1, "blocksize": 256},
    {"type": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 0, "blocksize": 1024},
    {"type": "lz4"},
]
"""Of the blocks that are made here: all ways in which the kernel and Python decode."""


@dataclass(frozen=True)
class Seed:
    """A dataset, and its blocks as they should be."""

    root: Path  # the container
    path: str  # path of the dataset
    decodable: bool = True  # whether `tests.fuzz.oracle` can tell what a block holds
    dtype: str = ""  # the type that Zarr shows, where it is not that of the elements

    @property
    def directory(self) -> Path:
        return self.root / self.path

    @cached_property
    def dataset(self) -> Dataset:
        return Dataset.of(json.loads((self.directory / "attributes.json").read_bytes()))

    @cached_property
    def blocks(self) -> dict[tuple[int, ...], bytes]:
        """Return stored blocks by grid position, N5 order; a sample where there are many."""
        sizes = zip(self.dataset.dimensions, self.dataset.block_size, strict=True)
        positions = itertools.product(*(range(-(-n // size)) for n, size in sizes))
        stored = [p for p in positions if self.file(p).is_file()]
        few = stored[: MOST_BLOCKS // 2] + stored[-MOST_BLOCKS // 2 :]
        return {position: self.file(position).read_bytes() for position in few}

    def file(self, position: tuple[int, ...]) -> Path:
        return self.directory.joinpath(*map(str, position))

    @property
    def fill(self) -> object:
        """Return the elements that a block lacks; for dates Zarr takes NaT."""
        if self.dataset.data_type == "string":
            return ""
        return np.iinfo("i8").min if self.dtype.startswith("datetime64") else 0

    def shown(self, stored: Expected) -> Expected:
        """Convert elements as they are stored to those of Zarr's type, docs/n5-and-zarr.md."""
        if not self.dtype or self.dtype == "str":
            return stored
        native = stored.values.astype(stored.values.dtype.newbyteorder("="))
        if self.dtype in ("bool", "float16"):
            with np.errstate(over="ignore", invalid="ignore"):
                return replace(stored, values=native.astype(self.dtype))
        values = np.ascontiguousarray(native).view(self.dtype)
        known = stored.known.reshape(*values.shape, -1) if values.ndim else stored.known
        if values.shape[-1] == 1 and values.dtype.itemsize != native.dtype.itemsize:
            return replace(stored, values=values[..., 0], known=known.all(axis=-1)[..., 0])
        return replace(stored, values=values, known=known.all(axis=-1))

    def __str__(self) -> str:
        return f"{self.root.name}/{self.path}"


def make_seeds(directory: Path) -> list[Seed]:
    """Make all containers in an empty directory, always in the same order."""
    found = [*_of_java(directory), *make_larger(directory), *_odd(directory)]
    return [seed for seed in found if seed.blocks]


def _of_java(directory: Path) -> Iterator[Seed]:
    documents = sorted(
        each
        for name in FOLDERS
        for each in (JAVA / f"{name}.n5").rglob("attributes.json")
        if b'"dimensions"' in each.read_bytes()
    )
    for k, document in enumerate(documents):
        root = directory / f"java{k}.n5"
        path = str(document.parent.relative_to(JAVA)).replace(".n5", "")
        shutil.copytree(document.parent, root / path)
        (root / "attributes.json").write_text('{"n5":"4.0.0"}')
        yield Seed(root, path)


def _values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Return values of which some are compressed, and some are not."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 5, shape) * (rng.random(shape) < 0.3)
    found[shape[0] // 3 :] += rng.integers(0, 100, (shape[0] - shape[0] // 3, *shape[1:]))
    return found.astype(dtype)


def make_larger(directory: Path) -> Iterator[Seed]:
    """Write blocks of some thousand bytes, and ones that are cut off at the border."""
    types = itertools.cycle(("u2", "f8", "u1", "i4"))
    for k, compression in enumerate(COMPRESSIONS):
        root = directory / f"larger{k}.n5"
        array: Any = n5zarr.create_array(
            root, path="a/b", shape=(41, 67), chunks=(31, 61), dtype=next(types),
            compression=compression,
        )  # fmt: skip
        array[...] = _values((41, 67), array.dtype.str, k)
        yield Seed(root, "a/b")


def _dataset(root: Path, document: dict[str, Any], block: bytes) -> Seed:
    (root / "d" / "0").mkdir(parents=True)
    (root / "attributes.json").write_text('{"n5":"4.0.0"}')
    whole = {"blockSize": document["dimensions"], **document}
    (root / "d" / "attributes.json").write_text(json.dumps(whole))
    (root / "d" / "0" / "0").write_bytes(block)
    return Seed(root, "d")


def _odd(directory: Path) -> Iterator[Seed]:
    """Write blocks that are no arrays of numbers, without compression."""
    texts = "".join(f"{'é' * (k % 4)}{k}\0" for k in range(35)).encode()
    header = b"\0\1\0\2\0\0\0\7\0\0\0\5" + len(texts).to_bytes(4)
    strings = {"dimensions": [7, 5], "dataType": "string", "compression": {"type": "raw"}}
    yield _dataset(directory / "strings.n5", strings, header + texts)
    multiset = sorted((JAVA / "labels.n5").rglob("attributes.json"))
    for k, document in enumerate(multiset):
        described = json.loads(document.read_bytes())
        if described.get("isLabelMultiset") and k < 3:
            yield from _labels(directory / f"labels{k}.n5", described)
    yield _jpeg(directory / "jpeg.n5")
    yield from _zarr_types(directory)


def _labels(root: Path, document: dict[str, Any]) -> Iterator[Seed]:
    """Write lists of labels, as Paintera does: some voxels share a list."""
    lists = [((5, 3), (9, 4)), ((-1, 2),), (), ((7, 1), (8, 1), (2**62, 1))]
    starts, body = [], b""
    for entries in lists:
        starts.append(len(body))
        body += len(entries).to_bytes(4, "little")
        for label, count in entries:
            body += label.to_bytes(8, "little", signed=True) + count.to_bytes(4, "little")
    offsets = b"".join(starts[k * k % 4].to_bytes(4) for k in range(15))
    payload = bytes(4) + offsets + body
    header = b"\0\1\0\2\0\0\0\5\0\0\0\3" + len(payload).to_bytes(4)
    described = document | {
        "dimensions": [5, 3], "blockSize": [5, 3], "compression": {"type": "raw"}
    }  # fmt: skip
    yield _dataset(root, described, header + payload)


def _jpeg(root: Path) -> Seed:
    from PIL import Image  # noqa: PLC0415 - an extra

    packed = io.BytesIO()
    Image.fromarray(_values((23, 31), "u1", 5)).save(packed, "JPEG")
    header = b"\0\0\0\2\0\0\0\x1f\0\0\0\x17"
    document = {"dimensions": [31, 23], "dataType": "uint8", "compression": {"type": "jpeg"}}
    seed = _dataset(root, document, header + packed.getvalue())
    return Seed(seed.root, seed.path, decodable=False)


def _zarr_types(directory: Path) -> Iterator[Seed]:
    """Write arrays of Zarr's types, whose elements are not those of the blocks."""
    import zarr  # noqa: PLC0415 - only here

    for k, dtype in enumerate(("bool", "float16", "complex64", "str", "S5", "datetime64[s]")):
        root = directory / f"zarr{k}.n5"
        store = n5zarr.N5Store(root)
        values = _values((7, 11), "i2", k).astype("U3" if dtype == "str" else dtype)
        with warnings.catch_warnings(action="ignore"):  # of types without a specification
            array = zarr.create_array(store, name="z", shape=(7, 11), chunks=(5, 11), dtype=dtype)
            array[...] = values
        yield Seed(root, "z", dtype=dtype)
