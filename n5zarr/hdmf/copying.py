"""Copy a tree of builders, which a reader made, for the writer of another backend.

hdmf's own export builds everything again from containers. That converts a file to the newest
version of the schema and drops content outside the schema. Here everything stays unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

import h5py
import numpy as np
from hdmf.build import Builder, DatasetBuilder, GroupBuilder, LinkBuilder, ReferenceBuilder
from hdmf_zarr.backend import REFERENCE_DTYPE_ATTR_VALUE

from n5zarr.container.options import require
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.hdmf.file_contents import (
    DIMENSION_NAMES,
    FileContents,
    Reference,
    ValueType,
    children,
    columns,
    is_array,
    shape_of,
    stored,
    target_of,
    type_of,
)


def copied_tree(
    contents: FileContents,
    target: str,
    *,
    names: Mapping[str, tuple[str, ...]] | None,
    wrap: Callable[[DatasetBuilder, object], object],
) -> GroupBuilder:
    """Make the builders of a copy.

    Parameters
    ----------
    contents : FileContents
        The contents of the source. Targets of links into other files become part of the copy: a
        target in place of the link, and what the target itself links to at its own path.
    target : str
        The file to write, the ``source`` of the new builders.
    names : mapping or None
        For hdmf-zarr: names of the axes of datasets, by path. None for HDF5.
    wrap : callable
        Called with every dataset of the source and its new data; returns the data to write.

    Raises
    ------
    N5UnrepresentableError
        The target of a reference is not in the file, or the path of a link's target is taken
        (``kind="path"``). HDF5 cannot hold an attribute, or NUL in text (``kind="member"``).
    """
    copying = _TreeCopier(contents, target, names, wrap)
    root = copying.group("", contents.root, contents.root.name)
    copying.fill()
    return root


type _Fields = dict[tuple[str, ...], np.ndarray]

_JSON = (bool, int, float, str, list, dict, type(None))


class _TreeCopier:
    def __init__(
        self,
        contents: FileContents,
        target: str,
        names: Mapping[str, tuple[str, ...]] | None,
        wrap: Callable[[DatasetBuilder, object], object],
    ) -> None:
        self._contents, self._target, self._names, self._wrap = contents, target, names or {}, wrap
        self._is_for_hdf5 = names is None
        self._new: dict[Reference, Builder] = {}
        self._links = deque[tuple[str, str, GroupBuilder, Builder]]()
        self._unfilled = deque[tuple[Builder, Builder]]()

    def group(self, path: str, old: GroupBuilder, name: str) -> GroupBuilder:
        """Copy a group with everything in it, except links and references."""
        new = GroupBuilder(name, source=self._target)
        self._register(old, new)
        for child_name, child in children(old).items():
            child_path = f"{path}/{child_name}"
            is_link = isinstance(child, LinkBuilder)
            if is_link or self._contents.reference(child) in self._new:
                self._links.append((child_path, child_name, new, child))
            else:
                self._add(child_path, child_name, new, child)
        return new

    def fill(self) -> None:
        """Add the links, then attributes and data, which may hold references."""
        while self._links or self._unfilled:  # copying a target adds to both
            if self._links:
                self._link(*self._links.popleft())
            else:
                self._fill(*self._unfilled.popleft())

    def _link(self, path: str, name: str, group: GroupBuilder, link: Builder) -> None:
        old = target_of(link)
        if self._contents.reference(old) not in self._new and self._contents.is_inside(link):
            self._add(path, name, group, old)
        else:
            group.set_link(LinkBuilder(self._copy_of(old), name, group, self._target))

    def _copy_of(self, old: Builder) -> Builder:
        """Return the copy of an object; copy it now if it is in another file."""
        reference = self._contents.reference(old)
        if reference not in self._new:
            self._copy_to_own_path(old)  # the schema requires a link, or a reference, to it
        return self._new[reference]

    def _copy_to_own_path(self, old: Builder) -> None:
        """Copy an object of another file to the same path in this one."""
        reference = self._contents.reference(old)
        group, path = self._new[Reference("/")], ""
        *above, name = reference.path.strip("/").split("/")
        for part in above:
            path = f"{path}/{part}"
            if part not in group:
                group.set_group(GroupBuilder(part, source=self._target))
                self._new[Reference(path)] = group[part]
            group = group[part]
            if not isinstance(group, GroupBuilder):
                break
        require(
            isinstance(group, GroupBuilder) and name not in group,
            f"expected nothing at {reference}, the path for the copied target of a link into "
            "another file, got another node",
            self._contents.source,
            kind="path",
        )
        self._add(reference.path, name, group, old)

    def _fill(self, old: Builder, new: Builder) -> None:
        try:
            for key, value in old.attributes.items():
                if key != DIMENSION_NAMES or not self._is_for_hdf5:
                    new.set_attribute(key, self._attribute(key, value))
            if isinstance(new, DatasetBuilder):
                new.data = self._wrap(old, self._data(old))
                if new.dtype == "text" and type_of(old) == "reference":
                    new.set_attribute("_DTYPE", REFERENCE_DTYPE_ATTR_VALUE)
        except N5Error as err:
            raise err.located(f"{self._contents.source}: {self._contents.reference(old)}") from None
        except Exception as err:
            err.add_note(f"in {self._contents.reference(old)}")
            raise

    def _add(self, path: str, name: str, group: GroupBuilder, old: Builder) -> None:
        if isinstance(old, GroupBuilder):
            group.set_group(self.group(path, old, name))
            return
        names = self._names.get(path)
        data_type = type_of(old)
        if data_type == "reference" and not self._is_for_hdf5:
            data_type = "text"  # hdmf-zarr stores text too, but writes references one by one
        new = DatasetBuilder(
            name,
            dtype=_dtype(data_type),
            source=self._target,
            **({"dimension_labels": names} if names else {}),  # hdmf does not take None
        )
        self._register(old, new)
        group.set_dataset(new)

    def _register(self, old: Builder, new: Builder) -> None:
        self._new[self._contents.reference(old)] = new
        self._unfilled.append((old, new))

    def _attribute(self, key: str, value: object) -> object:
        if isinstance(value, Builder | ReferenceBuilder):
            return self._copy_of(target_of(value))
        return _hdf5_attribute(key, value) if self._is_for_hdf5 else value

    def _data(self, old: DatasetBuilder) -> object:
        if is_array(old):
            return old.data
        fields, data_type = columns(old), type_of(old)
        if self._is_for_hdf5:
            for names, values in fields.items():
                _check_text(".".join(("value", *names)), values.flat)
        if isinstance(data_type, list):
            return self._compound(old, fields, data_type)
        if data_type != "reference":
            return fields[()][()]
        targets = self._targets(old, fields[()])
        if not self._is_for_hdf5:
            return np.frompyfunc(_path, 1, 1)(targets)
        return [*targets] if targets.shape else ReferenceBuilder(targets[()])

    def _compound(
        self, old: DatasetBuilder, fields: _Fields, data_type: list[tuple[str, ValueType]]
    ) -> object:
        references = [name for name, inner in data_type if inner == "reference"]
        if not references:
            return _as_compound(fields, data_type, shape_of(stored(old)))
        for name in references:
            fields[name,] = self._targets(old, fields[name,])
        return [*zip(*fields.values(), strict=True)]

    def _targets(self, old: DatasetBuilder, paths: np.ndarray) -> np.ndarray:
        """Return the copies of the objects that references of a dataset lead to."""
        file = self._contents.reference(old).file
        find = np.frompyfunc(lambda path: self._copy_at(Reference(path, file)), 1, 1)
        return np.asarray(find(paths), dtype=object)

    def _copy_at(self, reference: Reference) -> Builder:
        if reference in self._new:
            return self._new[reference]
        message = f"reference to {reference}, which has no link and so is not in the copy"
        raise N5UnrepresentableError(message, kind="path", where=self._contents.source)


def _path(builder: Builder) -> str:
    """Return the path of an object in a file, without the name of its root."""
    return f"/{builder.path.partition('/')[2]}"


def _hdf5_attribute(name: str, value: object) -> object:
    """Convert JSON to hdmf's form of an HDF5 attribute; raise if HDF5 has no such value."""
    if type(value) not in _JSON:
        return value  # read from HDF5
    items = [*_items(value)]
    kinds = {type(item) for item in items}
    what = f"attribute {name!r}"
    require(
        kinds <= {str} or kinds <= {bool} or kinds <= {int, float},
        f"{what}: expected text or numbers, as HDF5 has them, got {value!r}",
        kind="member",
    )
    _check_text(what, items)
    if isinstance(value, str | float | bool):
        return value
    try:
        rows = np.array(value)
    except ValueError:
        message = f"{what}: expected lists of equal lengths, as HDF5 has them, got {value!r}"
        raise N5UnrepresentableError(message, kind="member") from None
    require(
        kinds != {int} or rows.dtype.kind in "iu",
        f"{what}: expected integers of 64 bits, as HDF5 has them, got {value!r}",
        kind="member",
    )
    if rows.ndim < 2:
        return value
    return rows.astype(h5py.string_dtype()) if rows.dtype.kind == "U" else rows


