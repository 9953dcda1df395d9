"""Merge the document that Zarr writes into the ``attributes.json`` on disk.

Zarr writes whole documents, made from those it read earlier; other programs may have written since.
So n5zarr compares Zarr's document with the one that the store last returned, and applies only the
difference to the document on disk. Members that other programs wrote keep their place and text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from n5zarr.conventions.axis_names import AXES_KEY, XARRAY_KEY, derived_names, letters_of
from n5zarr.conventions.model import numbers, texts
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import (
    DATASET_KEYS,
    ZARR_KEY,
    DatasetAttributes,
    is_dataset,
    parse_attributes,
)
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, from_presented, to_c
from n5zarr.format.raw_json import (
    RawObject,
    json_pointers,
    nonfinite_in,
    strict,
)
from n5zarr.format.version import SUPPORTED_VERSION, VERSION_KEY
from n5zarr.zarr_view.change import (
    N5_KEYS,
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
from n5zarr.zarr_view.from_zarr import Members
from n5zarr.zarr_view.keys import ZarrFormat
from n5zarr.zarr_view.record import Record, restore_attributes

_SPELLED = json.JSONEncoder(sort_keys=True).encode
_AS_THEY_ARE = (None, "bool", "float16")  # recorded types whose datasets have the array's axes


def changed(data: bytes | None, change: Change, told: list[str] | None = None) -> bytes:
    """Apply a change to the document on disk.

    N5 spec, "File-system specification", item 3: a new container gets the version.

    Parameters
    ----------
    data : bytes or None
        The document on disk; None if it is missing.
    change : Change
        The change to apply.
    told : list of str, optional
        Takes what the user should know.

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
    raw, told = RawObject.parse(data), [] if told is None else told
    node, written = change.node, change.written
    record = Record.from_json(raw.values.get(ZARR_KEY))
    record = _record_nonfinite(raw, record, node)
    if data is None and node.is_root:
        raw.set(VERSION_KEY, ".".join(map(str, SUPPORTED_VERSION)))
    if data is not None and written.hides(record):
        _check_other_format(raw, change)
        change = change.since({})  # keep the content, which Zarr does not know
    if isinstance(change.kind, NewGroup) or change.extra:
        _check_group(raw, node)
    record = _with_kind(raw, record, change.kind, node, told)
    if change.attributes is not None:
        record = _with_attributes(raw, record, change.attributes, node, written.zarr_format, told)
    if change.names is not None:
        given = {} if change.attributes is None else change.attributes.values
        record = _with_names(raw, record, change.names, given, node)
    record = replace(
        record,
        consolidated=record.consolidated if change.consolidated is None else change.consolidated,
        extra=record.extra if change.extra is None else change.extra,
    )
    record = _with_format(record, written, is_new=data is None)
    recorded = record.to_json()
    if not recorded:
        raw.remove(ZARR_KEY)
    elif recorded != raw.values.get(ZARR_KEY):
        raw.set(ZARR_KEY, recorded)
    return raw.to_bytes()


def _check_group(raw: RawObject, node: NodeContext) -> None:
    """Raise if a dataset on disk prevents creating a group."""
    if node.is_of_array(raw):
        message = (
            "expected a group or nothing, got a dataset, which another program has created; remove "
            "it first, or open it as an array"
        )
        raise N5Error(message, kind="changed")


def _check_other_format(raw: RawObject, change: Change) -> None:
    """Raise if a change would replace an array of the other format, or a group by an array."""
    is_array = change.node.is_of_array(raw)
    if is_array or isinstance(change.kind, NewArray):
        raise other_format("an array" if is_array else "a group", change.written.zarr_format)


def other_format(found: str, zarr_format: ZarrFormat | None) -> N5Error:
    """Make the error of an array that would replace a node of the other format."""
    message = (
        f"expected nothing, or a Zarr v{zarr_format} node to change, got {found} of Zarr "
        f"v{5 - (zarr_format or 0)}: remove it first, or present it as v{zarr_format} by opening "
        f"the store with zarr_format={zarr_format}"
    )
    return N5Error(message, kind="changed")


def _with_format(record: Record, written: WrittenFormat, *, is_new: bool) -> Record:
    """Record the format in which the node was written, unless it is the default."""
    is_made = is_new and not written.is_there
    if written.zarr_format is None or not (is_made or written.names_format):
        return record
    if written.is_fixed and written.is_known:
        return record
    is_needed = written.zarr_format == 2 or written.above == 2
    if written.is_fixed:
        is_needed = record.zarr_format is not None
    return replace(record, zarr_format=written.zarr_format if is_needed else None)


