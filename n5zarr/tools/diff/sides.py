"""The two sides of a comparison: a node of N5 or Zarr, with its contents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import zarr
from zarr.storage import StorePath

from n5zarr.arrays.opening import open_array
from n5zarr.container.axes import read_placed
from n5zarr.container.node_names import Broken
from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY
from n5zarr.conventions.zarr_order import in_order_of_zarr
from n5zarr.errors import N5FormatError
from n5zarr.format.path import join
from n5zarr.storage.place import place_of
from n5zarr.store.geometry import described
from n5zarr.store.java_zarr import JavaZarrStore, in_own_store, zarr_documents
from n5zarr.store.location import open_container
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zarr.types import AnyArray

    from n5zarr.container.memory import Node
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location

__all__ = ["Side", "open_side"]


@dataclass(frozen=True, kw_only=True)
class Side:
    """A group or an array, with its attributes and contents.

    Parameters
    ----------
    attributes : mapping
        The users' attributes.
    array : zarr.Array or None
        The array; None for a group.
    children : mapping
        The nodes of a group by name: sides, and errors of nodes that cannot be read.
    axes : mapping
        The known properties of the axes of an array, each a list in C order: ``names``, None if it
        has none, and in N5 ``units``, ``scale`` and ``translation``.
    is_reversed : bool
        Whether attributes list axes in another order than the array, as those of N5 do.
    """

    attributes: Mapping[str, JSON]
    array: AnyArray | None = None
    children: Mapping[str, Side | Exception] = field(default_factory=dict)
    axes: Mapping[str, JSON] = field(default_factory=dict)
    is_reversed: bool = False

    @property
    def ndim(self) -> int:
        """Number of dimensions; of a group, the largest one below."""
        if self.array is not None:
            return self.array.ndim
        below = (side.ndim for side in self.children.values() if isinstance(side, Side))
        return max(below, default=0)

    def own(self, *, as_zarr: bool = False) -> Mapping[str, JSON]:
        """Return the attributes without the names of axes, and with positions as Zarr has them."""
        own = self.attributes
        if as_zarr and self.is_reversed:
            own = in_order_of_zarr(own, self.ndim)
        return own if self.array is None else _without_names(own, self.ndim)


def open_side(
    location: Location, options: Mapping[str, object] | None, backend: Backend | None
) -> Side:
    """Read the documents of a node and all nodes below it, but no blocks.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        The node.
    options, backend : optional
        For a URL.

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    N5Error
        The node itself is broken or not supported, or a document of Zarr is (``kind="option"``).
    """
    if isinstance(location, zarr.Array | zarr.Group) and not isinstance(location.store, N5Store):
        return _side_of_zarr(location)
    store, path = open_container(
        place_of(location, options, backend, one_of_two=True), read_only=True
    )
    try:
        return _side_of_n5(store, path, existing_node(store, path))
    except N5FormatError as err:
        if err.kind != "foreign":
            raise
    place = StorePath(JavaZarrStore(store.storage.store), path)
    with zarr_documents(join(str(store.storage), path)):
        return _side_of_zarr(zarr.open(place, mode="r"))


def _side_of_n5(store: N5Store, path: str, node: Node) -> Side:
    is_reversed = store.axis_order == "C"
    if not isinstance(node, DatasetView):
        children: dict[str, Side | Exception] = {
            name: child.error
            if isinstance(child, Broken)
            else _side_of_n5(store, join(path, name), child)
            for name, child in store.run(store.container.nodes.children(path))
        }
        return Side(attributes=node.attributes, children=children, is_reversed=is_reversed)
    place = described(store.run(read_placed(store.container.nodes, path, node)))
    axes: dict[str, JSON] = {
        "names": _not_made_up(place.names),
        "units": list(place.units),
        "scale": list(place.scale),
        "translation": list(place.translation),
    }
    array = open_array(store, path=path)
    attributes = array.attrs.asdict()
    return Side(attributes=attributes, array=array, axes=axes, is_reversed=is_reversed)


def _side_of_zarr(node: AnyArray | zarr.Group) -> Side:
    attributes = node.attrs.asdict()
    if isinstance(node, zarr.Group):
        children: dict[str, Side | Exception] = {n: _side_of_zarr(c) for n, c in node.members()}
        return Side(attributes=attributes, children=children)
    document = {"attributes": attributes, **node.metadata.to_dict()}
    return Side(
        attributes=attributes,
        array=zarr.Array(in_own_store(node.async_array)),
        axes={"names": _names(document)},
    )


def _names(document: Mapping[str, Any]) -> JSON:
    """Return the names of axes in a Zarr document; Zarr v2 has them in an attribute of xarray."""
    names = document.get("dimension_names") or document["attributes"].get(XARRAY_KEY)
    return _not_made_up(names) if isinstance(names, list | tuple) else None


def _not_made_up(names: Iterable[str | None]) -> JSON:
    """Return names without ``dim_0``, ``dim_1``, ..., as axes without names are called."""
    given = [None if name == f"dim_{n}" else name or None for n, name in enumerate(names)]
    return list(given) if any(given) else None


def _without_names(attributes: Mapping[str, Any], ndim: int) -> Mapping[str, Any]:
    """Leave out attributes that hold the names of axes: Zarr v3 has no such attributes."""
    return {
        key: value
        for key, value in attributes.items()
        if key not in (AXES_KEY, XARRAY_KEY)
        or not isinstance(value, list | tuple)
        or len(value) != ndim
    }
