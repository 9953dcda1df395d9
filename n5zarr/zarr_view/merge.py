"""Merge the document that Zarr writes into the ``attributes.json`` on disk.

Zarr writes whole documents made from what it read earlier; other programs may have written since.
So only the difference to what the store last returned to Zarr is applied to what is on disk now.
What other programs wrote keeps its place and its text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from n5zarr.conventions.axis_names import AXES_KEY, derived_names
from n5zarr.errors import N5Error
from n5zarr.format.attributes import (
    DATASET_KEYS,
    ZARR_KEY,
    DatasetAttributes,
    describes_array,
    is_dataset,
    own_keys,
    parse_attributes,
)
from n5zarr.format.order import from_presented
from n5zarr.format.raw_json import RawObject
from n5zarr.format.version import SUPPORTED_VERSION, VERSION_KEY, is_version
from n5zarr.zarr_view.record import Record, json_pointers, shown_attributes

if TYPE_CHECKING:
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder
    from n5zarr.zarr_view.from_zarr import Members

__all__ = ["KEEP", "Change", "changed", "names_n5"]

KEEP: Literal["keep"] = "keep"
"""Says that a part of the document stays as it is."""

_OWN_KEYS = (*DATASET_KEYS, VERSION_KEY, ZARR_KEY)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What Zarr changes in the document of a node.

    Parameters
    ----------
    attributes : mapping or KEEP
        The users' attributes.
    base : mapping or None
        The attributes that Zarr started from; None where that is what is on disk.
    members : Members, None or KEEP
        N5's keys of an array; None for a group.
    resized : Members or KEEP
        N5's keys of an array, where only its ``dimensions`` change.
    names : sequence of str and None, None or KEEP
        Dimension names in N5 order.
    ndim, rank : int
        Number of dimensions of the array and of the dataset; needed with ``names``.
    consolidated : bool or KEEP
        Whether Zarr consolidated the metadata below.
    extra : mapping or KEEP
        Other members of the ``zarr.json`` of a group.
    is_root : bool
        Whether the node is the root, which has N5's version in a new container.
    makes_group : bool
        Whether Zarr creates a group; a dataset is not replaced by one.
    is_group : bool
        Whether a listing told that the node is a group although its document describes a dataset.
    """

    attributes: Mapping[str, JSON] | Literal["keep"] = KEEP
    base: Mapping[str, JSON] | None = None
    members: Members | Literal["keep"] | None = KEEP
    resized: Members | Literal["keep"] = KEEP
    names: Sequence[str | None] | Literal["keep"] | None = KEEP
    ndim: int = 0
    rank: int = 0
    consolidated: bool | Literal["keep"] = KEEP
    extra: Mapping[str, JSON] | Literal["keep"] = KEEP
    is_root: bool = False
    makes_group: bool = False
    is_group: bool = False

    def is_of_array(self, raw: RawObject) -> bool:
        """Whether the document on disk is that of an array."""
        return describes_array(raw.values, is_group=self.is_group)

    def own_keys(self, raw: RawObject) -> tuple[str, ...]:
        """Name the keys of the document that are no attributes."""
        return own_keys(raw.values, is_group=not self.is_of_array(raw), is_root=self.is_root)

    def is_reserved(self, raw: RawObject, key: str, value: JSON) -> bool:
        """Whether an attribute would be taken for one of N5's own keys, and is not meant to be."""
        if self.is_of_array(raw):
            return key in _OWN_KEYS
        # a value that is a version is hidden on groups; only the root's is the container's
        if key == VERSION_KEY:
            return self.is_root != is_version(value)
        completes = is_dataset({**raw.values, key: []}) and not is_dataset(raw.values)
        return completes or key == ZARR_KEY


def changed(data: bytes | None, change: Change) -> bytes:
    """Apply a change to the document on disk.

    N5 spec, "File-system specification", item 3: a new container gets the version.

    Parameters
    ----------
    data : bytes or None
        The document on disk; None where there is none.
    change : Change
        What changes.

    Returns
    -------
    bytes
        The new document.

    Raises
    ------
    N5AttributesError
        The document on disk is not JSON: nothing of it could be kept (``kind="json"``).
    N5Error
        A group is created on a dataset, or no such dataset is there to resize (``kind="changed"``).
    """
    raw = RawObject.parse(data)
    record = Record.from_json(raw.values.get(ZARR_KEY))
    record = _without_tokens(raw, record)
    if data is None and change.is_root:
        raw.set(VERSION_KEY, ".".join(map(str, SUPPORTED_VERSION)))
    if change.makes_group:
        _check_group(raw, change)
    record = _with_members(raw, record, change)
    if change.resized != KEEP:
        _resize(raw, change.resized)
    if isinstance(change.attributes, Mapping):
        record = _with_attributes(raw, record, change, change.attributes)
    if change.names != KEEP:
        record = _with_names(raw, record, change)
    record = _with_group_members(raw, record, change)
    recorded = record.to_json()
    if not recorded:
        raw.remove(ZARR_KEY)
    elif recorded != raw.values.get(ZARR_KEY):
        raw.set(ZARR_KEY, recorded)
    return raw.to_bytes()


