"""Merge the document that Zarr writes into the ``attributes.json`` on disk.

Zarr writes whole documents, made from those it read earlier; other programs may have written since.
So n5zarr compares Zarr's document with the one that the store last returned, and applies only the
difference to the document on disk. Members that other programs wrote keep their place and text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY, derived_names
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
from n5zarr.format.order import from_presented, to_c
from n5zarr.format.raw_json import RawObject
from n5zarr.format.version import SUPPORTED_VERSION, VERSION_KEY, is_version
from n5zarr.zarr_view.record import Record, json_pointers, restore_attributes

if TYPE_CHECKING:
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder
    from n5zarr.zarr_view.from_zarr import Members
    from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["KEEP", "Change", "changed", "names_n5", "other_format"]

KEEP: Literal["keep"] = "keep"
"""The value of a member of :class:`Change` that leaves its part of the document as it is."""

_OWN_KEYS = (*DATASET_KEYS, VERSION_KEY, ZARR_KEY)


@dataclass(frozen=True, kw_only=True)
class Change:
    """The changes that Zarr makes in the document of a node.

    Parameters
    ----------
    attributes : mapping or KEEP
        The users' attributes.
    base : mapping or None
        The attributes from which Zarr started; None for those on disk.
    members : Members, None or KEEP
        N5's keys of an array; None for a group.
    resized : Members or KEEP
        N5's keys of an array if only its ``dimensions`` change.
    names : sequence of str and None, None or KEEP
        Dimension names in N5 order.
    ndim, rank : int
        Number of dimensions of the array and of the dataset; needed with ``names``.
    consolidated : bool or KEEP
        Whether Zarr consolidated the metadata below.
    extra : mapping or KEEP
        Other members of the ``zarr.json`` of a group.
    is_root : bool
        Whether the node is the root, which gets N5's version in a new container.
    makes_group : bool
        Whether Zarr creates a group; it must not replace a dataset.
    is_group : bool
        Whether, by its listing, the node is a group although its document describes a dataset.
    zarr_format : {2, 3}, optional
        Format of the document that Zarr writes; None to keep that of the node.
    names_format : bool
        Whether an existing node gets this format too, and not only a new one.
    above : {2, 3}
        The format of nodes without a recorded format, at this place.
    is_there : bool
        Whether a group of the other format exists, with or without a document.
    is_known : bool
        Whether Zarr has read or written the document, and so knows what it changes.
    is_fixed : bool
        Whether the store presents all nodes in this format, regardless of their records.
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
    zarr_format: ZarrFormat | None = None
    names_format: bool = True
    above: ZarrFormat = 3
    is_there: bool = False
    is_known: bool = False
    is_fixed: bool = False

    def is_of_array(self, raw: RawObject) -> bool:
        """Whether the document on disk describes an array."""
        return describes_array(raw.values, is_group=self.is_group)

    def is_of_other_format(self, record: Record) -> bool:
        """Whether the node is presented in another format than that of the document."""
        if self.zarr_format is None or self.is_fixed:
            return False
        return self.zarr_format != (record.zarr_format or self.above)

    def own_keys(self, raw: RawObject) -> tuple[str, ...]:
        """Return the keys of the document that are not users' attributes."""
        return own_keys(raw.values, is_group=not self.is_of_array(raw), is_root=self.is_root)

    def is_reserved(self, raw: RawObject, key: str, value: JSON) -> bool:
        """Whether readers would take a user's attribute for one of N5's own keys."""
        if self.is_of_array(raw):
            return key in _OWN_KEYS
        # readers hide `n5` on any group, but only the root has the version of the container
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
        The document on disk; None if it is missing.
    change : Change
        The change to apply.

    Returns
    -------
    bytes
        The new document.

    Raises
    ------
    N5AttributesError
        The document on disk is not JSON, so its members cannot be kept (``kind="json"``).
    N5Error
        Zarr creates a group in place of a dataset, or an array in place of a node of another Zarr
        format, or resizes a dataset that is missing or differs (``kind="changed"``).
    """
    raw = RawObject.parse(data)
    record = Record.from_json(raw.values.get(ZARR_KEY))
    record = _record_nonfinite(raw, record, change)
    if data is None and change.is_root:
        raw.set(VERSION_KEY, ".".join(map(str, SUPPORTED_VERSION)))
    change = _from_other_format(raw, record, change, is_new=data is None)
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
    record = _with_format(record, change, is_new=data is None)
    recorded = record.to_json()
    if not recorded:
        raw.remove(ZARR_KEY)
    elif recorded != raw.values.get(ZARR_KEY):
        raw.set(ZARR_KEY, recorded)
    return raw.to_bytes()


def _with_group_members(raw: RawObject, record: Record, change: Change) -> Record:
    """Record the members of the ``zarr.json`` of a group other than attributes."""
    if change.consolidated != KEEP:
        record = replace(record, consolidated=change.consolidated)
    if change.extra == KEEP:
        return record
    if change.extra:
        _check_group(raw, change)
    return replace(record, extra=change.extra)


def _check_group(raw: RawObject, change: Change) -> None:
    """Raise if a dataset on disk prevents creating a group."""
    if change.is_of_array(raw):
        message = (
            "expected a group or nothing, got a dataset, which another program has created; remove "
            "it first, or open it as an array"
        )
        raise N5Error(message, kind="changed")


def _from_other_format(raw: RawObject, record: Record, change: Change, *, is_new: bool) -> Change:
    """Keep the content of a node that Zarr does not know, since it has another format.

    Raises
    ------
    N5Error
        The change would replace an array, or a group by an array (``kind="changed"``).
    """
    if is_new or change.is_known or not change.is_of_other_format(record):
        return change
    is_array = change.is_of_array(raw)
    makes_array = change.members not in (KEEP, None)
    if is_array or makes_array:
        raise other_format("an array" if is_array else "a group", change.zarr_format)
    return replace(change, base={})


def other_format(found: str, zarr_format: ZarrFormat | None) -> N5Error:
    """Make the error of an array that would replace a node of the other format."""
    message = (
        f"expected nothing, or a Zarr v{zarr_format} node to change, got {found} of Zarr "
        f"v{5 - (zarr_format or 0)}: remove it first, or present it as v{zarr_format} by opening "
        f"the store with zarr_format={zarr_format}"
    )
    return N5Error(message, kind="changed")


def _with_format(record: Record, change: Change, *, is_new: bool) -> Record:
    """Record the format in which the node was written, unless it is the default."""
    is_made = is_new and not change.is_there
    if change.zarr_format is None or not (is_made or change.names_format):
        return record
    if change.is_fixed and change.is_known:
        return record
    is_needed = change.zarr_format == 2 or change.above == 2
    if change.is_fixed:
        is_needed = record.zarr_format is not None
    return replace(record, zarr_format=change.zarr_format if is_needed else None)


def _resize(raw: RawObject, members: Members) -> None:
    """Change ``dimensions``, if the dataset on disk has the same elements and blocks."""
    described = parse_attributes(raw.values)
    expected = f"a dataset of {members.element.stored} in blocks {members.block_size}"
    got = "a group"
    if isinstance(described, DatasetAttributes):
        # for numpy's type names, which zarr-python 2 wrote, only the block size is compared
        stored = described.data_type if described.numpy_type is None else members.element.stored
        got = f"a dataset of {stored} in blocks {described.block_size}"
    if got != expected:
        message = f"expected {expected} to resize, got {got}: another program has replaced it"
        raise N5Error(message, kind="changed")
    raw.set("dimensions", list(members.dimensions))


def _record_nonfinite(raw: RawObject, record: Record, change: Change) -> Record:
    """Move bare NaN and infinities, which Java reads but standard JSON forbids, to the record."""
    own = change.own_keys(raw)
    respelled = {k: v for k, v in raw.values.items() if k not in raw.texts and k not in own}
    found = json_pointers({**record.attributes, **respelled})
    nonfinite = {p: _token(v) for p, v in found if isinstance(v, float) and not math.isfinite(v)}
    for key, value in respelled.items():
        raw.set(key, _placeholders(value))
    attributes = {k: _placeholders(v) for k, v in record.attributes.items()}
    return replace(record, nonfinite={**record.nonfinite, **nonfinite}, attributes=attributes)


def _with_members(raw: RawObject, record: Record, change: Change) -> Record:
    """Make the node an array or a group."""
    was_dataset = is_dataset(raw.values)
    if change.members == KEEP or (change.members is None and not was_dataset):
        return record
    members = {} if change.members is None else change.members.to_json()
    if members and not was_dataset:
        record = _record_reserved_attributes(raw, record, change)
    for key in DATASET_KEYS:
        if key not in members:
            raw.remove(key)
    for key, value in members.items():
        if not _same(raw.values.get(key), value):
            raw.set(key, value)
    if change.members is None:
        return replace(record.without_elements(), zarr_format=None)
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


def _record_reserved_attributes(raw: RawObject, record: Record, change: Change) -> Record:
    """Move attributes of a group to the record if N5 uses their names in a dataset."""
    reserved = raw.values.keys() & {*_OWN_KEYS} - {*change.own_keys(raw)}
    attributes = {key: raw.values[key] for key in reserved}
    for key in reserved:
        raw.remove(key)
    return replace(record, attributes={**record.attributes, **attributes})


def _with_attributes(
    raw: RawObject, record: Record, change: Change, attributes: Mapping[str, JSON]
) -> Record:
    """Apply the changes of users' attributes key by key."""
    users = {k: v for k, v in raw.values.items() if k not in change.own_keys(raw)}
    current = restore_attributes(users, record)
    base = current if change.base is None else change.base
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
    if change.zarr_format == 2 and XARRAY_KEY in touched and change.is_of_array(raw):
        # it took the place of other names; without it the array has none
        is_gone = XARRAY_KEY not in attributes
        record = replace(record, dimension_names=[] if is_gone else None)
    return _with_pointers(replace(record, attributes=escaped), attributes, touched)


