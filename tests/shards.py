"""Write shards as Java N5 4 does, without code of n5zarr.

n5 commit 7ba6b144, ``shard/ShardIndex.java`` and ``shard/RawShardCodec.java``: the blocks of a file
in flat order, x fastest, before or after the index of their offsets and lengths.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import struct
import zlib
from collections.abc import Callable, Container, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numcodecs import get_codec

_codec: Any = get_codec
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "raw": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zlib": zlib.compress,
    "zstd": lambda data: bytes(_codec({"id": "zstd"}).encode(data)),
    "blosc": lambda data: bytes(_codec({"id": "blosc"}).encode(data)),
}
_DOCUMENTS = {"zlib": {"type": "gzip", "useZlib": True}}


def write_shards(
    dataset: Path, values: np.ndarray[Any, Any], chunk: tuple[int, ...], shard: tuple[int, ...], *,
    compression: str = "raw", document: str | None = None, missing: Container[tuple[int, ...]] = (),
    **options: Any,
) -> None:  # fmt: skip
    """Write a dataset of shards below a directory.

    Parameters
    ----------
    dataset : Path
        Directory of the dataset.
    values : numpy.ndarray
        All values, C order.
    chunk, shard : tuple of int
        Extent of a chunk and of a shard, N5 order.
    compression : str
        That of the chunks.
    document : str, optional
        What ``attributes.json`` says instead.
    missing : container of tuple of int
        Grid positions of chunks that are not written, N5 order.
    **options
        Of :func:`join`, and ``bare`` for chunks without header.
    """
    dataset.mkdir(parents=True)
    (dataset.parent / "attributes.json").write_text('{"n5":"4.0.0"}')
    name = document or compression
    attributes = {
        "dataType": values.dtype.name,
        "compression": _DOCUMENTS.get(name, {"type": name}),
        "blockSize": chunk,
        "dimensions": values.shape[::-1],
    }
    (dataset / "attributes.json").write_text(json.dumps(attributes))
    per_shard = [s // c for s, c in zip(shard, chunk, strict=True)]
    grid = [-(-n // c) for n, c in zip(values.shape[::-1], chunk, strict=True)]
    bare = options.pop("bare", False)
    for place in product(*(range(-(-n // g)) for n, g in zip(grid, per_shard, strict=True))):
        chunks: list[bytes | None] = []
        for inner in product(*map(range, per_shard[::-1])):  # the last is x, the fastest
            at = tuple(p * g + i for p, g, i in zip(place, per_shard, inner[::-1], strict=True))
            is_there = all(a < n for a, n in zip(at, grid, strict=True)) and at not in missing
            made = (values, chunk, at, COMPRESS[compression])
            chunks.append(_chunk(*made, bare=bare) if is_there else None)
        if any(chunks):
            file = dataset.joinpath(*map(str, place))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(join(chunks, **options))


def _chunk(
    values: np.ndarray[Any, Any], size: tuple[int, ...], at: tuple[int, ...],
    compress: Callable[[bytes], bytes], *, bare: bool,
) -> bytes:  # fmt: skip
    box = tuple(slice(a * s, (a + 1) * s) for a, s in zip(at[::-1], size[::-1], strict=True))
    part = values[box]
    if bare:  # always full-size
        padding = [(0, s - n) for s, n in zip(size[::-1], part.shape, strict=True)]
        part = np.pad(part, padding)
    payload = compress(part.astype(part.dtype.newbyteorder(">")).tobytes())
    header = struct.pack(f">HH{part.ndim}I", 0, part.ndim, *part.shape[::-1])
    return payload if bare else header + payload


def join(
    chunks: list[bytes | None], *, location: str = "end", checksum: bool = True, order: str = ">",
    header: tuple[int, ...] | None = None,
) -> bytes:  # fmt: skip
    """Join chunks and their index; ``header`` has the number of chunks along each axis.

    Java, ``N5BlockCodecs.java``: the header is written before what the codecs of the entries give,
    so that the checksum is of the entries only.
    """
    start = b"" if header is None else struct.pack(f">HH{len(header) + 1}I", 0, len(header) + 1, 2,
                                                   *header)  # fmt: skip
    at = len(start) + 16 * len(chunks) + 4 * checksum if location == "start" else 0
    index = start
    for each in chunks:
        if each is None:
            index += b"\xff" * 16
        else:
            index += struct.pack(f"{order}QQ", at, len(each))
            at += len(each)
    if checksum:
        index += struct.pack("<I", google_crc32c.value(index[len(start) :]))
    blocks = b"".join(each for each in chunks if each is not None)
    return blocks + index if location == "end" else index + blocks


RECIPE = re.compile(r"(?ms)### Read shards of Java N5 4\n.*?^```python\n(.*?)^```")
COOKBOOK = Path(__file__).parents[1] / "docs/cookbook.md"


def follow_recipe(
    dataset: Path, shard: tuple[int, ...], copy: Path, changes: Mapping[str, str]
) -> Any:
    """Read a dataset of shards by the recipe of the cookbook, and copy it; return the array.

    Parameters
    ----------
    dataset : Path
        Directory of the dataset, in the root of its container.
    shard : tuple of int
        Extent of a shard, C order.
    copy : Path
        Container to write the copy to.
    changes : mapping
        What is put in the place of parts of the recipe.
    """
    [code] = RECIPE.findall(COOKBOOK.read_text(encoding="utf-8"))
    own = {
        '"java.n5", "em/s0"': repr((str(dataset.parent), dataset.name)),
        "[32, 48, 64]": repr(list(shard)),
        '"plain.n5"': repr(str(copy)),
        "print(array[0, :8, 0])": "pass",
    }
    for old, new in {**own, **changes}.items():
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    names: dict[str, Any] = {}
    exec(compile(code, COOKBOOK, "exec"), names)  # noqa: S102 - our own page
    return names["array"]
