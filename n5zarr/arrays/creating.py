"""``n5zarr.create_array``: create datasets and open them as zarr arrays with the fast path."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import zarr
from zarr.dtype import parse_dtype
from zarr.errors import ContainsArrayError, ContainsGroupError
from zarr.types import AnyArray

from n5zarr.arrays.described import FAST_ARRAY, DescribedArray
from n5zarr.arrays.placing import memory_of, warn, warn_of_loss
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.strings import join_strings
from n5zarr.container.options import check_compression
from n5zarr.conventions.axis_names import check_distinct
from n5zarr.conventions.find import PLACING_KEYS
from n5zarr.conventions.model import Written, axes_of
from n5zarr.conventions.neuroglancer import KEYS
from n5zarr.conventions.units import is_unit
from n5zarr.errors import N5UnrepresentableError, option_error
from n5zarr.format.compression import Compression
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, from_presented, present
from n5zarr.format.raw_json import from_numpy
from n5zarr.metadata.levels import add_to_group, describe_new
from n5zarr.rooms import Door
from n5zarr.storage.interface import Durability
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.block_codec import N5BlockCodec
from n5zarr.store.locating import OpenOptions, open_container
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.compressors import compressors_to_write, is_in_zarr
from n5zarr.zarr_view.element import Element
from n5zarr.zarr_view.from_zarr import plain_dataset

if TYPE_CHECKING:
    from n5zarr._zarr import ZDType


_LABELS_TO_WRITE: Door[
    Callable[
        [np.ndarray | None, npt.DTypeLike | None, object], tuple[np.ndarray | None, npt.DTypeLike]
    ]
] = Door("step", "elements of label multisets")
_MAKE_MULTISETS: Door[Callable[[N5Store, str, np.ndarray | None], None]] = Door(
    "step", "create label multisets"
)


def create_array(  # noqa: PLR0913 - all properties of an N5 dataset
    location: Location,
    *,
    path: str = "",
    shape: Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    data: npt.ArrayLike | None = None,
    chunks: int | Sequence[int] | Literal["auto"] = "auto",
    chunk_aspect_ratio: Sequence[float] | None = None,
    chunk_elements: int | None = None,
    compression: Mapping[str, JSON] | str | None = "gzip",
    fill_value: object = None,
    axes: Sequence[str] | None = None,
    units: Sequence[str | None] | None = None,
    resolution: Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
    attributes: Mapping[str, JSON] | None = None,
    label_multiset: bool = False,
    axis_order: AxisOrder = "C",
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    durability: Durability | None = None,
) -> AnyArray:
    """Create an N5 dataset and open it as a zarr array with the fast path.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, which is created if it does not exist, or a location in one:
        ``"new.n5/em/s0"``. An :class:`N5Store` keeps its options.
    path : str, optional
        Path of the dataset below ``location``.
    shape : sequence of int, optional
        Extent in elements; by default that of ``data``. This and all other parameters for each axis
        are in the order of ``axis_order``.
    dtype : dtype, optional
        One of N5's ten numeric types; by default that of ``data``. Any other zarr type is stored in
        the nearest N5 type, or as strings, together with a record of the original type.
    data : array_like, optional
        The elements to write.
    chunks : int, sequence of int or "auto", optional
        Extent of a block; one number is for all axes, ``"auto"`` chooses it as tensorstore does.
    chunk_aspect_ratio : sequence of float, optional
        Proportions of automatic blocks; cubes by default.
    chunk_elements : int, optional
        Largest number of elements in an automatic block; 2**20 by default.
    compression : mapping, str or None, optional
        The ``compression`` object of ``attributes.json``, or its type; missing members take Java's
        defaults. None is raw.
    fill_value : scalar, optional
        Value of the elements of missing blocks; zarr's default is 0 for numbers. Other N5 tools
        always read 0.
    axes, units : sequence of str, optional
        Name and unit of each axis; None where an axis has no unit.
    resolution, offset : sequence of float, optional
        Distance between elements, and position of the first one, in ``units``; written where all
        viewers find them. ``s0``, ``s1``, ... become levels of one image.
    attributes : mapping, optional
        Other attributes; numbers and arrays of numpy become those of JSON.
    label_multiset : bool, optional
        Whether to store labels as Paintera's label multisets: the array is one of ``uint64``, and a
        voxel that is written holds its label once.
    axis_order : {"C", "F"}, optional
        ``"C"``: shape ``(z, y, x)`` becomes ``dimensions [x, y, z]``. ``"F"``: ``(x, y, z)`` does.
    overwrite : bool, optional
        Whether to remove an existing node first, with everything below it.
    storage_options, backend, durability : optional
        Options for a URL, the library that reads it, and how local files are written: as for
        :class:`~n5zarr.N5Store`. An open store keeps its own.

    Returns
    -------
    zarr.Array
        The array, with n5zarr's own codec if the dtype is one of N5's.

    Raises
    ------
    zarr.errors.ContainsArrayError, zarr.errors.ContainsGroupError
        The node exists, and ``overwrite`` is false.
    N5Error
        N5 cannot hold the array; nothing is written.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5", "em", "s0")
    >>> array = n5zarr.create_array(
    ...     where, shape=(5, 7, 11), chunks=(2, 3, 4), dtype="uint16",
    ...     axes="zyx", units=["nm"] * 3, resolution=[40, 4, 4])
    >>> array[:] = 3
    >>> (where / "attributes.json").read_text()[77:]
    '"blockSize":[4,3,2],"dimensions":[11,7,5],"transform":...,"resolution":[4.0,4.0,40.0],...}'
    """
    elements = None if data is None else np.asanyarray(memory_of().on_host(data))
    if label_multiset:
        elements, dtype = _LABELS_TO_WRITE.needed()(elements, dtype, fill_value)
    shape, dtype = _given_or_of(elements, shape, dtype)
    extent = tuple(map(index, shape))
    parsed = check_compression(compression or "raw")
    block = _block_size(chunks, extent, chunk_aspect_ratio, chunk_elements)
    opening: OpenOptions = {"axis_order": axis_order, "durability": durability, "writes": True}
    store, node = open_container(place_of(location, storage_options, backend), path, **opening)
    given = {"axes": axes, "units": units, "resolution": resolution, "offset": offset}
    per_axis = {
        name: from_presented(_one_each(name, values, len(extent)), store.axis_order)
        for name, values in given.items()
        if values is not None
    }
    options: dict[str, Any] = {} if fill_value is None else {"fill_value": fill_value}
    if "axes" in per_axis:
        check_distinct("axes", _check_texts("axes", axes))
        options["dimension_names"] = present(per_axis["axes"], store.axis_order)
    element = Element(dtype=(zdtype := _zdtype(dtype)).to_native_dtype())
    # raises if N5 cannot hold it, before anything is overwritten
    plain_dataset(extent, block, element, parsed, store.axis_order)
    elements = _converted(elements, element.dtype, parsed)
    options |= _codecs(store, parsed, is_block=element.is_native and bool(extent))
    if store.zarr_format == 2 and element.is_native:
        zdtype = _zdtype(element.dtype.newbyteorder(">"))
    written = _describe_axes(store, node, per_axis, attributes or {})
    with _naming_what_exists(f"{store}: /{node}"):
        array = zarr.create_array(
            store,
            name=node or None,
            shape=extent,
            chunks=block,
            dtype=zdtype,
            attributes={**from_numpy(attributes or {}), **written.attributes, **written.beside},
            zarr_format=store.zarr_format,
            overwrite=overwrite,
            **options,
        )
    add_to_group(store, node, written)
    # the serializer is n5zarr's own codec, for which the room has arrays
    kind = (FAST_ARRAY.found() if "serializer" in options else None) or DescribedArray
    created: AnyArray = kind(array.async_array)
    if label_multiset:
        _MAKE_MULTISETS.needed()(store, node, elements)
        created = kind(zarr.open_array(store, path=node, mode="r+").async_array)
    if elements is not None:
        created[...] = elements
    return created


@contextmanager
def _naming_what_exists(where: str) -> Iterator[None]:
    try:
        yield
    except (ContainsArrayError, ContainsGroupError) as err:
        found = "an array" if isinstance(err, ContainsArrayError) else "a group"
        message = f"{where}: expected nothing, got {found}; overwrite=True removes it first"
        raise type(err)(message) from err


def _codecs(store: N5Store, compression: Compression, *, is_block: bool) -> dict[str, Any]:
    """Return the codecs of an array; ``is_block``: whether n5zarr's own can be used."""
    is_n5 = store.codecs == "n5" or not is_in_zarr(compression)
    if is_block and is_n5 and store.zarr_format != 2:
        return {"serializer": N5BlockCodec(compression, store.axis_order), "compressors": None}
    return {"compressors": compressors_to_write(compression, store.zarr_format or 3)}


