"""Read the keys that images have in OME-Zarr; their values are created on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zarr.storage import MemoryStore

from n5zarr.arrays.boxes import box_at
from n5zarr.arrays.encoder import Encoder
from n5zarr.arrays.placing import read_on_host
from n5zarr.format.path import join
from n5zarr.images.encoded_chunks import read_chunks
from n5zarr.images.find import ome_tree
from n5zarr.images.ome_version import DEFAULT_VERSION, OME_FORMATS, OmeVersion
from n5zarr.images.zarr_documents import create_group, create_like
from n5zarr.zarr_view.keys import METADATA_NAMES, ChunkNames

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.images.image import Images
    from n5zarr.images.source import ArraySource

__all__ = ["OmeZarrKeys"]


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
