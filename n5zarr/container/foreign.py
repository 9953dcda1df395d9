"""Tell whether a directory without a document belongs to N5, or to a Zarr hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.errors import N5FormatError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS, is_sidecar, zarr_node
from n5zarr.format.grid import is_block_name
from n5zarr.format.path import join
from n5zarr.storage.requests import Steps, list_each, read_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.storage.requests import Entry

__all__ = ["INCOMPLETE_JSON", "check_n5", "holds_nodes"]

INCOMPLETE_JSON = "n5zarr-incomplete.json"
"""The file in a destination of :mod:`n5zarr.tools.jobs` that is still being written."""

_AT_A_TIME = 64  # listings that are asked for together
_LISTINGS = 1000  # in which documents of N5 are looked for below a node of Zarr


def holds_nodes() -> Steps[bool]:
    """Whether a root without document has nodes; files, and directories of files, are none.

    Raises
    ------
    N5FormatError
        The root is a node of Zarr (``kind="foreign"``).
    """
    entries = (yield from list_each([""]))[0]
    yield from check_n5("", entries)
    names = _directories(entries)
    for i in range(0, len(names), _AT_A_TIME):
        each = yield from list_each(names[i : i + _AT_A_TIME])
        if any(e.name == ATTRIBUTES_JSON or e.is_dir is not False for d in each for e in d):
            return True
    return False


def check_n5(path: str, entries: Sequence[Entry]) -> Steps[None]:
    """Check that a directory without ``attributes.json`` is no node of Zarr.

    zarr-n5 writes documents of Zarr beside N5's, and tensorstore writes no document for groups: a
    directory with documents of N5 below it is a group.

    Parameters
    ----------
    path : str
        The directory.
    entries : sequence of Entry
        What is in it.

    Raises
    ------
    N5FormatError
        It is a node of Zarr, or the result of an interrupted run (``kind="foreign"``).
    """
    names = {entry.name for entry in entries}
    if INCOMPLETE_JSON in names:
        message = (
            "expected N5, got the incomplete result of an interrupted run, of which "
            f"{INCOMPLETE_JSON} tells; repeat its command (convert, pyramid: with --resume) to "
            "finish it and remove its unfinished files, or with --overwrite to begin anew"
        )
        raise N5FormatError(message, kind="foreign")
    if not names & ZARR_DOCUMENTS or (yield from _holds_documents(path, entries)):
        return
    document = (yield from read_key(join(path, "zarr.json"))) if "zarr.json" in names else None
    if document is not None and is_sidecar(document):
        return
    message = f"expected N5, got {zarr_node(names, document)}"
    raise N5FormatError(message, kind="foreign")


def _holds_documents(path: str, entries: Sequence[Entry]) -> Steps[bool]:
    """Whether documents of N5 are below a directory, as far as :data:`_LISTINGS` tell it."""
    below = _below(path, entries)
    n_listed = 0
    while below and n_listed < _LISTINGS:
        folders, below = below[:_AT_A_TIME], below[_AT_A_TIME:]
        n_listed += len(folders)
        listings = yield from list_each(folders)
        for folder, listed in zip(folders, listings, strict=True):
            if any(entry.name == ATTRIBUTES_JSON for entry in listed):
                return True
            below += _below(folder, listed)
    return False


def _below(path: str, entries: Sequence[Entry]) -> list[str]:
    """Return the directories in one; of those that may be of Zarr's chunks, which are alike, one.

    Chunks are in directories named by numbers, in one that is no group.
    """
    names = _directories(entries)
    is_group = any(entry.name in ("zarr.json", ".zgroup") for entry in entries)
    if not is_group and all(map(is_block_name, names)):
        names = names[:1]
    return [join(path, name) for name in names]


def _directories(entries: Sequence[Entry]) -> list[str]:
    return [entry.name for entry in entries if entry.is_dir is not False]
