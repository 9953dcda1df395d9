"""List the keys of the Zarr hierarchy below a path, in batches.

Nodes are read in batches, depth first: memory holds the nodes read ahead, and the names in the
groups above. Keys of chunks are made on request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import batched, islice
from typing import TYPE_CHECKING

import numpy as np

from n5zarr.container.block_listing import grid_position_rows
from n5zarr.container.node_names import Broken, names_of_nodes
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.requests import Entry, List, Steps, Warn, list_each
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import DEFAULT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from n5zarr.container.hierarchy import Hierarchy
    from n5zarr.container.memory import Node

__all__ = ["KeyListing", "names", "names_below"]

_AHEAD = 128  # nodes that are read and listed together
_TOGETHER = 512  # nodes that are read together
_KEYS = 4096  # keys in one batch
_SORTED = 4096  # largest number of names that are sorted as strings


@dataclass(slots=True)
class _Group:
    """A group with unlisted nodes: the remaining names, and the nodes read ahead."""

    path: str
    names: list[str]  # the next one last
    nested: frozenset[str]
    read: list[tuple[str, Node, Sequence[Entry]]] = field(default_factory=list)  # as names


class KeyListing:
    """The keys in a directory, as zarr's LocalStore lists them.

    Parameters
    ----------
    hierarchy : Hierarchy
        The keys of the container.
    path : str
        The directory; ``""`` is the root.
    """

    def __init__(self, hierarchy: Hierarchy, path: str) -> None:
        self._hierarchy, self._nodes = hierarchy, hierarchy.nodes
        self._prefix = f"{path}/" if path else ""
        self._path = path
        self._groups: list[_Group] = []
        self._chunks: Iterator[str] = iter(())

    def flows(self) -> Iterator[Steps[list[str]]]:
        """Yield flows that each return the next keys, sorted within a node; run each in turn."""
        yield self._first_keys()
        while self._groups:
            yield self._next_keys()
        while keys := self._some_chunks():
            yield _flow_of(keys)

    def _first_keys(self) -> Steps[list[str]]:
        owner = yield from self._hierarchy.owner(self._path)
        if owner is None:
            return []
        path, node = owner
        keys = yield from self._keys_of(path, node)
        if isinstance(node, GroupAttributes):
            (entries,) = yield [List(path)]
            yield from self._enter(path, entries or [])
        return [key for key in keys if key.startswith(self._prefix)]

    def _next_keys(self) -> Steps[list[str]]:
        keys = self._some_chunks()
        while self._groups and len(keys) < _KEYS:
            group = self._groups[-1]
            if group.read:
                path, node, entries = group.read.pop()
                keys += yield from self._keys_of(path, node)
                keys += self._some_chunks(_KEYS - len(keys))
                if isinstance(node, GroupAttributes):
                    yield from self._enter(path, entries)
            elif group.names:
                yield from self._read(group)
            else:
                self._groups.pop()
        return keys

    def _some_chunks(self, n: int = _KEYS) -> list[str]:
        return list(islice(self._chunks, max(n, 0)))

    def _enter(self, path: str, entries: Sequence[Entry]) -> Steps[None]:
        names, refused = names_of_nodes(path, entries)
        yield _left_out(refused)
        nested = frozenset(entry.name for entry in entries if entry.is_nested_link)
        if names:
            self._groups.append(_Group(path, names[::-1], nested))

    def _read(self, group: _Group) -> Steps[None]:
        """Read the next nodes of a group, and list those that may be groups."""
        names = group.names[-_AHEAD:][::-1]
        del group.names[-_AHEAD:]
        paths = [join(group.path, name) for name in names]
        nodes = yield from self._nodes.nodes_at(paths)
        wanted = [
            path
            for path, name, node in zip(paths, names, nodes, strict=True)
            if not isinstance(node, DatasetView | Broken) and name not in group.nested
        ]
        entries = dict(zip(wanted, (yield [List(path) for path in wanted]), strict=True))
        found: list[tuple[str, Node, Sequence[Entry]]] = []
        for path, read in zip(paths, nodes, strict=True):
            listed = entries.get(path)
            node = read
            if node is None and listed is not None:
                node = yield from self._nodes.bare(path, listed)
            if isinstance(node, Broken):
                yield _left_out([("", node)])
            elif isinstance(node, DatasetView) or (node is not None and path in entries):
                found.append((path, node, listed or []))
        group.read = found[::-1]

    def _keys_of(self, path: str, node: Node) -> Steps[list[str]]:
        """Return the keys of a node's documents; the keys of its chunks follow later."""
        if isinstance(node, DatasetView):
            rows = yield from grid_position_rows(path, node.dataset.grid)
            self._chunks = self._keys_of_chunks(path, node, rows)
        return self._hierarchy.metadata_keys(path, node)

    def _keys_of_chunks(self, path: str, view: DatasetView, rows: np.ndarray) -> Iterator[str]:
        default = DEFAULT_NAMES[self._nodes.formats.of(view)]
        names = self._hierarchy.memory.chunk_names(path) or default
        is_large = len(rows) > _SORTED
        if is_large:
            columns = rows.T if view.axis_order == "C" else rows.T[::-1]
            rows = rows[np.lexsort([_order_of_names(column) for column in columns])]
        positions = (N5Tuple(tuple(map(int, row))) for row in rows)
        keys = (names.key(path, view.presented(position)) for position in positions)
        wanted = (key for key in keys if key.startswith(self._prefix))
        return wanted if is_large else iter(sorted(wanted))


