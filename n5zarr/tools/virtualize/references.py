"""Refer to the chunks of a dataset inside its blocks, after the header."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.container import codec_chain
from n5zarr.errors import N5BlockError, N5Error
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


def refer(path: str, view: DatasetView, positions: Sequence[N5Tuple]) -> Steps[list[Chunk]]:
    """Refer to the blocks at some positions; read their headers, and whole those that are no chunk.

    Parameters
    ----------
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset as an array of plain Zarr.
    positions : sequence of tuple of int
        Positions in the block grid, N5 order.

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
    starts = yield [Ends(key, n_start, 0) for key in keys.values()]
    chunks: list[Chunk] = []
    others: list[N5Tuple] = []
    for (position, key), start in zip(keys.items(), starts, strict=True):
        if start is None:
            continue
        part = _part(memoryview(start[1]), start[0], view, position)
        if part is None:
            others.append(position)
        else:
            chunks.append(Chunk(view.presented(position), key, *part))
    for i in range(0, len(others), _WHOLE):
        some = others[i : i + _WHOLE]
        blocks = yield [Get(keys[position], settled=True) for position in some]
        found = [(p, block) for p, block in zip(some, blocks, strict=True) if block is not None]
        made = yield [Work(partial(_chunk, block, view, p, keys[p])) for p, block in found]
        chunks += made
    return chunks


def _part(
    start: memoryview, size: int, view: DatasetView, position: N5Tuple
) -> tuple[int, int] | None:
    """Find the chunk by the beginning of the block; None also if that seems damaged."""
    try:
        return chunk_part(start, size, view, position)
    except N5BlockError:
        return None  # reading the whole block reports its defect


def _chunk(block: BufferLike, view: DatasetView, position: N5Tuple, key: str) -> Chunk:
    """Find the chunk in a whole block, or make it."""
    data = memoryview(block)
    coords = view.presented(position)
    try:
        part = chunk_slice(data, view, position)
        if part is not None:
            start, stop, _ = part.indices(len(data))
            return Chunk(coords, key, start, stop - start)
        if view.transcoded is None:
            made = make_chunk(data, view, position, small=True)
        else:
            made = codec_chain.encode(decode_chunk(data, view, position), view.transcoded)
    except N5Error as err:
        raise err.located(f"{key.rpartition('/')[0]}: block {key}") from err.__cause__
    return Chunk(coords, key, 0, len(memoryview(made)), bytes(made))
