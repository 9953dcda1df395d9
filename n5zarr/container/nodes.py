"""Nodes, children and blocks of a container, without doing any input or output.

Each function is a generator that yields batches of requests and is sent their answers, so that the
same logic runs on synchronous and asynchronous stores, and a batch can be fetched concurrently.

What is a node:

 - a directory with an ``attributes.json`` that describes a dataset is an array;
 - any other directory is a group, with or without ``attributes.json``; on an object store, any
   prefix with keys;
 - an empty root is nothing, so that a container can be made there; nor are files, and the
   directories of blocks below a dataset;
 - BigStitcher's ``setupN``, which carry all keys of a dataset, are groups: where a document is
   suspect (:attr:`~n5zarr.format.DatasetAttributes.may_be_group`), one listing decides.

A node below a dataset can be opened by its path, but is not listed, as in Java.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.container.data_types import element_of_v3, type_of_numpy, v2_fill
from n5zarr.conventions.axis_names import in_axis_order
from n5zarr.errors import N5AttributesError, N5Error, Problem
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    ZARR_KEY,
    GroupAttributes,
    dataset_keys,
    group_attributes,
    is_dataset,
    missing_dataset_keys,
    parse_attributes,
)
from n5zarr.format.grid import is_block_name, parse_block_path
from n5zarr.format.lenient_json import parse_json
from n5zarr.format.path import check_key, join
from n5zarr.format.version import VERSION_KEY, check_version
from n5zarr.storage.requests import Entry, Get, List, Steps, Warn
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import (
    DEFAULT_NAMES,
    METADATA_NAMES,
    ChunkKey,
    ChunkNames,
    MetadataKey,
    parse_key,
)
from n5zarr.zarr_view.record import Record, shown_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.attributes import DatasetAttributes
    from n5zarr.format.data_type import DataType
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder, N5Tuple
    from n5zarr.zarr_view.dataset_view import Codecs
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = [
    "Broken",
    "Given",
    "Hierarchy",
    "Node",
    "read_document",
    "read_key",
]


type Node = DatasetView | GroupAttributes


_STALE_RECORD = (
    "zarr: the record is of other elements than the dataset has now, another tool has changed it; "
    "shown as what the dataset says"
)


class Given(NamedTuple):
    """The document that an array was created with, and for what dataset it was.

    Whoever holds the array goes on writing chunks with these codecs.
    """

    document: Mapping[str, JSON]
    data_type: DataType
    block_size: N5Tuple

    def fits(self, dataset: DatasetAttributes) -> bool:
        """Whether the dataset still has these elements and blocks."""
        return (self.data_type, self.block_size) == (dataset.type_name, dataset.block_size)


@dataclass(frozen=True, slots=True)
class Broken:
    """A child that cannot be shown, and why."""

    error: N5Error


def read_key(key: str) -> Steps[bytes | None]:
    """Read the value of a key; None where there is none."""
    (answer,) = yield [Get(key)]
    return answer if isinstance(answer, bytes) else None


def read_document(path: str) -> Steps[JSON]:
    """Read the document of a node; None where it is empty or there is none.

    Raises
    ------
    N5AttributesError
        It is no JSON, or empty although there are blocks (``kind="json"``).
    """
    data = yield from read_key(join(path, ATTRIBUTES_JSON))
    return None if data is None else (yield from _parsed(path, data))


def _list(path: str) -> Steps[Sequence[Entry]]:
    (listing,) = yield from _list_each([path])
    return listing


def _list_each(paths: Sequence[str]) -> Steps[list[Sequence[Entry]]]:
    answers = yield [List(path) for path in paths]
    return [[] if a is None or isinstance(a, bytes) else a for a in answers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The logic of one container with one way of showing it.

    Parameters
    ----------
    codecs : {"zarr", "n5", "portable"}
        Which codecs are shown.
    zarr_format : {2, 3}
        Which documents and keys are shown.
    axis_order : {"C", "F"}
        In which order axes are shown.
    given : dict of str to Given, optional
        By path, the documents that arrays were created with through this store.
    unusual : dict of str to ChunkNames, optional
        By path, how the chunks of these arrays are named if not by default.
    assumed : dict of str to bytes, optional
        By path, documents that are not read.
    """

    codecs: Codecs
    zarr_format: ZarrFormat
    axis_order: AxisOrder
    given: dict[str, Given] = field(default_factory=dict, compare=False)
    unusual: dict[str, ChunkNames] = field(default_factory=dict, compare=False)
    assumed: dict[str, bytes] = field(default_factory=dict, compare=False)

    def created(
        self, path: str, document: Mapping[str, JSON], data_type: DataType, block_size: N5Tuple
    ) -> None:
        """Remember the document that an array was created with, but for what may change."""
        drop = ("shape", "attributes", "dimension_names")
        kept = {key: value for key, value in document.items() if key not in drop}
        self.given[path] = Given(kept, data_type, block_size)
        names = ChunkNames.of(document)
        if names == DEFAULT_NAMES[self.zarr_format]:
            self.unusual.pop(path, None)
        else:
            self.unusual[path] = names

    def parse_key(self, key: str) -> MetadataKey | ChunkKey | None:
        """Read a Zarr key; see :func:`n5zarr.zarr_view.keys.parse_key`."""
        parsed = parse_key(key, self.zarr_format)
        if self.unusual and not isinstance(parsed, MetadataKey):
            for path, names in self.unusual.items():
                prefix = f"{path}/" if path else ""
                coords = names.coords(key[len(prefix) :]) if key.startswith(prefix) else None
                if coords is not None:
                    return ChunkKey(path, coords)
        return parsed

    def check_root(self) -> Steps[None]:
        """Check the version of the container.

        Raises
        ------
        N5UnsupportedError
            The container was written by a later N5 (``kind="version"``).
        """
        try:
            document = yield from read_document("")
            if isinstance(document, dict):
                check_version(document.get(VERSION_KEY))
        except N5Error as err:
            raise err.located(ATTRIBUTES_JSON) from err.__cause__

    def node(self, path: str) -> Steps[Node | None]:
        """Read the node at a path.

        Parameters
        ----------
        path : str
            Normalised; ``""`` is the root.

        Returns
        -------
        Presentation, GroupAttributes or None
            An array, a group, or nothing.

        Raises
        ------
        N5Error
            The node is there, but broken or not supported.
        """
        data = self.assumed.get(path) or (yield from read_key(join(path, ATTRIBUTES_JSON)))
        if data is None:
            implicit = yield from self._is_implicit_group(path)
            return GroupAttributes(attributes={}) if implicit else None
        return (yield from self.classify(path, data))

    def classify(self, path: str, data: bytes) -> Steps[Node]:
        """Make a node from its document, with a look at its children where that decides."""
        try:
            document = yield from _parsed(path, data)
            if not path and isinstance(document, dict):
                check_version(document.get(VERSION_KEY))
            parsed = parse_attributes(document, is_root=not path)
            if isinstance(parsed, GroupAttributes):
                yield from _warn_near_miss(path, document)
                return _with_record(parsed)
            if parsed.may_be_group:
                names = [entry.name for entry in (yield from _list(path))]
                holds_children = any(name.startswith("timepoint") for name in names)
                if holds_children or not any(map(is_block_name, names)):
                    return _as_group(document, is_root=not path)
            return (yield from self._array(path, parsed))
        except N5Error as err:
            raise err.located(join(path, ATTRIBUTES_JSON)) from err.__cause__

    def _array(self, path: str, parsed: DatasetAttributes) -> Steps[DatasetView]:
        """Show a dataset, with what is recorded of it as far as that still fits."""
        record = Record.from_json(parsed.record)
        dataset = replace(parsed, attributes=shown_attributes(parsed.attributes, record))
        element = None
        if parsed.numpy_type is not None:
            data_type, fill_value = type_of_numpy(parsed.numpy_type)
            element = replace(element_of_v3(data_type, fill_value), kept_as=parsed.data_type)
            record = replace(record.without_elements(), data_type=data_type, fill_value=fill_value)
        elif record.data_type is not None or record.fill_value is not None:
            element = element_of_v3(record.data_type or parsed.data_type.value, record.fill_value)
            parts = () if element.n_parts is None else (element.n_parts,)
            shapes = (parsed.dimensions[: len(parts)], parsed.block_size[: len(parts)])
            if element.stored is not parsed.data_type or shapes != (parts, parts):
                yield [Warn(f"{join(path, ATTRIBUTES_JSON)}: {_STALE_RECORD}")]
                record, element = record.without_elements(), None
        given = self.given.get(path)
        if given is not None and not given.fits(dataset):
            message = (
                "the array has been replaced by one of other elements or blocks, while arrays "
                "that were opened before may still be in use; open it with a new N5Store"
            )
            raise N5Error(message, kind="changed")
        shown = DatasetView(
            dataset=dataset,
            codecs=self.codecs,
            axis_order=self.axis_order,
            record=record,
            element=element,
            given=None if given is None else given.document,
            zarr_format=self.zarr_format,
        )
        if element is None or self.zarr_format == 3:
            return shown
        data_type = record.data_type or parsed.data_type.value
        return replace(shown, v2_fill=v2_fill(data_type, record.fill_value, shown.v2_dtype))

    def _is_implicit_group(self, path: str) -> Steps[bool]:
        """Whether a path without document is a group: a directory, and no part of a dataset."""
        (few,) = yield [List(path, few=True)]
        if few is None or (not few and not path):
            return False
        parent, _, name = path.rpartition("/")
        while is_block_name(name):
            data = yield from read_key(join(parent, ATTRIBUTES_JSON))
            if data is not None:
                return not (yield from _describes_dataset(parent, data))
            if not parent:
                return True
            parent, _, name = parent.rpartition("/")
        return True

    def other_file(self, key: str) -> Steps[bytes | None]:
        """Read a file of a group that is none of N5's, such as a ``README.md``; None for others."""
        path, _, name = key.rpartition("/")
        if name == ATTRIBUTES_JSON or any(name in names for names in METADATA_NAMES.values()):
            return None
        if not isinstance((yield from self.node(path)), GroupAttributes):
            return None
        return (yield from read_key(key))

    def children(self, path: str) -> Steps[list[tuple[str, Node | Broken]]]:
        """Read the children of a group, sorted by name.

        Returns
        -------
        list of (str, node or Broken)
            Names and nodes; files are left out.
        """
        entries = yield from _list(path)
        found = sorted(
            e.name for e in entries if e.is_dir is not False and e.name != ATTRIBUTES_JSON
        )
        names = [name for name in found if _refusal(name) is None]
        documents = yield [Get(join(path, name, ATTRIBUTES_JSON)) for name in names]
        bare = [join(path, n) for n, d in zip(names, documents, strict=True) if d is None]
        held = dict(zip(bare, (yield [List(one, few=True) for one in bare]), strict=True))
        children: list[tuple[str, Node | Broken]] = []
        for name, document in zip(names, documents, strict=True):
            child = join(path, name)
            if isinstance(document, bytes):
                children.append((name, (yield from self._child(child, document))))
            elif held[child] is not None:
                children.append((name, GroupAttributes(attributes={})))
        refused = [(name, error) for name in found if (error := _refusal(name)) is not None]
        children += [(name, Broken(error.located(path or "/"))) for name, error in refused]
        return children

    def above(self, path: str) -> Steps[list[Mapping[str, JSON]]]:
        """Read the attributes of the groups above a node, the nearest first."""
        names = path.split("/") if path else []
        paths = ["/".join(names[:i]) for i in reversed(range(len(names)))]
        answers = yield [Get(join(above, ATTRIBUTES_JSON)) for above in paths]
        attributes: list[Mapping[str, JSON]] = []
        for above, data in zip(paths, answers, strict=True):
            try:
                document = (yield from _parsed(above, data)) if isinstance(data, bytes) else None
                attributes.append(_as_group(document, is_root=not above).attributes)
            except N5Error as err:
                yield [Warn(f"no axes are taken from {join(above, ATTRIBUTES_JSON)}: {err}")]
                attributes.append({})
        return attributes

    def datasets(self, paths: Sequence[str]) -> Steps[dict[str, DatasetView]]:
        """Read those of some nodes that are sound datasets; nothing is listed."""
        answers = yield [Get(join(path, ATTRIBUTES_JSON)) for path in paths]
        found: dict[str, DatasetView] = {}
        for path, data in zip(paths, answers, strict=True):
            try:
                node = (yield from self.classify(path, data)) if isinstance(data, bytes) else None
            except N5Error:  # whoever opens it will be told
                continue
            if isinstance(node, DatasetView):
                found[path] = node
        return found

    def _sound_children(self, path: str) -> Steps[list[tuple[str, Node]]]:
        """Read the children that can be shown, and warn of those that cannot."""
        children = yield from self.children(path)
        broken = [child for _, child in children if isinstance(child, Broken)]
        yield [Warn(f"left out of the listing: {child.error}") for child in broken]
        return [(name, child) for name, child in children if not isinstance(child, Broken)]

    def _child(self, path: str, data: bytes) -> Steps[Node | Broken]:
        try:
            return (yield from self.classify(path, data))
        except N5Error as err:
            return Broken(err)

    def grid_positions(self, path: str, shown: DatasetView) -> Steps[list[N5Tuple]]:
        """Find the blocks of a dataset that exist, sorted. Lists every block directory."""
        grid = shown.dataset.grid
        found = [""]
        n_levels = max(1, shown.dataset.ndim)
        for level in range(n_levels):
            last = level == n_levels - 1
            listings = yield from _list_each([join(path, prefix) for prefix in found])
            found = [
                join(prefix, entry.name)
                for prefix, entries in zip(found, listings, strict=True)
                for entry in entries
                if is_block_name(entry.name) and entry.is_dir in (None, not last)
            ]
        positions = (parse_block_path(block, grid) for block in found)
        return sorted(position for position in positions if position is not None)

    def document(self, key: MetadataKey, node: Node) -> dict[str, JSON] | None:
        """Make a Zarr document; None when the node has no such document."""
        if isinstance(node, DatasetView):
            if key.name == ".zattrs":
                # v2 has no dimension names: nothing of the attributes is shown elsewhere
                return in_axis_order(node.dataset.attributes, self.axis_order) or None
            return node.document() if key.name in ("zarr.json", ".zarray") else None
        match key.name:
            case "zarr.json":
                group = Record.from_json(node.record).extra
                return {
                    **group,
                    "zarr_format": 3,
                    "node_type": "group",
                    "attributes": dict(node.attributes),
                }
            case ".zattrs":
                return dict(node.attributes) or None
            case ".zgroup":
                return {"zarr_format": 2}
            case _:
                return None

    def served(self, key: MetadataKey, node: Node | None) -> Steps[dict[str, JSON] | None]:
        """Make a Zarr document, with the metadata of the nodes below where Zarr consolidated it."""
        document = None if node is None else self.document(key, node)
        if not isinstance(node, GroupAttributes) or not self.is_consolidated(node):
            return document
        if key.name == ".zmetadata":
            metadata = yield from self._documents_below(key.path, node, own=True)
            return {"zarr_consolidated_format": 1, "metadata": metadata}
        if document is not None and key.name == "zarr.json":
            metadata = yield from self._documents_below(key.path, node, own=False)
            below: JSON = {"kind": "inline", "must_understand": False, "metadata": metadata}
            return {**document, "consolidated_metadata": below}
        return document

    def is_consolidated(self, node: GroupAttributes) -> bool:
        """Whether the metadata below a group is shown with it; never on the fast way."""
        return self.codecs != "n5" and Record.from_json(node.record).consolidated

    def _documents_below(
        self, path: str, node: GroupAttributes, *, own: bool
    ) -> Steps[dict[str, JSON]]:
        """Make the documents of all nodes below a group: by key in v2, by path in v3."""
        documents: dict[str, JSON] = {}
        found: list[tuple[str, Node]] = [(path, node)] if own else []
        found += yield from self._nodes_below(path)
        for child, shown in found:
            for name in METADATA_NAMES[self.zarr_format]:
                document = self.document(MetadataKey(child, name), shown)
                below = child[len(path) :].removeprefix("/")
                if document is not None:
                    documents[join(below, name) if self.zarr_format == 2 else below] = document
        return documents

    def _nodes_below(self, path: str) -> Steps[list[tuple[str, Node]]]:
        found: list[tuple[str, Node]] = []
        for name, child in (yield from self._sound_children(path)):
            found.append((join(path, name), child))
            if isinstance(child, GroupAttributes):
                found += yield from self._nodes_below(join(path, name))
        return found

    def keys(self, path: str, node: Node) -> Steps[list[str]]:
        """Name every key at and below a node, sorted within each node."""
        keys = self._metadata_keys(path, node)
        if isinstance(node, DatasetView):
            blocks = yield from self.grid_positions(path, node)
            names = self.unusual.get(path, DEFAULT_NAMES[self.zarr_format])
            return keys + sorted(names.key(path, node.presented(g)) for g in blocks)
        for name, child in (yield from self._sound_children(path)):
            keys += yield from self.keys(join(path, name), child)
        return keys

    def _metadata_keys(self, path: str, node: Node) -> list[str]:
        names = METADATA_NAMES[self.zarr_format]
        return [join(path, name) for name in names if self.has(MetadataKey(path, name), node)]

    def has(self, key: MetadataKey, node: Node) -> bool:
        """Whether a node has a Zarr document of this name."""
        if key.name == ".zmetadata":
            return isinstance(node, GroupAttributes) and self.is_consolidated(node)
        return self.document(key, node) is not None

    def keys_below(self, path: str) -> Steps[list[str]]:
        """Name every key in a directory, as zarr's LocalStore does; ``""`` stands for all."""
        owner = yield from self._owner(path)
        if owner is None:
            return []
        keys = yield from self.keys(*owner)
        return [key for key in keys if not path or key.startswith(f"{path}/")]

    def _owner(self, path: str) -> Steps[tuple[str, Node] | None]:
        """Find the node that a key prefix lies in: the node itself, or the dataset above it."""
        node = yield from self.node(path)
        if node is not None:
            return path, node
        while path:
            path = path.rpartition("/")[0]
            node = yield from self.node(path)
            if isinstance(node, DatasetView):
                return path, node
            if node is not None:
                return None
        return None

    def names(
        self, path: str, known: GroupAttributes | None = None
    ) -> Steps[tuple[list[str], dict[str, Node]]]:
        """Name what lies directly below a path, sorted, and give the nodes among it by path.

        Parameters
        ----------
        path : str
            Normalised; ``""`` is the root.
        known : GroupAttributes, optional
            The group at the path, if it need not be read.
        """
        node = known or (yield from self.node(path))
        if isinstance(node, GroupAttributes):
            own = [key.rpartition("/")[2] for key in self._metadata_keys(path, node)]
            children = yield from self._sound_children(path)
            names = sorted([*own, *(name for name, _ in children)])
            return names, {join(path, name): child for name, child in children}
        prefix = f"{path}/" if path else ""
        below = yield from self.keys_below(path)
        return sorted({key[len(prefix) :].split("/")[0] for key in below}), {}


