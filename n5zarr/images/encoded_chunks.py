"""Read the encoded chunks of a source, to pass them through."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zarr.buffer import cpu

from n5zarr._zarr_private import sync
from n5zarr.arrays.encoder import Encoder
from n5zarr.errors import N5Error
from n5zarr.format.grid import block_path
from n5zarr.format.path import join
from n5zarr.storage.requests import get_each
from n5zarr.store.flows import ask_storage
from n5zarr.zarr_view.chunks import chunk_slice, decode_chunk
from n5zarr.zarr_view.keys import ChunkNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zarr.abc.store import Store

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.images.source import ArraySource, N5Blocks

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
    encoded, blocks = source.encoded, source.blocks
    assert encoded is not None  # noqa: S101 - of such sources
    encoder = Encoder.of(encoded)
    if blocks is not None and encoder is not None:
        return _chunks_of_blocks(blocks, encoder, positions)
    names = ChunkNames.of(encoded.metadata.to_dict())
    return sync(_get_each(encoded.store, [names.key(encoded.path, p) for p in positions]))


def _chunks_of_blocks(
    blocks: N5Blocks, encoder: Encoder, positions: Sequence[tuple[int, ...]]
) -> list[BufferLike | None]:
    """Extract chunks from blocks; encode chunks that are not a part of their block."""
    view, chunks = blocks.view, blocks.store.container.chunks
    in_grid = list(map(view.grid_position, positions))
    keys = [join(blocks.path, block_path(position)) for position in in_grid]
    found: list[BufferLike | None] = []
    values = ask_storage(blocks.store.storage, get_each(keys))
    for position, value in zip(in_grid, values, strict=True):
        if value is None:
            found.append(None)
            continue
        block = memoryview(value)
        try:
            part = chunk_slice(block, view)
            if part is None:
                found.append(encoder.chunk(decode_chunk(block, view, position)))
            else:
                found.append(block[part])
        except N5Error as err:
            raise err.located(chunks.block_name(blocks.path, position)) from err.__cause__
    return found


async def _get_each(store: Store, keys: Sequence[str]) -> list[BufferLike | None]:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def get(key: str) -> BufferLike | None:
        async with limit:
            value = await store.get(key, cpu.buffer_prototype)
        return None if value is None else value.as_numpy_array().data

    return list(await asyncio.gather(*map(get, keys)))
