"""Present arrays of Zarr, or parts of them, as datasets of N5."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product, takewhile
from typing import Any, NamedTuple, override

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.buffer import cpu
from zarr.storage import StorePath

from n5zarr._zarr import REFUSALS
from n5zarr.conventions.model import brief
from n5zarr.errors import N5UnsupportedError, option_error
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import CTuple, N5Tuple, to_c, to_n5
from n5zarr.format.path import join
from n5zarr.shown.java_zarr import JavaZarrStore, in_own_store
from n5zarr.shown.made_datasets import MadeDataset
from n5zarr.zarr_view.keys import ChunkNames, ZarrFormat

_AT_A_TIME = 32  # requests for sizes


@dataclass(frozen=True, kw_only=True)
class ZarrDataset(MadeDataset):
    """An array of Zarr, or what it holds at indices along its first axes.

    Parameters
    ----------
    array : zarr.AsyncArray
        The array.
    order : tuple of int
        The axes of the array in the order of the dataset.
    leading : tuple of int, optional
        The indices along the first axes in this order.
    """

    array: zarr.AsyncArray[Any]
    order: tuple[int, ...]
    leading: tuple[int, ...] = ()

    @property
    def n_ones(self) -> int:
        """The number of axes of one element that the dataset has before those of the array."""
        return len(self.dimensions) - (self.array.ndim - len(self.leading))

    @override
    async def values(self, box: tuple[slice, ...]) -> np.ndarray:
        along: tuple[int | slice, ...] = (*self.leading, *box[self.n_ones :])
        chosen = dict(zip(self.order, along, strict=True))
        found = np.asarray(await self.array.getitem(tuple(chosen[n] for n in sorted(chosen))))
        kept = self.order[len(self.leading) :]
        found = found.transpose([sorted(kept).index(axis) for axis in kept])
        found = found.reshape((1,) * self.n_ones + found.shape)
        return found.view("u1") if found.dtype == bool else found

    @override
    async def positions(self) -> list[N5Tuple]:
        """List the blocks whose chunk, or the shard around it, is stored."""
        if self.array.metadata.fill_value not in (None, 0):  # N5 reads missing blocks as 0
            return sorted(N5Tuple(p) for p in product(*map(range, self.grid)))
        stored = self.array.shards or self.array.chunks
        by = [stored[a] // self.array.chunks[a] for a in self.order[len(self.leading) :]]
        found: list[N5Tuple] = []
        for _, coords in await self._stored():
            each = zip(coords, by, to_c(self.grid)[self.n_ones :], strict=True)
            inside = [range(c * k, min((c + 1) * k, end)) for c, k, end in each]
            ones = (0,) * self.n_ones
            found += [to_n5(CTuple((*ones, *position))) for position in product(*inside)]
        return sorted(found)

    @override
    async def n_bytes_stored(self) -> int:
        limit = asyncio.Semaphore(_AT_A_TIME)

        async def size(key: str) -> int:
            async with limit:
                return await self.array.store_path.store.getsize(key)

        return sum(await asyncio.gather(*(size(key) for key, _ in await self._stored())))

    async def _stored(self) -> list[tuple[str, tuple[int, ...]]]:
        """List the keys of stored chunks or shards, with their grid positions in the dataset."""
        stored = self.array.shards or self.array.chunks
        n = len(self.leading)
        fixed = {a: i // stored[a] for a, i in zip(self.order[:n], self.leading, strict=True)}
        within = tuple(fixed[a] for a in takewhile(fixed.__contains__, range(len(stored))))
        names = ChunkNames.of(self.array.metadata.to_dict())
        prefix = f"{self.array.path}/" if self.array.path else ""
        part = prefix  # as datasets may share an array, with the keys of many others
        if within and names.separator == "/":
            part = f"{names.key(self.array.path, within)}/"
        found = []
        async for key in self.array.store_path.store.list_prefix(part):
            coords = names.coords(key.removeprefix(prefix))
            if coords is None or len(coords) != len(stored):
                continue
            if all(coords[axis] == position for axis, position in fixed.items()):
                found.append((key, tuple(coords[axis] for axis in self.order[n:])))
        return found


def zarr_dataset(
    array: zarr.AsyncArray[Any],
    where: str,
    leading: tuple[int, ...] = (),
    attributes: Mapping[str, JSON] | None = None,
    *,
    n_ones: int = 0,
    order: tuple[int, ...] = (),
) -> ZarrDataset:
    """Make the dataset of an array of Zarr.

    Parameters
    ----------
    array : zarr.AsyncArray
        The array.
    where : str
        Where it is, for messages.
    leading : tuple of int, optional
        Indices along its first axes, or the first ones in ``order``.
    attributes : mapping, optional
        Attributes beside the keys of a dataset.
    n_ones : int, optional
        Number of axes of one element that the dataset has before those of the array.
    order : tuple of int, optional
        The axes of the array in the order of the dataset; by default its own.

    Raises
    ------
    N5UnsupportedError
        Its elements have no type of N5, or it has no axes (``kind="data-type"``).
    """
    n, ones = len(leading), (1,) * n_ones
    kind = "uint8" if array.dtype == bool else str(array.dtype.name)
    if kind not in {known.value for known in DataType if known.is_numeric} or array.ndim <= n:
        message = f"{where}: expected integers or floats of a type of N5, got {array.dtype}"
        raise N5UnsupportedError(f"{message} of {array.ndim} dimensions", kind="data-type")
    order = order or tuple(range(array.ndim))
    return ZarrDataset(
        dimensions=to_n5(CTuple((*ones, *(array.shape[axis] for axis in order[n:])))),
        block_size=to_n5(CTuple((*ones, *(array.chunks[axis] for axis in order[n:])))),
        data_type=DataType(kind),
        attributes=attributes or {},
        array=array,
        order=order,
        leading=leading,
    )


async def open_zarr_array(
    store: Store, path: str, name: str, zarr_format: ZarrFormat | None = None
) -> zarr.AsyncArray[Any] | None:
    """Open an array of Zarr, also of Java's n5-zarr 2; None if there is none.

    Parameters
    ----------
    store : Store
        Its hierarchy.
    path : str
        Where it is in it.
    name : str
        The name of the hierarchy, for messages.
    zarr_format : {3, 2}, optional
        The format; by default either.

    Raises
    ------
    N5UnrepresentableError
        Something else is there (``kind="option"``).
    """
    place = StorePath(JavaZarrStore(store), path)
    try:
        return in_own_store(await zarr.AsyncArray.open(place, zarr_format=zarr_format))
    except FileNotFoundError:
        return None
    except REFUSALS as err:
        raise option_error(f"{join(name, path)}: expected an array of Zarr, got {err}") from err


class ZarrNode(NamedTuple):
    """A node of Zarr.

    Parameters
    ----------
    is_array : bool
        Whether it is an array.
    attributes : dict or None
        Its attributes; None without a document that could have them.
    """

    is_array: bool
    attributes: dict[str, JSON] | None


async def read_node(
    store: Store, path: str, name: str, zarr_format: ZarrFormat | None = None
) -> ZarrNode | None:
    """Read the kind and the attributes of a node of Zarr; None if there is none.

    Parameters
    ----------
    store, path, name, zarr_format
        As for :func:`open_zarr_array`.

    Raises
    ------
    N5UnrepresentableError
        A document is not that of Zarr (``kind="option"``).
    """
    if zarr_format != 2:
        document = await _json(store, join(path, "zarr.json"), name)
        if document is not None:
            attributes = document.get("attributes", {})
            is_array = document.get("node_type") == "array"
            return ZarrNode(is_array, _object(attributes, join(name, path, "zarr.json")))
    if zarr_format == 3:
        return None
    array, group, own = await asyncio.gather(
        *(_json(store, join(path, each), name) for each in (".zarray", ".zgroup", ".zattrs"))
    )
    is_there = any(each is not None for each in (array, group, own))
    return ZarrNode(array is not None, own) if is_there else None


async def _json(store: Store, key: str, name: str) -> dict[str, JSON] | None:
    value = await store.get(key, cpu.buffer_prototype)
    try:
        return None if value is None else _object(json.loads(value.to_bytes()), join(name, key))
    except ValueError as err:
        raise option_error(
            f"{join(name, key)}: expected the document of a group or an array, got {err}"
        ) from err


def _object(value: JSON, where: str) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise option_error(
            f"{where}: expected the document of a group or an array, got {brief(value)}"
        )
    return value