def _resize(raw: RawObject, members: Members) -> None:
    """Change ``dimensions``, if the dataset on disk has the same elements and blocks."""
    described = parse_attributes(raw.values)
    expected = f"a dataset of {members.element.stored} in blocks {members.block_size}"
    got = "a group"
    if isinstance(described, DatasetAttributes):
        if described.is_label_multiset:
            message = (
                "expected numbers to resize, got label multisets, whose blocks at the end Java "
                "reads by the size of the dataset; copy them to a new dataset"
            )
            raise N5UnsupportedError(message, kind="data-type")
        # for numpy's type names, which zarr-python 2 wrote, only the block size is compared
        stored = described.data_type if described.numpy_type is None else members.element.stored
        got = f"a dataset of {stored} in blocks {described.block_size}"
    if got != expected:
        message = f"expected {expected} to resize, got {got}: another program has replaced it"
        raise N5Error(message, kind="changed")
    raw.set("dimensions", list(members.dimensions))


def _record_nonfinite(raw: RawObject, record: Record, node: NodeContext) -> Record:
    """Move bare NaN and infinities, which Java reads but standard JSON forbids, to the record."""
    respelled = {k: v for k, v in node.users_members(raw).items() if k not in raw.texts}
    nonfinite = nonfinite_in({**record.attributes, **respelled})
    for key, value in respelled.items():
        raw.set(key, _placeholders(value))
    attributes = {k: _placeholders(v) for k, v in record.attributes.items()}
    return replace(record, nonfinite={**record.nonfinite, **nonfinite}, attributes=attributes)


def _with_kind(
    raw: RawObject, record: Record, kind: Outcome | None, node: NodeContext, told: list[str]
) -> Record:
    """Make the node an array or a group, or resize an array."""
    match kind:
        case NewArray(members):
            return _with_members(raw, record, members, node, told)
        case Resized(members):
            _resize(raw, members)
        case NoArray() if is_dataset(raw.values):
            for key in DATASET_KEYS:
                raw.remove(key)
            return replace(record.without_elements(), zarr_format=None)
    return record


def _with_members(
    raw: RawObject, record: Record, members: Members, node: NodeContext, told: list[str]
) -> Record:
    """Set the keys of a dataset, and record what they cannot express."""
    was_group = not is_dataset(raw.values)
    if was_group:
        record = _with_recorded(raw, record, node.users_members(raw).keys() & {*N5_KEYS})
    wanted = members.to_json()
    for key in DATASET_KEYS:
        if key not in wanted:
            raw.remove(key)
    for key, value in wanted.items():
        if not _same(raw.values.get(key), value):
            raw.set(key, value)
    elements = members.record
    record = replace(
        record,
        data_type=elements.data_type,
        shape=elements.shape,
        fill_value=elements.fill_value,
        codecs=elements.codecs,
        v2=elements.v2,
        axis_order=elements.axis_order,
        extra=elements.extra,
    )
    given = node.users_members(raw) if was_group else {}  # Zarr v2 may write `.zattrs` first
    aside = [k for k, value in given.items() if _is_set_aside(raw, record, k, value, told)]
    return _with_recorded(raw, record, aside)


def _with_recorded(raw: RawObject, record: Record, keys: Collection[str]) -> Record:
    """Move attributes to the record, as a dataset cannot have their names, or values."""
    attributes = {key: raw.values[key] for key in keys}
    for key in keys:
        raw.remove(key)
    return replace(record, attributes={**record.attributes, **attributes})


def _with_attributes(
    raw: RawObject,
    record: Record,
    new: NewAttributes,
    node: NodeContext,
    zarr_format: ZarrFormat | None,
    told: list[str],
) -> Record:
    """Apply the changes of users' attributes key by key."""
    attributes, base = new.values, new.base
    if base is None:
        base = restore_attributes(node.users_members(raw), record)
    escaped = dict(record.attributes)
    touched = {key for key in base if key not in attributes}
    touched |= {
        key for key, value in attributes.items() if key not in base or not _same(base[key], value)
    }
    for key in touched:
        escaped.pop(key, None)
        if key not in attributes and key not in node.own_keys(raw):
            raw.remove(key)
    for key in (key for key in attributes if key in touched):
        value = _placeholders(attributes[key])
        is_reserved = node.is_reserved(raw, key, value)
        if not (is_reserved or _is_set_aside(raw, record, key, value, told)):
            raw.set(key, value)
            continue
        escaped[key] = value
        if key not in node.own_keys(raw):
            raw.remove(key)
    if zarr_format == 2 and XARRAY_KEY in touched and node.is_of_array(raw):
        # it took the place of other names; without it the array has none
        is_gone = XARRAY_KEY not in attributes
        record = replace(record, dimension_names=[] if is_gone else None)
    return _with_pointers(replace(record, attributes=escaped), attributes, touched)


