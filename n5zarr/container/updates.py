"""Apply the documents that Zarr writes to ``attributes.json``, as changes.

N5 spec, "File-system specification", items 2 to 4: attributes, version, keys of a dataset.

Each function that returns ``Steps`` is a generator of requests, see
:mod:`n5zarr.storage.requests`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from n5zarr._zarr import spelled
from n5zarr.container.data_types import element_of_v2, element_of_v3, v3_form
from n5zarr.container.memory import Memory, Node, check_still_there, gone
from n5zarr.container.nodes import Nodes
from n5zarr.container.options import ViewOptions, require
from n5zarr.container.resizing import pad_blocks
from n5zarr.conventions.axis_names import in_axis_order
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.attributes import (
    ATTRIBUTES_JSON,
    ZARR_KEY,
    DatasetAttributes,
    GroupAttributes,
    own_keys,
    parse_attributes,
)
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.order import AxisOrder
from n5zarr.format.path import groups_above, join
from n5zarr.format.raw_json import RawObject
from n5zarr.storage.requests import Get, List, Remove, Steps, Update, Warn, list_each, read_key
from n5zarr.zarr_view.change import (
    Change,
    NewArray,
    NewAttributes,
    NewGroup,
    NewNames,
    NoArray,
    NodeContext,
    Outcome,
    Resized,
    WrittenFormat,
)
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.from_zarr import check_v3, members_of_v2, members_of_v3
from n5zarr.zarr_view.keys import ChunkNames, MetadataKey
from n5zarr.zarr_view.merge import changed, names_n5, other_format
from n5zarr.zarr_view.record import Record, restore_attributes

type ZarrDocument = dict[str, Any]
"""A ``zarr.json``, ``.zarray`` or similar document, which zarr has checked."""

_V3_IDENTITY = ("data_type", "chunk_grid", "codecs", "fill_value")
_V2_IDENTITY = ("dtype", "chunks", "compressor", "filters", "order", "fill_value")
_GROUP_KEYS = ("zarr_format", "node_type", "attributes", "consolidated_metadata")
_NAMING = ("axes", "_ARRAY_DIMENSIONS")


def parse_document(key: MetadataKey, value: bytes) -> ZarrDocument:
    """Parse a document that Zarr writes.

    Raises
    ------
    N5UnrepresentableError
        The value is not a Zarr document of this name (``kind="json"``), or the node has the name
        of N5's documents (``kind="path"``).
    """
    try:
        document = json.loads(value)
    except ValueError as err:
        message = f"{key.name}: expected a Zarr document, got {value[:60]!r}"
        raise N5UnrepresentableError(message, kind="json") from err
    require(
        isinstance(document, dict) and _is_of(key.name, document),
        f"{key.name}: expected a Zarr document of this name, got {value[:60]!r}; an N5 container "
        "has no other keys",
        kind="json",
    )
    require(  # it would hide the document of the group above
        ATTRIBUTES_JSON not in key.path.split("/"),
        f"path {key.path!r}: N5 reserves the name {ATTRIBUTES_JSON!r} for its documents",
        kind="path",
    )
    members: ZarrDocument = document
    return members


def _is_of(name: str, document: ZarrDocument) -> bool:
    required = {
        "zarr.json": {"zarr_format", "node_type"},
        ".zarray": {"zarr_format", "shape", "chunks", "dtype"},
        ".zgroup": {"zarr_format"},
        ".zmetadata": {"metadata"},
        ".zattrs": set[str](),
    }[name]
    if document.get("node_type") == "array":
        required = required | {"shape", "data_type", "chunk_grid", "codecs", "fill_value"}
    return required <= document.keys()


def write_document(
    nodes: Nodes,
    key: MetadataKey,
    document: ZarrDocument,
    served: bytes | None,
    *,
    only_new: bool = False,
) -> Steps[Node | None]:
    """Write a Zarr document: apply the changes that Zarr made in it to the document on disk.

    Parameters
    ----------
    nodes, key : Nodes, MetadataKey
        The container, and the key of the document.
    document : dict
        See :func:`parse_document`.
    served : bytes or None
        The document last served or written under this key: Zarr's change starts from it.
    only_new : bool, optional
        Write nothing if the node has a document.

    Returns
    -------
    DatasetView, GroupAttributes or None
        The node after the change; None if ``only_new`` and the document existed.

    Raises
    ------
    N5UnrepresentableError
        N5 cannot hold the document; nothing is written.
    """
    whole = _whole_document(key, document, nodes.options)
    whole = yield from _in_place(nodes, key, whole, is_known=served not in (None, b"{}"))
    yield from _make_parents(nodes, key, whole.written)
    old = None if served is None else json.loads(served)
    change = whole if old is None else _since(whole, key, document, old, nodes.options.axis_order)
    if key.path and not nodes.memory.has_root:
        yield from make_root()
    path, applied, told = join(key.path, ATTRIBUTES_JSON), list[Change](), list[str]()
    opened = _opened_dataset(nodes.memory, key.path, change.kind)

    def apply(data: bytes | None) -> bytes:
        applied.clear()  # called again if another program has replaced the document meanwhile
        if only_new and data is not None:
            return data
        _check_document(opened, data)
        nodes.memory.keep_before(key.path, data)
        applied.append(change if data and data.strip() else whole)  # whole: the group was removed
        return changed(data, applied[-1], told)

    (data,) = yield from _resizing(nodes, key.path, change.kind, Update(path, apply), opened)
    if not applied:
        return None
    if isinstance(kind := applied[-1].kind, NewArray):
        members = kind.members
        made = (members.element.stored, members.block_size, members.record.data_type)
        nodes.memory.create(key.path, document, made)
    yield [Warn(f"{key.path or '/'}: {each}") for each in told]
    return (yield from nodes.classify(key.path, data))


def _opened_dataset(memory: Memory, path: str, kind: Outcome | None) -> DatasetAttributes | None:
    """Return the known dataset that Zarr changes; None if it creates or removes a node."""
    view = memory.dataset(path)
    if view is None or path in memory.assumed or isinstance(kind, NewGroup | NoArray):
        return None
    opened = view.dataset
    if isinstance(kind, NewArray):
        made = kind.members.element.stored, kind.members.block_size
        return opened if made == (opened.data_type, opened.block_size) else None
    return opened


def _check_document(opened: DatasetAttributes | None, data: bytes | None) -> None:
    """Raise if a document on disk is no longer that of a dataset, if one was opened."""
    if opened is None:
        return
    now = parse_attributes(RawObject.parse(data).values)
    if not isinstance(now, DatasetAttributes):
        raise gone(data)
    check_still_there(opened, now)


def _resizing(
    nodes: Nodes, path: str, kind: Outcome | None, update: Update, opened: DatasetAttributes | None
) -> Steps[Sequence[bytes]]:
    """Request an update of a document; if it resizes a dataset, pad blocks whose extent changes."""
    before = (yield from nodes.node(path)) if isinstance(kind, Resized) else None
    if not isinstance(kind, Resized) or not isinstance(before, DatasetView):
        return (yield [update])
    if opened is not None:
        check_still_there(opened, before.dataset)
    yield from pad_blocks(path, before, kind.members.dimensions)
    answers = yield [update]
    # another program may have written truncated blocks meanwhile
    yield from pad_blocks(path, before, kind.members.dimensions)
    return answers


def update_attributes(
    path: str,
    change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]],
    *,
    is_group: bool,
) -> Steps[None]:
    """Replace the attributes of a node by a function of them, while no other program writes them.

    Parameters
    ----------
    path : str
        Of the node.
    change : callable
        Takes the users' attributes, and returns the new ones; called again if another program has
        replaced the document meanwhile.
    is_group : bool
        Whether the node is a group, even if its document has keys of a dataset; otherwise the
        document decides.
    """

    def apply(data: bytes | None) -> bytes:
        if not is_group and not (data and data.strip()):
            message = "expected the document of a dataset, got none or an empty one; open it again"
            raise N5Error(message, kind="changed")
        document = parse_json(data) if data and data.strip() else {}
        document = document if isinstance(document, dict) else {}
        own = own_keys(document, is_group=is_group, is_root=not path)
        users = {key: value for key, value in document.items() if key not in own}
        before = restore_attributes(users, Record.from_json(document.get(ZARR_KEY)))
        made = NewAttributes(change(before), base=before)
        node = NodeContext(is_root=not path, is_group=is_group)
        return changed(data, Change(node=node, attributes=made), told)

    told: list[str] = []
    yield [Update(join(path, ATTRIBUTES_JSON), apply)]
    yield [Warn(f"{path or '/'}: {each}") for each in told]


def _in_place(nodes: Nodes, key: MetadataKey, change: Change, *, is_known: bool) -> Steps[Change]:
    """Add the context of a change: the kind of the node, and the Zarr format above it.

    Raises
    ------
    N5Error
        The change would turn a group of the other format into an array (``kind="changed"``).
    """
    above = yield from nodes.formats.above(key.path)
    is_fixed = nodes.formats.fixed is not None
    is_there = False
    if not is_fixed and 2 in (key.zarr_format, above):
        is_there = yield from _holds_others(nodes, key)
    if is_there and isinstance(change.kind, NewArray):
        raise other_format("a group", key.zarr_format)
    made = (yield from nodes.node(key.path)) if isinstance(change.kind, NewGroup) else None
    written = WrittenFormat(
        zarr_format=key.zarr_format,
        names_format=key.name in ("zarr.json", ".zarray", ".zgroup"),
        above=above,
        is_there=is_there,
        is_known=is_known,
        is_fixed=is_fixed,
    )
    node = NodeContext(is_root=not key.path, is_group=isinstance(made, GroupAttributes))
    return replace(change, node=node, written=written)


def _whole_document(key: MetadataKey, document: ZarrDocument, options: ViewOptions) -> Change:
    """Make the change that writes a whole document, as for a new node."""
    axis_order = options.axis_order
    match key.name:
        case ".zattrs":
            return Change(attributes=NewAttributes(in_axis_order(document, axis_order)))
        case ".zgroup":
            return Change(kind=NewGroup())
        case ".zmetadata":
            return Change(consolidated=True)
        case ".zarray":
            ChunkNames.of(document)
            element = element_of_v2(document)
            keeps_zero = options.zarr_format is None
            members = members_of_v2(
                document, element, v3_form(document), axis_order, keeps_zero=keeps_zero
            )
            return Change(kind=NewArray(members))
        case _ if document["node_type"] == "array":
            check_v3(document)
            element = element_of_v3(document["data_type"], document["fill_value"])
            members = members_of_v3(document, element, axis_order)
            names = names_n5(document.get("dimension_names"), axis_order)
            ndim, rank = len(document["shape"]), len(members.dimensions)
            return Change(
                kind=NewArray(members),
                attributes=NewAttributes(document.get("attributes") or {}),
                names=NewNames(names=names, ndim=ndim, rank=rank),
            )
    return Change(
        kind=NewGroup(),
        attributes=NewAttributes(document.get("attributes") or {}),
        consolidated=_is_consolidated(document) or None,
        extra=_other_members(document),
    )


def _since(
    whole: Change,
    key: MetadataKey,
    document: ZarrDocument,
    old: ZarrDocument,
    axis_order: AxisOrder,
) -> Change:
    """Reduce the change of a whole document to Zarr's changes since it was served."""
    match key.name:
        case ".zattrs":
            return whole.since(in_axis_order(old, axis_order))
        case ".zgroup":
            return replace(whole, kind=None) if old else whole
        case ".zmetadata":
            return whole
        case ".zarray":
            return _array_since(whole, document, old, _V2_IDENTITY)
        case _:
            return _v3_since(whole, document, old)


