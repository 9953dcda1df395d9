"""List the content of an HDF5 file that hdmf would lose, or fail to read.

hdmf reads what NWB needs. Some of the rest it drops without a warning, such as the second of two
links to the same object. Such a file must not be copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import h5py
import numpy as np

_RESERVED = (
    "_ARRAY_DIMENSIONS",
    "_DTYPE",
    "_LINKS",
    "_REFERENCE_FIELDS",
    "zarr_dtype",
    "zarr_link",
)


def unreadable(file: h5py.File) -> Iterator[str]:
    """List the content that hdmf does not read unchanged.

    Parameters
    ----------
    file : h5py.File
        Open for reading. Targets of its links in other files are checked as well.

    Yields
    ------
    str
        A path, and the problem there.
    """
    yield from _Visitor(file).everything()
    yield from _specifications(file)


class _Visitor:
    """Visit the objects of a file, and those in other files that links lead to."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        # by file and address; empty if only links have led to the object so far
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
                yield f"{where}: link to {link.path}, which does not exist"
            elif not link.path.startswith("/"):
                yield f"{where}: link to {link.path}, which is no absolute path"
            elif not isinstance(node.file.get(link.path, getlink=True), h5py.HardLink):
                yield f"{where}: link to {link.path}, which is a link itself"
            elif last in targets:
                yield f"{where}: link to {link.path}, called like the target of {targets[last]}"
            else:
                yield from self._linked(node.file[link.path])
            targets[last] = path

    def _named(self, path: str, node: h5py.HLObject) -> Iterator[str]:
        """Visit an object that has a name here; report it if it has another name."""
        first = self._names.get(address := _address(node))
        if first:
            yield f"{self._where(node, path)}: a second name of {first}"
            return
        self._names[address] = path
        if first is None:
            yield from self._object(path, node)

    def _linked(self, node: h5py.HLObject) -> Iterator[str]:
        """Visit the target of a link if it is in another file; others are visited by name."""
        address = _address(node)
        if address not in self._names and node.file != self._file:
            self._names[address] = ""
            yield from self._object(node.name, node)

    def _object(self, path: str, node: h5py.HLObject) -> Iterator[str]:
        if isinstance(node, h5py.Group):
            yield from self._group(node)
        elif isinstance(node, h5py.Dataset):
            yield from self._attributes(node)
            if problem := _dataset_problem(node):
                yield f"{self._where(node, path)}: {problem}"
        else:
            yield f"{self._where(node, path)}: neither a group nor a dataset"

    def _attributes(self, node: h5py.Group | h5py.Dataset) -> Iterator[str]:
        for name in node.attrs:
            if problem := _attribute_problem(node, name):
                yield f"{self._where(node, f'{node.name}@{name}')}: {problem}"
            elif isinstance(value := node.attrs[name], h5py.Reference):
                yield from self._linked(node.file[value])

    def _where(self, node: h5py.Group | h5py.Dataset, path: str) -> str:
        return path if node.file == self._file else f"{path} of {node.file.filename}"


def _dataset_problem(node: h5py.Dataset) -> str:
    """Return the parts of a dataset that hdmf does not read; empty if it reads all."""
    if node.shape is None:
        return "without values"
    dtype = node.dtype
    rules = {
        "a single reference": node.shape == () and _has_references(dtype),
        "references in compounds in compounds": any(
            _has_references(inner) for field in _fields(dtype) for inner in _fields(field)
        ),
        "compounds or references with more than one axis": len(node.shape) > 1
        and (dtype.names is not None or h5py.check_ref_dtype(dtype) is not None),
    }
    return _type_problem(dtype) or _first_problem(rules)


def _first_problem(rules: Mapping[str, bool]) -> str:
    """Return the first problem that is there; empty if none is."""
    return next((problem for problem, is_there in rules.items() if is_there), "")


def _attribute_problem(node: h5py.Group | h5py.Dataset, name: str) -> str:
    if name in _RESERVED:
        return "a name that hdmf-zarr reserves"
    dtype = node.attrs.get_id(name).dtype
    problem = "a compound" if dtype.names is not None else _type_problem(dtype)
    return problem or _value_problem(node.attrs[name])


def _value_problem(value: object) -> str:
    """Return the parts of an attribute's value that JSON cannot hold."""
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
    return _first_problem(rules)


def _is_utf8(values: np.ndarray) -> bool:
    with suppress(UnicodeError):
        for item in values.flat:
            # h5py makes surrogates, which cannot be encoded, of undecodable bytes
            (item if isinstance(item, bytes) else str(item).encode()).decode()
        return True
    return False


def _type_problem(dtype: np.dtype) -> str:
    if dtype.names is not None:
        return next((p for field in _fields(dtype) if (p := _type_problem(field))), "")
    is_text, is_reference = h5py.check_string_dtype(dtype), h5py.check_ref_dtype(dtype)
    rules = {
        "compounds with arrays in them": dtype.subdtype is not None,
        "references to regions": is_reference is h5py.RegionReference,
        "arrays of different lengths": not is_text and h5py.check_vlen_dtype(dtype) is not None,
        "an enumeration": h5py.check_enum_dtype(dtype) is not None,
        "numbers of more than 64 bits": dtype.itemsize > {"f": 8, "c": 16}.get(dtype.kind, 2**30),
        "opaque bytes": dtype.kind == "V",
    }
    return _first_problem(rules)


def _specifications(file: h5py.File) -> Iterator[str]:
    """Check the specifications that are stored in a file: hdmf copies text in groups only."""
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
        node = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
        if isinstance(node, h5py.Group):
            yield from _texts(node)
        elif (
            isinstance(node, h5py.Dataset)
            and node.shape == ()
            and h5py.check_string_dtype(node.dtype) is not None
        ):
            yield from (f"{path}@{key}: an attribute of specifications" for key in node.attrs)
        else:
            yield f"{path}: among specifications, expected a text or a group"


def _has_references(dtype: np.dtype) -> bool:
    is_reference = h5py.check_ref_dtype(dtype) is not None
    return is_reference or any(map(_has_references, _fields(dtype)))


def _fields(dtype: np.dtype) -> list[np.dtype]:
    """Return the data types of the fields of a compound."""
    return [dtype[name] for name in dtype.names or ()]


def _address(node: h5py.Group | h5py.Dataset) -> tuple[int, int]:
    info = h5py.h5o.get_info(node.id)
    return info.fileno, info.addr
