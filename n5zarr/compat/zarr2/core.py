"""Arrays with the names of zarr 2, and how they are made: ``zarr.core`` and ``zarr.creation``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self, override

import numcodecs.registry
import numpy as np
import zarr
from zarr.storage import MemoryStore

from n5zarr.arrays.creating import create_array
from n5zarr.arrays.described import FAST_ARRAY, DescribedArray
from n5zarr.arrays.group import with_fast_path
from n5zarr.arrays.opening import open_node
from n5zarr.compat.zarr2.errors import ContainsGroupError, PathNotFoundError, absent
from n5zarr.compat.zarr2.n5 import N5ChunkWrapper, to_compression
from n5zarr.compat.zarr2.storage import store_of
from n5zarr.errors import option_error
from n5zarr.format.data_type import DataType
from n5zarr.storage.not_found import NotFoundError
from n5zarr.store.block_codec import N5BlockCodec
from n5zarr.store.n5_store import N5Store as NewN5Store
from n5zarr.zarr_view.compressors import numcodecs_compressor

_WAYS = {
    "astype": "array[...].astype(dtype)",
    "hexdigest": "hashlib.sha1(array[...].tobytes()).hexdigest()",
    "islice": "array[start:end]",
    "view": "array[...].view(dtype)",
}
_NEAREST, _FILL, _V2 = (
    "n5zarr.create_array writes the nearest of them, and keeps this one for Zarr",
    "assign the values, or n5zarr.create_array(..., fill_value=...) keeps it for Zarr",
    "zarr.create_array(n5zarr.N5Store(path), zarr_format=2, ...) keeps it for Zarr",
)
# without effect: caches, locks, other storage
_UNUSED = {
    "cache_attrs", "cache_metadata", "chunk_store", "meta_array", "object_codec",
    "partial_decompress", "read_only", "storage_transformers", "synchronizer", "zarr_version",
}  # fmt: skip


class OpenedByPath:
    """An array or a group of zarr, which opens what is at a path if it is given a store.

    Parameters
    ----------
    store : path, URL or store
        Where the node is.
    path : str, optional
        Path of the node in it.
    read_only : bool, optional
        Whether to refuse writing.
    **options : optional
        Without effect: of chunks, caches and synchronizers.
    """

    inner: type  # what zarr 3 makes such a node of
    existing: Callable[[Any, str, str | None], Any]  # opens it in a mode
    chunk_store: Any = property(lambda self: self.store)

    def __new__(
        cls, store: Any = None, path: str | None = None, read_only: bool = False, **_: object
    ) -> Self:
        """Open a node, or show one of zarr 3."""
        if store is None or isinstance(store, cls.inner):
            return super().__new__(cls)
        return cls.existing(store, "r" if read_only else "r+", path)  # type: ignore[no-any-return]

    def __init__(self, store: Any, *_: object, **__: object) -> None:
        if isinstance(store, self.inner):
            super().__init__(store)  # type: ignore[call-arg] # of zarr's class


class Array(OpenedByPath, DescribedArray[Any]):
    """A :class:`zarr.Array` with the names of zarr 2; made as an :class:`OpenedByPath`."""

    inner, warn_of_loss = (
        zarr.AsyncArray,
        staticmethod(lambda value, dtype: None),
    )  # zarr 2 is silent
    existing = staticmethod(lambda store, mode, path: existing_array(store, mode, path=path))

    def __len__(self) -> int:
        return len(np.broadcast_to(0, self.shape))  # refuses an array of no axes

    @override
    def __getitem__(self, selection: Any) -> Any:
        found = super().__getitem__(selection)
        return found if np.ndim(found) else np.asarray(found)[()]  # zarr 3 has arrays of no axes

    def __getattr__(self, name: str) -> Any:
        raise absent("Array", name, _WAYS)

    itemsize = property(lambda self: self.dtype.itemsize)

    @property
    @override
    def compressor(self) -> Any:
        """The compressor: of N5 as an :class:`N5ChunkWrapper`, as in zarr 2."""
        codecs = getattr(self.async_array.metadata, "codecs", ())
        if not codecs or not isinstance(codecs[0], N5BlockCodec):
            return self.async_array.metadata.compressor
        return N5ChunkWrapper(self.dtype, self.chunks, numcodecs_compressor(codecs[0].compression))

    @override
    def get_basic_selection(self, selection: Any = ..., *, out: Any = None, **options: Any) -> Any:
        if not isinstance(out, np.ndarray):
            return super().get_basic_selection(selection, out=out, **options)
        out[...] = super().get_basic_selection(selection, **options)
        return out

    @override
    def resize(self, *shape: Any) -> None:
        super().resize(shape[0] if len(shape) == 1 else shape)


_FAST = FAST_ARRAY.found() or DescribedArray
_FastArray = type("_FastArray", (Array, _FAST), {"__module__": __name__})


def with_names(array: Any, *, write_empty_chunks: bool = True) -> Array:
    """Return an array with the names of zarr 2, which by default stores all chunks."""
    return (_FastArray if isinstance(with_fast_path(array), _FAST) else Array)(  # type: ignore[no-any-return]
        array.async_array.with_config({"write_empty_chunks": write_empty_chunks})
    )


def find(store: Any, mode: Any, path: str | None) -> Any:
    """Open what is in a store, or make a group there."""
    path = path or ""
    # zarr 2's default mode, and a store that only reads
    if getattr(store, "read_only", False) and mode in ("a", "r+"):
        mode = "r"
    try:
        if isinstance(store, NewN5Store):
            return open_node(store, mode, path=path)
        if mode in ("w", "w-"):
            return zarr.open_group(store, mode=mode, path=path, zarr_format=2)
        return zarr.open(store, mode="r" if mode == "r" else "r+", path=path)
    except FileNotFoundError as err:
        if mode == "a":
            return zarr.open_group(store, mode="w-", path=path, zarr_format=2)
        raise NotFoundError(str(err)) from err
    except FileExistsError as err:
        raise ContainsGroupError(str(err)) from err


def existing_array(store: Any, mode: Any, path: str | None) -> Array:
    """Open an array; raise a ``ContainsGroupError`` for a group."""
    found = find(store_of(store), mode, path)
    if isinstance(found, zarr.Group):
        raise ContainsGroupError(f"{found.store_path}: expected an array, got a group")
    return with_names(found)


def open_array(
    store: Any = None,
    mode: str = "a",
    shape: Any = None,
    *,
    path: str | None = None,
    storage_options: Any = None,
    **options: Any,
) -> Array:
    """Open an array, or make one.

    Parameters
    ----------
    store, mode, path, storage_options : optional
        As for :func:`open`.
    shape, **options : optional
        Those of :func:`create`.

    Raises
    ------
    ValueError
        A group is there, or nothing, or an array, and the mode does not allow it.
    """
    made = store_of(store, storage_options)
    if mode not in ("w", "w-", "x"):
        try:
            return existing_array(made, "r" if mode == "r" else "r+", path)
        except PathNotFoundError:
            if mode != "a" or shape is None:
                raise
    return create(shape, store=made, path=path, overwrite=mode == "w", **options)


def create(
    shape: Any,
    chunks: Any = True,
    dtype: Any = None,
    compressor: Any = "default",
    fill_value: Any = 0,
    order: Any = "C",
    store: Any = None,
    *,
    path: str | None = None,
    overwrite: bool = False,
    write_empty_chunks: bool = True,
    dimension_separator: Any = None,
    filters: Any = None,
    **others: Any,
) -> Array:
    """Make an array.

    Parameters
    ----------
    shape, chunks, dtype, compressor, fill_value, order, store, path : optional
        As in zarr 2; blosc is the default compressor, float64 the type.
    overwrite, write_empty_chunks, dimension_separator, filters, **others : optional
        As in zarr 2; also h5py's ``compression``, ``compression_opts`` and ``fillvalue``.

    Raises
    ------
    N5UnrepresentableError
        zarr 2 refused it, or wrote what no other program reads (``kind="option"``).
    """
    made, kind = store_of(store), np.dtype(dtype)
    if "compression" in others:
        compressor = _compressor(others.pop("compression"), others.pop("compression_opts", None))
    elif isinstance(compressor, str):
        compressor = _compressor("blosc", None)
    compressor = getattr(compressor, "inner", compressor)
    fill_value = others.pop("fillvalue", fill_value)
    for name in others.keys() - _UNUSED:
        warnings.warn(f"ignoring keyword argument {name!r}", stacklevel=3)
    extent = (int(shape),) if np.ndim(shape) == 0 else tuple(map(int, shape))
    size = _chunks(chunks, extent, kind.itemsize)
    options: dict[str, Any] = {"shape": extent, "overwrite": overwrite, "chunks": size}
    if isinstance(made, NewN5Store):
        _check(kind.newbyteorder("=").name, fill_value, order, filters)
        options |= {"dtype": kind.newbyteorder("="), "compression": to_compression(compressor)}
        in_n5 = create_array(made, path=path or "", **options)
        return with_names(in_n5, write_empty_chunks=write_empty_chunks)
    separator = dimension_separator or getattr(made, "dimension_separator", ".")
    in_zarr = zarr.create_array(
        made, name=path or None, dtype=kind, compressors=compressor, filters=filters,
        fill_value=fill_value, order=order, zarr_format=2,
        chunk_key_encoding={"name": "v2", "separator": separator}, **options,
    )  # fmt: skip
    return with_names(in_zarr, write_empty_chunks=write_empty_chunks)


zeros = empty = create


def _compressor(compression: Any, given: Any) -> Any:
    """Return the compressor of h5py's arguments: a name, and its level or other options."""
    if not isinstance(compression, str):
        return compression
    kind = type(numcodecs.registry.get_codec({"id": compression}))  # type: ignore[no-untyped-call]
    if given is None or isinstance(given, dict):
        return kind(**(given or {}))
    return kind(*(given if isinstance(given, list | tuple) else [given]))


