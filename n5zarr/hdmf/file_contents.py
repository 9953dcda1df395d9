"""Read the contents of an HDMF file in the same form, whichever backend opened it.

Groups, links and paths are those of hdmf's builders. Values differ between backends: text is bytes
or str, a reference is an object of h5py or a path. Here values are arrays of numpy, in which text
and the paths of references are ``str``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from hdmf.build import (
    Builder,
    DatasetBuilder,
    GroupBuilder,
    LinkBuilder,
    ReferenceBuilder,
)
from hdmf.query import HDMFDataset

from n5zarr.arrays.boxes import BoxSlices, box_shape, boxes

if TYPE_CHECKING:
    from hdmf.backends.io import HDMFIO


DIMENSION_NAMES = "_ARRAY_DIMENSIONS"
"""Attribute that hdmf-zarr adds. In HDF5 only the specification has names of dimensions."""

_SPECLOC = ".specloc"  # attribute with the path of the specifications
_SPECIFICATIONS = "specifications"  # the only group that hdmf-zarr hides
_SLAB = 16 << 20  # bytes
_TEXT = 256  # bytes that a text takes, by a guess
_NAMES = {
    **dict.fromkeys(
        ("ascii", "bytes", "isodatetime", "str", "str_", "text", "utf", "utf8", "utf-8"), "text"
    ),
    **dict.fromkeys(("object", "ref", "reference"), "reference"),
}
_CONVERTED = ("text", "reference")  # each library has its own objects for these

type ValueType = str | list[tuple[str, ValueType]]
"""``"text"``, ``"reference"``, numpy's name of a number type, or the fields of a compound."""


@dataclass(frozen=True)
class Reference:
    """Hold the path of an object, and its file if it is in another one."""

    path: str
    file: str = ""

    def __str__(self) -> str:
        return f"{self.path} of {self.file}" if self.file else self.path


class FileContents:
    """Read the groups, links, attributes and values of one file.

    Parameters
    ----------
    io : hdmf.backends.io.HDMFIO
        Open for reading.
    """

    def __init__(self, io: HDMFIO) -> None:
        self.source = io.source
        self.root: GroupBuilder = io.read_builder()

    def is_inside(self, builder: Builder) -> bool:
        """Return whether a builder is of this file, not of another one that it links to."""
        return builder.source in (None, self.source)

    def reference(self, builder: Builder) -> Reference:
        """Return the path of the object that a builder, or a link, leads to."""
        builder = target_of(builder)
        if builder is self.root:
            return Reference("/")
        return Reference(_path(builder), "" if self.is_inside(builder) else builder.source)

    def datasets(self) -> Iterator[tuple[str, DatasetBuilder]]:
        """Yield every dataset with its path, also those in other files that links lead to."""
        groups, seen = [("", self.root)], {id(self.root)}
        while groups:
            path, group = groups.pop()
            for name, child in children(group).items():
                target = target_of(child)
                is_new = child is target or not self.is_inside(target)
                if isinstance(target, DatasetBuilder) and is_new:
                    yield f"{path}/{name}", target
                elif isinstance(target, GroupBuilder) and is_new and id(target) not in seen:
                    seen.add(id(target))
                    groups.append((f"{path}/{name}", target))

    def link(self, parent: GroupBuilder, name: str, builder: Builder) -> Reference | None:
        """Return where a link in a group leads to; a second name of an object is a link, too."""
        target = self.reference(builder)
        own_path = f"{self.reference(parent).path.rstrip('/')}/{name}"
        return target if isinstance(builder, LinkBuilder) or target.path != own_path else None

    def attribute(self, value: object) -> object:
        """Return an attribute in Python's types; arrays and lists as tuples."""
        match value:
            case Builder() | ReferenceBuilder():
                return self.reference(value)
            case np.ndarray() | np.generic():
                return self.attribute(value.tolist())
            case list() | tuple():
                return tuple(self.attribute(item) for item in value)
            case bytes():
                return _text(value)
            case _:
                return value


def columns(
    builder: DatasetBuilder, box: BoxSlices | EllipsisType = ...
) -> dict[tuple[str, ...], np.ndarray]:
    """Read the values of a dataset.

    Parameters
    ----------
    builder : hdmf.build.DatasetBuilder
        Any dataset.
    box : tuple of slice, optional
        Which values; all by default.

    Returns
    -------
    dict
        Arrays, by the names of the fields of a compound; otherwise one array named ``()``. Text and
        the paths of references are ``str``.
    """
    data: Any = stored(builder)
    to_path = partial(_path_in, data)
    return dict(_columns((), data[box] if shape_of(data) else data, type_of(builder), to_path))


def _columns(
    names: tuple[str, ...], data: Any, data_type: ValueType, to_path: Callable[[object], str]
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    if isinstance(data_type, list):
        for field, inner in data_type:
            yield from _columns((*names, field), data[field], inner, to_path)
    elif data_type in _CONVERTED:
        convert = np.frompyfunc(_text if data_type == "text" else to_path, 1, 1)
        yield names, np.asarray(convert(np.asarray(data, dtype=object)), dtype=object)
    else:
        yield names, np.asarray(data)


def _path_in(dataset: h5py.Dataset, reference: object) -> str:
    """Return the path of a stored reference: a builder, an object of h5py, or a path."""
    if isinstance(reference, ReferenceBuilder | Builder):
        return _path(target_of(reference))
    if isinstance(reference, h5py.Reference):
        return str(dataset.file[reference].name) if reference else "nothing"
    return f"/{_text(reference).removeprefix('/')}"


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"expected text, got {value!r}")


