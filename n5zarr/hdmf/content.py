"""What is in an HDMF file, in the same terms whichever library reads it.

Groups, links and the place of datasets are those of hdmf's builders. Their values differ between
backends: text is bytes or str, a reference is an object of h5py or a path. Here text is ``str`` and
a reference is a :class:`Reference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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

from n5zarr.hdmf.slabs import TEXT_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hdmf.backends.io import HDMFIO

__all__ = [
    "DIMENSION_NAMES",
    "Content",
    "DataType",
    "Reference",
    "children",
    "read_specifications",
    "shape_of",
    "target_of",
    "type_of",
    "write_specifications",
]

DIMENSION_NAMES = "_ARRAY_DIMENSIONS"
"""An attribute that hdmf-zarr adds; in HDF5 only the specification names dimensions."""

_SPECIFICATIONS = ".specloc"  # names their group
_PLACE = "specifications"  # the only one that hdmf-zarr hides
_NAMES = {
    **dict.fromkeys(
        ("ascii", "bytes", "isodatetime", "str", "str_", "text", "utf", "utf8", "utf-8"), "text"
    ),
    **dict.fromkeys(("object", "ref", "reference"), "reference"),
}

type DataType = str | list[tuple[str, DataType]]
"""``"text"``, ``"reference"``, what numpy calls a number, or the fields of a compound."""


@dataclass(frozen=True)
class Reference:
    """The path of an object, and its file if that is another one."""

    path: str
    file: str = ""

    def __str__(self) -> str:
        return f"{self.path} of {self.file}" if self.file else self.path


class Content:
    """Reads the values of one file.

    Parameters
    ----------
    io : hdmf.backends.io.HDMFIO
        Open for reading.
    """

    def __init__(self, io: HDMFIO) -> None:
        self.source = io.source
        self.root: GroupBuilder = io.read_builder()

    def is_inside(self, builder: Builder) -> bool:
        """Whether a builder is of this file and not of one that it links to."""
        return builder.source in (None, self.source)

    def reference(self, builder: Builder) -> Reference:
        """Give the place of the object that a builder, or a link, leads to."""
        builder = target_of(builder)
        if builder is self.root:
            return Reference("/")
        return Reference(_path(builder), "" if self.is_inside(builder) else builder.source)

    def datasets(self) -> Iterator[tuple[str, DatasetBuilder]]:
        """Give every dataset with its path here, also those that links into other files lead to."""
        groups, seen = [("", self.root)], {id(self.root)}
        while groups:
            path, group = groups.pop()
            for name, child in children(group).items():
                found = target_of(child)
                is_new = child is found or not self.is_inside(found)
                if isinstance(found, DatasetBuilder) and is_new:
                    yield f"{path}/{name}", found
                elif isinstance(found, GroupBuilder) and is_new and id(found) not in seen:
                    seen.add(id(found))
                    groups.append((f"{path}/{name}", found))

    def link(self, parent: GroupBuilder, name: str, builder: Builder) -> Reference | None:
        """Give where a link in a group leads to; a second name of an object is one, too."""
        target = self.reference(builder)
        own_path = f"{self.reference(parent).path.rstrip('/')}/{name}"
        return target if isinstance(builder, LinkBuilder) or target.path != own_path else None

    def attribute(self, value: Any) -> Any:
        """Give an attribute in Python's types; arrays and lists as tuples."""
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
        self, builder: DatasetBuilder, part: slice | None = None
    ) -> dict[tuple[str, ...], Any]:
        """Give the values of a dataset.

        Parameters
        ----------
        builder : hdmf.build.DatasetBuilder
            Anything but an array of numbers, which is better read as it is.
        part : slice, optional
            Of the rows; a scalar has none.

        Returns
        -------
        dict
            By the names of the fields of a compound, else one column named ``()``. Numbers are
            arrays; text and references are nested lists.
        """
        data = builder.data
        if isinstance(data, HDMFDataset):
            data = data.dataset  # what is stored; hdmf would open what is referred to, one by one
        data_type, file = type_of(builder), "" if self.is_inside(builder) else builder.source
        convert = partial(_reference, data, file)
        if part is not None:
            data = data[part]
        return dict(_columns((), data, data_type, convert))


def _columns(
    names: tuple[str, ...], data: Any, data_type: DataType, convert: Any
) -> Iterable[tuple[tuple[str, ...], Any]]:
    if isinstance(data_type, list):
        for field, inner in data_type:
            yield from _columns((*names, field), data[field], inner, convert)
    elif data_type == "text":
        yield names, _nested(data, _text)
    elif data_type == "reference":
        yield names, _nested(data, convert)
    else:
        yield names, np.asarray(data)


