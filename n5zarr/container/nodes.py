"""Read the nodes of a container, their children and blocks; classify each directory.

Each function is a generator of requests, see :mod:`n5zarr.storage.requests`.

The rules:

 - a directory with an ``attributes.json`` that describes a dataset is an array;
 - any other directory is a group, with or without ``attributes.json``; on an object store, any
   prefix with keys;
 - a root without document and nodes is no node, so that a container can be created there; nor are
   files and the directories of blocks below a dataset; a directory with only Zarr's documents is an
   error;
 - BigStitcher's ``setupN``, which have all keys of a dataset, are groups: if a document may be one
   of these (:attr:`~n5zarr.format.DatasetAttributes.may_be_group`), one listing decides.

A node below a dataset can be opened by its path, but is not listed, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

from n5zarr.container import codec_chain
from n5zarr.container.block_listing import holds_blocks
from n5zarr.container.data_types import default_fill, element_of_v3, type_of_numpy, v2_fill
from n5zarr.container.foreign import check_both, check_n5, check_place, holds_nodes
from n5zarr.container.formats import Formats
from n5zarr.container.memory import Creation, Memory, Node
from n5zarr.container.node_names import Broken, names_of_nodes
from n5zarr.container.options import ViewOptions
from n5zarr.errors import ErrorsAt, N5AttributesError, N5Error, N5FormatError, Problem
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    ZARR_KEY,
    DatasetAttributes,
    GroupAttributes,
    dataset_keys,
    group_attributes,
    is_dataset,
    missing_dataset_keys,
    parse_attributes,
)
from n5zarr.format.grid import is_block_name
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.path import groups_above, join
from n5zarr.format.version import VERSION_KEY, check_version
from n5zarr.storage.requests import (
    Entry,
    Get,
    List,
    Stamp,
    Steps,
    Warn,
    list_each,
    read_each,
    read_key,
)
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.record import Record, restore_attributes

_SHORT = 2**14  # bytes of a document whose view is remembered

_STALE_RECORD = """zarr: record ignored: another tool has changed the elements of the dataset; \
the type is that of dataType"""


def read_document(path: str) -> Steps[JSON]:
    """Read the document of a node; None if it is empty or absent.

    N5 spec, "File-system specification", item 2: ``attributes.json`` in the directory of a group.

    Raises
    ------
    N5AttributesError
        The document is not JSON, or empty although there are blocks (``kind="json"``).
    """
    data = yield from read_key(join(path, ATTRIBUTES_JSON))
    return None if data is None else (yield from _parse_document(path, data))


@dataclass(frozen=True)
class Nodes:
    """The groups and datasets of one container.

    Parameters
    ----------
    options : ViewOptions
        How datasets are presented.
    memory : Memory
        The memory of the store object: here the creation of arrays, and documents that a user
        passed to replace those in the container.
    has_stamps : bool, optional
        Whether storage can tell that another program has written a document.
    name : str, optional
        Name of the container, which may tell that it is Zarr.
    """

    options: ViewOptions
    memory: Memory
    has_stamps: bool = False
    name: str = ""

    @cached_property
    def formats(self) -> Formats:
        """The Zarr formats of the nodes."""
        return Formats(self.options.zarr_format, self.memory, self.has_stamps)

    def check_version(self) -> Steps[None]:
        """Check the version of the container, once.

        Raises
        ------
        N5UnsupportedError
            A later N5 wrote the container (``kind="version"``).
        """
        if self.memory.version_checked:
            return
        with ErrorsAt(ATTRIBUTES_JSON):
            document = yield from read_document("")
            if isinstance(document, dict):
                check_version(document.get(VERSION_KEY))
        self.memory.version_checked = True

    def node(self, path: str) -> Steps[Node | None]:
        """Read the node at a path.

        Parameters
        ----------
        path : str
            Normalised; ``""`` is the root.

        Returns
        -------
        DatasetView, GroupAttributes or None
            A dataset, a group, or nothing.

        Raises
        ------
        N5Error
            The node exists, but is broken or not supported.
        """
        assumed = self.memory.assumed.get(path)
        data = assumed or (yield from read_key(join(path, ATTRIBUTES_JSON)))
        if data is None:
            implicit = yield from self._is_implicit_group(path)
            return (yield from self.implicit_group(path)) if implicit else None
        if assumed is None:
            yield from check_place(path, data, self.name)
        return (yield from self.classify(path, data))

    def implicit_group(self, path: str) -> Steps[GroupAttributes]:
        """Make the group of a directory without a document."""
        group = GroupAttributes(attributes={})
        return self.formats.shown_as(group, (yield from self.formats.above(path)))

    def bare(self, path: str, entries: Sequence[Entry]) -> Steps[GroupAttributes | Broken]:
        """Make the child for a directory without a document."""
        try:
            yield from check_n5(path, entries)
        except N5FormatError as err:
            return Broken(err.located(path))
        return (yield from self.implicit_group(path))

    def classify(self, path: str, data: bytes) -> Steps[Node]:
        """Make a node from its document; list its children if the document does not decide."""
        created = self.memory.created.get(path)
        is_short = path and self.options.zarr_format is not None and len(data) <= _SHORT
        if is_short and (plain := _plain_dataset(bytes(data), self.options, created)) is not None:
            return plain
        with ErrorsAt(partial(join, path, ATTRIBUTES_JSON)):
            document = yield from _parse_document(path, data)
            if not path and isinstance(document, dict):
                check_version(document.get(VERSION_KEY))
            parsed = parse_attributes(document, is_root=not path)
            if isinstance(parsed, GroupAttributes):
                yield from _warn_near_miss(path, document)
                return (yield from self._group(path, parsed))
            if parsed.may_be_group:
                names = [entry.name for entry in (yield from list_each([path]))[0]]
                holds_children = any(name.startswith("timepoint") for name in names)
                if holds_children or not any(map(is_block_name, names)):
                    return (yield from self._group(path, _as_group(document, is_root=not path)))
            return (yield from self._dataset(path, parsed))

    def _group(self, path: str, group: GroupAttributes) -> Steps[GroupAttributes]:
        """Return a group with its attributes as written by Zarr, and its format in the record."""
        record = Record.from_json(group.record)
        restored = replace(group, attributes=restore_attributes(group.attributes, record))
        return self.formats.shown_as(restored, (yield from self.formats.at(path, record)))

    def _dataset(self, path: str, parsed: DatasetAttributes) -> Steps[DatasetView]:
        """Make the view of a dataset; ignore members of its record that no longer fit it."""
        record = Record.from_json(parsed.record)
        zarr_format = yield from self.formats.at(path, record)
        dataset = replace(parsed, attributes=restore_attributes(parsed.attributes, record))
        element = None
        if parsed.numpy_type is not None:
            data_type, fill_value = type_of_numpy(parsed.numpy_type)
            element = replace(element_of_v3(data_type, fill_value), kept_as=parsed.data_type)
            record = replace(record.without_elements(), data_type=data_type, fill_value=fill_value)
        elif record.data_type is not None or record.fill_value is not None:
            if record.fill_value is None:  # zarr writes it, but another program may have removed it
                record = replace(record, fill_value=default_fill(record.data_type))
            element = element_of_v3(record.data_type or parsed.data_type.value, record.fill_value)
            # the parts of an element, such as those of a complex number, are the first axis
            parts = () if element.n_parts is None else (element.n_parts,)
            shapes = (parsed.dimensions[: len(parts)], parsed.block_size[: len(parts)])
            if element.stored is not parsed.data_type or shapes != (parts, parts):
                yield [Warn(f"{join(path, ATTRIBUTES_JSON)}: {_STALE_RECORD}")]
                record, element = record.without_elements(), None
        created = self.memory.created.get(path)
        if created is not None and not created.fits(dataset, record.data_type):
            message = (
                "expected the elements and blocks with which this store object created the array, "
                "got others: another program has replaced it; open it with a new N5Store"
            )
            raise N5Error(message, kind="changed")
        view = DatasetView(
            dataset=dataset,
            codecs=self.options.codecs,
            axis_order=self.options.axis_order,
            record=record,
            element=element,
            given=created.document if created and created.zarr_format == zarr_format else None,
            zarr_format=zarr_format,
            chunk_grid=self.options.chunk_grid,
        )
        if element is not None and zarr_format == 2:
            data_type = record.data_type or parsed.data_type.value
            fill = v2_fill(data_type, record.fill_value, view.v2_dtype)
            view = replace(view, v2_fill=fill)
        codec_chain.check(view)
        return view

    def _is_implicit_group(self, path: str) -> Steps[bool]:
        """Whether a path without document is a group: a directory, but no directory of blocks.

        N5 spec, "File-system specification", item 1: every directory is a group.
        """
        (entries,) = yield [List(path, few=True)]
        if entries is None or not path:
            return bool(entries) and (yield from holds_nodes())
        yield from check_n5(path, entries)
        parent, _, name = path.rpartition("/")
        while is_block_name(name):
            data = yield from read_key(join(parent, ATTRIBUTES_JSON))
            if data is not None:
                try:
                    return not is_dataset((yield from _parse_document(parent, data)))
                except N5AttributesError:
                    return True
            if not parent:
                return True
            parent, _, name = parent.rpartition("/")
        return True

    def children(
        self, path: str, wanted: Callable[[str], bool] = lambda _: True
    ) -> Steps[list[tuple[str, Node | Broken]]]:
        """Read the children of a group, sorted by name.

        N5 spec, "File-system specification", item 1: directories are groups.

        Parameters
        ----------
        path : str
            Of the group.
        wanted : callable, optional
            Takes the name of a child, and returns whether to read it; all by default.

        Returns
        -------
        list of (str, node or Broken)
            Names and nodes, without files.
        """
        entries = (yield from list_each([path]))[0]
        yield from check_both(path, entries)
        names, refused = names_of_nodes(path, entries)
        found = yield from self.children_named(path, [*filter(wanted, names)], entries)
        return [*found, *((name, broken) for name, broken in refused if wanted(name))]

    def children_named(
        self, path: str, names: Sequence[str], entries: Sequence[Entry], *, keep: bool = False
    ) -> Steps[list[tuple[str, Node | Broken]]]:
        """Read the children with some names in a group, whose entries are known.

        With ``keep``, remember the nodes, in case they are opened next.
        """
        paths = [join(path, name) for name in names]
        stamps: Sequence[object] = ()
        if keep and self.has_stamps:
            stamps = yield [Stamp(join(child, ATTRIBUTES_JSON)) for child in paths]
        nodes = yield from self.nodes_at(paths)
        bare = [name for name, node in zip(names, nodes, strict=True) if node is None]
        # an object store has no directories without keys: check whether keys exist
        keys = dict(zip(bare, (yield [List(join(path, n), few=True) for n in bare]), strict=True))
        children: list[tuple[str, Node | Broken]] = []
        nested = {entry.name for entry in entries if entry.is_nested_link}
        for name, node in zip(names, nodes, strict=True):
            if name in nested and not isinstance(node, DatasetView | Broken):
                continue
            if node is not None:
                children.append((name, node))
            elif (inside := keys[name]) is not None:
                children.append((name, (yield from self.bare(join(path, name), inside))))
        if keep:
            sound = ((name, node) for name, node in children if not isinstance(node, Broken))
            known = {path: s for path, s in zip(paths, stamps, strict=False) if s is not None}
            listed = {join(path, name): node for name, node in sound}
            if self.has_stamps:
                listed = {path: node for path, node in listed.items() if path in known}
            self.memory.keep_listed(listed, known)
        return children

    def nodes_at(self, paths: Sequence[str]) -> Steps[list[Node | Broken | None]]:
        """Read the nodes at some paths; None for each without a document."""
        keys = [join(path, ATTRIBUTES_JSON) for path in paths]
        documents: list[bytes | N5FormatError | None] = []
        try:
            documents += yield from read_each(keys)
        except N5FormatError:  # a document is not a file: read one by one to find it
            for key in keys:
                try:
                    documents.append((yield from read_key(key)))
                except N5FormatError as err:
                    documents.append(err)
        nodes: list[Node | Broken | None] = []
        for path, document in zip(paths, documents, strict=True):
            if isinstance(document, bytes):
                try:
                    nodes.append((yield from self.classify(path, document)))
                except N5Error as err:
                    check_of_node(err)
                    nodes.append(Broken(err))
            else:
                nodes.append(None if document is None else Broken(document))
        return nodes

    def above(self, path: str) -> Steps[list[Mapping[str, JSON]]]:
        """Read the attributes of the groups above a node, the nearest first."""
        paths = groups_above(path)[::-1]
        documents = yield from read_each([join(above, ATTRIBUTES_JSON) for above in paths])
        attributes: list[Mapping[str, JSON]] = []
        for above, data in zip(paths, documents, strict=True):
            try:
                document = None if data is None else (yield from _parse_document(above, data))
                group = _as_group(document, is_root=not above)
                record = Record.from_json(group.record)
                attributes.append(restore_attributes(group.attributes, record))
            except N5Error as err:
                check_of_node(err)
                yield [Warn(f"axes in {join(above, ATTRIBUTES_JSON)} ignored: {err}")]
                attributes.append({})
        return attributes

    def datasets(self, paths: Sequence[str]) -> Steps[dict[str, DatasetView]]:
        """Read the nodes at some paths, and return those that are datasets; list no directory."""
        nodes = yield from self.nodes_at(paths)  # opening a broken node itself raises its error
        found = zip(paths, nodes, strict=True)
        return {path: node for path, node in found if isinstance(node, DatasetView)}


@lru_cache(maxsize=256)
def _plain_dataset(
    data: bytes, options: ViewOptions, created: Creation | None
) -> DatasetView | None:
    """Make the view of a dataset of which its document says all; None for any other node.

    Remembered for all containers: making it takes longer than reading the document.
    """
    try:
        parsed = parse_attributes(parse_json(data), is_root=False)
        if isinstance(parsed, GroupAttributes) or parsed.may_be_group:
            return None
        is_as_created = created is None or (
            created.zarr_format == options.zarr_format and created.fits(parsed, None)
        )
        if (parsed.record, parsed.numpy_type) != (None, None) or not is_as_created:
            return None
        view = DatasetView(
            dataset=parsed,
            codecs=options.codecs,
            axis_order=options.axis_order,
            zarr_format=options.zarr_format or 3,
            given=None if created is None else created.document,
            chunk_grid=options.chunk_grid,
        )
        codec_chain.check(view)
    except N5Error:  # which reading the node raises again, with its place
        return None
    return view


def check_of_node(err: N5Error) -> None:
    """Re-raise an error if storage failed, and not if a node is broken."""
    if err.kind in ("listing", "option"):
        raise err


def _warn_near_miss(path: str, document: JSON) -> Steps[None]:
    """Warn of a group that looks like a dataset without one of its keys."""
    if not isinstance(document, dict) or len({*dataset_keys(document)} - {"codecs"}) < 3:
        return
    missing = missing_dataset_keys(document)
    if not set(missing) & Record.from_json(document.get(ZARR_KEY)).attributes.keys():
        yield [
            Warn(
                f"{join(path, ATTRIBUTES_JSON)}: read as a group: it has "
                f"{', '.join(dataset_keys(document))}, but a dataset also has {', '.join(missing)}"
            )
        ]


def _as_group(document: JSON, *, is_root: bool) -> GroupAttributes:
    """Make a group from a document, even if it has keys of a dataset."""
    members = document if isinstance(document, dict) else {}
    return group_attributes(members, is_root=is_root)


def _parse_document(path: str, data: bytes) -> Steps[JSON]:
    """Parse the document of a node.

    Java truncates documents before it writes them: so an empty or incomplete document is read again
    while no program writes it.

    Raises
    ------
    N5AttributesError
        The document is not JSON, or empty although there are blocks (``kind="json"``).
    """
    try:
        if data.strip():
            return parse_json(data)
    except N5AttributesError:
        pass
    (again,) = yield [Get(join(path, ATTRIBUTES_JSON), settled=True)]
    if again is not None and bytes(again).strip():
        return parse_json(bytes(again))
    if (yield from holds_blocks(path)):
        message = (
            "expected the document of a dataset, as there are blocks, got an empty file: a program "
            "was stopped while writing; write the document again, or remove the blocks"
        )
        raise N5AttributesError([Problem((), message, "json")])
    return None