def _is_set_aside(raw: RawObject, record: Record, key: str, value: JSON, told: list[str]) -> bool:
    """Whether an attribute of a user goes into the record, as tensorstore refuses the dataset.

    It requires of ``axes``, ``resolution`` and ``units`` a list with one value for each axis. But
    gunpowder writes lists for the axes of space alone, and ilastik ``axes`` as text: these stay
    where they and others look for them.
    """
    if key not in ("axes", "resolution", "units") or not is_dataset(raw.values):
        return False
    dimensions = raw.values["dimensions"]
    rank = len(dimensions) if isinstance(dimensions, list) else -1
    items = value if isinstance(value, list) else []
    is_listed = (numbers(items) if key == "resolution" else texts(items, len(items))) is not None
    if is_listed and len(items) == rank:
        names = [name for name in items if name]
        return key == AXES_KEY and len({*names}) < len(names)
    is_short = is_listed and 0 < len(items) < rank
    is_read = letters_of(value, rank) if key == AXES_KEY else is_short
    if not is_read or record.data_type not in _AS_THEY_ARE:
        return True
    told.append(
        "tensorstore refuses this dataset: it expects axes, resolution and units to be lists with "
        "a value for each axis; what was given stays there for the programs that look for it"
    )
    return False


def _with_pointers(record: Record, attributes: Mapping[str, JSON], touched: set[str]) -> Record:
    """Record the values that JSON and Java cannot hold; keep the record of untouched keys."""

    def is_kept(pointer: str) -> bool:
        return pointer.split("/")[1].replace("~1", "/").replace("~0", "~") not in touched

    nonfinite = {p: token for p, token in record.nonfinite.items() if is_kept(p)}
    nulls = [p for p in record.nulls if is_kept(p)]
    written = {key: attributes[key] for key in attributes if key in touched}
    nulls += [pointer for pointer, value in json_pointers(written) if value is None]
    return replace(record, nonfinite={**nonfinite, **nonfinite_in(written)}, nulls=nulls)


def _placeholders(value: JSON) -> Any:  # noqa: ANN401 - any JSON
    """Replace NaN and infinities by null: z5py and tensorstore refuse a node with bare NaN."""
    return strict(value, lambda _: None)


def _with_names(
    raw: RawObject,
    record: Record,
    new: NewNames,
    given: Mapping[str, JSON],
    node: NodeContext,
) -> Record:
    """Write the names of the axes: to ``axes`` if it can hold them, else to the record."""
    names = None if new.names is None else list(new.names)
    plain = replace(record, dimension_names=None)
    users = restore_attributes(node.users_members(raw), plain)
    names_given = derived_names(users, new.ndim)
    # a user's attribute that gives the names must stay an attribute
    is_users = names_given is not None and names_given[0] in given
    if _names_of(users, new.ndim) == names and not is_users:
        return plain
    if XARRAY_KEY in users and XARRAY_KEY not in given:
        raw.remove(XARRAY_KEY)  # presented to Zarr as dimension names, which have changed
        users.pop(XARRAY_KEY)
        if names is not None and all(names):
            raw.set(XARRAY_KEY, [*to_c(names)])
            return plain
    # tensorstore refuses a dataset unless `axes` has one name for each dimension
    fits = AXES_KEY not in given and new.ndim == new.rank
    if names is not None and fits and not is_users:
        as_axes = ["" if name is None else name for name in names]
        trial = {**users, AXES_KEY: as_axes}
        if all(as_axes) and _names_of(trial, new.ndim) == names:
            raw.set(AXES_KEY, as_axes)
            return plain
    if AXES_KEY not in given and AXES_KEY in users:
        raw.remove(AXES_KEY)  # presented to Zarr as dimension names, which have changed
        users.pop(AXES_KEY)
    if _names_of(users, new.ndim) == names and not is_users:
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
    return _SPELLED(first) == _SPELLED(second)