def _stops_tensorstore(raw: RawObject, key: str, value: JSON) -> bool:
    """Whether tensorstore would refuse the dataset: it requires one value per axis, of one type."""
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
    """Record the values that JSON and Java cannot hold; keep the record of untouched keys."""

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
    """Replace NaN and infinities by null: z5py and tensorstore refuse a node with bare NaN."""
    if isinstance(value, Mapping):
        return {key: _placeholders(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_placeholders(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _with_names(raw: RawObject, record: Record, change: Change) -> Record:
    """Write the names of the axes: to ``axes`` if it can hold them, else to the record."""
    names = None if change.names is None or change.names == KEEP else list(change.names)
    users = restore_attributes(
        {k: v for k, v in raw.values.items() if k not in change.own_keys(raw)},
        replace(record, dimension_names=None),
    )
    plain = replace(record, dimension_names=None)
    given = change.attributes if isinstance(change.attributes, Mapping) else {}
    names_given = derived_names(users, change.ndim)
    # a user's attribute that gives the names must stay an attribute
    is_users = names_given is not None and names_given[0] in given
    if _names_of(users, change.ndim) == names and not is_users:
        return plain
    if XARRAY_KEY in users and XARRAY_KEY not in given:
        raw.remove(XARRAY_KEY)  # presented to Zarr as dimension names, which have changed
        users.pop(XARRAY_KEY)
        if names is not None and all(names):
            raw.set(XARRAY_KEY, [*to_c(names)])
            return plain
    # tensorstore refuses a dataset unless `axes` has one name for each dimension
    fits = AXES_KEY not in given and change.ndim == change.rank
    if names is not None and fits and not is_users:
        as_axes = ["" if name is None else name for name in names]
        trial = {**users, AXES_KEY: as_axes}
        if all(as_axes) and _names_of(trial, change.ndim) == names:
            raw.set(AXES_KEY, as_axes)
            return plain
    if AXES_KEY not in given and AXES_KEY in users:
        raw.remove(AXES_KEY)  # presented to Zarr as dimension names, which have changed
        users.pop(AXES_KEY)
        if _names_of(users, change.ndim) == names and not is_users:
            return plain
    return replace(record, dimension_names=names or [])


def _names_of(attributes: Mapping[str, JSON], ndim: int) -> list[str | None] | None:
    names = derived_names(attributes, ndim)
    return None if names is None else [name or None for name in names[1]]


def names_n5(names: JSON, axis_order: AxisOrder) -> list[str | None] | None:
    """Convert the ``dimension_names`` of a ``zarr.json`` into N5 order."""
    if not isinstance(names, Sequence) or isinstance(names, str):
        return None
    in_n5: list[str | None] = [
        name if isinstance(name, str) else None for name in from_presented(names, axis_order)
    ]
    return in_n5


def _same(first: JSON, second: JSON) -> bool:
    """Whether two values are the same JSON: 1, 1.0 and true differ, NaN equals NaN."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return repr(first) == repr(second)  # distinguishes -0.0, and equates NaN
    return type(first) is type(second) and first == second
