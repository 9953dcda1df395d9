"""``n5zarr.read_interest_points``: read ``interestpoints.n5`` and ``interestpoints.zarr``."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import zarr
from zarr.storage import StorePath
from zarr.types import AnyArray

from n5zarr.arrays.opening import open_array
from n5zarr.arrays.placing import read_on_host
from n5zarr.bigdataviewer.point_lists import (
    CONTAINER,
    NO_VALUE,
    PACKED_CONTAINER,
    STAGING,
    ListKey,
    OtherList,
    PackedRoot,
    PointList,
    base_path,
    list_of_path,
    listed_in,
    parse_entries,
    parse_id_map,
    parse_root,
    parse_views,
    path_of,
)
from n5zarr.bigdataviewer.project import XmlFile, xml_file
from n5zarr.container.options import require
from n5zarr.container.walk import Walk
from n5zarr.errors import ErrorsAt, N5Error, N5FormatError, N5UnsupportedError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.order import to_n5
from n5zarr.format.path import join
from n5zarr.storage.interface import Storage
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Backend, Location, Place, place_of
from n5zarr.storage.requests import List, read_key, request_each
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

LIST_COLUMNS = ["timepoint", "setup", "label"]
OTHER_COLUMNS = ["corresponding_timepoint", "corresponding_setup", "corresponding_label"]
PAIR_COLUMNS = [*LIST_COLUMNS, "id", *OTHER_COLUMNS, "corresponding_id", "consensus_set"]
AXES = ["x", "y", "z"]
_KEPT = 1 << 27  # bytes of chunks of an array: several lists share a chunk


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
    storage_options: Mapping[str, object] | None = None,
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
    """Open the XML, if the location is one, and what may have lists, Zarr first."""
    file = xml_file(place)
    packed = packed_beside(file)
    if file is None and not place.path and not isinstance(place.location, N5Store):
        packed = PointsInZarr.at(place)
    if file is None and packed is not None:
        return None, [packed]
    in_n5 = PointsInN5(open_points(place, read_only=True)[1])
    return file, [in_n5] if packed is None else [packed, in_n5]


def packed_beside(file: XmlFile | None) -> PointsInZarr | None:
    """Open the lists in Zarr beside the XML; None if there are none."""
    if file is None:
        return None
    with ErrorsAt(str(file)):
        location = file.beside(posixpath.join(base_path(file.read()), PACKED_CONTAINER))
        return PointsInZarr.at(file.place_for(location))


def open_points(place: Place, *, read_only: bool) -> tuple[XmlFile | None, N5Store]:
    """Open the container of the points in N5; also return the XML if the location is one."""
    file = xml_file(place)
    if file is not None:
        with ErrorsAt(str(file)):
            place = file.place_for(file.beside(posixpath.join(base_path(file.read()), CONTAINER)))
    store, path = open_container(place, writes=not read_only)
    require(not path, f"{store}: expected the XML, interestpoints.n5 or .zarr, got the node {path}")
    return file, store


def _joined_tables(frames: Iterable[pd.DataFrame | None], empty: Mapping[str, str]) -> pd.DataFrame:
    """Join tables; without rows, make an empty table of the expected columns."""
    filled = [frame for frame in frames if frame is not None and len(frame)]
    if filled:
        return pd.concat(filled, ignore_index=True)
    types = {k: "str" if k.endswith("label") else v for k, v in empty.items()}
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})


class PointsInZarr:
    """The lists in a hierarchy of Zarr, and what the attributes of its root say of them."""

    def __init__(self, storage: Storage, root: PackedRoot) -> None:
        self._storage = storage
        self._root = root

    def __str__(self) -> str:
        return str(self._storage)

    @classmethod
    def at(cls, place: Place) -> PointsInZarr | None:
        """Open the lists at a place; None if it holds none.

        Raises
        ------
        N5FormatError
            The document is damaged (``kind="member"``).
        N5UnsupportedError
            The version is unknown (``kind="version"``), or lists are in files of BigStitcher's own
            (``kind="foreign"``).
        """
        storage = open_storage(place, read_only=True)
        document = storage.run(read_key("zarr.json"))
        if document is None:
            return None
        listed = storage.run(request_each([List(STAGING, few=True)]))[0] or []  # may list none
        staged = [entry.name for entry in listed if entry.name.endswith(".stage")]
        if staged:
            raise N5UnsupportedError(
                f"{storage}: {STAGING}: expected no files, got {min(staged)}: lists that "
                "BigStitcher has not moved into its arrays yet; open the project in BigStitcher "
                "and save it",
                kind="foreign",
            )
        with ErrorsAt(f"{storage}: zarr.json"):
            try:
                attributes = dict(json.loads(document).get("attributes", {}))
            except (ValueError, TypeError, AttributeError) as err:
                message = f"expected the document of {PACKED_CONTAINER}, got {err}"
                raise N5FormatError(message, kind="member") from err
            has_lists = "interestpoints" in attributes
            return cls(storage, parse_root(attributes)) if has_lists else None

    def lists(self) -> list[PointList]:
        """Return all lists with points, in BigStitcher's order in the XML."""
        return sorted(PointList(*key, "", path_of(*key)) for key in self._entries)

    def has(self, each: PointList) -> bool:
        """Whether BigStitcher reads a list from here, and not from N5."""
        key = _key(each)
        return key in self._entries or key in self._views

    def points(self, each: PointList) -> pd.DataFrame | None:
        """Read the points of a list; None if it is not there."""
        span = self._entries.get(_key(each))
        if span is None:
            return None
        values = self._loc[span]
        columns = dict(zip([*AXES, *self._root.columns], values.T, strict=True))
        used = {k: v for k, v in columns.items() if k in AXES or (v != NO_VALUE).any()}
        return _table_of(each, {"id": self._id[span][:, 0].astype("i8"), **used})

    def correspondences(self, each: PointList) -> pd.DataFrame | None:
        """Read the correspondences of a list; None if it is not there."""
        others = self._views.get(_key(each))
        if others is None:
            return None
        tables = []
        for other in (other for other in others if other.rows):
            rows = self._data[other.rows].astype("i8")
            own, corresponding = (1, 0) if other.is_swapped else (0, 1)
            columns = {
                "id": rows[:, own],
                **dict(zip(OTHER_COLUMNS, other.key, strict=True)),
                "corresponding_id": rows[:, corresponding],
                "consensus_set": rows[:, 2],
            }
            tables.append(_table_of(each, columns))
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    @cached_property
    def _entries(self) -> Mapping[ListKey, range]:
        rows = self._table("entries", 5)
        with ErrorsAt(str(self)):
            return parse_entries(rows, self._root.labels, min(len(self._loc), len(self._id)))

    @cached_property
    def _views(self) -> Mapping[ListKey, list[OtherList]]:
        rows, pairs = self._table("views", 5), self._table("pairs", 6)
        with ErrorsAt(str(self)):
            return parse_views(rows, pairs, self._root.labels, len(self._data))

    @cached_property
    def _loc(self) -> _Rows:
        return self._rows(join(self._root.points, "loc"), len(AXES) + len(self._root.columns), "f8")

    @cached_property
    def _id(self) -> _Rows:
        return self._rows(join(self._root.points, "id"), 1, "i4")

    @cached_property
    def _data(self) -> _Rows:
        return self._rows(join(self._root.correspondences, "data"), 3, "i4")

    def _table(self, name: str, width: int) -> list[list[int]]:
        path = join(self._root.tables, name)
        found: list[list[int]] = read_on_host(self._rows(path, width, "i8").array).tolist()
        return found

    def _rows(self, path: str, width: int, dtype: str) -> _Rows:
        """Open the rows of an array."""
        where = f"{self}: /{path}"
        try:
            array = zarr.open_array(StorePath(self._storage.store, path), mode="r")
        except FileNotFoundError:
            message = "expected an array that the attributes of the root name, got nothing"
            raise N5FormatError(message, kind="member", where=where) from None
        if array.ndim != 2 or array.shape[1] != width or array.dtype != np.dtype(dtype):
            message = f"expected N x {width} of {dtype}, got {array.shape} of {array.dtype}"
            raise N5FormatError(message, kind="member", where=where)
        return _Rows(array)


