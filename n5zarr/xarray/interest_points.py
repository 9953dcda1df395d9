"""Read and write BigStitcher's interest points as tables."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from zarr.errors import ContainsArrayError, ContainsGroupError

from n5zarr.arrays.creating import create_array
from n5zarr.arrays.opening import open_node
from n5zarr.container.options import require
from n5zarr.conventions.interest_points import (
    CONTAINER,
    CORRESPONDENCES,
    PACKED_CONTAINER,
    POINTS,
    PointList,
    base_path,
    listed_in,
    with_lists,
)
from n5zarr.errors import ErrorsAt, N5Error, N5FormatError
from n5zarr.format.path import join
from n5zarr.storage.place import place_of
from n5zarr.store.bdv_xml import XmlFile, xml_file
from n5zarr.store.location import open_container
from n5zarr.store.n5_store import N5Store
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
from n5zarr.xarray.stored_points import PointsInN5, PointsInZarr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location, Place
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
        registration. More columns, such as ``intensities`` in N5 or ``intensity`` in Zarr, if a
        list has them.
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
        from ``interestpoints.zarr`` beside it, or from ``interestpoints.n5`` those that are not
        there, as BigStitcher does. Or one of both: reads all lists in it.
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
        A list is broken, or has an old format: text files, or Java objects; or BigStitcher has
        lists of ``interestpoints.zarr`` in files of its own (``kind="foreign"``).

    Examples
    --------
    >>> import n5zarr
    >>> found = n5zarr.read_interest_points("dataset.xml", label="beads")  # doctest: +SKIP
    >>> found.points.groupby(["timepoint", "setup"]).size()  # doctest: +SKIP
    """
    file, sources = _sources(place_of(location, storage_options, backend))
    with ErrorsAt(str(file or "")):
        lists = sources[0].lists() if file is None else listed_in(file.read())
    lists = [each for each in lists if label in (None, each.label)]
    if file is None and not lists:
        raise FileNotFoundError(f"{sources[0]}: expected lists of interest points, got none")
    points = [_read(sources, "points", each) for each in lists]
    missing = [each.path for each, table in zip(lists, points, strict=True) if table is None]
    if missing:
        places = " or ".join(map(str, sources))
        raise FileNotFoundError(
            f"{places}: expected a list of interest points at {missing[0]}, got nothing"
        )
    pairs = [_read(sources, "correspondences", each) for each in lists]
    return InterestPoints(
        points=_joined_tables(
            points, dict.fromkeys([*LIST_COLUMNS, "id"], "i8") | dict.fromkeys(AXES, "f8")
        ),
        correspondences=_joined_tables(pairs, dict.fromkeys(PAIR_COLUMNS, "i8")),
        lists=pd.DataFrame([each[:4] for each in lists], columns=[*LIST_COLUMNS, "parameters"]),
    )


def _read(
    sources: Sequence[PointsInZarr | PointsInN5],
    what: Literal["points", "correspondences"],
    each: PointList,
) -> pd.DataFrame | None:
    """Read a table of a list from the first place that has it; errors name the list."""
    for source in sources:
        try:
            table: pd.DataFrame | None = getattr(source, what)(each)
        except N5Error:
            raise
        except (ValueError, TypeError, OverflowError) as err:
            message = f"expected a list of BigStitcher: {err}"
            raise N5FormatError(message, kind="member", where=f"{source}: /{each.path}") from err
        if table is not None:
            return table
    return None


def _sources(place: Place) -> tuple[XmlFile | None, list[PointsInZarr | PointsInN5]]:
    """Open the places that may have lists, as BigStitcher looks for them: Zarr, then N5.

    Also return the XML if the location is one.
    """
    file = xml_file(place)
    packed = _packed_beside(file)
    if file is None and not place.path and not isinstance(place.location, N5Store):
        packed = PointsInZarr.at(place)
    if file is None and packed is not None:
        return None, [packed]
    in_n5 = PointsInN5(_open(place, read_only=True)[1])
    return file, [in_n5] if packed is None else [packed, in_n5]


def _packed_beside(file: XmlFile | None) -> PointsInZarr | None:
    """Open the lists in Zarr beside the XML; None if there are none."""
    if file is None:
        return None
    with ErrorsAt(str(file)):
        location = file.beside(posixpath.join(base_path(file.read()), PACKED_CONTAINER))
        return PointsInZarr.at(file.place_for(location))


def _open(place: Place, *, read_only: bool) -> tuple[XmlFile | None, N5Store]:
    """Open the container of the points in N5; also return the XML if the location is one."""
    file = xml_file(place)
    if file is not None:
        with ErrorsAt(str(file)):
            place = file.place_for(file.beside(posixpath.join(base_path(file.read()), CONTAINER)))
    store, path = open_container(place, read_only=read_only)
    require(not path, f"{store}: expected the XML, interestpoints.n5 or .zarr, got the node {path}")
    return file, store


def _joined_tables(frames: Iterable[pd.DataFrame | None], empty: Mapping[str, str]) -> pd.DataFrame:
    """Join tables; without rows, make an empty table of the expected columns."""
    filled = [frame for frame in frames if frame is not None and len(frame)]
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
        named = list(targets.values())
        _ = xml and with_lists(xml, named)  # may raise: call it before any writing
    _check_new(store, targets.values(), _packed_beside(file), overwrite=overwrite)
    _write(store, targets, found, pairs)
    if file is not None:
        file.update(lambda now: now and with_lists(now, named))


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
