"""Rows of tables: take back those that only some columns hold.

hdmf appends a row to a stored table at once, to one column after the other. If a column refuses its
part, the others are longer, and hdmf reads the table no more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hdmf.common import DynamicTable, VectorData
from hdmf.utils import get_data_shape
from zarr import Array

from n5zarr._zarr import wait_for_loop
from n5zarr.container.options import require
from n5zarr.hdmf.file_contents import stored


def tables_in(container: Any) -> list[DynamicTable]:
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
    children = [each for each in table.children if isinstance(each, VectorData)]
    # a row that is refused may leave a column that the table does not list, but is written
    lengths = _lengths(table, *(each for each in children if each.name not in listed))
    require(
        len({*lengths.values()}) < 2,
        f"table {table.name!r}: expected columns of one length, got {lengths}, as of a row that "
        "was refused; nothing is written: open the file again, or make the table anew",
        where,
        kind="member",
    )


def _lengths(table: DynamicTable, *others: VectorData) -> dict[str, int]:
    """Return the number of rows of each column of a table, unless an iterator will tell."""
    columns = (table.id, *map(table.get, table.colnames), *others)
    shapes = {column.name: get_data_shape(column.data) or (None,) for column in columns}
    return {name: shape[0] for name, shape in shapes.items() if shape[0] is not None}


class StoredRows:
    """Let a stored table take back all of a row that one of its columns refuses.

    Parameters
    ----------
    table : hdmf.common.DynamicTable
        The table; the rows of tables that are aligned to it are parts of its rows.
    """

    def __init__(self, table: DynamicTable) -> None:
        self._id = table.id
        self._parts = [table, *getattr(table, "category_tables", {}).values()]
        self._before: list[tuple[Any, tuple[int, ...]]] = []  # arrays with their shapes
        columns = [column for part in self._parts for column in (part.id, *part.columns)]
        self._arrays: list[Any] = [each for each in map(stored, columns) if isinstance(each, Array)]
        for column in columns:
            for name in ("append", "add_row", "add_vector"):
                if hasattr(column, name):
                    setattr(column, name, partial(self._append, getattr(column, name)))

    def settle(self) -> None:
        """Take back what an interruption between two columns has left."""
        if not self._is_even:
            self._take_back()

    @property
    def _is_even(self) -> bool:
        return len({n for part in self._parts for n in _lengths(part).values()}) < 2

    def _take_back(self) -> None:
        wait_for_loop()
        for array, shape in self._before:
            array.resize(shape)

    def _append(self, append: Callable[..., object], *args: object, **options: object) -> object:
        if getattr(append, "__self__", None) is self._id:  # a row begins
            self.settle()
        if self._is_even:
            self._before = [(array, array.shape) for array in self._arrays]
        try:
            return append(*args, **options)
        except BaseException as err:
            self._take_back()
            if not getattr(err, "__notes__", ()):  # a row of ragged columns is refused twice
                column = getattr(getattr(append, "__self__", None), "name", "")
                err.add_note(
                    f"table {self._parts[0].name!r}: nothing of this row is kept, as column "
                    f"{column!r} refused its part"
                )
            raise