def _reference(dataset: Any, file: str, value: Any) -> Reference:
    """Read a reference as it is stored: an object of h5py, or a path."""
    if isinstance(value, ReferenceBuilder | Builder):
        return Reference(_path(target_of(value)), file)
    if isinstance(value, h5py.Reference):
        return Reference(dataset.file[value].name if value else "nothing", file)
    path = _text(value)
    return Reference(path if path.startswith("/") else f"/{path}", file)


def _nested(data: Any, convert: Any) -> Any:
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if isinstance(data, list | tuple):
        return [_nested(item, convert) for item in data]
    return convert(data)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return str(value)
    message = f"expected text, found {value!r}"
    raise TypeError(message)


def target_of(value: Builder | ReferenceBuilder) -> Builder:
    """Give what a link or reference leads to, and anything else as it is."""
    return value.builder if isinstance(value, LinkBuilder | ReferenceBuilder) else value


def _path(builder: Builder) -> str:
    return f"{(builder.location or '/').rstrip('/')}/{builder.name}"


def children(group: GroupBuilder) -> dict[str, Builder]:
    """Give what is in a group: groups, datasets and links by name."""
    found = {**group.groups, **group.datasets, **group.links}
    return {name: child for name, child in found.items() if child is not None}


def shape_of(data: Any) -> tuple[int, ...]:
    """Give the shape of a dataset, ``()`` for a scalar."""
    if hasattr(data, "shape"):
        return tuple(data.shape)
    return (len(data),) if isinstance(data, list | tuple | HDMFDataset) else ()


def type_of(builder: DatasetBuilder) -> DataType:
    """Name the data type of a dataset; the order of bytes is left out, which HDMF does not keep."""
    if isinstance(builder.data, ReferenceBuilder | Builder):
        return "reference"
    data = builder.data.dataset if isinstance(builder.data, HDMFDataset) else builder.data
    given: object = builder.dtype
    if isinstance(data, h5py.Dataset):
        given = data.dtype  # hdmf leaves out fields that it does not know
    elif isinstance(data, np.ndarray | np.generic) and not isinstance(given, list):
        given = data.dtype
    return _type(type(data) if given is None else given)


def _type(given: Any) -> DataType:
    if isinstance(given, list):
        return [(field["name"], _type(field["dtype"])) for field in given]
    name = given.__name__ if isinstance(given, type) else given
    if isinstance(name, str) and name in _NAMES:
        return _NAMES[name]
    dtype = np.dtype(name)
    if dtype.names is not None:
        return [(name, _type(dtype[name])) for name in dtype.names]
    if h5py.check_ref_dtype(dtype) is not None:
        return "reference"
    return "text" if dtype.kind in TEXT_KINDS else dtype.newbyteorder("=").str


# ---------------------------------------------------------------------- specifications


def read_specifications(io: HDMFIO) -> dict[str, str] | None:
    """Read the specifications that come with a file.

    Parameters
    ----------
    io : hdmf.backends.io.HDMFIO
        Of HDF5, or of hdmf-zarr.

    Returns
    -------
    dict or None
        The JSON text of each by its path in their group.
    """
    file = io._file  # noqa: SLF001 - hdmf has no other name for what is open
    place = file.attrs.get(_SPECIFICATIONS)
    if place is None:
        return None
    group = file[place["_REFERENCE"]["path"] if isinstance(place, dict) else place]
    texts: dict[str, str] = {}
    if isinstance(group, h5py.Group):
        group.visititems(
            lambda name, node: (
                texts.update({name: _text(node[()])}) if isinstance(node, h5py.Dataset) else None
            )
        )
    else:
        for name, node in group.members(max_depth=None):
            if hasattr(node, "shape"):
                texts[name] = _text(node[()])
    return texts


def write_specifications(io: HDMFIO, texts: dict[str, str]) -> None:
    """Write what :func:`read_specifications` gave into a file that is open for writing."""
    file = io._file  # noqa: SLF001 - as above
    group = file.require_group(_PLACE)
    for name, text in texts.items():
        parent, _, last = name.rpartition("/")
        inner = group.require_group(parent) if parent else group
        if isinstance(inner, h5py.Group):
            inner.create_dataset(last, data=text, dtype=h5py.string_dtype())
        else:
            inner.create_array(last, shape=(), dtype=np.dtypes.StringDType())[()] = text
    file.attrs[_SPECIFICATIONS] = group.ref if isinstance(group, h5py.Group) else _PLACE
