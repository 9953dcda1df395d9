"""Compute the result of reading a stored block without n5zarr.

`tests.fuzz.payloads` decodes the payload; the rules of headers, strings and label multisets are
those of the N5 specification and of Java, in the plainest form.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.lz import DamagedError
from tests.fuzz.payloads import Payload, decode_payload, zstd

__all__ = [
    "Dataset", "Expected", "expected_block", "expected_chunk", "extent_of", "read_dataset",
    "read_files",
]  # fmt: skip


@dataclass(frozen=True)
class Dataset:
    """The members of a dataset's document; sizes in N5 order."""

    dimensions: tuple[int, ...]
    block_size: tuple[int, ...]
    data_type: str
    compression: dict[str, Any]
    labels: bool = False

    @property
    def nominal_bytes(self) -> int:
        """Return the bytes of a full-size block; an estimate for text and opaque bytes."""
        is_number = self.data_type not in ("string", "object")
        item = np.dtype(self.data_type).itemsize if is_number else 64
        return math.prod(self.block_size) * item

    @classmethod
    def of(cls, document: dict[str, Any]) -> Dataset:
        return cls(
            dimensions=tuple(document["dimensions"]),
            block_size=tuple(document["blockSize"]),
            data_type=document["dataType"],
            compression=document.get("compression") or {"type": document["compressionType"]},
            labels=bool(document.get("isLabelMultiset")),
        )


@dataclass(frozen=True)
class Expected:
    """The elements of a block."""

    values: np.ndarray  # shape in C order; flat for what is no array
    known: np.ndarray  # which elements can be decoded, same shape
    plain: bool  # whether every reader has to take the block


def expected_block(data: bytes, dataset: Dataset) -> Expected | None:
    """Return the elements of a block of any mode, flat; None if it cannot be decoded."""
    try:
        return _block(data, dataset)[1]
    except (DamagedError, struct.error):
        return None


def expected_chunk(
    data: bytes, dataset: Dataset, extent: tuple[int, ...], fill: object = 0
) -> Expected | None:
    """Return the elements of an array where the block is.

    The extent is that of the part of the dataset that the block covers, in N5 order; elements that
    the block lacks are ``fill``. None if the block cannot be decoded.
    """
    try:
        shape, found = _block(data, dataset, extent)
    except (DamagedError, struct.error):
        return None
    if math.prod(shape) != len(found.values) or len(shape) != len(extent):
        return None
    values, known = (a.reshape(shape[::-1]) for a in (found.values, found.known))
    whole = np.full(extent[::-1], fill, found.values.dtype)
    all_known = np.ones(extent[::-1], bool)
    common = tuple(slice(min(pair)) for pair in zip(whole.shape, values.shape, strict=True))
    whole[common], all_known[common] = values[common], known[common]
    return Expected(whole, all_known, found.plain and shape in (extent, dataset.block_size))


