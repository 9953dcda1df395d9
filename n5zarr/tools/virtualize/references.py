"""Refer to the chunks of a dataset inside its blocks, after the header."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.codecs.shard import LAST, is_likely
from n5zarr.container import codec_chain
from n5zarr.errors import ErrorsAt, N5BlockError
from n5zarr.format.grid import block_path
from n5zarr.format.path import join
from n5zarr.storage.requests import Ends, Get, Work
from n5zarr.zarr_view.chunks import (
    START,
    chunk_part,
    chunk_slice,
    decode_chunk,
    make_chunk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.order import N5Tuple
    from n5zarr.storage.requests import Steps
    from n5zarr.zarr_view.dataset_view import DatasetView

__all__ = ["Chunk", "refer"]

_WHOLE = 16  # blocks that are read whole at a time


class Chunk(NamedTuple):
    """A chunk of an array: where its bytes are, or the bytes.

    Parameters
    ----------
    coords : tuple of int
        Position in the chunk grid, in the order of the array.
    key : str
        Key of the block, below the root of the storage.
    offset, length : int
        Where the chunk is in the block, in bytes.
    data : bytes or None
        The chunk, where no part of the block is it.
    """

    coords: tuple[int, ...]
    key: str
    offset: int
    length: int
    data: bytes | None = None


def refer(
    path: str, view: DatasetView, positions: Sequence[N5Tuple], *, is_local: bool
) -> Steps[list[Chunk]]:
    """Refer to the blocks at some positions; read their headers, and whole those that are no chunk.

    Parameters
    ----------
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset as an array of plain Zarr.
    positions : sequence of tuple of int
        Positions in the block grid, N5 order.
    is_local : bool
        Whether to look at the end of each block, and not only of the first: it may be a shard of
        Java N5 4. On a server this needs one more request for a block.

    Returns
    -------
    list of Chunk
        Without blocks that are missing.

    Raises
    ------
    N5Error
        A block is damaged, or does not fit the dataset.
    """
    keys = {position: join(path, block_path(position)) for position in positions}
    n_start = len(view.full_header) + 4 + START
    starts = yield [
        Ends(key, n_start, LAST if is_local or n == 0 else 0) for n, key in enumerate(keys.values())
    ]
    may_be_sharded = not is_local and any(map(_may_be_shard, starts))
    chunks: list[Chunk] = []
    others: list[N5Tuple] = []
    for (position, key), start in zip(keys.items(), starts, strict=True):
        if start is None:
            continue
        part = None
        if not may_be_sharded and not _may_be_shard(start):
            part = _part(memoryview(start[1]), start[0], view, position)
        if part is None:
            others.append(position)
        else:
            chunks.append(Chunk(view.presented(position), key, *part))
    for i in range(0, len(others), _WHOLE):
        some = others[i : i + _WHOLE]
        blocks = yield [Get(keys[position], settled=True) for position in some]
        found = [(p, block) for p, block in zip(some, blocks, strict=True) if block is not None]
        made = yield [Work(partial(_chunk, block, path, view, p)) for p, block in found]
        chunks += made
    return chunks


def _may_be_shard(ends: tuple[int, bytes, bytes] | None) -> bool:
    """Whether a file may be a shard of Java N5 4, by its end; reading all of it tells."""
    if ends is None:
        return False
    size, first, last = ends
    return is_likely((first + last)[-LAST:] if len(first) + len(last) >= size else last, size)


def _part(
    start: memoryview, size: int, view: DatasetView, position: N5Tuple
) -> tuple[int, int] | None:
    """Find the chunk by the beginning of the block; None also if that seems damaged."""
    try:
        return chunk_part(start, size, view, position)
    except N5BlockError:
        return None  # reading the whole block reports its defect


def _chunk(block: BufferLike, path: str, view: DatasetView, position: N5Tuple) -> Chunk:
    """Find the chunk in a whole block, or make it."""
    name = block_path(position)
    key = join(path, name)
    data = memoryview(block)
    coords = view.presented(position)
    with ErrorsAt(f"{path or '/'}: block {name}"):
        part = chunk_slice(data, view, position)
        if part is not None:
            start, stop, _ = part.indices(len(data))
            return Chunk(coords, key, start, stop - start)
        if view.transcoded is None:
            made = make_chunk(data, view, position, small=True)
        else:
            made = codec_chain.encode(decode_chunk(data, view, position), view.transcoded)
    return Chunk(coords, key, 0, len(memoryview(made)), bytes(made))
