"""Check tables of interest points before anything is written, and split them into lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from n5zarr.container.options import require
from n5zarr.conventions.interest_points import PointList, path_of
from n5zarr.format.path import normalize_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "AXES",
    "LIST_COLUMNS",
    "OTHER_COLUMNS",
    "PAIR_COLUMNS",
    "Key",
    "check_tables",
    "lists_to_write",
    "numbers_of",
    "rows_by_list",
    "table_of",
]

type Key = tuple[int, int, str]
"""Time point, setup and label of a list."""

LIST_COLUMNS = ["timepoint", "setup", "label"]
OTHER_COLUMNS = ["corresponding_timepoint", "corresponding_setup", "corresponding_label"]
PAIR_COLUMNS = [*LIST_COLUMNS, "id", *OTHER_COLUMNS, "corresponding_id", "consensus_set"]
AXES = ["x", "y", "z"]

_ID = np.iinfo(np.int32)  # an int in Java
_LONG = np.iinfo(np.int64)
_VIEW = (0, 999_999_999)  # digits that paths and idMap may have
_RANGES = {"id": (int(_ID.min), int(_ID.max)), "consensus_set": (int(_LONG.min), int(_LONG.max))}
_NUMBERS = {np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)}
_NUMBERS |= {np.dtype("f4"), np.dtype("f8")}
_TAKEN = {".", "..", "interestpoints", "correspondences", "attributes.json"}
_LONGEST = 255  # bytes of a name in most file systems
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\]|\s\Z")


def table_of(each: PointList, columns: Mapping[str, object]) -> pd.DataFrame:
    """Make the table of one list."""
    own = {"timepoint": each.timepoint, "setup": each.setup, "label": each.label}
    return pd.DataFrame({**own, **columns})


def numbers_of(column: pd.Series) -> np.ndarray[Any, Any]:
    """Return a column as numpy's numbers, even if its type is pandas' own."""
    dtype: Any = column.dtype
    return column.to_numpy(getattr(dtype, "numpy_dtype", dtype))


def _is_name(name: object) -> bool:
    """Return whether a name is valid for a node, a file system and XML."""
    return (
        isinstance(name, str)
        and bool(name)
        and "/" not in name
        and name not in _TAKEN
        and not _NO_NAME.search(name)
        and not _NO_XML.search(name)
        and len(name.encode()) <= _LONGEST
    )


def rows_by_list(
    name: str, table: pd.DataFrame | None, columns: list[str]
) -> dict[Key, pd.DataFrame]:
    """Return the rows of each list, in their order.

    Parameters
    ----------
    name : str
        Name of the table, for messages.
    table : DataFrame or None
        The table.
    columns : list of str
        Required columns: labels, x, y, and integers.

    Raises
    ------
    N5UnrepresentableError
        Columns are missing or have values that BigStitcher cannot read (``kind="option"``).
    """
    if table is None or not len(table):
        return {}
    twice = sorted(map(str, table.columns[table.columns.duplicated()]))
    require(not twice, f"{name}: expected each column once, got {', '.join(twice)} twice")
    missing = [column for column in columns if column not in table]
    integers = [c for c in columns if c not in AXES and not c.endswith("label")]
    wrong = [c for c in integers if c in table and table[c].dtype.kind not in "iu"]
    require(
        not missing and not wrong,
        f"{name}: expected columns {', '.join(columns)}, numbers as integers, "
        f"got {', '.join(f'{c} ({table[c].dtype})' for c in table)}",
    )
    for column in integers:
        _check_integers(name, table[column])
    labels = [column for column in columns if column.endswith("label")]
    require(
        all(isinstance(each, str) and each for c in labels for each in table[c]),
        f"{name}: expected text in {' and '.join(labels)} in each row",
    )
    for label in (label for column in labels for label in table[column].unique()):
        require(
            all(map(_is_name, label.split("/"))),
            f"{name}: expected a label that is a path of names, got {label!r}: without backslash, "
            "control character, space at the end, '.', '..', 'interestpoints', "
            "'correspondences', empty or longer than 255 bytes",
        )
    by_list = table.groupby(LIST_COLUMNS, sort=False, observed=True)
    groups: Iterable[tuple[Any, pd.DataFrame]] = by_list
    return {(int(key[0]), int(key[1]), key[2]): rows for key, rows in groups}


def _check_integers(name: str, column: pd.Series) -> None:
    """Reject rows without number, and numbers that Java cannot read."""
    require(
        not column.isna().any(),
        f"{name}: expected an integer in {column.name} in each row, got none in some",
    )
    low, high = _RANGES.get(str(column.name).removeprefix("corresponding_"), _VIEW)
    what = "ids that are unique and" if column.name == "id" else f"{column.name}"
    require(
        int(column.min()) >= low and int(column.max()) <= high,
        f"{name}: expected {what} between {low} and {high}, got {column.min()} to {column.max()}",
    )


def lists_to_write(
    found: Iterable[Key], lists: pd.DataFrame | None, known: Iterable[PointList]
) -> dict[Key, PointList]:
    """Return the lists to write, with the paths in the XML or BigStitcher's default paths.

    Raises
    ------
    N5UnrepresentableError
        A list occurs twice, or two have the same path (``kind="option"``).
    """
    listed = {} if lists is None else rows_by_list("lists", lists, LIST_COLUMNS)
    paths = {(each.timepoint, each.setup, each.label): each.path for each in known}
    targets: dict[Key, PointList] = {}
    for key in dict.fromkeys([*listed, *found]):
        row = listed.get(key)
        n_rows = 1 if row is None else len(row)
        require(n_rows == 1, f"lists: expected each list once, got {path_of(*key)} {n_rows} times")
        given: Any = None if row is None or "parameters" not in row else row["parameters"].iloc[0]
        parameters = "" if given is None or pd.isna(given) else str(given)
        require(
            not _NO_XML.search(parameters),
            f"lists: {path_of(*key)}: expected parameters that XML can hold, got {parameters!r}",
        )
        targets[key] = PointList(*key, parameters, paths.get(key) or path_of(*key))
    places = paths | {key: target.path for key, target in targets.items()}
    for key, target in targets.items():
        same = [other for other, path in places.items() if path == target.path and other != key]
        is_inside = not all(map(_is_name, normalize_path(target.path).split("/")))
        require(
            not same and not is_inside,
            f"{path_of(*key)}: expected its own path in the XML, got {target.path!r}",
        )
    return targets


def check_tables(
    found: Mapping[Key, pd.DataFrame],
    pairs: Mapping[Key, pd.DataFrame],
    targets: Mapping[Key, PointList],
) -> None:
    """Reject tables that BigStitcher cannot read.

    Raises
    ------
    N5UnrepresentableError
        Ids are not unique, columns do not hold numbers, or correspondences lack points
        (``kind="option"``).
    """
    for key, rows in found.items():
        where = targets[key].path
        require(
            rows["id"].is_unique,
            f"{where}: expected ids that are unique and between {_ID.min} and {_ID.max}",
        )
        named = (*LIST_COLUMNS, "id")
        others = [c for c in rows if c not in named and not _can_be_dataset(rows, c)]
        require(
            not others,
            f"{where}: expected columns of numbers beside {', '.join(LIST_COLUMNS)}, got {others}; "
            "their names are those of datasets beside loc",
        )
    for key, rows in pairs.items():
        own = set(found[key]["id"]) if key in found else set()
        require(
            set(rows["id"]) <= own,
            f"{path_of(*key)}: expected the points of all correspondences in the table",
        )


def _can_be_dataset(rows: pd.DataFrame, name: object) -> bool:
    """Return whether a column can be an N5 dataset: valid name and type, a number in each row."""
    if not _is_name(name) or name == "loc":
        return False
    column: pd.Series = rows[name]
    dtype: Any = column.dtype
    if name not in AXES and column.isna().all():
        return True  # a column of other lists in the table
    is_own = not isinstance(dtype, np.dtype)  # pandas' own type, whose rows may lack a number
    if getattr(dtype, "numpy_dtype", dtype) not in _NUMBERS and name not in AXES:
        return False
    return dtype.kind in "iuf" and not (is_own and bool(column.isna().any()))