class _Rows:
    """Reads rows of an array by whole chunks, which several lists share, and keeps some of them."""

    def __init__(self, array: AnyArray) -> None:
        self.array = array
        n_bytes = array.chunks[0] * array.shape[1] * array.dtype.itemsize
        self._chunk = lru_cache(max(1, _KEPT // n_bytes))(self._read)

    def __len__(self) -> int:
        return self.array.shape[0]

    def __getitem__(self, rows: range) -> np.ndarray[Any, Any]:
        size = self.array.chunks[0]
        numbers = range(rows.start // size, -(-rows.stop // size))
        parts = [
            self._chunk(n)[max(0, rows.start - n * size) : rows.stop - n * size] for n in numbers
        ]
        return np.concatenate(parts) if parts else read_on_host(self.array, slice(0))

    def _read(self, number: int) -> np.ndarray[Any, Any]:
        size = self.array.chunks[0]
        return read_on_host(self.array, slice(number * size, (number + 1) * size))


def _key(each: PointList) -> ListKey:
    """Return the list that the path in the XML names, as BigStitcher does."""
    return (list_of_path(each.path) or each)[:3]


class PointsInN5(NamedTuple):
    """The lists of a container."""

    store: N5Store

    def __str__(self) -> str:
        return str(self.store)

    def lists(self) -> list[PointList]:
        """Return all lists, in BigStitcher's order in the XML."""
        root = existing_node(self.store, "", "groups tpId_0_viewSetupId_0/label, ...")
        found = Walk(self.store.container.nodes, self.store.run).run("", root)
        parents = (e.path.rpartition("/")[0] for e, _ in found if e.name == "interestpoints")
        return sorted(each for each in map(list_of_path, parents) if each is not None)

    def points(self, each: PointList) -> pd.DataFrame | None:
        """Read the points of a list; None if it is not there."""
        path = join(each.path, "interestpoints")
        node = self.store.node(path)
        if node is None:
            return None
        where = f"{self.store}: /{path}"
        kind = node.attributes.get("type") if isinstance(node, GroupAttributes) else "a dataset"
        if kind != "list":
            message = f"expected interest points of the type 'list', got {kind!r}"
            raise N5UnsupportedError(message, kind="member", where=where)
        columns: dict[str, Any] = {}
        locations = np.empty((0, 3))
        children = dict(self.store.run(self.store.container.nodes.children(path)))
        for name in sorted(n for n, child in children.items() if isinstance(child, DatasetView)):
            values = read_on_host(open_array(self.store, path=join(path, name)))
            if name == "loc":
                locations = values.reshape(-1, values.shape[-1] or 3) if values.size else locations
            else:
                columns[name] = values.ravel().astype("i8") if name == "id" else values.ravel()
        columns |= dict(zip(AXES, locations.T, strict=False))
        sizes = {name: len(values) for name, values in columns.items()}
        if "id" not in columns or len(set(sizes.values())) != 1:
            message = f"expected id and loc with equal numbers of values, got {sizes or 'nothing'}"
            raise N5FormatError(message, kind="member", where=where)
        return _table_of(each, columns)

    def correspondences(self, each: PointList) -> pd.DataFrame | None:
        """Read the correspondences of a list; None if it has none."""
        path = join(each.path, "correspondences")
        node = self.store.node(path)
        if node is None:
            return None
        where = f"{self.store}: /{path}"
        is_group = isinstance(node, GroupAttributes)
        version = node.attributes.get("correspondences") if is_group else None
        if not is_group or str(version or 1).partition(".")[0] not in ("1", "2"):
            message = f"expected correspondences of version 1 or 2, got {version or 'a dataset'}"
            raise N5UnsupportedError(message, kind="version", where=where)
        with ErrorsAt(where):
            lists = parse_id_map(node.attributes.get("idMap"))
        if not lists:
            return pd.DataFrame()
        data = read_on_host(open_array(self.store, path=join(path, "data")))
        is_known = data.ndim == 2 and data.shape[1] in (3, 4)
        if not is_known or not set(data[:, 2].tolist()) <= set(lists):
            message = "data: expected 4 x N numbers, the third in idMap, got shape "
            raise N5FormatError(f"{message}{to_n5(data.shape)}", kind="member", where=where)
        signed = data.astype("i8")  # Java stored them as unsigned: the largest one is -1
        columns = {
            "id": signed[:, 0],
            **pd.DataFrame([lists[n] for n in data[:, 2].tolist()], columns=OTHER_COLUMNS),
            "corresponding_id": signed[:, 1],
            "consensus_set": signed[:, 3] if data.shape[1] == 4 else -1,
        }
        return _table_of(each, columns)


def _table_of(each: PointList, columns: Mapping[str, object]) -> pd.DataFrame:
    """Make the table of one list."""
    own = {"timepoint": each.timepoint, "setup": each.setup, "label": each.label}
    return pd.DataFrame({**own, **columns})
