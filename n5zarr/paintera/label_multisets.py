"""``n5zarr.read_label_multisets``, ``write_label_multisets``: all labels of voxels, with counts.

New datasets of labels become datasets of label multisets here, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import batched, product
from operator import add, index, mul
from typing import Self

import numpy as np
import numpy.typing as npt

from n5zarr.arrays.box import Box
from n5zarr.arrays.open_dataset import OpenDataset
from n5zarr.codecs.label_multiset import encode_multisets
from n5zarr.codecs.multiset_merging import pasted, used_only
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.codecs.shard import check_not_sharded, in_memory
from n5zarr.container.options import require
from n5zarr.errors import ErrorsAt, N5UnsupportedError, option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.paintera.combining import joined, transposed
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.storage.requests import Put, Update, get_each, read_key, request_each
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import datasets_below, existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.chunks import stored_multisets
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content

_AT_ONCE = 64  # blocks in one batch of requests


def read_label_multisets(
    location: Location,
    path: str = "",
    box: object = ...,
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> LabelMultisets:
    """Read all labels of voxels, with their counts, from label multisets of Paintera.

    :func:`n5zarr.open` reads the same dataset as the most frequent label of each voxel.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Path of the dataset below ``location``.
    box : slice, int or tuple of them, optional
        The voxels, as in an index of the array: C order (z, y, x). All by default.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    LabelMultisets
        The multisets, in C order. Voxels of missing blocks hold the background once, as in Java.

    Raises
    ------
    FileNotFoundError
        No node exists at the path.
    N5UnrepresentableError
        The box is none, or has steps (``kind="option"``).
    N5UnsupportedError
        The node is no dataset of label multisets (``kind="data-type"``).
    N5BlockError
        A block is damaged.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5", "labels")
    >>> array = n5zarr.create_array(
    ...     where, shape=(2, 3, 5), chunks=(2, 2, 2), dtype="uint64", label_multiset=True
    ... )
    >>> array[:, :, 3:] = 7
    >>> multisets = n5zarr.read_label_multisets(where, box=(0, slice(1, 3)))
    >>> multisets.shape, multisets[0, 4], multisets.argmax()[0].tolist()
    ((2, 5), {7: 1}, [0, 0, 0, 7, 7])
    """
    place = place_of(location, storage_options, backend)
    store, node = open_container(place, path, writes=False)
    dataset = LabelDataset.at(store, node)
    wanted, shape = Box.of(box, dataset.view.shape, may_be_empty=True), dataset.view.shape
    if wanted is None or wanted.step is not None:
        message = f"box: expected integers and slices without steps inside of {shape}, got {box!r}"
        raise option_error(message, where=dataset.name)
    found = dataset.read(wanted)
    lists = np.squeeze(found.lists, axis=wanted.dropped)
    return LabelMultisets(lists, found.offsets, found.labels, found.counts)


def write_label_multisets(
    location: Location,
    multisets: LabelMultisets,
    path: str = "",
    start: Sequence[int] | None = None,
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> None:
    """Write the multisets of a box of voxels, as Paintera does; other voxels keep theirs.

    Blocks whose voxels all hold the background once are removed: missing blocks are read so.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    multisets : LabelMultisets
        The multisets, in C order.
    path : str, optional
        Path of the dataset below ``location``.
    start : sequence of int, optional
        First voxel of the box, C order; that of the dataset by default.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    FileNotFoundError
        No node exists at the path.
    N5UnrepresentableError
        The box is not inside of the dataset (``kind="option"``).
    N5UnsupportedError
        The node is no dataset of label multisets (``kind="data-type"``), or can only be read.
    N5BlockError
        A block of which a part is written is damaged.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5", "labels")
    >>> array = n5zarr.create_array(where, shape=(2, 3), dtype="uint64", label_multiset=True)
    >>> two = n5zarr.LabelMultisets([[0, 1]], [0, 1, 3], [7, 7, 9], [1, 3, 5])
    >>> n5zarr.write_label_multisets(where, two, start=(1, 1))
    >>> array[...].tolist()
    [[0, 0, 0], [0, 7, 9]]
    """
    place = place_of(location, storage_options, backend)
    store, node = open_container(place, path, writes=True)
    dataset = LabelDataset.at(store, node)
    shape = dataset.view.shape
    corner = (0,) * len(shape) if start is None else tuple(map(index, start))
    box = Box(corner, tuple(map(add, corner, multisets.shape)))
    require(
        len(corner) == len(multisets.shape) == len(shape)
        and all(0 <= a <= b <= n for a, b, n in zip(*box[:2], shape, strict=True)),
        f"start: expected a box inside of {shape}, got {corner} with the shape {multisets.shape}",
        dataset.name,
    )
    if multisets.lists.size:
        dataset.write(box, multisets)


class LabelDataset(OpenDataset):
    """A dataset of label multisets; boxes and shapes in the order of its array."""

    @classmethod
    def at(cls, store: N5Store, path: str) -> Self:
        """Find a dataset.

        Raises
        ------
        FileNotFoundError
            No node exists at the path.
        N5UnsupportedError
            The node is no dataset of label multisets (``kind="data-type"``).
        """
        node = existing_node(store, path, "a dataset of label multisets")
        if isinstance(node, DatasetView) and node.content is Content.LABELS:
            return cls(store, path, node)
        found = f"a group; datasets in it: {datasets_below(store, path) or 'none'}"
        if isinstance(node, DatasetView):
            found = f"one of {node.dataset.data_type} without isLabelMultiset"
        message = f"expected a dataset of label multisets, got {found}"
        raise N5UnsupportedError(message, kind="data-type", where=f"{store}: {path or '/'}")

    @property
    def name(self) -> str:
        """Name of the dataset, for messages."""
        return f"{self.store}: {self.path or '/'}"

    def read(self, box: Box) -> LabelMultisets:
        """Read a box, which may be empty."""
        parts = []
        for some in batched(self._positions(box) if all(box.shape) else (), _AT_ONCE):
            blocks = self.store.run(get_each([self.key(position) for position in some]))
            for position, stored in zip(some, blocks, strict=True):
                data = None if stored is None else memoryview(stored)
                part, own = self._parts(box, position)
                parts.append((own, used_only(self._block(data, position), part)))
        return joined(box.shape, parts)

    def write(self, box: Box, multisets: LabelMultisets) -> None:
        """Write a box."""
        for some in batched(self._positions(box), _AT_ONCE):
            changes = [partial(self._changed, box, multisets, p) for p in some]
            keys = map(self.key, some)
            self.store.run(request_each(map(Update, keys, changes)))

    def get(self, position: N5Tuple) -> bytes | None:
        """Read the block at a grid position."""
        return self.store.run(read_key(self.key(position)))

    def put(self, position: N5Tuple, block: bytes) -> None:
        """Write the block at a grid position."""
        self.store.run(request_each([Put(self.key(position), block)]))

    def encoded(self, multisets: LabelMultisets) -> bytes:
        """Encode a block."""
        return encode_multisets(self._presented(multisets), self.view.dataset.compression)

    def _changed(
        self, box: Box, multisets: LabelMultisets, position: N5Tuple, stored: bytes | None
    ) -> bytes | None:
        """Return a block with a part of a box; None for one that reads as a missing block."""
        dataset = self.view.dataset
        part, own = self._parts(box, position)
        new = used_only(multisets, own)
        with ErrorsAt(self.where(position)):
            if stored is not None:
                check_not_sharded(*in_memory(stored), dataset.data_type, dataset.compression)
            if new.lists.size != math.prod(self.extent(position)):
                before = None if stored is None else memoryview(stored)
                new = pasted(self._block(before, position), part, new)
            if new.is_background:
                return None
            return self.encoded(new)

    def _block(self, stored: memoryview | None, position: N5Tuple) -> LabelMultisets:
        """Decode the part of a block inside the dataset."""
        with ErrorsAt(self.where(position)):
            return self._presented(stored_multisets(stored, self.view, position))

    def _presented(self, multisets: LabelMultisets) -> LabelMultisets:
        """Convert multisets in C order of N5 into the order of the array, and back."""
        return multisets if self.view.axis_order == "C" else transposed(multisets)

    def _positions(self, box: Box) -> Iterator[N5Tuple]:
        return map(self.view.grid_position, product(*box.places(self.view.chunk_shape)))

    def _parts(self, box: Box, position: N5Tuple) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return the part of a block that lies in a box, relative to the block and to the box."""
        place, size = self.view.presented(position), self.view.chunk_shape
        part = box.within(place, size)
        block = Box(tuple(map(mul, place, size)), part.stop)
        return part.relative_to(block), part.relative_to(box)


