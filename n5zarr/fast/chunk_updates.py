"""Change chunks through zarr's codecs, under the lock of their block.

zarr itself reads a chunk, changes it and writes it, so that of two writers of a chunk one loses its
changes. So this module writes parts of chunks that need zarr's codecs: of text, of structures, with
filters; and all chunks while what reads and writes blocks is imported. Therefore it imports none of
that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from zarr.abc.buffer import NDBuffer
from zarr.abc.codec import CodecPipeline
from zarr.buffer import cpu

from n5zarr._zarr import decode_chunk, encode_chunk, max_workers
from n5zarr.fast.turns import turns_of
from n5zarr.fast.workers import share_out
from n5zarr.storage.ending import on_thread
from n5zarr.storage.threads import run_each

if TYPE_CHECKING:
    from n5zarr._zarr import BatchItem
    from n5zarr.storage.requests import Steps
    from n5zarr.store.n5_store import N5Store


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

    def flow(k: int) -> Steps[None]:
        change = partial(_change_part, pipeline, items[k], value, drop_axes)
        return store.container.update(items[k][0].path, change)

    await run_flows(store, flow, len(items))


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


def merged(
    item: BatchItem, value: NDBuffer, drop_axes: tuple[int, ...], stored: NDBuffer | None
) -> NDBuffer | None:
    """Replace a part of a chunk, as zarr does when it writes.

    Parameters
    ----------
    item : tuple
        The chunk and its part.
    value : zarr.abc.buffer.NDBuffer
        The elements of all items of the batch, or one for all.
    drop_axes : tuple of int
        Axes of the selections that the value does not have.
    stored : zarr.abc.buffer.NDBuffer or None
        The chunk as it is stored; None if it is missing.

    Returns
    -------
    zarr.abc.buffer.NDBuffer or None
        The whole chunk, perhaps a view of the value; None if it is to be removed.
    """
    _, spec, selection, value_selection, is_complete = item
    fill_value = spec.fill_value
    if fill_value is None:  # of Zarr v2
        fill_value = spec.dtype.default_scalar()
    is_scalar = value.shape == ()
    part = value if is_scalar else value[value_selection]
    if is_complete and not is_scalar and part.shape == tuple(spec.shape):
        chunk = part
    else:
        if stored is None:
            chunk = spec.prototype.nd_buffer.create(
                shape=spec.shape,
                dtype=spec.dtype.to_native_dtype(),
                order=spec.config.order,
                fill_value=fill_value,
            )
        else:
            chunk = stored.copy()
        if drop_axes and not is_scalar:
            axes = range(len(spec.shape))
            part = part[tuple(None if axis in drop_axes else slice(None) for axis in axes)]
        chunk[selection] = part
    return chunk if spec.config.write_empty_chunks or not chunk.all_equal(fill_value) else None


async def run_flows(store: N5Store, flow: Callable[[int], Steps[object]], n: int) -> None:
    """Run the flows of numbers below ``n``, many at a time; stop at the first error."""

    def work(lot: Iterable[int]) -> list[object]:
        return [store.run(flow(k)) for k in lot]

    async def run(k: int) -> None:
        await store.run_async(flow(k))

    if store.storage.supports_sync:  # in memory, a task costs more than a small block
        await on_thread(share_out, work, range(n), max_workers())
    else:
        turns = turns_of(store.storage, store.concurrency)
        await run_each(run, n, store.concurrency, turns.on_loop())
