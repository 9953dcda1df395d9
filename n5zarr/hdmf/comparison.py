"""What two HDMF files hold, compared through the builders that their readers make.

Values are equal to the last bit, but for the order of bytes, which no format of HDMF keeps. Text is
text, as UTF-8 bytes or not, and a reference is the path that it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from hdmf.build import Builder, GroupBuilder, LinkBuilder, ReferenceBuilder
from hdmf.query import HDMFDataset

from n5zarr.hdmf.parts import IS_TEXT, is_array, parts

if TYPE_CHECKING:
    from hdmf.backends.io import HDMFIO

__all__ = ["differences"]

type Report = Callable[[int], None]

_NAMES_OF_DIMENSIONS = "_ARRAY_DIMENSIONS"  # hdmf-zarr's own; in HDF5 the specification has them
_TEXT_NAMES = {"ascii", "bytes", "isodatetime", "str", "str_", "text", "utf", "utf8", "utf-8"}
_REFERENCE_NAMES = {"object", "ref", "reference"}


def differences(first: HDMFIO, second: HDMFIO, *, report: Report | None = None) -> Iterator[str]:
    """Compare two files.

    Parameters
    ----------
    first, second : hdmf.backends.io.HDMFIO
        Open for reading.
    report : callable, optional
        Is given the number of bytes of each part of the first file's arrays that was compared.

    Yields
    ------
    str
        A line for everything that differs: groups, datasets, links, attributes, data types, shapes
        and values.
    """
    compared = _Comparison(first, second, report or (lambda _: None))
    yield from compared.groups("", first.read_builder(), second.read_builder())


class _Comparison:
    def __init__(self, first: HDMFIO, second: HDMFIO, report: Report) -> None:
        self._sources = first.source, second.source
        self._report = report
        self._followed = set[tuple[int, int]]()

    def groups(self, path: str, a: GroupBuilder, b: GroupBuilder) -> Iterator[str]:
        yield from self._attributes(path or "/", a.attributes, b.attributes)
        children_a, children_b = _children(a), _children(b)
        yield from _names(path, "/", children_a, children_b)
        for name in sorted(children_a.keys() & children_b.keys()):
            yield from self._builders(f"{path}/{name}", children_a[name], children_b[name])

    def _builders(self, path: str, a: Builder, b: Builder) -> Iterator[str]:
        links = [builder for builder in (a, b) if isinstance(builder, LinkBuilder)]
        is_inside = all(link.builder.source == link.source for link in links)
        if len(links) == 2 and is_inside:
            yield from _unequal(path, "link", self._target(0, a), self._target(1, b))
            return
        # what a link into another file leads to may have been copied
        a, b = (x.builder if isinstance(x, LinkBuilder) else x for x in (a, b))
        if links and (id(a), id(b)) in self._followed:
            return
        self._followed.add((id(a), id(b)))
        if isinstance(a, GroupBuilder) and isinstance(b, GroupBuilder):
            yield from self.groups(path, a, b)
        elif isinstance(a, GroupBuilder) or isinstance(b, GroupBuilder):
            yield f"{path}: a group in one, a dataset in the other"
        else:
            yield from self._attributes(path, a.attributes, b.attributes)
            yield from self._data(path, a, b)

    def _target(self, which: int, link: LinkBuilder | Builder) -> str:
        builder = link.builder if isinstance(link, LinkBuilder | ReferenceBuilder) else link
        path = f"{(builder.location or '/').rstrip('/')}/{builder.name}"
        is_inside = builder.source in (None, self._sources[which])
        path = "/" if builder.name == "root" and builder.parent is None else path
        return path if is_inside else f"{builder.source}:{path}"

    def _attributes(self, path: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
        yield from _names(path, "@", a, b)
        for name in sorted(a.keys() & b.keys() - {_NAMES_OF_DIMENSIONS}):
            values = [self._plain(i, attributes[name]) for i, attributes in enumerate((a, b))]
            yield from _unequal(f"{path}@{name}", "attribute", *values)

    def _plain(self, which: int, value: Any) -> Any:
        """Make a value comparable: text, paths, tuples, and the bytes of floats."""
        match value:
            case Builder() | ReferenceBuilder():
                return "-> " + self._target(which, value)
            case np.ndarray() | np.generic():
                return self._plain(which, value.tolist())
            case list() | tuple():
                return tuple(self._plain(which, item) for item in value)
            case bytes():
                return value.decode("utf-8", "surrogateescape")
            case float():
                return value.hex()  # NaN equals itself, and -0.0 is not 0.0
            case _:
                return value

    def _data(self, path: str, a: Builder, b: Builder) -> Iterator[str]:
        types = [_type(builder) for builder in (a, b)]
        yield from _unequal(path, "data type", *types)
        shapes = [_shape(builder.data) for builder in (a, b)]
        if shapes[0] != shapes[1]:
            yield from _unequal(path, "shape", *shapes)
        elif is_array(a.data) and is_array(b.data):
            yield from self._arrays(path, a.data, b.data)
        else:
            values = [self._plain(i, _loaded(builder.data)) for i, builder in enumerate((a, b))]
            yield from _unequal(path, "value", *values)

    def _arrays(self, path: str, a: Any, b: Any) -> Iterator[str]:
        n_unequal, where = 0, tuple[int, ...]()
        for box in parts(a):
            both = np.asarray(a[box]), np.asarray(b[box])
            unequal = _unequal_elements(*both)
            if unequal.any() and not n_unequal:
                position = np.argwhere(unequal)[0]
                where = tuple(int(s.start + i) for s, i in zip(box, position, strict=True))
            n_unequal += int(np.count_nonzero(unequal))
            self._report(both[0].nbytes)
        if n_unequal:
            first = f"{a[where]!r}, then {b[where]!r}"
            yield f"{path}: {n_unequal} values differ, the first at {where}: {first}"


def _unequal_elements(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compare the bits of numbers; NaN has more than one."""
    if a.dtype.kind not in "fc":
        return np.asarray(a != b)
    both = [np.ascontiguousarray(part, part.dtype.newbyteorder("=")) for part in (a, b)]
    if both[0].dtype != both[1].dtype:
        return np.asarray(a != b)
    bits = [part.view(np.uint8).reshape(*part.shape, part.dtype.itemsize) for part in both]
    return np.asarray((bits[0] != bits[1]).any(axis=-1))


