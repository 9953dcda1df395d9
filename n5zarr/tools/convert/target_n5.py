"""Write copies of arrays as N5; see :mod:`n5zarr.tools.convert.target`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast, override

from zarr.buffer import cpu
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.arrays.boxes import StoredChunks
from n5zarr.arrays.creating import create_array
from n5zarr.arrays.encoder import nearest_compression
from n5zarr.arrays.group import as_zarr
from n5zarr.arrays.opening import open_array
from n5zarr.arrays.stored_chunks import stored_blocks
from n5zarr.codecs.buffers import BufferLike
from n5zarr.format.attributes import ATTRIBUTES_JSON, has_java_codecs
from n5zarr.format.compression import Compression, Gzip, Jpeg, Raw, compression_to_json
from n5zarr.format.lenient_json import parse_json
from n5zarr.format.order import from_presented
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.format.version import SUPPORTED_VERSION, VERSION_KEY
from n5zarr.images.source import ArraySource, N5Blocks
from n5zarr.storage.requests import read_each
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.target import ArrayTarget, Destination, Layout
from n5zarr.zarr_view.keys import DEFAULT_NAMES


@dataclass(frozen=True, eq=False)
class N5Target(ArrayTarget):
    """A dataset of N5; see :class:`ArrayTarget`.

    Parameters
    ----------
    blocks : N5Blocks
        The stored blocks; their container presents Zarr, and takes encoded chunks.
    """

    blocks: N5Blocks

    @property
    @override
    def compression(self) -> Compression:
        return self.blocks.compression

    @override
    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks:
        return stored_blocks(self.blocks.store.run, self.path, self.blocks.view, within)

    @override
    def key(self, position: tuple[int, ...]) -> str:
        return self.blocks.key(position)

    @property
    @override
    def encoded(self) -> AnyArray:
        return cast("AnyArray", as_zarr(self.blocks.store, self.path, self.blocks.view))  # no group

    @override
    def put(self, units: Sequence[tuple[tuple[int, ...], BufferLike]]) -> int:
        store = self.blocks.store
        for position, value in units:
            key = DEFAULT_NAMES[3].key(self.path, position)
            store.run(store.container.write(key, memoryview(value)))
        return sum(memoryview(value).nbytes for _, value in units)


@dataclass(eq=False)
class N5Destination(Destination):
    """A container; see :class:`Destination`.

    Parameters
    ----------
    container : N5Store
        The container, with n5zarr's own codec.
    """

    container: N5Store = field(kw_only=True)

    @cached_property
    @override
    def documents_store(self) -> N5Store:
        store = N5Store(self._memory, zarr_format=3)
        store.container.name = str(self.storage)  # in errors and warnings
        return store

    def keep_groups(self, container: N5Store, path: str, below: Sequence[str]) -> None:
        """Take the documents of groups as another container has them."""
        keys = [join(path, group, ATTRIBUTES_JSON) for group in below]
        for group, document in zip(below, container.run(read_each(keys)), strict=True):
            if document is not None:
                kept = RawObject.parse(bytes(document))
                if not join(path, group) and self.path:  # it is no root any more
                    kept.remove(VERSION_KEY)
                self.add_file(join(group, ATTRIBUTES_JSON), kept.to_bytes())

    @override
    def documents(self) -> dict[str, bytes]:
        """Return the documents; that of the root names the version."""
        found = super().documents()
        root = RawObject.parse(found.pop(ATTRIBUTES_JSON, None))
        if VERSION_KEY not in root.values:
            root.set(VERSION_KEY, ".".join(map(str, SUPPORTED_VERSION)))
        return {**found, ATTRIBUTES_JSON: root.to_bytes()}

    @override
    def create_array(self, path: str, source: ArraySource, layout: Layout) -> N5Target:
        full = join(self.path, path)
        chunks = layout.chunks_of(source)
        blocks = source.blocks
        # other blocks of JPEG would not hold the values unchanged
        if blocks is not None and (
            chunks == source.chunks or not isinstance(blocks.compression, Jpeg)
        ):
            self.add_file(join(path, ATTRIBUTES_JSON), _changed(blocks, chunks, layout))
        else:
            self._create(full, source, chunks, layout)
        data: Any = sync(self._memory.get(join(full, ATTRIBUTES_JSON), cpu.buffer_prototype))
        document: Any = parse_json(data.to_bytes())
        array = open_array(self.container, "r+", path=full, assume_metadata=document)
        store, durability = self.container.storage.store, self.container.durability
        shown = N5Store(store, zarr_format=3, durability=durability).assuming(full, document)
        view: Any = shown.node(full)  # the document is one of a dataset
        return N5Target(full, array, N5Blocks(shown, full, view))

    def _create(
        self, path: str, source: ArraySource, chunks: tuple[int, ...], layout: Layout
    ) -> None:
        """Make the document of a dataset like an array of another format."""
        names = source.dimension_names or ()
        is_named = all(names) and len(set(names)) == len(names) > 0
        compression = layout.compression or _nearest(source)
        attributes = dict(source.attributes)
        attributes.pop("isLabelMultiset", None)  # Paintera's, of elements that are labels now
        create_array(
            self.documents_store,
            path=path,
            shape=source.shape,
            dtype=None if source.label_multiset else source.dtype,
            chunks=chunks,
            compression=compression_to_json(compression),
            fill_value=source.fill_value,
            axes=list(filter(None, names)) if is_named else None,
            units=source.units,
            resolution=source.resolution,
            offset=source.offset,
            attributes=attributes,
            label_multiset=source.label_multiset,
        )


def _changed(blocks: N5Blocks, chunks: tuple[int, ...], layout: Layout) -> bytes:
    """Return the document of a dataset, with another block size and compression where asked for."""
    document = RawObject.parse(blocks.document)
    if chunks != blocks.view.chunk_shape:
        document.set("blockSize", list(from_presented(chunks, blocks.view.axis_order)))
    has_codecs = has_java_codecs(document.values)  # a copy is for all programs
    if has_codecs or layout.compression not in (None, blocks.compression):
        compression = layout.compression or blocks.compression
        document.set("compression", compression_to_json(compression))
        document.remove("compressionType")
    if has_codecs:
        document.remove("codecs")
    return document.to_bytes()


def _nearest(source: ArraySource) -> Compression:
    """Return the compression of N5 that is nearest to that of an array, or gzip."""
    if source.blocks is not None:
        return Gzip() if isinstance(source.blocks.compression, Jpeg) else source.blocks.compression
    codecs = source.encoded.compressors if source.encoded is not None else ()
    if source.encoded is not None and not codecs:
        return Raw()
    return (nearest_compression(codecs[0]) if codecs else None) or Gzip()