def target_of(value: Builder | ReferenceBuilder) -> Builder:
    """Return the target of a link or reference; return anything else unchanged."""
    return value.builder if isinstance(value, LinkBuilder | ReferenceBuilder) else value


def _path(builder: Builder) -> str:
    return f"{(builder.location or '/').rstrip('/')}/{builder.name}"


def children(group: GroupBuilder) -> dict[str, Builder]:
    """Return the groups, datasets and links in a group by name."""
    members = {**group.groups, **group.datasets, **group.links}
    return {name: child for name, child in members.items() if child is not None}


def stored(builder: DatasetBuilder) -> object:
    """Return the data of a dataset: an array as its library opened it, or a scalar."""
    data = builder.data
    return data.dataset if isinstance(data, HDMFDataset) else data  # it would open each reference


def shape_of(data: object) -> tuple[int, ...]:
    """Return the shape of the data of a dataset, ``()`` for a scalar."""
    return tuple(getattr(data, "shape", ()))


def type_of(builder: DatasetBuilder) -> ValueType:
    """Return the data type of a dataset, without byte order, which HDMF does not keep."""
    data = stored(builder)
    if isinstance(data, ReferenceBuilder | Builder):
        return "reference"
    given: object = builder.dtype
    if isinstance(data, h5py.Dataset):
        given = data.dtype  # hdmf omits fields that it does not know
    elif isinstance(data, np.ndarray | np.generic) and not isinstance(given, list):
        given = data.dtype
    return _type(type(data) if given is None else given)


def _type(given: object) -> ValueType:
    if isinstance(given, list):
        return [(field["name"], _type(field["dtype"])) for field in given]
    name = given.__name__ if isinstance(given, type) else given
    if isinstance(name, str) and name in _NAMES:
        return _NAMES[name]
    dtype: np.dtype = np.dtype(name)  # type: ignore[call-overload] # whatever hdmf has
    if dtype.names is not None:
        return [(name, _type(dtype[name])) for name in dtype.names]
    if h5py.check_ref_dtype(dtype) is not None:
        return "reference"
    return "text" if dtype.kind in "OSTU" else dtype.newbyteorder("=").str


def is_array(builder: DatasetBuilder) -> bool:
    """Return whether a dataset holds numbers in an array with at least one axis."""
    data_type = type_of(builder)
    is_number = isinstance(data_type, str) and data_type not in _CONVERTED
    return is_number and bool(shape_of(stored(builder)))


def n_bytes(data: Any) -> int:
    """Return the size of an array of numbers in memory."""
    return prod(map(int, data.shape)) * int(data.dtype.itemsize)


def slab_shape(data: Any, chunks: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Choose how much of an array to read at once.

    Parameters
    ----------
    data : array
        Of numpy, h5py or zarr; a scalar has no axes.
    chunks : tuple of int, optional
        In elements, in C order. By default the array's own, if it has chunks.

    Returns
    -------
    tuple of int
        Along each axis a multiple of the chunk, or the extent; about 16 MiB, but at least a chunk.
    """
    if not (shape := shape_of(data)):
        return ()
    chunks = chunks or getattr(data, "chunks", None) or (1,) * len(shape)
    item_size = _TEXT if data.dtype.kind in "OT" else max(1, data.dtype.itemsize)
    return box_shape(shape, chunks, shape, _SLAB // item_size)


def slabs(data: object) -> Iterator[BoxSlices]:
    """Cut an array into boxes of :func:`slab_shape`, in C order."""
    return boxes(shape_of(data), slab_shape(data))


# ---------------------------------------------------------------------- specifications


def _open_file(io: HDMFIO) -> h5py.File:
    """Return the open file of h5py or group of zarr; hdmf has no public name for it."""
    return io._file  # noqa: SLF001


def read_specifications(io: HDMFIO) -> dict[str, str] | None:
    """Read the specifications that are stored in a file.

    Parameters
    ----------
    io : hdmf.backends.io.HDMFIO
        Of HDF5, or of hdmf-zarr.

    Returns
    -------
    dict or None
        The JSON text of each, by its path in the group of specifications.
    """
    file = _open_file(io)
    place = file.attrs.get(_SPECLOC)
    if place is None:
        return None
    group = file[place["_REFERENCE"]["path"] if isinstance(place, dict) else place]
    texts: dict[str, str] = {}

    def add(name: str, node: Any) -> None:
        if hasattr(node, "shape"):
            texts[name] = _text(node[()])

    if isinstance(group, h5py.Group):
        group.visititems(add)
    else:
        for name, node in group.members(max_depth=None):
            add(name, node)
    return texts


def write_specifications(io: HDMFIO, texts: dict[str, str]) -> None:
    """Write the result of :func:`read_specifications` into a file that is open for writing."""
    file = _open_file(io)
    group = file.require_group(_SPECIFICATIONS)
    for name, text in texts.items():
        parent, _, last = name.rpartition("/")
        inner = group.require_group(parent) if parent else group
        if isinstance(inner, h5py.Group):
            inner.create_dataset(last, data=text, dtype=h5py.string_dtype())
        else:
            inner.create_array(last, shape=(), dtype=np.dtypes.StringDType())[()] = text
    is_hdf5 = isinstance(group, h5py.Group)
    file.attrs[_SPECLOC] = group.ref if is_hdf5 else _SPECIFICATIONS