def _children(group: GroupBuilder) -> dict[str, Builder]:
    return {**group.groups, **group.datasets, **group.links}


def _names(path: str, sign: str, a: Iterable[str], b: Iterable[str]) -> Iterator[str]:
    for which, names in (("first", set(a) - set(b)), ("second", set(b) - set(a))):
        for name in sorted(names - {_NAMES_OF_DIMENSIONS}):
            yield f"{path}{sign}{name}: only in the {which}"


def _unequal(path: str, what: str, a: object, b: object) -> Iterator[str]:
    # 1 == 1.0 == True in Python, but not here
    if a != b or type(a) is not type(b) or repr(a) != repr(b):
        yield f"{path}: {what}: {_short(a)}, then {_short(b)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


def _loaded(data: Any) -> Any:
    if isinstance(data, HDMFDataset) or (
        hasattr(data, "shape") and not isinstance(data, np.generic)
    ):
        return [data[i] for i in range(len(data))] if _shape(data) else data[()]
    return data


def _shape(data: Any) -> tuple[int, ...]:
    if hasattr(data, "shape"):
        return tuple(data.shape)
    return (len(data),) if isinstance(data, list | tuple | HDMFDataset) else ()


def _type(builder: Builder) -> object:
    if isinstance(builder.data, ReferenceBuilder | Builder):
        return "reference"
    given: object = builder.dtype
    if isinstance(builder.data, np.ndarray | np.generic) and not isinstance(given, list):
        given = builder.data.dtype
    return _type_name(given)


def _type_name(given: Any) -> object:
    """Name a data type, whichever way a reader does."""
    match given:
        case list():
            return [(field["name"], _type_name(field["dtype"])) for field in given]
        case str() if given in _TEXT_NAMES:
            return "text"
        case str() if given in _REFERENCE_NAMES:
            return "reference"
        case type():
            return _type_name(given.__name__)
        case _:
            dtype = np.dtype(given)
    if dtype.names is not None:
        return [(name, _type_name(dtype[name])) for name in dtype.names]
    return "text" if dtype.kind in IS_TEXT else dtype.newbyteorder("=").str