def _v3_since(whole: Change, document: ZarrDocument, old: ZarrDocument) -> Change:
    before: ZarrDocument = old.get("attributes") or {}
    if document["node_type"] == "array":
        change = _array_since(whole, document, old, _V3_IDENTITY)
        renamed = old.get("dimension_names") != document.get("dimension_names")
        attributes = document.get("attributes") or {}
        named = any(attributes.get(k) != before.get(k) for k in _NAMING)
        same = not isinstance(change.kind, NewArray)
        names = whole.names if renamed or named or not same else None
        return replace(change, names=names).since(before if same or old == {} else None)
    consolidated, extra = _is_consolidated(document), _other_members(document)
    return replace(
        whole,
        # if another program has made the group a dataset since, only its attributes change
        kind=whole.kind if old.get("node_type") == "array" else None,
        consolidated=None if consolidated == _is_consolidated(old) else consolidated,
        extra=None if extra == _other_members(old) else extra,
    ).since(before)


def _array_since(
    whole: Change, document: ZarrDocument, old: ZarrDocument, identity: tuple[str, ...]
) -> Change:
    """Keep an array's members, except for a new extent, if Zarr has not changed them."""
    if not isinstance(whole.kind, NewArray) or not _is_same(old, document, identity):
        return whole
    is_resized = old.get("shape") != document["shape"]
    return replace(whole, kind=Resized(whole.kind.members) if is_resized else None)


