"""Read lists of interest points in N5: ``interestpoints.n5``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from n5zarr.arrays.opening import open_array
from n5zarr.arrays.placing import read_on_host
from n5zarr.container.walk import Walk
from n5zarr.conventions.interest_points import PointList, list_of_path, parse_id_map
from n5zarr.errors import ErrorsAt, N5FormatError, N5UnsupportedError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join
from n5zarr.store.missing_nodes import existing_node
from n5zarr.xarray.interest_point_tables import AXES, OTHER_COLUMNS, table_of
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from n5zarr.store.n5_store import N5Store

__all__ = ["PointsInN5"]


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
