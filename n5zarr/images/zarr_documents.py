"""Present a source as Zarr: documents of its arrays and groups, and encoded chunks.

Images have keys in OME-Zarr, whose values are created on request.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import zarr
from zarr.abc.buffer import Buffer
from zarr.abc.store import Store
from zarr.buffer import cpu
from zarr.codecs import BytesCodec
from zarr.storage import MemoryStore
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import box_at
from n5zarr.arrays.encoder import Encoder
from n5zarr.arrays.placing import read_on_host
from n5zarr.codecs.buffers import BufferLike
from n5zarr.conventions.axis_names import with_names
from n5zarr.errors import ErrorsAt, N5Warning
from n5zarr.format.compression import Compression, Zstd
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.format.raw_json import nonfinite_note, strict
from n5zarr.images.find import ome_tree
from n5zarr.images.image import Images
from n5zarr.images.ome import DEFAULT_VERSION, OME_FORMATS, OmeVersion
from n5zarr.images.source import ArraySource, read_blocks
from n5zarr.zarr_view.chunks import chunk_slice, decode_chunk
from n5zarr.zarr_view.compressors import compressors_to_write, is_portable
from n5zarr.zarr_view.keys import METADATA_NAMES, ChunkNames, ZarrFormat

type _Chunk = tuple[ArraySource, tuple[int, ...]]

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
    in_grid = [(blocks, blocks.view.grid_position(position)) for blocks, position in wanted]
    found: list[BufferLike | None] = []
    values = read_blocks(in_grid)
    with ErrorsAt(lambda: blocks.store.container.chunks.block_name(blocks.path, position)):
        for (blocks, position), value in zip(in_grid, values, strict=True):
            if value is None:
                found.append(None)
                continue
            block = memoryview(value)
            part = chunk_slice(block, blocks.view)
            if part is None:
                found.append(encoder.chunk(decode_chunk(block, blocks.view, position)))
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
    zarr.create_group(store, path=path, attributes=strict(attributes), zarr_format=zarr_format)


def warn_of_text(name: str, groups: Mapping[str, JSON], arrays: Mapping[str, ArraySource]) -> None:
    """Warn of NaN and infinities in attributes, which become text in documents of Zarr."""
    note = nonfinite_note({**groups, **{path: each.attributes for path, each in arrays.items()}})
    if note:
        warnings.warn(f"{name}: {note}", N5Warning, stacklevel=4)


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
    # with Zarr v2 they name the axes, as xarray does
    names = with_names({}, source.dimension_names) if zarr_format == 2 else {}
    created: AnyArray = zarr.create_array(
        store,
        name=path or None,
        shape=source.shape,
        chunks=chunks,
        shards=shards,
        fill_value=source.fill_value,
        attributes=dict(strict({**source.attributes, **names})),
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
    if compression is not None:
        options["compressors"] = compressors_to_write(compression, zarr_format)
    if zarr_format == 2:
        options["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
    return options


class _Array(NamedTuple):
    """An array, the names of its chunks, and their encoder unless they pass through."""

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
    version : {"0.5", "0.4", "0.6"}, optional
        The version of OME-Zarr.

    Attributes
    ----------
    documents : dict of str to bytes
        All documents by key.
    """

    def __init__(self, found: Images, version: OmeVersion = DEFAULT_VERSION) -> None:
        zarr_format = OME_FORMATS[version]
        tree = ome_tree(found, version)
        warn_of_text(found.source.name, tree.groups, tree.arrays)
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