def _given_or_of(
    elements: np.ndarray | None, shape: Sequence[int] | None, dtype: npt.DTypeLike | None
) -> tuple[Sequence[int], npt.DTypeLike]:
    """Return shape and dtype of a new array, by default those of its elements."""
    if elements is None:
        if shape is None or dtype is None:
            raise option_error(
                f"expected shape and dtype, or data, got shape {shape} and dtype {dtype}"
            )
        return shape, dtype
    if shape is not None and tuple(map(index, shape)) != elements.shape:
        raise option_error(f"data: expected the shape {tuple(shape)}, got {elements.shape}")
    return elements.shape, elements.dtype if dtype is None else dtype


def _describe_axes(
    store: N5Store,
    path: str,
    per_axis: Mapping[str, Sequence[Any]],
    attributes: Mapping[str, JSON],
) -> Written:
    """Describe the axes of a new dataset in attributes; names alone need none.

    Write the values as given if the user's attributes already describe positions.
    """
    placed: dict[str, JSON] = {
        name: list(values) for name, values in per_axis.items() if name != "axes"
    }
    if not placed or (KEYS | PLACING_KEYS) & attributes.keys():
        return Written(placed)
    _check_texts("units", per_axis.get("units"))
    axes = axes_of(
        len(next(iter(per_axis.values()))),
        names=per_axis.get("axes"),
        scale=_floats("resolution", per_axis.get("resolution")),
        translation=_floats("offset", per_axis.get("offset")),
        units=per_axis.get("units"),
    )
    if unknown := [axis.unit for axis in axes if axis.unit and not is_unit(axis.unit)]:
        warn(f"units: expected some that programs know, such as nm or s, got {unknown}")
    return describe_new(store, path, axes)