def _check(name: str, fill_value: object, order: str, filters: object) -> None:
    """Raise if zarr 2 refused an array in N5, or wrote what no other program reads."""
    for is_right, message, way in (
        (name in DataType, f"dtype: expected one of N5's ten types, got {name}", _NEAREST),
        (not fill_value, f"fill_value: expected 0, as N5 has no other, got {fill_value}", _FILL),
        (order == "C", f"order: expected 'C', got {order!r}", _V2),
        (not filters, f"filters: expected none, got {filters}", _V2),
    ):
        if not is_right:
            raise option_error(f"{message}; {way}")


def _chunks(chunks: Any, shape: tuple[int, ...], n_bytes: int) -> tuple[int, ...]:
    """Return the shape of a chunk for what zarr 2 takes for it."""
    if chunks is None or chunks is True:
        # zarr 3 chooses as 2
        return zarr.create_array(
            MemoryStore(), shape=shape, dtype=f"V{n_bytes or 1}", zarr_format=2
        ).chunks
    if chunks is False:
        return shape
    given = (chunks,) * len(shape) if np.ndim(chunks) == 0 else tuple(chunks)
    full = given + shape[len(given) :]
    return tuple(n if c in (None, -1) else int(c) for c, n in zip(full, shape, strict=True))


def array(data: Any, **options: Any) -> Array:
    """Make an array of values; options are those of :func:`create`."""
    values = data if hasattr(data, "shape") and hasattr(data, "dtype") else np.asanyarray(data)
    missing = [name for name in ("dtype", "chunks") if options.get(name) is None]
    options |= {name: getattr(values, name, None) for name in missing}
    made = create(**options | {"shape": values.shape})
    made[...] = values
    return made


def like(data: Any, **options: Any) -> dict[str, Any]:
    """Return options of :func:`create` for an array like another one."""
    names = ("shape", "chunks", "dtype", *["compressor"] * isinstance(data, Array))
    return {name: getattr(data, name) for name in names if hasattr(data, name)} | options
