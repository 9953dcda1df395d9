"""Zarr arrays and groups that read and write boxes of local datasets with the compiled kernel.

The logger of this module logs at DEBUG which accesses zarr handles, and why.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import product
from operator import add
from typing import TYPE_CHECKING, Any, Self, cast, override

import numpy as np
import zarr
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
from zarr.buffer import cpu, default_buffer_prototype

from n5zarr._zarr_private import ArrayV3Metadata, async_group, chunk_spec, max_workers
from n5zarr.arrays import kernel
from n5zarr.arrays.box import Box
from n5zarr.arrays.described import DescribedArray, own_info
from n5zarr.arrays.html import html_of
from n5zarr.arrays.nodes import as_zarr, kinds_below, node_at, nodes_below, tree_of
from n5zarr.arrays.open_dataset import OpenDataset, dataset_at, is_local
from n5zarr.arrays.python_blocks import BlockReader, read_blocks
from n5zarr.arrays.python_writing import BlockWriter, write_blocks
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.order import N5Tuple, present
from n5zarr.store.block_codec import N5BlockCodec
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    import numpy.typing as npt
    from zarr.abc.buffer import BufferPrototype, NDBuffer
    from zarr.types import AnyArray

    from n5zarr._zarr_private import (
        ArrayConfigLike,
        Attributes,
        BasicSelection,
        BatchItem,
        Fields,
        NDArrayLikeOrScalar,
        OrthogonalSelection,
        Selection,
    )
    from n5zarr.storage.interface import Storage
    from n5zarr.store.info import Info

__all__ = ["N5Array", "N5Group", "values_of", "with_fast_path"]

_log = logging.getLogger(__name__)


class N5Array(DescribedArray[ArrayV3Metadata]):
    """A :class:`zarr.Array` over N5 blocks, with a faster way for boxes of local datasets.

    It behaves like any other array. The compiled kernel reads and writes selections of integers,
    slices without steps and an ellipsis, if the kernel is built and zarr uses numpy's memory.
    Other selections, and blocks that are not ordinary, go through
    :class:`~n5zarr.arrays.pipeline.N5CodecPipeline`.

    Its metadata name the standard codecs of the dataset's compression. So copies made by zarr, with
    :func:`zarr.from_array` or :func:`zarr.zeros_like`, are plain Zarr.
    """

    @property
    def metadata(self) -> ArrayV3Metadata:
        """The ``zarr.json`` of the array, with standard codecs."""
        own = self.async_array.metadata  # zarr changes the attributes of this object in place
        codec = next(codec for codec in own.codecs if isinstance(codec, N5BlockCodec))
        codecs = codec.standard(len(own.shape), own.dtype.to_native_dtype())
        return ArrayV3Metadata.from_dict({**own.to_dict(), "codecs": codecs})

    @property
    def attrs(self) -> Attributes:
        """The attributes; zarr changes them in the array's own metadata, not in a copy."""
        return zarr.Array(self.async_array).attrs

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
        return self.__class__(with_fast_path(super().with_config(config)).async_array)

    @override
    def __getitem__(self, selection: Selection) -> NDArrayLikeOrScalar:
        if _is_plain(selection):  # zarr takes longer to recognise it than to read a small box
            box = self._read(selection)
            if box is not None:
                return box
        return super().__getitem__(selection)

    @override
    def __setitem__(self, selection: Selection, value: npt.ArrayLike) -> None:
        if not (_is_plain(selection) and self._write(selection, value)):
            super().__setitem__(selection, value)

    @override
    def get_basic_selection(
        self,
        selection: BasicSelection = Ellipsis,
        *,
        out: NDBuffer | None = None,
        prototype: BufferPrototype | None = None,
        fields: Fields | None = None,
    ) -> NDArrayLikeOrScalar:
        if out is None and prototype is None and not fields:
            box = self._read(selection)
            if box is not None:
                return box if box.shape else box[()]
        return super().get_basic_selection(selection, out=out, prototype=prototype, fields=fields)

    @override
    def get_orthogonal_selection(
        self,
        selection: OrthogonalSelection,
        *,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        if out is None and prototype is None and not fields:
            box = self._read(selection)
            if box is not None:
                return box
        return super().get_orthogonal_selection(
            selection, out=out, fields=fields, prototype=prototype
        )

    @override
    def set_basic_selection(
        self,
        selection: BasicSelection,
        value: npt.ArrayLike,
        *,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> None:
        if prototype is not None or fields or not self._write(selection, value):
            super().set_basic_selection(selection, value, fields=fields, prototype=prototype)

    @override
    def set_orthogonal_selection(
        self,
        selection: OrthogonalSelection,
        value: npt.ArrayLike,
        *,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> None:
        if prototype is not None or fields or not self._write(selection, value):
            super().set_orthogonal_selection(selection, value, fields=fields, prototype=prototype)

    def _read(self, selection: object) -> np.ndarray | None:
        """Read a box without zarr's event loop; None if zarr has to read."""
        box = Box.of(selection, self.shape)
        if box is None:
            self._tell(_NO_BOX)
            return None
        dataset = self._dataset(to_write=False)
        if dataset is None:
            return None
        out = np.empty(box.shape, self.dtype, self.config.order)
        left = None
        if kernel.can_do(dataset):
            left = kernel.read_box(dataset, box.start, out, self._fill_value)
        if left is None or left:
            self._read_left(box, dataset, left, out)
        return out.squeeze(box.dropped) if box.dropped else out

    def _read_left(
        self, box: Box, dataset: OpenDataset, left: Sequence[N5Tuple] | None, out: np.ndarray
    ) -> None:
        """Read the blocks of a box that the kernel has left, all if it is None."""
        items = self._items(box, dataset, left)
        results = read_blocks(BlockReader(dataset, out, ()), items, max_workers())
        if None in results:
            self._tell(f"{results.count(None)} blocks do not have the size of their grid position")
        for item, result in zip(items, results, strict=True):
            if result is None:  # the block is not ordinary
                part = box.inner(item[3])
                out[item[3]] = super().get_basic_selection(part)

    def _write(self, selection: object, value: object) -> bool:
        """Write a box without zarr's event loop; return False if zarr has to write."""
        box = Box.of(selection, self.shape)
        elements = None if box is None else _elements(value, box, self.dtype)
        if box is None or elements is None:
            self._tell(_NO_BOX if box is None else "the value is no array of the box's numbers")
            return False
        dataset = self._dataset(to_write=True)
        if dataset is None:
            return False
        left = None
        if kernel.can_do(dataset):
            keep_empty = self.config.write_empty_chunks
            left = kernel.write_box(
                dataset, box.start, elements, self._fill_value, keep_empty=keep_empty
            )
        if left is None or left:
            items = self._items(box, dataset, left)
            writer = BlockWriter(dataset, cpu.NDBuffer(elements))
            for item in write_blocks(writer, items, (), max_workers()):
                super().set_basic_selection(box.inner(item[3]), elements[item[3]])
        return True

    def _dataset(self, *, to_write: bool) -> OpenDataset | None:
        """Return the dataset if it is local and its blocks hold the elements of the array."""
        store = self.store
        if not _uses_numpy():
            reason = "zarr is configured for memory other than numpy's"
        elif not to_write and not self.config.read_missing_chunks:
            reason = "missing blocks are errors"
        elif not isinstance(store, N5Store) or not is_local(store):
            reason = "the container is not in local files"
        elif to_write and store.read_only:
            reason = "the store is read only"
        else:
            dataset = store.run(dataset_at(store, self.path, 3, anew=to_write))
            if dataset is not None and dataset.holds(self.chunks, self.dtype):
                return dataset
            reason = "the dataset with these chunks and elements no longer exists"
        self._tell(reason)
        return None

    def _tell(self, reason: str) -> None:
        _log.debug("%s: left to zarr: %s", self.store_path, reason)

    @property
    def _fill_value(self) -> object:
        fill_value = self.async_array.metadata.fill_value
        return 0 if fill_value is None else fill_value

    def _items(
        self, box: Box, dataset: OpenDataset, positions: Iterable[N5Tuple] | None = None
    ) -> list[BatchItem]:
        """Make the batch items of a box, one for each chunk, like zarr.

        Parameters
        ----------
        box : Box
            The box.
        dataset : OpenDataset
            The dataset of the array.
        positions : iterable of tuple of int, optional
            Grid positions of the blocks; by default all blocks of the box.
        """
        size = dataset.view.chunk_shape
        if positions is None:
            all_coords: Iterable[tuple[int, ...]] = product(*box.places(size))
        else:
            all_coords = [present(p, dataset.view.axis_order) for p in positions]
        spec, items = chunk_spec(self), []
        for coords in all_coords:
            part = box.within(coords, size)
            corner = tuple(place * n for place, n in zip(coords, size, strict=True))
            chunk = Box(corner, tuple(map(min, map(add, corner, size), self.shape)), ())
            key = self.store_path / self.async_array.metadata.encode_chunk_key(coords)
            is_complete = part == chunk
            items.append((key, spec, part.relative_to(chunk), part.relative_to(box), is_complete))
        return items


def _uses_numpy() -> bool:
    """Whether zarr is configured for numpy's memory."""
    default = zarr.config.get("ndbuffer") == "zarr.buffer.cpu.NDBuffer"
    return default or default_buffer_prototype().nd_buffer is cpu.NDBuffer


def _is_plain(selection: object) -> bool:
    """Whether a selection has only integers and slices, and at least one."""
    parts = selection if type(selection) is tuple else (selection,)
    return bool(parts) and all(type(part) is slice or type(part) is int for part in parts)


_NO_BOX = "the selection is not of integers, slices without steps and an ellipsis"


def _elements(value: object, box: Box, dtype: np.dtype) -> np.ndarray | None:
    """Return the elements of a box; None unless the value is plain numbers of the box's shape."""
    if np.isscalar(value) and not isinstance(value, str | bytes):
        return np.broadcast_to(np.asanyarray(value, dtype), box.shape)
    if not isinstance(value, np.ndarray) or type(value) not in (np.ndarray, np.memmap):
        return None
    kept = tuple(n for axis, n in enumerate(box.shape) if axis not in box.dropped)
    if value.shape != kept or value.dtype.kind not in "biuf":
        return None
    same: np.ndarray = value if value.dtype == dtype else value.astype(dtype, order="A")
    return same.reshape(box.shape)


class N5Group(zarr.Group):
    """A :class:`zarr.Group` whose arrays are :class:`N5Array` if their codec allows it."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, zarr.Group):
            return bool(async_group(self) == async_group(other))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # as zarr.Group

    def __repr__(self) -> str:
        return f"<N5Group {self.store_path}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    @override
    def info(self) -> Info | Any:
        """The description of the group; lists the children to count them by kind."""
        return own_info(self.store, self.path) or super().info

    @override
    def __getitem__(self, path: str) -> AnyArray | zarr.Group:
        if self.metadata.consolidated_metadata is None:
            node = node_at(self.store, (self.store_path / path).path)
            if node is not None:
                return with_fast_path(node)
        return with_fast_path(super().__getitem__(path))

    @override
    def get_array(self, path: str) -> AnyArray:
        return with_fast_path(super().get_array(path))

    @override
    def get_group(self, path: str) -> zarr.Group:
        return with_fast_path(super().get_group(path))

    @override
    def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> tuple[tuple[str, AnyArray | zarr.Group], ...]:
        members = nodes_below(self, max_depth) or super().members(
            max_depth, use_consolidated_for_children=use_consolidated_for_children
        )
        return tuple((name, with_fast_path(member)) for name, member in members)

    @override
    def nmembers(self, max_depth: int | None = 0) -> int:
        found = kinds_below(self, max_depth)
        return super().nmembers(max_depth) if found is None else sum(1 for _ in found)

    @override
    def keys(self) -> Generator[str]:
        found = kinds_below(self, 0)
        yield from super().keys() if found is None else (name for name, _ in found)

    @override
    def group_keys(self) -> Generator[str, None]:
        found = kinds_below(self, 0)
        own = (name for name, node in found or () if isinstance(node, GroupAttributes))
        yield from super().group_keys() if found is None else own

    @override
    def array_keys(self) -> Generator[str, None]:
        found = kinds_below(self, 0)
        own = (name for name, node in found or () if isinstance(node, DatasetView))
        yield from super().array_keys() if found is None else own

    @override
    def group_values(self) -> Generator[zarr.Group, None]:
        yield from (node for _, node in self.groups())

    @override
    def array_values(self) -> Generator[AnyArray, None]:
        yield from (node for _, node in self.arrays())

    @override
    def tree(
        self,
        expand: bool | None = None,
        level: int | None = None,
        *,
        max_nodes: int = 500,
        plain: bool = False,
    ) -> Any:
        own = None if expand is not None else nodes_below(self, level)
        if own is None:
            return super().tree(expand, level, max_nodes=max_nodes, plain=plain)
        return tree_of(self, own, max_nodes=max_nodes, plain=plain)

    @override
    def groups(self) -> Generator[tuple[str, zarr.Group], None]:
        yield from ((name, node) for name, node in self.members() if isinstance(node, zarr.Group))

    @override
    def arrays(self) -> Generator[tuple[str, AnyArray], None]:
        yield from ((name, node) for name, node in self.members() if isinstance(node, zarr.Array))

    @override
    def create_group(self, name: str, **kwargs: Any) -> zarr.Group:
        return with_fast_path(super().create_group(name, **kwargs))

    @override
    def require_group(self, name: str, **kwargs: Any) -> zarr.Group:
        return with_fast_path(super().require_group(name, **kwargs))

    @override
    def require_groups(self, *names: str) -> tuple[zarr.Group, ...]:
        return tuple(map(with_fast_path, super().require_groups(*names)))

    @override
    def require_array(self, name: str, **kwargs: Any) -> AnyArray:
        return with_fast_path(super().require_array(name, **kwargs))


def with_fast_path[Node: AnyArray | zarr.Group](node: Node) -> Node:
    """Return an array or a group with the fast path, if it has n5zarr's own codec.

    Parameters
    ----------
    node : zarr.Array or zarr.Group
        The array or group.

    Returns
    -------
    zarr.Array or zarr.Group
        An :class:`N5Array` for an array with n5zarr's own codec; an :class:`N5Group` for a group,
        which does the same for its members; for other arrays a :class:`DescribedArray`.
    """
    if isinstance(node, zarr.Group):
        return cast("Node", N5Group(async_group(node)))
    is_fast = _has_own_codec(node.async_array.metadata)
    if not is_fast:
        _log.debug("%s: left to zarr: its codec is not n5zarr's own", node.store_path)
    return cast("Node", (N5Array if is_fast else DescribedArray)(node.async_array))


def values_of(storage: Storage, path: str, view: DatasetView) -> AnyArray:
    """Return a dataset as an array with the fast path, read-only, in a store of its own.

    Parameters
    ----------
    storage : Storage
        The keys of the container.
    path : str
        Path of the dataset, normalised.
    view : DatasetView
        The dataset, as it was just read through any store.
    """
    own = N5Store(storage, codecs="n5", zarr_format=3, read_only=True)
    array: Any = with_fast_path(as_zarr(own, path, replace(view, codecs="n5")))
    return cast("AnyArray", array)


def _has_own_codec(metadata: object) -> bool:
    codecs = metadata.codecs if isinstance(metadata, ArrayV3Metadata) else ()
    return len(codecs) == 1 and isinstance(codecs[0], N5BlockCodec)