def _floats(name: str, values: Sequence[Any] | None) -> list[float]:
    message = f"{name}: expected a number for each axis, got {list(values or ())}"
    try:
        numbers = list(map(float, values or ()))
    except (TypeError, ValueError) as err:
        raise option_error(message) from err
    if not all(map(math.isfinite, numbers)) or (name == "resolution" and 0 in numbers):
        raise option_error(message)
    return numbers


def _check_texts(name: str, values: Sequence[Any] | None) -> Sequence[str | None]:
    if not all(isinstance(value, str | None) for value in values or ()):
        raise option_error(f"{name}: expected a text for each axis, got {list(values or ())}")
    return values or ()


def _converted(
    elements: np.ndarray | None, dtype: np.dtype, compression: Compression
) -> np.ndarray | None:
    """Convert elements to a dtype; raise if that fails, or if they cannot be written."""
    if elements is None:
        return None
    codec_of(compression).compress(
        bytes(dtype.itemsize), compression, dtype.itemsize
    )  # its package may be missing
    if elements.dtype.kind in "OUT" and dtype.kind in "OUT":
        join_strings(text for text in elements.reshape(-1).tolist() if isinstance(text, str))
        return elements
    warn_of_loss(elements, dtype)
    try:
        return elements.astype(dtype, copy=False)
    except (ValueError, TypeError) as err:
        message = f"data: expected elements of {dtype}, got {elements.dtype}: {err}"
        raise N5UnrepresentableError(message, kind="data-type") from err


def _zdtype(dtype: npt.DTypeLike | ZDType) -> ZDType:
    """Return zarr's data type for a numpy dtype or another type that zarr accepts."""
    named = isinstance(dtype, str) and dtype not in ("string", "bytes")
    try:
        return parse_dtype(np.dtype(dtype) if named else dtype, zarr_format=3)  # type: ignore[arg-type]
    except (TypeError, ValueError) as err:
        message = (
            "dtype: expected numbers, bool, str, bytes, datetime64, timedelta64 or another type "
            f"that zarr knows, got {dtype!r}; astype makes one of them of objects"
        )
        raise N5UnrepresentableError(message, kind="data-type") from err


def _block_size(
    chunks: int | Sequence[int] | str,
    extent: tuple[int, ...],
    ratio: Sequence[float] | None,
    n_elements: int | None,
) -> tuple[int, ...]:
    """Return the extent of a block in elements, in the order of ``extent``.

    Raises
    ------
    N5UnrepresentableError
        ``chunks`` or ``ratio`` does not fit the number of dimensions, or ``n_elements`` is not
        above 0 (``kind="option"``).
    """
    if ratio is not None and (len(ratio) != len(extent) or min(ratio) <= 0):
        raise option_error(
            f"chunk_aspect_ratio: expected {len(extent)} numbers above 0, got {ratio}"
        )
    if isinstance(chunks, int | np.integer):
        chunks = [int(chunks)] * len(extent)
    if not isinstance(chunks, str):
        return tuple(map(index, _one_each("chunks", chunks, len(extent))))
    if chunks != "auto":
        raise option_error(
            f"chunks: expected 'auto', a number, or one for each dimension, got {chunks!r}"
        )
    if n_elements is not None and index(n_elements) < 1:
        raise option_error(f"chunk_elements: expected a number above 0, got {n_elements}")
    return automatic_block_size(extent, ratio, n_elements or 2**20)


def _one_each[T](name: str, values: Sequence[T], ndim: int) -> tuple[T, ...]:
    """Return values as JSON types; raise unless there is one for each dimension."""
    if len(values) != ndim:
        raise option_error(
            f"{name}: expected {ndim} values, one for each dimension, got {len(values)}"
        )
    # JSON has no numpy scalars
    return tuple(value.item() if isinstance(value, np.generic) else value for value in values)
