"""Create the documents of Zarr arrays and groups that hold the same as those of a source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import zarr
from zarr.codecs import BytesCodec

from n5zarr.conventions.axis_names import with_names
from n5zarr.format.compression import Zstd
from n5zarr.zarr_view.compressors import is_portable, numcodecs_compressor, zarr_compressors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zarr.abc.store import Store
    from zarr.types import AnyArray

    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.source import ArraySource
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["create_group", "create_like"]


def create_group(
    store: Store, path: str, attributes: Mapping[str, JSON], zarr_format: ZarrFormat = 3
) -> None:
    """Create the document of a group, and those of the groups above it.

    Parameters
    ----------
    store : Store
        Where to write.
    path : str
        Of the group.
    attributes : mapping
        Its attributes.
    zarr_format : {3, 2}, optional
        The format.
    """
    plain = json.loads(json.dumps(dict(attributes)))
    zarr.create_group(store, path=path, attributes=plain, zarr_format=zarr_format)


def create_like(  # noqa: PLR0913 - what may differ from the source
    store: Store,
    path: str,
    source: ArraySource,
    *,
    chunks: tuple[int, ...] | None = None,
    shards: tuple[int, ...] | None = None,
    compression: Compression | None = None,
    zarr_format: ZarrFormat = 3,
) -> AnyArray:
    """Create an array like a source, without elements, with the same codecs where possible.

    A compression that not every reader of Zarr knows becomes zstd.

    Parameters
    ----------
    store : Store
        Where to write the document.
    path : str
        Of the array.
    source : ArraySource
        The array to imitate.
    chunks, shards : tuple of int, optional
        Extents in elements, C order; by default the chunks of the source, and no shards.
    compression : Compression, optional
        Another compression.
    zarr_format : {3, 2}, optional
        The format.
    """
    chunks = chunks or source.chunks
    options = _codecs(source, chunks, compression, zarr_format)
    created: AnyArray = zarr.create_array(
        store,
        name=path or None,
        shape=source.shape,
        chunks=chunks,
        shards=shards,
        fill_value=source.fill_value,
        attributes=_attributes(source, zarr_format),
        dimension_names=source.dimension_names if zarr_format == 3 else None,
        zarr_format=zarr_format,
        dtype=source.dtype,
        **options,
    )
    return created


def _codecs(
    source: ArraySource,
    chunks: tuple[int, ...],
    compression: Compression | None,
    zarr_format: ZarrFormat,
) -> dict[str, Any]:
    """Return the codecs of an array like a source."""
    like = source.encoded
    options: dict[str, Any] = {}
    if like is not None and like.metadata.zarr_format == zarr_format:
        options = {"filters": like.filters, "compressors": like.compressors}
        if zarr_format == 3:
            options["serializer"] = like.serializer
            if chunks != source.chunks and isinstance(like.serializer, BytesCodec):
                options["serializer"] = BytesCodec()  # as this machine: nothing passes through
    if compression is None and source.blocks and not is_portable(source.blocks.compression):
        compression = Zstd()
    if compression is not None and zarr_format == 3:
        options["compressors"] = zarr_compressors(compression)
    elif compression is not None:
        options["compressors"] = numcodecs_compressor(compression)
    if zarr_format == 2:
        options["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
    return options


def _attributes(source: ArraySource, zarr_format: ZarrFormat) -> dict[str, JSON]:
    """Return the attributes to write; with Zarr v2 they name the axes, as xarray does."""
    names = with_names({}, source.dimension_names) if zarr_format == 2 else {}
    plain: dict[str, JSON] = json.loads(json.dumps({**source.attributes, **names}))
    return plain
