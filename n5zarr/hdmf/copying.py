"""A tree of builders for another backend, out of those that a reader made.

hdmf's own export builds everything anew from containers. That brings a file to the newest version
of the schema, and leaves out what the schema does not know. Here everything stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hdmf.build import Builder, DatasetBuilder, GroupBuilder, LinkBuilder, ReferenceBuilder

from n5zarr.errors import N5UnrepresentableError
from n5zarr.hdmf.content import (
    DIMENSION_NAMES,
    Content,
    DataType,
    Reference,
    children,
    shape_of,
    type_of,
)
from n5zarr.hdmf.parts import is_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["copied_tree"]


def copied_tree(
    content: Content,
    target: str,
    *,
    names: Mapping[str, tuple[str, ...]] | None,
    wrap: Callable[[DatasetBuilder, Any], Any],
) -> GroupBuilder:
    """Make the builders of a copy.

    Parameters
    ----------
    content : Content
        What it holds. Whatever its links lead to in other files becomes part of the copy.
    target : str
        The source of the new builders: the file that they are for.
    names : mapping or None
        Names of the axes of datasets by path, for a backend that has an attribute for them.
    wrap : callable
        Is given every dataset of the file and its new data, and returns what is written.

    Raises
    ------
    N5UnrepresentableError
        A reference leads to what is not in the file (``kind="path"``).
    """
    copying = _Copying(content, target, names, wrap)
    root = copying.group("", content.root, content.root.name)
    copying.fill()
    return root


class _Copying:
    def __init__(
        self,
        content: Content,
        target: str,
        names: Mapping[str, tuple[str, ...]] | None,
        wrap: Callable[[DatasetBuilder, Any], Any],
    ) -> None:
        self._content, self._target, self._names, self._wrap = content, target, names, wrap
        self._new: dict[Reference, Builder] = {}
        self._links: list[tuple[str, str, GroupBuilder, Builder]] = []
        self._attributes: list[tuple[Builder, Builder]] = []

    def group(self, path: str, old: GroupBuilder, name: str) -> GroupBuilder:
        """Copy a group with all that is in it, but for links and what refers to others."""
        new = GroupBuilder(name, source=self._target)
        self._register(old, new)
        for child_name, child in children(old).items():
            child_path = f"{path}/{child_name}"
            is_link = isinstance(child, LinkBuilder)
            if is_link or self._content.reference(child) in self._new:
                self._links.append((child_path, child_name, new, child))
            else:
                self._add(child_path, child_name, new, child)
        return new

    def fill(self) -> None:
        """Add the links, and then what refers to others."""
        while self._links:
            path, name, group, link = self._links.pop(0)
            reference = self._content.reference(link)
            old = link.builder if isinstance(link, LinkBuilder) else link
            if reference in self._new:
                new = LinkBuilder(self._new[reference], name, group, self._target)
                group.set_link(new)
            else:
                self._add(path, name, group, old)  # it is in another file
        for old, new in self._attributes:
            for key, value in old.attributes.items():
                if key != DIMENSION_NAMES or self._names is not None:
                    new.set_attribute(key, self._attribute(value))
            if isinstance(new, DatasetBuilder):
                new.data = self._wrap(old, self._data(old))

    def _add(self, path: str, name: str, group: GroupBuilder, old: Builder) -> None:
        if isinstance(old, GroupBuilder):
            group.set_group(self.group(path, old, name))
            return
        names = self._names and self._names.get(path)
        new = DatasetBuilder(
            name,
            dtype=_dtype(type_of(old)),
            source=self._target,
            **({"dimension_labels": names} if names else {}),  # hdmf does not take None
        )
        self._register(old, new)
        group.set_dataset(new)

    def _register(self, old: Builder, new: Builder) -> None:
        self._new[self._content.reference(old)] = new
        self._attributes.append((old, new))

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, Builder | ReferenceBuilder):
            return self._object(self._content.reference(value))
        return value

    def _object(self, reference: Reference) -> Builder:
        if reference in self._new:
            return self._new[reference]
        message = f"reference to {reference.path}: there is no such object"
        raise N5UnrepresentableError(message, kind="path", where=self._content.source)

    def _data(self, old: DatasetBuilder) -> Any:
        if is_array(old.data):
            return old.data
        data_type = type_of(old)
        if not shape_of(old.data):
            return self._scalar(old, data_type)
        columns = self._content.columns(old, slice(0, len(old.data)))
        if not isinstance(data_type, list):
            values = columns[""]
            return self._objects(values) if data_type == "reference" else _as_objects(values)
        if any(inner == "reference" for _, inner in data_type):
            return [*zip(*map(self._objects, columns.values()), strict=True)]
        return _as_compound(columns, data_type, len(old.data))

    def _scalar(self, old: DatasetBuilder, data_type: DataType) -> Any:
        columns = self._content.columns(old)
        if isinstance(data_type, list):
            return _as_compound({k: [v] for k, v in columns.items()}, data_type, 1)[0]
        (value,) = columns.values()
        if data_type == "reference":
            return ReferenceBuilder(self._object(value))
        return value if data_type == "text" else value[()]

    def _objects(self, values: Any) -> list[Any]:
        return [self._object(v) if isinstance(v, Reference) else v for v in values]


def _as_objects(values: list[Any]) -> np.ndarray:
    return np.array(values, dtype=object)


def _as_compound(columns: Mapping[str, Any], data_type: DataType, n_rows: int) -> np.ndarray:
    rows = np.empty(n_rows, dtype=_in_memory(data_type))
    for name, values in columns.items():
        column = rows
        for field in name.split("."):
            column = column[field]
        column[...] = values
    return rows


def _in_memory(data_type: DataType) -> np.dtype:
    if isinstance(data_type, list):
        return np.dtype([(name, _in_memory(inner)) for name, inner in data_type])
    return np.dtype(object if data_type == "text" else data_type)


def _dtype(data_type: DataType) -> Any:
    """Name a data type as hdmf's writers do."""
    if isinstance(data_type, list):
        return [{"name": name, "dtype": _dtype(inner)} for name, inner in data_type]
    names = {"text": "text", "reference": DatasetBuilder.OBJECT_REF_TYPE}
    return names[data_type] if data_type in names else np.dtype(data_type)