def labels_to_write(
    labels: np.ndarray | None, dtype: npt.DTypeLike | None, fill_value: object
) -> tuple[np.ndarray | None, str]:
    """Return labels as uint64, with that type.

    Raises
    ------
    N5UnrepresentableError
        The labels are no integers, another dtype than uint64 is asked for, or a fill value other
        than the background (``kind="option"``).
    """
    if labels is not None and labels.dtype.kind not in "iu":
        raise option_error(f"data: expected integers for label_multiset, got {labels.dtype}")
    if dtype is not None and np.dtype(dtype) != np.uint64:
        raise option_error(f"dtype: expected uint64 for label_multiset, got {np.dtype(dtype)}")
    if fill_value not in (None, 0):
        raise option_error(
            f"fill_value: expected 0, the background of label_multiset, got {fill_value!r}"
        )
    return None if labels is None else labels.astype("u8", copy=False), "uint64"


def largest_id(labels: np.ndarray) -> int:
    """Return the largest label, compared as int64 as in Java; 0 for none."""
    return int(labels.astype("u8", copy=False).view("i8").max(initial=0))


def make_multisets(store: N5Store, path: str, labels: np.ndarray | None) -> None:
    """Turn a new dataset of uint64, without blocks, into one of label multisets.

    imglib2 ``N5LabelMultisets.saveLabelMultiset``; ``maxId`` as ``ConvertToLabelMultisetType`` of
    label-utilities-spark writes it.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        Path of the dataset.
    labels : numpy.ndarray or None
        The labels that will be written, if they are known.
    """

    def change(document: bytes | None) -> bytes:
        raw = RawObject.parse(document or b"{}")
        raw.set("dataType", "uint8")
        raw.set("isLabelMultiset", True)  # noqa: FBT003 - a value of JSON
        if labels is not None:
            raw.set("maxId", largest_id(labels))
        return raw.to_bytes()

    store.run(request_each([Update(join(path, ATTRIBUTES_JSON), change)]))
    store.container.memory.forget(path)
