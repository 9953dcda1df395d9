"""Finding the root of a container, and opening what lies in it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import takewhile
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.buffer import cpu
from zarr.dtype import parse_dtype

from n5zarr._zarr_compat import sync
from n5zarr.arrays import hasten
from n5zarr.codecs.block import Block, parse_block
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    DatasetAttributes,
    GroupAttributes,
    parse_attributes,
)
from n5zarr.format.compression import compression_to_json, parse_compression
from n5zarr.format.grid import automatic_block_size, block_path
from n5zarr.format.order import present
from n5zarr.format.path import join, local_path, normalize_path
from n5zarr.hierarchy import read_document, read_key
from n5zarr.remote import is_chain, is_url, store_of_url, tolerant
from n5zarr.store import N5Store
from n5zarr.translate.element import Element
from n5zarr.translate.members import plain_dataset
from n5zarr.translate.presentation import Presentation, numcodecs_compressor, zarr_compressors
from n5zarr.zarr_codecs import N5BlockCodec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from zarr import Group
    from zarr.types import AnyArray

    from n5zarr._zarr_compat import ZDType
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder

__all__ = ["create_array", "open_container", "open_node", "read_block", "sample_path", "split_root"]

_URL_ROOT = re.compile(r"(.*?\.n5)(?:/+(.*))?", re.DOTALL)


def sample_path() -> str:
    """Give the path of the small container that comes with n5zarr.

    Returns
    -------
    str
        A local path. The container holds a multiscale image and labels with axes and units.
    """
    return str(Path(__file__).parent / "data" / "sample.n5")


def split_root(location: str | os.PathLike[str]) -> tuple[str, str]:
    """Split a location into the root of its container and the path of a node in it.

    The root is the first path element that ends in ``.n5``; else the topmost of the unbroken chain
    of a node and its ancestors that have an ``attributes.json``; else the location itself. Nothing
    is asked of servers: of a URL without such an element the whole is given as the root.

    Parameters
    ----------
    location : path or URL
        Anywhere in a container.

    Returns
    -------
    root, path : str
        ``path`` is ``""`` for the root.

    Examples
    --------
    >>> split_root("s3://bucket/jrc_hela-2.n5/em/s0")
    ('s3://bucket/jrc_hela-2.n5', 'em/s0')
    """
    text = os.fspath(location)
    if "://" in text and not text.lower().startswith("file://"):
        address, query = _address(text)
        found = _URL_ROOT.fullmatch(address)
        return (text, "") if found is None else _placed(found.group(1), found.group(2) or "", query)
    node = Path(local_path(text)).expanduser().absolute()
    if ".." in node.parts:
        node = node.resolve()
    ancestors = [*reversed(node.parents), node]
    root = next((a for a in ancestors if a.suffix == ".n5"), None) or _documented_root(node)
    return str(root), "" if node == root else node.relative_to(root).as_posix()


def _documented_root(node: Path) -> Path:
    documented = list(takewhile(_has_document, (node, *node.parents)))
    return documented[-1] if documented else node


def _has_document(directory: Path) -> bool:
    try:
        return (directory / ATTRIBUTES_JSON).is_file()
    except OSError:  # not ours to look into
        return False


def _address(url: str) -> tuple[str, str]:
    """Split a URL into what says the place and the query, which goes with every request."""
    is_http = url.lower().startswith(("http://", "https://"))
    address, mark, query = url.partition("?") if is_http else (url, "", "")
    return address, mark + query


def _placed(root: str, inner: str, query: str) -> tuple[str, str]:
    """Give the URL of a container and the path of a node in it, which is a name and no URL."""
    inner = inner.strip("/")
    is_http = root.lower().startswith(("http://", "https://"))
    return root + query, unquote(inner) if is_http else inner


def _found_root(url: str, storage_options: dict[str, Any] | None) -> tuple[str, str]:
    """Split a URL without ``.n5``, asking upwards for documents until one is missing."""
    address, query = _address(url)
    scheme, separator, place = address.partition("://")
    names = place.rstrip("/").split("/")
    n_root = len(names)
    for n in range(len(names), 0, -1):
        above = scheme + separator + "/".join(names[:n])
        if not sync(_has_document_at(above + query, storage_options)):
            break
        n_root = n
    root = scheme + separator + "/".join(names[:n_root])
    return _placed(root, "/".join(names[n_root:]), query)


def _is_to_be_asked(root: str) -> bool:
    """Whether documents tell the root: not if its name does, nor in an archive or a chain."""
    if not is_url(root) or is_chain(root) or root.lower().startswith("zip:"):
        return False
    return _URL_ROOT.fullmatch(_address(root)[0]) is None


async def _has_document_at(url: str, storage_options: dict[str, Any] | None) -> bool:
    """Whether there is a document at a URL; what may not be seen is no part of the container."""
    store = store_of_url(url, storage_options, read_only=True, backend="fsspec")
    data = await tolerant(store).get(ATTRIBUTES_JSON, cpu.buffer_prototype)
    # some web servers answer with a page whatever they are asked for
    return data is not None and not data.to_bytes().lstrip().startswith(b"<")


def open_container(
    store: str | os.PathLike[str] | Store,
    path: str = "",
    *,
    axis_order: AxisOrder = "C",
    storage_options: dict[str, Any] | None = None,
) -> tuple[N5Store, str]:
    """Open the container of a location with n5zarr's own codec.

    Parameters
    ----------
    store : path, URL or zarr store
        A container or, if it is no store object, anywhere in one.
    path : str, optional
        Node below ``store``.
    axis_order : {"C", "F"}, optional
        In which order axes are shown.
    storage_options : dict, optional
        For fsspec, with a URL.

    Returns
    -------
    N5Store, str
        The container, and the path of the node in it.
    """
    if isinstance(store, N5Store):
        return store, normalize_path(path)
    inner = ""
    root: str | Store = store if isinstance(store, Store) else ""
    if not isinstance(store, Store):
        root, inner = split_root(store)
        if _is_to_be_asked(root):
            root, inner = _found_root(root, storage_options)
    opened = N5Store(root, codecs="n5", axis_order=axis_order, storage_options=storage_options)
    return opened, join(normalize_path(inner), normalize_path(path))


def open_node(  # noqa: PLR0913 - what zarr's open takes, and what tensorstore's does
    store: str | os.PathLike[str] | Store,
    mode: Literal["r", "r+", "a", "w", "w-"] = "r",
    *,
    path: str = "",
    axis_order: AxisOrder = "C",
    storage_options: dict[str, Any] | None = None,
    dtype: npt.DTypeLike | None = None,
    ndim: int | None = None,
    shape: Sequence[int] | None = None,
    chunks: Sequence[int] | None = None,
    compression: Mapping[str, JSON] | None = None,
    assume_metadata: Mapping[str, JSON] | None = None,
    delete_existing: bool = False,
) -> AnyArray | Group:
    """Open an N5 group or dataset as a zarr group or array, by the fast way.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or anywhere in one: ``"sample.n5/em/s0"`` opens the dataset ``em/s0``. The
        container begins at the first name that ends in ``.n5``, else at the topmost of the
        location and the groups above it that have, one below the other, an ``attributes.json``. An
        :class:`N5Store` is used as it is.
    mode : {"r", "r+", "a", "w", "w-"}, optional
        As in :func:`zarr.open`: read only; read and write what exists; make a group if nothing
        exists; make a new group in any case; make a group or fail. :func:`create_array` makes
        arrays.
    path : str, optional
        Node below ``store``.
    axis_order : {"C", "F"}, optional
        ``"C"``: ``dimensions [x, y, z]`` are shown as shape ``(z, y, x)``. ``"F"``: as ``(x, y,
        z)``.
    storage_options : dict, optional
        For fsspec, with a URL.
    dtype, ndim, shape, chunks, compression : optional
        What the node has to be, in the order that is shown; an array of anything else is refused.
        Of a compression only the members that are given are compared. With the modes ``"r"`` and
        ``"r+"``.
    assume_metadata : mapping, optional
        The document of the dataset, with N5's own keys: it is not read, and need not exist.
    delete_existing : bool, optional
        Whether what exists is removed first; with the modes ``"a"``, ``"w"`` and ``"w-"``.

    Returns
    -------
    zarr.Array or zarr.Group
        With n5zarr's own codec: errors name container, path and block.

    Raises
    ------
    FileNotFoundError
        There is no such container or node.
    N5UnrepresentableError
        The node is not what it has to be (``kind="option"``).
    N5Error
        The node is broken or not supported.

    Examples
    --------
    >>> import n5zarr
    >>> array = n5zarr.open(n5zarr.sample_path(), path="em/s1", dtype="uint8", ndim=3)
    >>> array.shape, array.metadata.dimension_names
    ((20, 48, 64), ('z', 'y', 'x'))
    """
    opened, node = open_container(
        store, path, axis_order=axis_order, storage_options=storage_options
    )
    if assume_metadata is not None:
        opened = opened.assuming(node, assume_metadata)
    wanted = {"dtype": dtype, "ndim": ndim, "shape": shape, "chunks": chunks}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if wanted or compression is not None:
        if mode not in ("r", "r+") or delete_existing:
            message = f"conditions: expected the mode 'r' or 'r+', got {mode!r}, which makes groups"
            raise N5UnrepresentableError(message, kind="option")
        _check_wanted(zarr.open(opened, path=node, mode="r"), wanted, opened, node)
        if compression is not None:
            _check_compression(opened, node, compression)
    if delete_existing:
        _delete(opened, node, mode)
    return hasten(zarr.open(opened, path=node, mode=mode, zarr_format=opened.zarr_format))


def _delete(opened: N5Store, node: str, mode: str) -> None:
    if mode not in ("a", "w", "w-"):
        message = f"delete_existing: expected a mode that creates, 'a', 'w' or 'w-', got {mode!r}"
        raise N5UnrepresentableError(message, kind="option")
    sync(opened.delete_dir(node))


def _check_wanted(
    found: AnyArray | Group, wanted: Mapping[str, Any], opened: N5Store, node: str
) -> None:
    """Compare an array with what the caller needs it to be."""
    where = f"{opened}: {node or '/'}"
    if wanted and not isinstance(found, zarr.Array):
        message = "expected an array, got a group"
        raise N5UnrepresentableError(message, kind="option", where=where)
    for name, value in wanted.items():
        is_value = getattr(found, name)
        if name == "dtype":
            expected: Any = np.dtype(value)
        else:
            expected = value if name == "ndim" else tuple(map(index, value))
        if is_value != expected:
            message = f"{name}: expected {expected}, got {is_value}"
            raise N5UnrepresentableError(message, kind="option", where=where)


def _check_compression(opened: N5Store, node: str, wanted: Mapping[str, JSON]) -> None:
    shown = sync(opened.read_node(node))
    parse_compression(wanted)
    stored: dict[str, JSON] = {}
    if isinstance(shown, Presentation):
        stored = compression_to_json(shown.dataset.compression)
    if any(stored.get(name) != value for name, value in wanted.items()):
        message = f"compression: expected {dict(wanted)}, got {stored or 'a group'}"
        raise N5UnrepresentableError(message, kind="option", where=f"{opened}: {node or '/'}")


def create_array(  # noqa: PLR0913 - everything an N5 dataset can say
    store: str | os.PathLike[str] | Store,
    *,
    path: str = "",
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    chunks: Sequence[int] | Literal["auto"] = "auto",
    chunk_aspect_ratio: Sequence[float] | None = None,
    compression: Mapping[str, JSON] | None = MappingProxyType({"type": "gzip"}),
    fill_value: object = None,
    axes: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
    resolution: Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
    attributes: Mapping[str, JSON] | None = None,
    axis_order: AxisOrder = "C",
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> AnyArray:
    """Create an N5 dataset and open it as a zarr array, by the fast way.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, which is made if it does not exist, or a place in one:
        ``"new.n5/em/s0"``. An :class:`N5Store` is used as it is.
    path : str, optional
        Of the dataset, below ``store``.
    shape : sequence of int
        Extent in elements, in the order of ``axis_order``, as all that follow.
    dtype : dtype
        One of N5's ten numeric ones; any other that zarr has is kept in the nearest of them, or as
        strings, with a record of what it is.
    chunks : sequence of int or "auto", optional
        Extent of a block in elements; ``"auto"`` takes about a million elements, as tensorstore
        does.
    chunk_aspect_ratio : sequence of float, optional
        Proportions of automatic blocks; cubes by default.
    compression : mapping or None, optional
        As in ``attributes.json``; members left out take Java's defaults. None is raw.
    fill_value : scalar, optional
        What missing blocks read as; zarr's default, which is 0 for numbers. Other N5 tools read 0
        there, whatever it is.
    axes, units : sequence of str, optional
        Name and unit of each axis, kept as tensorstore and Neuroglancer do.
    resolution, offset : sequence of float, optional
        Distance of elements, and position of the first one, in these units.
    attributes : mapping, optional
        Others, kept as they are.
    axis_order : {"C", "F"}, optional
        ``"C"``: shape ``(z, y, x)`` becomes ``dimensions [x, y, z]``. ``"F"``: shape is
        ``dimensions``. That of an :class:`N5Store` holds.
    overwrite : bool, optional
        Whether what exists there is removed first, with all that is below it.
    storage_options : dict, optional
        For fsspec, with a URL.

    Returns
    -------
    zarr.Array
        With n5zarr's own codec where the dtype is one of N5's.

    Raises
    ------
    zarr.errors.ContainsArrayError, zarr.errors.ContainsGroupError
        There is something, and ``overwrite`` is false.
    N5Error
        N5 cannot hold the array; nothing is written.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5", "em", "s0")
    >>> array = n5zarr.create_array(
    ...     where, shape=(5, 7, 11), chunks=(2, 3, 4), dtype="uint16",
    ...     axes="zyx", units=["nm"] * 3, resolution=[40, 4, 4],
    ... )
    >>> array[:] = 3
    >>> (where / "attributes.json").read_text()[77:]
    '"blockSize":[4,3,2],"dimensions":[11,7,5],"units":["nm","nm","nm"],...,"axes":["x","y","z"]}'
    """
    extent = tuple(map(index, shape))
    how = parse_compression({"type": "raw"} if compression is None else compression)
    block = _block_size(chunks, extent, chunk_aspect_ratio)
    opened, node = open_container(
        store, path, axis_order=axis_order, storage_options=storage_options
    )
    per_axis = {"units": units, "resolution": resolution, "offset": offset}
    described: dict[str, Any] = {
        name: list(present(_one_each(name, values, len(extent)), opened.axis_order))
        for name, values in per_axis.items()
        if values is not None
    }
    zdtype = _zdtype(dtype)
    options: dict[str, Any] = {} if fill_value is None else {"fill_value": fill_value}
    if axes is not None:
        options["dimension_names"] = _one_each("axes", axes, len(extent))
    element = Element(dtype=zdtype.to_native_dtype())
    # before anything is overwritten
    plain_dataset(extent, block, element, how, opened.axis_order)
    if opened.zarr_format == 2:
        options["compressors"] = numcodecs_compressor(how)
        if element.is_native:
            zdtype = _zdtype(element.dtype.newbyteorder(">"))
    elif element.is_native and extent and opened.codecs == "n5":
        options |= {"serializer": N5BlockCodec(how, opened.axis_order), "compressors": None}
    else:
        options["compressors"] = zarr_compressors(how)
    made = zarr.create_array(
        opened,
        name=node or None,
        shape=extent,
        chunks=block,
        dtype=zdtype,
        attributes={**(attributes or {}), **described},
        zarr_format=opened.zarr_format,
        overwrite=overwrite,
        **options,
    )
    return hasten(made)


def _zdtype(dtype: npt.DTypeLike | ZDType) -> ZDType:
    """Find zarr's data type, from a numpy dtype or anything that zarr takes."""
    named = isinstance(dtype, str) and dtype not in ("string", "bytes")
    try:
        return parse_dtype(np.dtype(dtype) if named else dtype, zarr_format=3)  # type: ignore[arg-type]
    except (TypeError, ValueError) as err:
        message = f"dtype: expected one that zarr knows, got {dtype!r}"
        raise N5UnrepresentableError(message, kind="data-type") from err


