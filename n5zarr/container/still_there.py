"""Check that the dataset of an open array is still the one that was opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.errors import N5Error
from n5zarr.format.attributes import DatasetAttributes, parse_attributes
from n5zarr.format.raw_json import RawObject
from n5zarr.zarr_view.change import Kind, NewArray, NewGroup, NoArray

if TYPE_CHECKING:
    from n5zarr.container.memory import Memory

__all__ = ["check_document", "check_still_there", "gone", "opened_dataset"]


def opened_dataset(memory: Memory, path: str, kind: Kind | None) -> DatasetAttributes | None:
    """Return the known dataset that Zarr changes; None if it creates or removes a node."""
    view = memory.dataset(path)
    if view is None or memory.assumed(path) or isinstance(kind, NewGroup | NoArray):
        return None
    opened = view.dataset
    if isinstance(kind, NewArray):
        made = kind.members.element.stored, kind.members.block_size
        return opened if made == (opened.data_type, opened.block_size) else None
    return opened


def check_document(opened: DatasetAttributes | None, data: bytes | None) -> None:
    """Raise if a document on disk is no longer that of a dataset that was opened.

    Raises
    ------
    N5Error
        There is no dataset, or one of other elements or blocks (``kind="changed"``).
    """
    if opened is None:
        return
    now = parse_attributes(RawObject.parse(data).values)
    if not isinstance(now, DatasetAttributes):
        raise gone("nothing" if data is None else "a group")
    check_still_there(opened, now)


def check_still_there(opened: DatasetAttributes, now: DatasetAttributes) -> None:
    """Raise if a dataset has other elements or blocks than when it was opened.

    Raises
    ------
    N5Error
        It has (``kind="changed"``).
    """
    if (opened.type_name, opened.block_size) == (now.type_name, now.block_size):
        return
    message = (
        "another program has replaced the dataset since it was opened: expected "
        f"{opened.type_name} in blocks {opened.block_size}, got {now.type_name} in blocks "
        f"{now.block_size}; open it again"
    )
    raise N5Error(message, kind="changed")


def gone(found: str) -> N5Error:
    """Make the error of an open array whose dataset is no longer there."""
    message = (
        f"expected the dataset of an open array, got {found}: it has been removed or renamed "
        "since the array was opened; open it again where it is now"
    )
    return N5Error(message, kind="changed")
