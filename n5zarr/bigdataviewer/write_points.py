"""``n5zarr.write_interest_points``: check tables of interest points, and write them as lists.

Everything is checked before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from zarr.errors import ContainsArrayError, ContainsGroupError

from n5zarr.arrays.creating import create_array
from n5zarr.arrays.opening import open_node
from n5zarr.bigdataviewer.point_lists import (
    CORRESPONDENCES,
    POINTS,
    ListKey,
    PointList,
    listed_in,
    path_of,
    with_lists,
)
from n5zarr.bigdataviewer.stored_points import (
    AXES,
    LIST_COLUMNS,
    OTHER_COLUMNS,
    PAIR_COLUMNS,
    PointsInZarr,
    open_points,
    packed_beside,
)
from n5zarr.container.options import require
from n5zarr.errors import ErrorsAt
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.n5_store import N5Store

_BLOCK = 300_000  # points in a block, like BigStitcher
_GZIP: dict[str, JSON] = {"type": "gzip", "useZlib": False, "level": -1}  # Java's default


def write_interest_points(  # noqa: PLR0913 - the three tables, and how they are written
    location: Location,
    points: pd.DataFrame,
    correspondences: pd.DataFrame | None = None,
    lists: pd.DataFrame | None = None,
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> None:
    """Write interest points for BigStitcher.

    The result of :func:`read_interest_points` is written unchanged: ``write_interest_points(place,
    *found)``. Checks everything before it writes; lists that are not in the tables stay.

    Parameters
    ----------
    location : path, URL or zarr store
        The XML of the project: lists are written into ``interestpoints.n5`` beside it, and added to
        the XML if it does not name them; the rest of the XML stays. Or such a container, which is
        created if it does not exist; BigStitcher reads its lists when an XML names them.
    points, correspondences, lists : pandas.DataFrame
        As in :class:`InterestPoints`; without ``lists``, the lists of the points. Other columns of
        points become datasets beside ``loc``.
    overwrite : bool, optional
        Whether to replace existing lists, with their correspondences.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    FileExistsError
        A list exists, and ``overwrite`` is false.
    N5UnrepresentableError
        A column is missing or has a wrong type, an id is not unique in its list or not a Java
        ``int``, or correspondences have no points (``kind="option"``).

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr, pandas as pd
    >>> where = pathlib.Path(tempfile.mkdtemp(), "interestpoints.n5")
    >>> beads = {"timepoint": 0, "setup": 3, "label": "beads", "id": [0, 1]}
    >>> points = pd.DataFrame({**beads, "x": [1.5, 2], "y": [3.0, 4], "z": [5, 6.25]})
    >>> n5zarr.write_interest_points(where, points)
    >>> n5zarr.read_interest_points(where).points["z"].tolist()
    [5.0, 6.25]
    """
    file, store = open_points(place_of(location, storage_options, backend), read_only=False)
    xml = None if file is None else file.read()
    found = _rows_by_list("points", points, [*LIST_COLUMNS, "id", "x", "y"])
    pairs = _rows_by_list("correspondences", correspondences, PAIR_COLUMNS)
    with ErrorsAt(str(file or "")):
        targets = _lists_to_write(found, lists, [] if xml is None else listed_in(xml))
        _check_tables(found, pairs, targets)
        named = list(targets.values())
        _ = xml and with_lists(xml, named)  # may raise: call it before any writing
    _check_new(store, targets.values(), packed_beside(file), overwrite=overwrite)
    _write(store, targets, found, pairs)
    if file is not None:
        file.update(lambda now: now and with_lists(now, named))


def _write(
    store: N5Store,
    targets: Mapping[ListKey, PointList],
    found: Mapping[ListKey, pd.DataFrame],
    pairs: Mapping[ListKey, pd.DataFrame],
) -> None:
    """Write the lists; remove all old pairs first, so that none stay beside new points."""
    attributes: dict[str, JSON] = {"correspondences": CORRESPONDENCES, "idMap": {}}
    try:
        for target in targets.values():
            path = join(target.path, "correspondences")
            _write_group(store, path, attributes, delete_existing=True)
        for key, target in targets.items():
            _write_points(store, target, found.get(key))
        for key, rows in pairs.items():
            _write_correspondences(store, targets[key], rows)
    except (ContainsGroupError, ContainsArrayError) as err:
        raise FileExistsError(
            f"{store}: another program writes these lists at the same time: {err}"
        ) from err


def _check_new(
    store: N5Store, targets: Iterable[PointList], packed: PointsInZarr | None, *, overwrite: bool
) -> None:
    """Reject lists that exist, and lists that BigStitcher would read from another place."""
    there = [each.path for each in targets if packed is not None and packed.has(each)]
    require(
        not there,
        f"{packed}: expected new lists, as BigStitcher reads {there} from there and not from N5; "
        "choose other labels",
    )
    names = ("interestpoints", "correspondences")
    exists = [
        each.path
        for each in targets
        if any(store.node(join(each.path, name)) is not None for name in names)
    ]
    if exists and not overwrite:
        raise FileExistsError(
            f"{store}: expected no lists of these names without overwrite=True, got {exists}"
        )


def _write_group(
    store: N5Store, path: str, attributes: Mapping[str, JSON], *, delete_existing: bool = False
) -> None:
    group: Any = open_node(store, "a", path=path, delete_existing=delete_existing)
    group.attrs.update(attributes)


def _write_numbers(store: N5Store, path: str, values: np.ndarray[Any, Any], width: int) -> None:
    """Write numbers of shape (N, D) as a dataset D x N with blocks of ``width`` x 300000."""
    array = create_array(
        store,
        path=path,
        shape=values.shape,
        dtype=values.dtype,
        chunks=(_BLOCK, width),
        compression=_GZIP,
    )
    array.with_config({"write_empty_chunks": True})[...] = values


def _write_points(store: N5Store, target: PointList, rows: pd.DataFrame | None) -> None:
    path = join(target.path, "interestpoints")
    _write_group(store, path, POINTS, delete_existing=True)
    if rows is None:
        for name, dtype in (("id", "u8"), ("loc", "f8")):
            place = join(path, name)
            create_array(store, path=place, shape=(0,), dtype=dtype, chunks=(1,), compression=_GZIP)
        return
    axes = [axis for axis in AXES if axis in rows]
    ids = rows["id"].to_numpy(np.int64).astype(np.uint64)
    _write_numbers(store, join(path, "id"), ids[:, None], 1)
    _write_numbers(store, join(path, "loc"), rows[axes].to_numpy(np.float64), len(axes))
    for name in rows.columns:
        if name not in (*LIST_COLUMNS, "id", *axes) and not rows[name].isna().all():
            _write_numbers(store, join(path, name), _numbers_of(rows[name])[:, None], 1)


def _write_correspondences(store: N5Store, target: PointList, rows: pd.DataFrame) -> None:
    path = join(target.path, "correspondences")
    keys = list(zip(*(rows[column] for column in OTHER_COLUMNS), strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    id_map: dict[str, JSON] = {f"{t},{s},{label}": n for (t, s, label), n in numbers.items()}
    others = [numbers[key] for key in keys]
    columns = [rows["id"], rows["corresponding_id"], others, rows["consensus_set"]]
    data = np.stack([np.asarray(column, np.int64) for column in columns], axis=1)
    _write_numbers(store, join(path, "data"), data.astype(np.uint64), 1)
    _write_group(store, path, {"idMap": id_map})  # last: readers need it to read the data


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


def _numbers_of(column: pd.Series) -> np.ndarray[Any, Any]:
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


def _rows_by_list(
    name: str, table: pd.DataFrame | None, columns: list[str]
) -> dict[ListKey, pd.DataFrame]:
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
    groups: Any = table.groupby(LIST_COLUMNS, sort=False, observed=True)
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


def _lists_to_write(
    found: Iterable[ListKey], lists: pd.DataFrame | None, known: Iterable[PointList]
) -> dict[ListKey, PointList]:
    """Return the lists to write, with the paths in the XML or BigStitcher's default paths.

    Raises
    ------
    N5UnrepresentableError
        A list occurs twice, or two have the same path (``kind="option"``).
    """
    listed = {} if lists is None else _rows_by_list("lists", lists, LIST_COLUMNS)
    paths = {(each.timepoint, each.setup, each.label): each.path for each in known}
    targets: dict[ListKey, PointList] = {}
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


def _check_tables(
    found: Mapping[ListKey, pd.DataFrame],
    pairs: Mapping[ListKey, pd.DataFrame],
    targets: Mapping[ListKey, PointList],
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
