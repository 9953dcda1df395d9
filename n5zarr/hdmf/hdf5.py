"""What hdmf would lose, or fail on, when it reads HDF5.

It reads what NWB needs. Of the rest some is left out without a word, such as the second of two
links to the same object; a copy has to be refused then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["unreadable"]

_RESERVED = (
    "_ARRAY_DIMENSIONS",
    "_DTYPE",
    "_LINKS",
    "_REFERENCE_FIELDS",
    "zarr_dtype",
    "zarr_link",
)


def unreadable(file: h5py.File) -> Iterator[str]:
    """Find what hdmf does not read as it is.

    Parameters
    ----------
    file : h5py.File
        Open for reading. What its links lead to in other files is looked at as well.

    Yields
    ------
    str
        A path, and what is there.
    """
    yield from _Walk(file).everything()
    yield from _specifications(file)


class _Walk:
    """Visits the objects of a file, and those of others that links lead to."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        # by file and address; empty where only links led to the object so far
        self._names: dict[tuple[int, int], str] = {}

    def everything(self) -> Iterator[str]:
        self._names[_address(self._file)] = "/"
        yield from self._group(self._file)

    def _group(self, group: h5py.Group) -> Iterator[str]:
        yield from self._attributes(group)
        targets: dict[str, str] = {}
        for name in group:
            path = f"{group.name.rstrip('/')}/{name}"
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.HardLink):
                yield from self._named(path, group[name])
                continue
            where = self._where(group, path)
            node = group.get(name)
            last = link.path.rpartition("/")[2]
            if node is None:
                yield f"{where}: link to {link.path}, where there is nothing"
            elif not link.path.startswith("/"):
                yield f"{where}: link to {link.path}, which is no absolute path"
            elif not isinstance(node.file.get(link.path, getlink=True), h5py.HardLink):
                yield f"{where}: link to {link.path}, which is a link itself"
            elif last in targets:
                yield f"{where}: link to {link.path}, called like the target of {targets[last]}"
            else:
                yield from self._linked(node.file[link.path])
            targets[last] = path

    def _named(self, path: str, node: Any) -> Iterator[str]:
        """Visit an object that has a name here; it may have no other one."""
        first = self._names.get(address := _address(node))
        if first:
            yield f"{self._where(node, path)}: a second name of {first}"
            return
        self._names[address] = path
        if first is None:
            yield from self._object(path, node)

    def _linked(self, node: Any) -> Iterator[str]:
        """Visit an object of another file; those of the file itself have names."""
        address = _address(node)
        if address not in self._names and node.file != self._file:
            self._names[address] = ""
            yield from self._object(node.name, node)

    def _object(self, path: str, node: Any) -> Iterator[str]:
        if isinstance(node, h5py.Group):
            yield from self._group(node)
        elif isinstance(node, h5py.Dataset):
            yield from self._attributes(node)
            if found := _dataset(node):
                yield f"{self._where(node, path)}: {found}"
        else:
            yield f"{self._where(node, path)}: neither a group nor a dataset"

    def _attributes(self, node: h5py.Group | h5py.Dataset) -> Iterator[str]:
        for name in node.attrs:
            if found := _attribute(node, name):
                yield f"{self._where(node, f'{node.name}@{name}')}: {found}"
            elif isinstance(value := node.attrs[name], h5py.Reference):
                yield from self._linked(node.file[value])

    def _where(self, node: h5py.Group | h5py.Dataset, path: str) -> str:
        return path if node.file == self._file else f"{path} of {node.file.filename}"


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


def _attribute(node: h5py.Group | h5py.Dataset, name: str) -> str:
    if name in _RESERVED:
        return "a name that hdmf-zarr reserves"
    dtype = node.attrs.get_id(name).dtype
    found = "a compound" if dtype.names is not None else _type(dtype)
    return found or _value(node.attrs[name])


def _value(value: Any) -> str:
    """Look at the value of an attribute, which becomes JSON."""
    if isinstance(value, h5py.Empty):
        return "without a value"
    if isinstance(value, h5py.Reference):
        return "" if value else "a reference to nothing"
    values = np.asarray(value)
    rules = {
        "complex numbers": values.dtype.kind == "c",
        "several axes without a value": values.size == 0 and values.ndim > 1,
        "a list of references": any(isinstance(item, h5py.Reference) for item in values.flat),
        "text that is not UTF-8": not _is_utf8(values),
    }
    return next((found for found, holds in rules.items() if holds), "")


def _is_utf8(values: np.ndarray[Any, Any]) -> bool:
    try:
        for item in values.flat:
            if isinstance(item, bytes):
                item.decode()
            elif isinstance(item, str):
                item.encode()  # fails for what h5py could not decode
    except UnicodeError:
        return False
    return True


def _type(dtype: np.dtype[Any]) -> str:
    if dtype.names is not None:
        return next((found for n in dtype.names if (found := _type(dtype[n]))), "")
    is_text, is_reference = h5py.check_string_dtype(dtype), h5py.check_ref_dtype(dtype)
    rules = {
        "compounds with arrays in them": dtype.subdtype is not None,
        "references to regions": is_reference is h5py.RegionReference,
        "arrays of different lengths": not is_text and h5py.check_vlen_dtype(dtype) is not None,
        "an enumeration": h5py.check_enum_dtype(dtype) is not None,
        "numbers of more than 64 bits": dtype.itemsize > {"f": 8, "c": 16}.get(dtype.kind, 2**30),
        "opaque bytes": dtype.kind == "V",
    }
    return next((found for found, holds in rules.items() if holds), "")


def _specifications(file: h5py.File) -> Iterator[str]:
    """Look at the specifications that come with a file: hdmf copies texts in groups only."""
    if ".specloc" not in file.attrs:
        return
    place = file.attrs[".specloc"]
    group = file[place] if isinstance(place, h5py.Reference) and place else None
    if isinstance(group, h5py.Group) and group.name == "/specifications":
        yield from _texts(group)
    else:
        yield "/@.specloc: expected a reference to the group /specifications"


def _texts(group: h5py.Group) -> Iterator[str]:
    yield from (f"{group.name}@{name}: an attribute of specifications" for name in group.attrs)
    for name in group:
        path = f"{group.name}/{name}"
        is_text = False
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            node = group[name]
            if isinstance(node, h5py.Group):
                yield from _texts(node)
                continue
            yield from (f"{path}@{key}: an attribute of specifications" for key in node.attrs)
            is_text = node.shape == () and h5py.check_string_dtype(node.dtype) is not None
        if not is_text:
            yield f"{path}: among specifications, expected a text or a group"


def _has_references(dtype: np.dtype[Any]) -> bool:
    inner = [dtype[name] for name in dtype.names or ()]
    return h5py.check_ref_dtype(dtype) is not None or any(map(_has_references, inner))


def _nested(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    return [dtype[name] for name in dtype.names or () if dtype[name].names is not None]


def _is_tabular(dtype: np.dtype[Any]) -> bool:
    return dtype.names is not None or h5py.check_ref_dtype(dtype) is not None


def _address(node: h5py.Group | h5py.Dataset) -> tuple[int, int]:
    info = h5py.h5o.get_info(node.id)
    return info.fileno, info.addr