def _with_group_members(raw: RawObject, record: Record, change: Change) -> Record:
    """Record what the ``zarr.json`` of a group says beside attributes."""
    if change.consolidated != KEEP:
        record = replace(record, consolidated=change.consolidated)
    if change.extra == KEEP:
        return record
    if change.extra:
        _check_group(raw, change)
    return replace(record, extra=change.extra)


def _check_group(raw: RawObject, change: Change) -> None:
    if change.is_of_array(raw):
        message = (
            "expected a group or nothing, got a dataset: another program has made it; remove it "
            "first, or open it as what it is"
        )
        raise N5Error(message, kind="changed")


def _resize(raw: RawObject, members: Members) -> None:
    described = parse_attributes(raw.values)
    expected = f"a dataset of {members.element.stored} in blocks {members.block_size}"
    got = "a group"
    if isinstance(described, DatasetAttributes):
        # of a type that N5 has no name for the blocks are known by their size only
        stored = described.data_type if described.numpy_type is None else members.element.stored
        got = f"a dataset of {stored} in blocks {described.block_size}"
    if got != expected:
        message = f"expected {expected} to resize, got {got}: another program has made it"
        raise N5Error(message, kind="changed")
    raw.set("dimensions", list(members.dimensions))


def _without_tokens(raw: RawObject, record: Record) -> Record:
    """Put NaN and infinities aside that another tool wrote as Java lets it, but JSON does not."""
    respelled = {k: v for k, v in raw.values.items() if k not in raw.texts and k not in _OWN_KEYS}
    nonfinite = dict(record.nonfinite)
    for pointer, value in json_pointers(respelled):
        if isinstance(value, float) and not math.isfinite(value):
            nonfinite[pointer] = _token(value)
    for key, value in respelled.items():
        raw.set(key, _placeholders(value))
    return replace(record, nonfinite=nonfinite)


def _with_members(raw: RawObject, record: Record, change: Change) -> Record:
    """Make the node an array or a group."""
    was_dataset = is_dataset(raw.values)
    if change.members == KEEP or (change.members is None and not was_dataset):
        return record
    members = {} if change.members is None else change.members.to_json()
    if members and not was_dataset:
        record = _with_attributes_aside(raw, record, change)
    for key in DATASET_KEYS:
        if key not in members:
            raw.remove(key)
    for key, value in members.items():
        if not _same(raw.values.get(key), value):
            raw.set(key, value)
    if change.members is None:
        return record.without_elements()
    elements = change.members.record
    return replace(
        record,
        data_type=elements.data_type,
        shape=elements.shape,
        fill_value=elements.fill_value,
        codecs=elements.codecs,
        v2=elements.v2,
        axis_order=elements.axis_order,
        extra=elements.extra,
    )


def _with_attributes_aside(raw: RawObject, record: Record, change: Change) -> Record:
    """Keep the attributes of a group whose names are N5's own once it is a dataset."""
    standing = raw.values.keys() & {*_OWN_KEYS} - {*change.own_keys(raw)}
    attributes = {key: raw.values[key] for key in standing}
    for key in standing:
        raw.remove(key)
    return replace(record, attributes={**record.attributes, **attributes})


def _with_attributes(
    raw: RawObject, record: Record, change: Change, attributes: Mapping[str, JSON]
) -> Record:
    """Apply the users' changes key by key."""
    users = {k: v for k, v in raw.values.items() if k not in change.own_keys(raw)}
    theirs = shown_attributes(users, record)
    base = theirs if change.base is None else change.base
    escaped = dict(record.attributes)
    touched = {key for key in base if key not in attributes}
    touched |= {
        key for key, value in attributes.items() if key not in base or not _same(base[key], value)
    }
    for key in touched:
        escaped.pop(key, None)
        if key not in attributes and key not in change.own_keys(raw):
            raw.remove(key)
    for key in (key for key in attributes if key in touched):
        value = _placeholders(attributes[key])
        if not (change.is_reserved(raw, key, value) or _stops_tensorstore(raw, key, value)):
            raw.set(key, value)
            continue
        escaped[key] = value
        if key not in change.own_keys(raw):
            raw.remove(key)
    return _with_pointers(replace(record, attributes=escaped), attributes, touched)


