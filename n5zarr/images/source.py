"""Describe arrays and groups of any format: values, encoded chunks and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import batched, chain, groupby, repeat
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import zarr
from zarr.abc.store import SupportsSyncStore
from zarr.types import AnyArray

from n5zarr.arrays.boxes import BoxSlices
from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.shard import LAST
from n5zarr.container.block_listing import stored_positions
from n5zarr.container.walk import PathPatterns
from n5zarr.conventions.model import level_of
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.compression import Compression
from n5zarr.format.grid import block_path
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import groups_above, join
from n5zarr.rooms import Door
from n5zarr.storage.interface import Storage
from n5zarr.storage.requests import get_each, read_key
from n5zarr.store.locating import Document
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

_TOGETHER = 2**20  # bytes of small blocks that are read together


class Values(Protocol):
    """An array that returns the values of boxes; can be pickled for other processes.

    One of a file holds its path, not the open file: each process opens it for itself. It may have
    a method that lists its stored chunks, see :func:`~n5zarr.arrays.stored_chunks.stored_chunks`.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent in elements."""

    def __getitem__(self, box: BoxSlices, /) -> Any:  # noqa: ANN401 - numpy's array, or what makes one
        """Read a box."""


@dataclass(frozen=True, eq=False)
class N5Blocks:
    """The stored blocks of an N5 dataset.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset.
    """

    store: N5Store
    path: str
    view: DatasetView

    @property
    def document(self) -> bytes:
        """The stored ``attributes.json``."""
        stored = self.store.run(read_key(join(self.path, ATTRIBUTES_JSON)))
        return b"{}" if stored is None else bytes(stored)

    @property
    def compression(self) -> Compression:
        """The compression of the blocks."""
        return self.view.dataset.compression

    def key(self, position: tuple[int, ...]) -> str:
        """Return the stored key of a block from its position in the grid, in array order."""
        return join(self.path, block_path(self.view.grid_position(position)))

    def positions(self) -> Iterator[N5Tuple]:
        """List the grid positions of the stored blocks, N5 order."""
        return stored_positions(self.store.run, self.path, self.view.dataset.grid)

    def small(self, positions: Sequence[N5Tuple]) -> list[bytes | None]:
        """Read small blocks of local files together; None for each that takes a request."""
        n_first = 2 * self.view.full_n_bytes + LAST  # few payloads are longer
        n = max(1, _TOGETHER // (n_first + LAST))
        each = (
            ends_of_blocks(self.store, self.path, p, n_first, LAST) for p in batched(positions, n)
        )
        return [
            None if ends is None or len(ends[1]) < ends[0] else ends[1]
            for ends in (chain.from_iterable(each) if n > 1 else repeat(None, len(positions)))
        ]


def read_blocks(wanted: Sequence[tuple[N5Blocks, N5Tuple]]) -> list[BufferLike | None]:
    """Read stored blocks, small ones of local files together.

    Parameters
    ----------
    wanted : sequence of (N5Blocks, tuple of int)
        Datasets of one container, and grid positions in them, N5 order.

    Returns
    -------
    list of bytes-like or None
        The blocks, header first; None for each missing one.
    """
    found: list[BufferLike | None] = []
    for blocks, group in groupby(wanted, itemgetter(0)):
        found += blocks.small([position for _, position in group])
    left = [k for k, data in enumerate(found) if data is None]
    keys = [join(blocks.path, block_path(p)) for blocks, p in map(wanted.__getitem__, left)]
    values = wanted[0][0].store.storage.run(get_each(keys)) if left else []
    for k, data in zip(left, values, strict=True):
        found[k] = data
    return found


_READ_ENDS: Door[
    Callable[[str, Sequence[N5Tuple], int, int], list[tuple[int, bytes, bytes] | None]]
] = Door("speed", "ends of files")


def ends_of_blocks(
    store: N5Store, path: str, positions: Sequence[N5Tuple], first: int, last: int
) -> list[tuple[int, bytes, bytes] | None]:
    """Read both ends of local files of blocks together, in a third of the time of requests.

    Returns
    -------
    list
        The answers of :class:`~n5zarr.storage.requests.Ends`; None of a file that takes a request.
    """
    root = store.storage.root
    if root is None:
        return [None] * len(positions)
    directory = f"{root}/{join(path, '')}"
    read_ends = _READ_ENDS.found()
    if read_ends is None:
        return [None] * len(positions)
    return read_ends(directory, positions, first, last)


@dataclass(frozen=True, eq=False)
class ArraySource:
    """An array to read or copy.

    Parameters
    ----------
    name : str
        Where it is, for messages.
    values : Values
        Its elements, C order.
    dtype : ZDType or numpy.dtype
        Data type of Zarr's.
    chunks : tuple of int
        Extent in elements of the best unit to read, and of the chunks of a copy.
    encoded : zarr.Array, optional
        The same array with chunks that any reader of Zarr decodes, for passing them through.
    blocks : N5Blocks, optional
        The stored blocks, of an N5 dataset.
    parts : tuple of ArraySource or None, optional
        Of an array of arrays, the one at each index of the first axis; None if it has no elements.
    compression : Compression, optional
        That of the N5 blocks which hold the values.
    fill_value : object, optional
        Value of missing elements.
    attributes : mapping, optional
        Its attributes.
    dimension_names : sequence of str or None, optional
        Names of its dimensions.
    label_multiset : bool, optional
        Whether N5 stores these labels as label multisets.
    units, resolution, offset : sequence, optional
        Unit of each axis, distance between its elements, and position of the first one, if
        attributes lack them.
    """

    name: str
    values: Values
    dtype: Any
    chunks: tuple[int, ...]
    encoded: AnyArray | None = None
    blocks: N5Blocks | None = None
    parts: tuple[ArraySource | None, ...] = ()
    compression: Compression | None = None
    fill_value: Any = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    dimension_names: Sequence[str | None] | None = None
    label_multiset: bool = False
    units: Sequence[str] | None = None
    resolution: Sequence[float] | None = None
    offset: Sequence[float] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent in elements."""
        return tuple(self.values.shape)

    @property
    def native_dtype(self) -> np.dtype[Any]:
        """Data type of numpy's."""
        native: np.dtype[Any] = getattr(self.dtype, "to_native_dtype", lambda: self.dtype)()
        return native

    @property
    def holds_multisets(self) -> bool:
        """Whether its blocks of N5 hold label multisets."""
        return self.blocks is not None and self.blocks.view.content is Content.LABELS

    @property
    def stored(self) -> tuple[N5Blocks | AnyArray, ...]:
        """The arrays of Zarr, or blocks of N5, that hold the elements; none of other formats."""
        own = self.values if isinstance(self.values, zarr.Array) else self.blocks
        return tuple(s for p in self.parts if p for s in p.stored) if own is None else (own,)

    @property
    def item_size(self) -> int:
        """Bytes of an element; of text, an estimate."""
        return max(1, self.native_dtype.itemsize)