def extent_of(dataset: Dataset, position: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extent of the part of a dataset that a block covers, N5 order."""
    sizes = zip(dataset.dimensions, dataset.block_size, position, strict=True)
    return tuple(min(size, n - place * size) for n, size, place in sizes)


def read_dataset(
    document: dict[str, Any], block: Callable[[tuple[int, ...]], bytes | None]
) -> np.ndarray:
    """Assemble a dataset, in C order, of its stored blocks by grid position; others are 0."""
    dataset = Dataset.of(document)
    array = np.zeros(dataset.dimensions[::-1], dataset.data_type)
    sizes = [*zip(dataset.dimensions, dataset.block_size, strict=True)]
    for position in itertools.product(*(range(-(-n // size)) for n, size in sizes)):
        stored = block(position)
        if stored is not None:
            found = expected_chunk(stored, dataset, extent_of(dataset, position))
            assert found is not None
            assert found.known.all()
            starts = zip(position, dataset.block_size, strict=True)
            array[tuple(slice(i * n, i * n + n) for i, n in starts)[::-1]] = found.values
    return array


def read_files(directory: Path) -> np.ndarray:
    """Read a dataset in local files, in C order."""

    def block(position: tuple[int, ...]) -> bytes | None:
        file = directory.joinpath(*map(str, position))
        return file.read_bytes() if file.is_file() else None

    return read_dataset(json.loads((directory / "attributes.json").read_bytes()), block)


# ---------------------------------------------------------------------- modes and types


def _block(
    data: bytes, dataset: Dataset, inside: tuple[int, ...] | None = None
) -> tuple[tuple[int, ...], Expected]:
    """Parse the header, "File-system specification", item 9, and decode the payload.

    Label multisets are those of the voxels inside the dataset, if they make up the payload.
    """
    mode, ndim = struct.unpack_from(">HH", data)
    shape: tuple[int, ...] = ()
    count, at = 0, 6
    if mode == 2 and dataset.data_type == "object":
        (count,) = struct.unpack_from(">I", data, 2)
    elif mode in (0, 1) and dataset.data_type != "object" and ndim == len(dataset.dimensions):
        shape = struct.unpack_from(f">{ndim}I", data, 4)
        at = 4 + 4 * ndim
        count = math.prod(shape)
        if mode == 1:
            (count,) = struct.unpack_from(">I", data, at)
            at += 4
    else:
        raise DamagedError
    if not all(shape) or max(count, math.prod(shape)) >= 2**31:
        raise DamagedError
    if dataset.labels and inside is not None:
        found = decode_payload(data[at:], count, dataset.compression)
        if _makes_up(found.data, math.prod(inside)):
            shape = inside
    return shape, _elements(data[at:], shape, count, dataset)


def _elements(payload: bytes, shape: tuple[int, ...], count: int, dataset: Dataset) -> Expected:
    if dataset.data_type == "string":
        values = _strings(_everything(payload, dataset.compression), math.prod(shape))
        return Expected(values, np.ones(values.shape, bool), plain=False)
    n_item = 1 if dataset.data_type == "object" else np.dtype(dataset.data_type).itemsize
    # what no compression makes of so few bytes is not decoded
    if count * n_item > 2**26 and len(payload) < 2**14:
        raise DamagedError
    found = decode_payload(payload, count * n_item, dataset.compression)
    if dataset.labels:
        values = _labels(found.data, math.prod(shape))
        return Expected(values, np.ones(values.shape, bool), plain=False)
    if dataset.data_type == "object":
        values = np.frombuffer(found.data, "u1")
    else:
        values = np.frombuffer(found.data, np.dtype(dataset.data_type).newbyteorder(">"))
    return Expected(values, _known(found, len(values)), found.plain)


def _known(found: Payload, n: int) -> np.ndarray:
    if found.known is None:
        return np.ones(n, bool)
    return found.known.reshape(n, -1).all(axis=1)


def _everything(payload: bytes, compression: dict[str, Any]) -> bytes:
    """Decode a payload of unknown size: all that its streams hold."""
    if compression["type"] == "raw":
        return payload
    low, high = 0, 2**22
    while low < high:  # the largest size that there is
        middle = (low + high + 1) // 2
        try:
            decode_payload(payload, middle, compression)
            low = middle
        except DamagedError:
            high = middle - 1
    if low == 0 and not _holds_nothing(payload, compression):
        raise DamagedError
    return decode_payload(payload, low, compression).data if low else b""


def _holds_nothing(payload: bytes, compression: dict[str, Any]) -> bool:
    """Return whether a payload begins with a whole stream that is empty."""
    try:
        if compression["type"] == "zstd":
            stream = zstd.ZstdDecompressor()
            return stream.decompress(payload, 1) == b"" and stream.eof
        return compression["type"] == "gzip" and gzip.decompress(payload) == b""
    except (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError):
        return False


def _strings(data: bytes, n: int) -> np.ndarray:
    """Split text at each NUL; strings that are missing at the end are empty."""
    pieces = data.split(b"\0")
    if pieces[-1] == b"":
        pieces.pop()
    if not n - 2**20 <= len(pieces) <= n:
        raise DamagedError
    values = np.full(n, "", object)
    for i, piece in enumerate(pieces):
        whole = b"\0".join(piece.split(b"\xc0\x80"))
        values[i] = whole.decode("utf-8", "replace")
    return values


def _labels(data: bytes, n: int) -> np.ndarray:
    """Return the most frequent label of each voxel, as imglib2-label-multisets' LabelUtils."""
    (n_first,) = struct.unpack_from(">i", data)
    if n_first not in (0, n):
        raise DamagedError
    starts = struct.unpack_from(f">{n}i", data, 4 + 8 * n_first)
    lists = data[4 + 8 * n_first + 4 * n :]
    values = np.zeros(n, ">u8")
    for i, start in enumerate(starts):
        if start < 0:
            raise DamagedError
        (n_entries,) = struct.unpack_from("<i", lists, start)
        if n_entries < 0:
            raise DamagedError
        entries = [struct.unpack_from("<qi", lists, start + 4 + 12 * k) for k in range(n_entries)]
        if entries:
            values[i] = min(entries, key=lambda entry: (-entry[1], entry[0]))[0] % 2**64
    return values


def _makes_up(data: bytes, n: int) -> bool:
    """Return whether the lists of n voxels follow each other up to the end of a payload."""
    try:
        (n_first,) = struct.unpack_from(">i", data)
        starts = struct.unpack_from(f">{n}i", data, 4 + 8 * n_first)
        lists = data[4 + 8 * n_first + 4 * n :]
        end = 0
        for start in sorted(set(starts)):
            (n_entries,) = struct.unpack_from("<i", lists, start)
            if start != end or n_entries < 0:
                return False
            end = start + 4 + 12 * n_entries
    except struct.error:
        return False
    return n_first in (0, n) and end == len(lists)
