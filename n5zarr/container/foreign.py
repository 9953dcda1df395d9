"""Decide whether a directory belongs to N5 or to a Zarr hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from n5zarr.errors import N5AttributesError, N5FormatError
from n5zarr.format.attributes import ATTRIBUTES_JSON, is_dataset
from n5zarr.format.foreign import (
    ZARR_DOCUMENTS,
    Foreign,
    has_blocks_of_n5,
    has_name_of_zarr,
    holds_chunks_of_zarr,
    is_sidecar,
    zarr_node,
)
from n5zarr.format.grid import is_block_name
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.path import join
from n5zarr.format.version import VERSION_KEY
from n5zarr.storage.requests import Entry, List, Steps, list_each, read_each, read_key

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
    """Raise if a directory is a node of Zarr.

    Parameters
    ----------
    path : str
        The directory.
    entries : sequence of Entry
        Its entries.

    Raises
    ------
    N5FormatError
        The directory is a node of Zarr or may be one, or the result of an interrupted run
        (``kind="foreign"``).
    """
    names = {entry.name for entry in entries}
    if INCOMPLETE_JSON in names and ATTRIBUTES_JSON not in names:
        message = (
            "expected N5, got the incomplete result of an interrupted run (it has "
            f"{INCOMPLETE_JSON}); repeat its command (convert, pyramid: with --resume; one in "
            "parts: each with --part, then --finish) to finish it and remove its unfinished files, "
            "or with --overwrite to start again"
        )
        raise N5FormatError(message, kind="foreign")
    _refuse((yield from _zarr_at(path, entries)))


def check_both(path: str, entries: Sequence[Entry]) -> Steps[None]:
    """Raise like :func:`check_n5`, for a group with a document of N5."""
    names = {entry.name for entry in entries}
    if ATTRIBUTES_JSON in names and names & ZARR_DOCUMENTS:
        yield from check_n5(path, entries)


def check_place(path: str, data: bytes, location: str) -> Steps[None]:
    """Raise if :func:`zarr_instead` recognises a node of Zarr (``kind="foreign"``)."""
    _refuse((yield from zarr_instead(path, data, location)))


def zarr_instead(path: str, data: bytes, location: str) -> Steps[Foreign | None]:
    """Recognise a node of Zarr that has a file of the name of N5's document.

    Requests nothing for ordinary N5: it is not named ``.zarr``, and its root is a dataset or has a
    version.

    Parameters
    ----------
    path : str
        The node.
    data : bytes
        Its ``attributes.json``.
    location : str
        Path or URL of the container, whose names tell what to expect.

    Raises
    ------
    N5FormatError
        There are blocks of N5 and chunks of Zarr (``kind="foreign"``).
    """
    is_named_zarr = has_name_of_zarr(join(location, path))
    if path and not is_named_zarr and b'"zarr_format"' not in data:
        return None  # without parsing the document
    document = _parsed(data)
    members = document if isinstance(document, Mapping) else {}
    is_usual = bool(path) or is_dataset(document) or VERSION_KEY in members
    if is_usual and not is_named_zarr and "zarr_format" not in members:
        return None
    documents = sorted(ZARR_DOCUMENTS)
    there = yield from read_each([join(path, name) for name in documents])
    names = [name for name, found in zip(documents, there, strict=True) if found is not None]
    if not names:
        return None
    (entries,) = yield [List(path, few=True)]
    if not entries:  # the server does not list
        return None if is_dataset(document) else zarr_node(names, there[-1])
    known = [Entry(name, is_dir=False) for name in (ATTRIBUTES_JSON, *names)]
    return (yield from _zarr_at(path, [*entries, *known]))


def _refuse(found: Foreign | None) -> None:
    if found is not None:
        raise N5FormatError(f"expected N5, got {found}", kind="foreign")


def _zarr_at(path: str, entries: Sequence[Entry]) -> Steps[Foreign | None]:
    """Recognise a node of Zarr by its document, and by its chunks if it has one of N5, too.

    zarr-n5 writes documents of Zarr beside N5's, and tensorstore writes no document for groups: a
    directory with documents of N5 below it is a group.
    """
    names = {entry.name for entry in entries}
    if not names & ZARR_DOCUMENTS:
        return None
    has_both = ATTRIBUTES_JSON in names
    if not has_both and (yield from _is_n5_below(path, entries)):
        return None
    own = "zarr.json" if "zarr.json" in names or not has_both else ".zarray"
    data = (yield from read_key(join(path, own))) if own in names else None
    if data is not None and (has_blocks_of_n5(data) if has_both else is_sidecar(data)):
        return None
    found = zarr_node(names, data if own == "zarr.json" else None)
    if not has_both or found is None:
        return found
    document = _parsed((yield from read_key(join(path, ATTRIBUTES_JSON))) or b"")
    if is_dataset(document):
        has_chunks = found.kind == "array" and holds_chunks_of_zarr(names, data or b"")
        if has_chunks and any(map(is_block_name, names)):
            message = (
                f"expected N5 or Zarr, got the documents of both, {ATTRIBUTES_JSON} and {own}, and "
                "data that may belong to either; move the other document away"
            )
            raise N5FormatError(message, kind="foreign")
        return found if has_chunks else None
    if found.kind == "array":
        entries = [e for e in entries if not holds_chunks_of_zarr([e.name], data or b"")]
    is_n5 = yield from _is_n5_below(path, entries)
    return found if is_n5 is False or (is_n5 is None and found.kind == "array") else None


def _parsed(data: bytes) -> JSON:
    """Parse a document of N5; None if it is broken, which whoever opens it reports."""
    try:
        return parse_json(data)
    except N5AttributesError:
        return None


def _is_n5_below(path: str, entries: Sequence[Entry]) -> Steps[bool | None]:
    """Whether at most :data:`_LISTINGS` listings find N5 below a directory; None for neither."""
    below = _directories_below(path, entries)
    n_listed = 0
    is_n5 = None
    while below and n_listed < _LISTINGS:
        folders, below = below[:_AT_A_TIME], below[_AT_A_TIME:]
        n_listed += len(folders)
        listings = yield from list_each(folders)
        for folder, listed in zip(folders, listings, strict=True):
            names = {entry.name for entry in listed}
            is_zarr = not names.isdisjoint(ZARR_DOCUMENTS)
            if ATTRIBUTES_JSON in names:
                if not is_zarr or (yield from _zarr_at(folder, listed)) is None:
                    return True
            else:
                below += _directories_below(folder, listed)
            is_n5 = False if is_zarr else is_n5
    return is_n5


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


def read_zarr_node(path: str, location: str) -> Steps[Foreign | None]:
    """Recognise a node of Zarr; None if it is one of N5, or has no document.

    Parameters
    ----------
    path : str
        The node.
    location : str
        Path or URL of the root, whose names tell what to expect.
    """
    return (yield from read_node_of_any(path, location))[1]


def read_node_of_any(path: str, location: str) -> Steps[tuple[bool, Foreign | None]]:
    """Do the same, and return whether a document of N5 is there."""
    data = yield from read_key(join(path, ATTRIBUTES_JSON))
    if data is not None:
        found = yield from zarr_instead(path, data, location)
        return found is None, found
    names = sorted(ZARR_DOCUMENTS)
    documents = yield from read_each([join(path, name) for name in names])
    there = {name: data for name, data in zip(names, documents, strict=True) if data is not None}
    return False, zarr_node(there, there.get("zarr.json"))
