"""Open BigDataViewer's XML with the engine: present the nodes of ``open_bdv`` to xarray."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from n5zarr.conventions.bdv import parse_xml
from n5zarr.errors import N5Warning
from n5zarr.format.path import normalize_path
from n5zarr.storage.place import place_of
from n5zarr.store.bdv_xml import xml_file
from n5zarr.xarray.bdv import views_tree

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    import xarray as xr

    from n5zarr.format.order import AxisOrder
    from n5zarr.storage.place import Place

__all__ = ["dataset_of_views", "is_description", "open_described"]


def is_description(location: str | os.PathLike[str]) -> bool:
    """Return whether a location is a local XML file of BigDataViewer."""
    place = place_of(location)
    file = xml_file(place)
    if file is None or place.is_url:
        return False
    try:
        return parse_xml(file.read()) is not None
    except OSError:
        return False


def open_described(
    place: Place, group: str | None, axis_order: AxisOrder
) -> dict[str, xr.Dataset] | None:
    """Open the nodes of :func:`open_bdv` at and below a group; None if there is no XML.

    Parameters
    ----------
    place : Place
        Any location.
    group : str or None
        A node of the tree.
    axis_order : {"C", "F"}
        As for :func:`open_bdv`.

    Raises
    ------
    FileNotFoundError
        The tree has no such node, or there are no setups.
    N5UnrepresentableError
        The XML is not BigDataViewer's, or of another format (``kind="option"``).
    """
    file = xml_file(place)
    if file is None:
        return None
    tree = views_tree(place, "", None, axis_order)
    nodes = {node.path.strip("/"): node for node in tree.subtree}
    path = normalize_path(group or "")
    if path not in nodes:
        listed = ", ".join(node.path.strip("/") for node in tree.leaves)
        raise FileNotFoundError(f"{file}: group: expected one of {listed}, got {path}")
    top = nodes[path]
    found = {
        f"/{node.path.removeprefix(top.path).strip('/')}": node.to_dataset() for node in top.subtree
    }
    for dataset in found.values():  # xarray would store the URL, with its token
        dataset.encoding["source"] = str(file)
    return found


def dataset_of_views(
    nodes: Mapping[str, xr.Dataset], drop_variables: str | Iterable[str] | None
) -> xr.Dataset:
    """Return the Dataset of the first node; warn if only the other nodes have data."""
    first, *others = nodes
    if others and not nodes[first].data_vars:
        listed = ", ".join(path.lstrip("/") for path in others if nodes[path].data_vars)
        message = (
            f"the views are in nodes: open one with group=, or all with xr.open_datatree: {listed}"
        )
        warnings.warn(message, N5Warning, stacklevel=3)
    dropped = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
    return nodes[first].drop_vars(dropped, errors="ignore")