def _refusal(name: str) -> N5Error | None:
    """Say why no node can have the name of a directory that is there."""
    try:
        check_key(name)
    except N5Error as err:
        return err
    return None


def _warn_near_miss(path: str, document: JSON) -> Steps[None]:
    """Warn of a group that looks like a dataset with one key lost."""
    if not isinstance(document, dict) or len({*dataset_keys(document)} - {"codecs"}) < 3:
        return
    missing = missing_dataset_keys(document)
    if not set(missing) & Record.from_json(document.get(ZARR_KEY)).attributes.keys():
        yield [
            Warn(
                f"{join(path, ATTRIBUTES_JSON)}: shown as a group: it has "
                f"{', '.join(dataset_keys(document))}, but a dataset also has {', '.join(missing)}"
            )
        ]


def _as_group(document: JSON, *, is_root: bool) -> GroupAttributes:
    """Show a document as a group, whatever keys of a dataset it carries."""
    members = document if isinstance(document, dict) else {}
    return _with_record(group_attributes(members, is_root=is_root))


def _with_record(group: GroupAttributes) -> GroupAttributes:
    """Show the attributes of a group as they were written."""
    return replace(
        group, attributes=shown_attributes(group.attributes, Record.from_json(group.record))
    )


def _describes_dataset(path: str, data: bytes) -> Steps[bool]:
    try:
        return is_dataset((yield from _parsed(path, data)))
    except N5AttributesError:
        return False


