"""Find the local files behind an array that is copied, and describe the array."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import zarr

from n5zarr.arrays.boxes import places_in
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.storage.files import stamp
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import place_of
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.keys import ChunkNames


@dataclass(frozen=True)
class SourceFiles:
    """The local files of the chunks, or blocks, of an array.

    Parameters
    ----------
    root : str
        The directory of the keys.
    unit : tuple of int
        Extent of a chunk in elements, in the order of the array.
    key : callable
        Returns the key of a chunk from its position in the grid.
    """

    root: str
    unit: tuple[int, ...]
    key: Callable[[tuple[int, ...]], str]

    @classmethod
    def of(cls, source: ArraySource) -> SourceFiles | None:
        """Find the files of an array; None if it is on a server, or in a file of another format."""
        if source.blocks is not None:
            root, unit = source.blocks.store.storage.root, source.blocks.view.chunk_shape
            return None if root is None else cls(str(root), unit, source.blocks.key)
        values = source.values
        if not isinstance(values, zarr.Array) or isinstance(values.store, N5Store):
            return None
        try:
            names = ChunkNames.of(values.metadata.to_dict())
            unit = tuple(values.shards or values.chunks)
        except (NotImplementedError, N5UnrepresentableError):  # keys that are not known
            return None
        root = open_storage(place_of(values.store)).root
        return None if root is None else cls(str(root), unit, partial(names.key, values.path))

    def behind(self, box: Sequence[slice]) -> list[str]:
        """Return the files of the chunks that touch a box, stored or not."""
        return [f"{self.root}/{self.key(each)}" for each in product(*places_in(box, self.unit))]


def described_sources(found: SourceTree) -> dict[str, JSON]:
    """Describe arrays as far as their blocks depend on it, for a run that goes on."""
    described: dict[str, JSON] = {
        f"/{path}": described_source(source) for path, source in found.arrays.items()
    }
    places = [Path(found.name), *Path(found.name).parents]
    # of another format, a project's HDF5, or an archive
    file = next((place for place in places if place.is_file()), None)
    known = None if file is None else stamp(file)
    if known is not None:
        described[str(file)] = {"modified": known[1], "size": known[2]}
    return described


def described_dataset(dataset: DatasetAttributes) -> dict[str, JSON]:
    """Describe a dataset of N5; see :func:`described_sources`."""
    return {
        "dimensions": [*dataset.dimensions],
        "blockSize": [*dataset.block_size],
        "dataType": dataset.type_name,
        "compression": repr(dataset.compression),
    }


def described_source(source: ArraySource) -> dict[str, JSON]:
    """Describe an array; see :func:`described_sources`."""
    form: object = None
    if source.blocks is not None:
        return described_dataset(source.blocks.view.dataset)
    if isinstance(source.values, zarr.Array):
        document: dict[str, Any] = dict(source.values.metadata.to_dict())
        document.pop("attributes", None)
        form = json.dumps(document, default=repr, sort_keys=True)
    return {
        "shape": [*source.shape],
        "chunks": [*source.chunks],
        "dtype": str(source.native_dtype),
        "fill": str(source.fill_value),
        "other": blake2b(repr(form).encode(), digest_size=8).hexdigest(),
    }
