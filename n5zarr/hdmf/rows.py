"""Rows of tables: take back those that only some columns hold.

hdmf appends a row to a stored table at once, to one column after the other. If a column refuses its
part, the others are longer, and hdmf reads the table no more.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import zarr
from hdmf.common import DynamicTable, VectorData
from hdmf.utils import get_data_shape

from n5zarr._zarr import wait_for_loop
from n5zarr.container.options import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["check_rows", "guard_rows", "tables_in"]


def tables_in(container: Any) -> list[DynamicTable]:  # noqa: ANN401 - hdmf has no types
    """Return the tables in a container."""
    return [each for each in container.all_children() if isinstance(each, DynamicTable)]


def check_rows(table: DynamicTable, where: str) -> None:
    """Raise if columns of a table hold different numbers of rows, which hdmf would not read.

    Raises
    ------
    N5UnrepresentableError
        They do (``kind="member"``).
    """
    listed = {column.name for column in table.columns}
    columns = [each for each in table.children if isinstance(each, VectorData)]
    unlisted = [each for each in columns if each.name not in listed]  # by a row that was refused
    lengths = _lengths(table, *unlisted)
    require(
        len({*lengths.values()}) < 2,
        f"table {table.name!r}: expected columns of one length, got {lengths}, as in a row that was "
        "refused; open the file again, or make the table anew",
        where,
        kind="member",
    )


def _lengths(table: DynamicTable, *others: VectorData) -> dict[str, int]:
    """Return the number of rows of each column of a table, unless an iterator will tell."""
    columns = (table.id, *map(table.get, table.colnames), *others)
    shapes = {column.name: get_data_shape(column.data) or (None,) for column in columns}
    return {name: shape[0] for name, shape in shapes.items() if shape[0] is not None}


def guard_rows(table: DynamicTable) -> Callable[[], None]:
    """Let a stored table take back all of a row that one of its columns refuses.

    Returns
    -------
    callable
        Takes back what an interruption between two columns has left.
    """
    parts = [table, *getattr(table, "category_tables", {}).values()]
    columns = [column for part in parts for column in (part.id, *part.columns)]
    arrays = [getattr(column.data, "dataset", column.data) for column in columns]
    before: list[tuple[Any, tuple[int, ...]]] = []

    def take_back() -> None:
        wait_for_loop()
        for array, shape in before:
            array.resize(shape)

    def is_even() -> bool:
        return len({n for part in parts for n in _lengths(part).values()}) < 2

    def settle() -> None:
        if not is_even():
            take_back()

    def guarded(append: Callable[..., object], *args: object, **options: object) -> object:
        if getattr(append, "__self__", None) is table.id:  # a row begins
            settle()
        if is_even():
            before[:] = [(each, each.shape) for each in arrays if isinstance(each, zarr.Array)]
        try:
            return append(*args, **options)
        except BaseException:
            take_back()
            raise

    for column in columns:
        for name in ("append", "add_row", "add_vector"):
            if hasattr(column, name):
                setattr(column, name, partial(guarded, getattr(column, name)))
    return settle
