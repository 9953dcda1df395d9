"""Read lists of interest points: ``interestpoints.n5`` and ``interestpoints.zarr``."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import zarr
from zarr.storage import StorePath

from n5zarr.arrays.opening import open_array
from n5zarr.arrays.placing import read_on_host
from n5zarr.container.walk import Walk
from n5zarr.conventions.interest_points import (
    NO_VALUE,
    PACKED_CONTAINER,
    STAGING,
    PointList,
    list_of_path,
    parse_entries,
    parse_id_map,
    parse_root,
    parse_views,
    path_of,
)
from n5zarr.errors import ErrorsAt, N5FormatError, N5UnsupportedError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join
from n5zarr.storage.opening import open_storage
from n5zarr.storage.requests import List, read_key
from n5zarr.store.missing_nodes import existing_node
from n5zarr.xarray.interest_point_tables import AXES, OTHER_COLUMNS, table_of
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zarr.types import AnyArray

    from n5zarr.conventions.interest_points import ListKey, OtherList, PackedRoot, RowSpan
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.interface import Storage
    from n5zarr.storage.place import Place
    from n5zarr.storage.requests import Entry, Steps
    from n5zarr.store.n5_store import N5Store

__all__ = ["PointsInN5", "PointsInZarr"]

_KEPT = 1 << 27  # bytes of chunks of an array: several lists share a chunk


class PointsInZarr:
    """The lists in a hierarchy of Zarr.

    Parameters
    ----------
    storage : Storage
        Its keys.
    root : PackedRoot
        What the attributes of the root say.
    """

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
        staged = [e.name for e in storage.run(_list_staging()) if e.name.endswith(".stage")]
        if staged:
            raise N5UnsupportedError(
                f"{storage}: {STAGING}: expected no files, got {min(staged)}: lists that "
                "BigStitcher has not moved into its arrays yet; open the project in BigStitcher "
                "and save it",
                kind="foreign",
            )
        with ErrorsAt(f"{storage}: zarr.json"):
            attributes = _attributes(document)
            has_lists = "interestpoints" in attributes
            return cls(storage, parse_root(attributes)) if has_lists else None

    # ------------------------------------------------------------------ tables

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
        return table_of(each, {"id": self._id[span][:, 0].astype("i8"), **used})

    def correspondences(self, each: PointList) -> pd.DataFrame | None:
        """Read the correspondences of a list; None if it is not there."""
        others = self._views.get(_key(each))
        if others is None:
            return None
        tables = [
            self._pairs_with(each, other) for other in others if other.rows.first < other.rows.end
        ]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def _pairs_with(self, each: PointList, other: OtherList) -> pd.DataFrame:
        rows = self._data[other.rows].astype("i8")
        own, corresponding = (1, 0) if other.is_swapped else (0, 1)
        columns = {
            "id": rows[:, own],
            **dict(zip(OTHER_COLUMNS, other.key, strict=True)),
            "corresponding_id": rows[:, corresponding],
            "consensus_set": rows[:, 2],
        }
        return table_of(each, columns)

    # ------------------------------------------------------------------ arrays

    @cached_property
    def _entries(self) -> Mapping[ListKey, RowSpan]:
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
        found: list[list[int]] = read_on_host(self._array(path, width, "i8")).tolist()
        return found

    def _rows(self, path: str, width: int, dtype: str) -> _Rows:
        return _Rows(self._array(path, width, dtype))

    def _array(self, path: str, width: int, dtype: str) -> AnyArray:
        where = f"{self}: /{path}"
        try:
            array = zarr.open_array(StorePath(self._storage.store, path), mode="r")
        except FileNotFoundError:
            message = "expected an array that the attributes of the root name, got nothing"
            raise N5FormatError(message, kind="member", where=where) from None
        if array.ndim != 2 or array.shape[1] != width or array.dtype != np.dtype(dtype):
            message = f"expected N x {width} of {dtype}, got {array.shape} of {array.dtype}"
            raise N5FormatError(message, kind="member", where=where)
        return array


class _Rows:
    """Reads rows of an array by whole chunks, which several lists share, and keeps some of them."""

    def __init__(self, array: AnyArray) -> None:
        self._array = array
        self._chunks: dict[int, np.ndarray[Any, Any]] = {}
        n_bytes = array.chunks[0] * array.shape[1] * array.dtype.itemsize
        self._most = max(1, _KEPT // n_bytes)

    def __len__(self) -> int:
        return self._array.shape[0]

    def __getitem__(self, span: RowSpan) -> np.ndarray[Any, Any]:
        size = self._array.chunks[0]
        numbers = range(span.first // size, -(-span.end // size))
        parts = [
            self._chunk(n)[max(0, span.first - n * size) : span.end - n * size] for n in numbers
        ]
        return np.concatenate(parts) if parts else read_on_host(self._array, slice(0))

    def _chunk(self, number: int) -> np.ndarray[Any, Any]:
        if number not in self._chunks:
            if len(self._chunks) >= self._most:
                del self._chunks[next(iter(self._chunks))]
            size = self._array.chunks[0]
            self._chunks[number] = read_on_host(
                self._array, slice(number * size, (number + 1) * size)
            )
        return self._chunks[number]


def _list_staging() -> Steps[Sequence[Entry]]:
    """List the files that are not in the arrays; none where a server cannot list."""
    return (yield [List(STAGING, few=True)])[0] or []


def _key(each: PointList) -> ListKey:
    """Return the list that the path in the XML names, as BigStitcher does."""
    return (list_of_path(each.path) or each)[:3]


def _attributes(document: bytes) -> Mapping[str, JSON]:
    try:
        found = json.loads(document).get("attributes", {})
        return dict(found)
    except (ValueError, TypeError, AttributeError) as err:
        raise N5FormatError(
            f"expected the document of {PACKED_CONTAINER}, got {err}", kind="member"
        ) from err


class PointsInN5(NamedTuple):
    """The lists of a container.

    Parameters
    ----------
    store : N5Store
        The container.
    """

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
        if not isinstance(node, GroupAttributes) or node.attributes.get("type") != "list":
            kind = node.attributes.get("type") if isinstance(node, GroupAttributes) else "a dataset"
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
                columns[name] = _signed(values) if name == "id" else values.ravel()
        columns |= dict(zip(AXES, locations.T, strict=False))
        sizes = {name: len(values) for name, values in columns.items()}
        if "id" not in columns or len(set(sizes.values())) != 1:
            message = f"expected id and loc with equal numbers of values, got {sizes or 'nothing'}"
            raise N5FormatError(message, kind="member", where=where)
        return table_of(each, columns)

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
            raise N5FormatError(f"{message}{data.shape[::-1]}", kind="member", where=where)
        others = [lists[number] for number in data[:, 2].tolist()]
        columns = {
            "id": _signed(data[:, 0]),
            **pd.DataFrame(others, columns=OTHER_COLUMNS),
            "corresponding_id": _signed(data[:, 1]),
            "consensus_set": _signed(data[:, 3]) if data.shape[1] == 4 else -1,
        }
        return table_of(each, columns)


def _signed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert numbers that Java stored as unsigned: the largest one is -1."""
    return values.ravel().astype(np.int64)
