"""Define what Zarr changes in the document of a node, as values: one type for each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from n5zarr.format.attributes import (
    DATASET_KEYS,
    ZARR_KEY,
    describes_array,
    is_dataset,
    own_keys,
)
from n5zarr.format.lenient_json import JSON
from n5zarr.format.raw_json import RawObject
from n5zarr.format.version import VERSION_KEY, is_version
from n5zarr.zarr_view.from_zarr import Members
from n5zarr.zarr_view.keys import ZarrFormat
from n5zarr.zarr_view.record import Record

N5_KEYS = (*DATASET_KEYS, VERSION_KEY, ZARR_KEY)
"""The keys of a dataset, of the root and of the record, which no user's attribute may have."""


@dataclass(frozen=True)
class NewArray:
    """Zarr makes the node an array, or gives an array other elements, chunks or codecs."""

    members: Members


@dataclass(frozen=True)
class Resized:
    """Zarr changes only the shape of an array; ``members`` has the new one."""

    members: Members


@dataclass(frozen=True)
class NoArray:
    """Zarr removes the document of an array: the node loses the keys of a dataset."""


@dataclass(frozen=True)
class NewGroup:
    """Zarr creates a group, which must not replace a dataset."""


type Outcome = NewArray | Resized | NoArray | NewGroup
"""What becomes of the node."""


@dataclass(frozen=True)
class NewAttributes:
    """The users' attributes.

    Parameters
    ----------
    values : mapping
        All of them.
    base : mapping or None
        Those from which Zarr started; None for those on disk.
    """

    values: Mapping[str, JSON]
    base: Mapping[str, JSON] | None = None


@dataclass(frozen=True, kw_only=True)
class NewNames:
    """The names of the dimensions of an array.

    Parameters
    ----------
    names : sequence of str and None, or None
        In N5 order; None for an array without names.
    ndim, rank : int
        Number of dimensions of the array and of the dataset.
    """

    names: Sequence[str | None] | None
    ndim: int
    rank: int


@dataclass(frozen=True, kw_only=True)
class WrittenFormat:
    """The Zarr format of the document that Zarr writes, and those of the nodes around it.

    Parameters
    ----------
    zarr_format : {2, 3} or None
        Format of the document; None to keep that of the node.
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

    zarr_format: ZarrFormat | None = None
    names_format: bool = True
    above: ZarrFormat = 3
    is_there: bool = False
    is_known: bool = False
    is_fixed: bool = False

    def hides(self, record: Record) -> bool:
        """Whether Zarr does not know the node, since it is presented in the other format."""
        if self.zarr_format is None or self.is_fixed or self.is_known:
            return False
        return self.zarr_format != (record.zarr_format or self.above)


@dataclass(frozen=True, kw_only=True)
class NodeContext:
    """What the document of a node alone does not tell.

    Parameters
    ----------
    is_root : bool
        Whether the node is the root, which gets N5's version in a new container.
    is_group : bool
        Whether, by its listing, the node is a group although its document describes a dataset.
    """

    is_root: bool = False
    is_group: bool = False

    def is_of_array(self, raw: RawObject) -> bool:
        """Whether the document on disk describes an array."""
        return describes_array(raw.values, is_group=self.is_group)

    def own_keys(self, raw: RawObject) -> tuple[str, ...]:
        """Return the keys of the document that are not users' attributes."""
        return own_keys(raw.values, is_group=not self.is_of_array(raw), is_root=self.is_root)

    def users_members(self, raw: RawObject) -> dict[str, JSON]:
        """Return the members of the document that are users' attributes."""
        own = self.own_keys(raw)
        return {key: value for key, value in raw.values.items() if key not in own}

    def is_reserved(self, raw: RawObject, key: str, value: JSON) -> bool:
        """Whether readers would take a user's attribute for one of N5's own keys."""
        if self.is_of_array(raw):
            return key in N5_KEYS
        # readers hide `n5` on any group, but only the root has the version of the container
        if key == VERSION_KEY:
            return self.is_root != is_version(value)
        completes = is_dataset({**raw.values, key: []}) and not is_dataset(raw.values)
        return completes or key == ZARR_KEY


@dataclass(frozen=True, kw_only=True)
class Change:
    """The changes that Zarr makes in the document of a node; a part that is None stays as it is.

    Parameters
    ----------
    node : NodeContext
        The node.
    kind : Outcome, optional
        What becomes of it.
    attributes : NewAttributes, optional
        The users' attributes.
    names : NewNames, optional
        The names of the dimensions of an array.
    consolidated : bool, optional
        Whether Zarr consolidated the metadata below a group.
    extra : mapping, optional
        Other members of the ``zarr.json`` of a group that readers need not understand.
    written : WrittenFormat
        The Zarr format of the document.
    """

    node: NodeContext = NodeContext()
    kind: Outcome | None = None
    attributes: NewAttributes | None = None
    names: NewNames | None = None
    consolidated: bool | None = None
    extra: Mapping[str, JSON] | None = None
    written: WrittenFormat = WrittenFormat()

    def since(self, base: Mapping[str, JSON] | None) -> Self:
        """Return the change with the attributes from which Zarr started."""
        if self.attributes is None:
            return self
        return replace(self, attributes=replace(self.attributes, base=base))