def _is_consolidated(document: ZarrDocument) -> bool:
    return document.get("consolidated_metadata") is not None


def _other_members(document: ZarrDocument) -> ZarrDocument:
    """Return the members of a group's ``zarr.json`` that readers need not understand."""
    return {key: value for key, value in document.items() if key not in _GROUP_KEYS}


def _is_same(old: ZarrDocument, new: ZarrDocument, identity: tuple[str, ...]) -> bool:
    """Whether two documents describe the same elements, chunks and codecs, in any notation."""
    if not old or old.get("node_type", "array") != "array":
        return False
    if all(old.get(key) == new.get(key) for key in identity):
        return True
    first, second = spelled(old), spelled(new)
    return all(first.get(key) == second.get(key) for key in identity)


def remove_document(key: MetadataKey) -> Steps[None]:
    """Remove an existing Zarr document; in v2, its part of ``attributes.json``.

    A group with children remains a group, since N5 needs no document for that.
    """
    path, node = join(key.path, ATTRIBUTES_JSON), NodeContext(is_root=not key.path)
    match key.name:
        case ".zattrs":
            change = Change(node=node, attributes=NewAttributes({}))
        case ".zarray":
            change = Change(node=node, kind=NoArray())
        case ".zmetadata":
            change = Change(node=node, consolidated=False)
        case _:
            yield [Remove(path, prune=True)]
            return
    if (yield from read_key(path)) is None:
        return
    (left,) = yield [Update(path, lambda data: changed(data, change))]
    if left == b"{}" and key.name == ".zarray":
        yield [Remove(path, prune=True)]


