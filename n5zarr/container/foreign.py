"""Decide whether a directory without a document belongs to N5 or to a Zarr hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.errors import N5FormatError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS, is_sidecar, zarr_node
from n5zarr.format.grid import is_block_name
from n5zarr.format.path import join
from n5zarr.storage.requests import Entry, Steps, list_each, read_key

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["INCOMPLETE_JSON", "check_n5", "holds_nodes"]

INCOMPLETE_JSON = "n5zarr-incomplete.json"
"""The file in a destination of :mod:`n5zarr.tools.jobs` that is still being written."""

_AT_A_TIME = 64  # listings in one batch
_LISTINGS = 1000  # largest number of listings in the search for N5 documents below a Zarr node


def holds_nodes() -> Steps[bool]:
    """Whether a root without document has nodes; files and directories of files do not count.

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
    """Raise if a directory without ``attributes.json`` is a node of Zarr.

    zarr-n5 writes documents of Zarr beside N5's, and tensorstore writes no document for groups: a
    directory with documents of N5 below it is a group.

    Parameters
    ----------
    path : str
        The directory.
    entries : sequence of Entry
        Its entries.

    Raises
    ------
    N5FormatError
        The directory is a node of Zarr, or the result of an interrupted run (``kind="foreign"``).
    """
    names = {entry.name for entry in entries}
    if INCOMPLETE_JSON in names:
        message = (
            "expected N5, got the incomplete result of an interrupted run (it has "
            f"{INCOMPLETE_JSON}); repeat its command (convert, pyramid: with --resume; one in "
            "parts: each with --part, then --finish) to finish it and remove its unfinished files, "
            "or with --overwrite to start again"
        )
        raise N5FormatError(message, kind="foreign")
    if not names & ZARR_DOCUMENTS or (yield from _holds_documents(path, entries)):
        return
    document = (yield from read_key(join(path, "zarr.json"))) if "zarr.json" in names else None
    if document is not None and is_sidecar(document):
        return
    raise N5FormatError(f"expected N5, got {zarr_node(names, document)}", kind="foreign")


def _holds_documents(path: str, entries: Sequence[Entry]) -> Steps[bool]:
    """Whether at most :data:`_LISTINGS` listings find documents of N5 below a directory."""
    below = _directories_below(path, entries)
    n_listed = 0
    while below and n_listed < _LISTINGS:
        folders, below = below[:_AT_A_TIME], below[_AT_A_TIME:]
        n_listed += len(folders)
        listings = yield from list_each(folders)
        for folder, listed in zip(folders, listings, strict=True):
            if any(entry.name == ATTRIBUTES_JSON for entry in listed):
                return True
            below += _directories_below(folder, listed)
    return False


def _directories_below(path: str, entries: Sequence[Entry]) -> list[str]:
    """Return the subdirectories of a directory; of possible Zarr chunk directories, only one.

    Chunks are in directories named by numbers, inside a directory that is no group.
    """
    names = _directories(entries)
    is_group = any(entry.name in ("zarr.json", ".zgroup") for entry in entries)
    if not is_group and all(map(is_block_name, names)):
        names = names[:1]
    return [join(path, name) for name in names]


def _directories(entries: Sequence[Entry]) -> list[str]:
    return [entry.name for entry in entries if entry.is_dir is not False]
