"""Make the keys of the Zarr hierarchy of a container: documents, names of chunks, listings.

Nodes are listed in batches, depth first: memory holds the nodes read ahead, and the names in the
groups above. Keys of chunks are made on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import batched, islice

import numpy as np

from n5zarr.container.block_listing import grid_position_rows
from n5zarr.container.memory import Node
from n5zarr.container.node_names import Broken, names_of_nodes
from n5zarr.container.nodes import Nodes
from n5zarr.conventions.axis_names import in_axis_order, with_names
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import groups_above, join
from n5zarr.storage.requests import Entry, List, Steps, Warn, list_each, read_key
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import (
    DEFAULT_NAMES,
    METADATA_NAMES,
    ChunkKey,
    MetadataKey,
    ZarrFormat,
    parse_key,
)
from n5zarr.zarr_view.record import Record


@dataclass(frozen=True)
class Hierarchy:
    """The keys of the Zarr hierarchy that presents a container.

    Parameters
    ----------
    nodes : Nodes
        The groups and datasets of the container.
    """

    nodes: Nodes

    def parse_key(self, key: str) -> MetadataKey | ChunkKey | None:
        """Parse a Zarr key, including keys of arrays whose chunks have unusual names."""
        zarr_format = self.nodes.options.zarr_format or self._format_of(key)
        parsed = parse_key(key, zarr_format)
        if parsed is None and self.nodes.options.zarr_format is None:
            parsed = parse_key(key, 2)  # a chunk of an unknown v2 array
        named = None if isinstance(parsed, MetadataKey) else self.nodes.memory.chunk_of(key)
        return named or parsed

    def _format_of(self, key: str) -> ZarrFormat:
        """Return the format of a key: `a/c/1` is a chunk of `a` in v3, and of `a/c` in v2."""
        path, _, name = key.rpartition("/")
        array = self.nodes.memory.dataset(path)
        is_v2 = array is not None and array.zarr_format == 2
        return 2 if name in METADATA_NAMES[2] or (is_v2 and name not in METADATA_NAMES[3]) else 3

    def other_file(self, key: str) -> Steps[bytes | None]:
        """Read a file in a group that belongs neither to N5 nor to Zarr, such as ``README.md``."""
        path, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON or any(name in names for names in METADATA_NAMES.values()):
            return None
        if not isinstance((yield from self.nodes.node(path)), GroupAttributes):
            return None
        return (yield from read_key(key))

    def document(self, key: MetadataKey, node: Node) -> dict[str, JSON] | None:
        """Make a Zarr document; None if the node has no such document."""
        if key.zarr_format != self.nodes.formats.of(node):
            return None
        if isinstance(node, DatasetView):
            if key.name == ".zattrs":
                attributes = in_axis_order(node.dataset.attributes, self.nodes.options.axis_order)
                return with_names(attributes, node.dimension_names) or None
            return node.document() if key.name in ("zarr.json", ".zarray") else None
        return _group_document(key.name, node)

    def served(self, key: MetadataKey, node: Node | None) -> Steps[dict[str, JSON] | None]:
        """Make a Zarr document, with the metadata of the nodes below if Zarr consolidated them."""
        document = None if node is None else self.document(key, node)
        if not isinstance(node, GroupAttributes) or not self.is_consolidated(node):
            return document
        if key.zarr_format != self.nodes.formats.of(node):
            return None
        if key.name == ".zmetadata":
            metadata = yield from self._documents_below(key.path, node, own=True)
            return {"zarr_consolidated_format": 1, "metadata": metadata}
        if document is not None and key.name == "zarr.json":
            metadata = yield from self._documents_below(key.path, node, own=False)
            below: JSON = {"kind": "inline", "must_understand": False, "metadata": metadata}
            return {**document, "consolidated_metadata": below}
        return document

    def is_consolidated(self, node: GroupAttributes) -> bool:
        """Whether a group's document has the metadata of the nodes below; not with codecs "n5"."""
        return self.nodes.options.codecs != "n5" and Record.from_json(node.record).consolidated

    def _documents_below(
        self, path: str, node: GroupAttributes, *, own: bool
    ) -> Steps[dict[str, JSON]]:
        """Make the documents of all nodes below a group: by key in v2, by path in v3.

        With ``own``, also those of the group itself. Nodes of the other format are omitted.
        """
        documents: dict[str, JSON] = {}
        zarr_format = self.nodes.formats.of(node)
        nodes: list[tuple[str, Node]] = [(path, node)] if own else []
        nodes += yield from self._nodes_below(path)
        for child, below in nodes:
            relative = child[len(path) :].removeprefix("/")
            for name in METADATA_NAMES[zarr_format]:
                document = self.document(MetadataKey(child, name), below)
                key = join(relative, name) if zarr_format == 2 else relative
                if document is not None:
                    documents[key] = document
        return documents

    def _nodes_below(self, path: str) -> Steps[list[tuple[str, Node]]]:
        """Return all nodes below a group, each group before its children."""
        nodes: list[tuple[str, Node]] = []
        pending = yield from self._children(path)
        while pending:  # no recursion: containers may be a thousand levels deep
            child, node = pending.pop()
            nodes.append((child, node))
            if isinstance(node, GroupAttributes):
                pending += yield from self._children(child)
        return nodes

    def _children(self, path: str) -> Steps[list[tuple[str, Node]]]:
        """Return paths and nodes of the children of a group, the last one first."""
        children = yield from self.nodes.children(path)
        yield _left_out(children)
        sound = [(name, node) for name, node in children if not isinstance(node, Broken)]
        return [(join(path, name), node) for name, node in reversed(sound)]

    def metadata_keys(self, path: str, node: Node) -> list[str]:
        """Return the keys of the documents of a node."""
        names = METADATA_NAMES[self.nodes.formats.of(node)]
        return [join(path, name) for name in names if self.has(MetadataKey(path, name), node)]

    def has(self, key: MetadataKey, node: Node) -> bool:
        """Whether a node has a Zarr document of this name."""
        if key.name == ".zmetadata":
            is_shown = self.nodes.formats.of(node) == 2
            return is_shown and isinstance(node, GroupAttributes) and self.is_consolidated(node)
        if isinstance(node, DatasetView) and key.name != ".zattrs":  # without making it
            is_its_own = key.name in ("zarr.json", ".zarray")
            return is_its_own and key.zarr_format == self.nodes.formats.of(node)
        return self.document(key, node) is not None

    def owner(self, path: str) -> Steps[tuple[str, Node] | None]:
        """Return the node to which a key prefix belongs: at that path, or a dataset above."""
        for at in (path, *reversed(groups_above(path))):
            node = yield from self.nodes.node(at)
            if node is not None:
                is_owner = at == path or isinstance(node, DatasetView)
                return (at, node) if is_owner else None
        return None


def _group_document(name: str, group: GroupAttributes) -> dict[str, JSON] | None:
    """Make a Zarr document of a group; None if it has no such document."""
    match name:
        case "zarr.json":
            return {
                **Record.from_json(group.record).extra,
                "zarr_format": 3,
                "node_type": "group",
                "attributes": dict(group.attributes),
            }
        case ".zattrs":
            return dict(group.attributes) or None
        case ".zgroup":
            return {"zarr_format": 2}
        case _:
            return None


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
        self._is_done = False

    def flows(self) -> Iterator[Steps[list[str]]]:
        """Yield flows that each return the next keys, sorted within a node; run each in turn."""
        yield self._first_keys()
        while not self._is_done:
            yield self._next_keys()

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
        self._is_done = not keys
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
        names = self._nodes.memory.chunk_names.get(path) or default
        is_large = len(rows) > _SORTED
        if is_large:
            columns = rows.T if view.axis_order == "C" else rows.T[::-1]  # the last counts most
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
        nodes.memory.listed.clear()
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
