"""Choose the way of an array: which of its stored bytes can be passed through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.tools.convert.target_n5 import N5Target

if TYPE_CHECKING:
    from zarr.types import AnyArray

    from n5zarr.images.source import ArraySource
    from n5zarr.tools.convert.copying import Way
    from n5zarr.tools.convert.target import ArrayTarget

__all__ = ["way_of"]


def way_of(source: ArraySource, target: ArrayTarget) -> Way:
    """Return how an array is copied; see :mod:`n5zarr.tools.convert.copying`."""
    if isinstance(target, N5Target) and source.blocks is not None:
        return "blocks" if target.array.chunks == source.chunks else "values"
    if source.encoded is None or not source.shape:
        return "values"
    written = target.encoded
    if _chunk_format(written) != _chunk_format(source.encoded):
        return "values"
    return "chunks" if written.shards is None else "shards"


def _chunk_format(array: AnyArray) -> object:
    """Return all that the bytes of a chunk depend on."""
    metadata = array.metadata
    fill = str(array.fill_value)
    if metadata.zarr_format == 2:
        return (
            metadata.dtype,
            array.chunks,
            metadata.order,
            metadata.filters,
            metadata.compressor,
            fill,
        )
    return metadata.data_type, array.chunks, metadata.inner_codecs, fill