def _stops_tensorstore(raw: RawObject, key: str, value: JSON) -> bool:
    """Whether tensorstore would refuse the dataset: it wants one string or number for each axis."""
    if key not in ("axes", "resolution", "units") or not is_dataset(raw.values):
        return False
    dimensions = raw.values["dimensions"]
    rank = len(dimensions) if isinstance(dimensions, list) else -1
    if not isinstance(value, list | tuple) or len(value) != rank:
        return True
    if not all(map(_is_finite if key == "resolution" else _is_text, value)):
        return True
    names = [name for name in value if name]
    return key == "axes" and len(set(map(str, names))) < len(names)


def _is_text(value: JSON) -> bool:
    return isinstance(value, str)


def _is_finite(value: JSON) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _with_pointers(record: Record, attributes: Mapping[str, JSON], touched: set[str]) -> Record:
    """Record what JSON and Java cannot hold; of keys that were not touched all stays."""

    def is_kept(pointer: str) -> bool:
        return pointer.split("/")[1].replace("~1", "/").replace("~0", "~") not in touched

    nonfinite = {p: token for p, token in record.nonfinite.items() if is_kept(p)}
    nulls = [p for p in record.nulls if is_kept(p)]
    written = {key: attributes[key] for key in attributes if key in touched}
    for pointer, value in json_pointers(written):
        if value is None:
            nulls.append(pointer)
        elif isinstance(value, float) and not math.isfinite(value):
            nonfinite[pointer] = _token(value)
    return replace(record, nonfinite=nonfinite, nulls=nulls)


def _token(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _placeholders(value: JSON) -> JSON:
    """Replace what is not finite by null: bare NaN make z5py and tensorstore refuse a node."""
    if isinstance(value, Mapping):
        return {key: _placeholders(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_placeholders(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _with_names(raw: RawObject, record: Record, change: Change) -> Record:
    """Name the axes: by ``axes`` where it can hold the names, else by the record."""
    names = None if change.names is None or change.names == KEEP else list(change.names)
    users = shown_attributes(
        {k: v for k, v in raw.values.items() if k not in change.own_keys(raw)},
        replace(record, dimension_names=None),
    )
    plain = replace(record, dimension_names=None)
    given = change.attributes if isinstance(change.attributes, Mapping) else {}
    names_given = derived_names(users, change.ndim)
    # an attribute of the users' must not disappear behind the names that it gives
    is_users = names_given is not None and names_given[0] in given
    if _names_of(users, change.ndim) == names and not is_users:
        return plain
    # tensorstore refuses a dataset that has not one axis for each dimension
    fits = AXES_KEY not in given and change.ndim == change.rank
    if names is not None and fits and not is_users:
        as_axes = ["" if name is None else name for name in names]
        trial = {**users, AXES_KEY: as_axes}
        if all(as_axes) and _names_of(trial, change.ndim) == names:
            raw.set(AXES_KEY, as_axes)
            return plain
    if AXES_KEY not in given and AXES_KEY in users:
        raw.remove(AXES_KEY)  # it was presented as names, which have changed
        users.pop(AXES_KEY)
        if _names_of(users, change.ndim) == names and not is_users:
            return plain
    return replace(record, dimension_names=names or [])


def _names_of(attributes: Mapping[str, JSON], ndim: int) -> list[str | None] | None:
    names = derived_names(attributes, ndim)
    return None if names is None else [name or None for name in names[1]]


def names_n5(names: JSON, axis_order: AxisOrder) -> list[str | None] | None:
    """Turn the ``dimension_names`` of a ``zarr.json`` into N5 order."""
    if not isinstance(names, Sequence) or isinstance(names, str):
        return None
    in_n5: list[str | None] = [
        name if isinstance(name, str) else None for name in from_presented(names, axis_order)
    ]
    return in_n5


def _same(first: JSON, second: JSON) -> bool:
    """Whether two values are the same JSON: 1 and 1.0 and true are not, NaN and NaN are."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return repr(first) == repr(second)  # also -0.0, and NaN
    return type(first) is type(second) and first == second