def _parsed(path: str, data: bytes) -> Steps[JSON]:
    """Parse the document of a node.

    Java truncates documents before it writes them: one that is empty or cut is read again when
    nobody writes it.

    Raises
    ------
    N5AttributesError
        It is no JSON, or empty although there are blocks (``kind="json"``).
    """
    try:
        if data.strip():
            return parse_json(data)
    except N5AttributesError:
        pass
    (again,) = yield [Get(join(path, ATTRIBUTES_JSON), settled=True)]
    if isinstance(again, bytes) and again.strip():
        return parse_json(again)
    if (yield from _holds_blocks(path)):
        message = (
            "expected the document of a dataset, as there are blocks, got an empty file: a program "
            "was stopped while it wrote; write the document again, or remove the blocks"
        )
        raise N5AttributesError([Problem((), message, "json")])
    return None


def _holds_blocks(path: str) -> Steps[bool]:
    """Whether there are files below a node with the names of blocks."""
    folders = [path]
    while folders:
        listings = yield from _list_each(folders)
        below: list[str] = []
        for folder, entries in zip(folders, listings, strict=True):
            if folder != path and any(entry.name == ATTRIBUTES_JSON for entry in entries):
                continue  # a node that is called so
            blocks = [entry for entry in entries if is_block_name(entry.name)]
            if any(not entry.is_dir for entry in blocks):
                return True
            below += [join(folder, entry.name) for entry in blocks]
        folders = below
    return False
