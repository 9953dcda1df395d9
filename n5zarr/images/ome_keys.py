"""Read the keys that images have in OME-Zarr 0.5; their values are created on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from zarr.storage import MemoryStore

from n5zarr.arrays.boxes import box_at
from n5zarr.arrays.encoder import Encoder
from n5zarr.format.path import join
from n5zarr.images.encoded_chunks import read_chunks
from n5zarr.images.find import ome_tree
from n5zarr.images.zarr_documents import create_group, create_like
from n5zarr.zarr_view.keys import DEFAULT_NAMES

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer

    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.images.image import Images
    from n5zarr.images.source import ArraySource

__all__ = ["OmeZarrKeys"]


class OmeZarrKeys:
    """The keys that a conversion to OME-Zarr would write, with the same values.

    Blocks are passed through where they are chunks of OME-Zarr; all others are encoded when they
    are read.

    Parameters
    ----------
    found : Images
        The images, as :func:`n5zarr.images.find.open_images` finds them.

    Attributes
    ----------
    documents : dict of str to bytes
        All documents by key.
    """

    def __init__(self, found: Images) -> None:
        tree = ome_tree(found)
        documents: dict[str, Buffer] = {}
        memory = MemoryStore(documents)
        for path, attributes in tree.groups.items():
            create_group(memory, path, attributes)
        self._arrays: dict[str, tuple[ArraySource, Encoder | None]] = {}
        for path, source in tree.arrays.items():
            written, stored = create_like(memory, path, source), source.encoded
            is_passed = stored is not None and stored.compressors == written.compressors
            encoder = None if is_passed else Encoder.of(written)
            if is_passed or encoder is not None:
                self._arrays[path] = source, encoder
            else:
                del documents[join(path, "zarr.json")]
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
        path, _, name = f"/{key}".rpartition("/c/")
        position = DEFAULT_NAMES[3].coords(f"c/{name}")
        if path.lstrip("/") not in self._arrays or position is None:
            return None
        source, encoder = self._arrays[path.lstrip("/")]
        if len(position) != len(source.shape):
            return None
        box = box_at(position, source.chunks, source.shape)
        if any(part.start >= part.stop for part in box):
            return None
        if encoder is None:
            return read_chunks(source, [position])[0]
        # zarr itself would wait for threads, all of which may be here
        return encoder.chunk(np.asarray(source.values[box]))
