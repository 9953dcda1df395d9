"""Compare the contents of two HDMF files, as far as hdmf reads them.

Numbers must be equal to the last bit; byte order is ignored, which no format of HDMF keeps. Numbers
in attributes have no width, as JSON has none. References are equal if they lead to the same path.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from hdmf.build import Builder, DatasetBuilder, GroupBuilder

from n5zarr.hdmf.file_contents import (
    DIMENSION_NAMES,
    FileContents,
    Reference,
    children,
    columns,
    is_array,
    read_specifications,
    shape_of,
    slabs,
    stored,
    target_of,
    type_of,
)

if TYPE_CHECKING:
    from hdmf.backends.io import HDMFIO

type Report = Callable[[int], None]


def differences(first: HDMFIO, second: HDMFIO, *, report: Report | None = None) -> Iterator[str]:
    """Compare two files.

    Parameters
    ----------
    first, second : hdmf.backends.io.HDMFIO
        Open for reading.
    report : callable, optional
        Called with the number of bytes of each slab of the first file's arrays, once compared.

    Yields
    ------
    str
        One line for each difference in groups, datasets, links, attributes, data types, shapes,
        values and specifications. A link into another file may be a copy of its target.
    """
    comparison = _Comparison(FileContents(first), FileContents(second), report or (lambda _: None))
    yield from comparison.everything()
    yield from _specifications(first, second)


class _Comparison:
    def __init__(self, a: FileContents, b: FileContents, report: Report) -> None:
        self.a, self.b = a, b
        self._report = report
        # targets in other files: in the first, and where the second has its copy
        self._followed = set[tuple[Reference, Reference]]()
        self._depth = 0  # of links into other files
        self._copied = set[str]()  # paths in the second of such copies
        self._only_in_second: list[tuple[str, Builder]] = []

    def everything(self) -> Iterator[str]:
        yield from self.groups("", self.a.root, self.b.root)
        for path, builder in self._only_in_second:
            if not self._is_copy(path, builder):
                yield f"{path}: only in the second"

    def groups(self, path: str, a: GroupBuilder, b: GroupBuilder) -> Iterator[str]:
        yield from self._attributes(path or "/", a, b)
        ours, theirs = children(a), children(b)
        for name in sorted(ours.keys() - theirs.keys()):
            yield f"{path}/{name}: only in the first"
        for name in sorted(theirs.keys() - ours.keys()):
            self._only_in_second.append((f"{path}/{name}", theirs[name]))
        for name in sorted(ours.keys() & theirs.keys()):
            links = self.a.link(a, name, ours[name]), self.b.link(b, name, theirs[name])
            yield from self._builders(f"{path}/{name}", links, ours[name], theirs[name])

    def _is_copy(self, path: str, builder: Builder) -> bool:
        """Return whether everything below is a copy of targets of links into other files."""
        if path in self._copied:
            return True
        if not isinstance(builder, GroupBuilder) or builder.attributes:
            return False
        members = children(builder).items()
        return bool(members) and all(self._is_copy(f"{path}/{n}", child) for n, child in members)

    def _builders(
        self, path: str, links: tuple[Reference | None, Reference | None], a: Builder, b: Builder
    ) -> Iterator[str]:
        a, b = target_of(a), target_of(b)
        if not any(links):
            yield from self._same(path, a, b)
        elif (self.a.is_inside(a) and self.b.is_inside(b)) or (self._depth and not links[1]):
            # only the target of the outermost link is copied to the place of the link
            yield from _unequal(path, "link", *links)
        else:
            yield from self._follow(path, a, b)

    def _follow(self, path: str, a: Builder, b: Builder) -> Iterator[str]:
        both = self.a.reference(a), self.b.reference(b)
        self._copied.add(both[1].path)
        if both not in self._followed:
            self._followed.add(both)
            self._depth += 1
            yield from self._same(path, a, b)
            self._depth -= 1

    def _same(self, path: str, a: Builder, b: Builder) -> Iterator[str]:
        if isinstance(a, GroupBuilder) and isinstance(b, GroupBuilder):
            yield from self.groups(path, a, b)
        elif isinstance(a, GroupBuilder) or isinstance(b, GroupBuilder):
            yield f"{path}: a group in one, a dataset in the other"
        else:
            yield from self._attributes(path, a, b)
            yield from self._data(path, a, b)

    def _attributes(self, path: str, a: Builder, b: Builder) -> Iterator[str]:
        ours, theirs = a.attributes, b.attributes
        yield from _names(path, "@", ours, theirs)
        for name in sorted(ours.keys() & theirs.keys() - {DIMENSION_NAMES}):
            values = self.a.attribute(ours[name]), self.b.attribute(theirs[name])
            if self._depth and all(isinstance(value, Reference) for value in values):
                both = target_of(ours[name]), target_of(theirs[name])
                yield from self._follow(f"{path}@{name}", *both)
            else:
                yield from _unequal(f"{path}@{name}", "attribute", *values)

    def _data(self, path: str, a: DatasetBuilder, b: DatasetBuilder) -> Iterator[str]:
        types = type_of(a), type_of(b)
        shapes = shape_of(stored(a)), shape_of(stored(b))
        if types[0] != types[1]:
            yield from _unequal(path, "data type", *types)
        elif shapes[0] != shapes[1]:
            yield from _unequal(path, "shape", *shapes)
        else:
            yield from self._values(path, a, b)

    def _values(self, path: str, a: DatasetBuilder, b: DatasetBuilder) -> Iterator[str]:
        """Compare the values, in each field of a compound; name the first that differs."""
        counts, firsts = Counter[tuple[str, ...]](), dict[tuple[str, ...], str]()
        for box in slabs(stored(a)):
            theirs = columns(b, box)
            for names, ours in columns(a, box).items():
                unequal = _unequal_elements(ours, theirs[names])
                if unequal.any():
                    index = tuple(np.argwhere(unequal)[0].tolist())
                    where = tuple(s.start + i for s, i in zip(box, index, strict=True))
                    both = f"{_short(ours[index])}, then {_short(theirs[names][index])}"
                    firsts.setdefault(names, f"the first at {where}: {both}" if where else both)
                    counts[names] += int(np.count_nonzero(unequal))
                if is_array(a):
                    self._report(ours.nbytes)
        for names, first in firsts.items():
            what = f"{counts[names]} values differ," if shape_of(stored(a)) else "value:"
            yield f"{'.'.join((path, *names))}: {what} {first}"


def _unequal_elements(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compare the bits of numbers, as NaN has more than one bit pattern."""
    if a.dtype.kind not in "fcmM" or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return np.asarray(a != b)
    both = [np.ascontiguousarray(values, values.dtype.newbyteorder("=")) for values in (a, b)]
    bits = [values.reshape(*a.shape, 1).view(np.uint8) for values in both]
    return np.asarray((bits[0] != bits[1]).any(axis=-1))


