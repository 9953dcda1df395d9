"""Find the Zarr format in which each node is presented.

A store may fix one format for all nodes. Otherwise each node has the format in which it was last
written through Zarr: its record names format 2, or 3 below a node of format 2. A node without a
recorded format follows the nearest group above that has one. Without such a group, and on servers,
it is Zarr v3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from n5zarr.container.memory import Memory, Node
from n5zarr.errors import N5AttributesError
from n5zarr.format.attributes import ATTRIBUTES_JSON, ZARR_KEY, GroupAttributes
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.path import groups_above, join
from n5zarr.storage.requests import Stamp, Steps, read_key
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ZarrFormat
from n5zarr.zarr_view.record import Record

_FORMAT = "zarr_format"


@dataclass(frozen=True)
class Formats:
    """The Zarr formats of the nodes of one container.

    Parameters
    ----------
    fixed : {2, 3} or None
        The format of all nodes; None for the format in which each was last written.
    memory : Memory
        The memory of the store object: here the recorded formats.
    has_stamps : bool
        Whether storage can tell that another program has written a document.
    """

    fixed: ZarrFormat | None
    memory: Memory
    has_stamps: bool

    def of(self, node: Node) -> ZarrFormat:
        """Return the format in which a node is presented."""
        if self.fixed is not None:
            return self.fixed
        return (
            node.zarr_format
            if isinstance(node, DatasetView)
            else (_recorded_format(node.record) or 3)
        )

    def shown_as(self, group: GroupAttributes, zarr_format: ZarrFormat) -> GroupAttributes:
        """Return a group presented in a format."""
        if zarr_format == self.of(group):
            return group
        record = group.record if isinstance(group.record, dict) else {}
        return replace(group, record={**record, _FORMAT: zarr_format})

    def at(self, path: str, record: Record) -> Steps[ZarrFormat]:
        """Return the format of a node, from its record or the groups above."""
        return self.fixed or record.zarr_format or (yield from self.above(path))

    def is_surely_v3(self, path: str) -> Steps[bool]:
        """Whether a node, if it exists, is presented as Zarr v3; does not parse its document.

        Zarr requests the documents of both formats whenever it opens a node.
        """
        if self.fixed is not None or not self.has_stamps:
            return False
        return (yield from self._nearest([path, *groups_above(path)[::-1]])) == 3

    def above(self, path: str) -> Steps[ZarrFormat]:
        """Return the format of a node without a recorded format.

        On servers it is Zarr v3: reading the groups above would cost requests, and the format must
        not depend on earlier reads.
        """
        return self.fixed or (yield from self._nearest(groups_above(path)[::-1]))

    def _nearest(self, paths: Sequence[str]) -> Steps[ZarrFormat]:
        """Return the first format that the documents of some groups record; 3 by default."""
        if not self.has_stamps or not paths:
            return 3
        stamps = yield [Stamp(join(path, ATTRIBUTES_JSON)) for path in paths]
        for path, stamp in zip(paths, stamps, strict=True):
            named = yield from self._named_at(path, stamp)
            if named is not None:
                return named
        return 3

    def _named_at(self, path: str, now: object) -> Steps[ZarrFormat | None]:
        """Return the format that a group's document records; read it unless its stamp is known."""
        stamp, named = self.memory.formats.get(path, (None, None))
        if now == stamp:
            return named
        data = yield from read_key(join(path, ATTRIBUTES_JSON))
        try:
            document = parse_json(data) if data and _FORMAT.encode() in data else None
        except N5AttributesError:  # opening that node raises it
            document = None
        named = _recorded_format(document.get(ZARR_KEY)) if isinstance(document, dict) else None
        self.memory.formats[path] = now, named
        return named


def in_format(view: DatasetView, zarr_format: ZarrFormat) -> DatasetView:
    """Return a dataset presented as an array in a format."""
    is_given = view.given is not None and view.given.get("zarr_format") == zarr_format
    return replace(view, zarr_format=zarr_format, given=view.given if is_given else None)


def _recorded_format(record: JSON) -> ZarrFormat | None:
    """Return the format in a record."""
    value = record.get(_FORMAT) if isinstance(record, dict) else None
    return 2 if value == 2 else 3 if value == 3 else None
