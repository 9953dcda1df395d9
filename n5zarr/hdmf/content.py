"""What is in an HDMF file, in the same terms whichever library reads it.

Groups, links and the place of datasets are those of hdmf's builders. Their values differ between
backends: text is bytes or str, a reference is an object of h5py or a path. Here text is ``str`` and
a reference is a :class:`Reference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from hdmf.build import Builder, GroupBuilder, LinkBuilder, ReferenceBuilder
from hdmf.query import HDMFDataset
from hdmf_zarr.zarr_utils import DatasetOfReferences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hdmf.backends.io import HDMFIO
    from hdmf.build import DatasetBuilder

__all__ = [
    "DIMENSION_NAMES",
    "Content",
    "DataType",
    "Reference",
    "children",
    "read_specifications",
    "shape_of",
    "type_of",
    "write_specifications",
]

DIMENSION_NAMES = "_ARRAY_DIMENSIONS"
"""An attribute that hdmf-zarr adds; in HDF5 only the specification names dimensions."""

_SPECIFICATIONS = ".specloc"
_TEXT = frozenset("OSTU")
_TEXT_NAMES = {"ascii", "bytes", "isodatetime", "str", "str_", "text", "utf", "utf8", "utf-8"}
_REFERENCE_NAMES = {"object", "ref", "reference"}

type DataType = str | list[tuple[str, DataType]]
"""``"text"``, ``"reference"``, what numpy calls a number, or the fields of a compound."""


@dataclass(frozen=True)
class Reference:
    """The path of an object, with the name of its file if that is another one."""

    path: str


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
        if isinstance(builder, LinkBuilder | ReferenceBuilder):
            builder = builder.builder
        if builder is self.root:
            return Reference("/")
        path = f"{(builder.location or '/').rstrip('/')}/{builder.name}"
        return Reference(path if self.is_inside(builder) else f"{builder.source}:{path}")

    def link(self, path: str, builder: Builder) -> Reference | None:
        """Give where the link at a path leads to; a second name of an object is one, too."""
        target = self.reference(builder)
        is_link = isinstance(builder, LinkBuilder) or target.path != path
        return target if is_link else None

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

    def columns(self, builder: DatasetBuilder, part: slice | None = None) -> dict[str, Any]:
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
            The fields of a compound, else one column named ``""``. Numbers are arrays; text and
            references are nested lists.
        """
        data = builder.data
        if isinstance(data, DatasetOfReferences):
            data = data.dataset  # its paths; the objects would be opened one by one
        if part is not None:
            data = data[part]
        return dict(self._columns("", data, type_of(builder)))

    def _columns(self, name: str, data: Any, data_type: DataType) -> Iterable[tuple[str, Any]]:
        if isinstance(data_type, list):
            for field, inner in data_type:
                yield from self._columns(f"{name}.{field}" if name else field, data[field], inner)
        elif data_type == "text":
            yield name, _nested(data, _text)
        elif data_type == "reference":
            yield name, _nested(data, self._reference)
        else:
            yield name, np.asarray(data)

    def _reference(self, value: Any) -> Reference:
        if isinstance(value, Builder | ReferenceBuilder):
            return self.reference(value)
        path = _text(value)
        return Reference(path if path.startswith("/") else f"/{path}")


def _nested(data: Any, convert: Any) -> Any:
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if isinstance(data, list | tuple):
        return [_nested(item, convert) for item in data]
    return convert(data)


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def children(group: GroupBuilder) -> dict[str, Builder]:
    """Give what is in a group: groups, datasets and links by name."""
    found = {**group.groups, **group.datasets, **group.links}
    return {name: child for name, child in found.items() if child is not None}


def shape_of(data: Any) -> tuple[int, ...]:
    """Give the shape of a dataset, ``()`` for a scalar."""
    if isinstance(data, h5py.Dataset | np.ndarray) or hasattr(data, "shape"):
        return tuple(data.shape)
    return (len(data),) if isinstance(data, list | tuple | HDMFDataset) else ()


def type_of(builder: DatasetBuilder) -> DataType:
    """Name the data type of a dataset; the order of bytes is left out, which HDMF does not keep."""
    if isinstance(builder.data, ReferenceBuilder | Builder):
        return "reference"
    given: object = builder.dtype
    if isinstance(builder.data, np.ndarray | np.generic) and not isinstance(given, list):
        given = builder.data.dtype
    return _type(type(builder.data) if given is None else given)


def _type(given: Any) -> DataType:
    match given:
        case list():
            return [(field["name"], _type(field["dtype"])) for field in given]
        case str() if given in _TEXT_NAMES:
            return "text"
        case str() if given in _REFERENCE_NAMES:
            return "reference"
        case type():
            return _type(given.__name__)
        case _:
            dtype = np.dtype(given)
    if dtype.names is not None:
        return [(name, _type(dtype[name])) for name in dtype.names]
    return "text" if dtype.kind in _TEXT else dtype.newbyteorder("=").str


# ---------------------------------------------------------------------- specifications


def read_specifications(io: HDMFIO) -> tuple[str, dict[str, str]] | None:
    """Read the specifications that come with a file.

    Parameters
    ----------
    io : hdmf.backends.io.HDMFIO
        Of HDF5, or of hdmf-zarr.

    Returns
    -------
    tuple of (str, dict) or None
        The path of their group, and the JSON text of each by its path in there.
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
    return group.name.strip("/"), texts


def write_specifications(io: HDMFIO, path: str, texts: dict[str, str]) -> None:
    """Write what :func:`read_specifications` gave into a file that is open for writing."""
    file = io._file  # noqa: SLF001 - as above
    group = file.require_group(path)
    for name, text in texts.items():
        parent, _, last = name.rpartition("/")
        inner = group.require_group(parent) if parent else group
        if isinstance(inner, h5py.Group):
            inner.create_dataset(last, data=text, dtype=h5py.string_dtype())
        else:
            inner.create_array(last, shape=(), dtype=np.dtypes.StringDType())[()] = text
    file.attrs[_SPECIFICATIONS] = group.ref if isinstance(group, h5py.Group) else path
