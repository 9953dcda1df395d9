"""What two HDMF files hold, compared, as far as hdmf reads it.

Numbers are equal to the last bit, but for the order of bytes, which no format of HDMF keeps.
Numbers in attributes have no width, as JSON has none. A reference is the path that it leads to.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from hdmf.build import Builder, GroupBuilder

from n5zarr.hdmf.content import (
    DIMENSION_NAMES,
    Content,
    Reference,
    children,
    read_specifications,
    shape_of,
    target_of,
    type_of,
)
from n5zarr.hdmf.slabs import is_array, parts, row_parts

if TYPE_CHECKING:
    from hdmf.backends.io import HDMFIO
    from hdmf.build import DatasetBuilder

__all__ = ["differences"]

type Report = Callable[[int], None]


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
        A line for everything that differs: groups, datasets, links, attributes, data types, shapes,
        values and specifications. What a link into another file leads to may be a copy.
    """
    compared = _Comparison(Content(first), Content(second), report or (lambda _: None))
    yield from compared.everything()
    yield from _specifications(first, second)


class _Comparison:
    def __init__(self, a: Content, b: Content, report: Report) -> None:
        self.a, self.b = a, b
        self._report = report
        # what links of the first into other files lead to, and where the second has it
        self._followed = set[tuple[Reference, Reference]]()
        self._depth = 0
        self._brought = set[str]()
        self._only_in_second: list[tuple[str, Builder]] = []

    def everything(self) -> Iterator[str]:
        yield from self.groups("", self.a.root, self.b.root)
        for path, builder in self._only_in_second:
            if not self._was_brought(path, builder):
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

    def _was_brought(self, path: str, builder: Builder) -> bool:
        """Whether all there is was needed by what a link into another file leads to."""
        if path in self._brought:
            return True
        if not isinstance(builder, GroupBuilder) or builder.attributes:
            return False
        found = children(builder).items()
        return bool(found) and all(self._was_brought(f"{path}/{n}", child) for n, child in found)

    def _builders(
        self, path: str, links: tuple[Reference | None, Reference | None], a: Builder, b: Builder
    ) -> Iterator[str]:
        a, b = target_of(a), target_of(b)
        if not any(links):
            yield from self._same(path, a, b)
        elif (self.a.is_inside(a) and self.b.is_inside(b)) or (self._depth and not links[1]):
            # in another file only what the outermost link leads to is copied in place
            yield from _unequal(path, "link", *links)
        else:
            yield from self._follow(path, a, b)

    def _follow(self, path: str, a: Builder, b: Builder) -> Iterator[str]:
        both = self.a.reference(a), self.b.reference(b)
        self._brought.add(both[1].path)
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
        shapes = shape_of(a.data), shape_of(b.data)
        if types[0] != types[1]:
            yield from _unequal(path, "data type", *types)
        elif shapes[0] != shapes[1]:
            yield from _unequal(path, "shape", *shapes)
        elif is_array(a.data) and is_array(b.data):
            yield from self._arrays(path, a.data, b.data)
        else:
            yield from self._rows(path, a, b)

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

    def _rows(self, path: str, a: DatasetBuilder, b: DatasetBuilder) -> Iterator[str]:
        """Compare text, references, compounds and scalars; name the first difference."""
        for part in row_parts(a.data, b.data) if shape_of(a.data) else [None]:
            ours, theirs = self.a.columns(a, part), self.b.columns(b, part)
            for name, values in ours.items():
                others = theirs[name]
                if isinstance(values, np.ndarray):
                    is_equal = not _unequal_elements(values, np.asarray(others)).any()
                else:
                    is_equal = (_paths(values) if self._depth else values) == others
                if not is_equal:
                    yield f"{'.'.join((path, *name))}: value: {_first(values, others, part)}"
                    return


def _paths(values: Any) -> Any:
    """Leave out the file of references, from where everything was brought to the same path."""
    if isinstance(values, list):
        return [_paths(value) for value in values]
    return Reference(values.path) if isinstance(values, Reference) else values


def _first(a: Any, b: Any, part: slice | None) -> str:
    if part is None or not isinstance(a, list | np.ndarray):
        return f"{_short(a)}, then {_short(b)}"
    for row, (ours, theirs) in enumerate(zip(a, b, strict=True), part.start):
        if np.any(_unequal_elements(np.asarray(ours), np.asarray(theirs))):
            return f"row {row}: {_short(ours)}, then {_short(theirs)}"
    return f"{_short(a)}, then {_short(b)}"


def _unequal_elements(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compare the bits of numbers; NaN has more than one."""
    if a.dtype.kind not in "fcmM" or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return np.asarray(a != b)
    both = [np.ascontiguousarray(part, part.dtype.newbyteorder("=")) for part in (a, b)]
    bits = [part.reshape(*a.shape, 1).view(np.uint8) for part in both]
    return np.asarray((bits[0] != bits[1]).any(axis=-1))


def _specifications(first: HDMFIO, second: HDMFIO) -> Iterator[str]:
    ours, theirs = (dict(_documents(io)) for io in (first, second))
    yield from _names("/specifications", "/", ours, theirs)
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name]:
            yield f"/specifications/{name}: differs"


def _documents(io: HDMFIO) -> Iterator[tuple[str, object]]:
    for name, text in (read_specifications(io) or {}).items():
        yield name, json.loads(text)


def _names(path: str, sign: str, a: Iterable[str], b: Iterable[str]) -> Iterator[str]:
    for which, names in (("first", set(a) - set(b)), ("second", set(b) - set(a))):
        for name in sorted(names - {DIMENSION_NAMES}):
            yield f"{path}{sign}{name}: only in the {which}"


def _unequal(path: str, what: str, a: object, b: object) -> Iterator[str]:
    if _exact(a) != _exact(b):
        yield f"{path}: {what}: {_short(a)}, then {_short(b)}"


def _exact(value: object) -> object:
    """Tell apart what Python takes for equal: 1, 1.0 and True; 0.0 and -0.0; and one NaN."""
    if isinstance(value, tuple):
        if any(isinstance(item, float) for item in value):  # HDF5 makes all of them so
            value = tuple(float(item) if type(item) is int else item for item in value)
        return tuple(map(_exact, value))
    if isinstance(value, float):
        return struct.pack("<d", value)
    return type(value), value


def _short(value: object) -> str:
    text = str(value) if isinstance(value, Reference) else repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."
