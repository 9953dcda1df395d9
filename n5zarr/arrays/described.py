"""Zarr arrays and groups of a container that describe themselves in N5's terms."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, cast, override

import numpy as np
import numpy.typing as npt
import zarr
from zarr.abc.buffer import BufferPrototype, NDBuffer
from zarr.abc.store import Store
from zarr.buffer import cpu
from zarr.types import AnyArray

from n5zarr._zarr import (
    ArrayV2Metadata,
    ArrayV3Metadata,
    Attributes,
    give_metadata,
    with_attributes,
)
from n5zarr.arrays.open_dataset import OpenDataset, blocks_of_array
from n5zarr.arrays.placing import memory_of, warn_of_loss
from n5zarr.container.block_listing import stored_rows
from n5zarr.container.resizing import remove_outside
from n5zarr.errors import N5Error
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.format.raw_json import from_numpy
from n5zarr.rooms import Door
from n5zarr.storage.ending import ending
from n5zarr.store.info import Info
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.keys import METADATA_NAMES, MetadataKey

if TYPE_CHECKING:
    from n5zarr._zarr import (
        CoordinateSelection,
        Fields,
        NDArrayLikeOrScalar,
        Selection,
        ShapeLike,
    )


_MAKE_HTML: Door[Callable[[AnyArray | zarr.Group], str | None]] = Door("images", "HTML")


class N5Attributes(Attributes):
    """zarr's attributes of a node whose ``update_attributes`` takes numbers of numpy."""

    @override
    def __setitem__(self, key: str, value: Any) -> None:
        self._obj = cast("DescribedArray[Any]", self._obj).update_attributes({key: value})

    @override
    def __delitem__(self, key: str) -> None:
        take_over(self._obj)
        super().__delitem__(key)

    @override
    def put(self, d: dict[str, Any]) -> None:
        given, node = from_numpy(d), cast("DescribedArray[Any]", self._obj)  # before they are lost
        take_over(node)
        node.metadata.attributes.clear()
        self._obj = node.write_attributes(given)


def take_over(node: AnyArray | zarr.Group) -> None:
    """Take over the attributes and the shape that other objects of the store have written since.

    zarr writes the whole document of what it changes: an older object would undo their changes.

    Raises
    ------
    N5Error
        An array is there of another data type or chunk shape (``kind="changed"``).
    """
    served = node.store.container.memory.served if isinstance(node.store, N5Store) else {}
    metadata: Any = (node if isinstance(node, zarr.Group) else node.async_array).metadata
    documents = {
        name: json.loads(served[key])
        for name in METADATA_NAMES[metadata.zarr_format]
        if (key := MetadataKey(node.path, name)) in served
    }
    document = documents.get("zarr.json") or documents.get(".zarray") or documents.get(".zgroup")
    if not document:
        return
    attributes = dict(documents.get(".zattrs", document.get("attributes", metadata.attributes)))
    if isinstance(node, zarr.Group):
        metadata.attributes.clear()
        metadata.attributes.update(attributes)
        return
    now: Any = type(metadata).from_dict(document)
    was_made_of, is_made_of = (
        (each.dtype, each.chunk_grid if each.zarr_format == 3 else each.chunks)
        for each in (metadata, now)
    )
    if is_made_of != was_made_of:
        message = f"{node.store_path}: expected the array that was opened, got one of other chunks "
        raise N5Error(f"{message}or elements, which has replaced it; open it again", kind="changed")
    if now.shape != metadata.shape:
        metadata = metadata.update_shape(now.shape)
        give_metadata(node.async_array, metadata)
    object.__setattr__(node.async_array, "metadata", with_attributes(metadata, attributes))


