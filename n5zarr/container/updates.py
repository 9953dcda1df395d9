"""What Zarr writes, as changes to a container; without doing any input or output.

Generators of requests, as in :mod:`n5zarr.container.nodes`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from n5zarr._zarr_private import spelled
from n5zarr.container.data_types import element_of_v2, element_of_v3, v3_form
from n5zarr.conventions.axis_names import in_axis_order
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.path import join
from n5zarr.storage.requests import Get, List, Remove, Update
from n5zarr.zarr_view.from_zarr import (
    Members,
    check_v3,
    members_of_v2,
    members_of_v3,
)
from n5zarr.zarr_view.keys import ChunkNames
from n5zarr.zarr_view.merge import KEEP, Change, changed, names_n5

if TYPE_CHECKING:
    from n5zarr.container.nodes import Hierarchy, Node
    from n5zarr.storage.requests import Steps
    from n5zarr.zarr_view.keys import MetadataKey

__all__ = ["parse_document", "remove_document", "write_document"]

_V3_IDENTITY = ("data_type", "chunk_grid", "codecs", "fill_value")
_V2_IDENTITY = ("dtype", "chunks", "compressor", "filters", "order", "fill_value")
_GROUP_KEYS = ("zarr_format", "node_type", "attributes", "consolidated_metadata")
_NAMING = ("axes", "_ARRAY_DIMENSIONS")


def parse_document(key: MetadataKey, value: bytes) -> dict[str, Any]:
    """Read a document that Zarr writes.

    Raises
    ------
    N5UnrepresentableError
        It is no Zarr document of this name (``kind="json"``).
    """
    try:
        document = json.loads(value)
    except ValueError as err:
        message = f"{key.name}: expected a Zarr document, got {value[:60]!r}"
        raise N5UnrepresentableError(message, kind="json") from err
    if not isinstance(document, dict) or not _is_of(key.name, document):
        message = (
            f"{key.name}: expected a Zarr document of this name, got {value[:60]!r}; "
            "an N5 container holds no other keys"
        )
        raise N5UnrepresentableError(message, kind="json")
    return document


def _is_of(name: str, document: dict[str, Any]) -> bool:
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
    hierarchy: Hierarchy,
    key: MetadataKey,
    document: dict[str, Any],
    base: bytes | None,
    *,
    only_new: bool = False,
    has_root: bool = False,
) -> Steps[Node | None]:
    """Write a Zarr document.

    Parameters
    ----------
    hierarchy : Hierarchy
        The container.
    key : MetadataKey
        Of the document.
    document : dict
        See :func:`parse_document`.
    base : bytes or None
        The document under this key as the store last served or took it, which is what Zarr started
        from.
    only_new : bool, optional
        Write nothing where the node has a document.
    has_root : bool, optional
        Whether the container is known to have a root, so that it is not looked for.

    Returns
    -------
    Presentation, GroupAttributes or None
        The node as it is now; None when ``only_new`` found a document.

    Raises
    ------
    N5UnrepresentableError
        N5 cannot hold it; nothing is written.
    """
    _check_name(key.path)
    old = None if base is None else json.loads(base)
    fresh = _change(hierarchy, key, document, None)
    change = fresh if old is None else _change(hierarchy, key, document, old)
    if fresh.makes_group and (yield from _is_group(hierarchy, key.path)):
        fresh, change = replace(fresh, is_group=True), replace(change, is_group=True)
    if key.path and not has_root:
        yield from make_root()
    applied: list[Change] = []

    def apply(data: bytes | None) -> bytes:
        applied.clear()  # what was applied to something that others have replaced
        if only_new and data is not None:
            return data
        # of a node that is not there any more nothing can be kept
        applied.append(change if data and data.strip() else fresh)
        return changed(data, applied[-1])

    (data,) = yield [Update(join(key.path, ATTRIBUTES_JSON), apply)]
    if not applied:
        return None
    assert isinstance(data, bytes)  # noqa: S101 - the answer to Update
    members = applied[-1].members
    if isinstance(members, Members):
        hierarchy.created(key.path, document, members.element.stored, members.block_size)
    return (yield from hierarchy.classify(key.path, data))


def _is_group(hierarchy: Hierarchy, path: str) -> Steps[bool]:
    return isinstance((yield from hierarchy.node(path)), GroupAttributes)


def _change(
    hierarchy: Hierarchy, key: MetadataKey, document: dict[str, Any], old: dict[str, Any] | None
) -> Change:
    is_root = not key.path
    attributes = document.get("attributes") or {}
    base = None if old is None else old.get("attributes", {})
    match key.name:
        case ".zattrs":
            in_order = partial(in_axis_order, axis_order=hierarchy.axis_order)
            base = None if old is None else in_order(old)
            return Change(attributes=in_order(document), base=base, is_root=is_root)
        case ".zgroup":
            return Change(makes_group=old is None, is_root=is_root)
        case ".zmetadata":
            return Change(consolidated=True, is_root=is_root)
        case ".zarray":
            return _v2_array(hierarchy, document, old, is_root=is_root)
        case _ if document["node_type"] == "array":
            return _v3_array(hierarchy, document, old, is_root=is_root)
    consolidated = document.get("consolidated_metadata") is not None
    before = old is not None and old.get("consolidated_metadata") is not None
    extra, extra_before = _other_members(document), None if old is None else _other_members(old)
    was_array = old is not None and old.get("node_type") == "array"
    return Change(
        attributes=attributes,
        base=base,
        # where others have made a dataset of one since, only its attributes change
        makes_group=old is None or was_array,
        consolidated=KEEP if consolidated == before else consolidated,
        extra=KEEP if extra == extra_before else extra,
        is_root=is_root,
    )


def _other_members(document: dict[str, Any]) -> dict[str, Any]:
    """Give the members of a group's ``zarr.json`` that readers need not understand."""
    return {key: value for key, value in document.items() if key not in _GROUP_KEYS}


