"""Create the documents of Zarr arrays and groups that hold the same as those of a source.

Images have keys in OME-Zarr, whose values are created on request.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import zarr
from zarr.codecs import BytesCodec
from zarr.storage import MemoryStore

from n5zarr.arrays.boxes import box_at
from n5zarr.arrays.encoder import Encoder
from n5zarr.arrays.placing import read_on_host
from n5zarr.conventions.axis_names import with_names
from n5zarr.format.compression import Zstd
from n5zarr.format.path import join
from n5zarr.images.encoded_chunks import read_chunks
from n5zarr.images.find import ome_tree
from n5zarr.images.ome_version import DEFAULT_VERSION, OME_FORMATS, OmeVersion
from n5zarr.zarr_view.compressors import is_portable, numcodecs_compressor, zarr_compressors
from n5zarr.zarr_view.keys import METADATA_NAMES, ChunkNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zarr.abc.buffer import Buffer
    from zarr.abc.store import Store
    from zarr.types import AnyArray

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.image import Images
    from n5zarr.images.source import ArraySource
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["OmeZarrKeys", "create_group", "create_like"]


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


class _Array(NamedTuple):
    """An array: its elements, the names of its chunks, and what encodes them, unless they pass."""

    source: ArraySource
    names: ChunkNames
    encoder: Encoder | None


class OmeZarrKeys:
    """The keys that a conversion to OME-Zarr would write, with the same values.

    Blocks are passed through where they are chunks of OME-Zarr; all others are encoded when they
    are read.

    Parameters
    ----------
    found : Images
        The images, as :func:`n5zarr.images.find.images_in` finds them in a source whose chunks have
        the format of the version.
    version : {"0.5", "0.4", "0.6rc0"}, optional
        The version of OME-Zarr.

    Attributes
    ----------
    documents : dict of str to bytes
        All documents by key.
    """

    def __init__(self, found: Images, version: OmeVersion = DEFAULT_VERSION) -> None:
        zarr_format = OME_FORMATS[version]
        tree = ome_tree(found, version)
        documents: dict[str, Buffer] = {}
        memory = MemoryStore(documents)
        for path, attributes in tree.groups.items():
            create_group(memory, path, attributes, zarr_format)
        self._arrays: dict[str, _Array] = {}
        for path, source in tree.arrays.items():
            written = create_like(memory, path, source, zarr_format=zarr_format)
            stored = source.encoded
            is_passed = stored is not None and stored.compressors == written.compressors
            encoder = None if is_passed else Encoder.of(written)
            if is_passed or encoder is not None:
                names = ChunkNames.of(written.metadata.to_dict())
                self._arrays[path] = _Array(source, names, encoder)
            else:
                for name in METADATA_NAMES[zarr_format]:
                    documents.pop(join(path, name), None)
        self.documents: dict[str, bytes] = {
            key: value.to_bytes() for key, value in documents.items()
        }
        self.documents.update(tree.files)

    def read(self, key: str) -> BufferLike | None:
        """Read a document, or read or encode a chunk; None if it is missing.

        A chunk is missing if it is not stored, or has the fill value only.
        """
        if key in self.documents:
            return self.documents[key]
        found = self._chunk_at(key)
        if found is None:
            return None
        (source, _, encoder), position = found
        box = box_at(position, source.chunks, source.shape)
        if any(part.start >= part.stop for part in box):
            return None
        if encoder is None:
            return read_chunks(source, [position])[0]
        # zarr itself would wait for threads, all of which may be here
        return encoder.chunk(read_on_host(source.values, box))

    def _chunk_at(self, key: str) -> tuple[_Array, tuple[int, ...]] | None:
        """Return the array of a chunk, and its position; None for all other keys."""
        parts = key.split("/")
        for n in range(len(parts)):
            array = self._arrays.get("/".join(parts[:n]))
            position = array and array.names.coords("/".join(parts[n:]))
            if array and position and len(position) == len(array.source.shape):
                return array, position
        return None
