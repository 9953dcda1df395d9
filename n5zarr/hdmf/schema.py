"""Find the names of axes, and the columns of tables, in the schema of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hdmf.build import DatasetBuilder, GroupBuilder
from hdmf.validate.validator import check_shape

from n5zarr.hdmf.file_contents import children, shape_of, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hdmf.build import Builder, BuildManager
    from hdmf.spec import BaseStorageSpec, DatasetSpec, GroupSpec

__all__ = ["dimension_names", "is_column"]

# types of columns; pynwb creates them in HDF5 so that they can grow
_COLUMNS = ("VectorData", "ElementIdentifiers")


def dimension_names(
    manager: BuildManager, group: GroupBuilder, path: str = "", spec: GroupSpec | None = None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names that the schema gives to the axes of datasets.

    Parameters
    ----------
    manager : hdmf.build.BuildManager
        With the namespaces of the file.
    group : hdmf.build.GroupBuilder
        The root of the file, or a group in it.
    path : str, optional
        Of the group; empty for the root.
    spec : hdmf.spec.GroupSpec, optional
        What the group above says of a group without a type.

    Yields
    ------
    path : str
        Of a dataset.
    names : tuple of str
        In C order.
    """
    spec = _type_spec(manager, group) or spec
    for name, child in children(group).items():
        if isinstance(child, GroupBuilder):
            described = spec and spec.get_group(name)
            yield from dimension_names(manager, child, f"{path}/{name}", described)
        elif isinstance(child, DatasetBuilder):
            # the group may describe its dataset in more detail than the type does
            for described in (spec and spec.get_dataset(name), _type_spec(manager, child)):
                axis_names = described and _matching(shape_of(stored(child)), described)
                if axis_names:
                    yield f"{path}/{name}", axis_names
                    break


def is_column(manager: BuildManager, builder: DatasetBuilder) -> bool:
    """Return whether a dataset is a column of a table, which may grow."""
    if _type_spec(manager, builder) is None:
        return False
    return any(manager.is_sub_data_type(builder, name) for name in _COLUMNS)


def _type_spec(manager: BuildManager, builder: Builder) -> BaseStorageSpec | None:
    """Return the specification of a builder's type; None if it has no type or an unknown one."""
    namespace, name = manager.get_builder_ns(builder), manager.get_builder_dt(builder)
    try:
        return manager.namespace_catalog.get_spec(namespace, name) if name else None
    except (KeyError, ValueError):
        return None


def _matching(shape: tuple[int, ...], spec: DatasetSpec) -> tuple[str, ...] | None:
    """Return the names of the most specific shape in a specification that fits."""
    if not spec.shape or not spec.dims:
        return None
    is_choice = isinstance(spec.shape[0], list | tuple)
    shapes, names = (spec.shape, spec.dims) if is_choice else ([spec.shape], [spec.dims])
    fitting = [
        (allowed.count(None), i)
        for i, allowed in enumerate(map(list, shapes))
        if check_shape(tuple(allowed), shape)
    ]
    return tuple(names[min(fitting)[1]]) if fitting else None
