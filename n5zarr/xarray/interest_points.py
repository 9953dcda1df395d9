"""Read and write BigStitcher's interest points as tables."""

from __future__ import annotations

import posixpath
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from zarr.errors import ContainsArrayError, ContainsGroupError

from n5zarr.arrays.creating import create_array
from n5zarr.arrays.opening import open_array, open_node
from n5zarr.container.options import require
from n5zarr.container.walk import Walk
from n5zarr.conventions.interest_points import (
    CONTAINER,
    CORRESPONDENCES,
    POINTS,
    PointList,
    base_path,
    list_of_path,
    listed_in,
    parse_id_map,
    with_lists,
)
from n5zarr.errors import (
    ErrorsAt,
    N5Error,
    N5FormatError,
    N5UnsupportedError,
    N5Warning,
)
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join
from n5zarr.storage.place import place_of
from n5zarr.store.bdv_xml import XmlFile, xml_file
from n5zarr.store.location import open_container
from n5zarr.store.missing_nodes import existing_node
from n5zarr.xarray.interest_point_tables import (
    AXES,
    LIST_COLUMNS,
    OTHER_COLUMNS,
    PAIR_COLUMNS,
    Key,
    check_tables,
    lists_to_write,
    numbers_of,
    rows_by_list,
)
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location, Place
    from n5zarr.store.n5_store import N5Store
    from n5zarr.xarray.options import StorageOptions

__all__ = ["InterestPoints", "read_interest_points", "write_interest_points"]

_BLOCK = 300_000  # points in a block, like BigStitcher
_GZIP: dict[str, JSON] = {"type": "gzip", "useZlib": False, "level": -1}  # Java's default


class InterestPoints(NamedTuple):
    """Hold the interest points of a BigStitcher project, as tables.

    Parameters
    ----------
    points : pandas.DataFrame
        A row for each point, with the columns ``timepoint``, ``setup`` and ``label`` of its list,
        its ``id`` in the list, and ``x``, ``y``, ``z`` in full-resolution elements, before any
        registration. More columns, such as ``intensities``, if the list has such datasets.
    correspondences : pandas.DataFrame
        A row for each pair of points: ``timepoint``, ``setup``, ``label`` and ``id`` of the first
        point, the same columns with ``corresponding_`` for the second point, and
        ``consensus_set``, -1 for none.
    lists : pandas.DataFrame
        A row for each list, including empty ones: ``timepoint``, ``setup``, ``label`` and
        ``parameters``, the detection parameters in the XML.
    """

    points: pd.DataFrame
    correspondences: pd.DataFrame
    lists: pd.DataFrame


def read_interest_points(
    location: Location,
    *,
    label: str | None = None,
    storage_options: StorageOptions | None = None,
    backend: Backend | None = None,
) -> InterestPoints:
    """Read the interest points of a BigStitcher project.

    Parameters
    ----------
    location : path, URL or zarr store
        The XML of the project, whichever format its images have: reads the lists that it names,
        from ``interestpoints.n5`` beside it. Or such a container: reads all lists in it.
    label : str, optional
        The label of the lists to read; all by default.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    InterestPoints
        Tables of points, correspondences and lists.

    Raises
    ------
    FileNotFoundError
        There is no list, or a list that the XML names is missing.
    N5Error
        A list is broken, or has an old format: text files, or Java objects.

    Examples
    --------
    >>> import n5zarr
    >>> found = n5zarr.read_interest_points("dataset.xml", label="beads")  # doctest: +SKIP
    >>> found.points.groupby(["timepoint", "setup"]).size()  # doctest: +SKIP
    """
    file, store = _open(place_of(location, storage_options, backend), read_only=True)
    with ErrorsAt(str(file or "")):
        lists = _lists_in(store) if file is None else listed_in(file.read())
    lists = [each for each in lists if label in (None, each.label)]
    if file is None and not lists:
        raise FileNotFoundError(
            f"{store}: expected groups tpId_0_viewSetupId_0/label, ..., got none"
        )
    points = [_read(_read_points, store, each) for each in lists]
    pairs = [_read(_read_correspondences, store, each) for each in lists]
    return InterestPoints(
        points=_joined_tables(
            points, dict.fromkeys([*LIST_COLUMNS, "id"], "i8") | dict.fromkeys(AXES, "f8")
        ),
        correspondences=_joined_tables(pairs, dict.fromkeys(PAIR_COLUMNS, "i8")),
        lists=pd.DataFrame([each[:4] for each in lists], columns=[*LIST_COLUMNS, "parameters"]),
    )