def _v3_array(
    hierarchy: Hierarchy, document: dict[str, Any], old: dict[str, Any] | None, *, is_root: bool
) -> Change:
    check_v3(document)
    element = element_of_v3(document["data_type"], document["fill_value"])
    members = members_of_v3(document, element, hierarchy.axis_order)
    attributes = document.get("attributes") or {}
    same = old is not None and _is_same(old, document, _V3_IDENTITY)
    before = (old or {}).get("attributes") or {}
    renamed = (old or {}).get("dimension_names") != document.get("dimension_names")
    named = any(attributes.get(k) != before.get(k) for k in _NAMING)
    resized = same and old is not None and old.get("shape") != document["shape"]
    return Change(
        attributes=attributes,
        base=before if same or old == {} else None,
        members=KEEP if same else members,
        resized=members if resized else KEEP,
        names=(
            names_n5(document.get("dimension_names"), hierarchy.axis_order)
            if renamed or named or not same
            else KEEP
        ),
        ndim=len(document["shape"]),
        rank=len(members.dimensions),
        is_root=is_root,
    )


def _v2_array(
    hierarchy: Hierarchy, document: dict[str, Any], old: dict[str, Any] | None, *, is_root: bool
) -> Change:
    ChunkNames.of(document)
    members = members_of_v2(
        document, element_of_v2(document), v3_form(document), hierarchy.axis_order
    )
    same = old is not None and _is_same(old, document, _V2_IDENTITY)
    resized = same and old is not None and old.get("shape") != document["shape"]
    return Change(
        members=KEEP if same else members,
        resized=members if resized else KEEP,
        is_root=is_root,
    )


def _is_same(old: dict[str, Any], new: dict[str, Any], identity: tuple[str, ...]) -> bool:
    """Whether two documents describe the same elements, chunks and codecs, however spelled."""
    if not old or old.get("node_type", "array") != "array":
        return False
    if all(old.get(key) == new.get(key) for key in identity):
        return True
    first, second = spelled(old), spelled(new)
    return all(first.get(key) == second.get(key) for key in identity)


def _check_name(path: str) -> None:
    """Refuse names that would hide documents."""
    if ATTRIBUTES_JSON in path.split("/"):
        message = f"path {path!r}: N5 keeps its documents under the name {ATTRIBUTES_JSON!r}"
        raise N5UnrepresentableError(message, kind="path")


def remove_document(hierarchy: Hierarchy, key: MetadataKey, node: Node | None) -> Steps[None]:
    """Remove a Zarr document, and in v2 what it stands for.

    A group that has children is still one afterwards, since N5 needs no document for that.
    """
    if (node is None or hierarchy.document(key, node) is None) and key.name != ".zmetadata":
        return
    path = join(key.path, ATTRIBUTES_JSON)
    match key.name:
        case ".zattrs":
            change = Change(attributes={})
        case ".zarray":
            change = Change(members=None)
        case ".zmetadata":
            change = Change(consolidated=False)
        case _:
            yield [Remove(path)]
            return
    (data,) = yield [Get(path)]
    if data is None:
        return
    (left,) = yield [Update(path, lambda data: changed(data, change))]
    if left == b"{}" and key.name == ".zarray":
        yield [Remove(path)]


def make_root() -> Steps[None]:
    """Give a new container its version; one that holds something already is left as it is."""
    found, entries = yield [Get(ATTRIBUTES_JSON), List("")]
    if found is None and not entries:
        root = Change(is_root=True)
        yield [Update(ATTRIBUTES_JSON, lambda data: changed(data, root) if data is None else data)]