@dataclass(frozen=True, eq=False)
class SourceTree:
    """The arrays and groups at a location.

    Parameters
    ----------
    name : str
        Where they are, for messages.
    arrays : mapping
        The arrays by path; ``""`` if the source is one array.
    groups : mapping
        The attributes of each group by path, that of the top one is ``""``.
    refused : mapping, optional
        The errors of nodes that cannot be read, by path.
    container : N5Store, optional
        The container, if it is one.
    path : str, optional
        The path of the source in it.
    document : Document, optional
        The document that names the container, if the source was named by it.
    files : mapping, optional
        Other files to write, by path.
    storage : Storage, optional
        The keys of the source; none of a file in another format.
    """

    name: str
    arrays: Mapping[str, ArraySource]
    groups: Mapping[str, Mapping[str, JSON]]
    refused: Mapping[str, Exception] = field(default_factory=dict)
    container: N5Store | None = None
    path: str = ""
    document: Document | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    storage: Storage | None = None

    @property
    def is_local(self) -> bool:
        """Whether reading does not wait for a server."""
        stores = (array.encoded.store for array in self.arrays.values() if array.encoded)
        store = self.container or next(stores, None)
        if isinstance(store, N5Store):
            return store.storage.supports_sync
        return store is None or isinstance(store, SupportsSyncStore)

    def only(self, paths: PathPatterns, level: int | None) -> SourceTree:
        """Return the arrays whose path matches a pattern, and the groups that hold them.

        Parameters
        ----------
        paths : PathPatterns
            Patterns of arrays, or of groups that hold them.
        level : int or None
            Of pyramids with levels ``s0``, ``s1``, ..., the one to take.
        """

        def is_wanted(path: str) -> bool:
            number = level_of(path.rpartition("/")[2])
            if level is not None and number not in (None, level):
                return False
            return paths.wants(path)

        if not paths.select and not paths.exclude and level is None:
            return self
        arrays = {path: array for path, array in self.arrays.items() if is_wanted(path)}
        refused = {path: err for path, err in self.refused.items() if is_wanted(path)}
        held = {path for a in arrays for path in groups_above(a)}
        groups = {path: attributes for path, attributes in self.groups.items() if path in held}
        return replace(self, arrays=arrays, groups=groups, refused=refused)