def _read(
    read: Callable[[N5Store, PointList], pd.DataFrame], store: N5Store, each: PointList
) -> pd.DataFrame:
    """Read a table of a list; errors name the list."""
    try:
        return read(store, each)
    except N5Error:
        raise
    except (ValueError, TypeError, OverflowError) as err:
        raise N5FormatError(
            f"expected a list of BigStitcher: {err}", kind="member", where=f"{store}: /{each.path}"
        ) from err


def _open(place: Place, *, read_only: bool) -> tuple[XmlFile | None, N5Store]:
    """Open the container of the points; also return the XML if the location is one."""
    file = xml_file(place)
    if file is not None:
        with ErrorsAt(str(file)):
            place = file.place_for(file.beside(posixpath.join(base_path(file.read()), CONTAINER)))
    store, path = open_container(place, read_only=read_only)
    require(not path, f"{store}: expected the XML or interestpoints.n5, got the node {path}")
    return file, store


def _lists_in(store: N5Store) -> list[PointList]:
    """Return the lists of a container, in BigStitcher's order in the XML."""
    root = existing_node(store, "", "groups tpId_0_viewSetupId_0/label, ...")
    found = Walk(store.container.nodes, store.run).run("", root)
    parents = (each.path.rpartition("/")[0] for each, _ in found if each.name == "interestpoints")
    return sorted(each for each in map(list_of_path, parents) if each is not None)


def _read_points(store: N5Store, each: PointList) -> pd.DataFrame:
    path = join(each.path, "interestpoints")
    node = store.node(path)
    where = f"{store}: /{path}"
    if node is None:
        raise FileNotFoundError(
            f"{where}: expected a list of interest points, got nothing; newer versions of "
            "BigStitcher store them in interestpoints.zarr, which is not N5"
        )
    if not isinstance(node, GroupAttributes) or node.attributes.get("type") != "list":
        kind = node.attributes.get("type") if isinstance(node, GroupAttributes) else "a dataset"
        raise N5UnsupportedError(
            f"expected interest points of the type 'list', got {kind!r}", kind="member", where=where
        )
    columns: dict[str, Any] = {}
    locations = np.empty((0, 3))
    children = dict(store.run(store.container.nodes.children(path)))
    for name in sorted(n for n, child in children.items() if isinstance(child, DatasetView)):
        values = np.asarray(open_array(store, path=join(path, name))[...])
        if name == "loc":
            locations = values.reshape(-1, values.shape[-1] or 3) if values.size else locations
        else:
            columns[name] = _signed(values) if name == "id" else values.ravel()
    columns |= dict(zip(AXES, locations.T, strict=False))
    sizes = {name: len(values) for name, values in columns.items()}
    if "id" not in columns or len(set(sizes.values())) != 1:
        message = f"expected id and loc with equal numbers of values, got {sizes or 'nothing'}"
        raise N5FormatError(message, kind="member", where=where)
    return _table(each, columns)


def _read_correspondences(store: N5Store, each: PointList) -> pd.DataFrame:
    path = join(each.path, "correspondences")
    node = store.node(path)
    if node is None:
        return pd.DataFrame()
    where = f"{store}: /{path}"
    version = node.attributes.get("correspondences") if isinstance(node, GroupAttributes) else None
    if not isinstance(node, GroupAttributes) or str(version or 1).partition(".")[0] not in (
        "1",
        "2",
    ):
        message = f"expected correspondences of version 1 or 2, got {version or 'a dataset'}"
        raise N5UnsupportedError(message, kind="version", where=where)
    with ErrorsAt(where):
        lists = parse_id_map(node.attributes.get("idMap"))
    if not lists:
        return pd.DataFrame()
    data = np.asarray(open_array(store, path=join(path, "data"))[...])
    if data.ndim != 2 or data.shape[1] not in (3, 4) or not set(data[:, 2].tolist()) <= set(lists):
        message = f"data: expected 4 x N numbers, the third in idMap, got shape {data.shape[::-1]}"
        raise N5FormatError(message, kind="member", where=where)
    others = pd.DataFrame([lists[number] for number in data[:, 2].tolist()], columns=OTHER_COLUMNS)
    columns = {
        "id": _signed(data[:, 0]),
        **{name: others[name] for name in OTHER_COLUMNS},
        "corresponding_id": _signed(data[:, 1]),
        "consensus_set": _signed(data[:, 3]) if data.shape[1] == 4 else -1,
    }
    return _table(each, columns)