def _block_size(
    chunks: Sequence[int] | str, extent: tuple[int, ...], ratio: Sequence[float] | None
) -> tuple[int, ...]:
    if ratio is not None and (len(ratio) != len(extent) or min(ratio) <= 0):
        message = f"chunk_aspect_ratio: expected {len(extent)} numbers above 0, got {ratio}"
        raise N5UnrepresentableError(message, kind="option")
    if not isinstance(chunks, str):
        return tuple(map(index, _one_each("chunks", chunks, len(extent))))
    if chunks != "auto":
        message = f"chunks: expected 'auto' or one number for each dimension, got {chunks!r}"
        raise N5UnrepresentableError(message, kind="option")
    return automatic_block_size(extent, ratio)


def _one_each[T](name: str, values: Sequence[T], ndim: int) -> tuple[T, ...]:
    if len(values) != ndim:
        message = f"{name}: expected {ndim}, one for each dimension, got {len(values)}"
        raise N5UnrepresentableError(message, kind="option")
    # also numpy's numbers, which are no JSON
    return tuple(value.item() if isinstance(value, np.generic) else value for value in values)


def read_block(
    store: str | os.PathLike[str] | Store, path: str, grid_position: Sequence[int]
) -> Block | None:
    """Read one block of a dataset as it is stored, whatever its mode.

    Parameters
    ----------
    store : path, URL or zarr store
        The container.
    path : str
        Path of the dataset.
    grid_position : sequence of int
        Position of the block in the grid, N5 order (x first).

    Returns
    -------
    Block or None
        Header and flat data: numbers, strings, or the bytes of an object; None when there is no
        such block.

    Raises
    ------
    FileNotFoundError
        There is no dataset at the path.
    N5Error
        The dataset or the block is broken.

    Examples
    --------
    >>> import n5zarr
    >>> block = n5zarr.read_block(n5zarr.sample_path(), "em/s2", (0, 0, 0))
    >>> block.header.block_shape, block.data.dtype
    ((32, 24, 10), dtype('uint8'))
    """
    opened, node = open_container(store, path)
    where = f"{opened}: {node or '/'}"
    dataset = _read_attributes(opened, node, where)
    if isinstance(dataset, GroupAttributes):
        message = f"{where}: expected a dataset, got a group or nothing"
        raise FileNotFoundError(message)
    position = tuple(map(index, grid_position))
    if len(position) != dataset.ndim or any(p < 0 for p in position):
        message = f"grid position: expected {dataset.ndim} integers >= 0, got {position}"
        raise N5UnrepresentableError(message, kind="option", where=where)
    data = sync(opened.run(read_key(join(node, block_path(position)))))
    if data is None:
        return None
    try:
        block = parse_block(memoryview(data), dataset.ndim, dataset.data_type, dataset.compression)
    except N5Error as err:
        raise err.located(f"{where}: block {block_path(position)}") from err.__cause__
    if dataset.numpy_type is not None and isinstance(block.data, np.ndarray):
        return replace(block, data=block.data.view(dataset.numpy_type))
    return block


def _read_attributes(opened: N5Store, node: str, where: str) -> DatasetAttributes | GroupAttributes:
    try:
        return parse_attributes(sync(opened.run(read_document(node))))
    except N5Error as err:
        raise err.located(f"{where}: {ATTRIBUTES_JSON}") from err.__cause__
