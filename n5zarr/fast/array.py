"""Zarr arrays that read and write boxes of datasets with the compiled kernel.

The logger of this module logs at DEBUG which accesses zarr handles, and why.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from operator import add
from types import EllipsisType
from typing import TYPE_CHECKING, Self, override

import numpy as np
import numpy.typing as npt
from zarr.abc.buffer import BufferPrototype, NDBuffer
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
from zarr.buffer import cpu

from n5zarr._zarr import ArrayV3Metadata, chunk_spec, max_workers
from n5zarr.arrays.box import (
    Box,
    Points,
    Rows,
    box_of_chunks,
    check_inside,
    is_plain,
    points_of,
    points_of_mask,
    rows_of,
)
from n5zarr.arrays.described import DescribedArray
from n5zarr.arrays.many_boxes import read_boxes
from n5zarr.arrays.open_dataset import OpenDataset, dataset_of_array, fill_value_of, is_local
from n5zarr.arrays.placing import ArrayMemory, host_batch, memory_of
from n5zarr.fast import kernel
from n5zarr.fast.many_boxes import read_grouped
from n5zarr.fast.python_blocks import BlockReader, read_blocks
from n5zarr.fast.python_writing import BlockWriter, write_blocks
from n5zarr.fast.remote_blocks import read_remote_box
from n5zarr.fast.values import elements_for, fitting, shape_of
from n5zarr.format.order import N5Tuple, present
from n5zarr.store.block_codec import N5BlockCodec

if TYPE_CHECKING:
    from n5zarr._zarr import (
        ArrayConfigLike,
        BasicSelection,
        BatchItem,
        CoordinateSelection,
        Fields,
        MaskSelection,
        NDArrayLikeOrScalar,
        OrthogonalSelection,
        Selection,
    )

_log = logging.getLogger(__name__)


class N5Array(DescribedArray[ArrayV3Metadata]):
    """A :class:`zarr.Array` over N5 blocks, with a faster way for boxes.

    It behaves like any other array. If the compiled kernel is built and zarr uses numpy's memory,
    the kernel reads and writes selections of integers, slices and an ellipsis, and reads points,
    masks, lists along axes, and blocks, of local datasets; boxes it also reads from servers through
    obstore, without zarr's event loop. Everything else, and blocks that are not ordinary, go
    through :class:`~n5zarr.fast.pipeline.N5CodecPipeline`.

    Its metadata name the standard codecs of the dataset's compression. So copies made by zarr, with
    :func:`zarr.from_array` or :func:`zarr.zeros_like`, are plain Zarr.
    """

    opened_as = "an N5Array: a zarr.Array that reads and writes boxes of blocks without zarr's loop"

    @property
    def metadata(self) -> ArrayV3Metadata:
        """The ``zarr.json`` of the array, with standard codecs."""
        own = self.async_array.metadata  # zarr changes the attributes of this object in place
        codec = next(codec for codec in own.codecs if isinstance(codec, N5BlockCodec))
        codecs = codec.standard(len(own.shape), own.dtype.to_native_dtype())
        return ArrayV3Metadata.from_dict({**own.to_dict(), "codecs": codecs})

    @property
    def filters(self) -> tuple[ArrayArrayCodec, ...]:
        """The standard codecs from arrays to arrays."""
        return tuple(c for c in self.metadata.codecs if isinstance(c, ArrayArrayCodec))

    @property
    def serializer(self) -> ArrayBytesCodec:
        """The standard codec from arrays to bytes."""
        return next(c for c in self.metadata.codecs if isinstance(c, ArrayBytesCodec))

    @property
    def compressors(self) -> tuple[BytesBytesCodec, ...]:
        """The standard codecs from bytes to bytes."""
        return tuple(c for c in self.metadata.codecs if isinstance(c, BytesBytesCodec))

    @override
    def with_config(self, config: ArrayConfigLike) -> Self:
        return self.__class__(super().with_config(config).async_array)

    # zarr takes longer to recognise integers and slices than to read a small box

    @override
    def __getitem__(self, selection: Selection) -> NDArrayLikeOrScalar:
        if not is_plain(selection, self.ndim):
            return super().__getitem__(selection)
        memory = memory_of()
        values = self._read(selection, memory)
        if values is None:
            return memory.get(super().get_orthogonal_selection, selection)
        return memory.placed(values)

    @override
    def __setitem__(self, selection: Selection, value: npt.ArrayLike) -> None:
        if not is_plain(selection, self.ndim):
            super(DescribedArray, self).__setitem__(selection, value)  # which `_set` warns of
        else:
            self.set_orthogonal_selection(selection, value)

    @override
    def get_basic_selection(
        self,
        selection: BasicSelection = Ellipsis,
        *,
        out: NDBuffer | None = None,
        prototype: BufferPrototype | None = None,
        fields: Fields | None = None,
    ) -> NDArrayLikeOrScalar:
        memory = memory_of(out, prototype)
        if out is None and not fields:
            box = self._read(selection, memory)
            if box is not None:
                return memory.placed(box) if box.shape else box[()]
        return memory.get(super().get_basic_selection, selection, out, fields, prototype)

    @override
    def get_orthogonal_selection(
        self,
        selection: OrthogonalSelection,
        *,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        return self._get(
            self._read_orthogonal,
            super().get_orthogonal_selection, selection, out, fields, prototype,
        )  # fmt: skip

    @override
    def get_coordinate_selection(
        self,
        selection: CoordinateSelection,
        *,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        return self._get(
            lambda points, memory: self._read_points(points_of(points, self.shape), memory),
            super().get_coordinate_selection, selection, out, fields, prototype,
        )  # fmt: skip

    @override
    def get_mask_selection(
        self,
        mask: MaskSelection,
        *,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        return self._get(
            lambda mask, memory: self._read_points(points_of_mask(mask, self.shape), memory),
            super().get_mask_selection, mask, out, fields, prototype,
        )  # fmt: skip

    @override
    def get_block_selection(
        self,
        selection: BasicSelection,
        *,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        return self._get(
            self._read_chunks,
            super().get_block_selection, selection, out, fields, prototype,
        )  # fmt: skip

    @override
    def set_basic_selection(
        self,
        selection: BasicSelection,
        value: npt.ArrayLike,
        *,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> None:
        self._set(super().set_basic_selection, selection, value, fields, prototype)

    @override
    def set_orthogonal_selection(
        self,
        selection: OrthogonalSelection,
        value: npt.ArrayLike,
        *,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> None:
        self._set(super().set_orthogonal_selection, selection, value, fields, prototype)

    @override
    def set_coordinate_selection(
        self,
        selection: CoordinateSelection,
        value: npt.ArrayLike,
        *,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> None:
        points = points_of(selection, self.shape)
        self._set(
            super().set_coordinate_selection, selection, value, fields, prototype,
            points and points.shape,
        )  # fmt: skip

    @override
    def set_mask_selection(
        self,
        mask: MaskSelection,
        value: npt.ArrayLike,
        *,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> None:
        shape = (int(np.count_nonzero(mask)),)
        self._set(super().set_mask_selection, mask, value, fields, prototype, shape)

    @override
    def set_block_selection(
        self,
        selection: BasicSelection,
        value: npt.ArrayLike,
        *,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> None:
        size = getattr(self.async_array.metadata.chunk_grid, "chunk_shape", None)
        box = size and box_of_chunks(selection, self.shape, size)
        self._set(
            super().set_block_selection, selection, value, fields, prototype, box and box.shape
        )

    def read_boxes(
        self, starts: npt.ArrayLike, shape: Sequence[int], out: np.ndarray | None = None
    ) -> np.ndarray:
        """Read many boxes of one shape at once; see :func:`n5zarr.read_boxes`."""
        return read_boxes(self, starts, shape, out)

    def _get(
        self,
        read: Callable[[object, ArrayMemory], np.ndarray | None],
        zarrs: Callable[..., NDArrayLikeOrScalar],
        selection: object,
        out: NDBuffer | None,
        fields: Fields | None,
        prototype: BufferPrototype | None,
    ) -> NDArrayLikeOrScalar:
        """Read a selection by a method of this class; by zarr's own if that returns None."""
        memory = memory_of(out, prototype)
        if out is None and not fields:
            values = read(selection, memory)
            if values is not None:
                return memory.placed(values)
        return memory.get(zarrs, selection, out, fields, prototype)

    def _set(
        self,
        zarrs: Callable[..., None],
        selection: object,
        value: npt.ArrayLike,
        fields: Fields | None,
        prototype: BufferPrototype | None,
        shape: tuple[int, ...] | EllipsisType | None = ...,
    ) -> None:
        """Write a selection; by zarr's own method if its shape is given, or if it is no box."""
        memory = memory_of(prototype=prototype)
        value = memory.on_host(value)
        self.warn_of_loss(value, self.dtype)
        if shape is ...:
            if not fields and self._write(selection, value, memory):
                return
            shape = shape_of(selection, self.shape)
        memory.set(zarrs, selection, fitting(value, shape), fields, prototype)

    def _read(self, selection: object, memory: ArrayMemory) -> np.ndarray | None:
        """Read a box without zarr's event loop; None if zarr has to read."""
        box = Box.of(selection, self.shape)
        if box is None:
            self._tell(_NO_BOX)
            check_inside(selection, self.shape)
            return None
        dataset = self._dataset(memory, is_anywhere=True)
        return None if dataset is None else self._read_box(box, dataset, memory)

    def _dataset(self, memory: ArrayMemory, **how: bool) -> OpenDataset | None:
        if memory.is_known:
            return dataset_of_array(self, tell=self._tell, **how)
        self._tell("zarr is configured for arrays of another class")
        return None

    def _read_box(self, box: Box, dataset: OpenDataset, memory: ArrayMemory) -> np.ndarray | None:
        out = memory.empty(box.shape, self.dtype, self.config.order)
        if not is_local(dataset.store):
            items = partial(self._items, box, dataset)
            odd = read_remote_box(dataset, box, out, self.async_array.metadata, items)
            if odd is None:
                self._tell("its blocks are read on the event loop")
                return None
            self._read_others(box, items(odd), out)
        else:
            left = None
            if kernel.can_do(dataset):
                left = kernel.read_box(dataset, box.start, out, self._fill_value, step=box.step)
            if left != [] and box.step is not None:
                self._tell("it has steps, and the kernel does not read all its blocks")
                return None
            if left is None or left:
                self._read_left(box, dataset, left, out)
        return out.squeeze(box.dropped) if box.dropped else out

    def _read_orthogonal(self, selection: object, memory: ArrayMemory) -> np.ndarray | None:
        """Read lists along axes, or a box; None if zarr has to read."""
        rows = rows_of(selection, self.shape)
        return self._read(selection, memory) if rows is None else self._read_rows(rows, memory)

    def _read_chunks(self, selection: object, memory: ArrayMemory) -> np.ndarray | None:
        """Read chunks of a regular grid; None if zarr has to read."""
        dataset = self._dataset(memory, is_anywhere=True)
        if dataset is None:
            return None
        box = box_of_chunks(selection, self.shape, dataset.view.chunk_shape)
        return None if box is None else self._read_box(box, dataset, memory)

    def _read_points(self, points: Points | None, memory: ArrayMemory) -> np.ndarray | None:
        """Read single elements with the kernel, block by block; None if zarr has to read."""
        dataset = None if points is None else self._dataset(memory)
        if points is None or dataset is None or not kernel.can_do(dataset):
            return None
        if not points.is_worth_grouping(dataset):
            return None
        out = memory.empty((len(points.coords), *(1,) * self.ndim), self.dtype)
        _, left = read_grouped(dataset, points.coords, (1,) * self.ndim, out, self._fill_value)
        return None if left else out.reshape(points.shape)

    def _read_rows(self, rows: Rows, memory: ArrayMemory) -> np.ndarray | None:
        """Read parts of a box with the kernel, block by block; None if zarr has to read."""
        dataset = self._dataset(memory)
        if dataset is None or not kernel.can_do(dataset) or not rows.is_worth_grouping(dataset):
            return None
        parts = memory.empty((math.prod(rows.shape), *rows.box.shape), self.dtype)
        if read_grouped(dataset, rows.starts, rows.box.shape, parts, self._fill_value)[1]:
            return None
        lists = tuple(rows.positions)
        each = parts.reshape(*rows.shape, *parts.shape[1:])
        each = each.squeeze(tuple(len(lists) + axis for axis in lists))
        out = np.moveaxis(each, range(len(lists)), lists)
        return np.asarray(out.squeeze(rows.box.dropped), order=self.config.order)

    def _read_left(
        self, box: Box, dataset: OpenDataset, left: Sequence[N5Tuple] | None, out: np.ndarray
    ) -> None:
        """Read the blocks of a box that the kernel has left, all if it is None."""
        items = self._items(box, dataset, left)
        results = read_blocks(BlockReader(dataset, out, ()), items, max_workers())
        odd = [item for item, result in zip(items, results, strict=True) if result is None]
        self._read_others(box, odd, out)

    def _read_others(self, box: Box, items: Sequence[BatchItem], out: np.ndarray) -> None:
        """Let zarr read blocks of a box."""
        if items:
            self._tell(f"{len(items)} blocks do not have the size of their grid position")
        for item in items:
            part = box.inner(item[3])
            out[item[3]] = super().get_basic_selection(part, prototype=cpu.buffer_prototype)

    def _write(self, selection: object, value: object, memory: ArrayMemory) -> bool:
        """Write a box without zarr's event loop; return False if zarr has to write."""
        box = Box.of(selection, self.shape)
        elements = None if box is None else elements_for(value, box, self.dtype)
        if box is None:
            check_inside(selection, self.shape)
        if box is None or elements is None:
            self._tell(_NO_BOX if box is None else "the value is no array of the box's numbers")
            return False
        dataset = self._dataset(memory, to_write=True)
        if dataset is None:
            return False
        left = None
        if kernel.can_do(dataset):
            keep_empty = self.config.write_empty_chunks
            left = kernel.write_box(
                dataset, box.start, elements, self._fill_value, keep_empty=keep_empty, step=box.step
            )
        if box.step is not None and left != []:
            self._tell("it has steps, and the kernel does not write all its blocks")
            return False
        if left is None or left:
            items = self._items(box, dataset, left)
            writer = BlockWriter(dataset, cpu.NDBuffer(elements))
            for item in write_blocks(writer, items, (), max_workers()):
                part, values = box.inner(item[3]), elements[item[3]]
                super().set_basic_selection(part, values, prototype=cpu.buffer_prototype)
        return True

    def _tell(self, reason: str) -> None:
        _log.debug("%s: left to zarr: %s", self.store_path, reason)

    @property
    def _fill_value(self) -> object:
        return fill_value_of(self.async_array.metadata)

    def _items(
        self, box: Box, dataset: OpenDataset, positions: Iterable[N5Tuple] | None = None
    ) -> tuple[BatchItem, ...]:
        """Make the batch items of a box, like zarr: of all its blocks, or of some."""
        size = dataset.view.chunk_shape
        if positions is None:
            all_coords: Iterable[tuple[int, ...]] = product(*box.places(size))
        else:
            all_coords = [present(p, dataset.view.axis_order) for p in positions]
        spec, items = chunk_spec(self.async_array, self.chunks), []
        for coords in all_coords:
            part = box.within(coords, size)
            corner = tuple(place * n for place, n in zip(coords, size, strict=True))
            chunk = Box(corner, tuple(map(min, map(add, corner, size), self.shape)))
            key = self.store_path / self.async_array.metadata.encode_chunk_key(coords)
            is_complete = part == chunk
            items.append((key, spec, part.relative_to(chunk), part.relative_to(box), is_complete))
        return host_batch(items)


_NO_BOX = "the selection is not of integers, slices and an ellipsis"