def _holds_others(nodes: Nodes, key: MetadataKey) -> Steps[bool]:
    """Whether a group of the other format exists with nodes below it, even without a document."""
    node = yield from nodes.node(key.path)
    if not isinstance(node, GroupAttributes) or nodes.formats.of(node) == key.zarr_format:
        return False
    # an empty directory may have just been created for another document of the same node
    entries = (yield from list_each([key.path]))[0]
    return any(entry.is_dir is not False for entry in entries)


def _make_parents(nodes: Nodes, key: MetadataKey, written: WrittenFormat) -> Steps[None]:
    """Create the missing groups above a new node, in its format.

    Zarr creates them too, at the same time as the node; but then the order would decide whether
    they are new, or directories of the other format. Servers have no directories, and v3 needs no
    documents there.
    """
    is_mixed = not written.is_fixed and 2 in (key.zarr_format, written.above)
    if not is_mixed and (written.is_known or not nodes.has_stamps):
        return
    is_new = (yield from nodes.node(key.path)) is None
    for path in groups_above(key.path) if is_new else ():
        if (yield from nodes.node(path)) is None:
            above = yield from nodes.formats.above(path)
            zarr_format = None if written.is_fixed else key.zarr_format
            made = Change(
                node=NodeContext(is_root=not path),
                written=WrittenFormat(zarr_format=zarr_format, above=above),
            )
            yield [Update(join(path, ATTRIBUTES_JSON), partial(_unless_there, made))]


def _unless_there(change: Change, data: bytes | None) -> bytes:
    return changed(data, change) if data is None else data


def make_root() -> Steps[None]:
    """Write the version into a new container; do not change a container that is not empty."""
    document, entries = yield [Get(ATTRIBUTES_JSON), List("")]
    if document is None and not entries:
        root = Change(node=NodeContext(is_root=True))
        yield [Update(ATTRIBUTES_JSON, partial(_unless_there, root))]