def names(
    hierarchy: Hierarchy, path: str, known: GroupAttributes | None = None
) -> Steps[list[str]]:
    """Return the names directly below a path, sorted, and remember the nodes.

    Parameters
    ----------
    hierarchy : Hierarchy
        The keys of the container.
    path : str
        Normalised; ``""`` is the root.
    known : GroupAttributes, optional
        The group at the path, if it has been read.
    """
    nodes = hierarchy.nodes
    if nodes.has_stamps:  # nodes of a large group that nobody opens would stay in memory
        nodes.memory.forget_listed()
    node = known or (yield from nodes.node(path))
    if not isinstance(node, GroupAttributes):
        return sorted((yield from names_below(KeyListing(hierarchy, path).flows(), path)))
    found = [key.rpartition("/")[2] for key in hierarchy.metadata_keys(path, node)]
    entries = (yield from list_each([path]))[0]
    named, refused = names_of_nodes(path, entries)
    for some in batched(named, _TOGETHER):
        children = yield from nodes.children_named(path, some, entries, keep=True)
        sound = [name for name, child in children if not isinstance(child, Broken)]
        found += sound
        nodes.memory.keep_named(join(path, name) for name in sound)
        yield _left_out(children)
    yield _left_out(refused)
    return sorted(found)


def names_below(flows: Iterable[Steps[Sequence[str]]], path: str) -> Steps[set[str]]:
    """Return the names directly below a path in the keys that some flows return."""
    n_prefix = len(path) + bool(path)
    found: set[str] = set()
    for flow in flows:
        found.update(key[n_prefix:].partition("/")[0] for key in (yield from flow))
    return found


def _order_of_names(numbers: np.ndarray) -> np.ndarray:
    """Return the order of numbers by their decimal names: 1, 10, 2."""
    values, places = np.unique(numbers, return_inverse=True)
    order = np.empty(len(values), "i8")
    order[np.argsort(values.astype(str))] = np.arange(len(values))
    return order[places]


def _left_out(children: Sequence[tuple[str, Node | Broken]]) -> list[Warn]:
    broken = [child for _, child in children if isinstance(child, Broken)]
    return [Warn(f"omitted from the listing: {child.error}") for child in broken]


def _flow_of(keys: list[str]) -> Steps[list[str]]:
    yield []
    return keys
