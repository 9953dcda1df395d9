"""Finding the root of a container, and opening what lies in it."""

from __future__ import annotations

import os
import re
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zarr
from zarr.abc.store import Store
from zarr.buffer import cpu

from n5zarr._zarr_compat import sync
from n5zarr.codecs.block import Block, parse_block
from n5zarr.errors import N5AttributesError, N5Error, N5UnrepresentableError
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    DatasetAttributes,
    GroupAttributes,
    parse_attributes,
)
from n5zarr.format.grid import block_path
from n5zarr.format.lenient_json import parse_json
from n5zarr.format.path import join, local_path, normalize_path
from n5zarr.format.version import VERSION_KEY
from n5zarr.store import N5Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zarr import Group
    from zarr.types import AnyArray

    from n5zarr.format.order import AxisOrder

__all__ = ["open_container", "open_node", "read_block", "sample_path", "split_root"]

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

    The root is the first path element that ends in ``.n5``; else, on local file systems, the
    topmost of the unbroken chain of ancestors whose ``attributes.json`` has ``n5``; else the
    location itself.

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
    if "://" in text and not text.startswith("file://"):
        found = _URL_ROOT.fullmatch(text)
        return (found.group(1), (found.group(2) or "").strip("/")) if found else (text, "")
    node = Path(local_path(text)).expanduser().absolute()
    if ".." in node.parts:
        node = node.resolve()
    ancestors = [*reversed(node.parents), node]
    root = next((a for a in ancestors if a.suffix == ".n5"), None) or _versioned_root(node)
    return str(root), "" if node == root else node.relative_to(root).as_posix()


def _versioned_root(node: Path) -> Path:
    root = node
    for ancestor in (node, *node.parents):
        if not _has_version(ancestor):
            break
        root = ancestor
    return root


def _has_version(directory: Path) -> bool:
    try:
        document = parse_json((directory / ATTRIBUTES_JSON).read_bytes())
    except (OSError, N5AttributesError):
        return False
    return isinstance(document, dict) and VERSION_KEY in document


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
    opened = N5Store(root, codecs="n5", axis_order=axis_order, storage_options=storage_options)
    return opened, join(normalize_path(inner), normalize_path(path))


def open_node(
    store: str | os.PathLike[str] | Store,
    mode: str = "r",
    *,
    path: str = "",
    axis_order: AxisOrder = "C",
    storage_options: dict[str, Any] | None = None,
) -> AnyArray | Group:
    """Open an N5 group or dataset as a zarr group or array, by the fast way.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or anywhere in one: ``"sample.n5/em/s0"`` opens the dataset ``em/s0``. An
        :class:`N5Store` is used as it is.
    mode : str, optional
        ``"r"``; this version of n5zarr only reads.
    path : str, optional
        Node below ``store``.
    axis_order : {"C", "F"}, optional
        ``"C"``: ``dimensions [x, y, z]`` are shown as shape ``(z, y, x)``. ``"F"``: as ``(x, y,
        z)``.
    storage_options : dict, optional
        For fsspec, with a URL.

    Returns
    -------
    zarr.Array or zarr.Group
        With n5zarr's own codec: errors name container, path and block.

    Raises
    ------
    FileNotFoundError
        There is no such container or node.
    N5UnsupportedError
        ``mode`` is not ``"r"`` (``kind="read-only"``), or the node is valid N5 but no array.
    N5Error
        The node is broken.

    Examples
    --------
    >>> import n5zarr
    >>> array = n5zarr.open(n5zarr.sample_path(), path="em/s1")
    >>> array.shape, array.metadata.dimension_names
    ((20, 48, 64), ('z', 'y', 'x'))
    """
    opened, node = open_container(
        store, path, axis_order=axis_order, storage_options=storage_options
    )
    return zarr.open(opened, path=node, mode="r", zarr_format=opened.zarr_format)


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
    if len(position) != dataset.ndim or min(position) < 0:
        message = f"grid position: expected {dataset.ndim} integers >= 0, got {position}"
        raise N5UnrepresentableError(message, kind="option", where=where)
    data = _read(opened, join(node, block_path(position)))
    if data is None:
        return None
    try:
        return parse_block(data, dataset.ndim, dataset.data_type, dataset.compression)
    except N5Error as err:
        raise err.located(f"{where}: block {block_path(position)}") from err.__cause__


def _read(opened: N5Store, key: str) -> bytes | None:
    """Read a key of N5."""
    value = sync(opened.store.get(key, cpu.buffer_prototype))
    return None if value is None else value.to_bytes()


def _read_attributes(opened: N5Store, node: str, where: str) -> DatasetAttributes | GroupAttributes:
    data = _read(opened, join(node, ATTRIBUTES_JSON))
    try:
        return parse_attributes(None if data is None else parse_json(data))
    except N5Error as err:
        raise err.located(f"{where}: {ATTRIBUTES_JSON}") from err.__cause__
