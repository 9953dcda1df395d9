"""Write parts of chunks that need zarr's codecs: text, structures, chunks with filters.

zarr itself reads such a chunk, changes it and writes it, so that of two writers of a chunk one
loses its changes. Here the chunk is changed under the lock of its block.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from zarr.buffer import cpu

from n5zarr._zarr import merge_and_encode_chunk
from n5zarr.arrays.remote_blocks import run_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zarr.abc.buffer import NDBuffer

    from n5zarr._zarr import BatchItem, ChunkTransform
    from n5zarr.store.n5_store import N5Store

__all__ = ["update_chunks"]


async def update_chunks(
    transform: ChunkTransform,
    items: Sequence[BatchItem],
    value: NDBuffer,
    drop_axes: tuple[int, ...],
) -> None:
    """Write parts of chunks, many at a time.

    Parameters
    ----------
    transform : ChunkTransform
        The codecs of the array.
    items : sequence
        The chunks, at least one, of one array.
    value : zarr.abc.buffer.NDBuffer
        The elements to write.
    drop_axes : tuple of int
        Axes of the selections that the value does not have.
    """
    store: N5Store = items[0][0].store

    async def update(k: int) -> None:
        change = partial(_change_part, transform, items[k], value, drop_axes)
        await store.run_async(store.container.update(items[k][0].path, change))

    await run_each(update, len(items), store.concurrency)


def _change_part(
    transform: ChunkTransform,
    item: BatchItem,
    value: NDBuffer,
    drop_axes: tuple[int, ...],
    old: bytes | None,
) -> bytes | None:
    """Return a chunk with a part of it replaced; None if it is to be removed."""
    _, spec, selection, value_selection, is_complete = item
    new = merge_and_encode_chunk(
        None if old is None else cpu.Buffer.from_bytes(old),
        value,
        chunk_spec=spec,
        chunk_selection=selection,
        out_selection=value_selection,
        is_complete=is_complete,
        drop_axes=drop_axes,
        decode=transform.decode_chunk,
        encode=transform.encode_chunk,
    )
    return None if new is None else new.to_bytes()
