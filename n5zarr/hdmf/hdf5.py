"""What hdmf would lose, or fail on, when it reads HDF5.

It reads what NWB needs. Of the rest some is left out without a word, such as the second of two
links to the same object; a copy has to be refused then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

__all__ = ["unreadable"]

_RESERVED = ("_DTYPE", "_LINKS", "_REFERENCE_FIELDS", "zarr_dtype", "zarr_link")


def unreadable(file: h5py.File) -> Iterator[str]:
    """Find what hdmf does not read as it is.

    Parameters
    ----------
    file : h5py.File
        Open for reading.

    Yields
    ------
    str
        A path, and what is there.
    """
    yield from _group(file, {_address(file): "/"})


def _group(group: h5py.Group, seen: dict[int, str]) -> Iterator[str]:
    yield from _attributes(group)
    targets: dict[str, str] = {}
    for name in group:
        path = f"{group.name.rstrip('/')}/{name}"
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.HardLink):
            yield from _object(path, group[name], seen)
            continue
        node = group.get(name)
        last = link.path.rpartition("/")[2]
        if node is None:
            yield f"{path}: link to {link.path}, where there is nothing"
        elif not link.path.startswith("/"):
            yield f"{path}: link to {link.path}, which is no absolute path"
        elif not isinstance(node.file.get(link.path, getlink=True), h5py.HardLink):
            yield f"{path}: link to {link.path}, which is a link itself"
        elif last in targets:
            yield f"{path}: link to {link.path}, called like the target of {targets[last]}"
        targets[last] = path


def _object(path: str, node: h5py.Group | h5py.Dataset, seen: dict[int, str]) -> Iterator[str]:
    address = _address(node)
    if address in seen:
        yield f"{path}: a second name of {seen[address]}"
        return
    seen[address] = path
    if isinstance(node, h5py.Group):
        yield from _group(node, seen)
    elif isinstance(node, h5py.Dataset):
        yield from _attributes(node)
        if found := _dataset(node):
            yield f"{path}: {found}"


def _dataset(node: h5py.Dataset) -> str:
    if node.shape is None:
        return "without values"
    if found := _type(node.dtype):
        return found
    if node.shape == () and _has_references(node.dtype):
        return "a reference alone"
    if any(map(_has_references, _nested(node.dtype))):
        return "references in compounds in compounds"
    if len(node.shape) > 1 and _is_tabular(node.dtype):
        return "compounds or references with more than one axis"
    return ""


def _attributes(node: h5py.Group | h5py.Dataset) -> Iterator[str]:
    for name in node.attrs:
        attribute = node.attrs.get_id(name)
        found = "a name that hdmf-zarr reserves" if name in _RESERVED else _type(attribute.dtype)
        if not found and attribute.shape and h5py.check_ref_dtype(attribute.dtype) is not None:
            found = "a list of references"
        if not found and isinstance(node.attrs[name], h5py.Empty):
            found = "without a value"
        if found:
            yield f"{node.name}@{name}: {found}"


def _type(dtype: np.dtype[Any]) -> str:
    if dtype.names is not None:
        return next((found for n in dtype.names if (found := _type(dtype[n]))), "")
    if dtype.subdtype is not None:
        return "compounds with arrays in them"
    if h5py.check_ref_dtype(dtype) is h5py.RegionReference:
        return "references to regions"
    if h5py.check_string_dtype(dtype) is None and h5py.check_vlen_dtype(dtype) is not None:
        return "arrays of different lengths"
    return "opaque bytes" if dtype.kind == "V" else ""


def _has_references(dtype: np.dtype[Any]) -> bool:
    inner = [dtype[name] for name in dtype.names or ()]
    return h5py.check_ref_dtype(dtype) is not None or any(map(_has_references, inner))


def _nested(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    return [dtype[name] for name in dtype.names or () if dtype[name].names is not None]


def _is_tabular(dtype: np.dtype[Any]) -> bool:
    return dtype.names is not None or h5py.check_ref_dtype(dtype) is not None


def _address(node: h5py.Group | h5py.Dataset) -> int:
    return int(h5py.h5o.get_info(node.id).addr)
