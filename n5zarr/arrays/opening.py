"""``n5zarr.open``: open groups and datasets as zarr groups and arrays with the fast path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import zarr
from zarr import Group
from zarr.errors import ArrayNotFoundError, GroupNotFoundError
from zarr.types import AnyArray

from n5zarr._zarr import sync
from n5zarr.arrays.group import node_at, with_fast_path
from n5zarr.errors import N5UnrepresentableError, option_error
from n5zarr.format.compression import compression_to_json, parse_compression
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.interface import Durability
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import check_group, datasets_below, not_found
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView


def open_node(  # noqa: PLR0913 - the parameters of zarr's open and of tensorstore's
    location: Location,
    mode: Literal["r", "r+", "a", "w", "w-"] = "r",
    *,
    path: str = "",
    axis_order: AxisOrder = "C",
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    durability: Durability | None = None,
    dtype: npt.DTypeLike | None = None,
    ndim: int | None = None,
    shape: Sequence[int] | None = None,
    chunks: Sequence[int] | None = None,
    compression: Mapping[str, JSON] | None = None,
    assume_metadata: Mapping[str, JSON] | None = None,
    delete_existing: bool = False,
    fill_missing: bool = True,
) -> AnyArray | Group:
    """Open an N5 group or dataset as a zarr group or array with the fast path.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one: ``"sample.n5/em/s0"`` opens the dataset ``em/s0``. The
        root of the container is the first part of the path that ends in ``.n5``. Without one, it is
        the topmost directory of an unbroken chain, from the location upwards, in which each has an
        ``attributes.json``. An :class:`N5Store` keeps its options; by default, it is read as v3.
    mode : {"r", "r+", "a", "w", "w-"}, optional
        As in :func:`zarr.open`: read only; read and write an existing node; create a group if
        nothing exists; create a new group in any case; create a group, or raise if a node exists.
        :func:`create_array` creates arrays.
    path : str, optional
        Node below ``location``.
    axis_order : {"C", "F"}, optional
        ``"C"``: ``dimensions [x, y, z]`` are shown as shape ``(z, y, x)``. ``"F"``: ``(x, y, z)``.
    storage_options, backend, durability : optional
        Options for a URL, the library that reads it, and how local files are written: as for
        :class:`~n5zarr.N5Store`. An open store keeps its own.
    dtype, ndim, shape, chunks, compression : optional
        Conditions that the array must meet, or it is refused, in the order of ``axis_order``. Only
        with the modes ``"r"`` and ``"r+"``. Of a compression, the given members are compared.
    assume_metadata : mapping, optional
        A document with N5's own keys to use instead of the stored one, which need not exist.
    delete_existing : bool, optional
        Whether to remove an existing node first; only with the modes ``"a"``, ``"w"`` and ``"w-"``.
    fill_missing : bool, optional
        Whether missing blocks read as the fill value; otherwise reading one is an error.

    Returns
    -------
    zarr.Array or zarr.Group
        The node, with n5zarr's own codec, whose errors name container, path and block.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5UnrepresentableError
        The node does not meet a condition, or an option does not fit the mode (``kind="option"``).
    N5Error
        The node is broken or not supported.

    Examples
    --------
    >>> import n5zarr
    >>> array = n5zarr.open(n5zarr.sample_path(), path="em/s1", dtype="uint8", ndim=3)
    >>> array.shape, array.metadata.dimension_names
    ((20, 48, 64), ('z', 'y', 'x'))
    """
    place = place_of(location, storage_options, backend)
    with asking_once():
        store, node = open_container(
            place,
            path,
            axis_order=axis_order,
            durability=durability,
            writes=mode != "r" and not isinstance(place.location, N5Store),  # as zarr refuses it
        )
        if assume_metadata is not None:
            store = store.assuming(node, assume_metadata)
        conditions = {"dtype": dtype, "ndim": ndim, "shape": shape, "chunks": chunks}
        wanted = {name: value for name, value in conditions.items() if value is not None}
        if wanted or compression is not None:
            if mode not in ("r", "r+") or delete_existing:
                raise option_error(
                    f"conditions: expected the mode 'r' or 'r+', got {mode!r}, which makes groups"
                )
            _check_wanted(store, node, wanted, compression)
        if delete_existing:
            _delete(store, node, mode)
        found = with_fast_path(_open(store, node, mode))
    if fill_missing:
        return found
    if not isinstance(found, zarr.Array):
        raise option_error(
            "fill_missing: expected only with an array, got a group",
            where=f"{store}: {node or '/'}",
        )
    return found.with_config({"read_missing_chunks": False})


class ArrayOptions(TypedDict, total=False):
    """The options of :func:`open_node` for arrays."""

    axis_order: AxisOrder
    storage_options: Mapping[str, object] | None
    backend: Backend | None
    durability: Durability | None
    dtype: npt.DTypeLike | None
    ndim: int | None
    shape: Sequence[int] | None
    chunks: Sequence[int] | None
    compression: Mapping[str, JSON] | None
    assume_metadata: Mapping[str, JSON] | None
    fill_missing: bool


def open_array(
    location: Location,
    mode: Literal["r", "r+"] = "r",
    *,
    path: str = "",
    **options: Unpack[ArrayOptions],
) -> AnyArray:
    """Open an N5 dataset as a zarr array with the fast path.

    Parameters
    ----------
    location, mode, path : optional
        As for :func:`n5zarr.open`.
    **options : optional
        Those of :func:`n5zarr.open` for arrays.

    Returns
    -------
    zarr.Array
        The array.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5UnrepresentableError
        The node is a group (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> n5zarr.open_array(n5zarr.sample_path(), path="em/s1").shape
    (20, 48, 64)
    """
    if mode not in ("r", "r+"):
        raise option_error(
            f"mode: expected 'r' or 'r+', got {mode!r}; n5zarr.create_array creates arrays"
        )
    found = open_node(location, mode, path=path, **options)
    if isinstance(found, zarr.Array):
        return found
    store: Any = found.store
    raise _no_array(store, found.path, "n5zarr.open_group opens the group")


def open_group(  # noqa: PLR0913 - those of open_node for groups
    location: Location,
    mode: Literal["r", "r+", "a", "w", "w-"] = "r",
    *,
    path: str = "",
    axis_order: AxisOrder = "C",
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    durability: Durability | None = None,
) -> Group:
    """Open an N5 group as a zarr group, whose arrays have the fast path.

    Parameters
    ----------
    location, mode, path, axis_order, storage_options, backend, durability : optional
        As for :func:`n5zarr.open`.

    Returns
    -------
    zarr.Group
        The group.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5UnrepresentableError
        The node is an array (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> sorted(n5zarr.open_group(n5zarr.sample_path(), path="em"))
    ['s0', 's1', 's2']
    """
    found = open_node(
        location,
        mode,
        path=path,
        axis_order=axis_order,
        storage_options=storage_options,
        backend=backend,
        durability=durability,
    )
    if isinstance(found, zarr.Group):
        return found
    raise option_error(
        "expected a group, got an array; n5zarr.open_array opens it", where=str(found.store_path)
    )


def _open(store: N5Store, node: str, mode: Literal["r", "r+", "a", "w", "w-"]) -> AnyArray | Group:
    """Open a node like zarr; avoid zarr's event loop for an existing node of a local container."""
    found = None
    if mode == "r":
        found = node_at(store if store.read_only else store.with_read_only(read_only=True), node)
    elif mode in ("r+", "a") and not store.read_only:
        found = node_at(store, node)
    if found is not None:
        return found
    try:
        if mode == "w-":  # `zarr.open` would create an array
            return zarr.open_group(store, path=node, mode=mode, zarr_format=store.zarr_format)
        return zarr.open(store, path=node, mode=mode, zarr_format=store.zarr_format)
    except (ArrayNotFoundError, GroupNotFoundError):
        raise not_found(store, node) from None


def _no_array(store: N5Store, node: str, way: str) -> N5UnrepresentableError:
    """Make the error of a group in place of an array; name the arrays in it."""
    check_group(store, node)
    below = datasets_below(store, node) or "none"
    return option_error(
        f"expected an array, got a group; arrays in it: {below}; {way}",
        where=f"{store}: {node or '/'}",
    )


def _delete(store: N5Store, node: str, mode: str) -> None:
    if mode not in ("a", "w", "w-"):
        raise option_error(
            f"delete_existing: expected a mode that creates, 'a', 'w' or 'w-', got {mode!r}"
        )
    sync(store.delete_dir(node))


def _check_wanted(
    store: N5Store,
    node: str,
    wanted: Mapping[str, Any],
    compression: Mapping[str, JSON] | None,
) -> None:
    """Raise if a node is not an array that meets the conditions of the caller."""
    array = _open(store, node, "r")
    where = f"{store}: {node or '/'}"
    if wanted and not isinstance(array, zarr.Array):
        raise _no_array(store, node, "dtype, ndim, shape and chunks are conditions of arrays")
    for name, value in wanted.items():
        actual = getattr(array, name)
        if name == "dtype":
            expected: Any = np.dtype(value)
        else:
            expected = value if name == "ndim" else tuple(map(index, value))
        if actual != expected:
            raise option_error(f"{name}: expected {expected}, got {actual}", where=where)
    if compression is not None:
        _check_compression(store, node, compression)


def _check_compression(store: N5Store, node: str, wanted: Mapping[str, JSON]) -> None:
    view = store.node(node)
    parse_compression(wanted)
    stored: dict[str, JSON] = {}
    if isinstance(view, DatasetView):
        stored = compression_to_json(view.dataset.compression)
    if any(stored.get(name) != value for name, value in wanted.items()):
        raise option_error(
            f"compression: expected {dict(wanted)}, got {stored or 'a group'}",
            where=f"{store}: {node or '/'}",
        )