def _items(value: object) -> Iterator[object]:
    """Yield the items of nested lists."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item)
    else:
        yield value


def _check_text(what: str, values: Iterable[object]) -> None:
    for text in values:
        if isinstance(text, str) and "\0" in text:
            message = f"{what}: expected text without NUL, as HDF5 has it, got {text!r}"
            raise N5UnrepresentableError(message, kind="member")


def _as_compound(fields: _Fields, data_type: ValueType, shape: tuple[int, ...]) -> np.ndarray:
    rows = np.empty(shape, dtype=_in_memory(data_type))
    for names, values in fields.items():
        column = rows
        for name in names:
            column = column[name]
        column[...] = values
    return rows[()]


def _in_memory(data_type: ValueType) -> np.dtype:
    if isinstance(data_type, list):
        return np.dtype([(name, _in_memory(inner)) for name, inner in data_type])
    return np.dtype(object if data_type == "text" else data_type)


def _dtype(data_type: ValueType) -> object:
    """Return a data type in the terms of hdmf's writers."""
    if isinstance(data_type, list):
        return [{"name": name, "dtype": _dtype(inner)} for name, inner in data_type]
    names = {"text": "text", "reference": DatasetBuilder.OBJECT_REF_TYPE}
    return names[data_type] if data_type in names else np.dtype(data_type)
