"""Read the encoded chunks of an array without decoding them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.arrays.encoder import Encoder
from n5zarr.errors import ErrorsAt
from n5zarr.format.grid import block_path
from n5zarr.format.path import join
from n5zarr.storage.requests import get_each
from n5zarr.zarr_view.chunks import chunk_slice, decode_chunk
from n5zarr.zarr_view.keys import ChunkNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.images.source import ArraySource

    type _Chunk = tuple[ArraySource, tuple[int, ...]]

__all__ = ["read_chunks"]

_AT_ONCE = 64  # requests to a server


def read_chunks(
    source: ArraySource, positions: Sequence[tuple[int, ...]]
) -> list[BufferLike | None]:
    """Read encoded chunks, many at a time from a server; encode those of truncated blocks.

    Parameters
    ----------
    source : ArraySource
        An array whose chunks can be passed through.
    positions : sequence of tuple of int
        Their positions in the grid of chunks, C order.

    Returns
    -------
    list of bytes-like or None
        The chunks, with the codecs of ``source.encoded``; None for each missing one.
    """
    each = [_part_at(source, position) for position in positions]
    there = [(part, position) for part, position in each if part is not None]
    if not there:
        return [None] * len(each)
    first = there[0][0]
    encoder = None if first.encoded is None else Encoder.of(first.encoded)
    if first.blocks is not None and encoder is not None:
        chunks = iter(_chunks_of_blocks(there, encoder))
    else:
        chunks = iter(sync(_get_each(there)))
    return [None if part is None else next(chunks) for part, _ in each]


def _part_at(
    source: ArraySource, position: tuple[int, ...]
) -> tuple[ArraySource | None, tuple[int, ...]]:
    """Return the array that holds a chunk, None if it has no elements, and its position there."""
    part: ArraySource | None = source
    while part is not None and part.parts:
        part, position = part.parts[position[0]], position[1:]
    return part, position


def _chunks_of_blocks(each: Sequence[_Chunk], encoder: Encoder) -> list[BufferLike | None]:
    """Extract chunks from blocks; encode chunks that are not a part of their block."""
    wanted = [(part.blocks, position) for part, position in each if part.blocks is not None]
    in_grid = [blocks.view.grid_position(position) for blocks, position in wanted]
    keys = [join(b.path, block_path(p)) for (b, _), p in zip(wanted, in_grid, strict=True)]
    found: list[BufferLike | None] = []
    values = wanted[0][0].store.storage.run(get_each(keys))
    for (blocks, _), position, value in zip(wanted, in_grid, values, strict=True):
        if value is None:
            found.append(None)
            continue
        block, view = memoryview(value), blocks.view
        with ErrorsAt(partial(blocks.store.container.chunks.block_name, blocks.path, position)):
            part = chunk_slice(block, view)
            if part is None:
                found.append(encoder.chunk(decode_chunk(block, view, position)))
            else:
                found.append(block[part])
    return found


async def _get_each(each: Sequence[_Chunk]) -> list[BufferLike | None]:
    limit = asyncio.Semaphore(_AT_ONCE)
    names: dict[int, ChunkNames] = {}  # by array, of which there are few

    async def get(source: ArraySource, position: tuple[int, ...]) -> BufferLike | None:
        assert source.encoded is not None  # noqa: S101 - of arrays whose chunks are passed through
        if id(source) not in names:
            names[id(source)] = ChunkNames.of(source.encoded.metadata.to_dict())
        key = names[id(source)].key(source.encoded.path, position)
        async with limit:
            value = await source.encoded.store.get(key, cpu.buffer_prototype)
        return None if value is None else value.as_numpy_array().data

    return list(await asyncio.gather(*(get(*chunk) for chunk in each)))