def _specifications(first: HDMFIO, second: HDMFIO) -> Iterator[str]:
    ours, theirs = (
        {name: json.loads(text) for name, text in (read_specifications(io) or {}).items()}
        for io in (first, second)
    )
    yield from _names("/specifications", "/", ours, theirs)
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name]:
            yield f"/specifications/{name}: differs"


def _names(path: str, sign: str, a: Iterable[str], b: Iterable[str]) -> Iterator[str]:
    for which, names in (("first", set(a) - set(b)), ("second", set(b) - set(a))):
        for name in sorted(names - {DIMENSION_NAMES}):
            yield f"{path}{sign}{name}: only in the {which}"


def _unequal(path: str, what: str, a: object, b: object) -> Iterator[str]:
    if _exact(a) != _exact(b):
        yield f"{path}: {what}: {_short(a)}, then {_short(b)}"


def _exact(value: object) -> object:
    """Distinguish values that Python equates: 1, 1.0 and True; 0.0 and -0.0. Make NaN equal."""
    if isinstance(value, tuple):
        if any(isinstance(item, float) for item in value):  # HDF5 makes all items floats
            value = tuple(float(item) if type(item) is int else item for item in value)
        return tuple(map(_exact, value))
    if isinstance(value, float):
        return struct.pack("<d", value)
    return type(value), value


def _short(value: object) -> str:
    text = str(value) if isinstance(value, Reference) else repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."