class DescribedArray[Metadata: (ArrayV2Metadata, ArrayV3Metadata)](zarr.Array[Metadata]):
    """A :class:`zarr.Array` of a container, whose ``info`` has N5's terms."""

    opened_as = "a zarr.Array: zarr reads and writes it through the store"
    warn_of_loss = staticmethod(warn_of_loss)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, zarr.Array):
            return bool(self.async_array == other.async_array)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # as zarr.Array

    @override
    def __setitem__(self, selection: Selection, value: npt.ArrayLike) -> None:
        self.warn_of_loss(value, self.dtype)
        super().__setitem__(selection, value)

    def __repr__(self) -> str:
        return f"<N5Array {self.store_path} shape={self.shape} dtype={self.dtype}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    @override
    def attrs(self) -> Attributes:
        """The attributes; zarr changes them in the metadata of an array, of which others copy."""
        return N5Attributes(DescribedArray(self.async_array))

    write_attributes = zarr.Array.update_attributes

    @override
    def update_attributes(self, new_attributes: dict[str, Any]) -> Self:
        take_over(self)
        return super().update_attributes(from_numpy(new_attributes))

    @property
    @override
    def info(self) -> Info | Any:
        """The description of the stored dataset; zarr's own if the store presents axes as arrays.

        Examples
        --------
        >>> import n5zarr
        >>> array = n5zarr.open(n5zarr.sample_path(), path="em/s1")
        >>> array.info["dimensions_n5"], array.info["block_size_n5"]
        ((64, 48, 20), (50, 40, 16))
        """
        own = own_info(self.store, self.path)
        return Info({**own, "opened_as": self.opened_as}) if own else super().info

    @override
    def info_complete(self) -> Info | Any:
        """Describe the dataset, with number and bytes of its blocks; lists all blocks."""
        return own_info(self.store, self.path, size=True) or super().info_complete()

    @override
    @ending()
    def get_coordinate_selection(
        self,
        selection: CoordinateSelection,
        *,
        out: NDBuffer | None = None,
        fields: Fields | None = None,
        prototype: BufferPrototype | None = None,
    ) -> NDArrayLikeOrScalar:
        """Read points; zarr's own method makes arrays of numpy of them, which no GPU allows."""
        read = super().get_coordinate_selection
        return memory_of(out, prototype).get(read, selection, out, fields, prototype)

    @property
    @override
    def nchunks_initialized(self) -> int:
        """The number of stored chunks; lists the blocks, while zarr asks for each of the grid."""
        found = _dataset_of(self)
        if found is None:
            return super().nchunks_initialized
        return sum(map(len, stored_rows(found.store.run, found.path, found.view.dataset.grid)))

    @override
    @ending()
    def resize(self, new_shape: ShapeLike) -> None:
        """Change the shape, and remove the chunks that are outside of it.

        Lists the blocks if there may be many outside, while zarr removes each of the grid. The
        document is written first: if that fails, all blocks remain.

        Parameters
        ----------
        new_shape : int or tuple of int
            The new shape.
        """
        take_over(self)
        self._resize(new_shape)

    def _resize(self, new_shape: Any) -> None:  # noqa: ANN401 - a ShapeLike, for numpy
        """Resize an array that has taken over what others have written; without zarr's loop."""
        found = _dataset_of(self)
        if found is None or np.size(new_shape) != self.ndim:  # the latter is an error of zarr's
            super().resize(new_shape)
            return
        store, path, view = found
        metadata = self.async_array.metadata.update_shape(new_shape)
        documents = metadata.to_buffer_dict(cpu.buffer_prototype)
        try:
            for name, document in documents.items():
                store.set_sync(join(self.path, name), document)
            give_metadata(self.async_array, metadata)
        except BaseException:  # an interruption may come when a document has been written
            with suppress(Exception):
                store.get_sync(join(self.path, min(documents)))
                take_over(self)
            raise
        now = view.with_other_axes(self.shape, view.dataset.dimensions)
        store.run(remove_outside(path, view.dataset, N5Tuple(now)))

    @override
    @ending()
    def append(self, data: npt.ArrayLike, axis: int = 0) -> tuple[int, ...]:
        """Enlarge the array along an axis, and write data there.

        Parameters
        ----------
        data : array-like
            The elements, of the shape of the array but along ``axis``, C order.
        axis : int, optional
            From 0; the slowest by default, as N5's last dimension.

        Returns
        -------
        tuple of int
            The new shape.

        Raises
        ------
        IndexError
            The array has no such axis.
        ValueError
            The shapes differ along another axis; nothing is changed.
        """
        if not 0 <= axis < self.ndim:  # with which zarr replaces all elements
            raise IndexError(f"axis: expected 0 to {self.ndim - 1}, got {axis}")
        take_over(self)
        if isinstance(data, zarr.Array):  # itself, it would be enlarged
            data = cast("npt.ArrayLike", data[...])
        given: tuple[int, ...] = np.shape(data)
        old: tuple[int, ...] = self.shape
        if given[:axis] + given[axis + 1 :] != old[:axis] + old[axis + 1 :]:
            return super().append(data, axis)  # raises an error
        self._resize((*old[:axis], old[axis] + given[axis], *old[axis + 1 :]))
        self[(slice(None),) * axis + (slice(old[axis], None),)] = data
        return self.shape


# zarr's event loop would go on if the thread that waits for it is interrupted
for _name in (
    "get_basic_selection", "get_orthogonal_selection", "get_mask_selection",
    "get_block_selection", "set_basic_selection", "set_orthogonal_selection",
    "set_coordinate_selection", "set_mask_selection", "set_block_selection",
):  # fmt: skip
    setattr(DescribedArray, _name, ending()(getattr(zarr.Array, _name)))


FAST_ARRAY: Door[type[DescribedArray[Any]]] = Door("speed", "array")


def _dataset_of(array: AnyArray) -> OpenDataset | None:
    """Return the dataset whose blocks are the chunks of an array; None if there is none."""
    return None if array.shards is not None else blocks_of_array(array)


def html_of(node: AnyArray | zarr.Group) -> str:
    """Return an array or group as HTML; its text if nothing makes any, or fails."""
    text = None
    try:
        make = _MAKE_HTML.found()
        text = make and make(node)
    except Exception:  # noqa: S110 - a picture must not keep anybody from the array
        pass
    import html  # noqa: PLC0415 - with its table of entities, as slow as four modules of n5zarr

    return text or f"<pre>{html.escape(repr(node))}</pre>"


def own_info(store: Store, path: str, *, size: bool = False) -> Info | None:
    """Describe a node in N5's terms; None if the store presents axes as arrays.

    Parameters
    ----------
    store : zarr.abc.store.Store
        Of the node.
    path : str
        Of the node.
    size : bool, optional
        Whether to count the stored blocks and their bytes, which lists every block.
    """
    if not isinstance(store, N5Store) or store.coords:
        return None
    from n5zarr.metadata.inspect import info_of  # noqa: PLC0415 - knows BigDataViewer and OME-Zarr

    return info_of(store, path, size=size)