def _signed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert numbers that Java stored as unsigned: the largest one is -1."""
    return values.ravel().astype(np.int64)


def _table(each: PointList, columns: Mapping[str, object]) -> pd.DataFrame:
    """Make the table of one list."""
    own = {"timepoint": each.timepoint, "setup": each.setup, "label": each.label}
    return pd.DataFrame({**own, **columns})


def _joined_tables(frames: Iterable[pd.DataFrame], empty: Mapping[str, str]) -> pd.DataFrame:
    """Join tables; without rows, make an empty table of the expected columns."""
    filled = [frame for frame in frames if len(frame)]
    if filled:
        return pd.concat(filled, ignore_index=True)
    types = {k: "str" if k.endswith("label") else v for k, v in empty.items()}
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})


def write_interest_points(  # noqa: PLR0913 - the three tables, and how they are written
    location: Location,
    points: pd.DataFrame,
    correspondences: pd.DataFrame | None = None,
    lists: pd.DataFrame | None = None,
    *,
    overwrite: bool = False,
    storage_options: StorageOptions | None = None,
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
    file, store = _open(place_of(location, storage_options, backend), read_only=False)
    xml = None if file is None else file.read()
    found = rows_by_list("points", points, [*LIST_COLUMNS, "id", "x", "y"])
    pairs = rows_by_list("correspondences", correspondences, PAIR_COLUMNS)
    with ErrorsAt(str(file or "")):
        targets = lists_to_write(found, lists, [] if xml is None else listed_in(xml))
        check_tables(found, pairs, targets)
        _ = xml and with_lists(xml, list(targets.values()))  # may raise: call it before any writing
    if not overwrite:
        _check_new(store, targets.values())
    _write(store, targets, found, pairs)
    if file is not None:
        _name_in_xml(file, list(targets.values()))


def _write(
    store: N5Store,
    targets: Mapping[Key, PointList],
    found: Mapping[Key, pd.DataFrame],
    pairs: Mapping[Key, pd.DataFrame],
) -> None:
    """Write the lists; remove all old pairs first, so that none stay beside new points."""
    try:
        for target in targets.values():
            attributes: dict[str, JSON] = {"correspondences": CORRESPONDENCES, "idMap": {}}
            _new_group(store, join(target.path, "correspondences"), attributes)
        for key, target in targets.items():
            _write_points(store, target, found.get(key))
        for key, rows in pairs.items():
            _write_correspondences(store, targets[key], rows)
    except (ContainsGroupError, ContainsArrayError) as err:
        raise FileExistsError(
            f"{store}: another program writes these lists at the same time: {err}"
        ) from err


def _name_in_xml(file: XmlFile, lists: list[PointList]) -> None:
    """Add lists to the XML; warn if BigStitcher reads points from another place."""
    file.update(lambda xml: xml and with_lists(xml, lists))
    store = file.beside(posixpath.join(base_path(file.read()), "interestpoints.zarr"))
    with suppress(FileNotFoundError):
        XmlFile.at(file.place_for(f"{store}/zarr.json")).read()
        message = f"{store}: BigStitcher reads its lists from there, not from N5"
        warnings.warn(message, N5Warning, stacklevel=3)


def _check_new(store: N5Store, targets: Iterable[PointList]) -> None:
    """Reject lists that exist."""
    names = ("interestpoints", "correspondences")
    exists = [
        each.path
        for each in targets
        if any(store.node(join(each.path, name)) is not None for name in names)
    ]
    if exists:
        raise FileExistsError(
            f"{store}: expected no lists of these names without overwrite=True, got {exists}"
        )


def _new_group(store: N5Store, path: str, attributes: Mapping[str, JSON]) -> None:
    group: Any = open_node(store, "a", path=path, delete_existing=True)
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
    _new_group(store, path, POINTS)
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
            _write_numbers(store, join(path, name), numbers_of(rows[name])[:, None], 1)


def _write_correspondences(store: N5Store, target: PointList, rows: pd.DataFrame) -> None:
    path = join(target.path, "correspondences")
    keys = list(zip(*(rows[column] for column in OTHER_COLUMNS), strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    id_map: dict[str, JSON] = {f"{t},{s},{label}": n for (t, s, label), n in numbers.items()}
    columns = [rows["id"], rows["corresponding_id"], [numbers[key] for key in keys]]
    columns.append(rows["consensus_set"])
    data = np.stack([np.asarray(column, np.int64) for column in columns], axis=1)
    _write_numbers(store, join(path, "data"), data.astype(np.uint64), 1)
    group: Any = open_node(store, "a", path=path)
    group.attrs.update({"idMap": id_map})  # last: readers need it to read the data
