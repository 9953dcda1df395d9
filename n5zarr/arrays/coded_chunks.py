"""Write parts of chunks that need zarr's codecs: text, structures, chunks with filters.

zarr itself reads such a chunk, changes it and writes it, so that of two writers of a chunk one
loses its changes. Here the chunk is changed under the lock of its block.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from zarr.buffer import cpu

from n5zarr._zarr import decode_chunk, encode_chunk
from n5zarr.arrays.batch import merged
from n5zarr.arrays.remote_blocks import run_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zarr.abc.buffer import NDBuffer
    from zarr.abc.codec import CodecPipeline

    from n5zarr._zarr import BatchItem
    from n5zarr.store.n5_store import N5Store

__all__ = ["update_chunks"]


async def update_chunks(
    pipeline: CodecPipeline,
    items: Sequence[BatchItem],
    value: NDBuffer,
    drop_axes: tuple[int, ...],
) -> None:
    """Write parts of chunks, many at a time.

    Parameters
    ----------
    pipeline : zarr.abc.codec.CodecPipeline
        zarr's pipeline for the array.
    items : sequence
        The chunks, at least one, of one array.
    value : zarr.abc.buffer.NDBuffer
        The elements to write.
    drop_axes : tuple of int
        Axes of the selections that the value does not have.
    """
    store: N5Store = items[0][0].store

    async def update(k: int) -> None:
        change = partial(_change_part, pipeline, items[k], value, drop_axes)
        await store.run_async(store.container.update(items[k][0].path, change))

    await run_each(update, len(items), store.concurrency)


def _change_part(
    pipeline: CodecPipeline,
    item: BatchItem,
    value: NDBuffer,
    drop_axes: tuple[int, ...],
    old: bytes | None,
) -> bytes | None:
    """Return a chunk with a part of it replaced; None if it is to be removed."""
    spec = item[1]
    stored = None if old is None else decode_chunk(pipeline, cpu.Buffer.from_bytes(old), spec)
    chunk = merged(item, value, drop_axes, stored)
    encoded = None if chunk is None else encode_chunk(pipeline, chunk, spec)
    return None if encoded is None else encoded.to_bytes()
