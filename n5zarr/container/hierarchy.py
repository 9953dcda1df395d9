"""Make the keys of the Zarr hierarchy of a container: documents, names of chunks, listings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from n5zarr.conventions.axis_names import in_axis_order, with_names
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.path import join
from n5zarr.storage.requests import Steps, read_key
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import METADATA_NAMES, ChunkKey, MetadataKey, ZarrFormat, parse_key
from n5zarr.zarr_view.record import Record

if TYPE_CHECKING:
    from n5zarr.container.memory import Memory, Node
    from n5zarr.container.nodes import Nodes
    from n5zarr.container.options import ViewOptions
    from n5zarr.format.lenient_json import JSON

__all__ = ["Hierarchy"]


@dataclass(frozen=True)
class Hierarchy:
    """The keys of the Zarr hierarchy that presents a container.

    Parameters
    ----------
    nodes : Nodes
        The groups and datasets of the container.
    """

    nodes: Nodes

    @property
    def options(self) -> ViewOptions:
        """Codecs, format and axis order of the hierarchy."""
        return self.nodes.options

    @property
    def memory(self) -> Memory:
        """The memory of the store object: here the names of the chunks of arrays."""
        return self.nodes.memory

    def parse_key(self, key: str) -> MetadataKey | ChunkKey | None:
        """Parse a Zarr key, including keys of arrays whose chunks have unusual names."""
        zarr_format = self.options.zarr_format or self._format_of(key)
        parsed = parse_key(key, zarr_format)
        if parsed is None and self.options.zarr_format is None:
            parsed = parse_key(key, 2)  # a chunk of an unknown v2 array
        named = None if isinstance(parsed, MetadataKey) else self.memory.chunk_of(key)
        return named or parsed

    def _format_of(self, key: str) -> ZarrFormat:
        """Return the format of a key: `a/c/1` is a chunk of `a` in v3, and of `a/c` in v2."""
        path, _, name = key.rpartition("/")
        array = self.memory.dataset(path)
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
                attributes = in_axis_order(node.dataset.attributes, self.options.axis_order)
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
        return self.options.codecs != "n5" and Record.from_json(node.record).consolidated

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
        children = yield from self.nodes.sound_children(path)
        return [(join(path, name), node) for name, node in reversed(children)]

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
        node = yield from self.nodes.node(path)
        if node is not None:
            return path, node
        while path:
            path = path.rpartition("/")[0]
            node = yield from self.nodes.node(path)
            if isinstance(node, DatasetView):
                return path, node
            if node is not None:
                return None
        return None


def _group_document(name: str, group: GroupAttributes) -> dict[str, JSON] | None:
    """Make a Zarr document of a group; None if it has no such document."""
    match name:
        case "zarr.json":
            document = Record.from_json(group.record).extra
            attributes = dict(group.attributes)
            return {**document, "zarr_format": 3, "node_type": "group", "attributes": attributes}
        case ".zattrs":
            return dict(group.attributes) or None
        case ".zgroup":
            return {"zarr_format": 2}
        case _:
            return None
